/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_port_server.h - the tcp store's server on a port that stands in for the machine. */
#ifndef TTI_STORE_STORE_PORT_SERVER_H
#define TTI_STORE_STORE_PORT_SERVER_H

#include "store/store_engine.h"
#include "store/store_listen.h"

typedef struct tti_port_server tti_port_server;

/** Serve on the listening handles of at, which are the server's from then on, also if this fails.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_port_server_start(tti_port *port, const tti_listen *at, const tti_secret *secret,
                                   const tti_engine_limits *limits, tti_port_server **server_out);
tti_engine *tti_port_server_engine(const tti_port_server *server);
/** End its thread, close everything. NULL is fine. */
void tti_port_server_stop(tti_port_server *server);

#endif
