/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/port_filter.h - what the bytes of some streams go through on their way to the socket.
 *
 * Why     Encryption must not show above the port: whoever sends, receives and polls a stream does so as before.
 * How     A filter is attached to a handle of the system port. From then on send and recv of that handle are the
 *         filter's, which reads and writes the socket itself, and poll asks it: it may have bytes that the socket does not
 *         tell of any more, and the socket may be wanted for what it holds back. It ends with the handle.
 * Cost    Without any filter in the process: one load and one branch beside each system call. */
#ifndef TTI_BASE_PORT_FILTER_H
#define TTI_BASE_PORT_FILTER_H

#include "base/port.h"

/** One stream's. Any thread calls; it has a lock of its own. */
typedef struct tti_filter_ops {
    /* As the port's. What is taken in part must be gone on with: the next send has the same bytes in front. */
    int64_t (*send)(tti_filter *filter, const tti_part *parts, int n_parts);
    int64_t (*recv)(tti_filter *filter, void *out, size_t bytes);
    /* Before a poll for want: what to poll the socket for. ready_out: what of want is there without it. */
    uint8_t (*before_poll)(tti_filter *filter, uint8_t want, uint8_t *ready_out);
    /* After it: the socket got that; move what can move. What of want is ready. */
    uint8_t (*after_poll)(tti_filter *filter, uint8_t want, uint8_t got);
    /* The handle is about to be closed: say what is to be said, then touch it no more. */
    void (*end)(tti_filter *filter);
    /* Nobody has it any more. */
    void (*free)(tti_filter *filter);
} tti_filter_ops;

struct tti_filter { /* first member of every implementation */
    const tti_filter_ops *ops;
    tti_handle            handle;
    uint32_t              age;  /* of the process that attached it (base/fork.h) */
    _Atomic uint32_t      refs; /* attach() makes the first */
    /* The socket, past the filter; attach() sets them. */
    int64_t (*raw_send)(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts);
    int64_t (*raw_recv)(tti_port *port, tti_handle handle, void *out, size_t bytes);
    int (*raw_poll)(tti_port *port, tti_poll *set, int n, int64_t deadline_ns);
};

/** How many filters there are; a hint but to the thread that attached one, or was handed its stream. */
extern _Atomic uint32_t tti_filter_count;

static inline bool tti_filters_in_use(void)
{
    return __builtin_expect(atomic_load_explicit(&tti_filter_count, memory_order_relaxed) != 0, 0);
}

/** Attach it; the handle has none. False: no memory, and the filter is the caller's. */
bool tti_filter_attach(tti_handle handle, tti_filter *filter);
/** The handle's, for a while; NULL: it has none. */
tti_filter *tti_filter_take(tti_handle handle);
void        tti_filter_drop(tti_filter *filter);
/** The handle is about to be closed. */
void tti_filter_end(tti_handle handle);
/** poll, over one that knows of no filters. */
int tti_filter_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns,
                    int (*raw_poll)(tti_port *port, tti_poll *set, int n, int64_t deadline_ns));

#endif
