/* SPDX-License-Identifier: BSD-3-Clause
 *
 * levels.c - the teams of a group's two levels, and the channel of this host's members.
 *
 * True    Both teams are parts of the group (tti_team.whole): they have its name, its number and its words for calls. What
 *         fails in one is told to all of the group, and what ends the group ends both. The part across uses the group's
 *         own messages: one call at a time does, and all ranks make the group's calls in one order, so messages with
 *         equal keys meet in the order sent, and a rank that has called something else is found by the word that they
 *         carry.
 *         Every call of the group, whichever row it takes, is published on the board in shared memory: whoever waits for
 *         a member of this host finds there that it has called something else. */
#include "coll/level/levels.h"

#include <stdlib.h>
#include <tutti/private.h>
#include "coll/host/crowd.h"
#include "coll/host/wait.h"

/* A team of n of the group's ranks, this rank's number among them being rank. */
static tutti_status make_part(const tti_team *whole, const int *ranks, int n, int rank, tti_team *part)
{
    tti_coll_config config = { .mesh = whole->mesh, .messenger = whole->messenger, .group_id = whole->group_id,
                               .rank = rank, .n_ranks = n, .name = whole->name };
    int            *mesh_ranks = malloc((size_t)n * sizeof *mesh_ranks);
    tutti_status    st;
    int             i;

    if (mesh_ranks == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %d members of group '%s'", n, whole->name);
    for (i = 0; i < n; i++)
        mesh_ranks[i] = whole->ranks[ranks[i]];
    config.ranks = mesh_ranks;
    st = tti_team_init(part, &config);
    free(mesh_ranks);
    part->whole = whole;
    return st;
}

static tutti_status make_here(tti_levels *levels)
{
    const tti_hosts *layout = &levels->layout;

    return make_part(levels->whole, layout->members + layout->begins[levels->host],
                     tti_hosts_local(layout, levels->host), levels->place, &levels->here);
}

static tutti_status make_across(tti_levels *levels)
{
    const tti_hosts *layout = &levels->layout;
    int              *ranks = malloc((size_t)layout->n_hosts * sizeof *ranks);
    tutti_status      st;
    int               host;

    if (ranks == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %d hosts of group '%s'", layout->n_hosts, levels->whole->name);
    for (host = 0; host < layout->n_hosts; host++)
        ranks[host] = tti_hosts_rank(layout, host, levels->place);
    st = make_part(levels->whole, ranks, layout->n_hosts, levels->host, &levels->across);
    free(ranks);
    return st;
}

static tutti_status make_layout(const tti_team *whole, tti_hosts *layout_out)
{
    int         *marks = malloc((size_t)whole->n_ranks * sizeof *marks);
    tutti_status st;
    int          r;

    if (marks == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the hosts of group '%s'", whole->name);
    for (r = 0; r < whole->n_ranks; r++)
        marks[r] = tti_mesh_host(whole->mesh, whole->ranks[r]);
    st = tti_hosts_make(marks, tti_mesh_size(whole->mesh), whole->n_ranks, layout_out);
    free(marks);
    return st;
}

static tutti_status make_flights(tti_levels *levels)
{
    const size_t n = (size_t)levels->layout.n_hosts;
    int          i;

    for (i = 0; i < TTI_LEVEL_FLIGHTS; i++) {
        levels->flights[i].list = calloc(n, sizeof(void *));
        levels->flights[i].counts = calloc(n, sizeof(int64_t));
        if (levels->flights[i].list == NULL || levels->flights[i].counts == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory for %zu hosts of group '%s'", n, levels->whole->name);
    }
    return TUTTI_OK;
}

/* The layout is the levels' from now on. */
static tutti_status fill(tti_levels *levels, const tti_host_patience *patience)
{
    const tti_hosts *layout = &levels->layout;
    tutti_status      st;

    levels->host = layout->host[levels->whole->rank];
    levels->place = layout->place[levels->whole->rank];
    st = make_here(levels);
    if (st == TUTTI_OK && levels->place < layout->least)
        st = make_across(levels);
    if (st == TUTTI_OK)
        st = make_flights(levels);
    if (st == TUTTI_OK && levels->here.n_ranks > 1)
        st = tti_host_channel_create(&levels->here, patience, &levels->channel);
    return st;
}

tutti_status tti_levels_create(tti_team *whole, const tti_host_patience *patience, tti_levels **levels_out)
{
    tti_hosts   layout;
    tti_levels  *levels;
    tutti_status st = make_layout(whole, &layout);

    if (st != TUTTI_OK)
        return st;
    if (!tti_hosts_has_levels(&layout) || layout.most > TTI_HOST_RANKS_MAX) {
        tti_hosts_release(&layout);
        return TUTTI_OK;
    }
    levels = calloc(1, sizeof *levels);
    if (levels == NULL) {
        tti_hosts_release(&layout);
        return tti_fail(TUTTI_E_NOMEM, "no memory for the levels of group '%s'", whole->name);
    }
    levels->whole = whole;
    levels->layout = layout;
    st = fill(levels, patience);
    if (st != TUTTI_OK) {
        tti_levels_close(levels);
        return st;
    }
    if (levels->channel != NULL)
        whole->board = levels->here.board;
    *levels_out = levels;
    return TUTTI_OK;
}

/* Cores that the ranks of a host share, as all members see it. joins: room for those of its members. */
static int cores_of(const tti_levels *levels, int host, const tti_join *all, tti_join *joins)
{
    const tti_team *whole = levels->whole;
    const int       local = tti_hosts_local(&levels->layout, host);
    const int       mark = tti_mesh_host(whole->mesh, whole->ranks[tti_hosts_rank(&levels->layout, host, 0)]);
    int             i, n_here = 0;

    for (i = 0; i < local; i++)
        joins[i] = all[tti_hosts_rank(&levels->layout, host, i)];
    for (i = 0; i < tti_mesh_size(whole->mesh); i++)
        n_here += tti_mesh_host(whole->mesh, i) == mark;
    return tti_crowd_cores(joins, local, n_here);
}

tutti_status tti_levels_connect(tti_levels *levels, const tti_join *all)
{
    const tti_hosts *layout = &levels->layout;
    tti_join         *joins = calloc((size_t)layout->most, sizeof *joins);
    tutti_status      st = TUTTI_OK;
    int               host, i;

    if (joins == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to meet the members of group '%s'", levels->whole->name);
    levels->carriers = layout->least;
    for (host = 0; host < layout->n_hosts && levels->carriers > 1; host++) {
        const int cores = cores_of(levels, host, all, joins);

        levels->carriers = cores < levels->carriers ? cores : levels->carriers;
    }
    for (i = 0; i < levels->here.n_ranks; i++)
        joins[i] = all[tti_hosts_rank(layout, levels->host, i)];
    joins[0].machine = all[0].machine; /* what all choose by */
    levels->across.wire = all[0].machine.wire;
    if (levels->channel != NULL)
        st = tti_host_channel_connect(levels->channel, joins);
    free(joins);
    return st;
}

void tti_levels_settle(tti_levels *levels, const tti_question *whole)
{
    tti_level_figures figures = tti_levels_figures(levels);
    tti_machine       machine;
    tti_question      across = tti_question_across(whole, &figures, &machine);

    tti_decide_once(&across, &levels->decision);
    figures.carriers = 1;
    across = tti_question_across(whole, &figures, &machine);
    tti_decide_once(&across, &levels->alone);
}

tti_level_figures tti_levels_figures(const tti_levels *levels)
{
    return (tti_level_figures){ .hosts = levels->layout.n_hosts, .least = levels->layout.least,
                                .most = levels->layout.most, .carriers = levels->carriers };
}

tutti_status tti_levels_room(tti_levels *levels, size_t bytes)
{
    if (bytes <= levels->scratch_bytes)
        return TUTTI_OK;
    free(levels->scratch);
    levels->scratch_bytes = 0;
    levels->scratch = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (levels->scratch == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the %zu bytes that a collective works in", bytes);
    levels->scratch_bytes = bytes;
    return TUTTI_OK;
}

tutti_status tti_levels_give_up(tti_levels *levels, tutti_status status)
{
    const tti_team *whole = levels->whole;
    tti_words       words = { .used = 0 };
    int             i;

    tti_words_add(&words, "%s", tutti_last_error());
    if (status == TUTTI_E_ABORTED && atomic_load_explicit(&whole->aborted, memory_order_acquire))
        tti_messenger_abort(whole->messenger, whole->group_id); /* who aborted tells the others, or not */
    else
        tti_messenger_fail(whole->messenger, whole->group_id, status, whole->ranks, whole->n_ranks);
    for (i = 0; i < TTI_LEVEL_FLIGHTS; i++) {
        if (levels->flights[i].begun)
            tti_net_let_go(&levels->flights[i].net);
        levels->flights[i].begun = false;
    }
    return tti_fail(status, "%s", words.text);
}

void tti_levels_close(tti_levels *levels)
{
    int i;

    if (levels == NULL)
        return;
    for (i = 0; i < TTI_LEVEL_FLIGHTS; i++) {
        tti_net_release(&levels->flights[i].net);
        free(levels->flights[i].list);
        free(levels->flights[i].counts);
    }
    levels->whole->board = &levels->whole->own_board;
    tti_host_channel_close(levels->channel);
    tti_team_release(&levels->here);
    tti_team_release(&levels->across);
    tti_hosts_release(&levels->layout);
    free(levels->scratch);
    free(levels);
}

void tti_levels_abort(tti_levels *levels)
{
    atomic_store_explicit(&levels->here.aborted, true, memory_order_release);
    atomic_store_explicit(&levels->across.aborted, true, memory_order_release);
}
