/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/news.h - what launchers tell each other, in their order, and whether all have heard it. */
#ifndef TTI_ELASTIC_NEWS_H
#define TTI_ELASTIC_NEWS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/store.h>

/** One launcher's view. Zeroed, but for the store, which is borrowed: nothing was told or heard. Two threads may use it at
 * once: one that tells, and one that listens. */
typedef struct tti_news {
    tutti_store    *store;
    _Atomic int64_t n_heard; /* by tti_news_listen() */
    int64_t         n_told;  /* the latest number that tti_news_tell() has come to */
} tti_news;

/** What is to be told: the first two are the caller's, the rest begins as 0. */
typedef struct tti_news_item {
    const void *data; /* 1 .. bytes that nobody else tells */
    size_t      size;
    int64_t     number; /* that it has, or was tried last; 0: none yet */
    int64_t     n_left; /* launchers that had left before it was told */
} tti_news_item;

/** From here on others wait until this launcher has heard what they tell: before tti_news_listen(). */
tutti_status tti_news_arrive(tti_news *news, int64_t deadline_ns);
/** They do not wait for it any more: after the end of tti_news_listen(). One that ends without is waited for. */
void tti_news_leave(tti_news *news, int64_t deadline_ns);

/** Tell item, once.
 * @errors TUTTI_E_TIMEOUT  perhaps it was told: call this again with the same item, or give up, which harms nobody
 *         others           the store is lost */
tutti_status tti_news_tell(tti_news *news, tti_news_item *item, int64_t deadline_ns);

/** Wait until all that have arrived, and have not left before, have heard of an item that was told; it looks at least once.
 * False: they have not by then, or the store cannot say. */
bool tti_news_await_hearing(tti_news *news, const tti_news_item *item, int64_t until_ns);

/** Hand on what anybody tells, from the first item on, until soon after *leaving has become true.
 * @errors of the store, when that is lost; TUTTI_OK: *leaving */
tutti_status tti_news_listen(tti_news *news, const _Atomic bool *leaving, void (*hear)(void *ctx, const tutti_bytes *data),
                             void *ctx);

#endif
