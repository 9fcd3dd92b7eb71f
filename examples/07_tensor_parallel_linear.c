/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 07_tensor_parallel_linear.c - a layer that is cut across ranks: collectives that gradients flow through.
 *
 * Two linear layers, y = relu(x A') B'. Each rank holds some rows of A, which are outputs, and the columns of B
 * that belong to them. So relu needs nobody else, and one sum joins what the ranks made:
 *
 *     y = sum over ranks of relu(x A_r') B_r'
 *
 * The loss of a job is the sum of all ranks' losses. Here all ranks compute the same one, so each counts its
 * share. Loss and gradients are those of the whole layers on one rank, which every rank computes, too.
 *
 * Ranks: any number that divides 12.
 *
 *     cc 07_tensor_parallel_linear.c -o 07_tensor_parallel_linear $(pkg-config --cflags --libs tutti-train) -lm
 *     tutti run --standalone --nproc-per-node=3 ./07_tensor_parallel_linear */
#include <math.h>
#include <stdio.h>
#include <tutti/train.h>
#include <tutti/tutti.h>

enum { BATCH = 5, IN = 8, HIDDEN = 12, OUT = 4 };

#define TRY(call)                                                                                  \
    if ((call) != TUTTI_OK)                                                                        \
    return fprintf(stderr, "%s\n", tutti_last_error()), 1

/* The same numbers on all ranks, which are seeded alike. */
static tutti_tensor *make(int64_t rows, int64_t columns)
{
    return tutti_tensor_randn(TUTTI_F64, 2, (const int64_t[]){ rows, columns }, NULL);
}

/* A leaf of its own with a part of w along dim. */
static tutti_tensor *shard(tutti_tensor *w, int dim, int rank, int size)
{
    const int64_t n = tutti_tensor_size(w, dim) / size;

    return tutti_tensor_requires_grad_(tutti_tensor_clone(tutti_tensor_narrow(w, dim, rank * n, n)), true);
}

static tutti_tensor *layers(tutti_tensor *x, tutti_tensor *a, tutti_tensor *b)
{
    return tutti_tensor_linear(tutti_tensor_relu(tutti_tensor_linear(x, a, NULL)), b, NULL);
}

static tutti_tensor *loss_of(tutti_tensor *y)
{
    return tutti_tensor_mean(tutti_tensor_mul(y, y), NULL, 0, false);
}

/* The largest difference between the gradient of a part and that part of the whole gradient. */
static double apart(const tutti_tensor *part, const tutti_tensor *whole, int dim, int rank)
{
    tutti_tensor *mine = tutti_tensor_grad(part), *all = tutti_tensor_grad(whole);
    const int64_t n = tutti_tensor_size(mine, dim), columns = tutti_tensor_size(mine, 1);
    tutti_tensor *want = tutti_tensor_contiguous(tutti_tensor_narrow(all, dim, rank * n, n));
    const double *x = tutti_tensor_data(mine), *y = tutti_tensor_data(want);
    double        most = x == NULL || y == NULL ? INFINITY : 0.0;

    for (int64_t i = 0; i < tutti_tensor_size(mine, 0) * columns && most < INFINITY; i++)
        most = fmax(most, fabs(x[i] - y[i]));
    return most;
}

int main(void)
{
    tutti_tensor *x, *a, *b, *a_part, *b_part, *loss, *whole;
    double        value = 0.0, expected = 0.0;
    int           rank, size;

    TRY(tutti_init_process_group(NULL));
    rank = tutti_get_rank(NULL);
    size = tutti_get_world_size(NULL);
    tutti_manual_seed(1);
    tutti_scope_begin();
    x = make(BATCH, IN);
    a = tutti_tensor_requires_grad_(make(HIDDEN, IN), true);
    b = tutti_tensor_requires_grad_(make(OUT, HIDDEN), true);
    a_part = shard(tutti_tensor_detach(a), 0, rank, size);
    b_part = shard(tutti_tensor_detach(b), 1, rank, size);

    /* cut across ranks: one all_reduce forward, and its gradient, another one, backward */
    loss = loss_of(tutti_tensor_all_reduce(layers(x, a_part, b_part), TUTTI_SUM, NULL));
    TRY(tutti_tensor_backward(tutti_tensor_mul_scalar(loss, 1.0 / size)));
    TRY(tutti_tensor_item(loss, &value));

    /* whole, on every rank for itself */
    whole = loss_of(layers(x, a, b));
    TRY(tutti_tensor_backward(whole));
    TRY(tutti_tensor_item(whole, &expected));
    if (fabs(value - expected) < 1e-12 && apart(a_part, a, 0, rank) < 1e-12 && apart(b_part, b, 1, rank) < 1e-12)
        printf("rank %d of %d: loss and gradients are those of the whole layers\n", rank, size);
    else
        printf("rank %d of %d: loss %.15g, whole %.15g\n", rank, size, value, expected);
    tutti_scope_end();
    TRY(tutti_destroy_process_group(NULL));
    return 0;
}
