/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup/agreement_core.h - the agreement as its files see it. */
#ifndef TTI_REGROUP_AGREEMENT_CORE_H
#define TTI_REGROUP_AGREEMENT_CORE_H

#include "regroup/agreement.h"

#include "base/port.h"

/** tti_agree_silence_ns(), where patience is not shorter. */
#define TTI_AGREE_SILENT_NS (5 * TTI_SECOND)
/** A leader that waits for others says so this often, or more often where patience is short. */
#define TTI_AGREE_ALIVE_NS (500 * TTI_MS)

/** The next leader after a silent one has this long to say something. */
#define TTI_AGREE_GRACE_NS (1 * TTI_SECOND)
/** With a list, who follows gives its leader so much more than its own time to say who did not come. */
#define TTI_AGREE_LAST_SAY_NS (30 * TTI_MS)
/** Who meets another list is in the call for so long, so that the other one can be told. */
#define TTI_AGREE_ODDS_NS (500 * TTI_MS)

/** The ballot of what is said outside of any: whoever says it is in the call no longer, whoever leads. */
#define TTI_AGREE_NO_BALLOT UINT64_MAX

enum { TTI_AGREE_ATTEMPTS = 3, TTI_AGREE_PROBED = 4 };

typedef enum tti_agree_type {
    TTI_AGREE_JOIN = 1, /* to who seems to lead: this member is here; accepted: the number of its call; origin: over, as configured */
    TTI_AGREE_PREPARE,  /* ballot */
    TTI_AGREE_PROMISE,  /* ballot; accepted, origin, value */
    TTI_AGREE_BUSY,     /* accepted: the higher ballot that was promised */
    TTI_AGREE_PROPOSE,  /* ballot; origin, value, place; where there is no list, in its place: who is gone, as who leads knows */
    TTI_AGREE_ACCEPT,   /* ballot */
    TTI_AGREE_REJECT,   /* ballot; status, words */
    TTI_AGREE_COMMIT,   /* origin, value */
    TTI_AGREE_REFUSE,   /* ballot; status, words: the call is over for whoever reads it; accepted: its number; origin: 1: lists differ */
    TTI_AGREE_ALIVE,    /* value: who has not come, as who leads knows */
    TTI_AGREE_KNOWN,   /* to who said COMMIT */
    TTI_AGREE_ALL_KNOW /* the call is over, and good, for whoever knows what was decided */
} tti_agree_type;

/** A message, decoded. The sets are by rank. */
typedef struct tti_agree_message {
    tti_agree_type type;
    bool           has_list;
    tutti_status   status;
    uint64_t       ballot;
    uint64_t       accepted;
    uint64_t       origin;
    char           place[TTI_AGREE_PLACE_MAX];
    char           words[TTI_AGREE_WORDS_MAX];
    bool          *value; /* [n] */
    bool          *list;  /* [n] of the sender; or what its type has in that place */
} tti_agree_message;

/** What is known of a member. */
typedef struct tti_agree_member {
    bool         present;  /* a connection to it is there */
    bool         gone;     /* for ever */
    bool         given_up; /* unless it turns up */
    bool         silent;   /* as others know, until they say otherwise */
    bool         wanted;   /* it has said something, or is to be told */
    bool         asked;    /* leader: by PREPARE or PROPOSE of this ballot */
    bool         answered; /* leader: with PROMISE or ACCEPT */
    bool         differs;  /* leader: it has another list */
    bool         behind;   /* it has another list, in a call that is over here: it is told, and is to call again */
    bool         knows;    /* what was decided */
    int64_t      alive_ns; /* when its process was last known to run, whatever it says */
    uint64_t     accepted; /* leader: as its PROMISE said */
    uint64_t     origin;
    bool        *value;    /* leader: [n]; allocated with the first */
} tti_agree_member;

typedef enum tti_agree_phase { TTI_AGREE_FOLLOW, TTI_AGREE_GATHER, TTI_AGREE_ASK, TTI_AGREE_MAKE, TTI_AGREE_RECOVER } tti_agree_phase;

struct tti_agreement {
    tti_agreement_config config;
    int                  n;
    int                  rank;
    int64_t              now_ns;
    tti_agree_member    *members; /* [n] */

    /* As one that votes. */
    uint64_t promised;
    uint64_t accepted; /* 0: nothing */
    uint64_t origin;   /* the ballot in which the value was new; equal to accepted: it needs all of its members */
    bool    *value;    /* [n] accepted */
    uint64_t built;    /* the origin that this member has built; 0: none */
    uint64_t committed; /* an origin that is decided while it is still being built here */
    int      committed_by;
    uint64_t later;     /* the ballot of a PREPARE that came while it built, answered when it has; 0: none */
    int      later_to;

    /* As one that leads. */
    tti_agree_phase phase;
    uint64_t        ballot;
    int64_t         since_ns; /* of what the phase waits for */
    int64_t         until_ns; /* of that: then it goes on without the silent */
    int64_t         said_ns;  /* when it last said that it is alive */
    int             said_missing; /* how many had not come then */
    int64_t         yield_ns; /* somebody else leads: not before */
    int64_t         heard_ns; /* when whoever leads last said something */
    int             heard_of; /* who that was */
    int             attempts; /* builds that failed, and nobody had died */
    bool            vain;
    bool            own_built; /* the build of this ballot is over here, and good */

    /* With a list. */
    uint64_t number;   /* the highest of a call that was heard of */
    bool    *missing;  /* [n] as heard_of has said last */
    bool     was_told; /* it has */
    bool    *absent;   /* [n] leader: as it says */
    int      odds;     /* who has another list, while that is to be told to it; -1: nobody has */
    int64_t  odds_until_ns;
    char     odds_words[TTI_AGREE_WORDS_MAX]; /* also of a PROMISE with another list */
    bool     parted;   /* it fails, or has failed, because lists differ */

    /* As one that knows what was decided: agreement_end.c. */
    bool    decided;
    bool    spreads; /* in the place of who told it */
    int     told_by;
    int64_t spread_until_ns;

    tti_agreement_task task;
    uint64_t           building; /* ballot */
    bool              *chosen;   /* [n] */
    bool              *lost;     /* [n] without a list: who is gone, as those that led know; none of them comes back */
    char               place[TTI_AGREE_PLACE_MAX];
    tutti_status       failure;
    char               words[TTI_AGREE_WORDS_MAX];
    bool              *room;  /* what the sets point into */
    bool              *heard; /* [n] two sets that messages are read into */
    bool              *heard_list;
    uint8_t           *wire;  /* one message */
};

/** A member that is in the call, but says nothing for so long, is done without, if nothing tells that its process runs: one
 * that is merely slow is waited for as long as one that did not come. */
static inline int64_t tti_agree_silence_ns(const tti_agreement *a)
{
    return a->config.patience_ns < TTI_AGREE_SILENT_NS ? a->config.patience_ns : TTI_AGREE_SILENT_NS;
}

/** How often a leader that waits for others says so, before any of them thinks it silent. */
static inline int64_t tti_agree_alive_ns(const tti_agreement *a)
{
    const int64_t often_ns = tti_agree_silence_ns(a) / 4;

    return often_ns < TTI_AGREE_ALIVE_NS ? often_ns : TTI_AGREE_ALIVE_NS;
}

/* agreement_message.c */

void tti_agree_encode(const tti_agreement *a, const tti_agree_message *m, uint8_t *out);
/** False: it is none, as its size, n, type or status is not one that there is. m's sets are there. */
bool tti_agree_decode(const tti_agreement *a, const uint8_t *in, size_t bytes, tti_agree_message *m);

/* agreement.c */

void tti_agree_send(tti_agreement *a, int to, const tti_agree_message *m);
void tti_agree_fail(tti_agreement *a, tutti_status status, const char *words);
/** A refusal without words, outside of any ballot; of lists if this member fails because of them. */
tti_agree_message tti_agree_refusal(const tti_agreement *a, tutti_status status);
/** Build the new value of this ballot, which is chosen. That it is new proves that what this one voted for before was not decided,
 * nor will be; and the build tears down what was built for it: so that vote is forgotten, or it might be taken up again. */
void tti_agree_build(tti_agreement *a, uint64_t ballot);
bool tti_agree_eligible(const tti_agreement *a, int rank);
/** Whether rank was seen to run not long ago, although it says nothing. */
bool tti_agree_is_alive(const tti_agreement *a, int rank);
/** Whether nothing is expected of a member, now or ever. */
static inline bool tti_agree_is_away(const tti_agree_member *member)
{
    return member->gone || member->given_up || member->silent;
}
/** The phase waits from now on, for so long; then for those that were asked, are here, and whose processes run. */
void tti_agree_begin(tti_agreement *a, int64_t ns);
bool tti_agree_is_over(const tti_agreement *a);
/** Whether these members may go on: more than half of all, or half with the lowest rank. */
bool tti_agree_quorum(const tti_agreement *a, const bool *set);
/** When time is up here. */
int64_t tti_agree_expires_ns(const tti_agreement *a);

/* agreement_lists.c */

/** Whether the sender of m was given other ranks to exclude. */
bool tti_agree_differs(const tti_agreement *a, const tti_agree_message *m);
/** Say that, of own list and other's. */
void tti_agree_word_difference(const tti_agreement *a, int other, const tti_agree_message *m, char words[TTI_AGREE_WORDS_MAX]);
/** Compare the list of who says m with the own one. True: there is nothing else to be made of m. */
bool tti_agree_compare(tti_agreement *a, int from, const tti_agree_message *m);
/** Once it has met another list: fail when the other one can be told, or time is up for that. */
void tti_agree_part(tti_agreement *a);
/** A member that answered this ballot has another list: the call is over. */
bool tti_agree_refuse_difference(tti_agreement *a);

/* agreement_end.c */

/** It is decided, as from says, or this member. */
void tti_agree_decided(tti_agreement *a, int from, uint64_t origin, const bool *value);
/** Once it is: see whether the others know, too. */
void tti_agree_spread(tti_agreement *a);
void tti_agree_hear_knowing(tti_agreement *a, int from, const tti_agree_message *m);

/* agreement_lead.c */

/** Nobody is left before this member: take the lead, or go on leading. */
void tti_agree_lead(tti_agreement *a);
void tti_agree_answer(tti_agreement *a, int from, const tti_agree_message *m);
/** A member's call is over, or it is dead or silent: what it was asked it will not answer. */
void tti_agree_lose(tti_agreement *a, int rank);
/** Why the build of this ballot failed. What is noted first counts: it makes the others fail. */
void tti_agree_note(tti_agreement *a, tutti_status status, const char *words);
/** Somebody else leads. */
void tti_agree_yield(tti_agreement *a, uint64_t ballot);
/** The call is over for all that are here. */
void tti_agree_refuse(tti_agreement *a, tutti_status status, const char *words);
/** Time is up. */
void tti_agree_expire(tti_agreement *a);
/** To all that are here. */
void tti_agree_tell_all(tti_agreement *a, const tti_agree_message *m);

#endif
