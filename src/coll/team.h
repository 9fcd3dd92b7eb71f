/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/team.h - the members of a group, as all of its collectives see them: who, where, and how
 * they meet.
 *
 * Ranks are group ranks unless said otherwise. Texts have the ranks of the world, as callers do. */
#ifndef TTI_COLL_TEAM_H
#define TTI_COLL_TEAM_H

#include "base/clip.h"
#include "base/thread.h"
#include "coll/coll.h"
#include "coll/cost.h"
#include "watch/control.h"

typedef struct tti_team {
    tti_mesh        *mesh;
    tti_messenger   *messenger;
    tti_port        *port;
    uint32_t         group_id;
    bool             founds;  /* as in tti_coll_config */
    int              rank;
    int              n_ranks;
    int             *ranks; /* [n_ranks] to mesh rank */
    double           wire;  /* ns that a byte takes to another host, by which all members cut calls; 0: they have not met */
    char            *name;
    tti_call_board  *board; /* where this rank publishes its calls: own_board, or shared memory */
    tti_call_board   own_board;
    _Atomic uint64_t *deed; /* where this rank notes its last call for those that watch it; NULL: nobody does */
    _Atomic bool     aborted;
    _Atomic bool     finished; /* the messenger knows why; by the messenger */
    const uint32_t  *within; /* while it is made: tti_coll_config */
    bool             has_queued; /* the same */
    bool             lazy;       /* the same */
    uint64_t         handed_at;  /* of handed.c: where this rank has laid out the joins for others of its host; 0: nowhere */
    int              n_takers;   /* the same: how many of those there are */
    const struct tti_team *whole; /* the group that these are some members of; NULL: they are all */
} tti_team;

/** The group, for a team of some of its members: whose calls these are parts of, and who is told of a failure. */
static inline const tti_team *tti_team_whole(const tti_team *team)
{
    return team->whole != NULL ? team->whole : team;
}

/** What a member tells the others when the group is made. Crosses processes and hosts. */
typedef struct tti_join {
    uint64_t region;     /* offset of its part of the shared channel; 0: none */
    uint64_t nonce;      /* stands at the head of that part while it is the member's */
    uint64_t nonce_at;   /* and here in its own memory */
    uint64_t pid;
    uint64_t fenced;     /* 1: fence_others() of its port reaches it */
    uint64_t cpus[TTI_CPU_WORDS]; /* that it may run on: tti_usable_cpus() */
    uint64_t cores;               /* its host has running */
    uint64_t n_members;    /* of the group, as it was told */
    uint64_t members;      /* fingerprint of their list */
    uint64_t algorithms;   /* fingerprint of those there are, and of what TUTTI_ALGO asks for */
    uint64_t tune;         /* the same, of the table of TUTTI_TUNE */
    uint64_t reproducible; /* TUTTI_REPRODUCIBLE */
    uint64_t recorder;     /* for the neighbour who holds it: tti_recorder_to_hold() */
    tti_machine machine;   /* as it has measured it; rank 0's is what all choose by */
} tti_join;

_Static_assert(sizeof(tti_join) == 264, "the join crosses processes and hosts");

/** Copies what it needs; on failure nothing is left to release. */
tutti_status tti_team_init(tti_team *team, const tti_coll_config *config);
void         tti_team_release(tti_team *team);

/** Whether all members are on this rank's host. */
bool tti_team_on_one_host(const tti_team *team);

/** Leave mine on the board, with the list of members. TUTTI_E_MISMATCH: another rank has this rank's place in
 * its own list. */
tutti_status tti_team_announce(const tti_team *team, const tti_board *board, int64_t deadline_ns, tti_join *mine);
/** Read everybody's; mine is as it was left. Returns when all have come; TUTTI_E_TIMEOUT names who has not, TUTTI_E_PEER one
 * that is gone, TUTTI_E_MISMATCH a rank with another list of members or choice of algorithms. Ends soon when
 * the team is aborted. */
tutti_status tti_team_meet(tti_team *team, const tti_board *board, int64_t deadline_ns, const tti_join *mine,
                           tti_join *all_out);

/** Whether somebody with a longer list has come already, or has said that lists differ; waits for nobody.
 * @errors TUTTI_E_MISMATCH */
tutti_status tti_team_look_around(const tti_team *team, const tti_board *board, const tti_join *mine);

/** When a call ends that first waits at now_ns. */
static inline int64_t tti_call_deadline(const tutti_call *call, int64_t now_ns)
{
    return call->deadline_ns != 0 ? call->deadline_ns : tti_later(now_ns, call->timeout_ms);
}

/** Tell all who look that this rank is in a call: the board, and with one store more the watch. */
static inline void tti_team_publish(const tti_team *team, const tti_call_note *note)
{
    tti_call_publish(team->board, note);
    if (team->deed != NULL)
        atomic_store_explicit(team->deed, tti_deed_of((unsigned)(note->what & 0xff), team->group_id, note->seq),
                              memory_order_relaxed);
}

/** As tti_call_describe(), the root in numbers of the world. note is of a call of the whole group. */
void tti_team_describe(const tti_team *team, const tti_call_note *note, char out[TTI_CALL_TEXT_MAX]);

/** TUTTI_E_MISMATCH in words: what one rank gives in all_to_all is not what the other expects. */
tutti_status tti_team_fail_block(const tti_team *team, const tti_call_note *note, int giver,
                                 int taker, int64_t gives, int64_t wants);

/** A text that is put together piece by piece; what does not fit is cut off. */
typedef struct tti_words {
    char   text[TTI_LAST_ERROR_MAX];
    size_t used;
} tti_words;

void tti_words_add(tti_words *words, const char *fmt, ...) TUTTI_PRINTF(2, 3);
/** That this rank's call and another one's, a rank of the world, differ: both, in the order of ranks, so that all say the
 * same; what differs, and what to do. Calls of one number, as a rule. */
void tti_team_add_difference(const tti_team *team, tti_words *words, const tti_call_note *ours, int other,
                             const tti_call_note *theirs);
/** What compares for the messenger, from the time when the team's board is where it stays. */
tti_comparer tti_team_comparer(tti_team *team);
/** "rank 5" or "ranks 5, 6, 7": those of the team that are marked, in numbers of the world; a long list
 * is cut with a count. */
void tti_team_add_ranks(const tti_team *team, tti_words *words, const bool *marked);
/** ", and has been stopped by a signal for 3.2 s": what is wrong with a member, if anything is. */
void tti_team_add_health(const tti_team *team, tti_words *words, int rank);
/** "\n  rank 5 (host 'n2', pid 40112) has been stopped by a signal for 3.2 s": a line for each member of the group that something
 * is wrong with, whoever is waited for here, but for those of team that are marked (NULL: none is); a long list is cut. */
void tti_team_add_unwell(const tti_team *team, tti_words *words, const bool *marked);
/** The same of among[n], ranks of the mesh; NULL: of its first n, members or not. */
void tti_team_add_unwell_among(const tti_team *team, tti_words *words, const int *among, int n);

enum { TTI_NEXT_TEXT_MAX = 256 };

/** What to do when time was up: where a signal has stopped a member of the group, that it goes on, "let rank 5 (host 'n2', pid
 * 40112) go on: kill -CONT"; else otherwise. */
const char *tti_team_next_step(const tti_team *team, const char *otherwise, char out[TTI_NEXT_TEXT_MAX]);
/** The same where one of among[n] is stopped, as above. */
const char *tti_team_next_step_among(const tti_team *team, const int *among, int n, const char *otherwise,
                                     char out[TTI_NEXT_TEXT_MAX]);

#endif
