/* SPDX-License-Identifier: BSD-3-Clause
 *
 * machine.h - which machine this is, as its kernel tells. */
#ifndef TTI_BASE_MACHINE_H
#define TTI_BASE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

enum { TTI_BOOT_ID_BYTES = 37 }; /* NUL included */

/** The random name of this boot of this machine, the same in all its containers. False: unreadable;
 * out is all zeros then. */
bool tti_boot_id(char out[TTI_BOOT_ID_BYTES]);

/** Bytes of memory that this process may count on: the machine's, or its control group's if those are fewer. */
int64_t tti_memory_bytes(void);

/** Bytes of the last cache that one busy core may count on; 1 to 8 MiB, of the processor's own telling,
 * never the whole cache that is shared with others. n busy cores have n times that between them. */
int64_t tti_cache_share(void);
/** Bytes of the cache behind the first that a core has for itself; 256 KiB to 4 MiB. */
int64_t tti_cache_near(void);

#endif
