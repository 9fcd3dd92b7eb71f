/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options.c - one table of options, the defaults, and what does not go together. */
#include "options.h"

#include <inttypes.h>

#include "examples/common/command_line.h"
#include "examples/common/say.h"

static const char help[] =
    "usage: gpt2_train [options] [FILE ...], alone or under tutti run\n"
    "  FILE ...              text to learn from, its last tenth held out (the pages and headers of tutti)\n"
    "  --layers N            of the network (4)\n"
    "  --heads N             of its attention (5)\n"
    "  --width N             of its layers, a multiple of --heads (160)\n"
    "  --context N           bytes that it sees at once (128)\n"
    "  --dropout X           part of it that is left out at random while training (0)\n"
    "  --batch N             contexts of a step, all ranks together (16, or a few more for equal parts)\n"
    "  --lr X                highest learning rate, of a warm-up and half a cosine (0.002)\n"
    "  --warmup N            steps of the warm-up, at most a fifth of --steps (100)\n"
    "  --weight-decay X      of matrices (0.1)\n"
    "  --clip X              longest gradient; 0: any (1)\n"
    "  --minutes X           how long to train: the steps are counted out from the first ones (10)\n"
    "  --steps N             train so many steps instead\n"
    "  --seed N              of parameters, order, dropout and sample (1234)\n"
    "  --eval-every N        steps between two measurements on what is held out (250)\n"
    "  --save-every N        steps between two checkpoints (250)\n"
    "  --out DIR             where losses.tsv, held_out.tsv, curve.svg and sample.txt go (gpt2-out)\n"
    "  --checkpoint FILE     safetensors, must not be there unless --resume (checkpoint.safetensors in --out)\n"
    "  --resume              go on from it; the other options are those of the run that wrote it\n"
    "  --resume-if-there     the same, and begin where there is none: for scripts that start a run until it exits with 0\n"
    "  --sample N            bytes to make up at the end (500)\n"
    "  --temperature X       of the sample; 0: always the likeliest byte (0.7)\n";

static const command_row rows[] = {
    { .name = "layers", .kind = COMMAND_COUNT, .offset = offsetof(options, shape.layers) },
    { .name = "heads", .kind = COMMAND_COUNT, .offset = offsetof(options, shape.heads) },
    { .name = "width", .kind = COMMAND_COUNT, .offset = offsetof(options, shape.width) },
    { .name = "context", .kind = COMMAND_COUNT, .offset = offsetof(options, shape.context) },
    { .name = "dropout", .kind = COMMAND_REAL, .offset = offsetof(options, shape.dropout), .limit = 1.0 },
    { .name = "batch", .kind = COMMAND_COUNT, .offset = offsetof(options, batch) },
    { .name = "lr", .kind = COMMAND_REAL, .offset = offsetof(options, lr) },
    { .name = "warmup", .kind = COMMAND_COUNT, .offset = offsetof(options, warmup) },
    { .name = "weight-decay", .kind = COMMAND_REAL, .offset = offsetof(options, weight_decay) },
    { .name = "clip", .kind = COMMAND_REAL, .offset = offsetof(options, clip) },
    { .name = "minutes", .kind = COMMAND_REAL, .offset = offsetof(options, minutes), .limit = 1e6 },
    { .name = "steps", .kind = COMMAND_COUNT, .offset = offsetof(options, steps) },
    { .name = "seed", .kind = COMMAND_WHOLE, .offset = offsetof(options, seed) },
    { .name = "eval-every", .kind = COMMAND_COUNT, .offset = offsetof(options, eval_every) },
    { .name = "save-every", .kind = COMMAND_COUNT, .offset = offsetof(options, save_every) },
    { .name = "out", .kind = COMMAND_WORD, .offset = offsetof(options, out) },
    { .name = "checkpoint", .kind = COMMAND_WORD, .offset = offsetof(options, checkpoint) },
    { .name = "resume", .kind = COMMAND_YES, .offset = offsetof(options, resume) },
    { .name = "resume-if-there", .kind = COMMAND_YES, .offset = offsetof(options, resume_if_there) },
    { .name = "sample", .kind = COMMAND_COUNT, .offset = offsetof(options, sample) },
    { .name = "temperature", .kind = COMMAND_REAL, .offset = offsetof(options, temperature) },
};

static const command_line line = {
    .program = "gpt2_train", .help = help, .rows = rows, .n_rows = sizeof rows / sizeof rows[0], .takes_words = true
};

static const options defaults = { .shape = { .layers = 4, .heads = 5, .width = 160, .context = 128 },
                                  .lr = 0.002,
                                  .warmup = 100,
                                  .weight_decay = 0.1,
                                  .clip = 1.0,
                                  .minutes = -1.0, /* not said */
                                  .seed = 1234,
                                  .eval_every = 250,
                                  .save_every = 250,
                                  .out = "gpt2-out",
                                  .sample = 500,
                                  .temperature = 0.7 };

/* What no row can say. */
static bool check(const options *o)
{
    if (o->shape.width % o->shape.heads != 0)
        return say_once("--width: %" PRId64 " is no multiple of %" PRId64 " heads", o->shape.width, o->shape.heads);
    if (o->minutes >= 0.0 && o->steps > 0)
        return say_once("--minutes and --steps: one of them says how long to train");
    if (o->minutes == 0.0)
        return say_once("--minutes: there is nothing to do in 0 minutes");
    return true;
}

bool options_parse(int argc, char **argv, options *opts_out, int *exit_code_out)
{
    options o = defaults;
    int rest;

    if (!command_line_read(&line, argc, argv, &o, &rest, exit_code_out))
        return false;
    if (!check(&o)) {
        *exit_code_out = 2;
        return false;
    }
    if (o.steps > 0 && o.warmup > o.steps / 5)
        o.warmup = o.steps / 5;
    if (o.minutes < 0.0)
        o.minutes = o.steps > 0 ? 0.0 : 10.0;
    o.texts = argv + rest;
    o.n_texts = argc - rest;
    *opts_out = o;
    return true;
}
