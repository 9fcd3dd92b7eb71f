/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sampler_test.c
 * Goal    the samples of every rank and epoch are those of PyTorch's DistributedSampler; together the ranks have all
 *         samples.
 * Method  tests/golden/sampler.tsv, and properties for all small sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/data.h>

enum { LINE = 8192, LINES = 124, SAMPLES = 512 };

static void check_line(char *line)
{
    tutti_distributed_sampler_options opts = TUTTI_DISTRIBUTED_SAMPLER_OPTIONS;
    int64_t got[SAMPLES], n, k = 0;
    tutti_distributed_sampler s;
    uint64_t field[7];

    for (int i = 0; i < 7; i++)
        field[i] = strtoull(strsep(&line, "\t"), NULL, 10);
    opts.seed = field[3];
    opts.in_order = field[5] == 0;
    opts.drop_last = field[6] != 0;
    assert_int_equal(
        tutti_distributed_sampler_init(&s, (int64_t)field[0], (int)field[1], (int)field[2], &opts),
        TUTTI_OK);
    tutti_distributed_sampler_set_epoch(&s, field[4]);
    n = tutti_distributed_sampler_length(&s);
    assert_true(n <= SAMPLES);
    assert_int_equal(tutti_distributed_sampler_indices(&s, got), TUTTI_OK);
    for (char *word; (word = strsep(&line, "\t")) != NULL; k++)
        if (k >= n || got[k] != strtoll(word, NULL, 10))
            fail_msg("%d samples, rank %d of %d, seed %llu: sample %d differs", (int)field[0],
                     (int)field[2], (int)field[1], (unsigned long long)field[3], (int)k);
    assert_int_equal(k, n);
}

static void samples_are_pytorchs(void **state)
{
    FILE *file = fopen(GOLDEN, "re");
    char *line = malloc(LINE);
    int lines = 0;

    (void)state;
    assert_non_null(file);
    assert_non_null(line);
    while (fgets(line, LINE, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#')
            continue;
        check_line(line);
        lines++;
    }
    assert_int_equal(lines, LINES);
    free(line);
    fclose(file);
}

/* How often each of n samples comes, over all ranks. */
static void count(int64_t n, int replicas, bool drop_last, int *times)
{
    const tutti_distributed_sampler_options opts = { .size = sizeof opts,
                                                     .seed = 3,
                                                     .drop_last = drop_last };
    int64_t got[SAMPLES], length = -1;

    memset(times, 0, SAMPLES * sizeof *times);
    for (int rank = 0; rank < replicas; rank++) {
        tutti_distributed_sampler s;

        assert_int_equal(tutti_distributed_sampler_init(&s, n, replicas, rank, &opts), TUTTI_OK);
        assert_true(length == -1 || length == tutti_distributed_sampler_length(&s));
        length = tutti_distributed_sampler_length(&s);
        assert_int_equal(tutti_distributed_sampler_indices(&s, got), TUTTI_OK);
        for (int64_t k = 0; k < length; k++)
            times[got[k]]++;
    }
}

static void together_the_ranks_have_all(void **state)
{
    int times[SAMPLES];

    (void)state;
    for (int64_t n = 0; n < 40; n++)
        for (int replicas = 1; replicas < 12; replicas++) {
            int64_t twice = (replicas - n % replicas) % replicas, left = 0;

            count(n, replicas, false, times);
            for (int64_t i = 0; i < n; i++) {
                assert_true(times[i] >= 1);
                twice -= times[i] - 1;
            }
            assert_true(n == 0 || twice == 0);
            count(n, replicas, true, times);
            for (int64_t i = 0; i < n; i++) {
                assert_true(times[i] <= 1);
                left += times[i] == 0;
            }
            assert_int_equal(left, n % replicas);
        }
}

static void epochs_differ_and_feed_a_loader(void **state)
{
    int64_t a[50], b[50], order[50];
    tutti_distributed_sampler s;
    const int64_t *batch = NULL;
    tutti_loader loader;

    (void)state;
    assert_int_equal(tutti_distributed_sampler_init(&s, 100, 2, 1, NULL), TUTTI_OK);
    assert_int_equal(tutti_distributed_sampler_indices(&s, a), TUTTI_OK);
    assert_int_equal(tutti_distributed_sampler_indices(&s, b), TUTTI_OK);
    assert_memory_equal(a, b, sizeof a);
    tutti_distributed_sampler_set_epoch(&s, 1);
    assert_int_equal(tutti_distributed_sampler_indices(&s, b), TUTTI_OK);
    assert_memory_not_equal(a, b, sizeof a);
    assert_int_equal(tutti_loader_init(&loader, b, 50, 16, order), TUTTI_OK);
    assert_int_equal(tutti_loader_restart(&loader), TUTTI_OK);
    assert_int_equal(tutti_loader_next(&loader, &batch), 16);
    assert_memory_equal(batch, b, 16 * sizeof *b);
}

static void refusals(void **state)
{
    tutti_distributed_sampler s = { .n = 5 };
    const tutti_distributed_sampler_options none = { 0 };
    int64_t got[4];

    (void)state;
    assert_int_equal(tutti_distributed_sampler_init(&s, 4, 2, 2, NULL), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "rank 2 of 2 has no samples"));
    assert_int_equal(tutti_distributed_sampler_init(&s, 4, 2, -1, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_distributed_sampler_init(&s, 4, 0, 0, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_distributed_sampler_init(&s, -1, 1, 0, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_distributed_sampler_init(&s, INT64_C(1) << 31, 1, 0, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_distributed_sampler_init(&s, 4, 1, 0, &none), TUTTI_E_ARG);
    assert_int_equal(tutti_distributed_sampler_init(NULL, 4, 1, 0, NULL), TUTTI_E_ARG);
    assert_int_equal(s.n, 5); /* untouched */
    assert_int_equal(tutti_distributed_sampler_init(&s, 4, 1, 0, NULL), TUTTI_OK);
    assert_int_equal(tutti_distributed_sampler_indices(&s, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_distributed_sampler_indices(NULL, got), TUTTI_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_pytorchs),
        cmocka_unit_test(together_the_ranks_have_all),
        cmocka_unit_test(epochs_differ_and_feed_a_loader),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
