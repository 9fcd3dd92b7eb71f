/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/host/fused_core.h - a call on registered memory, as the files of this way see it. */
#ifndef TTI_COLL_HOST_FUSED_CORE_H
#define TTI_COLL_HOST_FUSED_CORE_H

#include "coll/host/fused.h"
#include "transport/registered.h"

/** What a member shows of one other. */
typedef struct tti_fused_entry {
    uint64_t offset; /* of what it has for that one */
    int64_t  gives;  /* elements, where the pair has to agree: all_to_all and its kin */
    int64_t  wants;
} tti_fused_entry;

/** What a member's card does not hold: in its staging slot, in the call's round. Slots begin on a line of 64 bytes, and
 * not all of them on a pair of lines. */
typedef struct tti_fused_table {
    /* Of member 0: pieces of the work that all share, where ranks outnumber cores. */
    _Alignas(64) _Atomic int64_t taken;
    _Alignas(64) char            apart[64];
    _Alignas(64) _Atomic int64_t finished;
    _Alignas(64) tti_fused_entry entries[]; /* [n_ranks], where a member has something for each */
} tti_fused_table;

static inline tti_fused_table *tti_fused_table_of(const tti_host_channel *channel, int rank)
{
    return (tti_fused_table *)(void *)tti_host_staging(channel, rank);
}

/** The call under way. */
typedef struct tti_fused_call {
    tti_host_channel *channel;
    const tutti_call *call;
    tti_fused        *fused;
    int               rank;
    int               n_ranks;
    size_t            element; /* bytes */
    size_t            align;   /* of an element: a complex number is two of half its size */
    bool              shown;   /* its buffers are in the others' reach */
    int               giver;   /* of what is pulled now */
    bool              past;    /* results go past the caches: past.h */
    int64_t           pieces;  /* that the work was cut into, where they are taken; 0: each has its slice */
} tti_fused_call;

static inline bool tti_fused_is_root(const tti_fused_call *f)
{
    return f->call->root == f->rank;
}

struct tti_fused {
    const tti_foreign **foreign; /* [n_ranks] the members' registered memory */
    bool                mapped;  /* all of it */
    bool                unable;  /* it could not be: never ready */
    bool                threads; /* some members are threads of this process */
    int                 n_told;  /* members 0 .. n_told-1 may have registered memory, in this call and later */
    void              **ins;     /* [n_ranks] for this call: what each member gives, or has for this one */
    void              **outs;    /* [n_ranks] where each member's result goes; NULL: none */
    void              **places;  /* [n_ranks] in outs, for one piece */
    tti_use            *uses;    /* [n_ranks + 2]: first what others write to, then what they read */
    int                 n_written;
    int                 n_uses;
    uint64_t            n_done;
    uint32_t            logged;  /* kinds */
    bool                small_blocks; /* as those of the last call were whose sizes nobody knew before */
};

/** Show the own card: whether it is ready stands in shown. fused_cards.c. */
void tti_fused_show(tti_fused_call *f);
/** Until all others have shown theirs for this call. */
tutti_status tti_fused_await_cards(tti_fused_call *f);
/** Whether all members can go on here: they read the same cards. */
bool tti_fused_all_are_ready(const tti_fused_call *f, tti_fused_wish wish);
/** Fill ins and outs from the cards. Fails if one says what cannot be, or a pair does not agree on a block. */
tutti_status tti_fused_find_buffers(tti_fused_call *f);

/** What members do with each other's buffers. */
typedef tutti_status tti_fused_body(tti_fused_call *f);

tti_fused_body tti_fused_all_reduce;     /* into outs, from ins: reduce as well */
tti_fused_body tti_fused_reduce_scatter; /* ins into the own part */
tti_fused_body tti_fused_broadcast;      /* the root's in to all outs */
tti_fused_body tti_fused_pull;           /* each of ins to the own list */
tti_fused_body tti_fused_gather;         /* the own part to the root's list: outs[root] */
tti_fused_body tti_fused_scatter;        /* the own part from the root's list: ins[root] */

/** Elements [begin, end) of the work, to be done in one go. */
typedef struct tti_fused_piece {
    int64_t begin;
    int64_t end;
} tti_fused_piece;

typedef void tti_fused_do(const tti_fused_call *f, tti_fused_piece piece);

/** Do what of count elements falls to this member. With a core for each member, that is its slice; else whoever runs
 * takes the next piece. fused_share.c. Fails as a member has, without touching more. */
tutti_status tti_fused_share(tti_fused_call *f, int64_t count, tti_fused_do *what);
/** Do all of count elements. */
tutti_status tti_fused_alone(tti_fused_call *f, int64_t count, tti_fused_do *what);
/** Of shared work: whether all pieces are soon done, whoever took them. */
bool tti_fused_all_finished(const tti_fused_call *f);

#endif
