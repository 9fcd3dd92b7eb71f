/* SPDX-License-Identifier: BSD-3-Clause
 *
 * files.c - the limit of open descriptors, counted before the first rank is started.
 *
 * Why     A soft limit of 1024 is usual and is spent by some 250 ranks. To run out in the middle of
 *         starting them, or to have poll() refuse, tells nobody what to change. Where the store is served there is room
 *         for strangers as well, as far as the limit goes: whoever cannot be accepted fills the kernel's queue, and keeps
 *         members waiting. */
#include "elastic/files.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/private.h>

enum {
    FILES_PER_RANK = 4,
    FILES_SPARE = 32, /* the store's loop, signals, pipes of a rank that is being started */
    FILES_OPEN = 16,  /* where they cannot be counted */
    FILES_STRANGERS = 16384 /* that may connect to the store and say nothing, where the limit can be raised so far */
};

static int64_t count_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int64_t n = -3; /* ".", ".." and the directory itself */

    if (dir == NULL)
        return FILES_OPEN;
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

tutti_status tti_files_reserve(int n_ranks, int64_t n_clients, struct rlimit *before_out)
{
    const int64_t need = count_open() + FILES_SPARE + FILES_PER_RANK * (int64_t)n_ranks + n_clients;
    struct rlimit limit;
    struct rlimit raised;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return tti_fail_errno(errno, "cannot read the limit of open files");
    if (limit.rlim_max < (rlim_t)need)
        return tti_fail(TUTTI_E_NOMEM,
                        "%d ranks here and %lld clients of the store take %lld open files, and "
                        "this process may have %llu\n  next: raise the limit (ulimit -n), or "
                        "start fewer ranks",
                        n_ranks, (long long)n_clients, (long long)need,
                        (unsigned long long)limit.rlim_max);
    raised = (struct rlimit){ .rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max };
    if (limit.rlim_cur < (rlim_t)need + FILES_STRANGERS && limit.rlim_cur < limit.rlim_max &&
        setrlimit(RLIMIT_NOFILE, &raised) != 0 && limit.rlim_cur < (rlim_t)need)
        return tti_fail_errno(errno, "cannot raise the limit of open files to %llu",
                              (unsigned long long)raised.rlim_cur);
    *before_out = limit;
    return TUTTI_OK;
}

void tti_files_restore(const struct rlimit *before)
{
    setrlimit(RLIMIT_NOFILE, before);
}
