/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_server.c - the store's server: its state machine, from the first byte of a connection on.
 *
 * How     The input is a list of events on eight connections. Some come with a hello that is done by the real client side, so
 *         that what follows is requests; others are strangers. Requests come raw, in any pieces, or are made by the encoder.
 *         A first byte with STAGE in it says what kind of a server it is: whether it has a secret, and small shares for clients.
 * Holds   Every reply is a frame that the client's side can read; what is served stays within the limits; connections that are
 *         gone leave nothing behind; who has the server make room leaves no more strangers than he said, but one. */
#include "fuzz/fuzz.h"

#include "store/store_engine.h"
#include "store/store_proto.h"
#include "wire/bytes.h"
#include "wire/hello.h"

/* Limits are low, so that short inputs come to them. */
enum {
    CONNS = 8,
    STORED_MAX = 1 << 10,
    INPUT_MAX = 1 << 11,
    OUTPUT_MAX = 1 << 10,
    CLIENT_MAX = 1 << 8,
    CLIENT_KEYS = 3,
    KEYS_MAX = 5,
    AT_ONCE = 1 << 20,
    EVENTS_MAX = 100
};

/* The first byte; and what its highest bits say. */
enum { STAGE = 31, HAS_SECRET = 1, SMALL_SHARES = 2, SMALL_REPLIES = 4 };

static const tti_secret secret = { .present = true, .padded = { 1, 2, 3 } };

typedef struct table {
    tti_engine      *engine;
    tti_engine_conn *conns[CONNS];
    bool             greeted[CONNS]; /* its hello is behind it: what comes back is replies */
    tti_buffer       replies[CONNS];
    int64_t          now_ns;
    size_t           most; /* of what is sent at once */
    int              n_told; /* clients that were waiting when they went */
} table;

static void drop(table *t, int i)
{
    if (t->conns[i] != NULL)
        tti_engine_drop(t->engine, t->conns[i]);
    t->conns[i] = NULL;
    t->greeted[i] = false;
    tti_buffer_release(&t->replies[i]);
}

/* Whole frames at the front of what came back. */
static void read_replies(tti_buffer *in)
{
    tti_store_head head;

    while (in->size >= TTI_STORE_HEAD_BYTES) {
        TT_MUST(tti_store_head_read(tti_buffer_data(in), false, &head) == TUTTI_OK);
        if (in->size < TTI_STORE_HEAD_BYTES + head.size)
            return;
        tti_buffer_consume(in, TTI_STORE_HEAD_BYTES + head.size);
    }
}

/* As a driver does: send, then close. Sockets may take little. */
static void settle(table *t)
{
    tti_engine_conn *conn;
    const void      *data;
    size_t           bytes;
    int              n = 0;

    while ((t->most == AT_ONCE || n++ < CONNS) && (conn = tti_engine_next(t->engine)) != NULL) {
        const int i = (int)(intptr_t)tti_engine_owner(conn);

        if (tti_engine_closing(conn)) {
            TT_MUST(!tti_engine_reads(conn));
            drop(t, i);
            continue;
        }
        data = tti_engine_output(conn, &bytes);
        bytes = bytes < t->most ? bytes : t->most;
        if (t->greeted[i] && bytes > 0)
            TT_MUST(tti_buffer_append(&t->replies[i], data, bytes) == TUTTI_OK);
        tti_engine_sent(t->engine, conn, bytes);
        read_replies(&t->replies[i]);
    }
}

/* What an honest client says in its hello: always the same, with a secret and without, as randomness is zeros. */
typedef struct greeting {
    uint8_t first[TTI_HELLO_CLIENT_BYTES], second[TTI_HELLO_FINISH_BYTES];
    bool    made;
} greeting;

/* Those are asked of the real client side, once. */
static void make_greeting(greeting *g, const tti_secret *known, const void *answer, size_t answer_bytes)
{
    const tti_hello_config config = { .client = true, .purpose = TTI_PURPOSE_STORE, .rank = TTI_HELLO_NO_RANK, .secret = known };
    tti_hello              hello;
    const void            *data;
    size_t                 bytes;

    tti_hello_begin(&hello, tt_still_port(), &config);
    data = tti_hello_output(&hello, &bytes);
    TT_MUST(bytes == sizeof g->first);
    memcpy(g->first, data, bytes);
    if (answer != NULL) {
        tti_hello_sent(&hello, bytes);
        TT_MUST(tti_hello_feed(&hello, answer, answer_bytes) == TUTTI_OK);
        data = tti_hello_output(&hello, &bytes);
        TT_MUST(bytes == sizeof g->second);
        memcpy(g->second, data, bytes);
        g->made = true;
    }
    tti_hello_release(&hello);
}

static void greet(table *t, int i)
{
    static greeting   all[2];
    const tti_secret *known = tti_engine_secret(t->engine);
    greeting         *g = &all[known->present];
    const void       *answer;
    size_t            bytes;

    if (!g->made)
        make_greeting(g, known, NULL, 0);
    tti_engine_input(t->engine, t->conns[i], g->first, sizeof g->first);
    answer = tti_engine_output(t->conns[i], &bytes);
    if (!g->made)
        make_greeting(g, known, answer, bytes);
    tti_engine_sent(t->engine, t->conns[i], bytes);
    tti_engine_input(t->engine, t->conns[i], g->second, sizeof g->second);
    t->greeted[i] = true;
}

static void accept_one(table *t, int i, bool with_hello)
{
    drop(t, i);
    t->most = AT_ONCE;
    t->conns[i] = tti_engine_accept(t->engine, t->now_ns, "a fuzzer", &(tti_addr){ .family = TTI_ADDR_NONE }, (void *)(intptr_t)i);
    if (t->conns[i] != NULL && with_hello)
        greet(t, i);
}

static void feed(table *t, int i, tt_input bytes)
{
    uint8_t *copy = tt_copy(bytes.at, bytes.left);

    tti_engine_input(t->engine, t->conns[i], copy, bytes.left);
    free(copy);
}

/* A key of one or two bytes, so that requests meet. */
static tti_slice key_of(tt_input *in, char room[2])
{
    const uint8_t byte = (uint8_t)tt_take(in, 1);

    room[0] = (char)('a' + (byte & 3));
    room[1] = (char)('a' + (byte >> 2 & 3));
    return (tti_slice){ .data = room, .size = 1 + (byte >> 7) };
}

/* A request that the encoder makes. */
static void ask(table *t, int i, tt_input *in)
{
    static tti_store_request request;
    static char              room[TTI_STORE_KEYS_MAX][2];
    const tti_store_op       op = (tti_store_op)(TTI_STORE_SET + tt_take(in, 1) % (TTI_STORE_OP_END - TTI_STORE_SET));
    const bool list = op == TTI_STORE_WAIT || op == TTI_STORE_CHECK || op == TTI_STORE_MULTI_GET || op == TTI_STORE_MULTI_SET;
    tti_buffer frame = { .memory = NULL };
    tt_input   value;
    uint32_t   k;

    request.op = op;
    request.id = (uint32_t)tt_take(in, 1);
    request.n_keys = op == TTI_STORE_NUM_KEYS || op == TTI_STORE_CANCEL ? 0 : list ? 1 + (uint32_t)tt_take(in, 1) % 5 : 1;
    request.number = (int64_t)tt_take(in, 8);
    value = tt_take_part(in, tt_take(in, 1) & 63);
    request.value = (tti_slice){ .data = value.at, .size = value.left };
    value = tt_take_part(in, tt_take(in, 1) & 7);
    request.expected = (tti_slice){ .data = value.at, .size = value.left };
    for (k = 0; k < request.n_keys; k++) {
        request.keys[k] = key_of(in, room[k]);
        request.values[k] = request.value;
    }
    TT_MUST(tti_store_request_write(&request, &frame) == TUTTI_OK);
    feed(t, i, (tt_input){ .at = tti_buffer_data(&frame), .left = frame.size });
    tti_buffer_release(&frame);
}

/* Who waited for a key and is gone. */
static void tell_dropped(void *context, const void *key, size_t bytes)
{
    TT_MUST(key != NULL && bytes > 0 && bytes <= TUTTI_STORE_KEY_MAX + 1);
    (*(int *)context)++;
}

/* One more has come, and the driver has few descriptors left. */
static void relieve(table *t, int i, size_t most)
{
    accept_one(t, i, false);
    if (t->conns[i] == NULL)
        return;
    while (tti_engine_relieve(t->engine, t->now_ns, most))
        settle(t);
    TT_MUST(tti_engine_n_unproven(t->engine) <= (most > 0 ? most : 1));
}

static void event(table *t, tt_input *in)
{
    const uint8_t what = (uint8_t)tt_take(in, 1);
    const int     i = what >> 5;

    switch (what & 31) {
    case 0: accept_one(t, i, false); return;
    case 1: accept_one(t, i, true); return;
    case 2: drop(t, i); return;
    case 3:
        t->now_ns += (int64_t)tt_take(in, 2) * TTI_MS;
        tti_engine_tick(t->engine, t->now_ns);
        return;
    case 30:
        relieve(t, i, (size_t)tt_take(in, 1) & 7);
        return;
    default: break;
    }
    if (t->conns[i] == NULL)
        accept_one(t, i, true);
    if (t->conns[i] == NULL)
        return;
    if ((what & 31) == 11)
        t->most = 1 + (size_t)tt_take(in, 1);
    else if ((what & 31) < 11)
        feed(t, i, tt_take_sized(in));
    else
        ask(t, i, in);
}

/* The server, as the input's beginning has it. */
static void open_server(table *t, tt_input *in)
{
    tti_engine_limits limits = { .conns_max = CONNS - 1, .unproven_max = CONNS / 2, .stored_bytes_max = STORED_MAX,
                                 .input_bytes_max = INPUT_MAX, .hello_ns = TTI_SECOND };
    unsigned          kind = 0;

    if (in->left > 0 && (*in->at & 31) == STAGE)
        kind = (unsigned)tt_take(in, 1) >> 5;
    if ((kind & SMALL_SHARES) != 0) {
        limits.client_bytes_max = CLIENT_MAX;
        limits.client_keys_max = CLIENT_KEYS;
        limits.stored_keys_max = KEYS_MAX;
    }
    if ((kind & SMALL_REPLIES) != 0)
        limits.output_bytes_max = OUTPUT_MAX;
    TT_MUST(tti_engine_create(tt_still_port(), (kind & HAS_SECRET) != 0 ? &secret : NULL, &limits, &t->engine) == TUTTI_OK);
    tti_engine_tell_dropped(t->engine, tell_dropped, &t->n_told);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_input in = tt_input_of(data, size);
    table    t = { .most = AT_ONCE };
    int      i, n = 0;

    open_server(&t, &in);
    while (in.left > 0 && n++ < EVENTS_MAX) {
        event(&t, &in);
        settle(&t);
        TT_MUST(tti_engine_n_conns(t.engine) < CONNS && tti_engine_n_keys(t.engine) <= STORED_MAX);
        TT_MUST(tti_engine_deadline(t.engine) > t.now_ns - TTI_SECOND || tti_engine_deadline(t.engine) == TTI_FOREVER);
    }
    TT_MUST(tti_engine_counted(t.engine).conns <= size);
    tti_engine_ends(t.engine);
    for (i = 0; i < CONNS; i++)
        drop(&t, i);
    TT_MUST(tti_engine_n_conns(t.engine) == 0 && tti_engine_n_unproven(t.engine) == 0);
    tti_engine_destroy(t.engine);
    return 0;
}
