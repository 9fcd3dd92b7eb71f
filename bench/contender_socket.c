/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contender_socket.c - what a link allows: the bytes of each operation on bare sockets, and nothing else.
 *
 * Why     Between hosts a time says little without the least that it could be on the same link a moment before.
 * How     Everybody sends to everybody whom it has something for, at once, and waits for what it gets (socket_peers.h).
 *         One step, in which whole tensors travel; an all_reduce of more than ONE_SHOT_BYTES by more than two ranks takes
 *         two, in which parts do. Sums are made when all is there. That is the shortest way for what is tiny, and fills
 *         links in both directions where every rank sends as much as it gets; it is not meant for large rooted operations.
 * Beside  While something is computed a thread on the same core moves the bytes, asleep in poll() when there are none. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "contender.h"
#include "socket_peers.h"

enum { ONE_SHOT_BYTES = 64 << 10 };

static struct {
    char *at;
    size_t bytes;
} scratch; /* grows, in calls that are checked, and is given back at the end */

static bool spins; /* a core for every rank; nothing is computed beside */

static bool want_scratch(size_t bytes)
{
    char *at;

    if (bytes <= scratch.bytes)
        return true;
    at = realloc(scratch.at, bytes);
    if (at == NULL)
        return bench_fail("no memory");
    memset(at, 0, bytes);
    scratch.at = at;
    scratch.bytes = bytes;
    return true;
}

/* ---- operations -------------------------------------------------------------------------------- */

static size_t whole_of(const bench_call *c)
{
    return (size_t)c->count * sizeof(float);
}

static void add(float *restrict sum, const float *restrict x, int64_t n)
{
    int64_t i;

    for (i = 0; i < n; i++)
        sum[i] += x[i];
}

/* What others sent, one after the other in the scratch, is added to n elements of ours. */
static void add_all(const bench_call *c, float *mine, int64_t n)
{
    int i;

    for (i = 0; i < c->ranks - 1; i++)
        add(mine, (const float *)scratch.at + i * n, n);
}

static char *place_of(const bench_call *c, int other, size_t bytes)
{
    return scratch.at + (size_t)(other > c->rank ? other - 1 : other) * bytes;
}

static bool one_shot(const bench_call *c)
{
    const size_t bytes = whole_of(c);
    int i;

    if (!want_scratch(bytes * (size_t)(c->ranks - 1)))
        return false;
    for (i = 0; i < c->ranks; i++)
        if (i != c->rank) {
            bench_peers_send(i, c->in, bytes);
            bench_peers_receive(i, place_of(c, i, bytes), bytes);
        }
    if (!bench_peers_move(spins))
        return false;
    add_all(c, c->in, c->count);
    return true;
}

static int64_t first_of(const bench_call *c, int rank)
{
    return c->count * rank / c->ranks;
}

static bool two_steps(const bench_call *c)
{
    const int64_t mine = first_of(c, c->rank), n = first_of(c, c->rank + 1) - mine;
    float *all = c->in;
    int i;

    if (!want_scratch((size_t)n * sizeof *all * (size_t)c->ranks))
        return false;
    for (i = 0; i < c->ranks; i++)
        if (i != c->rank) {
            bench_peers_send(i, all + first_of(c, i), (size_t)(first_of(c, i + 1) - first_of(c, i)) * sizeof *all);
            bench_peers_receive(i, place_of(c, i, (size_t)n * sizeof *all), (size_t)n * sizeof *all);
        }
    if (!bench_peers_move(spins))
        return false;
    add_all(c, all + mine, n);
    for (i = 0; i < c->ranks; i++)
        if (i != c->rank) {
            bench_peers_send(i, all + mine, (size_t)n * sizeof *all);
            bench_peers_receive(i, all + first_of(c, i), (size_t)(first_of(c, i + 1) - first_of(c, i)) * sizeof *all);
        }
    return bench_peers_move(spins);
}

static bool all_reduce(const bench_call *c)
{
    return c->ranks == 2 || whole_of(c) <= ONE_SHOT_BYTES ? one_shot(c) : two_steps(c);
}

static bool broadcast(const bench_call *c)
{
    int i;

    if (c->rank != c->root)
        bench_peers_receive(c->root, c->in, whole_of(c));
    else
        for (i = 0; i < c->ranks; i++)
            if (i != c->rank)
                bench_peers_send(i, c->in, whole_of(c));
    return bench_peers_move(spins);
}

static bool reduce(const bench_call *c)
{
    const size_t bytes = whole_of(c);
    int i;

    if (!want_scratch(bytes * (size_t)(c->ranks - 1)))
        return false;
    if (c->rank != c->root)
        bench_peers_send(c->root, c->in, bytes);
    else
        for (i = 0; i < c->ranks; i++)
            if (i != c->rank)
                bench_peers_receive(i, place_of(c, i, bytes), bytes);
    if (!bench_peers_move(spins))
        return false;
    if (c->rank == c->root)
        add_all(c, c->in, c->count);
    return true;
}

/* Where the part of a rank begins, and its length, in bytes, in a buffer that has one for each. */
static size_t begin_of(const bench_call *c, int rank)
{
    return (size_t)c->begins[rank] * sizeof(float);
}

static size_t part_of(const bench_call *c, int rank)
{
    return begin_of(c, rank + 1) - begin_of(c, rank);
}

/* Parts may be empty, and have no buffer then. */
static void copy(char *to, const char *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

static bool all_gather(const bench_call *c)
{
    char *out = c->out;
    int i;

    for (i = 0; i < c->ranks; i++)
        if (i != c->rank) {
            bench_peers_send(i, c->in, part_of(c, c->rank));
            bench_peers_receive(i, out + begin_of(c, i), part_of(c, i));
        }
    copy(out + begin_of(c, c->rank), c->in, part_of(c, c->rank));
    return bench_peers_move(spins);
}

static bool reduce_scatter(const bench_call *c)
{
    const size_t bytes = (size_t)c->part * sizeof(float);
    const char *in = c->in;
    int i;

    if (!want_scratch(bytes * (size_t)c->ranks))
        return false;
    for (i = 0; i < c->ranks; i++)
        if (i != c->rank) {
            bench_peers_send(i, in + (size_t)i * bytes, bytes);
            bench_peers_receive(i, place_of(c, i, bytes), bytes);
        }
    memcpy(c->out, in + (size_t)c->rank * bytes, bytes);
    if (!bench_peers_move(spins))
        return false;
    add_all(c, c->out, c->part);
    return true;
}

static bool all_to_all(const bench_call *c)
{
    const char *in = c->in;
    char *out = c->out;
    int i;

    for (i = 0; i < c->ranks; i++)
        if (i != c->rank) {
            bench_peers_send(i, in + begin_of(c, i), part_of(c, i));
            bench_peers_receive(i, out + begin_of(c, i), part_of(c, i));
        }
    copy(out + begin_of(c, c->rank), in + begin_of(c, c->rank), part_of(c, c->rank));
    return bench_peers_move(spins);
}

static bool gather(const bench_call *c)
{
    char *out = c->out;
    int i;

    if (c->rank != c->root) {
        bench_peers_send(c->root, c->in, part_of(c, c->rank));
        return bench_peers_move(spins);
    }
    for (i = 0; i < c->ranks; i++)
        if (i != c->rank)
            bench_peers_receive(i, out + begin_of(c, i), part_of(c, i));
    copy(out + begin_of(c, c->rank), c->in, part_of(c, c->rank));
    return bench_peers_move(spins);
}

static bool scatter(const bench_call *c)
{
    const char *in = c->in;
    int i;

    if (c->rank != c->root) {
        bench_peers_receive(c->root, c->out, part_of(c, c->rank));
        return bench_peers_move(spins);
    }
    for (i = 0; i < c->ranks; i++)
        if (i != c->rank)
            bench_peers_send(i, in + begin_of(c, i), part_of(c, i));
    copy(c->out, in + begin_of(c, c->rank), part_of(c, c->rank));
    return bench_peers_move(spins);
}

static bool send_recv(const bench_call *c)
{
    if (c->rank % 2 == 1)
        bench_peers_receive(c->rank - 1, c->in, whole_of(c));
    else if (c->rank + 1 < c->ranks)
        bench_peers_send(c->rank + 1, c->in, whole_of(c));
    return bench_peers_move(spins);
}

static bool barrier(const bench_call *c)
{
    static char said, heard[BENCH_RANKS_MAX];
    int i;

    for (i = 0; i < c->ranks; i++)
        if (i != c->rank) {
            bench_peers_send(i, &said, 1);
            bench_peers_receive(i, &heard[i], 1);
        }
    return bench_peers_move(spins);
}

/* ---- the side ---------------------------------------------------------------------------------- */

static bench_op_fn op(const bench_cell *cell)
{
    static const bench_op_fn ops[BENCH_OPS] = {
        [BENCH_ALL_REDUCE] = all_reduce, [BENCH_BROADCAST] = broadcast, [BENCH_REDUCE] = reduce,
        [BENCH_ALL_GATHER] = all_gather, [BENCH_REDUCE_SCATTER] = reduce_scatter, [BENCH_ALL_TO_ALL] = all_to_all,
        [BENCH_SEND_RECV] = send_recv,   [BENCH_BARRIER] = barrier, [BENCH_GATHER] = gather, [BENCH_SCATTER] = scatter,
        [BENCH_ALL_GATHER_V] = all_gather, [BENCH_GATHER_V] = gather, [BENCH_SCATTER_V] = scatter,
        [BENCH_ALL_TO_ALL_V] = all_to_all,
    };

    return ops[cell->op];
}

static const char *cannot(const bench_cell *cell, int ranks)
{
    (void)ranks;
    if (op(cell) == NULL)
        return "no such operation";
    return cell->dtype != BENCH_F32 ? "f32 only" : NULL;
}

/* The thread that moves bytes beside what is computed; the caller touches nothing of it in between. */
static struct {
    pthread_t thread;
    const bench_call *call;
    bool fine; /* written by the thread, read after it was joined */
} beside;

static void *run_beside(void *unused)
{
    (void)unused;
    beside.fine = all_reduce(beside.call);
    return NULL;
}

static bool begin(const bench_call *c)
{
    beside.call = c;
    spins = false; /* before there is a second thread; for good: who computes is not asked for latencies */
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
    const char *rank = getenv("RANK"), *ranks = getenv("WORLD_SIZE"), *addresses = getenv("BENCH_ADDRESSES");

    if (rank == NULL || ranks == NULL || addresses == NULL)
        return bench_fail("RANK, WORLD_SIZE and BENCH_ADDRESSES are not all set");
    *rank_out = atoi(rank);
    *ranks_out = atoi(ranks);
    spins = *ranks_out <= bench_cores();
    return bench_peers_open(addresses, *rank_out, *ranks_out);
}

static void version(char *text, size_t size)
{
    snprintf(text, size, "bare sockets, %s", spins ? "which are asked again and again" : "in poll()");
}

static void leave(void)
{
    bench_peers_close();
    free(scratch.at);
}

static const bench_side side = {
    .name = "socket",
    .join = join,
    .version = version,
    .cannot = cannot,
    .op = op,
    .begin = begin,
    .finish = finish,
    .leave = leave,
};

int main(int argc, char **argv)
{
    return bench_contender(&side, argc, argv);
}
