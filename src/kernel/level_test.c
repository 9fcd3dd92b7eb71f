/* SPDX-License-Identifier: BSD-3-Clause
 *
 * level_test.c
 * Goal    TUTTI_ISA chooses the instructions of the kernels; what it asks for in vain changes nothing.
 * Method  The choice is made once for each process, so each word is tried in a child of its own, whose exit
 *         code is the level that it got. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "kernel/level.h"

static tti_level level_under(const char *word)
{
    const pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        setenv("TUTTI_ISA", word, 1);
        _exit((int)tti_level_now());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return (tti_level)WEXITSTATUS(status);
}

static tti_level most(void)
{
    tti_level best = TTI_LEVEL_BASE;

    for (int l = 0; l < TTI_LEVEL_COUNT; l++)
        if (tti_level_works((tti_level)l))
            best = (tti_level)l;
    return best;
}

static void the_environment_chooses(void **state)
{
    (void)state;
    assert_int_equal(level_under("portable"), TTI_LEVEL_BASE);
    assert_int_equal(level_under("auto"), most());
    for (int l = 0; l < TTI_LEVEL_COUNT; l++)
        assert_int_equal(level_under(tti_level_name((tti_level)l)),
                         tti_level_works((tti_level)l) ? (tti_level)l : most());
}

static void a_word_that_is_none_is_the_best(void **state)
{
    (void)state;
    assert_int_equal(level_under("sse9"), most());
    assert_int_equal(level_under(""), most());
}

static void every_level_has_the_same_loops(void **state)
{
    const tti_level level = tti_level_now();
    const tti_loop_table *base;

    (void)state;
    tti_level_use(TTI_LEVEL_BASE);
    base = tti_loops();
    for (int l = 1; l < TTI_LEVEL_COUNT; l++)
        if (tti_level_works((tti_level)l)) {
            tti_level_use((tti_level)l);
            assert_ptr_not_equal(tti_loops(), base);
            for (int op = 0; op < TUTTI_OP_COUNT; op++)
                for (int dtype = 0; dtype < TUTTI_DTYPE_COUNT; dtype++)
                    assert_int_equal((*tti_loops())[op][dtype] != NULL, (*base)[op][dtype] != NULL);
        }
    tti_level_use(level);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_chooses),
        cmocka_unit_test(a_word_that_is_none_is_the_best),
        cmocka_unit_test(every_level_has_the_same_loops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
