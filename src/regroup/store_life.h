/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup/store_life.h - whether the store of a world lives, asked while its members agree. */
#ifndef TTI_REGROUP_STORE_LIFE_H
#define TTI_REGROUP_STORE_LIFE_H

#include "store/store.h"

typedef struct tti_store_life tti_store_life;

/** Ask store, which is borrowed until the end, from now on. It has silence_ns to answer. NULL: there is no memory, or no thread. */
tti_store_life *tti_store_life_ask(tutti_store *store, int64_t silence_ns);
/** Without a thread: whether store answers until until_ns. */
bool tti_store_life_answers(tutti_store *store, int64_t until_ns);
/** Whether it is dead, or has not answered for silence_ns. Waits until that is known, or until_ns: one that has said nothing by then
 * counts as silent. One thread at a time. */
bool tti_store_life_is_over(tti_store_life *life, int64_t until_ns);
enum { TTI_STORE_LIFE_WORDS = 48 };

/** "is dead", or "has not answered for 4.0 s", as was found last. */
const char *tti_store_life_words(const tti_store_life *life);
/** NULL is fine. */
void tti_store_life_end(tti_store_life *life);

#endif
