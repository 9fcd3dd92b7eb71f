/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launch_test.c
 * Goal    a job ends with the code, the report and the processes that it should: none.
 * Method  real processes: shell scripts, or this program again in the part that its first argument names.
 *         Output is captured; a thread of the test sends the signals once the ranks have said that
 *         they are up. "sleep 100" stands for a rank that would never end by itself. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>
#include <tutti/debug.h>
#include <tutti/group.h>
#include <tutti/init.h>
#include <tutti/launch.h>
#include <tutti/recorder.h>
#include <tutti/regroup.h>
#include "elastic/testing.h"

enum { GONE_MS = 10000 }; /* what is not ended stays for longer */

static char shell[] = "sh";
static char dash_c[] = "-c";
static char self[] = "/proc/self/exe";

/* In scripts "$$$$" is what the shell reads as "$$": the launcher puts the local rank in. */
static tt_outcome launch_script(int nproc, const char *script)
{
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    char *copy = strdup(script);
    char *argv[] = { shell, dash_c, copy, NULL };
    tt_outcome r;

    o.nproc = nproc;
    r = tt_launch(o, argv);
    free(copy);
    return r;
}

static double uptime_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void exit_codes(void **state)
{
    tt_outcome r = launch_script(3, "exit 0");

    (void)state;
    assert_int_equal(r.status, TUTTI_OK);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.text.err, "");
    tt_capture_free(&r.text);
    r = launch_script(1, "exit 3");
    assert_int_equal(r.status, TUTTI_OK);
    assert_int_equal(r.code, 3);
    tt_capture_free(&r.text);
    r = launch_script(1, "kill -KILL $$$$");
    assert_int_equal(r.code, 128 + SIGKILL);
    assert_non_null(strstr(r.text.err, "signal SIGKILL (9)"));
    tt_capture_free(&r.text);
}

/* Rank 1 makes a world, records, and is killed: the launcher has its recorder, and dumps it. */
static void what_the_killed_did_is_dumped(void **state)
{
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    char                 dir[] = "/tmp/tutti-launch-test-XXXXXX", part[] = "recorded";
    char                *argv[] = { self, part, NULL };
    tutti_recorder_info  info = TUTTI_RECORDER_INFO;
    tutti_recorder      *saved = NULL;
    char                 path[64];
    json_t              *json;
    tt_outcome           r;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/trace_", dir);
    setenv("TUTTI_TRACE_FILE", path, 1);
    o.nproc = 2;
    r = tt_launch(o, argv);
    unsetenv("TUTTI_TRACE_FILE");
    assert_int_equal(r.status, TUTTI_OK);
    assert_int_equal(r.code, 128 + SIGKILL);
    assert_non_null(strstr(r.text.err, "did last was written"));
    snprintf(path, sizeof path, "%s/trace_1", dir);
    json = json_load_file(path, 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_integer_value(json_object_get(json, "rank")), 1);
    assert_true(json_is_false(json_object_get(json, "alive")));
    assert_true(json_array_size(json_object_get(json, "entries")) >= 1);
    json_decref(json);
    unlink(path);
    snprintf(path, sizeof path, "%s/trace_0", dir);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/trace_1.rec", dir); /* beside each the memory itself */
    assert_int_equal(tutti_recorder_open_file(path, &saved), TUTTI_OK);
    assert_int_equal(tutti_recorder_get_info(saved, &info), TUTTI_OK);
    assert_true(info.rank == 1 && info.is_file && info.state == 'X' && !info.is_alive);
    tutti_recorder_close(saved);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/trace_0.rec", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    tt_capture_free(&r.text);
}

/* Two ranks play a part, and what they or their launcher dump lies in a folder of its own. */
static tt_outcome launch_traced(char *dir, char *part)
{
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    char                *argv[] = { self, part, NULL }, path[64];
    tt_outcome           r;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/trace_", dir);
    setenv("TUTTI_TRACE_FILE", path, 1);
    o.nproc = 2;
    r = tt_launch(o, argv);
    unsetenv("TUTTI_TRACE_FILE");
    return r;
}

static tutti_recorder *open_saved(const char *dir, const char *name, tutti_recorder_info *info_out)
{
    tutti_recorder *saved = NULL;
    char            path[64];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(tutti_recorder_open_file(path, &saved), TUTTI_OK);
    assert_int_equal(tutti_recorder_get_info(saved, info_out), TUTTI_OK);
    return saved;
}

static void remove_traced(const char *dir, tt_outcome *r)
{
    char command[64];

    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
    tt_capture_free(&r->text);
}

/* Whoever failed wrote down that it did, and its words; whom the launcher ended for that is dumped as it was before. */
static void what_was_seen_before_the_end_is_dumped(void **state)
{
    char                 dir[] = "/tmp/tutti-launch-test-XXXXXX", part[] = "stopped";
    tutti_recorder_info  info = TUTTI_RECORDER_INFO;
    tutti_record         last = TUTTI_RECORD;
    tutti_recorder      *saved = NULL;
    tt_outcome           r;

    (void)state;
    r = launch_traced(dir, part);
    assert_int_equal(r.code, 4);
    saved = open_saved(dir, "trace_1.rec", &info);
    assert_true(info.state == 'T' && info.is_alive && info.saved_for == 0);
    tutti_recorder_close(saved);
    saved = open_saved(dir, "trace_0.rec", &info);
    assert_non_null(strstr(info.failed_words, "barrier #2"));
    assert_int_equal(tutti_recorder_get_record(saved, tutti_recorder_count_records(saved) - 1, &last), TUTTI_OK);
    assert_true(last.id == info.saved_for && last.status == TUTTI_E_TIMEOUT);
    tutti_recorder_close(saved);
    remove_traced(dir, &r);
}

/* Rank 1 runs out of time, writes that down, goes on in another world, and is killed there. */
static void who_has_gone_on_and_is_killed_is_dumped_again(void **state)
{
    char                 dir[] = "/tmp/tutti-launch-test-XXXXXX", part[] = "goes-on";
    tutti_recorder_info  info = TUTTI_RECORDER_INFO;
    tutti_recorder      *saved = NULL;
    char                 path[64];
    int                  marks = tt_marks_open();
    tt_outcome           r;

    (void)state;
    r = launch_traced(dir, part);
    tt_marks_close(marks);
    assert_int_equal(r.code, 128 + SIGKILL);
    saved = open_saved(dir, "trace_1.rec", &info);
    assert_true(info.saved_for != 0 && info.state != 'X');
    tutti_recorder_close(saved);
    saved = open_saved(dir, "trace_1.2.rec", &info);
    assert_true(info.rank == 1 && info.state == 'X' && info.saved_for == 0);
    assert_int_equal(tutti_recorder_count_groups(saved), 2);
    tutti_recorder_close(saved);
    snprintf(path, sizeof path, "%s/trace_0.2.rec", dir); /* rank 0 has not failed before */
    assert_int_equal(access(path, F_OK), -1);
    remove_traced(dir, &r);
}

static void the_first_failure_wins(void **state)
{
    tt_outcome r = launch_script(3, "test $RANK = 1 && exit 7; trap 'exit 9' TERM; sleep 100 & wait");

    (void)state;
    assert_int_equal(r.status, TUTTI_OK);
    assert_int_equal(r.code, 7);
    assert_non_null(strstr(r.text.err, "'sh' failed with exit code 7"));
    assert_non_null(strstr(r.text.err, "first: rank 1 (local rank 1, pid "));
    assert_non_null(strstr(r.text.err, "stopped by the launcher: ranks 0, 2\n"));
    assert_null(strstr(r.text.err, "also:"));
    tt_capture_free(&r.text);
}

static tt_outcome launch_kept(int nproc, int replacements, char *script)
{
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    char *argv[] = { shell, dash_c, script, NULL };

    o.nproc = nproc;
    o.keep = true;
    o.replacements = replacements;
    return tt_launch(o, argv);
}

static void the_others_are_kept(void **state)
{
    char one[] = "test $RANK = 1 && kill -KILL $$$$; exit 0";
    char all[] = "exit 3";
    tt_outcome r = launch_kept(3, 0, one);

    (void)state;
    assert_int_equal(r.status, TUTTI_OK);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.text.err, "'sh' went on without ranks that had failed"));
    assert_non_null(strstr(r.text.err, "first: rank 1 (local rank 1, pid "));
    assert_null(strstr(r.text.err, "stopped by the launcher"));
    tt_capture_free(&r.text);
    r = launch_kept(2, 0, all);
    assert_int_equal(r.code, 3);
    assert_non_null(strstr(r.text.err, "'sh' failed with exit code 3"));
    tt_capture_free(&r.text);
}

/* Rank 0 ends when the replacement has told it to. */
static void a_replacement_is_started(void **state)
{
    char dir[] = "/tmp/tutti-launch-test-XXXXXX";
    char script[] = "test \"$RANK\" = 1 && exit 5; "
                    "test \"$TUTTI_REPLACEMENT\" = 1 && { echo new $LOCAL_RANK $RANK; echo go > $TT_LINE; exit 0; }; "
                    "read x < $TT_LINE";
    char fifo[64];
    tt_outcome r;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(fifo, sizeof fifo, "%s/line", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    setenv("TT_LINE", fifo, 1);
    r = launch_kept(2, 1, script);
    unsetenv("TT_LINE");
    unlink(fifo);
    rmdir(dir);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.text.out, "[default2]:new 2\n"));
    assert_non_null(strstr(r.text.err, "first: rank 1 (local rank 1"));
    tt_capture_free(&r.text);
}

/* A neighbour that sees the connection close, and fails by it, may be the first to be gone. */
static void a_crash_goes_before_what_it_caused(void **state)
{
    char dir[] = "/tmp/tutti-launch-test-XXXXXX";
    char fifo[64];
    tt_outcome r;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(fifo, sizeof fifo, "%s/line", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    setenv("TT_LINE", fifo, 1);
    r = launch_script(2, "test $RANK = 1 && { exec 9>$TT_LINE; kill -SEGV $$$$; }; "
                         "read x < $TT_LINE; exit 1");
    unsetenv("TT_LINE");
    unlink(fifo);
    rmdir(dir);
    assert_int_equal(r.code, 128 + SIGSEGV);
    assert_non_null(strstr(r.text.err, "first: rank 1"));
    tt_capture_free(&r.text);
}

static void an_abort_ends_all_within_a_second(void **state)
{
    char part[] = "abort";
    char *argv[] = { self, part, NULL };
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    int marks = tt_marks_open();
    tt_outcome r;
    double took;
    int rank;

    (void)state;
    o.nproc = 4;
    r = tt_launch(o, argv);
    tt_marks_close(marks);
    took = uptime_s() - (double)tt_number_after(r.text.out, "[default1]:abort at ms ") / 1000;
    assert_int_equal(r.status, TUTTI_OK);
    assert_int_equal(r.code, 128 + SIGABRT);
    assert_non_null(strstr(r.text.err, "first: rank 1 (local rank 1"));
    assert_non_null(strstr(r.text.err, "signal SIGABRT (6)"));
    for (rank = 0; rank < 4; rank++) {
        char word[32];

        snprintf(word, sizeof word, "[default%d]:pid ", rank);
        assert_true(tt_number_after(r.text.out, word) > 0);
        assert_int_equal(kill((pid_t)tt_number_after(r.text.out, word), 0), -1);
        assert_int_equal(errno, ESRCH);
    }
    assert_true(took < 1.0);
    tt_capture_free(&r.text);
}

static void one_that_ignores_sigterm_is_killed(void **state)
{
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    char script[] =
        "test $RANK = 1 && { read up <&8; exit 5; }; trap '' TERM; echo up >&9; sleep 100";
    char *argv[] = { shell, dash_c, script, NULL };
    int marks = tt_marks_open();
    tt_outcome r;

    (void)state;
    assert_int_equal(dup2(marks, TT_WAIT_FD), TT_WAIT_FD); /* rank 1 waits until rank 0 is deaf */
    o.nproc = 2;
    o.shutdown_ms = 50;
    r = tt_launch(o, argv);
    tt_marks_close(marks);
    assert_int_equal(r.code, 5);
    assert_non_null(strstr(r.text.err, "killed, having outlived the first signal: rank 0\n"));
    tt_capture_free(&r.text);
}

/* ---- signals from outside ---------------------------------------------------------------------- */

typedef struct sender {
    pthread_t thread;
    int marks;
    int n_marks;
    int signals[2]; /* sent one after the other, the second after as many marks again */
    tutti_status second_launch;
} sender;

static void *send_when_up(void *arg)
{
    sender *s = arg;
    char *argv[] = { shell, NULL };
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    char line[64];
    int code;

    tt_marks_wait(s->marks, s->n_marks, line);
    o.argv = argv;
    s->second_launch = tutti_launch(&o, &code);
    kill(getpid(), s->signals[0]);
    if (s->signals[1] != 0) {
        tt_marks_wait(s->marks, s->n_marks, line);
        kill(getpid(), s->signals[1]);
    }
    return NULL;
}

static tt_outcome launch_signalled(const char *script, int first, int second)
{
    sender s = { .marks = tt_marks_open(), .n_marks = 2, .signals = { first, second } };
    tt_outcome r;

    assert_int_equal(pthread_create(&s.thread, NULL, send_when_up, &s), 0);
    r = launch_script(2, script);
    pthread_join(s.thread, NULL);
    tt_marks_close(s.marks);
    assert_int_equal(s.second_launch, TUTTI_E_STATE);
    return r;
}

static void signals_are_forwarded(void **state)
{
    static const struct {
        int number;
        const char *script;
        const char *words;
    } rows[] = {
        { SIGTERM, "trap 'echo got it; exit 0' TERM; echo up >&9; sleep 100 & wait",
          "'sh' was ended by signal SIGTERM (15)" },
        { SIGINT, "trap 'echo got it; exit 0' INT; echo up >&9; while :; do sleep 1; done",
          "'sh' was interrupted (SIGINT)" },
        { SIGHUP, "trap 'echo got it; exit 0' HUP; echo up >&9; sleep 100 & wait",
          "'sh' was ended by signal SIGHUP (1)" },
        { SIGQUIT, "trap 'echo got it; exit 4' QUIT; echo up >&9; while :; do sleep 1; done",
          "'sh' was ended by signal SIGQUIT (3)" },
    };
    struct sigaction before;
    struct sigaction after;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tt_outcome r;

        sigaction(rows[i].number, NULL, &before);
        r = launch_signalled(rows[i].script, rows[i].number, 0);
        sigaction(rows[i].number, NULL, &after);
        assert_true(before.sa_handler == after.sa_handler);
        assert_int_equal(r.status, TUTTI_OK);
        assert_int_equal(r.code, 128 + rows[i].number);
        assert_non_null(strstr(r.text.out, "[default0]:got it\n"));
        assert_non_null(strstr(r.text.out, "[default1]:got it\n"));
        assert_non_null(strstr(r.text.err, rows[i].words));
        tt_capture_free(&r.text);
    }
}

static void a_second_signal_does_not_hurry(void **state)
{
    tt_outcome r = launch_signalled("trap 'trap \"echo second; exit 0\" TERM; echo first >&9' TERM; "
                                 "echo up >&9; while :; do sleep 100 & wait; done",
                                 SIGTERM, SIGTERM);

    (void)state;
    assert_int_equal(r.code, 128 + SIGTERM);
    assert_non_null(strstr(r.text.out, "[default0]:second\n"));
    assert_non_null(strstr(r.text.out, "[default1]:second\n"));
    tt_capture_free(&r.text);
}

/* The launcher is this program's part "hold"; it is ended by SIGKILL, and can do nothing. */
static void ranks_follow_a_killed_launcher(void **state)
{
    int marks = tt_marks_open();
    pid_t launcher = fork();
    char line[64] = "";
    char secret[64] = "";
    pid_t rank;

    (void)state;
    if (launcher == 0) {
        execl("/proc/self/exe", "launch_test", "hold",
              "echo $TUTTI_SECRET_FILE >&9; echo $$$$ >&9; exec sleep 100", (char *)NULL);
        _exit(127);
    }
    assert_true(launcher > 0);
    tt_marks_wait(marks, 1, secret);
    tt_marks_wait(marks, 1, line);
    rank = (pid_t)atol(line);
    assert_true(rank > 0);
    assert_int_equal(access(secret, R_OK), 0);
    kill(launcher, SIGKILL);
    assert_int_equal(waitpid(launcher, NULL, 0), launcher);
    assert_true(tt_gone_within(rank, GONE_MS));
    while (access(secret, F_OK) == 0)
        sched_yield();
    tt_marks_close(marks);
}

/* Deaf to SIGTERM, stopped, or a child of the rank's: the keeper sees to them. */
static void all_processes_follow_a_killed_launcher(void **state)
{
    int marks = tt_marks_open();
    pid_t launcher = fork();
    char line[64] = "";
    pid_t pids[4];
    int i;

    (void)state;
    if (launcher == 0) {
        execl("/proc/self/exe", "launch_test", "hold3",
              "case $RANK in "
              "0) trap '' TERM; echo $$$$ >&9; while :; do sleep 100; done;; "
              "1) echo $$$$ >&9; kill -STOP $$$$;; "
              "2) sleep 100 & echo $! >&9; echo $$$$ >&9; wait;; esac",
              (char *)NULL);
        _exit(127);
    }
    assert_true(launcher > 0);
    for (i = 0; i < 4; i++) {
        tt_marks_wait(marks, 1, line);
        pids[i] = (pid_t)atol(line);
        assert_true(pids[i] > 0);
    }
    kill(launcher, SIGKILL);
    assert_int_equal(waitpid(launcher, NULL, 0), launcher);
    for (i = 0; i < 4; i++)
        assert_true(tt_gone_within(pids[i], GONE_MS));
    tt_marks_close(marks);
}

/* ---- limits ------------------------------------------------------------------------------------ */

/* 30 ranks take more than 90 descriptors, and poll() refuses more slots than the limit. */
static void a_low_soft_limit_is_raised(void **state)
{
    struct rlimit before;
    struct rlimit low;
    struct rlimit after;
    tt_outcome r;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = (struct rlimit){ .rlim_cur = 64, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    r = launch_script(30, "ulimit -Sn");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(r.status, TUTTI_OK);
    assert_int_equal(r.code, 0);
    assert_int_equal(tt_count_lines(r.text.out, "[default29]:64\n"), 1);
    assert_int_equal(tt_count_lines(r.text.out, ""), 30);
    assert_int_equal(after.rlim_cur, 64);
    tt_capture_free(&r.text);
}

/* Taken down while the job runs, the limit makes the next poll() fail; SIGTERM wakes the present one. */
static void a_blind_launcher_ends_its_ranks(void **state)
{
    struct rlimit none;
    int marks = tt_marks_open();
    char line[64] = "";
    int status = -1;
    pid_t launcher;
    pid_t rank;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &none), 0);
    none.rlim_cur = 1; /* the hard limit stays, so that the launcher can put the soft one back */
    launcher = fork();
    if (launcher == 0) {
        dup2(TT_MARK_FD, STDOUT_FILENO); /* a line that is passed on shows that poll() is in use */
        execl("/proc/self/exe", "launch_test", "hold", "trap '' TERM; echo $$$$; sleep 100",
              (char *)NULL);
        _exit(127);
    }
    assert_true(launcher > 0);
    tt_marks_wait(marks, 1, line);
    rank = (pid_t)tt_number_after(line, "[default0]:");
    assert_true(rank > 0);
    assert_int_equal(prlimit(launcher, RLIMIT_NOFILE, &none, NULL), 0);
    kill(launcher, SIGTERM);
    assert_int_equal(waitpid(launcher, &status, 0), launcher);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), TUTTI_E_IO & 0x7f);
    assert_true(tt_gone_within(rank, GONE_MS));
    tt_marks_close(marks);
}

/* ---- programs, ports, files -------------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* A program with this text (NULL: as it is) is not run, and these words say why. */
static void check_words(const char *program, const char *text, const char *words)
{
    char *name = strdup(program);
    char *argv[] = { name, NULL };
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    tt_outcome r;

    if (text != NULL)
        write_text(program, text);
    r = tt_launch(o, argv);
    assert_int_equal(r.status, TUTTI_OK);
    assert_int_equal(r.code, 127);
    assert_non_null(strstr(r.text.err, words));
    tt_capture_free(&r.text);
    free(name);
}

static void programs_that_cannot_run(void **state)
{
    char missing[] = "no-such-program-here";
    char *argv[] = { missing, NULL };
    char path[] = "/tmp/tutti-launch-test-XXXXXX";
    char *file_argv[] = { path, NULL };
    int fd = mkstemp(path);
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    tt_outcome r = tt_launch(o, argv);

    (void)state;
    assert_int_equal(r.status, TUTTI_OK);
    assert_int_equal(r.code, 127);
    assert_non_null(strstr(r.text.err, "program 'no-such-program-here' not found in PATH"));
    tt_capture_free(&r.text);

    assert_true(fd >= 0);
    close(fd);
    write_text(path, "neither\n");
    r = tt_launch(o, file_argv);
    assert_int_equal(r.code, 127);
    assert_non_null(strstr(r.text.err, path));
    assert_non_null(strstr(r.text.err, "is not executable"));
    tt_capture_free(&r.text);

    assert_int_equal(chmod(path, 0700), 0);
    check_words(path, "#!/no/such/interpreter -x\nexit 0\n",
                "its interpreter '/no/such/interpreter' does not exist");
    check_words(path, "#! /bin/sh\r\nexit 0\r\n", "first line ends with a carriage return");
    check_words("/tmp", NULL, "program '/tmp' is a directory");
    write_text(path, "neither\n");
    o.nproc = 2;
    r = tt_launch(o, file_argv);
    assert_int_equal(r.code, 127);
    assert_non_null(strstr(r.text.err, "rank 0"));
    assert_non_null(strstr(r.text.err, "cannot be executed: Exec format error"));
    tt_capture_free(&r.text);
    unlink(path);
}

static void a_port_that_is_taken(void **state)
{
    struct sockaddr_in addr = { .sin_family = AF_INET };
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char *argv[] = { shell, NULL };
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    char port[16];
    tt_outcome r;

    (void)state;
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    o.master_port = ntohs(addr.sin_port);
    r = tt_launch(o, argv);
    snprintf(port, sizeof port, "%d", o.master_port);
    assert_int_equal(r.status, TUTTI_E_NETWORK);
    assert_int_equal(r.code, -1);
    assert_non_null(strstr(tutti_last_error(), "127.0.0.1"));
    assert_non_null(strstr(tutti_last_error(), port));
    close(fd);
    tt_capture_free(&r.text);
}

static void the_secret_is_private_and_goes(void **state)
{
    tt_outcome r =
        launch_script(1, "echo path $TUTTI_SECRET_FILE; stat -c 'file %a' $TUTTI_SECRET_FILE;"
                         "stat -c 'dir %a' $(dirname $TUTTI_SECRET_FILE);"
                         "tr -d '0-9a-f' < $TUTTI_SECRET_FILE | od -An -c;"
                         "wc -c < $TUTTI_SECRET_FILE");
    char *path;
    char *slash;

    (void)state;
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.text.out, "[default0]:file 600\n[default0]:dir 700\n"));
    assert_non_null(strstr(r.text.out, "[default0]:  \\n\n[default0]:65\n"));
    path = strstr(r.text.out, "path ") + 5;
    path[strcspn(path, "\n")] = '\0';
    assert_int_equal(access(path, F_OK), -1);
    slash = strrchr(path, '/');
    assert_non_null(slash);
    *slash = '\0';
    assert_int_equal(access(path, F_OK), -1);
    tt_capture_free(&r.text);
}

static void leave_over(const char *base, const char *name, int age_s, char path[128])
{
    struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_sec = time(NULL) - age_s } };
    char file[160];
    int fd;

    snprintf(path, 128, "%s/%s", base, name);
    snprintf(file, sizeof file, "%s/secret", path);
    assert_int_equal(mkdir(path, 0700), 0);
    fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void take_away(const char *path)
{
    char file[160];

    snprintf(file, sizeof file, "%s/secret", path);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(path), 0);
}

/* Of jobs whose keeper was killed, too. What is locked, young, or called otherwise is somebody's. */
static void secrets_that_were_left_go_with_the_next_job(void **state)
{
    char base[] = "/dev/shm/tutti-launch-test-XXXXXX";
    char old[128], locked[128], young[128], other[128];
    tt_outcome r;
    int fd;

    (void)state;
    if (access("/dev/shm", W_OK) != 0)
        skip();
    assert_non_null(mkdtemp(base));
    leave_over(base, "tutti-job-aaaaaa", 3600, old);
    leave_over(base, "tutti-job-bbbbbb", 3600, locked);
    leave_over(base, "tutti-job-cccccc", 0, young);
    leave_over(base, "tutti-dddddd", 3600, other);
    fd = open(locked, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    setenv("XDG_RUNTIME_DIR", base, 1);
    r = launch_script(1, "echo at $TUTTI_SECRET_FILE; flock -n $(dirname $TUTTI_SECRET_FILE) true || echo held");
    unsetenv("XDG_RUNTIME_DIR");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.text.out, base));
    assert_non_null(strstr(r.text.out, "[default0]:held\n"));
    tt_capture_free(&r.text);
    assert_int_equal(access(old, F_OK), -1);
    close(fd);
    take_away(locked);
    take_away(young);
    take_away(other);
    assert_int_equal(rmdir(base), 0); /* the job's own is gone, too */
}

static void grandchildren_go_too(void **state)
{
    static const struct {
        const char *script;
        int code;
    } rows[] = {
        { "sleep 100 & echo pid $!; exit 3", 3 },
        { "sleep 100 & echo pid $!; exit 0", 0 },
        { "sleep 100 >/dev/null 2>&1 & echo pid $!; exit 0", 0 },
        { "trap '' TERM; sleep 100 & echo pid $!; exit 6", 6 },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tt_outcome r = launch_script(1, rows[i].script);

        assert_int_equal(r.code, rows[i].code);
        assert_true(tt_gone_within((pid_t)tt_number_after(r.text.out, "pid "), GONE_MS));
        tt_capture_free(&r.text);
    }
}

/* A process that left the group still holds the pipes: the launcher does not wait for it. */
static void a_daemon_is_not_waited_for(void **state)
{
    tt_outcome r = launch_script(1, "setsid sleep 100 & echo pid $!; echo end; exit 0");
    pid_t pid = (pid_t)tt_number_after(r.text.out, "pid ");

    (void)state;
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.text.out, "[default0]:end\n"));
    kill(pid, SIGKILL);
    assert_true(tt_gone_within(pid, GONE_MS));
    tt_capture_free(&r.text);
}

/* The scheduler shares a core among sessions before it does so among processes: ranks that yield are of one. */
static void ranks_are_of_one_session(void **state)
{
    tt_outcome r = launch_script(2, "read -r all < /proc/$$$$/stat; set -- ${all##*) }; echo \"group $3 session $4 tty $5.\"");
    char    line[96];

    (void)state;
    assert_int_equal(r.code, 0);
    snprintf(line, sizeof line, "session %d tty 0.", (int)getsid(0));
    assert_int_equal(tt_count_lines(r.text.out, "[default0]:group "), 1);
    assert_int_equal(tt_count_lines(r.text.out, "[default1]:group "), 1);
    assert_non_null(strstr(r.text.out, line));
    assert_non_null(strstr(strstr(r.text.out, line) + 1, line));
    tt_capture_free(&r.text);
}

/* ---- output and environment -------------------------------------------------------------------- */

static void output_is_named_and_complete(void **state)
{
    tt_outcome r = launch_script(2, "echo out $RANK; echo err $RANK >&2; "
                                 "yes 123456789012345678901234567890 | head -n 20000; printf end");
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    char script[] = "echo bare; printf ' end'";
    char *argv[] = { shell, dash_c, script, NULL };

    (void)state;
    assert_int_equal(r.code, 0);
    assert_int_equal(tt_count_lines(r.text.out, "[default0]:out 0"), 1);
    assert_int_equal(tt_count_lines(r.text.err, "[default1]:err 1"), 1);
    assert_int_equal(tt_count_lines(r.text.out, "[default0]:123456789012345678901234567890\n"),
                     20000);
    assert_int_equal(tt_count_lines(r.text.out, "[default1]:123456789012345678901234567890\n"),
                     20000);
    assert_int_equal(tt_count_lines(r.text.out, "[default0]:end\n"), 1);
    assert_int_equal(tt_count_lines(r.text.out, ""), 2 * 20002);
    tt_capture_free(&r.text);
    o.plain_output = true;
    r = tt_launch(o, argv);
    assert_string_equal(r.text.out, "bare\n end\n");
    tt_capture_free(&r.text);
}

typedef struct slow_reader {
    pthread_t thread;
    int fd;
    size_t n_lines;
} slow_reader;

static void *read_slowly(void *arg)
{
    slow_reader *s = arg;
    char data[512];
    ssize_t n;
    ssize_t i;

    while ((n = read(s->fd, data, sizeof data)) > 0)
        for (i = 0; i < n; i++)
            s->n_lines += data[i] == '\n';
    return NULL;
}

/* Much more than pipes and buffers hold, through a reader that takes little at a time. */
static void a_slow_reader_gets_all(void **state)
{
    char script[] = "yes abcdefghij | head -n 60000";
    char *argv[] = { shell, dash_c, script, NULL };
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    slow_reader s = { .fd = -1 };
    int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 20);
    tutti_status st;
    int ends[2];
    int code = -1;

    (void)state;
    fflush(NULL);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    s.fd = ends[0];
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    assert_int_equal(pthread_create(&s.thread, NULL, read_slowly, &s), 0);
    o.argv = argv;
    o.nproc = 2;
    st = tutti_launch(&o, &code);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    pthread_join(s.thread, NULL);
    close(ends[0]);
    assert_int_equal(st, TUTTI_OK);
    assert_int_equal(code, 0);
    assert_int_equal(s.n_lines, 2 * 60000);
}

static void ranks_know_where_they_are(void **state)
{
    tt_outcome r = launch_script(2, "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK "
                                 "$MASTER_ADDR $TORCHELASTIC_USE_AGENT_STORE $TUTTI_AGENT_STORE; "
                                 "echo port $MASTER_PORT; echo id $TORCHELASTIC_RUN_ID");

    (void)state;
    assert_int_equal(r.code, 0);
    assert_int_equal(tt_count_lines(r.text.out, "[default0]:0 2 0 2 0 127.0.0.1 True 1\n"), 1);
    assert_int_equal(tt_count_lines(r.text.out, "[default1]:1 2 1 2 0 127.0.0.1 True 1\n"), 1);
    assert_true(tt_number_after(r.text.out, "[default1]:port ") > 0);
    assert_int_equal(strcspn(strstr(r.text.out, "id ") + 3, "\n"), 16);
    tt_capture_free(&r.text);
}

static void threads_are_mentioned_once(void **state)
{
    tt_outcome r;

    (void)state;
    unsetenv("OMP_NUM_THREADS");
    r = launch_script(3, "echo threads $OMP_NUM_THREADS");
    assert_int_equal(tt_count_lines(r.text.out, "[default2]:threads 1\n"), 1);
    assert_int_equal(
        tt_count_lines(r.text.err, "tutti: OMP_NUM_THREADS is not set: 1 for each of the 3"), 1);
    assert_int_equal(tt_count_lines(r.text.err, ""), 1);
    tt_capture_free(&r.text);
    r = launch_script(1, "exit 0");
    assert_string_equal(r.text.err, "");
    tt_capture_free(&r.text);
    setenv("OMP_NUM_THREADS", "1", 1);
}

static void check_refused(tutti_launch_options o, tutti_status status, const char *words)
{
    char *argv[] = { shell, NULL };
    int code = -1;

    if (o.argv == NULL && status != TUTTI_E_STATE)
        o.argv = argv;
    assert_int_equal(tutti_launch(&o, &code), status);
    assert_non_null(strstr(tutti_last_error(), words));
    assert_int_equal(code, -1);
}

static void options_are_checked(void **state)
{
    tutti_launch_options good = TUTTI_LAUNCH_OPTIONS;
    tutti_launch_options o = good;
    int code = -1;

    (void)state;
    assert_int_equal(tutti_launch(NULL, &code), TUTTI_E_ARG);
    assert_int_equal(tutti_launch(&good, &code), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "no program"));
    o.nproc = -1;
    check_refused(o, TUTTI_E_ARG, "-1 processes");
    o = good;
    o.node_rank = 1;
    check_refused(o, TUTTI_E_ARG, "host rank 1 of 1");
    o = good;
    o.nnodes = 2;
    check_refused(o, TUTTI_E_ARG, "master port");
    o.master_port = 70000;
    check_refused(o, TUTTI_E_ARG, "70000");
    o.master_port = 2345;
    unsetenv("TUTTI_SECRET_FILE");
    check_refused(o, TUTTI_E_AUTH, "64 random hex digits, mode 0600"); /* on loopback, too */
    o.master_addr = "192.0.2.1";
    check_refused(o, TUTTI_E_AUTH, "TUTTI_SECRET_FILE");
    o = good;
    o.shutdown_ms = -5;
    check_refused(o, TUTTI_E_ARG, "-5 ms");
}

/* ---- the parts that this program plays --------------------------------------------------------- */

static int part_abort(void)
{
    char line[64];

    printf("pid %ld\n", (long)getpid());
    if (strcmp(getenv("RANK"), "1") == 0) {
        tt_marks_wait(TT_WAIT_FD, 3, line);
        printf("abort at ms %ld\n", (long)(uptime_s() * 1000));
        fflush(stdout);
        abort();
    }
    fflush(stdout);
    dprintf(TT_MARK_FD, "up\n");
    for (;;)
        pause();
}

static int part_hold(char *script, int nproc)
{
    char *argv[] = { shell, dash_c, script, NULL };
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    tutti_status st;
    int code = 1;

    o.argv = argv;
    o.nproc = nproc;
    st = tutti_launch(&o, &code);
    return st == TUTTI_OK ? code : (int)st & 0x7f;
}

/* Rank 1 is stopped by a signal, and rank 0 runs out of time. */
static int part_stopped(void)
{
    enum { WAIT_MS = 1500 }; /* for one that never comes; who meet have all their time, on a busy machine, too */

    if (tutti_init_process_group(NULL) != TUTTI_OK || tutti_barrier(NULL) != TUTTI_OK)
        return 3;
    if (tutti_get_rank(NULL) == 1)
        raise(SIGSTOP);
    if (tutti_set_timeout(NULL, WAIT_MS) != TUTTI_OK)
        return 3;
    return tutti_barrier(NULL) == TUTTI_E_TIMEOUT ? 4 : 5;
}

/* Rank 0 never comes, and rank 1 goes on alone, when rank 0 has come out of the barrier: what rank 1 tells would end that, too. */
static int part_goes_on(void)
{
    const int           gone[] = { 0 };
    tutti_group_options o = TUTTI_GROUP_OPTIONS;
    tutti_group        *world = NULL;
    char                line[64];

    if (tutti_init_process_group(NULL) != TUTTI_OK || tutti_barrier(NULL) != TUTTI_OK)
        return 3;
    if (tutti_get_rank(NULL) == 0)
        dprintf(TT_MARK_FD, "out\n");
    while (tutti_get_rank(NULL) == 0)
        pause();
    tt_marks_wait(TT_WAIT_FD, 1, line);
    o.timeout_ms = 60000;
    if (tutti_set_timeout(NULL, 300) != TUTTI_OK || tutti_barrier(NULL) != TUTTI_E_TIMEOUT)
        return 4;
    if (tutti_shrink_group(gone, 1, NULL, TUTTI_SHRINK_ABORT, &o, &world) != TUTTI_OK || tutti_barrier(NULL) != TUTTI_OK)
        return 5;
    raise(SIGKILL);
    return 6;
}

static int part_recorded(void)
{
    if (tutti_init_process_group(NULL) != TUTTI_OK || tutti_barrier(NULL) != TUTTI_OK)
        return 3;
    if (tutti_get_rank(NULL) == 1)
        raise(SIGKILL);
    return tutti_barrier(NULL) == TUTTI_OK ? 4 : 5;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(what_the_killed_did_is_dumped),
        cmocka_unit_test(what_was_seen_before_the_end_is_dumped),
        cmocka_unit_test(who_has_gone_on_and_is_killed_is_dumped_again),
        cmocka_unit_test(the_first_failure_wins),
        cmocka_unit_test(the_others_are_kept),
        cmocka_unit_test(a_replacement_is_started),
        cmocka_unit_test(a_crash_goes_before_what_it_caused),
        cmocka_unit_test(an_abort_ends_all_within_a_second),
        cmocka_unit_test(one_that_ignores_sigterm_is_killed),
        cmocka_unit_test(signals_are_forwarded),
        cmocka_unit_test(a_second_signal_does_not_hurry),
        cmocka_unit_test(ranks_follow_a_killed_launcher),
        cmocka_unit_test(all_processes_follow_a_killed_launcher),
        cmocka_unit_test(a_low_soft_limit_is_raised),
        cmocka_unit_test(a_blind_launcher_ends_its_ranks),
        cmocka_unit_test(programs_that_cannot_run),
        cmocka_unit_test(a_port_that_is_taken),
        cmocka_unit_test(the_secret_is_private_and_goes),
        cmocka_unit_test(secrets_that_were_left_go_with_the_next_job),
        cmocka_unit_test(grandchildren_go_too),
        cmocka_unit_test(a_daemon_is_not_waited_for),
        cmocka_unit_test(ranks_are_of_one_session),
        cmocka_unit_test(output_is_named_and_complete),
        cmocka_unit_test(a_slow_reader_gets_all),
        cmocka_unit_test(ranks_know_where_they_are),
        cmocka_unit_test(threads_are_mentioned_once),
        cmocka_unit_test(options_are_checked),
    };

    if (argc > 1 && strcmp(argv[1], "abort") == 0)
        return part_abort();
    if (argc > 1 && strcmp(argv[1], "recorded") == 0)
        return part_recorded();
    if (argc > 1 && strcmp(argv[1], "stopped") == 0)
        return part_stopped();
    if (argc > 1 && strcmp(argv[1], "goes-on") == 0)
        return part_goes_on();
    if (argc > 2 && strcmp(argv[1], "hold") == 0)
        return part_hold(argv[2], 1);
    if (argc > 2 && strcmp(argv[1], "hold3") == 0)
        return part_hold(argv[2], 3);
    setenv("OMP_NUM_THREADS", "1", 1);
    tt_marks_reserve();
    signal(SIGINT, SIG_DFL); /* whoever started the test may have had them ignored */
    signal(SIGHUP, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    return cmocka_run_group_tests_name("launch", tests, NULL, NULL);
}
