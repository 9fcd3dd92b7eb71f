/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zero.h - what the files of this room share.
 *
 *   zero.c       the object: making, stepping, more groups, the end
 *   partition.c  who gets which parameter; pure arithmetic
 *   agree.c      ranks compare what they are about to make
 *   share.c      parameters go from their owners to all
 *   flat.c       parameters that live side by side
 *   state.c      what owners remember, from one rank to another
 *   overlap.c    steps inside of the backward of a ddp; assign.c, who gets which parameter of its buckets */
#ifndef TTI_TRAIN_ZERO_ZERO_H
#define TTI_TRAIN_ZERO_ZERO_H

#include <tutti/zero.h>
#include "ddp/ddp.h"
#include "optim/optim.h"

enum { TTI_ZERO_WORDS = 1024, TTI_KEPT_MAX = TTI_OPTIM_STATES + 1 };

/* overlap.c: steps inside of the backward. */
typedef struct tti_overlap tti_overlap;

typedef struct tti_zero {
    tti_optim_part part; /* what the optimizer knows of us */
    tutti_optim *o;
    tutti_group *group;
    int rank, size;
    bool views;

    int room;      /* of what is beside the optimizer's parameters */
    int *owner;    /* [room] ranks */
    bool *mine;    /* [room] part.mine */
    bool *rests;   /* [room] part.rests: with views, what requires no gradients */
    int *order;    /* [room] in which parameters of a rank lie side by side */
    int64_t *load; /* [size] elements */

    tutti_tensor *flat; /* with views: parameters of rank 0, then of rank 1, ...; counted */
    int64_t *counts;    /* [size] elements of each */

    tutti_work **works;  /* [room + 2] under way */
    int n_works;
    tutti_tensor **rows; /* [room] of what is under way: parameters themselves, or copies; counted */
    int32_t failing;     /* 1 + a rank that could not step, the highest; 0: none */

    tutti_state_dict *whole; /* brought together here; NULL: not */
    tutti_join *join;        /* NULL: in no scope */
    tti_overlap *overlap;    /* NULL: steps are after the backward */
} tti_zero;

/* Words that the next failure must not overwrite. */
typedef struct tti_zero_words {
    char text[TTI_ZERO_WORDS];
} tti_zero_words;

/* zero.c: the one behind an optimizer; NULL, worded under op: it is not divided. */
tti_zero *tti_zero_of(const tutti_optim *o, const char *op);
tti_zero_words tti_zero_keep_words(void);
/* Have room for so many parameters. */
tutti_status tti_zero_fit(tti_zero *z, int n);
/* owner has changed: mine, load and flats follow. */
tutti_status tti_zero_own(tti_zero *z);

/* partition.c: give n parameters away. load, [size], counts on. False: no memory. */
bool tti_zero_partition(const int64_t *numel, int n, int size, int64_t *load, int *owner_out);

/* assign.c: give away n_buckets buckets of parameters, of which the b-th ends at ends[b]: whole, or in runs. False: no
 * memory. */
bool tti_zero_assign(const int64_t *numel, const int *ends, int n_buckets, int size, bool cuts, int *owner_out);

/* agree.c: all ranks call it, with what each came to. n parameters from the first on are compared, and options. */
tutti_status tti_zero_agree(tti_zero *z, const char *what, tutti_status ours, int first, int n);

/* share.c */
/* Begin to send parameter i, or a part of the flat, from its owner to all. */
tutti_status tti_zero_send(tti_zero *z, int i);
tutti_status tti_zero_send_span(tti_zero *z, tutti_span span, int from);
/* Wait for what was begun; st is how that went. */
tutti_status tti_zero_await(tti_zero *z, tutti_status st);
/* After a step that came to st: all parameters to all ranks, and whether any rank has failed. */
tutti_status tti_zero_share(tti_zero *z, tutti_status st);

/* flat.c */
/* Put the parameters that take part side by side, those that do not in places of their own. */
tutti_status tti_flat_build(tti_zero *z);
/* What takes part has changed: build anew. */
tutti_status tti_flat_follow(tti_zero *z);

/* state.c: give parameters other owners; states move. All ranks call it. */
tutti_status tti_zero_move(tti_zero *z, const int *owner);

/* overlap.c */
/* The optimizer is gone. NULL is fine. */
void tti_overlap_leave(tti_overlap *ov);
/* A step after the backward, before which all came to st. */
tutti_status tti_overlap_no_step(tti_overlap *ov, tutti_status st);

#endif
