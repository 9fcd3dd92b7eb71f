/* SPDX-License-Identifier: BSD-3-Clause
 *
 * torch_client.c - the client of PyTorch's store, whose server says anything.
 *
 * How     The input is what the server says, behind an honest answer to the greeting; its first bytes choose what is asked, and
 *         in how large pieces answers come.
 * Holds   Values and names that come back can be read to their end. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <tutti/private.h>
#include "store/torch_call.h"

enum { HANDLE = 7, PONG_BYTES = 4 };

typedef struct server {
    tti_port port; /* first */
    tt_input in;
    size_t   pong; /* bytes of the answer to the greeting that are still to be said: zeros */
    size_t   piece;
    int64_t  now_ns;
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
    (void)port;
    (void)max;
    *n_out = 1;
    return tti_addr_parse(host, tcp_port, out);
}

static int server_connect(tti_port *port, const tti_addr *to, tti_handle *handle_out)
{
    server *s = (server *)port;

    (void)to;
    if (s->in.left == 0)
        return -ECONNREFUSED;
    s->pong = PONG_BYTES;
    *handle_out = HANDLE;
    return 0;
}

static int server_connect_result(tti_port *port, tti_handle handle)
{
    (void)port;
    (void)handle;
    return 0;
}

static int64_t server_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    int64_t sent = 0;
    int     i;

    (void)port;
    (void)handle;
    for (i = 0; i < n_parts; i++)
        sent += (int64_t)parts[i].size;
    return sent;
}

static int64_t server_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    server  *s = (server *)port;
    tt_input part;

    (void)handle;
    if (s->pong > 0) {
        const size_t n = bytes < s->pong ? bytes : s->pong;

        memset(out, 0, n);
        s->pong -= n;
        return (int64_t)n;
    }
    part = tt_take_part(&s->in, bytes < s->piece ? bytes : s->piece);
    memcpy(out, part.at, part.left);
    return (int64_t)part.left; /* 0: the end of the stream */
}

/* Now and then nothing comes: the byte 0xee between what is said. */
static int server_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    server *s = (server *)port;

    TT_MUST(n == 1);
    if (s->pong == 0 && (set->want & TTI_READ) != 0 && s->in.left > 0 && *s->in.at == 0xee) {
        (void)tt_take(&s->in, 1);
        s->now_ns = deadline_ns != TTI_FOREVER && deadline_ns > s->now_ns ? deadline_ns : s->now_ns + TTI_SECOND;
        return 0;
    }
    set->got = set->want;
    return 1;
}

static void server_close(tti_port *port, tti_handle handle)
{
    (void)port;
    (void)handle;
}

static const tti_port_ops server_ops = {
    .name = "server", .now_ns = server_now, .sleep_until = server_sleep, .random = server_random, .resolve = server_resolve,
    .connect = server_connect, .connect_result = server_connect_result, .send = server_send, .recv = server_recv,
    .poll = server_poll, .close = server_close,
};

static size_t sum; /* of what came, so that reading it is not left out */

static void read_bytes(const tutti_bytes *bytes)
{
    size_t i;

    for (i = 0; bytes->data != NULL && i <= bytes->size; i++) /* and the NUL */
        sum += ((const uint8_t *)bytes->data)[i];
}

static void read_names(const tti_buffer *names, size_t n)
{
    const char *at = (const char *)tti_buffer_data(names);

    for (; n > 0; n--)
        at += strlen(at) + 1;
    TT_MUST(names->size == 0 || at == (const char *)tti_buffer_data(names) + names->size);
}

static void ask_one(tti_tcp_pool *pool, tti_torch_op op, bool apart, int64_t until)
{
    static const char *const keys[] = { "a" };
    static const tutti_bytes values[] = { { .data = (char *)(uintptr_t)"v", .size = 1 } };
    const tti_torch_request  request = { .op = op, .keys = keys, .n_keys = 1, .values = values,
                                         .value = { .data = "v", .size = 1 } };
    const char              *prefix = op == TTI_TORCH_LIST_KEYS ? "a" : NULL;
    tti_torch_reader         reader;
    const tutti_status       st = apart ? tti_torch_run_apart(pool, &request, prefix, until, &reader)
                                        : tti_torch_run(pool, &request, prefix, until, &reader);

    if (st != TUTTI_OK)
        return;
    read_bytes(&reader.value);
    read_names(&reader.names, reader.n_names);
    tti_torch_reader_release(&reader);
}

static void ask_batch(tti_tcp_pool *pool, int64_t until)
{
    static const char *const keys[] = { "a" };
    const tti_torch_request  get = { .op = TTI_TORCH_COMPARE_SET, .keys = keys, .n_keys = 1 };
    const tti_torch_request  requests[] = { get, get, get };
    tutti_bytes              values[3] = { { .data = NULL } };
    int                      i;

    if (tti_torch_run_batch(pool, requests, 3, until, values) != TUTTI_OK)
        return;
    for (i = 0; i < 3; i++) {
        read_bytes(&values[i]);
        tutti_bytes_free(&values[i]);
    }
}

static void ask(tti_tcp_pool *pool, uint8_t what)
{
    static const char *const keys[] = { "a", "b" };
    const int64_t            until = tti_port_now(pool->port) + TTI_SECOND;
    const tti_torch_request  wait = { .op = TTI_TORCH_WAIT, .keys = keys, .n_keys = 2 };
    const tti_torch_op       op = (tti_torch_op)(what % TTI_TORCH_OP_END);
    bool                     late = false;

    if ((what & 0xc0) == 0xc0)
        (void)tti_torch_run_wait(pool, &wait, until, &late);
    else if ((what & 0xc0) == 0x80)
        ask_batch(pool, until);
    else if (what == 0x7f)
        sum += tti_torch_alive(pool);
    else if (op != TTI_TORCH_VALIDATE && op != TTI_TORCH_WAIT && op != TTI_TORCH_CANCEL_WAIT &&
             tti_torch_op_name(op)[0] != '?')
        ask_one(pool, op, (what & 0x40) != 0, until);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    server       s = { .port = { &server_ops }, .in = tt_input_of(data, size), .now_ns = TTI_SECOND };
    tti_tcp_pool pool;

    s.piece = 1 + (size_t)tt_take(&s.in, 1);
    memset(&pool, 0, sizeof pool);
    tti_tcp_pool_init(&pool, &s.port, "127.0.0.1", 1);
    snprintf(pool.who, sizeof pool.who, "the server");
    pool.greet = tti_torch_greet;
    while (s.in.left > 0)
        ask(&pool, (uint8_t)tt_take(&s.in, 1));
    tti_tcp_pool_close(&pool);
    tti_mutex_release(&pool.lock);
    return 0;
}
