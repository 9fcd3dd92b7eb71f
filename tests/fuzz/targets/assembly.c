/* SPDX-License-Identifier: BSD-3-Clause
 *
 * assembly.c - who comes to a member, and what they say, when the members of a group agree without a store.
 *
 * How     The assembly is the real one, on a port that plays three other members and strangers. The input is steps: somebody comes
 *         by one of two doors, or a crowd of strangers, a connection says something or ends, a member can be reached or cannot, this
 *         one has something to say, time passes. Honest ends make the real hello; what they say behind it is the input's.
 *         The port has no filters: a connection that is to be encrypted ends there (fuzz_hello and tls_test have what follows). What
 *         proves the secret is a sum here, as both ends are ours, and HMACs took a fifth of the time; fuzz_hello has the real ones.
 * Holds   What is heard is as long as a message, and of another member; each is gone once, is there before it is away; there are no
 *         more streams than were let in; all of them are closed at the end. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include "regroup/assembly.h"
#include "transport/meet.h"
#include "wire/hello.h"
#include "wire/mac.h"

enum { MEMBERS = 4, RANK = 1, MESSAGE = 24, TOPIC = 7, STEPS = 64, LAST_TURNS = 40, QUIET_TURNS = 10 };
enum { LOCAL_DOOR = 1, TCP_DOOR = 2, BELL = 3, FIRST = 10, CONNS = 160, ROOM = 256 };
enum { STRANGERS_MAX = 64, CROWD = 24, OF_A_CROWD = 7, CROWDS_MAX = 4 }; /* the first as SECURITY.md says */

typedef enum manner { HONEST, REFUSES, AWAY, REFUSES_LATER, STRANGE } manner;

/* The far end of a stream. */
typedef struct conn {
    bool      used, honest, local, over, clogged;
    int       waits_at; /* this door; 0: it was let in, or is a way out */
    int       error, fails; /* of recv, of connecting */
    tti_hello hello; /* of an honest one */
    uint8_t   in[ROOM];
    size_t    n_in;
} conn;

typedef struct stage {
    tti_port      port; /* first */
    int64_t       now_ns;
    uint64_t      dice;
    int           no_files; /* so many accepts fail */
    int           n_crowds; /* that have come */
    bool          rung, quiet, let_in; /* nothing was ready at the last look; somebody came in since the last check */
    tti_mesh      mesh;
    tti_member    members[MEMBERS];
    manner        manners[MEMBERS];
    bool          there[MEMBERS], gone[MEMBERS];
    unsigned      wanted;
    int           n_waiting[TCP_DOOR + 1]; /* at each door */
    tti_assembly *as;
    int           n_conns; /* those behind have never been used; this one's input */
    conn          conns[CONNS];
} stage;

static stage s;

bool __wrap_tti_mac(const void *key, size_t key_bytes, const void *data, size_t bytes, uint8_t out[TTI_MAC_BYTES]);

TT_UNTRACED static conn *conn_of(tti_handle handle)
{
    TT_MUST(handle >= FIRST && handle < FIRST + CONNS && s.conns[handle - FIRST].used);
    return &s.conns[handle - FIRST];
}

TT_UNTRACED static conn *new_conn(bool client, bool honest, bool local, uint32_t rank)
{
    const tti_hello_config config = { .client = client, .local = local, .purpose = TTI_PURPOSE_ASSEMBLY, .generation = TOPIC, .rank = rank,
                                      .secret = &s.mesh.door.secret };
    int                    i;

    for (i = 0; i < s.n_conns && s.conns[i].used; i++)
        continue;
    if (i == CONNS)
        return NULL;
    s.n_conns = i < s.n_conns ? s.n_conns : i + 1;
    memset(&s.conns[i], 0, offsetof(conn, hello));
    s.conns[i].n_in = 0;
    s.conns[i].used = true;
    s.conns[i].honest = honest;
    s.conns[i].local = local;
    if (honest)
        tti_hello_begin(&s.conns[i].hello, &s.port, &config);
    return &s.conns[i];
}

static void forget_conn(conn *c)
{
    if (c->honest)
        tti_hello_release(&c->hello);
    c->used = false;
}

static void say(conn *c, const void *data, size_t bytes)
{
    const size_t room = sizeof c->in - c->n_in;

    bytes = bytes < room ? bytes : room;
    if (bytes > 0)
        memcpy(c->in + c->n_in, data, bytes);
    c->n_in += bytes;
}

/* What its hello has to say now. */
static void go_on(conn *c)
{
    size_t      bytes;
    const void *data = tti_hello_output(&c->hello, &bytes);

    if (!c->honest || data == NULL)
        return;
    say(c, data, bytes);
    tti_hello_sent(&c->hello, bytes);
}

/* ---- the port ---- */

static int64_t port_now(tti_port *port)
{
    (void)port;
    return s.now_ns;
}

TT_UNTRACED static void port_random(tti_port *port, void *out, size_t bytes)
{
    uint8_t *at = out;
    size_t   n;

    (void)port;
    for (; bytes > 0; bytes -= n, at += n) {
        n = bytes < sizeof s.dice ? bytes : sizeof s.dice;
        s.dice = s.dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(at, (const uint8_t *)&s.dice + sizeof s.dice - n, n); /* the upper ones: in the lower ones it soon repeats itself */
    }
}

static void port_sleep(tti_port *port, int64_t until_ns)
{
    (void)port;
    s.now_ns = until_ns > s.now_ns ? until_ns : s.now_ns;
}

static int port_connect(tti_port *port, const tti_addr *to, tti_handle *handle_out)
{
    int   rank = 0;
    conn *c;

    (void)port;
    while (to != &s.members[rank].assembly)
        rank++;
    TT_MUST(rank < MEMBERS && rank != RANK);
    if (s.manners[rank] == REFUSES || s.manners[rank] == AWAY)
        return s.manners[rank] == REFUSES ? -ECONNREFUSED : -EHOSTUNREACH;
    c = new_conn(false, s.manners[rank] == HONEST, to->family == TTI_ADDR_LOCAL, (uint32_t)rank);
    if (c == NULL)
        return -EMFILE;
    c->fails = s.manners[rank] == REFUSES_LATER ? -ECONNREFUSED : 0;
    *handle_out = FIRST + (int)(c - s.conns);
    return 0;
}

static int port_connect_result(tti_port *port, tti_handle handle)
{
    (void)port;
    return conn_of(handle)->fails;
}

enum { SOURCES = 3 }; /* of those who come */

TT_UNTRACED static int port_accept(tti_port *port, tti_handle listener, tti_addr *from_out)
{
    int i;

    (void)port;
    TT_MUST(listener == LOCAL_DOOR || listener == TCP_DOOR);
    if (s.no_files > 0) {
        s.no_files--;
        return -EMFILE;
    }
    for (i = 0; s.n_waiting[listener] > 0 && i < s.n_conns; i++)
        if (s.conns[i].used && s.conns[i].waits_at == listener) {
            s.conns[i].waits_at = 0;
            s.n_waiting[listener]--;
            s.let_in = true;
            if (from_out != NULL)
                *from_out = (tti_addr){ .family = listener == LOCAL_DOOR ? TTI_ADDR_LOCAL : TTI_ADDR_IP4,
                                        .ip = { 10, 0, 0, (uint8_t)(i % SOURCES) } };
            return FIRST + i;
        }
    return -EAGAIN;
}

static int port_local_addr(tti_port *port, tti_handle handle, tti_addr *addr_out)
{
    (void)port;
    *addr_out = (tti_addr){ .family = conn_of(handle)->local ? TTI_ADDR_LOCAL : TTI_ADDR_IP4, .ip = { 10, 0, 0, 7 } };
    return 0;
}

static int64_t port_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    conn  *c = conn_of(handle);
    size_t bytes = parts[0].size, wants = c->honest ? tti_hello_wants(&c->hello) : 0;

    (void)port;
    TT_MUST(n_parts == 1 && bytes > 0);
    if (c->over)
        return -EPIPE;
    if (bytes == 2 * MESSAGE) /* two that have waited are too many for this stream */
        return -ECONNRESET;
    c->clogged = !c->clogged && bytes % 5 == 4; /* one message, and the server's hello, go at the second try */
    if (c->clogged)
        return -EAGAIN;
    if (!c->honest || tti_hello_done(&c->hello) || wants == 0)
        return (int64_t)bytes;
    bytes = bytes < wants ? bytes : wants;
    if (tti_hello_feed(&c->hello, parts[0].data, bytes) != TUTTI_OK)
        c->over = true;
    go_on(c);
    return (int64_t)bytes;
}

static int64_t port_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    conn *c = conn_of(handle);

    (void)port;
    TT_MUST(bytes > 0);
    if (c->n_in == 0)
        return c->over ? c->error : -EAGAIN;
    bytes = bytes < c->n_in ? bytes : c->n_in;
    memcpy(out, c->in, bytes);
    c->n_in -= bytes;
    memmove(c->in, c->in + bytes, c->n_in);
    return (int64_t)bytes;
}

TT_UNTRACED static uint8_t ready(const tti_poll *p)
{
    const conn *c;

    if (p->handle == BELL)
        return s.rung ? TTI_READ : 0;
    if (p->handle == LOCAL_DOOR || p->handle == TCP_DOOR)
        return s.n_waiting[p->handle] > 0 ? p->want : 0;
    c = conn_of(p->handle);
    return (uint8_t)(((p->want & TTI_READ) != 0 && (c->n_in > 0 || c->over) ? TTI_READ : 0) | (p->want & TTI_WRITE) |
                     (c->over ? TTI_HANGUP : 0));
}

TT_UNTRACED static int port_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    int i, n_ready = 0;

    for (i = 0; i < n; i++) {
        set[i].got = set[i].handle == TTI_NO_HANDLE ? 0 : ready(&set[i]);
        n_ready += set[i].got != 0;
    }
    s.quiet = n_ready == 0;
    if (s.quiet)
        port_sleep(port, deadline_ns);
    return n_ready;
}

static void port_close(tti_port *port, tti_handle handle)
{
    (void)port;
    if (handle == TTI_NO_HANDLE || handle == BELL)
        return;
    forget_conn(conn_of(handle));
}

static int port_bell(tti_port *port, tti_handle *bell_out)
{
    (void)port;
    *bell_out = BELL;
    return 0;
}

static void port_ring(tti_port *port, tti_handle bell)
{
    (void)port;
    s.rung = bell == BELL;
}

static void port_clear(tti_port *port, tti_handle bell)
{
    (void)port;
    s.rung = s.rung && bell != BELL;
}

static const tti_port_ops port_ops = { .name = "crowd", .now_ns = port_now, .random = port_random, .sleep_until = port_sleep, .connect = port_connect,
                                       .connect_result = port_connect_result, .accept = port_accept, .local_addr = port_local_addr,
                                       .send = port_send, .recv = port_recv, .poll = port_poll, .close = port_close,
                                       .bell_create = port_bell, .bell_ring = port_ring, .bell_clear = port_clear };

TT_UNTRACED static uint64_t add_up(uint64_t sum, const uint8_t *at, size_t bytes)
{
    uint64_t word;
    size_t   n;

    for (; bytes > 0; bytes -= n, at += n) {
        n = bytes < sizeof word ? bytes : sizeof word;
        word = n;
        memcpy(&word, at, n);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    return sum;
}

/* In place of wire/mac.c's. */
TT_UNTRACED bool __wrap_tti_mac(const void *key, size_t key_bytes, const void *data, size_t bytes, uint8_t out[TTI_MAC_BYTES])
{
    const uint64_t sum = add_up(add_up(1, key, key_bytes), data, bytes);
    size_t         i;

    for (i = 0; i < TTI_MAC_BYTES; i += sizeof sum)
        memcpy(out + i, &sum, sizeof sum);
    return true;
}

/* ---- what the assembly tells ---- */

static bool wants(void *ctx, int rank)
{
    (void)ctx;
    return rank != RANK && (s.wanted >> rank & 1) != 0;
}

static void present(void *ctx, int rank)
{
    (void)ctx;
    TT_MUST(rank >= 0 && rank < MEMBERS && rank != RANK && !s.there[rank] && !s.gone[rank]);
    s.there[rank] = true;
}

static void absent(void *ctx, int rank)
{
    (void)ctx;
    TT_MUST(rank >= 0 && rank < MEMBERS && s.there[rank]);
    s.there[rank] = false;
}

static void gone(void *ctx, int rank)
{
    (void)ctx;
    TT_MUST(rank >= 0 && rank < MEMBERS && rank != RANK && !s.gone[rank] && strlen(tti_assembly_words(s.as, rank)) > 0);
    s.gone[rank] = true;
}

static void heard(void *ctx, int rank, const void *message, size_t bytes)
{
    uint8_t copy[MESSAGE];

    (void)ctx;
    TT_MUST(rank >= 0 && rank < MEMBERS && rank != RANK && bytes == MESSAGE);
    memcpy(copy, message, bytes);
}

/* ---- steps ---- */

static void open_stage(uint8_t flags)
{
    static const tti_assembly_hooks hooks = { .wants = wants, .present = present, .absent = absent, .gone = gone, .heard = heard };
    static const int                ranks[MEMBERS] = { 0, 1, 2, 3 };
    int                             r;

    memset(&s, 0, offsetof(stage, conns));
    s.port.ops = &port_ops;
    s.now_ns = TTI_SECOND;
    s.wanted = flags >> 2 & 0xf;
    s.mesh = (tti_mesh){ .port = &s.port, .rank = RANK, .n_ranks = MEMBERS, .members = s.members, .local_listener = LOCAL_DOOR,
                         .assembly_listener = TCP_DOOR };
    s.mesh.door.secret.seal = flags & 1 ? TTI_SEAL_KEY : TTI_SEAL_NONE;
    for (r = 0; r < MEMBERS; r++) {
        s.members[r].assembly.family = flags & 2 && r % 2 == 0 ? TTI_ADDR_LOCAL : TTI_ADDR_IP4;
        s.members[r].pidfd = TTI_NO_HANDLE;
        snprintf(s.members[r].where, sizeof s.members[r].where, "host 'h%d', pid 1", r);
    }
    TT_MUST(tti_assembly_open(&s.mesh, ranks, MEMBERS, RANK, TOPIC, MESSAGE, &hooks, &s.as) == TUTTI_OK);
}

/* An honest one tells its rank; strangers have none, and may be many. */
static void somebody_comes(uint8_t how)
{
    const int  door = how & 1 ? TCP_DOOR : LOCAL_DOOR;
    const bool honest = (how & 2) == 0;
    conn      *c = NULL;
    int        n;

    for (n = !honest && how >> 2 == OF_A_CROWD && s.n_crowds++ < CROWDS_MAX ? CROWD : 1; n > 0; n--) {
        c = new_conn(true, honest, door == LOCAL_DOOR, (uint32_t)(how >> 2));
        if (c == NULL)
            return;
        c->waits_at = door;
        s.n_waiting[door]++;
        go_on(c);
    }
}

static void step(tt_input *in)
{
    const uint8_t what = (uint8_t)tt_take(in, 1), how = what >> 3;
    conn         *c = &s.conns[how];
    tt_input      part;
    uint8_t       message[MESSAGE] = { 0 };

    switch (what & 7) {
    case 0: somebody_comes(how); break;
    case 1:
    case 2:
        part = (what & 7) == 1 ? tt_take_sized(in) : tt_take_part(in, MESSAGE);
        if (c->used && !c->over)
            say(c, part.at, part.left);
        break;
    case 3:
        c->over = true;
        c->error = tt_take(in, 1) & 1 ? -ECONNRESET : 0;
        break;
    case 4:
        memcpy(message, &what, 1);
        if (how % MEMBERS != RANK)
            tti_assembly_send(s.as, how % MEMBERS, message, sizeof message);
        break;
    case 5: s.now_ns += how * 500 * TTI_MS; break;
    case 6: s.manners[how % MEMBERS] = (manner)(how / MEMBERS % (STRANGE + 1)); break;
    default:
        s.no_files = how & 3;
        s.wanted ^= how >> 2;
        if (how & 4)
            tti_assembly_wake(s.as);
    }
}

TT_UNTRACED static void check(void)
{
    int i, inside = 0;

    for (i = 0; s.let_in && i < s.n_conns; i++)
        inside += s.conns[i].used && s.conns[i].waits_at == 0 && !(s.conns[i].honest && tti_hello_done(&s.conns[i].hello));
    TT_MUST(inside <= STRANGERS_MAX + MEMBERS);
    s.let_in = false;
}

/* What was begun goes on; where nothing does any more only time passes. */
static void take_last_turns(void)
{
    int i;

    for (i = 0; i < LAST_TURNS; i += s.quiet ? QUIET_TURNS : 1) {
        tti_assembly_turn(s.as, s.now_ns + 100 * TTI_MS);
        if (s.quiet)
            s.now_ns += (QUIET_TURNS - 1) * 50 * TTI_MS;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_input in = tt_input_of(data, size);
    int      i;

    open_stage((uint8_t)tt_take(&in, 1));
    for (i = 0; i < STEPS && in.left > 0; i++) {
        step(&in);
        tti_assembly_turn(s.as, s.now_ns + 10 * TTI_MS);
        check();
    }
    take_last_turns();
    tti_assembly_flush(s.as, s.now_ns + TTI_SECOND);
    tti_assembly_close(s.as);
    for (i = 0; i < s.n_conns; i++) {
        TT_MUST(!s.conns[i].used || s.conns[i].waits_at != 0);
        if (s.conns[i].used)
            forget_conn(&s.conns[i]);
    }
    return 0;
}
