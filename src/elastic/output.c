/* SPDX-License-Identifier: BSD-3-Clause
 *
 * output.c - whole lines out of pieces, with the rank's name before each.
 *
 * Why     Many ranks write to one terminal or file. A line must not be torn by another rank's, and one
 *         must see whose it is. And a job must go on, and be stoppable, when nobody reads its output.
 * How     read from a pipe -> tti_lines holds the unfinished line -> tti_sink holds whole lines until
 *         the descriptor takes them. The supervisor reads from pipes only while the sink has room for
 *         the worst case, so a slow reader slows the ranks down, as it would without us.
 * Fails   A write fails once and for all: the sink keeps the errno and drops what comes. What that means
 *         for the job is the supervisor's business.
 * True    Nothing is allocated and nothing fails: both buffers are fixed. Per stream, the bytes without
 *         prefixes are the bytes that came, but for a newline after each TTI_LINE_MAX bytes of a line
 *         that is longer, and one at the end of a last line that has none. */
#include "elastic/output.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <limits.h>

/* Every byte fed may be a newline, and so bring a prefix with it. */
enum { WORST_FEED = TTI_OUTPUT_READ * (TTI_PREFIX_MAX + 1) + 2 * (TTI_LINE_MAX + TTI_PREFIX_MAX) };

static_assert((int)WORST_FEED < (int)TTI_SINK_BYTES, "an empty sink must take the worst feed");

void tti_sink_init(tti_sink *sink, int fd)
{
    struct stat st;
    bool file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);

    sink->fd = fd;
    sink->error = 0;
    sink->piece =
        file ? TTI_SINK_BYTES : PIPE_BUF; /* a pipe that is ready takes PIPE_BUF at once */
    sink->start = 0;
    sink->end = 0;
}

bool tti_sink_pending(const tti_sink *sink)
{
    return sink->start < sink->end;
}

bool tti_sink_has_room(const tti_sink *sink)
{
    return sink->end - sink->start + WORST_FEED <= TTI_SINK_BYTES;
}

static void sink_put(tti_sink *sink, const char *data, size_t n)
{
    if (sink->error != 0)
        return;
    if (sink->end + n > TTI_SINK_BYTES) {
        memmove(sink->data, sink->data + sink->start, sink->end - sink->start);
        sink->end -= sink->start;
        sink->start = 0;
    }
    assert(sink->end + n <= TTI_SINK_BYTES);
    memcpy(sink->data + sink->end, data, n);
    sink->end += n;
}

/* As much as one write takes, and whole lines if it is not all: the terminal may be stderr's, too. */
static size_t next_piece(const tti_sink *sink)
{
    const char *data = sink->data + sink->start;
    size_t n = sink->end - sink->start;
    const char *last;

    if (n <= sink->piece)
        return n;
    last = memrchr(data, '\n', sink->piece);
    return last != NULL ? (size_t)(last - data) + 1 : sink->piece;
}

void tti_sink_flush(tti_sink *sink)
{
    const char *data = sink->data + sink->start;
    size_t n = next_piece(sink);
    ssize_t done;

    if (n == 0)
        return;
    done = send(sink->fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done < 0 && errno == ENOTSOCK)
        done = write(sink->fd, data, n);
    if (done < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (done < 0) {
        sink->error = errno;
        sink->start = sink->end;
        return;
    }
    sink->start += (size_t)done;
    if (sink->start == sink->end)
        sink->start = sink->end = 0;
}

void tti_lines_init(tti_lines *lines, const char *prefix, tti_sink *to)
{
    lines->to = to;
    lines->n_held = 0;
    lines->after_return = false;
    snprintf(lines->prefix, sizeof lines->prefix, "%s", prefix);
    lines->prefix_len = strlen(lines->prefix);
}

static void pass_on(tti_lines *lines, char mark)
{
    sink_put(lines->to, lines->prefix, lines->prefix_len);
    sink_put(lines->to, lines->held, lines->n_held);
    sink_put(lines->to, &mark, 1);
    lines->n_held = 0;
}

static void hold(tti_lines *lines, const char *data, size_t n)
{
    while (n > 0) {
        size_t room = TTI_LINE_MAX - lines->n_held;
        size_t part = n < room ? n : room;

        if (room == 0) {
            pass_on(lines, '\n');
            continue;
        }
        memcpy(lines->held + lines->n_held, data, part);
        lines->n_held += part;
        data += part;
        n -= part;
    }
}

/* A return before any text only moves the cursor, and "\r\n" is one end: neither gets a prefix. */
static void end_line(tti_lines *lines, char mark)
{
    bool bare = lines->n_held == 0 && (mark == '\r' || lines->after_return);

    if (bare)
        sink_put(lines->to, &mark, 1);
    else
        pass_on(lines, mark);
    lines->after_return = mark == '\r';
}

void tti_lines_feed(tti_lines *lines, const char *data, size_t n)
{
    size_t i;
    size_t begin = 0;

    assert(n <= TTI_OUTPUT_READ);
    for (i = 0; i < n; i++) {
        if (data[i] != '\n' && data[i] != '\r')
            continue;
        hold(lines, data + begin, i - begin);
        end_line(lines, data[i]);
        begin = i + 1;
    }
    hold(lines, data + begin, n - begin);
}

void tti_lines_finish(tti_lines *lines)
{
    if (lines->n_held > 0)
        pass_on(lines, '\n');
}
