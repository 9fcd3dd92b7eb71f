/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/health/proof.h - what proves that a rank of another host has ended, and what does not. proof.c has the table. */
#ifndef TTI_TRANSPORT_HEALTH_PROOF_H
#define TTI_TRANSPORT_HEALTH_PROOF_H

/** What is known of a rank when its door says something. */
typedef enum tti_standing {
    TTI_STANDING_HEARD,   /* no stream of it has ended, and its host speaks */
    TTI_STANDING_AWAY,    /* no stream of it has ended; nothing comes from its host */
    TTI_STANDING_BEHIND,  /* the same, and the last that came from there was another's goodbye */
    TTI_STANDING_UNHEARD, /* nobody has ever spoken for its host, and the world is made */
    TTI_STANDING_CUT,     /* a stream of it has ended without a goodbye, which was well and short; nobody has answered since */
    TTI_STANDING_DOUBTED, /* a stream of it has ended without a goodbye, which is all that is known */
    TTI_STANDINGS
} tti_standing;

/** What its door says. */
typedef enum tti_sign {
    TTI_SIGN_OPEN,    /* its kernel has taken a connection, and it stays */
    TTI_SIGN_ENDED,   /* its kernel has taken a connection, which has ended since */
    TTI_SIGN_REFUSED, /* nobody listens there */
    TTI_SIGN_SILENCE, /* it was asked several times, and nothing has come */
    TTI_SIGN_NONE,    /* it could not be asked: no descriptor, no way there */
    TTI_SIGNS
} tti_sign;

typedef enum tti_ruling {
    TTI_RULING_NOTHING,      /* it stays what it was */
    TTI_RULING_CLEAR,        /* it lives: it is no suspect any more */
    TTI_RULING_AGAIN,        /* its door is to be asked again, a little later */
    TTI_RULING_DOUBT,        /* it is a suspect from now on, whose door is asked a little later */
    TTI_RULING_LEFT,         /* it has left, as the other of its host did */
    TTI_RULING_DEAD_REFUSED, /* it has ended: nobody holds its door */
    TTI_RULING_DEAD_SILENT   /* it has ended, and its host with it */
} tti_ruling;

tti_ruling tti_rule(tti_standing standing, tti_sign sign);

#endif
