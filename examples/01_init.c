/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 01_init.c - find the other processes, say hello, leave.
 *
 * Ranks: any number.
 *
 *     cc 01_init.c -o 01_init $(pkg-config --cflags --libs tutti)
 *     tutti run --standalone --nproc-per-node=2 ./01_init */
#include <stdio.h>
#include <tutti/tutti.h>

#define TRY(call)                                                                                  \
    if ((call) != TUTTI_OK)                                                                        \
    return fprintf(stderr, "%s\n", tutti_last_error()), 1

int main(void)
{
    TRY(tutti_init_process_group(NULL)); /* env://: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT */
    printf("rank %d of %d is here\n", tutti_get_rank(NULL), tutti_get_world_size(NULL));
    TRY(tutti_barrier(NULL));
    TRY(tutti_destroy_process_group(NULL));
    return 0;
}
