/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mnist_ddp.c - the training of mnist.c with a ddp in the place of averaging by hand: three calls differ.
 *
 *     tutti run --standalone --nproc-per-node=2 ./mnist_ddp --data DIR */
#include <inttypes.h>
#include <stdio.h>
#include <tutti/ddp.h>
#include <tutti/optim.h>

#include "examples/common/differing.h"
#include "examples/common/say.h"
#include "feed.h"
#include "net.h"
#include "options.h"
#include "outcome.h"
#include "report.h"

typedef struct trainer {
    const options *opts;
    feed feed;
    report report;
    tutti_module *net;
    tutti_ddp *ddp;
    tutti_optim *sgd;
    int rank, size;
} trainer;

static bool begin(trainer *t)
{
    tutti_sgd_options sgd = TUTTI_SGD_OPTIONS;
    tutti_tensor *const *params;
    int n;

    tutti_manual_seed(t->opts->seed);
    if (!feed_open(&t->feed, t->opts, t->rank, t->size))
        return false;
    t->net = net_create(t->opts->linear, t->opts->dropout);
    TRY(tutti_tensor_check());
    TRY(tutti_ddp_create(t->net, NULL, &t->ddp)); /* all ranks have rank 0's parameters now */
    params = tutti_module_parameters(t->net, &n);
    sgd.lr = t->opts->lr;
    sgd.momentum = t->opts->momentum;
    t->sgd = tutti_sgd(params, n, &sgd);
    TRY(tutti_tensor_check());
    return report_open(&t->report, t->opts, t->rank, feed_samples(&t->feed));
}

/* The mean over this rank's samples. Gradients are averaged over ranks, equal weights each: of a shared batch, whose
 * parts differ in size, a rank's share of the mean counts as often as there are ranks. */
static tutti_tensor *loss_of(const trainer *t, const batch *b)
{
    tutti_loss_options opts = TUTTI_LOSS_OPTIONS;
    tutti_tensor *log_probs = tutti_ddp_forward(t->ddp, b->x);

    if (!t->feed.shared)
        return tutti_tensor_nll_loss(log_probs, b->y, NULL);
    opts.reduction = TUTTI_REDUCTION_SUM;
    return tutti_tensor_mul_scalar(tutti_tensor_nll_loss(log_probs, b->y, &opts), (double)t->size / (double)b->all);
}

static bool learn(trainer *t, const batch *b, double *loss_out)
{
    tutti_tensor *loss = loss_of(t, b);
    double mean;

    TRY(tutti_tensor_item(loss, loss_out));
    tutti_optim_zero_grad(t->sgd);
    TRY(tutti_tensor_backward(loss)); /* gradients are averages when it returns */
    TRY(tutti_optim_step(t->sgd));
    report_step(&t->report, b->all);
    if (t->opts->losses == NULL)
        return true;
    mean = *loss_out;
    TRY(tutti_all_reduce(TUTTI_SPAN(&mean, 1), TUTTI_AVG, NULL));
    return report_loss(&t->report, mean);
}

static bool epoch(trainer *t)
{
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
        report_epoch(&t->report, sum / (double)tutti_loader_batches(&t->feed.loader));
    return ok;
}

static bool tell(trainer *t)
{
    double accuracy;
    int differing;

    report_end(&t->report);
    if (!outcome_table(&t->report) || !differing_ranks(t->net, &differing) ||
        !outcome_accuracy(t->net, t->feed.test, &accuracy))
        return false;
    if (t->rank == 0 && differing == 0)
        printf("parameters are bitwise equal on all ranks (%d)\n", t->size);
    if (t->rank == 0)
        printf("test accuracy %.1f %%\n", accuracy);
    return differing == 0 || say_once("parameters differ from rank 0's on %d of %d ranks", differing, t->size);
}

static bool end(trainer *t)
{
    feed_close(&t->feed);
    tutti_optim_free(t->sgd);
    tutti_ddp_free(t->ddp);
    tutti_module_free(t->net);
    return report_close(&t->report);
}

static bool train(const options *opts)
{
    trainer t = { .opts = opts, .rank = tutti_get_rank(NULL), .size = tutti_get_world_size(NULL) };
    bool ok = begin(&t);

    for (int64_t i = 0; i < opts->epochs && ok; i++)
        ok = epoch(&t);
    ok = ok && tell(&t);
    return end(&t) && ok;
}

/* Samples of a step: as many on each rank, about 128 in all. */
static bool settle_batch(options *opts, int size)
{
    if (opts->batch == 0)
        opts->batch = size < 128 ? 128 / size * size : size;
    return opts->batch % size == 0 || opts->global_batches ||
           say_once("--batch: %" PRId64 " samples cannot be shared equally by %d ranks", opts->batch, size);
}

int main(int argc, char **argv)
{
    options opts;
    int code;

    if (!options_parse(argc, argv, &opts, &code))
        return code;
    if (tutti_init_process_group(NULL) != TUTTI_OK)
        return say("%s", tutti_last_error()) ? 0 : 1;
    code = settle_batch(&opts, tutti_get_world_size(NULL)) && train(&opts) ? 0 : 1;
    if (tutti_destroy_process_group(NULL) != TUTTI_OK && code == 0)
        code = say("%s", tutti_last_error()) ? 0 : 1;
    return code;
}
