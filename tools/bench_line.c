/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_line.c - getopt_long() with words of our own. */
#include "bench_line.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "near.h"
#include "tool.h"

/* The option that was probably meant, or NULL. */
static const char *nearest(const struct option *names, const char *name)
{
    const char *found = NULL;
    int best = near_limit(name);

    for (; names->name != NULL; names++) {
        const int d = near_distance(name, names->name);

        if (d < best) {
            best = d;
            found = names->name;
        }
    }
    return found;
}

static void say_unknown(const char *command, const char *arg, const struct option *names)
{
    char name[NEAR_WORD_MAX + 1];
    const char *near;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
    near = nearest(names, name);
    fprintf(stderr, "%s: unknown option '%.200s'%s%s%s\n", command, arg,
            near != NULL ? ", did you mean '--" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
}

/* "--async=yes": whether that is the option with this letter, written out or begun, with a value behind it. */
static bool has_value(const char *arg, const struct option *named)
{
    const size_t len = strncmp(arg, "--", 2) == 0 ? strcspn(arg + 2, "=") : 0;

    return len > 0 && arg[2 + len] == '=' && strncmp(named->name, arg + 2, len) == 0;
}

int tool_next_option(const char *command, int argc, char **argv, const struct option *names)
{
    const struct option *named = names;
    const char *arg;
    int option;

    opterr = 0; /* the words are ours */
    option = getopt_long(argc, argv, ":h", names, NULL);
    if (option != '?' && option != ':')
        return option;
    arg = argv[optind - 1];
    while (named->name != NULL && named->val != optopt)
        named++;
    if (option == ':')
        fprintf(stderr, "%s: option '--%s' needs a value\n", command, named->name);
    else if (optopt == 0)
        say_unknown(command, arg, names);
    else if (named->name != NULL && has_value(arg, named))
        fprintf(stderr, "%s: option '--%s' takes no value\n", command, named->name);
    else
        fprintf(stderr, "%s: unknown option '-%c'\n", command, optopt);
    return BENCH_LINE_WRONG;
}

int bench_next_option(int argc, char **argv, const struct option *names)
{
    char command[NEAR_WORD_MAX];

    snprintf(command, sizeof command, "tutti bench %s", argv[0]);
    return tool_next_option(command, argc, argv, names);
}

int bench_see_help(const char *word)
{
    fprintf(stderr, "  next: tutti bench %s --help\n", word);
    return TOOL_USAGE;
}
