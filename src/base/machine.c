/* SPDX-License-Identifier: BSD-3-Clause
 *
 * machine.c - which machine this is. */
#include "base/machine.h"

#include <stdio.h>
#include <string.h>

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
