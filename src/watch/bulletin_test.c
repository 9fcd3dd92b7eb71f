/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bulletin_test.c
 * Goal    what a launcher puts up is what its ranks read, once each, in order; nobody else can write; what is no bulletin
 *         is not taken for one.
 * Method  both sides in this process, with the descriptor's number in the environment, as a rank has it. */
#include "watch/bulletin.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>

enum { RANKS = 3, PROCESSES = 5 };

static void name_fd(int fd)
{
    char text[16];

    snprintf(text, sizeof text, "%d", fd);
    assert_int_equal(setenv("TUTTI_LAUNCHER_FD", text, 1), 0);
}

static tti_ending ending_of(int rank, int local, int exit_code)
{
    return (tti_ending){ .version = TTI_ENDING_VERSION, .rank = rank, .node = 0, .local = local, .exit_code = exit_code,
                         .pid = 100 + local, .host = "n1" };
}

typedef struct sides {
    tti_bulletin *launcher, *rank;
    int           fd;
} sides;

static sides make_sides(void)
{
    sides s;

    assert_int_equal(tti_bulletin_make(RANKS, PROCESSES, &s.launcher, &s.fd), TUTTI_OK);
    name_fd(s.fd);
    s.rank = tti_bulletin_open();
    assert_non_null(s.rank);
    return s;
}

static void free_sides(sides *s)
{
    tti_bulletin_close(s->rank);
    tti_bulletin_close(s->launcher);
    close(s->fd);
    unsetenv("TUTTI_LAUNCHER_FD");
}

static void what_is_put_up_is_read(void **state)
{
    tti_ending one = ending_of(1, 1, 7), spare = ending_of(-1, 3, 0), read;
    sides      s = make_sides();

    (void)state;
    assert_int_equal(atomic_load(tti_bulletin_news(s.rank)), 0);
    assert_false(tti_bulletin_find(s.rank, 1, &read));
    tti_bulletin_post(s.launcher, &one);
    tti_bulletin_post(s.launcher, &spare);
    tti_bulletin_post(s.launcher, &one); /* once is enough */
    assert_int_equal(atomic_load(tti_bulletin_news(s.rank)), 2);
    assert_true(tti_bulletin_find(s.rank, 1, &read));
    assert_memory_equal(&read, &one, sizeof one);
    assert_true(tti_bulletin_find_at(s.rank, 0, 3, &read));
    assert_int_equal(read.rank, -1);
    assert_false(tti_bulletin_find_at(s.rank, 1, 3, &read));
    assert_false(tti_bulletin_find(s.rank, -1, &read)); /* which is no rank's number, although it stands there */
    assert_false(tti_bulletin_read(s.rank, 2, &read));
    free_sides(&s);
}

static void the_first_reason_stays(void **state)
{
    tti_ending zero = ending_of(0, 0, 1), one = ending_of(1, 1, 2), read;
    sides      s = make_sides();

    (void)state;
    tti_bulletin_post(s.launcher, &zero);
    assert_false(tti_bulletin_first(s.rank, &read));
    one.flags = TTI_ENDING_FIRST;
    tti_bulletin_post(s.launcher, &one);
    zero.flags = TTI_ENDING_FIRST;
    tti_bulletin_post(s.launcher, &zero);
    assert_true(tti_bulletin_first(s.rank, &read));
    assert_int_equal(read.rank, 1);
    assert_int_equal(atomic_load(tti_bulletin_news(s.rank)), 2);
    free_sides(&s);
}

/* Replacements and launchers do not count; ranks that there is no room for do. */
static void the_last_rank_is_known(void **state)
{
    sides      s = make_sides();
    tti_ending ending = ending_of(-1, 9, 0);
    int        i;

    (void)state;
    tti_bulletin_post(s.launcher, &ending);
    ending = ending_of(-1, -1, 0);
    ending.flags = TTI_ENDING_LAUNCHER | TTI_ENDING_FIRST;
    tti_bulletin_post(s.launcher, &ending);
    assert_true(tti_bulletin_last(s.rank, &ending)); /* nor is a launcher the last to have ended */
    assert_int_equal(ending.local, 9);
    for (i = 0; i < 3; i++) { /* of places that this job has not */
        ending = ending_of(-1, 20 + i, 0);
        tti_bulletin_post(s.launcher, &ending);
    }
    for (i = 0; i < RANKS; i++) {
        assert_int_equal(tti_bulletin_left(s.rank), RANKS - i);
        ending = ending_of(i, i, 0);
        tti_bulletin_post(s.launcher, &ending);
    }
    assert_int_equal(tti_bulletin_left(s.rank), 0);
    assert_int_equal(atomic_load(tti_bulletin_news(s.rank)), PROCESSES);
    free_sides(&s);
}

/* A page of one place, for three ranks. With several hosts each ending is put up when it is seen, and once more when it is read. */
static void without_room_ranks_count_once(void **state)
{
    sides      s;
    tti_ending ending;
    int        i;

    (void)state;
    assert_int_equal(tti_bulletin_make(RANKS, 1, &s.launcher, &s.fd), TUTTI_OK);
    name_fd(s.fd);
    s.rank = tti_bulletin_open();
    assert_non_null(s.rank);
    for (i = 0; i < RANKS; i++) {
        assert_int_equal(tti_bulletin_left(s.rank), RANKS - i);
        ending = ending_of(i, i, 0);
        tti_bulletin_post(s.launcher, &ending);
        assert_int_equal(tti_bulletin_left(s.rank), RANKS - 1 - i);
        tti_bulletin_post(s.launcher, &ending);
        tti_bulletin_post(s.launcher, &ending);
    }
    assert_int_equal(tti_bulletin_left(s.rank), 0);
    assert_int_equal(atomic_load(tti_bulletin_news(s.rank)), 1);
    free_sides(&s);
}

static void assert_said(const char *words)
{
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

static void words_tell_cause_from_consequence(void **state)
{
    sides      s = make_sides();
    tti_ending one = ending_of(1, 1, 0), two = ending_of(2, 2, 0);

    (void)state;
    one.signal = SIGKILL;
    tti_bulletin_post(s.launcher, &one);
    one.flags = TTI_ENDING_FIRST;
    tti_bulletin_post(s.launcher, &one);
    two.signal = SIGTERM;
    two.flags = TTI_ENDING_ASKED;
    tti_bulletin_post(s.launcher, &two);
    assert_int_equal(tti_bulletin_fail(s.rank, &one, 0, RANKS), TUTTI_E_PEER);
    assert_said("rank 1 (host 'n1', pid 101) was ended by signal 9 (Killed) before it joined");
    assert_int_equal(tti_bulletin_fail(s.rank, &two, 0, RANKS), TUTTI_E_PEER);
    assert_said("rank 1 (host 'n1', pid 101) was ended by signal 9 (Killed); because of that its launcher ended rank 2");
    tti_fail(TUTTI_E_NETWORK, "the store is gone\n  next: look for it");
    assert_int_equal(tti_bulletin_fail_besides(s.rank, &one, 0, RANKS), TUTTI_E_PEER);
    assert_said("cannot be made: the store is gone; and rank 1 (host 'n1', pid 101) was ended by signal 9 (Killed) before it joined");
    tti_fail(TUTTI_E_NETWORK, "the store is gone");
    assert_int_equal(tti_bulletin_fail_besides(s.rank, &two, 0, RANKS), TUTTI_E_PEER);
    assert_said("the store is gone; and rank 1 (host 'n1', pid 101) was ended by signal 9 (Killed); because of that");
    free_sides(&s);
}

/* A launcher that is gone has told nothing, and neither have its ranks. */
static void words_tell_whose_launcher_is_gone(void **state)
{
    sides      s = make_sides();
    tti_ending gone = ending_of(-1, 1, -1), one = ending_of(1, 1, 0);

    (void)state;
    gone.flags = TTI_ENDING_LAUNCHER | TTI_ENDING_FIRST;
    one.flags = TTI_ENDING_ASKED;
    tti_bulletin_post(s.launcher, &gone);
    tti_bulletin_post(s.launcher, &one);
    assert_int_equal(tti_bulletin_fail(s.rank, &one, 0, RANKS), TUTTI_E_PEER);
    assert_said("the launcher (host 'n1', pid");
    assert_said("is gone without a word, or out of reach, and its ranks with it, before rank 1 joined");
    free_sides(&s);
}

static void ranks_cannot_write(void **state)
{
    sides s = make_sides();
    char  byte = 1;

    (void)state;
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, 0), MAP_FAILED);
    assert_int_equal(errno, EPERM);
    assert_int_equal(pwrite(s.fd, &byte, 1, 0), -1);
    assert_int_equal(ftruncate(s.fd, 0), -1);
    free_sides(&s);
}

static void refuse_fd(int fd)
{
    name_fd(fd);
    assert_null(tti_bulletin_open());
    close(fd);
}

static void others_are_not_taken_for_one(void **state)
{
    static const char nonsense[4096];
    int               fd;

    (void)state;
    unsetenv("TUTTI_LAUNCHER_FD");
    assert_null(tti_bulletin_open());
    refuse_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
    refuse_fd(memfd_create("something", MFD_CLOEXEC));
    refuse_fd(memfd_create("tutti-launcher", MFD_CLOEXEC)); /* empty */
    fd = memfd_create("tutti-launcher", MFD_CLOEXEC);
    assert_int_equal(write(fd, nonsense, sizeof nonsense), sizeof nonsense);
    refuse_fd(fd);
    setenv("TUTTI_LAUNCHER_FD", "7x", 1);
    assert_null(tti_bulletin_open());
    setenv("TUTTI_LAUNCHER_FD", "1", 1);
    assert_null(tti_bulletin_open());
    unsetenv("TUTTI_LAUNCHER_FD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_up_is_read),
        cmocka_unit_test(the_first_reason_stays),
        cmocka_unit_test(the_last_rank_is_known),
        cmocka_unit_test(without_room_ranks_count_once),
        cmocka_unit_test(words_tell_cause_from_consequence),
        cmocka_unit_test(words_tell_whose_launcher_is_gone),
        cmocka_unit_test(ranks_cannot_write),
        cmocka_unit_test(others_are_not_taken_for_one),
    };

    return cmocka_run_group_tests_name("bulletin", tests, NULL, NULL);
}
