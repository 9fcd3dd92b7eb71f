/* SPDX-License-Identifier: BSD-3-Clause
 *
 * near.c - the edit distance, over three rows of its table: exchanging two letters looks back two. */
#include "near.h"

#include <string.h>

static int least(int a, int b)
{
    return a < b ? a : b;
}

int near_distance(const char *word, const char *candidate)
{
    int rows[3][NEAR_WORD_MAX + 1];
    const int n = (int)strlen(word);
    const int len = (int)strlen(candidate);
    int i;
    int k;

    if (n >= 3 && strncmp(candidate, word, (size_t)n) == 0)
        return 0;
    if (n > NEAR_WORD_MAX || len > NEAR_WORD_MAX)
        return NEAR_WORD_MAX;
    for (k = 0; k <= len; k++)
        rows[0][k] = k;
    for (i = 1; i <= n; i++) {
        int *row = rows[i % 3];
        const int *above = rows[(i + 2) % 3];
        const int *two_above = rows[(i + 1) % 3];

        row[0] = i;
        for (k = 1; k <= len; k++) {
            row[k] = least(above[k - 1] + (word[i - 1] != candidate[k - 1]),
                           least(above[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && word[i - 1] == candidate[k - 2] &&
                word[i - 2] == candidate[k - 1])
                row[k] = least(row[k], two_above[k - 2] + 1);
        }
    }
    return rows[n % 3][len];
}

int near_limit(const char *word)
{
    return (int)strlen(word) / 3 + 2;
}
