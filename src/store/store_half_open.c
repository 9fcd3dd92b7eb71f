/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_half_open.c - connections that have not proved themselves, and which of them goes when there are too many.
 *
 * Why     Whoever reaches the port can open connections and say nothing, or a hello, all fields of which are known to everybody.
 *         If newcomers were refused when there are too many, a few thousand of those would keep all members of the job out,
 *         for as long as they like.
 * How     Newcomers are always taken: an older one goes. There are two crowds: who has said nothing, and who has said hello
 *         and is waited for to prove it. The larger one loses somebody, so that connections that say nothing do not push out
 *         somebody who is about to. In it each source of connections (base/addr_source.h) has a list of its own, oldest first.
 *         Where the newcomer's source has at least its part of all, its own oldest goes; else the oldest of those whose source
 *         has. So a flood drops its own connections, silent or not, and those of others keep their time. Members that
 *         come from the flood's source have as long as it takes to open half as many connections after theirs as there may be,
 *         which is more than the two round trips of a hello; one that is dropped all the same learns it within its
 *         greeting, which ends with an answer of the server's (tcp_call.c), and tries again (tcp_pool.c).
 *         The second crowd stands in the order of speaking, so that one of it may stay for up to twice its time, no longer.
 * True    The first crowd is in the order of coming, so in that of hello_until_ns. A map of shares has an entry for each source
 *         in its crowd, and its keys are hashed with a key of its own (base/map.h). */
#include "store/store_half_open.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

struct tti_half_open_share {
    tti_engine_conn *first, *last;
    size_t           n;
};

static tti_half_open_share *share_of(const tti_half_open_crowd *crowd, const tti_addr_source *source)
{
    return tti_map_get_ptr(&crowd->shares, source->bytes, sizeof source->bytes);
}

static tti_half_open_share *make_share(tti_half_open_crowd *crowd, const tti_addr_source *source)
{
    tti_half_open_share *share = calloc(1, sizeof *share);

    if (share == NULL || tti_map_put_ptr(&crowd->shares, source->bytes, sizeof source->bytes, share) != TUTTI_OK) {
        free(share);
        return NULL;
    }
    return share;
}

static void enter(tti_half_open_crowd *crowd, tti_half_open_share *share, tti_engine_conn *conn)
{
    conn->share = share;
    conn->share_prev = share->last;
    *(share->last != NULL ? &share->last->share_next : &share->first) = conn;
    share->last = conn;
    share->n++;
    conn->crowd = crowd;
    conn->prev = crowd->last;
    *(crowd->last != NULL ? &crowd->last->next : &crowd->first) = conn;
    crowd->last = conn;
    crowd->n++;
}

/* To the end of a crowd, out of the one it was in. Without memory it stays there. */
static tutti_status go_to(tti_half_open_crowd *crowd, tti_engine_conn *conn)
{
    tti_half_open_share *share = share_of(crowd, &conn->source);

    if (share == NULL)
        share = make_share(crowd, &conn->source);
    if (share == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a connection");
    tti_half_open_leave(conn);
    enter(crowd, share, conn);
    return TUTTI_OK;
}

static void leave_share(tti_engine_conn *conn)
{
    tti_half_open_share *share = conn->share;

    *(conn->share_prev != NULL ? &conn->share_prev->share_next : &share->first) = conn->share_next;
    *(conn->share_next != NULL ? &conn->share_next->share_prev : &share->last) = conn->share_prev;
    conn->share_prev = conn->share_next = NULL;
    conn->share = NULL;
    if (--share->n > 0)
        return;
    tti_map_delete(&conn->crowd->shares, conn->source.bytes, sizeof conn->source.bytes);
    free(share);
}

void tti_half_open_init(tti_engine *engine)
{
    tti_map_init(&engine->silent.shares, engine->port);
    tti_map_init(&engine->spoken.shares, engine->port);
}

tutti_status tti_half_open_enter(tti_engine *engine, tti_engine_conn *conn)
{
    return go_to(&engine->silent, conn);
}

tutti_status tti_half_open_spoke(tti_engine *engine, tti_engine_conn *conn)
{
    return conn->crowd == &engine->silent ? go_to(&engine->spoken, conn) : TUTTI_OK;
}

void tti_half_open_leave(tti_engine_conn *conn)
{
    tti_half_open_crowd *crowd = conn->crowd;

    if (crowd == NULL)
        return;
    leave_share(conn);
    *(conn->prev != NULL ? &conn->prev->next : &crowd->first) = conn->next;
    *(conn->next != NULL ? &conn->next->prev : &crowd->last) = conn->prev;
    conn->prev = conn->next = NULL;
    conn->crowd = NULL;
    crowd->n--;
}

size_t tti_half_open_count(const tti_engine *engine)
{
    return engine->silent.n + engine->spoken.n;
}

static bool has_its_part(const tti_half_open_crowd *crowd, const tti_half_open_share *share)
{
    return share != NULL && share->n * crowd->shares.count >= crowd->n;
}

tti_engine_conn *tti_half_open_victim_in(const tti_half_open_crowd *crowd, const tti_addr_source *source)
{
    const tti_half_open_share *share = share_of(crowd, source);
    tti_engine_conn           *conn = crowd->first;

    if (has_its_part(crowd, share))
        return share->first;
    while (conn != NULL && !has_its_part(crowd, conn->share)) /* some source has, and then this is its oldest */
        conn = conn->next;
    return conn;
}

tti_engine_conn *tti_half_open_victim(const tti_engine *engine, const tti_addr_source *source)
{
    return tti_half_open_victim_in(engine->spoken.n > engine->silent.n ? &engine->spoken : &engine->silent, source);
}

void tti_half_open_release(tti_engine *engine)
{
    tti_map_release(&engine->silent.shares);
    tti_map_release(&engine->spoken.shares);
}
