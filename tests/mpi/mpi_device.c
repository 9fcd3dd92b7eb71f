/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_device.c
 * Goal    backend "mpi" on memory of GPUs: calls come behind what the caller's stream was given, and are through when they return; what
 *         is not taken is refused in words, and the group goes on; ranks of which one has memory of the host are told.
 * Method  one rank of several that mpirun starts, over the stand-in for the CUDA runtime; one case by name. What can be had of
 *         operations, types and sizes is the conformance matrix's. Says "rank R of P: fine" at the end; the case "order" says before
 *         that how many numbers were wrong, and leaves it to the caller what that means. */
#include "../fake_nccl/cuda.h"

enum { ROUNDS = 30, COUNT = 1000, PIECES = 4, SHORT_MS = 2000 };

static int          rank, size;
static cudaStream_t stream;

static void synchronize(void)
{
    CHECK(cuda.cudaStreamSynchronize(stream) == cudaSuccess);
}

/* A stream writes, the group adds or passes on, the stream looks: blocking, and as works. */
static void order(void)
{
    const float sum_of_ranks = (float)(size * (size - 1) / 2);
    float      *x[PIECES];
    int64_t    *wrong = cuda_memory(sizeof *wrong);
    tutti_work *work = NULL;
    int         round, k;

    for (k = 0; k < PIECES; k++)
        x[k] = cuda_memory(COUNT * sizeof(float));
    for (round = 0; round < ROUNDS; round++) {
        const float      base = (float)round;
        const tutti_span span = cuda_span(x[round % PIECES], COUNT, TUTTI_F32);

        cuda_fill(stream, span.data, COUNT, base + (float)rank);
        if (round % 3 == 0) {
            OK(tutti_all_reduce(span, TUTTI_SUM, NULL));
        } else if (round % 3 == 1) {
            OK(tutti_broadcast(span, round % size, NULL));
        } else {
            OK(tutti_all_reduce_async(span, TUTTI_SUM, NULL, &work));
            OK(tutti_work_wait(work));
            tutti_work_free(work);
        }
        cuda_compare(stream, span.data, COUNT, round % 3 == 1 ? base + (float)(round % size) : base * (float)size + sum_of_ranks,
                     wrong);
    }
    synchronize();
    OK(tutti_barrier(NULL));
    printf("rank %d: %lld of %d numbers are wrong\n", rank, (long long)*wrong, ROUNDS * COUNT);
}

/* What the library does not take is refused on all, before anything is done: also behind another call, and in a work. */
static void refused(void)
{
    float      *x = cuda_memory(COUNT * sizeof *x);
    tutti_work *work = NULL;
    int64_t     on_host = 1;

    FAILS(tutti_all_reduce(cuda_span(x, COUNT, TUTTI_F32), TUTTI_SUM, NULL), TUTTI_E_UNSUPPORTED, "MPIX_Query_cuda_support says no");
    printf("refused: %s\n", tutti_last_error());
    FAILS(tutti_broadcast_async(cuda_span(x, COUNT, TUTTI_F32), 0, NULL, &work), TUTTI_E_UNSUPPORTED, "a collective of memory of a GPU");
    FAILS(tutti_isend(cuda_span(x, 1, TUTTI_F32), (rank + 1) % size, 0, NULL, &work), TUTTI_E_UNSUPPORTED,
          "a message of memory of a GPU");
    OK(tutti_all_reduce(TUTTI_SPAN(&on_host, 1), TUTTI_SUM, NULL));
    CHECK(on_host == size);
}

/* Where it takes it: no messages, and all ranks see one that calls with memory of the host. */
static void differ(void)
{
    float       *x = cuda_memory(COUNT * sizeof *x);
    tutti_work  *work = NULL;
    tutti_span   span = cuda_span(x, COUNT, TUTTI_F32);

    FAILS(tutti_isend(span, (rank + 1) % size, 0, NULL, &work), TUTTI_E_UNSUPPORTED, "has no message of memory of a GPU");
    OK(tutti_all_reduce(span, TUTTI_SUM, NULL));
    if (rank == 0)
        span.device = (tutti_device){ TUTTI_CPU, 0 };
    FAILS(tutti_all_reduce(span, TUTTI_SUM, NULL), TUTTI_E_MISMATCH, "on a GPU");
}

static void wait_for_file(void *arg)
{
    tutti_store *aside = arg;
    const char  *key = "told";

    OK(tutti_store_wait(aside, &key, 1, 120000));
}

/* A stream that does not come to the call is a time-out, of which the others hear. */
static void stuck(tutti_store *aside)
{
    float *x = cuda_memory(COUNT * sizeof *x);

    OK(tutti_all_reduce(cuda_span(x, COUNT, TUTTI_F32), TUTTI_SUM, NULL));
    if (rank == 0) {
        OK(tutti_set_timeout(NULL, SHORT_MS));
        CHECK(cuda.cudaLaunchHostFunc(stream, wait_for_file, aside) == cudaSuccess);
    }
    FAILS(tutti_all_reduce(cuda_span(x, COUNT, TUTTI_F32), TUTTI_SUM, NULL), TUTTI_E_TIMEOUT, "the stream of GPU 0");
    if (rank == 0)
        OK(tutti_store_set(aside, "told", "1", 1));
    synchronize();
}

/* Where a group has failed mpirun ends the others when the first one ends: nobody goes before all have said how they are. */
static void end_together(tutti_store *aside)
{
    const char *last = "ended";
    int64_t     n = 0;

    fflush(stdout);
    OK(tutti_store_add(aside, "ends", 1, &n));
    if (n == size)
        OK(tutti_store_set(aside, last, "1", 1));
    OK(tutti_store_wait(aside, &last, 1, 120000));
}

int main(int argc, char **argv)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_store       *aside = NULL;

    if (argc != 3) {
        fprintf(stderr, "usage: mpi_device CASE NEW_FILE\n");
        return 2;
    }
    opts.backend = "mpi";
    OK(tutti_init_process_group(&opts));
    rank = tutti_get_rank(NULL);
    size = tutti_get_world_size(NULL);
    OK(tutti_file_store_open(argv[2], size, &aside));
    cuda_open();
    CHECK(cuda.cudaStreamCreate(&stream) == cudaSuccess);
    OK(tutti_set_stream(TUTTI_CUDA, stream));
    if (strcmp(argv[1], "order") == 0)
        order();
    else if (strcmp(argv[1], "refused") == 0)
        refused();
    else if (strcmp(argv[1], "differ") == 0)
        differ();
    else if (strcmp(argv[1], "stuck") == 0)
        stuck(aside);
    else
        CHECK(!"a case of that name");
    OK(tutti_destroy_process_group(NULL));
    CHECK(cuda.cudaGetLastError() == cudaSuccess);
    printf("rank %d of %d: fine\n", rank, size);
    end_together(aside);
    tutti_store_close(aside);
    return 0;
}
