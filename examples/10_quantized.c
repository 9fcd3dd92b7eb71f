/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 10_quantized.c - averages of 8 bits, as training between hosts with slow links may use them: each is off a little, and
 * what it leaves out comes with the next ones.
 *
 * Ranks: any number.
 *
 *     cc 10_quantized.c -o 10_quantized $(pkg-config --cflags --libs tutti) -lm
 *     tutti run --standalone --nproc-per-node=2 ./10_quantized */
#include <math.h>
#include <stdio.h>
#include <tutti/tutti.h>

#define TRY(call)                                                                                  \
    if ((call) != TUTTI_OK)                                                                        \
    return fprintf(stderr, "%s\n", tutti_last_error()), 1

enum { COUNT = 10000, STEPS = 100 };

static float whole[COUNT], eight[COUNT], error[COUNT]; /* errors are zeros at first */
static double sum[COUNT];

static void gradients(float *x, int rank)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = sinf((float)(i + 1) * (float)(rank + 1)) * (float)(1 + i % 10);
}

/* The largest difference between a and b. */
static double off(const double *a, const float *b)
{
    double most = 0;

    for (int i = 0; i < COUNT; i++)
        most = fmax(most, fabs(a[i] - (double)b[i]));
    return most;
}

int main(void)
{
    tutti_quantize_options opts = TUTTI_QUANTIZE_OPTIONS;
    double                 first = 0;
    int                    rank;

    TRY(tutti_init_process_group(NULL));
    rank = tutti_get_rank(NULL);
    gradients(whole, rank);
    TRY(tutti_all_reduce(TUTTI_SPAN(whole, COUNT), TUTTI_AVG, NULL));
    opts.error = error;
    for (int step = 0; step < STEPS; step++) {
        gradients(eight, rank);
        TRY(tutti_all_reduce_quantized(TUTTI_SPAN(eight, COUNT), TUTTI_AVG, &opts, NULL));
        for (int i = 0; i < COUNT; i++)
            sum[i] += (double)eight[i];
        if (step == 0)
            first = off(sum, whole);
    }
    for (int i = 0; i < COUNT; i++)
        sum[i] /= STEPS;
    if (first < 0.2 && off(sum, whole) <= first / 20) /* one rank alone keeps its numbers */
        printf("rank %d: a step is off by less than 2 %%, the mean of %d by less than a twentieth of that\n", rank, STEPS);
    TRY(tutti_destroy_process_group(NULL));
    return 0;
}
