/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contender_limit.c - what the machine allows: the loads and stores of each operation, and nothing else.
 *
 * Why     A time says little without the least that it could be, taken on the same cores a moment before.
 * How     Every rank maps the buffers of all, and does what limit_ops.c has for the form of a cell. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include "contender.h"
#include "limit_memory.h"
#include "limit_ops.h"

/* ---- no bytes ---------------------------------------------------------------------------------- */

static bool line(const bench_call *c)
{
    limit_meet(c->rank, 2);
    return true;
}

static bool yield(const bench_call *c)
{
    (void)c;
    return sched_yield() == 0;
}

static bool empty(const bench_call *c)
{
    (void)c;
    return true;
}

/* ---- the side ---------------------------------------------------------------------------------- */

static bench_op_fn op(const bench_cell *cell)
{
    static const bench_op_fn empty_handed[BENCH_OPS] = {
        [BENCH_LINE] = line, [BENCH_YIELD] = yield, [BENCH_EMPTY] = empty,
    };

    return cell->form == BENCH_PLAIN ? empty_handed[cell->op] : limit_op(cell);
}

static const char *cannot(const bench_cell *cell, int ranks)
{
    if (op(cell) == NULL)
        return "no such limit";
    if (cell->op == BENCH_LINE && ranks != 2)
        return "lines are exchanged by two ranks";
    return cell->async || cell->cold ? "limits are blocking and warm" : NULL;
}

/* Loads and stores beside something that is computed: a thread of each rank, on the same core. */
static struct {
    pthread_t thread;
    const bench_call *call;
    bool fine; /* written by the thread, read after it was joined */
} beside;

static void *run_beside(void *unused)
{
    (void)unused;
    beside.fine = op(beside.call->cell)(beside.call);
    return NULL;
}

static bool begin(const bench_call *c)
{
    beside.call = c;
    return pthread_create(&beside.thread, NULL, run_beside, NULL) == 0 || bench_fail("cannot start a thread");
}

static bool finish(const bench_call *c)
{
    (void)c;
    pthread_join(beside.thread, NULL);
    return beside.fine;
}

static bool join(int *rank_out, int *ranks_out)
{
    const char *rank = getenv("RANK"), *ranks = getenv("WORLD_SIZE");

    if (rank == NULL || ranks == NULL)
        return bench_fail("RANK and WORLD_SIZE are not set");
    *rank_out = atoi(rank);
    *ranks_out = atoi(ranks);
    return true;
}

static void version(char *text, size_t size)
{
#if defined __AVX512F__
    snprintf(text, size, "vectors of 512 bits");
#elif defined __AVX__
    snprintf(text, size, "vectors of 256 bits");
#else
    snprintf(text, size, "the compiler's vectors");
#endif
}

static void leave(void)
{
}

static const bench_side side = {
    .name = "limit",
    .join = join,
    .version = version,
    .cannot = cannot,
    .take = limit_take,
    .give = limit_give,
    .op = op,
    .begin = begin,
    .finish = finish,
    .leave = leave,
};

int main(int argc, char **argv)
{
    return bench_contender(&side, argc, argv);
}
