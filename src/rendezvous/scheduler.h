/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous/scheduler.h - what Slurm or an MPI's mpirun has told this process about its job. */
#ifndef TTI_RENDEZVOUS_SCHEDULER_H
#define TTI_RENDEZVOUS_SCHEDULER_H

#include "wire/addr.h"

enum { TTI_JOB_NAME_MAX = 128 };

/** Zeroed: no scheduler has started this process. */
typedef struct tti_scheduler {
    const char *name; /* for words: "Open MPI"; NULL: none */
    const char *pass; /* for words: how a variable reaches all ranks */
    int         rank;
    int         world_size;
    int         local_rank;                 /* -1: not told */
    bool        one_host;                   /* all ranks are on this host */
    char        job_name[TTI_JOB_NAME_MAX]; /* of this start, unlike any other's on this host; "": not told */
    bool        named_everywhere;           /* job_name is the same on all hosts */
} tti_scheduler;

/** Read the variables of Open MPI, Slurm and PMI (MPICH, Intel MPI), in that order: mpirun inside a Slurm
 * allocation leaves Slurm's variables of its own daemons in the ranks' environment.
 *
 * @errors TUTTI_E_ARG  a family is half set, or two contradict each other; the text names the variables */
tutti_status tti_scheduler_find(tti_port *port, tti_scheduler *out);

/** The host on which all ranks of s look for rank 0; "" where the scheduler does not tell. For those alone who look there: a job
 * that meets elsewhere may have its rank 0 wherever it likes.
 *
 * @errors TUTTI_E_ARG  this process sees that rank 0 is on another host, or a list of hosts names none; the text says what to set */
tutti_status tti_scheduler_master(const tti_scheduler *s, char host_out[TTI_HOST_MAX]);

/** Who has started this process, for words: "Open MPI"; NULL: none of them, or they contradict each other. For those whom RANK keeps
 * from asking. */
const char *tti_scheduler_here(void);

/** What to do about a missing RANK: "start the program with ...", which knows of a Slurm allocation. */
const char *tti_scheduler_advice(void);

/** The first host of a list as Slurm writes it: "n[01-04,7],m3" is "n01". false: none, or too long. */
bool tti_first_host(const char *list, char host_out[TTI_HOST_MAX]);

/** A number made of a job's name, the same wherever the name is. */
uint64_t tti_job_hash(const char *name);

#endif
