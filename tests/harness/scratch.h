/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scratch.h - what a run needs from the machine and gives back: a directory, a port, a clean
 * environment, and the last lines of a file. */
#ifndef TT_SCRATCH_H
#define TT_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

/** A directory of mode 0700 below TMPDIR (else /tmp). */
bool tt_dir_make(char *path_out, size_t bytes);

/** Remove a directory and everything in it. */
void tt_dir_remove(const char *path);

/** A TCP port that no other run and, at this moment, nobody else uses; 0: none found. Taken until this
 * process ends or gives it back. */
int tt_port_take(int *lock_out);
void tt_port_give_back(int lock);

/** Write a fresh job secret (64 hexadecimal digits, mode 0600). */
bool tt_secret_write(const char *path);

/** Forget every variable that describes a job, a scheduler or tutti, TUTTI_LOG excepted. */
void tt_env_clear(void);

/** Print the last lines of a file, each after a prefix. */
void tt_tail(const char *path, const char *prefix, int lines);

#endif
