/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_beside.c
 * Goal    a program that calls MPI itself begins and ends it, and neither meets what the other sends; with too few threads the
 *         backend is refused, and the program goes on with MPI.
 * Method  one rank of two, built with the library of the plug-in. Says "rank R of P: fine". */
#include <mpi.h>

#include "mpi_check.h"

/* Its own sum on MPI_COMM_WORLD, and a message with the tag of one of tutti's. */
static void own_mpi(int rank, int size)
{
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    int       sum = 0, got = -1;

    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Sendrecv(&rank, 1, MPI_INT, next, 3, &got, 1, MPI_INT, last, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == last);
}

static void both(int rank, int size)
{
    int64_t     x = rank;
    tutti_work *work = NULL;

    OK(tutti_init_process_group(NULL));
    CHECK(tutti_get_rank(NULL) == rank && tutti_get_world_size(NULL) == size);
    if (rank == 0)
        OK(tutti_isend(TUTTI_SPAN(&x, 1), 1, 3, NULL, &work));
    else
        OK(tutti_irecv(TUTTI_SPAN(&x, 1), 0, 3, NULL, &work));
    own_mpi(rank, size);
    OK(tutti_work_wait(work));
    tutti_work_free(work);
    CHECK(x == 0);
    OK(tutti_destroy_process_group(NULL));
    own_mpi(rank, size);
}

/* Each rank finds out by itself, and so is asked by itself: one that serves the others' store leaves when it has. */
static void refused(void)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    OK(tutti_hash_store_open(&opts.store));
    opts.world_size = 1;
    FAILS(tutti_init_process_group(&opts), TUTTI_E_STATE, "MPI_Init_thread and MPI_THREAD_MULTIPLE");
    tutti_store_close(opts.store);
}

int main(int argc, char **argv)
{
    const bool funneled = argc > 1 && strcmp(argv[1], "funneled") == 0;
    int        rank, size, level;

    MPI_Init_thread(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (funneled)
        refused();
    else
        both(rank, size);
    own_mpi(rank, size);
    MPI_Finalize();
    printf("rank %d of %d: fine\n", rank, size);
    return 0;
}
