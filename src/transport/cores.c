/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cores.c - who shares the cores of this machine, and whether every rank has one. What a rank may use says little: ranks
 * that are pinned have one core each, and yet one for each of them. So each leaves its cores in its heap. Nobody knows
 * the cores of ranks of other hosts on this machine: they count against those that it has. */
#include "transport/meet.h"

int tti_mesh_ranks_on_machine(const tti_mesh *mesh)
{
    return mesh->on_machine;
}

bool tti_mesh_has_own_cores(const tti_mesh *mesh)
{
    uint64_t all[TTI_CPU_WORDS] = { 0 };
    int      ranks = 0, cores = 0, running = tti_running_cores();
    int      i, w;

    for (i = 0; i < tti_mesh_size(mesh); i++) {
        tti_heap *heap = tti_mesh_heap(mesh, i);

        if (heap == NULL)
            continue;
        ranks++;
        for (w = 0; w < TTI_CPU_WORDS; w++)
            all[w] |= tti_heap_head_of(heap)->cpus[w];
        if ((int)tti_heap_head_of(heap)->cores < running)
            running = (int)tti_heap_head_of(heap)->cores;
    }
    for (w = 0; w < TTI_CPU_WORDS; w++)
        cores += __builtin_popcountll(all[w]);
    return ranks <= cores && mesh->on_machine <= running;
}
