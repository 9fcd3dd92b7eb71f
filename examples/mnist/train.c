/* SPDX-License-Identifier: BSD-3-Clause
 *
 * train.c - every rank computes the gradients of its own samples, all ranks average them, and so
 * all make the same step. */
#include "train.h"

#include <tutti/group.h>

#include "examples/common/say.h"
#include "examples/common/world.h"
#include "net.h"

/* Rank 0 first: what is wrong with the data is mostly wrong for all, and said once. */
static bool open_feed(trainer *t, int rank)
{
    const bool opened = world_agrees(rank == 0 && feed_open(&t->feed, t->opts, rank, t->size));

    if (!opened || rank == 0)
        return opened;
    return feed_open(&t->feed, t->opts, rank, t->size);
}

bool train_open(trainer *t, const options *opts)
{
    tutti_sgd_options sgd = TUTTI_SGD_OPTIONS;
    const int rank = tutti_get_rank(NULL);
    tutti_tensor *const *params;
    int n;

    t->opts = opts;
    t->size = tutti_get_world_size(NULL);
    tutti_manual_seed(opts->seed); /* the same on all ranks: they begin with the same parameters */
    if (!open_feed(t, rank))
        return false;
    t->net = net_create(opts->linear, opts->dropout);
    params = tutti_module_parameters(t->net, &n);
    sgd.lr = opts->lr;
    sgd.momentum = opts->momentum;
    t->sgd = tutti_sgd(params, n, &sgd);
    TRY(tutti_tensor_check());
    return report_open(&t->report, opts, rank, feed_samples(&t->feed));
}

static bool average_gradients(tutti_module *net, int divisor)
{
    int n;
    tutti_tensor *const *params = tutti_module_parameters(net, &n);

    for (int i = 0; i < n; i++) {
        tutti_tensor *grad = tutti_tensor_grad(params[i]);

        TRY(tutti_all_reduce(tutti_tensor_span(grad), TUTTI_SUM, NULL));
        TRY(tutti_tensor_div_scalar_(grad, divisor));
    }
    return true;
}

/* The mean over this rank's samples; of a shared batch its share of the mean over all of them. */
static tutti_tensor *loss_of(const trainer *t, const batch *b)
{
    tutti_loss_options opts = TUTTI_LOSS_OPTIONS;
    tutti_tensor *log_probs = tutti_forward(t->net, b->x);

    if (!t->feed.shared)
        return tutti_tensor_nll_loss(log_probs, b->y, NULL);
    opts.reduction = TUTTI_REDUCTION_SUM;
    return tutti_tensor_mul_scalar(tutti_tensor_nll_loss(log_probs, b->y, &opts),
                                   1.0 / (double)b->all);
}

/* What the sum over ranks is divided by: means of ranks are averaged, shares only add up. */
static int divisor(const trainer *t)
{
    return t->feed.shared ? 1 : t->size;
}

/* Note the mean loss of a step over all ranks, where somebody wants it. */
static bool note_loss(trainer *t, double loss)
{
    if (t->opts->losses == NULL)
        return true;
    TRY(tutti_all_reduce(TUTTI_SPAN(&loss, 1), TUTTI_SUM, NULL));
    return report_loss(&t->report, loss / divisor(t));
}

static bool learn(trainer *t, const batch *b, double *loss_out)
{
    tutti_tensor *loss = loss_of(t, b);

    TRY(tutti_tensor_item(loss, loss_out));
    tutti_optim_zero_grad(t->sgd);
    TRY(tutti_tensor_backward(loss));
    if (!average_gradients(t->net, divisor(t)))
        return false;
    TRY(tutti_optim_step(t->sgd));
    report_step(&t->report, b->all);
    return note_loss(t, *loss_out);
}

bool train_epoch(trainer *t)
{
    const double batches = (double)tutti_loader_batches(&t->feed.loader);
    bool ok = feed_shuffle(&t->feed), more = ok;
    double loss, sum = 0.0;
    batch b;

    while (more) {
        tutti_scope_begin();
        loss = 0.0;
        ok = feed_next(&t->feed, &b, &more) && (!more || learn(t, &b, &loss));
        tutti_scope_end();
        sum += loss;
        more = more && ok;
    }
    if (ok)
        report_epoch(&t->report, sum * t->size / divisor(t) / batches);
    return ok;
}

bool train_close(trainer *t)
{
    feed_close(&t->feed);
    tutti_optim_free(t->sgd);
    tutti_module_free(t->net);
    return report_close(&t->report);
}
