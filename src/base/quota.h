/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quota.h - how much of the machine's cores this process's control group may use. */
#ifndef TTI_BASE_QUOTA_H
#define TTI_BASE_QUOTA_H

#include <stdint.h>

/** The quota that membership, a file like /proc/self/cgroup, leads to below mount, a directory like
 * /sys/fs/cgroup: in cores, rounded up, versions 1 and 2, the tightest of a group and those around it. 0: none. */
uint64_t tti_cpu_quota(const char *membership, const char *mount);

#endif
