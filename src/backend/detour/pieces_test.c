/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pieces_test.c
 * Goal    every element of a call is in one piece, all ranks cut alike, a piece keeps to its bytes, and what is fetched and returned
 *         is what the kind of call gives and gets.
 * Method  calls of all kinds over memory of the host; a copy that counts, and one that moves. */
#include "backend/detour/pieces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS_MOST = 5, LARGE = TTI_PIECE_BYTES / 4 };

static const tutti_call_kind even_kinds[] = {
    TUTTI_CALL_ALL_REDUCE, TUTTI_CALL_BROADCAST, TUTTI_CALL_REDUCE, TUTTI_CALL_ALL_GATHER,
    TUTTI_CALL_GATHER, TUTTI_CALL_SCATTER, TUTTI_CALL_REDUCE_SCATTER,
};

enum { N_EVEN = sizeof even_kinds / sizeof even_kinds[0] };

static tutti_call call_of(tutti_call_kind kind, int64_t count)
{
    return (tutti_call){ .kind = kind, .dtype = TUTTI_F32, .op = TUTTI_SUM, .root = 0, .count = count, .device = TUTTI_CUDA };
}

/* Pieces follow each other without gaps, and none takes more than it may. */
static void assert_cut(const tutti_call *call, int rank, int n_ranks)
{
    tti_pieces pieces = tti_pieces_of(call, rank, n_ranks), other = tti_pieces_of(call, (rank + 1) % n_ranks, n_ranks);
    tti_piece  piece, same;
    int64_t    at = 0;

    while (tti_pieces_next(&pieces, &piece)) {
        assert_true(tti_pieces_next(&other, &same));
        assert_true(same.segment == piece.segment && same.first == piece.first && same.n == piece.n);
        assert_int_equal(piece.first, at);
        assert_true(piece.n > 0 || call->count == 0);
        assert_true(tti_piece_bytes(&pieces, &piece) <= TTI_PIECE_BYTES);
        at += piece.n;
    }
    assert_false(tti_pieces_next(&other, &same));
    assert_int_equal(at, call->count);
}

static void test_all_of_it(void **state)
{
    static const int64_t counts[] = { 0, 1, 1000, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE, 10 * LARGE + 17 };
    tutti_call           call;
    size_t               i;
    int                  k, n;

    (void)state;
    for (k = 0; k < N_EVEN; k++)
        for (i = 0; i < sizeof counts / sizeof counts[0]; i++)
            for (n = 1; n <= RANKS_MOST; n++) {
                call = call_of(even_kinds[k], counts[i]);
                assert_cut(&call, 0, n);
            }
}

/* Of more ranks than a piece has room for there is still one element of each. */
static void test_many_ranks(void **state)
{
    const tutti_call call = call_of(TUTTI_CALL_ALL_GATHER, 2);
    tti_pieces       pieces = tti_pieces_of(&call, 0, TTI_PIECE_BYTES);
    tti_piece        piece;

    (void)state;
    assert_true(tti_pieces_next(&pieces, &piece));
    assert_int_equal(piece.n, 1);
    assert_true(tti_pieces_next(&pieces, &piece));
    assert_int_equal(piece.n, 1);
    assert_false(tti_pieces_next(&pieces, &piece));
}

static int64_t first_of(int64_t count)
{
    const tutti_call call = call_of(TUTTI_CALL_ALL_REDUCE, count);
    tti_pieces       pieces = tti_pieces_of(&call, 0, 2);
    tti_piece        piece;

    assert_true(tti_pieces_next(&pieces, &piece));
    return piece.n;
}

/* Who has another count has another first piece, also where both are so many whole pieces. */
static void test_first_tells_count(void **state)
{
    int64_t i, j;

    (void)state;
    for (i = 2; i < 40; i++)
        for (j = 2; j < i; j++)
            assert_int_not_equal(first_of(i * LARGE), first_of(j * LARGE));
}

/* ---- what goes where ---- */

typedef struct tally {
    size_t bytes;
} tally;

static tutti_status count_and_move(void *context, void *to, const void *from, size_t bytes)
{
    ((tally *)context)->bytes += bytes;
    memcpy(to, from, bytes);
    return TUTTI_OK;
}

typedef struct memory {
    float  own[64], list[RANKS_MOST][64];
    void  *parts[RANKS_MOST];
    float  host[1024];
    void  *list_room[RANKS_MOST];
    const void *ins_room[RANKS_MOST];
} memory;

static void fill(memory *m, float value)
{
    int i, r;

    for (i = 0; i < 64; i++)
        m->own[i] = value;
    for (r = 0; r < RANKS_MOST; r++) {
        m->parts[r] = m->list[r];
        for (i = 0; i < 64; i++)
            m->list[r][i] = value + (float)(r + 1);
    }
}

/* Elements that a rank of three fetches, and gets back, of a call of 10. */
static void assert_flows(tutti_call_kind kind, int rank, size_t fetched, size_t returned)
{
    static memory m;
    tutti_call    call = call_of(kind, 10), host;
    tti_pieces    pieces;
    tti_piece     piece;
    tally         in = { 0 }, out = { 0 };

    fill(&m, 5);
    call.in = call.out = m.own;
    call.list = m.parts;
    pieces = tti_pieces_of(&call, rank, 3);
    assert_true(tti_pieces_next(&pieces, &piece));
    host = tti_piece_call(&pieces, &piece, (char *)m.host, m.ins_room, m.list_room);
    assert_int_equal(host.device, TUTTI_CPU);
    assert_int_equal(host.count, 10);
    assert_int_equal(tti_piece_fetch(&pieces, &piece, &host, count_and_move, &in), TUTTI_OK);
    assert_int_equal(tti_piece_return(&pieces, &piece, &host, count_and_move, &out), TUTTI_OK);
    assert_int_equal(in.bytes, fetched * sizeof(float));
    assert_int_equal(out.bytes, returned * sizeof(float));
    assert_int_equal(tti_pieces_give(&pieces), fetched > 0);
}

static void test_flows(void **state)
{
    (void)state;
    assert_flows(TUTTI_CALL_ALL_REDUCE, 1, 10, 10);
    assert_flows(TUTTI_CALL_REDUCE, 0, 10, 10);
    assert_flows(TUTTI_CALL_REDUCE, 1, 10, 0);
    assert_flows(TUTTI_CALL_BROADCAST, 0, 10, 0);
    assert_flows(TUTTI_CALL_BROADCAST, 1, 0, 10);
    assert_flows(TUTTI_CALL_ALL_GATHER, 1, 10, 30);
    assert_flows(TUTTI_CALL_GATHER, 0, 10, 30);
    assert_flows(TUTTI_CALL_GATHER, 1, 10, 0);
    assert_flows(TUTTI_CALL_SCATTER, 0, 30, 10);
    assert_flows(TUTTI_CALL_SCATTER, 1, 0, 10);
    assert_flows(TUTTI_CALL_REDUCE_SCATTER, 1, 30, 10);
}

/* Parts of sizes of their own: places in host memory are apart, and hold what was fetched. */
static void test_uneven(void **state)
{
    static memory       m;
    static float        given[RANKS_MOST][64];
    static const int64_t gives[3] = { 3, 0, 20 }, gets[3] = { 7, 0, 1 };
    const void         *ins[3] = { given[0], given[1], given[2] };
    tutti_call          call = call_of(TUTTI_CALL_ALL_TO_ALL, 0), host;
    tti_pieces          pieces;
    tti_piece           piece;
    tally               in = { 0 }, out = { 0 };
    int                 i, r;

    (void)state;
    fill(&m, 0);
    for (r = 0; r < 3; r++)
        for (i = 0; i < 64; i++)
            given[r][i] = (float)(100 * r + i);
    call.n_parts = 3;
    call.ins = ins;
    call.in_counts = gives;
    call.list = m.parts;
    call.list_counts = gets;
    pieces = tti_pieces_of(&call, 1, 3);
    assert_true(tti_pieces_next(&pieces, &piece));
    host = tti_piece_call(&pieces, &piece, (char *)m.host, m.ins_room, m.list_room);
    assert_int_equal(tti_piece_fetch(&pieces, &piece, &host, count_and_move, &in), TUTTI_OK);
    assert_int_equal(in.bytes, 23 * sizeof(float));
    assert_memory_equal(host.ins[0], given[0], 3 * sizeof(float));
    assert_memory_equal(host.ins[2], given[2], 20 * sizeof(float));
    for (r = 0; r < 3; r++)
        for (i = 0; i < gets[r]; i++)
            ((float *)host.list[r])[i] = (float)(-1 - r);
    assert_memory_equal(host.ins[0], given[0], 3 * sizeof(float));
    assert_int_equal(tti_piece_return(&pieces, &piece, &host, count_and_move, &out), TUTTI_OK);
    assert_int_equal(out.bytes, 8 * sizeof(float));
    assert_true(m.list[0][6] == -1 && m.list[0][7] == 1 && m.list[2][0] == -3 && m.list[2][1] == 3);
    assert_false(tti_pieces_next(&pieces, &piece));
}

/* Segments are pieces of their own, with their own part of the list. */
static void test_segments(void **state)
{
    static memory       m;
    void               *lists[6];
    const tutti_segment segments[2] = { { .count = 4, .in = m.own }, { .count = 0, .in = m.own } };
    tutti_call          call = call_of(TUTTI_CALL_ALL_GATHER, 4), host;
    tti_pieces          pieces;
    tti_piece           piece;
    tally               out = { 0 };
    int                 r;

    (void)state;
    fill(&m, 0);
    for (r = 0; r < 3; r++)
        lists[r] = lists[3 + r] = m.list[r];
    call.n_segments = 2;
    call.segments = segments;
    call.list = lists;
    pieces = tti_pieces_of(&call, 0, 3);
    assert_true(tti_pieces_next(&pieces, &piece));
    assert_int_equal(piece.n, 4);
    host = tti_piece_call(&pieces, &piece, (char *)m.host, m.ins_room, m.list_room);
    assert_int_equal(host.n_segments, 0);
    assert_int_equal(tti_piece_return(&pieces, &piece, &host, count_and_move, &out), TUTTI_OK);
    assert_int_equal(out.bytes, 12 * sizeof(float));
    assert_true(tti_pieces_next(&pieces, &piece));
    assert_int_equal(piece.segment, 1);
    assert_int_equal(piece.n, 0);
    assert_false(tti_pieces_next(&pieces, &piece));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_it), cmocka_unit_test(test_many_ranks), cmocka_unit_test(test_first_tells_count),
        cmocka_unit_test(test_flows),     cmocka_unit_test(test_uneven),     cmocka_unit_test(test_segments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
