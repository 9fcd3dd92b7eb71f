/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor.c - `tutti doctor`: what is wrong, before a job runs and while it hangs. */
#include "doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>
#include "bench_line.h"
#include "near.h"
#include "tool.h"

typedef struct word {
    const char *name;
    const char *what;
    int (*run)(int argc, char **argv);
} word;

static const word words[] = {
    { "hang", "who is missing from what in a job that hangs, and why", doctor_hang },
    { "host", "what of this host matters: limits, memory, interfaces, names", doctor_host },
    { "env", "the variables that are set: known, valid, without contradiction?", doctor_env },
};
enum { N_WORDS = sizeof words / sizeof words[0] };

static int print_help(FILE *out, int code)
{
    int i;

    fprintf(out, "usage: tutti doctor WORD [options]\n\n");
    for (i = 0; i < N_WORDS; i++)
        fprintf(out, "  %-6s %s\n", words[i].name, words[i].what);
    fprintf(out, "\n  --json   for programs\n\n"
                 "Exit codes: 0 all is well, 1 something will fail, or hangs, 2 wrong command line.\n");
    return code;
}

static int unknown(const char *name)
{
    const char *found = NULL;
    int best = (int)strlen(name) / 2 + 1;
    int i;

    for (i = 0; i < N_WORDS; i++) {
        const int d = near_distance(name, words[i].name);

        if (d < best) {
            best = d;
            found = words[i].name;
        }
    }
    if (found != NULL)
        fprintf(stderr, "tutti doctor: unknown word '%.100s'\n  next: did you mean '%s'?\n", name, found);
    else
        fprintf(stderr, "tutti doctor: unknown word '%.100s'\n  next: tutti doctor --help\n", name);
    return TOOL_USAGE;
}

bool doctor_read_options(const char *command, int argc, char **argv, bool *json_out, bool *help_out)
{
    static const struct option names[] = {
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int option;

    while ((option = tool_next_option(command, argc, argv, names)) >= 0) {
        if (option == BENCH_LINE_WRONG) {
            fprintf(stderr, "  next: tutti doctor --help\n");
            return false;
        }
        *(option == 'j' ? json_out : help_out) = true;
    }
    if (optind < argc && !*help_out) {
        fprintf(stderr, "%s: '%.200s' is one word too many\n  next: tutti doctor --help\n", command, argv[optind]);
        return false;
    }
    return true;
}

const char *doctor_split_error(char text[DOCTOR_WORDS_MAX])
{
    char *next;

    snprintf(text, DOCTOR_WORDS_MAX, "%s", tutti_last_error());
    next = strstr(text, "\n  next: ");
    if (next == NULL)
        return NULL;
    *next = '\0';
    return next + strlen("\n  next: ");
}

int tool_doctor(int argc, char **argv)
{
    int i;

    if (argc < 2)
        return print_help(stderr, TOOL_USAGE);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help(stdout, EXIT_SUCCESS);
    for (i = 0; i < N_WORDS; i++)
        if (strcmp(words[i].name, argv[1]) == 0)
            return words[i].run(argc - 1, argv + 1);
    return unknown(argv[1]);
}

int doctor_host(int argc, char **argv)
{
    bool json = false, help = false;
    report r;

    if (!doctor_read_options("tutti doctor host", argc, argv, &json, &help))
        return TOOL_USAGE;
    if (help)
        return print_help(stdout, EXIT_SUCCESS);
    r = report_begin("host", json);
    doctor_machine(&r);
    doctor_net(&r);
    doctor_parts(&r);
    return report_end(&r);
}
