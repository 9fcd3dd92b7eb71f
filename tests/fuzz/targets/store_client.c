/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_client.c - the client of the tcp store, whose server says anything.
 *
 * How     A port plays a server that proves itself honestly, by the real hello and the answer that ends a greeting, and then
 *         answers out of the input: raw, or under a head that fits the request. Streams end with the input; time passes with every look at an empty one.
 * Holds   Values and names that come back can be read to their end. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <tutti/private.h>
#include "store/store_proto.h"
#include "store/tcp_lists.h"
#include "wire/bytes.h"
#include "wire/hello.h"

enum { HANDLE = 7, ASKED_MAX = 64 };

/* What both ends say in a hello: always the same, as randomness is zeros and there is no secret. The real server says it once. */
typedef struct rite {
    uint8_t first[TTI_HELLO_CLIENT_BYTES], answer[TTI_HELLO_SERVER_BYTES], last[TTI_HELLO_FINISH_BYTES];
    bool    known;
} rite;

static rite known_rite;

typedef struct server {
    tti_port   port; /* first */
    tt_input   in;
    int64_t    now_ns;
    tti_hello  hello; /* used until the rite is known */
    bool       answered; /* the client's first message */
    bool       greeted; /* the hello is over */
    bool       heard;   /* and its answer, behind it */
    bool       far, far_here; /* it is asked for by an address beyond loopback; this end has one, too */
    tti_buffer asked; /* by the client */
    tti_buffer said;  /* to it */
} server;

static int64_t server_now(tti_port *port)
{
    return ((server *)port)->now_ns;
}

static void server_sleep(tti_port *port, int64_t deadline_ns)
{
    server *s = (server *)port;

    s->now_ns = deadline_ns > s->now_ns ? deadline_ns : s->now_ns;
}

static void server_random(tti_port *port, void *out, size_t bytes)
{
    (void)port;
    memset(out, 0, bytes);
}

static tutti_status server_resolve(tti_port *port, const char *host, uint16_t tcp_port, tti_addr *out, int max, int *n_out)
{
    (void)max;
    *n_out = 1;
    return tti_addr_parse(((server *)port)->far ? "10.0.0.1" : host, tcp_port, out);
}

static int server_route(tti_port *port, const tti_addr *to, tti_addr *local_out)
{
    (void)to;
    return tti_addr_parse(((server *)port)->far_here ? "10.0.0.7" : "127.0.0.1", 0, local_out) == TUTTI_OK ? 0 : -ENETUNREACH;
}

static int server_connect(tti_port *port, const tti_addr *to, tti_handle *handle_out)
{
    const tti_hello_config config = { .purpose = TTI_PURPOSE_STORE, .rank = TTI_HELLO_NO_RANK };
    server                *s = (server *)port;

    (void)to;
    if (s->in.left == 0)
        return -ECONNREFUSED;
    tti_hello_release(&s->hello);
    if (!known_rite.known)
        tti_hello_begin(&s->hello, port, &config);
    tti_buffer_release(&s->asked);
    tti_buffer_release(&s->said);
    s->answered = s->greeted = s->heard = false;
    *handle_out = HANDLE;
    return 0;
}

static int server_connect_result(tti_port *port, tti_handle handle)
{
    (void)port;
    (void)handle;
    return 0;
}

static int server_local_addr(tti_port *port, tti_handle handle, tti_addr *addr_out)
{
    (void)port;
    (void)handle;
    return tti_addr_parse("127.0.0.1", 1, addr_out) == TUTTI_OK ? 0 : -EINVAL;
}

static void say(server *s, const void *data, size_t bytes)
{
    TT_MUST(tti_buffer_append(&s->said, data, bytes) == TUTTI_OK);
}

/* The real server's next word, which is written down. */
static void learn(server *s, const void *message, size_t message_bytes)
{
    const void *data;
    size_t      bytes;

    TT_MUST(tti_hello_wants(&s->hello) == message_bytes && tti_hello_feed(&s->hello, message, message_bytes) == TUTTI_OK);
    memcpy(s->answered ? known_rite.last : known_rite.first, message, message_bytes);
    data = tti_hello_output(&s->hello, &bytes);
    if (bytes > 0)
        memcpy(known_rite.answer, data, sizeof known_rite.answer);
    TT_MUST(s->answered || bytes == sizeof known_rite.answer);
    tti_hello_sent(&s->hello, bytes);
    TT_MUST(tti_hello_done(&s->hello) == s->answered);
    known_rite.known = s->answered;
}

static void greet(server *s)
{
    const size_t bytes = s->answered ? sizeof known_rite.last : sizeof known_rite.first;

    if (s->asked.size < bytes)
        return;
    if (!known_rite.known)
        learn(s, tti_buffer_data(&s->asked), bytes);
    TT_MUST(memcmp(tti_buffer_data(&s->asked), s->answered ? known_rite.last : known_rite.first, bytes) == 0);
    tti_buffer_consume(&s->asked, bytes);
    if (!s->answered)
        say(s, known_rite.answer, sizeof known_rite.answer);
    s->greeted = s->answered;
    s->answered = true;
}

/* One request was asked: answer it out of the input. */
static void answer(server *s, const tti_store_head *head)
{
    const uint8_t how = (uint8_t)tt_take(&s->in, 1);
    uint8_t       own[TTI_STORE_HEAD_BYTES];
    tt_input      body;

    if (how == 0)
        return; /* silence */
    if (how & 1) {
        body = tt_take_sized(&s->in);
        tti_put_u32(own, (uint32_t)body.left);
        own[4] = TTI_STORE_VERSION;
        own[5] = (uint8_t)head->op;
        tti_put_u16(own + 6, how & 2 ? (uint16_t)tt_take(&s->in, 2) : 0);
        tti_put_u32(own + 8, head->id);
        say(s, own, sizeof own);
    } else {
        body = tt_take_sized(&s->in);
    }
    say(s, body.at, body.left);
}

static void end_greeting(server *s, const tti_store_head *head)
{
    uint8_t number[8] = { 0 };

    TT_MUST(tti_store_reply_write(head->op, head->id, TUTTI_OK, number, sizeof number, &s->said) == TUTTI_OK);
    s->heard = true;
}

static void look_at_requests(server *s)
{
    tti_store_head head;

    while (s->asked.size >= TTI_STORE_HEAD_BYTES) {
        TT_MUST(tti_store_head_read(tti_buffer_data(&s->asked), true, &head) == TUTTI_OK);
        if (s->asked.size < TTI_STORE_HEAD_BYTES + head.size)
            return;
        tti_buffer_consume(&s->asked, TTI_STORE_HEAD_BYTES + head.size);
        if (s->heard)
            answer(s, &head);
        else
            end_greeting(s, &head);
    }
}

static int64_t server_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    server *s = (server *)port;
    int64_t sent = 0;
    int     i;

    (void)handle;
    for (i = 0; i < n_parts; i++) {
        TT_MUST(tti_buffer_append(&s->asked, parts[i].data, parts[i].size) == TUTTI_OK);
        sent += (int64_t)parts[i].size;
    }
    if (!s->greeted)
        greet(s);
    else
        look_at_requests(s);
    return sent;
}

static int64_t server_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    server      *s = (server *)port;
    const size_t n = bytes < s->said.size ? bytes : s->said.size;

    (void)handle;
    if (n == 0 && s->in.left == 0)
        return 0;
    if (n == 0)
        return -EAGAIN;
    memcpy(out, tti_buffer_data(&s->said), n);
    tti_buffer_consume(&s->said, n);
    return (int64_t)n;
}

static int server_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    server *s = (server *)port;

    TT_MUST(n == 1);
    set->got = (uint8_t)((set->want & TTI_WRITE) | (s->said.size > 0 || s->in.left == 0 ? set->want & TTI_READ : 0));
    if (set->got == 0)
        s->now_ns = deadline_ns != TTI_FOREVER && deadline_ns > s->now_ns ? deadline_ns : s->now_ns + TTI_SECOND;
    return set->got != 0;
}

static void server_close(tti_port *port, tti_handle handle)
{
    (void)port;
    (void)handle;
}

static const tti_port_ops server_ops = {
    .name = "server", .now_ns = server_now, .sleep_until = server_sleep, .random = server_random, .resolve = server_resolve, .route = server_route,
    .connect = server_connect, .connect_result = server_connect_result, .local_addr = server_local_addr,
    .send = server_send, .recv = server_recv, .poll = server_poll, .close = server_close,
};

static size_t sum; /* of what came, so that reading it is not left out */

static void read_bytes(tutti_bytes *bytes)
{
    size_t i;

    for (i = 0; i <= bytes->size && bytes->data != NULL; i++) /* and the NUL */
        sum += ((const uint8_t *)bytes->data)[i];
    tutti_bytes_free(bytes);
}

static void ask_value(tti_tcp_pool *pool, tti_store_op op, int64_t until)
{
    tutti_bytes  value = { .data = NULL };
    tti_tcp_call call;
    tti_tcp_key  room;

    tti_tcp_call_begin(&call, pool, op, "k", until);
    tti_tcp_call_key(&call, "k", &room);
    call.request.number = 1;
    if (tti_tcp_call_value(&call, &value) == TUTTI_OK)
        read_bytes(&value);
}

static void ask_number(tti_tcp_pool *pool, tti_store_op op, size_t bytes, int64_t until)
{
    tti_tcp_call call;
    tti_tcp_key  room;
    int64_t      number = 0;

    tti_tcp_call_begin(&call, pool, op, "k", until);
    if (op != TTI_STORE_NUM_KEYS)
        tti_tcp_call_key(&call, "k", &room);
    if (tti_tcp_call_number(&call, bytes, &number) == TUTTI_OK)
        sum += (size_t)number;
}

static void ask_values(tti_tcp_pool *pool, int64_t until)
{
    const char *const keys[] = { "a", "b", "c" };
    tutti_bytes       values[3] = { { .data = NULL } };
    int               i;

    (void)tti_tcp_multi_get(pool, keys, 3, until, values);
    for (i = 0; i < 3; i++) /* the caller frees what has come, whatever it came to */
        read_bytes(&values[i]);
}

static void ask_names(tti_tcp_pool *pool, int64_t until)
{
    tutti_store_keys list = { .n = 0 };
    size_t           i;

    if (tti_tcp_list_keys(pool, "", until, &list) != TUTTI_OK)
        return;
    for (i = 0; i < list.n; i++)
        sum += strlen(list.names[i]);
    tutti_store_keys_free(&list);
}

static void ask_lists(tti_tcp_pool *pool, uint8_t what, int64_t until)
{
    const char *const keys[] = { "a", "b", "c" };
    tutti_bytes       values[3] = { { .data = (char[]){ "x" }, .size = 1 } };
    bool              all = false;

    if (what == 0)
        (void)tti_tcp_wait_all(pool, keys, 3, until);
    else if (what == 1)
        (void)tti_tcp_check(pool, keys, 3, until, &all);
    else
        (void)tti_tcp_multi_set(pool, keys, values, 3, until);
}

static tutti_status keep(tti_tcp_call *call)
{
    const tutti_status st = tti_tcp_call_keep(call);

    if (st == TUTTI_OK)
        read_bytes(&call->body);
    return st;
}

/* Two requests on a connection that stays with them. */
static void ask_twice(tti_tcp_pool *pool, int64_t until)
{
    tti_tcp_call call;
    tti_tcp_key  room;
    tutti_status st;

    tti_tcp_call_begin(&call, pool, TTI_STORE_SET, "k", until);
    tti_tcp_call_key(&call, "k", &room);
    st = keep(&call);
    if (st == TUTTI_OK)
        st = keep(&call);
    if (st == TUTTI_OK)
        tti_tcp_pool_put(pool, call.handle);
}

/* Whether it may be spoken to without a secret. */
static void ask_whether(tti_tcp_pool *pool, uint8_t how)
{
    server *s = (server *)pool->port;

    s->far = (how & 1) != 0;
    s->far_here = (how & 2) != 0;
    TT_MUST((tti_tcp_may_greet(pool) != TUTTI_OK) == (how % 4 == 3));
    s->far = s->far_here = false;
}

static void ask(tti_tcp_pool *pool, uint8_t what)
{
    const int64_t until = tti_port_now(pool->port) + (what >> 4) * 100 * TTI_MS;

    switch (what & 15) {
    case 0: ask_value(pool, TTI_STORE_GET, until); break;
    case 1: ask_value(pool, TTI_STORE_QUEUE_POP, until); break;
    case 2: ask_value(pool, TTI_STORE_COMPARE_SET, until); break;
    case 3: ask_number(pool, TTI_STORE_ADD, 8, until); break;
    case 4: ask_number(pool, TTI_STORE_DELETE, 1, until); break;
    case 5: ask_number(pool, TTI_STORE_NUM_KEYS, 8, until); break;
    case 6: ask_number(pool, TTI_STORE_SET, 0, until); break;
    case 7: ask_values(pool, until); break;
    case 8: ask_names(pool, until); break;
    case 14: ask_twice(pool, until); break;
    case 15: ask_whether(pool, what >> 4); break;
    default: ask_lists(pool, (what & 15) - 9, until); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    server       s = { .port = { &server_ops }, .in = tt_input_of(data, size), .now_ns = TTI_SECOND };
    tti_tcp_pool pool;
    int          n = 0;

    memset(&pool, 0, sizeof pool);
    tti_tcp_pool_init(&pool, &s.port, "127.0.0.1", 1);
    snprintf(pool.who, sizeof pool.who, "the server");
    pool.greet = tti_tcp_greet;
    while (s.in.left > 0 && n++ < ASKED_MAX)
        ask(&pool, (uint8_t)tt_take(&s.in, 1));
    tti_tcp_pool_close(&pool);
    tti_mutex_release(&pool.lock);
    tti_hello_release(&s.hello);
    tti_buffer_release(&s.asked);
    tti_buffer_release(&s.said);
    return 0;
}
