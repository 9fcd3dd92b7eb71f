/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limit_ops.c - the loads and stores of each operation, and what the least of synchronisation makes of them.
 *
 * How     A pass loads every byte once and stores it once, straight from and to the others' buffers: what memory
 *         that all have mapped allows. A staged form goes through 256 KiB of shared memory for each rank, round by
 *         round: what ordinary memory allows. Loads and stores of each rank, S bytes in all, s = S/N:
 *                            pass          staged
 *           all_reduce       S / S         (3-2/N)S / 2S, and s once more from the nearest cache
 *           reduce_scatter   S / s         (2-1/N)S / S
 *           reduce           S / s         as reduce_scatter; the root also copies the others' slices out
 *           broadcast        s / s(N-1)    S / S
 *           all_gather       s / S         (S+s) / (S+s)
 *           all_to_all       S / S         2S / 2S
 *           send_recv        receiver S/S  both S / S
 *         The bare forms are a program in which ranks wait for each other: in a bare pass before and after it, in
 *         a bare staged one between the steps of a round. Its rounds take halves of the stages in turn, so that
 *         none has to be waited out: who is in the round after next has met all in the next one, which they
 *         entered when they had done with this one. A small sum is made in one step, by everybody for itself.
 * True    In the other forms nothing is synchronised while times are taken, so staged results would be garbage;
 *         when results are checked the same code waits for the others between its steps. */
#include "limit_ops.h"

#include "limit_kernel.h"
#include "limit_memory.h"

enum { LIMIT_NEAR_BYTES = 16 * 1024, LIMIT_ONCE_BYTES = 16 * 1024 };

/* A run of elements. */
typedef struct slice {
    int64_t from, count;
} slice;

static slice slice_of(int64_t count, int rank, int ranks)
{
    const int64_t from = count * rank / ranks;

    return (slice){ .from = from, .count = count * (rank + 1) / ranks - from };
}

static size_t bytes(const bench_call *c, int64_t count)
{
    return (size_t)count * bench_dtype_size(c->cell->dtype);
}

static bool bypass(const bench_call *c)
{
    return c->cell->form == BENCH_PASS_NT || c->cell->form == BENCH_STAGED_NT;
}

static bool is_bare(const bench_call *c)
{
    return c->cell->form == BENCH_BARE || c->cell->form == BENCH_BARE_PASS;
}

/* Between steps that need each other's results. */
static bool step(const bench_call *c)
{
    if (c->check != NULL)
        return bench_board_barrier(c->check);
    if (is_bare(c))
        limit_meet(c->rank, c->ranks);
    return true;
}

/* Behind a round. */
static bool end_round(const bench_call *c)
{
    if (!is_bare(c))
        return step(c);
    limit_turn_stages();
    return true;
}

static void copy(const bench_call *c, char *to, const char *from, int64_t count, bool past_caches)
{
    if (count > 0)
        limit_copy(&to, 1, from, bytes(c, count), past_caches);
}

/* ---- one pass ---------------------------------------------------------------------------------- */

/* Sum everybody's slice into the outs given, m of them. */
static void pass_sum(const bench_call *c, char *const *outs, int m, slice s)
{
    const char *ins[BENCH_RANKS_MAX];
    int q;

    for (q = 0; q < c->ranks; q++)
        ins[q] = limit_in(q) + bytes(c, s.from);
    limit_sum(outs, m, ins, c->ranks, s.count, c->cell->dtype, bypass(c));
}

static bool pass_all_reduce(const bench_call *c)
{
    const slice s = slice_of(c->count, c->rank, c->ranks);
    char *outs[BENCH_RANKS_MAX];
    int q;

    for (q = 0; q < c->ranks; q++)
        outs[q] = limit_in(q) + bytes(c, s.from);
    pass_sum(c, outs, c->ranks, s);
    return true;
}

static bool pass_reduce(const bench_call *c)
{
    const slice s = slice_of(c->count, c->rank, c->ranks);
    char *out = limit_in(c->root) + bytes(c, s.from);

    pass_sum(c, &out, 1, s);
    return true;
}

static bool pass_reduce_scatter(const bench_call *c)
{
    char *out = limit_out(c->rank);

    pass_sum(c, &out, 1, (slice){ .from = c->rank * c->part, .count = c->part });
    return true;
}

static bool pass_broadcast(const bench_call *c)
{
    const slice s = slice_of(c->count, c->rank, c->ranks);
    char *outs[BENCH_RANKS_MAX];
    int q, m = 0;

    for (q = 0; q < c->ranks; q++)
        if (q != c->root)
            outs[m++] = limit_in(q) + bytes(c, s.from);
    limit_copy(outs, m, limit_in(c->root) + bytes(c, s.from), bytes(c, s.count), bypass(c));
    return true;
}

static bool pass_all_gather(const bench_call *c)
{
    char *outs[BENCH_RANKS_MAX];
    int q;

    for (q = 0; q < c->ranks; q++)
        outs[q] = limit_out(q) + bytes(c, c->rank * c->part);
    limit_copy(outs, c->ranks, limit_in(c->rank), bytes(c, c->part), bypass(c));
    return true;
}

static bool pass_all_to_all(const bench_call *c)
{
    int i;

    for (i = 0; i < c->ranks; i++) {
        const int q = (c->rank + i) % c->ranks;

        copy(c, limit_out(c->rank) + bytes(c, q * c->part), limit_in(q) + bytes(c, c->rank * c->part), c->part,
             bypass(c));
    }
    return true;
}

static bool pass_send_recv(const bench_call *c)
{
    if (c->rank % 2 == 1)
        copy(c, limit_in(c->rank), limit_in(c->rank - 1), c->count, bypass(c));
    return true;
}

/* ---- staged, one round of each operation: what lies at elements at .. at + n ------------------- */

static void stage_slices_of_others(const bench_call *c, int64_t at, int64_t n)
{
    int q;

    for (q = 0; q < c->ranks; q++) {
        const slice s = slice_of(n, q, c->ranks);

        if (q != c->rank)
            copy(c, limit_stage(c->rank) + bytes(c, s.from), limit_in(c->rank) + bytes(c, at + s.from), s.count,
                 false);
    }
}

/* A piece of the own slice of this round. */
static void sum_own_slice(const bench_call *c, int64_t at, slice s, char *out)
{
    const char *ins[BENCH_RANKS_MAX];
    int q;

    for (q = 0; q < c->ranks; q++)
        ins[q] = q == c->rank ? limit_in(q) + bytes(c, at + s.from) : limit_stage(q) + bytes(c, s.from);
    limit_sum(&out, 1, ins, c->ranks, s.count, c->cell->dtype, false);
}

static void fetch_slices_of_others(const bench_call *c, int64_t at, int64_t n)
{
    int i;

    for (i = 1; i < c->ranks; i++) {
        const int q = (c->rank + i) % c->ranks;
        const slice s = slice_of(n, q, c->ranks);

        copy(c, limit_in(c->rank) + bytes(c, at + s.from), limit_result(q) + bytes(c, s.from), s.count,
             bypass(c));
    }
}

/* Sums go to the own buffer and, while they are in the nearest cache, from there to where others fetch them: a
 * copy gets hold of lines that others have read faster than the stores of a sum do. */
static void sum_for_all(const bench_call *c, int64_t at, int64_t n)
{
    const slice own = slice_of(n, c->rank, c->ranks);
    const int64_t most = LIMIT_NEAR_BYTES / (int64_t)bench_dtype_size(c->cell->dtype);
    int64_t done;

    for (done = 0; done < own.count; done += most) {
        const slice s = { own.from + done, own.count - done < most ? own.count - done : most };
        char *out = limit_in(c->rank) + bytes(c, at + s.from);

        sum_own_slice(c, at, s, out);
        copy(c, limit_result(c->rank) + bytes(c, s.from), out, s.count, false);
    }
}

/* Everybody sums everything: less to wait for. */
static bool round_all_reduce_once(const bench_call *c, int64_t at, int64_t n)
{
    copy(c, limit_stage(c->rank), limit_in(c->rank) + bytes(c, at), n, false);
    if (!step(c))
        return false;
    sum_own_slice(c, at, (slice){ .from = 0, .count = n }, limit_in(c->rank) + bytes(c, at));
    return end_round(c);
}

static bool round_all_reduce(const bench_call *c, int64_t at, int64_t n)
{
    if (is_bare(c) && bytes(c, n) <= LIMIT_ONCE_BYTES)
        return round_all_reduce_once(c, at, n);
    stage_slices_of_others(c, at, n);
    if (!step(c))
        return false;
    sum_for_all(c, at, n);
    if (!step(c))
        return false;
    fetch_slices_of_others(c, at, n);
    return end_round(c);
}

static bool round_reduce(const bench_call *c, int64_t at, int64_t n)
{
    const slice s = slice_of(n, c->rank, c->ranks);
    char *out = c->rank == c->root ? limit_in(c->rank) + bytes(c, at + s.from)
                                   : limit_result(c->rank) + bytes(c, s.from);

    stage_slices_of_others(c, at, n);
    if (!step(c))
        return false;
    sum_own_slice(c, at, s, out);
    if (!step(c))
        return false;
    if (c->rank == c->root)
        fetch_slices_of_others(c, at, n);
    return end_round(c);
}

static bool round_broadcast(const bench_call *c, int64_t at, int64_t n)
{
    if (c->rank == c->root)
        copy(c, limit_stage(c->rank), limit_in(c->rank) + bytes(c, at), n, false);
    if (!step(c))
        return false;
    if (c->rank != c->root)
        copy(c, limit_in(c->rank) + bytes(c, at), limit_stage(c->root), n, bypass(c));
    return end_round(c);
}

static bool round_send_recv(const bench_call *c, int64_t at, int64_t n)
{
    if (c->rank % 2 == 0 && c->rank + 1 < c->ranks)
        copy(c, limit_stage(c->rank), limit_in(c->rank) + bytes(c, at), n, false);
    if (!step(c))
        return false;
    if (c->rank % 2 == 1)
        copy(c, limit_in(c->rank) + bytes(c, at), limit_stage(c->rank - 1), n, bypass(c));
    return end_round(c);
}

/* Here at and n count elements of each part. */
static bool round_reduce_scatter(const bench_call *c, int64_t at, int64_t n)
{
    char *out = limit_out(c->rank) + bytes(c, at);
    const char *ins[BENCH_RANKS_MAX];
    int q;

    for (q = 0; q < c->ranks; q++)
        if (q != c->rank)
            copy(c, limit_stage(c->rank) + bytes(c, q * n), limit_in(c->rank) + bytes(c, q * c->part + at), n,
                 false);
    if (!step(c))
        return false;
    for (q = 0; q < c->ranks; q++)
        ins[q] = q == c->rank ? limit_in(q) + bytes(c, q * c->part + at)
                              : limit_stage(q) + bytes(c, c->rank * n);
    limit_sum(&out, 1, ins, c->ranks, n, c->cell->dtype, bypass(c));
    return end_round(c);
}

static bool round_all_gather(const bench_call *c, int64_t at, int64_t n)
{
    int i;

    copy(c, limit_stage(c->rank), limit_in(c->rank) + bytes(c, at), n, false);
    if (!step(c))
        return false;
    for (i = 0; i < c->ranks; i++) {
        const int q = (c->rank + i) % c->ranks;

        copy(c, limit_out(c->rank) + bytes(c, q * c->part + at), limit_stage(q), n, bypass(c));
    }
    return end_round(c);
}

static bool round_all_to_all(const bench_call *c, int64_t at, int64_t n)
{
    int q, i;

    for (q = 0; q < c->ranks; q++)
        copy(c, limit_stage(c->rank) + bytes(c, q * n), limit_in(c->rank) + bytes(c, q * c->part + at), n,
             false);
    if (!step(c))
        return false;
    for (i = 0; i < c->ranks; i++) {
        q = (c->rank + i) % c->ranks;
        copy(c, limit_out(c->rank) + bytes(c, q * c->part + at), limit_stage(q) + bytes(c, c->rank * n), n,
             bypass(c));
    }
    return end_round(c);
}

typedef bool (*round_fn)(const bench_call *c, int64_t at, int64_t n);

static bool in_rounds(const bench_call *c, round_fn round, int64_t count, int64_t most)
{
    int64_t at;

    for (at = 0; at < count; at += most)
        if (!round(c, at, count - at < most ? count - at : most))
            return false;
    return true;
}

static bool staged(const bench_call *c)
{
    static const round_fn rounds[BENCH_OPS] = {
        [BENCH_ALL_REDUCE] = round_all_reduce,         [BENCH_BROADCAST] = round_broadcast,
        [BENCH_REDUCE] = round_reduce,                 [BENCH_ALL_GATHER] = round_all_gather,
        [BENCH_REDUCE_SCATTER] = round_reduce_scatter, [BENCH_ALL_TO_ALL] = round_all_to_all,
        [BENCH_SEND_RECV] = round_send_recv,
    };
    const int64_t whole = LIMIT_STAGE_BYTES / (int64_t)bench_dtype_size(c->cell->dtype);
    const int64_t most = is_bare(c) ? whole / 2 : whole;
    const bench_op op = c->cell->op;

    if (op == BENCH_REDUCE_SCATTER || op == BENCH_ALL_TO_ALL)
        return in_rounds(c, rounds[op], c->part, most / c->ranks);
    return in_rounds(c, rounds[op], op == BENCH_ALL_GATHER ? c->part : c->count, most);
}

/* ---- which ------------------------------------------------------------------------------------- */

static const bench_op_fn passes[BENCH_OPS] = {
    [BENCH_ALL_REDUCE] = pass_all_reduce,         [BENCH_BROADCAST] = pass_broadcast,
    [BENCH_REDUCE] = pass_reduce,                 [BENCH_ALL_GATHER] = pass_all_gather,
    [BENCH_REDUCE_SCATTER] = pass_reduce_scatter, [BENCH_ALL_TO_ALL] = pass_all_to_all,
    [BENCH_SEND_RECV] = pass_send_recv,
};

static bool bare_pass(const bench_call *c)
{
    return step(c) && passes[c->cell->op](c) && step(c);
}

bench_op_fn limit_op(const bench_cell *cell)
{
    if (passes[cell->op] == NULL)
        return NULL;
    switch (cell->form) {
    case BENCH_PASS:
    case BENCH_PASS_NT: return passes[cell->op];
    case BENCH_BARE_PASS: return bare_pass;
    default: return staged;
    }
}
