/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorded_test.c
 * Goal    the flight recorder has every operation of a rank, on whatever way: group, number, kind, bytes, how it ended; a
 *         rank that was killed is read by another; a failure says where the dump is; who always comes last is named.
 * Method  ranks do known operations and read their own recorders, and each other's. A rank that is to be killed or late
 *         waits for marks. Who comes late sleeps before each call: that is what it stands for. */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

/* ---- reading ---- */

static tutti_recorder *read_self(void)
{
    tutti_recorder *r = NULL;

    OK(tutti_recorder_open_pid(0, &r));
    return r;
}

/* The group of this rank that has a name; of several in one process, that of the rank. */
static int find_group(const tutti_recorder *r, const char *name, int rank, tutti_recorder_group *out)
{
    int i;

    for (i = tutti_recorder_count_groups(r) - 1; i >= 0; i--) {
        OK(tutti_recorder_get_group(r, i, out));
        if (strcmp(out->name, name) == 0 && out->world_rank == rank)
            return i;
    }
    fail_msg("there is no group '%s'", name);
    return -1;
}

/* The newest record of a kind in a group. */
static bool find_record(const tutti_recorder *r, int group, tutti_record_kind kind, uint64_t seq, tutti_record *out)
{
    int i;

    for (i = tutti_recorder_count_records(r) - 1; i >= 0; i--) {
        OK(tutti_recorder_get_record(r, i, out));
        if (out->group == group && out->kind == kind && (seq == 0 || out->seq == seq))
            return true;
    }
    return false;
}

static void expect_done(const tutti_recorder *r, int group, tutti_record_kind kind, uint64_t seq, int64_t count,
                        uint64_t in_bytes, uint64_t out_bytes)
{
    tutti_record rec = TUTTI_RECORD;

    assert_true(find_record(r, group, kind, seq, &rec));
    assert_int_equal(rec.state, TUTTI_RECORD_DONE);
    assert_int_equal(rec.count, count);
    assert_int_equal(rec.in_bytes, in_bytes);
    assert_int_equal(rec.out_bytes, out_bytes);
    assert_true(rec.issued_ns > 0 && rec.began_ns >= rec.issued_ns);
    assert_true(rec.is_quick || rec.ended_ns >= rec.began_ns);
}

/* ---- every operation ---- */

enum { LARGE = 100000 };

static void collectives(tt_ctx *t, const char *name)
{
    float                x[8] = { 1 }, *large = tt_floats(t, LARGE, 1.0f);
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    tutti_record         rec = TUTTI_RECORD;
    tutti_recorder      *r;
    tutti_work          *work = NULL;
    int                  group;

    OK(tutti_all_reduce(TUTTI_SPAN(x, 8), TUTTI_MAX, t->group));
    OK(tutti_broadcast(TUTTI_SPAN(x, 5), 1, t->group));
    OK(tutti_all_reduce(TUTTI_SPAN(large, LARGE), TUTTI_SUM, t->group));
    OK(tutti_record_comm_begin("gradients"));
    OK(tutti_all_reduce_async(TUTTI_SPAN(x, 3), TUTTI_SUM, t->group, &work));
    OK(tutti_record_comm_end());
    OK(tutti_work_wait(work));
    tutti_work_free(work);
    OK(tutti_barrier(t->group));

    r = read_self();
    group = find_group(r, name, t->rank, &g);
    assert_true(g.is_there && !g.has_failed && g.rank == t->rank && g.n_ranks == t->size);
    assert_true(g.ended == g.began && g.issued == g.began);
    expect_done(r, group, TUTTI_RECORD_BROADCAST, g.ended - 3, 5, t->rank == 1 ? 20 : 0, t->rank == 1 ? 0 : 20);
    expect_done(r, group, TUTTI_RECORD_ALL_REDUCE, g.ended - 4, 8, 32, 32);
    expect_done(r, group, TUTTI_RECORD_ALL_REDUCE, g.ended - 2, LARGE, 4 * LARGE, 4 * LARGE);
    expect_done(r, group, TUTTI_RECORD_ALL_REDUCE, g.ended - 1, 3, 12, 12);
    expect_done(r, group, TUTTI_RECORD_BARRIER, g.ended, 0, 0, 0);
    assert_true(find_record(r, group, TUTTI_RECORD_ALL_REDUCE, g.ended - 4, &rec));
    assert_true(rec.reduce == TUTTI_OP_MAX && rec.dtype == TUTTI_F32 && !rec.is_async && rec.peer == -1);
    assert_true(find_record(r, group, TUTTI_RECORD_BROADCAST, g.ended - 3, &rec));
    assert_int_equal(rec.peer, 1);
    assert_true(find_record(r, group, TUTTI_RECORD_ALL_REDUCE, g.ended - 1, &rec));
    assert_true(rec.is_async && !rec.is_quick && rec.ended_ns > 0);
    assert_string_equal(rec.name, "gradients");
    assert_true(find_record(r, group, TUTTI_RECORD_ALL_REDUCE, g.ended - 2, &rec));
    assert_true(!rec.is_quick && rec.ended_ns > rec.began_ns);
    tutti_recorder_close(r);
}

/* Messages between ranks 0 and 1: waited for, and not. */
static void messages(tt_ctx *t, const char *name)
{
    int32_t              x[4] = { 0 };
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    tutti_record         rec = TUTTI_RECORD;
    tutti_recorder      *r;
    tutti_work          *work = NULL;
    int                  group, before;

    r = read_self();
    find_group(r, name, t->rank, &g);
    before = (int)g.messages;
    tutti_recorder_close(r);
    if (t->rank < 2) {
        if (t->rank == 0) {
            OK(tutti_send(TUTTI_SPAN(x, 4), 1, 5, t->group));
            OK(tutti_irecv(TUTTI_SPAN(x, 2), 1, 6, t->group, &work));
        } else {
            OK(tutti_recv(TUTTI_SPAN(x, 4), 0, 5, t->group, NULL));
            OK(tutti_isend(TUTTI_SPAN(x, 2), 0, 6, t->group, &work));
        }
        OK(tutti_work_wait(work));
        tutti_work_free(work);
        r = read_self();
        group = find_group(r, name, t->rank, &g);
        assert_int_equal(g.messages, before + 2);
        expect_done(r, group, t->rank == 0 ? TUTTI_RECORD_SEND : TUTTI_RECORD_RECV, g.messages - 1, 4,
                    t->rank == 0 ? 16 : 0, t->rank == 0 ? 0 : 16);
        assert_true(find_record(r, group, t->rank == 0 ? TUTTI_RECORD_RECV : TUTTI_RECORD_SEND, g.messages, &rec));
        assert_true(rec.is_async && rec.state == TUTTI_RECORD_DONE && rec.tag == 6 && rec.peer == 1 - t->rank);
        tutti_recorder_close(r);
    }
    OK(tutti_barrier(t->group));
}

/* Parts of different sizes say how much this rank gave and got. */
static void parts(tt_ctx *t, const char *name)
{
    int32_t              in[64], out[64];
    tutti_span           ins[8], outs[8];
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    tutti_record         rec = TUTTI_RECORD;
    tutti_recorder      *r;
    int                  i, group, given = 0, got = 0;

    memset(in, 0, sizeof in);
    for (i = 0; i < t->size; i++) {
        ins[i] = TUTTI_SPAN(in + given, i + 1);
        outs[i] = TUTTI_SPAN(out + got, t->rank + 1);
        given += i + 1;
        got += t->rank + 1;
    }
    OK(tutti_all_to_all(outs, t->size, ins, t->size, t->group));
    r = read_self();
    group = find_group(r, name, t->rank, &g);
    assert_true(find_record(r, group, TUTTI_RECORD_ALL_TO_ALL, g.ended, &rec));
    assert_int_equal(rec.in_bytes, 4 * given);
    assert_int_equal(rec.out_bytes, 4 * got);
    tutti_recorder_close(r);
}

static void a_group(tt_ctx *t)
{
    tutti_group_options  opts = TUTTI_GROUP_OPTIONS;
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    tutti_group         *pair = NULL;
    tutti_recorder      *r;
    const int            ranks[] = { 0, 2 };
    char                 name[64];
    float                x = 1;

    opts.desc = "the outer ones";
    OK(tutti_new_group(ranks, 2, &opts, &pair));
    if (t->rank % 2 == 0) {
        OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, pair));
        snprintf(name, sizeof name, "%s", tutti_get_group_name(pair));
        OK(tutti_destroy_process_group(pair));
        r = read_self();
        find_group(r, name, t->rank, &g);
        assert_true(!g.is_there && g.n_ranks == 2 && g.ended == 1 && g.number != 0);
        assert_memory_equal(g.ranks, ranks, sizeof ranks);
        assert_string_equal(g.desc, "the outer ones");
        tutti_recorder_close(r);
    }
    OK(tutti_barrier(t->group));
}

/* A barrier that names, and a window. */
static void others(tt_ctx *t, const char *name)
{
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    tutti_record         rec = TUTTI_RECORD;
    tutti_recorder      *r;
    tutti_window        *window = NULL;
    void                *part = NULL;
    tutti_span           span;
    float                x = 1;
    int                  group;

    OK(tutti_monitored_barrier(t->group, 0, true));
    OK(tutti_alloc(64, &part));
    span = tutti_span_of(part, 4, TUTTI_F32);
    OK(tutti_window_create(&span, t->group, &window));
    OK(tutti_window_put(window, TUTTI_SPAN(&x, 1), (t->rank + 1) % t->size, 0));
    r = read_self();
    group = find_group(r, name, t->rank, &g);
    assert_true(find_record(r, group, TUTTI_RECORD_MONITORED_BARRIER, 0, &rec));
    assert_int_equal(rec.state, TUTTI_RECORD_DONE);
    assert_true(find_record(r, group, TUTTI_RECORD_PUT, 0, &rec));
    assert_true(rec.state == TUTTI_RECORD_DONE && rec.in_bytes == 4 && rec.peer == (t->rank + 1) % t->size);
    tutti_recorder_close(r);
    OK(tutti_window_free(window));
    OK(tutti_free(part));
}

static void everything_is_recorded(tt_ctx *t)
{
    const char *name = tutti_get_group_name(t->group);

    collectives(t, name);
    messages(t, name);
    parts(t, name);
    others(t, name);
    a_group(t);
}

/* ---- the killed ---- */

enum { HERE = 0, READ = 1, PIDS = 8 };

/* Rank 1 is killed while it waits for a message; its neighbour has its memory. */
static void the_killed_are_read(tt_ctx *t)
{
    tutti_recorder_info  info = TUTTI_RECORDER_INFO;
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    tutti_record         rec = TUTTI_RECORD;
    tutti_recorder      *r = NULL;
    tutti_work          *work = NULL;
    float                x = 1;
    int                  group;

    OK(tutti_barrier(t->group));
    t->marks[PIDS + t->rank] = (uint32_t)getpid();
    tt_post(t, HERE);
    tt_await(t, HERE, (uint32_t)t->size);
    if (t->rank == 1) {
        OK(tutti_irecv(TUTTI_SPAN(&x, 1), 0, 9, t->group, &work));
        tt_post(t, READ);
        tt_await(t, READ, 3); /* for ever: its neighbour kills it */
    }
    tt_await(t, READ, 1);
    if (t->rank == 0)
        assert_int_equal(kill((pid_t)t->marks[PIDS + 1], SIGKILL), 0);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group), TUTTI_E_PEER);
    OK(tutti_recorder_open_pid((int64_t)t->marks[PIDS + 1], &r));
    OK(tutti_recorder_get_info(r, &info));
    assert_true(info.rank == 1 && info.world_size == t->size && info.pid == (int64_t)t->marks[PIDS + 1] && !info.has_left);
    group = find_group(r, "0", 1, &g);
    assert_true(find_record(r, group, TUTTI_RECORD_RECV, g.messages, &rec));
    assert_true(rec.state == TUTTI_RECORD_STARTED && rec.is_async && rec.peer == 0 && rec.tag == 9);
    tutti_recorder_close(r);

    r = read_self();
    OK(tutti_recorder_get_info(r, &info));
    assert_true(find_record(r, find_group(r, "0", t->rank, &g), TUTTI_RECORD_ALL_REDUCE, 0, &rec));
    assert_true(g.has_failed && info.failures > 0);
    assert_int_equal(rec.state, TUTTI_RECORD_FAILED);
    assert_int_equal(rec.status, TUTTI_E_PEER);
    assert_non_null(strstr(info.failed_words, "rank 1"));
    tutti_recorder_close(r);
    tt_post(t, HERE);
    tt_await(t, HERE, (uint32_t)(2 * t->size - 1)); /* who holds the memory stays until all have read it */
}

/* ---- who waits for whom, before there is a group ---- */

enum { MADE = 2 };

/* Look at rank 1 until it is in such a call on the world. */
static void await_call_of_rank_1(tt_ctx *t, tutti_record_kind kind, tutti_record *out)
{
    const struct timespec pause = { .tv_nsec = 2000000 };
    tutti_recorder_group  g = TUTTI_RECORDER_GROUP;
    tutti_recorder       *r = NULL;
    bool                  found = false;

    for (; !found; nanosleep(&pause, NULL)) { /* the test has a limit */
        OK(tutti_recorder_open_pid((int64_t)t->marks[PIDS + 1], &r));
        found = find_record(r, find_group(r, "0", 1, &g), kind, 0, out) && out->state == TUTTI_RECORD_STARTED;
        tutti_recorder_close(r);
    }
}

static void tell_pids(tt_ctx *t)
{
    OK(tutti_barrier(t->group));
    t->marks[PIDS + t->rank] = (uint32_t)getpid();
    tt_post(t, HERE);
    tt_await(t, HERE, (uint32_t)t->size);
}

/* Rank 0 is late: rank 1 waits for the colours of all, before there are parts. */
static void who_waits_in_a_split_is_seen(tt_ctx *t)
{
    tutti_group *part = NULL;
    tutti_record rec = TUTTI_RECORD;

    tell_pids(t);
    if (t->rank == 0)
        await_call_of_rank_1(t, TUTTI_RECORD_SPLIT_GROUP, &rec);
    OK(tutti_split_group_by_color(t->group, t->rank / 2, NULL, &part));
    OK(tutti_barrier(part));
    OK(tutti_barrier(t->group)); /* rank 0 has read */
}

/* Rank 0 is late: rank 1 leaves out the two others. */
static void whom_a_shrink_leaves_out_is_seen(tt_ctx *t)
{
    tutti_group *left = NULL;
    tutti_record rec = TUTTI_RECORD;

    tell_pids(t);
    if (t->rank == 0) {
        await_call_of_rank_1(t, TUTTI_RECORD_SHRINK_GROUP, &rec);
        while (!rec.is_listed) /* it is written a moment later */
            await_call_of_rank_1(t, TUTTI_RECORD_SHRINK_GROUP, &rec);
        assert_true(rec.count == 2 && rec.peer == -1 && rec.left_out[0] == 0xc && rec.left_out[1] == 0);
    }
    if (t->rank < 2) {
        OK(tutti_shrink_group((const int[]){ 2, 3 }, 2, t->group, 0, NULL, &left));
        assert_int_equal(tutti_get_world_size(NULL), 2);
        tt_post(t, MADE);
    }
    tt_await(t, MADE, 2);
}

/* ---- dumps ---- */

/* Rank 1 does not come: the error of rank 0 says where its recorder was dumped. */
static void a_time_out_is_dumped(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    char               prefix[256], path[280];
    json_t            *json, *entry;
    float              x = 1;

    snprintf(prefix, sizeof prefix, "%s/trace_rank_", t->dir);
    snprintf(path, sizeof path, "%s0", prefix);
    setenv("TUTTI_TRACE_FILE", prefix, 1);
    opts.init_method = t->init_method;
    opts.timeout_ms = t->limit_ms;
    OK(tutti_init_process_group(&opts));
    OK(tutti_set_timeout(NULL, 700)); /* joining may take longer */
    tt_post(t, HERE);
    tt_await(t, HERE, (uint32_t)t->size); /* nobody is still at that when the world ends */
    if (t->rank == 0) {
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_E_TIMEOUT);
        assert_non_null(strstr(tutti_last_error(), "\n  recorder: '"));
        assert_non_null(strstr(tutti_last_error(), path));
        json = json_load_file(path, 0, NULL);
        assert_non_null(json);
        assert_int_equal(json_integer_value(json_object_get(json, "rank")), 0);
        entry = json_array_get(json_object_get(json, "entries"), json_array_size(json_object_get(json, "entries")) - 1);
        assert_string_equal(json_string_value(json_object_get(entry, "op")), "all_reduce");
        assert_string_equal(json_string_value(json_object_get(entry, "status")), "TUTTI_E_TIMEOUT");
        json_decref(json);
        tt_post(t, READ);
    }
    tt_await(t, READ, 1);
    tutti_destroy_process_group(NULL);
}

/* One dies, the others go on, and then another one does not come: that is a failure of its own, with a dump beside the first. */
static void a_failure_after_a_shrink_is_dumped(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *left = NULL;
    char               prefix[256], first[280], second[280];
    float              x = 1;

    snprintf(prefix, sizeof prefix, "%s/again_rank_", t->dir);
    snprintf(first, sizeof first, "recorder: '%s%d'", prefix, t->rank);
    snprintf(second, sizeof second, "recorder: '%s%d.2'", prefix, t->rank);
    setenv("TUTTI_TRACE_FILE", prefix, 1);
    opts.init_method = t->init_method;
    opts.timeout_ms = t->limit_ms;
    OK(tutti_init_process_group(&opts));
    OK(tutti_barrier(NULL));
    tt_post(t, HERE);
    tt_await(t, HERE, (uint32_t)t->size);
    if (t->rank == 2)
        tt_die();
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_E_PEER);
    assert_non_null(strstr(tutti_last_error(), first));
    OK(tutti_shrink_group(NULL, 0, NULL, 0, NULL, &left));
    OK(tutti_barrier(NULL));
    OK(tutti_set_timeout(NULL, 700));
    tt_post(t, MADE);
    tt_await(t, MADE, 2); /* both are out of the barrier when the world ends */
    if (t->rank == 0) {
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_E_TIMEOUT);
        assert_non_null(strstr(tutti_last_error(), second));
        tt_post(t, READ);
    }
    tt_await(t, READ, 1);
    tutti_destroy_process_group(NULL);
}

/* ---- stragglers ---- */

enum { CALLS = 150, LATE_MS = 8, LATE_MAX_MS = 64, NAMED_CALLS = 12, NAMED_MS = 50 };
/* The last two: a straggler takes a fifth of half a second, at the least (group/straggler.c). */

static _Atomic int n_named;

static void look_for_name(tutti_log_level level, const char *line, void *ctx)
{
    (void)ctx;
    if (level == TUTTI_LOG_WARN && strstr(line, "rank 2 comes late: it was the last in ") != NULL)
        atomic_fetch_add(&n_named, 1);
    else if (strstr(line, " comes late: ") != NULL)
        atomic_fetch_add(&n_named, 100);
}

/* Calls to which rank 2 comes late; whether somebody has said so, on all ranks. */
static bool be_late(tt_ctx *t, int ms)
{
    const struct timespec late = { .tv_nsec = ms * 1000000 };
    float                 x = 1;
    int32_t               named;
    int                   i;

    for (i = 0; i < CALLS; i++) {
        if (t->rank == 2)
            nanosleep(&late, NULL);
        OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_MAX, t->group));
    }
    named = atomic_load(&n_named);
    OK(tutti_all_reduce(TUTTI_SPAN(&named, 1), TUTTI_MAX, t->group));
    return named > 0;
}

/* Where others have no core for so long that it is not the last, it comes later. */
static void who_comes_last_is_named(tt_ctx *t)
{
    tutti_record          rec = TUTTI_RECORD;
    tutti_recorder_group  g = TUTTI_RECORDER_GROUP;
    tutti_recorder       *r;
    int64_t               waited_ns = 0;
    int                   i, ms, n = 0;

    OK(tutti_log_set_sink("test", look_for_name, NULL));
    for (ms = LATE_MS; !be_late(t, ms) && ms < LATE_MAX_MS; ms *= 2)
        continue;
    OK(tutti_barrier(t->group));
    OK(tutti_log_set_sink("test", NULL, NULL));
    assert_int_equal(atomic_load(&n_named), t->rank == 0 ? 1 : 0); /* one says it, once */
    if (t->rank != 0)
        return;
    r = read_self();
    find_group(r, "0", 0, &g);
    for (i = 0; i < tutti_recorder_count_records(r); i++) {
        OK(tutti_recorder_get_record(r, i, &rec));
        if (rec.late != 2 || rec.ended_ns - rec.began_ns < rec.waited_ns)
            continue;
        n++;
        waited_ns += rec.waited_ns;
    }
    assert_true(n >= NAMED_CALLS && waited_ns >= NAMED_MS * INT64_C(1000000));
    tutti_recorder_close(r);
}

/* ---- none ---- */

static void none_is_wanted(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_recorder    *r = NULL;
    float              x = 1;

    setenv("TUTTI_RECORDER", "0", 1);
    opts.init_method = t->init_method;
    OK(tutti_init_process_group(&opts));
    OK(tutti_profile_push("nothing"));
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL));
    OK(tutti_profile_pop());
    assert_int_equal(tutti_recorder_open_pid(0, &r), TUTTI_E_STATE);
    assert_int_equal(tutti_recorder_dump("/dev/null"), TUTTI_E_STATE);
    OK(tutti_destroy_process_group(NULL));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(everything_is_recorded, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(everything_is_recorded, .ranks = 4, .hosts = 2, .limit_ms = 40000),
        TT_TEST(the_killed_are_read, .ranks = 3, .dies = 1),
        TT_TEST(who_waits_in_a_split_is_seen, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(whom_a_shrink_leaves_out_is_seen, .ranks = 4),
        TT_TEST(a_time_out_is_dumped, .init = TT_INIT_NONE),
        TT_TEST(a_failure_after_a_shrink_is_dumped, .ranks = 3, .init = TT_INIT_NONE, .dies = 2),
        TT_TEST(who_comes_last_is_named, .ranks = 3, .limit_ms = 60000),
        TT_TEST(none_is_wanted, .init = TT_INIT_NONE),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
