/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/store.h - key-value stores: how processes that know nothing of each other begin to talk.
 *
 * A store is a map from keys to byte strings that every process of a job shares. Five are built in:
 *
 *   hash       inside this process
 *   file       a log file that processes of one host (or a file system with locks) append to
 *   tcp        a server, in one of the processes or in the launcher, and clients
 *   torch-tcp  a client of PyTorch's TCPStore
 *   prefix     a view of another store in which every key begins with "prefix/"
 *
 * Beside the map there are queues, on hash, tcp and torch-tcp (and prefix over them): each has a name of its
 * own, first in is first out, and what is taken is gone. A queue and a key of the same name do not
 * touch each other, but tutti_store_check() and tutti_store_wait() count a queue that is not empty
 * as a key that exists.
 *
 * Keys     1 .. 4096 bytes of text without NUL, prefixes included; values 0 .. 16 MiB of anything.
 *          Both are checked before anything is sent; a violation is TUTTI_E_ARG.
 * Waiting  time-outs in ms: 0 is the store's default (300 s unless set), TUTTI_INFINITE no limit.
 *          Calls that take none use the default. A dead server ends every wait at once, whatever
 *          the limit.
 * Threads  every call may be made from any number of threads on the same handle; one that waits
 *          does not hold up the others.
 * Order    what one thread has set is there for everybody once its call has returned. */
#ifndef TUTTI_STORE_H
#define TUTTI_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TUTTI_INFINITE
#define TUTTI_INFINITE (-1) /* a time-out that never comes */
#endif

enum {
    TUTTI_STORE_KEY_MAX = 4096,               /* bytes, prefixes included, without the NUL */
    TUTTI_STORE_VALUE_MAX = 16 * 1024 * 1024, /* bytes */
    TUTTI_STORE_TIMEOUT_MS = 300000           /* default time-out of a new store */
};

/** A byte string that the caller owns: release it with tutti_bytes_free(). One NUL byte stands
 * behind data[size], not counted, so that text can be used as such. */
typedef struct tutti_bytes {
    void *data;
    size_t size;
} tutti_bytes;

/** Names of keys that the caller owns: release them with tutti_store_keys_free(). */
typedef struct tutti_store_keys {
    char **names; /* n pointers to text, in one block with it; NULL when n is 0 */
    size_t n;
} tutti_store_keys;

/** A key-value store. Reference counted: see tutti_store_retain(). */
typedef struct tutti_store tutti_store;

/** A running tcp store server. */
typedef struct tutti_store_server tutti_store_server;

/** Release a byte string and make it empty. NULL and empty ones are fine.
 * @threads any
 * @source  ours */
TUTTI_API void tutti_bytes_free(tutti_bytes *bytes);

/** Release a list of names and make it empty. NULL and empty ones are fine.
 * @threads any
 * @source  ours */
TUTTI_API void tutti_store_keys_free(tutti_store_keys *keys);

/** Open a store inside this process, shared by everybody who holds a reference.
 * @errors  TUTTI_E_NOMEM
 * @threads any
 * @source  torch.distributed.HashStore */
TUTTI_API tutti_status tutti_hash_store_open(tutti_store **store_out);

/** Open a store in a log file, made on the first write (mode 0600).
 *
 * @param path        a file on a file system with open-file-description locks; copied
 * @param world_size  how many handles will be opened in all: the last one to close removes the
 * file. Negative: nobody removes it. 0 is refused
 *
 * A file that handles were never closed on, while nobody has it open now, was left over by a job
 * that died: an error with a world_size, else a warning in the log, and the file is read like a
 * live one. A record that was torn by a crash is dropped by the next writer. A file that somebody
 * removes while it is open is an error for all who have it. A FileStore of PyTorch has records of the
 * same form, but another kind of lock, which does not see this one: no file is for both.
 *
 * @errors  TUTTI_E_ARG    path empty, world_size 0
 *          TUTTI_E_STATE  the file is left over; the text names it
 *          TUTTI_E_IO     the file cannot be created, locked, read, or is no store
 *          TUTTI_E_AUTH   it, or the link that path is, is another user's, or others may write to it; TUTTI_AUTH=none
 *                         takes it all the same
 *          TUTTI_E_NOMEM
 * @threads any
 * @cost    every call reads what was appended since the last; waiting looks every 10 ms
 * @source  torch.distributed.FileStore */
TUTTI_API tutti_status tutti_file_store_open(const char *path, int world_size,
                                             tutti_store **store_out);

/** The absolute path of a file store's file. NULL: not a file store.
 * @threads any; the text lives as long as the store
 * @source  torch.distributed.FileStore.path */
TUTTI_API const char *tutti_file_store_path(const tutti_store *store);

/** How to reach, or also serve, a tcp store. Begin with TUTTI_TCP_STORE_OPTIONS; a field left zero
 * has its default. Strings are copied. */
typedef struct tutti_tcp_store_options {
    size_t size;             /* sizeof of this struct, set by the initialiser */
    const char *host;        /* name or address of the server; required */
    int port;                /* 1 .. 65535; 0 only with is_master: any free one */
    int world_size;          /* processes that will join, this one included; 0: not known */
    bool is_master;          /* also run the server, in this process, until the store is closed */
    bool wait_for_workers;   /* the master's open returns when world_size processes have joined, each with this set */
    int64_t timeout_ms;      /* of connecting, of joining, and default of every call */
    const char *secret_file; /* NULL: TUTTI_SECRET_FILE, if set */
    const char *listen;      /* is_master: address to listen on; NULL: the addresses of host */
    bool multi_tenant;       /* is_master: share the server that this process has there already */
    int listen_fd;           /* is_master: serve on this socket; 0: none. See below */
} tutti_tcp_store_options;

#ifdef __cplusplus
#define TUTTI_TCP_STORE_OPTIONS                                                            \
    {                                                                                      \
        sizeof(tutti_tcp_store_options), nullptr, 0, 0, false, false, 0, nullptr, nullptr, \
            false, 0                                                                       \
    }
#else
#define TUTTI_TCP_STORE_OPTIONS                 \
    {                                           \
        .size = sizeof(tutti_tcp_store_options) \
    }
#endif

/** Connect to a tcp store, and serve it first if is_master.
 *
 * Connecting is retried (names that do not resolve, refused, unreachable, reset, closed before the
 * server has said who it is) until the time-out, with pauses that grow and differ between clients.
 * With wait_for_workers and a world_size only the master waits for the others; clients return at
 * once. All of them set both: a client that does not is not counted, and the master waits for one more.
 *
 * multi_tenant: masters of one process that all ask for it, at one address and port (not 0), with
 * the same secret, share one server, and see each other's keys; it ends with the last of them. Each
 * one's wait_for_workers is for world_size processes more.
 *
 * listen_fd: a TCP socket that is bound, or listening, for instance one that was inherited. Its port
 * must be `port`, unless that is 0. It is duplicated: the caller closes his own whenever he likes.
 * `listen` is not used then. Descriptor 0 cannot be given: dup() it.
 *
 * @errors  TUTTI_E_ARG      host missing, port or world_size out of range, listen_fd no such socket
 *          TUTTI_E_NETWORK  the port is taken, the address not ours, or nobody serves there; the
 *                           text names host and port, how long and how often it was tried, and the
 *                           last cause
 *          TUTTI_E_AUTH     the other side is no tutti store, or does not know the secret; or
 *                           multi_tenant, and the server has another one
 *          TUTTI_E_MISMATCH this process or the server has TUTTI_TLS set, and not both; nothing goes on in plain
 *          TUTTI_E_TIMEOUT  fewer than world_size processes joined; the text gives both numbers
 *          TUTTI_E_NOMEM
 * @threads any; is_master not after fork() in the child
 * @source  torch.distributed.TCPStore */
TUTTI_API tutti_status tutti_tcp_store_open(const tutti_tcp_store_options *options,
                                            tutti_store **store_out);

/** The port that a tcp store's server listens on; useful after port 0. 0: not a tcp store.
 * @threads any
 * @source  torch.distributed.TCPStore.port */
TUTTI_API int tutti_tcp_store_port(const tutti_store *store);

/** The host that a tcp store's client connects to: the options' host, but 127.0.0.1 on the master under
 * TUTTI_LISTEN=any, where that may be the name of a service that does not lead back here. For telling others
 * use the name they know. NULL: not a tcp store.
 * @threads any; the text lives as long as the store
 * @source  torch.distributed.TCPStore.host */
TUTTI_API const char *tutti_tcp_store_host(const tutti_store *store);

/** How to reach a TCPStore of PyTorch. Begin with TUTTI_TORCH_STORE_OPTIONS; a field left zero has
 * its default. Strings are copied. */
typedef struct tutti_torch_store_options {
    size_t size;        /* sizeof of this struct, set by the initialiser */
    const char *host;   /* name or address of the server; required */
    int port;           /* 1 .. 65535 */
    bool join;          /* count this process among the workers that the server's owner waits for */
    int64_t timeout_ms; /* of connecting, and default of every call */
} tutti_torch_store_options;

#ifdef __cplusplus
#define TUTTI_TORCH_STORE_OPTIONS                                 \
    {                                                             \
        sizeof(tutti_torch_store_options), nullptr, 0, false, 0 \
    }
#else
#define TUTTI_TORCH_STORE_OPTIONS                 \
    {                                             \
        .size = sizeof(tutti_torch_store_options) \
    }
#endif

/** Connect to a TCPStore that a PyTorch program, or PyTorch's launcher, serves: the same keys, values
 * and queues as on the side of Python. The server asks nobody for a secret; one warning says so.
 *
 * Connecting is retried as by tutti_tcp_store_open(). Values have at most 8 MiB on their way there;
 * appended ones may grow beyond 16 MiB, and cannot be read here then. Where the server itself is
 * older, or was started without libuv, queues and the list of keys are TUTTI_E_UNSUPPORTED.
 * tutti_store_barrier() works by keys, as on every store, and so meets no caller of the server's own
 * barrier.
 *
 * @errors  TUTTI_E_ARG      host missing or port out of range; of calls: a value of more than 8 MiB
 *          TUTTI_E_NETWORK  nobody serves there, or what does closes the connection over our greeting
 *          TUTTI_E_STORE    what answers there is no TCPStore
 *          TUTTI_E_TIMEOUT  it does not answer
 *          TUTTI_E_NOMEM
 * @threads any
 * @cost    get of a key that is there, set and add: one round trip
 * @source  torch.distributed.TCPStore with is_master=False */
TUTTI_API tutti_status tutti_torch_store_open(const tutti_torch_store_options *options,
                                              tutti_store **store_out);

/** Open a view of inner in which every key begins with "prefix/". Time-outs are those of inner.
 *
 * @param prefix  1 or more bytes; copied
 * @param inner   retained until the view is closed; a view of a view puts the inner prefix first
 *
 * @errors  TUTTI_E_ARG    prefix empty or too long, inner NULL
 *          TUTTI_E_NOMEM
 * @threads any
 * @source  torch.distributed.PrefixStore */
TUTTI_API tutti_status tutti_prefix_store_open(const char *prefix, tutti_store *inner,
                                               tutti_store **store_out);

/** Take one more reference; each one is given back with tutti_store_close(). Returns store.
 * @threads any
 * @source  ours: torch's stores are reference counted by Python */
TUTTI_API tutti_store *tutti_store_retain(tutti_store *store);

/** Give a reference back; the last one closes the store. NULL is fine. No call may be running on
 * the last reference.
 * @threads any
 * @source  ours */
TUTTI_API void tutti_store_close(tutti_store *store);

/** Create key or replace its value; wakes whoever waits for it.
 *
 * @param data  size bytes, copied; may be NULL when size is 0
 *
 * @errors  TUTTI_E_ARG      key or value outside of the limits
 *          TUTTI_E_NETWORK  tcp: the server is gone
 *          TUTTI_E_STORE    the store is full, or does not understand us
 *          TUTTI_E_TIMEOUT  no acknowledgement within the store's time-out
 *          TUTTI_E_IO       file: cannot be locked, read or written
 *          TUTTI_E_NOMEM
 *          All calls below may fail with these too.
 * @threads any
 * @source  torch.distributed.Store.set; ours is acknowledged */
TUTTI_API tutti_status tutti_store_set(tutti_store *store, const char *key, const void *data,
                                       size_t size);

/** Wait until key exists and give a copy of its value.
 *
 * @param value_out  the caller frees it with tutti_bytes_free()
 * @units   timeout_ms: ms; 0 the store's default, TUTTI_INFINITE no limit
 * @errors  TUTTI_E_TIMEOUT  the key did not come; the text names it and the ms waited
 * @threads any
 * @source  torch.distributed.Store.get */
TUTTI_API tutti_status tutti_store_get(tutti_store *store, const char *key, int64_t timeout_ms,
                                       tutti_bytes *value_out);

/** Add delta to the decimal number at key, atomically; a missing key counts as 0. The sum is kept
 * as decimal text. Wakes whoever waits for the key. The sum wraps at 64 bits.
 *
 * @param sum_out  NULL: not wanted
 *
 * @errors  TUTTI_E_STORE  the value at key does not begin with a number; it stays as it is
 * @threads any
 * @source  torch.distributed.Store.add */
TUTTI_API tutti_status tutti_store_add(tutti_store *store, const char *key, int64_t delta,
                                       int64_t *sum_out);

/** Wait until all n keys exist; none is a success at once.
 * @units   timeout_ms: ms; 0 the store's default, TUTTI_INFINITE no limit
 * @errors  TUTTI_E_TIMEOUT  not all came; the text names a missing one and the ms waited
 * @threads any
 * @source  torch.distributed.Store.wait */
TUTTI_API tutti_status tutti_store_wait(tutti_store *store, const char *const *keys, size_t n,
                                        int64_t timeout_ms);

/** Whether all n keys exist now; true for none. Does not wait for them.
 * @errors  as tutti_store_set()
 * @threads any
 * @source  torch.distributed.Store.check */
TUTTI_API tutti_status tutti_store_check(tutti_store *store, const char *const *keys, size_t n,
                                         bool *all_out);

/** Replace the value of key by desired if it is expected, atomically.
 *
 * | key | expected | effect | value_out |
 * |---|---|---|---|
 * | missing | empty | set to desired | desired |
 * | missing | not empty | none | expected |
 * | equals expected | | set to desired | desired |
 * | differs | | none | the current value |
 *
 * @param value_out  the caller frees it with tutti_bytes_free()
 * @errors  as tutti_store_set()
 * @threads any
 * @source  torch.distributed.Store.compare_set */
TUTTI_API tutti_status tutti_store_compare_set(tutti_store *store, const char *key,
                                               const void *expected, size_t expected_size,
                                               const void *desired, size_t desired_size,
                                               tutti_bytes *value_out);

/** Remove key. Waiters go on waiting.
 * @param deleted_out  whether there was such a key; may be NULL
 * @errors  as tutti_store_set()
 * @threads any
 * @source  torch.distributed.Store.delete_key */
TUTTI_API tutti_status tutti_store_delete_key(tutti_store *store, const char *key,
                                              bool *deleted_out);

/** How many keys there are, the store's own bookkeeping and other prefixes included.
 * @errors  as tutti_store_set()
 * @threads any
 * @source  torch.distributed.Store.num_keys */
TUTTI_API tutti_status tutti_store_num_keys(tutti_store *store, int64_t *n_out);

/** Put data behind the value of key, atomically; a missing key is created. Wakes whoever waits for
 * it.
 *
 * @param data  size bytes, copied; may be NULL when size is 0
 *
 * @errors  TUTTI_E_STORE        the value would become larger than 16 MiB; it stays as it is
 *          TUTTI_E_UNSUPPORTED  a plug-in without it: what compare_set answers does not tell success
 *                               from somebody else's equal value, so it cannot stand in
 * @threads any
 * @source  torch.distributed.Store.append; ours is acknowledged */
TUTTI_API tutti_status tutti_store_append(tutti_store *store, const char *key, const void *data,
                                          size_t size);

/** Wait until all n keys exist and give copies of their values, in the order of keys. One time-out
 * for all. A key that is deleted meanwhile is waited for again.
 *
 * @param values_out  n of them, each freed by the caller with tutti_bytes_free()
 * @units   timeout_ms: ms; 0 the store's default, TUTTI_INFINITE no limit
 * @errors  TUTTI_E_TIMEOUT  not all came; the text names a missing one and the ms waited
 * @threads any
 * @cost    hash: one look; tcp: a round trip for 256 keys or 16 MiB; else one get after another
 * @source  torch.distributed.Store.multi_get */
TUTTI_API tutti_status tutti_store_multi_get(tutti_store *store, const char *const *keys, size_t n,
                                             int64_t timeout_ms, tutti_bytes *values_out);

/** Set n keys, in their order; wakes whoever waits for them. Not atomic as a whole: when it fails,
 * some may have been set.
 *
 * @param values  one for each key; borrowed for the call
 *
 * @errors  as tutti_store_set()
 * @threads any
 * @cost    tcp: a round trip for 256 keys or 16 MiB; file: one set after another
 * @source  torch.distributed.Store.multi_set */
TUTTI_API tutti_status tutti_store_multi_set(tutti_store *store, const char *const *keys,
                                             const tutti_bytes *values, size_t n);

/** Whether append, multi_get and multi_set all are operations of the store itself: true on hash and
 * tcp, false on file, whose multi_get and multi_set are loops. A view tells of the store below.
 * @errors  none; false for NULL
 * @threads any
 * @source  torch.distributed.Store.has_extended_api */
TUTTI_API bool tutti_store_has_extended_api(const tutti_store *store);

/** Put data at the end of the queue called key. It ends one waiting tutti_store_queue_pop(), the
 * one that has waited longest on tcp, any one on hash; if none waits, it stays, and those who
 * tutti_store_wait() for key go on.
 *
 * @param data  size bytes, copied; may be NULL when size is 0
 *
 * @errors  TUTTI_E_UNSUPPORTED  the store has no queues: file
 * @threads any
 * @source  torch.distributed.Store.queue_push; ours is acknowledged */
TUTTI_API tutti_status tutti_store_queue_push(tutti_store *store, const char *key, const void *data,
                                              size_t size);

/** Take the value at the front of the queue called key. Each value goes to one caller; on tcp one
 * whose taker's connection is lost in that moment is lost with it.
 *
 * @param block      wait for a value; else TUTTI_E_EMPTY says that there is none now
 * @param value_out  the caller frees it with tutti_bytes_free()
 *
 * @units   timeout_ms: ms; 0 the store's default, TUTTI_INFINITE no limit; not used unless block
 * @errors  TUTTI_E_EMPTY        not block, and the queue is empty or there is none of this name
 *          TUTTI_E_TIMEOUT      block, and nothing came; the text has the queue and the ms waited
 *          TUTTI_E_UNSUPPORTED  the store has no queues: file
 * @threads any
 * @source  torch.distributed.Store.queue_pop; torch raises QueueEmptyError for TUTTI_E_EMPTY */
TUTTI_API tutti_status tutti_store_queue_pop(tutti_store *store, const char *key, bool block,
                                             int64_t timeout_ms, tutti_bytes *value_out);

/** How many values the queue called key holds; 0 if there is none of this name.
 * @errors  TUTTI_E_UNSUPPORTED  the store has no queues: file
 * @threads any
 * @source  torch.distributed.Store.queue_len */
TUTTI_API tutti_status tutti_store_queue_len(tutti_store *store, const char *key, int64_t *n_out);

/** The names of all keys, in no particular order, without queues and the store's own bookkeeping. A
 * view lists the keys below its prefix, and leaves that away.
 *
 * @param keys_out  the caller frees it with tutti_store_keys_free()
 *
 * @errors  TUTTI_E_STORE        tcp: the names have more than 16 MiB together; a prefix lists fewer
 *          TUTTI_E_UNSUPPORTED  a plug-in without it
 * @threads any
 * @cost    looks at all keys of the store
 * @source  torch.distributed.Store.list_keys */
TUTTI_API tutti_status tutti_store_list_keys(tutti_store *store, tutti_store_keys *keys_out);

/** Wait until world_size callers have come to the barrier called key. It serves once: whoever comes
 * later passes at once, and a caller whose time-out passed has been counted. Use a fresh key each
 * time.
 *
 * @param key  up to 4084 bytes; keeps the keys key/num_members and key/last_member
 *
 * @units   timeout_ms: ms; 0 the store's default, TUTTI_INFINITE no limit
 * @errors  TUTTI_E_ARG      world_size below 1
 *          TUTTI_E_TIMEOUT  not all came; the text says how many did
 * @threads any
 * @cost    an add and a wait, and one set by the last to come
 * @source  torch.distributed.Store.barrier */
TUTTI_API tutti_status tutti_store_barrier(tutti_store *store, const char *key, int world_size,
                                           int64_t timeout_ms);

/** Open another handle of the same data, closed on its own.
 *
 * Handles may be shared by threads, so nobody needs one for that. tcp: a client with connections
 * and a time-out of its own, which begins as this one's; the server stays with the handle that
 * started it. file: counts as one more of world_size. prefix: a view of a clone of the store below.
 * hash and plug-ins: one more reference, which shares the time-out.
 *
 * @errors  as opening that kind of store
 * @threads any
 * @source  torch.distributed.Store.clone */
TUTTI_API tutti_status tutti_store_clone(tutti_store *store, tutti_store **store_out);

/** Change the default time-out of this handle; of a prefix store, that of the store below.
 * @units   ms; TUTTI_INFINITE no limit; 0 the library's default again (300 s)
 * @errors  TUTTI_E_ARG  store is NULL, or timeout_ms below -1
 * @threads any; calls already waiting keep theirs
 * @source  torch.distributed.Store.set_timeout */
TUTTI_API tutti_status tutti_store_set_timeout(tutti_store *store, int64_t timeout_ms);

/** The default time-out in ms; TUTTI_INFINITE: no limit; 0 if store is NULL.
 * @threads any
 * @source  torch.distributed.Store.timeout */
TUTTI_API int64_t tutti_store_timeout(const tutti_store *store);

/** What tutti_store_timeout_guard_end() puts back. */
typedef struct tutti_store_timeout_guard {
    tutti_store *store; /* NULL: nothing to put back */
    int64_t before_ms;
} tutti_store_timeout_guard;

/** Change the default time-out of this handle for a while: until tutti_store_timeout_guard_end(),
 * which may be called in any case.
 *
 * @param guard_out  holds a reference to store; empty when this fails
 *
 * @units   timeout_ms: as tutti_store_set_timeout()
 * @errors  TUTTI_E_ARG  store or guard_out is NULL, or timeout_ms below -1
 * @threads any; it is the time-out of everybody who uses the handle. Two guards at once: the inner
 *          one ends first
 * @source  ours: torch has it inside of its library */
TUTTI_API tutti_status tutti_store_timeout_guard_begin(tutti_store *store, int64_t timeout_ms,
                                                       tutti_store_timeout_guard *guard_out);

/** Put the time-out back that the handle had before. NULL, and a second time, are fine.
 * @threads any
 * @source  ours */
TUTTI_API void tutti_store_timeout_guard_end(tutti_store_timeout_guard *guard);

/** The store below a prefix store: what it was opened over.
 * @errors  none; NULL for NULL, and for a store that is no view of another
 * @threads any; no reference is taken: it lives as long as the view
 * @source  torch.distributed.PrefixStore.underlying_store */
TUTTI_API tutti_store *tutti_store_underlying(tutti_store *store);

/** The first store below that is no prefix store; store itself if it is none. For keys that
 * belong to the whole job.
 * @errors  none; NULL for NULL
 * @threads any; no reference is taken: it lives as long as store
 * @source  torch.distributed.PrefixStore._underlying_non_prefix_store */
TUTTI_API tutti_store *tutti_store_underlying_non_prefix(tutti_store *store);

/** Where a tcp store is served. Begin with TUTTI_STORE_SERVER_OPTIONS; zero means the default. */
typedef struct tutti_store_server_options {
    size_t size;             /* sizeof of this struct, set by the initialiser */
    const char *host;        /* name or address to listen on; NULL: 127.0.0.1 */
    int port;                /* 0: any free one */
    const char *secret_file; /* NULL: TUTTI_SECRET_FILE, if set */
    int listen_fd;           /* serve on this socket instead of host; 0: none. See below */
} tutti_store_server_options;

#ifdef __cplusplus
#define TUTTI_STORE_SERVER_OPTIONS                                 \
    {                                                              \
        sizeof(tutti_store_server_options), nullptr, 0, nullptr, 0 \
    }
#else
#define TUTTI_STORE_SERVER_OPTIONS                 \
    {                                              \
        .size = sizeof(tutti_store_server_options) \
    }
#endif

/** Serve a tcp store on a thread of its own until tutti_store_server_stop().
 *
 * A host name is served at all its addresses that are this machine's, IPv4 and IPv6, at one port.
 * "::" is every address of both kinds, and so is any host with TUTTI_LISTEN=any. While none is this
 * machine's they are waited for, 3 s. Port 0 is chosen from TUTTI_PORT_RANGE, if set.
 *
 * What it takes is bounded. 16384 connections; of those that have not proved the secret the oldest go first, after 10 s at
 * the latest. 4 GiB of keys and values in 4194304 keys and queues, of which one connection may have added 1 GiB in 1048576;
 * a call beyond is TUTTI_E_STORE in words, and changes nothing. 1 GiB each of requests that are not complete and of replies
 * that nobody reads; who goes beyond is disconnected.
 *
 * @param options  NULL: every default. listen_fd is a TCP socket that is bound, or listening; its
 *                 port must be `port`, unless that is 0. It is duplicated: the caller keeps his own
 * @errors  TUTTI_E_ARG      port out of range, listen_fd no such socket
 *          TUTTI_E_NETWORK  the port is taken or the address is not ours; the text names both
 *          TUTTI_E_AUTH, TUTTI_E_IO  the secret file is not usable
 *          TUTTI_E_NOMEM
 * @threads any; not after fork() in the child
 * @source  ours: torch runs it inside of TCPStore */
TUTTI_API tutti_status tutti_store_server_start(const tutti_store_server_options *options,
                                                tutti_store_server **server_out);

/** The port the server listens on; 0 if server is NULL.
 * @threads any
 * @source  ours */
TUTTI_API int tutti_store_server_port(const tutti_store_server *server);

/** Close all connections, end the thread and free the server. Clients see TUTTI_E_NETWORK. NULL is
 * fine.
 * @threads one, once
 * @source  ours */
TUTTI_API void tutti_store_server_stop(tutti_store_server *server);

#ifdef __cplusplus
}
#endif
#endif
