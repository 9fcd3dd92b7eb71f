/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench.c - `tutti bench`: a table of what can be measured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"
#include "tool.h"

typedef struct bench_word {
    const char *name;
    const char *what;
    int (*run)(int argc, char **argv);
} bench_word;

static const bench_word words[] = {
    { "all_reduce", "verify and time it with ranks of this host; so the next ones", bench_collective },
    { "broadcast", "", bench_collective },
    { "reduce", "", bench_collective },
    { "all_gather", "", bench_collective },
    { "reduce_scatter", "", bench_collective },
    { "all_to_all", "", bench_collective },
    { "barrier", "", bench_collective },
    { "send_recv", "one message from each even rank to the next", bench_collective },
    { "exchange16", "a batch: 8 messages to the next rank, and 8 from the one before", bench_collective },
    { "exchange64", "the same with 32; --async: message by message", bench_collective },
    { "overlap", "an all_reduce behind matrix products: how much of it is hidden", bench_collective },
    { "near", "how far two cores are from each other now", bench_near },
    { "store", "many clients count on one tcp store", bench_store },
    { "--tune", "measure all algorithms in turn, and write a table for TUTTI_TUNE", bench_tune },
};
enum { N_WORDS = sizeof words / sizeof words[0] };

static int print_help(FILE *out, int code)
{
    int i;

    fprintf(out, "usage: tutti bench WORD [options]\n\n");
    for (i = 0; i < N_WORDS; i++)
        fprintf(out, "  %-15s%s\n", words[i].name, words[i].what);
    fprintf(out, "\nEach word has its own --help.\n");
    return code;
}

int tool_bench(int argc, char **argv)
{
    int i;

    if (argc < 2)
        return print_help(stderr, TOOL_USAGE);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help(stdout, EXIT_SUCCESS);
    for (i = 0; i < N_WORDS; i++)
        if (strcmp(argv[1], words[i].name) == 0)
            return words[i].run(argc - 1, argv + 1);
    fprintf(stderr, "tutti bench: unknown word '%.200s'\n  next: tutti bench --help\n", argv[1]);
    return TOOL_USAGE;
}
