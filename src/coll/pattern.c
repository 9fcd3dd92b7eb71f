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

/* ---- seats ---- */

tti_seats tti_seats_of(int n_ranks)
{
    tti_seats seats = { .n = 1 };

    while (seats.n <= n_ranks / 2) {
        seats.n *= 2;
        seats.steps++;
    }
    seats.n_pairs = n_ranks - seats.n;
    return seats;
}

int tti_seat_of(const tti_seats *seats, int rank)
{
    return rank < 2 * seats->n_pairs ? rank / 2 : rank - seats->n_pairs;
}

int tti_sitting(const tti_seats *seats, int seat)
{
    return seat < seats->n_pairs ? 2 * seat : seat + seats->n_pairs;
}

int tti_pair_of(const tti_seats *seats, int rank)
{
    return rank < 2 * seats->n_pairs ? rank ^ 1 : -1;
}

int tti_reversed(int number, int bits)
{
    int reversed = 0, i;

    for (i = 0; i < bits; i++)
        reversed |= (number >> i & 1) << (bits - 1 - i);
    return reversed;
}

/* ---- trees ---- */

int tti_radix_steps(int n_ranks, int radix)
{
    int64_t reached;
    int     steps = 0;

    for (reached = 1; reached < n_ranks; reached *= radix)
        steps++;
    return steps;
}

static int64_t power(int radix, int exponent)
{
    int64_t x = 1;

    while (exponent-- > 0)
        x *= radix;
    return x;
}

int tti_radix_parent(int rank, int root, int n_ranks, int radix, int *step_out)
{
    const int away = tti_shifted(rank, -root, n_ranks);
    const int step = tti_radix_steps(away + 1, radix) - 1; /* number of the highest digit of away */

    if (away == 0)
        return -1;
    *step_out = step;
    return tti_shifted(root, (int)(away % power(radix, step)), n_ranks);
}

int tti_radix_child(int rank, int root, int n_ranks, int radix, int step, int i)
{
    const int64_t away = tti_shifted(rank, -root, n_ranks);
    const int64_t reach = power(radix, step);

    if (away >= reach || away + i * reach >= n_ranks)
        return -1;
    return tti_shifted(root, (int)(away + i * reach), n_ranks);
}
