/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_tenants.h - servers that several tcp stores of one process share.
 *
 * Why     A process that opens a master twice at one port (two libraries, or a world that is made
 *         again before the old one has gone) finds its own server there instead of a taken port.
 * How     One list per process. Who comes first starts the server, who leaves last stops it; both take
 *         time, so they happen outside of the lock, while the entry says so and others wait for its
 *         end. */
#ifndef TTI_STORE_STORE_TENANTS_H
#define TTI_STORE_STORE_TENANTS_H

#include "store/store_server.h"

typedef struct tti_tenancy tti_tenancy;

/** Share the server where options ask for one, or start it. secret has been loaded.
 * @errors as tutti_store_server_start(); TUTTI_E_AUTH  the server there has another secret;
 *         TUTTI_E_TIMEOUT  it is being started or stopped, beyond the deadline */
tutti_status tti_tenancy_join(const tutti_store_server_options *options, const tti_secret *secret,
                              int64_t deadline_ns, tti_tenancy **tenancy_out);
/** Give it back; the last one stops the server, as tti_store_server_stop_in_time(). NULL is fine. */
void tti_tenancy_leave(tti_tenancy *tenancy, int64_t most_ms);

/** The server; it stays while the tenancy is held. */
tutti_store_server *tti_tenancy_server(const tti_tenancy *tenancy);

int tti_tenancy_port(const tti_tenancy *tenancy);

#endif
