/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rank_ends_test.c
 * Goal    who waits for a rank that has ended is told at once, and who it was, on every host; what a launcher ends is not
 *         taken for the cause; what a kept job ends with, and that it does not wait in silence.
 * Method  jobs of this program, in the parts that its first argument names, with time-outs of a minute. Two hosts are two
 *         launchers here, on loopback, whose ranks speak TCP with each other. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/tutti.h>
#include "elastic/testing.h"
#include "harness/scratch.h"

/* Soon is counted from where a rank began, and has in it what others need to begin and to end; it is no time-out, at least. */
enum { TIMEOUT_MS = 60000, SOON_MS = 20000, ROUNDS = 4, HOLD_MS = 200, IN_VAIN_MS = 2000, GONE_MS = 2000, NOT_TRACED = 77 };

#define CAUSE_OF_LOSS "rank 3 (host '"

static char shell[] = "sh";
static char dash_c[] = "-c";
static char self[] = "/proc/self/exe";

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static tt_outcome launch_part(tutti_launch_options o, char *part)
{
    char *argv[] = { self, part, NULL };

    return tt_launch(o, argv);
}

static void expect(const char *text, const char *words)
{
    if (strstr(text, words) == NULL)
        fail_msg("'%s' is not in:\n%s", words, text);
}

/* What a launcher has ended with; where that is wrong, with all that was said. */
static void expect_code(const tt_outcome *r, int code, int want)
{
    if (code != want)
        fail_msg("exit code %d instead of %d:\n%s%s", code, want, r->text.out, r->text.err);
}

static bool has_spoken(const tt_outcome *r, int rank)
{
    char begin[32];

    snprintf(begin, sizeof begin, "rank %d: ", rank);
    return strstr(r->text.out, begin) != NULL;
}

/* The line that begins so, for a format with a rank in it. */
static const char *line_of_rank(const tt_outcome *r, int rank, size_t *n_out)
{
    char        begin[32];
    const char *line;

    snprintf(begin, sizeof begin, "rank %d: ", rank);
    line = strstr(r->text.out, begin);
    if (line == NULL)
        fail_msg("rank %d has said nothing:\n%s%s", rank, r->text.out, r->text.err);
    *n_out = strcspn(line, "\n");
    return line;
}

static bool says(const tt_outcome *r, int rank, const char *words)
{
    size_t      n;
    const char *line = line_of_rank(r, rank, &n);

    return memmem(line, n, words, strlen(words)) != NULL;
}

static void expect_of_rank(const tt_outcome *r, int rank, const char *words)
{
    size_t      n;
    const char *line = line_of_rank(r, rank, &n);

    if (!says(r, rank, words))
        fail_msg("'%s' is not in: %.*s", words, (int)n, line);
}

/* ---- two hosts ---- */

typedef struct site {
    char dir[32];
    char secret[48];
    int  port, lock; /* nobody else gets it before the launcher has it */
} site;

static void make_site(site *s)
{
    int file, i;

    snprintf(s->dir, sizeof s->dir, "/tmp/tutti-ends-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->secret, sizeof s->secret, "%s/secret", s->dir);
    file = open(s->secret, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    for (i = 0; i < 16; i++)
        assert_int_equal(write(file, "0a1b", 4), 4);
    close(file);
    s->port = tt_port_take(&s->lock);
    assert_true(s->port > 0);
    setenv("TUTTI_SECRET_FILE", s->secret, 1);
    setenv("TUTTI_TRANSPORT", "tcp", 1);
}

static void remove_site(const site *s)
{
    unsetenv("TUTTI_SECRET_FILE");
    unsetenv("TUTTI_TRANSPORT");
    tt_port_give_back(s->lock);
    unlink(s->secret);
    rmdir(s->dir);
}

/* The second host may be given another wish. */
static tutti_launch_options host_options(int node_rank, int port)
{
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;

    o.nnodes = 2;
    o.nproc = 2;
    o.node_rank = node_rank;
    o.master_port = port;
    o.keep = (node_rank == 1 && getenv("TT_KEEP_THERE") != NULL) || getenv("TT_KEEP") != NULL;
    return o;
}

/* A program of its own: a launcher has threads, which a child of a process with threads had better not. */
static pid_t start_host(int node_rank, const char *part, int port)
{
    char  text[16], node[16];
    pid_t pid;

    snprintf(text, sizeof text, "%d", port);
    snprintf(node, sizeof node, "%d", node_rank);
    pid = fork();
    if (pid == 0) {
        execl(self, "rank_ends_test", node, part, text, (char *)NULL);
        _exit(99);
    }
    return pid;
}

/* Two launchers with two ranks each; code is that of host 0, code1 of the other. With marks >= 0 host 0 begins when a rank of
 * the other has left a mark there. */
static tt_outcome launch_hosts(const site *s, char *part, int marks, int *code1_out)
{
    tutti_launch_options o = host_options(0, s->port);
    char                *argv[] = { self, part, NULL };
    tt_outcome              r = { .code = -1 };
    char                 line[64];
    pid_t                other;
    int                  status = 0;

    o.argv = argv;
    tt_capture_begin(&r.text);
    other = start_host(1, part, s->port);
    if (marks >= 0)
        tt_marks_wait(marks, 1, line);
    r.status = tutti_launch(&o, &r.code);
    assert_int_equal(waitpid(other, &status, 0), other);
    tt_capture_end(&r.text);
    *code1_out = WEXITSTATUS(status);
    return r;
}

/* What was written to standard error so far has words in it, within a minute. */
static bool is_written(const tt_capture *c, const char *words)
{
    const int64_t began_ms = now_ms();
    static char   text[65536];
    ssize_t       n;

    do {
        n = pread(c->fd[1], text, sizeof text - 1, 0);
        text[n > 0 ? n : 0] = '\0';
        if (strstr(text, words) != NULL)
            return true;
        poll(NULL, 0, 10);
    } while (now_ms() - began_ms < TIMEOUT_MS);
    return false;
}

/* One of two launchers was told to keep ranks, the other one not: each says so for its host, whoever found the job's store first. Their
 * ranks stay until both have. */
static void both_launchers_say_that_they_differ(void **state)
{
    int        marks = tt_marks_open();
    tt_outcome r = { .code = -1 };
    bool       said[2];
    pid_t      hosts[2];
    site       s;
    int        status, node;

    (void)state;
    make_site(&s);
    setenv("TT_KEEP_THERE", "1", 1);
    tt_capture_begin(&r.text);
    for (node = 0; node < 2; node++)
        hosts[node] = start_host(node, "stays", s.port);
    said[0] = is_written(&r.text, "options: --on-failure: keep on host '");
    said[1] = is_written(&r.text, "options: --on-failure: kill on host '");
    assert_int_equal(write(TT_MARK_FD, "\n\n\n\n", 4), 4);
    for (node = 0; node < 2; node++)
        assert_int_equal(waitpid(hosts[node], &status, 0), hosts[node]);
    tt_capture_end(&r.text);
    unsetenv("TT_KEEP_THERE");
    remove_site(&s);
    tt_marks_close(marks);
    if (!said[0] || !said[1])
        fail_msg("of two launchers %d and %d have said so:\n%s", said[0], said[1], r.text.err);
    expect(r.text.err, "keep on host '");
    expect(r.text.err, "(node 1), kill here, on host '");
    expect(r.text.err, "(node 0), keep here, on host '");
    tt_capture_free(&r.text);
}

/* ---- before the world begins ---- */

static void check_absent(int who, const char *how, bool keep, const char *words)
{
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    int                  marks = tt_marks_open();
    char                 part[] = "absent", text[64];
    tt_outcome              r;
    int                  rank;

    assert_int_equal(dup2(marks, TT_WAIT_FD), TT_WAIT_FD);
    snprintf(text, sizeof text, "%d", who);
    setenv("TT_WHO", text, 1);
    setenv("TT_HOW", how, 1);
    o.nproc = 3;
    o.keep = keep;
    r = launch_part(o, part);
    tt_marks_close(marks);
    assert_int_equal(r.status, TUTTI_OK);
    expect_code(&r, r.code, 0);
    snprintf(text, sizeof text, "rank %d (host '", who);
    for (rank = 0; rank < 3; rank++)
        if (rank != who) {
            expect_of_rank(&r, rank, text);
            expect_of_rank(&r, rank, words);
            expect_of_rank(&r, rank, "soon");
        }
    tt_capture_free(&r.text);
}

static void who_ends_before_it_joins_is_named(void **state)
{
    (void)state;
    check_absent(0, "exit 0", false, "ended with exit code 0 before it joined");
    check_absent(2, "exit 0", false, "ended with exit code 0 before it joined");
    check_absent(1, "kill", true, "was ended by signal 9 (Killed) before it joined");
    check_absent(0, "exit 6", true, "ended with exit code 6 before it joined");
}

static void other_hosts_are_told(void **state)
{
    char    part[] = "absent";
    tt_outcome r;
    site    s;
    int     rank, code1 = -1;

    (void)state;
    make_site(&s);
    setenv("TT_WHO", "3", 1);
    setenv("TT_HOW", "exit 0", 1);
    r = launch_hosts(&s, part, -1, &code1);
    remove_site(&s);
    expect_code(&r, r.code, 0);
    expect_code(&r, code1, 0);
    for (rank = 0; rank < 3; rank++) {
        expect_of_rank(&r, rank, "rank 3 (host '");
        expect_of_rank(&r, rank, "ended with exit code 0 before it joined");
        expect_of_rank(&r, rank, "soon");
    }
    tt_capture_free(&r.text);
}

/* The other host fails before there is a store to tell it in. Whoever had no core until its launcher ended it, because of the
 * first that failed, has said nothing. */
static void a_late_host_is_told(void **state)
{
    char    part[] = "fails-there";
    int     marks = tt_marks_open();
    tt_outcome r;
    site    s;
    int     rank, code1 = -1, n_said = 0;

    (void)state;
    make_site(&s);
    r = launch_hosts(&s, part, marks, &code1);
    tt_marks_close(marks);
    remove_site(&s);
    expect_code(&r, r.code, 1);
    expect_code(&r, code1, 7);
    for (rank = 0; rank < 2; rank++)
        if (has_spoken(&r, rank)) {
            expect_of_rank(&r, rank, "ended with exit code 7");
            expect_of_rank(&r, rank, "soon");
            n_said++;
        }
    assert_true(n_said > 0);
    expect(r.text.err, "in the whole job: rank ");
    expect(r.text.err, "ended with exit code 7, before that\n");
    tt_capture_free(&r.text);
}

/* Host 0 fails, and the store ends with its launcher, before the ranks of the other host have looked for it. Their launcher has
 * heard why. */
static void who_comes_after_a_failure_is_told(void **state)
{
    char       part[] = "comes-after";
    tt_outcome r;
    site       s;
    int        rank, code1 = -1;

    (void)state;
    make_site(&s);
    r = launch_hosts(&s, part, -1, &code1);
    remove_site(&s);
    expect_code(&r, r.code, 9);
    expect_code(&r, code1, 0);
    for (rank = 2; rank < 4; rank++) {
        expect_of_rank(&r, rank, "cannot join the world of 4: the job ends, because ");
        expect_of_rank(&r, rank, "soon");
    }
    tt_capture_free(&r.text);
}

/* ---- in a world ---- */

/* Rank 1 has seen that rank 0 is gone, and has failed, before rank 0 can be waited for. A tracer holds it in that state for
 * many times as long as a launcher gives to ranks that end one after the other. */
static void check_about_to_be_gone(bool keep)
{
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    char                 part[] = "held";
    int                  marks = tt_marks_open();
    tt_outcome           r;

    assert_int_equal(dup2(marks, TT_WAIT_FD), TT_WAIT_FD);
    o.nproc = 2;
    o.keep = keep;
    r = launch_part(o, part);
    tt_marks_close(marks);
    assert_int_equal(r.status, TUTTI_OK);
    if (r.code == NOT_TRACED) {
        tt_capture_free(&r.text);
        print_message("a process may not trace its parent here\n");
        skip();
    }
    expect_code(&r, r.code, 128 + SIGKILL);
    expect(r.text.err, "first: rank 0 (local rank 0");
    expect(r.text.err, "also: rank 1 (local rank 1");
    tt_capture_free(&r.text);
}

static void a_rank_that_is_about_to_be_gone_goes_first(void **state)
{
    (void)state;
    check_about_to_be_gone(false);
}

/* Nobody waits for its end there, nor is any rank ended for another's sake: rank 1 is a survivor that has failed. */
static void a_rank_that_is_about_to_be_gone_goes_first_where_ranks_are_kept(void **state)
{
    (void)state;
    check_about_to_be_gone(true);
}

/* The launcher of its host ends rank 2 because of rank 3: which of them is missed first is chance, and rank 3 is named. Whoever
 * had no core until its own launcher ended it, too, has said nothing. Where the other launcher had none for longer than it is waited for,
 * rank 3 is named when ranks ask again; that may be so in one round. */
static void the_cause_is_named_on_other_hosts(void **state)
{
    char       part[] = "lost";
    tt_outcome r;
    site       s;
    int        round, rank, code1 = -1, n_said = 0, n_late = 0;

    (void)state;
    for (round = 0; round < ROUNDS; round++) {
        bool is_late = false;

        make_site(&s);
        r = launch_hosts(&s, part, -1, &code1);
        remove_site(&s);
        expect_code(&r, r.code, 1);
        expect_code(&r, code1, 128 + SIGKILL);
        for (rank = 0; rank < 2; rank++)
            if (has_spoken(&r, rank)) {
                expect_of_rank(&r, rank, CAUSE_OF_LOSS);
                is_late = is_late || says(&r, rank, "asked again");
                n_said++;
            }
        n_late += is_late;
        tt_capture_free(&r.text);
    }
    assert_true(n_said >= ROUNDS);
    assert_true(n_late <= 1);
}

/* A rank kills its launcher, and the kernel ends the ranks of that host. Those of the other host name the launcher, at least
 * when they are asked again. */
static void check_orphans(int who)
{
    const int  other = 1 - who / 2;
    char       text[16];
    tt_outcome r = { .code = -1 };
    site       s;
    pid_t      hosts[2];
    int        status[2] = { 0 }, node, rank;

    make_site(&s);
    snprintf(text, sizeof text, "%d", who);
    setenv("TT_WHO", text, 1);
    tt_capture_begin(&r.text);
    for (node = 0; node < 2; node++)
        hosts[node] = start_host(node, "orphaned", s.port);
    for (node = 0; node < 2; node++)
        assert_int_equal(waitpid(hosts[node], &status[node], 0), hosts[node]);
    tt_capture_end(&r.text);
    remove_site(&s);
    assert_true(WIFSIGNALED(status[1 - other]) && WTERMSIG(status[1 - other]) == SIGKILL);
    assert_true(WIFEXITED(status[other]) && WEXITSTATUS(status[other]) == 1);
    for (rank = 2 * other; rank < 2 * other + 2; rank++)
        expect_of_rank(&r, rank, "is gone without a word, or out of reach, and its ranks with it; seen here: ");
    snprintf(text, sizeof text, "pid %d)", (int)hosts[1 - other]);
    expect(r.text.out, text);
    expect(r.text.err, "in the whole job: the launcher (host '");
    tt_capture_free(&r.text);
}

static void a_launcher_that_is_killed_is_named(void **state)
{
    (void)state;
    check_orphans(3);
}

static void the_one_that_serves_the_store_is_named(void **state)
{
    (void)state;
    check_orphans(1);
}

/* ---- kept jobs ---- */

/* As check_orphans(), but the ranks of the other host are kept. They stay until their launcher has said what it misses. */
static void check_kept_orphans(int who)
{
    const int  other = 1 - who / 2;
    int        marks = tt_marks_open();
    tt_outcome r = { .code = -1 };
    char       text[16];
    site       s;
    pid_t      hosts[2];
    int        status[2] = { 0 }, node;
    bool       said;

    make_site(&s);
    snprintf(text, sizeof text, "%d", who);
    setenv("TT_WHO", text, 1);
    setenv("TT_KEEP", "1", 1);
    tt_capture_begin(&r.text);
    for (node = 0; node < 2; node++)
        hosts[node] = start_host(node, "kept-orphaned", s.port);
    said = is_written(&r.text, "and its ranks with it; the ranks here are kept");
    assert_int_equal(write(TT_MARK_FD, "\n\n", 2), 2);
    for (node = 0; node < 2; node++)
        assert_int_equal(waitpid(hosts[node], &status[node], 0), hosts[node]);
    tt_capture_end(&r.text);
    unsetenv("TT_KEEP");
    remove_site(&s);
    tt_marks_close(marks);
    if (!said)
        fail_msg("the launcher that is left has not said what it misses:\n%s%s", r.text.out, r.text.err);
    assert_true(WIFSIGNALED(status[1 - other]) && WTERMSIG(status[1 - other]) == SIGKILL);
    assert_true(WIFEXITED(status[other]));
    expect_code(&r, WEXITSTATUS(status[other]), 0);
    expect(r.text.err, "went on without ranks of other hosts, and ended well\n  in the whole job: the launcher (host '");
    snprintf(text, sizeof text, "pid %d)", (int)hosts[1 - other]);
    expect(r.text.err, text);
    tt_capture_free(&r.text);
}

static void a_launcher_that_is_killed_is_named_where_ranks_are_kept(void **state)
{
    (void)state;
    check_kept_orphans(3);
    check_kept_orphans(1);
}

static tt_outcome launch_kept(int nproc, int replacements, int64_t shutdown_ms, char *script)
{
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    char                *argv[] = { shell, dash_c, script, NULL };

    o.nproc = nproc;
    o.keep = true;
    o.replacements = replacements;
    o.shutdown_ms = shutdown_ms;
    return tt_launch(o, argv);
}

/* Rank 2 fails when rank 1 has: the job has lost rank 1, but rank 2 is a survivor that did not end well. */
static void a_survivor_that_fails_is_the_jobs_failure(void **state)
{
    char    script[] = "case $RANK in "
                       "1) echo $$$$ >&9; kill -KILL $$$$;; "
                       "2) read pid <&8; until grep -q ') Z' /proc/$pid/stat; do :; done; exit 4;; "
                       "esac";
    int     marks = tt_marks_open();
    tt_outcome r;

    (void)state;
    assert_int_equal(dup2(marks, TT_WAIT_FD), TT_WAIT_FD);
    r = launch_kept(3, 0, 0, script);
    tt_marks_close(marks);
    assert_int_equal(r.status, TUTTI_OK);
    expect_code(&r, r.code, 128 + SIGKILL);
    expect(r.text.err, "first: rank 1 (local rank 1");
    expect(r.text.err, "also: rank 2 (local rank 2");
    tt_capture_free(&r.text);
}

static void a_stopped_rank_is_not_waited_for_in_silence(void **state)
{
    char    script[] = "test $RANK = 1 && kill -STOP $$$$; exit 0";
    tt_outcome r = launch_kept(3, 0, 1200, script);

    (void)state;
    assert_int_equal(r.status, TUTTI_OK);
    expect_code(&r, r.code, 0);
    expect(r.text.err, "tutti: waiting for rank 1 (pid ");
    expect(r.text.err, "stopped by a signal; all others have ended");
    tt_capture_free(&r.text);
}

static void check_replacement(char *part, bool left_alone, const char *words, const char *more)
{
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    int                  marks = tt_marks_open();
    tt_outcome              r;

    assert_int_equal(dup2(marks, TT_WAIT_FD), TT_WAIT_FD);
    o.nproc = 2;
    o.keep = true;
    o.replacements = 1;
    r = launch_part(o, part);
    tt_marks_close(marks);
    assert_int_equal(r.status, TUTTI_OK);
    if (left_alone)
        expect_code(&r, r.code, 0); /* nothing depends on a replacement that nobody let in */
    expect(r.text.out, words);
    expect(r.text.out, more);
    tt_capture_free(&r.text);
}

static void a_replacement_is_told_what_is(void **state)
{
    char left[] = "left", mistaken[] = "mistaken";

    (void)state;
    check_replacement(left, true, "all members of the job have ended", "soon");
    check_replacement(mistaken, false, "replacement 1 of a job that is at work", "call tutti_join_group()");
}

/* Its launcher starts no other one: who waits for it is told at once, once, and waits when it calls again. */
static void a_replacement_that_does_not_ask_is_told_of(void **state)
{
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    char                 unasked[] = "unasked";
    tt_outcome           r;

    (void)state;
    o.nproc = 2;
    o.keep = true;
    o.replacements = 2; /* the second one is started for the first, which fails, and ends well */
    r = launch_part(o, unasked);
    assert_int_equal(r.status, TUTTI_OK);
    expect_code(&r, r.code, 0);
    expect(r.text.out, "grow_group: a replacement (host '");
    expect(r.text.out, "before it asked to come in, as its launcher reports, which starts no other one");
    expect(r.text.out, "soon");
    expect(r.text.out, "again: grow_group: 0 of 1 newcomers have asked to come in");
    tt_capture_free(&r.text);
}

/* The same of one that has asked, and is killed before anybody could let it in. */
static void a_replacement_that_asked_and_died_is_told_of(void **state)
{
    char gone[] = "gone";

    (void)state;
    check_replacement(gone, true, "was ended by signal 9 (Killed) after it had asked to come in, and before it was let in, as its launcher",
                      "again: grow_group: 0 of 1 newcomers have asked to come in");
}

/* ---- the parts that this program plays ---- */

static int own_rank(void)
{
    const char *text = getenv("RANK");

    return text != NULL ? atoi(text) : -1;
}

/* One line, whatever the words are. */
static void say_more(int64_t began_ms, const char *more)
{
    tt_say_error(own_rank(), now_ms() - began_ms < SOON_MS, more);
}

static void say(int64_t began_ms)
{
    say_more(began_ms, "");
}

/* A group that is finished is asked why until the words are there; false: they were at once. */
static bool ask_again(const char *words)
{
    const int64_t began_ms = now_ms();
    bool          asked = false;

    for (; strstr(tutti_last_error(), words) == NULL && now_ms() - began_ms < TIMEOUT_MS / 2; asked = true) {
        poll(NULL, 0, 10); /* others need the core */
        (void)tutti_barrier(NULL);
    }
    return asked;
}

static tutti_status init(void)
{
    tutti_init_options o = TUTTI_INIT_OPTIONS;

    o.timeout_ms = TIMEOUT_MS;
    return tutti_init_process_group(&o);
}

/* Whoever is to be absent waits for two others here, where there are marks. */
static int part_absent(void)
{
    const int64_t began_ms = now_ms();
    const char   *how = getenv("TT_HOW");
    const bool    has_marks = strcmp(getenv("WORLD_SIZE"), "3") == 0;
    char          line[64];

    if (own_rank() == atoi(getenv("TT_WHO"))) {
        if (has_marks)
            tt_marks_wait(TT_WAIT_FD, 2, line);
        if (strcmp(how, "kill") == 0)
            raise(SIGKILL);
        return atoi(how + 5);
    }
    if (has_marks) /* dprintf() leaks memory where there is no such descriptor */
        dprintf(TT_MARK_FD, "up\n");
    if (init() != TUTTI_E_PEER)
        return 3;
    say(began_ms);
    return 0;
}

/* Ranks of a host outlive their launcher's signal, to say what they have seen. */
static void outlive_the_launcher(int node)
{
    if (own_rank() / 2 == node)
        signal(SIGTERM, SIG_IGN);
}

/* A reference to the launchers' store, or NULL: it is not there. */
static tutti_store *store_of_launchers(int timeout_ms)
{
    tutti_tcp_store_options o = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;

    o.host = getenv("MASTER_ADDR");
    o.port = atoi(getenv("MASTER_PORT"));
    o.timeout_ms = timeout_ms;
    return tutti_tcp_store_open(&o, &store) == TUTTI_OK ? store : NULL;
}

static void await_count(tutti_store *store, const char *key, int64_t wanted)
{
    int64_t n = 0;

    while (tutti_store_add(store, key, 0, &n) == TUTTI_OK && n < wanted)
        poll(NULL, 0, 10);
}

/* Ranks 0 and 1 fail when both launchers listen, and both ranks of host 1 have been to the store; those come to stay when it is
 * gone. */
static int part_comes_after(void)
{
    tutti_store *store = store_of_launchers(TIMEOUT_MS);
    int64_t      began_ms, n;

    if (store == NULL)
        return 4;
    if (own_rank() < 2) {
        await_count(store, "tutti/launcher/arrived", 2);
        await_count(store, "came", 2);
        tutti_store_close(store);
        return 9;
    }
    (void)tutti_store_add(store, "came", 1, &n);
    do {
        tutti_store_close(store);
        poll(NULL, 0, 10);
        store = store_of_launchers(GONE_MS);
    } while (store != NULL);
    began_ms = now_ms();
    if (init() != TUTTI_E_PEER)
        return 3;
    say(began_ms);
    return 0;
}

/* Both ranks of host 1 end with 7; then host 0 begins. */
static int part_fails_there(void)
{
    const int64_t began_ms = now_ms();

    if (own_rank() >= 2) {
        dprintf(TT_MARK_FD, "up\n");
        return 7;
    }
    outlive_the_launcher(0);
    if (init() != TUTTI_E_PEER)
        return 3;
    say(began_ms);
    return 1;
}

/* Whoever comes late out of the barrier may hear of the death in it. */
static int part_lost(void)
{
    float        x[4] = { 0 };
    int64_t      began_ms;
    tutti_status st;

    outlive_the_launcher(0);
    if (init() != TUTTI_OK)
        return 3;
    began_ms = now_ms();
    st = tutti_barrier(NULL);
    if (own_rank() == 3)
        raise(SIGKILL);
    while (st == TUTTI_OK)
        st = tutti_all_reduce(TUTTI_SPAN(x, 4), TUTTI_SUM, NULL);
    say_more(began_ms, ask_again(CAUSE_OF_LOSS) ? ", asked again" : "");
    return 1;
}

static int part_orphaned(void)
{
    const int     who = atoi(getenv("TT_WHO"));
    const int64_t began_ms = now_ms();
    float         x[4] = { 0 };
    tutti_status  st;

    outlive_the_launcher(1 - who / 2);
    if (init() != TUTTI_OK)
        return 3;
    st = tutti_barrier(NULL);
    if (own_rank() == who)
        kill(getppid(), SIGKILL);
    while (st == TUTTI_OK)
        st = tutti_all_reduce(TUTTI_SPAN(x, 4), TUTTI_SUM, NULL);
    (void)ask_again("the launcher (");
    say(began_ms);
    return 1;
}

static int part_kept_orphaned(void)
{
    const int    who = atoi(getenv("TT_WHO"));
    float        x[4] = { 0 };
    char         line[64];
    tutti_status st;

    if (init() != TUTTI_OK)
        return 3;
    st = tutti_barrier(NULL);
    if (own_rank() == who)
        kill(getppid(), SIGKILL);
    while (st == TUTTI_OK)
        st = tutti_all_reduce(TUTTI_SPAN(x, 4), TUTTI_SUM, NULL);
    if (own_rank() / 2 != who / 2)
        tt_marks_wait(TT_WAIT_FD, 1, line);
    return 0;
}

/* In a process of its own: keep the parent, once it has ended, from whoever waits for it. */
static _Noreturn void hold_the_parent(int go_fd, int done_fd)
{
    const pid_t parent = getppid();
    siginfo_t   info;
    char        word = 'n';

    if (read(go_fd, &word, 1) != 1)
        _exit(1);
    if (ptrace(PTRACE_SEIZE, parent, NULL, NULL) != 0)
        word = 'n';
    if (write(done_fd, &word, 1) == 1 && word == 'y' && waitid(P_PID, (id_t)parent, &info, WEXITED | WNOWAIT) == 0)
        poll(NULL, 0, HOLD_MS);
    _exit(0);
}

static int be_held(void)
{
    int   go[2], done[2];
    char  word = 'y';
    pid_t holder;

    if (pipe(go) != 0 || pipe(done) != 0)
        return 3;
    holder = fork();
    if (holder == 0)
        hold_the_parent(go[0], done[1]);
    prctl(PR_SET_PTRACER, holder); /* no such thing where everybody may */
    if (write(go[1], &word, 1) != 1 || read(done[0], &word, 1) != 1)
        return 3;
    if (word != 'y')
        return NOT_TRACED;
    dprintf(TT_MARK_FD, "%d\n", (int)getpid());
    raise(SIGKILL);
    return 3;
}

static bool is_gone(int pid)
{
    char  path[32], text[512] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "r");
    if (file == NULL)
        return true;
    if (fgets(text, sizeof text, file) == NULL)
        text[0] = '\0';
    fclose(file);
    return strstr(text, ") Z ") != NULL;
}

static int part_held(void)
{
    char line[64] = "";

    if (own_rank() == 0)
        return be_held();
    tt_marks_wait(TT_WAIT_FD, 1, line);
    while (!is_gone(atoi(line)))
        continue;
    return 3;
}

/* Rank 1 fails, rank 0 ends when the replacement is there. */
static int play_replaced(tutti_status (*come)(tutti_group **))
{
    const int64_t began_ms = now_ms();
    tutti_group  *world;
    char          line[64];

    if (own_rank() == 1)
        return 5;
    if (own_rank() == 0) {
        tt_marks_wait(TT_WAIT_FD, 1, line);
        return 0;
    }
    dprintf(TT_MARK_FD, "up\n");
    if (come(&world) == TUTTI_OK)
        return 3;
    say(began_ms);
    return 1;
}

/* Rank 1 ends when rank 0 has a world, too. */
static int end_of_rank_1(void)
{
    return tutti_barrier(NULL) == TUTTI_OK ? 5 : 3;
}

/* Rank 0 goes on without rank 1, and waits for one in its place; asked: once that one has asked, and is about to end. Where it comes
 * late out of the barrier with rank 1, it hears in that of the end. */
static int grow_in_vain(bool asked)
{
    tutti_group_options o = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    const int           gone[] = { 1 };
    float               x = 1;
    tutti_status        st = tutti_barrier(NULL);
    int64_t             began_ms;
    char                line[64];

    if (st == TUTTI_OK)
        st = tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL);
    if (st != TUTTI_E_PEER ||
        tutti_shrink_group(gone, 1, NULL, TUTTI_SHRINK_ABORT, NULL, &world) != TUTTI_OK) {
        fprintf(stderr, "%s\n", tutti_last_error());
        return 4;
    }
    if (asked)
        tt_marks_wait(TT_WAIT_FD, 1, line);
    began_ms = now_ms();
    if (tutti_grow_group(NULL, NULL, 1, NULL, &world) != TUTTI_E_PEER)
        return 5;
    say(began_ms);
    o.timeout_ms = IN_VAIN_MS;
    if (tutti_grow_group(NULL, NULL, 1, &o, &world) != TUTTI_E_TIMEOUT)
        return 6;
    printf("again: %s\n", tutti_last_error());
    return tutti_destroy_process_group(NULL) == TUTTI_OK ? 0 : 7;
}

/* Rank 1 fails, and so does the first that comes in its place; the second one ends, too, before it has asked. */
static int part_unasked(void)
{
    const char *number = getenv("TUTTI_REPLACEMENT");

    if (number != NULL)
        return atoi(number) == 1 ? 7 : 0;
    if (init() != TUTTI_OK)
        return 3;
    return own_rank() == 1 ? end_of_rank_1() : grow_in_vain(false);
}

static tutti_status come_by_join(tutti_group **world_out)
{
    tutti_init_options o = TUTTI_INIT_OPTIONS;

    o.timeout_ms = TIMEOUT_MS;
    return tutti_join_group(&o, NULL, world_out);
}

/* Rank 1 fails; who comes in its place asks, is not let in in time, and is killed. */
static int part_gone(void)
{
    tutti_init_options o = TUTTI_INIT_OPTIONS;
    tutti_group       *world;
    tutti_status       st;

    if (getenv("TUTTI_REPLACEMENT") != NULL) {
        o.timeout_ms = 2000;
        st = tutti_join_group(&o, NULL, &world);
        dprintf(TT_MARK_FD, "asked\n"); /* also where it has not: rank 0 waits for this */
        if (st != TUTTI_E_TIMEOUT || strstr(tutti_last_error(), "nobody has let") == NULL)
            return 3;
        raise(SIGKILL);
    }
    if (init() != TUTTI_OK)
        return 3;
    return own_rank() == 1 ? end_of_rank_1() : grow_in_vain(true);
}

static tutti_status come_by_init(tutti_group **world_out)
{
    *world_out = NULL;
    return init();
}

static int play_host(const char *node, char *part, const char *port)
{
    tutti_launch_options o = host_options(atoi(node), atoi(port));
    char                *argv[] = { self, part, NULL };
    int                  code = 99;

    o.argv = argv;
    if (tutti_launch(&o, &code) != TUTTI_OK)
        fprintf(stderr, "%s\n", tutti_last_error());
    return code;
}

static int part_stays(void)
{
    char line[64];

    tt_marks_wait(TT_WAIT_FD, 1, line);
    return 0;
}

static int play(const char *part)
{
    if (strcmp(part, "stays") == 0)
        return part_stays();
    if (strcmp(part, "absent") == 0)
        return part_absent();
    if (strcmp(part, "fails-there") == 0)
        return part_fails_there();
    if (strcmp(part, "comes-after") == 0)
        return part_comes_after();
    if (strcmp(part, "lost") == 0)
        return part_lost();
    if (strcmp(part, "held") == 0)
        return part_held();
    if (strcmp(part, "unasked") == 0)
        return part_unasked();
    if (strcmp(part, "gone") == 0)
        return part_gone();
    if (strcmp(part, "orphaned") == 0)
        return part_orphaned();
    if (strcmp(part, "kept-orphaned") == 0)
        return part_kept_orphaned();
    return play_replaced(strcmp(part, "left") == 0 ? come_by_join : come_by_init);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_ends_before_it_joins_is_named),
        cmocka_unit_test(other_hosts_are_told),
        cmocka_unit_test(a_late_host_is_told),
        cmocka_unit_test(who_comes_after_a_failure_is_told),
        cmocka_unit_test(both_launchers_say_that_they_differ),
        cmocka_unit_test(a_rank_that_is_about_to_be_gone_goes_first),
        cmocka_unit_test(a_rank_that_is_about_to_be_gone_goes_first_where_ranks_are_kept),
        cmocka_unit_test(the_cause_is_named_on_other_hosts),
        cmocka_unit_test(a_launcher_that_is_killed_is_named),
        cmocka_unit_test(the_one_that_serves_the_store_is_named),
        cmocka_unit_test(a_launcher_that_is_killed_is_named_where_ranks_are_kept),
        cmocka_unit_test(a_survivor_that_fails_is_the_jobs_failure),
        cmocka_unit_test(a_stopped_rank_is_not_waited_for_in_silence),
        cmocka_unit_test(a_replacement_is_told_what_is),
        cmocka_unit_test(a_replacement_that_does_not_ask_is_told_of),
        cmocka_unit_test(a_replacement_that_asked_and_died_is_told_of),
    };

    if (argc > 3)
        return play_host(argv[1], argv[2], argv[3]);
    if (argc > 1)
        return play(argv[1]);
    setenv("OMP_NUM_THREADS", "1", 1);
    tt_marks_reserve();
    return cmocka_run_group_tests_name("rank_ends", tests, NULL, NULL);
}
