/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.h - what the kernel tells of a process of this host, without stopping it. */
#ifndef TUTTI_PROCESS_H
#define TUTTI_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_WORD_MAX = 64 };

typedef enum process_life {
    PROCESS_GONE,    /* there is none, or one that nobody has collected yet */
    PROCESS_RUNS,    /* on a core, or ready for one */
    PROCESS_SLEEPS,
    PROCESS_STOPPED, /* by a signal */
    PROCESS_TRACED,  /* a debugger holds it */
    PROCESS_FROZEN,  /* its control group is */
    PROCESS_DISK     /* it waits for a device, and cannot be interrupted */
} process_life;

typedef struct process_facts {
    process_life life;
    char state;                     /* as /proc/PID/stat has it */
    char waits_in[PROCESS_WORD_MAX]; /* a system call, or where in the kernel; "": unknown */
    double cpu_s;                   /* that all its threads have used so far */
    long tracer;                    /* 0: none */
    char tracer_name[PROCESS_WORD_MAX];
} process_facts;

process_facts process_look(pid_t pid);

/** The value of a variable that the process was started with; false: not set, or not to be read. */
bool process_variable(pid_t pid, const char *name, char *value, size_t bytes);

/** Whether the process was started with a variable that says that nothing is to be recorded: which, and its value. */
bool process_records_nothing(pid_t pid, char why_out[PROCESS_WORD_MAX]);

/** All processes that were started with RANK and with this TORCHELASTIC_RUN_ID: at most max of them, with their ranks. */
int process_find(const char *run_id, pid_t *pids, int *ranks, int max);

#endif
