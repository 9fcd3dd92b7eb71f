/* SPDX-License-Identifier: BSD-3-Clause
 *
 * machine.c - which machine this is. */
#include "base/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool tti_boot_id(char out[TTI_BOOT_ID_BYTES])
{
    FILE  *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    size_t got = 0;

    memset(out, 0, TTI_BOOT_ID_BYTES);
    if (file == NULL)
        return false;
    got = fread(out, 1, TTI_BOOT_ID_BYTES - 1, file);
    fclose(file);
    if (got == TTI_BOOT_ID_BYTES - 1)
        return true;
    memset(out, 0, TTI_BOOT_ID_BYTES);
    return false;
}

/* "max" where there is no limit. */
static int64_t limit_of_group(void)
{
    FILE   *file = fopen("/sys/fs/cgroup/memory.max", "re");
    int64_t bytes = 0;

    if (file == NULL)
        return INT64_MAX;
    if (fscanf(file, "%" SCNd64, &bytes) != 1 || bytes <= 0)
        bytes = INT64_MAX;
    fclose(file);
    return bytes;
}

int64_t tti_memory_bytes(void)
{
    const int64_t machine = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    const int64_t group = limit_of_group();

    return group < machine ? group : machine;
}
