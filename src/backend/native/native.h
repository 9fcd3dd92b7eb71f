/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/native/native.h - tutti's own backend: shared memory inside a host, TCP between hosts. */
#ifndef TTI_BACKEND_NATIVE_H
#define TTI_BACKEND_NATIVE_H

#include <tutti/plugin/backend.h>

typedef struct tti_mesh tti_mesh;

extern const tutti_backend_ops tti_native_backend_ops;

/** Whether what a world of it reads from the environment before its ranks meet can be meant at all, where they meet in store, the
 * program's; NULL: in one that we open.
 * @errors TUTTI_E_ARG          no; the text names the variable
 *         TUTTI_E_UNSUPPORTED  TUTTI_TLS, with keys that everybody could read there */
tutti_status tti_native_check_env(tutti_store *store);

/** The members and the ways to them of a native backend, or of the one that it borrows them from; NULL: another backend. */
tti_mesh *tti_native_mesh(const tutti_backend *backend);

/** This rank waits for the members of a native backend's group that are awaited[], for what `instead` says, and comes to no call of the
 * group any more: which of them waits in such a call, and that call's number. Never waits.
 * @errors TUTTI_E_MISMATCH  one does; the text has both */
tutti_status tti_native_look_missed(tutti_backend *backend, const bool *awaited, const char *instead, int *rank_out, uint64_t *seq_out);
/** The group is finished by that, on all members, as this thread's last error says. */
void tti_native_end_missed(tutti_backend *backend);

/** How many TCP connections the world of a native backend has to other ranks now. For tests and tools. */
int tti_native_connections(const tutti_backend *backend);

#endif
