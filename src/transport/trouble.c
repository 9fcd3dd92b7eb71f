/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trouble.c - last words on the board. */
#include "transport/trouble.h"

#include <stdio.h>
#include <tutti/private.h>

#define PATIENCE_NS TTI_SECOND

void tti_trouble_leave(const tti_board *board, tti_port *port, tutti_status st)
{
    tti_trouble trouble = { .status = (int32_t)st };

    snprintf(trouble.words, sizeof trouble.words, "%s", tutti_last_error());
    (void)board->put(board->context, TTI_TROUBLE_KEY, &trouble, sizeof trouble, tti_port_now(port) + PATIENCE_NS);
    tti_fail(st, "%s", trouble.words);
}

bool tti_trouble_find(const tti_board *board, int64_t deadline_ns, tti_trouble *trouble_out)
{
    tti_trouble trouble;
    bool        there = false;

    if (board->has(board->context, TTI_TROUBLE_KEY, deadline_ns, &there) != TUTTI_OK || !there ||
        board->get(board->context, TTI_TROUBLE_KEY, &trouble, sizeof trouble, deadline_ns) != TUTTI_OK ||
        trouble.status <= TUTTI_OK || trouble.status > TUTTI_E_REMOTE)
        return false;
    trouble.words[sizeof trouble.words - 1] = '\0';
    *trouble_out = trouble;
    return true;
}

tutti_status tti_trouble_explain(const tti_board *board, tti_port *port, int rank, tutti_status st)
{
    tti_trouble trouble;
    char        words[TTI_TROUBLE_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (!tti_trouble_find(board, tti_port_now(port) + PATIENCE_NS, &trouble))
        return tti_fail(st, "%s", words);
    return tti_fail((tutti_status)trouble.status, "rank %d has given up; a rank of its host reported: %s", rank,
                    trouble.words);
}
