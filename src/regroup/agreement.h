/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup/agreement.h - the members of a group agree on who of them goes on.
 *
 * A state machine without I/O: what happened and what time it is go in; messages, whom to connect to and what to do come
 * out. agreement.c has the protocol and why it is right; assembly.c moves its messages. */
#ifndef TTI_REGROUP_AGREEMENT_H
#define TTI_REGROUP_AGREEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/status.h>

enum { TTI_AGREE_WORDS_MAX = 512, TTI_AGREE_PLACE_MAX = 320, TTI_AGREE_RANKS_MAX = 1 << 16, TTI_AGREE_LIST_MAX = 80 };

typedef struct tti_agreement tti_agreement;

typedef struct tti_agreement_config {
    int         n;        /* last agreed members, 2 .. TTI_AGREE_RANKS_MAX */
    int         rank;     /* this one among them */
    const bool *excluded; /* [n] the caller's list, borrowed until the end; NULL: whoever is dead */
    bool        minority; /* go on without a quorum */
    const char *what;     /* for words: "shrink_group on group '0'" */
    uint64_t    number;   /* of the call, as this member counts its own */
    uint64_t    over;     /* calls up to this number have ended here because lists differed; 0: none has. Below number */
    int64_t     now_ns;
    int64_t     deadline_ns;
    int64_t     patience_ns; /* with a member of which nothing is known, neither that it comes nor that it is dead */
    void       *ctx;
    /* This member leads and is about to propose: make the place where the chosen ones meet, and write how to find it. */
    tutti_status (*open)(void *ctx, const bool *chosen, char place_out[TTI_AGREE_PLACE_MAX]);
    /* Copy a message for a member; may be lost if the member is. */
    void (*send)(void *ctx, int to, const void *message, size_t bytes);
    /* Optional; for words. Whether a member is known to have left the group, and not to have died. */
    bool (*has_left)(void *ctx, int rank);
} tti_agreement_config;

/** What the driver has to do. */
typedef enum tti_agreement_task {
    TTI_AGREE_WAIT,   /* feed it */
    TTI_AGREE_BUILD,  /* make the successor for tti_agreement_chosen() at tti_agreement_place(), then say how that went */
    TTI_AGREE_DONE,   /* what was built last is the successor, on all that are chosen */
    TTI_AGREE_FAILED  /* tti_agreement_failure() */
} tti_agreement_task;

tutti_status tti_agreement_create(const tti_agreement_config *config, tti_agreement **agreement_out);
void         tti_agreement_free(tti_agreement *a);

/** "{1, 3}" of list[n]; "no list" of NULL. Returns out. */
const char *tti_agreement_list_text(int n, const bool *list, char out[TTI_AGREE_LIST_MAX]);
/** Say that two members of n passed different lists, [n] each or NULL, to what. */
void tti_agreement_word_lists(const char *what, int n, int one, const bool *one_list, int other, const bool *other_list,
                              char words[TTI_AGREE_WORDS_MAX]);

/** All messages of an agreement have this size. */
size_t tti_agreement_message_bytes(int n);

/* ---- what happened; each may send ---- */

/** A connection to rank is there: it is inside of the call, too. */
void tti_agreement_present(tti_agreement *a, int rank);
/** That connection has ended; what became of rank is not known. */
void tti_agreement_absent(tti_agreement *a, int rank);
/** Rank is dead, or has left: proved. */
void tti_agreement_gone(tti_agreement *a, int rank);
/** Rank's process runs, as others know: it may be slow, but is not silent. To be said again and again. */
void tti_agreement_alive(tti_agreement *a, int rank);
/** A member that is to stay has refused, or waits elsewhere: it never comes, as status and words say; parted: because lists differ.
 * Nothing once it is decided, or being built, and without a list once this member has promised. */
void tti_agreement_refused(tti_agreement *a, tutti_status status, bool parted, const char *words);
/** Nothing has come from rank for too long, as those who watch it know: until it is said to be alive again it is not waited for.
 * Those that have no list go on without it; with one nobody can. */
void tti_agreement_silent(tti_agreement *a, int rank);
void tti_agreement_heard(tti_agreement *a, int from, const void *message, size_t bytes);
void tti_agreement_tick(tti_agreement *a, int64_t now_ns);
/** The build that was asked for is over. Failed ones are tried again with those that are left then. */
void tti_agreement_built(tti_agreement *a, tutti_status status, const char *words);

/* ---- what it wants ---- */

tti_agreement_task tti_agreement_now(const tti_agreement *a);
/** Whether a connection to rank is of use. */
bool tti_agreement_wants(const tti_agreement *a, int rank);
/** When to tick next. */
int64_t tti_agreement_next_ns(const tti_agreement *a);
/** [n] who goes on, when there is something to build or all is done. */
const bool *tti_agreement_chosen(const tti_agreement *a);
const char *tti_agreement_place(const tti_agreement *a);
/** Whether this member leads the build that is under way. */
bool tti_agreement_leads(const tti_agreement *a);
/** Whether the build under way is in vain: one of the chosen is gone, or could not build. On the leader. */
bool tti_agreement_in_vain(const tti_agreement *a);
/** The highest number of a call that any of those had that this one has met, its own included. */
uint64_t tti_agreement_number(const tti_agreement *a);
/** Whether a member is in the call, as far as is known here. */
bool tti_agreement_has_come(const tti_agreement *a, int rank);
/** Whether a member was proved to be dead, or to have left: here, or without a list to one that led what was built here. */
bool tti_agreement_is_gone(const tti_agreement *a, int rank);
/** Whether it has failed because members were given different lists. */
bool tti_agreement_parted(const tti_agreement *a);
/** The status; words_out is set. */
tutti_status tti_agreement_failure(const tti_agreement *a, const char **words_out);

#endif
