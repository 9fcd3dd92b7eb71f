/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder_test.c
 * Goal    What was recorded is read, in order and whole: after the ring went round, while it is written, after the
 *         writer was killed; groups have their names and members; nothing that is read is trusted.
 * Method  This process writes and reads itself. Every field of a record follows from one number, so that a record made of
 *         two shows. The killed are children, forked before this process has a ring. Damage is done to a saved file,
 *         by seeds. */
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <tutti/private.h>
#include "recorder/dump.h"
#include "recorder/memory.h"
#include "recorder/read.h"

enum { RING = 64 };

static char folder[] = "/tmp/tutti-recorder-XXXXXX";

/* ---- writing ---- */

static tti_ring_place add_group(const char *name, int size, const int *ranks)
{
    return tti_recorder_add_group(&(tti_group_facts){ .name = name, .desc = "of a test", .backend = "cpu:native",
                                                      .world = "tutti:w", .number = 1, .rank = 1, .world_rank = 3,
                                                      .size = size, .ranks = ranks });
}

static uint64_t begin(unsigned place, uint64_t seq)
{
    const tti_record_facts facts = { .kind = TUTTI_RECORD_ALL_REDUCE, .dtype = TUTTI_F32, .op = TUTTI_OP_MAX, .seq = seq,
                                     .peer = -1, .count = (int64_t)(seq * 3) };

    return tti_record_write(tti_ring_now(), place, &facts, 0, TUTTI_RECORD_STARTED);
}

static tutti_recorder *read_self(void)
{
    tutti_recorder *r = NULL;

    assert_int_equal(tutti_recorder_open_pid(0, &r), TUTTI_OK);
    return r;
}

/* The record of that id; false: it is not there. */
static bool find_record(const tutti_recorder *r, uint64_t id, tutti_record *out)
{
    int i;

    for (i = 0; i < tutti_recorder_count_records(r); i++) {
        assert_int_equal(tutti_recorder_get_record(r, i, out), TUTTI_OK);
        if (out->id == id)
            return true;
    }
    return false;
}

static bool find_group(const tutti_recorder *r, const char *name, tutti_recorder_group *out)
{
    int i;

    for (i = tutti_recorder_count_groups(r) - 1; i >= 0; i--) {
        assert_int_equal(tutti_recorder_get_group(r, i, out), TUTTI_OK);
        if (strcmp(out->name, name) == 0)
            return true;
    }
    return false;
}

/* ---- records ---- */

static void states_and_fields(void **state)
{
    const int       ranks[] = { 1, 3, 5 };
    tti_ring_place       place = add_group("dp", 3, ranks);
    tutti_record    rec = TUTTI_RECORD;
    tutti_recorder *r;
    uint64_t        id[5];
    tti_record_facts send = { .kind = TUTTI_RECORD_SEND, .dtype = TUTTI_F64, .peer = 2, .tag = 7, .count = 10, .seq = 1 };

    (void)state;
    id[0] = begin(place.index, 11);
    id[1] = begin(place.index, 12);
    tti_record_end(id[1], 0, TUTTI_OK, true);
    id[2] = begin(place.index, 13);
    tti_record_waited(2, 5000);
    tti_record_end(id[2], 0, TUTTI_E_TIMEOUT, true);
    id[3] = tti_record_write(tti_ring_now(), place.index, &send, TUTTI_RECORD_ASYNC, TUTTI_RECORD_ISSUED);
    tti_record_start(id[3]);
    tti_record_mark_end(id[3]);
    id[4] = begin(place.index, 14);
    tti_record_end(id[4], 0, TUTTI_OK, false);

    r = read_self();
    assert_true(find_record(r, id[0], &rec));
    assert_int_equal(rec.state, TUTTI_RECORD_STARTED);
    assert_string_equal(rec.op, "all_reduce");
    assert_int_equal(rec.reduce, TUTTI_OP_MAX);
    assert_int_equal(rec.count, 33);
    assert_int_equal(rec.seq, 11);
    assert_int_equal(rec.in_bytes, 33 * 4);
    assert_int_equal(rec.peer, -1);
    assert_true(rec.began_ns > 0 && rec.ended_ns == 0);
    assert_true(find_record(r, id[1], &rec));
    assert_true(rec.state == TUTTI_RECORD_DONE && rec.is_quick && rec.ended_ns == 0);
    assert_true(find_record(r, id[2], &rec));
    assert_int_equal(rec.state, TUTTI_RECORD_FAILED);
    assert_int_equal(rec.status, TUTTI_E_TIMEOUT);
    assert_int_equal(rec.late, 5);
    assert_int_equal(rec.waited_ns, 5000);
    assert_true(rec.ended_ns >= rec.began_ns);
    assert_true(find_record(r, id[3], &rec));
    assert_true(rec.is_async && rec.state == TUTTI_RECORD_DONE);
    assert_int_equal(rec.peer, 5);
    assert_int_equal(rec.tag, 7);
    assert_int_equal(rec.in_bytes, 80);
    assert_true(rec.began_ns >= rec.issued_ns && rec.ended_ns >= rec.began_ns);
    assert_true(find_record(r, id[4], &rec));
    assert_true(rec.state == TUTTI_RECORD_DONE && !rec.is_quick && rec.ended_ns >= rec.began_ns);
    assert_int_equal(rec.late, -1);
    tutti_recorder_close(r);
    tti_recorder_drop_group(&place);
}

static void ring_wraps(void **state)
{
    tti_ring_place       place = add_group("wrap", 2, NULL);
    tutti_record    rec = TUTTI_RECORD;
    tutti_recorder *r;
    uint64_t        last = 0, seq;
    int             i;

    (void)state;
    for (seq = 1; seq <= 3 * RING + 5; seq++)
        last = begin(place.index, seq);
    tti_record_end(last - RING, 0, TUTTI_E_PEER, true); /* its entry is another's by now */
    r = read_self();
    assert_int_equal(tutti_recorder_count_records(r), RING);
    for (i = 0; i < RING; i++) {
        assert_int_equal(tutti_recorder_get_record(r, i, &rec), TUTTI_OK);
        assert_int_equal(rec.id, last - RING + 1 + (uint64_t)i);
        assert_int_equal(rec.seq, 2 * RING + 6 + i);
        assert_int_equal(rec.state, TUTTI_RECORD_STARTED);
        assert_int_equal(rec.count, 3 * rec.seq);
    }
    assert_int_equal(tutti_recorder_get_record(r, RING, &rec), TUTTI_E_ARG);
    tutti_recorder_close(r);
    tti_recorder_drop_group(&place);
}

/* ---- reading while others write ---- */

enum { WRITERS = 2, READS = 200 };

static _Atomic bool over;

static void *write_on(void *arg)
{
    const unsigned place = *(unsigned *)arg;
    uint64_t       seq;

    for (seq = 1; !atomic_load(&over); seq++)
        tti_record_end(begin(place, seq), 0, TUTTI_OK, seq % 3 != 0);
    return NULL;
}

static void read_while_written(void **state)
{
    tti_ring_place       place = add_group("busy", 2, NULL);
    tutti_record    rec = TUTTI_RECORD;
    tutti_recorder *r = read_self();
    pthread_t       threads[WRITERS];
    int64_t         before;
    int             i, n, seen = 0;

    (void)state;
    atomic_store(&over, false);
    for (i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_on, &place.index), 0);
    for (n = 0; n < READS || seen == 0; n++) {
        assert_int_equal(tutti_recorder_update(r), TUTTI_OK);
        before = 0;
        for (i = 0; i < tutti_recorder_count_records(r); i++) {
            assert_int_equal(tutti_recorder_get_record(r, i, &rec), TUTTI_OK);
            assert_true(rec.issued_ns >= before);
            before = rec.issued_ns;
            if (rec.group < 0 || rec.kind != TUTTI_RECORD_ALL_REDUCE)
                continue;
            assert_int_equal(rec.count, 3 * rec.seq); /* of one record, not of two */
            assert_true(rec.state == TUTTI_RECORD_STARTED || rec.state == TUTTI_RECORD_DONE);
            seen++;
        }
    }
    atomic_store(&over, true);
    for (i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    tutti_recorder_close(r);
    tti_recorder_drop_group(&place);
}

/* The same through the addresses that the writer has, where a sanitizer sees both. */
static void copy_while_written(void **state)
{
    tti_ring_place            place = add_group("same", 2, NULL);
    const tti_ring      *ring = tti_ring_now();
    tutti_recorder_slot  slot;
    pthread_t            threads[WRITERS];
    int                  i, n, seen = 0;

    (void)state;
    atomic_store(&over, false);
    for (i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_on, &place.index), 0);
    for (n = 0; n < 100 * READS || seen == 0; n++)
        if (tti_record_copy(&ring->records[n % RING], &slot, sizeof slot) &&
            slot.seq >> TTI_SEQ_BITS ==
                tti_record_check(slot.id, slot.call, slot.seq, slot.place, slot.count, slot.began) &&
            (slot.call >> 32 & 0xffff) == place.index && slot.count == 3 * (slot.seq & TTI_SEQ_MASK))
            seen++;
    atomic_store(&over, true);
    for (i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    tti_recorder_drop_group(&place);
}

/* ---- groups ---- */

static void groups_have_members(void **state)
{
    const int            even[] = { 0, 2, 4, 6 };
    tti_ring_place            first = add_group("even", 4, even), all = add_group("all", 5, NULL), again;
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    tutti_record         rec = TUTTI_RECORD;
    tutti_recorder      *r;
    uint64_t             id = begin(first.index, 1);
    int                  i;

    (void)state;
    tti_recorder_fail_group(&first, TUTTI_E_PEER, "rank 2 is gone");
    tti_recorder_drop_group(&first);
    r = read_self();
    assert_true(find_group(r, "even", &g));
    assert_true(!g.is_there && g.has_failed && g.n_ranks == 4);
    assert_memory_equal(g.ranks, even, sizeof even);
    assert_string_equal(g.desc, "of a test");
    assert_true(find_group(r, "all", &g));
    assert_true(g.is_there && !g.has_failed && g.n_ranks == 5);
    for (i = 0; i < 5; i++)
        assert_int_equal(g.ranks[i], i);
    tutti_recorder_close(r);

    /* Its place is needed: the old record is not the new group's. */
    for (i = 0; i <= TTI_RECORDED_GROUPS; i++) {
        again = add_group("again", 2, NULL);
        assert_non_null(again.slot);
        tti_recorder_drop_group(&again);
    }
    r = read_self();
    assert_false(find_group(r, "even", &g));
    assert_true(find_record(r, id, &rec));
    assert_int_equal(rec.group, -1);
    tutti_recorder_close(r);
    tti_recorder_drop_group(&all);
}

static void lists_are_closed_up(void **state)
{
    enum { SIZE = TTI_RECORDED_RANKS / 4 };
    static int           ranks[SIZE];
    tti_ring_place            kept, place[8];
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    tutti_recorder      *r;
    int                  i;

    (void)state;
    for (i = 0; i < SIZE; i++)
        ranks[i] = 2 * i;
    kept = add_group("kept", 3, (const int[]){ 7, 8, 9 });
    for (i = 0; i < 8; i++) { /* twice as much as there is room for */
        place[i] = add_group(i == 7 ? "last" : "large", SIZE, ranks);
        assert_non_null(place[i].slot);
        if (i < 6)
            tti_recorder_drop_group(&place[i]);
    }
    r = read_self();
    assert_true(find_group(r, "kept", &g));
    assert_memory_equal(g.ranks, ((const int[]){ 7, 8, 9 }), 3 * sizeof(int));
    assert_true(find_group(r, "last", &g));
    assert_non_null(g.ranks);
    assert_memory_equal(g.ranks, ranks, sizeof ranks);
    tutti_recorder_close(r);
    tti_recorder_drop_group(&kept);
    tti_recorder_drop_group(&place[6]);
    tti_recorder_drop_group(&place[7]);
}

/* ---- ranges ---- */

static void ranges_add_up(void **state)
{
    tutti_range_total total = TUTTI_RANGE_TOTAL;
    tutti_record      rec = TUTTI_RECORD;
    tutti_recorder   *r;
    char             *table = NULL;
    int               i, found = 0;

    (void)state;
    assert_int_equal(tutti_profile_pop(), TUTTI_E_STATE);
    assert_int_equal(tutti_profile_push(""), TUTTI_E_ARG);
    for (i = 0; i < 3; i++) {
        assert_int_equal(tutti_profile_push("step"), TUTTI_OK);
        assert_int_equal(tutti_profile_push("forward"), TUTTI_OK);
        assert_int_equal(tutti_profile_pop(), TUTTI_OK);
        assert_int_equal(tutti_profile_pop(), TUTTI_OK);
    }
    for (i = 0; i < TUTTI_PROFILE_DEPTH_MAX; i++)
        assert_int_equal(tutti_profile_push("deep"), TUTTI_OK);
    assert_int_equal(tutti_profile_push("deeper"), TUTTI_E_STATE);
    for (i = 0; i < TUTTI_PROFILE_DEPTH_MAX; i++)
        assert_int_equal(tutti_profile_pop(), TUTTI_OK);

    r = read_self();
    for (i = 0; i < tutti_recorder_count_ranges(r); i++) {
        assert_int_equal(tutti_recorder_get_range(r, i, &total), TUTTI_OK);
        if (strcmp(total.name, "step") != 0)
            continue;
        found++;
        assert_int_equal(total.calls, 3);
        assert_true(total.total_ns > 0 && total.most_ns > 0 && total.most_ns <= total.total_ns);
    }
    assert_int_equal(found, 1);
    assert_int_equal(tutti_recorder_get_record(r, tutti_recorder_count_records(r) - 1, &rec), TUTTI_OK);
    assert_int_equal(rec.kind, TUTTI_RECORD_RANGE);
    assert_string_equal(rec.name, "deep");
    assert_int_equal(rec.thread, getpid());
    assert_true(rec.state == TUTTI_RECORD_DONE && rec.ended_ns >= rec.began_ns);
    assert_int_equal(tutti_recorder_table(r, &table), TUTTI_OK);
    assert_non_null(strstr(table, "forward"));
    free(table);
    tutti_recorder_close(r);
}

static void names_run_out(void **state)
{
    char            text[32];
    tutti_record    rec = TUTTI_RECORD;
    tutti_recorder *r;
    int             i;

    (void)state;
    for (i = 0; i < TTI_RECORDED_NAMES + 10; i++) {
        snprintf(text, sizeof text, "name %d", i);
        assert_int_equal(tutti_profile_push(text), TUTTI_OK);
        assert_int_equal(tutti_profile_pop(), TUTTI_OK);
    }
    r = read_self();
    assert_int_equal(tutti_recorder_get_record(r, tutti_recorder_count_records(r) - 1, &rec), TUTTI_OK);
    assert_string_equal(rec.name, "?");
    tutti_recorder_close(r);
}

/* ---- JSON ---- */

static json_t *parse(const tutti_recorder *r, const tutti_dump_options *opts)
{
    char   *text = NULL;
    json_t *json;

    assert_int_equal(tutti_recorder_json(r, opts, &text), TUTTI_OK);
    json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    free(text);
    return json;
}

static void json_has_the_known_form(void **state)
{
    const int          ranks[] = { 4, 6 };
    tti_ring_place          place = add_group("pair", 2, ranks);
    tti_record_facts   recv = { .kind = TUTTI_RECORD_RECV, .dtype = TUTTI_BF16, .peer = 0, .tag = 3, .count = 8, .seq = 9 };
    tutti_dump_options active = TUTTI_DUMP_OPTIONS;
    tutti_recorder    *r;
    json_t            *json, *entry;
    size_t             n;

    (void)state;
    tti_record_end(begin(place.index, 5), 0, TUTTI_OK, true);
    tti_record_write(tti_ring_now(), place.index, &recv, 0, TUTTI_RECORD_STARTED);
    r = read_self();
    json = parse(r, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "version")), "2.10");
    assert_string_equal(json_string_value(json_object_get(json_object_get(json_object_get(json, "pg_config"), "pair"),
                                                          "ranks")), "[4, 6]");
    n = json_array_size(json_object_get(json, "entries"));
    entry = json_array_get(json_object_get(json, "entries"), n - 2);
    assert_string_equal(json_string_value(json_object_get(entry, "profiling_name")), "native:all_reduce");
    assert_string_equal(json_string_value(json_object_get(entry, "state")), "completed");
    assert_int_equal(json_integer_value(json_object_get(entry, "collective_seq_id")), 5);
    entry = json_array_get(json_object_get(json, "entries"), n - 1);
    assert_string_equal(json_string_value(json_object_get(entry, "profiling_name")), "native:recv 1<-0");
    assert_string_equal(json_string_value(json_object_get(entry, "state")), "started");
    assert_true(json_is_true(json_object_get(entry, "is_p2p")));
    assert_string_equal(json_string_value(json_array_get(json_object_get(entry, "output_dtypes"), 0)), "BFloat16");
    json_decref(json);

    active.only_active = true;
    json = parse(r, &active);
    n = json_array_size(json_object_get(json, "entries"));
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(json, "entries"), n - 1), "op")),
                        "recv");
    for (; n > 0; n--)
        assert_string_not_equal(
            json_string_value(json_object_get(json_array_get(json_object_get(json, "entries"), n - 1), "state")),
            "completed");
    json_decref(json);
    tutti_recorder_close(r);
    tti_recorder_drop_group(&place);
}

/* ---- damage ---- */

/* Ask everything that can be asked. */
static void ask_all(const tutti_recorder *r)
{
    tutti_recorder_info  info = TUTTI_RECORDER_INFO;
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    tutti_record         rec = TUTTI_RECORD;
    tutti_range_total    total = TUTTI_RANGE_TOTAL;
    char                *text = NULL;
    volatile size_t      length = 0;
    int                  i;

    assert_int_equal(tutti_recorder_get_info(r, &info), TUTTI_OK);
    length += strlen(info.job) + strlen(info.host) + strlen(info.program) + strlen(info.failed_words);
    for (i = 0; i < tutti_recorder_count_groups(r); i++) {
        assert_int_equal(tutti_recorder_get_group(r, i, &g), TUTTI_OK);
        length += strlen(g.name) + strlen(g.desc) + strlen(g.world) + strlen(g.backend);
        length += g.ranks != NULL ? (size_t)g.ranks[g.n_ranks - 1] : 0;
    }
    for (i = 0; i < tutti_recorder_count_records(r); i++) {
        assert_int_equal(tutti_recorder_get_record(r, i, &rec), TUTTI_OK);
        length += strlen(rec.name) + strlen(rec.op);
    }
    for (i = 0; i < tutti_recorder_count_ranges(r); i++)
        assert_int_equal(tutti_recorder_get_range(r, i, &total), TUTTI_OK);
    assert_int_equal(tutti_recorder_json(r, NULL, &text), TUTTI_OK);
    free(text);
    assert_int_equal(tutti_recorder_table(r, &text), TUTTI_OK);
    free(text);
}

static void write_file(const char *path, const uint8_t *data, size_t bytes)
{
    FILE *out = fopen(path, "wb");

    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, bytes, out), bytes);
    assert_int_equal(fclose(out), 0);
}

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Bytes of the head, or of the first entry of a table. */
static void damage(uint8_t *bytes, const tutti_recorder_head *head, uint32_t seed)
{
    const uint64_t at[] = { 0, 0, 0, head->records_at, head->groups_at, head->names_at };
    int            i;

    for (i = 0; i < 1 + (int)(seed % 6); i++) {
        const uint64_t base = at[next(&seed) % 6];

        bytes[base + next(&seed) % 256] ^= (uint8_t)(1u << next(&seed) % 8);
    }
}

static void damage_is_found_or_harmless(void **state)
{
    enum { SEEDS = 1500 };
    char            path[64], broken[64];
    tutti_recorder *r = read_self(), *other = NULL;
    const tti_image *image = tti_recorder_image_of(r);
    uint8_t        *bytes = malloc(image->head.total_bytes);
    uint32_t        seed;
    int             refused = 0;

    (void)state;
    assert_non_null(bytes);
    snprintf(path, sizeof path, "%s/whole", folder);
    snprintf(broken, sizeof broken, "%s/broken", folder);
    assert_int_equal(tutti_recorder_save(r, path), TUTTI_OK);
    assert_int_equal(tutti_recorder_open_file(path, &other), TUTTI_OK);
    assert_int_equal(tutti_recorder_count_records(other), tutti_recorder_count_records(r));
    ask_all(other);
    tutti_recorder_close(other);
    for (seed = 1; seed <= SEEDS; seed++) {
        memcpy(bytes, image->bytes, image->head.total_bytes);
        damage(bytes, &image->head, seed);
        write_file(broken, bytes, seed % 7 == 0 ? seed * 97 % image->head.total_bytes : image->head.total_bytes);
        if (tutti_recorder_open_file(broken, &other) != TUTTI_OK) {
            refused++;
            continue;
        }
        ask_all(other);
        tutti_recorder_close(other);
    }
    assert_true(refused > SEEDS / 10 && refused < SEEDS);
    assert_int_equal(tutti_recorder_open_file(folder, &other), TUTTI_E_ARG);
    unlink(broken);
    unlink(path);
    free(bytes);
    tutti_recorder_close(r);
}

/* ---- the dead ---- */

/* In a child: take the memory that the parent has made, write, and be killed. */
static _Noreturn void record_and_die(int fd)
{
    char      text[16];
    tti_ring_place place;

    snprintf(text, sizeof text, "%d", fd);
    setenv("TUTTI_RECORDER_FD", text, 1);
    if (tti_recorder_start(2, 4) != TUTTI_OK || tti_ring_now() == NULL)
        _exit(3);
    place = add_group("last words", 4, NULL);
    tti_record_end(begin(place.index, 41), 0, TUTTI_OK, true);
    begin(place.index, 42);
    kill(getpid(), SIGKILL);
    _exit(4);
}

static void dead_are_read(void **state)
{
    tutti_recorder_info  info = TUTTI_RECORDER_INFO;
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    tutti_record         rec = TUTTI_RECORD;
    tutti_recorder      *r = NULL;
    int                  fd = -1, how = 0;
    pid_t                pid;

    (void)state;
    assert_null(tti_ring_now()); /* the child takes what was prepared */
    assert_int_equal(tti_recorder_prepare(&fd), TUTTI_OK);
    assert_true(fd >= 0);
    pid = fork();
    if (pid == 0)
        record_and_die(fd);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);

    assert_int_equal(tutti_recorder_open_pid(pid, &r), TUTTI_OK);
    assert_int_equal(tutti_recorder_get_info(r, &info), TUTTI_OK);
    assert_true(info.pid == pid && !info.is_alive && !info.has_left);
    assert_int_equal(info.rank, 2);
    assert_int_equal(info.world_size, 4);
    assert_int_equal(tutti_recorder_count_records(r), 2);
    assert_int_equal(tutti_recorder_get_record(r, 1, &rec), TUTTI_OK);
    assert_int_equal(rec.seq, 42);
    assert_int_equal(rec.state, TUTTI_RECORD_STARTED);
    assert_int_equal(rec.group, 0);
    assert_int_equal(tutti_recorder_get_group(r, 0, &g), TUTTI_OK);
    assert_string_equal(g.name, "last words");
    close(fd);
    assert_int_equal(tutti_recorder_update(r), TUTTI_OK); /* the reader holds it now */
    tutti_recorder_close(r);
    assert_int_equal(tutti_recorder_open_pid(pid, &r), TUTTI_E_STATE); /* nobody does */
    assert_non_null(strstr(tutti_last_error(), "nobody holds it"));
}

/* In a child: a signal that comes while the only thread does something else saves the ring. */
static _Noreturn void record_until_signal(void)
{
    char prefix[64];

    snprintf(prefix, sizeof prefix, "%s/trace_", folder);
    setenv("TUTTI_TRACE_FILE", prefix, 1);
    setenv("TUTTI_TRACE_SIGNAL", "USR2", 1);
    if (tti_recorder_start(3, 4) != TUTTI_OK)
        _exit(3);
    begin(add_group("signalled", 4, NULL).index, 7);
    raise(SIGUSR2);
    _exit(0);
}

static void signals_save(void **state)
{
    tutti_recorder_info info = TUTTI_RECORDER_INFO;
    tutti_record        rec = TUTTI_RECORD;
    tutti_recorder     *r = NULL;
    char                path[64];
    int                 how = 0;
    pid_t               pid = fork();

    (void)state;
    if (pid == 0)
        record_until_signal();
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    snprintf(path, sizeof path, "%s/trace_3.rec", folder);
    assert_int_equal(tutti_recorder_open_file(path, &r), TUTTI_OK);
    assert_int_equal(tutti_recorder_get_info(r, &info), TUTTI_OK);
    assert_true(info.pid == pid && info.rank == 3);
    assert_int_equal(tutti_recorder_count_records(r), 1);
    assert_int_equal(tutti_recorder_get_record(r, 0, &rec), TUTTI_OK);
    assert_int_equal(rec.seq, 7);
    tutti_recorder_close(r);
    unlink(path);
}

static void variables_are_checked(void **state)
{
    int how = 0, i;

    (void)state;
    for (i = 0; i < 3; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            setenv("TUTTI_TRACE_SIGNAL", i == 0 ? "SEGV" : "USR1", 1);
            if (i == 2)
                setenv("TUTTI_TRACE_BUFFER_SIZE", "many", 1);
            _exit(tti_recorder_start(0, 1) != TUTTI_E_ARG); /* what is no signal, has no file, is no number */
        }
        assert_int_equal(waitpid(pid, &how, 0), pid);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
}

/* A child of fork() writes nothing into its parent's ring, but may have one of its own. */
static void fork_forgets(void **state)
{
    const int       fd = tti_ring_now()->fd;
    tutti_recorder *own = NULL;
    uint64_t        issued;
    int             how = 0;
    pid_t           pid;

    (void)state;
    assert_int_equal(tutti_profile_push("of the parent"), TUTTI_OK);
    issued = tti_ring_now()->head->issued;
    pid = fork();
    if (pid == 0) {
        if (tti_ring_now() != NULL || tutti_profile_pop() != TUTTI_OK || fcntl(fd, F_GETFD) >= 0)
            _exit(2);
        tutti_profile_push("child");
        tutti_profile_pop();
        _exit(tti_ring_now() == NULL || tti_ring_now()->head->pid != getpid() || tti_ring_now()->head->issued != TTI_ID_BLOCK ||
              tutti_recorder_open_pid(0, &own) != TUTTI_OK);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    assert_int_equal(tti_ring_now()->head->issued, issued);
    assert_int_equal(tti_ring_now()->head->use, TUTTI_RECORDER_IN_USE);
    assert_int_equal(tutti_profile_pop(), TUTTI_OK);
}

static _Atomic bool enough;

static void *start_again_and_again(void *arg)
{
    (void)arg;
    while (!enough)
        if (tti_recorder_start(0, 1) != TUTTI_OK || tti_record_name(enough ? "a" : "b") > TTI_RECORDED_NAMES)
            return &enough;
    return NULL;
}

/* In a child: forks while another of its threads is inside; each of its children has to come through there, too. */
static _Noreturn void fork_while_locked(const char *recorded)
{
    pthread_t thread;
    int       i, how = 0;

    setenv("TUTTI_RECORDER", recorded, 1);
    if (pthread_create(&thread, NULL, start_again_and_again, NULL) != 0)
        _exit(3);
    for (i = 0; i < 60 && how == 0; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            alarm(20);
            _exit(tti_recorder_start(0, 1) != TUTTI_OK || (recorded[0] == '1' && tti_record_name("c") == 0));
        }
        if (waitpid(pid, &how, 0) != pid)
            _exit(3);
    }
    enough = true;
    pthread_join(thread, NULL);
    _exit(how != 0);
}

static void locks_are_whole_in_children(void **state)
{
    int how = 0, i;

    (void)state;
    for (i = 0; i < 2; i++) {
        pid_t pid = fork();

        if (pid == 0)
            fork_while_locked(i == 0 ? "0" : "1");
        assert_int_equal(waitpid(pid, &how, 0), pid);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
}

/* In a child: the first process of a namespace of its own, where it is number 1. */
static _Noreturn void record_as_first(int fd, int told)
{
    char  text[16];
    pid_t first;

    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
        _exit(77);
    snprintf(text, sizeof text, "%d", fd);
    setenv("TUTTI_RECORDER_FD", text, 1);
    first = fork();
    if (first != 0) {
        if (first < 0 || write(told, &first, sizeof first) != (ssize_t)sizeof first)
            _exit(77);
        waitpid(first, NULL, 0);
        _exit(0);
    }
    if (tti_recorder_start(0, 1) == TUTTI_OK)
        while (true)
            pause();
    _exit(3);
}

static void those_in_containers_are_alive(void **state)
{
    tutti_recorder_info info = TUTTI_RECORDER_INFO;
    tutti_recorder     *r = NULL;
    pid_t               pid, first = 0;
    int                 fd = -1, told[2], tries;

    (void)state;
    assert_int_equal(tti_recorder_prepare(&fd), TUTTI_OK);
    assert_int_equal(pipe(told), 0);
    pid = fork();
    if (pid == 0)
        record_as_first(fd, told[1]);
    close(told[1]);
    if (read(told[0], &first, sizeof first) == (ssize_t)sizeof first) { /* else no namespaces are to be had */
        for (tries = 0; tries < 2000 && tutti_recorder_open_pid(first, &r) != TUTTI_OK; tries++)
            usleep(10000);
        assert_non_null(r);
        assert_int_equal(tutti_recorder_get_info(r, &info), TUTTI_OK);
        assert_true(info.is_alive && info.pid == first && !info.is_file);
        assert_true(info.state == 'S' || info.state == 'R' || info.state == 'D'); /* the last: it has not come to its rest yet */
        kill(first, SIGKILL);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    if (first != 0) {
        assert_int_equal(tutti_recorder_update(r), TUTTI_OK); /* it is held here */
        assert_int_equal(tutti_recorder_get_info(r, &info), TUTTI_OK);
        assert_true(!info.is_alive && info.state == 'X');
        tutti_recorder_close(r);
    }
    close(told[0]);
    close(fd);
}

/* A file says when it was written, and what its process was then; whoever reads it later sees that. */
static void files_have_their_time(void **state)
{
    tutti_recorder_info then = TUTTI_RECORDER_INFO, now = TUTTI_RECORDER_INFO;
    tutti_recorder     *r = read_self();
    char                path[64];

    (void)state;
    snprintf(path, sizeof path, "%s/saved", folder);
    assert_int_equal(tutti_recorder_get_info(r, &then), TUTTI_OK);
    assert_int_equal(tutti_recorder_save(r, path), TUTTI_OK);
    tutti_recorder_close(r);
    usleep(20000); /* the clock goes on */
    assert_int_equal(tutti_recorder_open_file(path, &r), TUTTI_OK);
    assert_int_equal(tutti_recorder_get_info(r, &now), TUTTI_OK);
    assert_true(now.is_file && !then.is_file);
    assert_true(now.read_ns == then.read_ns && now.state == then.state && now.is_alive);
    assert_int_equal(tutti_recorder_save(r, path), TUTTI_OK); /* what was read from a file stays what it said */
    tutti_recorder_close(r);
    assert_int_equal(tutti_recorder_open_file(path, &r), TUTTI_OK);
    assert_int_equal(tutti_recorder_get_info(r, &now), TUTTI_OK);
    assert_true(now.read_ns == then.read_ns);
    tutti_recorder_close(r);
    unlink(path);
}

/* The files of writers that did not know what is behind failed_words, nor the worlds of groups. */
static void older_files_are_read(void **state)
{
    tutti_recorder_head  head;
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    tutti_recorder_info  info = TUTTI_RECORDER_INFO;
    tutti_recorder      *r = read_self();
    char                 path[64];
    int                  fd;

    (void)state;
    snprintf(path, sizeof path, "%s/older", folder);
    assert_int_equal(tutti_recorder_save(r, path), TUTTI_OK);
    tutti_recorder_close(r);
    fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &head, sizeof head, 0), sizeof head);
    head.head_bytes = offsetof(tutti_recorder_head, saved_ns);
    assert_int_equal(pwrite(fd, &head, sizeof head, 0), sizeof head);
    close(fd);
    assert_int_equal(tutti_recorder_open_file(path, &r), TUTTI_OK);
    assert_int_equal(tutti_recorder_get_info(r, &info), TUTTI_OK);
    assert_true(info.state == '\0' && !info.is_alive && info.is_file);
    assert_int_equal(tutti_recorder_get_group(r, 0, &g), TUTTI_OK);
    assert_true(g.follows == -1 && strlen(g.name) > 0);
    tutti_recorder_close(r);
    unlink(path);
}

static void own_dump(void **state)
{
    char    path[64];
    json_t *json;

    (void)state;
    snprintf(path, sizeof path, "%s/dump", folder);
    assert_int_equal(tutti_recorder_dump(path), TUTTI_OK);
    json = json_load_file(path, 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_integer_value(json_object_get(json, "pid")), getpid());
    json_decref(json);
    unlink(path);
    unsetenv("TUTTI_TRACE_FILE");
    assert_int_equal(tutti_recorder_dump(NULL), TUTTI_E_ARG);
}

/* A dump that a failure makes has its words, though its group has not failed of it yet, and says which record it was. */
static void a_failure_is_in_its_dump(void **state)
{
    tti_ring_place      place = add_group("late", 2, NULL);
    tutti_recorder_info info = TUTTI_RECORDER_INFO;
    tutti_recorder     *r;
    char                prefix[64], path[64], rec[64];
    json_t             *json;
    uint64_t            id;

    (void)state;
    snprintf(prefix, sizeof prefix, "%s/late-", folder);
    snprintf(path, sizeof path, "%s/late-1", folder);
    snprintf(rec, sizeof rec, "%s/late-1.rec", folder);
    setenv("TUTTI_TRACE_FILE", prefix, 1);
    tti_dump_begin_anew();
    tti_word_set(&tti_ring_now()->head->failed_id, 0);
    id = begin(place.index, 7);
    tti_record_end(id, 0, TUTTI_E_TIMEOUT, false);
    assert_int_equal(tti_recorder_dump_failure(tti_fail(TUTTI_E_TIMEOUT, "rank 0 is late")), TUTTI_E_TIMEOUT);
    unsetenv("TUTTI_TRACE_FILE");
    json = json_load_file(path, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "first_failure")), "rank 0 is late");
    json_decref(json);
    assert_int_equal(tutti_recorder_open_file(rec, &r), TUTTI_OK);
    assert_int_equal(tutti_recorder_get_info(r, &info), TUTTI_OK);
    assert_int_equal(info.saved_for, id);
    assert_string_equal(info.failed_words, "rank 0 is late");
    tutti_recorder_close(r);
    r = read_self(); /* the next look is one for no failure */
    assert_int_equal(tutti_recorder_save(r, rec), TUTTI_OK);
    tutti_recorder_close(r);
    assert_int_equal(tutti_recorder_open_file(rec, &r), TUTTI_OK);
    assert_int_equal(tutti_recorder_get_info(r, &info), TUTTI_OK);
    assert_int_equal(info.saved_for, 0);
    tutti_recorder_close(r);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(rec), 0);
}

/* Where the second file cannot be written, the first is still named, and nobody dumps it again. */
static void json_alone_is_a_dump(void **state)
{
    char         prefix[64], json[64], as_it_is[64];
    tutti_status st;

    (void)state;
    snprintf(prefix, sizeof prefix, "%s/failed-", folder);
    snprintf(json, sizeof json, "%s/failed-1", folder);
    snprintf(as_it_is, sizeof as_it_is, "%s/failed-1.rec", folder);
    assert_int_equal(mkdir(as_it_is, 0700), 0); /* which is no file to write to */
    setenv("TUTTI_TRACE_FILE", prefix, 1);
    tti_dump_begin_anew();
    tti_word_set(&tti_ring_now()->head->dumps, 0);
    st = tti_recorder_dump_failure(tti_fail(TUTTI_E_TIMEOUT, "it took too long"));
    assert_int_equal(st, TUTTI_E_TIMEOUT);
    assert_non_null(strstr(tutti_last_error(), "it took too long\n  recorder: '"));
    assert_non_null(strstr(tutti_last_error(), json));
    assert_int_equal(tti_word_get(&tti_ring_now()->head->dumps), 1);
    unsetenv("TUTTI_TRACE_FILE");
    assert_int_equal(unlink(json), 0);
    assert_int_equal(rmdir(as_it_is), 0);
}

/* An operation of the group fails: whether its words say that it was dumped, to path; NULL: anywhere. */
static bool is_dumped(unsigned group, const char *path)
{
    char said[128];

    snprintf(said, sizeof said, "\n  recorder: '%s%s", path != NULL ? path : "", path != NULL ? "'" : "");
    tti_record_end(begin(group, 9), 0, TUTTI_E_TIMEOUT, false);
    assert_int_equal(tti_recorder_dump_failure(tti_fail(TUTTI_E_TIMEOUT, "it is late")), TUTTI_E_TIMEOUT);
    return strstr(tutti_last_error(), said) != NULL;
}

static uint64_t saved_for(const char *path)
{
    tutti_recorder_info info = TUTTI_RECORDER_INFO;
    tutti_recorder     *r;

    assert_int_equal(tutti_recorder_open_file(path, &r), TUTTI_OK);
    assert_int_equal(tutti_recorder_get_info(r, &info), TUTTI_OK);
    tutti_recorder_close(r);
    return info.saved_for;
}

/* A group that was made after a dump has one of its own when it fails, beside the first: up to eight. */
static void who_goes_on_is_dumped_again(void **state)
{
    enum { MOST = 8 };
    tti_ring_place place = add_group("before", 2, NULL), other = add_group("beside", 2, NULL);
    char           prefix[64], path[64], rec[64];
    uint64_t       first;
    int            n;

    (void)state;
    snprintf(prefix, sizeof prefix, "%s/again-", folder);
    snprintf(path, sizeof path, "%s/again-1", folder);
    snprintf(rec, sizeof rec, "%s/again-1.rec", folder);
    setenv("TUTTI_TRACE_FILE", prefix, 1);
    tti_dump_begin_anew();
    assert_true(is_dumped(place.index, path));
    first = saved_for(rec);
    assert_false(is_dumped(place.index, NULL)); /* it has failed of the same */
    assert_false(is_dumped(other.index, NULL));
    assert_int_equal(saved_for(rec), first);
    for (n = 2; n <= MOST + 1; n++) {
        tti_recorder_drop_group(&place);
        place = add_group("after", 2, NULL);
        snprintf(path, sizeof path, "%s/again-1.%d", folder, n);
        snprintf(rec, sizeof rec, "%s/again-1.%d.rec", folder, n);
        assert_int_equal(is_dumped(place.index, n <= MOST ? path : NULL), n <= MOST);
        if (n <= MOST)
            assert_true(saved_for(rec) > first);
        else
            assert_int_equal(access(path, F_OK), -1);
        assert_false(is_dumped(place.index, NULL));
    }
    unsetenv("TUTTI_TRACE_FILE");
    for (n = 1; n <= MOST; n++) {
        if (n > 1)
            snprintf(path, sizeof path, "%s/again-1.%d", folder, n);
        else
            snprintf(path, sizeof path, "%s/again-1", folder);
        snprintf(rec, sizeof rec, "%.58s.rec", path);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(unlink(rec), 0);
    }
    tti_recorder_drop_group(&place);
    tti_recorder_drop_group(&other);
}

/* A pipe in the place of a dump is refused, at once, whether somebody reads it or not. */
static void pipes_hold_nobody(void **state)
{
    tti_ring_place place = add_group("piped", 2, NULL);
    char           prefix[64], path[64], got;
    int            reader = -1, i;

    (void)state;
    snprintf(prefix, sizeof prefix, "%s/pipe-", folder);
    snprintf(path, sizeof path, "%s/pipe-1", folder);
    setenv("TUTTI_TRACE_FILE", prefix, 1);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(60); /* who opens it and waits never comes back */
    for (i = 0; i < 2; i++) {
        tti_dump_begin_anew();
        assert_false(is_dumped(place.index, NULL));
        assert_int_equal(tutti_recorder_dump(path), TUTTI_E_IO);
        assert_non_null(strstr(tutti_last_error(), "is no regular file"));
        if (reader < 0)
            reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        assert_true(reader >= 0);
    }
    alarm(0);
    assert_true(read(reader, &got, 1) <= 0);
    close(reader);
    unsetenv("TUTTI_TRACE_FILE");
    assert_int_equal(unlink(path), 0);
    tti_recorder_drop_group(&place);
}

static int begin_ring(void **state)
{
    (void)state;
    return tti_recorder_start(1, 8) == TUTTI_OK && tti_ring_now() != NULL ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest before[] = { cmocka_unit_test(dead_are_read), cmocka_unit_test(signals_save),
                                         cmocka_unit_test(variables_are_checked), cmocka_unit_test(locks_are_whole_in_children),
                                         cmocka_unit_test(those_in_containers_are_alive) };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_and_fields), cmocka_unit_test(ring_wraps), cmocka_unit_test(read_while_written),
        cmocka_unit_test(copy_while_written), cmocka_unit_test(groups_have_members),
        cmocka_unit_test(lists_are_closed_up), cmocka_unit_test(ranges_add_up),
        cmocka_unit_test(json_has_the_known_form), cmocka_unit_test(damage_is_found_or_harmless),
        cmocka_unit_test(fork_forgets), cmocka_unit_test(files_have_their_time), cmocka_unit_test(older_files_are_read),
        cmocka_unit_test(own_dump), cmocka_unit_test(a_failure_is_in_its_dump), cmocka_unit_test(json_alone_is_a_dump),
        cmocka_unit_test(who_goes_on_is_dumped_again), cmocka_unit_test(pipes_hold_nobody),
        cmocka_unit_test(names_run_out),
    };
    int failed;

    setenv("TUTTI_TRACE_BUFFER_SIZE", "64", 1);
    if (mkdtemp(folder) == NULL)
        return 1;
    failed = cmocka_run_group_tests_name("the dead", before, NULL, NULL);
    failed += cmocka_run_group_tests_name("the living", tests, begin_ring, NULL);
    rmdir(folder);
    return failed;
}
