/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_ranks.c
 * Goal    what backend "mpi" adds to the table: data of more than one slice, messages that end by themselves, groups made in
 *         any order by several threads, an orderly end.
 * Method  one rank of two or three that mpirun starts; TUTTI_BACKEND names the backend. What can be had of operations,
 *         types and sizes is the conformance matrix's. Says "rank R of P: fine" at the end. */
#include "mpi_check.h"

#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 3 * (1 << 20) + 5, MESSAGES = 40, LONG_BYTES = 5 << 20 };

static int rank, size;

static float *floats(int64_t n, float first, float step)
{
    float  *x = malloc((size_t)n * sizeof *x);
    int64_t i;

    CHECK(x != NULL);
    for (i = 0; i < n; i++)
        x[i] = first + step * (float)(i % 1000);
    return x;
}

/* ---- collectives ---- */

/* More than one block of parts, the last one short. */
static void large_sum(void)
{
    const float in_all = (float)(size * (size + 1) / 2);
    float      *x = floats(LARGE, (float)(rank + 1), 0.0f);
    int64_t     i;

    OK(tutti_all_reduce(TUTTI_SPAN(x, LARGE), TUTTI_SUM, NULL));
    for (i = 0; i < LARGE; i++)
        CHECK(x[i] == in_all);
    OK(tutti_reduce(TUTTI_SPAN(x, LARGE), size - 1, TUTTI_AVG, NULL));
    CHECK(rank != size - 1 || (x[0] == in_all && x[LARGE - 1] == in_all));
    free(x);
}

static void large_gather(void)
{
    float  *mine = floats(LARGE, (float)rank, 1.0f), *all = floats((int64_t)LARGE * size, -1.0f, 0.0f);
    int64_t i, r;

    OK(tutti_all_gather_into_tensor(TUTTI_SPAN(all, (int64_t)LARGE * size), TUTTI_SPAN(mine, LARGE), NULL));
    for (r = 0; r < size; r++)
        for (i = 0; i < LARGE; i += 997)
            CHECK(all[r * LARGE + i] == (float)r + (float)(i % 1000));
    OK(tutti_reduce_scatter_tensor(TUTTI_SPAN(mine, LARGE), TUTTI_SPAN(all, (int64_t)LARGE * size), TUTTI_MAX, NULL));
    for (i = 0; i < LARGE; i += 997)
        CHECK(mine[i] == (float)rank + (float)(i % 1000));
    if (rank == 0)
        mine[LARGE - 1] = 42.0f;
    OK(tutti_broadcast(TUTTI_SPAN(mine, LARGE), 0, NULL));
    CHECK(mine[LARGE - 1] == 42.0f && mine[0] == 0.0f);
    free(mine);
    free(all);
}

/* What MPI's own operations leave open: a NaN of any rank wins, f16 is rounded once. */
static void numbers(void)
{
    float    x[2] = { rank == 0 ? NAN : 1.0f, (float)rank };
    uint16_t half = rank == 0 ? 0x6800 : 0x3c00; /* 2048, and 1: 2048 + 1 + 1 is 2050, 2048 + 1 rounded is 2048 */

    OK(tutti_all_reduce(TUTTI_SPAN(x, 2), TUTTI_MIN, NULL));
    CHECK(isnan(x[0]) && x[1] == 0.0f);
    OK(tutti_all_reduce(tutti_span_of(&half, 1, TUTTI_F16), TUTTI_SUM, NULL));
    CHECK(half == (size == 3 ? 0x6801 : 0x6800));
}

/* Several under way at once, waited for in the other order. */
static void begun_at_once(void)
{
    tutti_work *works[3];
    int64_t     x[3] = { rank, 10 * rank, 100 * rank };
    const int   sum = size * (size - 1) / 2;
    int         i;

    for (i = 0; i < 3; i++)
        OK(tutti_all_reduce_async(TUTTI_SPAN(&x[i], 1), TUTTI_SUM, NULL, &works[i]));
    for (i = 2; i >= 0; i--) {
        OK(tutti_work_wait(works[i]));
        tutti_work_free(works[i]);
    }
    CHECK(x[0] == sum && x[1] == 10 * sum && x[2] == 100 * sum);
}

/* ---- messages ---- */

/* From all to rank 0, which takes them as they come; large ones are not taken before the others have gone. */
static void messages_of_any(void)
{
    int64_t     x[MESSAGES];
    tutti_work *works[MESSAGES];
    int         counts[8] = { 0 };
    int         i, r, from = -1;

    for (i = 0; i < MESSAGES; i++) {
        x[i] = 1000 * rank + i;
        if (rank != 0)
            OK(tutti_isend(TUTTI_SPAN(&x[i], 1), 0, i % 2, NULL, &works[i]));
    }
    for (i = 0; i < MESSAGES * (size - 1) && rank == 0; i++) {
        OK(tutti_recv(TUTTI_SPAN(&x[0], 1), TUTTI_ANY_SOURCE, i % 2, NULL, &from));
        CHECK(x[0] / 1000 == from && x[0] % 2 == i % 2);
        counts[from]++;
    }
    for (i = 0; i < MESSAGES && rank != 0; i++) {
        OK(tutti_work_wait(works[i]));
        tutti_work_free(works[i]);
    }
    for (r = 1; r < size && rank == 0; r++)
        CHECK(counts[r] == MESSAGES);
}

/* A send that nobody waits for goes on while its rank computes, and the receive is told of. */
static void long_message(void)
{
    const int      next = (rank + 1) % size, last = (rank + size - 1) % size;
    unsigned char *out = malloc(LONG_BYTES), *in = malloc(LONG_BYTES);
    tutti_work    *sent = NULL, *got = NULL;

    CHECK(out != NULL && in != NULL);
    memset(out, 'a' + rank, LONG_BYTES);
    OK(tutti_isend(TUTTI_SPAN(out, LONG_BYTES), next, 7, NULL, &sent));
    OK(tutti_irecv(TUTTI_SPAN(in, LONG_BYTES), last, 7, NULL, &got));
    while (!tutti_work_is_completed(got))
        sched_yield();
    OK(tutti_work_wait(got));
    CHECK(tutti_work_source_rank(got) == last && in[0] == 'a' + last && in[LONG_BYTES - 1] == 'a' + last);
    OK(tutti_work_wait(sent));
    tutti_work_free(sent);
    tutti_work_free(got);
    free(out);
    free(in);
}

/* ---- groups ---- */

static int64_t sum_over(tutti_group *group)
{
    int64_t x = rank + 1;

    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group));
    return x;
}

/* Two that share a rank, used in another order than made; who is in none goes on alone. */
static void groups(void)
{
    const int    some[2] = { 0, size - 1 };
    tutti_group *pair = NULL, *all = NULL;
    int64_t      x = 0;

    OK(tutti_new_group(some, 2, NULL, &pair));
    OK(tutti_new_group(NULL, 0, NULL, &all));
    CHECK(sum_over(all) == (int64_t)size * (size + 1) / 2);
    if (rank == 0 || rank == size - 1) {
        CHECK(sum_over(pair) == 1 + size);
        x = rank;
        if (rank == 0)
            OK(tutti_recv(TUTTI_SPAN(&x, 1), size - 1, 3, pair, NULL));
        else
            OK(tutti_send(TUTTI_SPAN(&x, 1), 0, 3, pair));
        CHECK(x == size - 1);
        OK(tutti_destroy_process_group(pair));
    }
    OK(tutti_destroy_process_group(all));
}

/* What nobody took of a group that is gone is not met in the next, which may have its place in MPI. */
static void messages_of_a_group_that_is_gone(void)
{
    tutti_group *group = NULL;
    int64_t      x = 0, i;

    for (i = 1; i < 4; i++) {
        OK(tutti_new_group(NULL, 0, NULL, &group));
        x = rank == 0 ? i : 0;
        if (rank == 0)
            OK(tutti_send(TUTTI_SPAN(&x, 1), 1, 3, group));
        if (rank == 1 && i == 3) {
            OK(tutti_recv(TUTTI_SPAN(&x, 1), 0, 3, group, NULL));
            CHECK(x == 3);
        }
        OK(tutti_barrier(group));
        OK(tutti_destroy_process_group(group));
    }
}

static void *sums_of_a_thread(void *group)
{
    int i;

    for (i = 0; i < 50; i++)
        CHECK(sum_over(group) == (int64_t)size * (size + 1) / 2);
    return NULL;
}

/* Two threads, each in a group of its own: neither waits with what the other needs. */
static void threads(void)
{
    tutti_group *of[2] = { NULL, NULL };
    pthread_t    thread[2];
    int          i;

    for (i = 0; i < 2; i++)
        OK(tutti_new_group(NULL, 0, NULL, &of[i]));
    for (i = 0; i < 2; i++)
        CHECK(pthread_create(&thread[i], NULL, sums_of_a_thread, of[(i + rank) % 2]) == 0);
    for (i = 0; i < 2; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    for (i = 0; i < 2; i++)
        OK(tutti_destroy_process_group(of[i]));
}

/* Only members call: MPI has no such groups. Nobody is waited for to find out. */
static void local_groups_are_refused(void)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    opts.use_local_synchronization = true;
    FAILS(tutti_new_group(NULL, 0, &opts, &group), TUTTI_E_UNSUPPORTED, "without use_local_synchronization");
}

/* A child that ends by exit() ends neither MPI nor anything of its parent's. */
static void child_that_exits(void)
{
    const pid_t child = fork();
    int         status = -1;

    if (child == 0)
        exit(7);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
    OK(tutti_init_process_group(NULL));
    rank = tutti_get_rank(NULL);
    size = tutti_get_world_size(NULL);
    CHECK(strcmp(tutti_get_backend(NULL), "mpi") == 0);
    large_sum();
    large_gather();
    numbers();
    begun_at_once();
    messages_of_any();
    long_message();
    groups();
    messages_of_a_group_that_is_gone();
    threads();
    local_groups_are_refused();
    OK(tutti_barrier(NULL));
    OK(tutti_destroy_process_group(NULL));
    OK(tutti_init_process_group(NULL)); /* MPI has not ended: another world can be made */
    OK(tutti_barrier(NULL));
    OK(tutti_destroy_process_group(NULL));
    child_that_exits(); /* it would end MPI, as there is no group left */
    printf("rank %d of %d: fine\n", rank, size);
    return 0;
}
