/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report_test.c
 * Goal    without a terminal, progress comes as a line every few seconds, and not for every batch.
 * Method  stderr is a file in memory; instead of waiting, the time of the last line is moved back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"

enum { BATCHES = 100, BATCH = 10 };

/* What an epoch of 100 steps says on stderr, the line being old before the 51st. */
static void epoch_says(int rank, char text[4096])
{
    const options opts = { .epochs = 1 };
    const int fd = memfd_create("stderr", MFD_CLOEXEC);
    const int saved = dup(STDERR_FILENO);
    report r = { 0 };
    ssize_t n;

    assert_true(fd >= 0 && saved >= 0);
    assert_true(dup2(fd, STDERR_FILENO) >= 0);
    assert_true(report_open(&r, &opts, rank, BATCHES * BATCH));
    for (int i = 0; i < BATCHES; i++) {
        if (i == 50)
            r.progress.shown -= 60.0;
        report_step(&r, BATCH);
    }
    report_epoch(&r, 0.5);
    report_end(&r);
    assert_true(report_close(&r));
    dup2(saved, STDERR_FILENO);
    close(saved);
    n = pread(fd, text, 4095, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    close(fd);
}

static void lines_come_by_the_clock(void **state)
{
    char text[4096];
    const char *second;

    (void)state;
    epoch_says(0, text);
    assert_memory_equal(text, "epoch 1/1   51 %  ", 18);
    second = strchr(text, '\n');
    assert_non_null(second);
    assert_memory_equal(second + 1, "epoch 1/1  100 %  ", 18);
    assert_ptr_equal(strchr(second + 1, '\n'), text + strlen(text) - 1);
    assert_null(strchr(text, '\r'));
}

static void only_rank_0_speaks(void **state)
{
    char text[4096];

    (void)state;
    epoch_says(1, text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_by_the_clock),
        cmocka_unit_test(only_rank_0_speaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
