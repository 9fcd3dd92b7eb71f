/* SPDX-License-Identifier: BSD-3-Clause
 *
 * talk.c - connections of somebody who may know the secret, or not. */
#include "attacks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <tutti/private.h>
#include <tutti/store.h>
#include "transport/tcp/handshake.h"
#include "wire/addr.h"

enum { SHAKE_MS = 5000 };

static outcome make_outcome(bool is_held, bool is_skipped, const char *fmt, va_list args)
{
    outcome o = { .held = is_held, .skipped = is_skipped };

    vsnprintf(o.words, sizeof o.words, fmt, args);
    return o;
}

outcome held(const char *fmt, ...)
{
    va_list args;
    outcome o;

    va_start(args, fmt);
    o = make_outcome(true, false, fmt, args);
    va_end(args);
    return o;
}

outcome failed(const char *fmt, ...)
{
    va_list args;
    outcome o;

    va_start(args, fmt);
    o = make_outcome(false, false, fmt, args);
    va_end(args);
    return o;
}

outcome skipped(const char *fmt, ...)
{
    va_list args;
    outcome o;

    va_start(args, fmt);
    o = make_outcome(true, true, fmt, args);
    va_end(args);
    return o;
}

int dial(const job *j, int rank)
{
    const struct timeval patience = { .tv_sec = 10 };
    struct sockaddr_in   to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons(rank < 0 ? j->store_port : j->peer_ports[rank]) };
    int                  fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
        return fd; /* as the port's are */
    close(fd);
    return -1;
}

tti_hello_config genuine(const job *j, int rank, const tti_secret *secret)
{
    tti_hello_config config = { .client = true, .purpose = rank < 0 ? TTI_PURPOSE_STORE : TTI_PURPOSE_PEER,
                                .rank = rank < 0 ? TTI_HELLO_NO_RANK : (uint32_t)((rank + 1) % RANKS), .secret = secret };

    if (rank >= 0)
        memcpy(config.scope, j->scope, sizeof config.scope);
    return config;
}

bool shake_hands(int fd, const tti_hello_config *config)
{
    return tti_hello_run(tti_port_system(), fd, config, tti_deadline(tti_port_system(), SHAKE_MS, 0), NULL) == TUTTI_OK;
}

bool is_welcome(int fd)
{
    tti_port *port = tti_port_system();
    uint8_t   word[TTI_WELCOME_BYTES];

    return tti_io_recv_all(port, fd, word, sizeof word, "a rank", tti_deadline(port, SHAKE_MS, 0)) == TUTTI_OK &&
           memcmp(word, "TUTW", 4) == 0;
}

void push(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    ssize_t     n;

    while (bytes > 0) {
        n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) { /* one of the port's, which does not block */
            struct pollfd wait = { .fd = fd, .events = POLLOUT };

            if (poll(&wait, 1, SHAKE_MS) == 1)
                continue;
        }
        if (n <= 0)
            return;
        at += n;
        bytes -= (size_t)n;
    }
}

bool is_closed_within(int fd, int64_t ms, size_t most)
{
    const int64_t until = now_ms() + ms;
    struct pollfd wait = { .fd = fd, .events = POLLIN };
    char          in[4096];
    size_t        said = 0;
    ssize_t       n;

    while (now_ms() <= until) {
        if (poll(&wait, 1, (int)(until - now_ms() + 1)) != 1)
            continue;
        n = recv(fd, in, sizeof in, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return true;
        said += n > 0 ? (size_t)n : 0;
        if (said > most)
            return false;
    }
    return false;
}

int64_t proven_client_ms(const job *j, int64_t patience_ms)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    const int64_t           start = now_ms();
    tutti_store            *store = NULL;
    tutti_bytes             value = { 0 };
    bool                    ok;

    setenv("TUTTI_SECRET_FILE", j->secret_file, 1);
    options.host = "127.0.0.1";
    options.port = j->store_port;
    options.timeout_ms = patience_ms;
    ok = tutti_tcp_store_open(&options, &store) == TUTTI_OK && tutti_store_set(store, "proven", "yes", 3) == TUTTI_OK &&
         tutti_store_get(store, "proven", 0, &value) == TUTTI_OK && value.size == 3;
    if (ok)
        (void)tutti_store_delete_key(store, "proven", NULL);
    tutti_bytes_free(&value);
    tutti_store_close(store);
    unsetenv("TUTTI_SECRET_FILE");
    return ok ? now_ms() - start : -1;
}
