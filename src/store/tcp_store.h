/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/tcp_store.h - what the files here know of a tcp store beyond its operations. */
#ifndef TTI_STORE_TCP_STORE_H
#define TTI_STORE_TCP_STORE_H

#include "store/store_moved.h"
#include "wire/addr.h"

/** Where a server is. */
typedef struct tti_store_place {
    char     host[TTI_HOST_MAX];
    uint16_t tcp_port;
} tti_store_place;

/** Where a tcp store leads to, and where it has led to before it was led elsewhere for the first time. False: another kind. */
bool tti_tcp_store_places(tutti_store *store, tti_store_place *now_out, tti_store_place *first_out);

/** A tcp store ends teller when it is closed, and the one that it had now. Before anybody else has the store. */
void tti_tcp_store_has_teller(tutti_store *store, tti_store_teller *teller);

#endif
