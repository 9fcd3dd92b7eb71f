/* SPDX-License-Identifier: BSD-3-Clause
 *
 * command_line.c - getopt_long() over a table, in words of ours. */
#include "examples/common/command_line.h"

#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "examples/common/number.h"
#include "examples/common/say.h"

enum { ROWS_MAX = 40, FIRST = 1, HELP = FIRST + ROWS_MAX };

static bool needs_value(const command_row *row)
{
    return row->kind != COMMAND_YES && row->kind != COMMAND_NO;
}

static void list(const command_line *cl, struct option table[ROWS_MAX + 2])
{
    int i;

    for (i = 0; i < cl->n_rows && i < ROWS_MAX; i++)
        table[i] = (struct option){ cl->rows[i].name, needs_value(&cl->rows[i]) ? required_argument : no_argument,
                                    NULL, FIRST + i };
    table[i++] = (struct option){ "help", no_argument, NULL, HELP };
    table[i] = (struct option){ 0 };
}

static bool take(const command_row *row, char *into)
{
    void *to = into + row->offset;

    switch (row->kind) {
    case COMMAND_WORD: memcpy(to, &optarg, sizeof optarg); return true;
    case COMMAND_COUNT: return number_count(optarg, to);
    case COMMAND_WHOLE: return number_whole(optarg, 0, UINT64_MAX, to);
    case COMMAND_REAL: return number_real(optarg, row->limit > 0.0 ? row->limit : HUGE_VAL, to);
    case COMMAND_CHOICE:
        *(bool *)to = strcmp(optarg, row->choices[1]) == 0;
        return *(bool *)to || strcmp(optarg, row->choices[0]) == 0;
    default: *(bool *)to = row->kind == COMMAND_YES; return true;
    }
}

/* What take() takes. */
static void range_of(const command_row *row, char *words, size_t bytes)
{
    if (row->kind == COMMAND_WHOLE)
        snprintf(words, bytes, "a whole number, 0 .. 2^64-1");
    else if (row->kind == COMMAND_COUNT)
        snprintf(words, bytes, "a whole number, 1 .. 1000000");
    else if (row->kind == COMMAND_CHOICE)
        snprintf(words, bytes, "'%s' or '%s'", row->choices[0], row->choices[1]);
    else if (row->limit > 0.0)
        snprintf(words, bytes, "a number, 0 or more and below %g", row->limit);
    else
        snprintf(words, bytes, "a number, 0 or more");
}

static bool wrong(const command_line *cl, const char *word, const char *what, int *exit_code_out)
{
    say_once("'%s' %s; see %s --help", word, what, cl->program);
    *exit_code_out = 2;
    return false;
}

/* One option; false when the program ends here. */
static bool read_one(const command_line *cl, int which, const char *word, void *into, int *exit_code_out)
{
    char range[128];

    if (which == HELP) {
        if (say_is_mine())
            fputs(cl->help, stdout);
        *exit_code_out = 0;
        return false;
    }
    if (which == ':')
        return wrong(cl, word, "needs a value", exit_code_out);
    if (which == '?')
        return wrong(cl, word, "is no option", exit_code_out);
    if (take(&cl->rows[which - FIRST], into))
        return true;
    range_of(&cl->rows[which - FIRST], range, sizeof range);
    say_once("'%s' is no value for --%s, which takes %s; see %s --help", optarg, cl->rows[which - FIRST].name, range,
             cl->program);
    *exit_code_out = 2;
    return false;
}

bool command_line_read(const command_line *cl, int argc, char **argv, void *into, int *rest_out, int *exit_code_out)
{
    struct option table[ROWS_MAX + 2];

    list(cl, table);
    opterr = 0; /* the words are ours */
    for (;;) {
        const char *word = argv[optind];
        const int which = getopt_long(argc, argv, "+:", table, NULL);

        if (which == -1)
            break;
        if (!read_one(cl, which, word, into, exit_code_out))
            return false;
    }
    if (optind < argc && !cl->takes_words)
        return wrong(cl, argv[optind], "is no option", exit_code_out);
    *rest_out = optind;
    return true;
}
