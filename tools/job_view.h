/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_view.h - the recorders of a job's ranks, side by side: ranks, groups, operations.
 *
 * Processes may hold several ranks (threads), so a rank is a world of a recorder. A world is the same on two ranks if its
 * number is, a group if its world, its name and its members are. Files and processes that somebody names may be of several jobs. */
#ifndef TUTTI_JOB_VIEW_H
#define TUTTI_JOB_VIEW_H

#include <jansson.h>
#include <tutti/recorder.h>

enum { VIEW_TEXT_MAX = 256, VIEW_RANKS_MAX = 4096 };

typedef struct view_op {
    tutti_record r;
    int group; /* which of the job's; -1: a range, or one that nobody remembers */
    bool until_saved; /* it failed, and for that its file was written: until then it was under way */
} view_op;

typedef struct view_world {
    uint64_t id;    /* 0: its backend gives none */
    const char *job; /* of the first of its recorders: a merged world may have several */
    int generation; /* 1, or more if it took the place of another one; 0: not known */
    int size;       /* 0: not known */
    int n_living;   /* processes that have it and live, as far as is known */
    bool is_past;   /* another one has its place */
} view_world;

typedef struct view_rank {
    const tutti_recorder *recorder;
    tutti_recorder_info info;
    int world;      /* which of the job's, the youngest that it has; -1: none, or only such as are past: */
    bool is_left;   /* the others went on without it, or it did not go with them */
    int left;       /* the youngest that it had */
    int rank;       /* in that world; -1: not known */
    int first_rank; /* in the first world that it has here */
    view_op *ops;      /* oldest first */
    int n_ops;
    tutti_recorder_group *own; /* [n_groups] the job's groups as this rank has them; name NULL: it is in none such */
} view_rank;

typedef struct view_group {
    const char *name;
    const char *label; /* for people: its description, else its name */
    const int *ranks;  /* global, by group rank; NULL: not known */
    int n_ranks;
    int world;
} view_group;

typedef struct job_view {
    tutti_recorder **recorders;
    int n_recorders;
    bool from_files;
    bool from_pids; /* other processes of the job were not looked for */
    view_world *worlds;
    int n_worlds;
    view_rank *ranks; /* by rank, those that left behind the others */
    int n_ranks;
    view_group *groups;
    int n_groups;
} job_view;

/** Read the recorders of a job of this host, of processes, or of files; of several of one process the latest counts. Words of what
 * fails are printed, command beginning them.
 * @param job  its name, as TORCHELASTIC_RUN_ID; NULL: the only one that there is */
bool job_view_find(const char *command, const char *job, job_view *view);
bool job_view_open_pids(const char *command, char *const *pids, int n, job_view *view);
bool job_view_open_files(const char *command, char *const *files, int n, job_view *view);

/** Read all of them again; those that cannot be read any more keep what they had. */
void job_view_update(job_view *view);

/** Make worlds, ranks, groups and operations of what was read (job_arrange.c). separate: each world is a rank of its own, and
 * those that are past are left out; else a process's worlds that follow each other are one. False: no memory. */
bool job_view_arrange(job_view *view, bool separate);
/** Undo that. */
void job_view_forget(job_view *view);

void job_view_release(job_view *view);

/** "all_reduce #17 (sum, 1000 f32)", "recv from rank 3, tag 7 (4 f32)". */
void view_describe(const job_view *view, const view_op *op, char out[VIEW_TEXT_MAX]);

/** A text as JSON; what is no UTF-8 as "?". */
json_t *view_text(const char *text);

/** "0-3, 7" of a list of ranks, cut with "..." where it does not fit. */
void view_write_ranks(const int *ranks, int n, char *out, size_t bytes);

/** Which rank this one is in the world of a group that it is in; -1: it is not, or group is. */
int view_rank_in(const view_rank *rank, int group);

/** The operation of a collective's number in a group, as this rank issued it; NULL: its ring has none such. */
const view_op *view_find_op(const view_rank *rank, int group, uint64_t seq);

/** Whether the operation is a collective, with a number that all members share. */
bool view_is_collective(const view_op *op);

/** Whether it makes a group of another one, in calls that have records of their own. */
bool view_is_regrouping(const view_op *op);

/** Whether a shrink's list is known, and leaves out the member of that number in the group. */
bool view_is_left_out(const view_op *op, int place);

/** Whether step is one of those of whole. */
bool view_is_step_of(const view_op *step, const view_op *whole);

/** Whether it was issued and has not ended. */
bool view_is_open(const view_op *op);

/** The same, of the moment that a recorder tells of: of a file that a failure has written, the one before that failure. */
bool view_was_open(const view_op *op);

#endif
