/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options.c - one table of options, and what each does to the defaults. */
#include "options.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "number.h"
#include "say.h"

static const char help[] =
    "usage: mnist --data DIR [options], alone or under tutti run\n"
    "  --data DIR         IDX files; without train-* the t10k-* files are split 9 to 1\n"
    "  --epochs N         times through the training set (10)\n"
    "  --batch N          samples of a step, all ranks together (128, or less for equal parts)\n"
    "  --lr X             learning rate (0.01)\n"
    "  --momentum X       of the gradient descent (0.5)\n"
    "  --seed N           of everything that is random (1234)\n"
    "  --model NAME       cnn: the tutorial's network; linear: a softmax classifier (cnn)\n"
    "  --no-dropout       train without dropout\n"
    "  --global-batches   share batches of one order: all world sizes see the same ones\n"
    "  --losses FILE      write the mean loss of every step, one a line\n";

enum { DATA = 1, EPOCHS, BATCH, LR, MOMENTUM, SEED, MODEL, NO_DROPOUT, GLOBAL, LOSSES, HELP };

static const struct option table[] = { { "data", required_argument, NULL, DATA },
                                       { "epochs", required_argument, NULL, EPOCHS },
                                       { "batch", required_argument, NULL, BATCH },
                                       { "lr", required_argument, NULL, LR },
                                       { "momentum", required_argument, NULL, MOMENTUM },
                                       { "seed", required_argument, NULL, SEED },
                                       { "model", required_argument, NULL, MODEL },
                                       { "no-dropout", no_argument, NULL, NO_DROPOUT },
                                       { "global-batches", no_argument, NULL, GLOBAL },
                                       { "losses", required_argument, NULL, LOSSES },
                                       { "help", no_argument, NULL, HELP },
                                       { NULL, 0, NULL, 0 } };

static bool take(int which, options *o)
{
    switch (which) {
    case DATA: o->data = optarg; return true;
    case LOSSES: o->losses = optarg; return true;
    case EPOCHS: return number_count(optarg, &o->epochs);
    case BATCH: return number_count(optarg, &o->batch);
    case SEED: return number_whole(optarg, 0, UINT64_MAX, &o->seed);
    case LR: return number_real(optarg, HUGE_VAL, &o->lr);
    case MOMENTUM: return number_real(optarg, 1.0, &o->momentum);
    case MODEL:
        o->linear = strcmp(optarg, "linear") == 0;
        return o->linear || strcmp(optarg, "cnn") == 0;
    case NO_DROPOUT: o->dropout = false; return true;
    default: o->global_batches = true; return true;
    }
}

/* What take() takes. */
static const char *range_of(int which)
{
    switch (which) {
    case SEED: return "a whole number, 0 .. 2^64-1";
    case LR: return "a number, 0 or more";
    case MOMENTUM: return "a number, 0 or more and below 1";
    case MODEL: return "'cnn' or 'linear'";
    default: return "a whole number, 1 .. 1000000";
    }
}

static bool wrong(const char *word, const char *what, int *exit_code_out)
{
    say_once("'%s' %s; see mnist --help", word, what);
    *exit_code_out = 2;
    return false;
}

/* One option; false when the program ends here. */
static bool parse_one(int which, const char *word, int at, options *o, int *exit_code_out)
{
    if (which == HELP) {
        if (say_is_mine())
            fputs(help, stdout);
        *exit_code_out = 0;
        return false;
    }
    if (which == ':')
        return wrong(word, "needs a value", exit_code_out);
    if (which == '?')
        return wrong(word, "is no option", exit_code_out);
    if (!take(which, o)) {
        say_once("'%s' is no value for --%s, which takes %s; see mnist --help", optarg,
                 table[at].name, range_of(which));
        *exit_code_out = 2;
        return false;
    }
    return true;
}

bool options_parse(int argc, char **argv, options *opts_out, int *exit_code_out)
{
    options o = { .epochs = 10, .seed = 1234, .lr = 0.01, .momentum = 0.5, .dropout = true };

    opterr = 0; /* the words are ours */
    for (;;) {
        const char *word = argv[optind];
        int at = 0;
        const int which = getopt_long(argc, argv, "+:", table, &at);

        if (which == -1)
            break;
        if (!parse_one(which, word, at, &o, exit_code_out))
            return false;
    }
    if (optind < argc)
        return wrong(argv[optind], "is no option", exit_code_out);
    if (o.data == NULL)
        return wrong("--data", "is missing", exit_code_out);
    *opts_out = o;
    return true;
}
