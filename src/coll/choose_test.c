/* SPDX-License-Identifier: BSD-3-Clause
 *
 * choose_test.c
 * Goal    every call has an algorithm that can do it; TUTTI_ALGO is obeyed or refused clearly; what was
 *         measured moves the choice between algorithms of one order of summation, never to another one.
 * Method  The choice is a pure function: it is asked about all kinds, sizes and many groups, with drawn
 *         machines; and about a table with orders that the real one does not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/debug.h>
#include <tutti/tune.h>
#include "base/fnv.h"
#include "coll/choice.h"
#include "coll/coll_ranks.h"

static const tti_tune no_table;

static tti_wishes wishes_of(const char *text)
{
    tti_wishes wishes;

    assert_int_equal(tti_wishes_parse(text, &wishes), TUTTI_OK);
    return wishes;
}

static tti_decision decided(const char *text, const tti_machine *machine, bool one_host, int n_ranks)
{
    const tti_wishes     wishes = wishes_of(text);
    const tti_question   q = { .wishes = &wishes, .tune = &no_table, .machine = machine, .one_host = one_host,
                               .turns = 1, .n_ranks = n_ranks };
    tti_decision         decision;
    int                  n;
    const tti_algorithm *rows = tti_algorithms(&n);

    tti_decide(&q, rows, n, &decision);
    return decision;
}

static const char *chosen(const char *text, tutti_call_kind kind, bool one_host, int n_ranks,
                          int64_t bytes)
{
    const tti_decision   d = decided(text, &tti_machine_default, one_host, n_ranks);
    const tti_algorithm *row = tti_choose(&d, kind, bytes);

    assert_int_equal(row->kind, kind);
    return row->name;
}

static void every_row_is_whole(void **state)
{
    int                  n, i, j;
    const tti_algorithm *rows = tti_algorithms(&n);

    (void)state;
    for (i = 0; i < n; i++) {
        assert_true((rows[i].staged != NULL) + (rows[i].plan != NULL) + (rows[i].level != NULL) <= 1);
        assert_true((rows[i].amounts == NULL) == (tti_is_fused(&rows[i]) || rows[i].level != NULL));
        assert_true((rows[i].level_amounts != NULL) == (rows[i].level != NULL));
        assert_true(rows[i].order >= 0 && rows[i].order < TTI_ORDERS);
        for (j = 0; j < i; j++)
            assert_false(rows[i].kind == rows[j].kind && strcmp(rows[i].name, rows[j].name) == 0);
    }
}

static void sizes_fall_into_classes(void **state)
{
    int64_t bytes, most = -1;
    int     size;

    (void)state;
    for (size = 0; size < TTI_SIZE_CLASSES; size++) {
        assert_true(tti_size_class_most(size) > most);
        most = tti_size_class_most(size);
        assert_int_equal(tti_size_class(most), size);
        if (size < TTI_SIZE_CLASSES - 1)
            assert_int_equal(tti_size_class(most + 1), size + 1);
    }
    assert_int_equal(most, INT64_MAX);
    for (bytes = 4; bytes <= INT64_C(1) << 40; bytes *= 2) /* thresholds that people choose are edges */
        assert_int_equal(tti_size_class_most(tti_size_class(bytes)), bytes);
    assert_int_equal(tti_size_class_most(tti_size_class(56)), 56);
}

static void every_call_has_an_algorithm(void **state)
{
    static const int ranks[] = { 2, 3, TTI_HOST_RANKS_MAX, TTI_HOST_RANKS_MAX + 1, 1 << 20 };
    size_t           r;
    int              kind, size;

    (void)state;
    for (r = 0; r < sizeof ranks / sizeof ranks[0]; r++) {
        const tti_decision host = decided(NULL, &tti_machine_default, true, ranks[r]);
        const tti_decision net = decided(NULL, &tti_machine_default, false, ranks[r]);

        for (kind = 1; kind < TUTTI_CALL_KIND_COUNT; kind++)
            for (size = 0; size < TTI_SIZE_CLASSES; size++) {
                const int64_t bytes = tti_size_class_most(size);

                assert_null(tti_choose(&net, (tutti_call_kind)kind, bytes)->staged);
                assert_true((tti_choose(&host, (tutti_call_kind)kind, bytes)->staged != NULL) ==
                            (ranks[r] <= TTI_HOST_RANKS_MAX));
            }
    }
}

static void size_and_place_decide(void **state)
{
    const tutti_call_kind kind = TUTTI_CALL_ALL_REDUCE;

    (void)state;
    assert_string_equal(chosen(NULL, kind, true, 4, 64), "lines");
    assert_string_equal(chosen(NULL, kind, true, 4, 1 << 20), "sliced");
    assert_string_equal(chosen(NULL, kind, true, 2, 16 << 20), "pull");
    assert_string_equal(chosen(NULL, kind, true, 2, 64 << 20), "sliced");
    assert_string_equal(chosen(NULL, kind, true, 8, 16 << 20), "sliced");
    assert_string_equal(chosen(NULL, TUTTI_CALL_ALL_GATHER, true, 2, 1 << 20), "pull");
    assert_string_equal(chosen(NULL, TUTTI_CALL_BROADCAST, true, 2, 1 << 20), "staged");
    assert_string_equal(chosen(NULL, kind, false, 4, 64), "one_shot");
    assert_string_equal(chosen(NULL, kind, false, 4, 1 << 20), "direct");
}

static tti_decision decided_in_levels(const char *text, const tti_machine *machine, bool reproducible,
                                      const tti_level_figures *levels)
{
    const tti_wishes     wishes = wishes_of(text);
    const tti_question   q = { .wishes = &wishes, .tune = &no_table, .machine = machine, .reproducible = reproducible,
                               .turns = 1, .n_ranks = levels->hosts * levels->most, .levels = levels };
    tti_decision         decision;
    int                  n;
    const tti_algorithm *rows = tti_algorithms(&n);

    tti_decide(&q, rows, n, &decision);
    return decision;
}

static const char *chosen_in_levels(const char *text, bool reproducible, tutti_call_kind kind, int64_t bytes)
{
    const tti_level_figures two_by_four = { .hosts = 2, .least = 4, .most = 4, .carriers = 4 };
    const tti_decision      d = decided_in_levels(text, &tti_machine_default, reproducible, &two_by_four);

    return tti_choose(&d, kind, bytes)->name;
}

static void hosts_with_several_members_have_two_levels(void **state)
{
    (void)state;
    assert_string_equal(chosen_in_levels(NULL, false, TUTTI_CALL_ALL_REDUCE, 64), "leaders");
    assert_string_equal(chosen_in_levels(NULL, false, TUTTI_CALL_ALL_REDUCE, 1 << 20), "two_level");
    assert_string_equal(chosen_in_levels(NULL, false, TUTTI_CALL_REDUCE_SCATTER, 1 << 20), "two_level");
    assert_string_equal(chosen_in_levels(NULL, false, TUTTI_CALL_BROADCAST, 1 << 20), "two_level");
    assert_string_equal(chosen_in_levels(NULL, false, TUTTI_CALL_BARRIER, 0), "leaders");
    assert_string_equal(chosen_in_levels(NULL, false, TUTTI_CALL_GATHER, 64), "leaders");
    assert_string_equal(chosen_in_levels(NULL, false, TUTTI_CALL_SCATTER, 64), "leaders");
    assert_string_equal(chosen_in_levels(NULL, false, TUTTI_CALL_GATHER, 1 << 20), "direct");
    assert_string_equal(chosen_in_levels("scatter=two_level", false, TUTTI_CALL_SCATTER, 1 << 20), "two_level");
    assert_string_equal(chosen_in_levels(NULL, true, TUTTI_CALL_ALL_TO_ALL, 0), "two_level");
    assert_string_equal(chosen_in_levels(NULL, true, TUTTI_CALL_ALL_REDUCE, 1 << 20), "direct");
    assert_string_equal(chosen_in_levels(NULL, true, TUTTI_CALL_ALL_GATHER, 1 << 20), "two_level"); /* no sums */
    assert_string_equal(chosen_in_levels("all_reduce=direct", false, TUTTI_CALL_ALL_REDUCE, 64), "direct");
    assert_string_equal(chosen_in_levels("all_reduce=two_level", true, TUTTI_CALL_ALL_REDUCE, 1 << 20), "direct");
    assert_string_equal(chosen("all_reduce=two_level", TUTTI_CALL_ALL_REDUCE, false, 4, 1 << 20), "direct");
    assert_string_equal(chosen("all_reduce=two_level", TUTTI_CALL_ALL_REDUCE, true, 4, 1 << 20), "sliced");
}

/* From where on what the root sends shares what may be on the way; measured where hosts are one machine. */
static void a_large_scatter_goes_in_pieces(void **state)
{
    const tti_level_figures two_by_four = { .hosts = 2, .least = 4, .most = 4, .carriers = 2 };
    const tti_machine       one_machine = tti_machine_of_hosts(4);
    const tti_decision      crowded = decided_in_levels(NULL, &one_machine, false, &two_by_four);

    (void)state;
    assert_string_equal(tti_choose(&crowded, TUTTI_CALL_SCATTER, 128 << 10)->name, "direct");
    assert_string_equal(tti_choose(&crowded, TUTTI_CALL_SCATTER, 256 << 10)->name, "two_level");
    assert_string_equal(tti_choose(&crowded, TUTTI_CALL_SCATTER, INT64_MAX)->name, "two_level");
    assert_string_equal(tti_choose(&crowded, TUTTI_CALL_GATHER, 256 << 10)->name, "direct");
    assert_string_equal(chosen_in_levels(NULL, false, TUTTI_CALL_SCATTER, 256 << 10), "direct");
    assert_string_equal(chosen_in_levels("scatter=direct", false, TUTTI_CALL_SCATTER, 256 << 10), "direct");
}

/* What all ranks send one of them passes the link of its host, which they do not share with anybody: the parts of four of eight
 * ranks. Of what each sends each, a link has the parts of four for four. */
static void what_goes_to_a_root_passes_one_link(void **state)
{
    const tti_level_figures two_by_four = { .hosts = 2, .least = 4, .most = 4, .carriers = 4 };
    const tti_machine       wire = { .wire = 1 };
    const tti_question      q = { .machine = &wire, .turns = 1, .n_ranks = 8, .levels = &two_by_four };
    int                     n;
    const tti_algorithm    *rows = tti_algorithms(&n);
    const int64_t           mib = 1 << 20;

    (void)state;
    assert_true(tti_believed_cost(&q, &rows[tti_algorithm_named(TUTTI_CALL_GATHER, "direct")], mib) == 4.0 * (double)mib);
    assert_true(tti_believed_cost(&q, &rows[tti_algorithm_named(TUTTI_CALL_SCATTER, "direct")], mib) == 4.0 * (double)mib);
    assert_true(tti_believed_cost(&q, &rows[tti_algorithm_named(TUTTI_CALL_GATHER, "two_level")], mib) == 4.0 * (double)mib);
    assert_true(tti_believed_cost(&q, &rows[tti_algorithm_named(TUTTI_CALL_ALL_GATHER, "direct")], mib) == 16.0 * (double)mib);
}

static tti_machine of_a_slow_link(int n_ranks)
{
    tti_machine machine = tti_machine_of_hosts(n_ranks / 2.0); /* on two cores */

    machine.wire = 8;
    return machine;
}

/* Of eight ranks on four hosts two of each carry a half of an all_reduce across, over one link: 48 KiB of each to three others
 * would be twice as much on it as what two steps send. One carrier has the link for itself, and it is the other way round; of 8 KiB
 * so where a byte is dear. */
static void carriers_share_a_link(void **state)
{
    const struct {
        tti_machine machine;
        int64_t     bytes;
    } cases[] = { { tti_machine_of_hosts(4), 48 << 10 }, { of_a_slow_link(8), 8 << 10 } };
    static const char   *names[] = { "bruck", "direct" };
    const tti_wishes     wishes = wishes_of(NULL);
    int                  n, i;
    const tti_algorithm *rows = tti_algorithms(&n);

    (void)state;
    for (i = 0; i < 4; i++) {
        const tti_machine      *of = &cases[i / 2].machine;
        const tti_question      whole = { .wishes = &wishes, .tune = &no_table, .machine = of, .turns = 1, .n_ranks = 8 };
        const tti_level_figures figures = { .hosts = 4, .least = 2, .most = 2, .carriers = i % 2 + 1 };
        tti_machine             machine;
        const tti_question      across = tti_question_across(&whole, &figures, &machine);
        tti_decision            d;

        assert_int_equal(across.n_ranks, 4);
        assert_null(across.levels);
        tti_decide(&across, rows, n, &d);
        assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, cases[i / 2].bytes)->name, names[i % 2]);
    }
}

/* Of several hosts with several ranks each the link of root's host has a large broadcast once in two levels, since pieces follow each
 * other; and nearly as often as it has ranks where all ranks of a host get slices from all others. */
static void a_large_broadcast_passes_a_link_once(void **state)
{
    static const tti_level_figures shapes[] = { { .hosts = 4, .least = 2, .most = 2, .carriers = 2 },
                                                { .hosts = 8, .least = 2, .most = 2, .carriers = 2 },
                                                { .hosts = 4, .least = 4, .most = 4, .carriers = 2 } };
    static const int64_t           sizes[] = { 1 << 20, 2 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20 };
    const tti_machine              machines[] = { tti_machine_default, tti_machine_of_hosts(4) };
    size_t                         i, m, s;

    (void)state;
    for (i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (m = 0; m < sizeof machines / sizeof machines[0]; m++) {
            const tti_decision d = decided_in_levels(NULL, &machines[m], false, &shapes[i]);

            for (s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                assert_string_equal(tti_choose(&d, TUTTI_CALL_BROADCAST, sizes[s])->name, "two_level");
        }
}

/* Where hosts are one machine its cores carry all messages: one for a pair of hosts is quickest, unless it has to wait for members
 * that share those cores with it, and saves few. As it was measured: between namespaces a gather of two on each host, and of
 * four, takes longer by leaders, a scatter does not. */
static void hosts_of_one_machine_have_leaders(void **state)
{
    const tti_level_figures two_by_two = { .hosts = 2, .least = 2, .most = 2, .carriers = 2 };
    const tti_level_figures two_by_four = { .hosts = 2, .least = 4, .most = 4, .carriers = 2 };
    const tti_machine       crowded = tti_machine_of_hosts(2), more = tti_machine_of_hosts(4);
    const tti_decision      d2 = decided_in_levels(NULL, &crowded, false, &two_by_two);
    const tti_decision      d4 = decided_in_levels(NULL, &more, false, &two_by_four);

    (void)state;
    assert_string_equal(tti_choose(&d2, TUTTI_CALL_ALL_TO_ALL, 0)->name, "leaders");
    assert_string_equal(tti_choose(&d4, TUTTI_CALL_ALL_TO_ALL, 0)->name, "leaders");
    assert_string_equal(tti_choose(&d2, TUTTI_CALL_BROADCAST, 1024)->name, "leaders");
    assert_string_equal(tti_choose(&d4, TUTTI_CALL_BROADCAST, 1024)->name, "leaders");
    assert_string_equal(tti_choose(&d2, TUTTI_CALL_GATHER, 1024)->name, "direct");
    assert_string_equal(tti_choose(&d4, TUTTI_CALL_GATHER, 1024)->name, "direct");
    assert_string_equal(tti_choose(&d4, TUTTI_CALL_SCATTER, 1024)->name, "leaders");
}

/* The order of a sum in two levels is one for all sizes, and no machine moves it. */
static void drawn_machines_keep_the_order_of_hosts(void **state)
{
    uint32_t seed = 13;
    int      i, kind, size;

    (void)state;
    for (i = 0; i < 100; i++) {
        const tti_machine       machine = tt_drawn_machine(&seed);
        const tti_level_figures levels = { .hosts = 2 + i % 5, .least = 1 + i % 2, .most = 2 + i % 3, .carriers = 1 + i % 2 };
        const bool              reproducible = i % 4 == 3;
        const tti_decision      d = decided_in_levels(NULL, &machine, reproducible, &levels);

        for (kind = 1; kind < TUTTI_CALL_KIND_COUNT; kind++)
            for (size = 0; size < TTI_SIZE_CLASSES; size++)
                assert_int_equal(tti_choose(&d, (tutti_call_kind)kind, tti_size_class_most(size))->order,
                                 reproducible ? TTI_IN_RANK_ORDER : tti_order_in_levels((tutti_call_kind)kind));
    }
}

static void many_hosts_decide(void **state)
{
    const tutti_call_kind kind = TUTTI_CALL_ALL_REDUCE;

    (void)state;
    assert_string_equal(chosen(NULL, kind, false, 2, 64), "swap");
    assert_string_equal(chosen(NULL, kind, false, 2, 64 << 10), "swap");
    assert_string_equal(chosen(NULL, kind, false, 2, 16 << 20), "direct");
    assert_string_equal(chosen(NULL, kind, false, 16, 1 << 20), "direct");
    assert_string_equal(chosen(NULL, kind, false, 64, 64), "doubling");
    assert_string_equal(chosen(NULL, kind, false, 48, 64 << 20), "direct_tree");
    assert_string_equal(chosen(NULL, kind, false, 64, 64 << 20), "halving");
    assert_string_equal(chosen(NULL, kind, false, 10000, 64), "doubling");
    assert_string_equal(chosen(NULL, kind, false, 10000, 64 << 20), "halving");
    assert_string_equal(chosen(NULL, TUTTI_CALL_BARRIER, false, 4, 0), "flat");
    assert_string_equal(chosen(NULL, TUTTI_CALL_BARRIER, false, 64, 0), "dissemination");
    assert_string_equal(chosen(NULL, TUTTI_CALL_ALL_GATHER, false, 64, 8), "bruck");
    assert_string_equal(chosen(NULL, TUTTI_CALL_BROADCAST, false, 4, 8), "flat");
    assert_string_equal(chosen(NULL, TUTTI_CALL_ALL_TO_ALL, false, 16, 0), "direct");
    assert_string_equal(chosen(NULL, TUTTI_CALL_ALL_TO_ALL, false, 64, 0), "bruck");
    assert_string_equal(chosen(NULL, TUTTI_CALL_GATHER, false, 1000, 8), "binomial");
    assert_string_equal(chosen(NULL, TUTTI_CALL_REDUCE_SCATTER, false, 64, 8), "halving");
}

static const char *chosen_for(tutti_dtype dtype, int n_ranks, int64_t bytes)
{
    const tti_decision d = decided(NULL, &tti_machine_default, false, n_ranks);
    const tutti_call   call = { .kind = TUTTI_CALL_ALL_REDUCE, .dtype = dtype, .op = TUTTI_SUM,
                                .count = bytes / (int64_t)tutti_dtype_size(dtype) };

    return tti_choose_for(&d, &call)->name;
}

/* Whether a rank has a connection to each other rank afterwards, or to many; all_to_all and its kin are not asked about. */
static bool has_many_peers(const char *name)
{
    static const char *const few[] = { "dissemination", "doubling", "halving", "ring", "binomial", "knomial4", "chain", "bruck" };
    size_t                   i;

    for (i = 0; i < sizeof few / sizeof few[0]; i++)
        if (strcmp(name, few[i]) == 0)
            return false;
    return true;
}

/* Beyond 256 ranks, of whatever machine. Up to there such forms are taken where they cost least. */
static void very_many_ranks_go_in_steps(void **state)
{
    uint32_t seed = 20;
    int      drawn, kind, size;
    bool     many_of_256 = false;

    (void)state;
    for (drawn = 0; drawn < 20; drawn++) {
        const tti_machine  machine = tt_drawn_machine(&seed);
        const tti_decision up_to = decided(NULL, &machine, false, 256), beyond = decided(NULL, &machine, false, 257);

        for (kind = 1; kind < TUTTI_CALL_KIND_COUNT; kind++)
            for (size = 0; size < TTI_SIZE_CLASSES; size++) {
                const int64_t bytes = tti_size_class_most(size);

                if (beyond.rows[kind][size] == TTI_ROW_NONE || kind == TUTTI_CALL_ALL_TO_ALL || kind == TUTTI_CALL_GATHER_V ||
                    kind == TUTTI_CALL_SCATTER_V)
                    continue;
                assert_false(has_many_peers(tti_choose(&beyond, (tutti_call_kind)kind, bytes)->name));
                many_of_256 = many_of_256 || has_many_peers(tti_choose(&up_to, (tutti_call_kind)kind, bytes)->name);
            }
    }
    assert_true(many_of_256);
}

/* What comes out the same in any order is added in the cheapest one. */
static void exact_numbers_have_no_order(void **state)
{
    (void)state;
    assert_string_equal(chosen_for(TUTTI_F32, 16, 256), "one_shot");
    assert_string_equal(chosen_for(TUTTI_F32, 10000, INT64_C(1) << 34), "halving");
    assert_string_equal(chosen_for(TUTTI_I32, 10000, INT64_C(1) << 34), "ring");
    assert_string_equal(chosen_for(TUTTI_I64, 48, 64 << 20), "direct");
    assert_int_equal(tti_numbers_of(TUTTI_BOOL), TTI_EXACT);
    assert_int_equal(tti_numbers_of(TUTTI_U16), TTI_EXACT);
    assert_int_equal(tti_numbers_of(TUTTI_BF16), TTI_ROUNDED);
    assert_int_equal(tti_numbers_of(TUTTI_F8E5M2), TTI_ROUNDED);
    assert_int_equal(tti_numbers_of(TUTTI_C128), TTI_ROUNDED);
}

/* In rank order there is nothing for more ranks than have connections to all: the cheapest is taken all the same. */
static void many_in_rank_order_take_what_is_cheapest(void **state)
{
    const tti_wishes   wishes = wishes_of(NULL);
    const tti_question q = { .wishes = &wishes, .tune = &no_table, .machine = &tti_machine_default, .reproducible = true,
                             .turns = 1, .n_ranks = 1024 };
    tti_decision         d;
    int                  n;
    const tti_algorithm *rows = tti_algorithms(&n);

    (void)state;
    tti_decide(&q, rows, n, &d);
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, 64 << 10)->name, "direct");
}

/* reduce and reduce_scatter promise the bits of all_reduce. */
static void kinds_that_combine_have_one_order(void **state)
{
    static const int ranks[] = { 2, 16, 17, 1000, TTI_HOST_RANKS_MAX, TTI_HOST_RANKS_MAX + 1 };
    size_t           r;
    int              size, one_host;

    (void)state;
    for (r = 0; r < sizeof ranks / sizeof ranks[0]; r++)
        for (one_host = 0; one_host < 2; one_host++)
            for (size = 0; size < TTI_SIZE_CLASSES; size++) {
                const int64_t   bytes = tti_size_class_most(size);
                const tti_order order = tti_order_of(TUTTI_CALL_ALL_REDUCE, 4, one_host, ranks[r]);

                assert_int_equal(tti_order_of(TUTTI_CALL_ALL_REDUCE, bytes, one_host, ranks[r]), order);
                assert_int_equal(tti_order_of(TUTTI_CALL_REDUCE, bytes, one_host, ranks[r]), order);
                assert_int_equal(tti_order_of(TUTTI_CALL_REDUCE_SCATTER, bytes, one_host, ranks[r]), order);
            }
}

static void what_is_measured_moves_the_choice(void **state)
{
    tti_machine  slow = tti_machine_default, quick = tti_machine_default;
    tti_decision d;

    (void)state;
    slow.line = 100000; /* one wait is worth many bytes */
    quick.line = 1;
    d = decided(NULL, &slow, true, 4);
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, 65536)->name, "lines");
    d = decided(NULL, &quick, true, 4);
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, 65536)->name, "sliced");
}

/* A slice to each and from each to all is two messages one after the other and more of them in all, and fewer bytes on each link. */
static void a_slow_link_is_worth_messages(void **state)
{
    static const int ranks[] = { 4, 8 };
    tti_machine      quick = tti_machine_of_hosts(2), slow = quick;
    size_t           i;

    (void)state;
    slow.wire = 8; /* 1 Gb/s */
    for (i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        const tti_decision d = decided(NULL, &quick, false, ranks[i]), s = decided(NULL, &slow, false, ranks[i]);

        assert_string_equal(tti_choose(&d, TUTTI_CALL_BROADCAST, 64 << 10)->name, "binomial");
        assert_string_equal(tti_choose(&s, TUTTI_CALL_BROADCAST, 64 << 10)->name, "sliced");
    }
}

/* What a member tells the others about the wire, between hosts, with TUTTI_LINK_MBIT set to that. */
static double told_wire(tt_rank *t, const char *mbit)
{
    int        ranks[] = { 0, 1 };
    tti_team   team = { .mesh = t->mesh, .port = &t->port.base, .rank = 0, .n_ranks = 2, .ranks = ranks };
    tti_choice choice = { .wire = 0 };
    tti_join   mine = { .machine = { .wire = 0 } };

    if (mbit == NULL)
        TT_CHECK(t, unsetenv("TUTTI_LINK_MBIT") == 0);
    else
        TT_CHECK(t, setenv("TUTTI_LINK_MBIT", mbit, 1) == 0);
    TT_CHECK(t, tti_choice_read(&choice) == TUTTI_OK);
    tti_choice_announce(&choice, &team, NULL, &mine);
    tti_choice_release(&choice);
    return mine.machine.wire;
}

static void body_told_wire(tt_rank *t)
{
    if (t->rank == 0) {
        TT_CHECK(t, told_wire(t, "1000") == 8);
        TT_CHECK(t, told_wire(t, "100") == 80);
        TT_CHECK(t, told_wire(t, "100000") == tti_machine_default.wire);
        TT_CHECK(t, told_wire(t, NULL) == tti_machine_default.wire);
    }
    TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
}

static void the_rate_of_a_link_is_told(void **state)
{
    tt_rank    ranks[TT_RANKS_MOST];
    tti_choice choice = { .wire = 0 };

    (void)state;
    tt_run(2, true, body_told_wire, ranks);
    assert_int_equal(setenv("TUTTI_LINK_MBIT", "fast", 1), 0);
    assert_int_equal(tti_choice_read(&choice), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "TUTTI_LINK_MBIT"));
    assert_int_equal(unsetenv("TUTTI_LINK_MBIT"), 0);
}

static _Atomic int n_links, n_names;

static void note_words(tutti_log_level level, const char *line, void *ctx)
{
    (void)ctx;
    n_links += level == TUTTI_LOG_WARN && strstr(line, "TUTTI_LINK_MBIT is 1000 here, on rank 1, but links are taken for 8000 Mb/s") != NULL;
    n_names += strstr(line, "TUTTI_ALGO names 'one_phase' for all_reduce, which") != NULL;
}

/* Between two hosts rank 0 was told nothing, and rank 1 of a slow link; both were told to take what works inside a host, and
 * what works between hosts, too. */
static void body_settles(tt_rank *t)
{
    int        ranks[] = { 0, 1 };
    char       name[] = "g";
    tti_team   team = { .mesh = t->mesh, .port = &t->port.base, .rank = t->rank, .n_ranks = 2, .ranks = ranks, .name = name };
    tti_choice choice = { .wire = t->rank == 1 ? 8 : 0 };
    tti_join   all[2] = { { .machine = tti_machine_default }, { .machine = tti_machine_default } };

    TT_CHECK(t, tti_wishes_parse("all_reduce=one_phase,broadcast=binomial", &choice.wishes) == TUTTI_OK);
    tti_choice_settle(&choice, &team, all, NULL);
    TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
}

static void what_was_told_in_vain_is_said(void **state)
{
    tt_rank ranks[TT_RANKS_MOST];

    (void)state;
    assert_int_equal(setenv("TUTTI_LOG", "info", 1), 0);
    assert_int_equal(tutti_log_set_sink("test", note_words, NULL), TUTTI_OK);
    tt_run(2, true, body_settles, ranks);
    assert_int_equal(unsetenv("TUTTI_LOG"), 0);
    assert_int_equal(tutti_log_set_sink("test", NULL, NULL), TUTTI_OK);
    assert_int_equal(n_links, 1);
    assert_int_equal(n_names, 1);
}

/* A bucket of 80 KiB lets a reduce of 8 KiB pass that comes from all others to its root, as it is filled again while others are
 * root; of an all_reduce each call finds what the one before has left. */
static void what_passes_at_once_is_worth_little(void **state)
{
    tti_machine  quick = tti_machine_of_hosts(4), slow = of_a_slow_link(8), bucket = slow, here = quick;
    tti_machine  cores_of_their_own = tti_machine_default;
    tti_decision q, s, b, h;

    (void)state;
    bucket.at_once = 80 << 10;
    bucket.wire_at_once = quick.wire;
    q = decided(NULL, &quick, false, 8);
    s = decided(NULL, &slow, false, 8);
    b = decided(NULL, &bucket, false, 8);
    assert_string_equal(tti_choose(&q, TUTTI_CALL_REDUCE, 8 << 10)->name, "to_root");
    assert_string_not_equal(tti_choose(&s, TUTTI_CALL_REDUCE, 8 << 10)->name, "to_root");
    assert_string_equal(tti_choose(&b, TUTTI_CALL_REDUCE, 8 << 10)->name, "to_root");
    assert_string_equal(tti_choose(&b, TUTTI_CALL_REDUCE, 256 << 10)->name, tti_choose(&s, TUTTI_CALL_REDUCE, 256 << 10)->name);
    tti_machine_know_link(&here, 0.8, 250e3); /* as quick as the usual one: what comes from all cores at once is quicker */
    h = decided(NULL, &here, false, 8);
    assert_string_not_equal(tti_choose(&q, TUTTI_CALL_REDUCE, 64 << 10)->name, "to_root");
    assert_string_equal(tti_choose(&h, TUTTI_CALL_REDUCE, 64 << 10)->name, "to_root");
    assert_string_equal(tti_choose(&h, TUTTI_CALL_REDUCE, 256 << 10)->name, tti_choose(&q, TUTTI_CALL_REDUCE, 256 << 10)->name);
    assert_string_equal(tti_choose(&h, TUTTI_CALL_BROADCAST, 64 << 10)->name, tti_choose(&q, TUTTI_CALL_BROADCAST, 64 << 10)->name);
    tti_machine_know_link(&cores_of_their_own, 0.8, 250e3);
    assert_memory_equal(&cores_of_their_own, &tti_machine_default, sizeof tti_machine_default);
    assert_string_equal(tti_choose(&q, TUTTI_CALL_ALL_REDUCE, 32 << 10)->name, "bruck");
    assert_string_equal(tti_choose(&b, TUTTI_CALL_ALL_REDUCE, 32 << 10)->name, "direct");
}

enum { OF_BITS = 1300 * 1000 }; /* elements: several chunks at any rate */

/* Fingerprints of what rank 0 has behind a reduce, and all behind an all_reduce and a broadcast. */
static uint64_t bits[TT_RANKS_MAX];

static void run_on_floats(tt_rank *t, tutti_call_kind kind, const float *in, float *out)
{
    tutti_call call = tt_call(t, kind, TUTTI_F32, OF_BITS);

    call.op = TUTTI_SUM;
    call.root = kind == TUTTI_CALL_ALL_REDUCE ? -1 : 0;
    call.in = kind != TUTTI_CALL_BROADCAST || t->rank == 0 ? in : NULL;
    call.out = kind == TUTTI_CALL_BROADCAST && t->rank == 0 ? NULL : out;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    if (kind != TUTTI_CALL_REDUCE || t->rank == 0)
        bits[t->rank] = tti_fnv(bits[t->rank], out, OF_BITS * sizeof *out);
}

static void body_bits(tt_rank *t)
{
    float *in = malloc(OF_BITS * sizeof *in), *out = calloc(OF_BITS, sizeof *out);
    int    i;

    TT_CHECK(t, in != NULL && out != NULL);
    for (i = 0; in != NULL && i < OF_BITS; i++)
        in[i] = 1 / (float)(i % 977 + 3 * t->rank + 1);
    bits[t->rank] = TTI_FNV_BEGIN;
    if (in != NULL && out != NULL) {
        run_on_floats(t, TUTTI_CALL_REDUCE, in, out);
        run_on_floats(t, TUTTI_CALL_ALL_REDUCE, in, out);
        run_on_floats(t, TUTTI_CALL_BROADCAST, in, out);
    }
    free(in);
    free(out);
}

/* Calls are cut by it, and a broadcast takes another algorithm; no sum is another one. */
static void the_rate_of_a_link_changes_no_bit(void **state)
{
    const tti_machine slow = of_a_slow_link(4);
    tt_rank           ranks[TT_RANKS_MAX];
    uint64_t          usual[TT_RANKS_MAX];
    int               size;

    (void)state;
    for (size = 2; size <= TT_RANKS_MAX; size++) {
        tt_run_on(&tti_machine_default, size, true, body_bits, ranks);
        memcpy(usual, bits, sizeof usual);
        tt_run_on(&slow, size, true, body_bits, ranks);
        assert_memory_equal(usual, bits, (size_t)size * sizeof *bits);
    }
}

/* Where hosts are one machine and ranks share its cores, every message is theirs to carry: fewer are better than fewer
 * steps. A root's messages are as many in any order of sending. */
static void crowded_hosts_send_few_messages(void **state)
{
    const tti_machine free_cores = tti_machine_of_hosts(0.5), shared = tti_machine_of_hosts(2), crowded = tti_machine_of_hosts(4);
    tti_decision      d;

    (void)state;
    d = decided(NULL, &free_cores, false, 4);
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_GATHER, 4)->name, "direct");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, 4)->name, "one_shot");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_BROADCAST, 4)->name, "flat");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_REDUCE_SCATTER, 4)->name, "direct");
    d = decided(NULL, &shared, false, 4);
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_GATHER, 4)->name, "bruck");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, 4)->name, "direct");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, 8192)->name, "bruck");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_BROADCAST, 4)->name, "flat");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_TO_ALL, 0)->name, "direct");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_REDUCE_SCATTER, 4)->name, "bruck");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_REDUCE_SCATTER, 2048)->name, "bruck");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_REDUCE_SCATTER, 65536)->name, "direct");
    d = decided(NULL, &crowded, false, 4); /* for each host one, and others beside it */
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, 4)->name, "direct");
    d = decided(NULL, &crowded, false, 8); /* one that all others wait for has to come to its core beside their looks */
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, 4)->name, "bruck");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, 256)->name, "bruck");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, 16 << 10)->name, "bruck");
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, 64 << 10)->name, "direct"); /* cores carry bytes, too */
    d = decided(NULL, &tti_machine_default, false, 8); /* cores of their own: two steps more are dearer than messages */
    assert_string_equal(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, 256)->name, "one_shot");
}

static const char *chosen_for_parts(const tti_decision *d, const int64_t *counts, int n)
{
    tutti_call call = { .kind = TUTTI_CALL_ALL_GATHER, .dtype = TUTTI_U8, .n_parts = n, .list_counts = counts };
    int        r;

    for (r = 0; r < n; r++)
        call.count += counts[r];
    assert_ptr_equal(tti_choose_across(d, &call), tti_choose_for(d, &call)->plan);
    return tti_choose_for(d, &call)->name;
}

/* One part of four that is as long as the others together is sent three times by its owner, or once around. */
static void long_parts_go_around(void **state)
{
    enum { MIB = 1 << 20 };
    const int64_t even[] = { MIB, MIB, MIB, MIB }, odd[] = { MIB, MIB, MIB, MIB + MIB / 8 };
    const int64_t long_one[] = { MIB, MIB, 3 * MIB, MIB }, short_one[] = { 1000, 1000, 3000, 1000 };
    const int64_t two[] = { MIB, 5 * MIB }, tenths[] = { 6000, 12000, 18000, 24000 };
    tti_machine   slow = tti_machine_default;
    tti_decision  d = decided(NULL, &tti_machine_default, false, 4), of_two = decided(NULL, &tti_machine_default, false, 2);

    (void)state;
    assert_string_equal(chosen_for_parts(&d, even, 4), "direct");
    assert_string_equal(chosen_for_parts(&d, odd, 4), "direct");
    assert_string_equal(chosen_for_parts(&d, short_one, 4), "direct");
    assert_string_equal(chosen_for_parts(&d, long_one, 4), "ring");
    assert_string_equal(chosen_for_parts(&of_two, two, 2), "direct");
    assert_string_equal(chosen_for_parts(&d, tenths, 4), "direct");
    slow.wire = 8; /* 1 Gb/s: bytes are dearer, beside what it takes to pass them on */
    d = decided(NULL, &slow, false, 4);
    assert_string_equal(chosen_for_parts(&d, tenths, 4), "ring");
    d = decided("all_gather=direct", &tti_machine_default, false, 4);
    assert_string_equal(chosen_for_parts(&d, long_one, 4), "direct");
    d = decided(NULL, &tti_machine_default, true, 4); /* through memory nobody sends anything twice */
    assert_int_equal(d.lopsided[tti_size_class(MIB)], TTI_ROW_NONE);
}

static void wishes_are_obeyed_where_they_can_be(void **state)
{
    const char *text = "all_reduce=sliced,broadcast=binomial";
    tti_wishes  one = wishes_of(text), other = wishes_of("broadcast=binomial,all_reduce=sliced");

    (void)state;
    assert_string_equal(chosen(text, TUTTI_CALL_ALL_REDUCE, true, 4, 8), "sliced");
    assert_string_equal(chosen(text, TUTTI_CALL_ALL_REDUCE, false, 4, 8), "one_shot");
    assert_string_equal(chosen(text, TUTTI_CALL_BROADCAST, true, 4, 8), "binomial");
    assert_string_equal(chosen(text, TUTTI_CALL_REDUCE, true, 4, 8), "lines");
    assert_memory_equal(&one, &other, sizeof one);
    other = wishes_of(NULL);
    assert_memory_not_equal(&one, &other, sizeof one);
}

static void names_are_told(void **state)
{
    (void)state;
    assert_true(tti_algorithm_named(TUTTI_CALL_ALL_REDUCE, tutti_algorithm_name("all_reduce", 0)) >= 0);
    assert_non_null(tutti_algorithm_name("barrier", 1));
    assert_null(tutti_algorithm_name("barrier", 99));
    assert_null(tutti_algorithm_name("barrier", -1));
    assert_null(tutti_algorithm_name("nothing", 0));
    assert_null(tutti_algorithm_name(NULL, 0));
}

static void refused(const char *text, const char *says)
{
    tti_wishes wishes = wishes_of(NULL);

    assert_int_equal(tti_wishes_parse(text, &wishes), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), text));
    assert_non_null(strstr(tutti_last_error(), says));
    assert_int_equal(wishes.rows[TUTTI_CALL_ALL_REDUCE], -1);
}

static void what_does_not_exist_is_refused(void **state)
{
    (void)state;
    refused("all_reduce=fast", "take one of fused, lines, one_phase, ");
    refused("all_reduce=sliced,allreduce=sliced", "no operation is called 'allreduce'");
    refused("?=sliced", "no operation is called '?'");
    refused("all_reduce", "op=name");
    refused("all_reduce=", "op=name");
    refused("=sliced", "op=name");
    refused("all_reduce=sliced,,", "op=name");
    refused("all_reduce=sliced,all_reduce=fused", "all_reduce is there twice");
    refused("all_reduce=sliced broadcast=chain", "put a comma");
    refused("all_reduce=sliced;broadcast=chain", "put a comma");
    refused("all_reduce=sliced, broadcast=chain", "no space");
    refused("a_very_long_word_that_is_no_operation=sliced", "op=name");
}

/* ---- the order of summation -------------------------------------------------------------------- */

/* Costs that have nothing to do with what is measured, so that each of the rows is the cheapest
 * somewhere. */
static tti_amounts by_bytes(double ranks, double bytes)
{
    return (tti_amounts){ .copied = bytes, .meets = ranks };
}

static tti_amounts by_waits(double ranks, double bytes)
{
    (void)bytes;
    return (tti_amounts){ .meets = 3 * ranks, .hears = ranks };
}

static tti_amounts nothing(double ranks, double bytes)
{
    (void)ranks;
    (void)bytes;
    return (tti_amounts){ .meets = 0 };
}

enum { IN_ORDER_A, IN_ORDER_B, RING, TREE, N_ORDERS_ROWS };

/* The rows of other orders cost nothing: whoever looked at costs first would take them. */
static const tti_algorithm orders[N_ORDERS_ROWS] = {
    { TUTTI_CALL_ALL_REDUCE, "a", tti_staged_all_reduce_sliced, NULL, 1000, INT64_MAX, by_bytes,
      TTI_IN_RANK_ORDER, 0, NULL, NULL },
    { TUTTI_CALL_ALL_REDUCE, "b", tti_staged_all_reduce_sliced, NULL, 1000, INT64_MAX, by_waits,
      TTI_IN_RANK_ORDER, 0, NULL, NULL },
    { TUTTI_CALL_ALL_REDUCE, "ring", tti_staged_all_reduce_sliced, NULL, 1000, INT64_MAX, nothing,
      TTI_IN_RING_ORDER, 0, NULL, NULL },
    { TUTTI_CALL_ALL_REDUCE, "tree", tti_staged_all_reduce_sliced, NULL, 1000, INT64_MAX, nothing,
      TTI_IN_TREE_ORDER, 0, NULL, NULL },
};

static tti_decision among_orders(const tti_machine *machine, int wanted, bool reproducible)
{
    tti_wishes         wishes = wishes_of(NULL);
    const tti_question q = { .wishes = &wishes, .tune = &no_table, .machine = machine, .reproducible = reproducible,
                             .turns = 1, .one_host = true, .n_ranks = 4 };
    tti_decision       decision;

    wishes.rows[TUTTI_CALL_ALL_REDUCE] = (int16_t)wanted;
    tti_decide(&q, orders, N_ORDERS_ROWS, &decision);
    return decision;
}

static void measurements_choose_inside_an_order(void **state)
{
    uint32_t seed = 7;
    int      seen[N_ORDERS_ROWS] = { 0 }, i, size;

    (void)state;
    for (i = 0; i < 200; i++) {
        const tti_machine  machine = tt_drawn_machine(&seed);
        const tti_decision d = among_orders(&machine, -1, i % 2);

        for (size = 0; size < TTI_SIZE_CLASSES; size++)
            seen[d.rows[TUTTI_CALL_ALL_REDUCE][size]]++;
    }
    assert_true(seen[IN_ORDER_A] > 0 && seen[IN_ORDER_B] > 0);
    assert_int_equal(seen[RING] + seen[TREE], 0);
}

static void a_wish_leaves_the_order_unless_it_must_stay(void **state)
{
    const tti_decision free = among_orders(&tti_machine_default, RING, false);
    const tti_decision bound = among_orders(&tti_machine_default, RING, true);

    (void)state;
    assert_int_equal(free.rows[TUTTI_CALL_ALL_REDUCE][9], RING);
    assert_true(bound.rows[TUTTI_CALL_ALL_REDUCE][9] <= IN_ORDER_B);
}

/* Of the real table: the class of a call depends on nothing that is measured, and its rows keep to it. */
static void drawn_machines_keep_the_order(void **state)
{
    uint32_t seed = 11;
    int      i, kind, size;

    (void)state;
    for (i = 0; i < 100; i++) {
        const tti_machine  machine = tt_drawn_machine(&seed);
        const bool         one_host = i % 2;
        const int          n_ranks = 2 + i % 37;
        const tti_decision d = decided(NULL, &machine, one_host, n_ranks);

        for (kind = 1; kind < TUTTI_CALL_KIND_COUNT; kind++)
            for (size = 0; size < TTI_SIZE_CLASSES; size++) {
                const int64_t bytes = tti_size_class_most(size);

                assert_int_equal(tti_choose(&d, (tutti_call_kind)kind, bytes)->order,
                                 tti_order_of((tutti_call_kind)kind, bytes, one_host, n_ranks));
            }
    }
}

/* More questions than are kept, twice, each different from all others in one thing. */
static void what_was_answered_stays_right(void **state)
{
    const tti_wishes     wishes = wishes_of(NULL), asked = wishes_of("all_reduce=ring,barrier=flat");
    tti_level_figures    figures = { .hosts = 2, .least = 1, .most = 3, .carriers = 1 };
    tti_machine          machine = tti_machine_default;
    tti_decision         fresh, kept;
    int                  n, i;
    const tti_algorithm *rows = tti_algorithms(&n);

    (void)state;
    for (i = 0; i < 200; i++) {
        tti_question q = { .wishes = i % 7 == 0 ? &asked : &wishes, .tune = &no_table, .machine = &machine,
                           .one_host = i % 5 == 0, .reproducible = i % 3 == 0, .turns = 1 + i % 2, .n_ranks = 6 };

        figures.carriers = 1 + i % 3;
        machine.wire = i % 100 < 50 ? tti_machine_default.wire : 0.01 * (1 + i % 50);
        q.levels = !q.one_host && i % 4 == 0 ? &figures : NULL;
        tti_decide(&q, rows, n, &fresh);
        tti_decide_once(&q, &kept);
        assert_memory_equal(&fresh, &kept, sizeof fresh);
        tti_decide_once(&q, &kept);
        assert_memory_equal(&fresh, &kept, sizeof fresh);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_whole),
        cmocka_unit_test(sizes_fall_into_classes),
        cmocka_unit_test(every_call_has_an_algorithm),
        cmocka_unit_test(size_and_place_decide),
        cmocka_unit_test(many_hosts_decide),
        cmocka_unit_test(very_many_ranks_go_in_steps),
        cmocka_unit_test(exact_numbers_have_no_order),
        cmocka_unit_test(many_in_rank_order_take_what_is_cheapest),
        cmocka_unit_test(kinds_that_combine_have_one_order),
        cmocka_unit_test(what_is_measured_moves_the_choice),
        cmocka_unit_test(a_slow_link_is_worth_messages),
        cmocka_unit_test(the_rate_of_a_link_is_told),
        cmocka_unit_test(what_was_told_in_vain_is_said),
        cmocka_unit_test(what_passes_at_once_is_worth_little),
        cmocka_unit_test(the_rate_of_a_link_changes_no_bit),
        cmocka_unit_test(crowded_hosts_send_few_messages),
        cmocka_unit_test(long_parts_go_around),
        cmocka_unit_test(wishes_are_obeyed_where_they_can_be),
        cmocka_unit_test(what_does_not_exist_is_refused),
        cmocka_unit_test(names_are_told),
        cmocka_unit_test(measurements_choose_inside_an_order),
        cmocka_unit_test(a_wish_leaves_the_order_unless_it_must_stay),
        cmocka_unit_test(drawn_machines_keep_the_order),
        cmocka_unit_test(hosts_with_several_members_have_two_levels),
        cmocka_unit_test(a_large_scatter_goes_in_pieces),
        cmocka_unit_test(what_goes_to_a_root_passes_one_link),
        cmocka_unit_test(carriers_share_a_link),
        cmocka_unit_test(a_large_broadcast_passes_a_link_once),
        cmocka_unit_test(hosts_of_one_machine_have_leaders),
        cmocka_unit_test(drawn_machines_keep_the_order_of_hosts),
        cmocka_unit_test(what_was_answered_stays_right),
    };

    return cmocka_run_group_tests_name("choose", tests, NULL, NULL);
}
