/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_regroup.c
 * Goal    worlds of fewer or more ranks, which MPI has none of, are refused at once on all ranks, as not offered, with what helps; the
 *         world goes on, can be made anew of its own ranks, and be left for a backend that has others. Refusals, also those that the
 *         backend itself finds, or hears of, are no failures: the job ends MPI in order, and mpirun is content.
 * Method  one rank of two or three that mpirun starts; TUTTI_BACKEND names the backend. No call here has less time than the whole
 *         test: who waits for somebody is not done in time. Says "rank R of P: fine" before the end, which mpirun judges. */
#include "mpi_check.h"

enum { HANDLE_BYTES = 256, RANKS_MOST = 8 };

#define FIXED "backend 'mpi' has worlds of all ranks that the job was started with, and no others\n  next: "

static int  rank, size;
static char handles[RANKS_MOST][HANDLE_BYTES]; /* of the world, by rank */

static void sum_is_right(void)
{
    int64_t x = rank + 1;

    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL));
    CHECK(x == size * (size + 1) / 2);
}

static void exchange_handles(void)
{
    char own[HANDLE_BYTES] = "";

    CHECK(size <= RANKS_MOST && strlen(tutti_get_reconfigure_handle(NULL)) < sizeof own);
    strcpy(own, tutti_get_reconfigure_handle(NULL));
    OK(tutti_all_gather_into_tensor(TUTTI_SPAN((uint8_t *)handles, (int64_t)size * HANDLE_BYTES), TUTTI_SPAN((uint8_t *)own, HANDLE_BYTES),
                                    NULL));
}

/* This many members, the first two of which change places if swapped. */
static tutti_status reconfigure(int64_t uuid, int n, bool swapped)
{
    tutti_reconfigure_options opts = TUTTI_RECONFIGURE_OPTIONS;
    const char               *list[RANKS_MOST];
    int                       i;

    for (i = 0; i < n; i++)
        list[i] = handles[(rank + i) % size];
    for (i = 0; i < n && n == size; i++)
        list[i] = handles[swapped && i < 2 ? 1 - i : i];
    opts.uuid = uuid;
    opts.handles = list;
    opts.n_handles = n;
    return tutti_reconfigure(NULL, &opts);
}

/* Each would go on without its neighbour. */
static void fewer_or_more_are_refused(void)
{
    const int    other = (rank + 1) % size;
    tutti_group *group = NULL;

    FAILS(tutti_shrink_group(&other, 1, NULL, TUTTI_SHRINK_DEFAULT, NULL, &group), TUTTI_E_UNSUPPORTED,
          "shrink_group: " FIXED "name another backend in the options");
    FAILS(tutti_shrink_group(NULL, 0, NULL, TUTTI_SHRINK_DEFAULT, NULL, &group), TUTTI_E_UNSUPPORTED, "shrink_group: " FIXED);
    FAILS(tutti_grow_group(NULL, NULL, 1, NULL, &group), TUTTI_E_UNSUPPORTED, "grow_group: " FIXED "name another backend in the options");
    FAILS(reconfigure(1, size - 1, false), TUTTI_E_UNSUPPORTED, "reconfigure: " FIXED "pass the handles of all its members");
    sum_is_right();
}

/* In another order the ranks are not those of MPI's world, which the backend finds: who is in its old place is told. */
static void another_order_is_refused(void)
{
    const tutti_status st = reconfigure(2, size, true);

    CHECK(st == TUTTI_E_ARG || (rank > 1 && st == TUTTI_E_REMOTE));
    CHECK(strstr(tutti_last_error(), "of MPI's world") != NULL);
    sum_is_right();
}

/* The others wait for rank 1 in the backend, and are told. */
static void one_refuses_a_group(void)
{
    const int    twice[2] = { 0, 0 };
    tutti_group *group = NULL;

    if (rank == 1)
        FAILS(tutti_new_group(twice, 2, NULL, &group), TUTTI_E_ARG, "rank 0 is there twice");
    else
        FAILS(tutti_new_group(NULL, 0, NULL, &group), TUTTI_E_MISMATCH, "rank 1 cannot make it: new_group: rank 0 is there twice");
    sum_is_right();
}

static void anew_of_the_same(void)
{
    OK(reconfigure(3, size, false));
    CHECK(tutti_get_rank(NULL) == rank && tutti_get_world_size(NULL) == size);
    sum_is_right();
}

/* What the words advise. The last rank stays behind. */
static void fewer_over_another_backend(void)
{
    const int           last = size - 1;
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;
    int64_t             x = rank + 1;

    opts.backend = "native";
    OK(tutti_barrier(NULL));
    if (rank == last)
        return;
    OK(tutti_shrink_group(&last, 1, NULL, TUTTI_SHRINK_DEFAULT, &opts, &group));
    CHECK(tutti_get_world_size(NULL) == size - 1 && strcmp(tutti_get_backend(NULL), "native") == 0);
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL));
    CHECK(x == size * (size - 1) / 2);
}

int main(void)
{
    OK(tutti_init_process_group(NULL));
    rank = tutti_get_rank(NULL);
    size = tutti_get_world_size(NULL);
    CHECK(strcmp(tutti_get_backend(NULL), "mpi") == 0);
    exchange_handles();
    fewer_or_more_are_refused();
    one_refuses_a_group();
    another_order_is_refused();
    anew_of_the_same();
    fewer_over_another_backend();
    OK(tutti_destroy_process_group(NULL));
    printf("rank %d of %d: fine\n", rank, size);
    return 0;
}
