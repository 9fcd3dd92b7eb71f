/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer_frames.c - what a member that has proved itself says on its connection: messages, notices, calls, one-sided access.
 *
 * How     The lane, its link over a socket, the mailbox and the windows are the real ones; the socket plays the input, in pieces
 *         of which its front tells the size; with some sizes more zeros follow than a message is given memory for at once, or
 *         little may be held for others. Receives are posted before and between, some for what may come; two wait for signals. At
 *         the end the window is closed, or its group is finished.
 * Holds   Nothing is written but into receives and the window; every receive ends once, or stays posted; the counts of what is
 *         under way and of what is held are right at the end, and no more is held than may be. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include "transport/meet.h"
#include "transport/tcp/tcp_link.h"
#include "transport/window_core.h"

enum { PEER = 1, RANKS = 2, HANDLE = 7, RECEIVES = 8, ROOM = 64, WINDOW_BYTES = 64, GUARD = 0x5a, SIGNALS = 2 };
enum { GUARDS = 16, ZEROS = 9 << 20, ZEROS_BOUNDED = 6 << 20, LITTLE = 4000 };

typedef struct wire {
    tti_port port; /* first */
    tt_input in;
    size_t   piece;
    bool     pause, clogged;
    size_t   zeros; /* that follow the input */
} wire;

static int64_t wire_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    wire    *w = (wire *)port;
    tt_input part;

    TT_MUST(handle == HANDLE && bytes > 0);
    w->pause = !w->pause && w->piece < 16;
    if (w->in.left == 0 && w->zeros > 0) {
        bytes = bytes < w->zeros ? bytes : w->zeros;
        memset(out, 0, bytes);
        w->zeros -= bytes;
        return (int64_t)bytes;
    }
    if (w->pause || (w->in.left == 0 && w->piece % 8 != 5 && w->piece % 8 != 3))
        return -EAGAIN;
    if (w->in.left == 0)
        return w->piece % 8 == 3 ? 0 : w->piece % 16 == 5 ? -ECONNRESET : w->piece % 32 == 13 ? -EIO : -ETIMEDOUT;
    part = tt_take_part(&w->in, bytes < w->piece ? bytes : w->piece);
    memcpy(out, part.at, part.left);
    return (int64_t)part.left;
}

static int64_t wire_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    wire   *w = (wire *)port;
    int64_t sent = 0;
    int     i;

    (void)handle;
    w->clogged = !w->clogged && w->piece % 4 == 1;
    if (w->clogged)
        return w->piece % 64 == 33 ? -EPIPE : -EAGAIN;
    for (i = 0; i < n_parts; i++)
        sent += (int64_t)parts[i].size;
    return w->piece % 4 == 2 && sent > 7 ? 7 : sent;
}

static void wire_close(tti_port *port, tti_handle handle)
{
    (void)port;
    (void)handle;
}

static int64_t wire_now(tti_port *port)
{
    (void)port;
    return TTI_SECOND;
}

/* With some sizes of pieces nothing was heard for long. */
static int wire_facts(tti_port *port, tti_handle handle, tti_stream_facts *facts_out)
{
    const wire *w = (const wire *)port;

    TT_MUST(handle == HANDLE);
    *facts_out = (tti_stream_facts){ .in_a_row = w->piece % 2 == 1 ? 4 : 0, .heard_ms = 30000, .congestion = "reno" };
    return w->piece % 64 == 7 ? -EINVAL : 0;
}

static const tti_port_ops wire_ops = { .name = "wire", .now_ns = wire_now, .recv = wire_recv, .send = wire_send,
                                       .close = wire_close, .stream_facts = wire_facts };

typedef struct stage {
    wire             w;
    tti_messenger    m;
    tti_lane         lanes[RANKS];
    tti_mesh         mesh;
    tti_member       members[RANKS];
    tti_window      *window;
    tti_request     *signals[SIGNALS];
    uint8_t          memory[WINDOW_BYTES + 2 * GUARDS]; /* of the window, between guards */
    tti_request     *receives[RECEIVES];
    uint8_t         *data[RECEIVES];
    int              n_receives;
    tti_cause        why;
} stage;

/* A call of the same number is another one if its word's lower bits differ. */
static bool differs(void *ctx, int rank, const tti_call_note *theirs, bool in_place, tti_call_note *ours, char *words, size_t bytes)
{
    (void)ctx;
    *ours = (tti_call_note){ .seq = theirs->seq, .word = theirs->word ^ 1 };
    snprintf(words, bytes, "rank %d is elsewhere", rank);
    return (theirs->word & 3) == 3 || (in_place && (theirs->word & 3) == 2);
}

/* This rank's own, in which windows have their counters. */
static tti_heap *own_heap(void)
{
    static const uint8_t token[TTI_TOKEN_BYTES] = { 1 };
    static tti_heap     *heap;

    if (heap == NULL)
        TT_MUST(tti_heap_create(token, tti_directory_words(RANKS), &heap) == TUTTI_OK);
    return heap;
}

static void *room_for(size_t n, size_t bytes)
{
    void *room = calloc(n, bytes);

    TT_MUST(room != NULL);
    return room;
}

static void open_window(stage *s)
{
    const size_t bytes = sizeof(tti_window_control) + RANKS * sizeof(tti_signals);
    tti_window  *w = room_for(1, sizeof *w);

    memset(s->memory, GUARD, sizeof s->memory);
    *w = (tti_window){ .m = &s->m, .group = 2, .id = 1, .n_ranks = RANKS, .data = s->memory + GUARDS, .bytes = WINDOW_BYTES,
                       .taken = room_for(RANKS, sizeof *w->taken), .ranks = room_for(RANKS, sizeof *w->ranks),
                       .peers = room_for(RANKS, sizeof *w->peers), .serving = true };
    tti_mutex_init(&w->order);
    TT_MUST(tti_heap_alloc(own_heap(), bytes, &w->control_at) == TUTTI_OK);
    w->control = tti_heap_at(own_heap(), w->control_at, bytes);
    TT_MUST(w->control != NULL);
    w->peers[PEER].member = true;
    s->window = w;
    s->m.windows = w;
    s->m.n_serving = 1;
}

static void await_signals(stage *s)
{
    const tti_channel channel = { .group = 2, .plane = (tti_plane)TTI_PLANE_WINDOW };
    const tti_parcel  parcel = { .peer = PEER };
    int               i;

    for (i = 0; i < SIGNALS; i++) {
        s->signals[i] = room_for(1, sizeof *s->signals[i]);
        tti_request_init(s->signals[i], &s->m, channel, &parcel, false);
        s->signals[i]->window = s->window;
        s->m.under_way++;
        tti_request_append(&s->window->waits, s->signals[i]);
    }
}

/* What the group or the window ends with: nobody waits for its signals any more, and the peer writes nowhere. */
static void close_window(stage *s)
{
    static const tti_cause over = { .status = TUTTI_E_ABORTED, .words = "over" };
    const bool             finished = s->w.piece % 2 == 0;
    tti_window            *w = s->window;
    int                    i;

    tti_windows_lose(&s->m, PEER, &over);
    for (i = 0; i < SIGNALS; i++) {
        TT_MUST(tti_request_ended(s->signals[i]));
        tti_request_release(s->signals[i]);
    }
    if (!finished) {
        tti_window_close(w, true);
        TT_MUST(s->m.windows == NULL && s->m.n_serving == 0);
        return;
    }
    tti_windows_finish(&s->m, 2, &over);
    tti_windows_finish(&s->m, 2, &over);
    TT_MUST(w->closed && s->lanes[PEER].place == NULL);
    tti_heap_release(own_heap(), w->control_at);
    tti_mutex_release(&w->order);
    free(w->taken);
    free(w->ranks);
    free(w->peers);
    free(w);
}

static void add_group(stage *s, uint32_t number, bool finished)
{
    tti_known_group *known = tti_know_group(&s->m.mailbox, number);

    TT_MUST(known != NULL);
    known->compared = number == 3;
    known->comparer.differs = differs;
    if (finished)
        tti_cause_set(&known->finished, TUTTI_E_ABORTED, "it was ended");
}

static void open_stage(stage *s, tt_input in)
{
    const size_t piece = 1 + (size_t)tt_take(&in, 1);

    memset(s, 0, sizeof *s);
    s->w = (wire){ .port = { &wire_ops }, .piece = piece, .in = in };
    s->m.port = &s->w.port;
    s->m.mailbox.m = &s->m;
    s->m.mailbox.last_entered = 3;
    s->m.lanes = s->lanes;
    s->m.n_ranks = RANKS;
    s->mesh = (tti_mesh){ .port = &s->w.port, .n_ranks = RANKS, .members = s->members };
    s->members[0].heap = own_heap();
    s->m.mesh = &s->mesh;
    tti_mutex_init(&s->m.lock);
    s->w.zeros = piece == 251 ? ZEROS : piece == 252 ? ZEROS_BOUNDED + 1 : 0;
    s->m.mailbox.held.most = piece == 252 ? ZEROS_BOUNDED : piece % 32 == 12 ? LITTLE : 0;
    s->lanes[PEER] = (tti_lane){ .peer = PEER, .where = "host 'x', pid 1", .way = TTI_WAY_OPEN };
    TT_MUST(tti_tcp_link_open(&s->w.port, &(tti_handle){ HANDLE }, 1, PEER, NULL, &s->lanes[PEER].link) == TUTTI_OK);
    open_window(s);
    await_signals(s);
    add_group(s, 1, false);
    add_group(s, 2, false);
    add_group(s, 3, false);
    add_group(s, 0, true);
    TT_MUST(tti_mailbox_note_left(&s->m.mailbox, TTI_GROUP_ANY_ORDER + 5));
    TT_MUST(tti_mailbox_note_left(&s->m.mailbox, TTI_GROUP_ANY_ORDER + 1));
}

static void post(stage *s, uint32_t group, tti_plane plane, int tag, size_t bytes)
{
    const tti_channel channel = { .group = group, .plane = plane };
    tti_request      *request = malloc(sizeof *request);
    uint8_t          *data = malloc(ROOM);
    tti_parcel parcel = { .peer = tag == 2 ? -1 : PEER, .tag = tag, .dtype = TUTTI_U8, .data = data, .bytes = bytes };

    TT_MUST(request != NULL && data != NULL && bytes <= ROOM);
    memset(data, GUARD, ROOM);
    parcel.word = plane == TTI_PLANE_COLLECTIVE ? 5 : 0;
    tti_request_init(request, &s->m, channel, &parcel, false);
    s->m.under_way++;
    s->receives[s->n_receives] = request;
    s->data[s->n_receives++] = data;
    tti_mailbox_post(&s->m.mailbox, request);
}

/* A receive more, each time there is nothing to read. */
static void post_next(stage *s)
{
    static const struct {
        uint32_t  group;
        tti_plane plane;
        int       tag;
        size_t    bytes;
    } kinds[RECEIVES] = { { 1, TTI_PLANE_P2P, 0, 4 }, { 1, TTI_PLANE_P2P, 1, 40 }, { 3, TTI_PLANE_COLLECTIVE, 0, 8 },
                          { 1, TTI_PLANE_P2P, 2, 0 }, { 2, TTI_PLANE_REPLY, 1, 16 }, { 1, TTI_PLANE_P2P, 0, 4 },
                          { 3, TTI_PLANE_COLLECTIVE, 1, 8 }, { 1, TTI_PLANE_P2P, 0, 60 } };

    if (s->n_receives < RECEIVES)
        post(s, kinds[s->n_receives].group, kinds[s->n_receives].plane, kinds[s->n_receives].tag,
             kinds[s->n_receives].bytes);
}

static bool is_untouched(const uint8_t *at, size_t bytes)
{
    static uint8_t guards[ROOM];

    if (guards[0] != GUARD)
        memset(guards, GUARD, sizeof guards);
    return memcmp(at, guards, bytes) == 0;
}

static void check(const stage *s)
{
    int i;

    TT_MUST(is_untouched(s->memory, GUARDS) && is_untouched(s->memory + sizeof s->memory - GUARDS, GUARDS));
    for (i = 0; i < s->n_receives; i++)
        TT_MUST(is_untouched(s->data[i] + s->receives[i]->parcel.bytes, ROOM - s->receives[i]->parcel.bytes));
    TT_MUST(s->m.mailbox.held.most == 0 || s->m.mailbox.held.bytes <= s->m.mailbox.held.most);
}

/* What is said of the connection when something fails. */
static void describe(stage *s)
{
    char      text[TTI_WAY_TEXT_MAX];
    tti_cause why;

    TT_MUST(strlen(tti_lane_describe(&s->lanes[PEER], text)) < sizeof text);
    if (tti_lane_is_cut(&s->lanes[PEER], &why))
        TT_MUST(why.status == TUTTI_E_PEER && strlen(why.words) > 0);
}

static void end_posted(stage *s)
{
    static const tti_cause over = { .status = TUTTI_E_ABORTED, .words = "over" };
    tti_lane              *lane = &s->lanes[PEER];
    tti_request           *request;

    if (lane->into != NULL)
        tti_request_end(lane->into, &over);
    if (lane->kept != NULL && lane->kept->wanted != NULL)
        tti_request_end(lane->kept->wanted, &over);
    while ((request = s->m.mailbox.posted.first) != NULL) {
        tti_request_remove(&s->m.mailbox.posted, request);
        tti_request_end(request, &over);
    }
    while ((request = lane->queue.first) != NULL) { /* answers of the window */
        tti_request_remove(&lane->queue, request);
        tti_request_end(request, &over);
    }
}

static void close_stage(stage *s)
{
    int i;

    describe(s);
    end_posted(s);
    close_window(s);
    tti_mailbox_drop_group(&s->m.mailbox, 1);
    TT_MUST(s->m.under_way == 0);
    for (i = 0; i < s->n_receives; i++) {
        TT_MUST(tti_request_ended(s->receives[i]));
        tti_request_release(s->receives[i]);
        free(s->data[i]);
    }
    tti_mailbox_release(&s->m.mailbox);
    TT_MUST(s->m.mailbox.held.bytes == 0);
    free(s->m.heard);
    tti_mutex_release(&s->m.lock);
    s->lanes[PEER].link->ops->close(s->lanes[PEER].link);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static stage s;
    bool         moved = true, sound = true;
    int          quiet = 0;

    open_stage(&s, tt_input_of(data, size));
    post_next(&s);
    while (sound && quiet < 2) {
        moved = false;
        sound = tti_lane_drain(&s.lanes[PEER], &s.m.mailbox, true, &moved, &s.why);
        if (sound)
            sound = tti_lane_flush(&s.lanes[PEER], &moved, &s.why);
        check(&s);
        (void)tti_windows_look(&s.m);
        s.m.mailbox.has_notice = false; /* the messenger acts on it */
        quiet = moved ? 0 : quiet + 1;
        if (!moved || s.w.piece % 2 == 1)
            post_next(&s);
    }
    TT_MUST(sound || (s.why.status != TUTTI_OK && strlen(s.why.words) > 0));
    close_stage(&s);
    return 0;
}
