/* SPDX-License-Identifier: BSD-3-Clause
 *
 * overlap.c - three times in turn. */
#include "overlap.h"

#include <string.h>
#include "product.h"
#include "sample.h"
#include "values.h"

enum { ROUNDS_MIN = 3, ROUNDS_MAX = 512, WARM_CALLS = 5, PRODUCTS_MAX = 100000 };
#define NS_PER_MS UINT64_C(1000000)

typedef struct both {
    const bench_side *side;
    bench_board *board;
    bench_call call;
    size_t in_bytes;
    int products;
} both;

enum { ALONE, PRODUCT, BOTH, BESIDE, KINDS };

static bool lonely(void)
{
    return bench_fail("another rank did not come to the barrier within two minutes");
}

/* Begin, compute so many products, wait; 0: none. The time of the products goes to beside_out. */
static bool begin_and_compute(both *b, int products, uint64_t *beside_out)
{
    uint64_t start;

    if (!b->side->begin(&b->call))
        return false;
    start = bench_now_ns();
    bench_product(products);
    *beside_out = bench_now_ns() - start;
    return b->side->finish(&b->call);
}

static bool result_is_right(both *b)
{
    const bench_call *c = &b->call;
    uint64_t wrong, unused;

    bench_fill(c->in, c->count, c->cell, c->rank);
    if (!bench_board_barrier(b->board))
        return lonely();
    b->call.check = b->board;
    if (!begin_and_compute(b, 1, &unused))
        return false;
    b->call.check = NULL;
    if (!bench_board_barrier(b->board)) /* limits write what is others' */
        return lonely();
    wrong =
        bench_first_wrong(c->in, c->cell, c->rank, c->ranks, 0) >= 0 || !bench_product_is_right();
    if (!bench_board_largest(b->board, wrong, &wrong))
        return lonely();
    memset(c->in, 0, b->in_bytes);
    return wrong == 0 ||
           bench_fail("wrong result, of the operation or of the product, on some rank");
}

/* One of three things, from a barrier on: the longest of all ranks. */
static bool one(both *b, int kind, uint64_t *ns_out, uint64_t *beside_out)
{
    uint64_t start, ns, beside = 0;

    if (!bench_board_barrier(b->board))
        return lonely();
    start = bench_now_ns();
    if (kind == PRODUCT)
        bench_product(b->products);
    else if (!begin_and_compute(b, kind == BOTH ? b->products : 0, &beside))
        return false;
    ns = bench_now_ns() - start;
    return (bench_board_largest(b->board, ns, ns_out) &&
            bench_board_largest(b->board, beside, beside_out)) ||
           lonely();
}

static uint64_t median(const uint64_t *values, int n)
{
    uint64_t sorted[WARM_CALLS];

    memcpy(sorted, values, (size_t)n * sizeof *values);
    bench_sort(sorted, n);
    return sorted[n / 2];
}

/* As many products as take half as long again as the operation, the same number on all ranks: where they came to less, when the
 * machine becomes quicker, the operation could not be hidden behind them. One product says little: so as many as were found
 * are taken together, and counted again. Medians of all that was measured: the last time alone may be one in which the machine
 * was slow. */
static bool choose_products(both *b)
{
    uint64_t alone[WARM_CALLS], each[WARM_CALLS], products = 0, unused, n;
    int i;

    b->products = 1;
    for (i = 0; i < WARM_CALLS; i++) {
        if (!one(b, ALONE, &alone[i], &unused) || !one(b, PRODUCT, &products, &unused))
            return false;
        each[i] = products / (uint64_t)b->products;
        each[i] = each[i] > 0 ? each[i] : 1;
        n = (3 * median(alone, i + 1) + median(each, i + 1)) / (2 * median(each, i + 1));
        b->products = n < 1 ? 1 : n > PRODUCTS_MAX ? PRODUCTS_MAX : (int)n;
    }
    return true;
}

/* What both took more than the products of the same turn, in ns; and how many times as long products took beside. Medians of
 * turns: a machine that becomes slower and quicker from turn to turn does so for both. */
static void beside_each_other(uint64_t times[KINDS][ROUNDS_MAX], int n, double *cost_out, double *slowed_out)
{
    static uint64_t more[ROUNDS_MAX], ratio[ROUNDS_MAX];
    const uint64_t zero = UINT64_C(1) << 62; /* bench_sort() knows no negative numbers */
    int i;

    for (i = 0; i < n; i++) {
        more[i] = zero + times[BOTH][i] - times[PRODUCT][i];
        ratio[i] = times[BESIDE][i] * 1000000 / (times[PRODUCT][i] > 0 ? times[PRODUCT][i] : 1);
    }
    bench_sort(more, n);
    bench_sort(ratio, n);
    *cost_out = (double)(int64_t)(more[n / 2] - zero);
    *slowed_out = (double)ratio[n / 2] / 1e6;
}

static void figures(uint64_t times[KINDS][ROUNDS_MAX], int n, const both *b, bench_overlapped *out)
{
    double us[KINDS], cost_ns;
    int kind;

    beside_each_other(times, n, &cost_ns, &out->slowed);
    for (kind = 0; kind < KINDS; kind++) {
        bench_sort(times[kind], n);
        us[kind] = bench_quantile(times[kind], n, 0.5) / 1e3;
    }
    *out = (bench_overlapped){ .rounds = n,
                               .products = b->products,
                               .alone = us[ALONE],
                               .product = us[PRODUCT],
                               .both = us[BOTH],
                               .beside = us[BESIDE],
                               .slowed = out->slowed };
    out->hidden = 1 - cost_ns / 1e3 / us[ALONE];
    out->bytes = b->call.count * (int64_t)bench_dtype_size(b->call.cell->dtype);
}

static bool in_turn(both *b, uint64_t budget_ns, bench_overlapped *out)
{
    static uint64_t times[KINDS]
                         [ROUNDS_MAX]; /* rank 0's count, and it is the only one of its process */
    const uint64_t end = bench_now_ns() + budget_ns;
    uint64_t more = 1, unused;
    int n, kind;

    for (n = 0; (more != 0 || n < ROUNDS_MIN) && n < ROUNDS_MAX; n++) {
        for (kind = ALONE; kind <= BOTH; kind++)
            if (!one(b, kind, &times[kind][n], kind == BOTH ? &times[BESIDE][n] : &unused))
                return false;
        if (!bench_board_tell(b->board, bench_now_ns() < end, &more))
            return lonely();
    }
    figures(times, n, b, out);
    return true;
}

/* Something with the buffers of a cell; NULL for a figure that is not asked for. */
static bool with_buffers(both *b, const bench_cell *cell, int *products_out, bench_overlapped *out)
{
    const bench_side *side = b->side;
    char *in = NULL, *none = NULL;
    bool ok;

    ok = side->take != NULL ? side->take(cell, b->board, b->in_bytes, 0, &in, &none)
                            : bench_take_pages(b->in_bytes, &in);
    b->call.in = in;
    b->products = cell->products;
    ok = ok && result_is_right(b) && (b->products > 0 || choose_products(b)) &&
         (out == NULL || in_turn(b, (uint64_t)cell->budget_ms * NS_PER_MS, out));
    if (ok && products_out != NULL)
        *products_out = b->products;
    if (side->take != NULL)
        side->give(cell, in, b->in_bytes, none, 0);
    else
        bench_give_pages(in, b->in_bytes);
    return ok;
}

static bool prepare(both *b, const bench_cell *cell)
{
    if (cell->op != BENCH_ALL_REDUCE || b->side->begin == NULL)
        return bench_fail("nothing can be computed behind %s of %s", bench_op_names[cell->op],
                          b->side->name);
    b->call = (bench_call){ .cell = cell, .rank = b->board->rank, .ranks = b->board->ranks };
    b->call.count = bench_tensor_count(cell, b->call.ranks);
    b->call.part = bench_part_count(cell, b->call.ranks);
    b->in_bytes = bench_in_bytes(cell, b->call.rank, b->call.ranks);
    return true;
}

bool bench_overlap(const bench_side *side, const bench_cell *cell, bench_board *board,
                   bench_overlapped *out)
{
    both b = { .side = side, .board = board };

    return prepare(&b, cell) && with_buffers(&b, cell, NULL, out);
}

bool bench_overlap_products(const bench_side *side, const bench_cell *cell, bench_board *board, int *products_out)
{
    both b = { .side = side, .board = board };
    bench_cell unsaid = *cell;

    unsaid.products = 0;
    return prepare(&b, &unsaid) && with_buffers(&b, &unsaid, products_out, NULL);
}
