/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 12_any_launcher.c - one program, whoever starts it: it asks nobody's variables but tutti.
 *
 * Ranks: any number.
 *
 *     cc 12_any_launcher.c -o 12_any_launcher $(pkg-config --cflags --libs tutti)
 *     tutti run --standalone --nproc-per-node=2 ./12_any_launcher
 *     torchrun --nproc-per-node=2 --no-python ./12_any_launcher
 *     mpirun -n 2 ./12_any_launcher
 *     srun -n 2 ./12_any_launcher */
#include <stdio.h>
#include <tutti/tutti.h>

#define TRY(call)                                                                                  \
    if ((call) != TUTTI_OK)                                                                        \
    return fprintf(stderr, "%s\n", tutti_last_error()), 1

int main(void)
{
    int rank, size, sum;

    TRY(tutti_init_process_group(NULL));
    rank = tutti_get_rank(NULL);
    size = tutti_get_world_size(NULL);
    sum = rank + 1;
    TRY(tutti_all_reduce(TUTTI_SPAN(&sum, 1), TUTTI_SUM, NULL));
    printf("rank %d of %d, number %d of its host: 1 + ... + %d = %d\n", rank, size, tutti_get_node_local_rank(-1), size, sum);
    TRY(tutti_destroy_process_group(NULL));
    return sum == size * (size + 1) / 2 ? 0 : 1;
}
