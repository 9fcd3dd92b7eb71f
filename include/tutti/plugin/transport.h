/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/plugin/transport.h - for authors of transports: what carries the bytes of the backend "native" between two processes.
 *
 * "native" has shared memory inside a host, and between hosts a TCP connection for each pair that talks. A transport takes the
 * place of what flows through those connections: the algorithms, messages, time-outs, errors and watch threads above stay as they
 * are. A transport is asked for little: parcels of at most 64 KiB, each of which arrives once and as a whole, or else the way
 * to that peer is broken. It need not keep their order, need not hold back a sender that is too fast, and proves nothing to
 * anybody: that is the library's part (below).
 *
 * Where it is looked for. TUTTI_TRANSPORT=NAME is the file tutti-transport-NAME.so, in the places and with the refusals that
 * tutti/plugin/plugin.h tells of backends: whose file it is, too old, too new, not whole, an init that fails. It shows one
 * symbol, tutti_transport_entry, a constant, and links no libtutti: its init gets the host table of plugin.h. NAME alone is
 * for other hosts, with shared memory inside of one; "only:NAME" is for all peers, as "tcp" is.
 *
 * How a way is made. Two ranks connect by TCP first, as they do without a transport, and prove to each other that they know
 * the job's secret. Over that connection each tells the other its transport's name, the address that the transport gave, and
 * a random token of 16 bytes that was drawn for this pair. Only then is connect called. The connection stays: its end is how a
 * process learns within a moment that its peer has died, whatever the transport knows of it.
 *
 * Who gets in. Every parcel carries the token of the one who is to receive it; a parcel with another one is dropped before
 * anything else of it is read. So whoever reaches the transport's own ports, but has not seen the job's traffic, has nothing
 * taken. Not covered: what the transport and its library do with bytes of strangers, and what memory they take for them,
 * before a parcel is handed over; and somebody on the way between the hosts, who can read the data and the tokens, and write
 * parcels with them. With TUTTI_TLS a transport is refused: its data would go in the clear.
 *
 * What the library does above it: the bytes of a way are cut into numbered parcels, which are put in order again; at most 1
 * MiB of a way is unread at its receiver, which tells what it has taken. What each parcel takes beside its bytes is not
 * counted: a parcel that is lent is kept until it is read, however little is in it. Bytes are copied once into a parcel,
 * and once out of it; twice where the transport does not lend its memory.
 *
 * What an entry gives is looked at: where open or address breaks its contract the plug-in is named, with the entry, and so it is in the
 * texts of a way where connect or send does.
 *
 * Threads. All entries are called with one lock of the library's held that belongs to the instance, by any thread: one at a
 * time. None blocks. The hooks may be called from within entries only, on the thread that is in the entry, and call no entry. */
#ifndef TUTTI_PLUGIN_TRANSPORT_H
#define TUTTI_PLUGIN_TRANSPORT_H

#include <tutti/plugin/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the tables below and of everything that their entries are handed. All of it only grows at the end, and
 * each time it does this number grows. */
enum { TUTTI_TRANSPORT_API = 1 };

enum {
    TUTTI_TRANSPORT_ADDRESS_MAX = 32 << 10, /* bytes of an address */
    TUTTI_TRANSPORT_NAME_MAX = 32           /* of a name, with its NUL: 1 to 31 of a-z, 0-9, '_' and '-' */
};

typedef struct tutti_transport     tutti_transport;     /* one instance; the transport's own type */
typedef struct tutti_transport_way tutti_transport_way; /* its way to one peer; the transport's own type */

/** What a transport tells the library. */
typedef struct tutti_transport_hooks {
    uint32_t size;    /* sizeof(tutti_transport_hooks) of the library */
    void    *context; /* the first argument of each */
    /* A parcel has come, from whomever. False: the library is done with it. True, which it says only where loan is not NULL:
     * parcel stays as it is until give_back(loan). Who cannot lend gives NULL, and the library copies, as it does what is small. */
    bool (*arrived)(void *context, const void *parcel, size_t bytes, void *loan);
    /* What send was given under that cookie is not read any more. Once for each send that returned 0, whatever became of the
     * parcel, at the latest within close. */
    void (*sent)(void *context, void *cookie);
    /* The way to peer, as connect was given it, is broken for ever: err is an errno (ECONNRESET: the peer is gone, as far as the
     * transport can tell; ETIMEDOUT: it does not answer; EIO: anything else), words say what happened, for texts and the log.
     * 300 bytes of them are kept; the last line may be what to do, "\n  next: ...". Not for a way that was disconnected. */
    void (*broken)(void *context, void *peer, int err, const char *words);
} tutti_transport_hooks;

/** What an instance is opened with. */
typedef struct tutti_transport_config {
    uint32_t                     size; /* sizeof(tutti_transport_config) of the library */
    int                          rank;
    int                          n_ranks;
    size_t                       parcel_bytes; /* no parcel is larger */
    const tutti_transport_hooks *hooks;        /* stay until close */
} tutti_transport_config;

/** Tables are const and shared by all instances. All entries are required, but for handle and arm. */
typedef struct tutti_transport_ops {
    uint32_t    api;  /* TUTTI_TRANSPORT_API of the build that made this table */
    uint32_t    size; /* sizeof(tutti_transport_ops) of that build */
    const char *name; /* as in the file's name */

    /* A new instance, for one world of this process. Failures are worded (host->fail). */
    tutti_status (*open)(const tutti_transport_config *config, tutti_transport **transport_out);
    /* What a peer's connect needs to reach this instance: at most TUTTI_TRANSPORT_ADDRESS_MAX bytes, constant, valid until close.
     * It crosses hosts. */
    const void *(*address)(tutti_transport *transport, size_t *bytes_out);
    /* Begin a way to the instance with that address. peer names it in hooks. What is sent before it is there waits, or broken
     * follows. The address has come from a rank that knows the job's secret, and is as long as it said; nothing else of it
     * was checked. 0, or -errno with way_out untouched; who can say why calls broken for that peer before. */
    int (*connect)(tutti_transport *transport, const void *address, size_t bytes, void *peer, tutti_transport_way **way_out);
    /* Send a parcel. 1: it is not read any more, and there is no sent for it; 0: sent(cookie) follows, parcel stays as it is
     * until then; -EAGAIN: not now, progress may help; another -errno: the way is broken, and broken is not called for it. */
    int (*send)(tutti_transport_way *way, const void *parcel, size_t bytes, void *cookie);
    /* Move what can be moved, and call hooks for it: whether anything was. */
    bool (*progress)(tutti_transport *transport);
    /* Optional; NULL, or -1: there is none, and progress is called every millisecond. A descriptor to sleep on, the same
     * until close: readable when progress has something to do, since arm returned true. */
    int (*handle)(tutti_transport *transport);
    /* Optional, both or none. True: from here on handle tells of all that happens. False: there is something to do
     * already. */
    bool (*arm)(tutti_transport *transport);
    /* The library has done with a parcel that it kept. */
    void (*give_back)(tutti_transport *transport, void *loan);
    /* End a way, broken or not, at once and without waiting: no hook names its peer any more. What it has not sent may be
     * lost; the library has had everything acknowledged before, where that mattered. Cookies come back as sent tells. */
    void (*disconnect)(tutti_transport_way *way);
    /* Free everything. All ways were disconnected and all loans given back. Never fails, or waits for peers. */
    void (*close)(tutti_transport *transport);
} tutti_transport_ops;

/** What a plug-in that is a transport shows. */
typedef struct tutti_transport_plugin {
    uint32_t    api;  /* TUTTI_TRANSPORT_API of the headers that it was made with */
    uint32_t    size; /* sizeof(tutti_transport_plugin) of those */
    const char *name; /* as in its file's name */
    const tutti_transport_ops *transport;
    /* Required. Called once, before any entry of the table, by one thread, while no other plug-in is loaded. Keep host; look
     * for the libraries that the transport stands on. Anything but TUTTI_OK, with words (host->fail), refuses the plug-in:
     * it is unloaded, and may be tried again. */
    tutti_status (*init)(const tutti_plugin_host *host);
} tutti_transport_plugin;

/** The one symbol that such a plug-in shows; each defines its own. */
TUTTI_API extern const tutti_transport_plugin tutti_transport_entry;

#ifdef __cplusplus
}
#endif
#endif
