/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ranks_text.c - ascending ranks as start:stop:step. Two ranks are a range only if they are neighbours: else
 * the second one may begin a longer one. */
#include "object/ranks_text.h"

#include <stdio.h>

/* How many of n ranks, from the first on, are at equal distances. */
static int run_length(const int *ranks, int n)
{
    int length = n < 2 ? n : 2;

    while (length < n && ranks[length] - ranks[length - 1] == ranks[1] - ranks[0])
        length++;
    return length == 2 && ranks[1] != ranks[0] + 1 ? 1 : length;
}

void tti_ranks_text(const int *ranks, int n, char *out, size_t bytes)
{
    const char *comma = "";
    size_t      at = 0;
    int         i = 0, length;

    out[0] = '\0';
    for (; i < n && at < bytes; i += length) {
        length = run_length(ranks + i, n - i);
        if (length == 1)
            at += (size_t)snprintf(out + at, bytes - at, "%s%d", comma, ranks[i]);
        else
            at += (size_t)snprintf(out + at, bytes - at, "%s%d:%d:%d", comma, ranks[i], ranks[i + length - 1] + 1,
                                   ranks[i + 1] - ranks[i]);
        comma = ", ";
    }
}
