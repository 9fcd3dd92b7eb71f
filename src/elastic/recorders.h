/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/recorders.h - the memory of the ranks' flight recorders, which the launcher holds. */
#ifndef TTI_ELASTIC_RECORDERS_H
#define TTI_ELASTIC_RECORDERS_H

#include <tutti/status.h>
#include "recorder/read.h"

/** Make one for each of n ranks: descriptors, -1 where no recorder is wanted. free() them after tti_recorders_close().
 * A machine that has no memory for them is no reason not to start: then the ranks make their own.
 * @errors TUTTI_E_ARG    a variable is wrong
 *         TUTTI_E_NOMEM  no memory for the list */
tutti_status tti_recorders_make(int n, int **fds_out);
void         tti_recorders_close(const int *fds, int n);

/** The job has failed: if TUTTI_TRACE_FILE is set, write what the ranks did last that have not written it themselves, those
 * that were killed among them. Says in the log where.
 * @param sights  [n] of each what it was at when the launcher began to end it, before any signal; zeroed: it was not ended so */
void tti_recorders_dump(const int *fds, const tti_sight *sights, int n);

#endif
