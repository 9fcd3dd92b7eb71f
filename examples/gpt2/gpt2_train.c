/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gpt2_train.c - a language model of bytes in the manner of GPT-2, trained by any number of ranks on any text.
 *
 *     tutti run --standalone --nproc-per-node=2 ./gpt2_train --minutes 10 FILE ...
 *
 * Progress goes to stderr, results to stdout and into the folder --out. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/group.h>

#include "examples/common/differing.h"
#include "examples/common/say.h"
#include "examples/common/world.h"
#include "ngram.h"
#include "sample.h"
#include "train.h"

static const char level_name[] = "3-gram model, Kneser-Ney";

static int64_t parameters_of(tutti_module *net)
{
    int n;
    tutti_tensor *const *params = tutti_module_parameters(net, &n);
    int64_t all = 0;

    for (int i = 0; i < n; i++)
        all += tutti_tensor_numel(params[i]);
    return all;
}

/* On rank 0: what there is to learn from, and what a table of counts makes of it. */
static bool introduce(trainer *t)
{
    ngram *g = ngram_create(t->text.bytes, t->text.train);

    if (g == NULL)
        return say("no memory for the counts of a 3-gram model");
    t->level = ngram_bits(g, t->text.bytes, t->text.train, t->text.n);
    ngram_free(g);
    printf("text: %" PRId64 " bytes of %" PRId64 " files, %" PRId64 " of them held out; an epoch has %" PRId64
           " steps\n", t->text.n, t->text.files, t->text.n - t->text.train, t->windows.steps);
    printf("%s: %.3f bits per held-out byte\n", level_name, t->level);
    printf("network: %" PRId64 " parameters, %d ranks", parameters_of(t->net), t->size);
    if (t->at.step > 0)
        printf("; goes on from step %" PRId64 " of '%s'", t->at.step, t->checkpoint);
    printf("\n");
    fflush(stdout);
    return true;
}

/* Bytes as a terminal takes them. */
static void print_text(const uint8_t *made, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        putchar(made[i] == '\n' || made[i] == '\t' || isprint(made[i]) ? made[i] : '.');
    putchar('\n');
}

static bool write_text(const char *dir, const uint8_t *made, int64_t n)
{
    char path[4096 + 16];
    FILE *f;
    bool ok;

    snprintf(path, sizeof path, "%.4095s/sample.txt", dir);
    f = fopen(path, "we");
    ok = f != NULL && fwrite(made, 1, (size_t)n, f) == (size_t)n;
    ok = f != NULL && fclose(f) == 0 && ok;
    return ok || say("cannot write '%s': %s", path, strerror(errno));
}

/* On rank 0: text that goes on behind the end of a line. */
static bool make_up(trainer *t)
{
    const options *o = t->opts;
    const sample_options opts = { .context = o->shape.context, .temperature = o->temperature, .seed = o->seed };
    const int64_t n = o->sample + 1;
    uint8_t *made = malloc((size_t)n);
    bool ok = made != NULL || say("no memory for a sample of %" PRId64 " bytes", n);

    if (ok)
        made[0] = '\n';
    ok = ok && sample_text(t->net, &opts, made, 1, n) && write_text(o->out, made + 1, n - 1);
    if (ok) {
        printf("---- %" PRId64 " bytes made up at temperature %g ----\n", o->sample, o->temperature);
        print_text(made + 1, n - 1);
    }
    free(made);
    return ok;
}

/* What it came to. */
static bool tell(trainer *t)
{
    int differing;

    if (!differing_ranks(t->net, &differing))
        return false;
    if (differing > 0)
        return say_once("parameters differ from rank 0's on %d of %d ranks", differing, t->size);
    if (t->rank != 0)
        return true;
    printf("parameters are bitwise equal on all ranks (%d)\n", t->size);
    if (t->stopped != 0) {
        printf("stopped behind step %" PRId64 ": '%s' has it, --resume goes on\n", t->at.step, t->checkpoint);
        return curve_draw(&t->curve, t->level, level_name);
    }
    printf("step %" PRId64 ": %.3f bits per held-out byte; %s: %.3f\n", t->at.step, t->bits, level_name, t->level);
    return curve_draw(&t->curve, t->level, level_name) && make_up(t);
}

/* The exit code: 128 + n where signal n has stopped it before its end, as if it had died of it. */
static int train(const options *opts)
{
    trainer t = { 0 };
    bool ok = train_open(&t, opts) && (t.rank != 0 || introduce(&t)) && train_run(&t) && tell(&t);

    ok = train_close(&t) && ok;
    return !ok ? 1 : t.stopped != 0 ? 128 + t.stopped : 0;
}

/* Windows of a step: as many on each rank, about 16 in all. */
static bool settle_batch(options *opts, int size)
{
    enum { USUAL = 16 };

    if (opts->batch == 0)
        opts->batch = (USUAL + size - 1) / size * size;
    return opts->batch % size == 0 ||
           say_once("--batch: %" PRId64 " windows cannot be shared equally by %d ranks", opts->batch, size);
}

/* Options are read inside the world: rank 0 says what is wrong with them, and the others end when it has. */
static int train_in_world(int argc, char **argv)
{
    options opts;
    int code = 2;

    if (options_parse(argc, argv, &opts, &code) && settle_batch(&opts, tutti_get_world_size(NULL)))
        return train(&opts);
    (void)tutti_barrier(NULL);
    return code;
}

int main(int argc, char **argv)
{
    int code;

    train_catch_signals();
    if (!world_join())
        return 1;
    code = train_in_world(argc, argv);
    return world_leave() || code != 0 ? code : 1;
}
