/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/output.h - from the ranks' pipes to the launcher's own output, in whole lines. */
#ifndef TTI_ELASTIC_OUTPUT_H
#define TTI_ELASTIC_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

enum {
    TTI_PREFIX_MAX = 32,
    TTI_LINE_MAX = 16384,   /* a longer line is broken into lines of this size */
    TTI_OUTPUT_READ = 8192, /* the most that is fed at once */
    TTI_SINK_BYTES = 512 * 1024
};

/** What waits to be written to one descriptor. Written only when poll() says that it can be, so that a
 * reader who stalls does not stop the launcher. */
typedef struct tti_sink {
    int fd;
    int error;    /* of the write that failed, or 0; after one what comes is dropped */
    size_t piece; /* the most that one write may take without waiting */
    size_t start;
    size_t end;
    char data[TTI_SINK_BYTES];
} tti_sink;

void tti_sink_init(tti_sink *sink, int fd);

/** Whether there is something to write. */
bool tti_sink_pending(const tti_sink *sink);

/** Whether feeding TTI_OUTPUT_READ bytes, and ending their line, is certain to fit. Feed only then. */
bool tti_sink_has_room(const tti_sink *sink);

/** Write once, at most as much as does not wait. Call when poll() has said POLLOUT or POLLERR. */
void tti_sink_flush(tti_sink *sink);

/** One stream of one rank: collects bytes until a line is whole, then hands it on behind the prefix.
 * A carriage return also ends a line and is passed on, so that progress bars show as they move. */
typedef struct tti_lines {
    tti_sink *to;
    size_t prefix_len;
    size_t n_held;
    bool after_return; /* a newline that follows belongs to the line that has just been passed on */
    char prefix[TTI_PREFIX_MAX];
    char held[TTI_LINE_MAX];
} tti_lines;

/** @param prefix  copied; at most TTI_PREFIX_MAX-1 bytes count; "" for none */
void tti_lines_init(tti_lines *lines, const char *prefix, tti_sink *to);
void tti_lines_feed(tti_lines *lines, const char *data, size_t n);
/** The stream has ended: what is held becomes a line of its own. */
void tti_lines_finish(tti_lines *lines);

#endif
