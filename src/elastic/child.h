/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/child.h - one process: from a program to a pid with two pipes. */
#ifndef TTI_ELASTIC_CHILD_H
#define TTI_ELASTIC_CHILD_H

#include <sys/resource.h>
#include <sys/types.h>
#include <tutti/status.h>
#include "elastic/keeper.h"

/** A process of ours. It leads a process group of its own, in our session. */
typedef struct tti_child {
    pid_t pid;
    int pidfd;  /* readable when it has ended */
    int out_fd; /* what it writes to standard output; does not block */
    int err_fd; /* and to standard error */
} tti_child;

/** What a process becomes. Borrowed. */
typedef struct tti_command {
    const char *path; /* what execve takes */
    char *const *argv;
    char *const *envp;
    const struct rlimit *files; /* its limit of open files; NULL: ours */
    const tti_keeper *keeper;   /* is told of its process group */
    int recorder_fd;            /* stays open in it; -1: none */
    int bulletin_fd;            /* the same */
} tti_command;

/** Find a program as a shell does: through PATH unless it has a slash.
 * @param path_out  what execve takes; the caller frees it
 * @errors TUTTI_E_IO   not found, a directory, not executable, or a script whose interpreter is missing;
 *                      the text says which
 *         TUTTI_E_NOMEM */
tutti_status tti_find_program(const char *program, char **path_out);

/** Start a process. It gets SIGTERM when the calling thread ends, so call from one that outlives it;
 * needs tti_signals_take(). Standard input is inherited.
 * @param exec_errno_out  0; or why the program could not be executed. Then child_out has only a pid,
 *                        and the process is gone and collected
 * @errors TUTTI_E_NOMEM  out of processes, descriptors or memory */
tutti_status tti_child_start(const tti_command *command, tti_child *child_out, int *exec_errno_out);

/** Close the descriptors; the process stays as it is. */
void tti_child_close(tti_child *child);

#endif
