/* SPDX-License-Identifier: BSD-3-Clause
 *
 * news.c - a list in the job's store, to which every launcher adds.
 *
 * How     Below "tutti/launcher/":
 *           news/1, news/2, ...  items, each put there by compare_set, if nothing was: whoever finds another's item tries the
 *                                next number
 *           heard/n              how many have heard item n
 *           arrived, left        how many launchers have begun to listen, and how many of those have ended
 * True    Numbers have no gaps, whoever is stopped or killed while it tells: a number is taken by its item itself, and not
 *         before it. A call that ran out of time may have been carried out, then or later: the same number is tried again,
 *         where one's own item is found, or room, or somebody else's.
 *         All have heard n  <=>  heard/n >= arrived - those that had left before n was told. Who leaves hears nothing after
 *         that, so nobody is in both numbers: "left" is asked for before n is told, and "arrived", which only grows, after
 *         "heard/n". Who arrives later has to hear n, too.
 * Cost    A request for an item that nobody else tells just then; of k launchers that tell at once the last tries k numbers, in
 *         the time in which all of them have to read k items anyhow.
 * Fails   A store that is slow loses nothing: items are told again, and are heard although nobody could be told so in time. Of a
 *         launcher that was killed, or left between, the others believe that it has not heard. */
#include "elastic/news.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "base/port.h"
#include "store/store.h"

#define FOLDER    "tutti/launcher"
#define LOOK_NS   (2 * TTI_MS) /* between looks whether all have heard */
#define ANSWER_NS (5 * TTI_SECOND)

enum { KEY_MAX = 48 };

static void name_number(char key[KEY_MAX], const char *what, int64_t n)
{
    snprintf(key, KEY_MAX, FOLDER "/%s/%" PRId64, what, n);
}

tutti_status tti_news_arrive(tti_news *news, int64_t deadline_ns)
{
    int64_t n;

    return tti_store_add_until(news->store, FOLDER "/arrived", 1, deadline_ns, &n);
}

void tti_news_leave(tti_news *news, int64_t deadline_ns)
{
    int64_t n;

    (void)tti_store_add_until(news->store, FOLDER "/left", 1, deadline_ns, &n);
}

/* ---- telling ---- */

static int64_t next_number(const tti_news *news)
{
    const int64_t n_heard = atomic_load_explicit(&news->n_heard, memory_order_relaxed); /* a hint: all of them are taken */

    return (n_heard > news->n_told ? n_heard : news->n_told) + 1;
}

/* Put item at its number, unless somebody else's is there. */
static tutti_status put(tti_news *news, const tti_news_item *item, int64_t deadline_ns, bool *there_out)
{
    tutti_bytes  now = { 0 };
    char         key[KEY_MAX];
    tutti_status st;

    name_number(key, "news", item->number);
    st = tti_store_compare_set_until(news->store, key, "", 0, item->data, item->size, deadline_ns, &now);
    if (st != TUTTI_OK)
        return st;
    *there_out = now.size == item->size && memcmp(now.data, item->data, item->size) == 0;
    tutti_bytes_free(&now);
    return TUTTI_OK;
}

tutti_status tti_news_tell(tti_news *news, tti_news_item *item, int64_t deadline_ns)
{
    tutti_status st;
    bool         there = false;

    if (item->number == 0) {
        st = tti_store_add_until(news->store, FOLDER "/left", 0, deadline_ns, &item->n_left);
        if (st != TUTTI_OK)
            return st;
        item->number = next_number(news);
    }
    for (;;) {
        st = put(news, item, deadline_ns, &there);
        if (st != TUTTI_OK)
            return st;
        news->n_told = item->number;
        if (there)
            return TUTTI_OK;
        item->number = next_number(news);
    }
}

static bool have_heard(tti_news *news, const tti_news_item *item, int64_t until_ns, bool *all_out)
{
    char    key[KEY_MAX];
    int64_t n_heard = 0, n_arrived = 0;

    name_number(key, "heard", item->number);
    if (tti_store_add_until(news->store, key, 0, until_ns, &n_heard) != TUTTI_OK ||
        tti_store_add_until(news->store, FOLDER "/arrived", 0, until_ns, &n_arrived) != TUTTI_OK)
        return false;
    *all_out = n_heard >= n_arrived - item->n_left;
    return true;
}

bool tti_news_await_hearing(tti_news *news, const tti_news_item *item, int64_t until_ns)
{
    bool all = false;

    while (have_heard(news, item, until_ns, &all) && !all && tti_now_ns() < until_ns)
        poll(NULL, 0, (int)(LOOK_NS / TTI_MS));
    return all;
}

/* ---- listening ---- */

/* Wait for item n; TUTTI_E_TIMEOUT: it is time to leave. A store that has not answered in time is asked again. */
static tutti_status await_item(tti_news *news, const _Atomic bool *leaving, int64_t n, tutti_bytes *out)
{
    char         key[KEY_MAX];
    tutti_status st;

    name_number(key, "news", n);
    do
        st = tti_store_get_until(news->store, key, TTI_FOREVER, out);
    while (st == TUTTI_E_TIMEOUT && !atomic_load(leaving));
    return st;
}

/* Whoever waits for that does not wait for long: it is not tried again, and what comes next is listened to. */
static tutti_status say_heard(tti_news *news, int64_t n)
{
    char         key[KEY_MAX];
    int64_t      n_heard;
    tutti_status st;

    name_number(key, "heard", n);
    st = tti_store_add_until(news->store, key, 1, tti_now_ns() + ANSWER_NS, &n_heard);
    return st == TUTTI_E_TIMEOUT ? TUTTI_OK : st;
}

tutti_status tti_news_listen(tti_news *news, const _Atomic bool *leaving, void (*hear)(void *ctx, const tutti_bytes *data),
                             void *ctx)
{
    tutti_bytes  item = { 0 };
    tutti_status st = TUTTI_OK;
    int64_t      n;

    tti_store_heed(leaving);
    for (n = 1; st == TUTTI_OK; n++) {
        st = await_item(news, leaving, n, &item);
        if (st != TUTTI_OK)
            break;
        hear(ctx, &item);
        tutti_bytes_free(&item);
        atomic_store_explicit(&news->n_heard, n, memory_order_relaxed);
        st = say_heard(news, n);
    }
    tti_store_heed(NULL);
    return st == TUTTI_E_TIMEOUT ? TUTTI_OK : st;
}
