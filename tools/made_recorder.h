/* SPDX-License-Identifier: BSD-3-Clause
 *
 * made_recorder.h - recorders that no process has written: files for tests of what reads them. */
#ifndef TUTTI_MADE_RECORDER_H
#define TUTTI_MADE_RECORDER_H

#include <tutti/recorder.h>

enum { MADE_RECORDS = 256, MADE_GROUPS = 8, MADE_NAMES = 4, MADE_RANKS = 64 };

/** The whole of one, tables behind each other; times are ns of the monotonic clock. */
typedef struct made_recorder {
    tutti_recorder_head       head;
    tutti_recorder_group_slot groups[MADE_GROUPS];
    tutti_recorder_name_slot  names[MADE_NAMES];
    int32_t                   ranks[MADE_RANKS];
    tutti_recorder_slot       records[MADE_RECORDS];
} made_recorder;

/** Of one rank of a job, read at now_ns; the wall clock is real_ns ahead. */
void made_begin(made_recorder *m, int rank, int world_size, const char *host, int64_t now_ns, int64_t real_ns);

/** Group number place, of n ranks; ranks NULL: all of the world. Numbers of collectives follow from what is added. */
void made_group(made_recorder *m, int place, const char *name, const int *ranks, int n);

/** Make group number place the world of that number and generation, in which the rank is rank; follows: the place of the one
 * whose place it took, which is there no longer; -1: of none. */
void made_world(made_recorder *m, int place, uint64_t id, int generation, int rank, int follows);

typedef struct made_op {
    tutti_record_kind  kind;
    tutti_record_state state;
    int                place; /* of its group */
    uint64_t           seq;
    int                peer;  /* group rank; -1: none */
    int                tag;
    int64_t            count; /* of f32, summed where that applies */
    int64_t            began_ns, ended_ns;
} made_op;

void made_add(made_recorder *m, const made_op *op);

/** What was added last is a shrink whose list leaves out the group ranks below 64 that have a bit here. */
void made_left_out(made_recorder *m, uint64_t left_out);

/** Write it to a file of the working folder. */
void made_write(const made_recorder *m, const char *path);

#endif
