/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/board.h - where members leave things for each other before they can talk, and how everybody's
 * are read. */
#ifndef TTI_TRANSPORT_BOARD_H
#define TTI_TRANSPORT_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include "base/port.h"
#include <tutti/status.h>

/** The backend puts the store behind it. */
typedef struct tti_board {
    void *context;
    /* Leave bytes under key; TUTTI_E_STATE with words if somebody has done so already. */
    tutti_status (*put)(void *context, const char *key, const void *data, size_t bytes,
                        int64_t deadline_ns);
    /* Wait for key and copy exactly bytes; another size is TUTTI_E_STORE. */
    tutti_status (*get)(void *context, const char *key, void *out, size_t bytes, int64_t deadline_ns);
    /* Whether key is there now. */
    tutti_status (*has)(void *context, const char *key, int64_t deadline_ns, bool *there_out);
    /* The same for 1 .. TTI_BOARD_KEYS_MAX keys in one request; out has their values one behind the other. NULL: they
     * are asked for one by one. */
    tutti_status (*get_all)(void *context, const char *const *keys, int n, void *out, size_t bytes,
                            int64_t deadline_ns);
    tutti_status (*has_all)(void *context, const char *const *keys, int n, int64_t deadline_ns, bool *all_out);
    /* Optional: the first `most` bytes of what key has, which is there, of whatever size: how many in *bytes_out. */
    tutti_status (*read)(void *context, const char *key, void *out, size_t most, int64_t deadline_ns, size_t *bytes_out);
    /* Optional: when a wait has run out of time, until when a board that lives has answered who is missing. */
    int64_t (*grace)(void *context);
    /* Optional: waits of this thread end early, as time-outs, soon after *stop has become true. NULL: they do not. */
    void (*heed)(void *context, const _Atomic bool *stop);
    /* Optional: the same when *news is another number than at the latest catch_up, at first 0. NULL: they do not. */
    void (*heed_news)(void *context, const _Atomic uint32_t *news);
    void (*catch_up)(void *context);
} tti_board;

enum { TTI_BOARD_KEYS_MAX = 256, TTI_BOARD_KEY_BYTES = 32 };


/** The board's grace from now on, or that of one that does not say. */
int64_t tti_board_grace(const tti_board *board, tti_port *port);
/** Until when what is asked in the midst of a wait until deadline_ns may take: a second, if there is that much left, and the grace at
 * least. When time is up all that is asked has one grace from deadline_ns on; who comes to ask later than that has the
 * grace of a near board for each question. */
int64_t tti_board_patience(const tti_board *board, tti_port *port, int64_t deadline_ns);

/** What every rank of n leaves: the same number of bytes, under "what/rank". */
typedef struct tti_roll {
    tti_port        *port;
    const tti_board *board;
    const char      *what;
    int              n;
    size_t           bytes;

    /* Rank's piece has come: each once, in order. Other than TUTTI_OK ends the reading. */
    tutti_status (*come)(void *ctx, int rank);
    /* Rank is the first that has not come, and is awaited for some time: asked now and then. NULL: nobody asks. */
    tutti_status (*awaited)(void *ctx, int rank);
    void *ctx;
    int   look_ms; /* the first such time, more than 0; later ones may be longer, up to look_most_ms */
    int   look_most_ms;
    int64_t until_ns; /* tti_roll_read()'s own */
} tti_roll;

/** The key of rank's piece. */
void tti_roll_key(const tti_roll *roll, int rank, char key_out[TTI_BOARD_KEY_BYTES]);

/** How long looks of what so many ranks leave take, where all read at the same time: they look at one store, and share cores, so the
 * more, the more rarely. */
int tti_roll_look_ms(int n_ranks);

/** Read everybody's pieces into out, n x bytes, as they come: *n_out have.
 * @errors TUTTI_E_TIMEOUT, without words of use: rank *n_out had not come at the deadline; what come() and awaited()
 *         give; what the board gives. */
tutti_status tti_roll_read(const tti_roll *roll, int64_t deadline_ns, void *out, int *n_out);

/** Mark those from rank first on whose piece is not there: missing_out[n], of which those before first are left. Ends
 * after most of them, and at the deadline. True: nobody else is missing. */
bool tti_roll_missing(const tti_roll *roll, int first, int most, int64_t deadline_ns, bool *missing_out);

#endif
