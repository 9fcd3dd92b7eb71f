/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/testing.h - what the tests of launching share: captured output, and processes that are gone. */
#ifndef TT_ELASTIC_TESTING_H
#define TT_ELASTIC_TESTING_H

#include <stdbool.h>
#include <sys/types.h>
#include <tutti/launch.h>

/* Ranks write to TT_MARK_FD to say that they are up ("echo up >&9"), and read from TT_WAIT_FD. */
enum { TT_WAIT_FD = 8, TT_MARK_FD = 9 };

/** First thing in main(): keep both numbers from being given to anything else. */
void tt_marks_reserve(void);

/** Standard output and error of this process and what it starts, in memory. */
typedef struct tt_capture {
    int saved[2];
    int fd[2];
    char *out;
    char *err;
} tt_capture;

void tt_capture_begin(tt_capture *c);
/** Back to the real ones; out and err have the texts, until tt_capture_free(). */
void tt_capture_end(tt_capture *c);
void tt_capture_free(tt_capture *c);

/** What a launch came to. */
typedef struct tt_outcome {
    tutti_status status;
    int          code;
    tt_capture   text;
} tt_outcome;

/** tutti_launch() with all that is written meanwhile in text, which is the caller's to free. */
tt_outcome tt_launch(tutti_launch_options o, char *const *argv);

/** How many lines of text begin with prefix. */
int tt_count_lines(const char *text, const char *prefix);

/** Print "rank R: ", the last error in one line, "; soon" or "; late", and more. */
void tt_say_error(int rank, bool is_soon, const char *more);

/** The number behind the first occurrence of word in text, or -1. */
long tt_number_after(const char *text, const char *word);

/** Whether a process is gone, or a zombie that only waits for its parent, within ms. */
bool tt_gone_within(pid_t pid, int ms);

/** Open TT_MARK_FD for the ranks, and the other end as TT_WAIT_FD, too; returns the end to read. Close
 * all with tt_marks_close(). */
int tt_marks_open(void);
void tt_marks_close(int fd);
/** Wait for n lines; the last one is left in line[64]. */
void tt_marks_wait(int fd, int n, char line[64]);

#endif
