/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace_test.c
 * Goal    `tutti trace` writes what Chrome's trace viewer and Perfetto read: events of known kinds with what each kind needs,
 *         tracks with names and nothing on them but what is nested, an arrow for each message, the clocks of two hosts
 *         put together, ranks of two jobs told apart.
 * Method  recorders that were made up, as files; the JSON that comes out is checked event by event. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "made_recorder.h"

#define MS_NS INT64_C(1000000)
#define APART (INT64_C(5000) * 1000000000) /* the second host was started so much later */

#define EARLIEST INT64_C(6000000) /* ms for which the first host has been up, so that the second is, too */

enum { RANKS = 4, CALLS = 20 };

static char folder[] = "/tmp/tutti-trace-XXXXXX";
static made_recorder made[RANKS];

/* Ranks 0 and 1 on one host, 2 and 3 on another one, whose wall clock is 40 ms wrong. */
static void make_job(void)
{
    int rank, i;

    for (rank = 0; rank < RANKS; rank++) {
        const int64_t away = rank < 2 ? 0 : APART;

        made_begin(&made[rank], rank, RANKS, rank < 2 ? "n1" : "n2", (EARLIEST + 100000) * MS_NS - away, rank < 2 ? 7 : 7 + away + 40 * MS_NS);
        made_group(&made[rank], 0, "world", NULL, RANKS);
        for (i = 0; i < CALLS; i++) { /* each in turn comes last, by 2 ms */
            const int64_t at = (EARLIEST + 90000 + 10 * i) * MS_NS, begin = at + (i % RANKS == rank ? 2 * MS_NS : 0);

            made_add(&made[rank], &(made_op){ TUTTI_RECORD_ALL_REDUCE, TUTTI_RECORD_DONE, 0, (uint64_t)i + 1, -1, 0, 100,
                                              begin - away, at + 3 * MS_NS + rank * MS_NS / 10 - away });
        }
    }
    for (i = 0; i < 3; i++) { /* rank 0 sends to rank 3; what it sends last is under way */
        made_add(&made[0], &(made_op){ TUTTI_RECORD_SEND, i < 2 ? TUTTI_RECORD_DONE : TUTTI_RECORD_STARTED, 0, (uint64_t)i + 1, 3, 5, 10,
                                       (EARLIEST + 91000 + 10 * i) * MS_NS, i < 2 ? (EARLIEST + 91002 + 10 * i) * MS_NS : 0 });
        if (i < 2)
            made_add(&made[3], &(made_op){ TUTTI_RECORD_RECV, TUTTI_RECORD_DONE, 0, (uint64_t)i + 1, 0, 5, 10,
                                           (EARLIEST + 91000 + 10 * i) * MS_NS - APART, (EARLIEST + 91004 + 10 * i) * MS_NS - APART });
    }
    made_add(&made[1], &(made_op){ TUTTI_RECORD_RECV, TUTTI_RECORD_STARTED, 0, 1, 0, 6, 10, (EARLIEST + 91100) * MS_NS, 0 }); /* beside */
    made_add(&made[1], &(made_op){ TUTTI_RECORD_RECV, TUTTI_RECORD_STARTED, 0, 2, 0, 6, 10, (EARLIEST + 91101) * MS_NS, 0 });
}

static json_t *trace_of_job(void)
{
    char name[16], command[512];
    json_t *all;
    int rank;

    make_job();
    for (rank = 0; rank < RANKS; rank++) {
        snprintf(name, sizeof name, "%d.rec", rank);
        made_write(&made[rank], name);
    }
    snprintf(command, sizeof command, "%s/tutti trace --out t.json --dumps 0.rec 1.rec 2.rec 3.rec > said", TUTTI_BIN_DIR);
    assert_int_equal(system(command), 0);
    all = json_load_file("t.json", 0, NULL);
    assert_non_null(all);
    return all;
}

static const char *word(const json_t *event, const char *key)
{
    const char *value = json_string_value(json_object_get(event, key));

    if (value == NULL)
        fail_msg("an event has no word '%s': %s", key, json_dumps(event, 0));
    return value;
}

static double number(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);

    if (!json_is_number(value) || !isfinite(json_number_value(value)))
        fail_msg("an event has no number '%s': %s", key, json_dumps(event, 0));
    return json_number_value(value);
}

/* What each kind of event needs. */
static void check_event(const json_t *e)
{
    const char *ph = word(e, "ph");

    number(e, "pid");
    word(e, "name");
    if (strcmp(ph, "M") == 0) {
        assert_true(json_is_object(json_object_get(e, "args")));
        return;
    }
    assert_true(number(e, "ts") >= 0);
    number(e, "tid");
    word(e, "cat");
    if (strcmp(ph, "X") == 0) {
        assert_true(number(e, "dur") >= 0);
        assert_true(json_is_object(json_object_get(e, "args")));
    } else if (strcmp(ph, "s") == 0 || strcmp(ph, "f") == 0) {
        number(e, "id");
        assert_true(strcmp(ph, "s") == 0 || strcmp(word(e, "bp"), "e") == 0);
    } else {
        fail_msg("an event of kind '%s'", ph);
    }
}

static bool same_track(const json_t *a, const json_t *b)
{
    return number(a, "pid") == number(b, "pid") && number(a, "tid") == number(b, "tid");
}

/* Two spans of a track are apart, or one lies in the other. */
static void check_nested(const json_t *a, const json_t *b)
{
    const double a0 = number(a, "ts"), a1 = a0 + number(a, "dur"), b0 = number(b, "ts"), b1 = b0 + number(b, "dur");
    const double slack = 0.001;

    if (a1 <= b0 + slack || b1 <= a0 + slack || (a0 <= b0 + slack && b1 <= a1 + slack) || (b0 <= a0 + slack && a1 <= b1 + slack))
        return;
    fail_msg("on one track and not nested: %s and %s", json_dumps(a, 0), json_dumps(b, 0));
}

static bool is_span(const json_t *e)
{
    return strcmp(word(e, "ph"), "X") == 0;
}

static void events_have_what_they_need(void **state)
{
    json_t *all = trace_of_job(), *events = json_object_get(all, "traceEvents"), *a, *b;
    size_t i, k, spans = 0, named = 0;

    (void)state;
    assert_true(json_array_size(events) > RANKS * CALLS);
    json_array_foreach(events, i, a) {
        check_event(a);
        named += strcmp(word(a, "name"), "thread_name") == 0;
        spans += is_span(a);
        for (k = i + 1; k < json_array_size(events) && is_span(a); k++) {
            b = json_array_get(events, k);
            if (is_span(b) && same_track(a, b))
                check_nested(a, b);
        }
    }
    assert_int_equal(spans, RANKS * CALLS + 3 + 2 + 2);
    assert_int_equal(named, RANKS + 1); /* a track for each rank, and one more for rank 1 */
    json_decref(all);
}

/* The span of all_reduce number seq of a rank. */
static const json_t *call_of(const json_t *events, int rank, int seq)
{
    const json_t *e;
    char name[32];
    size_t i;

    snprintf(name, sizeof name, "all_reduce #%d", seq);
    json_array_foreach(events, i, e)
        if (is_span(e) && number(e, "pid") == rank && strcmp(word(e, "name"), name) == 0)
            return e;
    fail_msg("rank %d has no %s", rank, name);
    return NULL;
}

static void clocks_of_hosts_are_put_together(void **state)
{
    json_t *all = trace_of_job(), *events = json_object_get(all, "traceEvents");
    int i, rank;

    (void)state;
    for (i = 1; i <= CALLS; i++)
        for (rank = 1; rank < RANKS; rank++) {
            const json_t *here = call_of(events, 0, i), *there = call_of(events, rank, i);

            assert_true(number(here, "ts") <= number(there, "ts") + number(there, "dur"));
            assert_true(number(there, "ts") <= number(here, "ts") + number(here, "dur"));
            assert_true(fabs(number(here, "ts") - number(there, "ts")) < 3500); /* as made, and not 40 ms */
        }
    json_decref(all);
}

static void messages_have_arrows(void **state)
{
    json_t *all = trace_of_job(), *events = json_object_get(all, "traceEvents"), *e, *f;
    size_t i, k;
    int arrows = 0;

    (void)state;
    json_array_foreach(events, i, e)
        json_array_foreach(events, k, f)
            if (strcmp(word(e, "ph"), "s") == 0 && strcmp(word(f, "ph"), "f") == 0 && number(e, "id") == number(f, "id")) {
                arrows++;
                assert_true(number(e, "pid") == 0 && number(f, "pid") == 3);
                assert_true(number(f, "ts") > number(e, "ts") && number(f, "ts") < number(e, "ts") + 9000);
            }
    assert_int_equal(arrows, 2);
    json_decref(all);
}

/* Rank 0 of a job, with one operation. */
static void write_lone_rank(const char *job, int pid, const char *name)
{
    made_begin(&made[0], 0, 1, "n1", (EARLIEST + 100000) * MS_NS, 7);
    made[0].head.pid = pid;
    snprintf(made[0].head.job, sizeof made[0].head.job, "%s", job);
    made_group(&made[0], 0, "world", NULL, 1);
    made_add(&made[0], &(made_op){ TUTTI_RECORD_ALL_REDUCE, TUTTI_RECORD_DONE, 0, 1, -1, 0, 100, (EARLIEST + 90000) * MS_NS,
                                   (EARLIEST + 90001) * MS_NS });
    made_write(&made[0], name);
}

static void expect_rank_named(const char *wanted)
{
    json_t *all = json_load_file("t.json", 0, NULL), *e;
    bool found = false;
    size_t i;

    assert_non_null(all);
    json_array_foreach(json_object_get(all, "traceEvents"), i, e)
        if (strcmp(word(e, "name"), "process_name") == 0)
            found = found || strcmp(word(json_object_get(e, "args"), "name"), wanted) == 0;
    if (!found)
        fail_msg("no rank is named \"%s\": %s", wanted, json_dumps(all, 0));
    json_decref(all);
}

static void ranks_of_two_jobs_are_told_apart(void **state)
{
    (void)state;
    write_lone_rank("first", 1000, "first.rec");
    write_lone_rank("second", 1001, "second.rec");
    assert_int_equal(system(TUTTI_BIN_DIR "/tutti trace --out t.json --dumps first.rec second.rec > said"), 0);
    expect_rank_named("rank 0 (job 'first', n1, pid 1000)");
    expect_rank_named("rank 0 (job 'second', n1, pid 1001)");
    assert_int_equal(system(TUTTI_BIN_DIR "/tutti trace --out t.json --dumps first.rec > said"), 0);
    expect_rank_named("rank 0 (n1, pid 1000)");
}

static void what_was_written_is_said(void **state)
{
    char said[256] = "";
    FILE *file;
    json_t *all = trace_of_job();

    (void)state;
    file = fopen("said", "r");
    assert_non_null(file);
    assert_non_null(fgets(said, sizeof said, file));
    fclose(file);
    assert_string_equal(said, "t.json: 87 operations of 4 ranks on 2 hosts, 2 messages from end to end\n");
    json_decref(all);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL || chdir(folder) != 0 ? -1 : 0;
}

static int drop_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "cd / && rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_have_what_they_need),
        cmocka_unit_test(clocks_of_hosts_are_put_together),
        cmocka_unit_test(messages_have_arrows),
        cmocka_unit_test(ranks_of_two_jobs_are_told_apart),
        cmocka_unit_test(what_was_written_is_said),
    };

    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
