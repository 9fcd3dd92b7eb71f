/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stage.c - a job of four ranks that hangs in one of seven ways. `stage WAY`; hangs.py starts it and looks at it.
 *
 *   dead       rank 2 is killed, and the others have no plan for that
 *   stopped    rank 1 is stopped by a signal
 *   late       rank 3 sleeps where the others expect it
 *   different  ranks 0 and 1 use two groups, each in its own order, from asynchronous calls on
 *   send       rank 1 receives when it has seen a sign that rank 0 gives when it has sent
 *   grow       ranks 0 to 2 let somebody in, rank 3 does not call it
 *   shrink     rank 1 is killed, ranks 0 and 2 go on without it, rank 3 does not call it
 *
 * Who has come to the point where it hangs says so in a line. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tutti/tutti.h>
#include <unistd.h>

enum { LARGE = 4 << 20 }; /* floats: more than waits anywhere on the way */

static float data[LARGE];

static int fail(const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", tutti_get_rank(NULL), what, tutti_last_error());
    return 1;
}

static void say(const char *what)
{
    printf("rank %d %s\n", tutti_get_rank(NULL), what);
    fflush(stdout);
}

static tutti_status sum(tutti_group *group)
{
    return tutti_all_reduce(TUTTI_SPAN(data, 1000), TUTTI_SUM, group);
}

static int dead(int rank)
{
    say("is here");
    if (rank == 2)
        raise(SIGKILL);
    if (sum(NULL) != TUTTI_OK)
        fail("all_reduce"); /* and now? */
    say("has no plan");
    pause();
    return 1;
}

static int stopped(int rank)
{
    say("is here");
    if (rank == 1)
        raise(SIGSTOP);
    return sum(NULL) == TUTTI_OK ? 0 : fail("all_reduce");
}

static int late(int rank)
{
    say("is here");
    if (rank == 3)
        sleep(600);
    return sum(NULL) == TUTTI_OK ? 0 : fail("all_reduce");
}

/* After asynchronous calls it is not proved that a rank which waits does nothing else: so this is no error at once. */
static tutti_status sum_in_background(tutti_group *group)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_all_reduce_async(TUTTI_SPAN(data, 1000), TUTTI_SUM, group, &work);

    if (st == TUTTI_OK)
        st = tutti_work_wait(work);
    tutti_work_free(work);
    return st;
}

static int different(int rank)
{
    static const int    pair[] = { 0, 1 };
    tutti_group_options options = TUTTI_GROUP_OPTIONS;
    tutti_group        *model = NULL, *metrics = NULL;

    options.desc = "model";
    if (tutti_new_group(pair, 2, &options, &model) != TUTTI_OK)
        return fail("new_group");
    options.desc = "metrics";
    if (tutti_new_group(pair, 2, &options, &metrics) != TUTTI_OK)
        return fail("new_group");
    say("is here");
    if (rank < 2 && (sum_in_background(rank == 0 ? model : metrics) != TUTTI_OK ||
                     sum_in_background(rank == 0 ? metrics : model) != TUTTI_OK))
        return fail("all_reduce");
    return tutti_barrier(NULL) == TUTTI_OK ? 0 : fail("barrier");
}

/* What a rank waits for, outside of tutti: a file that rank 0 makes. */
static void await_sign(const char *sign)
{
    while (sign != NULL && access(sign, F_OK) != 0)
        usleep(20000);
}

static int blocked_send(int rank)
{
    const char *sign = getenv("TUTTI_TEST_SIGN");

    say("is here");
    if (rank == 0 && (tutti_send(TUTTI_SPAN(data, LARGE), 1, 7, NULL) != TUTTI_OK || sign == NULL || mknod(sign, S_IFREG | 0600, 0) != 0))
        return fail("send");
    if (rank == 1)
        await_sign(sign);
    if (rank == 1 && tutti_recv(TUTTI_SPAN(data, LARGE), 0, 7, NULL, NULL) != TUTTI_OK)
        return fail("recv");
    return tutti_barrier(NULL) == TUTTI_OK ? 0 : fail("barrier");
}

static int growing(int rank)
{
    tutti_group *world = NULL;

    say("is here");
    if (rank == 3)
        sleep(600);
    return tutti_grow_group(NULL, NULL, 1, NULL, &world) == TUTTI_OK ? 0 : fail("grow_group");
}

static int shrinking(int rank)
{
    static const int gone[] = { 1 };
    tutti_group     *world = NULL;

    if (rank == 1)
        raise(SIGKILL);
    if (sum(NULL) == TUTTI_OK)
        return fail("all_reduce");
    say("is here");
    if (rank == 3)
        sleep(600);
    return tutti_shrink_group(gone, 1, NULL, 0, NULL, &world) == TUTTI_OK ? 0 : fail("shrink_group");
}

/* None of these: all let somebody in, and nobody comes. */
static int nobody_comes(int rank)
{
    tutti_group *world = NULL;

    (void)rank;
    say("is here");
    return tutti_grow_group(NULL, NULL, 2, NULL, &world) == TUTTI_OK ? 0 : fail("grow_group");
}

/* None of these: the others have given up, as the sign says, when rank 3 comes. Each leaves a file. */
static int came_late(int rank)
{
    const char  *sign = getenv("TUTTI_TEST_SIGN");
    tutti_group *world = NULL;

    if (rank == 3)
        await_sign(sign);
    if (tutti_grow_group(NULL, NULL, 1, NULL, &world) == TUTTI_OK)
        return fail("grow_group");
    fprintf(stderr, "rank %d: %s\n", rank, tutti_last_error());
    say("has given up");
    return rank != 0 || (sign != NULL && mknod(sign, S_IFREG | 0600, 0) == 0) ? 0 : fail("the sign");
}

/* None of these: rank 1 was stopped before it joined. */
static int before(int rank)
{
    (void)rank;
    return 0;
}

/* None of these: rank 1 is killed, the others go on without it, under other numbers, and the last of them is late. */
static int regrouped(int rank)
{
    tutti_group *world = NULL;

    if (rank == 1)
        raise(SIGKILL);
    if (sum(NULL) == TUTTI_OK || tutti_shrink_group(NULL, 0, NULL, TUTTI_SHRINK_ABORT, NULL, &world) != TUTTI_OK || sum(NULL) != TUTTI_OK)
        return fail("going on");
    say("goes on");
    if (tutti_get_rank(NULL) == 2)
        sleep(600);
    return sum(NULL) == TUTTI_OK ? 0 : fail("all_reduce");
}

/* None of these: nothing is wrong. */
static int well(int rank)
{
    (void)rank;
    say("is here");
    while (sum(NULL) == TUTTI_OK)
        usleep(1000);
    return fail("all_reduce");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int rank);
    } ways[] = { { "dead", dead }, { "stopped", stopped }, { "late", late }, { "different", different }, { "send", blocked_send },
             { "grow", growing }, { "shrink", shrinking }, { "nobody-comes", nobody_comes }, { "came-late", came_late }, { "well", well },
             { "regrouped", regrouped }, { "before", before } };
    size_t i;

    for (i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (argc == 2 && strcmp(argv[1], ways[i].name) == 0) {
            if (ways[i].run == before && getenv("RANK") != NULL && strcmp(getenv("RANK"), "1") == 0)
                raise(SIGSTOP);
            if (tutti_init_process_group(NULL) != TUTTI_OK || sum(NULL) != TUTTI_OK)
                return fail("joining");
            return ways[i].run(tutti_get_rank(NULL));
        }
    fprintf(stderr, "usage: stage dead | stopped | late | different | send | grow | shrink | nobody-comes | came-late | well | "
                    "regrouped | before\n");
    return 2;
}
