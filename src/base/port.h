/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/port.h - the one door to the world.
 *
 * Why     Clock, waiting, randomness, sockets and descriptors are the only things that make a run differ
 *         from the next. Everything above goes through this table, so that a test can put a whole job,
 *         many ranks and all their wires, into one process with a clock of its own.
 * How     A port is a const table and whatever state its implementation keeps behind it. A handle is a
 *         small number: a descriptor for the system port, an index for an in-memory one. Streams never
 *         block; poll() is the only call that waits for them, wait_word() the only one that waits for
 *         memory. Protocols are state machines above: bytes and time in, bytes and deadlines out.
 * True    Times are monotonic ns of this port's clock; TTI_FOREVER never comes. Negative results of
 *         accept/send/recv are -errno, and -EAGAIN means "poll first". The port words no failures of
 *         streams (it does not know whose they are); calls that return a status do.
 * Exempt  Flags of the shared-memory fast path are read directly; the slow path of every wait is not. */
#ifndef TTI_BASE_PORT_H
#define TTI_BASE_PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/status.h>

#define TTI_FOREVER INT64_MAX
#define TTI_MS INT64_C(1000000)
#define TTI_SECOND INT64_C(1000000000)

typedef int tti_handle; /* TTI_NO_HANDLE: none */
enum { TTI_NO_HANDLE = -1 };

enum { TTI_LOCAL_NAME_MAX = 64, TTI_FDS_MAX = 248 /* the kernel takes 253 */, TTI_INTERFACE_NAME_MAX = 32 };

typedef enum tti_addr_family { TTI_ADDR_NONE, TTI_ADDR_IP4, TTI_ADDR_IP6, TTI_ADDR_LOCAL } tti_addr_family;

/** Where a stream can be opened. LOCAL is an abstract Unix socket: no file, scoped by network namespace. */
typedef struct tti_addr {
    tti_addr_family family;
    uint16_t        port;  /* host byte order; 0: any free one (listen) */
    uint32_t        scope; /* IPv6 link-local interface index */
    uint8_t         ip[16];
    char            name[TTI_LOCAL_NAME_MAX]; /* LOCAL: NUL-terminated, without the leading NUL byte */
} tti_addr;

/** One part of a gathered send. */
typedef struct tti_part {
    const void *data;
    size_t      size;
} tti_part;

enum { TTI_READ = 1, TTI_WRITE = 2, TTI_HANGUP = 4 };

typedef struct tti_poll {
    tti_handle handle; /* TTI_NO_HANDLE: skipped */
    uint8_t    want;   /* TTI_READ | TTI_WRITE */
    uint8_t    got;    /* out: what is ready; TTI_HANGUP: closed or failed, recv tells */
} tti_poll;

/** Who is at the other end of a stream inside of this host, as the kernel says. */
typedef struct tti_peer_cred {
    int64_t pid; /* 0: a TCP stream, of which only the user is known */
    int64_t uid;
} tti_peer_cred;

/** An address of an interface. Interfaces with several come several times. */
typedef struct tti_interface {
    char     name[TTI_INTERFACE_NAME_MAX];
    tti_addr addr; /* port 0 */
    bool     up;
    bool     loopback;
} tti_interface;

/** What the kernel knows of a TCP connection, from this end. */
typedef struct tti_stream_facts {
    char     congestion[16]; /* "": unknown */
    uint32_t round_trip_us;
    uint32_t least_trip_us;  /* the shortest of late, which no program's delay is in; 0: unknown */
    uint32_t retransmits;    /* segments, since it was made */
    uint32_t in_a_row;       /* of them without an answer, now */
    uint32_t probes;         /* segments that were to bring an answer, and have not, now: the peer's window was shut, nothing was said
                              * for long, or the host could send nothing, so that there is nothing to be sent again */
    uint32_t unheard;        /* segments that were sent and not acknowledged, now */
    uint32_t unsent_bytes;   /* that the kernel has taken, and not sent for the first time */
    uint32_t window;         /* segments that may be so at most */
    uint32_t segment_bytes;
    uint32_t heard_ms;       /* since something last came from the peer */
    uint32_t data_ms;        /* the same of bytes of the stream; what its kernel says alone is none */
} tti_stream_facts;

/** What the link of an interface carries, as far as its kernel tells. */
typedef struct tti_link_facts {
    char    name[TTI_INTERFACE_NAME_MAX];
    int64_t mbit;       /* 0: it does not */
    char    source[16]; /* who says so: "speed", the card; else the discipline that it is shaped by, "tbf"; "": nobody */
    int64_t burst;      /* bytes that its shaper lets through at once, before that counts; 0: none */
} tti_link_facts;

typedef struct tti_port   tti_port;
typedef struct tti_filter tti_filter; /* base/port_filter.h */

typedef struct tti_port_ops {
    const char *name;

    int64_t (*now_ns)(tti_port *port);
    void (*sleep_until)(tti_port *port, int64_t deadline_ns);
    /* Fill out with unpredictable bytes. Never fails: without randomness the process ends. */
    void (*random)(tti_port *port, void *out, size_t bytes);
    /* Give the core to another runnable thread. */
    void (*yield)(tti_port *port);
    /* Optional. Whether the calling thread, when it wakes up, waits until whoever has the core has had his turn, instead of taking
     * it: for a thread that works beside what the program computes. True: it is another than before, and to be set back; false: somebody
     * has chosen already, or the machine knows no such thing. */
    bool (*stand_back)(tti_port *port, bool back);

    /* Sleep while *word == seen, until wake_word or the deadline; may return early for no reason.
     * The word may lie in memory that processes share. */
    void (*wait_word)(tti_port *port, const _Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns);
    /* Wake everybody who sleeps on word. */
    void (*wake_word)(tti_port *port, const _Atomic uint32_t *word);

    /* Addresses of a host name or numeric address, at most max of them; *n_out >= 1 on success. */
    tutti_status (*resolve)(tti_port *port, const char *host, uint16_t tcp_port, tti_addr *out, int max,
                            int *n_out);
    /* Begin a connection; it is made, or has failed, when poll says TTI_WRITE. 0 or -errno. */
    int (*connect)(tti_port *port, const tti_addr *to, tti_handle *handle_out);
    /* Optional. The same from an address of this host, whose port does not count (NULL: from wherever the route leaves), and with a
     * congestion control from the first packet on (set_congestion(); NULL, or one that is not to be had: the system's). */
    int (*connect_from)(tti_port *port, const tti_addr *from, const char *congestion, const tti_addr *to, tti_handle *handle_out);
    /* After TTI_WRITE: 0 when connected, else -errno. -ECONNREFUSED: the host itself says that nobody listens, as far as is
     * known; -EHOSTUNREACH: it cannot be reached, or something on the way says that in its name. */
    int (*connect_result)(tti_port *port, tti_handle handle);
    /* Listen; bound_out has the port that was chosen. 0 or -errno. */
    int (*listen)(tti_port *port, const tti_addr *at, int backlog, tti_addr *bound_out,
                  tti_handle *handle_out);
    /* Next waiting connection: its handle, or -errno. from_out may be NULL. */
    int (*accept)(tti_port *port, tti_handle listener, tti_addr *from_out);
    /* The address of this end of a connected stream. 0 or -errno. */
    int (*local_addr)(tti_port *port, tti_handle handle, tti_addr *addr_out);
    /* The address that packets to `to` would leave this host from; nothing is sent. 0 or -errno.
     * Optional. */
    int (*route)(tti_port *port, const tti_addr *to, tti_addr *local_out);
    /* The IPv4 and IPv6 addresses of this host, at most max, in the order of its interfaces: how many, or
     * -errno. Optional. */
    int (*interfaces)(tti_port *port, tti_interface *out, int max);
    /* Optional. What the link of the interface with that address of this host carries: 0, or -errno where there is none. */
    int (*link_facts)(tti_port *port, const tti_addr *at, tti_link_facts *facts_out);
    /* Bytes taken (> 0), or -errno. No signal when the peer is gone. */
    int64_t (*send)(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts);
    /* Bytes read (> 0), 0 at the end of the stream, or -errno. */
    int64_t (*recv)(tti_port *port, tti_handle handle, void *out, size_t bytes);
    /* Wait until one of set is ready: how many are, 0 at the deadline. A deadline in the past only looks. */
    int (*poll)(tti_port *port, tti_poll *set, int n, int64_t deadline_ns);
    /* Closing TTI_NO_HANDLE does nothing. */
    void (*close)(tti_port *port, tti_handle handle);

    /* LOCAL streams: send bytes with descriptors attached, all or nothing; 0 or -errno. */
    int (*send_fds)(tti_port *port, tti_handle handle, const void *data, size_t bytes, const int *fds,
                    int n_fds);
    /* Receive at most bytes and n_fds_max descriptors (close-on-exec, owned by the caller): bytes, 0 at
     * the end, or -errno. Descriptors beyond the maximum are closed and -EMSGSIZE returned. */
    int64_t (*recv_fds)(tti_port *port, tti_handle handle, void *out, size_t bytes, int *fds_out,
                        int n_fds_max, int *n_fds_out);
    /* LOCAL, and TCP through loopback, where an end not accepted yet is told as root's: 0 or -errno; -EOPNOTSUPP: no users. */
    int (*peer_cred)(tti_port *port, tti_handle handle, tti_peer_cred *cred_out);

    /* A bell: a handle that becomes readable when rung, from any thread, and from any process that was
     * sent it; it stays so until cleared. 0 or -errno. */
    int (*bell_create)(tti_port *port, tti_handle *bell_out);
    void (*bell_ring)(tti_port *port, tti_handle bell);
    void (*bell_clear)(tti_port *port, tti_handle bell);

    /* Optional, both or none: a barrier that one thread executes for all. Let fence_others() reach this
     * process from now on; false: the machine has no such thing. */
    bool (*fence_join)(tti_port *port);
    /* When it returns true, every thread of every process that has joined has been through a full memory
     * barrier since it was called, and so has the caller. False: the machine has come to refuse it. */
    bool (*fence_others)(tti_port *port);
    /* Optional. The same for the threads of this process alone, once it has joined: cheap if none of them runs. */
    bool (*fence_own)(tti_port *port);

    /* Optional, both or none; of TCP streams and listeners. Use the congestion control that the kernel calls so; a
     * listener's is that of what it accepts. TUTTI_E_ARG names those that there are. */
    tutti_status (*set_congestion)(tti_port *port, tti_handle handle, const char *name);
    /* 0 or -errno; also of a connection that has failed. */
    int (*stream_facts)(tti_port *port, tti_handle handle, tti_stream_facts *facts_out);
    /* Optional. Let a stream's peer read when it likes: without, one that lives and takes nothing for 20 s is lost. Nor does
     * silence end what is under way, then: stream_facts tell of it. */
    void (*let_wait)(tti_port *port, tti_handle handle);
    /* Optional. Let a stream take so many bytes that are not on the way yet, for a sender who does not come whenever there is
     * room. Only ever more, and never for good: the machine goes on adapting it. */
    void (*make_room)(tti_port *port, tti_handle handle, int bytes);
    /* Optional. Let a stream take so few bytes that are not acknowledged yet, until make_room() is asked for more: what it has
     * on the way is no more than that. */
    void (*bound_room)(tti_port *port, tti_handle handle, int bytes);
    /* Optional. Let a stream send again what nobody has answered for so long, and what a round trip takes: where the machine would
     * wait for longer. Both ends are to be told, for who answers may take his time, up to a little less than that. For ways
     * that are short: after a pause of that length a machine may begin slowly again, which on a long way is many round trips. */
    void (*resend_after)(tti_port *port, tti_handle handle, int ms);

    /* Optional. From here on the bytes of a stream go through filter, which is the port's and ends with the handle.
     * 0 or -errno: then the filter is still the caller's. */
    int (*attach_filter)(tti_port *port, tti_handle handle, tti_filter *filter);

    /* A handle that becomes readable when this process has ended, also in those that it was sent to. 0 or -errno. */
    int (*life_create)(tti_port *port, tti_handle *life_out);

    /* Optional, all or none; of ports that stand in for the machine (tti_port_stand_in()), whose threads are theirs.
     * Which of its hosts this process is on, from 1. */
    uint32_t (*place)(tti_port *port);
    /* And which of its processes, from 1: they have one pid. */
    int64_t (*process)(tti_port *port);
    tutti_status (*thread_start)(tti_port *port, const char *name, void (*body)(void *arg), void *arg, void **thread_out);
    void (*thread_join)(tti_port *port, void *thread);
    /* Another thread may go on here: before a lock is taken. */
    void (*preempt)(tti_port *port);
} tti_port_ops;

struct tti_port {
    const tti_port_ops *ops; /* first member of every implementation */
};

/** The machine itself, or what stands in for it on this thread. Constant, never freed. */
tti_port *tti_port_system(void);

/** Have a port, which outlives that, stand in for the machine on the calling thread: whatever it makes from here on is on
 * that port. NULL: the machine again. */
void tti_port_let_stand_in(tti_port *port);
/** What stands in for the machine on this thread; NULL: nothing. Costs one load where nothing ever does. */
tti_port *tti_port_stand_in(void);

static inline int64_t tti_port_now(tti_port *port)
{
    return port->ops->now_ns(port);
}

/** timeout_ms after now_ns; negative is never. */
int64_t tti_later(int64_t now_ns, int64_t timeout_ms);

/** When a wait of timeout_ms ends: negative is never, 0 takes default_ms (which is read the same way,
 * its 0 meaning now). */
int64_t tti_deadline(tti_port *port, int64_t timeout_ms, int64_t default_ms);

/** How much is left of a deadline in ms for a text or a poll, rounded up; 0 when it has passed, -1 for never. */
int64_t tti_left_ms(tti_port *port, int64_t deadline_ns);

#endif
