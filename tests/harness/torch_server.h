/* SPDX-License-Identifier: BSD-3-Clause
 *
 * torch_server.h - a server of the tests' own that speaks the protocol of PyTorch's TCPStore, and
 * misbehaves on request. The real one is met in tests/interop. */
#ifndef TT_TORCH_SERVER_H
#define TT_TORCH_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TT_TORCH_CODES = 19 };

typedef struct tt_torch_behaviour {
    bool old;     /* knows no queues and no list of keys: closes the connection over them */
    bool crosses; /* what is waited for comes in the moment in which the wait is cancelled */
    /* Answer these codes with these bytes, whatever the question; bytes NULL: properly. */
    struct {
        const char *bytes;
        size_t      n;
    } say[TT_TORCH_CODES];
} tt_torch_behaviour;

typedef struct tt_torch_server tt_torch_server;

/** Serve on a free port of 127.0.0.1; how NULL: properly. NULL: could not. */
tt_torch_server *tt_torch_server_start(const tt_torch_behaviour *how);
int              tt_torch_server_port(const tt_torch_server *server);
/** How many connections were accepted so far. */
int tt_torch_server_accepted(const tt_torch_server *server);
/** Kill a process (0: none) as soon as anybody compares and sets a key that ends with those words, which stay the caller's. That
 * is not done, and the connection is closed. From any thread, once. */
void tt_torch_server_kill_over(tt_torch_server *server, const char *key_end, pid_t victim);
/** Close everything and join the thread. NULL is fine. */
void tt_torch_server_stop(tt_torch_server *server);

#endif
