/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_beside.c
 * Goal    a program that calls MPI itself begins and ends it, and neither meets what the other sends; with too few threads the
 *         backend is refused, which all ranks are told, and the program goes on with MPI; so it does where it finds the plug-in of
 *         another MPI library. One that ends MPI before its groups is told so by what it calls then, and goes on, too; also where
 *         the backend has begun MPI. A world that is made after the end of MPI is refused for that, whatever else is not to be had then.
 * Method  one rank of two, built with the library of the plug-in. Says "rank R of P: fine". */
#include <mpi.h>

#include "mpi_check.h"

#define ENDED "MPI has ended in this process, and cannot begin again\n  next: call MPI_Finalize after the last group of backend 'mpi'"

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

static void refused_at_the_end(tutti_group *group)
{
    float x = 1;

    FAILS(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group), TUTTI_E_STATE, "after the last group of backend 'mpi'");
    FAILS(tutti_send(TUTTI_SPAN(&x, 1), 1 - tutti_get_rank(NULL), 4, group), TUTTI_E_STATE, "after the last group of backend 'mpi'");
}

/* MPI ends while two groups are open, and a message of one is under way: MPI itself would end the process if it were called then. */
static void too_early(bool begins)
{
    const int    ranks[] = { 0, 1 };
    int64_t      x = 1, never = 0;
    tutti_group *pair = NULL, *later = NULL;
    tutti_work  *work = NULL;
    int          rank, size, level;

    if (begins)
        MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    OK(tutti_init_process_group(NULL));
    rank = tutti_get_rank(NULL);
    size = tutti_get_world_size(NULL);
    OK(tutti_new_group(ranks, 2, NULL, &pair));
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, pair));
    CHECK(x == 2);
    OK(tutti_irecv(TUTTI_SPAN(&never, 1), 1 - rank, 3, pair, &work));
    MPI_Finalize();
    FAILS(tutti_work_wait(work), TUTTI_E_STATE, "the program has ended MPI");
    tutti_work_free(work);
    refused_at_the_end(pair);
    refused_at_the_end(NULL);
    FAILS(tutti_new_group(ranks, 2, NULL, &later), TUTTI_E_STATE, "after the last group of backend 'mpi'");
    OK(tutti_destroy_process_group(pair));
    OK(tutti_destroy_process_group(NULL));
    FAILS(tutti_init_process_group(NULL), TUTTI_E_STATE, ENDED);
    printf("rank %d of %d: fine\n", rank, size);
}

static void refused(tutti_status status, const char *words)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    OK(tutti_hash_store_open(&opts.store));
    opts.world_size = 1;
    FAILS(tutti_init_process_group(&opts), status, words);
    tutti_store_close(opts.store);
}

/* Our library, by name, and the other one's. */
static void refused_other(void)
{
#ifdef OPEN_MPI
    static const char *const names[] = { "it was built for MPICH ", "runs with Open MPI v" };
#else
    static const char *const names[] = { "it was built for Open MPI ", "runs with MPICH " };
#endif
    int i;

    for (i = 0; i < 2; i++)
        refused(TUTTI_E_UNSUPPORTED, names[i]);
    refused(TUTTI_E_UNSUPPORTED, getenv("TUTTI_PLUGIN_PATH"));
    refused(TUTTI_E_UNSUPPORTED, "next: set TUTTI_PLUGIN_PATH to the directory of the plug-in that was built for that one");
    CHECK(!tutti_is_backend_available("mpi"));
}

/* The rank that MPI will say, which mpirun has told before MPI begins. */
static int rank_told(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    rank = rank != NULL ? rank : getenv("PMI_RANK");
    return rank != NULL ? atoi(rank) : -1;
}

/* In the world of the job, whose store rank 0 serves. Rank `few` alone has too few threads, -1: all have. Whoever is refused says why,
 * however early that is, and the others who it was. */
static void too_few_threads(int rank, int few)
{
    char words[64];

    if (few < 0 || rank == few) {
        FAILS(tutti_init_process_group(NULL), TUTTI_E_STATE, "MPI_Init_thread and MPI_THREAD_MULTIPLE");
        return;
    }
    snprintf(words, sizeof words, "rank %d cannot make it: the program has begun MPI with ", few);
    FAILS(tutti_init_process_group(NULL), TUTTI_E_REMOTE, words);
}

static bool says(int argc, char **argv, const char *word)
{
    return argc > 1 && strcmp(argv[1], word) == 0;
}

int main(int argc, char **argv)
{
    const int  few = says(argc, argv, "first") ? 0 : says(argc, argv, "second") ? 1 : -1;
    const bool all = says(argc, argv, "funneled");
    int        rank, size, level;

    if (argc > 1 && strncmp(argv[1], "early", 5) == 0) {
        too_early(says(argc, argv, "early"));
        return 0;
    }
    MPI_Init_thread(&argc, &argv, all || (few >= 0 && rank_told() == few) ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (all || few >= 0)
        too_few_threads(rank, few);
    else if (says(argc, argv, "other"))
        refused_other();
    else
        both(rank, size);
    own_mpi(rank, size);
    MPI_Finalize();
    if (says(argc, argv, "multiple"))
        refused(TUTTI_E_STATE, ENDED);
    if (says(argc, argv, "other"))
        FAILS(tutti_init_process_group(NULL), TUTTI_E_UNSUPPORTED, "it was built for");
    else
        FAILS(tutti_init_process_group(NULL), TUTTI_E_STATE, ENDED);
    printf("rank %d of %d: fine\n", rank, size);
    return 0;
}
