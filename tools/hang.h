/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hang.h - who waits for whom in a job, and who is behind it. */
#ifndef TUTTI_HANG_H
#define TUTTI_HANG_H

#include <jansson.h>
#include <stdio.h>
#include "job_view.h"
#include "process.h"

/** What a rank is at. */
typedef enum hang_at {
    HANG_WAITS,      /* in an operation */
    HANG_JOINS,      /* in making its world: it waits for the others */
    HANG_BUSY,       /* in none */
    HANG_PARTED,     /* it has destroyed its world, and goes on */
    HANG_DEAD,       /* it was killed, or crashed */
    HANG_LEFT,       /* its process came to its end by itself */
    HANG_STOPPED,    /* by a signal */
    HANG_TRACED,     /* in a debugger */
    HANG_FROZEN,     /* with its control group */
    HANG_NOT_JOINED, /* it runs, and has made no world */
    HANG_UNRECORDED, /* it runs, and was told to record nothing */
    HANG_UNNAMED,    /* it runs, and is not among the processes that were to be looked at */
    HANG_UNSEEN      /* nothing was read of it: on another host, or never started */
} hang_at;

typedef struct hang_rank {
    const view_rank *seen; /* NULL: no recorder */
    int rank;
    int64_t pid; /* 0: unknown */
    hang_at at;
    char why[PROCESS_WORD_MAX]; /* nothing is recorded: "TUTTI_RECORDER=0" */
    process_facts now;
    double cpu_share; /* of a core, between the two looks; negative: unknown */
    const view_op *wait; /* the oldest operation that it is in; NULL: none */
    double since_s;      /* how long */
    const view_op *oldest; /* the oldest that has not ended, however young it is; NULL: none */
    const view_op *elsewhere; /* one that it is in in another world; NULL: none */
    double elsewhere_s;
    const view_op *last; /* the latest that has ended */
    double last_s;       /* how long ago; negative: unknown */
    int *awaits;         /* ranks that it waits for */
    int n_awaits;
} hang_rank;

/** A rank that others wait for and that waits for nobody; or the members of a circle. */
typedef struct hang_cause {
    bool circle;
    bool is_death;
    bool is_unread; /* of its rank nothing was read, so that nobody knows whether it is one */
    int *ranks; /* the one, or all of the circle, each waiting for the next */
    int n;
    int *waiters; /* who waits for it, or for somebody who does */
    int n_waiters;
} hang_cause;

typedef struct hang {
    const job_view *view;
    const char *job;  /* the world's, or, where none has been made yet, of those that join */
    int world;        /* which of the view's; -1: none has been made yet */
    hang_rank *ranks; /* by rank in that world */
    int n;
    hang_rank *others; /* processes of the job that are not in it: they have left it, or have not come in */
    int n_others;
    hang_cause *causes;
    int n_causes;
    int n_waiting, n_joining;
    double longest_s;
} hang;

/** The first look, to tell what has not moved at the second. */
typedef struct hang_look {
    double *cpu_s; /* [view->n_recorders]: what each process had used */
    int64_t at_ns;
} hang_look;

bool hang_look_begin(const job_view *view, hang_look *look);
void hang_look_release(hang_look *look);

/** Put together who waits for whom in a world of a job, from a view that was read again and arranged; world -1: the job has none.
 * Operations younger than least_s do not count. False: no memory. */
bool hang_find(const job_view *view, const char *job, int world, const hang_look *look, double least_s, hang *h);
void hang_release(hang *h);

/** Whether somebody waits, or is behind it that others will have to. */
bool hang_is_one(const hang *h);

/** By how much rank m came to its operation its after r had given up in the same one, as r's file says; 0: it did not. */
double hang_came_late_s(const hang_rank *m, const view_op *its, const hang_rank *r);
/** What rank m has called where r waits; NULL: nothing. */
const view_op *hang_same_op(const hang_rank *m, const hang_rank *r);

/** Jobs that the ranks of a world are of, which are several if it was merged: at most max of them. Returns how many. */
int hang_jobs(const hang *h, const char **jobs, int max);

/** In words for people; all: a line for each rank, however many. */
void hang_print(const hang *h, bool all);
json_t *hang_json(const hang *h);

/** "is stopped by a signal". */
const char *hang_at_words(hang_at at);
/** The same of a process that is not in the world. */
const char *hang_other_words(const hang_rank *r);

enum { HANG_LINE_MAX = 768 };

/** "all_reduce #3 (sum, 4 f32) on group 'world'". */
void hang_write_op(const hang *h, const view_op *op, char out[HANG_LINE_MAX]);

#endif
