/* SPDX-License-Identifier: BSD-3-Clause
 *
 * output_test.c
 * Goal    lines come out whole, named and in order, however the bytes came in.
 * Method  every text is fed whole and byte by byte, into a sink on a memory file or a pipe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <sys/mman.h>
#include <cmocka.h>
#include "elastic/output.h"

typedef struct fixture {
    tti_sink sink;
    tti_lines lines;
    char text[TTI_SINK_BYTES];
} fixture;

static fixture *open_fixture(const char *prefix)
{
    fixture *f = malloc(sizeof *f);
    int fd = memfd_create("output", MFD_CLOEXEC);

    assert_non_null(f);
    assert_true(fd >= 0);
    tti_sink_init(&f->sink, fd);
    tti_lines_init(&f->lines, prefix, &f->sink);
    return f;
}

static const char *written(fixture *f)
{
    ssize_t n;

    while (tti_sink_pending(&f->sink))
        tti_sink_flush(&f->sink);
    n = pread(f->sink.fd, f->text, sizeof f->text - 1, 0);
    assert_true(n >= 0);
    f->text[n] = '\0';
    return f->text;
}

static void close_fixture(fixture *f)
{
    close(f->sink.fd);
    free(f);
}

static void check(const char *in, const char *out)
{
    size_t step;
    size_t i;

    for (step = 1; step <= strlen(in); step++) {
        fixture *f = open_fixture("[p]:");

        for (i = 0; i < strlen(in); i += step)
            tti_lines_feed(&f->lines, in + i, strlen(in) - i < step ? strlen(in) - i : step);
        tti_lines_finish(&f->lines);
        assert_string_equal(written(f), out);
        close_fixture(f);
    }
}

static void lines_are_whole_and_named(void **state)
{
    (void)state;
    check("one\ntwo\n", "[p]:one\n[p]:two\n");
    check("no end", "[p]:no end\n");
    check("\n\nx\n", "[p]:\n[p]:\n[p]:x\n");
    check("a\r\nb\r\n", "[p]:a\r\n[p]:b\r\n");
    check("a\r\n\nb\n", "[p]:a\r\n[p]:\n[p]:b\n");
}

static void progress_bars_move(void **state)
{
    (void)state;
    check("10%\r20%\rdone\n", "[p]:10%\r[p]:20%\r[p]:done\n");
    check("\r10%\r20%\n", "\r[p]:10%\r[p]:20%\n");
    check("10%\r", "[p]:10%\r");
}

static void no_prefix_adds_nothing(void **state)
{
    fixture *f = open_fixture("");

    (void)state;
    tti_lines_feed(&f->lines, "a\nb\rc", 5);
    assert_string_equal(written(f), "a\nb\r");
    tti_lines_finish(&f->lines);
    assert_string_equal(written(f), "a\nb\rc\n");
    close_fixture(f);
}

static void long_lines_are_broken(void **state)
{
    fixture *f = open_fixture("[p]:");
    char block[TTI_OUTPUT_READ];
    const char *text;
    int i;

    (void)state;
    memset(block, 'x', sizeof block);
    for (i = 0; i < 5; i++)
        tti_lines_feed(&f->lines, block, sizeof block);
    tti_lines_feed(&f->lines, "\nz\n", 3);
    text = written(f);
    assert_int_equal(strlen(text), 5 * TTI_OUTPUT_READ + 3 * 5 + 6);
    assert_int_equal(strchr(text, '\n') - text, 4 + TTI_LINE_MAX);
    assert_memory_equal(text + strlen(text) - 8, "x\n[p]:z\n", 8);
    close_fixture(f);
}

static void the_worst_feed_fits(void **state)
{
    fixture *f = open_fixture("[a prefix as long as they come]");
    char block[TTI_OUTPUT_READ];
    size_t fed = 0;

    (void)state;
    memset(block, '\n', sizeof block);
    while (tti_sink_has_room(&f->sink)) {
        tti_lines_feed(&f->lines, block, sizeof block);
        fed += sizeof block;
    }
    assert_int_equal(strlen(written(f)), fed * TTI_PREFIX_MAX);
    assert_true(tti_sink_has_room(&f->sink));
    close_fixture(f);
}

static void a_full_pipe_is_not_waited_for(void **state)
{
    fixture *f = open_fixture("");
    char block[TTI_OUTPUT_READ];
    int ends[2];
    int i;

    (void)state;
    close(f->sink.fd);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    tti_sink_init(&f->sink, ends[1]);
    memset(block, 'y', sizeof block - 1);
    block[sizeof block - 1] = '\n';
    for (i = 0; i < 16; i++) {
        tti_lines_feed(&f->lines, block, sizeof block);
        tti_sink_flush(&f->sink);
        tti_sink_flush(&f->sink);
    }
    assert_true(tti_sink_pending(&f->sink)); /* 128 KiB into a pipe of 64 */
    assert_int_equal(f->sink.error, 0);
    while (read(ends[0], f->text, sizeof f->text) > 0)
        tti_sink_flush(&f->sink);
    assert_false(tti_sink_pending(&f->sink));
    close(ends[0]);
    close_fixture(f);
}

static void a_reader_that_left_is_no_failure(void **state)
{
    fixture *f = open_fixture("");
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    int ends[2];

    (void)state;
    close(f->sink.fd);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    close(ends[0]);
    tti_sink_init(&f->sink, ends[1]);
    tti_lines_feed(&f->lines, "a\n", 2);
    tti_sink_flush(&f->sink);
    assert_int_equal(f->sink.error, EPIPE);
    tti_lines_feed(&f->lines, "b\n", 2);
    assert_false(tti_sink_pending(&f->sink));
    close_fixture(f);
    signal(SIGPIPE, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_whole_and_named),
        cmocka_unit_test(progress_bars_move),
        cmocka_unit_test(no_prefix_adds_nothing),
        cmocka_unit_test(long_lines_are_broken),
        cmocka_unit_test(the_worst_feed_fits),
        cmocka_unit_test(a_full_pipe_is_not_waited_for),
        cmocka_unit_test(a_reader_that_left_is_no_failure),
    };

    return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
