/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 03_isend_irecv.c - the same without blocking: the buffer is borrowed until the work is waited for.
 *
 * Ranks: two; more have nothing to do.
 *
 *     cc 03_isend_irecv.c -o 03_isend_irecv $(pkg-config --cflags --libs tutti)
 *     tutti run --standalone --nproc-per-node=2 ./03_isend_irecv */
#include <stdio.h>
#include <tutti/tutti.h>

#define TRY(call)                                                                                  \
    if ((call) != TUTTI_OK)                                                                        \
    return fprintf(stderr, "%s\n", tutti_last_error()), 1

int main(void)
{
    tutti_work *work = NULL;
    float       x = 0.0f;
    int         rank;

    TRY(tutti_init_process_group(NULL));
    rank = tutti_get_rank(NULL);
    if (rank == 0) {
        x += 1.0f;
        TRY(tutti_isend(TUTTI_SPAN(&x, 1), 1, 0, NULL, &work));
        printf("rank 0 started sending\n");
    } else if (rank == 1) {
        TRY(tutti_irecv(TUTTI_SPAN(&x, 1), 0, 0, NULL, &work));
        printf("rank 1 started receiving\n");
    }
    if (work != NULL)
        TRY(tutti_work_wait(work));
    tutti_work_free(work);
    printf("rank %d has data %.1f\n", rank, (double)x);
    TRY(tutti_destroy_process_group(NULL));
    return 0;
}
