/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cache.c - how large a core's own cache is, and how much of the last one it may count on.
 *
 * Why     What sysconf() tells is the whole cache of the socket, in a virtual machine of a socket that is
 *         shared with strangers. Whoever sizes buffers by it spills them to memory.
 * How     The processor itself says how large its last cache is and how many of its threads share it; one
 *         thread's part of that, bounded, since virtual machines show the large cache and hide those who
 *         share it. Where the processor cannot be asked, its kernel is. */
#include "base/machine.h"

#include <stdatomic.h>
#include <stdio.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* No server sold has more per core, but for stacked caches; an unknown machine is taken for a small one. */
enum { NEAR_MIN = 1 << 18, NEAR_MAX = 4 << 20, SHARE_MIN = 1 << 20, SHARE_MAX = 8 << 20 };

/* For each thread that shares it; 0 if there is no word of it. */
typedef struct caches {
    int64_t near; /* the second level */
    int64_t last;
} caches;

#if defined(__x86_64__)

enum { LEAF_INTEL = 4, LEAF_AMD = 0x8000001d, LEAF_AMD_MAX = 0x80000000, AMD_TOPOLOGY = 1 << 22 };

static unsigned leaf_of_caches(void)
{
    unsigned a, b, c, d;

    if (__get_cpuid(0x80000001u, &a, &b, &c, &d) != 0 && (c & AMD_TOPOLOGY) != 0 &&
        __get_cpuid_max((unsigned)LEAF_AMD_MAX, NULL) >= (unsigned)LEAF_AMD)
        return (unsigned)LEAF_AMD;
    return __get_cpuid_max(0, NULL) >= LEAF_INTEL ? LEAF_INTEL : 0;
}

static caches ask(void)
{
    const unsigned leaf = leaf_of_caches();
    caches         found = { 0, 0 };
    unsigned       a, b, c, d, i;

    for (i = 0; leaf != 0 && i < 16; i++) {
        __cpuid_count(leaf, i, a, b, c, d);
        if ((a & 31) == 0)
            break;
        found.last = (int64_t)((b >> 22) + 1) * (((b >> 12) & 1023) + 1) * ((b & 4095) + 1) * ((int64_t)c + 1) /
                     (((a >> 14) & 4095) + 1);
        if (((a >> 5) & 7) == 2)
            found.near = found.last;
    }
    return found;
}

#else

/* The numbers of a list such as "0-3,8". */
static int64_t count_of(const char *list)
{
    int64_t n = 0;
    int     from, to, got;

    while (sscanf(list, "%d%n", &from, &got) == 1) {
        list += got;
        to = from;
        if (*list == '-' && sscanf(list, "-%d%n", &to, &got) == 1)
            list += got;
        n += to - from + 1;
        list += *list == ',';
    }
    return n;
}

static int read_line(int index, const char *name, char *line, int bytes)
{
    char  path[96];
    FILE *file;
    int   got;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    got = fgets(line, bytes, file) != NULL;
    fclose(file);
    return got;
}

static caches ask(void)
{
    caches found = { 0, 0 };
    char   size[64], sharers[1024], level[64];
    int    i, kib;

    for (i = 0; read_line(i, "size", size, sizeof size) && read_line(i, "level", level, sizeof level) &&
                read_line(i, "shared_cpu_list", sharers, sizeof sharers);
         i++) {
        if (sscanf(size, "%dK", &kib) != 1 || count_of(sharers) == 0)
            continue;
        found.last = (int64_t)kib * 1024 / count_of(sharers);
        if (level[0] == '2')
            found.near = found.last;
    }
    return found;
}

#endif

static int64_t within(int64_t bytes, int64_t least, int64_t most)
{
    return bytes < least ? least : bytes > most ? most : bytes;
}

/* Asking is slow in a virtual machine, and gives everybody the same: whoever asks first may store it, twice
 * does not matter, and nothing else hangs on it. */
static int64_t once(_Atomic int64_t *known, bool last)
{
    int64_t bytes = atomic_load_explicit(known, memory_order_relaxed);
    caches  found;

    if (bytes != 0)
        return bytes;
    found = ask();
    bytes = last ? within(found.last, SHARE_MIN, SHARE_MAX) : within(found.near, NEAR_MIN, NEAR_MAX);
    atomic_store_explicit(known, bytes, memory_order_relaxed);
    return bytes;
}

int64_t tti_cache_share(void)
{
    static _Atomic int64_t known;

    return once(&known, true);
}

int64_t tti_cache_near(void)
{
    static _Atomic int64_t known;

    return once(&known, false);
}
