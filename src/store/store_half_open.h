/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_half_open.h - the connections of the engine that have not proved themselves. store_half_open.c has the rules. */
#ifndef TTI_STORE_STORE_HALF_OPEN_H
#define TTI_STORE_STORE_HALF_OPEN_H

#include "store/store_engine_conn.h"

/** There are none yet. */
void tti_half_open_init(tti_engine *engine);
/** Enter a fresh connection; without memory it is TUTTI_E_NOMEM. */
tutti_status tti_half_open_enter(tti_engine *engine, tti_engine_conn *conn);
/** Its hello was in order: what is left is the proof. Fine of one that has spoken before.
 * @errors TUTTI_E_NOMEM  it is where it was */
tutti_status tti_half_open_spoke(tti_engine *engine, tti_engine_conn *conn);
/** It is proved, or gone. Fine of one that has left before. */
void tti_half_open_leave(tti_engine_conn *conn);
/** How many there are. */
size_t tti_half_open_count(const tti_engine *engine);
/** Which one is to go, so that another from source can come; NULL: there is none. */
tti_engine_conn *tti_half_open_victim(const tti_engine *engine, const tti_addr_source *source);
/** The same in one crowd. */
tti_engine_conn *tti_half_open_victim_in(const tti_half_open_crowd *crowd, const tti_addr_source *source);
/** All of it goes; nobody may be left. */
void tti_half_open_release(tti_engine *engine);

#endif
