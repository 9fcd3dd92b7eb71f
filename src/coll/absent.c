/* SPDX-License-Identifier: BSD-3-Clause
 *
 * absent.c - who has not come when a group is not made in time.
 *
 * How     When time is up the board is asked whose piece is missing, and, for a world's first group, who of those is there, and waits for
 *         others of its host: those are not the reason. Where many ask at once on a machine that is busy the board may be too late with
 *         that: so in the last looks before it is asked, too, and what it has said last counts.
 * True    One thread has it: the one that meets. */
#include "coll/absent.h"

#include <stdlib.h>
#include <string.h>
#include "transport/here.h"

enum { LAST_LOOKS = 3 };

/* Mark in here[n_ranks], too, which of the absent say that they are here, and wait for others of their host: those are not the reason. */
static void find_here(const tti_team *team, const tti_board *board, int64_t until_ns, const bool *absent, bool *here)
{
    int  *ranks = malloc((size_t)team->n_ranks * sizeof *ranks); /* the absent, in the mesh */
    bool *said = malloc((size_t)team->n_ranks * sizeof *said);
    int   n = 0, r;

    for (r = 0; ranks != NULL && r < team->n_ranks; r++)
        if (absent[r])
            ranks[n++] = team->ranks[r];
    if (ranks != NULL && said != NULL && tti_here_find(board, ranks, n, until_ns, said))
        for (r = 0, n = 0; r < team->n_ranks; r++) {
            here[r] = here[r] || (absent[r] && said[n]);
            n += absent[r];
        }
    free(ranks);
    free(said);
}

/* Where it has many members so many questions of all of them would be a burden for the board: they ask when
 * time is up only. */
static bool is_nearly_up(const tti_team *team, int64_t deadline_ns)
{
    const int n = team->n_ranks;

    return n <= TTI_BOARD_KEYS_MAX && deadline_ns - tti_port_now(team->port) < LAST_LOOKS * tti_roll_look_ms(n) * TTI_MS;
}

void tti_absent_keep(tti_absent *a, int rank, int64_t deadline_ns)
{
    const tti_team *team = a->team;
    const size_t    n = (size_t)team->n_ranks;
    const int64_t   until_ns = tti_board_patience(a->roll->board, team->port, deadline_ns);
    bool           *now = is_nearly_up(team, deadline_ns) ? calloc(2 * n, sizeof *now) : NULL;

    if (now == NULL || !tti_roll_missing(a->roll, rank, team->n_ranks, until_ns, now)) {
        free(now);
        return;
    }
    if (a->known != NULL) /* who was here is, or has come since */
        memcpy(now + n, a->known + n, n * sizeof *now);
    find_here(team, a->roll->board, until_ns, now, now + n);
    free(a->known);
    a->known = now;
}

/* Who has not come from rank on, absent[n_ranks], and, for a world's first group, who of them is here, behind that. What the board does
 * not say any more is as it was at the latest look; nobody is absent if it has said nothing. */
static void look_who_is_absent(const tti_absent *a, int rank, bool founds, bool *answered, bool *absent)
{
    const tti_team *team = a->team;
    const size_t    n = (size_t)team->n_ranks;
    const int64_t   asked_ns = tti_port_now(team->port);
    const bool      answers = tti_roll_missing(a->roll, rank, team->n_ranks, tti_board_grace(a->roll->board, team->port), absent);

    if (a->known != NULL && !answers)
        memcpy(absent + rank, a->known + rank, (n - (size_t)rank) * sizeof *absent);
    if (a->known != NULL)
        memcpy(absent + n, a->known + n, n * sizeof *absent);
    *answered = *answered || answers;
    absent[rank] = absent[rank] || a->known != NULL || *answered; /* it was when the time was up */
    if (founds && answers)
        find_here(team, a->roll->board, tti_board_patience(a->roll->board, team->port, asked_ns), absent, absent + n);
}

/* "not joined: rank 0\n  here, and waiting for others of their host: ranks 2, 4", or that nobody knows. If all of them are here, they are
 * told as if none was. absent[n_ranks] is then who is told of as not joined. */
static void add_words(const tti_team *team, tti_words *words, bool *absent, bool *here)
{
    int n_here = 0, n_others = 0, r;

    for (r = 0; r < team->n_ranks; r++) {
        here[r] = here[r] && absent[r];
        n_here += here[r];
        n_others += absent[r] && !here[r];
    }
    if (n_here + n_others == 0) {
        tti_words_add(words, "\n  the store in which they meet does not answer: who has joined is not known");
        return;
    }
    for (r = 0; n_others > 0 && r < team->n_ranks; r++)
        absent[r] = absent[r] && !here[r];
    tti_words_add(words, "\n  not joined: ");
    tti_team_add_ranks(team, words, absent);
    if (n_here == 0 || n_others == 0)
        return;
    tti_words_add(words, "\n  here, and waiting for others of their host: ");
    tti_team_add_ranks(team, words, here);
}

bool tti_absent_add(const tti_absent *a, int rank, bool founds, bool *answered, tti_words *words, int *ranks_out, int *n_out)
{
    const tti_team *team = a->team;
    const size_t    n = (size_t)team->n_ranks;
    bool           *absent = calloc(2 * n, sizeof *absent);
    int             r;

    *n_out = 0;
    if (absent == NULL)
        return false;
    look_who_is_absent(a, rank, founds, answered, absent);
    add_words(team, words, absent, absent + n);
    for (r = 0; r < team->n_ranks; r++)
        if (absent[r])
            ranks_out[(*n_out)++] = team->ranks[r];
    free(absent);
    return true;
}

void tti_absent_release(tti_absent *a)
{
    free(a->known);
    a->known = NULL;
}
