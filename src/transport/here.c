/* SPDX-License-Identifier: BSD-3-Clause
 *
 * here.c - who waits long for others of its host says on the board that it is here.
 *
 * Why     The ranks of a host meet before any of them joins the first group of the world. While one of them is stopped there most of
 *         them do not join, and those of other hosts, who have met, see all of these missing, and would accuse all of them. So do
 *         those of the same host that are through, while their office waits for the last one.
 * How     Who has waited for a second, or for a quarter of its time, leaves a mark under its number, once. Who names those that
 *         have not joined asks for the marks, and tells those that have left one apart (coll/absent.c).
 *
 *             rank 0 (stopped)    rank 2 waits for rank 0: here/2    rank 1, on another host: "not joined: rank 0"
 *
 * True    A mark says that a rank ran then, and waited for somebody of its host: so where one rank at least has left none, those
 *         that have are not the reason. That one has left a mark and was stopped after it cannot be told: then it is not accused,
 *         unless nobody else is left to be.
 * Cost    Nothing where a host meets within a second, and one small request for each rank where it does not. */
#include "transport/here.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "base/doubt.h"
#include "transport/meet.h"

#define SAY_MOST_NS TTI_SECOND

static void key_of(int rank, char key_out[TTI_BOARD_KEY_BYTES])
{
    snprintf(key_out, TTI_BOARD_KEY_BYTES, "here/%d", rank);
}

void tti_here_begin(tti_mesh *mesh, const tti_mesh_config *config)
{
    const int64_t now_ns = tti_port_now(config->port);
    const int64_t quarter_ns = (config->deadline_ns - now_ns) / 4;

    if (mesh->here.board != NULL)
        return;
    mesh->here = (tti_here){ .board = config->board, .deadline_ns = config->deadline_ns,
                             .say_ns = now_ns + (quarter_ns < SAY_MOST_NS ? quarter_ns : SAY_MOST_NS) };
}

void tti_here_say(tti_mesh *mesh)
{
    const tti_here *here = &mesh->here;
    const char      mark = 1;
    char            key[TTI_BOARD_KEY_BYTES];

    if (here->board == NULL || here->say_ns == TTI_FOREVER) /* NULL: it has not begun */
        return;
    mesh->here.say_ns = TTI_FOREVER;
    key_of(mesh->rank, key);
    (void)here->board->put(here->board->context, key, &mark, sizeof mark,
                           tti_board_patience(here->board, mesh->port, here->deadline_ns));
}

int tti_here_poll(tti_mesh *mesh, tti_poll *set, int n, int64_t until_ns)
{
    int got;

    if (mesh->here.board == NULL || mesh->here.say_ns >= until_ns)
        return tti_doubt_poll(mesh->port, set, n, until_ns);
    got = tti_doubt_poll(mesh->port, set, n, mesh->here.say_ns);
    if (got != 0 || tti_doubt_is_vain())
        return got;
    tti_here_say(mesh);
    return tti_doubt_poll(mesh->port, set, n, until_ns);
}

/* ---- who asks --------------------------------------------------------------------------------------- */

/* Whether all of n ranks have left a mark, at most TTI_BOARD_KEYS_MAX, in one request where the board takes that. */
static tutti_status ask(const tti_board *board, const int *ranks, int n, int64_t deadline_ns, bool *all_out)
{
    const char  *keys[TTI_BOARD_KEYS_MAX];
    char         room[TTI_BOARD_KEYS_MAX][TTI_BOARD_KEY_BYTES];
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < n; i++) {
        key_of(ranks[i], room[i]);
        keys[i] = room[i];
    }
    if (board->has_all != NULL && n > 1)
        return board->has_all(board->context, keys, n, deadline_ns, all_out);
    *all_out = true;
    for (i = 0; i < n && st == TUTTI_OK && *all_out; i++)
        st = board->has(board->context, keys[i], deadline_ns, all_out);
    return st;
}

/* By halves: as a rule all have but one. */
static bool find(const tti_board *board, const int *ranks, int n, int64_t deadline_ns, bool *here_out)
{
    const int half = n / 2;
    bool      all = false;

    if (n <= TTI_BOARD_KEYS_MAX && ask(board, ranks, n, deadline_ns, &all) != TUTTI_OK)
        return false;
    if (all || n == 1) {
        memset(here_out, all, (size_t)n * sizeof *here_out);
        return true;
    }
    return find(board, ranks, half, deadline_ns, here_out) &&
           find(board, ranks + half, n - half, deadline_ns, here_out + half);
}

bool tti_here_find(const tti_board *board, const int *ranks, int n, int64_t deadline_ns, bool *here_out)
{
    const bool found = n > 0 && find(board, ranks, n, deadline_ns, here_out);

    if (!found)
        memset(here_out, false, (size_t)n * sizeof *here_out);
    return found;
}
