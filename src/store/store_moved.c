/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_moved.c - a store whose world has gone on with another one says where that is.
 *
 * Why     A store does not answer, as the process that serves it is stopped: those that use it go on with a fresh one, and lead their
 *         handles there (tti_tcp_store_redirect()). Then the first one goes on, too. Whoever is new comes to that one, and
 *         would wait there for members that look there no more.
 * How     Whoever serves the fresh one has a thread that connects to the old one, and waits until it answers. Then it leaves
 *         "HOST PORT NAME" under KEY, as members see it: below the views that they use. Who comes looks at that key first, and
 *         now and then while it waits, and goes there. A second fresh store tells the one before it, and the one that all were
 *         given at first, which says the latest then.
 *         A new world that begins in the old one has that key deleted (rendezvous/generation.c).
 * True    The thread belongs to the store that serves: it ends when that is closed. What it reads was written before it began,
 *         but for `over`, which the closing thread writes.
 *         A handle is led elsewhere only when somebody is there who knows the same secret.
 * Fails   One that refuses connections is dead, and nobody comes to it: it is left alone, after TRIES. One that says nothing, or fails
 *         otherwise, as this process is out of descriptors, or has no way there just now, is tried for as long as the fresh one
 *         is served. */
#include "store/store_moved.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/doubt.h"
#include "base/thread.h"
#include "store/store_front.h"
#include "store/tcp_call.h"
#include "store/tcp_store.h"
#include "wire/addr.h"

#define KEY       "tutti/moved"
#define TRY_NS    (5 * TTI_SECOND) /* for an answer; then the other one has its turn */
#define AGAIN_NS  (200 * TTI_MS)   /* between tries of one that refuses, or says nothing */
#define ELSE_NS   TTI_SECOND       /* and of one that fails otherwise */
#define REACH_NS  (10 * TTI_SECOND) /* for one that was named */

enum { TRIES = 3, TOLD_MAX = 2, NAME_MAX_BYTES = 64, TEXT_MAX = TTI_HOST_MAX + NAME_MAX_BYTES + 16, HOPS_MAX = 16 };

/* A store that is to say it. */
typedef struct listener {
    tti_store_place at;
    int             tries; /* that it may still refuse */
} listener;

struct tti_store_teller {
    tti_port    *port;
    char         key[TUTTI_STORE_KEY_MAX + 1]; /* below all views */
    char         text[TEXT_MAX];
    listener     to[TOLD_MAX];
    int          n;
    tti_event    changed; /* over */
    _Atomic bool over;
    tti_thread   thread;
};

/* ---- telling ---- */

static bool is_over(void *context)
{
    return atomic_load_explicit(&((tti_store_teller *)context)->over, memory_order_acquire);
}

static tutti_status tell(const tti_store_teller *t, const tti_store_place *at)
{
    const int64_t until_ns = tti_port_now(t->port) + TRY_NS;
    tutti_store  *store = NULL;
    tutti_status  st = tti_tcp_store_reach(t->port, at->host, at->tcp_port, TUTTI_STORE_TIMEOUT_MS, until_ns, &store);

    if (st == TUTTI_OK)
        st = tti_store_set_until(store, t->key, t->text, strlen(t->text), until_ns);
    tutti_store_close(store);
    return st;
}

/* Whether it need not be tried again; else *pause_ns_out, when. */
static bool is_done(tti_store_teller *t, listener *to, int64_t *pause_ns_out)
{
    const tutti_status st = tell(t, &to->at);
    const bool         refuses = st != TUTTI_OK && st != TUTTI_E_TIMEOUT && !is_over(t) &&
                         tti_is_refused(t->port, to->at.host, to->at.tcp_port, tti_port_now(t->port) + TRY_NS);

    *pause_ns_out = refuses || st == TUTTI_E_TIMEOUT ? AGAIN_NS : ELSE_NS;
    if (st == TUTTI_OK)
        tti_log(TTI_LOG_INFO, "the store at %s port %u answers again: it sends whoever comes to it to %s", to->at.host, to->at.tcp_port,
                t->text);
    return st == TUTTI_OK || (refuses && --to->tries == 0);
}

static void tell_all(void *arg)
{
    tti_store_teller *t = arg;
    const tti_doubt   doubt = { .is_vain = is_over, .context = t };
    int64_t           pause_ns;
    int               i = 0;

    tti_doubt_waits(&doubt);
    while (t->n > 0 && !is_over(t)) {
        const uint32_t seen = tti_event_now(&t->changed);

        i = (i + 1) % t->n;
        if (is_done(t, &t->to[i], &pause_ns))
            t->to[i] = t->to[--t->n];
        else if (!is_over(t))
            tti_event_wait(t->port, &t->changed, seen, tti_port_now(t->port) + pause_ns);
    }
    tti_doubt_waits(NULL);
}

static bool is_same(const tti_store_place *a, const tti_store_place *b)
{
    return a->tcp_port == b->tcp_port && strcmp(a->host, b->host) == 0;
}

/* KEY as the store below all views has it; NULL: that is no tcp store. */
static tutti_store *find_keeper(tutti_store *store, char key[TUTTI_STORE_KEY_MAX + 1])
{
    snprintf(key, TUTTI_STORE_KEY_MAX + 1, KEY);
    while (tti_prefix_store_key(store, key, key, TUTTI_STORE_KEY_MAX + 1, &store))
        continue;
    return tti_tcp_store_pool(store) != NULL ? store : NULL;
}

static void listen_at(tti_store_teller *t, const tti_store_place *at)
{
    int i;

    for (i = 0; i < t->n; i++)
        if (is_same(&t->to[i].at, at))
            return;
    t->to[t->n++] = (listener){ .at = *at, .tries = TRIES };
}

static tutti_status begin(tti_store_teller *t, tutti_store *served, tutti_store *root, const char *host)
{
    tutti_store    *keeper = find_keeper(root, t->key);
    tti_store_place now, first;
    char            name[NAME_MAX_BYTES] = "?";

    if (keeper == NULL || !tti_tcp_store_places(keeper, &now, &first))
        return tti_fail(TUTTI_E_UNSUPPORTED, "only tcp stores are told");
    (void)gethostname(name, sizeof name - 1);
    snprintf(t->text, sizeof t->text, "%s %d %s", host, tutti_tcp_store_port(served), name);
    t->port = tti_store_port(served);
    listen_at(t, &now);
    listen_at(t, &first);
    return tti_thread_start(&t->thread, "tutti-moved", tell_all, t);
}

void tti_store_tell_moved(tutti_store *served, tutti_store *root, const char *host)
{
    tti_store_teller *t = calloc(1, sizeof *t);
    tutti_status      st = t != NULL ? begin(t, served, root, host) : tti_fail(TUTTI_E_NOMEM, "no memory to tell of a store");

    if (st == TUTTI_OK) {
        tti_tcp_store_has_teller(served, t);
        return;
    }
    tti_log(TTI_LOG_WARN, "whoever comes to the store that was given up is not sent to the one at %s port %d: %s", host,
            tutti_tcp_store_port(served), tutti_last_error());
    free(t);
}

void tti_store_teller_end(tti_store_teller *t)
{
    if (t == NULL)
        return;
    atomic_store_explicit(&t->over, true, memory_order_release);
    tti_event_signal(t->port, &t->changed);
    tti_thread_join(&t->thread);
    free(t);
}

/* ---- following ---- */

/* What the store says. False: nothing, or what cannot be read, which is nobody's of ours. */
static tutti_status read_moved(tutti_store *store, int64_t deadline_ns, tti_store_place *to_out, char name_out[NAME_MAX_BYTES],
                               bool *there_out)
{
    const char  *one = KEY;
    tutti_bytes  text = { 0 };
    unsigned     tcp_port = 0;
    tutti_status st = tti_store_check_until(store, &one, 1, deadline_ns, there_out);

    if (st != TUTTI_OK || !*there_out)
        return st;
    st = tti_store_get_until(store, KEY, deadline_ns, &text);
    *there_out = st == TUTTI_OK && sscanf(text.data, "%255s %u %63s", to_out->host, &tcp_port, name_out) == 3 && tcp_port > 0 &&
                 tcp_port <= UINT16_MAX;
    to_out->tcp_port = (uint16_t)tcp_port;
    tutti_bytes_free(&text);
    return st;
}

/* Somebody who knows the secret is there. */
static tutti_status check_reach(tti_port *port, const tti_store_place *from, const tti_store_place *to, const char *name, int64_t deadline_ns)
{
    const int64_t most_ns = tti_port_now(port) + REACH_NS;
    tutti_store  *there = NULL;
    char          why[TTI_HOST_MAX + 256];
    tutti_status  st = tti_tcp_store_reach(port, to->host, to->tcp_port, TUTTI_STORE_TIMEOUT_MS,
                                           most_ns < deadline_ns ? most_ns : deadline_ns, &there);

    tutti_store_close(there);
    if (st == TUTTI_OK)
        return st;
    snprintf(why, sizeof why, "%.*s", (int)strcspn(tutti_last_error(), "\n"), tutti_last_error());
    return tti_fail(TUTTI_E_NETWORK,
                    "the store at %s port %u says that its world has gone on with one at %s port %u of host '%s', which cannot be reached: "
                    "%s\n  next: see whether a member of that world is left, and whether that address is reached from here",
                    from->host, from->tcp_port, to->host, to->tcp_port, name, why);
}

void tti_store_forget_moved(tutti_store *store, int64_t deadline_ns)
{
    char key[TUTTI_STORE_KEY_MAX + 1];
    bool deleted;

    if (find_keeper(store, key) != NULL)
        (void)tti_store_delete_key_until(store, KEY, deadline_ns, &deleted); /* what is lost with the store the next call tells */
}

tutti_status tti_store_follow(tutti_store *store, int64_t deadline_ns, bool *moved_out)
{
    char            key[TUTTI_STORE_KEY_MAX + 1], name[NAME_MAX_BYTES];
    tutti_store    *keeper = find_keeper(store, key);
    tti_store_place at, to, first;
    bool            there = false;
    tutti_status    st = TUTTI_OK;
    int             hops;

    *moved_out = false;
    for (hops = 0; hops < HOPS_MAX && keeper != NULL && tti_tcp_store_places(keeper, &at, &first); hops++) {
        st = read_moved(store, deadline_ns, &to, name, &there);
        if (st != TUTTI_OK || !there || is_same(&to, &at))
            return st;
        st = check_reach(tti_store_port(store), &at, &to, name, deadline_ns);
        if (st != TUTTI_OK)
            return st;
        tti_log(TTI_LOG_INFO, "the store at %s port %u says that its world has gone on with the one at %s port %u of host '%s'", at.host,
                at.tcp_port, to.host, to.tcp_port, name);
        (void)tti_tcp_store_redirect(keeper, to.host, to.tcp_port);
        *moved_out = true;
    }
    return st;
}
