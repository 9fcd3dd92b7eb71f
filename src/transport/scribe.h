/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/scribe.h - one rank of a host reads for all of it what everybody has left on a board. */
#ifndef TTI_TRANSPORT_SCRIBE_H
#define TTI_TRANSPORT_SCRIBE_H

#include "transport/board.h"

/** Lists of fewer pieces are read by everybody: a request more costs the store as much as some forty pieces. */
enum { TTI_SCRIBE_FROM = 64 };

typedef enum tti_scribe_word {
    TTI_SCRIBE_AT = 1, /* so many have come, and the next one has not */
    TTI_SCRIBE_DONE,   /* all have: they are to be had from the scribe */
    TTI_SCRIBE_ALONE   /* the scribe has failed: everybody reads by himself */
} tti_scribe_word;

/** What a scribe says on the board. Crosses processes: fixed size, little endian, versioned. */
typedef struct tti_scribe_note {
    uint32_t magic;
    uint16_t version;
    uint16_t word; /* tti_scribe_word */
    int32_t  n;    /* AT */
    uint32_t unused;
    uint64_t at;    /* DONE: where they lie, as the scribe and its host have agreed */
    uint64_t nonce; /* the same */
} tti_scribe_note;

_Static_assert(sizeof(tti_scribe_note) == 32, "the note crosses processes");

/** One reading of a roll for the ranks of one place. Fill in the first part, the same on all of them. */
typedef struct tti_scribe {
    const tti_roll *roll; /* awaited() must be there */
    uint64_t        place; /* no other ranks of the roll have this number */
    int             rank;  /* the scribe, in the numbers of the roll */

    int told, n_notes; /* the scribe's own */
} tti_scribe;

/** For the scribe: as tti_roll_read(), and the others of its place are told how far it has come. After TUTTI_OK they wait
 * for what tti_scribe_tell() says, after anything else they read by themselves. */
tutti_status tti_scribe_read(tti_scribe *scribe, int64_t deadline_ns, void *out, int *n_out);
/** Say it; who does not hear it finds out by himself. Leaves this thread's last error as it is. */
void tti_scribe_tell(tti_scribe *scribe, tti_scribe_word word, uint64_t at, uint64_t nonce);

/** For the others: wait until the scribe is through. TUTTI_OK: note_out says DONE, or ALONE, also where nothing is heard of
 * a scribe that could be through. roll's awaited() is asked as in tti_roll_read(), about somebody who has not come.
 * @errors as tti_roll_read(): *n_out has not come */
tutti_status tti_scribe_await(const tti_scribe *scribe, int64_t deadline_ns, tti_scribe_note *note_out, int *n_out);
/** As tti_roll_read(), for who was told ALONE, which may be when his time is up. */
tutti_status tti_scribe_read_alone(const tti_roll *roll, int64_t deadline_ns, void *out, int *n_out);

#endif
