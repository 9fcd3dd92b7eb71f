/* SPDX-License-Identifier: BSD-3-Clause
 *
 * harness_test.c
 * Goal    the harness passes what is right, fails what is wrong with words that say who and why, and
 *         leaves nothing behind in either case.
 * Method  each case runs a table of bodies in a forked process, with a private TMPDIR and its output in a
 *         file. Every process of the run inherits the write end of a pipe: end of file on it proves that
 *         all of them are gone. The bodies make no groups, so this needs no transport. */
#include "harness/harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_MAX = 32768, SEEN_WITHIN_MS = 20000 };

/* A run of the harness in a process of its own. */
typedef struct run {
    pid_t pid;
    int   code;
    int   alive; /* read end of the pipe that all processes of the run hold */
    char  dir[64];
    char  text[TEXT_MAX];
} run;

static int alive_end = -1; /* in the processes of a run: what alive is the other end of */

/* ---- bodies ------------------------------------------------------------------------------------ */

static void passes(tt_ctx *t)
{
    float *x = tt_floats(t, 1000, 1.0f + (float)t->rank);

    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size);
    assert_int_equal(t->marks[0], t->size);
    assert_true(x[999] == 1.0f + (float)t->rank);
    assert_int_equal(access(t->dir, W_OK), 0);
    assert_int_equal(t->host, 0);
}

static void one_asserts(tt_ctx *t)
{
    if (t->rank == 1)
        assert_string_equal("cheese", "chalk");
}

/* The others wait for a rank that has failed: they are ended long before the limit. */
static void one_asserts_others_wait(tt_ctx *t)
{
    if (t->rank == 1)
        fail_msg("rank %d gives up", t->rank);
    tt_await(t, 0, 1);
}

static void one_hangs(tt_ctx *t)
{
    if (t->rank == 2)
        tt_await(t, 0, 1);
}

static void one_aborts(tt_ctx *t)
{
    if (t->rank == 1)
        abort();
}

static void second_dies(tt_ctx *t)
{
    if (t->rank == 1)
        tt_die();
}

static void second_is_killed(tt_ctx *t)
{
    if (t->rank == 1)
        raise(SIGKILL);
}

static void one_dies_and_one_asserts(tt_ctx *t)
{
    second_dies(t);
    assert_int_equal(t->rank, 0);
}

static void leaves_a_process(tt_ctx *t)
{
    if (t->rank == 0 && fork() == 0)
        for (;;)
            pause();
}

static void sees_no_job(tt_ctx *t)
{
    (void)t;
    assert_null(getenv("RANK"));
    assert_null(getenv("MASTER_ADDR"));
    assert_null(getenv("TORCHELASTIC_RUN_ID"));
    assert_null(getenv("OMPI_COMM_WORLD_RANK"));
    assert_null(getenv("TUTTI_ALGO"));
    assert_string_equal(getenv("TUTTI_LOG"), "error");
    assert_string_equal(getenv("TUTTI_TRANSPORT"), strcmp(t->transport, "tcp") == 0 ? "tcp" : "auto");
}

/* A port is for one run: nobody listens there, and every rank was told the same. */
static void has_a_port(tt_ctx *t)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)t->port) };
    int                fd;

    if (t->rank == 0) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
        close(fd);
    }
    t->marks[1 + t->rank] = (uint32_t)t->port;
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size);
    assert_int_equal(t->marks[1], t->marks[2]);
}

static void waits_for_ever(tt_ctx *t)
{
    tt_post(t, 0);
    if (write(alive_end, "r", 1) != 1) /* tells the case that this rank runs */
        fail();
    tt_await(t, 1, 1);
}

static void ranks_share_a_process(tt_ctx *t)
{
    t->marks[1 + t->rank] = (uint32_t)getpid();
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size);
    assert_int_equal(t->marks[1], t->marks[t->size]);
}

static int listen_at(const tt_ctx *t)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)t->port) };
    int                fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(inet_pton(AF_INET, t->addr, &at.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static int connect_to(const char *addr, int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int                fd = socket(AF_INET, SOCK_STREAM, 0);
    int                sys;

    assert_int_equal(inet_pton(AF_INET, addr, &at.sin_addr), 1);
    sys = connect(fd, (struct sockaddr *)&at, sizeof at);
    if (sys == 0)
        return fd;
    sys = errno;
    close(fd);
    return -sys;
}

/* Tell the case which network namespace this rank is in. */
static void tell_namespace(void)
{
    struct stat st;
    uint64_t    ino;

    assert_int_equal(stat("/proc/self/ns/net", &st), 0);
    ino = st.st_ino;
    assert_int_equal(write(alive_end, &ino, sizeof ino), sizeof ino);
}

/* Rank 0 listens on its host; the last rank, on the other one, reaches it there and not on loopback. */
static void hosts_meet(tt_ctx *t)
{
    struct sockaddr_in from;
    socklen_t          bytes = sizeof from;
    char               text[INET_ADDRSTRLEN];
    int                listener;
    int                fd;

    tell_namespace();
    assert_int_equal(t->host, t->rank * 2 / t->size);
    if (t->rank == 0) {
        listener = listen_at(t);
        tt_post(t, 0);
        fd = accept(listener, (struct sockaddr *)&from, &bytes);
        assert_true(fd >= 0);
        assert_non_null(inet_ntop(AF_INET, &from.sin_addr, text, sizeof text));
        assert_string_equal(text, "10.77.0.2");
        close(fd);
        close(listener);
    } else if (t->rank == t->size - 1) {
        tt_await(t, 0, 1);
        assert_int_equal(connect_to("127.0.0.1", t->port), -ECONNREFUSED);
        fd = connect_to(t->addr, t->port);
        assert_true(fd >= 0);
        close(fd);
    }
}

/* As hosts_meet, but the second host hangs: its namespace must go all the same. */
static void second_host_hangs(tt_ctx *t)
{
    tell_namespace();
    if (t->host == 1)
        tt_await(t, 0, 1);
}

/* One of two tests that both need the other to be there at the same time: opening the pipe waits for it. */
static void meet(int how)
{
    char path[128];
    int  fd;

    snprintf(path, sizeof path, "%s/meet", getenv("TMPDIR"));
    assert_true(mkfifo(path, 0600) == 0 || errno == EEXIST);
    fd = open(path, how);
    assert_true(fd >= 0);
    if (how == O_RDONLY)
        unlink(path);
    close(fd);
}

static void meets_the_next(tt_ctx *t)
{
    (void)t;
    meet(O_RDONLY);
}

static void meets_the_one_before(tt_ctx *t)
{
    (void)t;
    meet(O_WRONLY);
}

/* ---- running them ------------------------------------------------------------------------------ */

static void begin(run *r, const tt_test *tests, size_t n, void (*before)(void))
{
    char path[96];
    int  ends[2];

    *r = (run){ .code = -1 };
    snprintf(r->dir, sizeof r->dir, "/tmp/tutti-selftest-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    assert_int_equal(chmod(r->dir, 0755), 0);
    assert_int_equal(pipe(ends), 0);
    r->alive = ends[0];
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0) {
        snprintf(path, sizeof path, "%s.txt", r->dir);
        alive_end = ends[1];
        close(ends[0]);
        setenv("TMPDIR", r->dir, 1);
        if (freopen(path, "w", stdout) == NULL || dup2(1, 2) < 0)
            _exit(99);
        if (before != NULL)
            before();
        exit(tt_main_bare(tests, n));
    }
    close(ends[1]);
}

/* Whether every process of the run is gone, within a while. */
static bool all_gone(run *r, int within_ms)
{
    struct pollfd ends = { .fd = r->alive, .events = POLLIN };
    char          c;

    while (poll(&ends, 1, within_ms) > 0)
        if (read(r->alive, &c, 1) == 0)
            return true;
    return false;
}

static void read_file(const char *path, char *text, size_t bytes)
{
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    text[fread(text, 1, bytes - 1, f)] = '\0';
    fclose(f);
}

static void read_text(run *r)
{
    char path[96];

    snprintf(path, sizeof path, "%s.txt", r->dir);
    read_file(path, r->text, TEXT_MAX);
    unlink(path);
}

static bool file_has(const char *path, const char *words)
{
    static char text[1 << 20];

    read_file(path, text, sizeof text);
    return strstr(text, words) != NULL;
}

/* Wait for the run; nothing may be left of it, whatever it came to. */
static void finish(run *r)
{
    int status;

    assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
    read_text(r);
    if (!WIFEXITED(status))
        fail_msg("the harness was ended by signal %d: %s", WTERMSIG(status), r->text);
    r->code = WEXITSTATUS(status);
    assert_true(all_gone(r, 0));
    close(r->alive);
    if (rmdir(r->dir) != 0)
        fail_msg("left in %s: %s", r->dir, strerror(errno));
}

static void check_all(const tt_test *tests, size_t n, int code, const char *const *words)
{
    run r;

    begin(&r, tests, n, NULL);
    finish(&r);
    if (r.code != code)
        fail_msg("exit code %d instead of %d:\n%s", r.code, code, r.text);
    for (; *words != NULL; words++)
        if (strstr(r.text, *words) == NULL)
            fail_msg("'%s' is not in:\n%s", *words, r.text);
}

static void check(const tt_test *test, int code, const char *const *words)
{
    check_all(test, 1, code, words);
}

#define SAYS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- cases ------------------------------------------------------------------------------------- */

static void good_ranks_pass(void **state)
{
    const tt_test test = TT_TEST(passes, .ranks = 3, .transports = "shm,tcp,threads");

    (void)state;
    check(&test, TT_PASSED, SAYS("passes (shm, 3 ranks): ok", "passes (tcp,", "passes (threads,"));
}

static void a_failed_assertion_is_quoted(void **state)
{
    const tt_test test = TT_TEST(one_asserts, .ranks = 3);

    (void)state;
    check(&test, TT_FAILED,
          SAYS("rank 1 failed", "\"cheese\" != \"chalk\"", "harness_test.c", "rank 2 passed"));
}

static void a_failed_thread_is_quoted(void **state)
{
    const tt_test test = TT_TEST(one_asserts, .ranks = 3, .transports = "", .threads = true);

    (void)state;
    check(&test, TT_FAILED, SAYS("rank 1, threads", "\"cheese\" != \"chalk\""));
}

static void others_do_not_wait_for_a_failed_rank(void **state)
{
    const tt_test test = TT_TEST(one_asserts_others_wait, .ranks = 3, .limit_ms = 600000);

    (void)state; /* the time limit of this program is far below that of the test */
    check(&test, TT_FAILED, SAYS("rank 1 failed", "rank 1 gives up", "rank 0 was still running"));
}

static void the_limit_ends_a_rank_and_names_it(void **state)
{
    const tt_test test = TT_TEST(one_hangs, .ranks = 3, .limit_ms = 4000); /* the others need a core until then */

    (void)state;
    check(&test, TT_FAILED, SAYS("rank 2 was still running and had to be ended", "rank 0 passed"));
}

static void an_unexpected_death_is_named(void **state)
{
    const tt_test test = TT_TEST(one_aborts);

    (void)state;
    check(&test, TT_FAILED, SAYS("rank 1 was ended by signal 6"));
}

static void a_death_that_was_asked_for_passes(void **state)
{
    const tt_test dies = TT_TEST(second_dies, .dies = 1);
    const tt_test killed = TT_TEST(second_is_killed, .dies = 1);

    (void)state;
    check(&dies, TT_PASSED, SAYS("ok"));
    check(&killed, TT_PASSED, SAYS("ok"));
}

static void a_death_that_was_asked_for_is_not_blamed(void **state)
{
    const tt_test test = TT_TEST(one_dies_and_one_asserts, .ranks = 3, .dies = 1);

    (void)state;
    check(&test, TT_FAILED, SAYS("rank 1 died, as it was to", "rank 2 failed", "0x2 != 0"));
}

static void a_death_that_does_not_come_fails(void **state)
{
    const tt_test lives = TT_TEST(passes, .dies = 1);
    const tt_test unasked = TT_TEST(second_dies);

    (void)state;
    check(&lives, TT_FAILED, SAYS("rank 1 was to die, but passed"));
    check(&unasked, TT_FAILED, SAYS("rank 1 ended with exit code 42"));
}

static void processes_left_behind_are_ended_and_told(void **state)
{
    const tt_test test = TT_TEST(leaves_a_process);

    (void)state;
    check(&test, TT_FAILED, SAYS("rank 0 left processes behind", "rank 1 passed"));
}

static void the_callers_job_does_not_leak_in(void **state)
{
    const tt_test test = TT_TEST(sees_no_job, .transports = "shm,tcp");

    (void)state;
    setenv("RANK", "7", 1);
    setenv("MASTER_ADDR", "example.invalid", 1);
    setenv("TORCHELASTIC_RUN_ID", "x", 1);
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    setenv("TUTTI_ALGO", "all_reduce=ring", 1);
    setenv("TUTTI_TRANSPORT", "nonsense", 1);
    setenv("TUTTI_LOG", "error", 1);
    check(&test, TT_PASSED, SAYS("shm, 2 ranks): ok", "tcp, 2 ranks): ok"));
}

static void every_run_has_a_port(void **state)
{
    const tt_test test = TT_TEST(has_a_port, .transports = "shm,shm");

    (void)state;
    check(&test, TT_PASSED, SAYS("ok"));
}

static void threads_are_ranks_of_one_process(void **state)
{
    const tt_test test = TT_TEST(ranks_share_a_process, .ranks = 4, .transports = "threads-tcp");

    (void)state;
    check(&test, TT_PASSED, SAYS("threads-tcp, 4 ranks): ok"));
}

static void a_table_that_makes_no_sense_fails(void **state)
{
    const tt_test word = TT_TEST(passes, .transports = "pigeon");
    const tt_test size = TT_TEST(passes, .ranks = 0);
    const tt_test dead_thread = TT_TEST(passes, .transports = "threads", .dies = 1);

    (void)state;
    check(&word, TT_FAILED, SAYS("transports are"));
    check(&size, TT_FAILED, SAYS("no such number of ranks"));
    check(&dead_thread, TT_FAILED, SAYS("a thread cannot die alone"));
}

static void tests_that_wait_run_beside_each_other(void **state)
{
    const tt_test tests[] = {
        TT_TEST(meets_the_next, .ranks = 1, .waits = true),
        TT_TEST(meets_the_one_before, .ranks = 1, .waits = true),
        TT_TEST(one_asserts, .ranks = 3, .transports = "shm,tcp", .waits = true),
        TT_TEST(passes, .ranks = 2, .waits = true),
        TT_TEST(passes, .ranks = 3),
    };

    (void)state;
    check_all(tests, 4, TT_FAILED, SAYS("meets_the_next (shm, 1 ranks): ok", "meets_the_one_before (shm, 1 ranks): ok",
                                        "one_asserts (shm, 3 ranks): FAILED", "one_asserts (tcp, 3 ranks): FAILED",
                                        "rank 1 failed", "\"cheese\" != \"chalk\"", "passes (shm, 2 ranks): ok"));
    check_all(tests + 3, 2, TT_PASSED, SAYS("passes (shm, 2 ranks): ok", "passes (shm, 3 ranks): ok"));
}

/* Ranks that both have said that they run. */
static void kill_the_harness(const tt_test *test)
{
    char rm[160];
    char c;
    run  r;

    begin(&r, test, 1, NULL);
    assert_int_equal(read(r.alive, &c, 1), 1);
    assert_int_equal(read(r.alive, &c, 1), 1);
    kill(r.pid, SIGKILL);
    assert_int_equal(waitpid(r.pid, NULL, 0), r.pid);
    assert_true(all_gone(&r, SEEN_WITHIN_MS));
    close(r.alive);
    snprintf(rm, sizeof rm, "rm -r '%s' '%s.txt'", r.dir, r.dir); /* this once, the directory stays */
    assert_int_equal(system(rm), 0);
}

static void ranks_die_with_a_killed_harness(void **state)
{
    const tt_test alone = TT_TEST(waits_for_ever, .ranks = 2, .limit_ms = 600000);
    const tt_test beside = TT_TEST(waits_for_ever, .ranks = 2, .limit_ms = 600000, .waits = true);

    (void)state;
    kill_the_harness(&alone);
    kill_the_harness(&beside);
}

/* Whether a mount holds the network namespace. Without one it ends with its last process. */
static bool namespace_is_mounted(uint64_t ino)
{
    char name[64];

    snprintf(name, sizeof name, "net:[%llu]", (unsigned long long)ino);
    return file_has("/proc/self/mountinfo", name);
}

/* Run a test on two hosts and see that its namespaces have gone with it; the exit code. */
static int run_on_hosts(const tt_test *test, run *r)
{
    uint64_t ino[4];
    size_t   n = 0;
    size_t   others = 0;
    size_t   i;

    begin(r, test, 1, NULL);
    while (n < 4 && read(r->alive, &ino[n], sizeof ino[n]) == (ssize_t)sizeof ino[n])
        n++; /* every rank tells where it is */
    finish(r);
    for (i = 0; i < n; i++) {
        others += ino[i] != ino[0];
        assert_false(namespace_is_mounted(ino[i]));
    }
    if (r->code != TT_SKIPPED) {
        assert_int_equal(n, test->ranks);
        assert_int_equal(others, test->ranks / 2);
    }
    return r->code;
}

static void two_hosts_meet_and_vanish(void **state)
{
    const tt_test meet = TT_TEST(hosts_meet, .ranks = 4, .hosts = 2);
    const tt_test hang = TT_TEST(second_host_hangs, .ranks = 2, .hosts = 2, .limit_ms = 6000);
    run           r;

    (void)state;
    if (run_on_hosts(&meet, &r) == TT_SKIPPED) {
        print_message("%s", r.text);
        skip();
    }
    if (r.code != TT_PASSED)
        fail_msg("%s", r.text);
    assert_int_equal(run_on_hosts(&hang, &r), TT_FAILED);
    assert_non_null(strstr(r.text, "rank 1 was still running"));
}

static void lose_rights(void)
{
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        _exit(98);
}

static void a_machine_that_refuses_hosts_is_a_skip(void **state)
{
    const tt_test test = TT_TEST(hosts_meet, .ranks = 2, .hosts = 2);
    run           r;

    (void)state;
    begin(&r, &test, 1, lose_rights);
    finish(&r);
    assert_int_equal(r.code, TT_SKIPPED);
    assert_non_null(strstr(r.text, "SKIP: no network namespace to be had: Operation not permitted"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ranks_pass),
        cmocka_unit_test(a_failed_assertion_is_quoted),
        cmocka_unit_test(a_failed_thread_is_quoted),
        cmocka_unit_test(others_do_not_wait_for_a_failed_rank),
        cmocka_unit_test(the_limit_ends_a_rank_and_names_it),
        cmocka_unit_test(an_unexpected_death_is_named),
        cmocka_unit_test(a_death_that_was_asked_for_passes),
        cmocka_unit_test(a_death_that_was_asked_for_is_not_blamed),
        cmocka_unit_test(a_death_that_does_not_come_fails),
        cmocka_unit_test(processes_left_behind_are_ended_and_told),
        cmocka_unit_test(the_callers_job_does_not_leak_in),
        cmocka_unit_test(every_run_has_a_port),
        cmocka_unit_test(threads_are_ranks_of_one_process),
        cmocka_unit_test(a_table_that_makes_no_sense_fails),
        cmocka_unit_test(tests_that_wait_run_beside_each_other),
        cmocka_unit_test(ranks_die_with_a_killed_harness),
        cmocka_unit_test(two_hosts_meet_and_vanish),
        cmocka_unit_test(a_machine_that_refuses_hosts_is_a_skip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
