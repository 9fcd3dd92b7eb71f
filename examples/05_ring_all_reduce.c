/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 05_ring_all_reduce.c - an all-reduce of one's own, out of isend and recv.
 *
 * Every rank passes what it received on to its right neighbour; after P-1 steps everybody has seen every
 * value. Two buffers take turns, so that one can be sent while the other is filled.
 *
 * Ranks: any number.
 *
 *     cc 05_ring_all_reduce.c -o 05_ring_all_reduce $(pkg-config --cflags --libs tutti)
 *     tutti run --standalone --nproc-per-node=4 ./05_ring_all_reduce */
#include <stdio.h>
#include <string.h>
#include <tutti/tutti.h>

#define TRY(call)                                                                                  \
    if ((call) != TUTTI_OK)                                                                        \
    return tutti_last_error()

enum { N = 1000 };

/* One step. The send borrows out until its work is over: it is waited for also when the receive has
 * failed, before anybody gives up the buffer. */
static tutti_status pass_on(tutti_span out, int right, tutti_span in, int left)
{
    tutti_work  *work;
    tutti_status received, sent;

    sent = tutti_isend(out, right, 0, NULL, &work);
    if (sent != TUTTI_OK)
        return sent;
    received = tutti_recv(in, left, 0, NULL, NULL);
    sent = tutti_work_wait(work);
    tutti_work_free(work);
    return received != TUTTI_OK ? received : sent;
}

/* What went wrong, or NULL. */
static const char *ring_all_reduce(const float *send, float *recv)
{
    const int   rank = tutti_get_rank(NULL);
    const int   size = tutti_get_world_size(NULL);
    const int   left = (rank - 1 + size) % size;
    const int   right = (rank + 1) % size;
    float       buffer[2][N];
    int         step, i;

    memcpy(buffer[0], send, sizeof buffer[0]);
    memcpy(recv, send, sizeof buffer[0]);
    for (step = 0; step < size - 1; step++) {
        float *out = buffer[step % 2];
        float *in = buffer[(step + 1) % 2];

        TRY(pass_on(TUTTI_SPAN(out, N), right, TUTTI_SPAN(in, N), left));
        for (i = 0; i < N; i++)
            recv[i] += in[i];
    }
    return NULL;
}

static const char *run(void)
{
    float       mine[N], sum[N], check[N];
    const char *failure;
    int         i;

    TRY(tutti_init_process_group(NULL));
    for (i = 0; i < N; i++)
        check[i] = mine[i] = (float)(i + tutti_get_rank(NULL)); /* whole: any order gives the same sum */
    if ((failure = ring_all_reduce(mine, sum)) != NULL)
        return failure;
    TRY(tutti_all_reduce(TUTTI_SPAN(check, N), TUTTI_SUM, NULL));
    if (memcmp(sum, check, sizeof sum) != 0)
        return "the ring and tutti_all_reduce differ";
    printf("rank %d: the ring agrees with tutti_all_reduce\n", tutti_get_rank(NULL));
    TRY(tutti_destroy_process_group(NULL));
    return NULL;
}

int main(void)
{
    const char *failure = run();

    if (failure != NULL)
        fprintf(stderr, "%s\n", failure);
    return failure != NULL;
}
