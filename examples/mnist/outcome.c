/* SPDX-License-Identifier: BSD-3-Clause
 *
 * outcome.c - a table, a comparison, a count. */
#include "outcome.h"

#include <inttypes.h>
#include <stdlib.h>
#include <tutti/group.h>

#include "examples/common/say.h"
#include "feed.h"

enum { TEST_BATCH = 500 };

static void print_table(const report *r, const double *all, int size)
{
    printf("epoch");
    for (int rank = 0; rank < size; rank++)
        printf("  loss, rank %-3d", rank);
    printf("  seconds\n");
    for (int64_t e = 0; e < r->epochs; e++) {
        printf("%5" PRId64, e + 1);
        for (int rank = 0; rank < size; rank++)
            printf("  %14.6f", all[rank * r->epochs + e]);
        printf("  %7.2f\n", r->seconds[e]);
    }
}

bool outcome_table(const report *r)
{
    const int size = tutti_get_world_size(NULL);
    const int64_t n = size * r->epochs;
    double *all = calloc((size_t)n, sizeof *all);
    tutti_status st;

    if (all == NULL)
        return say("no memory for the losses of %d ranks", size);
    st = tutti_all_gather_into_tensor(TUTTI_SPAN(all, n), TUTTI_SPAN(r->loss, r->epochs), NULL);
    if (st == TUTTI_OK && r->progress.speaks)
        print_table(r, all, size);
    free(all);
    TRY(st);
    return true;
}

static bool count_right(tutti_module *net, const tutti_dataset *test, int64_t first, int64_t n,
                        int64_t *right)
{
    int64_t samples[TEST_BATCH];
    tutti_tensor *guess;
    batch b;

    for (int64_t i = 0; i < n; i++)
        samples[i] = first + i;
    if (!feed_fetch(test, samples, n, &b))
        return false;
    guess = tutti_tensor_argmax(tutti_forward(net, b.x), 1, false);
    TRY(tutti_tensor_check());
    for (int64_t i = 0; i < n; i++)
        *right +=
            ((int64_t *)tutti_tensor_data(guess))[i] == ((int64_t *)tutti_tensor_data(b.y))[i];
    return true;
}

bool outcome_accuracy(tutti_module *net, const tutti_dataset *test, double *percent_out)
{
    const int64_t all = tutti_dataset_length(test);
    const bool recorded = tutti_set_grad_enabled(false);
    int64_t at, n, right = 0;
    bool ok = true;

    tutti_module_train(net, false);
    n = feed_part(all, tutti_get_rank(NULL), tutti_get_world_size(NULL), &at);
    for (; n > 0 && ok; at += TEST_BATCH, n -= TEST_BATCH) {
        tutti_scope_begin();
        ok = count_right(net, test, at, n < TEST_BATCH ? n : TEST_BATCH, &right);
        tutti_scope_end();
    }
    (void)tutti_set_grad_enabled(recorded);
    if (!ok)
        return false;
    TRY(tutti_all_reduce(TUTTI_SPAN(&right, 1), TUTTI_SUM, NULL));
    *percent_out = 100.0 * (double)right / (double)all;
    return true;
}
