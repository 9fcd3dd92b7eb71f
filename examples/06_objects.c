/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 06_objects.c - values of any sizes: every rank brings a text, all get all of them.
 *
 * Ranks: any number.
 *
 *     cc 06_objects.c -o 06_objects $(pkg-config --cflags --libs tutti)
 *     tutti run --standalone --nproc-per-node=3 ./06_objects */
#include <stdio.h>
#include <string.h>
#include <tutti/tutti.h>

#define TRY(call)                                                                                  \
    if ((call) != TUTTI_OK)                                                                        \
    return fprintf(stderr, "%s\n", tutti_last_error()), 1

int main(void)
{
    const char   *parts[] = { "nobody", "knows the others'", "sizes" };
    tutti_objects got = TUTTI_OBJECTS_NONE;
    const char   *own;
    int           r;

    TRY(tutti_init_process_group(NULL));
    own = parts[tutti_get_rank(NULL) % 3];
    TRY(tutti_all_gather_object(own, strlen(own), NULL, &got));
    printf("rank %d:", tutti_get_rank(NULL));
    for (r = 0; r < got.n; r++)
        printf(" %s", (const char *)got.at[r].data); /* a NUL stands behind each object */
    printf("\n");
    tutti_objects_free(&got);
    TRY(tutti_destroy_process_group(NULL));
    return 0;
}
