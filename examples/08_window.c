/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 08_window.c - a halo exchange with one-sided puts: heat flows along a rod that the ranks share.
 *
 * Each rank has N cells and one halo cell at either end, in a window. In each step it puts its outermost cells into
 * its neighbours' halos, and signals; who has the neighbours' signals may compute. Two halves of the window take
 * turns, so nobody writes into what a neighbour still reads: a neighbour's signal of step s + 1 says that it has
 * finished step s. Rank 0 holds the hot end; at the end the rod is compared with one that was computed alone.
 *
 * Ranks: any number.
 *
 *     cc 08_window.c -o 08_window $(pkg-config --cflags --libs tutti)
 *     tutti run --standalone --nproc-per-node=4 ./08_window */
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

#define TRY(call)                                                                                  \
    if ((call) != TUTTI_OK)                                                                        \
    return tutti_last_error()

enum { N = 100, HALF = N + 2, STEPS = 500 };

/* One step over n cells with a halo at either end. */
static void flow(const double *from, double *to, int n)
{
    int i;

    for (i = 1; i <= n; i++)
        to[i] = from[i] + 0.25 * (from[i - 1] - 2 * from[i] + from[i + 1]);
}

/* Give the neighbours my outermost cells of this half, and wait for theirs. */
static const char *exchange(tutti_window *window, double *cells, int half)
{
    const int rank = tutti_get_rank(NULL), last = tutti_get_world_size(NULL) - 1;

    if (rank > 0) {
        TRY(tutti_window_put(window, TUTTI_SPAN(cells + 1, 1), rank - 1, half * HALF + N + 1));
        TRY(tutti_window_signal(window, rank - 1));
    }
    if (rank < last) {
        TRY(tutti_window_put(window, TUTTI_SPAN(cells + N, 1), rank + 1, half * HALF));
        TRY(tutti_window_signal(window, rank + 1));
    }
    if (rank > 0)
        TRY(tutti_window_wait_signal(window, rank - 1, 0));
    if (rank < last)
        TRY(tutti_window_wait_signal(window, rank + 1, 0));
    return NULL;
}

static const char *simulate(tutti_window *window, double *halves)
{
    const int   rank = tutti_get_rank(NULL);
    const char *failure;
    int         step;

    for (step = 0; step < STEPS; step++) {
        double *now = halves + step % 2 * HALF, *next = halves + (step + 1) % 2 * HALF;

        if ((failure = exchange(window, now, step % 2)) != NULL)
            return failure;
        flow(now, next, N);
        if (rank == 0)
            next[0] = 1.0; /* the hot end, in the place of a halo */
    }
    return NULL;
}

/* The whole rod, by this rank alone; whether my cells agree, bit by bit. */
static int agrees(const double *mine)
{
    const int n = N * tutti_get_world_size(NULL), first = N * tutti_get_rank(NULL);
    double   *rod = calloc(2 * ((size_t)n + 2), sizeof *rod);
    int       step, i, same = rod != NULL;

    for (step = 0; same && step < STEPS; step++) {
        rod[0] = rod[n + 2] = 1.0;
        flow(rod + step % 2 * (n + 2), rod + (step + 1) % 2 * (n + 2), n);
    }
    for (i = 1; same && i <= N; i++)
        same = mine[i] == rod[STEPS % 2 * (n + 2) + first + i];
    free(rod);
    return same;
}

static const char *run(void)
{
    double       *halves = NULL;
    tutti_window *window = NULL;
    const char   *failure;
    tutti_span    span;

    TRY(tutti_init_process_group(NULL));
    TRY(tutti_alloc(2 * HALF * sizeof *halves, (void **)&halves)); /* zeroed: a cold rod */
    if (tutti_get_rank(NULL) == 0)
        halves[0] = 1.0;
    span = TUTTI_SPAN(halves, 2 * HALF);
    TRY(tutti_window_create(&span, NULL, &window));
    if ((failure = simulate(window, halves)) != NULL)
        return failure;
    if (!agrees(halves + STEPS % 2 * HALF))
        return "the rod differs from one that was computed alone";
    printf("rank %d: the rod is as if computed alone\n", tutti_get_rank(NULL));
    TRY(tutti_window_free(window));
    TRY(tutti_free(halves));
    TRY(tutti_destroy_process_group(NULL));
    return NULL;
}

int main(void)
{
    const char *failure = run();

    if (failure != NULL)
        fprintf(stderr, "%s\n", failure);
    return failure != NULL;
}
