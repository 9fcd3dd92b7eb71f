/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lane_test.c
 * Goal    messages over a socket arrive whole and in order however the stream is cut, with few system calls, and what
 *         is no stream of messages is refused.
 * Method  a port that plays the kernel: it hands out a recorded stream in pieces of given sizes, takes bytes in such
 *         pieces, and counts the calls. Lane and link are the real ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "transport/meet.h"
#include "transport/messenger_core.h"
#include "transport/tcp/tcp_link.h"
#include "transport/window_core.h"

enum { PEER = 0, HANDLE = 7, STREAM_MAX = 1 << 20, ALL = STREAM_MAX, AHEAD_MAX = 64 << 10 };

/* ---- a port that plays the kernel ------------------------------------------------------------------- */

typedef struct wire {
    tti_port port; /* first */
    uint8_t *bytes; /* [STREAM_MAX] what there is to be received, or what was sent */
    size_t   have, done;
    size_t   first, then; /* pieces: the first call gets so much, those after it so much; 0 in between */
    bool     stutters;    /* after every piece there is nothing for a moment */
    bool     pause;
    int      calls, vain;
    int64_t  last; /* behind the stream: -EAGAIN, 0 or -errno */
    size_t   asked_most;
} wire;

static size_t piece(wire *w, size_t most)
{
    size_t n = w->first > 0 ? w->first : w->then;

    if (n > most)
        n = most;
    w->first -= w->first > 0 ? n : 0;
    w->pause = w->stutters;
    return n;
}

static int64_t wire_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    wire  *w = (wire *)port;
    size_t n;

    assert_int_equal(handle, HANDLE);
    assert_true(bytes > 0);
    w->calls++;
    if (bytes > w->asked_most)
        w->asked_most = bytes;
    if (w->pause || w->done == w->have) {
        w->vain++;
        if (w->pause) {
            w->pause = false;
            return -EAGAIN;
        }
        return w->last;
    }
    n = piece(w, bytes < w->have - w->done ? bytes : w->have - w->done);
    memcpy(out, w->bytes + w->done, n);
    w->done += n;
    return (int64_t)n;
}

static int64_t wire_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    wire  *w = (wire *)port;
    size_t room, sent = 0, n;
    int    i;

    assert_int_equal(handle, HANDLE);
    w->calls++;
    if (w->pause) {
        w->pause = false;
        return -EAGAIN;
    }
    room = piece(w, STREAM_MAX - w->have);
    for (i = 0; i < n_parts && sent < room; i++, sent += n) {
        n = parts[i].size < room - sent ? parts[i].size : room - sent;
        memcpy(w->bytes + w->have, parts[i].data, n);
        w->have += n;
    }
    return (int64_t)sent;
}

static void wire_close(tti_port *port, tti_handle handle)
{
    (void)port;
    (void)handle;
}

static const tti_port_ops wire_ops = { .name = "wire", .recv = wire_recv, .send = wire_send, .close = wire_close };

static uint8_t *room_of_a_stream(void)
{
    uint8_t *bytes = malloc(STREAM_MAX);

    assert_non_null(bytes);
    return bytes;
}

static wire wire_of(uint8_t *bytes, size_t have)
{
    return (wire){ .port = { &wire_ops }, .bytes = bytes, .have = have, .then = ALL, .last = -EAGAIN };
}

/* ---- messages ---------------------------------------------------------------------------------------- */

/* Of a stream: around the read-ahead of small and large messages, and around what goes straight. */
static const size_t sizes[] = { 0, 4, 0, 100, 1, 8191, 8192, 40, 3000, 70000, 4, 4, 4, 4, 20000, 0, 65496, 65497, 2048, 1 };
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

static const tti_channel channel = { .group = 3, .plane = TTI_PLANE_P2P };

static uint8_t byte_of(size_t i, size_t k)
{
    return (uint8_t)(i * 37 + k * 11 + (k >> 8));
}

static tti_parcel parcel_of(size_t i, size_t bytes, void *data)
{
    return (tti_parcel){ .peer = PEER, .tag = (int)i, .dtype = TUTTI_U8, .data = data, .bytes = bytes };
}

static size_t write_message(uint8_t *out, size_t i, size_t bytes)
{
    const tti_parcel parcel = parcel_of(i, bytes, NULL);
    const tti_frame  frame = tti_frame_of(channel, &parcel);
    size_t           k;

    memcpy(out, &frame, sizeof frame);
    for (k = 0; k < bytes; k++)
        out[sizeof frame + k] = byte_of(i, k);
    return sizeof frame + bytes;
}

static size_t write_stream(uint8_t *out, size_t n)
{
    size_t i, used = 0;

    for (i = 0; i < n; i++)
        used += write_message(out + used, i, sizes[i]);
    return used;
}

static void check_bytes(const uint8_t *data, size_t i)
{
    size_t k;

    for (k = 0; k < sizes[i]; k++)
        if (data[k] != byte_of(i, k))
            fail_msg("byte %zu of message %zu is wrong", k, i);
}

/* ---- a lane ------------------------------------------------------------------------------------------ */

typedef struct end {
    tti_messenger m; /* what a lane and its mailbox look at */
    tti_lane      lane;
    tti_request  *requests[N_SIZES];
    uint8_t      *data[N_SIZES];
    tti_cause     why;
} end;

static end *open_end(wire *w)
{
    end *e = calloc(1, sizeof *e);

    assert_non_null(e);
    e->m.mailbox.m = &e->m;
    e->m.mailbox.last_entered = -1;
    e->lane.peer = PEER;
    e->lane.where = "host 'x', pid 1";
    e->lane.way = TTI_WAY_OPEN;
    assert_int_equal(tti_tcp_link_open(&w->port, &(tti_handle){ HANDLE }, 1, PEER, NULL, &e->lane.link), TUTTI_OK);
    return e;
}

static tti_request *new_request(end *e, size_t i, bool is_send)
{
    tti_request *request = malloc(sizeof *request);
    tti_parcel   parcel;
    size_t       k;

    assert_non_null(request);
    e->data[i] = malloc(sizes[i] + 1);
    assert_non_null(e->data[i]);
    for (k = 0; k < sizes[i]; k++)
        e->data[i][k] = is_send ? byte_of(i, k) : 0;
    parcel = parcel_of(i, sizes[i], e->data[i]);
    tti_request_init(request, &e->m, channel, &parcel, is_send);
    e->m.under_way++;
    e->requests[i] = request;
    return request;
}

static void post(end *e, size_t i)
{
    tti_mailbox_post(&e->m.mailbox, new_request(e, i, false));
}

static void check_received(end *e, size_t i)
{
    assert_true(tti_request_ended(e->requests[i]));
    assert_int_equal(e->requests[i]->cause.status, TUTTI_OK);
    check_bytes(e->data[i], i);
}

static void close_end(end *e)
{
    size_t i;

    for (i = 0; i < N_SIZES; i++) {
        tti_request_release(e->requests[i]);
        free(e->data[i]);
    }
    tti_mailbox_release(&e->m.mailbox);
    if (e->lane.link != NULL)
        e->lane.link->ops->close(e->lane.link);
    free(e);
}

/* As a driver does, until nothing moves in two turns. */
static bool drain(end *e)
{
    bool moved = true, moved_before = true;

    while (moved || moved_before) {
        moved_before = moved;
        moved = false;
        if (!tti_lane_drain(&e->lane, &e->m.mailbox, true, &moved, &e->why))
            return false;
    }
    return true;
}

/* Receives that were posted before, and messages that come before their receives. */
static void receive_all(wire w, size_t n, size_t n_before)
{
    end   *e = open_end(&w);
    size_t i;

    for (i = 0; i < n_before; i++)
        post(e, i);
    assert_true(drain(e));
    assert_int_equal(w.done, w.have);
    for (i = n_before; i < n; i++)
        post(e, i);
    for (i = 0; i < n; i++)
        check_received(e, i);
    assert_int_equal(e->m.under_way, 0);
    close_end(e);
}

/* ---- receiving --------------------------------------------------------------------------------------- */

/* Of the i-th message, which is of sizes[i] bytes, a receive for so many at most. */
static void post_at_most(end *e, size_t i, size_t bytes)
{
    tti_request *request = new_request(e, i, false);

    free(e->data[i]);
    e->data[i] = malloc(bytes);
    assert_non_null(e->data[i]);
    memset(e->data[i], 0xee, bytes);
    request->parcel.data = e->data[i];
    request->parcel.bytes = bytes;
    request->parcel.at_most = true;
    tti_mailbox_post(&e->m.mailbox, request);
}

static void receive_at_most(bool before, size_t i, size_t bytes, bool fits)
{
    uint8_t *stream = room_of_a_stream();
    wire     w = wire_of(stream, write_message(stream, i, sizes[i]));
    end     *e = open_end(&w);

    if (before)
        post_at_most(e, i, bytes);
    assert_true(drain(e));
    if (!before)
        post_at_most(e, i, bytes);
    assert_true(tti_request_ended(e->requests[i]));
    assert_int_equal(e->requests[i]->cause.status, fits ? TUTTI_OK : TUTTI_E_MISMATCH);
    if (fits)
        check_bytes(e->data[i], i);
    else
        assert_non_null(strstr(e->requests[i]->cause.words, "the receive is for at most"));
    if (bytes > sizes[i])
        assert_int_equal(e->data[i][sizes[i]], 0xee); /* nothing behind it was written */
    close_end(e);
    free(stream);
}

/* Only its sender knows how long it is; it may not be longer than there is room. */
static void a_message_may_be_shorter_than_its_room(void **state)
{
    static const size_t which[] = { 1, 3, 8, 14 };
    size_t              k;
    int                 before;

    (void)state;
    for (k = 0; k < sizeof which / sizeof which[0]; k++)
        for (before = 0; before < 2; before++) {
            const size_t i = which[k];

            receive_at_most(before, i, sizes[i] + 5000, true);
            receive_at_most(before, i, sizes[i], true);
            receive_at_most(before, i, sizes[i] - 1, false);
        }
}

static void a_stream_may_be_cut_anywhere(void **state)
{
    enum { FEW = 5 };
    uint8_t *bytes = room_of_a_stream();
    size_t   used = write_stream(bytes, FEW), cut;

    (void)state;
    for (cut = 1; cut < used; cut++) {
        wire w = wire_of(bytes, used);

        w.first = cut;
        w.stutters = cut % 2 == 0;
        receive_all(w, FEW, cut % 3 == 0 ? 0 : FEW);
    }
    free(bytes);
}

static void a_stream_may_come_in_pieces_of_any_size(void **state)
{
    static const size_t pieces[] = { 1, 2, 3, 7, 39, 40, 41, 63, 64, 100, 1448, 2087, 2088, 2089, 8191, 8192, 65535, 65536, ALL };
    uint8_t            *bytes = room_of_a_stream();
    const size_t        used = write_stream(bytes, N_SIZES);
    size_t              i;

    (void)state;
    for (i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        wire w = wire_of(bytes, used);

        w.then = pieces[i];
        receive_all(w, N_SIZES, N_SIZES);
        receive_all(w, N_SIZES, 0);
        w.stutters = true;
        receive_all(w, N_SIZES, N_SIZES / 2);
    }
    free(bytes);
}

static void a_small_message_costs_one_look(void **state)
{
    uint8_t *bytes = room_of_a_stream();
    wire     w = wire_of(bytes, write_message(bytes, 1, sizes[1]));
    end     *e = open_end(&w);
    bool     moved = false;

    (void)state;
    post(e, 1);
    assert_true(tti_lane_drain(&e->lane, &e->m.mailbox, true, &moved, &e->why));
    check_received(e, 1);
    assert_true(moved);
    assert_int_equal(w.calls, 1); /* frame, payload, and that there is no more */
    close_end(e);
    free(bytes);
}

static void many_small_messages_cost_few_looks(void **state)
{
    enum { MESSAGES = 1000 };
    uint8_t *bytes = room_of_a_stream();
    size_t   i, used = 0;
    wire     w;
    end     *e;

    (void)state;
    for (i = 0; i < MESSAGES; i++)
        used += write_message(bytes + used, i, 24);
    w = wire_of(bytes, used);
    e = open_end(&w);
    assert_true(drain(e));
    assert_int_equal(w.done, used);
    assert_true(w.calls - w.vain <= 3); /* 64,000 bytes: 2 KiB, then all that the buffer holds */
    assert_true(w.asked_most <= AHEAD_MAX);
    close_end(e);
    free(bytes);
}

/* What is large goes where it belongs, but for the little that came with its frame. */
static void a_large_message_is_not_copied(void **state)
{
    enum { LARGE = 9 };
    uint8_t *bytes = room_of_a_stream();
    wire     w = wire_of(bytes, write_message(bytes, LARGE, sizes[LARGE]));
    end     *e = open_end(&w);

    (void)state;
    post(e, LARGE);
    assert_true(drain(e));
    check_received(e, LARGE);
    assert_int_equal(w.calls - w.vain, 2);
    assert_true(w.asked_most > sizes[LARGE] - 4096);
    close_end(e);
    free(bytes);
}

/* ---- what a member may have others hold ---------------------------------------------------------------- */

static void says(const end *e, const char *words)
{
    if (strstr(e->why.words, words) == NULL)
        fail_msg("'%s' is not in: %s", words, e->why.words);
}

static void messages_that_nobody_asks_for_are_bounded(void **state)
{
    enum { A_MESSAGE = 8 }; /* of 3000 bytes */
    uint8_t *bytes = room_of_a_stream();
    size_t   first = write_message(bytes, A_MESSAGE, sizes[A_MESSAGE]);
    size_t   both = first + write_message(bytes + first, A_MESSAGE, sizes[A_MESSAGE]);
    wire     w = wire_of(bytes, both);
    end     *e = open_end(&w);

    (void)state;
    e->m.mailbox.held.most = 2 * (sizeof(tti_kept) + sizes[A_MESSAGE]) - 1;
    assert_false(drain(e));
    assert_int_equal(e->why.status, TUTTI_E_NOMEM);
    says(e, "rank 0 would have this process hold too much: a message of 3000 bytes that nobody has asked for, beside");
    says(e, "TUTTI_HELD_MAX");
    assert_int_equal(e->m.mailbox.held.bytes, sizeof(tti_kept) + sizes[A_MESSAGE]);
    post(e, A_MESSAGE);
    check_received(e, A_MESSAGE);
    assert_int_equal(e->m.mailbox.held.bytes, 0);
    close_end(e);
    free(bytes);
}

/* It is counted as far as it has come, not as its frame says. */
static void a_message_that_grows_is_bounded(void **state)
{
    enum { LARGE = 9 << 20, MOST = 6 << 20 };
    uint8_t         *bytes = calloc(1, sizeof(tti_frame) + LARGE);
    const tti_parcel parcel = parcel_of(1, LARGE, NULL);
    const tti_frame  frame = tti_frame_of(channel, &parcel);
    wire             w = wire_of(bytes, sizeof frame + 100);
    end             *e = open_end(&w);

    (void)state;
    assert_non_null(bytes);
    memcpy(bytes, &frame, sizeof frame);
    e->m.mailbox.held.most = MOST;
    assert_true(drain(e));
    w.have = sizeof frame + LARGE;
    assert_false(drain(e));
    assert_int_equal(e->why.status, TUTTI_E_NOMEM);
    says(e, "a message of 9437184 bytes");
    tti_mailbox_release(&e->m.mailbox);
    assert_int_equal(e->m.mailbox.held.bytes, 0);
    close_end(e);
    free(bytes);
}

/* A member that asks for what is in a window, again and again, and takes none of it. */
static void answers_that_nobody_takes_are_bounded(void **state)
{
    enum { BYTES = 64, GETS = 3 };
    static uint8_t  memory[BYTES];
    tti_window_peer member = { .member = true };
    tti_window      window = { .group = channel.group, .id = 1, .n_ranks = 1, .data = memory, .bytes = BYTES, .peers = &member };
    const tti_frame get = { .magic = TTI_FRAME_MAGIC, .version = TTI_FRAME_VERSION, .size = sizeof get, .plane = TTI_PLANE_WINDOW,
                            .dtype = TTI_VERB_GET, .group = channel.group, .tag = 1, .reserved = BYTES };
    uint8_t        *bytes = room_of_a_stream();
    wire            w = wire_of(bytes, GETS * sizeof get);
    end            *e = open_end(&w);
    bool            moved = false;
    int             i;

    (void)state;
    for (i = 0; i < GETS; i++)
        memcpy(bytes + (size_t)i * sizeof get, &get, sizeof get);
    e->m.windows = &window;
    e->m.n_ranks = 1;
    e->m.mailbox.held.most = (GETS - 1) * (sizeof(tti_request) + BYTES);
    assert_false(drain(e));
    assert_int_equal(e->why.status, TUTTI_E_NOMEM);
    says(e, "rank 0 would have this process hold too much: 64 bytes that it gets from a window, beside");
    assert_int_equal(e->m.mailbox.held.bytes, e->m.mailbox.held.most);
    assert_true(tti_lane_flush(&e->lane, &moved, &e->why)); /* now it has taken them */
    assert_int_equal(e->m.mailbox.held.bytes, 0);
    assert_int_equal(e->m.under_way, 0);
    e->m.windows = NULL;
    close_end(e);
    free(bytes);
}

static void a_message_is_taken_at_once(void **state)
{
    uint8_t   *bytes = room_of_a_stream();
    size_t     used = write_message(bytes, 1, sizes[1]);
    uint8_t    got[16];
    tti_parcel parcel = parcel_of(1, sizes[1], got);
    wire       w;
    end       *e;

    (void)state;
    used += write_message(bytes + used, 2, sizes[2]);
    w = wire_of(bytes, used);
    e = open_end(&w);
    e->m.lanes = &e->lane;
    e->m.n_ranks = 1;
    parcel.tag = 2;
    assert_int_equal(tti_recv_at_once(&e->m, channel, &parcel), TTI_NOT_THERE); /* another is next */
    parcel.tag = 1;
    assert_int_equal(tti_recv_at_once(&e->m, channel, &parcel), TTI_TAKEN);
    check_bytes(got, 1);
    parcel = parcel_of(2, 0, NULL);
    assert_int_equal(tti_recv_at_once(&e->m, channel, &parcel), TTI_TAKEN);
    assert_int_equal(w.calls, 1);
    assert_int_equal(tti_recv_at_once(&e->m, channel, &parcel), TTI_NOTHING_THERE);
    close_end(e);
    free(bytes);
}

/* At once as far as it has come, the rest by the lane. */
static void a_message_is_taken_in_part(void **state)
{
    enum { LARGE = 9 };
    uint8_t *bytes = room_of_a_stream();
    size_t   used = write_message(bytes, LARGE, sizes[LARGE]), cut;

    (void)state;
    for (cut = 1; cut < used; cut += cut < 200 ? 1 : 4999) {
        wire         w = wire_of(bytes, used);
        end         *e = open_end(&w);
        tti_request *request = new_request(e, LARGE, false);
        tti_at_once  took;

        e->m.lanes = &e->lane;
        e->m.n_ranks = 1;
        w.first = cut;
        w.stutters = true;
        took = tti_recv_at_once(&e->m, channel, &request->parcel);
        assert_int_equal(took, cut < sizeof(tti_frame) ? TTI_NOTHING_THERE : TTI_TAKEN_IN_PART);
        if (took == TTI_TAKEN_IN_PART)
            e->lane.into = request;
        else
            tti_mailbox_post(&e->m.mailbox, request);
        assert_true(drain(e));
        check_received(e, LARGE);
        close_end(e);
    }
    free(bytes);
}

/* Memory for a message that nobody wants follows what has come of it, not what its frame says. */
static void a_large_message_is_kept_as_it_comes(void **state)
{
    enum { LARGE = (9 << 20) + 5 };
    uint8_t        *bytes = malloc(sizeof(tti_frame) + LARGE), *got = malloc(LARGE);
    tti_request    *request = malloc(sizeof *request);
    tti_parcel      parcel = parcel_of(1, LARGE, NULL);
    const tti_frame frame = tti_frame_of(channel, &parcel);
    wire            w;
    end            *e;
    size_t          k;

    (void)state;
    assert_true(bytes != NULL && got != NULL && request != NULL);
    memcpy(bytes, &frame, sizeof frame);
    for (k = 0; k < LARGE; k++)
        bytes[sizeof frame + k] = byte_of(1, k);
    w = wire_of(bytes, sizeof frame + 100);
    e = open_end(&w);
    assert_true(drain(e));
    assert_int_equal(e->lane.kept->have, 100);
    assert_true(e->lane.kept->room < LARGE / 2);
    w.have = sizeof frame + LARGE;
    assert_true(drain(e));
    assert_null(e->lane.kept);
    parcel.data = got;
    tti_request_init(request, &e->m, channel, &parcel, false);
    e->m.under_way++;
    tti_mailbox_post(&e->m.mailbox, request);
    assert_true(tti_request_ended(request) && request->cause.status == TUTTI_OK);
    assert_memory_equal(got, bytes + sizeof frame, LARGE);
    tti_request_release(request);
    close_end(e);
    free(got);
    free(bytes);
}

/* ---- what is no message ------------------------------------------------------------------------------ */

static void refuse(const tti_frame *frame)
{
    uint8_t *bytes = room_of_a_stream();
    wire     w = wire_of(bytes, sizeof *frame + 600);
    end     *e;

    memset(bytes, 0xee, w.have);
    memcpy(bytes, frame, sizeof *frame);
    e = open_end(&w);
    e->m.lanes = &e->lane;
    e->m.n_ranks = 1;
    post(e, 1);
    assert_false(drain(e));
    assert_int_equal(e->why.status, TUTTI_E_PEER);
    assert_non_null(strstr(e->why.words, "nonsense"));
    assert_false(tti_request_ended(e->requests[1]));
    tti_request_remove(&e->m.mailbox.posted, e->requests[1]);
    tti_request_end(e->requests[1], &e->why);
    close_end(e);
    free(bytes);
}

static void frames_that_are_none_are_refused(void **state)
{
    const tti_parcel parcel = parcel_of(1, 4, NULL);
    const tti_frame  good = tti_frame_of(channel, &parcel);
    tti_frame        bad;

    (void)state;
    bad = good, bad.magic ^= 1, refuse(&bad);
    bad = good, bad.version++, refuse(&bad);
    bad = good, bad.size--, refuse(&bad);
    bad = good, bad.bytes = TTI_FRAME_BYTES_MAX + 1, refuse(&bad);
    bad = good, bad.bytes = UINT64_MAX, refuse(&bad);
    bad = good, bad.plane = TTI_PLANE_NOTICE, bad.bytes = TTI_NOTICE_MAX, refuse(&bad);
}

/* Of whom a notice tells that says it is of the one with that word. */
static int origin_of(uint64_t word)
{
    const tti_parcel parcel = parcel_of(1, 4, NULL);
    tti_frame        frame = tti_frame_of(channel, &parcel);
    uint8_t         *bytes = room_of_a_stream();
    wire             w = wire_of(bytes, sizeof frame + 4);
    int              origin;
    end             *e;

    frame.plane = TTI_PLANE_NOTICE;
    frame.tag = TUTTI_E_PEER;
    frame.word = word;
    memcpy(bytes, &frame, sizeof frame);
    memcpy(bytes + sizeof frame, "gone", 4);
    e = open_end(&w);
    e->m.lanes = &e->lane;
    e->m.n_ranks = PEER + 2;
    assert_true(drain(e));
    assert_true(e->m.mailbox.has_notice);
    assert_non_null(strstr(e->m.mailbox.notice.words, "gone"));
    origin = e->m.mailbox.notice.origin;
    close_end(e);
    free(bytes);
    return origin;
}

/* Ranks that are none are not taken for what is wrong: it is the one then that says so. */
static void a_notice_is_of_a_rank_that_there_is(void **state)
{
    (void)state;
    assert_int_equal(origin_of(1), 1);
    assert_int_equal(origin_of(PEER + 2), PEER + 2);
    assert_int_equal(origin_of(0), PEER + 1);
    assert_int_equal(origin_of(PEER + 3), PEER + 1);
    assert_int_equal(origin_of(INT32_MAX), PEER + 1);
    assert_int_equal(origin_of(UINT64_MAX), PEER + 1);
}

/* A frame that is none is not taken at once either, whatever else it says. */
static void a_bad_frame_is_not_taken_at_once(void **state)
{
    uint8_t   *bytes = room_of_a_stream();
    uint8_t    got[16];
    tti_parcel parcel = parcel_of(1, sizes[1], got);
    wire       w = wire_of(bytes, write_message(bytes, 1, sizes[1]));
    end       *e;

    (void)state;
    bytes[0] ^= 1;
    e = open_end(&w);
    e->m.lanes = &e->lane;
    e->m.n_ranks = 1;
    assert_int_equal(tti_recv_at_once(&e->m, channel, &parcel), TTI_NOT_THERE);
    close_end(e);
    free(bytes);
}

/* The kernel tells an error once. */
static void an_end_stays(void **state)
{
    static const int64_t ends[] = { 0, -ECONNRESET, -ETIMEDOUT };
    uint8_t             *bytes = room_of_a_stream();
    const size_t         used = write_message(bytes, 1, sizes[1]);
    uint8_t              out[100];
    size_t               i;

    (void)state;
    for (i = 0; i < 3; i++) {
        wire      w = wire_of(bytes, used);
        tti_link *link = NULL;

        w.last = ends[i];
        assert_int_equal(tti_tcp_link_open(&w.port, &(tti_handle){ HANDLE }, 1, PEER, NULL, &link), TUTTI_OK);
        assert_int_equal(link->ops->recv(link, out, sizeof(tti_frame)), sizeof(tti_frame));
        assert_true(link->ops->is_ahead(link));
        assert_int_equal(link->ops->recv(link, out, sizes[1]), sizes[1]);
        assert_false(link->ops->is_ahead(link));
        assert_int_equal(link->ops->recv(link, out, sizeof out), -EAGAIN); /* emptied by the last look */
        assert_int_equal(link->ops->recv(link, out, sizeof out), ends[i]);
        w.last = -EAGAIN;
        assert_int_equal(link->ops->recv(link, out, sizeof out), ends[i]);
        assert_null(link->ops->next(link));
        assert_int_equal(link->ops->recv(link, out, sizeof out), ends[i]);
        link->ops->close(link);
    }
    free(bytes);
}

/* ---- what came before the end ------------------------------------------------------------------------ */

static const size_t large[] = { 9, 16, 17 }; /* messages behind which a drain ends, if they are a collective's */
enum { N_LARGE = sizeof large / sizeof large[0] };

static size_t write_large(uint8_t *out)
{
    tti_frame frame;
    size_t    used = 0, k;

    for (k = 0; k < N_LARGE; k++) {
        const size_t bytes = write_message(out + used, large[k], sizes[large[k]]);

        memcpy(&frame, out + used, sizeof frame);
        frame.plane = TTI_PLANE_COLLECTIVE;
        memcpy(out + used, &frame, sizeof frame);
        used += bytes;
    }
    return used;
}

/* A messenger of one lane, where the large messages are awaited. */
static end *await_large(wire *w)
{
    end   *e = open_end(w);
    size_t k;

    e->m.lanes = &e->lane;
    e->m.n_ranks = 1;
    e->m.port = &w->port;
    for (k = 0; k < N_LARGE; k++) {
        tti_request *request = new_request(e, large[k], false);

        request->channel.plane = TTI_PLANE_COLLECTIVE;
        tti_mailbox_post(&e->m.mailbox, request);
    }
    return e;
}

static void check_large(end *e)
{
    size_t k;

    for (k = 0; k < N_LARGE; k++)
        check_received(e, large[k]);
    assert_int_equal(e->lane.way, TTI_WAY_LOST);
}

static int64_t refuse_to_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    (void)port;
    (void)handle;
    (void)parts;
    (void)n_parts;
    return -EPIPE;
}

/* The rest of the first message is read with the look that empties the socket; the others come after it. */
static void what_came_counts_although_nothing_can_be_sent(void **state)
{
    const size_t first = sizeof(tti_frame) + sizes[large[0]];
    tti_member   members[2] = { { .where = "host 'x', pid 1" } };
    tti_mesh     mesh = { .rank = 1, .n_ranks = 2, .members = members }; /* nobody watches over it */
    size_t       before;

    (void)state;
    for (before = 0; before <= first; before += first / 2) {
        tti_port_ops ops = wire_ops;
        uint8_t     *bytes = room_of_a_stream();
        const size_t used = write_large(bytes);
        wire         w = wire_of(bytes, before);
        end         *e = await_large(&w);
        bool         moved;

        e->m.mesh = &mesh;
        ops.send = refuse_to_send;
        w.port.ops = &ops;
        w.first = first - 1000;
        w.then = before > 0 ? ALL : 4000;
        assert_true(tti_lane_drain(&e->lane, &e->m.mailbox, true, &moved, &e->why));
        w.have = used;
        w.last = -ECONNRESET;
        tti_request_append(&e->lane.queue, new_request(e, 1, true));
        (void)tti_messenger_turn_one(&e->m, &e->lane);
        assert_int_equal(e->requests[1]->cause.status, TUTTI_E_PEER);
        check_large(e);
        close_end(e);
        free(bytes);
    }
}

static int64_t wire_now(tti_port *port)
{
    (void)port;
    return TTI_SECOND;
}

/* A member of this host that is found to have left. */
static void what_came_counts_although_its_sender_has_left(void **state)
{
    static const uint8_t token[TTI_TOKEN_BYTES] = { 1 };
    tti_port_ops         ops = wire_ops;
    tti_member           members[2] = { { .where = "host 'x', pid 1" } };
    tti_mesh             mesh = { .rank = 1, .n_ranks = 2, .members = members };
    uint8_t             *bytes = room_of_a_stream();
    wire                 w = wire_of(bytes, write_large(bytes));
    end                 *e = await_large(&w);

    (void)state;
    ops.now_ns = wire_now;
    w.port.ops = &ops;
    mesh.port = &w.port;
    e->m.mesh = &mesh;
    assert_int_equal(tti_heap_create(token, 2, &members[PEER].heap), TUTTI_OK);
    atomic_store(&tti_heap_head_of(members[PEER].heap)->closed, 1);
    tti_messenger_look(&e->m, tti_port_now(&w.port));
    check_large(e);
    assert_non_null(strstr(e->lane.gone.words, "has left"));
    close_end(e);
    tti_heap_free(members[PEER].heap);
    free(bytes);
}

/* ---- several sockets for one stream ------------------------------------------------------------------ */

enum { STRIPES = 3 };

/* A port of several sockets, one behind the other, each with a pipe of its own. */
typedef struct bundle {
    tti_port port; /* first */
    struct {
        uint8_t *bytes; /* [STREAM_MAX] */
        size_t   have, done;
    } pipe[STRIPES];
    size_t   room;   /* of a pipe */
    size_t   most;   /* of a call */
    unsigned dice;
} bundle;

static unsigned roll(bundle *b, unsigned below)
{
    b->dice = b->dice * 1103515245u + 12345u;
    return (b->dice >> 16) % below;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int64_t bundle_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    bundle   *b = (bundle *)port;
    const int k = handle - HANDLE;
    size_t    n;

    assert_in_range(k, 0, STRIPES - 1);
    n = least(least(bytes, b->most), b->pipe[k].have - b->pipe[k].done);
    if (n == 0 || roll(b, 4) == 0)
        return -EAGAIN;
    memcpy(out, b->pipe[k].bytes + b->pipe[k].done, n);
    b->pipe[k].done += n;
    return (int64_t)n;
}

static int64_t bundle_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    bundle   *b = (bundle *)port;
    const int k = handle - HANDLE;
    size_t    left, total = 0, n;
    int       i;

    assert_in_range(k, 0, STRIPES - 1);
    left = least(b->most, b->room - (b->pipe[k].have - b->pipe[k].done));
    if (left == 0 || roll(b, 4) == 0)
        return -EAGAIN;
    for (i = 0; i < n_parts && total < left; i++, total += n) {
        n = least(parts[i].size, left - total);
        memcpy(b->pipe[k].bytes + b->pipe[k].have, parts[i].data, n);
        b->pipe[k].have += n;
    }
    return (int64_t)total;
}

static const tti_port_ops bundle_ops = { .name = "bundle", .recv = bundle_recv, .send = bundle_send, .close = wire_close };

static tti_link *open_striped(bundle *b)
{
    tti_handle handles[STRIPES];
    tti_link  *link = NULL;
    int        k;

    for (k = 0; k < STRIPES; k++)
        handles[k] = HANDLE + k;
    assert_int_equal(tti_tcp_link_open(&b->port, handles, STRIPES, PEER, NULL, &link), TUTTI_OK);
    return link;
}

static end *open_striped_end(bundle *b)
{
    wire none = wire_of(NULL, 0);
    end *e = open_end(&none);

    e->lane.link->ops->close(e->lane.link);
    e->lane.link = open_striped(b);
    return e;
}

/* The socket that is looked at next is the one that the stream's next byte comes by. */
static void check_handles(const end *from, const end *to, const bundle *b)
{
    size_t got = 0, sent = 0;
    int    k;

    for (k = 0; k < STRIPES; k++) {
        got += b->pipe[k].done;
        sent += b->pipe[k].have;
    }
    assert_int_equal(to->lane.link->ops->handle(to->lane.link), HANDLE + (int)(got / TTI_TCP_STRIPE_BYTES % STRIPES));
    assert_int_equal(from->lane.link->ops->out_handle(from->lane.link),
                     HANDLE + (int)(sent / TTI_TCP_STRIPE_BYTES % STRIPES));
}

static void pass_striped(size_t room, size_t most, unsigned seed)
{
    bundle    b = { .port = { &bundle_ops }, .room = room, .most = most, .dice = seed };
    end      *from = open_striped_end(&b), *to = open_striped_end(&b);
    size_t    i, turns = 0;
    tti_cause why;
    bool      moved;
    int       k;

    for (k = 0; k < STRIPES; k++)
        b.pipe[k].bytes = room_of_a_stream();
    for (i = 0; i < N_SIZES; i++) {
        tti_request_append(&from->lane.queue, new_request(from, i, true));
        if (i % 3 != 0)
            post(to, i);
    }
    while ((from->lane.queue.first != NULL || to->m.under_way > 0) && turns++ < 2000000) {
        assert_true(tti_lane_flush(&from->lane, &moved, &why));
        assert_true(tti_lane_drain(&to->lane, &to->m.mailbox, true, &moved, &why));
        if (turns % 64 == 0)
            check_handles(from, to, &b);
        for (i = 0; from->lane.queue.first == NULL && to->m.under_way == 0 && i < N_SIZES; i += 3)
            if (to->requests[i] == NULL)
                post(to, i); /* messages that are kept, or will be */
    }
    for (i = 0; i < N_SIZES; i++)
        check_received(to, i);
    for (k = 0; k < STRIPES; k++) {
        assert_true(b.pipe[k].have > TTI_TCP_STRIPE_BYTES / 2);
        free(b.pipe[k].bytes);
    }
    close_end(from);
    close_end(to);
}

static void a_stream_is_dealt_to_several_sockets(void **state)
{
    static const size_t rooms[] = { 5000, 200000, STREAM_MAX };
    static const size_t mosts[] = { 977, 65536, 65537, STREAM_MAX };
    size_t              i, k;

    (void)state;
    for (i = 0; i < 3; i++)
        for (k = 0; k < 4; k++)
            pass_striped(rooms[i], mosts[k], (unsigned)(i * 10 + k + 1));
}

/* ---- sending ----------------------------------------------------------------------------------------- */

static void send_in_pieces(wire w, const uint8_t *expected, size_t n, size_t used)
{
    end   *e = open_end(&w);
    bool   moved;
    size_t i, turns;

    for (i = 0; i < n; i++)
        tti_request_append(&e->lane.queue, new_request(e, i, true));
    for (turns = 0; e->lane.queue.first != NULL && turns < 4 * used; turns++)
        assert_true(tti_lane_flush(&e->lane, &moved, &e->why));
    assert_int_equal(w.have, used);
    assert_memory_equal(w.bytes, expected, used);
    for (i = 0; i < n; i++)
        assert_true(tti_request_ended(e->requests[i]));
    close_end(e);
}

static void a_socket_may_take_pieces_of_any_size(void **state)
{
    static const size_t pieces[] = { 1, 7, 39, 40, 41, 1448, 65536, ALL };
    uint8_t            *expected = room_of_a_stream(), *bytes = room_of_a_stream();
    const size_t        used = write_stream(expected, N_SIZES), few = write_stream(bytes, 5);
    size_t              i;

    (void)state;
    for (i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        wire w = wire_of(bytes, 0);

        w.then = pieces[i];
        w.stutters = i % 2 == 0;
        send_in_pieces(w, expected, N_SIZES, used);
    }
    for (i = 1; i < few; i++) {
        wire w = wire_of(bytes, 0);

        w.first = i;
        w.stutters = true;
        send_in_pieces(w, expected, 5, few);
    }
    free(bytes);
    free(expected);
}

static void a_message_goes_in_one_call(void **state)
{
    uint8_t *bytes = room_of_a_stream();
    wire     w = wire_of(bytes, 0);
    end     *e = open_end(&w);
    bool     moved = false;

    (void)state;
    tti_request_append(&e->lane.queue, new_request(e, 3, true));
    assert_true(tti_lane_flush(&e->lane, &moved, &e->why));
    assert_true(moved && tti_request_ended(e->requests[3]));
    assert_int_equal(w.calls, 1);
    close_end(e);
    free(bytes);
}

/* ---- what the kernel knows of the sockets of a link ---- */

static tti_stream_facts second_facts; /* of the second of two; the first is well */

static int tell_facts(tti_port *port, tti_handle handle, tti_stream_facts *facts_out)
{
    (void)port;
    *facts_out = handle == HANDLE + 1 ? second_facts : (tti_stream_facts){ .heard_ms = 10 };
    return 0;
}

static void close_nothing(tti_port *port, tti_handle handle)
{
    (void)port, (void)handle;
}

/* A socket that was not heard of for 20 s is cut if its segments, or its probes, have had no answer, and what is said names the
 * interface. Silence alone is none: nobody may have had anything to say. */
static void a_socket_that_has_no_answers_is_cut(void **state)
{
    static const struct {
        uint32_t in_a_row, probes, heard_ms;
        bool     cut, quiet;
    } rows[] = {
        { 0, 0, 10, false, false },      { 3, 0, 19999, false, true }, { 3, 0, 20000, true, true },
        { 2, 0, 30000, false, true },    { 0, 3, 20000, true, true }, /* nothing of it could be sent at all */
        { 0, 2, 30000, false, true },    { 1, 2, 20000, true, true },  { 9, 9, 9999, false, false },
        { 0, 0, 1000000, false, true },
    };
    static const tti_port_ops ops = { .name = "facts", .stream_facts = tell_facts, .close = close_nothing };
    static const tti_rails    rails = { .n = 2, .rail = { { .name = "one" }, { .name = "two" } } };
    const tti_handle          handles[] = { HANDLE, HANDLE + 1 };
    tti_port                  port = { .ops = &ops };
    char                      text[TTI_WAY_TEXT_MAX];
    tti_link                 *link;
    size_t                    i;

    (void)state;
    assert_int_equal(tti_tcp_link_open(&port, handles, 2, PEER, &rails, &link), TUTTI_OK);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        second_facts = (tti_stream_facts){ .in_a_row = rows[i].in_a_row, .probes = rows[i].probes, .heard_ms = rows[i].heard_ms };
        assert_int_equal(link->ops->is_cut(link), rows[i].cut);
        assert_int_equal(link->ops->is_quiet(link), rows[i].quiet);
        link->ops->describe(link, text, sizeof text);
        assert_non_null(strstr(text, rows[i].quiet ? "by interface 'two'" : "by interface 'one'"));
    }
    link->ops->close(link);
}

/* What is on its way to a peer that is heard of, and takes it, is waited for; not a shut window, nor the answer to a few segments. */
static void what_is_on_its_way_is_known(void **state)
{
    static const struct {
        tti_stream_facts facts;
        bool             is_delivering;
    } rows[] = {
        { { .heard_ms = 10 }, false },
        { { .heard_ms = 10, .unheard = 4 }, false },  { { .heard_ms = 10, .unheard = 4, .unsent_bytes = 1 }, true },
        { { .heard_ms = 999, .unheard = 5 }, true },  { { .heard_ms = 1000, .unheard = 5 }, false },
        { { .heard_ms = 999, .in_a_row = 1 }, true }, { { .heard_ms = 1000, .in_a_row = 1, .unsent_bytes = 1 }, false },
        { { .heard_ms = 49, .unsent_bytes = 1 }, true }, { { .heard_ms = 50, .unsent_bytes = 1 }, false },
    };
    static const tti_port_ops ops = { .name = "facts", .stream_facts = tell_facts, .close = close_nothing };
    const tti_handle          handles[] = { HANDLE, HANDLE + 1 };
    tti_port                  port = { .ops = &ops };
    tti_link                 *link;
    size_t                    i;

    (void)state;
    assert_int_equal(tti_tcp_link_open(&port, handles, 2, PEER, NULL, &link), TUTTI_OK);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        second_facts = rows[i].facts;
        assert_int_equal(link->ops->is_delivering(link, 1000), rows[i].is_delivering);
    }
    link->ops->close(link);
}

/* ---- room of a link ---------------------------------------------------------------------------------- */

enum { STREAMS = 2, ROOM = 1 << 20, BOUND_LEAST = 32 << 10, BOUND_OF_ALL = 384 << 10 };

/* What a link has asked the kernel for, socket by socket; it takes every byte. */
typedef struct roomy {
    tti_port         port; /* first */
    tti_stream_facts facts;
    int              n_bound, n_made, n_resend; /* calls */
    int              room[STREAMS];             /* the latest */
    size_t           sent_in; /* bytes that went while all sockets had the room that was asked for last */
    int              last;
} roomy;

static void ask_for(roomy *r, tti_handle handle, int bytes)
{
    assert_in_range(handle, HANDLE, HANDLE + STREAMS - 1);
    r->room[handle - HANDLE] = bytes;
    r->last = bytes;
    r->sent_in = 0;
}

static void bound_room(tti_port *port, tti_handle handle, int bytes)
{
    ((roomy *)port)->n_bound++;
    ask_for((roomy *)port, handle, bytes);
}

static void make_room(tti_port *port, tti_handle handle, int bytes)
{
    ((roomy *)port)->n_made++;
    ask_for((roomy *)port, handle, bytes);
}

static void resend_after(tti_port *port, tti_handle handle, int ms)
{
    (void)handle;
    assert_in_range(ms, 1, 199); /* it is sooner than the kernel would */
    ((roomy *)port)->n_resend++;
}

static int tell_trips(tti_port *port, tti_handle handle, tti_stream_facts *facts_out)
{
    (void)handle;
    *facts_out = ((roomy *)port)->facts;
    return 0;
}

static int64_t take_all(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    roomy *r = (roomy *)port;
    size_t total = 0;
    int    i;

    (void)handle;
    for (i = 0; i < n_parts; i++)
        total += parts[i].size;
    for (i = 0; i < STREAMS; i++)
        assert_true(r->room[i] == r->last || r->room[i] == 0);
    r->sent_in += total;
    return (int64_t)total;
}

static const tti_port_ops roomy_ops = { .name = "roomy", .send = take_all, .close = close_nothing, .stream_facts = tell_trips,
                                        .bound_room = bound_room, .make_room = make_room, .resend_after = resend_after };

static roomy roomy_of(uint32_t round_trip_us, uint32_t least_trip_us)
{
    return (roomy){ .port = { &roomy_ops }, .facts = { .round_trip_us = round_trip_us, .least_trip_us = least_trip_us } };
}

static tti_link *open_roomy(roomy *r, int n_streams)
{
    const tti_handle handles[STREAMS] = { HANDLE, HANDLE + 1 };
    tti_link        *link = NULL;

    assert_int_equal(tti_tcp_link_open(&r->port, handles, n_streams, PEER, NULL, &link), TUTTI_OK);
    assert_int_equal(r->n_made, n_streams);
    assert_int_equal(r->last, ROOM);
    return link;
}

/* One of many senders has a part of what all may have on the way, divided again by its own sockets, but some room at least; and all
 * of it again when it sends alone. Nothing is asked for twice. */
static void one_of_many_has_less_room(void **state)
{
    static const struct {
        int n_senders, n_streams, each;
    } rows[] = { { 2, 1, BOUND_OF_ALL / 2 }, { 3, 1, BOUND_OF_ALL / 3 }, { 17, 1, BOUND_LEAST }, { 2, 2, BOUND_OF_ALL / 4 },
                 { 3, 2, BOUND_OF_ALL / 6 }, { 17, 2, BOUND_LEAST } };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        roomy     r = roomy_of(100, 0);
        tti_link *link = open_roomy(&r, rows[i].n_streams);
        int       k;

        link->ops->share(link, 1);
        assert_int_equal(r.n_bound + r.n_made, rows[i].n_streams); /* as it was opened */
        for (k = 0; k < 2; k++)
            link->ops->share(link, rows[i].n_senders);
        assert_int_equal(r.n_bound, rows[i].n_streams);
        for (k = 0; k < rows[i].n_streams; k++)
            assert_int_equal(r.room[k], rows[i].each);
        for (k = 0; k < 2; k++)
            link->ops->share(link, 1);
        assert_int_equal(r.n_made, 2 * rows[i].n_streams);
        for (k = 0; k < rows[i].n_streams; k++)
            assert_int_equal(r.room[k], ROOM);
        assert_int_equal(r.n_bound, rows[i].n_streams);
        link->ops->close(link);
    }
}

/* On a long way the kernel is left to itself: it needs more on the way than such a part, and would begin slowly after every pause. What
 * counts is the way, and not how long a process took to answer on it. */
static void a_long_way_is_left_to_the_kernel(void **state)
{
    static const struct {
        uint32_t round_trip_us, least_trip_us;
        bool     is_near;
    } rows[] = { { 100, 0, true },     { 499, 0, true }, { 500, 0, false }, { 10000, 0, false },
                 { 10000, 60, true },  { 40000, 499, true }, { 40000, 500, false }, { 40000, 9000, false } };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        roomy     r = roomy_of(rows[i].round_trip_us, rows[i].least_trip_us);
        tti_link *link = open_roomy(&r, STREAMS);

        assert_int_equal(r.n_resend, rows[i].is_near ? STREAMS : 0);
        link->ops->share(link, 17);
        assert_int_equal(r.n_bound, rows[i].is_near ? STREAMS : 0);
        link->ops->close(link);
    }
}

/* A message has the room that its own call has for it, whoever sends it: what a message before had is over. */
static void each_message_has_its_own_room(void **state)
{
    static uint8_t data[64];
    roomy          r = roomy_of(100, 0);
    end            e = { .lane = { .peer = PEER, .way = TTI_WAY_OPEN } };
    tti_parcel     parcel = parcel_of(0, sizeof data, data);
    int            i;

    (void)state;
    e.lane.link = open_roomy(&r, 1);
    e.m.lanes = &e.lane;
    e.m.n_ranks = 1;
    for (i = 0; i < 3; i++) {
        parcel.beside = 16;
        assert_int_equal(tti_send_at_once(&e.m, channel, &parcel), sizeof(tti_frame) + sizeof data);
        assert_int_equal(r.room[0], BOUND_LEAST);
        assert_int_equal(r.sent_in, sizeof(tti_frame) + sizeof data);
        parcel.beside = 0;
        assert_int_equal(tti_send_at_once(&e.m, channel, &parcel), sizeof(tti_frame) + sizeof data);
        assert_int_equal(r.room[0], ROOM);
        assert_int_equal(r.sent_in, sizeof(tti_frame) + sizeof data);
    }
    assert_int_equal(r.n_bound, 3);
    assert_int_equal(r.n_made, 4);
    e.lane.link->ops->close(e.lane.link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_socket_that_has_no_answers_is_cut),
        cmocka_unit_test(what_is_on_its_way_is_known),
        cmocka_unit_test(one_of_many_has_less_room),
        cmocka_unit_test(a_long_way_is_left_to_the_kernel),
        cmocka_unit_test(each_message_has_its_own_room),
        cmocka_unit_test(a_stream_may_be_cut_anywhere),
        cmocka_unit_test(a_stream_may_come_in_pieces_of_any_size),
        cmocka_unit_test(a_message_may_be_shorter_than_its_room),
        cmocka_unit_test(a_small_message_costs_one_look),
        cmocka_unit_test(many_small_messages_cost_few_looks),
        cmocka_unit_test(a_large_message_is_not_copied),
        cmocka_unit_test(a_large_message_is_kept_as_it_comes),
        cmocka_unit_test(messages_that_nobody_asks_for_are_bounded),
        cmocka_unit_test(a_message_that_grows_is_bounded),
        cmocka_unit_test(answers_that_nobody_takes_are_bounded),
        cmocka_unit_test(a_message_is_taken_at_once),
        cmocka_unit_test(a_message_is_taken_in_part),
        cmocka_unit_test(frames_that_are_none_are_refused),
        cmocka_unit_test(a_notice_is_of_a_rank_that_there_is),
        cmocka_unit_test(a_bad_frame_is_not_taken_at_once),
        cmocka_unit_test(an_end_stays),
        cmocka_unit_test(what_came_counts_although_nothing_can_be_sent),
        cmocka_unit_test(what_came_counts_although_its_sender_has_left),
        cmocka_unit_test(a_stream_is_dealt_to_several_sockets),
        cmocka_unit_test(a_socket_may_take_pieces_of_any_size),
        cmocka_unit_test(a_message_goes_in_one_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
