/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/choose.h - the table of algorithms, and which of them a call is done by. */
#ifndef TTI_COLL_CHOOSE_H
#define TTI_COLL_CHOOSE_H

#include "coll/cost.h"
#include "coll/host/fused.h"
#include "coll/host/one_phase.h"
#include "coll/host/pulled.h"
#include "coll/level/level.h"
#include "coll/net/plan.h"
#include "coll/tune.h"

/** The numeric class: in which order contributions are combined. Algorithms of one class give the same
 * bits; a call's class depends on the call and on where the ranks are, never on what was measured. */
typedef enum tti_order {
    TTI_IN_RANK_ORDER, /* 0, 1, ..., P-1; and all that combines nothing */
    TTI_IN_RING_ORDER, /* from the right neighbour of each slice's owner on, around the circle */
    TTI_IN_TREE_ORDER, /* pairs of seats (pattern.h), pairs of pairs, ..., each rounded */
    TTI_IN_HOST_ORDER, /* inside each host in rank order, then the hosts, in the order of their lowest ranks */
    TTI_ORDERS
} tti_order;

/** What another order does to a call's result. */
typedef enum tti_numbers {
    TTI_ROUNDED, /* other bits */
    TTI_EXACT,   /* nothing */
    TTI_NUMBERS
} tti_numbers;

/** Exact are integers and bool, whatever the operation: they wrap. Of floating-point numbers not even min and max are,
 * which take the right one of two zeros. */
tti_numbers tti_numbers_of(tutti_dtype dtype);

/** One of staged, plan and level says how; none: on registered memory (host/fused.h), and where some member's
 * buffers are not, another row takes the call. */
typedef struct tti_algorithm {
    tutti_call_kind kind;
    const char     *name;
    tti_staged     *staged;     /* all members on one host */
    tti_plan       *plan;       /* members anywhere */
    int             ranks_max;  /* it cannot serve more */
    int64_t         bytes_best; /* of one rank's part: beyond this many it is not taken unasked */
    tti_amounts_of *amounts;    /* what it does in a call, for the cost model */
    tti_order       order;
    int             ranks_best; /* with more, which are as many connections, others come first; 0: it does with few */
    tti_leveled    *level;      /* members on several hosts, with several on one */
    tti_level_amounts_of *level_amounts; /* instead of amounts */
} tti_algorithm;

static inline bool tti_is_fused(const tti_algorithm *row)
{
    return row->staged == NULL && row->plan == NULL && row->level == NULL;
}

/** All of them; within a kind those that need one host come first. */
const tti_algorithm *tti_algorithms(int *n_out);

/** What TUTTI_ALGO asks for, per kind: an index of tti_algorithms(), or -1. */
typedef struct tti_wishes {
    int16_t rows[TUTTI_CALL_KIND_COUNT];
} tti_wishes;

/** Read "op=name,op=name,...". NULL: nothing is wanted. TUTTI_E_ARG lists the names there are. */
tutti_status tti_wishes_parse(const char *text, tti_wishes *wishes_out);

/** The kind named op, TUTTI_CALL_KIND_COUNT if there is none. */
tutti_call_kind tti_kind_named(const char *op);
/** The row of a kind's algorithm named name, or -1. */
int tti_algorithm_named(tutti_call_kind kind, const char *name);
/** Append the names of the operations, or of a kind's algorithms: what an error offers. */
void tti_add_kinds(tti_words *words);
void tti_add_algorithms(tti_words *words, tutti_call_kind kind);

/** What a group's choice is made from. */
typedef struct tti_question {
    const tti_wishes  *wishes;
    const tti_tune    *tune;
    const tti_machine *machine;
    double             wire;         /* by which calls are cut: tti_cut_of(). Of the whole group, also for what goes across */
    double             turns;        /* ranks that share a core, at least 1 */
    bool               reproducible; /* in rank order, whatever the layout */
    bool               one_host;
    int                n_ranks;
    const tti_level_figures *levels; /* NULL: the group has no two levels */
} tti_question;

/** What is asked for the part that goes between hosts, in a group of two levels: among as many ranks as there are hosts, where
 * the carriers of a host, as many as levels says, share its link, each of them with a part. machine: room for the figures of that. */
tti_question tti_question_across(const tti_question *whole, const tti_level_figures *levels, tti_machine *machine);

/** Sizes are told apart in quarters of a power of two: (4, 5], (5, 6], (6, 7], (7, 8], (8, 10], ... */
enum { TTI_SIZE_CLASSES = 161, TTI_ROW_NONE = 255 };

int     tti_size_class(int64_t bytes);
int64_t tti_size_class_most(int size_class);

/** The algorithm of every call of a group: an index of tti_algorithms(). */
typedef struct tti_decision {
    uint8_t rows[TUTTI_CALL_KIND_COUNT][TTI_SIZE_CLASSES];       /* rounded numbers */
    uint8_t exact_rows[TUTTI_CALL_KIND_COUNT][TTI_SIZE_CLASSES]; /* differs where kinds combine */

    /* Of ALL_GATHER, of parts that differ so much that the longest are so many bytes too long for each rank but two; TTI_ROW_NONE: as
     * if they did not. */
    uint8_t lopsided[TTI_SIZE_CLASSES];
    int64_t lopsided_least;
} tti_decision;

/** Answer for every kind and size, among n rows; rows is tti_algorithms() but in tests. */
void tti_decide(const tti_question *question, const tti_algorithm *rows, int n_rows,
                tti_decision *decision_out);

/** The same among all that there are, which other groups of this process may have asked before. Any thread. */
void tti_decide_once(const tti_question *question, tti_decision *decision_out);

/** Groups of up to so many ranks combine rounded numbers in rank order by messages, too. */
enum { TTI_RANK_ORDER_RANKS = 16 };

/** The numeric class of a call on rounded numbers: a static rule of what all members share. Exact ones have
 * none. */
tti_order tti_order_of(tutti_call_kind kind, int64_t bytes, bool one_host, int n_ranks);
/** The same in a group of two levels. */
tti_order tti_order_in_levels(tutti_call_kind kind);

/** Whether all contributions to a call must be combined in one go, which is in rank order: of the other orders some sum on
 * the way may be too large for its type, where the average is not. The same on all members. */
bool tti_needs_one_go(const tutti_call *call);

/** What the choice takes a call by a row to cost, in ns. most: bytes of one rank's part; INT64_MAX: more than any. */
double tti_believed_cost(const tti_question *question, const tti_algorithm *row, int64_t most);

/** Whether calls of a kind are to be done on registered memory, of those that can be. */
tti_fused_wish tti_wish_for_fused(const tti_wishes *wishes, tutti_call_kind kind);

/** The algorithm for a call on rounded numbers that is not done on registered memory. bytes: of one rank's part. */
const tti_algorithm *tti_choose(const tti_decision *decision, tutti_call_kind kind, int64_t bytes);
/** The same for a call, whatever its numbers. Of parts that differ in size all members know all sizes. */
const tti_algorithm *tti_choose_for(const tti_decision *decision, const tutti_call *call);
/** The plan of a call between the hosts of a group of two levels: on numbers as if they were rounded. */
tti_plan *tti_choose_across(const tti_decision *decision, const tutti_call *across);

#endif
