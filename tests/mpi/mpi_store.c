/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_store.c
 * Goal    a store of the program's own, whose waits end some milliseconds early, says nothing against anybody: who is late to a group of
 *         backend "mpi" is waited for.
 * Method  one rank of two that mpirun starts, over a store that hands all to a file's. Rank 1 comes to the group when rank 0 has looked
 *         for it a few times, which that says in a file of its own beside it. Says "rank R of P: fine" at the end.
 *
 *     mpi_store NEW_FILE */
#include "mpi_check.h"

#include <stdatomic.h>
#include <time.h>
#include <tutti/plugin/store.h>

enum { EARLY_MS = 3, LOOKS = 3, LONG_MS = 60000 };

typedef struct rounding {
    tutti_store  base;
    tutti_store *inner;
} rounding;

static tutti_store *aside;
static _Atomic int  n_ended; /* waits of this process that were ended early, while counts is set */
static _Atomic bool counts;

static tutti_store *inner(tutti_store *store)
{
    return ((rounding *)store)->inner;
}

static int64_t left_ms(int64_t deadline_ns)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (deadline_ns - (int64_t)now.tv_sec * 1000000000 - now.tv_nsec) / 1000000;
}

static tutti_status put(tutti_store *store, const char *key, const void *val, size_t len, int64_t deadline_ns)
{
    (void)deadline_ns;
    return tutti_store_set(inner(store), key, val, len);
}

static tutti_status get(tutti_store *store, const char *key, int64_t deadline_ns, tutti_bytes *val_out)
{
    const int64_t      ms = left_ms(deadline_ns) - EARLY_MS;
    const tutti_status st = tutti_store_get(inner(store), key, ms > 0 ? ms : 1, val_out); /* 0 is a time of its own */

    if (st == TUTTI_E_TIMEOUT && ms > 0 && atomic_load(&counts) && atomic_fetch_add(&n_ended, 1) == LOOKS - 1)
        OK(tutti_store_set(aside, "looked", "1", 1));
    return st;
}

static tutti_status add(tutti_store *store, const char *key, int64_t delta, int64_t deadline_ns, int64_t *sum_out)
{
    (void)deadline_ns;
    return tutti_store_add(inner(store), key, delta, sum_out);
}

static tutti_status compare_set(tutti_store *store, const char *key, const void *expected, size_t expected_len, const void *desired,
                                size_t desired_len, int64_t deadline_ns, tutti_bytes *val_out)
{
    (void)deadline_ns;
    return tutti_store_compare_set(inner(store), key, expected, expected_len, desired, desired_len, val_out);
}

static void close_both(tutti_store *store)
{
    tutti_store_close(inner(store));
    free(store);
}

static const tutti_store_ops ops = {
    .api = TUTTI_STORE_API, .size = sizeof(tutti_store_ops), .scheme = "rounding", .set = put, .get = get, .add = add,
    .compare_set = compare_set, .close = close_both,
};

static tutti_store *open_store(const char *path)
{
    rounding *store = calloc(1, sizeof *store);

    CHECK(store != NULL);
    store->base.ops = &ops;
    OK(tutti_file_store_open(path, 2, &store->inner));
    OK(tutti_store_adopt(&store->base));
    return &store->base;
}

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
    atomic_store(&counts, rank == 0);
    OK(tutti_new_group(NULL, 0, NULL, &group));
    atomic_store(&counts, false);
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group));
    CHECK(x == 3);
}

int main(int argc, char **argv)
{
    char               path[512];
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_store       *store;

    CHECK(argc == 2);
    snprintf(path, sizeof path, "%s-aside", argv[1]);
    OK(tutti_file_store_open(path, 2, &aside));
    store = open_store(argv[1]);
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
