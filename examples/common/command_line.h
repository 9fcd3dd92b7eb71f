/* SPDX-License-Identifier: BSD-3-Clause
 *
 * command_line.h - a command line as a struct: one row for each option says where its value goes. */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

/* What an option takes, and the type of the member that it goes to. */
typedef enum command_kind {
    COMMAND_WORD,   /* const char *: the word itself, borrowed */
    COMMAND_COUNT,  /* int64_t: 1 .. 1000000 */
    COMMAND_WHOLE,  /* uint64_t */
    COMMAND_REAL,   /* double: 0 or more, below limit */
    COMMAND_CHOICE, /* bool: false for the first of two words, true for the second */
    COMMAND_YES,    /* bool: no value; true if the option is there */
    COMMAND_NO      /* bool: no value; false if the option is there */
} command_kind;

typedef struct command_row {
    const char *name;
    command_kind kind;
    size_t offset;          /* of the member */
    double limit;           /* COMMAND_REAL; 0: none */
    const char *choices[2]; /* COMMAND_CHOICE */
} command_row;

typedef struct command_line {
    const char *program;
    const char *help; /* what --help prints */
    const command_row *rows;
    int n_rows;
    bool takes_words; /* there may be words behind the options */
} command_line;

/* Read the command line into the struct at into, which holds the defaults. What is behind the options begins at
 * argv[*rest_out]. Returns false where the program ends here, with *exit_code_out: 0 after --help, 2 after a line on
 * stderr that names the mistake; on rank 0 where there are several. */
bool command_line_read(const command_line *cl, int argc, char **argv, void *into, int *rest_out, int *exit_code_out);

#endif
