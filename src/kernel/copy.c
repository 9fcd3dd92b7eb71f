/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copy.c - copies with stores past the caches.
 *
 * True    x86 does not order such stores before a later ordinary one, not even before one with release
 *         order: compilers make a plain store of that. The fence at the end does, so that a flag which
 *         the caller raises afterwards is never seen before the bytes. */
#include "kernel/copy.h"
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum { LINE = 64 };

#if defined(__x86_64__)

static void stream_lines(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LINE)
        for (size_t k = 0; k < LINE; k += 16)
            _mm_stream_si128((__m128i *)(void *)(dst + at + k),
                             _mm_loadu_si128((const __m128i *)(const void *)(src + at + k)));
    _mm_sfence();
}

void tti_copy_nt(void *dst, const void *src, size_t bytes)
{
    const size_t head = -(uintptr_t)dst % LINE;
    size_t lines;

    if (bytes < 4 * LINE) {
        tti_copy(dst, src, bytes);
        return;
    }
    lines = (bytes - head) / LINE * LINE;
    tti_copy_short(dst, src, head);
    stream_lines((unsigned char *)dst + head, (const unsigned char *)src + head, lines);
    tti_copy_short((unsigned char *)dst + head + lines, (const unsigned char *)src + head + lines,
                   bytes - head - lines);
}

#else

void tti_copy_nt(void *dst, const void *src, size_t bytes)
{
    tti_copy(dst, src, bytes);
}

#endif
