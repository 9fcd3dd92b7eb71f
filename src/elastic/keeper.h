/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/keeper.h - a small process that cleans up when this one cannot. */
#ifndef TTI_ELASTIC_KEEPER_H
#define TTI_ELASTIC_KEEPER_H

#include <sys/types.h>
#include <tutti/status.h>

enum { TTI_KEEPER_GROUPS_MAX = 4096 };

typedef struct tti_keeper {
    pid_t pid; /* 0: none */
    int fd;
} tti_keeper;

/** Have file, and then dir, removed when tti_keeper_end() is called or this process is gone, however it
 * ended: SIGKILL, too. "" for nothing to remove.
 * @errors TUTTI_E_NOMEM  no process or descriptor to be had */
tutti_status tti_keeper_start(const char *file, const char *dir, tti_keeper *keeper_out);

/** Have a process group ended, too, should this process be gone before tti_keeper_release(). At most
 * TTI_KEEPER_GROUPS_MAX of them. A child calls it for its own group before exec: so no group that runs a
 * program is unknown. Async-signal-safe; SIGPIPE must be ignored or blocked: the keeper may be gone. */
void tti_keeper_watch(const tti_keeper *keeper, pid_t group);

/** This group is over: leave its number alone. Call before its leader is collected. */
void tti_keeper_forget(const tti_keeper *keeper, pid_t group);

/** The same for all groups. */
void tti_keeper_release(const tti_keeper *keeper);

/** Returns when both are removed and the keeper is gone. "None" is fine. */
void tti_keeper_end(tti_keeper *keeper);

#endif
