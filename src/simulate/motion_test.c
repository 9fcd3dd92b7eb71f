/* SPDX-License-Identifier: BSD-3-Clause
 *
 * motion_test.c
 * Goal    on networks for which the time of an operation can be written down, a simulation has that time to the
 *         picosecond; what is sent arrives; ports, uplinks and what buckets hold are shared; symmetry changes nothing.
 * Method  plans of the library and of the test's own on clusters whose figures are whole numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/status.h>
#include "coll/choose.h"
#include "coll/pattern.h"
#include "simulate/motion.h"

/* ns: of a message, and of a byte at a port. */
enum { LATENCY = 10000, POST = 500, BYTE = 8 };

static tti_cluster plain(int hosts, int per_host, double post)
{
    tti_cluster c = { .hosts = hosts, .per_host = per_host, .cores = per_host, .taper = 1 };

    c.figures.far = (tti_tier){ .latency = LATENCY, .post = post };
    c.figures.local = (tti_tier){ .latency = 100, .post = post };
    c.figures.port_byte = BYTE;
    c.figures.machine.cache_bytes = 1 << 20;
    return c;
}

static tti_played play_limited(const tti_cluster *c, const tti_tape_call *call, int64_t full)
{
    const tti_tape_limits limits = { .full = full, .most = INT64_C(1) << 30 };
    tti_tape              tape = { .n_ranks = 0 };
    tti_played            played = { .end_ps = -1 };

    assert_int_equal(tti_tape_make(c, call, &limits, &tape), TUTTI_OK);
    if (tti_motion_play(c, &tape, &played) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    assert_int_equal(played.messages, played.received);
    assert_int_equal(played.bytes, played.bytes_received);
    tti_tape_release(&tape);
    return played;
}

static tti_played play(const tti_cluster *c, tti_plan *plan, int root, int64_t bytes)
{
    const tti_tape_call call = { .plan = plan, .root = root, .count = bytes, .dtype = TUTTI_U8 };

    return play_limited(c, &call, TTI_TAPE_FULL);
}

static void takes(const tti_cluster *c, tti_plan *plan, int root, int64_t bytes, int64_t ns)
{
    assert_int_equal(play(c, plan, root, bytes).end_ps, 1000 * ns);
}

/* Rank r gives its part to rank r + n/2, in the first half. */
static void to_the_other_half(const tti_plan_input *p, tti_schedule *schedule)
{
    const int       half = p->n_ranks / 2;
    const tti_block part = { .place = TTI_PLACE_IN, .bytes = p->count };

    tti_schedule_phase(schedule);
    if (p->rank < half)
        tti_schedule_send(schedule, p->rank + half, part);
    else
        tti_schedule_recv(schedule, p->rank - half, part);
}

static void one_to_two(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block part = { .place = TTI_PLACE_IN, .bytes = p->count };

    tti_schedule_phase(schedule);
    if (p->rank == 0) {
        tti_schedule_send(schedule, 1, part);
        tti_schedule_send(schedule, 2, part);
    } else {
        tti_schedule_recv(schedule, 0, part);
    }
}

/* ---- closed forms ------------------------------------------------------------------------------ */

static void a_message_takes_alpha_and_beta(void **state)
{
    const int64_t     sizes[] = { 1, 64, 65536, 65537, 1 << 20, 100 * 1000 * 1000 };
    const tti_cluster c = plain(2, 1, POST);
    size_t            i;

    (void)state;
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        takes(&c, to_the_other_half, -1, sizes[i], POST + LATENCY + BYTE * sizes[i] + POST);
}

static void copies_overlap_with_the_wire(void **state)
{
    tti_cluster   c = plain(2, 1, POST);
    const int64_t bytes = 16 << 20, quantum = bytes / 16;

    (void)state;
    c.figures.far.send_byte = 1;
    c.figures.far.recv_byte = 2;
    /* the first quantum is copied before the wire begins, the last one when it has ended */
    takes(&c, to_the_other_half, -1, bytes, POST + quantum + LATENCY + BYTE * bytes + 2 * quantum + POST);
    c.figures.far.send_byte = 2 * BYTE; /* a core that is slower than the wire */
    c.figures.far.recv_byte = 0;
    takes(&c, to_the_other_half, -1, bytes, POST + 2 * BYTE * bytes + LATENCY + BYTE * quantum + POST);
}

static void one_shot_and_direct_fill_the_ports(void **state)
{
    int n;

    (void)state;
    for (n = 2; n <= 32; n++) {
        const tti_cluster c = plain(n, 1, 0);
        const int64_t     slice = 1024, whole = n * slice;

        takes(&c, tti_plan_all_reduce_one_shot, -1, whole, LATENCY + BYTE * (n - 1) * whole);
        takes(&c, tti_plan_all_reduce_direct, -1, whole, 2 * (LATENCY + BYTE * (n - 1) * slice));
        takes(&c, tti_plan_all_gather_direct, -1, slice, LATENCY + BYTE * (n - 1) * slice);
    }
}

/* A row among the hosts of c, whose ranks have nothing to do but to wait for each other. */
static int64_t levels_take(const tti_cluster *c, tutti_call_kind kind, const char *name, int64_t bytes)
{
    static const tti_tune none;
    tti_wishes            wishes;
    const tti_question    q = { .wishes = &wishes, .tune = &none, .machine = &tti_machine_default, .turns = 1,
                                .n_ranks = c->hosts };
    tti_decision          across;
    tti_sim_levels        levels;
    tti_tape_call         call = { .levels = &levels, .kind = kind, .root = 0, .count = bytes, .dtype = TUTTI_U8 };
    int                   n;
    const tti_algorithm  *rows = tti_algorithms(&n);
    tti_played            played;

    assert_int_equal(tti_wishes_parse(NULL, &wishes), TUTTI_OK);
    tti_decide(&q, rows, n, &across);
    assert_int_equal(tti_sim_levels_make(c, &rows[tti_algorithm_named(kind, name)], &across, bytes, TUTTI_U8, &levels),
                     TUTTI_OK);
    played = play_limited(c, &call, TTI_TAPE_FULL);
    tti_sim_levels_release(&levels);
    return played.end_ps;
}

/* Two hosts swap all bytes, in slices and pieces that follow each other on the link without a gap; what members of a host do
 * comes before the first and behind the last. */
static void two_levels_fill_the_link(void **state)
{
    const int64_t sizes[] = { 4, 4096, 1 << 20, 8 << 20 };
    tti_cluster   c = plain(2, 4, 0);
    size_t        i;

    (void)state;
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(levels_take(&c, TUTTI_CALL_ALL_REDUCE, "two_level", sizes[i]), 1000 * (LATENCY + BYTE * sizes[i]));
        assert_int_equal(levels_take(&c, TUTTI_CALL_GATHER, "leaders", sizes[i] / 4), 1000 * (LATENCY + BYTE * sizes[i]));
        assert_int_equal(levels_take(&c, TUTTI_CALL_SCATTER, "two_level", sizes[i] / 4), 1000 * (LATENCY + BYTE * sizes[i]));
    }
    c.figures.machine.line = 100; /* two meetings of four, 150 ns each; a lone carrier waits for nobody else */
    assert_int_equal(levels_take(&c, TUTTI_CALL_GATHER, "leaders", 1024), 1000 * (150 + LATENCY + BYTE * 4096 + 150));
    assert_int_equal(levels_take(&c, TUTTI_CALL_ALL_TO_ALL, "two_level", 1024 - 16),
                     1000 * (LATENCY + BYTE * 16 * 1024) + 150 * 1000);
}

static void steps_of_a_tree_follow_each_other(void **state)
{
    int log;

    (void)state;
    for (log = 1; log <= 8; log++) {
        const tti_cluster c = plain(1 << log, 1, POST);

        takes(&c, tti_plan_broadcast_binomial, 0, 4096, log * (POST + BYTE * 4096 + LATENCY + POST));
        takes(&c, tti_plan_barrier_dissemination, -1, 0, log * (2 * POST + LATENCY));
    }
}

static void local_steps_take_the_core(void **state)
{
    tti_cluster c = plain(4, 1, 0);

    (void)state;
    c.figures.machine.combine = 2;
    takes(&c, tti_plan_all_reduce_one_shot, -1, 1000, LATENCY + BYTE * 3 * 1000 + 2 * 4 * 1000);
    c.figures.machine.copy = 3; /* of the own part */
    takes(&c, tti_plan_all_gather_direct, -1, 1000, LATENCY + BYTE * 3 * 1000 + 3 * 1000);
}

/* A large call is cut, which costs nothing on one wire, and lets others go on meanwhile. */
static void pieces_overlap(void **state)
{
    const int64_t       bytes = 32 << 20;
    const tti_tape_call broadcast = { .plan = tti_plan_broadcast_binomial, .kind = TUTTI_CALL_BROADCAST, .root = 0,
                                      .count = bytes, .dtype = TUTTI_U8 };
    const tti_tape_call reduce = { .plan = tti_plan_all_reduce_direct, .kind = TUTTI_CALL_ALL_REDUCE, .root = -1,
                                   .count = bytes, .dtype = TUTTI_U8 };
    tti_cluster         c = plain(2, 1, POST);
    tti_played          played = play_limited(&c, &broadcast, TTI_TAPE_FULL);

    (void)state;
    assert_int_equal(played.messages, 1); /* nobody hands it on */
    assert_int_equal(played.end_ps, 1000 * (POST + LATENCY + BYTE * bytes + POST));
    c = plain(8, 1, POST);
    played = play_limited(&c, &broadcast, TTI_TAPE_FULL);
    assert_true(played.messages > 7 * 16);
    assert_true(played.end_ps < 1000 * 4 * BYTE * bytes); /* the root's port is what takes the time: three times */
    c = plain(4, 1, POST);
    c.figures.machine.combine = 2; /* half of what the wire takes for a slice there and back */
    played = play_limited(&c, &reduce, TTI_TAPE_FULL);
    assert_true(played.end_ps < 1000 * (BYTE * bytes * 6 / 4 + 2 * bytes));
    assert_true(played.end_ps > 1000 * (BYTE * bytes * 6 / 4));
}

/* ---- what is shared ---------------------------------------------------------------------------- */

static void ranks_of_a_host_share_its_port(void **state)
{
    const int64_t bytes = 8 << 20;
    int           n;

    (void)state;
    for (n = 1; n <= 8; n++) {
        const tti_cluster c = plain(2, n, 0);
        const tti_played  played = play(&c, to_the_other_half, -1, bytes);

        assert_int_equal(played.end_ps, 1000 * (LATENCY + BYTE * n * bytes));
        assert_int_equal(played.port_bytes, n * bytes);
        assert_int_equal(played.bytes_far, n * bytes);
    }
}

static void what_comes_together_waits_at_the_port(void **state)
{
    const tti_cluster c = plain(33, 1, 0);
    const tti_played  played = play(&c, tti_plan_gather_direct, 0, 1 << 20);

    (void)state;
    assert_int_equal(played.end_ps, INT64_C(1000) * (LATENCY + BYTE * INT64_C(32) * (1 << 20)));
    assert_int_equal(played.port_bytes, INT64_C(32) << 20);
}

static void racks_share_their_uplinks(void **state)
{
    tti_cluster   c = plain(8, 1, 0);
    const int64_t bytes = 1 << 20;
    tti_played    played;

    (void)state;
    c.rack_hosts = 4;
    c.taper = 1; /* each begins at most a quantum later than alone */
    played = play(&c, to_the_other_half, -1, bytes);
    assert_in_range(played.end_ps, 1000 * (LATENCY + BYTE * bytes), 1000 * (LATENCY + BYTE * (bytes + bytes / 16)));
    c.taper = 4; /* four hosts share what one has */
    played = play(&c, to_the_other_half, -1, bytes);
    assert_int_equal(played.uplink_bytes, 4 * bytes);
    assert_int_equal(played.end_ps, 1000 * (LATENCY + BYTE * 4 * bytes));
}

static void ranks_of_a_core_take_turns(void **state)
{
    tti_cluster c = plain(2, 2, POST);

    (void)state;
    c.cores = 1;
    c.figures.machine.give = 50;
    /* two sends on one core, then two receives on another, a change between them */
    takes(&c, to_the_other_half, -1, 1, POST + 50 + POST + LATENCY + BYTE + 50 + POST);
    c.cores = 2;
    takes(&c, to_the_other_half, -1, 1, POST + LATENCY + 2 * BYTE + POST);
}

static void messages_inside_a_host_use_no_port(void **state)
{
    const tti_cluster c = plain(1, 8, POST);
    const tti_played  played = play(&c, tti_plan_barrier_dissemination, -1, 0);

    (void)state;
    assert_int_equal(played.end_ps, 1000 * 3 * (2 * POST + 100));
    assert_int_equal(played.messages_far, 0);
    assert_int_equal(play(&c, tti_plan_all_gather_direct, -1, 1 << 20).port_bytes, 0);
}

/* ---- ports that let a burst through ------------------------------------------------------------ */

enum { BURST = 80 << 10 };

/* What the bucket holds takes no time at the port, what is more the usual. */
static void a_full_bucket_lets_a_burst_through(void **state)
{
    const int64_t sizes[] = { 1, 4096, BURST, BURST + 1000, 2 * BURST, 10 << 20 };
    tti_cluster   c = plain(2, 1, POST);
    size_t        i;

    (void)state;
    c.burst = BURST;
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        takes(&c, to_the_other_half, -1, sizes[i],
              POST + LATENCY + (sizes[i] > BURST ? BYTE * (sizes[i] - BURST) : 0) + POST);
    c = plain(2, 4, 0); /* ranks of a host share its bucket */
    c.burst = BURST;
    takes(&c, to_the_other_half, -1, BURST, LATENCY + BYTE * 3 * BURST);
    c = plain(3, 1, 0); /* nothing comes before it has left, however full the other bucket is */
    c.burst = BURST;
    takes(&c, one_to_two, 0, BURST, LATENCY + BYTE * BURST);
    c = plain(33, 1, 0); /* what comes together finds one bucket */
    c.burst = BURST;
    takes(&c, tti_plan_gather_direct, 0, BURST, LATENCY + BYTE * 31 * BURST);
}

/* Times of calls of so many bytes from the first half to the other one, the last two of n. */
static void last_two(const tti_cluster *c, int64_t bytes, int n, int64_t gap_ns, int every, int64_t last[2], int64_t *first)
{
    const tti_tape_call   call = { .plan = to_the_other_half, .root = -1, .count = bytes, .dtype = TUTTI_U8 };
    const tti_tape_limits limits = { .full = TTI_TAPE_FULL, .most = TTI_TAPE_FULL };
    int64_t               each[64];
    tti_calls             calls = { .n = n, .gap_ps = 1000 * gap_ns, .every = every, .each_ps = each };
    tti_tape              tape = { .n_ranks = 0 };
    tti_played            played;

    assert_in_range(n, 2, 64);
    assert_int_equal(tti_tape_make(c, &call, &limits, &tape), TUTTI_OK);
    if (tti_motion_play_calls(c, &tape, &calls, &played) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    tti_tape_release(&tape);
    assert_int_equal(played.end_ps, each[0]);
    assert_int_equal(played.messages, c->hosts / 2);
    assert_int_equal(played.bytes_far, bytes * (c->hosts / 2));
    *first = each[0];
    last[0] = each[n - 2];
    last[1] = each[n - 1];
}

static void calls_find_what_others_have_left_in_buckets(void **state)
{
    const int64_t bytes = BURST / 2, rate = BYTE * bytes;
    tti_cluster   c = plain(2, 1, 0);
    int64_t       last[2], first;

    (void)state;
    c.burst = BURST;
    last_two(&c, bytes, 20, 0, 0, last, &first); /* one after the other they take what the rate lets through */
    assert_int_equal(first, 1000 * LATENCY);
    assert_int_equal(last[0], 1000 * rate);
    assert_int_equal(last[1], 1000 * rate);
    last_two(&c, bytes, 20, rate / 2, 0, last, &first); /* a rest fills a part */
    assert_int_equal(last[1], 1000 * (rate - rate / 2));
    last_two(&c, bytes, 20, rate, 0, last, &first); /* or all that a call takes */
    assert_int_equal(last[1], 1000 * LATENCY);
    last_two(&c, bytes, 20, 0, 1, last, &first); /* each host sends every second one */
    assert_int_equal(last[0] + last[1], 1000 * rate);
    c.burst = 0; /* without buckets all calls are alike */
    last_two(&c, bytes, 20, 0, 0, last, &first);
    assert_int_equal(first, 1000 * (LATENCY + rate));
    assert_int_equal(last[1], first);
}

/* ---- cores of one machine ---------------------------------------------------------------------- */

static void a_sender_may_work_for_its_receivers(void **state)
{
    const int64_t more = POST / 2;
    tti_cluster   c = plain(3, 1, POST);

    (void)state;
    takes(&c, one_to_two, 0, 1, 2 * POST + BYTE + LATENCY + POST);
    c.figures.far.uneven = more;
    takes(&c, one_to_two, 0, 1, 2 * (POST + more) + BYTE + LATENCY + POST - more);
    c = plain(2, 1, POST);
    c.figures.far.uneven = more;
    takes(&c, to_the_other_half, -1, 0, POST + LATENCY + POST); /* one alone is the same */
}

/* Ranks that share cores wait for each other together: a meeting takes as long as all of them need, and not that for each. */
static void waits_of_a_shared_core_are_counted_once(void **state)
{
    enum { GIVE = 100, TURNS = 4, MEETINGS = 2 };
    const int64_t meeting = 5 * TURNS * GIVE / 2, alone = LATENCY + BYTE * 4096;
    tti_cluster   c = plain(2, 4, 0);

    (void)state;
    c.one_machine = true;
    c.cores = 2;
    c.figures.machine.give = GIVE;
    /* on top of the meetings a core changes hands for each half of each rank, and for its messages */
    assert_in_range(levels_take(&c, TUTTI_CALL_GATHER, "leaders", 1024), 1000 * (alone + MEETINGS * meeting / 2),
                    1000 * (alone + MEETINGS * meeting + GIVE * TURNS * (MEETINGS + 1)));
}

/* ---- every plan -------------------------------------------------------------------------------- */

static tti_tape_call call_of(const tti_algorithm *row, int64_t count)
{
    const bool rooted = row->kind == TUTTI_CALL_BROADCAST || row->kind == TUTTI_CALL_REDUCE ||
                        row->kind == TUTTI_CALL_GATHER || row->kind == TUTTI_CALL_SCATTER;

    return (tti_tape_call){ .plan = row->plan, .kind = row->kind, .root = rooted ? 0 : -1, .count = count,
                            .dtype = TUTTI_F32 };
}

static bool is_played(const tti_algorithm *row)
{
    return row->plan != NULL && row->kind != TUTTI_CALL_GATHER_V && row->kind != TUTTI_CALL_SCATTER_V;
}

/* All that is sent is received, which play_limited() looks at, in no less time than the busiest port takes. */
static void every_plan_ends(void **state)
{
    const int            ranks[] = { 1, 2, 3, 5, 8, 13, 32 };
    const int64_t        counts[] = { 0, 1, 1000, 100000 };
    int                  n_rows, i;
    const tti_algorithm *rows = tti_algorithms(&n_rows);
    size_t               r, k;

    (void)state;
    for (i = 0; i < n_rows; i++)
        for (r = 0; is_played(&rows[i]) && r < sizeof ranks / sizeof ranks[0]; r++)
            for (k = 0; k < sizeof counts / sizeof counts[0]; k++) {
                const tti_cluster   c = plain(ranks[r], 1, POST);
                const tti_tape_call call = call_of(&rows[i], counts[k]);
                const tti_played    once = play_limited(&c, &call, TTI_TAPE_FULL);
                const tti_played    again = play_limited(&c, &call, TTI_TAPE_FULL);

                assert_true(once.end_ps >= once.port_bytes * BYTE * 1000);
                assert_memory_equal(&once, &again, sizeof once);
            }
}

/* Of equal hosts the first one alone says what all of them take. */
static void symmetry_changes_nothing(void **state)
{
    int                  n_rows, i, units = 0;
    const tti_algorithm *rows = tti_algorithms(&n_rows);

    (void)state;
    for (i = 0; i < n_rows; i++) {
        const tti_cluster   c = plain(6, 3, POST);
        const tti_tape_call call = call_of(&rows[i], 18 * 16 * 100);
        tti_played          all, unit;

        if (!is_played(&rows[i]))
            continue;
        all = play_limited(&c, &call, INT64_C(1) << 30);
        unit = play_limited(&c, &call, 0);
        assert_int_equal(all.end_ps, unit.end_ps);
        units += unit.messages * 6 == all.messages;
    }
    assert_true(units >= 4);
}

static void ten_thousand_ranks_are_played(void **state)
{
    const tti_cluster c = plain(10000, 1, POST);
    tti_played        played;

    (void)state;
    takes(&c, tti_plan_barrier_dissemination, -1, 0, 14 * (2 * POST + LATENCY));
    played = play(&c, tti_plan_all_reduce_direct, -1, 10000 * 64);
    assert_int_equal(played.messages, 2 * 9999); /* one host's */
    assert_true(played.end_ps >= 2 * INT64_C(9999) * 64 * BYTE * 1000);
}

/* ---- what does not work ------------------------------------------------------------------------ */

static void waits_in_vain(const tti_plan_input *p, tti_schedule *schedule)
{
    tti_schedule_phase(schedule);
    if (p->rank == 1)
        tti_schedule_recv(schedule, 0, (tti_block){ .place = TTI_PLACE_IN, .bytes = 1 });
}

static void waits_without_end_are_named(void **state)
{
    const tti_cluster     c = plain(3, 1, POST);
    const tti_tape_call   call = { .plan = waits_in_vain, .root = -1, .count = 1, .dtype = TUTTI_U8 };
    const tti_tape_limits limits = { .full = 100, .most = 100 };
    tti_tape              tape = { .n_ranks = 0 };
    tti_played            played;

    (void)state;
    assert_int_equal(tti_tape_make(&c, &call, &limits, &tape), TUTTI_OK);
    assert_int_equal(tti_motion_play(&c, &tape, &played), TUTTI_E_STATE);
    assert_non_null(strstr(tutti_last_error(), "rank 1 waits for 1 messages in step 1"));
    tti_tape_release(&tape);
}

static void too_many_messages_are_refused(void **state)
{
    const tti_cluster     c = plain(100, 1, POST);
    const tti_tape_call   call = { .plan = tti_plan_reduce_direct, .root = 0, .count = 1 << 20, .dtype = TUTTI_F32 };
    const tti_tape_limits limits = { .full = 10, .most = 1000 };
    tti_tape              tape = { .n_ranks = 0 };

    (void)state;
    assert_int_equal(tti_tape_make(&c, &call, &limits, &tape), TUTTI_E_UNSUPPORTED);
    assert_non_null(strstr(tutti_last_error(), "more than the 1000 messages"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_takes_alpha_and_beta),
        cmocka_unit_test(copies_overlap_with_the_wire),
        cmocka_unit_test(one_shot_and_direct_fill_the_ports),
        cmocka_unit_test(two_levels_fill_the_link),
        cmocka_unit_test(steps_of_a_tree_follow_each_other),
        cmocka_unit_test(local_steps_take_the_core),
        cmocka_unit_test(pieces_overlap),
        cmocka_unit_test(ranks_of_a_host_share_its_port),
        cmocka_unit_test(what_comes_together_waits_at_the_port),
        cmocka_unit_test(racks_share_their_uplinks),
        cmocka_unit_test(ranks_of_a_core_take_turns),
        cmocka_unit_test(messages_inside_a_host_use_no_port),
        cmocka_unit_test(a_full_bucket_lets_a_burst_through),
        cmocka_unit_test(calls_find_what_others_have_left_in_buckets),
        cmocka_unit_test(a_sender_may_work_for_its_receivers),
        cmocka_unit_test(waits_of_a_shared_core_are_counted_once),
        cmocka_unit_test(every_plan_ends),
        cmocka_unit_test(symmetry_changes_nothing),
        cmocka_unit_test(ten_thousand_ranks_are_played),
        cmocka_unit_test(waits_without_end_are_named),
        cmocka_unit_test(too_many_messages_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
