/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/request.h - one message under way, as the files of the messenger see it.
 *
 * Written under the messenger's lock until `ended` is set (release); afterwards cause and peer are constant and may
 * be read without it (acquire on ended). Two references: the caller's and, until it has ended, the messenger's. */
#ifndef TTI_TRANSPORT_REQUEST_H
#define TTI_TRANSPORT_REQUEST_H

#include <stdatomic.h>
#include <stddef.h>
#include "transport/frame.h"
#include "transport/messenger.h"

enum { TTI_WORDS_MAX = 512 };

/** Why something ended badly: handed on as an argument, so that ending the requests of others never
 * touches what the calling thread's last error says. */
typedef struct tti_cause {
    tutti_status status;
    int          origin; /* mesh rank + 1 of the member that worded it; 0: this one */
    int          own_at; /* where in words that member's own words begin */
    char         words[TTI_WORDS_MAX];
    bool         quiet;  /* this rank has left, or ends: nobody is told */
} tti_cause;

/** How words begin that know of a rank only that its connection has ended; who may wait learns more (learn.c). */
#define TTI_CONNECTION_TO     "the connection to rank %d ("
#define TTI_NEW_CONNECTION_TO "the new connection to rank %d ("

void tti_cause_set(tti_cause *cause, tutti_status status, const char *fmt, ...) TUTTI_PRINTF(3, 4);
/** The same with ": " and the text of an errno behind. */
void tti_cause_set_errno(tti_cause *cause, tutti_status status, int err, const char *fmt, ...)
    TUTTI_PRINTF(4, 5);

/** Memory for several requests that are posted together, and go together. */
typedef struct tti_request_block {
    _Alignas(max_align_t) _Atomic int refs; /* requests in it that are left, and whoever still takes from it */
} tti_request_block;

/** A reference to a block less. */
void tti_request_block_drop(tti_request_block *block);

struct tti_request {
    tti_messenger *messenger;
    int           *under_way; /* the messenger's count of requests that have not ended */
    tti_request   *prev, *next; /* in the list that holds it: a lane's queue, or the posted receives */
    bool           is_send;
    tti_channel    channel;
    tti_window    *window; /* a wait for a signal; it may be gone once that has ended */
    tti_parcel     parcel;
    tti_frame      frame;   /* send: what goes first; receive: what it was matched with */
    size_t         sent;    /* send: bytes of frame and data that have gone */
    void          *copy;    /* send given up half-way: the rest, so that the stream stays whole */
    struct tti_held *held;  /* an answer to a get: where it is counted */
    void (*on_end)(void *ctx); /* NULL: none */
    void          *on_end_ctx;
    _Atomic int    refs;
    _Atomic bool   ended;
    bool           on_stack; /* its call waits for its end: nobody else refers to it, and nothing is freed */
    tti_request_block *block; /* the memory that it has with others; NULL: its own */
    tti_cause      cause; /* status TUTTI_OK: it ended well */
    _Alignas(max_align_t) char room[TTI_REQUEST_ROOM]; /* the caller's */
};

/** What goes before a message. */
static inline tti_frame tti_frame_of(tti_channel channel, const tti_parcel *parcel)
{
    return (tti_frame){ .magic = TTI_FRAME_MAGIC, .version = TTI_FRAME_VERSION, .size = sizeof(tti_frame),
                        .plane = (uint8_t)channel.plane, .dtype = parcel->dtype, .group = channel.group,
                        .tag = parcel->tag, .word = parcel->word, .bytes = parcel->bytes, .what = parcel->what };
}

/** Set up the caller's memory as a new request, of two references. */
void tti_request_init(tti_request *request, tti_messenger *m, tti_channel channel, const tti_parcel *parcel,
                      bool is_send);

/** A list of requests in order. */
typedef struct tti_request_list {
    tti_request *first, *last;
} tti_request_list;

void tti_request_append(tti_request_list *list, tti_request *request);
void tti_request_remove(tti_request_list *list, tti_request *request);

/** Set the outcome, once; why NULL: it ended well. The caller has taken the request out of every list; the
 * messenger's reference goes. */
void tti_request_end(tti_request *request, const tti_cause *why);

#endif
