/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_store.c
 * Goal    a store of the program's own, whose waits end early, each of them, says nothing against anybody: who is late to a group of
 *         backend "mpi" is waited for.
 * Method  one rank of two that mpirun starts, over a store that hands all to a file's (early_store.h). Rank 1 comes to the group when
 *         rank 0 has looked for it a few times, which that says in a file of its own beside it. Says "rank R of P: fine" at the end.
 *
 *     mpi_store NEW_FILE */
#include "mpi_check.h"

#include "../early_store.h"

enum { LOOKS = 3, LONG_MS = 60000 };

static tutti_store *aside;

/* A world over a store is told its rank. */
static int rank_of_mpirun(void)
{
    const char *ompi = getenv("OMPI_COMM_WORLD_RANK"), *pmi = getenv("PMI_RANK");

    CHECK(ompi != NULL || pmi != NULL);
    return atoi(ompi != NULL ? ompi : pmi);
}

/* Rank 1 comes when rank 0 has looked a few times. */
static void late_to_a_group(int rank)
{
    const char  *looked = "looked";
    tutti_group *group = NULL;
    int64_t      x = rank + 1;

    if (rank == 1)
        OK(tutti_store_wait(aside, &looked, 1, LONG_MS / 2));
    else
        atomic_store(&early_told.left, LOOKS);
    OK(tutti_new_group(NULL, 0, NULL, &group));
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group));
    CHECK(x == 3);
}

int main(int argc, char **argv)
{
    char               path[512];
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_store       *file, *store;

    CHECK(argc == 2);
    snprintf(path, sizeof path, "%s-aside", argv[1]);
    OK(tutti_file_store_open(path, 2, &aside));
    OK(tutti_file_store_open(argv[1], 2, &file));
    store = early_store_around(file);
    CHECK(store != NULL);
    early_told.at = aside;
    early_told.key = "looked";
    opts.store = store;
    opts.rank = rank_of_mpirun();
    opts.world_size = 2;
    opts.timeout_ms = LONG_MS;
    OK(tutti_init_process_group(&opts));
    OK(tutti_barrier(NULL));
    late_to_a_group(opts.rank);
    printf("rank %d of %d: fine\n", opts.rank, opts.world_size);
    fflush(stdout);
    OK(tutti_barrier(NULL));
    OK(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
    tutti_store_close(aside);
    return 0;
}
