/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proc.h - small files of the kernel. */
#ifndef TUTTI_PROC_H
#define TUTTI_PROC_H

#include <stdbool.h>
#include <stddef.h>

/** The first line of a file, without its newline, cut to bytes - 1; false: it cannot be read, and text is "". */
bool proc_line(const char *path, char *text, size_t bytes);

/** Numbers that a file begins with, at most n; how many there are. */
int proc_numbers(const char *path, long long *out, int n);

/** The number behind "KEY:" in a file as /proc/meminfo; -1: there is none. */
long long proc_value(const char *path, const char *key);

#endif
