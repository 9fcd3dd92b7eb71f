/* SPDX-License-Identifier: BSD-3-Clause
 *
 * two_links_test.c
 * Goal    hosts that are joined by two interfaces, both named: what ranks send each other goes by both, in order and right,
 *         encrypted too, and by several connections on each; an interface that is lost is named by who hears of it; hosts
 *         that name not as many, or what is not there, are told what is wrong on every rank.
 * Method  Two network namespaces with two veth pairs between them. Bytes are counted by the kernel, for each device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { LINKS = 2, LARGE = 2 << 20 /* floats */, REPEATS = 4, MESSAGES = 200, LONG_MS = 60000, SOON_MS = 20000 };
/* Counters of the harness that ranks share. */
enum { BEGUN, MOVED, COUNTED, HAVE_BOTH, TOLD };

static void all_here(tt_ctx *t, int mark)
{
    tt_post(t, mark);
    tt_await(t, mark, (uint32_t)t->size);
}

/* What this host has sent by each of its devices. */
static void read_sent(int64_t sent_out[LINKS])
{
    FILE *file = fopen("/proc/self/net/dev", "r");
    char  line[512], name[32];
    long long sent;
    int   which, found = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, " %31[^:]: %*d %*d %*d %*d %*d %*d %*d %*d %lld", name, &sent) == 2 &&
            sscanf(name, "tt%d", &which) == 1 && which >= 0 && which < LINKS) {
            sent_out[which] = sent;
            found++;
        }
    fclose(file);
    assert_int_equal(found, LINKS);
}

/* Each has carried between 40 and 60 of a hundred of what this host has sent since, which was least at the least. */
static void expect_halves(const int64_t before[LINKS], int64_t least)
{
    int64_t after[LINKS], moved[LINKS];

    read_sent(after);
    moved[0] = after[0] - before[0];
    moved[1] = after[1] - before[1];
    if (moved[0] + moved[1] < least || moved[0] * 10 < (moved[0] + moved[1]) * 4 || moved[0] * 10 > (moved[0] + moved[1]) * 6)
        fail_msg("tt0 has carried %lld bytes, tt1 %lld, of %lld at the least", (long long)moved[0], (long long)moved[1],
                 (long long)least);
}

/* One call after the other, and two at a time; then it is whole on all ranks, and both links have had their part. */
static void calls_go_by_both(tt_ctx *t)
{
    float      *x = tt_floats(t, LARGE, 0), *y = tt_floats(t, LARGE, 0);
    tutti_work *works[2];
    int64_t     before[LINKS];
    int         i, k;

    OK(tutti_barrier(t->group)); /* the connections are there */
    read_sent(before);
    all_here(t, BEGUN);
    for (i = 0; i < REPEATS; i++) {
        for (k = 0; k < LARGE; k++) {
            x[k] = (float)(t->rank + k % 100);
            y[k] = (float)(t->rank * 2 + k % 10);
        }
        OK(tutti_all_reduce_async(TUTTI_SPAN(x, LARGE), TUTTI_SUM, t->group, &works[0]));
        OK(tutti_all_reduce_async(TUTTI_SPAN(y, LARGE), TUTTI_SUM, t->group, &works[1]));
        OK(tutti_work_wait(works[0]));
        OK(tutti_work_wait(works[1]));
        tutti_work_free(works[0]);
        tutti_work_free(works[1]);
        for (k = 0; k < LARGE; k++) {
            const int ranks = t->size * (t->size - 1) / 2;

            if (x[k] != (float)(ranks + t->size * (k % 100)) || y[k] != (float)(2 * ranks + t->size * (k % 10)))
                fail_msg("element %d of call %d is %f, %f", k, i, (double)x[k], (double)y[k]);
        }
    }
    all_here(t, MOVED);
    if (t->rank % (t->size / 2) == 0) /* half of each goes there, at least, and half of each comes back */
        expect_halves(before, (int64_t)REPEATS * LARGE * (int64_t)sizeof *x);
    all_here(t, COUNTED);
}

/* Messages of all sizes keep their order, whichever way they go; a single large one goes by both. */
static void messages_keep_their_order(tt_ctx *t)
{
    int32_t *x = tt_alloc(t, LARGE * sizeof *x);
    int64_t  before[LINKS];
    int      i, k, n;

    OK(tutti_barrier(t->group));
    for (i = 0; i < MESSAGES; i++) {
        n = 1 + i * 977 % 40000;
        if (t->rank == 0) {
            for (k = 0; k < n; k++)
                x[k] = i * 100000 + k;
            OK(tutti_send(TUTTI_SPAN(x, n), 1, 3, t->group));
            continue;
        }
        OK(tutti_recv(TUTTI_SPAN(x, n), 0, 3, t->group, NULL));
        for (k = 0; k < n; k++)
            if (x[k] != i * 100000 + k)
                fail_msg("message %d, element %d: %d", i, k, x[k]);
    }
    all_here(t, BEGUN);
    read_sent(before);
    all_here(t, HAVE_BOTH);
    if (t->rank == 0)
        OK(tutti_send(TUTTI_SPAN(x, LARGE), 1, 4, t->group));
    else
        OK(tutti_recv(TUTTI_SPAN(x, LARGE), 0, 4, t->group, NULL));
    all_here(t, MOVED);
    if (t->rank == 0)
        expect_halves(before, (int64_t)LARGE * (int64_t)sizeof *x);
    all_here(t, COUNTED);
}

static void join(tt_ctx *t)
{
    tutti_init_options options = TUTTI_INIT_OPTIONS;

    options.init_method = t->init_method;
    options.timeout_ms = LONG_MS;
    OK(tutti_init_process_group(&options));
}

/* Rank 1 loses its second interface, or both ranks do, who then have nothing on its way by it: whoever waits for what goes by
 * it is told so when nothing was heard of it for as long as of any connection, and is told by which interface it was to
 * come. */
static void lose_an_interface(tt_ctx *t, bool both)
{
    float       *x = tt_floats(t, LARGE, 1);
    tutti_status st = TUTTI_OK;

    join(t);
    OK(tutti_all_reduce(TUTTI_SPAN(x, LARGE), TUTTI_SUM, NULL));
    all_here(t, BEGUN);
    if ((both || t->rank == 1) && system("ip link set tt1 down") != 0) {
        printf("SKIP: no ip program to take a link down with\n");
        exit(TT_SKIPPED);
    }
    all_here(t, MOVED);
    while (st == TUTTI_OK)
        st = tutti_all_reduce(TUTTI_SPAN(x, LARGE), TUTTI_SUM, NULL);
    assert_int_equal(st, TUTTI_E_PEER);
    if (strstr(tutti_last_error(), "rank") == NULL || strstr(tutti_last_error(), "by interface 'tt1'") == NULL)
        fail_msg("'by interface 'tt1'' is not in: %s", tutti_last_error());
    printf("rank %d: %s\n", t->rank, tutti_last_error());
    all_here(t, TOLD); /* nobody has left before */
    (void)tutti_destroy_process_group(NULL);
}

static void a_lost_interface_is_named(tt_ctx *t)
{
    lose_an_interface(t, false);
}

static void an_interface_that_both_lost_is_named(tt_ctx *t)
{
    lose_an_interface(t, true);
}

static void fails_to_join(tt_ctx *t, const char *setting, tutti_status wanted, const char *const *words)
{
    tutti_init_options options = TUTTI_INIT_OPTIONS;

    setenv("TUTTI_SOCKET_IFNAME", setting, 1);
    options.init_method = t->init_method;
    options.timeout_ms = SOON_MS;
    assert_int_equal(tutti_init_process_group(&options), wanted);
    for (; *words != NULL; words++)
        if (strstr(tutti_last_error(), *words) == NULL)
            fail_msg("'%s' is not in: %s", *words, tutti_last_error());
    all_here(t, TOLD);
}

/* Both lists, on all ranks. */
static void other_numbers_are_told_to_all(tt_ctx *t)
{
    static const char *const words[] = { "2 interfaces (tt0, tt1)", "one address (10.77.0.2", "rank 0", "rank 1", NULL };

    fails_to_join(t, t->rank == 0 ? "=tt0,=tt1" : "=tt0", TUTTI_E_MISMATCH, words);
}

static void other_lists_are_told_to_all(tt_ctx *t)
{
    static const char *const words[] = { "2 interfaces (tt0, tt1)", "3 interfaces (tt1, tt0, lo)", NULL };

    fails_to_join(t, t->rank == 0 ? "=tt0,=tt1" : "=tt1,=tt0,=lo", TUTTI_E_MISMATCH, words);
}

static void names_that_are_not_there_are_said(tt_ctx *t)
{
    static const char *const words[] = { "no interface with an address is called 'tt7'", "tt0, tt1", NULL };

    fails_to_join(t, "=tt0,=tt7", TUTTI_E_ARG, words);
}

static void too_many_connections_are_said(tt_ctx *t)
{
    static const char *const words[] = { "TUTTI_TCP_STRIPES is 5 on each of 2 interfaces (tt0, tt1)", "set it to 4 at most", NULL };

    setenv("TUTTI_TCP_STRIPES", "5", 1);
    fails_to_join(t, "=tt0,=tt1", TUTTI_E_ARG, words);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(calls_go_by_both, .hosts = 2, .rails = true, .limit_ms = 60000),
        TT_TEST(calls_go_by_both, .name = "calls_of_four_go_by_both", .ranks = 4, .hosts = 2, .rails = true, .limit_ms = 60000),
        TT_TEST(calls_go_by_both, .name = "calls_go_by_both_encrypted", .hosts = 2, .rails = true, .tls = true, .limit_ms = 60000),
        TT_TEST(calls_go_by_both, .name = "calls_go_by_two_on_each", .hosts = 2, .rails = true, .stripes = 2, .limit_ms = 60000),
        TT_TEST(messages_keep_their_order, .hosts = 2, .rails = true, .limit_ms = 60000),
        TT_TEST(a_lost_interface_is_named, .hosts = 2, .rails = true, .limit_ms = 3 * LONG_MS, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(an_interface_that_both_lost_is_named, .hosts = 2, .rails = true, .limit_ms = 3 * LONG_MS, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(other_numbers_are_told_to_all, .hosts = 2, .rails = true, .limit_ms = 60000, .init = TT_INIT_NONE),
        TT_TEST(other_lists_are_told_to_all, .hosts = 2, .rails = true, .limit_ms = 60000, .init = TT_INIT_NONE),
        TT_TEST(names_that_are_not_there_are_said, .hosts = 2, .rails = true, .limit_ms = 60000, .init = TT_INIT_NONE),
        TT_TEST(too_many_connections_are_said, .hosts = 2, .rails = true, .limit_ms = 60000, .init = TT_INIT_NONE),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
