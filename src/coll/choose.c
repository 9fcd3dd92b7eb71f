/* SPDX-License-Identifier: BSD-3-Clause
 *
 * choose.c - the table of algorithms.
 *
 * How     The first row that can serve the group and is at its best takes the call, so within a
 *         kind the rows stand in order of preference: what needs one host before what does not,
 *         small before large. TUTTI_ALGO moves one row in front, wherever it can serve at all.
 * True    Every rank takes the same row: kind, count and dtype are compared by the control word,
 *         the hosts are a fact of the mesh, and the fingerprint of TUTTI_ALGO is compared when the
 *         group is made. All rows of a kind combine in rank order 0..P-1, so the choice never
 *         changes a bit. */
#include "coll/choose.h"

#include <string.h>
#include <tutti/private.h>
#include "watch/control.h"

#define ANY_SIZE INT64_MAX
#define ANY_RANKS INT32_MAX

enum { KIB = 1024, WORD_MAX = 32 };

static const tti_algorithm table[] = {
    { TUTTI_CALL_BARRIER, "flags", tti_staged_barrier, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE },
    { TUTTI_CALL_BARRIER, "dissemination", NULL, tti_plan_barrier_dissemination, ANY_RANKS,
      ANY_SIZE },

    { TUTTI_CALL_ALL_REDUCE, "one_phase", tti_staged_all_reduce_one_phase, NULL, TTI_HOST_RANKS_MAX,
      16 * KIB },
    { TUTTI_CALL_ALL_REDUCE, "sliced", tti_staged_all_reduce_sliced, NULL, TTI_HOST_RANKS_MAX,
      ANY_SIZE },
    { TUTTI_CALL_ALL_REDUCE, "one_shot", NULL, tti_plan_all_reduce_one_shot, ANY_RANKS, 4 * KIB },
    { TUTTI_CALL_ALL_REDUCE, "direct", NULL, tti_plan_all_reduce_direct, ANY_RANKS, ANY_SIZE },

    { TUTTI_CALL_REDUCE, "one_phase", tti_staged_reduce_one_phase, NULL, TTI_HOST_RANKS_MAX,
      16 * KIB },
    { TUTTI_CALL_REDUCE, "sliced", tti_staged_reduce_sliced, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE },
    { TUTTI_CALL_REDUCE, "to_root", NULL, tti_plan_reduce_to_root, ANY_RANKS, 4 * KIB },
    { TUTTI_CALL_REDUCE, "direct", NULL, tti_plan_reduce_direct, ANY_RANKS, ANY_SIZE },

    { TUTTI_CALL_BROADCAST, "staged", tti_staged_broadcast, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE },
    { TUTTI_CALL_BROADCAST, "binomial", NULL, tti_plan_broadcast_binomial, ANY_RANKS, ANY_SIZE },

    { TUTTI_CALL_ALL_GATHER, "staged", tti_staged_all_gather, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE },
    { TUTTI_CALL_ALL_GATHER, "direct", NULL, tti_plan_all_gather_direct, ANY_RANKS, ANY_SIZE },

    { TUTTI_CALL_GATHER, "staged", tti_staged_gather, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE },
    { TUTTI_CALL_GATHER, "direct", NULL, tti_plan_gather_direct, ANY_RANKS, ANY_SIZE },

    { TUTTI_CALL_SCATTER, "staged", tti_staged_scatter, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE },
    { TUTTI_CALL_SCATTER, "direct", NULL, tti_plan_scatter_direct, ANY_RANKS, ANY_SIZE },

    { TUTTI_CALL_REDUCE_SCATTER, "staged", tti_staged_reduce_scatter, NULL, TTI_HOST_RANKS_MAX,
      ANY_SIZE },
    { TUTTI_CALL_REDUCE_SCATTER, "direct", NULL, tti_plan_reduce_scatter_direct, ANY_RANKS,
      ANY_SIZE },

    { TUTTI_CALL_ALL_TO_ALL, "staged", tti_staged_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE },
    { TUTTI_CALL_ALL_TO_ALL, "direct", NULL, tti_plan_all_to_all_direct, ANY_RANKS, ANY_SIZE },

    { TUTTI_CALL_GATHER_V, "staged", tti_staged_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE },
    { TUTTI_CALL_GATHER_V, "direct", NULL, tti_plan_all_to_all_direct, ANY_RANKS, ANY_SIZE },

    { TUTTI_CALL_SCATTER_V, "staged", tti_staged_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE },
    { TUTTI_CALL_SCATTER_V, "direct", NULL, tti_plan_all_to_all_direct, ANY_RANKS, ANY_SIZE },
};
enum { ROWS = sizeof table / sizeof table[0] };

static bool can_serve(const tti_algorithm *row, bool one_host, int n_ranks)
{
    return n_ranks <= row->ranks_max && (row->staged == NULL || one_host);
}

const tti_algorithm *tti_choose(const tti_choice *choice, tutti_call_kind kind, bool one_host,
                                int n_ranks, int64_t bytes)
{
    const tti_algorithm *wanted = choice->wanted[kind];
    int                  i;

    if (n_ranks == 1)
        return NULL;
    if (wanted != NULL && can_serve(wanted, one_host, n_ranks))
        return wanted;
    for (i = 0; i < ROWS; i++)
        if (table[i].kind == kind && can_serve(&table[i], one_host, n_ranks) &&
            bytes <= table[i].bytes_best)
            return &table[i];
    return NULL; /* not reached: each kind ends with a row that serves all */
}

uint64_t tti_choice_fingerprint(const tti_choice *choice)
{
    uint64_t print = 1;
    int      kind;

    for (kind = 0; kind < TUTTI_CALL_KIND_COUNT; kind++)
        print = print * (ROWS + 1) +
                (choice->wanted[kind] == NULL ? 0 : (uint64_t)(choice->wanted[kind] - table) + 1);
    return print;
}

static tutti_status fail_kind(const char *text, const char *name)
{
    tti_words words = { .used = 0 };
    int       kind;

    for (kind = 1; kind < TUTTI_CALL_KIND_COUNT; kind++)
        tti_words_add(&words, "%s%s", kind > 1 ? ", " : "",
                      tti_call_kind_name((tutti_call_kind)kind));
    return tti_fail(TUTTI_E_ARG,
                    "TUTTI_ALGO is '%s': no operation is called '%s'\n  next: take one of %s", text,
                    name, words.text);
}

static tutti_status fail_name(const char *text, tutti_call_kind kind, const char *name)
{
    tti_words words = { .used = 0 };
    int       i;

    for (i = 0; i < ROWS; i++)
        if (table[i].kind == kind)
            tti_words_add(&words, "%s%s", words.used > 0 ? ", " : "", table[i].name);
    return tti_fail(TUTTI_E_ARG,
                    "TUTTI_ALGO is '%s': %s has no algorithm '%s'\n  next: take one of %s", text,
                    tti_call_kind_name(kind), name, words.text);
}

static int kind_named(const char *op)
{
    int kind = 1;

    while (kind < TUTTI_CALL_KIND_COUNT &&
           strcmp(tti_call_kind_name((tutti_call_kind)kind), op) != 0)
        kind++;
    return kind;
}

static tutti_status choose_row(const char *text, const char *op, const char *name,
                               tti_choice *choice)
{
    const int kind = kind_named(op);
    int       i;

    if (kind == TUTTI_CALL_KIND_COUNT)
        return fail_kind(text, op);
    for (i = 0; i < ROWS; i++)
        if ((int)table[i].kind == kind && strcmp(table[i].name, name) == 0)
            break;
    if (i == ROWS)
        return fail_name(text, (tutti_call_kind)kind, name);
    choice->wanted[kind] = &table[i];
    return TUTTI_OK;
}

/* Copy the word before any of ends; what follows it, or NULL if it is empty or too long. */
static const char *word(const char *from, const char *ends, char out[WORD_MAX])
{
    const size_t length = strcspn(from, ends);

    if (length == 0 || length >= WORD_MAX)
        return NULL;
    memcpy(out, from, length);
    out[length] = '\0';
    return from + length;
}

tutti_status tti_choice_parse(const char *text, tti_choice *choice_out)
{
    tti_choice   choice = { .wanted = { NULL } };
    char         op[WORD_MAX], name[WORD_MAX];
    const char  *at = text;
    tutti_status st = TUTTI_OK;

    while (at != NULL && *at != '\0' && st == TUTTI_OK) {
        at = word(at, "=,", op);
        at = at != NULL && *at == '=' ? word(at + 1, ",", name) : NULL;
        if (at == NULL)
            return tti_fail(TUTTI_E_ARG, "TUTTI_ALGO is '%s', not op=name,op=name,...", text);
        at += *at == ',';
        st = choose_row(text, op, name, &choice);
    }
    if (st == TUTTI_OK)
        *choice_out = choice;
    return st;
}
