/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mesh_agree.c - all ranks make the same mesh, or none makes any.
 *
 * Why     Ranks that make different meshes would wait for each other in different groups; and one that had
 *         made its groups before the others saw the difference would count groups unlike them ever after.
 * How     Each call has a number, N. Below the world's keys:
 *             "mesh/N/R"    what rank R makes, in words
 *             "mesh/N/all"  the verdict: a status, and its words
 *         Everybody writes the first. Rank 0 reads all of them, in order of rank, and gives the verdict; the
 *         others wait for it. Whoever cannot wait any longer, as its time is up or a rank is gone, gives one
 *         himself. A verdict is written once, by compare_set, and the first stands: so all ranks end the call
 *         with the same status, except where the store itself fails.
 * Refused A call that one rank refuses, for its arguments or for want of memory, has its number, too, or that rank's
 *         next call would meet the others' last one. It gives the verdict, and waits for nobody.
 * Fails   A rank that never comes is named by whoever gives the verdict; should it come later, it finds that.
 * Stores  One that cannot compare_set has no such check: ranks meet in the first group that they make. A
 *         backend that needs no peers has nobody to meet. */
#include "device_mesh/mesh_family.h"
#include "group/asked.h"
#include "group/make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "store/store.h"
#include <tutti/private.h>

#define LOOK_NS (200 * TTI_MS) /* between two looks at whether waiting is of use */
#define TELL_NS TTI_SECOND     /* for telling the others what this rank refuses */

enum { KEY_MAX = 48, NAMED_MAX = 8, WORDS_MAX = TTI_GROUP_WORDS_MAX, VERDICT_MAX = WORDS_MAX + 16 };

typedef struct meeting {
    tutti_group *world;
    tti_port    *port;
    uint32_t     number;
    int64_t      start_ns;
    int64_t      deadline_ns;
} meeting;

/* This rank comes to the next call. */
static meeting begin(tutti_group *world, int64_t timeout_ms)
{
    meeting m = { .world = world, .port = world->runner->port };

    m.start_ns = tti_port_now(m.port);
    m.deadline_ns = tti_deadline(m.port, timeout_ms, world->timeout_ms);
    tti_lock(&world->runner->lock);
    m.number = ++world->n_meshes;
    tti_unlock(&world->runner->lock);
    return m;
}

static bool has_peers(const meeting *m)
{
    return m->world->size > 1 && !m->world->ops->needs_no_peers;
}

static void text_key(const meeting *m, int rank, char key[KEY_MAX])
{
    snprintf(key, KEY_MAX, "mesh/%u/%d", m->number, rank);
}

static void verdict_key(const meeting *m, char key[KEY_MAX])
{
    snprintf(key, KEY_MAX, "mesh/%u/all", m->number);
}

static bool is_there(const meeting *m, const char *key, int64_t deadline_ns)
{
    bool there = false;

    return tti_store_check_until(m->world->store, &key, 1, deadline_ns, &there) == TUTTI_OK && there;
}

/* ---- waiting ---- */

/* Time is up: who has not come. */
static tutti_status name_the_missing(const meeting *m)
{
    const int64_t now_ns = tti_port_now(m->port);
    const int64_t until_ns = tti_store_grace(m->world->store);
    char          key[KEY_MAX];
    char          list[NAMED_MAX * 16] = "";
    size_t        used = 0;
    int           n = 0;
    int           r;

    for (r = 0; r < m->world->size && tti_port_now(m->port) < until_ns; r++) {
        text_key(m, r, key);
        if (is_there(m, key, until_ns))
            continue;
        if (n++ < NAMED_MAX)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", n > 1 ? ", " : "", r);
    }
    return tti_fail(TUTTI_E_TIMEOUT,
                    "device mesh: in call #%u rank%s %s%s did not come, on rank %d after %lld ms (%d of %d here)\n"
                    "  next: make and flatten meshes on every rank of the world, in the same order",
                    m->number, n == 1 ? "" : "s", n > 0 ? list : "of unknown numbers",
                    n > NAMED_MAX ? ", ..." : "", m->world->rank,
                    (long long)((now_ns - m->start_ns) / TTI_MS), m->world->size - n, m->world->size);
}

/* Why waiting for rank is pointless; TUTTI_OK: it may still come. */
static tutti_status look_at(const meeting *m, int rank)
{
    tutti_group *world = m->world;
    char         words[TTI_GROUP_WORDS_MAX];
    tutti_status finished;

    tti_lock(&world->runner->lock);
    finished = world->finished;
    snprintf(words, sizeof words, "%s", world->finished_words);
    tti_unlock(&world->runner->lock);
    if (finished != TUTTI_OK)
        return tti_fail(finished, "device mesh: rank %d has not come, and the world is finished: %s", rank, words);
    if (world->ops->alive == NULL || tti_asked_alive(world->ops, world->backend, rank) == TUTTI_OK)
        return TUTTI_OK;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    return tti_fail(TUTTI_E_PEER, "device mesh: rank %d has not come to call #%u: %s", rank, m->number, words);
}

/* Read key, for which rank is needed. It fails, too, when there is a verdict without it. */
static tutti_status await(const meeting *m, const char *key, int rank, tutti_bytes *value_out)
{
    char         verdict[KEY_MAX];
    tutti_status st;
    bool         last = false;

    verdict_key(m, verdict);
    for (;;) {
        const int64_t slice_ns = tti_port_now(m->port) + LOOK_NS;

        st = tti_store_get_until(m->world->store, key, slice_ns < m->deadline_ns ? slice_ns : m->deadline_ns,
                                 value_out);
        if (st != TUTTI_E_TIMEOUT)
            return st;
        if (last)
            return look_at(m, rank);
        if (tti_port_now(m->port) >= m->deadline_ns || is_there(m, verdict, m->deadline_ns))
            return name_the_missing(m);
        last = look_at(m, rank) != TUTTI_OK; /* it may have come just before it went */
    }
}

/* ---- the verdict ---- */

static tutti_status obey(const tutti_bytes *verdict)
{
    const char *text = verdict->size > 0 ? verdict->data : "";
    char       *words = NULL;
    const long  status = strtol(text, &words, 10);

    if (words == text || status < 0 || status > TUTTI_E_REMOTE)
        return tti_fail(TUTTI_E_STORE, "device mesh: what the ranks agreed on is damaged in the store");
    if (status == TUTTI_OK)
        return TUTTI_OK;
    return tti_fail((tutti_status)status, "%s", words + (*words == ' '));
}

/* Give the verdict st, with this thread's words; obey the one that stands. */
static tutti_status decide(const meeting *m, tutti_status st)
{
    char         key[KEY_MAX];
    char         words[WORDS_MAX] = "";
    char         text[VERDICT_MAX];
    tutti_bytes  kept = { 0 };
    tutti_status wrote;

    if (st != TUTTI_OK)
        snprintf(words, sizeof words, "%s", tutti_last_error());
    snprintf(text, sizeof text, "%d %s", (int)st, words);
    verdict_key(m, key);
    wrote = tti_store_compare_set_until(m->world->store, key, "", 0, text, strlen(text),
                                        st == TUTTI_E_TIMEOUT ? tti_store_grace(m->world->store) : m->deadline_ns,
                                        &kept);
    if (wrote == TUTTI_OK)
        wrote = obey(&kept);
    else if (st != TUTTI_OK)
        wrote = tti_fail(st, "%s", words);
    tutti_bytes_free(&kept);
    return wrote;
}

/* Rank 0: all make the same, or who does not. */
static tutti_status compare(const meeting *m, const char *ours)
{
    const size_t size = strlen(ours);
    char         key[KEY_MAX];
    tutti_status st = TUTTI_OK;
    int          r;

    for (r = 1; r < m->world->size && st == TUTTI_OK; r++) {
        tutti_bytes theirs = { 0 };

        text_key(m, r, key);
        st = await(m, key, r, &theirs);
        if (st == TUTTI_OK && (theirs.size != size || memcmp(theirs.data, ours, size) != 0))
            st = tti_fail(TUTTI_E_MISMATCH,
                          "device mesh: in call #%u rank %d makes %.*s, rank 0 %s\n"
                          "  next: make and flatten meshes in the same order on all ranks",
                          m->number, r, theirs.size < TTI_MESH_TEXT_MAX ? (int)theirs.size : TTI_MESH_TEXT_MAX,
                          theirs.size > 0 ? (const char *)theirs.data : "", ours);
        tutti_bytes_free(&theirs);
    }
    return st;
}

static tutti_status meet(const meeting *m, const char *ours)
{
    tutti_bytes  got = { 0 };
    char         key[KEY_MAX];
    tutti_status st;

    text_key(m, m->world->rank, key);
    st = tti_store_compare_set_until(m->world->store, key, "", 0, ours, strlen(ours), m->deadline_ns, &got);
    tutti_bytes_free(&got);
    if (st != TUTTI_OK)
        return st == TUTTI_E_UNSUPPORTED ? TUTTI_OK : st;
    if (m->world->rank == 0)
        return decide(m, compare(m, ours));
    verdict_key(m, key);
    st = await(m, key, 0, &got);
    st = st == TUTTI_OK ? obey(&got) : decide(m, st);
    tutti_bytes_free(&got);
    return st;
}

tutti_status tti_mesh_agree(tti_mesh_family *family, const char *ours)
{
    const meeting m = begin(family->world, family->timeout_ms);

    return has_peers(&m) ? meet(&m, ours) : TUTTI_OK;
}

tutti_status tti_mesh_refuse(tutti_group *world, tutti_status st)
{
    char    words[TTI_GROUP_WORDS_MAX];
    meeting m;

    if (world == NULL || tti_is_inherited(world->age))
        return st;
    m = begin(world, world->timeout_ms);
    if (!has_peers(&m))
        return st;
    if (m.deadline_ns > m.start_ns + TELL_NS)
        m.deadline_ns = m.start_ns + TELL_NS;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    (void)decide(&m, tti_fail(tti_refused_as(st), "device mesh: in call #%u rank %d cannot make its own: %s", m.number, world->rank, words));
    return tti_fail(st, "%s", words);
}
