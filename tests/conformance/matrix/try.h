/* SPDX-License-Identifier: BSD-3-Clause
 *
 * try.h - one operation, once: its buffers, what they hold before and must hold after, its works.
 *
 * Why     Every operation is "these contents become those". Said as data, filling, checking and the words
 *         of a failure are written once, and an operation is a few lines in a table (ops.h).
 * How     A content is the part p of rank r, or all ranks' parts p combined, or blank. A buffer has pieces;
 *         a piece says its content before and after. Memory around a buffer, and between its pieces, has a
 *         pattern that must still be there after. Buffers begin at a random multiple of their element.
 * True    Choices that all ranks must make alike come from tt_roll(), which knows only the seed of the
 *         try and what the choice is about; a rank's own choices from tt_roll_own().
 * Fails   The first wrong element or status is noted in words, with what stood there. */
#ifndef TT_TRY_H
#define TT_TRY_H

#include <stdatomic.h>
#include <tutti/tutti.h>
#include "values.h"

enum { TT_WORLD_MAX = 8, TT_BUFS_MAX = 64, TT_WORKS_MAX = 64, TT_PIECES_MAX = TT_WORLD_MAX, TT_WORDS = 600 };
enum { TT_ENTRIES_MAX = 6 }; /* of a list of buffers; with those of every rank no more than TT_BUFS_MAX */

typedef struct tt_op_row tt_op_row;

typedef enum tt_kind { TT_BLANK, TT_PART, TT_FOLDED } tt_kind;

typedef struct tt_content {
    tt_kind kind;
    int     from; /* group rank whose part it is */
    int     part;
} tt_content;

typedef struct tt_piece {
    int64_t    first, count;
    tt_content before, after;
} tt_piece;

typedef struct tt_buf {
    tutti_span     span;
    unsigned char *mem; /* guards included */
    size_t         bytes;
    int            n_pieces;
    tt_piece       pieces[TT_PIECES_MAX];
} tt_buf;

typedef struct tt_try {
    /* What the runner fills in. */
    const tt_op_row *row;
    tutti_group     *group;
    int              rank, size; /* in the group */
    tutti_dtype      dtype;
    tutti_op_kind    red;
    int64_t          count; /* of one part */
    uint64_t         seed;  /* the same on all ranks */
    int              world, hosts; /* ranks of the world, and on how many hosts: the first ones are on the first */
    int              tag;   /* TT_TAGS from here on are nobody else's */
    bool              may_refuse; /* the backend may have no such call: TUTTI_E_UNSUPPORTED is no failure */
    _Atomic uint32_t *arrivals; /* of the group's barriers, all ranks together; NULL: not counted */
    uint32_t          arrivals_due;

    /* What the operation makes. */
    int         root; /* group rank */
    bool        in_place;
    int         host_of[TT_WORLD_MAX]; /* the members */
    tutti_op    op;
    tutti_span  outs[TT_BUFS_MAX], ins[TT_WORLD_MAX];
    int         n_entries; /* of a list of buffers; outs[r * n_entries + i] belongs to rank r's list */
    int64_t     out_splits[TT_WORLD_MAX], in_splits[TT_WORLD_MAX];
    int         n_bufs, n_works, n_messages;
    tt_buf      bufs[TT_BUFS_MAX];
    tutti_p2p_op messages[TT_WORKS_MAX]; /* in order of issue */
    int          sources[TT_WORKS_MAX];  /* of a blocking receive from anybody: group rank */
    tutti_work  *works[TT_WORKS_MAX];
    tutti_objects    objects;       /* that came: the library's memory */
    tutti_sparse_coo given, summed; /* the second is the library's memory */
    int64_t         *indices;       /* of given */
    uint64_t     bits;            /* of the combined elements */
    bool         refused;         /* words say why */
    char         words[TT_WORDS]; /* "": nothing was wrong */
} tt_try;

enum { TT_TAGS = 8 };

/** The backend has no tags: messages have tag 0, and are taken in their order. */
extern bool tt_untagged;

/** A choice among 0 .. n-1 that all ranks make alike, about a thing (number it) and two ranks. */
int tt_roll(const tt_try *t, int about, int a, int b, int n);
/** The same, each rank for itself. */
int tt_roll_own(const tt_try *t, int about, int n);

/** A number of elements that all ranks know, about a thing and two ranks: around count, 0 and more included.
 * It takes the number of the thing and the next one. */
int64_t tt_any_count(const tt_try *t, int about, int a, int b);

tt_content tt_part(int from, int part);
tt_content tt_folded(int part);
tt_content tt_blank(void);

/** A buffer of count elements without pieces; its memory is filled by tt_try_fill(). */
tt_buf *tt_buf_new(tt_try *t, int64_t count);
/** Elements first .. first + count - 1 of a span. */
tutti_span tt_slice(tutti_span span, int64_t first, int64_t count);
/** Say what elements first .. first + count - 1 are; returns the span of them. */
tutti_span tt_buf_piece(tt_buf *buf, int64_t first, int64_t count, tt_content before, tt_content after);
/** A buffer of one piece. */
tutti_span tt_make(tt_try *t, int64_t count, tt_content before, tt_content after);

/** The elements of a content that is a part. */
void tt_part_elements(const tt_try *t, tt_content part, int64_t first, int64_t n, void *out);

bool tt_is_root(const tt_try *t);
/** A rank of the group as a rank of the world. */
int tt_global(const tt_try *t, int rank);
/** Where the next work goes, and that it is there if st is TUTTI_OK; gives st. */
tutti_work **tt_work(tt_try *t);
tutti_status tt_begun(tt_try *t, tutti_status st);

/** Note a failure, unless there is one already; also of what was refused. Always false. */
bool tt_wrong(tt_try *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Buffers, contents, choices of the operation. false: no memory. */
bool tt_try_prepare(tt_try *t);
/** The operation, blocking or as works. */
bool tt_try_block(tt_try *t);
bool tt_try_start(tt_try *t);
/** Wait for the works; in an order of this rank's own. */
bool tt_try_wait(tt_try *t);
/** Compare everything with what it must be. */
bool tt_try_check(tt_try *t);
/** Give back works and memory. After a failed call the library may still use a buffer: then it stays. */
void tt_try_release(tt_try *t);

#endif
