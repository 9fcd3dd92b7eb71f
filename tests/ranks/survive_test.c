/* SPDX-License-Identifier: BSD-3-Clause
 *
 * survive_test.c
 * Goal    after deaths, stops and partitions the members that are left agree who they are, and go on in the same
 *         processes: within GO_ON_MS of the kill, whoever died, also when another one dies meanwhile; one side of a
 *         partition at most; and what a stopped rank does after it wakes changes nothing.
 * Method  processes over shared memory and TCP, on one host and two, killed and stopped by signals at points that the
 *         others can tell; the network between two hosts is taken down. tutti_shrink_group() gets no list. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "gone.h"
#include "harness/harness.h"
#include "harness/torch_server.h"
#include <tutti/tutti.h>

/* GO_ON_MS is what is promised of an idle machine, on which it takes some tens of ms; SLACK_MS is for one that runs other
 * tests beside. */
enum { SILENCE_LIMIT_MS = 10000 /* four heartbeats, and some for a busy machine */ };
enum { COUNT = 1 << 20, GO_ON_MS = 2000, SLACK_MS = 6000, BEGUN = 0, ASLEEP = 1, AGREED = 2, CUT = 3, SHUT = 4, SHUT_MS = 1500, LOW = 64, PORT = 5, ZOMBIE_MS = 2000, PIDS = 8 };

static bool said(const char *word)
{
    return strstr(tutti_last_error(), word) != NULL;
}

static void must(tutti_status st)
{
    if (st != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static void expect_sum(tutti_group *group, int32_t mine, int32_t sum)
{
    must(tutti_all_reduce(TUTTI_SPAN(&mine, 1), TUTTI_SUM, group));
    assert_int_equal(mine, sum);
}

/* All have come, and nobody is inside the barrier any more. */
static void all_have_begun_in(tt_ctx *t, tutti_group *world)
{
    must(tutti_barrier(world));
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size);
}

static void all_have_begun(tt_ctx *t)
{
    all_have_begun_in(t, t->group);
}

/* Go on with whoever is left, as often as somebody dies meanwhile. */
static tutti_group *go_on(tt_ctx *t, tutti_group *group, unsigned flags)
{
    tutti_group *left = NULL;

    must(tutti_shrink_group(NULL, 0, group, flags, NULL, &left));
    if (t->group != NULL)
        t->group = left;
    return left;
}

/* ---- one dies ---- */

static void check_survivors(tt_ctx *t, tutti_group *world, int victim)
{
    tutti_group *pair = NULL;
    const int    ends[] = { 0, t->size - 2 };

    assert_int_equal(tutti_get_world_size(world), t->size - 1);
    assert_int_equal(tutti_get_rank(world), t->rank - (t->rank > victim));
    assert_int_equal(tutti_get_former_rank(world, tutti_get_rank(world)), t->rank);
    must(tutti_new_group(ends, 2, NULL, &pair)); /* in its store */
    must(tutti_barrier(world));
}

/* A sink: counts lines that say of somebody that it lives and did not come. */
static void look_for_the_living(tutti_log_level level, const char *line, void *ctx)
{
    if (level == TUTTI_LOG_WARN && strstr(line, "lives and did not come") != NULL)
        atomic_fetch_add((_Atomic int *)ctx, 1);
}

static void a_death(tt_ctx *t, int victim)
{
    const int64_t sum = t->size * (t->size - 1) / 2 - victim;
    int64_t       began_ms;
    tutti_status  st;
    tutti_group  *world;
    int32_t       x = 1;
    _Atomic int   lines = 0;

    all_have_begun(t);
    began_ms = now_ms();
    if (t->rank == victim)
        kill(getpid(), SIGKILL);
    st = tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group);
    assert_true(st == TUTTI_E_PEER || st == TUTTI_E_ABORTED);
    must(tutti_log_set_sink("living", look_for_the_living, &lines));
    world = go_on(t, t->group, TUTTI_SHRINK_DEFAULT);
    must(tutti_log_set_sink("living", NULL, NULL));
    assert_int_equal(atomic_load(&lines), 0); /* all others go on */
    expect_sum(world, t->rank, (int32_t)sum);
    assert_in_range(now_ms() - began_ms, 0, GO_ON_MS + SLACK_MS);
    check_survivors(t, world, victim);
}

static void some_rank_dies(tt_ctx *t)
{
    a_death(t, 3);
}

/* Who served the store: it is made anew, on rank 1. */
static void rank_0_dies(tt_ctx *t)
{
    a_death(t, 0);
}

/* A store of the program's that rank 0 served: handles lead to the new one, which is empty. */
static void the_store_is_served_anew(tt_ctx *t)
{
    tutti_tcp_store_options at = TUTTI_TCP_STORE_OPTIONS;
    tutti_init_options      opts = TUTTI_INIT_OPTIONS;
    tutti_bytes             value = { 0 };
    tutti_store            *part = NULL;
    tutti_group            *left = NULL;
    const char             *key = "before";
    bool                    there = true;

    at.host = t->addr;
    at.port = t->port;
    at.is_master = t->rank == 0;
    must(tutti_tcp_store_open(&at, &opts.store));
    must(tutti_prefix_store_open("mine", opts.store, &part));
    opts.rank = t->rank;
    opts.world_size = t->size;
    must(tutti_init_process_group(&opts));
    if (t->rank == 0)
        must(tutti_store_set(part, "before", "x", 1));
    all_have_begun(t);
    if (t->rank == 0)
        kill(getpid(), SIGKILL);
    must(tutti_shrink_group(NULL, 0, NULL, 0, NULL, &left));
    must(tutti_store_check(part, &key, 1, &there));
    assert_false(there);
    if (tutti_get_rank(NULL) == 0)
        must(tutti_store_set(part, "after", "y", 1));
    must(tutti_store_get(part, "after", 0, &value));
    assert_int_equal(value.size, 1);
    tutti_bytes_free(&value);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(part);
    tutti_store_close(opts.store);
}

/* One after the other, until two are left; rank 0 is always the next. */
static void they_die_by_turns(tt_ctx *t)
{
    tutti_group *world = t->group;
    uint32_t     n_posts = (uint32_t)t->size;
    int32_t      x;
    int          n;

    all_have_begun(t);
    for (n = 0; n < t->size - 2; n++) {
        if (t->rank == n)
            _exit(TT_PASSED); /* without a word to the others */
        x = 1;
        assert_int_not_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, world), TUTTI_OK);
        world = go_on(t, world, TUTTI_SHRINK_DEFAULT);
        assert_int_equal(tutti_get_world_size(world), t->size - n - 1);
        x = 1;
        expect_sum(world, 1, t->size - n - 1);
        n_posts += (uint32_t)(t->size - n - 1);
        tt_post(t, BEGUN); /* the next one does not die in the sum */
        tt_await(t, BEGUN, n_posts);
    }
}

/* A subgroup has a store that the rest of the world does not know. When the world goes on, all have the same again. */
static void a_subgroup_has_a_store_until_the_world_has(tt_ctx *t)
{
    tutti_tcp_store_options at = TUTTI_TCP_STORE_OPTIONS;
    tutti_init_options      opts = TUTTI_INIT_OPTIONS;
    const int               some[] = { 0, 1, 2 };
    tutti_group            *group = NULL, *pair = NULL;
    tutti_bytes             value = { 0 };

    at.host = t->addr;
    at.port = t->port;
    at.is_master = t->rank == 0;
    must(tutti_tcp_store_open(&at, &opts.store));
    opts.rank = t->rank;
    opts.world_size = t->size;
    must(tutti_init_process_group(&opts));
    must(tutti_new_group(some, 3, NULL, &group));
    all_have_begun(t);
    if (t->rank == 0)
        kill(getpid(), SIGKILL);
    if (group != TUTTI_NON_MEMBER) {
        group = go_on(t, group, TUTTI_SHRINK_DEFAULT);
        expect_sum(group, t->rank, 3);
        must(tutti_split_group_by_color(group, 0, NULL, &pair)); /* with keys */
        expect_sum(pair, t->rank, 3);
    }
    must(tutti_shrink_group(NULL, 0, NULL, 0, NULL, &group));
    expect_sum(NULL, t->rank, 6);
    if (t->rank == 1)
        must(tutti_store_set(opts.store, "after", "y", 1));
    must(tutti_store_get(opts.store, "after", 0, &value));
    assert_int_equal(value.size, 1);
    tutti_bytes_free(&value);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(opts.store);
}

static void a_subgroup_loses_one(tt_ctx *t)
{
    const int    odds[] = { 1, 3, 5 };
    tutti_group *group = NULL;

    must(tutti_new_group(odds, 3, NULL, &group));
    all_have_begun(t);
    if (t->rank == 1)
        kill(getpid(), SIGKILL);
    if (group == TUTTI_NON_MEMBER)
        return;
    group = go_on(t, group, TUTTI_SHRINK_DEFAULT);
    assert_int_equal(tutti_get_world_size(group), 2);
    assert_int_equal(tutti_get_process_group_ranks(group)[0], 3);
    expect_sum(group, t->rank, 8);
}

/* A sink: counts lines that tell of rank 2 as left out, by one who knows that it lives. */
static void look_for_the_left_out(tutti_log_level level, const char *line, void *ctx)
{
    if (level == TUTTI_LOG_WARN && strstr(line, "goes on without 1 of its members") != NULL && strstr(line, "rank 2 (") != NULL &&
        strstr(line, "lives and did not come") != NULL && strstr(line, "has waited for ") != NULL)
        atomic_fetch_add((_Atomic int *)ctx, 1);
}

/* Nobody has died: all that call it go on, and the one that does not is waited for, then left out. Those that go on say so, and
 * its words have no advice that would make a second world. */
static void one_does_not_come(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *left = NULL;
    _Atomic int         lines = 0;

    all_have_begun(t);
    if (t->rank == 2) {
        tt_await(t, AGREED, (uint32_t)t->size - 1);
        tt_await_goodbye(t, 0);
        assert_int_not_equal(tutti_shrink_group(NULL, 0, t->group, 0, &opts, &left), TUTTI_OK);
        if (said("TUTTI_SHRINK_MINORITY") || !said("only 1 of the last 4 members is here") || !said("left the group before this call") ||
            !said("tutti_join_group()"))
            fail_msg("%s", tutti_last_error());
        tt_post(t, SHUT);
        return;
    }
    opts.timeout_ms = 12000; /* a third of it is for who does not come, and for who is late */
    must(tutti_log_set_sink("left", look_for_the_left_out, &lines));
    must(tutti_shrink_group(NULL, 0, t->group, 0, &opts, &left));
    must(tutti_log_set_sink("left", NULL, NULL));
    assert_int_equal(atomic_load(&lines), 1);
    if (t->group != NULL)
        t->group = left;
    tt_post(t, AGREED);
    assert_int_equal(tutti_get_world_size(left), t->size - 1);
    expect_sum(left, 1, t->size - 1);
    tt_await(t, SHUT, 1);
}

/* Bells of a process: it has one more inside of the call. */
static int count_bells(pid_t pid)
{
    char           dir_path[64], path[320], what[64];
    struct dirent *entry;
    DIR           *dir;
    int            n = 0;

    snprintf(dir_path, sizeof dir_path, "/proc/%d/fd", (int)pid);
    dir = opendir(dir_path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        ssize_t size;

        snprintf(path, sizeof path, "%s/%s", dir_path, entry->d_name);
        size = readlink(path, what, sizeof what - 1);
        what[size > 0 ? size : 0] = '\0';
        n += strstr(what, "eventfd") != NULL;
    }
    if (dir != NULL)
        closedir(dir);
    return n;
}

/* Every number below LOW: all that the world has is above then, and goes without leaving a number below. */
static void take_low_numbers(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd < LOW);
    assert_true(fd >= 0);
    close(fd);
}

/* A child leaves no number to its parent for one more descriptor, once that is inside of the call, for a while. The limit is not
 * 0, for it holds for what is polled at once, too. */
static pid_t shut_soon(tt_ctx *t)
{
    const pid_t   parent = getpid();
    const int     before = count_bells(parent);
    const pid_t   helper = fork();
    struct rlimit limit, none;

    if (helper != 0)
        return helper;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(1);
    while (count_bells(parent) <= before)
        usleep(1000);
    none = (struct rlimit){ .rlim_cur = LOW, .rlim_max = limit.rlim_max };
    if (prlimit(parent, RLIMIT_NOFILE, &none, NULL) != 0)
        _exit(1);
    tt_post(t, SHUT);
    usleep(SHUT_MS * 1000);
    _exit(prlimit(parent, RLIMIT_NOFILE, &limit, NULL));
}

static int64_t cpu_ms(void)
{
    struct rusage used;

    getrusage(RUSAGE_THREAD, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * INT64_C(1000) +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

/* Others stand at the door of one that has no descriptor for them: it lets them in later, and does not spin. */
static void without_descriptors_it_waits(tt_ctx *t)
{
    tutti_tcp_store_options at = TUTTI_TCP_STORE_OPTIONS;
    tutti_init_options      opts = TUTTI_INIT_OPTIONS;
    tutti_group            *left;
    pid_t                   helper = 0;
    int64_t                 used_ms;

    take_low_numbers();
    at.host = t->addr;
    at.port = t->port;
    at.is_master = t->rank == 0;
    must(tutti_tcp_store_open(&at, &opts.store));
    opts.rank = t->rank;
    opts.world_size = t->size;
    must(tutti_init_process_group(&opts));
    all_have_begun(t);
    if (t->rank == 2)
        kill(getpid(), SIGKILL);
    if (t->rank == 0)
        helper = shut_soon(t);
    else
        tt_await(t, SHUT, 1);
    used_ms = cpu_ms();
    left = go_on(t, NULL, TUTTI_SHRINK_DEFAULT);
    assert_in_range(cpu_ms() - used_ms, 0, SHUT_MS / 3);
    if (helper != 0)
        assert_int_equal(waitpid(helper, NULL, 0), helper);
    expect_sum(left, 1, 2);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(opts.store);
}

/* ---- one more dies meanwhile ---- */

/* A child ends its parent some time after the call has begun: wherever that is. */
static void die_in(int us)
{
    const pid_t victim = getpid();

    if (fork() == 0) {
        usleep((useconds_t)us);
        kill(victim, SIGKILL);
        _exit(0);
    }
}

static void a_second_death(tt_ctx *t, int second, int us)
{
    int64_t       began_ms;
    tutti_group  *world = t->group, *next = NULL;
    tutti_status  st = TUTTI_OK;
    int32_t       x = 1;

    all_have_begun(t);
    began_ms = now_ms();
    if (t->rank == 2)
        kill(getpid(), SIGKILL);
    assert_int_not_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group), TUTTI_OK);
    if (t->rank == second)
        die_in(us);
    for (;;) { /* it may die during the agreement, or right after it */
        must(tutti_shrink_group(NULL, 0, world, 0, NULL, &next));
        world = next;
        if (t->group != NULL)
            t->group = world;
        while (t->rank == second)
            pause();
        x = 1;
        st = tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, world);
        if (st == TUTTI_OK)
            break;
    }
    assert_int_equal(x, t->size - 2);
    assert_int_equal(tutti_get_world_size(world), t->size - 2);
    assert_in_range(now_ms() - began_ms, 0, 2 * GO_ON_MS + SLACK_MS);
}

static void a_leader_dies_at_once(tt_ctx *t)
{
    a_second_death(t, 0, 0);
}

static void a_leader_dies_early(tt_ctx *t)
{
    a_second_death(t, 0, 2000);
}

static void a_leader_dies_later(tt_ctx *t)
{
    a_second_death(t, 0, 8000);
}

static void a_leader_dies_late(tt_ctx *t)
{
    a_second_death(t, 0, 30000);
}

static void a_follower_dies_early(tt_ctx *t)
{
    a_second_death(t, 5, 1000);
}

static void a_follower_dies_later(tt_ctx *t)
{
    a_second_death(t, 5, 6000);
}

static void a_follower_dies_late(tt_ctx *t)
{
    a_second_death(t, 5, 20000);
}

/* Rank 3 has the store of another program. */
static tt_torch_server *serve_or_wait(tt_ctx *t)
{
    tt_torch_server *server = NULL;

    if (t->rank == 3) {
        server = tt_torch_server_start(NULL);
        assert_non_null(server);
        atomic_store(&t->marks[PIDS + 3], (uint32_t)tt_torch_server_port(server));
        tt_post(t, PORT);
    }
    tt_await(t, PORT, 1);
    return server;
}

static tutti_group *join_foreign(const tt_ctx *t)
{
    tutti_torch_store_options to = TUTTI_TORCH_STORE_OPTIONS;
    tutti_init_options        opts = TUTTI_INIT_OPTIONS;
    tutti_store              *store = NULL;
    tutti_group              *world = NULL;

    to.host = "127.0.0.1";
    to.port = (int)atomic_load(&t->marks[PIDS + 3]);
    must(tutti_torch_store_open(&to, &store));
    opts.store = store;
    opts.rank = t->rank;
    opts.world_size = t->size;
    opts.timeout_ms = 60000;
    must(tutti_create_process_group(&opts, &world));
    tutti_store_close(store);
    return world;
}

/* Rank 1 dies. Of the three that go on rank 2 leaves its card in the foreign store: then it dies, or loses its connection. */
static void go_on_in_a_foreign_store(tt_ctx *t, bool dies, int32_t sum, int size)
{
    tt_torch_server *server = serve_or_wait(t);
    tutti_group     *world = join_foreign(t), *left = NULL;
    int64_t          began_ms;
    int32_t          x = 1;

    if (t->rank == 2)
        atomic_store(&t->marks[PIDS + 2], (uint32_t)getpid());
    must(tutti_barrier(world));
    if (server != NULL) /* of the three that go on it is number 1 */
        tt_torch_server_kill_over(server, "/card/1", dies ? (pid_t)atomic_load(&t->marks[PIDS + 2]) : 0);
    all_have_begun_in(t, world);
    began_ms = now_ms();
    if (t->rank == 1)
        kill(getpid(), SIGKILL);
    assert_int_not_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, world), TUTTI_OK);
    must(tutti_shrink_group(NULL, 0, world, TUTTI_SHRINK_DEFAULT, NULL, &left));
    expect_sum(left, t->rank, sum);
    assert_int_equal(tutti_get_world_size(left), size);
    assert_in_range(now_ms() - began_ms, 0, 2 * GO_ON_MS + SLACK_MS);
    must(tutti_barrier(left));
    must(tutti_destroy_process_group(left));
    if (server != NULL)
        tt_await(t, SHUT, (uint32_t)size - 1);
    else
        tt_post(t, SHUT);
    tt_torch_server_stop(server);
}

/* Its waits have to end, though nobody here can stop its server. */
static void one_dies_while_they_meet_in_a_foreign_store(tt_ctx *t)
{
    go_on_in_a_foreign_store(t, true, 3, 2);
}

/* What the attempt has left there is in nobody's way. */
static void an_attempt_in_a_foreign_store_is_repeated(tt_ctx *t)
{
    go_on_in_a_foreign_store(t, false, 5, 3);
}

/* ---- too few ---- */

static void fewer_than_half_must_be_told(tt_ctx *t)
{
    tutti_group *left = NULL;

    all_have_begun(t);
    if (t->rank < 3)
        kill(getpid(), SIGKILL);
    assert_int_equal(tutti_shrink_group(NULL, 0, t->group, 0, NULL, &left), TUTTI_E_PEER);
    assert_true(said("only 2 of the last 5 members are here"));
    assert_ptr_equal(left, TUTTI_NO_GROUP);
    tt_post(t, AGREED);
    tt_await(t, AGREED, 2);
    left = go_on(t, t->group, TUTTI_SHRINK_MINORITY);
    expect_sum(left, t->rank, 7);
}

static void lists_must_be_equal(tt_ctx *t)
{
    tutti_group *left = NULL;
    const int    others[] = { t->rank == 3 ? 1 : 2 };

    all_have_begun(t);
    if (t->rank == 1 || t->rank == 2)
        return;
    assert_int_equal(tutti_shrink_group(others, 1, t->group, 0, NULL, &left) == TUTTI_OK, false);
    if (said("passed different ranks to exclude") || said("left the group before this call")) /* the list is read too late */
        return;
    if (strcmp(t->transport, "tcp") != 0 || !said("is gone, and not among those to exclude")) /* and its goodbye still later */
        fail_msg("%s", tutti_last_error());
}

/* Rank 3 is excluded, rank 2 is stopped and not: the others wait for it, and one of them for the other, too. */
static void a_silent_one_is_named_by_all(tt_ctx *t)
{
    static const int    excluded[] = { 3 };
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *left = NULL;

    atomic_store(&t->marks[PIDS + t->rank], (uint32_t)getpid());
    all_have_begun(t);
    if (t->rank == 3) {
        tt_await(t, AGREED, 2);
        kill((pid_t)atomic_load(&t->marks[PIDS + 2]), SIGCONT);
        return;
    }
    if (t->rank == 2) {
        kill(getpid(), SIGSTOP);
        return;
    }
    opts.timeout_ms = 3000; /* rank 2 has stopped itself by then */
    assert_int_not_equal(tutti_shrink_group(excluded, 1, t->group, TUTTI_SHRINK_ABORT, &opts, &left), TUTTI_OK);
    if (!said("rank 2 (") || !said("stopped by a signal"))
        fail_msg("%s", tutti_last_error());
    tt_post(t, AGREED);
    tt_await(t, AGREED, 2);
}

/* Rank 0 leads, and serves the store in which the others wait: nothing that they wait for ends by itself before their time is
 * up. */
static void a_leader_stops_in_its_build(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    const pid_t         helper = t->rank == 0 ? tt_wake_later(t, AGREED, t->size - 2) : 0; /* those that go on without it */
    const int           dead = t->size - 1;
    tutti_group        *left = NULL;
    int64_t             began_ms;

    all_have_begun(t);
    if (t->rank == dead)
        kill(getpid(), SIGKILL);
    opts.timeout_ms = 3 * SILENCE_LIMIT_MS;
    began_ms = now_ms();
    if (t->rank == 0) {
        assert_int_equal(setenv("TUTTI_LOG", "debug", 1), 0);
        must(tutti_log_set_sink("stop", tt_stop_when_met, NULL));
        assert_int_not_equal(tutti_shrink_group(NULL, 0, t->group, TUTTI_SHRINK_ABORT, &opts, &left), TUTTI_OK);
        must(tutti_log_set_sink("stop", NULL, NULL));
        waitpid(helper, NULL, 0);
        return;
    }
    must(tutti_shrink_group(NULL, 0, t->group, TUTTI_SHRINK_ABORT, &opts, &left));
    assert_in_range(now_ms() - began_ms, 0, SILENCE_LIMIT_MS);
    t->group = left;
    tt_post(t, AGREED);
    assert_int_equal(tutti_get_world_size(left), t->size - 2);
    expect_sum(left, 1, t->size - 2);
}

/* ---- a partition ---- */

static void cut_the_network(void)
{
    if (system("ip link set tt0 down") != 0) {
        print_message("the machine refuses to take a link down\n");
        exit(TT_SKIPPED);
    }
}

/* Three on one host, two on the other; rank 0 is with the many, and so is the store. */
static void one_side_of_a_partition_goes_on(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *left = NULL;
    int64_t             began_ms;
    tutti_status        st;

    all_have_begun(t);
    if (t->rank == t->size - 1)
        cut_the_network();
    opts.timeout_ms = 3 * SILENCE_LIMIT_MS; /* it is no time-out that ends it */
    began_ms = now_ms();
    st = tutti_shrink_group(NULL, 0, t->group, TUTTI_SHRINK_ABORT, &opts, &left);
    if (t->host == 0) {
        must(st);
        if (t->group != NULL)
            t->group = left;
        expect_sum(left, 1, 3);
    } else {
        assert_int_equal(st, TUTTI_E_PEER);
        assert_true(said("fewer than half"));
    }
    assert_in_range(now_ms() - began_ms, 0, SILENCE_LIMIT_MS);
}

/* ---- a zombie ---- */

/* Stop this process at any point of what it does, and let it go on when the others have gone on without it. */
static pid_t stop_soon(tt_ctx *t)
{
    const pid_t self = getpid();
    const pid_t helper = fork();

    if (helper == 0) {
        kill(self, SIGSTOP);
        tt_post(t, ASLEEP);
        tt_await(t, AGREED, (uint32_t)t->size - 1);
        kill(self, SIGCONT);
        _exit(0);
    }
    return helper;
}

static void find_itself_left_out(tt_ctx *t, pid_t helper)
{
    tutti_group *left = NULL;

    waitpid(helper, NULL, 0);
    assert_int_not_equal(tutti_shrink_group(NULL, 0, t->group, TUTTI_SHRINK_ABORT, NULL, &left), TUTTI_OK);
}

static void go_on_without_it(tt_ctx *t)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *left = NULL;

    tt_await(t, ASLEEP, 1);
    opts.timeout_ms = 9000;
    must(tutti_shrink_group(NULL, 0, t->group, TUTTI_SHRINK_ABORT, &opts, &left)); /* it waits 3 s for the zombie, and for who is late */
    if (t->group != NULL)
        t->group = left;
    must(tutti_barrier(left));
}

/* The others work while it writes wherever it was about to. */
static void let_it_wake(tt_ctx *t, float *y, int count)
{
    int i;

    tt_post(t, AGREED);
    for (i = 0; i < 60; i++)
        must(tutti_all_reduce(TUTTI_SPAN(y, count), TUTTI_AVG, t->group));
}

static void expect_all(const float *x, int count, float value)
{
    int i;

    for (i = 0; i < count; i++)
        if (x[i] != value)
            fail_msg("element %d is %g", i, (double)x[i]);
}

/* x is what the call uses that it is stopped in: the program's again once the call has failed. */
static void a_zombie_in(tt_ctx *t, float *x, int count)
{
    float *y = tt_floats(t, (size_t)count, 2.0f);
    pid_t  helper;
    int    i;

    all_have_begun(t);
    must(tutti_set_timeout(t->group, ZOMBIE_MS)); /* making the world may take longer */
    if (t->rank == 1) {
        helper = stop_soon(t);
        while (tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_AVG, t->group) == TUTTI_OK)
            continue;
        find_itself_left_out(t, helper);
        return;
    }
    while (tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_AVG, t->group) == TUTTI_OK)
        continue;
    for (i = 0; i < count; i++)
        x[i] = 5.0f;
    go_on_without_it(t);
    let_it_wake(t, y, count);
    expect_all(x, count, 5.0f);
    expect_all(y, count, 2.0f);
}

static void a_zombie_changes_nothing(tt_ctx *t)
{
    a_zombie_in(t, tt_floats(t, COUNT, 1.0f), COUNT);
}

static void a_zombie_changes_no_registered_memory(tt_ctx *t)
{
    void *x = NULL;
    int   i;

    must(tutti_alloc(COUNT * sizeof(float), &x));
    for (i = 0; i < COUNT; i++)
        ((float *)x)[i] = 1.0f;
    a_zombie_in(t, x, COUNT);
    must(tutti_free(x));
}

/* It writes to the others by itself, without a call of theirs. */
static void a_zombie_changes_no_window(tt_ctx *t)
{
    float        *y = tt_floats(t, COUNT, 2.0f), *out = tt_floats(t, COUNT, 3.0f), *x;
    void         *memory = NULL;
    tutti_window *window = NULL;
    tutti_span    part;
    pid_t         helper;
    int           i;

    must(tutti_alloc(COUNT * sizeof(float), &memory));
    x = memory;
    part = TUTTI_SPAN(x, COUNT);
    must(tutti_window_create(&part, t->group, &window));
    all_have_begun(t);
    must(tutti_set_timeout(t->group, ZOMBIE_MS));
    if (t->rank == 1) {
        helper = stop_soon(t);
        while (atomic_load(&t->marks[AGREED]) < (uint32_t)t->size - 1)
            (void)tutti_window_put(window, TUTTI_SPAN(out, COUNT), 0, 0);
        for (i = 0; i < 20; i++)
            (void)tutti_window_put(window, TUTTI_SPAN(out, COUNT), 0, 0);
        find_itself_left_out(t, helper);
    } else {
        go_on_without_it(t);
        tutti_window_free(window);
        window = NULL;
        for (i = 0; i < COUNT; i++)
            x[i] = 5.0f;
        let_it_wake(t, y, COUNT);
        expect_all(x, COUNT, 5.0f);
        expect_all(y, COUNT, 2.0f);
    }
    tutti_window_free(window);
    tutti_free(memory);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(some_rank_dies, .ranks = 8, .transports = "shm,tcp", .dies = 3),
        TT_TEST(some_rank_dies, .ranks = 8, .hosts = 2, .dies = 3),
        TT_TEST(rank_0_dies, .ranks = 8, .transports = "shm,tcp", .dies = 0),
        TT_TEST(rank_0_dies, .ranks = 8, .hosts = 2, .dies = 0),
        TT_TEST(rank_0_dies, .name = "rank_0_dies_with_tls", .ranks = 4, .hosts = 2, .dies = 0, .tls = true),
        TT_TEST(the_store_is_served_anew, .ranks = 4, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 0),
        TT_TEST(they_die_by_turns, .ranks = 5, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(a_subgroup_loses_one, .ranks = 6, .transports = "shm,tcp", .dies = 1),
        TT_TEST(a_subgroup_has_a_store_until_the_world_has, .ranks = 4, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 0),
        TT_TEST(without_descriptors_it_waits, .ranks = 3, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 2,
                .limit_ms = 60000),
        TT_TEST(one_does_not_come, .ranks = 4, .transports = "shm,tcp", .limit_ms = 40000, .waits = true),
        TT_TEST(a_silent_one_is_named_by_all, .ranks = 4, .waits = true),
        TT_TEST(a_leader_stops_in_its_build, .ranks = 5, .transports = "shm,tcp", .dies = 4, .limit_ms = 60000, .waits = true),
        TT_TEST(one_side_of_a_partition_goes_on, .ranks = 5, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(a_zombie_changes_nothing, .ranks = 4, .transports = "shm,tcp",
                .limit_ms = 60000, .waits = true),
        TT_TEST(a_zombie_changes_no_registered_memory, .ranks = 4,
                .limit_ms = 60000, .waits = true),
        TT_TEST(a_zombie_changes_no_window, .ranks = 4,
                .limit_ms = 60000, .waits = true),
        TT_TEST(fewer_than_half_must_be_told, .ranks = 5, .transports = "shm,tcp", .dies = 0, .also_die = 6),
        TT_TEST(a_leader_dies_at_once, .ranks = 8, .dies = 2, .also_die = 1 << 0),
        TT_TEST(a_leader_dies_early, .ranks = 8, .transports = "shm,tcp", .dies = 2, .also_die = 1 << 0),
        TT_TEST(a_leader_dies_later, .ranks = 8, .transports = "shm,tcp", .dies = 2, .also_die = 1 << 0),
        TT_TEST(a_leader_dies_late, .ranks = 8, .dies = 2, .also_die = 1 << 0),
        TT_TEST(a_follower_dies_early, .ranks = 8, .dies = 2, .also_die = 1 << 5),
        TT_TEST(a_follower_dies_later, .ranks = 8, .transports = "shm,tcp", .dies = 2, .also_die = 1 << 5),
        TT_TEST(a_follower_dies_late, .ranks = 8, .dies = 2, .also_die = 1 << 5),
        TT_TEST(one_dies_while_they_meet_in_a_foreign_store, .ranks = 4, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 1,
                .also_die = 1 << 2, .limit_ms = 60000),
        TT_TEST(an_attempt_in_a_foreign_store_is_repeated, .ranks = 4, .transports = "shm,tcp", .init = TT_INIT_NONE, .dies = 1,
                .limit_ms = 60000),
        TT_TEST(lists_must_be_equal, .ranks = 4, .transports = "shm,tcp"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
