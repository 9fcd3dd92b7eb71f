/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copy.h - moving bytes: short runs without a call, long ones at the machine's speed, and past the caches.
 *
 * Why     A collective of a few bytes cannot pay for a call that looks at sizes; and libc decides by a
 *         cache size that is often wrong when its stores shall go past the caches. Here the caller does. */
#ifndef TTI_KERNEL_COPY_H
#define TTI_KERNEL_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TTI_COPY_SHORT = 64 };

/* Two moves of a fixed size that overlap in the middle: n <= bytes <= 2 n. Both are loaded first. */
#define TTI_COPY_ENDS(n, dst, src, bytes)                                    \
    do {                                                                     \
        unsigned char tti_first[n], tti_last[n];                             \
                                                                             \
        memcpy(tti_first, (src), (n));                                       \
        memcpy(tti_last, (const unsigned char *)(src) + (bytes) - (n), (n)); \
        memcpy((dst), tti_first, (n));                                       \
        memcpy((unsigned char *)(dst) + (bytes) - (n), tti_last, (n));       \
    } while (0)

/** Up to TTI_COPY_SHORT bytes; without loops and calls. */
static inline void tti_copy_short(void *dst, const void *src, size_t bytes)
{
    if (bytes >= 32)
        TTI_COPY_ENDS(32, dst, src, bytes);
    else if (bytes >= 16)
        TTI_COPY_ENDS(16, dst, src, bytes);
    else if (bytes >= 8)
        TTI_COPY_ENDS(8, dst, src, bytes);
    else if (bytes >= 4)
        TTI_COPY_ENDS(4, dst, src, bytes);
    else if (bytes >= 2)
        TTI_COPY_ENDS(2, dst, src, bytes);
    else if (bytes == 1)
        *(unsigned char *)dst = *(const unsigned char *)src;
}

/** bytes from src to dst, which do not overlap (the same address is allowed). Pointers may be NULL for
 * no bytes, and have any alignment. */
static inline void tti_copy(void *dst, const void *src, size_t bytes)
{
    if (bytes <= TTI_COPY_SHORT)
        tti_copy_short(dst, src, bytes);
    else if (dst != src)
        memcpy(dst, src, bytes);
}

/** The same with stores that do not bring dst into the caches, where the machine has such: for results
 * that do not fit into a core's own cache (tti_cache_near()) and that nobody reads soon. They are in order
 * before what the caller stores afterwards. */
void tti_copy_nt(void *dst, const void *src, size_t bytes);

#endif
