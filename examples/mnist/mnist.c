/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mnist.c - the tutorial's distributed training, from joining the job to the accuracy.
 *
 *     tutti run --standalone --nproc-per-node=4 ./mnist --data DIR */
#include <inttypes.h>
#include <stdio.h>
#include <tutti/group.h>

#include "examples/common/differing.h"
#include "examples/common/say.h"
#include "examples/common/world.h"
#include "options.h"
#include "outcome.h"
#include "train.h"

/* Table, comparison, accuracy. False also if the ranks' parameters differ. */
static bool tell_outcome(trainer *t)
{
    double accuracy;
    int differing;

    report_end(&t->report);
    if (!outcome_table(&t->report) || !differing_ranks(t->net, &differing) ||
        !outcome_accuracy(t->net, t->feed.test, &accuracy))
        return false;
    if (tutti_get_rank(NULL) == 0) {
        if (differing == 0)
            printf("parameters are bitwise equal on all ranks (%d)\n", t->size);
        else
            printf("parameters differ from rank 0's on %d of %d ranks\n", differing, t->size);
        printf("test accuracy %.1f %%\n", accuracy);
    }
    return differing == 0;
}

static bool run(trainer *t, const options *opts)
{
    if (!train_open(t, opts))
        return false;
    for (int64_t epoch = 0; epoch < opts->epochs; epoch++)
        if (!train_epoch(t))
            return false;
    return tell_outcome(t);
}

/* The tutorial's default is 128 / size samples a rank; shared batches need no equal parts. */
static bool settle_batch(options *opts, int size)
{
    if (opts->batch != 0)
        return opts->batch % size == 0 ||
               say_once("--batch: %" PRId64 " samples cannot be shared equally by %d ranks",
                        opts->batch, size);
    opts->batch = opts->global_batches ? 128 : size < 128 ? 128 / size * size : size;
    return true;
}

/* Options are read inside the world: rank 0 says what is wrong with them, and the others end only when it
 * has, since the launcher ends all when one does. */
static bool settle_options(int argc, char **argv, options *opts_out, int *exit_code_out)
{
    if (options_parse(argc, argv, opts_out, exit_code_out)) {
        if (settle_batch(opts_out, tutti_get_world_size(NULL)))
            return true;
        *exit_code_out = 2;
    }
    (void)tutti_barrier(NULL); /* whoever is gone has nothing more to say */
    return false;
}

static int train_in_world(int argc, char **argv)
{
    options opts;
    trainer t = { 0 };
    int exit_code;
    bool ok;

    if (!settle_options(argc, argv, &opts, &exit_code))
        return exit_code;
    ok = run(&t, &opts);
    return train_close(&t) && ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    int exit_code;

    if (!world_join())
        return 1;
    exit_code = train_in_world(argc, argv);
    return world_leave() || exit_code != 0 ? exit_code : 1;
}
