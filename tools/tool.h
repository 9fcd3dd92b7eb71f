/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool.h - the words of the tutti command. Each takes its own arguments, argv[0] being the word, and
 * returns an exit code. */
#ifndef TUTTI_TOOL_H
#define TUTTI_TOOL_H

enum { TOOL_USAGE = 2 }; /* exit code of a wrong command line */

int tool_bench(int argc, char **argv);
int tool_doctor(int argc, char **argv);
int tool_run(int argc, char **argv);
int tool_sim(int argc, char **argv);
int tool_store(int argc, char **argv);
int tool_trace(int argc, char **argv);

#endif
