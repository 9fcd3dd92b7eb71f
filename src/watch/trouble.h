/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch/trouble.h - what a process that cannot join leaves in a world's store for those who wait for it.
 *
 * Under TTI_TROUBLE_KEY, below the world's own prefix. Written once: the first stays. Crosses processes and hosts.
 * Who finds such words there, and gives up as well, leaves one byte under TTI_GAVE_UP_KEY with its number.
 * A rank that cannot make a group of some leaves the same in that group's, under TTI_REFUSAL_KEY with its number in the world: only
 * those that wait for that rank look there.
 * A member that makes a group with another backend than those of its world leaves the same under TTI_OTHERWISE_KEY, where who has the
 * world's backend waits for it; those that have its own do not look there.
 * Who finds that members were given different lists, or choose differently, leaves words under TTI_MISMATCH_KEY, for whoever waits there.
 * Under TTI_ENDED_KEY, beside it, are the endings (watch/bulletin.h) of those that could not say anything any more, one behind
 * the other, as the store has seen them (store/store_will.c). */
#ifndef TTI_WATCH_TROUBLE_H
#define TTI_WATCH_TROUBLE_H

#include <stdint.h>

#define TTI_TROUBLE_KEY   "trouble"
#define TTI_GAVE_UP_KEY   "gave-up/%d"
#define TTI_REFUSAL_KEY   "refused/%d"
#define TTI_OTHERWISE_KEY "otherwise/%d"
#define TTI_MISMATCH_KEY  "mismatch"
#define TTI_ENDED_KEY     "ended"

enum { TTI_TROUBLE_WORDS_MAX = 504, TTI_MISMATCH_WORDS_MAX = 512 /* all of what is under its key, with NUL */ };

typedef struct tti_trouble {
    int32_t status; /* what joining came to there */
    int32_t who;    /* the rank that has given up, and 1; 0: not said */
    char    words[TTI_TROUBLE_WORDS_MAX];
} tti_trouble;

_Static_assert(sizeof(tti_trouble) == 512, "trouble crosses processes and hosts");

#endif
