/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_moved.h - where a world has gone on, said in the store that it was found with. */
#ifndef TTI_STORE_STORE_MOVED_H
#define TTI_STORE_STORE_MOVED_H

#include "store/store.h"

/** Whoever tells that; one of a store that serves. */
typedef struct tti_store_teller tti_store_teller;

/** served, a tcp store that serves at host and its port, takes the place of the one that root, a view of it, leads to, and is about to
 * be led away from: have that one say so as soon as it answers, and the one that root led to at first, if that is another one. It is tried
 * until served is closed, or they are dead. A failure is logged: nobody waits for it. */
void tti_store_tell_moved(tutti_store *served, tutti_store *root, const char *host);

/** Where the store that this view leads to says that its world has gone on elsewhere: lead it there, and every view of it, step by step.
 * *moved_out: it was led away. Other kinds of stores say nothing.
 * @errors TUTTI_E_NETWORK  the one that it names is not there; the text has both
 *         as tutti_store_check() */
tutti_status tti_store_follow(tutti_store *store, int64_t deadline_ns, bool *moved_out);

/** A new world begins in store: where an earlier one has gone is nobody's matter any more. */
void tti_store_forget_moved(tutti_store *store, int64_t deadline_ns);

/** Stop telling. NULL is fine. */
void tti_store_teller_end(tti_store_teller *teller);

#endif
