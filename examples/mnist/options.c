/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options.c - one table of options, and the defaults. */
#include "options.h"

#include "examples/common/command_line.h"
#include "examples/common/say.h"

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

static const command_row rows[] = {
    { .name = "data", .kind = COMMAND_WORD, .offset = offsetof(options, data) },
    { .name = "epochs", .kind = COMMAND_COUNT, .offset = offsetof(options, epochs) },
    { .name = "batch", .kind = COMMAND_COUNT, .offset = offsetof(options, batch) },
    { .name = "lr", .kind = COMMAND_REAL, .offset = offsetof(options, lr) },
    { .name = "momentum", .kind = COMMAND_REAL, .offset = offsetof(options, momentum), .limit = 1.0 },
    { .name = "seed", .kind = COMMAND_WHOLE, .offset = offsetof(options, seed) },
    { .name = "model", .kind = COMMAND_CHOICE, .offset = offsetof(options, linear), .choices = { "cnn", "linear" } },
    { .name = "no-dropout", .kind = COMMAND_NO, .offset = offsetof(options, dropout) },
    { .name = "global-batches", .kind = COMMAND_YES, .offset = offsetof(options, global_batches) },
    { .name = "losses", .kind = COMMAND_WORD, .offset = offsetof(options, losses) },
};

static const command_line line = { .program = "mnist",
                                   .help = help,
                                   .rows = rows,
                                   .n_rows = sizeof rows / sizeof rows[0] };

bool options_parse(int argc, char **argv, options *opts_out, int *exit_code_out)
{
    options o = { .epochs = 10, .seed = 1234, .lr = 0.01, .momentum = 0.5, .dropout = true };
    int rest;

    if (!command_line_read(&line, argc, argv, &o, &rest, exit_code_out))
        return false;
    if (o.data == NULL) {
        say_once("'--data' is missing; see mnist --help");
        *exit_code_out = 2;
        return false;
    }
    *opts_out = o;
    return true;
}
