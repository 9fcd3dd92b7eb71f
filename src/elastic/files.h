/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/files.h - room for the descriptors that a job needs. */
#ifndef TTI_ELASTIC_FILES_H
#define TTI_ELASTIC_FILES_H

#include <stdint.h>
#include <sys/resource.h>
#include <tutti/status.h>

/** Make sure that this process may open as many more as a job takes: raise the soft limit to the hard one
 * where it is too low.
 * @param n_ranks     of this host: a process descriptor, two pipes and a recorder each
 * @param n_clients   of the store served here
 * @param before_out  what the limit was: for the ranks, and for tti_files_restore()
 * @errors TUTTI_E_NOMEM  the hard limit is too low; the text has both numbers */
tutti_status tti_files_reserve(int n_ranks, int64_t n_clients, struct rlimit *before_out);

/** Put the limit back. */
void tti_files_restore(const struct rlimit *before);

#endif
