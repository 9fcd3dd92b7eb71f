/* SPDX-License-Identifier: BSD-3-Clause
 *
 * team_words.c - what texts say of members: lists of them, how they are, and what helps. */
#include "coll/team.h"

#include <stdarg.h>
#include <stdio.h>

enum { LISTED_MAX = 16, UNWELL_MAX = 4 };

void tti_words_add(tti_words *words, const char *fmt, ...)
{
    const size_t room = sizeof words->text - words->used;
    va_list      args;
    int          n;

    va_start(args, fmt);
    n = vsnprintf(words->text + words->used, room, fmt, args);
    va_end(args);
    if (n > 0)
        words->used += (size_t)n < room ? (size_t)n : room - 1;
}

void tti_team_add_ranks(const tti_team *team, tti_words *words, const bool *marked)
{
    const int n_ranks = team->n_ranks;
    int       n = 0, said = 0, r;

    for (r = 0; r < n_ranks; r++)
        n += marked[r];
    tti_words_add(words, n == 1 ? "rank " : "ranks ");
    for (r = 0; r < n_ranks && said < LISTED_MAX; r++)
        if (marked[r])
            tti_words_add(words, "%s%d", said++ > 0 ? ", " : "", team->ranks[r]);
    if (n > said)
        tti_words_add(words, " and %d more", n - said);
}

void tti_team_add_health(const tti_team *team, tti_words *words, int rank)
{
    const tti_health_report report = tti_health_now(tti_mesh_health(team->mesh), team->ranks[rank]);
    char                    how[TTI_HEALTH_TEXT_MAX];

    if (tti_health_words(&report, tti_port_now(team->port), how)[0] != '\0')
        tti_words_add(words, ", and %s", how);
}

static bool is_marked(const tti_team *team, const bool *marked, int mesh_rank)
{
    int r;

    for (r = 0; r < team->n_ranks && marked != NULL; r++)
        if (team->ranks[r] == mesh_rank)
            return marked[r];
    return false;
}

static void add_unwell(const tti_team *team, tti_words *words, const bool *marked, const int *among, int n)
{
    const tti_health *health = tti_mesh_health(team->mesh);
    const int         own = tti_mesh_rank(team->mesh);
    char              how[TTI_HEALTH_TEXT_MAX];
    int               said = 0, i;

    for (i = 0; i < n && said < UNWELL_MAX; i++) {
        const int rank = among != NULL ? among[i] : i;

        if (rank == own || is_marked(team, marked, rank) || tti_health_describe(health, rank, how)[0] == '\0')
            continue;
        tti_words_add(words, "\n  rank %d (%s) %s", rank, tti_mesh_whereabouts(team->mesh, rank), how);
        said++;
    }
}

void tti_team_add_unwell(const tti_team *team, tti_words *words, const bool *marked)
{
    const tti_team *whole = tti_team_whole(team);

    add_unwell(team, words, marked, whole->ranks, whole->n_ranks);
}

void tti_team_add_unwell_among(const tti_team *team, tti_words *words, const int *among, int n)
{
    add_unwell(team, words, NULL, among, n);
}

const char *tti_team_next_step_among(const tti_team *team, const int *among, int n, const char *otherwise,
                                     char out[TTI_NEXT_TEXT_MAX])
{
    const tti_health *health = tti_mesh_health(team->mesh);
    const int         own = tti_mesh_rank(team->mesh);
    int               i;

    for (i = 0; i < n; i++) {
        const int rank = among != NULL ? among[i] : i;

        if (rank == own || tti_health_now(health, rank).life != TTI_LIFE_STOPPED)
            continue;
        snprintf(out, TTI_NEXT_TEXT_MAX, "let rank %d (%s) go on: kill -CONT", rank, tti_mesh_whereabouts(team->mesh, rank));
        return out;
    }
    return otherwise;
}

const char *tti_team_next_step(const tti_team *team, const char *otherwise, char out[TTI_NEXT_TEXT_MAX])
{
    const tti_team *whole = tti_team_whole(team);

    return tti_team_next_step_among(team, whole->ranks, whole->n_ranks, otherwise, out);
}
