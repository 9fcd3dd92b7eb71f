/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 02_send_recv.c - blocking point-to-point: rank 0 sends a number to rank 1.
 *
 * Ranks: two; more have nothing to do.
 *
 *     cc 02_send_recv.c -o 02_send_recv $(pkg-config --cflags --libs tutti)
 *     tutti run --standalone --nproc-per-node=2 ./02_send_recv */
#include <stdio.h>
#include <tutti/tutti.h>

#define TRY(call)                                                                                  \
    if ((call) != TUTTI_OK)                                                                        \
    return fprintf(stderr, "%s\n", tutti_last_error()), 1

int main(void)
{
    float x = 0.0f;
    int   rank;

    TRY(tutti_init_process_group(NULL));
    rank = tutti_get_rank(NULL);
    if (rank == 0) {
        x += 1.0f;
        TRY(tutti_send(TUTTI_SPAN(&x, 1), 1, 0, NULL)); /* returns when x may be used again */
    } else if (rank == 1) {
        TRY(tutti_recv(TUTTI_SPAN(&x, 1), 0, 0, NULL, NULL)); /* returns when x has arrived */
    }
    printf("rank %d has data %.1f\n", rank, (double)x);
    TRY(tutti_destroy_process_group(NULL));
    return 0;
}
