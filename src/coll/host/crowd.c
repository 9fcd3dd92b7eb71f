/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crowd.c - how many cores the ranks of a host share.
 *
 * Why     What a rank may run on is its own matter, but how to wait and in which pieces to move data must be
 *         decided alike by all. And what one rank may use says little: ranks that are pinned have one core
 *         each, and yet a core for each of them.
 * How     The cores of all members together. Where no two members share one, ranks are taken to be pinned, and
 *         those outside of the group to have as many cores as those inside, while the host has any. */
#include "coll/host/crowd.h"

static int bits_of(const uint64_t words[TTI_CPU_WORDS])
{
    int n = 0, w;

    for (w = 0; w < TTI_CPU_WORDS; w++)
        n += __builtin_popcountll(words[w]);
    return n;
}

int tti_crowd_cores(const tti_join *joins, int n_members, int n_on_host)
{
    uint64_t all[TTI_CPU_WORDS] = { 0 };
    uint64_t running = joins[0].cores;
    int64_t  single = 0, together;
    int      r, w;

    for (r = 0; r < n_members; r++) {
        single += bits_of(joins[r].cpus);
        for (w = 0; w < TTI_CPU_WORDS; w++)
            all[w] |= joins[r].cpus[w];
        if (joins[r].cores < running)
            running = joins[r].cores;
    }
    together = bits_of(all);
    if (single == together)
        together = together * n_on_host / n_members;
    if (together > (int64_t)running)
        together = (int64_t)running;
    return together >= 1 ? (int)together : 1;
}
