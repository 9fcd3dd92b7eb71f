/* SPDX-License-Identifier: BSD-3-Clause
 *
 * objects_test.c
 * Goal    objects of any sizes arrive whole on whom they are for, aligned and with a NUL behind them; lists and
 *         objects may be empty; what ranks disagree about, and what is larger than allowed, is the same error
 *         on all ranks, after which the group works.
 * Method  byte i of rank r's object k has a value of its own; sizes from none to several pieces of a message,
 *         different on each rank. Groups of some ranks have other ranks than the world. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

#define REFUSED(call, status, word)                                                                    \
    do {                                                                                               \
        assert_int_equal((call), (status));                                                            \
        if (strstr(tutti_last_error(), (word)) == NULL)                                                \
            fail_msg("'%s' is not in: %s", (word), tutti_last_error());                                \
    } while (0)

enum { LARGE = 9 * 1024 * 1024 + 5 };
static const size_t sizes[] = { 0, 1, 15, 16, 17, 1000, 300001 };
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

static uint8_t value_of(size_t i, int rank, int k)
{
    return (uint8_t)(i * 7 + i / 251 + (size_t)rank * 31 + (size_t)k * 101 + 1);
}

static tutti_bytes make(tt_ctx *t, size_t size, int rank, int k)
{
    tutti_bytes made = { .data = tt_alloc(t, size + 1), .size = size };
    size_t      i;

    for (i = 0; i < size; i++)
        ((uint8_t *)made.data)[i] = value_of(i, rank, k);
    return made;
}

static void expect(const tutti_bytes *got, size_t size, int rank, int k)
{
    const uint8_t *data = got->data;
    size_t         i;

    assert_int_equal(got->size, size);
    assert_non_null(data);
    assert_int_equal((uintptr_t)data % 16, 0);
    for (i = 0; i < size; i++)
        if (data[i] != value_of(i, rank, k))
            fail_msg("byte %zu of %zu of rank %d's object %d is %d", i, size, rank, k, data[i]);
    assert_int_equal(data[size], 0);
}

static size_t size_for(int rank, int k)
{
    return sizes[(size_t)(rank * 3 + k) % N_SIZES];
}

/* ---- collectives, on the world or on a group whose members are told as global ranks ---- */

static void gather_everywhere(tt_ctx *t, tutti_group *group, int size, int k)
{
    tutti_bytes   own = make(t, size_for(t->rank, k), t->rank, k);
    tutti_objects got = TUTTI_OBJECTS_NONE;
    int           r;

    OK(tutti_all_gather_object(own.data, own.size, group, &got));
    assert_int_equal(got.n, size);
    for (r = 0; r < size; r++) {
        const int global = tutti_get_global_rank(group, r);

        expect(&got.at[r], size_for(global, k), global, k);
    }
    tutti_objects_free(&got);
    assert_null(got.at);
    tutti_objects_free(&got);
}

static void gather_on(tt_ctx *t, tutti_group *group, int size, int k, int root, bool in_group)
{
    const int     dst = tutti_get_global_rank(group, root);
    tutti_bytes   own = make(t, size_for(t->rank, k), t->rank, k);
    tutti_objects got = TUTTI_OBJECTS_NONE;
    int           r;

    if (in_group)
        OK(tutti_gather_object_in_group(own.data, own.size, root, group, t->rank == dst ? &got : NULL));
    else
        OK(tutti_gather_object(own.data, own.size, dst, group, t->rank == dst ? &got : NULL));
    assert_int_equal(got.n, t->rank == dst ? size : 0);
    for (r = 0; r < got.n; r++) {
        const int global = tutti_get_global_rank(group, r);

        expect(&got.at[r], size_for(global, k), global, k);
    }
    tutti_objects_free(&got);
}

static void broadcast_from(tt_ctx *t, tutti_group *group, int n, int root, bool in_group)
{
    const int     src = tutti_get_global_rank(group, root);
    const bool    mine = t->rank == src;
    tutti_bytes  *list = tt_alloc(t, ((size_t)n + 1) * sizeof *list);
    tutti_objects got = TUTTI_OBJECTS_NONE;
    int           k;

    for (k = 0; k < n && mine; k++)
        list[k] = make(t, size_for(src, k), src, k);
    if (in_group)
        OK(tutti_broadcast_object_list_in_group(mine ? list : NULL, n, root, group, mine ? NULL : &got));
    else
        OK(tutti_broadcast_object_list(mine ? list : NULL, n, src, group, mine ? NULL : &got));
    assert_int_equal(got.n, mine ? 0 : n);
    for (k = 0; k < got.n; k++)
        expect(&got.at[k], size_for(src, k), src, k);
    tutti_objects_free(&got);
}

static void scatter_from(tt_ctx *t, tutti_group *group, int size, int root, bool in_group)
{
    const int     src = tutti_get_global_rank(group, root);
    const bool    mine = t->rank == src;
    const int     group_rank = tutti_get_rank(group);
    tutti_bytes  *list = tt_alloc(t, (size_t)size * sizeof *list);
    tutti_objects got = TUTTI_OBJECTS_NONE;
    int           r;

    for (r = 0; r < size && mine; r++)
        list[r] = make(t, size_for(src, r), src, r);
    if (in_group)
        OK(tutti_scatter_object_list_in_group(mine ? list : NULL, mine ? size : 0, root, group, &got));
    else
        OK(tutti_scatter_object_list(mine ? list : NULL, mine ? size : 0, src, group, &got));
    assert_int_equal(got.n, 1);
    expect(&got.at[0], size_for(src, group_rank), src, group_rank);
    tutti_objects_free(&got);
}

static void every_call_on(tt_ctx *t, tutti_group *group)
{
    const int size = tutti_get_world_size(group);
    int       root, k;

    for (k = 0; k < N_SIZES; k++)
        gather_everywhere(t, group, size, k);
    for (root = 0; root < size; root++) {
        gather_on(t, group, size, root, root, false);
        gather_on(t, group, size, root + 1, root, true);
        broadcast_from(t, group, N_SIZES, root, false);
        broadcast_from(t, group, 1, root, true);
        broadcast_from(t, group, 0, root, false);
        scatter_from(t, group, size, root, false);
        scatter_from(t, group, size, root, true);
    }
}

static void unequal_sizes_and_empty_lists(tt_ctx *t)
{
    every_call_on(t, t->group);
}

static void roots_of_subgroups_are_global_ranks(tt_ctx *t)
{
    const int     members[] = { 3, 1 };
    tutti_group  *group = TUTTI_NO_GROUP;
    tutti_objects got = TUTTI_OBJECTS_NONE;
    int           src = 5;

    if (t->group != NULL)
        tutti_use_group(t->group);
    OK(tutti_new_group(members, 2, NULL, &group));
    if (group != TUTTI_NON_MEMBER) {
        every_call_on(t, group);
        REFUSED(tutti_gather_object("x", 1, 0, group, NULL), TUTTI_E_ARG, "dst 0 is not in the group");
        REFUSED(tutti_gather_object_in_group("x", 1, 2, group, NULL), TUTTI_E_ARG, "outside of 0 .. 1");
    } else {
        OK(tutti_all_gather_object("x", 1, group, &got));
        OK(tutti_gather_object("x", 1, 1, group, &got));
        OK(tutti_broadcast_object_list(NULL, 3, 1, group, &got));
        OK(tutti_scatter_object_list(NULL, 0, 1, group, &got));
        OK(tutti_send_object_list(NULL, 0, 1, 0, group));
        OK(tutti_recv_object_list(1, 0, group, &got, &src));
        assert_null(got.at);
        assert_int_equal(src, -1);
    }
    OK(tutti_barrier(t->group));
}

/* ---- messages ---- */

static void lists_travel_whole(tt_ctx *t)
{
    const size_t  lengths[] = { 0, LARGE, 16, 0, 100 };
    enum { N = sizeof lengths / sizeof lengths[0] };
    tutti_bytes   list[N];
    tutti_objects got = TUTTI_OBJECTS_NONE;
    int           k, src = -1;

    for (k = 0; k < N; k++)
        list[k] = make(t, lengths[k], 1, k);
    if (t->rank == 1) {
        OK(tutti_send_object_list(list, N, 0, 7, t->group));
        OK(tutti_send_object_list(NULL, 0, 0, 8, t->group));
        OK(tutti_send_object_list_in_group(list + 4, 1, 0, 7, t->group));
    } else if (t->rank == 0) {
        OK(tutti_recv_object_list(1, 8, t->group, &got, &src)); /* tags do not wait for each other */
        assert_int_equal(got.n, 0);
    }
    if (t->rank == 0) {
        OK(tutti_recv_object_list(1, 7, t->group, &got, &src));
        assert_int_equal(got.n, N);
        assert_int_equal(src, 1);
        for (k = 0; k < N; k++)
            expect(&got.at[k], lengths[k], 1, k);
        tutti_objects_free(&got);
        OK(tutti_recv_object_list_in_group(1, 7, t->group, &got, NULL));
        expect(&got.at[0], 100, 1, 4);
        tutti_objects_free(&got);
    }
    OK(tutti_barrier(t->group));
}

/* All others send at once, several lists of several pieces: no list may be mixed with another. */
static void any_source_keeps_to_one_sender(tt_ctx *t)
{
    enum { ROUNDS = 3 };
    tutti_bytes   list[2];
    tutti_objects got = TUTTI_OBJECTS_NONE;
    int           seen[TT_RANKS_MAX] = { 0 };
    int           i, src = -1;

    if (t->rank != 0) {
        for (i = 0; i < ROUNDS; i++) {
            list[0] = make(t, 4, t->rank, i);
            list[1] = make(t, (5u << 20) + (size_t)t->rank, t->rank, i);
            OK(tutti_send_object_list(list, 2, 0, 0, t->group));
        }
    }
    for (i = 0; t->rank == 0 && i < ROUNDS * (t->size - 1); i++) {
        if (i % 2 == 0)
            OK(tutti_recv_object_list(TUTTI_ANY_SOURCE, 0, t->group, &got, &src));
        else
            OK(tutti_recv_object_list_in_group(TUTTI_ANY_SOURCE, 0, t->group, &got, &src));
        assert_in_range(src, 1, t->size - 1);
        assert_int_equal(got.n, 2);
        expect(&got.at[0], 4, src, seen[src]);
        expect(&got.at[1], (5u << 20) + (size_t)src, src, seen[src]);
        seen[src]++;
        tutti_objects_free(&got);
    }
    OK(tutti_barrier(t->group));
}

/* ---- what ranks disagree about ---- */

static void disagreement_is_an_error_on_all_ranks(tt_ctx *t)
{
    const bool        first = t->rank == 0;
    const tutti_bytes list[] = { tutti_bytes_of("a", 1), tutti_bytes_of("bc", 2), { NULL, 0 } };
    tutti_objects     got = TUTTI_OBJECTS_NONE;
    tutti_status      st;

    st = first ? tutti_all_gather_object("x", 1, t->group, &got)
               : tutti_gather_object("x", 1, 0, t->group, NULL);
    REFUSED(st, TUTTI_E_MISMATCH, "rank 0 calls all_gather_object, rank 1 gather_object");
    st = first ? tutti_broadcast_object_list(list, 3, 0, t->group, NULL)
               : tutti_broadcast_object_list(NULL, 2, 0, t->group, &got);
    REFUSED(st, TUTTI_E_MISMATCH, "the list has 3 objects on rank 0, 2 on rank 1");
    st = first ? tutti_broadcast_object_list(NULL, 0, 0, t->group, NULL)
               : tutti_broadcast_object_list(NULL, 2, 0, t->group, &got);
    REFUSED(st, TUTTI_E_MISMATCH, "the list has 0 objects on rank 0, 2 on rank 1");
    st = tutti_broadcast_object_list(t->rank <= 1 ? list : NULL, 3, first ? 0 : 1, t->group,
                                     t->rank <= 1 ? NULL : &got);
    REFUSED(st, TUTTI_E_MISMATCH, "the root is 0 on rank 0, 1 on rank 1");
    assert_null(got.at);
    gather_everywhere(t, t->group, t->size, 3);
}

/* Rank 1 alone keeps to a limit: all do. Ranks are processes here, each with its own environment. */
static void limits_hold_on_all_ranks(tt_ctx *t)
{
    tutti_bytes   own = make(t, t->rank == 2 ? 1001 : 10, t->rank, 0);
    tutti_bytes   list[3] = { own, own, own };
    tutti_objects got = TUTTI_OBJECTS_NONE;
    const bool    root = t->rank == 2;

    if (t->rank == 1)
        setenv("TUTTI_OBJECT_MAX", "1000", 1);
    REFUSED(tutti_all_gather_object(own.data, own.size, t->group, &got), TUTTI_E_ARG,
            "an object of rank 2 has 1001 bytes, the limit is 1000");
    REFUSED(tutti_gather_object(own.data, own.size, 0, t->group, t->rank == 0 ? &got : NULL), TUTTI_E_ARG,
            "the limit is 1000");
    REFUSED(tutti_broadcast_object_list(root ? list : NULL, 3, 2, t->group, root ? NULL : &got), TUTTI_E_ARG,
            "the limit is 1000");
    REFUSED(tutti_scatter_object_list(root ? list : NULL, root ? 3 : 0, 2, t->group, &got), TUTTI_E_ARG,
            "the limit is 1000");
    OK(tutti_all_gather_object(own.data, own.size < 1000 ? own.size : 1000, t->group, &got));
    tutti_objects_free(&got);
    if (t->rank == 1)
        setenv("TUTTI_OBJECTS_MAX", "1019", 1);
    REFUSED(tutti_all_gather_object(own.data, own.size < 1000 ? own.size : 1000, t->group, &got), TUTTI_E_ARG,
            "the objects of all ranks have 1020 bytes together, the limit is 1019");
    if (t->rank == 1)
        setenv("TUTTI_OBJECTS_MAX", "many", 1);
    if (t->rank == 1)
        REFUSED(tutti_all_gather_object("x", 1, t->group, &got), TUTTI_E_ARG, "TUTTI_OBJECTS_MAX is 'many'");
    else
        REFUSED(tutti_all_gather_object("x", 1, t->group, &got), TUTTI_E_REMOTE,
                "rank 1 could not make its objects [TUTTI_E_ARG]");
    unsetenv("TUTTI_OBJECTS_MAX");
    unsetenv("TUTTI_OBJECT_MAX");
    gather_everywhere(t, t->group, t->size, 2);
}

static void lists_that_are_too_large_are_dropped(tt_ctx *t)
{
    const tutti_bytes small = tutti_bytes_of("after", 5);
    tutti_objects     got = TUTTI_OBJECTS_NONE;
    uint8_t           other[32] = { 1 };
    tutti_bytes       list[2];

    if (t->rank == 1) {
        list[0] = make(t, LARGE, 1, 0);
        list[1] = small;
        OK(tutti_send_object_list(list, 2, 0, 0, t->group));
        OK(tutti_send_object_list(&small, 1, 0, 0, t->group));
        OK(tutti_send(TUTTI_SPAN(other, 32), 0, 0, t->group));
        OK(tutti_send_object_list(&small, 1, 0, 0, t->group));
        setenv("TUTTI_OBJECT_MAX", "4", 1);
        REFUSED(tutti_send_object_list(&small, 1, 0, 0, t->group), TUTTI_E_ARG, "has 5 bytes, the limit is 4");
    } else {
        setenv("TUTTI_OBJECT_MAX", "1000", 1);
        REFUSED(tutti_recv_object_list(1, 0, t->group, &got, NULL), TUTTI_E_ARG, "the limit is 1000");
        OK(tutti_recv_object_list(1, 0, t->group, &got, NULL));
        assert_string_equal(got.at[0].data, "after");
        tutti_objects_free(&got);
        REFUSED(tutti_recv_object_list(1, 0, t->group, &got, NULL), TUTTI_E_MISMATCH, "sent no list of objects");
        OK(tutti_recv_object_list(1, 0, t->group, &got, NULL));
        assert_string_equal(got.at[0].data, "after");
        tutti_objects_free(&got);
    }
    unsetenv("TUTTI_OBJECT_MAX");
    OK(tutti_barrier(t->group));
}

/* Heads and tables that say what cannot be are refused before memory is taken for them. */
static void hostile_lengths_take_no_memory(tt_ctx *t)
{
    static const uint64_t heads[][3] = { { UINT64_MAX, 1, 1 },
                                         { (1u << 20) + 1, 1, 1 },
                                         { 1, 2, 1 },
                                         { 1, UINT64_C(1) << 62, UINT64_C(1) << 62 } };
    const int64_t         tables[][2] = { { -1, 9 }, { INT64_MAX, 1 }, { 4, 3 }, { 9, 0 } };
    enum { N_HEADS = sizeof heads / sizeof heads[0], N_TABLES = sizeof tables / sizeof tables[0] };
    const uint64_t told[3] = { 2, 8, 8 };
    tutti_objects  got = TUTTI_OBJECTS_NONE;
    uint8_t        bytes[32] = { 'T', 'T', 'O', 'B', 1 };
    size_t         i;

    for (i = 0; i < N_HEADS + N_TABLES; i++) {
        if (t->rank == 1) {
            memcpy(bytes + 8, i < N_HEADS ? heads[i] : told, 24); /* little-endian, as this machine */
            OK(tutti_send(TUTTI_SPAN(bytes, 32), 0, 0, t->group));
            if (i >= N_HEADS)
                OK(tutti_send(tutti_span_of(tables[i - N_HEADS], 2, TUTTI_I64), 0, 0, t->group));
        } else {
            REFUSED(tutti_recv_object_list(1, 0, t->group, &got, NULL), TUTTI_E_MISMATCH,
                    i < N_HEADS ? "announces" : "do not add up to the 8 bytes");
        }
    }
    OK(tutti_barrier(t->group));
}

static void wrong_arguments_are_refused(tt_ctx *t)
{
    const tutti_bytes bad[] = { tutti_bytes_of("a", 1), { NULL, 2 } };
    const bool        root = t->rank == 0;
    tutti_objects     got = TUTTI_OBJECTS_NONE;

    REFUSED(tutti_all_gather_object(NULL, 3, t->group, &got), TUTTI_E_ARG, "3 bytes, but its data is NULL");
    REFUSED(tutti_all_gather_object("x", 1, t->group, NULL), TUTTI_E_ARG, "objects_out is NULL");
    REFUSED(tutti_gather_object("x", 1, 9, t->group, &got), TUTTI_E_ARG, "dst 9 is not in the group");
    REFUSED(tutti_gather_object("x", 1, 0, t->group, root ? NULL : &got), TUTTI_E_ARG, "objects_out is");
    REFUSED(tutti_broadcast_object_list(bad, root ? 2 : 1, 0, t->group, &got), TUTTI_E_ARG,
            root ? "object 1 has 2 bytes" : "a list is given on rank 1");
    REFUSED(tutti_broadcast_object_list(NULL, root ? 2 : -1, 0, t->group, &got), TUTTI_E_ARG,
            root ? "is NULL" : "a list of -1 objects");
    REFUSED(tutti_scatter_object_list(root ? bad : NULL, 1, 0, t->group, &got), TUTTI_E_ARG, "a list of 1 objects");
    REFUSED(tutti_send_object_list(bad, 2, 1 - t->rank, 0, t->group), TUTTI_E_ARG, "object 1 has 2 bytes");
    REFUSED(tutti_send_object_list(bad, 1, t->rank, 0, t->group), TUTTI_E_ARG, "this rank itself");
    REFUSED(tutti_recv_object_list(t->rank, 0, t->group, &got, NULL), TUTTI_E_ARG, "this rank itself");
    REFUSED(tutti_recv_object_list(1 - t->rank, 0, t->group, NULL, NULL), TUTTI_E_ARG, "objects_out is NULL");
    REFUSED(tutti_recv_object_list_in_group(7, 0, t->group, &got, NULL), TUTTI_E_ARG, "outside of 0 .. 1");
    REFUSED(tutti_all_gather_object("x", 1, TUTTI_NO_GROUP, &got), TUTTI_E_STATE, "");
    gather_everywhere(t, t->group, t->size, 1); /* nothing of it took a number */
}

static inline bool failed_at_once(tutti_status st)
{
    return st != TUTTI_OK && st != TUTTI_E_TIMEOUT;
}

/* Rank 1 may take no more memory than it has, and 16 MiB. */
static void a_rank_without_memory_ends_the_group(tt_ctx *t)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)t; /* they need address space without end */
#else
    const size_t  size = 64u << 20;
    uint8_t      *data = t->rank == 0 ? tt_alloc(t, size) : NULL;
    FILE         *statm = fopen("/proc/self/statm", "r");
    tutti_objects got = TUTTI_OBJECTS_NONE;
    struct rlimit limit;
    long long     pages = 0;

    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lld", &pages), 1);
    fclose(statm);
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (16u << 20);
    if (t->rank == 1)
        assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    if (t->rank == 1)
        REFUSED(tutti_all_gather_object(data, 0, t->group, &got), TUTTI_E_NOMEM, "no memory for 3 objects");
    else
        assert_true(failed_at_once(tutti_all_gather_object(data, data != NULL ? size : 0, t->group, &got)));
    assert_null(got.at);
    assert_int_not_equal(tutti_barrier(t->group), TUTTI_OK);
#endif
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(unequal_sizes_and_empty_lists, .ranks = 4, .transports = "shm,tcp,threads,threads-tcp",
                .limit_ms = 90000),
        TT_TEST(unequal_sizes_and_empty_lists, .ranks = 1, .transports = "threads", .limit_ms = 60000),
        TT_TEST(unequal_sizes_and_empty_lists, .ranks = 4, .hosts = 2, .limit_ms = 90000),
        TT_TEST(roots_of_subgroups_are_global_ranks, .ranks = 4, .transports = "shm,tcp,threads",
                .limit_ms = 60000),
        TT_TEST(lists_travel_whole, .ranks = 3, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(lists_travel_whole, .ranks = 2, .hosts = 2, .limit_ms = 60000),
        TT_TEST(any_source_keeps_to_one_sender, .ranks = 4, .transports = "shm,tcp,threads-tcp",
                .limit_ms = 60000),
        TT_TEST(disagreement_is_an_error_on_all_ranks, .ranks = 3, .transports = "shm,tcp,threads",
                .limit_ms = 60000),
        TT_TEST(limits_hold_on_all_ranks, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(lists_that_are_too_large_are_dropped, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(hostile_lengths_take_no_memory, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(wrong_arguments_are_refused, .ranks = 2, .transports = "threads", .limit_ms = 60000),
        TT_TEST(a_rank_without_memory_ends_the_group, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
