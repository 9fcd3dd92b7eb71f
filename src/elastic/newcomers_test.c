/* SPDX-License-Identifier: BSD-3-Clause
 *
 * newcomers_test.c
 * Goal    who asks to come in under a launcher finds the members, also where their store's host, the launcher, was stopped while they
 *         shrank; and is told soon where nobody is left who could let it in.
 * Method  jobs of this program, whose launcher is a process of its own, so that ranks can stop it. A launcher that is
 *         stopped for less than the members wait is woken in the middle of their shrink; one that is given up, when that is done. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/tutti.h>
#include "elastic/testing.h"

enum { TIMEOUT_MS = 60000, SOON_MS = 20000, SHORT_STOP_MS = 2600 };

#define SOON_SILENT "600" /* a heartbeat: four of them are longer than who runs is without a core, however busy the machine is */

static char self[] = "/proc/self/exe";

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- jobs ---- */

static void begin_launcher(const char *part, int nproc, int replacements)
{
    char n[16], spares[16];

    snprintf(n, sizeof n, "%d", nproc);
    snprintf(spares, sizeof spares, "%d", replacements);
    execl(self, "newcomers_test", part, n, spares, (char *)NULL);
    _exit(99);
}

static tt_capture run_job(const char *part, int nproc, int replacements, const char *heartbeat_ms)
{
    tt_capture text;
    pid_t      pid;
    int        status = 0;

    setenv("TUTTI_HEARTBEAT_MS", heartbeat_ms, 1);
    tt_capture_begin(&text);
    pid = fork();
    if (pid == 0)
        begin_launcher(part, nproc, replacements);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    tt_capture_end(&text);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the job '%s' has ended with status 0x%x:\n%s%s", part, (unsigned)status, text.out, text.err);
    return text;
}

static void expect(const tt_capture *text, const char *words)
{
    if (strstr(text->out, words) == NULL && strstr(text->err, words) == NULL)
        fail_msg("'%s' is not in:\n%s%s", words, text->out, text->err);
}

static void expect_not(const tt_capture *text, const char *words)
{
    if (strstr(text->out, words) != NULL || strstr(text->err, words) != NULL)
        fail_msg("'%s' is in:\n%s%s", words, text->out, text->err);
}

/* Four heartbeats are longer than it is stopped: its store stays what it was. */
static void a_launcher_that_is_stopped_for_less_keeps_the_store(void **state)
{
    tt_capture text = run_job("short", 2, 1, "5000");

    (void)state;
    expect_not(&text, "serves a fresh one");
    expect(&text, "grown to 2");
    tt_capture_free(&text);
}

/* It starts the replacement when it goes on. */
static void a_launcher_that_was_given_up_sends_replacements_along(void **state)
{
    tt_capture text = run_job("long", 2, 1, SOON_SILENT);

    (void)state;
    expect(&text, "has not answered for ");
    expect(&text, "serves a fresh one");
    expect(&text, "grown to 2");
    tt_capture_free(&text);
}

/* The replacement has asked before the members gave that store up, and waits there. */
static void who_waits_already_is_sent_along(void **state)
{
    tt_capture text = run_job("waits", 3, 1, SOON_SILENT);

    (void)state;
    expect(&text, "serves a fresh one");
    expect(&text, "grown to 2");
    tt_capture_free(&text);
}

static void a_second_join_behind_the_end_of_all_others_ends(void **state)
{
    tt_capture text = run_job("again", 2, 1, "1000");

    (void)state;
    expect(&text, "all members of the job have ended");
    expect(&text, "the last that has ended: rank 0 (host '");
    expect(&text, "soon");
    tt_capture_free(&text);
}

/* Two of them, who might wait for each other. */
static void who_was_left_out_is_told_that_nobody_is_left(void **state)
{
    tt_capture text = run_job("left-out", 3, 0, "1000");

    (void)state;
    assert_int_equal(tt_count_lines(text.out, "[default1]:rank 1: join_group: all members of the job have ended"), 1);
    assert_int_equal(tt_count_lines(text.out, "[default2]:rank 2: join_group: all members of the job have ended"), 1);
    expect_not(&text, "late");
    tt_capture_free(&text);
}

/* ---- the parts that this program plays ---- */

static int own_rank(void)
{
    const char *text = getenv("RANK");

    return text != NULL ? atoi(text) : -1;
}

static void must(tutti_status st)
{
    if (st == TUTTI_OK)
        return;
    fprintf(stderr, "rank %d: %s\n", own_rank(), tutti_last_error());
    exit(3);
}

/* One line, whatever the words are. */
static void say(int64_t began_ms)
{
    tt_say_error(own_rank(), now_ms() - began_ms < SOON_MS, "");
}

static void init(void)
{
    tutti_init_options o = TUTTI_INIT_OPTIONS;

    o.timeout_ms = TIMEOUT_MS;
    must(tutti_init_process_group(&o));
}

static tutti_status join(void)
{
    tutti_init_options o = TUTTI_INIT_OPTIONS;
    tutti_group       *world = NULL;

    o.timeout_ms = TIMEOUT_MS;
    return tutti_join_group(&o, NULL, &world);
}

static char state_of(pid_t pid)
{
    char  path[32], text[512] = "", *end;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return '?';
    if (fgets(text, sizeof text, file) == NULL)
        text[0] = '\0';
    fclose(file);
    end = strrchr(text, ')');
    return end != NULL && end[1] != '\0' ? end[2] : '?';
}

static void stop_the_launcher(void)
{
    kill(getppid(), SIGSTOP);
    while (state_of(getppid()) != 'T')
        poll(NULL, 0, 1);
}

/* How long it is stopped is what is staged here, and no wait for anything. */
static void *wake_the_launcher(void *arg)
{
    poll(NULL, 0, SHORT_STOP_MS);
    kill(getppid(), SIGCONT);
    return arg;
}

/* Until a member is gone. */
static void compute(void)
{
    float x = 1;

    while (tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL) == TUTTI_OK)
        continue;
}

/* How many have asked to come in, by what the launcher's store has of it. */
static int64_t count_asked(tutti_store *store)
{
    int64_t n = 0;

    must(tutti_store_add(store, "tutti/grow/default/asked", 0, &n));
    return n;
}

/* As ranks see it. */
static tutti_store *open_the_launchers_store(void)
{
    tutti_tcp_store_options o = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL, *view = NULL;

    o.host = getenv("MASTER_ADDR");
    o.port = atoi(getenv("MASTER_PORT"));
    must(tutti_tcp_store_open(&o, &store));
    must(tutti_prefix_store_open("/worker/attempt_0", store, &view));
    tutti_store_close(store);
    return view;
}

/* Rank 0 goes on with those that come in. */
static int grow(void)
{
    tutti_group *world = NULL;
    float        x = 1;

    must(tutti_grow_group(NULL, NULL, 1, NULL, &world));
    must(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL));
    printf("grown to %d\n", (int)x);
    must(tutti_destroy_process_group(NULL));
    return 0;
}

static int come_in(void)
{
    float x = 1;

    must(join());
    must(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL));
    must(tutti_destroy_process_group(NULL));
    return 0;
}

/* The launcher is stopped, and rank 1 is gone: it cannot be waited for yet. */
static int lose_rank_1(bool is_short)
{
    tutti_group *world = NULL;
    pthread_t    waker;

    compute();
    if (is_short && pthread_create(&waker, NULL, wake_the_launcher, NULL) != 0)
        return 4;
    must(tutti_shrink_group(NULL, 0, NULL, 0, NULL, &world));
    if (is_short)
        pthread_join(waker, NULL);
    else
        kill(getppid(), SIGCONT);
    return grow();
}

/* Here, and in the other parts: who comes late out of the barrier hears in it of the one that is gone. */
static int part_stopped(bool is_short)
{
    tutti_status st;

    if (own_rank() < 0)
        return come_in();
    init();
    st = tutti_barrier(NULL);
    if (own_rank() == 0)
        return lose_rank_1(is_short);
    must(st);
    stop_the_launcher();
    raise(SIGKILL);
    return 4;
}

/* Rank 2 is gone, and who is to replace it has asked. Then rank 1 goes, too, which nobody replaces; rank 0 has come out of the first
 * shrink by then. */
static int part_waits(void)
{
    const int    gone[] = { 2 };
    tutti_group *world = NULL;
    tutti_store *store;
    tutti_status st;

    if (own_rank() < 0)
        return come_in();
    init();
    st = tutti_barrier(NULL);
    if (own_rank() == 2) {
        must(st);
        raise(SIGKILL);
    }
    must(tutti_shrink_group(gone, 1, NULL, TUTTI_SHRINK_ABORT, NULL, &world));
    st = tutti_barrier(NULL);
    if (own_rank() == 1) {
        must(st);
        store = open_the_launchers_store();
        while (count_asked(store) == 0)
            poll(NULL, 0, 10);
        tutti_store_close(store);
        stop_the_launcher();
        raise(SIGKILL);
    }
    return lose_rank_1(false);
}

/* The replacement comes in, all others end, and it asks once more. */
static int part_again(void)
{
    const int    gone[] = { 1 };
    tutti_group *world = NULL;
    tutti_status st;
    int64_t      began_ms;

    if (own_rank() < 0) {
        (void)come_in();
        began_ms = now_ms();
        if (join() != TUTTI_E_PEER)
            must(TUTTI_E_STATE);
        say(began_ms);
        return 0;
    }
    init();
    st = tutti_barrier(NULL);
    if (own_rank() == 1) {
        must(st);
        return 5;
    }
    must(tutti_shrink_group(gone, 1, NULL, TUTTI_SHRINK_ABORT, NULL, &world));
    return grow();
}

/* Ranks 1 and 2 live, and rank 0 goes on without them, and ends. */
static int part_left_out(void)
{
    const int    left[] = { 1, 2 };
    tutti_group *world = NULL;
    tutti_status st;
    int64_t      began_ms;

    init();
    st = tutti_barrier(NULL);
    if (own_rank() == 0) {
        must(st);
        must(tutti_shrink_group(left, 2, NULL, 0, NULL, &world));
        must(tutti_destroy_process_group(NULL));
        return 0;
    }
    began_ms = now_ms();
    if (join() != TUTTI_E_PEER)
        must(TUTTI_E_STATE);
    say(began_ms);
    return 0;
}

static int play(const char *part)
{
    if (strcmp(part, "again") == 0)
        return part_again();
    if (strcmp(part, "left-out") == 0)
        return part_left_out();
    if (strcmp(part, "waits") == 0)
        return part_waits();
    return part_stopped(strcmp(part, "short") == 0);
}

static int launch(char *part, const char *nproc, const char *replacements)
{
    tutti_launch_options o = TUTTI_LAUNCH_OPTIONS;
    char                *argv[] = { self, part, NULL };
    int                  code = 99;

    o.argv = argv;
    o.nproc = atoi(nproc);
    o.keep = true;
    o.replacements = atoi(replacements);
    if (tutti_launch(&o, &code) != TUTTI_OK)
        fprintf(stderr, "%s\n", tutti_last_error());
    return code;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launcher_that_is_stopped_for_less_keeps_the_store),
        cmocka_unit_test(a_launcher_that_was_given_up_sends_replacements_along),
        cmocka_unit_test(who_waits_already_is_sent_along),
        cmocka_unit_test(a_second_join_behind_the_end_of_all_others_ends),
        cmocka_unit_test(who_was_left_out_is_told_that_nobody_is_left),
    };

    if (argc > 3)
        return launch(argv[1], argv[2], argv[3]);
    if (argc > 1)
        return play(argv[1]);
    setenv("OMP_NUM_THREADS", "1", 1);
    tt_marks_reserve();
    return cmocka_run_group_tests_name("newcomers", tests, NULL, NULL);
}
