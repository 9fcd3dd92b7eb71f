/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tensor_gradient_test.c
 * Goal    gradients through every collective on tensors are those of the sum of all ranks' losses.
 * Method  each rank weighs its result with numbers of its own and runs backward. Then one rank after the
 *         other moves each element of its input by 1e-5 both ways, while all compute, and the difference of
 *         the summed losses must match what backward left on that rank. f64, 1 to 4 ranks. */
#include "harness/harness.h"

#include <math.h>
#include <string.h>
#include <tutti/train.h>
#include <tutti/tutti.h>

#define OK(call)                                           \
    do {                                                   \
        if ((call) != TUTTI_OK)                            \
            fail_msg("%s: %s", #call, tutti_last_error()); \
    } while (0)
#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

/* A collective with everything but its input. */
typedef tutti_tensor *(*function)(tt_ctx *t, tutti_tensor *x);

static double loss_of(tt_ctx *t, function f, tutti_tensor *x, tutti_tensor **loss_out)
{
    tutti_tensor *y = f(t, x);
    int64_t n = tutti_tensor_numel(y);
    tutti_tensor *flat = tutti_tensor_reshape(y, 1, &n);
    tutti_tensor *w =
        tutti_tensor_arange(TUTTI_F64, 0.3 + t->rank, 0.3 + t->rank + 0.7 * (double)n - 0.1, 0.7);
    double value = NAN;

    *loss_out = tutti_tensor_sum(tutti_tensor_mul(tutti_tensor_mul(flat, flat), w), NULL, 0, false);
    OK(tutti_tensor_item(*loss_out, &value));
    return value;
}

/* The losses of all ranks, with element i of rank owner's x at a value. */
static double total(tt_ctx *t, function f, tutti_tensor *x, int owner, int64_t i, double value)
{
    const bool was = tutti_set_grad_enabled(false);
    double *data = tutti_tensor_data(x);
    const double before = data[i];
    tutti_tensor *loss;
    double sum;

    tutti_scope_begin();
    if (t->rank == owner)
        data[i] = value;
    sum = loss_of(t, f, x, &loss);
    OK(tutti_all_reduce(TUTTI_SPAN(&sum, 1), TUTTI_SUM, t->group));
    data[i] = before;
    tutti_scope_end();
    tutti_set_grad_enabled(was);
    return sum;
}

static void check_rank(tt_ctx *t, const char *what, function f, tutti_tensor *x, int owner)
{
    const double h = 1e-5;
    const double *data = tutti_tensor_data(x);
    const tutti_tensor *grad = tutti_tensor_grad(x);
    const double *g = tutti_tensor_data(grad);
    int64_t i, n = tutti_tensor_numel(x);

    if (g == NULL || !tutti_tensor_is_contiguous(grad))
        fail_msg("%s: no gradient on rank %d", what, t->rank);
    OK(tutti_broadcast(TUTTI_SPAN(&n, 1), owner, t->group));
    for (i = 0; i < n; i++) {
        const int64_t at = i < tutti_tensor_numel(x) ? i : 0;
        const double up = total(t, f, x, owner, at, data[at] + h);
        const double down = total(t, f, x, owner, at, data[at] - h);
        const double slope = (up - down) / (2 * h);

        if (t->rank == owner && !(fabs(slope - g[i]) <= 1e-6 * fmax(1.0, fabs(slope))))
            fail_msg("%s, rank %d, element %lld: backward %.10g, differences %.10g", what, owner,
                     (long long)i, g[i], slope);
    }
}

static void check(tt_ctx *t, const char *what, function f, int nd, const int64_t *shape)
{
    tutti_tensor *x = tutti_tensor_empty(TUTTI_F64, nd, shape); /* no scope is open: ours */
    tutti_tensor *loss;
    int owner;

    OK(tutti_tensor_uniform_(x, -1.0, 1.0, NULL));
    assert_non_null(tutti_tensor_requires_grad_(x, true));
    tutti_scope_begin();
    (void)loss_of(t, f, x, &loss);
    OK(tutti_tensor_backward(loss));
    tutti_scope_end();
    for (owner = 0; owner < t->size; owner++)
        check_rank(t, what, f, x, owner);
    tutti_tensor_release(x);
}

static tutti_tensor *sum(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_all_reduce(x, TUTTI_SUM, t->group);
}

static tutti_tensor *average(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_all_reduce(x, TUTTI_AVG, t->group);
}

static tutti_tensor *weighed(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_all_reduce(x, tutti_premul_sum(0.5 + t->rank), t->group);
}

static tutti_tensor *from_last(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_broadcast(tutti_tensor_transpose(x, 0, 1), t->size - 1, t->group);
}

static tutti_tensor *to_last(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_reduce(x, t->size - 1, TUTTI_SUM, t->group);
}

static tutti_tensor *average_to_first(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_reduce(x, 0, TUTTI_AVG, t->group);
}

static tutti_tensor *gathered(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_gather(x, t->size - 1, t->group);
}

static tutti_tensor *scattered(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_scatter(x, 0, t->group);
}

static tutti_tensor *all_rows(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_all_gather_tensor(x, 0, t->group);
}

static tutti_tensor *all_columns(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_all_gather_tensor(x, -1, t->group);
}

static tutti_tensor *all_stacked(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_all_gather(x, t->group);
}

static tutti_tensor *my_rows(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_reduce_scatter_tensor(x, TUTTI_SUM, 0, t->group);
}

static tutti_tensor *my_columns(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_reduce_scatter_tensor(tutti_tensor_transpose(x, 0, 1), TUTTI_AVG, 1,
                                              t->group);
}

static tutti_tensor *my_entry(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_reduce_scatter(x, tutti_premul_sum(2.0 - t->rank), t->group);
}

static tutti_tensor *exchanged(tt_ctx *t, tutti_tensor *x)
{
    return tutti_tensor_all_to_all_single(x, NULL, NULL, t->group);
}

/* Rank r has r + 2 d rows for rank d. */
static tutti_tensor *exchanged_unevenly(tt_ctx *t, tutti_tensor *x)
{
    int64_t to[8], from[8];
    int r;

    for (r = 0; r < t->size; r++) {
        to[r] = t->rank + 2 * r;
        from[r] = r + 2 * t->rank;
    }
    return tutti_tensor_all_to_all_single(x, from, to, t->group);
}

static tutti_tensor *rotated(tt_ctx *t, tutti_tensor *x)
{
    int to[8];
    int r;

    for (r = 0; r < t->size; r++)
        to[r] = (r + 1) % t->size;
    return tutti_tensor_permute_tensor(x, to, t->group);
}

/* One after the other, as a sharded layer has them. */
static tutti_tensor *chained(tt_ctx *t, tutti_tensor *x)
{
    tutti_tensor *y = tutti_tensor_tanh(tutti_tensor_all_gather_tensor(x, 0, t->group));

    y = tutti_tensor_mul(y, tutti_tensor_all_reduce(y, TUTTI_SUM, t->group));
    return tutti_tensor_reduce_scatter_tensor(tutti_tensor_exp(y), TUTTI_AVG, 0, t->group);
}

static void gradients_are_those_of_all_losses(tt_ctx *t)
{
    const int64_t rows = t->size * t->rank + (int64_t)t->size * (t->size - 1);

    tutti_manual_seed(7 + (uint64_t)t->rank);
    check(t, "all_reduce", sum, 2, SHAPE(2, 3));
    check(t, "all_reduce avg", average, 1, SHAPE(3));
    check(t, "all_reduce premul_sum", weighed, 0, NULL);
    check(t, "broadcast", from_last, 2, SHAPE(2, 3));
    check(t, "reduce", to_last, 1, SHAPE(4));
    check(t, "reduce avg", average_to_first, 1, SHAPE(4));
    check(t, "gather", gathered, 2, SHAPE(2, 2));
    check(t, "scatter", scattered, 2, SHAPE(t->size, 3));
    check(t, "all_gather_tensor", all_rows, 2, SHAPE(2, 3));
    check(t, "all_gather_tensor, last dimension", all_columns, 2, SHAPE(2, 3));
    check(t, "all_gather_tensor of a scalar", all_rows, 0, NULL);
    check(t, "all_gather", all_stacked, 1, SHAPE(3));
    check(t, "reduce_scatter_tensor", my_rows, 2, SHAPE(2 * t->size, 2));
    check(t, "reduce_scatter_tensor avg, another dimension", my_columns, 2, SHAPE(t->size, 3));
    check(t, "reduce_scatter premul_sum", my_entry, 2, SHAPE(t->size, 2));
    check(t, "all_to_all_single", exchanged, 2, SHAPE(t->size, 2));
    if (t->size > 1)
        check(t, "all_to_all_single, uneven", exchanged_unevenly, 2, SHAPE(rows, 2));
    check(t, "permute_tensor", rotated, 2, SHAPE(2, 2));
    check(t, "a chain", chained, 1, SHAPE(2));
    OK(tutti_tensor_check());
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(gradients_are_those_of_all_losses, .ranks = 1, .transports = "threads",
                .limit_ms = 60000),
        TT_TEST(gradients_are_those_of_all_losses, .ranks = 2, .transports = "shm,threads",
                .limit_ms = 60000),
        TT_TEST(gradients_are_those_of_all_losses, .ranks = 3, .transports = "shm,threads",
                .limit_ms = 120000),
        TT_TEST(gradients_are_those_of_all_losses, .ranks = 4, .transports = "shm,tcp,threads",
                .limit_ms = 120000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
