/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor.h - the words of `tutti doctor`, and what they share. */
#ifndef TUTTI_DOCTOR_H
#define TUTTI_DOCTOR_H

#include <stdbool.h>
#include "report.h"

/** Each reads its own options, argv[0] being the word, and returns an exit code. */
int doctor_host(int argc, char **argv);
int doctor_env(int argc, char **argv);
int doctor_hang(int argc, char **argv);

/** The options that `host` and `env` have in common: --json, --help; false: wrong, and said so. */
bool doctor_read_options(const char *command, int argc, char **argv, bool *json_out, bool *help_out);

enum { DOCTOR_WORDS_MAX = 512 };

/** The last error without what it says to do next, which is returned; NULL: it says nothing of that. */
const char *doctor_split_error(char text[DOCTOR_WORDS_MAX]);

/** Parts of `tutti doctor host`. */
void doctor_machine(report *r); /* cores, memory, limits, what the kernel allows */
void doctor_net(report *r);     /* interfaces, names, TCP */
void doctor_parts(report *r);   /* optional parts */

#endif
