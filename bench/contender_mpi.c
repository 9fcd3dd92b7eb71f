/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contender_mpi.c - an MPI library, under its own mpirun: compiled once with each library's compiler.
 *
 * MPI has no bf16. A program that needs it makes an operation of its own on pairs of bytes, and so does this
 * one. Asynchronous calls are begun and then waited for. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mpi.h>
#include "contender.h"

enum { EXCHANGE_MAX = 32 };

static MPI_Op bf16_sum; /* made by join(), which runs once */

static float from_bf16(uint16_t v)
{
    const uint32_t bits = (uint32_t)v << 16;
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint16_t to_bf16(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16); /* to nearest even; no NaN comes here */
}

static void add_bf16(void *in, void *inout, int *len, MPI_Datatype *type)
{
    const uint16_t *x = in;
    uint16_t *y = inout;
    int i;

    (void)type;
    for (i = 0; i < *len; i++)
        y[i] = to_bf16(from_bf16(x[i]) + from_bf16(y[i]));
}

static MPI_Datatype type_of(const bench_call *c)
{
    return c->cell->dtype == BENCH_BF16 ? MPI_UINT16_T : c->cell->dtype == BENCH_F64 ? MPI_DOUBLE : MPI_FLOAT;
}

static MPI_Op sum_of(const bench_call *c)
{
    return c->cell->dtype == BENCH_BF16 ? bf16_sum : MPI_SUM;
}

static bool ok(int code)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int len = 0;

    if (code == MPI_SUCCESS)
        return true;
    MPI_Error_string(code, words, &len);
    return bench_fail("%s", words);
}

static bool awaited(int code, MPI_Request *request)
{
    return ok(code != MPI_SUCCESS ? code : MPI_Wait(request, MPI_STATUS_IGNORE));
}

static bool all_reduce(const bench_call *c)
{
    const int n = (int)c->count;
    MPI_Request q;

    if (!c->cell->async)
        return ok(MPI_Allreduce(MPI_IN_PLACE, c->in, n, type_of(c), sum_of(c), MPI_COMM_WORLD));
    return awaited(MPI_Iallreduce(MPI_IN_PLACE, c->in, n, type_of(c), sum_of(c), MPI_COMM_WORLD, &q), &q);
}

static bool broadcast(const bench_call *c)
{
    MPI_Request q;

    if (!c->cell->async)
        return ok(MPI_Bcast(c->in, (int)c->count, type_of(c), c->root, MPI_COMM_WORLD));
    return awaited(MPI_Ibcast(c->in, (int)c->count, type_of(c), c->root, MPI_COMM_WORLD, &q), &q);
}

#ifdef MPICH_NUMVERSION
/* MPICH 4.0 reads from address MPI_IN_PLACE when the root is not rank 0: it reduces into a buffer of its own. */
static bool reduce_from(const bench_call *c, const void **from_out, void **to_out)
{
    static void *spare; /* grows, in the calls that are checked, and is never given back */
    static size_t has;
    const size_t bytes = (size_t)c->count * bench_dtype_size(c->cell->dtype);

    if (bytes > has) {
        free(spare);
        has = 0;
        spare = malloc(bytes);
        if (spare == NULL)
            return bench_fail("no memory");
        has = bytes;
        memset(spare, 0, bytes);
    }
    *from_out = c->in;
    *to_out = spare;
    return true;
}
#else
static bool reduce_from(const bench_call *c, const void **from_out, void **to_out)
{
    *from_out = c->rank == c->root ? MPI_IN_PLACE : c->in;
    *to_out = c->rank == c->root ? c->in : NULL;
    return true;
}
#endif

static bool reduce(const bench_call *c)
{
    const int n = (int)c->count;
    const void *from = NULL;
    void *to = NULL;
    MPI_Request q;
    bool fine;

    if (!reduce_from(c, &from, &to))
        return false;
    if (!c->cell->async)
        fine = ok(MPI_Reduce(from, to, n, type_of(c), sum_of(c), c->root, MPI_COMM_WORLD));
    else
        fine = awaited(MPI_Ireduce(from, to, n, type_of(c), sum_of(c), c->root, MPI_COMM_WORLD, &q), &q);
    if (fine && c->check != NULL && c->rank == c->root && to != c->in)
        memcpy(c->in, to, (size_t)n * bench_dtype_size(c->cell->dtype));
    return fine;
}

static bool all_gather(const bench_call *c)
{
    const int n = (int)c->part;
    MPI_Datatype t = type_of(c);
    MPI_Request q;

    if (!c->cell->async)
        return ok(MPI_Allgather(c->in, n, t, c->out, n, t, MPI_COMM_WORLD));
    return awaited(MPI_Iallgather(c->in, n, t, c->out, n, t, MPI_COMM_WORLD, &q), &q);
}

static bool reduce_scatter(const bench_call *c)
{
    const int n = (int)c->part;
    MPI_Request q;

    if (!c->cell->async)
        return ok(MPI_Reduce_scatter_block(c->in, c->out, n, type_of(c), sum_of(c), MPI_COMM_WORLD));
    return awaited(
        MPI_Ireduce_scatter_block(c->in, c->out, n, type_of(c), sum_of(c), MPI_COMM_WORLD, &q), &q);
}

static bool all_to_all(const bench_call *c)
{
    const int n = (int)c->part;
    MPI_Datatype t = type_of(c);
    MPI_Request q;

    if (!c->cell->async)
        return ok(MPI_Alltoall(c->in, n, t, c->out, n, t, MPI_COMM_WORLD));
    return awaited(MPI_Ialltoall(c->in, n, t, c->out, n, t, MPI_COMM_WORLD, &q), &q);
}

static bool gather(const bench_call *c)
{
    const int n = (int)c->part;
    MPI_Datatype t = type_of(c);
    MPI_Request q;

    if (!c->cell->async)
        return ok(MPI_Gather(c->in, n, t, c->out, n, t, c->root, MPI_COMM_WORLD));
    return awaited(MPI_Igather(c->in, n, t, c->out, n, t, c->root, MPI_COMM_WORLD, &q), &q);
}

static bool scatter(const bench_call *c)
{
    const int n = (int)c->part;
    MPI_Datatype t = type_of(c);
    MPI_Request q;

    if (!c->cell->async)
        return ok(MPI_Scatter(c->in, n, t, c->out, n, t, c->root, MPI_COMM_WORLD));
    return awaited(MPI_Iscatter(c->in, n, t, c->out, n, t, c->root, MPI_COMM_WORLD, &q), &q);
}

/* Sizes that differ by rank, as MPI has them. */
typedef struct uneven {
    int counts[BENCH_RANKS_MAX], begins[BENCH_RANKS_MAX];
} uneven;

static uneven uneven_of(const bench_call *c)
{
    uneven u;
    int i;

    for (i = 0; i < c->ranks; i++) {
        u.begins[i] = (int)c->begins[i];
        u.counts[i] = (int)(c->begins[i + 1] - c->begins[i]);
    }
    return u;
}

static bool all_gather_v(const bench_call *c)
{
    const uneven u = uneven_of(c);
    MPI_Datatype t = type_of(c);
    MPI_Request q;

    if (!c->cell->async)
        return ok(MPI_Allgatherv(c->in, (int)c->part, t, c->out, u.counts, u.begins, t, MPI_COMM_WORLD));
    return awaited(MPI_Iallgatherv(c->in, (int)c->part, t, c->out, u.counts, u.begins, t, MPI_COMM_WORLD, &q), &q);
}

static bool gather_v(const bench_call *c)
{
    const uneven u = uneven_of(c);
    MPI_Datatype t = type_of(c);
    MPI_Request q;

    if (!c->cell->async)
        return ok(MPI_Gatherv(c->in, (int)c->part, t, c->out, u.counts, u.begins, t, c->root, MPI_COMM_WORLD));
    return awaited(MPI_Igatherv(c->in, (int)c->part, t, c->out, u.counts, u.begins, t, c->root, MPI_COMM_WORLD, &q), &q);
}

static bool scatter_v(const bench_call *c)
{
    const uneven u = uneven_of(c);
    MPI_Datatype t = type_of(c);
    MPI_Request q;

    if (!c->cell->async)
        return ok(MPI_Scatterv(c->in, u.counts, u.begins, t, c->out, (int)c->part, t, c->root, MPI_COMM_WORLD));
    return awaited(MPI_Iscatterv(c->in, u.counts, u.begins, t, c->out, (int)c->part, t, c->root, MPI_COMM_WORLD, &q), &q);
}

static bool all_to_all_v(const bench_call *c)
{
    const uneven u = uneven_of(c); /* of what it gives, and of what it takes */
    MPI_Datatype t = type_of(c);
    MPI_Request q;

    if (!c->cell->async)
        return ok(MPI_Alltoallv(c->in, u.counts, u.begins, t, c->out, u.counts, u.begins, t, MPI_COMM_WORLD));
    return awaited(MPI_Ialltoallv(c->in, u.counts, u.begins, t, c->out, u.counts, u.begins, t, MPI_COMM_WORLD, &q), &q);
}

static bool barrier(const bench_call *c)
{
    MPI_Request q;

    if (!c->cell->async)
        return ok(MPI_Barrier(MPI_COMM_WORLD));
    return awaited(MPI_Ibarrier(MPI_COMM_WORLD, &q), &q);
}

static bool send_recv(const bench_call *c)
{
    const bool sends = c->rank % 2 == 0;
    const int peer = sends ? c->rank + 1 : c->rank - 1, n = (int)c->count;
    MPI_Datatype t = type_of(c);
    MPI_Request q;

    if (peer >= c->ranks)
        return true;
    if (!c->cell->async && sends)
        return ok(MPI_Send(c->in, n, t, peer, 0, MPI_COMM_WORLD));
    if (!c->cell->async)
        return ok(MPI_Recv(c->in, n, t, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return awaited(sends ? MPI_Isend(c->in, n, t, peer, 0, MPI_COMM_WORLD, &q)
                         : MPI_Irecv(c->in, n, t, peer, 0, MPI_COMM_WORLD, &q), &q);
}

/* The messages of an exchange. */
static bool exchange(const bench_call *c)
{
    const int n = bench_messages(c->cell->op), next = (c->rank + 1) % c->ranks;
    const int last = (c->rank + c->ranks - 1) % c->ranks, count = (int)c->part;
    const size_t step = (size_t)c->part * bench_dtype_size(c->cell->dtype);
    MPI_Request q[2 * EXCHANGE_MAX];
    int i, code = MPI_SUCCESS;

    for (i = 0; i < n && code == MPI_SUCCESS; i++) {
        code = MPI_Irecv((char *)c->out + (size_t)i * step, count, type_of(c), last, i, MPI_COMM_WORLD, &q[2 * i]);
        if (code == MPI_SUCCESS)
            code = MPI_Isend((char *)c->in + (size_t)i * step, count, type_of(c), next, i, MPI_COMM_WORLD, &q[2 * i + 1]);
    }
    return ok(code != MPI_SUCCESS ? code : MPI_Waitall(2 * n, q, MPI_STATUSES_IGNORE));
}

static bench_op_fn op(const bench_cell *cell)
{
    static const bench_op_fn ops[BENCH_OPS] = {
        [BENCH_ALL_REDUCE] = all_reduce,         [BENCH_BROADCAST] = broadcast,
        [BENCH_REDUCE] = reduce,                 [BENCH_ALL_GATHER] = all_gather,
        [BENCH_REDUCE_SCATTER] = reduce_scatter, [BENCH_ALL_TO_ALL] = all_to_all,
        [BENCH_GATHER] = gather,                 [BENCH_SCATTER] = scatter,
        [BENCH_ALL_GATHER_V] = all_gather_v,     [BENCH_GATHER_V] = gather_v,
        [BENCH_SCATTER_V] = scatter_v,           [BENCH_ALL_TO_ALL_V] = all_to_all_v,
        [BENCH_BARRIER] = barrier,               [BENCH_SEND_RECV] = send_recv,
        [BENCH_EXCHANGE_16] = exchange,          [BENCH_EXCHANGE_64] = exchange,
    };

    return ops[cell->op];
}

static const char *cannot(const bench_cell *cell, int ranks)
{
    if (cell->form != BENCH_PLAIN || op(cell) == NULL)
        return "for limits only";
    if (cell->memory != BENCH_ORDINARY)
        return "ordinary memory only";
    return (cell->op == BENCH_SEND_RECV || bench_messages(cell->op) > 0) && ranks < 2 ? "a message needs two ranks" : NULL;
}

static MPI_Request begun; /* one at a time */

/* Nothing is called in between: whether an operation goes on by itself is what is asked. */
static bool begin(const bench_call *c)
{
    return ok(MPI_Iallreduce(MPI_IN_PLACE, c->in, (int)c->count, type_of(c), sum_of(c), MPI_COMM_WORLD, &begun));
}

static bool finish(const bench_call *c)
{
    (void)c;
    return awaited(MPI_SUCCESS, &begun);
}

static bool join(int *rank_out, int *ranks_out)
{
    if (!ok(MPI_Init(NULL, NULL)) || !ok(MPI_Op_create(add_bf16, 1, &bf16_sum)))
        return false;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return ok(MPI_Comm_rank(MPI_COMM_WORLD, rank_out)) && ok(MPI_Comm_size(MPI_COMM_WORLD, ranks_out));
}

static void version(char *text, size_t size)
{
    char all[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len = 0;

    MPI_Get_library_version(all, &len);
    all[strcspn(all, "\n")] = '\0';
    snprintf(text, size, "%.200s", all);
    for (; *text != '\0'; text++)
        if (*text == '\t')
            *text = ' ';
}

static void leave(void)
{
    MPI_Op_free(&bf16_sum);
    MPI_Finalize();
}

static const bench_side side = {
    .name = "mpi",
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
