/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/level/half.h - what the members of one host do for each other in a call of two levels: collect what goes to
 * other hosts, spread what has come from there.
 *
 * A stream is a row of elements that one member of the host has to do with: stream i is of the member at place
 * first + i. Where its elements lie among a member's own buffers that member knows: in bits, each in one place. All
 * members agree on the streams and their lengths, and take part in every round. */
#ifndef TTI_COLL_LEVEL_HALF_H
#define TTI_COLL_LEVEL_HALF_H

#include "coll/host/channel.h"

typedef struct tti_half tti_half;

typedef struct tti_bit {
    char   *at; /* NULL: not this rank's; it is passed over */
    int64_t count;
} tti_bit;

/** Elements of a stream from element at on, as many as lie in one place; at least one. */
typedef tti_bit tti_bits(const tti_half *half, int stream, int64_t at);
/** The elements of a stream. */
typedef int64_t tti_length(const tti_half *half, int stream);

struct tti_half {
    tti_host_channel *channel; /* NULL: nobody else has to do with it */
    const tutti_call *call;
    const void       *context; /* of length and bits */
    bool              collects;  /* or spreads */
    bool              meets;     /* somebody is to be waited for, elements or none */
    bool              takes;     /* spread: this rank takes what the others give */
    int               place; /* of this rank */
    int               first;
    int               n_streams; /* 0: there is nothing to do */
    tti_length       *length;
    tti_bits         *bits;
    /* Collect: where this rank's stream goes. Spread: where it comes from; NULL: it lies where its bits are. */
    char *own;
};

/** The rounds of the channel that it takes: the same on all members of the host. */
uint64_t tti_half_rounds(const tti_half *half);

/** Collect: every member's elements of stream i are combined, in rank order, at whoever has the stream. PREMUL_SUM scales
 * them before; AVG leaves the division to others. Spread: every member that takes gets all streams. */
tutti_status tti_half_do(const tti_half *half);

#endif
