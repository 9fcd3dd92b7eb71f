/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compress/compress.h - what the files of this room share. */
#ifndef TTI_COMPRESS_COMPRESS_H
#define TTI_COMPRESS_COMPRESS_H

#include "compress/slices.h"
#include "group/compound.h"

/* agree.c */

/** What ranks must agree on before they compress. 64-bit numbers only: it is gathered as i64. */
typedef struct tti_wish {
    int64_t what; /* tti_compressed_kind */
    int64_t count;
    int64_t dtype;
    int64_t op;
    int64_t block;
    int64_t share;  /* bits of a double, or 0 */
    int64_t status; /* what this rank cannot take part with; TUTTI_OK */
} tti_wish;

enum { TTI_WISH_NUMBERS = sizeof(tti_wish) / sizeof(int64_t) };

/** Which call it is. The numbers are on the wire. */
typedef enum tti_compressed_kind { TTI_QUANTIZED = 0x7431, TTI_BLOCK_SPARSE = 0x7432 } tti_compressed_kind;

/** Gather all wishes and compare them: every rank comes to the same verdict, and nothing else was sent.
 * @param all  room for one of each member
 * @errors TUTTI_E_MISMATCH  they differ
 *         mine->status      without words: the caller has them
 *         TUTTI_E_REMOTE    that of another rank */
tutti_status tti_wishes_meet(const char *what, tutti_group *group, const tti_wish *mine, tti_wish *all,
                             tti_turns *turns);
/** A number that is the same for the same wishes. */
uint64_t tti_wish_print(const tti_wish *wish);

/* direct.c */

/** A quantised sum on its way. */
typedef struct tti_direct {
    const tti_compound *compound; /* for words */
    tutti_group        *group;
    tutti_span          buf;
    bool                average;
    float              *error; /* NULL: none */
    tti_slices          slices;
    void               *memory; /* tti_direct_bytes(), aligned to 64 */
} tti_direct;

/** What it works in. */
size_t tti_direct_bytes(const tti_slices *slices); /* at least 64 */
/** Do it. All ranks do, with the same slices and dtype.
 * @errors  what messages fail with; the group is finished then, and no message is under way */
tutti_status tti_direct_run(const tti_direct *direct);

#endif
