/* SPDX-License-Identifier: BSD-3-Clause
 *
 * main.c - the tutti command: a table of words. Called as tuttirun it is `tutti run`. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "near.h"
#include "tool.h"

typedef struct word {
    const char *name;
    const char *what;
    int (*run)(int argc, char **argv);
} word;

static const word words[] = {
    { "bench", "measure", tool_bench },
    { "doctor", "say what is wrong with this host, its environment, or a job that hangs", tool_doctor },
    { "run", "start the processes of a job on this host", tool_run },
    { "sim", "predict what collectives take on other clusters", tool_sim },
    { "store", "serve a key-value store, or look into one", tool_store },
    { "trace", "write the latest operations of a job for Perfetto", tool_trace },
};
enum { N_WORDS = sizeof words / sizeof words[0] };

static void print_help(FILE *out)
{
    int i;

    fprintf(out, "usage: tutti COMMAND [options]\n\n");
    for (i = 0; i < N_WORDS; i++)
        fprintf(out, "  %-10s %s\n", words[i].name, words[i].what);
    fprintf(out, "\n  --help, --version\n\n"
                 "Each command has its own --help, which \"tutti help COMMAND\" shows, too.\n");
}

/* A program that was started with 0, 1 or 2 closed would find its pipes there. What is written to one that was closed is lost,
 * and that is to be seen: nothing can be written there. */
static void open_standard_streams(void)
{
    int fd;

    for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) /* the lowest that is free is the one that is open()ed */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
            return;
}

/* The word that was probably meant, or NULL. */
static const char *nearest(const char *name)
{
    const char *found = NULL;
    int best = (int)strlen(name) / 2 + 1; /* words are short: "walk" is not "run" */
    int i;

    for (i = 0; i < N_WORDS; i++) {
        int d = near_distance(name, words[i].name);

        if (d < best) {
            best = d;
            found = words[i].name;
        }
    }
    return found;
}

static int run_word(int argc, char **argv)
{
    const char *near;
    int i;

    for (i = 0; i < N_WORDS; i++)
        if (strcmp(argv[0], words[i].name) == 0)
            return words[i].run(argc, argv);
    near = nearest(argv[0]);
    if (near != NULL)
        fprintf(stderr, "tutti: unknown command '%s'\n  next: did you mean '%s'?\n", argv[0], near);
    else
        fprintf(stderr, "tutti: unknown command '%s'\n  next: tutti --help\n", argv[0]);
    return TOOL_USAGE;
}

/* "help", or "help WORD" for the word's own. */
static int help(int argc, char **argv)
{
    char option[] = "--help";
    char *word_argv[] = { argc > 1 ? argv[1] : NULL, option, NULL };

    if (argc > 1)
        return run_word(2, word_argv);
    print_help(stdout);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : argc > 0 ? argv[0] : "tutti";

    open_standard_streams();
    if (strcmp(name, "tuttirun") == 0)
        return tool_run(argc, argv);
    if (argc < 2) {
        print_help(stderr);
        return TOOL_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help(1, argv);
    if (strcmp(argv[1], "help") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(argv[1], "--version") == 0) {
        printf("tutti %s\n", TUTTI_VERSION);
        return EXIT_SUCCESS;
    }
    return run_word(argc - 1, argv + 1);
}
