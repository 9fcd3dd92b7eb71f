/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/msgpack_check.h - whether bytes from elsewhere are one msgpack value, before a parser takes memory for
 * them. */
#ifndef TTI_WIRE_MSGPACK_CHECK_H
#define TTI_WIRE_MSGPACK_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <tutti/status.h>

enum { TTI_MSGPACK_DEPTH_MAX = 31 /* what msgpack-c's own stack bears */ };

typedef struct tti_msgpack_limits {
    int      depth;  /* arrays and maps inside each other; at most TTI_MSGPACK_DEPTH_MAX */
    uint64_t values; /* of all depths, keys of maps included */
} tti_msgpack_limits;

/** Walk size bytes: they are one value, complete, with nothing behind it, within limits. Reads every byte of
 * structure once, takes no memory.
 * @errors TUTTI_E_MISMATCH  they are not; the text says where. whose is for words: "rank 2" */
tutti_status tti_msgpack_check(const void *data, size_t size, const tti_msgpack_limits *limits, const char *whose);

#endif
