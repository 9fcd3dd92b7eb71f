/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_proto.h - what client and server of the tcp store say after the hello.
 *
 * How     Frames: a head of 12 bytes, then a body. Integers are little endian, a key is u16 size
 *         and bytes, a value u32 size and bytes.
 *
 *           head      u32 size of the body | u8 version | u8 op | u16 status | u32 id
 *           SET          key value             -> nothing
 *           GET          key                   -> the value, when it is there
 *           ADD          key i64               -> i64
 *           WAIT         u32 n, n keys         -> nothing, when all are there
 *           CHECK        u32 n, n keys         -> u8
 *           COMPARE_SET  key value value       -> a value: expected, desired -> what is there now
 *           DELETE       key                   -> u8
 *           NUM_KEYS                           -> i64
 *           CANCEL                             ends the wait of the same id
 *           APPEND       key value             -> nothing
 *           MULTI_GET    u32 n, n keys         -> u32 m, the first m values, when all n are there
 *           MULTI_SET    u32 n, n (key value)  -> nothing
 *           QUEUE_PUSH   key value             -> nothing
 *           QUEUE_POP    key i64 block         -> the value, when there is one; not block: or EMPTY
 *           QUEUE_LEN    key                   -> i64
 *           LIST_KEYS    key                   -> u32 n, the n keys that begin with that one
 *           WILL         key value             -> nothing; appended when this connection ends. An empty value takes it back
 *           NEED         key i64               1: this client still needs the store for what is made there; 0: no more
 *
 *         GET, WAIT, MULTI_GET and QUEUE_POP wait. MULTI_GET answers with as many values as fit into
 *         16 MiB, at least one; the client asks again for the rest. A reply has the op and id of its request, a status, and, if that is not 0, words as its
 *         body.
 * True    Every request but CANCEL and NEED has exactly one reply, in order. A cancelled wait is answered
 *         with TUTTI_E_TIMEOUT; if its reply crossed the CANCEL, the server finds nothing to cancel
 *         and says nothing. Either way one reply comes and the connection goes on. Behind a
 *         request that waits a client sends nothing but its CANCEL until the reply has come.
 * Limits  Checked from the head alone, before a body is waited for; a frame that breaks them, or is
 *         malformed, ends the connection. */
#ifndef TTI_STORE_STORE_PROTO_H
#define TTI_STORE_STORE_PROTO_H

#include <stdbool.h>
#include "wire/buffer.h"
#include <tutti/store.h>

enum {
    TTI_STORE_VERSION = 3,
    TTI_STORE_HEAD_BYTES = 12,
    TTI_STORE_WIRE_KEY_MAX =
        TUTTI_STORE_KEY_MAX + 1,            /* the client puts one byte before user keys */
    TTI_STORE_KEYS_MAX = 256,               /* of one list of keys */
    TTI_STORE_NAMES_MAX = 16 * 1024 * 1024, /* bytes of the answer to LIST_KEYS */
    TTI_STORE_WORDS_MAX = 1024,             /* bytes of the words of a failure */
    TTI_STORE_WILL_MAX = 512                /* bytes of the value of a WILL */
};

typedef enum tti_store_op {
    TTI_STORE_SET = 1,
    TTI_STORE_GET,
    TTI_STORE_ADD,
    TTI_STORE_WAIT,
    TTI_STORE_CHECK,
    TTI_STORE_COMPARE_SET,
    TTI_STORE_DELETE,
    TTI_STORE_NUM_KEYS,
    TTI_STORE_CANCEL,
    TTI_STORE_APPEND,
    TTI_STORE_MULTI_GET,
    TTI_STORE_MULTI_SET,
    TTI_STORE_QUEUE_PUSH,
    TTI_STORE_QUEUE_POP,
    TTI_STORE_QUEUE_LEN,
    TTI_STORE_LIST_KEYS,
    TTI_STORE_WILL,
    TTI_STORE_NEED,
    TTI_STORE_OP_END
} tti_store_op;

typedef struct tti_store_head {
    uint32_t     size; /* of the body */
    tti_store_op op;
    uint16_t     status; /* a tutti_status; 0 in requests */
    uint32_t     id;
} tti_store_head;

/** Borrowed bytes. */
typedef struct tti_slice {
    const void *data;
    size_t      size;
} tti_slice;

typedef struct tti_store_request {
    tti_store_op op;
    uint32_t     id;
    uint32_t     n_keys; /* 1 for operations on one key */
    tti_slice    keys[TTI_STORE_KEYS_MAX];
    tti_slice    expected;
    tti_slice    value;                      /* desired of COMPARE_SET */
    tti_slice    values[TTI_STORE_KEYS_MAX]; /* of MULTI_SET, one for each key */
    int64_t      number;                     /* delta of ADD, block of QUEUE_POP, NEED's */
} tti_store_request;

/** "set", "get", ...; "?" for none. */
const char *tti_store_op_name(tti_store_op op);

/** Read and check the head of a request or a reply at data[TTI_STORE_HEAD_BYTES].
 * @errors TUTTI_E_STORE  wrong version, unknown op, body larger than that op can have */
tutti_status tti_store_head_read(const uint8_t *data, bool request, tti_store_head *out);

/** Read the body of a request; slices point into it.
 * @errors TUTTI_E_STORE  sizes do not add up, or a key or value is outside of the limits */
tutti_status tti_store_request_read(const tti_store_head *head, const uint8_t *body,
                                    tti_store_request *out);

/** Read the body of a reply to MULTI_GET for n keys, or to LIST_KEYS; slices point into it. A
 * caller that wants the number of names first gives names_out NULL.
 * @errors TUTTI_E_STORE  malformed, no value, or more than n */
tutti_status tti_store_values_read(const void *body, size_t size, uint32_t n, tti_slice *values_out,
                                   uint32_t *n_out);
tutti_status tti_store_names_read(const void *body, size_t size, tti_slice *names_out,
                                  uint32_t *n_out);

/** Append a request, or a reply, to out.
 * @errors TUTTI_E_NOMEM  out is as before */
tutti_status tti_store_request_write(const tti_store_request *request, tti_buffer *out);
tutti_status tti_store_reply_write(tti_store_op op, uint32_t id, tutti_status status,
                                   const void *body, size_t size, tti_buffer *out);

#endif
