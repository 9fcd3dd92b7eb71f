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

/** Where it listens. */
const tti_listen *tti_store_server_at(const tutti_store_server *server);

#endif
