/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/torch_proto.h - what a client says to PyTorch's TCPStore, and what comes back, without I/O.
 *
 * How     A request is one byte and its fields; integers are little endian, str and bytes are u64
 *         size and data, a count is u64. Nothing marks a reply: which bytes come depends on what
 *         was asked, so a reader is begun with the request's code.
 *
 *            0 VALIDATE     u32 magic           -> nothing; must come first
 *            1 SET          str bytes           -> nothing
 *            2 COMPARE_SET  str bytes bytes     -> bytes
 *            3 GET          str                 -> bytes
 *            4 ADD          str i64             -> i64
 *            5 CHECK        count str...        -> u8, 0: all are there
 *            6 WAIT         count str...        -> u8 0, when all are there
 *            7 NUM_KEYS                         -> i64
 *            8 DELETE       str                 -> i64
 *            9 APPEND       str bytes           -> nothing
 *           10 MULTI_GET    count str...        -> that many bytes
 *           11 MULTI_SET    count (str bytes).. -> nothing
 *           12 CANCEL_WAIT                      -> u8 1
 *           13 PING         u32                 -> u32, the same
 *           14 QUEUE_PUSH   str bytes           -> nothing
 *           15 QUEUE_POP    str                 -> i64; above 0: bytes behind it
 *           16 QUEUE_LEN    str                 -> i64
 *           17 LIST_KEYS                        -> i64, that many str
 *
 * True    A reader never wants a byte beyond its reply. Sizes and counts that the server sends are
 *         checked before memory is taken for them.
 * Unused  GET and MULTI_GET: for a key that is missing one server answers an empty value, another
 *         closes the connection. COMPARE_SET tells (torch_store.c). 18, a barrier: older servers do not know
 *         it, and ours is made of the others (store_collectives.c). */
#ifndef TTI_STORE_TORCH_PROTO_H
#define TTI_STORE_TORCH_PROTO_H

#include <stdbool.h>
#include "store/store_proto.h"
#include "wire/buffer.h"

enum {
    TTI_TORCH_MAGIC = 0x3C85F7CE,
    TTI_TORCH_KEY_MAX = 8 * 1024,          /* the server's limits: bytes of a key */
    TTI_TORCH_VALUE_MAX = 8 * 1024 * 1024, /* and of a value on its way there; appended ones grow on */
};

typedef enum tti_torch_op {
    TTI_TORCH_VALIDATE,
    TTI_TORCH_SET,
    TTI_TORCH_COMPARE_SET,
    TTI_TORCH_ADD = 4,
    TTI_TORCH_CHECK,
    TTI_TORCH_WAIT,
    TTI_TORCH_NUM_KEYS,
    TTI_TORCH_DELETE,
    TTI_TORCH_APPEND,
    TTI_TORCH_MULTI_SET = 11,
    TTI_TORCH_CANCEL_WAIT,
    TTI_TORCH_PING,
    TTI_TORCH_QUEUE_PUSH,
    TTI_TORCH_QUEUE_POP,
    TTI_TORCH_QUEUE_LEN,
    TTI_TORCH_LIST_KEYS,
    TTI_TORCH_OP_END
} tti_torch_op;

/** Borrowed; what an operation has not is not looked at. */
typedef struct tti_torch_request {
    tti_torch_op       op;
    const char *const *keys;
    size_t             n_keys;   /* 1 for operations on one key */
    bool               own_key;  /* of the store itself: no '/' goes in front */
    tti_slice          expected; /* of COMPARE_SET */
    tti_slice          value;
    const tutti_bytes *values; /* of MULTI_SET, one for each key */
    int64_t            number; /* magic, delta, nonce, world size */
} tti_torch_request;

/** "set", "compare_set", ...; "?" for none. */
const char *tti_torch_op_name(tti_torch_op op);

/** Append a request to out.
 * @errors TUTTI_E_NOMEM  out is as before, or has a part of the request */
tutti_status tti_torch_request_write(const tti_torch_request *request, tti_buffer *out);

/** A reply on its way. Treat the fields behind the second comment as opaque. */
typedef struct tti_torch_reader {
    /* The reply, once it is done. */
    int64_t     number; /* of any width */
    bool        has_value;
    tutti_bytes value;   /* the caller may take it */
    tti_buffer  names;   /* of LIST_KEYS: user keys, each with a NUL behind it */
    size_t      n_names;
    /* Progress. */
    tti_torch_op op;
    int          step;
    uint8_t      field[8]; /* the number that comes just now */
    size_t       got, want;
    uint64_t     left;      /* names to come */
    size_t       list_size; /* bytes of the list so far */
    const char  *prefix;    /* names that do not begin with it are dropped; borrowed */
    const char  *who;       /* for words; borrowed */
} tti_torch_reader;

/** Begin with the reply of `who` to op. prefix is for LIST_KEYS ("": all). */
void tti_torch_reader_begin(tti_torch_reader *reader, tti_torch_op op, const char *who,
                            const char *prefix);
/** Where the next bytes go, and how many there may be; NULL and 0: the reply is complete. */
void *tti_torch_reader_room(tti_torch_reader *reader, size_t *bytes_out);
/** So many were put there.
 * @errors TUTTI_E_STORE  no server that speaks this protocol says that: close the connection
 *         TUTTI_E_NOMEM  the same */
tutti_status tti_torch_reader_take(tti_torch_reader *reader, size_t bytes);
/** Free what the reply holds; it may be begun again. */
void tti_torch_reader_release(tti_torch_reader *reader);

/** A WAIT, and what the byte that just came means for it. */
typedef enum tti_torch_wait {
    TTI_TORCH_WAITING,   /* nothing came yet */
    TTI_TORCH_CANCELLED, /* CANCEL_WAIT was sent: its answer must come */
    TTI_TORCH_CROSSED,   /* the end of the wait came first; the answer to CANCEL_WAIT must still come */
    TTI_TORCH_READY,     /* over: what was waited for is there */
    TTI_TORCH_LATE       /* over: it was not */
} tti_torch_wait;

/** False: the byte makes no sense here; *wait is as before. */
bool tti_torch_wait_feed(tti_torch_wait *wait, uint8_t byte);

#endif
