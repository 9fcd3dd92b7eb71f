/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_failures.c
 * Goal    calls that go wrong on backend "mpi" end on all ranks, in words that name the rank; none hangs, and memory that was
 *         given to a call is the caller's again.
 * Method  one rank of two or three that mpirun starts. Each failure finishes a group made for it; the world lives, and is
 *         where they meet in between. Says "rank R of P: fine", before it ends without MPI_Finalize, as groups
 *         have failed: mpirun may end the other ranks then. */
#include "mpi_check.h"

enum { SHORT_MS = 1500, LONG_MS = 30000, COUNT = 100000 };

static int rank, size;

static tutti_group *group_of_all(int64_t timeout_ms)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    opts.timeout_ms = timeout_ms;
    OK(tutti_new_group(NULL, 0, &opts, &group));
    return group;
}

/* The time is for the calls only: making the group, and coming to it, have more. */
static tutti_group *impatient_group(void)
{
    tutti_group *group = group_of_all(LONG_MS);

    OK(tutti_barrier(group));
    OK(tutti_barrier(NULL)); /* nobody is in the group's any more, which would end with it */
    OK(tutti_set_timeout(group, SHORT_MS));
    return group;
}

/* Rank 1 counts one more. Afterwards the group says the same again. */
static void other_counts(void)
{
    tutti_group *group = group_of_all(0);
    float        x[8] = { 0 };

    FAILS(tutti_all_reduce(TUTTI_SPAN(x, 4 + (rank == 1)), TUTTI_SUM, group), TUTTI_E_MISMATCH, "called different things");
    CHECK(strstr(tutti_last_error(), "rank 1: all_reduce #1 (sum, 5 f32)") != NULL);
    CHECK(tutti_barrier(group) == TUTTI_E_MISMATCH);
    OK(tutti_barrier(NULL));
    OK(tutti_destroy_process_group(group));
}

/* What rank 0 gives to rank 1 is not what that expects; all find out, before anything is written. */
static void other_splits(void)
{
    tutti_group *group = group_of_all(0);
    int64_t      out[16] = { 0 }, in[16] = { 0 }, gives[8], takes[8];
    int          r;

    for (r = 0; r < size; r++)
        gives[r] = takes[r] = 1;
    if (rank == 0)
        gives[1] = 2;
    FAILS(tutti_all_to_all_single(TUTTI_SPAN(out, size), TUTTI_SPAN(in, size + (rank == 0)), takes, gives, group),
          TUTTI_E_MISMATCH, "rank 0 gives 2 elements to rank 1, which expects 1");
    OK(tutti_barrier(NULL));
    OK(tutti_destroy_process_group(group));
}

/* Rank 1 does not come: the others name it, and end within their time. It learns of that with its next call. */
static void one_that_does_not_come(void)
{
    tutti_group *group = impatient_group();
    float       *x = calloc(COUNT, sizeof *x);

    CHECK(x != NULL);
    if (rank != 1) {
        FAILS(tutti_all_reduce(TUTTI_SPAN(x, COUNT), TUTTI_SUM, group), TUTTI_E_TIMEOUT, "timed out after");
        CHECK(strstr(tutti_last_error(), "rank 1 has not answered within") != NULL);
    }
    free(x); /* nothing of MPI's is in it */
    OK(tutti_barrier(NULL));
    if (rank == 1)
        CHECK(tutti_barrier(group) == TUTTI_E_TIMEOUT);
    OK(tutti_barrier(NULL));
    OK(tutti_destroy_process_group(group));
}

/* Rank 0 aborts while the others wait for it without limit. */
static void abort_is_told(void)
{
    tutti_group *group = group_of_all(TUTTI_INFINITE);

    if (rank == 0)
        OK(tutti_abort_process_group(group));
    CHECK(tutti_barrier(group) == TUTTI_E_ABORTED);
    OK(tutti_barrier(NULL));
    OK(tutti_destroy_process_group(group));
}

/* A message that is longer than the receive is for, and one of another type. */
static void wrong_messages(void)
{
    tutti_group *group = group_of_all(0);
    int32_t      x[4] = { 0 };
    float        f = 0.0f;

    if (rank == 0) {
        OK(tutti_send(TUTTI_SPAN(x, 4), 1, 1, group));
        OK(tutti_send(TUTTI_SPAN(x, 1), 1, 2, group));
    } else if (rank == 1) {
        FAILS(tutti_recv(TUTTI_SPAN(x, 2), 0, 1, group, NULL), TUTTI_E_MISMATCH, "a message from rank 0 with tag 1 has");
        CHECK(tutti_recv(TUTTI_SPAN(&f, 1), 0, 2, group, NULL) == TUTTI_E_MISMATCH);
    }
    OK(tutti_barrier(NULL));
    OK(tutti_destroy_process_group(group));
}

/* Nobody sends: the receive ends with its time, and names who should have. What it was given is free then. */
static void no_message(void)
{
    tutti_group *group = impatient_group();
    float        x = 0.0f;

    if (rank == 0)
        FAILS(tutti_recv(TUTTI_SPAN(&x, 1), 1, 5, group, NULL), TUTTI_E_TIMEOUT, "rank 1 has not sent a message with tag 5");
    OK(tutti_barrier(NULL));
    OK(tutti_destroy_process_group(group));
}

/* Rank 1 makes a group of itself alone where rank 0 makes one of both. The others make what rank 0 says, and are in none. */
static void other_lists(void)
{
    const int    pair[2] = { 0, 1 };
    tutti_group *group = NULL;

    if (rank == 0)
        FAILS(tutti_new_group(pair, 2, NULL, &group), TUTTI_E_MISMATCH, "rank 1 was given another list of ranks than rank 0");
    else
        OK(tutti_new_group(rank == 1 ? pair + 1 : pair, rank == 1 ? 1 : 2, NULL, &group));
    OK(tutti_barrier(NULL));
    if (rank != 0)
        OK(tutti_destroy_process_group(group));
}

/* A group that a member does not make in time: who waits names it, and when it comes it is told so, and does not wait. */
static void group_that_is_not_made(void)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    const int           pair[2] = { 0, 1 };
    tutti_group        *group = NULL;

    opts.timeout_ms = SHORT_MS;
    if (rank == 0)
        FAILS(tutti_new_group(pair, 2, &opts, &group), TUTTI_E_TIMEOUT, "not arrived: rank 1");
    OK(tutti_barrier(NULL));
    opts.timeout_ms = TUTTI_INFINITE;
    if (rank == 1)
        FAILS(tutti_new_group(pair, 2, &opts, &group), TUTTI_E_TIMEOUT, "not arrived: rank 1");
    OK(tutti_barrier(NULL));
}

int main(void)
{
    OK(tutti_init_process_group(NULL));
    rank = tutti_get_rank(NULL);
    size = tutti_get_world_size(NULL);
    CHECK(strcmp(tutti_get_backend(NULL), "mpi") == 0);
    other_counts();
    other_splits();
    one_that_does_not_come();
    abort_is_told();
    wrong_messages();
    no_message();
    other_lists();
    group_that_is_not_made();
    printf("rank %d of %d: fine\n", rank, size);
    fflush(stdout);
    OK(tutti_barrier(NULL)); /* all have said so */
    OK(tutti_destroy_process_group(NULL));
    return 0;
}
