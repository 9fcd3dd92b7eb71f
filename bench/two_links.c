/* SPDX-License-Identifier: BSD-3-Clause
 *
 * two_links.c - all_reduce back to back: one rank, which joins as its environment says; two_links.py starts it on hosts that are
 * joined twice, with one of the links named and with both.
 *
 *     two_links LABEL ROUND MS BYTES ...
 *
 * How     Each size once call by call, and once with two calls under way, each on memory of its own: the next is begun when the
 *         older of the two has ended. Some calls say how many there have to be for MS; all of them are timed as one. The result
 *         of the last is compared with what it has to be.
 *         Bytes are what each interface of this host has sent meanwhile, of which the kernel keeps count.
 * Rows    tab-separated, of rank 0: label, round, ranks, bytes, calls under way, calls, us of each, bytes sent by tt0 and by tt1. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tutti/tutti.h>

enum { WAYS = 2, WARM = 3, LINKS = 2 };

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "two_links: %s: %s\n", what, tutti_last_error());
    exit(1);
}

#define TRY(call)               \
    do {                        \
        if ((call) != TUTTI_OK) \
            die(#call);         \
    } while (0)

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* 0 of a device that is not there. */
static void read_sent(int64_t sent_out[LINKS])
{
    FILE     *file = fopen("/proc/self/net/dev", "r");
    char      line[512], name[32];
    long long sent;
    int       which;

    memset(sent_out, 0, LINKS * sizeof *sent_out);
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, " %31[^:]: %*d %*d %*d %*d %*d %*d %*d %*d %lld", name, &sent) == 2 && sscanf(name, "tt%d", &which) == 1 &&
            which >= 0 && which < LINKS)
            sent_out[which] = sent;
    if (file != NULL)
        fclose(file);
}

/* calls of them, ways at a time; values are kept from growing by averages, which leave them as they are. */
static void run(float *const x[WAYS], int64_t count, int ways, int64_t calls)
{
    tutti_work *works[WAYS] = { NULL };
    int64_t     i;

    for (i = 0; i < calls + ways; i++) {
        tutti_work **work = &works[i % ways];

        if (*work != NULL) {
            TRY(tutti_work_wait(*work));
            tutti_work_free(*work);
            *work = NULL;
        }
        if (i < calls)
            TRY(tutti_all_reduce_async(TUTTI_SPAN(x[i % ways], count), TUTTI_AVG, NULL, work));
    }
}

static void fill(float *x, int64_t count, int rank)
{
    int64_t i;

    for (i = 0; i < count; i++)
        x[i] = (float)(rank * 2 + i % 64);
}

/* The first average has made them equal on all ranks, and whole numbers; the others change nothing. */
static void check(const float *x, int64_t count, int ranks)
{
    int64_t i;

    for (i = 0; i < count; i++)
        if (x[i] != (float)(ranks - 1 + i % 64)) {
            fprintf(stderr, "two_links: element %" PRId64 " is %f\n", i, (double)x[i]);
            exit(1);
        }
}

static void measure(const char *label, const char *round, int64_t bytes, int ways, double ms)
{
    const int64_t count = bytes / (int64_t)sizeof(float);
    const int     rank = tutti_get_rank(NULL), ranks = tutti_get_world_size(NULL);
    float        *x[WAYS] = { NULL };
    int64_t       calls, before[LINKS], after[LINKS];
    double        begin;
    int           i;

    for (i = 0; i < ways; i++) {
        x[i] = malloc((size_t)bytes);
        if (x[i] == NULL)
            exit(1);
        fill(x[i], count, rank);
    }
    run(x, count, ways, WARM * ways);
    begin = now_us();
    run(x, count, ways, WARM * ways);
    calls = (int64_t)(ms * 1e3 / ((now_us() - begin) / (WARM * ways))) + 1;
    TRY(tutti_broadcast(TUTTI_SPAN(&calls, 1), 0, NULL));
    TRY(tutti_barrier(NULL));
    read_sent(before);
    begin = now_us();
    run(x, count, ways, calls);
    begin = now_us() - begin;
    TRY(tutti_barrier(NULL));
    read_sent(after);
    for (i = 0; i < ways; i++) {
        check(x[i], count, ranks);
        free(x[i]);
    }
    if (rank == 0)
        printf("%s\t%s\t%d\t%" PRId64 "\t%d\t%" PRId64 "\t%.1f\t%" PRId64 "\t%" PRId64 "\n", label, round, ranks, bytes, ways, calls,
               begin / (double)calls, after[0] - before[0], after[1] - before[1]);
}

int main(int argc, char **argv)
{
    int i, ways;

    if (argc < 5) {
        fprintf(stderr, "usage: two_links LABEL ROUND MS BYTES ...\n");
        return 2;
    }
    TRY(tutti_init_process_group(NULL));
    for (i = 4; i < argc; i++)
        for (ways = 1; ways <= WAYS; ways++)
            measure(argv[1], argv[2], strtoll(argv[i], NULL, 10) / 4 * 4, ways, strtod(argv[3], NULL));
    TRY(tutti_destroy_process_group(NULL));
    return 0;
}
