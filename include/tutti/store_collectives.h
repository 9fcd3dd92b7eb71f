/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/store_collectives.h - collectives of byte strings over a store, for programs that have no
 * group (yet): whoever can reach the store takes part, no connection between ranks is needed.
 *
 * Each call has a key of its own, the same on all ranks. A key serves one call: an instance refuses
 * it the second time, also when the first time failed, because others may have seen a part of it.
 * Take a prefix store, or names with a counter in them, to keep users apart.
 *
 * Keys     up to 4080 bytes, the store's prefixes included: the ranks' keys lie behind it ("key/3").
 *          They stay in the store.
 * Waiting  time-outs in ms, of each call: 0 is 5 minutes, whatever the store's own default is;
 *          TUTTI_INFINITE no limit. A time-out names the ranks that did not come, or some
 *          of them where the store is too far to be asked for all.
 * Cost     everything goes through the store: for what is small and rare. */
#ifndef TUTTI_STORE_COLLECTIVES_H
#define TUTTI_STORE_COLLECTIVES_H

#include <tutti/store.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUTTI_STORE_COLLECTIVES_TIMEOUT_MS = 300000 /* default of every call */ };

/** One rank's part in collectives over a store, and the keys that it has used. */
typedef struct tutti_store_collectives tutti_store_collectives;

/** Make one rank's part in collectives among world_size ranks.
 *
 * @param store  retained until tutti_store_collectives_free()
 * @param rank   0 .. world_size - 1; each belongs to one caller
 *
 * @errors  TUTTI_E_ARG    store or an output is NULL, rank not below world_size
 *          TUTTI_E_NOMEM
 * @threads any
 * @source  torch.distributed._StoreCollectives */
TUTTI_API tutti_status tutti_store_collectives_create(tutti_store *store, int rank, int world_size,
                                                      tutti_store_collectives **collectives_out);

/** Free it; the keys stay in the store. NULL is fine.
 * @threads one, when no call is running
 * @source  ours */
TUTTI_API void tutti_store_collectives_free(tutti_store_collectives *collectives);

/** Say that this rank has come, and, if blocking, wait until all have.
 *
 * @param key       used once
 * @param blocking  false: only say it; another rank's waiting call needs it
 *
 * @units   timeout_ms: ms; 0: 5 minutes, TUTTI_INFINITE no limit
 * @errors  TUTTI_E_STATE    the key was used before: by this instance, or by others who were enough
 *          TUTTI_E_TIMEOUT  not all came; the text names who did not
 *          TUTTI_E_ARG      collectives is NULL, key empty or too long, timeout_ms below -1
 *          or what tutti_store_set() fails with. All calls below may fail with these too.
 * @threads any
 * @cost    a set, an add and a wait; the last to come sets one more
 * @source  torch.distributed._StoreCollectives.barrier */
TUTTI_API tutti_status tutti_store_collectives_barrier(tutti_store_collectives *collectives,
                                                       const char *key, int64_t timeout_ms,
                                                       bool blocking);

/** Give data to every rank that calls tutti_store_collectives_broadcast_recv() with key. Waits for
 * nobody.
 *
 * @param data  size bytes, copied; may be NULL when size is 0
 *
 * @units   timeout_ms: ms, for the store to take it; 0: 5 minutes, TUTTI_INFINITE no limit
 * @errors  as tutti_store_collectives_barrier()
 * @threads any
 * @source  torch.distributed._StoreCollectives.broadcast_send */
TUTTI_API tutti_status tutti_store_collectives_broadcast_send(tutti_store_collectives *collectives,
                                                              const char *key, const void *data,
                                                              size_t size, int64_t timeout_ms);

/** Wait for what a rank broadcasts with key.
 *
 * @param value_out  the caller frees it with tutti_bytes_free()
 *
 * @units   timeout_ms: ms; 0: 5 minutes, TUTTI_INFINITE no limit
 * @errors  as tutti_store_collectives_barrier()
 * @threads any
 * @source  torch.distributed._StoreCollectives.broadcast_recv */
TUTTI_API tutti_status tutti_store_collectives_broadcast_recv(tutti_store_collectives *collectives,
                                                              const char *key, int64_t timeout_ms,
                                                              tutti_bytes *value_out);

/** Give data to the rank that calls tutti_store_collectives_gather_recv() with key. Waits for nobody.
 *
 * @param data  size bytes, copied; sizes may differ between ranks
 *
 * @units   timeout_ms: ms, for the store to take it; 0: 5 minutes, TUTTI_INFINITE no limit
 * @errors  as tutti_store_collectives_barrier()
 * @threads any
 * @source  torch.distributed._StoreCollectives.gather_send */
TUTTI_API tutti_status tutti_store_collectives_gather_send(tutti_store_collectives *collectives,
                                                           const char *key, const void *data,
                                                           size_t size, int64_t timeout_ms);

/** Collect what all other ranks send with key.
 *
 * @param data        this rank's own part, size bytes: comes back in its place
 * @param values_out  world_size of them, by rank; each freed by the caller with tutti_bytes_free()
 *
 * @units   timeout_ms: ms; 0: 5 minutes, TUTTI_INFINITE no limit
 * @errors  as tutti_store_collectives_barrier(); nothing is given out
 * @threads any
 * @source  torch.distributed._StoreCollectives.gather_recv */
TUTTI_API tutti_status tutti_store_collectives_gather_recv(tutti_store_collectives *collectives,
                                                           const char *key, const void *data,
                                                           size_t size, int64_t timeout_ms,
                                                           tutti_bytes *values_out);

/** Give each rank its value: values[r] to the rank r that calls tutti_store_collectives_scatter_recv()
 * with key. Waits for nobody.
 *
 * @param values  world_size of them, borrowed for the call; this rank's own is not sent
 *
 * @units   timeout_ms: ms, for the store to take them; 0: 5 minutes, TUTTI_INFINITE no limit
 * @errors  as tutti_store_collectives_barrier()
 * @threads any
 * @source  torch.distributed._StoreCollectives.scatter_send, which also returns the sender's own */
TUTTI_API tutti_status tutti_store_collectives_scatter_send(tutti_store_collectives *collectives,
                                                            const char *key,
                                                            const tutti_bytes *values,
                                                            int64_t timeout_ms);

/** Wait for this rank's value of what a rank scatters with key.
 *
 * @param value_out  the caller frees it with tutti_bytes_free()
 *
 * @units   timeout_ms: ms; 0: 5 minutes, TUTTI_INFINITE no limit
 * @errors  as tutti_store_collectives_barrier()
 * @threads any
 * @source  torch.distributed._StoreCollectives.scatter_recv */
TUTTI_API tutti_status tutti_store_collectives_scatter_recv(tutti_store_collectives *collectives,
                                                            const char *key, int64_t timeout_ms,
                                                            tutti_bytes *value_out);

/** Give data to all ranks, and get theirs.
 *
 * @param data        size bytes, copied; sizes may differ between ranks
 * @param values_out  world_size of them, by rank; each freed by the caller with tutti_bytes_free()
 *
 * @units   timeout_ms: ms; 0: 5 minutes, TUTTI_INFINITE no limit
 * @errors  as tutti_store_collectives_barrier(); nothing is given out
 * @threads any
 * @cost    world_size values through the store for each rank
 * @source  torch.distributed._StoreCollectives.all_gather */
TUTTI_API tutti_status tutti_store_collectives_all_gather(tutti_store_collectives *collectives,
                                                          const char *key, const void *data,
                                                          size_t size, int64_t timeout_ms,
                                                          tutti_bytes *values_out);

/** Add up one number of each rank; all get the sum, which wraps at 64 bits.
 *
 * @units   timeout_ms: ms; 0: 5 minutes, TUTTI_INFINITE no limit
 * @errors  as tutti_store_collectives_barrier()
 * @threads any
 * @cost    a barrier and two adds
 * @source  torch.distributed._StoreCollectives.all_sum */
TUTTI_API tutti_status tutti_store_collectives_all_sum(tutti_store_collectives *collectives,
                                                       const char *key, int64_t number,
                                                       int64_t timeout_ms, int64_t *sum_out);

#ifdef __cplusplus
}
#endif
#endif
