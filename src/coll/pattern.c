/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/pattern.h"

#include <assert.h>

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* First whole line of a part when the first rest parts have one line more than the others. */
static int64_t first_line(int64_t each, int64_t rest, int part)
{
    return each * part + smaller(part, rest);
}

tti_slice tti_slice_of(int64_t count, size_t element, int n_parts, int part)
{
    const int64_t per_line = (int64_t)(TTI_SLICE_ALIGN / element);
    const int64_t lines = count / per_line + (count % per_line != 0);
    const int64_t each = lines / n_parts;
    const int64_t rest = lines % n_parts;

    assert(element > 0 && TTI_SLICE_ALIGN % element == 0);
    return (tti_slice){ .begin = smaller(first_line(each, rest, part) * per_line, count),
                        .end = smaller(first_line(each, rest, part + 1) * per_line, count) };
}

int tti_doubling_steps(int n_ranks)
{
    int steps = 0;

    while (INT64_C(1) << steps < n_ranks)
        steps++;
    return steps;
}

int tti_shifted(int rank, int by, int n_ranks)
{
    const int moved = (int)(((int64_t)rank + by) % n_ranks);

    return moved < 0 ? moved + n_ranks : moved;
}

int tti_tree_parent(int rank, int root, int n_ranks, int *step_out)
{
    const int away = tti_shifted(rank, -root, n_ranks);
    int       step = tti_doubling_steps(away + 1) - 1; /* number of the highest bit of away */

    if (away == 0)
        return -1;
    *step_out = step;
    return tti_shifted(root, away - (1 << step), n_ranks);
}

int tti_tree_child(int rank, int root, int n_ranks, int step)
{
    const int64_t away = tti_shifted(rank, -root, n_ranks);
    const int64_t reach = INT64_C(1) << step;

    if (away >= reach || away + reach >= n_ranks)
        return -1;
    return tti_shifted(root, (int)(away + reach), n_ranks);
}
