/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 04_all_reduce.c - a collective on a group of some ranks.
 *
 * Ranks: two or more; ranks 0 and 1 add up.
 *
 *     cc 04_all_reduce.c -o 04_all_reduce $(pkg-config --cflags --libs tutti)
 *     tutti run --standalone --nproc-per-node=3 ./04_all_reduce */
#include <stdio.h>
#include <tutti/tutti.h>

#define TRY(call)                                                                                  \
    if ((call) != TUTTI_OK)                                                                        \
    return fprintf(stderr, "%s\n", tutti_last_error()), 1

int main(void)
{
    const int    members[] = { 0, 1 };
    tutti_group *pair = TUTTI_NO_GROUP;
    float        x = 1.0f;

    TRY(tutti_init_process_group(NULL));
    TRY(tutti_new_group(members, 2, NULL, &pair)); /* every rank of the world calls it */
    if (pair != TUTTI_NON_MEMBER)
        TRY(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, pair));
    printf("rank %d has data %.1f\n", tutti_get_rank(NULL), (double)x);
    TRY(tutti_destroy_process_group(NULL)); /* and the groups made from it */
    return 0;
}
