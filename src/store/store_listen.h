/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_listen.h - the sockets that a store's server listens on.
 *
 * How     A name is served at all its addresses that this host has, at one port; or the server takes
 *         a socket that somebody else has bound. If it has none of them yet, they are waited for, 3 s.
 *         TUTTI_LISTEN=any: at the wildcard, whatever the name; TUTTI_PORT_RANGE bounds port 0.
 * True    Nobody listens at an address that the secret does not suffice for: the call fails if none
 *         is left. */
#ifndef TTI_STORE_STORE_LISTEN_H
#define TTI_STORE_STORE_LISTEN_H

#include <tutti/store.h>
#include "wire/secret.h"

/** The backlog is as long as the kernel lets it be: net.core.somaxconn. */
enum { TTI_LISTEN_MAX = 8, TTI_LISTEN_BACKLOG = 65535 };

/** Addresses, and, once listening, a socket for each. */
typedef struct tti_listen {
    int      n;
    tti_addr at[TTI_LISTEN_MAX];
    int      fds[TTI_LISTEN_MAX];
} tti_listen;

/** Where options ask to listen, each address once; no socket is opened.
 * @errors TUTTI_E_ARG  port or listen_fd cannot be; TUTTI_E_NETWORK  the name does not resolve */
tutti_status tti_listen_find(const tutti_store_server_options *options, tti_listen *out);

/** Open the sockets of what tti_listen_find() has filled in; afterwards only those that listen are
 * left, with their port.
 * @errors as tutti_store_server_start(); nothing is open */
tutti_status tti_listen_open(const tutti_store_server_options *options, const tti_secret *secret,
                             tti_listen *listen);

/** Warn where the kernel lets fewer clients wait to be accepted than are to come. */
void tti_listen_check_queue(int n_clients);

/** Close them. */
void tti_listen_close(tti_listen *listen);

/** Whether both cannot be served at once: an address in common, at one port. */
bool tti_listen_clash(const tti_listen *a, const tti_listen *b);

#endif
