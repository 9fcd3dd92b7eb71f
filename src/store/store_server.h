/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_server.h - the server with the insides of the store room: limits of the engine. */
#ifndef TTI_STORE_STORE_SERVER_H
#define TTI_STORE_STORE_SERVER_H

#include "store/store_engine.h"
#include <tutti/store.h>

/** tutti_store_server_start() with limits; NULL: the engine's. */
tutti_status tti_store_server_start_limited(const tutti_store_server_options *options,
                                            const tti_engine_limits          *limits,
                                            tutti_store_server              **server_out);

#endif
