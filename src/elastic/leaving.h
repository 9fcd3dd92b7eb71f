/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/leaving.h - whether a process is in the middle of its end. */
#ifndef TTI_ELASTIC_LEAVING_H
#define TTI_ELASTIC_LEAVING_H

#include <stdbool.h>
#include <sys/types.h>

/** Whether a process that was not collected yet has begun to end, and will not run its program any more. False where the
 * kernel does not tell. */
bool tti_is_leaving(pid_t pid);

#endif
