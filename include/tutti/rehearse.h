/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/rehearse.h - a program's ranks, all in one thread, in a world of their own, where things go wrong. tutti.h includes it.
 *
 * A rehearsal runs the program on every rank of a job: the same groups, stores, connections and algorithms as ever. But the
 * ranks are fibers that take turns, the hosts and what is between them are made up, and the clock is virtual, so that waiting
 * takes no time. A number, the seed, decides whose turn it is, how long each message is under way, and what goes wrong
 * when: one seed is one run, and the same every time. So a mistake that shows once in ten thousand runs can be looked for, and once
 * it is found it can be looked at as often as it takes.
 *
 *   static void program(const tutti_rehearsed *me, void *arg)
 *   {
 *       float x = 1;
 *
 *       if (me->made == TUTTI_OK && tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL) == TUTTI_OK && x != 4)
 *           *(int *)arg = 1; // wrong, and nobody said so
 *   }
 *
 *   o.seed = 17;
 *   tutti_rehearse(program, &wrong, &o, &report);
 *
 * What rehearses is: rank programs that meet nothing outside of the library that takes time or differs from run to run. They
 * share variables, as threads do, and must not wait for each other by anything but the library. */
#ifndef TUTTI_REHEARSE_H
#define TUTTI_REHEARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/init.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What can go wrong. */
typedef enum tutti_fault_kind {
    TUTTI_FAULT_KILL,   /* a rank's process ends, as by kill -9 */
    TUTTI_FAULT_POWER,  /* a host and all on it is gone without a word */
    TUTTI_FAULT_STOP,   /* a rank does not go on for a while, as by kill -STOP */
    TUTTI_FAULT_PART,   /* nothing comes to or from a host for a while; what was sent comes afterwards */
    TUTTI_FAULT_RESET,  /* a connection of a rank's is lost */
    TUTTI_FAULT_CLOG,   /* what is sent to or from a host is held up for a while, then comes, each connection when it happens to */
    TUTTI_FAULT_SLOW,   /* a host's ways are slow for a while */
    TUTTI_FAULT_DOUBLE, /* a stranger connects to a rank, and says once more what was said there */
    TUTTI_FAULT_KINDS
} tutti_fault_kind;

#define TUTTI_FAULTS_ALL ((1u << TUTTI_FAULT_KINDS) - 1)

/** Initialise with TUTTI_REHEARSE_OPTIONS; zero means the default. */
typedef struct tutti_rehearse_options {
    size_t   size;
    uint64_t seed;
    int      hosts;          /* 0: 2; 32 at most */
    int      ranks_per_host; /* 0: 2; 64 ranks at most in all */
    unsigned faults;         /* 1 << TUTTI_FAULT_KILL | ...: those that may happen; 0: all */
    int      faults_max;     /* 0: 3; 8 at most; negative: nothing goes wrong */
    int64_t  turns;          /* they begin within so many turns of the run; 0: 300 for each rank */
    int64_t  lasts_ms;       /* those that last do so at most so long; 0: 3000 */
    int64_t  timeout_ms;     /* of the ranks' world; 0: 5000 */
    int64_t  limit_ms;       /* the run's, of virtual time; 0: an hour */
    bool     tells;          /* everything that happens, on standard error */
} tutti_rehearse_options;

#define TUTTI_REHEARSE_OPTIONS                                                                         \
    {                                                                                                  \
        sizeof(tutti_rehearse_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, false                               \
    }

/** One rank, as its program sees it. */
typedef struct tutti_rehearsed {
    int          rank, n_ranks, host;
    tutti_status made;  /* what making the world came to; tutti_last_error() has its words */
    tutti_group *world; /* NULL if it was not made; the one that a NULL group means on this thread */
    tutti_store *store; /* the job's, borrowed; NULL if it could not be reached */
} tutti_rehearsed;

typedef void tutti_rehearsed_program(const tutti_rehearsed *me, void *arg);

/** What a run was. */
typedef struct tutti_rehearse_report {
    int64_t  virtual_ms;
    int64_t  turns;
    uint64_t trace;                     /* of all that happened: equal runs have equal ones */
    int      faults[TUTTI_FAULT_KINDS]; /* that happened */
    int64_t  longest_ms;                /* stop or part among them */
    uint64_t lost;                      /* bit r: rank r was killed, or its host was lost */
} tutti_rehearse_report;

/** Rehearse a program: every rank makes the world of all, calls the program, and leaves what NULL means then.
 *
 * The run's store is served by a process of its own, on the first host, that no fault but that host's concerns. A rank that was killed
 * does not go on while the others do; when they have returned it does, cut off from all, so that what it has is given back: it too must end.
 *
 * @param program     called once by each rank; what NULL means when it returns is destroyed
 * @param arg         passed on
 * @param options     NULL: defaults
 * @param report_out  NULL: not wanted; written also if the run did not come to its end
 * @errors   TUTTI_E_ARG      options that cannot be
 *           TUTTI_E_STATE    this thread rehearses already
 *           TUTTI_E_NOMEM    nothing, or not all, was run
 *           TUTTI_E_TIMEOUT  the run did not come to its end: the text says who waits for what; what the ranks had is lost
 * @threads  any, several at a time; environment variables are read as ever
 * @cost     no system call for a message; some thousand turns for each rank, about a microsecond each
 * @source   ours */
TUTTI_API tutti_status tutti_rehearse(tutti_rehearsed_program *program, void *arg, const tutti_rehearse_options *options,
                                      tutti_rehearse_report *report_out);

/** The run's clock, in ns, for a program that measures how long its calls take; 0 outside of rehearsals.
 * @threads  any
 * @source   ours */
TUTTI_API int64_t tutti_rehearsed_ns(void);

/** Let time pass, as a program that computes does; does nothing outside of rehearsals.
 * @param ms  of virtual time
 * @threads  any
 * @source   ours */
TUTTI_API void tutti_rehearsed_sleep(int64_t ms);

/** Which ranks have been killed, or were on a host that was lost, so far: bit r is rank r. What a detector that is never wrong, and
 * needs no time, would say; 0 outside of rehearsals.
 * @threads  any
 * @source   ours */
TUTTI_API uint64_t tutti_rehearsed_lost(void);

/** Have one more thing go wrong at a point of the program, besides what the seed has drawn: say, while the ranks agree who is
 * left. Happens whatever options.faults says, unless there is nothing to befall: a rank that has returned, or is dead already.
 *
 * @param kind      what
 * @param target    a rank; for POWER, PART, CLOG and SLOW a host. For RESET and DOUBLE the rank whose connection it is
 * @param in_turns  at least 1: so many turns from now on, of that rank; where it is a host, of the run
 * @param lasts_ms  of STOP, PART, CLOG and SLOW; ignored by the others
 * @errors   TUTTI_E_ARG    no such fault, target, or time
 *           TUTTI_E_STATE  outside of a rehearsal, or there were 32 such faults and those of the seed already
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_rehearsed_fault(tutti_fault_kind kind, int target, int64_t in_turns, int64_t lasts_ms);

/** "kill", "power", ...; "?" for others.
 * @threads  any
 * @source   ours */
TUTTI_API const char *tutti_fault_name(tutti_fault_kind kind);

#ifdef __cplusplus
}
#endif
#endif
