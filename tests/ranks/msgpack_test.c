/* SPDX-License-Identifier: BSD-3-Clause
 *
 * msgpack_test.c
 * Goal    msgpack values arrive as they were, by every call; what is no msgpack, or lies about its lengths, is
 *         an error on whoever got it, after which the group works.
 * Method  a map with the rank, a text and a nested array, compared with msgpack-c's own equality; bytes of the
 *         plain object calls in place of a value. */
#include <string.h>
#include "harness/harness.h"
#include <tutti/msgpack.h>
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { RANKS = 3 };

/* { "rank": rank, "text": [ rank bytes, [ 0.5, nil ] ] }, in memory of the harness. */
static msgpack_object value_of(tt_ctx *t, int rank)
{
    msgpack_object_kv *pairs = tt_alloc(t, 2 * sizeof *pairs);
    msgpack_object    *list = tt_alloc(t, 4 * sizeof *list);
    msgpack_object     map = { .type = MSGPACK_OBJECT_MAP, .via.map = { 2, pairs } };

    list[0] = (msgpack_object){ .type = MSGPACK_OBJECT_STR, .via.str = { (uint32_t)rank, "abcdef" } };
    list[1] = (msgpack_object){ .type = MSGPACK_OBJECT_ARRAY, .via.array = { 2, list + 2 } };
    list[2] = (msgpack_object){ .type = MSGPACK_OBJECT_FLOAT64, .via.f64 = 0.5 };
    list[3] = (msgpack_object){ .type = MSGPACK_OBJECT_NIL };
    pairs[0].key = (msgpack_object){ .type = MSGPACK_OBJECT_STR, .via.str = { 4, "rank" } };
    pairs[0].val = (msgpack_object){ .type = MSGPACK_OBJECT_POSITIVE_INTEGER, .via.u64 = (uint64_t)rank };
    pairs[1].key = (msgpack_object){ .type = MSGPACK_OBJECT_STR, .via.str = { 4, "text" } };
    pairs[1].val = (msgpack_object){ .type = MSGPACK_OBJECT_ARRAY, .via.array = { 2, list } };
    return map;
}

static void expect(tt_ctx *t, const tutti_msgpack *got, int n, int first)
{
    int i;

    assert_int_equal(got->n, n);
    for (i = 0; i < n; i++)
        assert_true(msgpack_object_equal(got->at[i], value_of(t, first + i)));
}

static void values_arrive_as_they_were(tt_ctx *t)
{
    const bool     root = t->rank == 1;
    msgpack_object own = value_of(t, t->rank);
    msgpack_object list[RANKS] = { value_of(t, 0), value_of(t, 1), value_of(t, 2) };
    tutti_msgpack  got = TUTTI_MSGPACK_NONE;
    int            src = -1;

    OK(tutti_all_gather_msgpack(&own, t->group, &got));
    expect(t, &got, RANKS, 0);
    tutti_msgpack_free(&got);
    tutti_msgpack_free(&got);
    OK(tutti_gather_msgpack(&own, 1, t->group, root ? &got : NULL));
    expect(t, &got, root ? RANKS : 0, 0);
    tutti_msgpack_free(&got);
    OK(tutti_broadcast_msgpack_list(root ? list : NULL, RANKS, 1, t->group, root ? NULL : &got));
    expect(t, &got, root ? 0 : RANKS, 0);
    tutti_msgpack_free(&got);
    OK(tutti_broadcast_msgpack_list(NULL, 0, 1, t->group, root ? NULL : &got));
    assert_int_equal(got.n, 0);
    tutti_msgpack_free(&got);
    OK(tutti_scatter_msgpack_list(root ? list : NULL, root ? RANKS : 0, 1, t->group, &got));
    expect(t, &got, 1, t->rank);
    tutti_msgpack_free(&got);
    if (t->rank == 0) {
        OK(tutti_recv_msgpack_list(TUTTI_ANY_SOURCE, 3, t->group, &got, &src));
        expect(t, &got, RANKS, 0);
        assert_int_equal(src, 2);
        tutti_msgpack_free(&got);
    } else if (t->rank == 2) {
        OK(tutti_send_msgpack_list(list, RANKS, 0, 3, t->group));
    }
    OK(tutti_all_gather_msgpack(&own, TUTTI_NON_MEMBER, &got));
    assert_null(got.at);
    OK(tutti_barrier(t->group));
}

/* Rank 2 brings plain bytes: an array that claims 2^32 - 1 values. */
static void what_cannot_be_read_is_an_error_where_it_came(tt_ctx *t)
{
    const tutti_bytes liar = tutti_bytes_of("\xdd\xff\xff\xff\xff", 5);
    msgpack_object    own = value_of(t, t->rank);
    tutti_msgpack     got = TUTTI_MSGPACK_NONE;
    tutti_objects     bytes = TUTTI_OBJECTS_NONE;

    if (t->rank == 2) {
        OK(tutti_all_gather_object(liar.data, liar.size, t->group, &bytes));
        assert_int_equal(tutti_msgpack_unpack(&bytes, &got), TUTTI_E_MISMATCH);
        assert_int_equal(bytes.n, RANKS); /* not taken */
        tutti_objects_free(&bytes);
        OK(tutti_send_object_list(&liar, 1, 0, 0, t->group));
    } else {
        assert_int_equal(tutti_all_gather_msgpack(&own, t->group, &got), TUTTI_E_MISMATCH);
        assert_non_null(strstr(tutti_last_error(), "of rank 2"));
    }
    if (t->rank == 0) {
        assert_int_equal(tutti_recv_msgpack_list(2, 0, t->group, &got, NULL), TUTTI_E_MISMATCH);
        assert_non_null(strstr(tutti_last_error(), "of rank 2"));
    }
    OK(tutti_all_gather_msgpack(&own, t->group, &got));
    expect(t, &got, RANKS, 0);
    tutti_msgpack_free(&got);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(values_arrive_as_they_were, .ranks = RANKS, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(values_arrive_as_they_were, .ranks = RANKS, .hosts = 2, .limit_ms = 60000),
        TT_TEST(what_cannot_be_read_is_an_error_where_it_came, .ranks = RANKS, .transports = "shm,tcp,threads",
                .limit_ms = 60000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
