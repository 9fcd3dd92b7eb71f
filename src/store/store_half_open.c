/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_half_open.c - connections that have not proved themselves, and which of them goes when there are too many.
 *
 * Why     Whoever reaches the port can open connections and say nothing. If newcomers were refused when there are too many,
 *         a few thousand of those would keep all members of the job out, for as long as they like.
 * How     Newcomers are always taken: an older one goes. Each address has a list of its own, oldest first. Where the
 *         newcomer's address has at least its part of all, its own oldest goes; else the oldest of those whose address
 *         has. So a flood drops its own connections, and those of other addresses keep their time. Members that come from the
 *         flood's address have as long as it takes to open half_open_max connections after theirs, which is more than the
 *         two round trips of a hello; one that is dropped all the same tries again (tcp_pool.c).
 *         Who has said a hello that may be right, and is waited for to prove it, is in a list of its own, and goes only when
 *         those are more than the others: connections that say nothing do not push out somebody who is about to.
 *         Those stand in the order of speaking, so that one of them may stay for up to twice its time, no longer.
 * True    The lists of the silent are in the order of coming, so in that of hello_until_ns. The map has an entry for each address with
 *         a silent connection, and its keys are hashed with a key of its own (base/map.h). */
#include "store/store_half_open.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

struct tti_half_open_share {
    tti_engine_conn *first, *last;
    size_t           n;
};

static tti_half_open_share *share_of(const tti_engine *engine, const char *from)
{
    return tti_map_get_ptr(&engine->shares, from, strlen(from));
}

static tti_half_open_share *make_share(tti_engine *engine, const char *from)
{
    tti_half_open_share *share = calloc(1, sizeof *share);

    if (share == NULL || tti_map_put_ptr(&engine->shares, from, strlen(from), share) != TUTTI_OK) {
        free(share);
        return NULL;
    }
    return share;
}

tutti_status tti_half_open_enter(tti_engine *engine, tti_engine_conn *conn)
{
    tti_half_open_share *share = share_of(engine, conn->from);

    if (share == NULL)
        share = make_share(engine, conn->from);
    if (share == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a connection");
    conn->share = share;
    conn->share_prev = share->last;
    *(share->last != NULL ? &share->last->share_next : &share->first) = conn;
    share->last = conn;
    share->n++;
    conn->prev = engine->last_half_open;
    *(conn->prev != NULL ? &conn->prev->next : &engine->half_open) = conn;
    engine->last_half_open = conn;
    engine->n_half_open++;
    return TUTTI_OK;
}

static void leave_share(tti_engine *engine, tti_engine_conn *conn)
{
    tti_half_open_share *share = conn->share;

    *(conn->share_prev != NULL ? &conn->share_prev->share_next : &share->first) = conn->share_next;
    *(conn->share_next != NULL ? &conn->share_next->share_prev : &share->last) = conn->share_prev;
    conn->share_prev = conn->share_next = NULL;
    conn->share = NULL;
    if (--share->n > 0)
        return;
    tti_map_delete(&engine->shares, conn->from, strlen(conn->from));
    free(share);
}

static void leave_spoken(tti_engine *engine, tti_engine_conn *conn)
{
    *(conn->prev != NULL ? &conn->prev->next : &engine->spoken) = conn->next;
    *(conn->next != NULL ? &conn->next->prev : &engine->last_spoken) = conn->prev;
    conn->prev = conn->next = NULL;
    conn->has_spoken = false;
    engine->n_spoken--;
}

void tti_half_open_leave(tti_engine *engine, tti_engine_conn *conn)
{
    if (conn->has_spoken)
        leave_spoken(engine, conn);
    if (conn->share == NULL)
        return;
    leave_share(engine, conn);
    *(conn->prev != NULL ? &conn->prev->next : &engine->half_open) = conn->next;
    *(conn->next != NULL ? &conn->next->prev : &engine->last_half_open) = conn->prev;
    conn->prev = conn->next = NULL;
    engine->n_half_open--;
}

void tti_half_open_spoke(tti_engine *engine, tti_engine_conn *conn)
{
    if (conn->share == NULL)
        return;
    tti_half_open_leave(engine, conn);
    conn->has_spoken = true;
    conn->prev = engine->last_spoken;
    *(conn->prev != NULL ? &conn->prev->next : &engine->spoken) = conn;
    engine->last_spoken = conn;
    engine->n_spoken++;
}

static bool has_its_part(const tti_engine *engine, const tti_half_open_share *share)
{
    return share != NULL && share->n * engine->shares.count >= engine->n_half_open;
}

tti_engine_conn *tti_half_open_victim(const tti_engine *engine, const char *from)
{
    const tti_half_open_share *share = share_of(engine, from);
    tti_engine_conn           *conn = engine->half_open;

    if (engine->n_spoken > engine->n_half_open)
        return engine->spoken;
    if (has_its_part(engine, share))
        return share->first;
    while (conn != NULL && !has_its_part(engine, conn->share)) /* some address has, and then this is its oldest */
        conn = conn->next;
    return conn;
}

void tti_half_open_release(tti_engine *engine)
{
    tti_map_release(&engine->shares);
}
