/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reconfigure.c - a world gets other members, in place.
 *
 * Why     After failures a supervisor decides who goes on, among them processes that have just been
 *         started. It knows them by their handles, and the program keeps its group object.
 * How     A handle names a world object in a process for its life. The members' handles, in the same
 *         order on all of them, make the ranks. They meet in the folder "tutti/reconfigure/<uuid>" of
 *         the store that all joined with:
 *             "member/R"  who takes rank R, written once by compare_set: a uuid is used once
 *             "claimed"   a digest of all handles and who wrote it, which is whoever is first; the others compare, so that
 *                         nobody is waited for
 *         Then a world is founded below that folder, beside the old one. When it is whole, it and the
 *         group change their insides, and it ends with the old ones.
 * True    Until that change nothing of the group is touched: whatever fails leaves it as it was.
 * Fails   A uuid whose members did not all come is used up. A member that ends after it has come is not waited for, where the
 *         store can tell (gathering.h).
 * Source  torch.distributed.ProcessGroup.reconfigure: options, checks and the claim are its. */
#include "regroup/gathering.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "group/recorded.h"
#include "regroup/deed.h"
#include "store/store.h"
#include <tutti/private.h>
#include <tutti/regroup.h>

enum { KEY_MAX = 32 };

static const char *const what = "reconfigure";

/* ---- checks ---- */

/* The members in the order of their ranks. */
typedef struct members {
    const char **handles; /* [n] the caller's texts */
    int          n;
    int          rank;
} members;

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tutti_status check_handles(const tutti_group *world, const tutti_reconfigure_options *opts)
{
    int i;

    if (opts->handles == NULL || opts->n_handles <= 0)
        return tti_fail(TUTTI_E_ARG, "%s: there are no handles (n_handles %d)\n  next: pass those of all members", what, opts->n_handles);
    for (i = 0; i < opts->n_handles; i++)
        if (opts->handles[i] == NULL || !tti_handle_fits(opts->handles[i], world->ops->name))
            return tti_fail(TUTTI_E_ARG,
                            "%s: handle %d, '%.80s', is none of a world with backend '%s'\n"
                            "  next: pass what tutti_get_reconfigure_handle() gave",
                            what, i, opts->handles[i] != NULL ? opts->handles[i] : "(NULL)",
                            world->ops->name);
    return TUTTI_OK;
}

static tutti_status check_once(const char *const *sorted, int n)
{
    int i;

    for (i = 1; i < n; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return tti_fail(TUTTI_E_ARG, "%s: handle '%s' is there twice\n  next: name every member once", what, sorted[i]);
    return TUTTI_OK;
}

/* Copy the handles in the order of ranks, and find this world's. */
static tutti_status order_members(const tutti_group *world, const tutti_reconfigure_options *opts,
                                  members *m)
{
    const size_t n = (size_t)opts->n_handles;
    const size_t bytes = n * sizeof *m->handles;
    tutti_status st;

    m->handles = malloc(bytes);
    m->n = opts->n_handles;
    if (m->handles == NULL)
        return tti_fail(TUTTI_E_NOMEM, "%s: no memory for %d members", what, m->n);
    memcpy(m->handles, opts->handles, bytes);
    qsort(m->handles, n, sizeof *m->handles, compare_texts);
    st = check_once(m->handles, m->n);
    if (st != TUTTI_OK)
        return st;
    if (!opts->as_set)
        memcpy(m->handles, opts->handles, bytes);
    while (m->rank < m->n && strcmp(m->handles[m->rank], world->handle) != 0)
        m->rank++;
    if (m->rank == m->n)
        return tti_fail(TUTTI_E_ARG, "%s: this world's own handle, '%s', is not among the %d\n"
                                     "  next: take its place from tutti_get_reconfigure_handle(), anew on each member",
                        what, world->handle, m->n);
    return TUTTI_OK;
}

/* All members find the same, but for one that has met nobody yet: what its backend can have is not known before. */
static tutti_status check_number(const tutti_group *world, int n)
{
    const tti_backing like = { .like = world };

    if (world->backend == NULL || n == world->size)
        return TUTTI_OK;
    return tti_backing_check_members(what, &like, "pass the handles of all its members, or start the job anew with the ranks that are "
                                                  "wanted");
}

static tutti_status check_world(tutti_group *world)
{
    tutti_group *child;

    if (world->world != world)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "%s: group '%s' is no world\n  next: reconfigure the world, and make the group anew",
                        what, world->name);
    if (tti_group_calls_us(world))
        return tti_fail(TUTTI_E_STATE, "%s: called by a hook, or by a callback of the same world\n"
                                       "  next: call it where no operation waits for the caller",
                        what);
    tti_lock(&world->runner->lock);
    child = world->children;
    tti_unlock(&world->runner->lock);
    if (child != NULL)
        return tti_fail(TUTTI_E_STATE, "%s: there are groups made from the world, such as '%s'\n"
                                       "  next: destroy them first",
                        what, child->name);
    return TUTTI_OK;
}

/* ---- the agreement ---- */

/* Time is up: the first new rank that did not come, and how many. The words stay as they are where all came. */
static tutti_status name_the_missing(const tti_join *join, const members *m, int64_t uuid)
{
    const int64_t until = tti_store_grace(join->store);
    char          words[TTI_GROUP_WORDS_MAX];
    char          key[KEY_MAX];
    int           first = -1;
    int           n = 0;
    int           r;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    for (r = 0; r < m->n; r++) {
        const char *one = key;
        bool        there = true;

        snprintf(key, sizeof key, "member/%d", r);
        if (tti_store_check_until(join->store, &one, 1, until, &there) != TUTTI_OK || there)
            continue;
        n++;
        first = first < 0 ? r : first;
    }
    if (n == 0)
        return tti_fail(TUTTI_E_TIMEOUT, "%s", words);
    return tti_fail(TUTTI_E_TIMEOUT,
                    "%s: %d of %d members did not come within %lld ms; the first is the new rank %d, '%s'\n"
                    "  next: check that all of them call it with uuid %" PRId64 ", and joined with the same store "
                    "and group_name",
                    what, n, m->n, (long long)join->timeout_ms, first, m->handles[first], uuid);
}

/* Write value under key once; *ours_out: nobody else has. */
static tutti_status claim(const tti_join *join, const char *key, const char *value, bool *ours_out)
{
    tutti_bytes  kept = { 0 };
    tutti_status st = tti_store_compare_set_until(join->store, key, "", 0, value, strlen(value),
                                                  join->deadline_ns, &kept);

    if (st == TUTTI_OK)
        *ours_out = kept.size == strlen(value) && memcmp(kept.data, value, kept.size) == 0;
    tutti_bytes_free(&kept);
    return st;
}

static tutti_status take_place(tti_port *port, const tti_join *join, const members *m, int64_t uuid)
{
    char         key[KEY_MAX];
    char         value[TTI_HANDLE_MAX + TTI_NONCE_TEXT + 2];
    char         hex[TTI_NONCE_TEXT + 1];
    bool         ours = false;
    tutti_status st;

    tti_nonce_text(port, hex); /* tells this call from an earlier one */
    snprintf(value, sizeof value, "%s %s", m->handles[m->rank], hex);
    snprintf(key, sizeof key, "member/%d", m->rank);
    st = claim(join, key, value, &ours);
    if (st == TUTTI_OK && !ours)
        st = tti_fail(TUTTI_E_STATE, "%s: uuid %" PRId64 " was used before in this store\n"
                                     "  next: take another one, on all members",
                      what, uuid);
    return st;
}

/* Of all handles and their order. */
static tutti_status digest_members(const members *m, char hex_out[TTI_DIGEST_MAX])
{
    char        *text = malloc((size_t)m->n * TTI_HANDLE_MAX);
    size_t       used = 0;
    tutti_status st;
    int          i;

    if (text == NULL)
        return tti_fail(TUTTI_E_NOMEM, "%s: no memory for %d members", what, m->n);
    for (i = 0; i < m->n; i++)
        used += (size_t)snprintf(text + used, TTI_HANDLE_MAX, "%s\n", m->handles[i]);
    st = tti_digest(text, used, hex_out);
    free(text);
    return st;
}

/* The first one's claim stays. Who finds another one tells those that wait for it. */
static tutti_status compare(tti_port *port, const tti_join *join, const members *m, const char *digest)
{
    char         value[TTI_DIGEST_MAX + TTI_HANDLE_MAX + 1];
    tutti_bytes  kept = { 0 };
    const size_t n = strlen(digest);
    tutti_status st;

    snprintf(value, sizeof value, "%s %s", digest, m->handles[m->rank]);
    st = tti_store_compare_set_until(join->store, "claimed", "", 0, value, strlen(value), join->deadline_ns, &kept);
    if (st == TUTTI_OK && (kept.size <= n || memcmp(kept.data, digest, n) != 0)) {
        st = tti_fail(TUTTI_E_MISMATCH,
                      "%s: '%.*s' was given other handles than '%s', the new rank %d\n"
                      "  next: give all members the same handles in the same order",
                      what, kept.size > n ? (int)(kept.size - n - 1) : 0,
                      kept.size > n ? (const char *)kept.data + n + 1 : "", m->handles[m->rank], m->rank);
        tti_world_tell_why(port, join->store, st);
    }
    tutti_bytes_free(&kept);
    return st;
}

static tutti_status agree(tti_port *port, const tti_join *join, const members *m, int64_t uuid)
{
    char         digest[TTI_DIGEST_MAX];
    tutti_status st = take_place(port, join, m, uuid);

    if (st == TUTTI_OK)
        st = digest_members(m, digest);
    return st == TUTTI_OK ? compare(port, join, m, digest) : st;
}

/* ---- the change ---- */

#define SWAP(type, a, b)                                                                           \
    do {                                                                                           \
        type kept = (a);                                                                           \
        (a) = (b);                                                                                 \
        (b) = kept;                                                                                \
    } while (0)

/* What belongs to one set of members. Lock of world held; nobody uses either. */
static void exchange(tutti_group *world, tutti_group *other)
{
    int i;

    for (i = 0; i < TTI_DEVICES; i++)
        SWAP(tti_route, world->routes[i], other->routes[i]);
    SWAP(tutti_backend *, world->backend, other->backend);
    SWAP(tutti_store *, world->store, other->store);
    SWAP(int *, world->ranks, other->ranks);
    SWAP(int *, world->former, other->former);
    SWAP(tti_local_name *, world->local_names, other->local_names);
    SWAP(tti_straggler *, world->straggler, other->straggler); /* it has a place for each member */
    world->rank = other->rank;
    world->size = other->size;
    world->generation = other->generation;
    world->numbers = world->n_made = 1;
    world->n_splits = 0;
    world->n_meshes = 0;
    world->n_windows = 0;
    tti_queue_init(world);
    tti_recorded_group_begin(world); /* other members: another group, for who reads the recorder */
}

/* fresh is whole: world becomes it, and fresh, with the old insides, ends. */
static void become(tutti_group *world, tutti_group *fresh)
{
    tutti_work *messages;

    tti_queue_close(world, &tti_closing_destroyed);
    messages = tti_messages_take(world);
    tti_windows_end(world);
    tti_group_end_meshes(world);
    tti_lock(&world->runner->lock);
    exchange(world, fresh);
    tti_unlock(&world->runner->lock);
    tti_group_destroy(fresh);
    tti_messages_give(messages);
}

static tutti_status meet(tutti_group *world, const members *m, const tutti_reconfigure_options *opts)
{
    tti_port    *port = world->runner->port;
    tutti_group *fresh = NULL;
    char         prefix[48];
    tti_join     join = { .user_store = true, .rank = m->rank, .world_size = m->n,
                          .timeout_ms = opts->timeout_ms != 0 ? opts->timeout_ms : world->timeout_ms,
                          .generation = world->generation + 1 };
    tti_gathering gathering = { .n = 0 };
    tutti_status st;

    join.deadline_ns = tti_deadline(port, join.timeout_ms, -1);
    snprintf(join.listen_host, sizeof join.listen_host, "%s", world->listen_host);
    snprintf(prefix, sizeof prefix, "tutti/reconfigure/%" PRId64, opts->uuid);
    st = tutti_prefix_store_open(prefix, world->root, &join.store);
    if (st != TUTTI_OK)
        return st;
    st = tti_gathering_begin(&gathering, port, &join, join.store, "0", NULL, NULL, 0); /* handles say nothing of old ranks */
    if (st == TUTTI_OK)
        st = agree(port, &join, m, opts->uuid);
    if (st == TUTTI_OK)
        st = tti_world_found(port, &(tti_backing){ .like = world }, &join, world->name, "0", join.store, &fresh);
    if (st == TUTTI_E_TIMEOUT)
        st = name_the_missing(&join, m, opts->uuid);
    gathering.made = st == TUTTI_OK ? tti_made_by(fresh) : gathering.made;
    tti_gathering_end(&gathering, st);
    if (st == TUTTI_OK)
        become(world, fresh);
    tutti_store_close(join.store);
    return st;
}

/* The same, as the flight recorder has it: in the place that the world had before. */
static tutti_status meet_recorded(tutti_group *world, const members *m, const tutti_reconfigure_options *opts)
{
    const uint64_t record = tti_recorded_regrouping(world, TUTTI_RECORD_RECONFIGURE, -1, m->n);
    tutti_status   st;

    tti_regroup_begins(world, TTI_DEED_RECONFIGURE);
    st = meet(world, m, opts);
    if (st != TUTTI_OK) /* else its old connections are gone */
        tti_regroup_ends(world);
    return tti_recorded_regrouping_end(record, st);
}

static tutti_status read_options(const tutti_reconfigure_options *opts, tutti_reconfigure_options *known)
{
    tutti_status st;

    if (opts == NULL)
        return tti_fail(TUTTI_E_ARG, "%s: opts is NULL\n  next: pass TUTTI_RECONFIGURE_OPTIONS, with handles", what);
    st = tti_options_read(known, sizeof *known, opts, "TUTTI_RECONFIGURE_OPTIONS");
    if (st == TUTTI_OK && known->timeout_ms < TUTTI_INFINITE)
        st = tti_fail(TUTTI_E_ARG, "%s: timeout_ms is %lld\n  next: 0 for the world's, -1 for none", what,
                      (long long)known->timeout_ms);
    return st;
}

tutti_status tutti_reconfigure(tutti_group *group, const tutti_reconfigure_options *opts)
{
    tutti_reconfigure_options known = TUTTI_RECONFIGURE_OPTIONS;
    tutti_group              *world = NULL;
    members                   m = { .n = 0 };
    tutti_status              st;

    st = tti_group_resolve_any(group, what, &world);
    if (st != TUTTI_OK || world == NULL)
        return st;
    st = read_options(opts, &known);
    if (st == TUTTI_OK)
        st = check_world(world);
    if (st == TUTTI_OK)
        st = check_handles(world, &known);
    if (st == TUTTI_OK)
        st = order_members(world, &known, &m);
    if (st == TUTTI_OK)
        st = check_number(world, m.n);
    if (st == TUTTI_OK)
        st = tti_backing_check_env(&(tti_backing){ .like = world }, NULL);
    if (st == TUTTI_OK)
        st = meet_recorded(world, &m, &known);
    free(m.handles);
    return st;
}
