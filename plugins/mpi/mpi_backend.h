/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_backend.h - what the files of this plug-in share.
 *
 *   plugin.c      the symbol that is shown, and the table
 *   library.c     which MPI library our calls go to
 *   engine.c      MPI itself: begun, ended, its errors, the one lock
 *   backend.c     a group's communicator; how it fails
 *   meet.c        who of the store is who in MPI
 *   collective.c  one call, from its card to its end
 *   card.c        what each member calls, compared before anything moves
 *   motion.c      the moving, slice by slice
 *   message.c     messages, and the thread that asks for them
 *   notice.c      what members tell each other beside their data
 *   device.c      memory of GPUs, where MPI takes it
 *
 * Locking  One mutex, tmpi_lock(), is held around every call of MPI and guards every field here that is not
 *          constant from creation on. Nobody waits with it: calls that would are begun, and asked for. */
#ifndef TUTTI_PLUGINS_MPI_BACKEND_H
#define TUTTI_PLUGINS_MPI_BACKEND_H

#include <mpi.h>
#include <tutti/plugin/device.h>

enum {
    TMPI_WORDS = 512,             /* bytes of the words of a failure */
    TMPI_INLINE = 184,            /* bytes of data that go with a card */
    TMPI_STAGE = 4 << 20,         /* bytes of one buffer that data go through */
    TMPI_SLICE_LEAST = 4096,      /* bytes of one member's part of it, whatever their number */
    TMPI_NAME = 64,
    TMPI_LIBRARY = 96             /* of the name of an MPI library */
};

/** Given by init; constant from then on. */
extern const tutti_plugin_host *tmpi_host;

/* ---- library.c ---- */

/** Whether MPI's calls go to a library of the kind that this object was built for. Calls nothing of MPI's that another one would
 * understand otherwise.
 * @errors TUTTI_E_UNSUPPORTED  they do not; the text names both */
tutti_status tmpi_library_check(void);
void tmpi_library_name(char *out, size_t bytes);
/** Its file; NULL: not known. */
const char *tmpi_library_file(void);

/* ---- engine.c ---- */

/** What MPI has told. Constant once tmpi_engine_start() has succeeded. */
typedef struct tmpi_facts {
    int          rank;     /* in MPI_COMM_WORLD */
    int          size;
    int          tag_most; /* the largest tag; notices have it, data of devices the next one, messages stay below */
    bool         multiple; /* MPI may be called by several threads at once */
    MPI_Datatype block;    /* TMPI_BLOCK bytes, for what has more than an int counts */
    char         library[TMPI_LIBRARY];
    bool         tells_of_cuda; /* it can be asked whether it takes memory of GPUs, */
    bool         takes_cuda;    /* and says that it does */
} tmpi_facts;

enum { TMPI_BLOCK = 1 << 16 };

/** Begin MPI, unless it has been. Every create calls it.
 * @errors TUTTI_E_STATE        it has ended, or was begun by somebody else for one thread only
 *         TUTTI_E_UNSUPPORTED  this library serves one thread only
 *         TUTTI_E_BACKEND      it does not begin */
tutti_status tmpi_engine_start(void);
const tmpi_facts *tmpi_engine_facts(void);

void tmpi_lock(void);
void tmpi_unlock(void);

/** Under the lock: one group more, one less. A group that has failed spoils the end: see engine.c. */
void tmpi_engine_enter(void);
void tmpi_engine_leave(bool failed);

/** Whether MPI has ended, and so is called no more. It stays true. Who asks under the lock, and is told that it has not, may
 * call MPI until the lock is given back. */
bool tmpi_has_ended(void);
/** Words for what would need MPI then. */
tutti_status tmpi_fail_ended(void);
/** Whether MPI is there, or may yet begin: the table's entry of that name.
 * @errors TUTTI_E_STATE  it has ended, on all ranks therefore */
tutti_status tmpi_usable(void);
/** A call of MPI, under the lock: its code, or MPI_ERR_OTHER without a call if MPI has ended; tmpi_fail_mpi() then says so. */
#define TMPI_CALL(call) (tmpi_has_ended() ? MPI_ERR_OTHER : (call))

/** Words for an error code of MPI. */
tutti_status tmpi_fail_mpi(int code, const char *what, const char *group);

/* ---- backend.c ---- */

typedef struct tmpi_backend tmpi_backend;

/** What outlives a group, for requests that do. Counted; all fields under the lock. */
typedef struct tmpi_home {
    int           refs;
    tmpi_backend *backend; /* NULL: destroyed */
    uint64_t      places;  /* given to receives */
    tutti_status  status;  /* what the group has failed with */
    char          words[TMPI_WORDS];
} tmpi_home;

typedef struct tmpi_notices tmpi_notices;

struct tmpi_backend {
    tutti_backend base;
    tmpi_backend *next, **link; /* in the list of open groups; under the lock */
    tmpi_home    *home;
    MPI_Comm      comm; /* its ranks are the group's */
    int           rank;
    int           n_ranks;
    int          *global_ranks; /* [n_ranks], for words */
    char          name[TMPI_NAME];
    uint64_t      token; /* of the meeting: no other group has it */
    tmpi_notices *notices;

    /* Of the thread inside run, but for last_seq. */
    uint64_t       last_seq; /* under the lock: the call that run was in last; 0: none */
    bool           stuck;    /* MPI still has a call that was given up: what it uses is never freed */
    bool           refused;  /* before MPI was asked for it, and there are others: its end spoils nothing */
    unsigned char *out;      /* what goes to MPI, and */
    unsigned char *in;       /* what comes from it, TMPI_STAGE bytes or a slice for each member */
    unsigned char *cards;    /* [n_ranks], and the own one */
    int           *counts;   /* four arrays of n_ranks, for MPI's calls with counts */
    const void   **operands; /* [n_ranks], of a reduction */
};

extern const tutti_backend_ops tmpi_ops;

tutti_status tmpi_create(const tutti_backend_config *config, tutti_backend **backend_out);
void tmpi_abort(tutti_backend *backend);
void tmpi_fail(tutti_backend *backend, tutti_status status);
void tmpi_destroy(tutti_backend *backend);

/** Under the lock. The first one who says so finishes the group: all its waits see it, its messages end. */
void tmpi_finish(tmpi_backend *b, tutti_status status, const char *words);
/** Under the lock: MPI is about to end. All open groups are finished, and MPI has no receive of theirs any more. */
void tmpi_groups_end(void);
/** Under the lock: this thread's last error becomes the group's words. */
tutti_status tmpi_say(const tmpi_home *home);
void tmpi_home_drop(tmpi_home *home);

/** Wait for what MPI has begun; the request is gone if this succeeds. who: the call, for words.
 * @errors TUTTI_E_TIMEOUT, or what the group has failed with: then MPI keeps what it was given */
typedef struct tmpi_wait {
    const char *what;        /* "all_reduce #3 (sum, 4 f32)" */
    uint64_t    seq;         /* of the call; 0: the group is being made */
    int64_t     deadline_ns;
    int64_t     began_ns;
    bool        in_background;
} tmpi_wait;
tutti_status tmpi_await(tmpi_backend *b, MPI_Request *request, const tmpi_wait *wait);

/* ---- meet.c ---- */

/** Wait until all members have come to the store, and see that they are the ranks of this MPI job. token_out: a
 * number that member 0 has drawn.
 * @errors TUTTI_E_ARG      MPI's world is another one; the text has both
 *         TUTTI_E_TIMEOUT  somebody did not come; the text says who */
tutti_status tmpi_meet(const tutti_backend_config *config, uint64_t *token_out);
/** Whether what it has failed with is a refusal, of which all members are told. */
bool tmpi_is_refusal(tutti_status st);

/* ---- collective.c, card.c, motion.c ---- */

tutti_status tmpi_run(tutti_backend *backend, const tutti_call *call);

/** What ranks must agree on, and data that are small enough to come with it. */
typedef struct tmpi_card {
    uint64_t seq;
    int64_t  count;
    uint64_t parts; /* a number made of list_counts, where these must agree; else 0 */
    int64_t  most;  /* the largest of a rank's own counts, where these need not */
    uint32_t kind;
    uint32_t dtype;
    uint32_t op;
    uint32_t whole;
    int32_t  root;
    uint32_t device;
    uint8_t  data[TMPI_INLINE];
} tmpi_card;
_Static_assert(sizeof(tmpi_card) == 240, "the same on all members");

enum { TMPI_CALL_TEXT = 160 };

/** Give everybody the own card, and have everybody's: [n_ranks], until the next call. The barrier that it
 * is ends all barriers. */
tutti_status tmpi_cards_exchange(tmpi_backend *b, const tutti_call *call, const tmpi_wait *wait,
                                 const tmpi_card **cards_out);
/** Whether the data of a call go with the cards. */
bool tmpi_is_small(const tutti_call *call);
void tmpi_describe(const tutti_call *call, char text[TMPI_CALL_TEXT]);

/** Move what a call moves, once the cards agree. */
tutti_status tmpi_move(tmpi_backend *b, const tutti_call *call, const tmpi_card *cards, const tmpi_wait *wait);
/** The same for a call whose data have come with the cards. */
void tmpi_take_small(tmpi_backend *b, const tutti_call *call, const tmpi_card *cards);

/** See that the members' counts of a call in which each pair has its own agree. */
tutti_status tmpi_agree_on_counts(tmpi_backend *b, const tutti_call *call, const tmpi_wait *wait);

/* ---- device.c ---- */

extern const tutti_stream_ops tmpi_stream_ops;

/** Words for a message of memory of a GPU. */
tutti_status tmpi_refuse_message(const tmpi_backend *b);
/** Until the stream that call was issued behind has come to it.
 * @errors TUTTI_E_TIMEOUT, what the device says, or what the group has failed with */
tutti_status tmpi_await_stream(tmpi_backend *b, const tutti_call *call, const tmpi_wait *wait);
/** What a call that adds nothing moves, from device to device; the counts agree. */
tutti_status tmpi_move_on_device(tmpi_backend *b, const tutti_call *call, const tmpi_wait *wait);
/** Between memory of the host and of a device. */
tutti_status tmpi_device_copy(tmpi_backend *b, void *to, const void *from, size_t bytes, const tmpi_wait *wait);

/* ---- message.c ---- */

tutti_status tmpi_post(tutti_backend *backend, const tutti_message *message, tutti_request **request_out);
tutti_status tmpi_request_wait(tutti_request *request, int64_t deadline_ns);
bool tmpi_request_test(tutti_request *request);
int tmpi_request_source(const tutti_request *request);
void tmpi_request_release(tutti_request *request);
void tmpi_request_notify(tutti_request *request, void (*fn)(void *ctx), void *ctx);

/** Under the lock: send bytes of ours, which nobody waits for. */
void tmpi_post_copy(tmpi_backend *b, int peer, int tag, const void *data, size_t bytes);
/** Under the lock: every message of this group has ended, for its caller. */
void tmpi_messages_end(const tmpi_home *home);
/** Whether MPI still has messages. Under the lock. */
bool tmpi_messages_left(void);
/** Let the thread that asks for messages return, and wait for that; what is left is asked for no more. */
void tmpi_messages_stop(void);

/* ---- notice.c ---- */

tutti_status tmpi_notices_open(tmpi_backend *b);
void tmpi_notices_close(tmpi_backend *b);
/** Under the lock: listen no more. */
void tmpi_notices_hush(tmpi_backend *b);
/** Under the lock: see what others have told. */
void tmpi_notices_look(tmpi_backend *b);
/** Under the lock: tell all that this group has failed. */
void tmpi_notices_end(tmpi_backend *b);
/** Ask all whether they are in this call too, or were, and write "rank 2 has not answered within ..." into text. False: all
 * are. Takes seconds, if not. */
bool tmpi_roll_call(tmpi_backend *b, uint64_t seq, char *text, size_t bytes);

#endif
