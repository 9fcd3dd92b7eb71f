/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_half_open.h - the connections of the engine whose hello is not done yet. store_half_open.c has the rules. */
#ifndef TTI_STORE_STORE_HALF_OPEN_H
#define TTI_STORE_STORE_HALF_OPEN_H

#include "store/store_engine_conn.h"

/** Enter a fresh connection; without memory it is TUTTI_E_NOMEM. */
tutti_status tti_half_open_enter(tti_engine *engine, tti_engine_conn *conn);
/** Its hello was in order: what is left is the proof. */
void tti_half_open_spoke(tti_engine *engine, tti_engine_conn *conn);
/** It is proved, or gone. Fine of one that is not in the list. */
void tti_half_open_leave(tti_engine *engine, tti_engine_conn *conn);
/** Which one is to go, so that another from `from` can come; NULL: there is none. */
tti_engine_conn *tti_half_open_victim(const tti_engine *engine, const char *from);
/** All of it goes; nobody may be left. */
void tti_half_open_release(tti_engine *engine);

#endif
