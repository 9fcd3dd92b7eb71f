/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agree.c - ranks compare what they are about to do.
 *
 * Why     Codes of other blocks would be read as other numbers, and a rank that cannot take part must not keep the others
 *         waiting.
 * How     One all_gather of a few words. All compare all with rank 0, so that all come to the same verdict; other calls of
 *         the group that stand in the place of it are found by the all_gather. */
#include "compress/compress.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "base/fnv.h"

_Static_assert(sizeof(tti_wish) == TTI_WISH_NUMBERS * sizeof(int64_t), "a wish has no gaps");

uint64_t tti_wish_print(const tti_wish *wish)
{
    return tti_fnv(TTI_FNV_BEGIN, wish, offsetof(tti_wish, status));
}

/* The first thing that two wishes differ in; NULL: nothing. */
static const char *difference(const tti_wish *a, const tti_wish *b)
{
    if (a->what != b->what)
        return "call";
    if (a->count != b->count)
        return "count";
    if (a->dtype != b->dtype)
        return "dtype";
    if (a->op != b->op)
        return "operation";
    if (a->block != b->block)
        return "block";
    return a->share != b->share ? "share from which it goes dense" : NULL;
}

enum { WISH_TEXT = 160 };

static void describe(const tti_wish *w, char out[WISH_TEXT])
{
    double share;
    int    used = snprintf(out, WISH_TEXT, "%s of %lld %s, %s, in blocks of %lld",
                           w->what == TTI_BLOCK_SPARSE ? "block-sparse" : "quantized", (long long)w->count,
                           tutti_dtype_name((tutti_dtype)w->dtype), tutti_op_name((tutti_op_kind)w->op), (long long)w->block);

    memcpy(&share, &w->share, sizeof share);
    if (w->what == TTI_BLOCK_SPARSE && used > 0 && used < WISH_TEXT)
        snprintf(out + used, (size_t)(WISH_TEXT - used), ", dense above %g", share);
}

static tutti_status compare(const char *what, const tutti_group *group, const tti_wish *all, const tti_wish *mine)
{
    char        theirs[WISH_TEXT], first[WISH_TEXT];
    const char *differs;
    int         r;

    for (r = 1; r < group->size; r++) {
        differs = difference(&all[r], &all[0]);
        if (differs == NULL)
            continue;
        describe(&all[r], theirs);
        describe(&all[0], first);
        return tti_fail(TUTTI_E_MISMATCH,
                        "%s on group '%s': rank %d has another %s than rank %d (%s, and %s)\n"
                        "  next: give all ranks the same call",
                        what, group->name, group->ranks[r], differs, group->ranks[0], theirs, first);
    }
    if (mine->status != TUTTI_OK)
        return (tutti_status)mine->status;
    for (r = 0; r < group->size; r++)
        if (all[r].status != TUTTI_OK)
            return tti_fail(TUTTI_E_REMOTE, "%s on group '%s': rank %d cannot take part: %s", what, group->name,
                            group->ranks[r], tutti_status_name((tutti_status)all[r].status));
    return TUTTI_OK;
}

tutti_status tti_wishes_meet(const char *what, tutti_group *group, const tti_wish *mine, tti_wish *all,
                             tti_turns *turns)
{
    const int64_t n = (int64_t)group->size * TTI_WISH_NUMBERS;
    tutti_status  st = tti_all_gather_into_span(what, group, tutti_span_of(all, n, TUTTI_I64),
                                                tutti_span_of(mine, TTI_WISH_NUMBERS, TUTTI_I64),
                                                tti_in_turns(turns));

    return st == TUTTI_OK ? compare(what, group, all, mine) : st;
}
