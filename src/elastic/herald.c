/* SPDX-License-Identifier: BSD-3-Clause
 *
 * herald.c - launchers tell their ranks, and each other, who has ended.
 *
 * Why     A launcher knows within a millisecond how a process of its host has ended. Ranks that wait for that one, and have
 *         never heard of it, would wait until their time is up; and those on other hosts, who see connections close, cannot
 *         tell the rank that failed from those that were ended because of it.
 * How     The supervisor says what happens. Each ending goes onto the bulletin of this host (watch/bulletin.h) at once.
 *         With several hosts two threads share a handle of the job's store, and a list in it (news.c):
 *
 *           speaker    adds endings, as many as have gathered
 *           listener   puts up what is added, by other launchers and this one
 *
 *         Before a launcher ends its ranks it tells why, and waits until that was heard by all that listen, HEARD_NS at the
 *         most: so whoever sees one of those ranks vanish can look up the reason.
 * Gone    A launcher that is killed tells nobody, and the kernel ends its ranks. But its connections close first, before the
 *         kernel tells them. So on the host of the store the server says at once who waits for "life/k" no more, which nobody
 *         sets, and for which the launcher of host k waits until its orderly end; and who loses the store has lost the launcher
 *         that serves it. Where ranks of that host had not ended the launcher is then told of as the first reason, by the name
 *         that it gave in its first news. A net that cuts that connection off looks the same, so the words say that it may
 *         be out of reach.
 * True    Reasons are put up in the order of news, so that all hosts take the same one for the first; a reason of this
 *         host's that could not be told is put up here, when that is known. A launcher that is gone is put up at once where it is
 *         missed: its ranks are about to vanish. Where ranks are kept nothing is put up, as they go on: their launcher says that
 *         it is gone, and again when the job has ended.
 *         The bulletin has one writer at a time: `lock` is held for each posting. The supervisor's thread never waits for
 *         the store: it takes the lock, which nobody holds for longer than a copy.
 * Fails   No store yet: the speaker goes on trying. One that is slow, as its launcher is stopped: the speaker tells again, until
 *         this launcher is to end, and the listener waits on. A store that was lost does not come back, its launcher has ended:
 *         then this host's ranks are told of this host. Of a launcher that was killed the others wait HEARD_NS in vain, once. */
#include "elastic/herald.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <tutti/private.h>
#include <tutti/store.h>
#include "base/port.h"
#include "base/thread.h"
#include "elastic/news.h"
#include "elastic/settings.h"
#include "store/store.h"
#include "store/store_server.h"

#define HEARD_NS   (300 * TTI_MS)
#define CONNECT_MS 500            /* one try */
#define ANSWER_NS  (5 * TTI_SECOND) /* one try */
#define LIFE       "tutti/launcher/life/"

enum { BATCH_MAX = 64, KEY_MAX = 48 };

struct tti_herald {
    tti_herald_config config;
    char              host[TTI_ENDING_HOST_MAX];
    int               fd;   /* of the bulletin */
    int               bell; /* -1: one host */
    tti_bulletin     *bulletin;
    tti_news          news; /* the speaker's, who shares it with the listener; without a store until that is found */
    tti_thread        speaker, listener, life;
    bool              listens; /* the speaker's, and after its end the supervisor's: there is a listener */

    tti_mutex  lock;    /* guards what follows, and who posts */
    tti_event  changed; /* queue, ending, leaving, deadline_ns */
    tti_ending *gone;   /* [nnodes] with keep: launchers that are gone, as they were missed */
    int        n_gone;
    tti_ending *cards;  /* [nnodes] launchers that have told who they are; version 0: not yet */
    tti_ending *queue;  /* [room] to be told elsewhere */
    int        n_queued, room;
    bool       ending;      /* the supervisor wants nothing any more */
    int64_t    deadline_ns; /* of telling, then */

    _Atomic bool leaving; /* the listener is to end */
    _Atomic bool lost;    /* there is no store any more */
    _Atomic bool told;    /* the reason is known, or cannot be told */
};

/* ---- what was told ---- */

static void post(tti_herald *h, const tti_ending *ending)
{
    tti_lock(&h->lock);
    tti_bulletin_post(h->bulletin, ending);
    tti_unlock(&h->lock);
}

static void ring(tti_herald *h)
{
    const uint64_t one = 1;
    ssize_t        done;

    atomic_store(&h->told, true);
    if (h->bell < 0)
        return;
    done = write(h->bell, &one, sizeof one);
    (void)done; /* it cannot be full */
}

/* To other hosts, too; and there, and here, in their order. */
static void enqueue(tti_herald *h, const tti_ending *ending)
{
    tti_lock(&h->lock);
    if (h->n_queued < h->room) /* two for each process: that it has ended, and that it was the first; and launchers */
        h->queue[h->n_queued++] = *ending;
    tti_unlock(&h->lock);
    tti_event_signal(tti_port_system(), &h->changed);
}

static tti_ending ending_of(const tti_herald *h, int local)
{
    tti_ending ending = { .version = TTI_ENDING_VERSION, .node = h->config.node, .local = local };

    ending.rank = local >= 0 && local < h->config.nproc ? h->config.node * h->config.nproc + local : -1;
    memcpy(ending.host, h->host, sizeof ending.host);
    return ending;
}

void tti_herald_tell(tti_herald *h, int local, const tti_rank_end *end, int n_coming)
{
    tti_ending ending;

    if (h == NULL)
        return;
    ending = ending_of(h, local);
    ending.pid = end->pid;
    ending.exit_code = end->exit_code;
    ending.signal = end->signal;
    ending.coming = n_coming + 1;
    ending.flags = end->stopped ? TTI_ENDING_ASKED : 0;
    post(h, &ending);
    if (h->config.nnodes > 1)
        enqueue(h, &ending);
}

void tti_herald_tell_why(tti_herald *h, int local, int signal)
{
    tti_ending ending;

    if (h == NULL)
        return;
    ending = ending_of(h, local);
    if (local < 0) {
        ending.flags = TTI_ENDING_LAUNCHER;
        ending.pid = getpid();
        ending.signal = signal;
    } else if (!tti_bulletin_find_at(h->bulletin, ending.node, local, &ending)) {
        return; /* more have ended than are told */
    }
    ending.flags |= TTI_ENDING_FIRST;
    if (h->config.nnodes > 1 && !atomic_load(&h->lost)) {
        enqueue(h, &ending);
        return;
    }
    post(h, &ending);
    ring(h);
}

bool tti_herald_is_told(const tti_herald *h)
{
    return h == NULL || atomic_load(&h->told);
}

int tti_herald_bell(const tti_herald *h)
{
    return h == NULL ? -1 : h->bell;
}

int tti_herald_fd(const tti_herald *h)
{
    return h == NULL ? -1 : h->fd;
}

bool tti_herald_first_elsewhere(const tti_herald *h, tti_ending *out)
{
    return h != NULL && tti_bulletin_first(h->bulletin, out) && out->node != h->config.node;
}

/* ---- launchers that are gone ---- */

static bool has_ended(const tti_herald *h, int node)
{
    tti_ending ending;
    int        i;

    for (i = 0; i < h->config.nproc; i++)
        if (!tti_bulletin_find_at(h->bulletin, node, i, &ending))
            return false;
    return true;
}

static void note_card(tti_herald *h, const tti_ending *card)
{
    if (card->node < 0 || card->node >= h->config.nnodes)
        return;
    tti_lock(&h->lock);
    h->cards[card->node] = *card;
    tti_unlock(&h->lock);
}

/* Whose launcher is gone is gone with it: who waits for one of them to join looks for it by its number. */
static void post_gone(tti_herald *h, const tti_ending *gone)
{
    tti_ending ending = *gone, known;
    int        i;

    post(h, gone);
    ending.flags = TTI_ENDING_ASKED;
    ending.pid = 0;
    for (i = 0; i < h->config.nproc; i++) {
        if (tti_bulletin_find_at(h->bulletin, gone->node, i, &known))
            continue;
        ending.local = i;
        ending.rank = gone->node * h->config.nproc + i;
        post(h, &ending);
    }
}

/* Who reads what this launcher says learns where the other ranks have gone: at once, and when the job has ended. */
static void note_gone(tti_herald *h, const tti_ending *gone)
{
    char words[TTI_ENDING_TEXT_MAX];
    bool known = false;
    int  i;

    tti_lock(&h->lock);
    for (i = 0; i < h->n_gone; i++)
        known = known || h->gone[i].node == gone->node;
    known = known || h->n_gone == h->config.nnodes;
    if (!known)
        h->gone[h->n_gone++] = *gone;
    tti_unlock(&h->lock);
    if (!known)
        tti_log(TTI_LOG_WARN, "%s; the ranks here are kept", tti_ending_words(gone, words));
}

/* Kept ranks go on without those of that host, and may lose others for other reasons: it is no reason for them. */
static void take_gone(tti_herald *h, const tti_ending *gone)
{
    if (h->config.keep)
        note_gone(h, gone);
    if ((gone->flags & TTI_ENDING_FIRST) != 0)
        post_gone(h, gone);
}

/* False: nothing is to be told. */
static bool put_up_gone(tti_herald *h, int node, tti_ending *gone_out)
{
    if (has_ended(h, node))
        return false;
    tti_lock(&h->lock);
    *gone_out = h->cards[node];
    tti_unlock(&h->lock);
    if (gone_out->version != TTI_ENDING_VERSION)
        return false;
    gone_out->flags = TTI_ENDING_LAUNCHER | (h->config.keep ? 0 : TTI_ENDING_FIRST);
    take_gone(h, gone_out);
    return true;
}

/* On the thread of the store's server, for as long as tti_store_server_tell_missed() says. */
static void on_missed(void *context, const void *key, size_t bytes)
{
    static const char prefix[] = LIFE;
    const size_t      n = sizeof prefix - 1;
    tti_herald       *h = context;
    char              number[16];
    tti_ending        gone;
    int               node;

    if (bytes <= n || bytes >= n + sizeof number || memcmp(key, prefix, n) != 0)
        return;
    memcpy(number, (const char *)key + n, bytes - n);
    number[bytes - n] = '\0';
    node = atoi(number);
    if (node > 0 && node < h->config.nnodes && put_up_gone(h, node, &gone))
        enqueue(h, &gone);
}

int tti_herald_gone(tti_herald *h, tti_ending **list_out)
{
    int n = 0;

    *list_out = NULL;
    if (h == NULL)
        return 0;
    tti_lock(&h->lock);
    if (h->n_gone > 0)
        *list_out = malloc((size_t)h->n_gone * sizeof **list_out);
    if (*list_out != NULL) {
        n = h->n_gone;
        memcpy(*list_out, h->gone, (size_t)n * sizeof **list_out);
    }
    tti_unlock(&h->lock);
    return n;
}

/* ---- the speaker ---- */

static int64_t soon(void)
{
    return tti_now_ns() + ANSWER_NS;
}

/* What is to be told next, waiting for it. 0: nothing any more. */
static int take_batch(tti_herald *h, tti_ending *batch)
{
    for (;;) {
        const uint32_t seen = tti_event_now(&h->changed);
        int            n;
        bool           over;

        tti_lock(&h->lock);
        n = h->n_queued < BATCH_MAX ? h->n_queued : BATCH_MAX;
        over = h->ending;
        memcpy(batch, h->queue, (size_t)n * sizeof *batch);
        h->n_queued -= n;
        memmove(h->queue, h->queue + n, (size_t)h->n_queued * sizeof *h->queue);
        tti_unlock(&h->lock);
        if (n > 0 || over)
            return n;
        tti_event_wait(tti_port_system(), &h->changed, seen, TTI_FOREVER);
    }
}

/* Whether the time for telling is over. */
static bool is_late(tti_herald *h)
{
    bool late;

    tti_lock(&h->lock);
    late = h->ending && tti_now_ns() >= h->deadline_ns;
    tti_unlock(&h->lock);
    return late;
}

/* Try until it is there; false: it is too late, or we may not speak to it, which this host's ranks will say. */
static bool find_store(tti_herald *h)
{
    tutti_tcp_store_options o = TUTTI_TCP_STORE_OPTIONS;
    tti_port               *port = tti_port_system();
    tutti_status            st;

    o.host = h->config.store_host;
    o.port = h->config.store_port;
    o.secret_file = h->config.secret_file;
    o.timeout_ms = CONNECT_MS;
    for (;;) {
        const uint32_t seen = tti_event_now(&h->changed);

        st = tutti_tcp_store_open(&o, &h->news.store);
        if (st == TUTTI_OK || st == TUTTI_E_AUTH || is_late(h))
            return st == TUTTI_OK;
        tti_event_wait(port, &h->changed, seen, tti_now_ns() + CONNECT_MS * TTI_MS / 2);
    }
}

static bool has_reason(const tti_ending *batch, int n)
{
    int i;

    for (i = 0; i < n && (batch[i].flags & TTI_ENDING_FIRST) == 0; i++)
        continue;
    return i < n;
}

static void await_hearing(tti_herald *h, const tti_news_item *item)
{
    (void)tti_news_await_hearing(&h->news, item, tti_now_ns() + HEARD_NS);
}

/* A store that does not answer may do so later: nothing else is to be told meanwhile. */
static tutti_status tell_item(tti_herald *h, tti_news_item *item)
{
    tutti_status st;

    do
        st = tti_news_tell(&h->news, item, soon());
    while (st == TUTTI_E_TIMEOUT && !is_late(h));
    return st;
}

static tutti_status tell_others(tti_herald *h, const tti_ending *batch, int n, tti_news_item *item_out)
{
    tti_news_item      item = { .data = batch, .size = (size_t)n * sizeof *batch };
    const tutti_status st = tell_item(h, &item);

    *item_out = item;
    return st;
}

/* There is nobody to tell: what would have come back from there is put up here. */
static void keep_to_ourselves(tti_herald *h, const tti_ending *batch, int n)
{
    int i;

    atomic_store(&h->lost, true);
    for (i = 0; i < n; i++)
        if (!tti_ending_is_gone(&batch[i])) /* which was put up where it was missed */
            post(h, &batch[i]);
}

static void listen_to_others(void *arg);

/* Wait in vain: see "Gone" above. The heed ends it in order. */
static void live(void *arg)
{
    tti_herald *h = arg;
    tutti_bytes never = { 0 };
    char        key[KEY_MAX];

    snprintf(key, sizeof key, LIFE "%d", h->config.node);
    tti_store_heed(&h->leaving);
    if (tti_store_get_until(h->news.store, key, TTI_FOREVER, &never) == TUTTI_OK)
        tutti_bytes_free(&never);
}

/* Others know this launcher, and then miss it. The one that serves the store is missed with that. */
static void begin_living(tti_herald *h)
{
    tti_ending    card = ending_of(h, -1);
    tti_news_item item;

    card.flags = TTI_ENDING_LAUNCHER | TTI_ENDING_HERE;
    card.pid = getpid();
    if (tell_others(h, &card, 1, &item) == TUTTI_OK && h->config.node != 0)
        (void)tti_thread_start(&h->life, "tutti-life", live, h);
}

/* Who is counted twice, because an answer was late, is waited for in vain: others lose HEARD_NS, and no news. */
static bool arrive(tti_herald *h)
{
    tutti_status st;

    do
        st = tti_news_arrive(&h->news, soon());
    while (st == TUTTI_E_TIMEOUT && !is_late(h));
    return st == TUTTI_OK;
}

static void begin_listening(tti_herald *h)
{
    const bool arrived = arrive(h);

    h->listens = arrived && tti_thread_start(&h->listener, "tutti-listen", listen_to_others, h) == TUTTI_OK;
    if (!h->listens)
        tti_log(TTI_LOG_WARN, "this host's ranks are not told of ranks that end on others: %s", tutti_last_error());
    if (arrived && !h->listens)
        tti_news_leave(&h->news, soon());
    begin_living(h);
}

/* Those that listen no more are not waited for. Where the store is served they are missed. */
static void forget_gone(tti_herald *h, const tti_ending *batch, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if ((batch[i].flags & TTI_ENDING_LAUNCHER) != 0 && batch[i].node != h->config.node)
            tti_news_leave(&h->news, soon());
}

static tti_settings settings_of(const tti_herald *h)
{
    return (tti_settings){ .node = h->config.node, .host = h->host, .run_id = h->config.run_id, .keep = h->config.keep,
                           .nproc = h->config.nproc, .nnodes = h->config.nnodes };
}

static void warn_of_settings(const char *words)
{
    tti_log(TTI_LOG_WARN, "the launchers of this job were given different options: %s", words);
}

/* They are this host's: whoever serves the store may be the odd one, and other hosts may have come before it. These do not look
 * any more, and are told. */
static void compare_settings(tti_herald *h)
{
    const tti_settings own = settings_of(h);
    char               words[TTI_SETTINGS_WORDS_MAX], text[TTI_SETTINGS_TEXT_MAX];
    tti_news_item      item = { .data = text };

    if (!tti_settings_differ(h->news.store, &own, soon(), words))
        return;
    warn_of_settings(words);
    item.size = tti_settings_write(&own, text);
    (void)tell_item(h, &item); /* of a store that is lost the listener tells */
}

static void hear_settings(tti_herald *h, const tutti_bytes *news)
{
    const tti_settings own = settings_of(h);
    char               words[TTI_SETTINGS_WORDS_MAX];

    if (tti_settings_heard(&own, news->data, news->size, words))
        warn_of_settings(words);
}

static void speak(void *arg)
{
    tti_herald   *h = arg;
    tti_ending    batch[BATCH_MAX];
    tti_news_item item = { .number = 0 };
    bool          found = find_store(h);
    int           n;

    if (found) {
        begin_listening(h);
        compare_settings(h);
    }
    while ((n = take_batch(h, batch)) > 0) {
        if (found && !atomic_load(&h->lost))
            forget_gone(h, batch, n);
        if (!found || atomic_load(&h->lost) || tell_others(h, batch, n, &item) != TUTTI_OK)
            keep_to_ourselves(h, batch, n);
        else if (has_reason(batch, n))
            await_hearing(h, &item);
        if (has_reason(batch, n))
            ring(h);
    }
    if (found && !atomic_load(&h->lost) && item.number > 0)
        await_hearing(h, &item);
}

/* ---- the listener ---- */

/* What another launcher has told, or this one: reasons in the order of news. */
static void put_up(void *ctx, const tutti_bytes *news)
{
    tti_ending ending;
    size_t     at;

    hear_settings(ctx, news);
    for (at = 0; at + sizeof ending <= news->size; at += sizeof ending) {
        memcpy(&ending, (const char *)news->data + at, sizeof ending);
        if (ending.version != TTI_ENDING_VERSION)
            continue;
        if ((ending.flags & TTI_ENDING_HERE) != 0)
            note_card(ctx, &ending);
        else if (tti_ending_is_gone(&ending))
            take_gone(ctx, &ending);
        else
            post(ctx, &ending);
    }
}

static void listen_to_others(void *arg)
{
    tti_herald        *h = arg;
    tti_ending         gone;
    const tutti_status st = tti_news_listen(&h->news, &h->leaving, put_up, h);

    if (st == TUTTI_OK)
        return;
    atomic_store(&h->lost, true);
    if (h->config.node != 0)
        (void)put_up_gone(h, 0, &gone);
    if (st != TUTTI_E_NETWORK) /* which is how a job ends on whoever is not the last */
        tti_log(TTI_LOG_WARN, "this host's ranks are not told any more of ranks that end on others: %s", tutti_last_error());
}

/* ---- beginning and ending ---- */

static tutti_status begin_speaking(tti_herald *h)
{
    h->room = 2 * (h->config.nproc + h->config.spares) + h->config.nnodes;
    h->queue = calloc((size_t)h->room, sizeof *h->queue);
    h->cards = calloc((size_t)h->config.nnodes, sizeof *h->cards);
    h->gone = calloc((size_t)h->config.nnodes, sizeof *h->gone);
    h->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->queue == NULL || h->cards == NULL || h->gone == NULL || h->bell < 0)
        return tti_fail(TUTTI_E_NOMEM, "no memory or descriptor to tell other hosts of %d ranks", h->config.nproc);
    if (h->config.server != NULL)
        tti_store_server_tell_missed(h->config.server, on_missed, h);
    return tti_thread_start(&h->speaker, "tutti-herald", speak, h);
}

tutti_status tti_herald_begin(const tti_herald_config *config, tti_herald **herald_out)
{
    const int    n_here = config->nproc + config->spares;
    tti_herald  *h = calloc(1, sizeof *h);
    tutti_status st;

    if (h == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to tell of the ends of ranks");
    h->config = *config;
    h->fd = h->bell = -1;
    tti_mutex_init(&h->lock);
    if (gethostname(h->host, sizeof h->host - 1) != 0)
        snprintf(h->host, sizeof h->host, "?");
    st = tti_bulletin_make(config->nnodes * config->nproc, config->nnodes * (n_here + 1), &h->bulletin, &h->fd);
    if (st == TUTTI_OK && config->nnodes > 1)
        st = begin_speaking(h);
    if (st == TUTTI_OK)
        *herald_out = h;
    else
        tti_herald_end(h);
    return st;
}

void tti_herald_finish(tti_herald *h, int64_t deadline_ns)
{
    if (h == NULL)
        return;
    tti_lock(&h->lock);
    h->ending = true;
    h->deadline_ns = deadline_ns;
    tti_unlock(&h->lock);
    tti_event_signal(tti_port_system(), &h->changed);
    tti_thread_join(&h->speaker);
    atomic_store(&h->leaving, true);
    tti_thread_join(&h->listener); /* which the speaker has started, if anybody */
    tti_thread_join(&h->life);
    if (h->listens && !atomic_load(&h->lost))
        tti_news_leave(&h->news, tti_now_ns() + HEARD_NS);
    h->listens = false;
}

void tti_herald_end(tti_herald *h)
{
    if (h == NULL)
        return;
    if (h->config.server != NULL)
        tti_store_server_tell_missed(h->config.server, NULL, NULL);
    tti_herald_finish(h, 0);
    tutti_store_close(h->news.store);
    tti_bulletin_close(h->bulletin);
    if (h->fd >= 0)
        close(h->fd);
    if (h->bell >= 0)
        close(h->bell);
    tti_mutex_release(&h->lock);
    free(h->queue);
    free(h->cards);
    free(h->gone);
    free(h);
}
