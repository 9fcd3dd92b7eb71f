/* SPDX-License-Identifier: BSD-3-Clause
 *
 * carried.c - what comes to a link that a transport carries: cards and words on its connection, parcels by the transport.
 *
 * How     The link is real; its carrier has no thread, and the input says what comes next: bytes of the connection, a parcel
 *         (with the link's token in front of what the input has, or without), that the link is read, written or closed, that
 *         the transport has sent something, takes nothing, or has lost its way. Memory of parcels is lent, or is not. What is read is
 *         read as bytes, or as a frame and what follows it. At the end the peer says that it has all parcels.
 * Holds   No more is kept than the window; what is read is no more than what came; what the transport lent comes back, once; and
 *         a link that has ended stays so. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include "transport/carried/carried.h"
#include "wire/bytes.h"

enum { PEER = 1, RANKS = 3, STREAM = 5, STEPS_MAX = 4000, WRITE_UNIT = 16, WRITE_MOST = UINT16_MAX * WRITE_UNIT + 1 };

struct tutti_transport {
    int unused;
};

struct tutti_transport_way {
    int unused;
};

typedef struct stage {
    tti_port    port; /* first */
    int64_t     now_ns;
    tt_input    heard; /* bytes of the connection that have come and were not read */
    bool        ended; /* it has, behind them */
    tti_carrier carrier;
    tti_link   *link;
    int         n_flying;
    bool        flies; /* what is sent is reported later */
    int         refuses; /* what sending comes to; 0: it is taken */
    int         n_loans;
    uint64_t    n_read, n_given; /* bytes */
    void       *flying[STEPS_MAX]; /* cookies that were not reported */
} stage;

static stage                      s;
static struct tutti_transport     the_transport;
static struct tutti_transport_way the_way;

/* ---- the port ---- */

static int64_t port_now(tti_port *port)
{
    (void)port;
    return s.now_ns;
}

static void port_random(tti_port *port, void *out, size_t bytes)
{
    (void)port;
    memset(out, 0x77, bytes);
}

static int64_t port_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    (void)port;
    TT_MUST(handle == STREAM && n_parts == 1);
    return s.ended ? -EPIPE : (int64_t)parts[0].size;
}

static int64_t port_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    tt_input part;

    (void)port;
    TT_MUST(handle == STREAM && bytes > 0);
    if (s.heard.left == 0)
        return s.ended ? 0 : -EAGAIN;
    part = tt_take_part(&s.heard, bytes);
    memcpy(out, part.at, part.left);
    return (int64_t)part.left;
}

static void port_close(tti_port *port, tti_handle handle)
{
    (void)port;
    (void)handle;
}

static int port_bell_create(tti_port *port, tti_handle *bell_out)
{
    (void)port;
    *bell_out = STREAM + 1;
    return 0;
}

static void port_bell(tti_port *port, tti_handle bell)
{
    (void)port;
    (void)bell;
}

static const tti_port_ops port_ops = {
    .name = "carried", .now_ns = port_now, .random = port_random, .send = port_send, .recv = port_recv, .close = port_close,
    .bell_create = port_bell_create, .bell_ring = port_bell, .bell_clear = port_bell,
};

/* ---- the transport ---- */

static const void *its_address(tutti_transport *transport, size_t *bytes_out)
{
    (void)transport;
    *bytes_out = 4;
    return "here";
}

static int its_connect(tutti_transport *transport, const void *address, size_t bytes, void *peer, tutti_transport_way **way_out)
{
    (void)transport;
    TT_MUST(bytes > 0 && bytes <= TUTTI_TRANSPORT_ADDRESS_MAX && peer == s.link);
    if (*(const uint8_t *)address == 'X')
        return -EHOSTUNREACH;
    *way_out = &the_way;
    return 0;
}

static int its_send(tutti_transport_way *way, const void *parcel, size_t bytes, void *cookie)
{
    TT_MUST(way == &the_way && parcel != NULL && bytes >= TTI_PARCEL_HEAD && bytes <= TTI_PARCEL_BYTES);
    if (s.refuses != 0)
        return s.refuses;
    if (!s.flies || s.n_flying == STEPS_MAX)
        return 1;
    s.flying[s.n_flying++] = cookie;
    return 0;
}

static bool its_progress(tutti_transport *transport)
{
    (void)transport;
    return false;
}

static void its_give_back(tutti_transport *transport, void *loan)
{
    (void)transport;
    TT_MUST(s.n_loans > 0);
    s.n_loans--;
    free(loan);
}

static void its_disconnect(tutti_transport_way *way)
{
    TT_MUST(way == &the_way);
}

static const tutti_transport_ops transport_ops = {
    .api = TUTTI_TRANSPORT_API, .size = sizeof(tutti_transport_ops), .name = "loop", .address = its_address,
    .connect = its_connect, .send = its_send, .progress = its_progress, .give_back = its_give_back,
    .disconnect = its_disconnect,
};

/* ---- steps ---- */

/* With the notes of what has come. */
static uint64_t bytes_kept(const tti_carried *link)
{
    const tti_arrival *a;
    uint64_t           bytes = 0;

    for (a = link->first; a != NULL; a = a->next)
        bytes += sizeof *a + a->bytes;
    return bytes - link->at;
}

/* With the link's token, or as it stands in the input. */
static void come(tt_input part, bool has_token, bool lends)
{
    const tutti_transport_hooks hooks = tti_carrier_hooks(&s.carrier);
    const size_t                token = has_token ? TTI_CARRIED_TOKEN : 0, size = token + part.left;
    uint8_t                    *parcel = malloc(size + 1);

    TT_MUST(parcel != NULL);
    memset(parcel, 0x77, token);
    if (part.left > 0)
        memcpy(parcel + token, part.at, part.left);
    s.n_given += part.left;
    s.n_loans++;
    if (hooks.arrived(hooks.context, parcel, size, lends ? parcel : NULL)) {
        TT_MUST(lends && part.left >= TTI_CARRIED_LENT_LEAST);
        return;
    }
    s.n_loans--;
    free(parcel);
}

static void read_link(size_t most)
{
    uint8_t *out = malloc(most + 1);
    int64_t  n, again;

    TT_MUST(out != NULL);
    n = s.link->ops->recv(s.link, out, most + 1);
    TT_MUST(n <= (int64_t)most + 1);
    if (n > 0)
        s.n_read += (uint64_t)n;
    else if (n != -EAGAIN) {
        again = s.link->ops->recv(s.link, out, 1);
        TT_MUST(again == n);
    }
    free(out);
}

/* A frame, where one has come as a whole, and bytes behind it. */
static void read_frame(size_t most)
{
    const tti_frame *frame = s.link->ops->next(s.link);
    uint8_t         *out;
    int64_t          n;

    if (frame == NULL)
        return;
    out = malloc(most + 1);
    TT_MUST(out != NULL);
    n = s.link->ops->body(s.link, out, most);
    TT_MUST(n <= (int64_t)most);
    s.n_read += sizeof *frame + (n > 0 ? (uint64_t)n : 0);
    free(out);
}

/* Somebody sleeps on it, or asks what is the matter with it. */
static void look_at_link(bool sleeps)
{
    char text[256];

    if (sleeps) {
        (void)s.link->ops->handle(s.link);
        return;
    }
    TT_MUST(s.link->ops->out_handle(s.link) == TTI_NO_HANDLE);
    (void)s.link->ops->is_ahead(s.link);
    s.link->ops->describe(s.link, text, sizeof text);
    TT_MUST(strlen(text) > 0);
}

/* They end where the array does, so that a byte too far is seen. */
static void write_link(size_t bytes)
{
    static const uint8_t zeros[WRITE_MOST];
    const tti_part       part = { zeros + sizeof zeros - (bytes + 1), bytes + 1 };

    TT_MUST(bytes < sizeof zeros);
    TT_MUST(s.link->ops->send(s.link, &part, 1) <= (int64_t)bytes + 1);
}

static void report_sent(void)
{
    const tutti_transport_hooks hooks = tti_carrier_hooks(&s.carrier);

    while (s.n_flying > 0)
        hooks.sent(hooks.context, s.flying[--s.n_flying]);
}

static void step(tt_input *in)
{
    const tutti_transport_hooks hooks = tti_carrier_hooks(&s.carrier);
    const uint8_t               what = (uint8_t)tt_take(in, 1);

    switch (what % 10) {
    case 0:
        s.heard = tt_take_sized(in);
        TT_MUST((tti_pact_wants((tti_carried *)s.link) & TTI_READ) != 0 || ((tti_carried *)s.link)->is_cut);
        tti_pact_turn((tti_carried *)s.link);
        s.heard.left = 0;
        break;
    case 1:
    case 2: come(tt_take_sized(in), true, what % 10 == 1); break;
    case 3: come(tt_take_sized(in), false, true); break;
    case 4: (what < 128 ? read_link : read_frame)((size_t)tt_take(in, 2)); break;
    case 5: write_link((size_t)tt_take(in, 2) * WRITE_UNIT); break;
    case 6: look_at_link(what < 128); break;
    case 7: report_sent(); break;
    case 8:
        s.flies = what < 128 ? !s.flies : s.flies;
        s.refuses = what < 128 ? 0 : what < 192 ? -EAGAIN : -EIO;
        break;
    default:
        if (what < 128)
            hooks.broken(hooks.context, s.link, what, "it says so");
        else
            s.ended = true;
        tti_pact_turn((tti_carried *)s.link);
        s.now_ns += TTI_CARRIED_GRACE_MS * TTI_MS;
        break;
    }
    TT_MUST(bytes_kept((tti_carried *)s.link) <= TTI_CARRIED_WINDOW);
    TT_MUST(s.n_read <= s.n_given);
}

static void open_stage(void)
{
    static tti_carried *by_rank[RANKS];
    static uint8_t      tokens[RANKS][TTI_CARRIED_TOKEN];

    memset(&s, 0, offsetof(stage, flying));
    memset(by_rank, 0, sizeof by_rank);
    memset(tokens, 0, sizeof tokens);
    s.port.ops = &port_ops;
    s.carrier = (tti_carrier){ .port = &s.port, .ops = &transport_ops, .link_ops = tti_carried_ops, .rank = 0, .n_ranks = RANKS,
                               .transport = &the_transport, .by_rank = by_rank, .tokens = tokens, .warn_ns = INT64_MAX };
    s.carrier.link_ops.name = transport_ops.name;
    tti_mutex_init(&s.carrier.lock);
    TT_MUST(tti_carrier_link(&s.carrier, PEER, STREAM, &s.link) == TUTTI_OK);
}

/* The peer's last word (pact.c): all parcels are there. */
static void tell_taken(tti_carried *link)
{
    uint8_t word[TTI_PACT_WORD] = { 2 };

    tti_put_u64(word + 8, link->n_sent);
    s.heard = tt_input_of(word, sizeof word);
    tti_pact_turn(link);
    TT_MUST(!link->is_taken || link->state == TTI_CARRIED_PARTS);
}

static void close_stage(void)
{
    tti_carried *link = (tti_carried *)s.link;

    s.link->ops->close(s.link);
    TT_MUST(s.n_loans == 0);
    tell_taken(link);
    tti_carrier_free_link(&s.carrier, link);
    report_sent();
    TT_MUST(s.carrier.n_flying == 0);
    tti_mutex_release(&s.carrier.lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_input in = tt_input_of(data, size);
    int      n;

    open_stage();
    for (n = 0; n < STEPS_MAX && in.left > 0; n++)
        step(&in);
    close_stage();
    return 0;
}
