/* SPDX-License-Identifier: BSD-3-Clause
 *
 * product.c - panels of eight columns, four rows at a time: sums stay in registers, a panel in the first cache. */
#include "product.h"

#include <string.h>

enum { N = 256, ROWS = 4, COLUMNS = 8 };

typedef float row_of_8 __attribute__((vector_size(COLUMNS * sizeof(float))));

/* A process computes one product at a time. */
static float a[N][N], b[N][N], c[N][N];
static bool filled;

static void fill(void)
{
    int i, j;

    for (i = 0; i < N; i++)
        for (j = 0; j < N; j++) {
            a[i][j] = (float)((i + 2 * j) % 5);
            b[i][j] = (float)((3 * i + j) % 7);
        }
    filled = true;
}

static void panel(int j)
{
    row_of_8 sums[ROWS], row;
    int i, k, r;

    for (i = 0; i < N; i += ROWS) {
        memset(sums, 0, sizeof sums);
        for (k = 0; k < N; k++) {
            memcpy(&row, &b[k][j], sizeof row);
            for (r = 0; r < ROWS; r++)
                sums[r] += a[i + r][k] * row;
        }
        for (r = 0; r < ROWS; r++)
            memcpy(&c[i + r][j], &sums[r], sizeof row);
    }
}

void bench_product(int n)
{
    int j;

    if (!filled)
        fill();
    for (; n > 0; n--) {
        for (j = 0; j < N; j += COLUMNS)
            panel(j);
        __asm__ volatile("" ::: "memory"); /* each of them is made */
    }
}

bool bench_product_is_right(void)
{
    int i, k;

    for (i = 0; i < N; i++) {
        const int j = (7 * i + 3) % N;
        float sum = 0; /* of small integers: exact */

        for (k = 0; k < N; k++)
            sum += a[i][k] * b[k][j];
        if (c[i][j] != sum)
            return false;
    }
    return filled;
}
