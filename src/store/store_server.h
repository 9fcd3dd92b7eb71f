/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_server.h - the server with the insides of the store room: limits of the engine. */
#ifndef TTI_STORE_STORE_SERVER_H
#define TTI_STORE_STORE_SERVER_H

#include "store/store_engine.h"
#include "store/store_listen.h"

/** tutti_store_server_start() with limits; NULL: the engine's. */
tutti_status tti_store_server_start_limited(const tutti_store_server_options *options,
                                            const tti_engine_limits          *limits,
                                            tutti_store_server              **server_out);

/** The same at what tti_listen_find() has found for options, with a secret that has been loaded. */
tutti_status tti_store_server_start_at(const tutti_store_server_options *options,
                                       const tti_listen *at, const tti_secret *secret,
                                       const tti_engine_limits *limits,
                                       tutti_store_server     **server_out);

/** Have missed() called, on the server's thread, for each connection that ends while it waits for a key of a user: so a client that is
 * waiting for one that nobody will set, and stops waiting before it leaves, is missed when it could not. NULL: nobody is
 * told any more, and when that has returned no call is under way. missed() must not call the server. A server on a port
 * that stands in for the machine tells nobody. */
void tti_store_server_tell_missed(tutti_store_server *server, void (*missed)(void *context, const void *key, size_t bytes),
                                  void *context);

/** Wait until no client needs the store under a key that begins with below, as it is over the wire (store_needs.h); false: one does,
 * and it is until_ns. In a child of fork() nobody is there to wait for. Nobody may stop the server meanwhile. */
bool tti_store_server_await_unneeded(tutti_store_server *server, const void *below, size_t bytes, int64_t until_ns);
/** tutti_store_server_stop() of one that clients may still need: for so long they have their answers. NULL is fine. */
void tti_store_server_stop_in_time(tutti_store_server *server, int64_t most_ms);

/** Where it listens. */
const tti_listen *tti_store_server_at(const tutti_store_server *server);

#endif
