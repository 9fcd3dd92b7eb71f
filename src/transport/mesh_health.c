/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mesh_health.c - the watch thread of a mesh: which ranks are on whose host, where their pages lie, what tells of their
 * death. A world whose members are all threads of one process has none: they die together. */
#include "transport/meet.h"

#include <stdlib.h>
#include <tutti/private.h>

enum { WORDS_A_LINE = TTI_LINE / sizeof(uint64_t) };

/* Pages begin on a line of their own; the directory begins with one. */
static size_t words_of_rings(int n_ranks)
{
    return ((size_t)n_ranks + WORDS_A_LINE - 1) / WORDS_A_LINE * WORDS_A_LINE;
}

size_t tti_directory_words(int n_ranks)
{
    return words_of_rings(n_ranks) + tti_health_page_bytes(n_ranks) / sizeof(uint64_t);
}

static bool is_one_process(const tti_mesh *mesh)
{
    int r;

    for (r = 0; r < mesh->n_ranks; r++)
        if (!tti_card_same_process(&mesh->cards[r], &mesh->cards[mesh->rank]))
            return false;
    return true;
}

static const char *whereabouts(void *context, int rank)
{
    return tti_mesh_whereabouts(context, rank);
}

static const tti_addr *addr_of(const void *context, int rank)
{
    return tti_mesh_addr(context, rank);
}

/* A port that stands in for the machine has processes of its own, of which the kernel knows nothing. */
static bool has_processes(const tti_mesh *mesh)
{
    return mesh->port->ops->place == NULL;
}

tti_end_cause tti_mesh_cause_of(void *context, tti_handle life)
{
    return has_processes(context) ? tti_kernel_cause_of(life) : (tti_end_cause){ .kind = TTI_CAUSE_UNKNOWN };
}

static char state_of(void *context, tti_handle life)
{
    return has_processes(context) ? tti_kernel_state_of(life) : 0;
}

static tti_health_member member_of(const tti_mesh *mesh, int rank)
{
    const tti_member *member = &mesh->members[rank];

    return (tti_health_member){
        .rank = rank,
        .page = (tti_health_page *)(void *)(tti_heap_directory(member->heap) + words_of_rings(mesh->n_ranks)),
        .closed = &tti_heap_head_of(member->heap)->closed,
        .life = member->pidfd,
    };
}

static tutti_status begin_with(tti_mesh *mesh, int *hosts, tti_health_member *members)
{
    tti_health_config config = { .port = mesh->port, .rank = mesh->rank, .n_ranks = mesh->n_ranks, .hosts = hosts,
                                 .members = members, .whereabouts = whereabouts, .addr_of = addr_of, .state_of = state_of,
                                 .cause_of = tti_mesh_cause_of, .context = mesh };
    tutti_status      st = tti_health_read_env(&config.heartbeat_ms, &config.silent_ms);
    int               r;

    for (r = 0; r < mesh->n_ranks; r++) {
        hosts[r] = mesh->members[r].host;
        if (mesh->members[r].heap != NULL)
            members[config.n_members++] = member_of(mesh, r);
    }
    if (st == TUTTI_OK)
        st = tti_health_make(&config, &mesh->health);
    return st == TUTTI_OK ? tti_health_start(mesh->health) : st;
}

tutti_status tti_mesh_begin_watch(tti_mesh *mesh)
{
    const size_t       n = (size_t)mesh->n_ranks;
    int               *hosts;
    tti_health_member *members;
    tutti_status       st = TUTTI_OK;

    if (is_one_process(mesh))
        return TUTTI_OK;
    hosts = malloc(n * sizeof *hosts);
    members = malloc(n * sizeof *members);
    if (hosts == NULL || members == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory to watch over %d ranks", mesh->n_ranks);
    else
        st = begin_with(mesh, hosts, members);
    free(hosts);
    free(members);
    return st;
}

void tti_mesh_complete(tti_mesh *mesh)
{
    tti_health_complete(mesh->health);
}
