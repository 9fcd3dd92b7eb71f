/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/plugin/plugin.h - for authors of plug-ins: what one shows, and what it is given.
 *
 * A plug-in is a shared object that links no libtutti, so that one build of it goes with the shared library, with the
 * static one inside of a program, and with later versions of both. It shows one symbol, tutti_plugin_entry: a constant, so that
 * nothing of the plug-in's runs before its versions have been looked at. What it needs of the library comes as a
 * table of functions, the host, with init.
 *
 * Where it is looked for. A backend called NAME that is not of the build and not registered by the program
 * (tutti_register_backend()) is the file tutti-backend-NAME.so in the first directory that has it: those of
 * TUTTI_PLUGIN_PATH, absolute paths with colons between, then "tutti" beside libtutti.so (with the static library: in
 * the library directory that the build was configured with). NAME is 1 to 31 of a-z, 0-9, '_' and '-'; letters of any
 * case mean the small ones. A program with the rights of another user (set-user-ID) does not read the variable.
 *
 * What is refused, with one error that names the file: a file, or a directory on its way, that belongs to others than
 * root and this user, or that others may write to; what is no plug-in; one made for an older version of these headers
 * than this library drives, or for a newer one than it knows; a table that is not whole; an init that fails. A
 * file that is refused ends the search: what lies behind it is not taken in its place.
 *
 * A plug-in stays in the process until that ends, so what it registers with others (atexit(), threads, destructors of
 * threads) stays valid. It is loaded when a group is made, or a program asks whether it is there. */
#ifndef TUTTI_PLUGIN_PLUGIN_H
#define TUTTI_PLUGIN_PLUGIN_H

#include <tutti/debug.h>
#include <tutti/plugin/backend.h>

struct tutti_device_ops; /* tutti/plugin/device.h, which includes this */

#ifdef __cplusplus
extern "C" {
#endif

/** The version of tutti_plugin and tutti_plugin_host. Both only grow at the end, and each time it does this number
 * grows; so what a plug-in knows of the host is always there. */
enum { TUTTI_PLUGIN_API = 4 };

/** A word that threads sleep on. In C++: read and write it with the compiler's __atomic functions. */
#ifdef __cplusplus
typedef uint32_t tutti_word;
#else
typedef _Atomic uint32_t tutti_word;
#endif

typedef struct tutti_plugin_thread tutti_plugin_thread; /* one that the host has started; the host's own type */

/** What a plug-in is given. The table is constant and stays. Unless told otherwise an entry may be called on any
 * thread, and is what the public function of that name is, with the same contract. */
typedef struct tutti_plugin_host {
    uint32_t    api;     /* TUTTI_PLUGIN_API of the library: not smaller than the plug-in's */
    uint32_t    size;    /* sizeof(tutti_plugin_host) of the library */
    const char *version; /* of the library, for words: "0.1.0" */

    /* ---- words ---- */

    /* Keep the words of a failure as this thread's last error, and return status. Whoever first sees a failure
     * calls it, once: what failed, on whom, the facts, "\n  next: " and one next step. Lower case, no full stop. */
    tutti_status (*fail)(tutti_status status, const char *fmt, ...) TUTTI_PRINTF(2, 3);
    /* tutti_last_error(), tutti_status_name(). */
    const char *(*last_error)(void);
    const char *(*status_name)(tutti_status status);
    /* One line for the log, without the newline; dropped if the level is beyond what tutti/debug.h says. */
    void (*log)(tutti_log_level level, const char *fmt, ...) TUTTI_PRINTF(2, 3);

    /* ---- time and waiting ---- */

    /* CLOCK_MONOTONIC in ns: what deadlines are counted by. */
    int64_t (*now_ns)(void);
    /* Sleep while *word is seen, until wake_word or the deadline (INT64_MAX: none); may return early for no reason, so
     * look again. Let abort, fail and whoever ends a request change a word and wake it: this is how a wait ends soon. */
    void (*wait_word)(const tutti_word *word, uint32_t seen, int64_t deadline_ns);
    /* Wake everybody who sleeps on word. Change the word first. */
    void (*wake_word)(const tutti_word *word);
    /* For a library that has to be asked whether it is done: between two looks. *rounds is 0 before the first one, and
     * counts them. Spins for a while, then gives the core to others, then sleeps, at most 1 ms; in_background, as the
     * call says, it never spins. */
    void (*idle)(uint32_t *rounds, bool in_background);

    /* ---- memory ---- */

    /* tutti_alloc(), tutti_free(): memory that other ranks of this host can reach, and that windows may lie in. What
     * nobody else has to reach comes from malloc(). */
    tutti_status (*alloc)(size_t bytes, void **ptr_out);
    tutti_status (*free)(void *ptr);

    /* ---- elements ---- */

    /* tutti_dtype_size(), tutti_dtype_name(), tutti_op_name(). Whether an op goes with a dtype has been looked at
     * before a call comes. */
    size_t (*dtype_size)(tutti_dtype dtype);
    const char *(*dtype_name)(tutti_dtype dtype);
    const char *(*op_name)(tutti_op_kind kind);
    /* out[i] = ((in[0][i] op in[1][i]) op in[2][i]) op ..., strictly in this order, in memory of the CPU, with the numbers
     * that tutti/dtype.h promises: f16, bf16 and f8 in f32, rounded once at the end; the same bits on all
     * machines. n_in is 1 or more; out may be one of in, else it is apart from them. AVG divides by n_ranks at the
     * end: a sum that is made in several calls is SUM in all but the last. PREMUL_SUM is SUM here: scale first. */
    void (*reduce)(tutti_op_kind kind, tutti_dtype dtype, void *out, const void *const *in, int n_in, int64_t count,
                   int n_ranks);
    /* out[i] = in[i] * factor, for PREMUL_SUM; out may be in, else it is apart from it. */
    void (*scale)(tutti_dtype dtype, void *out, const void *in, int64_t count, double factor);

    /* ---- the store of tutti_backend_config: as tutti_store_...() of tutti/store.h ---- */

    tutti_status (*store_set)(tutti_store *store, const char *key, const void *data, size_t len);
    /* A store that was not reached within timeout_ms is TUTTI_E_TIMEOUT here: who looks for a moment, again and again, goes on
     * until its own deadline. One that refuses, or has lost the connection, is TUTTI_E_NETWORK, at once. A look has to
     * be long enough to connect again: 200 ms. Look once, at least, whatever the time, before a member is said to be missing.
     * On the thread that is in create the library ends a wait, as if its time were up, when a member has refused the group: store_stops,
     * below, says whether it has. */
    tutti_status (*store_get)(tutti_store *store, const char *key, int64_t timeout_ms, tutti_bytes *value_out);
    tutti_status (*store_add)(tutti_store *store, const char *key, int64_t delta, int64_t *sum_out);
    tutti_status (*store_wait)(tutti_store *store, const char *const *keys, size_t n, int64_t timeout_ms);
    tutti_status (*store_check)(tutti_store *store, const char *const *keys, size_t n, bool *all_out);
    /* Stores may lack the next two: TUTTI_E_UNSUPPORTED. */
    tutti_status (*store_compare_set)(tutti_store *store, const char *key, const void *expected, size_t expected_len,
                                      const void *desired, size_t desired_len, tutti_bytes *value_out);
    tutti_status (*store_delete_key)(tutti_store *store, const char *key, bool *deleted_out);
    /* tutti_bytes_free(): for what store_get and store_compare_set gave. */
    void (*bytes_free)(tutti_bytes *bytes);
    /* store_set and store_check wait for a store that does not answer as long as its own time-out says; these no longer than
     * until the deadline (CLOCK_MONOTONIC in ns): TUTTI_E_TIMEOUT, or TUTTI_E_NETWORK, and what was set may have come. For a
     * thread that has to look at clocks. */
    tutti_status (*store_set_until)(tutti_store *store, const char *key, const void *data, size_t len, int64_t deadline_ns);
    tutti_status (*store_check_until)(tutti_store *store, const char *const *keys, size_t n, int64_t deadline_ns, bool *all_out);

    /* ---- memory of devices: from version 2 on ---- */

    /* How it is reached (tutti/plugin/device.h): the table of the device's own plug-in, which is loaded if it has not been. Not
     * from init. TUTTI_E_UNSUPPORTED where there is none, or no such device. */
    tutti_status (*device)(tutti_device_type type, const struct tutti_device_ops **ops_out);

    /* ---- threads: from version 3 on ---- */

    /* Start a thread of the plug-in's, which runs body(arg). It begins with all signals blocked, as these are the program's, is
     * called name (15 bytes at most), and counts as the library's: a process ends when only such threads are left of it. One that
     * the plug-in starts by itself counts as the program's. */
    tutti_status (*thread_start)(const char *name, void (*body)(void *arg), void *arg, tutti_plugin_thread **thread_out);
    /* Wait until body has returned, and forget thread. Once for each; not on that thread. */
    void (*thread_join)(tutti_plugin_thread *thread);

    /* ---- waits that are in vain: from version 4 on ---- */

    /* tutti_store_stops() of tutti/plugin/store.h. In create, on the thread that was called: a member has refused the group, and it
     * will never be. Fail then, with whatever words: the library says who, and why. Ask it after a TUTTI_E_TIMEOUT of the store's, and, of
     * a wait that is not in the store, between two looks. It stays true until create has returned, costs no more than a look at
     * memory, and is false on any other thread. */
    bool (*store_stops)(void);
} tutti_plugin_host;

/** What a plug-in shows. */
typedef struct tutti_plugin {
    uint32_t    api;     /* TUTTI_PLUGIN_API of the headers that it was made with */
    uint32_t    size;    /* sizeof(tutti_plugin) of those */
    const char *name;    /* as in its file's name */
    uint32_t    devices; /* whose memory it takes: 1u << TUTTI_CPU, 1u << TUTTI_CUDA, or both */
    /* What moves the data. */
    const tutti_backend_ops *backend;
    /* Required. Called once, before any entry of the table, by one thread, while no other plug-in is loaded: make no group here.
     * Keep host; look for the libraries that the plug-in stands on. Where TUTTI_TLS is 1 all that a job sends between processes is to
     * be encrypted: a plug-in that does not do that says TUTTI_E_UNSUPPORTED. Anything but TUTTI_OK, with words (host->fail), refuses the
     * plug-in: it is unloaded, and may be tried again. */
    tutti_status (*init)(const tutti_plugin_host *host);
} tutti_plugin;

/** The one symbol that a plug-in shows; each defines its own. */
TUTTI_API extern const tutti_plugin tutti_plugin_entry;

#ifdef __cplusplus
}
#endif
#endif
