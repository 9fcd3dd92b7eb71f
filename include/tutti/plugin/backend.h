/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/plugin/backend.h - what moves the data of a group.
 *
 * The group layer checks arguments, numbers the collectives and keeps their order; a backend is handed one
 * checked call at a time. Ranks in a call are group ranks. Times are CLOCK_MONOTONIC ns; INT64_MAX is
 * never. A backend words its own failures (host table for plug-ins, tti_fail inside the library).
 *
 * Who has one: the library, "native" and "fake"; programs, tutti_register_backend() of tutti/backends.h; plug-ins,
 * tutti/plugin/plugin.h. A backend is done when it passes tests/conformance: `conformance_matrix --backend NAME`.
 *
 * What an entry gives is looked at, of all backends but the library's own: a failure that the entry has not worded on the
 * calling thread, a status that there is not, and what is not there although the entry has succeeded (a backend, a window, a
 * ticket). The text then names backend and entry, and the call has failed, the latter two with TUTTI_E_BACKEND. What create has
 * put there when it failed is not used. A wait that ends with its deadline needs no words; those that it has are told, if the message
 * is given up.
 *
 * What may be left out, and what becomes of it:
 *
 * | entry | NULL, or false |
 * |---|---|
 * | post, wait, test, source, release | all five or none. Messages, and what is made of them, are TUTTI_E_UNSUPPORTED |
 * | a kind of call, a dtype, an op, a device | run says TUTTI_E_UNSUPPORTED, see there; the group goes on |
 * | takes_segments | run is called for each segment |
 * | transfer, post_all | post, wait, source, release; post for each |
 * | notify | test is asked every millisecond |
 * | fail | abort |
 * | windows | TUTTI_E_UNSUPPORTED |
 * | streams | run ends when its data are there |
 * | alive, world_id, hasten, advance, late_deadlines | nothing is known, is done early, or is late |
 * | usable, fixed_world | create finds out | */
#ifndef TUTTI_PLUGIN_BACKEND_H
#define TUTTI_PLUGIN_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/dtype.h>
#include <tutti/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the table and of everything that its entries are handed. All of it only grows at the end, and each time it
 * does this number grows. Only what stands in arrays, tutti_segment and tutti_message, and tutti_op, which stands in a call, never
 * grow: another size would move what comes behind. What they lack comes in arrays beside them. The library drives tables of
 * older versions as well, from the one of its first release on: what they do not have yet is as if it were NULL. */
enum { TUTTI_BACKEND_API = 4 };

/** The kinds of collective. Values are part of the wire: they enter the fingerprint. */
typedef enum tutti_call_kind {
    TUTTI_CALL_BARRIER = 1,
    TUTTI_CALL_ALL_REDUCE = 2,
    TUTTI_CALL_BROADCAST = 3,
    TUTTI_CALL_REDUCE = 4,
    TUTTI_CALL_ALL_GATHER = 5,
    TUTTI_CALL_GATHER = 6,
    TUTTI_CALL_SCATTER = 7,
    TUTTI_CALL_REDUCE_SCATTER = 8,
    TUTTI_CALL_ALL_TO_ALL = 9,
    TUTTI_CALL_GATHER_V = 10,
    TUTTI_CALL_SCATTER_V = 11,
    TUTTI_CALL_KIND_COUNT
} tutti_call_kind;

/** Operations that are made of several calls: what a call is a part of. Values are part of the wire, too. */
typedef enum tutti_call_whole {
    TUTTI_WHOLE_CALL = 0, /* of nothing else */
    TUTTI_WHOLE_QUANTIZED = 1,    /* all_reduce_quantized */
    TUTTI_WHOLE_BLOCK_SPARSE = 2, /* all_reduce_block_sparse */
    TUTTI_WHOLE_SPARSE = 3,       /* sparse_all_reduce */
    TUTTI_WHOLE_GROW = 4,         /* grow_group: op.factor tells how many newcomers are awaited, for words alone */
    TUTTI_WHOLE_COUNT
} tutti_call_whole;

/** One of several buffers that a call does in one go. It never grows: calls have arrays of it. */
typedef struct tutti_segment {
    int64_t     count; /* elements of one rank's part, the same on all ranks */
    const void *in;
    void       *out;
} tutti_segment;

/** One collective, as every member issues it. count is what ranks must agree on: the elements of one
 * rank's part. Which buffers are used:
 *
 * | kind | in | out |
 * |---|---|---|
 * | ALL_REDUCE | the buffer | the same buffer |
 * | REDUCE | the buffer | root: the same buffer; others: no data |
 * | BROADCAST | root: the buffer | others: the buffer |
 * | ALL_GATHER | own part | list[P] |
 * | GATHER | own part | root: list[P] |
 * | SCATTER | root: list[P] | own part |
 * | REDUCE_SCATTER | list[P] | own part |
 * | ALL_TO_ALL, GATHER_V, SCATTER_V | ins[P] | list[P] |
 *
 * list entries are one rank's part each, in group order; in may be (part of) an entry of list exactly, and
 * so may the out of REDUCE_SCATTER be its own entry.
 *
 * REDUCE_SCATTER and ALL_GATHER with parts of different sizes have n_parts and list_counts, the same on all
 * ranks, and count is their sum. ALL_TO_ALL always has n_parts, ins, in_counts (what this rank gives to each)
 * and list_counts (what it expects of each); they are a rank's own, and count is 0. What one rank gives must
 * be what the other expects: the backend finds out, before anything is written beyond a list entry. The own
 * entries of ins and list have equal counts, and may be the same memory; other memory of list is apart from
 * ins. GATHER_V and SCATTER_V are an ALL_TO_ALL in which only the root takes, or only the root gives: all
 * counts between other pairs are 0.
 *
 * ALL_REDUCE, ALL_GATHER and REDUCE_SCATTER of several buffers at once have n_segments: in and out of each
 * stand there instead of in the call, list has P entries for each, one segment's after the other's, and count
 * is the sum of the segments'. Parts of different sizes do not come with segments. */
typedef struct tutti_call {
    tutti_call_kind kind;
    uint64_t        seq; /* of the group's collectives, from 1 */
    tutti_dtype     dtype;
    tutti_op        op;
    int             root; /* group rank; -1: none */
    int64_t         count;
    const void     *in;
    void           *out;
    void *const    *list;
    int64_t         deadline_ns; /* 0, if the table has late_deadlines: not known yet */

    /* Of the kinds and in the cases told above; else 0 and NULL. */
    int                n_parts; /* members: entries of each array below */
    const void *const *ins;
    const int64_t     *list_counts; /* elements */
    const int64_t     *in_counts;   /* elements */

    int                  n_segments; /* 0: one buffer, in, out and list */
    const tutti_segment *segments;

    tutti_device_type device; /* whose memory all buffers are */

    int64_t timeout_ms; /* what deadline_ns is made of; -1: none */

    bool in_background; /* done on a thread of the library's, beside what the program computes: its waits should
                           leave the core to others at once */

    uint64_t record; /* what the flight recorder calls it; 0: it is not recorded. The group layer's own */
    tutti_call_whole whole; /* what it is a part of, the same on all ranks: two calls of different ones differ */

    int device_index; /* of the device that the buffers lie on, as the first span says; -1: there is no buffer */
    struct tutti_ticket *ticket; /* what mark gave for this call; NULL: run ends when its data are there */

    /* From version 3 on. */
    const void *site; /* where the program has called, of a call that runs later for a backend that compares calls; else NULL */
} tutti_call;

/** One message. It never grows: post_all takes arrays of it. */
typedef struct tutti_message {
    bool        is_send;
    int         peer; /* group rank; -1 on a receive: any source */
    int         tag;
    tutti_dtype dtype;
    int64_t     count;
    void       *data; /* borrowed until the request is done */
    tutti_device_type device; /* whose memory data is */
    int   device_index;       /* of the device that data lies on */
    void *stream;             /* the caller's (tutti/stream.h): the message begins behind what this has been given */
} tutti_message;

/** How far a collective has come that was begun before it is run. */
typedef enum tutti_progress {
    TUTTI_PROGRESS_NONE,  /* nothing of it was done */
    TUTTI_PROGRESS_BEGUN, /* others may be waiting for what this member does in run */
    TUTTI_PROGRESS_GIVEN, /* nobody waits for this member any more; run takes what the others give */
    TUTTI_PROGRESS_DONE   /* it has ended, and is not run */
} tutti_progress;

typedef struct tutti_backend tutti_backend;
typedef struct tutti_request tutti_request; /* one message under way; the backend's own type */
typedef struct tutti_ticket tutti_ticket;   /* the place of one call in a device's streams; the backend's own type */

/** What a backend is made with. Everything is borrowed until create returns, the store and parent
 * until destroy. */
typedef struct tutti_backend_config {
    size_t         size;
    tutti_store   *store; /* this group's own keys */
    int            rank;
    int            n_ranks;
    const int     *global_ranks; /* [n_ranks] */
    uint32_t       group_id;     /* the same on all members, unique among those of one parent; 0 without one.
                                    Below 2^31 members make groups in growing order, from there on in any */
    const char    *name;
    int64_t        timeout_ms;  /* of creation; -1: none */
    tutti_backend *parent;      /* whose connections to use, by global_ranks; NULL: make own ones */
    const char    *listen_host; /* numeric address of this host that other hosts can reach */
    bool           lazy;        /* create waits for no member; the first run does, until its deadline */
    bool           heeds_parent; /* who is told that the parent has failed comes no more: create ends with that */
    bool           has_queued; /* calls of this rank may wait for a thread that begins them: who waits for its part is not stuck */
    const struct tutti_backend_ops *ops; /* the library's table whose create this is: for one that serves several */

    /* From version 2 on. Of a table with sit_out only: */
    tutti_backend *split_from; /* one whose members divide themselves, all of them now: each with create, or with sit_out. They
                                  may make the groups out of what it has, as an alternative: what create promises holds. No call of
                                  it is run meanwhile, and all that were issued before have been run; borrowed until create
                                  returns. NULL: only the members of this group come */
    uint64_t       split_step; /* no other division of split_from has this number */
    int            split_color; /* not negative; the same on the members of this group, in no other group of the step */
} tutti_backend_config;

typedef struct tutti_backend_window tutti_backend_window; /* one member's handle; the backend's own type */

enum { TUTTI_WINDOW_CARD_BYTES = 64 };

/** One-sided access. Peers are group ranks, the member itself included; offsets and lengths are bytes, which the
 * group layer has checked against what the peer registered. Entries that have a request_out begin something: they
 * never block, and set it to NULL if it is done. All are required, and called on any thread. */
typedef struct tutti_window_ops {
    uint32_t size; /* sizeof(tutti_window_ops) of the build that made this table: it only grows at the end, too. From version 3 on;
                      that of a backend's table of version 1 or 2 begins with open, and ends with bytes */
    /* Open this member's part: memory of the CPU that tutti_alloc() gave, borrowed until close; bytes may be 0. id is
     * the same on all members, and unique in the group. The card is for the others; it crosses hosts. */
    tutti_status (*open)(tutti_backend *backend, uint32_t id, void *data, size_t bytes,
                         uint8_t card_out[TUTTI_WINDOW_CARD_BYTES], tutti_backend_window **window_out);
    /* All members have opened; their cards in group order. Called once, before anything below but close. */
    tutti_status (*attach)(tutti_backend_window *window, const uint8_t (*cards)[TUTTI_WINDOW_CARD_BYTES]);
    /* Copy to the peer's memory; data is borrowed until the request is done, which may be before the peer's
     * memory has it. */
    tutti_status (*put)(tutti_backend_window *window, int peer, uint64_t offset, const void *data, size_t bytes,
                        tutti_request **request_out);
    /* Copy from the peer's memory. */
    tutti_status (*get)(tutti_backend_window *window, int peer, uint64_t offset, void *data, size_t bytes,
                        tutti_request **request_out);
    /* Count one up at the peer; whoever takes it there sees this member's earlier puts to the peer. */
    tutti_status (*signal)(tutti_backend_window *window, int peer);
    /* Take one of the peer's signals. */
    tutti_status (*wait_signal)(tutti_backend_window *window, int peer, tutti_request **request_out);
    /* Give up a wait_signal: true, and it has taken none; or it has ended. */
    bool (*cancel)(tutti_backend_window *window, tutti_request *request);
    /* Done when all earlier puts to the peer are in its memory. */
    tutti_status (*flush)(tutti_backend_window *window, int peer, tutti_request **request_out);
    /* Whether the peer's memory is reached directly, and where, until close; NULL: it is not, or has no bytes. */
    bool (*is_direct)(tutti_backend_window *window, int peer);
    void *(*memory)(tutti_backend_window *window, int peer);
    /* agreed: all members have ended what they do. Else nobody writes into data any more when this returns,
     * and the same holds as soon as fail or abort was called, or the backend has failed. Never waits for peers. */
    void (*close)(tutti_backend_window *window, bool agreed);
    /* How many bytes the peer has registered, by its card, once attached: what the group layer was told has to
     * agree with it. */
    size_t (*bytes)(tutti_backend_window *window, int peer);
} tutti_window_ops;

/** Calls in the order of a device's streams, for backends whose work is done by a device. A call has a ticket: mark makes
 * it when the call is issued, run with it begins the call and does not wait for its end, follow lets a stream wait for
 * that, and the program's thread goes on. The time-out of a call with a ticket is the backend's to watch from run on: a
 * call that has not ended by its deadline_ns fails, and with it the backend. Streams are the device's own handles, NULL the
 * default one. All are required, and called on any thread. Of a backend that is destroyed before all tickets have ended, destroy
 * waits for them, each until its deadline at most, unless it has failed or was aborted. */
typedef struct tutti_stream_ops {
    uint32_t size; /* sizeof(tutti_stream_ops) of the build that made this table: it only grows at the end, too */
    /* A call is issued on this thread: note how far stream has come. What run begins with the ticket begins behind that.
     * Never blocks. */
    tutti_status (*mark)(tutti_backend *backend, int device_index, void *stream, tutti_ticket **ticket_out);
    /* run with it has succeeded: what stream is given from now on begins behind the call. Never blocks. Fails with what the
     * call has failed with, if that is known. */
    tutti_status (*follow)(tutti_ticket *ticket, void *stream);
    /* Whether the call has ended, well or not, after run with it has succeeded. Never blocks. */
    bool (*test)(tutti_ticket *ticket);
    /* Wait for its end on this thread: TUTTI_OK, what it failed with (words again each time), or TUTTI_E_TIMEOUT at the
     * deadline with the call still under way. */
    tutti_status (*wait)(tutti_ticket *ticket, int64_t deadline_ns);
    /* Drop it; run may never have been called with it. Legal after destroy. */
    void (*release)(tutti_ticket *ticket);
} tutti_stream_ops;

/** Tables are const and shared by all instances. */
typedef struct tutti_backend_ops {
    uint32_t    api;  /* TUTTI_BACKEND_API of the build that made this table */
    uint32_t    size; /* sizeof(tutti_backend_ops) of that build */
    const char *name; /* "native": what tutti_init_options.backend says; of what is registered, or a plug-in, for words */

    /* Required. Blocks until all members have called it, at most timeout_ms, unless lazy; the text of
     * TUTTI_E_TIMEOUT names who has not. Once tutti_store_stops() is true here a member has refused the group: fail soon. */
    tutti_status (*create)(const tutti_backend_config *config, tutti_backend **backend_out);
    /* Required. Do call to its end on the calling thread. One at a time per backend, in seq order. After
     * a failure the backend is finished: every later run returns the same status. But for one: TUTTI_E_UNSUPPORTED, with words, of
     * a call that this backend does not offer. It is said before anything of it is done, and by what is the same on all
     * members (kind, dtype, op, counts that must agree), so that all refuse it; then the group goes on with the next. */
    tutti_status (*run)(tutti_backend *backend, const tutti_call *call);
    /* This one and the next four: all or none. Begin a message; never blocks. request_out is the caller's until release; NULL
     * there: it has ended well already, and what a receive got is from the member that it names. Any thread. */
    tutti_status (*post)(tutti_backend *backend, const tutti_message *message, tutti_request **request_out);
    /* Wait for its end: TUTTI_OK, what it failed with (words again each time), or
     * TUTTI_E_TIMEOUT at the deadline with the message still under way. Any thread, several at once. */
    tutti_status (*wait)(tutti_request *request, int64_t deadline_ns);
    /* Whether it has ended; never blocks. */
    bool (*test)(tutti_request *request);
    /* Group rank of the sender of a completed receive, else -1. */
    int (*source)(const tutti_request *request);
    /* Drop a request; the message goes on if it has not ended. Legal after destroy. */
    void (*release)(tutti_request *request);
    /* Required. Make every wait of this backend, on any thread, return TUTTI_E_ABORTED soon, and end the
     * requests under way with it. Any thread. */
    void (*abort)(tutti_backend *backend);
    /* Required. Free everything. No thread is inside run; requests under way end with
     * TUTTI_E_ABORTED. Never waits for peers. */
    void (*destroy)(tutti_backend *backend);
    /* Optional; NULL: abort is called instead. This rank has failed outside of run, in a message: do
     * what abort does, but with status and the words of the calling thread's last error, and tell the
     * members that can be told. After the first time, and after abort, it does nothing. Any thread;
     * never waits for peers. */
    void (*fail)(tutti_backend *backend, tutti_status status);
    /* Optional; NULL: test is asked every millisecond while somebody waits for one of several requests.
     * Call fn(ctx) once, when request has ended and test says so: on any thread, also when abort or destroy
     * ends it; before returning if it has ended already. fn is short, never blocks, and calls nothing of
     * the backend, so locks may be held. At most once per request, before its release, which does not
     * take it back. Any thread. */
    void (*notify)(tutti_request *request, void (*fn)(void *ctx), void *ctx);
    /* It never waits for other members: a world of it can be made without a store, by one process. */
    bool needs_no_peers;
    /* Optional; NULL: no windows. */
    const tutti_window_ops *windows;
    /* Optional; NULL: nothing is known. TUTTI_E_PEER, with words that name it, if this member is known to be
     * gone; TUTTI_OK if nothing is known against it. Never blocks. Any thread. */
    tutti_status (*alive)(tutti_backend *backend, int rank);
    /* Optional; NULL: post, wait, source, release. Do a message to its end on the calling thread; data is in use by
     * nobody when this returns. After timeout_ms (negative: never) call expired(ctx, ns that were waited) once, with
     * words about the peer as this thread's last error; it fails the group, which ends the message; then return
     * TUTTI_E_TIMEOUT. source_out: as source says. Any thread. */
    tutti_status (*transfer)(tutti_backend *backend, const tutti_message *message, int64_t timeout_ms,
                             void (*expired)(void *ctx, int64_t waited_ns), void *ctx, int *source_out);
    /* run takes calls whose deadline_ns is 0, and counts timeout_ms from when it first has to wait: a call that
     * does not wait reads no clock. */
    bool late_deadlines;
    /* Optional; NULL: a call begins when it is run. Do so much of call as waits for nobody, and say how far it has
     * come. Its turn has come, or all calls before it have given all: then it ends in run only. Unless it has ended,
     * this may be asked again, and run follows with the same call, in the order of calls; also after a failure of the
     * backend or abort, if anything of it was done: then run gives its buffers back. One thread at a time, not always the
     * same, and not during a run. Fails as run does. */
    tutti_status (*advance)(tutti_backend *backend, const tutti_call *call, tutti_progress *progress_out);
    /* Optional. A thread of the program waits for the call of number seq: if that or one before it runs in background, its
     * waits need not leave the core to others any more. A hint. Any thread; never blocks. */
    void (*hasten)(tutti_backend *backend, uint64_t seq);
    /* Optional; NULL: post, one after the other. Begin n messages in their order, each as post does, with a request, or
     * NULL there. n_out: how many were begun; if not all, this returns why the next one was not, and may be called again for
     * those behind it. Any thread. */
    tutti_status (*post_all)(tutti_backend *backend, const tutti_message *messages, int n, tutti_request **requests_out,
                             int *n_out);
    /* Optional; NULL: 0. A random number that all members of the world have, and no other world; the same at every call.
     * Who puts what members have recorded side by side goes by it. */
    uint64_t (*world_id)(tutti_backend *backend);
    /* run takes calls with segments. If not, it is called for each of them in their order, n_segments being 0 and seq the same
     * each time. Required of a table with advance, or with streams. */
    bool takes_segments;
    /* Optional; NULL: run ends when its data are there. */
    const tutti_stream_ops *streams;

    /* From version 2 on. */

    /* Optional; NULL: split_from of the configuration is never set. This member of backend makes no group in a step in which
     * others do. If it wants none this waits for the others, at most timeout_ms (-1: no limit), and does what it takes that
     * they can split; fails if that has broken backend. has_failed: it could not come as far as create; then this waits for
     * nobody, and the others make their groups without splitting. */
    tutti_status (*sit_out)(tutti_backend *backend, uint64_t step, int64_t timeout_ms, bool has_failed);

    /* From version 4 on. */

    /* Optional; NULL: TUTTI_OK. Whether a world of it can be made in this process at all: each backend that is named is asked when a world
     * is created, joined or reconfigured, before its members look for each other, so the others are told nothing. For what is so on all
     * of them, as that the library below has ended; what one member alone may lack create says, which they are told of. Words: what is
     * not, and one next step. Never blocks. Any thread. */
    tutti_status (*usable)(void);
    /* A group of it without a parent has exactly the ranks that the job was started with, each under its own number: create refuses any
     * other. So what would make one of fewer or more (shrink, grow, join, merge, reconfigure) is TUTTI_E_UNSUPPORTED at once, and nobody is
     * waited for. Groups with a parent may be of some of them. */
    bool fixed_world;
} tutti_backend_ops;

struct tutti_backend {
    const tutti_backend_ops *ops; /* the table that it was made with: first member of every implementation */
};

#ifdef __cplusplus
}
#endif
#endif
