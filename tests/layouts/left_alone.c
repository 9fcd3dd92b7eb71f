/* SPDX-License-Identifier: BSD-3-Clause
 *
 * left_alone.c - ranks of a job of which the last one is killed, as a batch system does it: what the others are told.
 *
 * Each rank adds once, so that the whole world has met; then the last one kills itself, and the others add again, which has to
 * fail with the end of that rank. They print the words, as one line, since srun mixes the lines of tasks, and end with 7. */
#include <signal.h>
#include <stdio.h>
#include <tutti/tutti.h>

static tutti_status add_up(void)
{
    int one = 1;

    return tutti_all_reduce(TUTTI_SPAN(&one, 1), TUTTI_SUM, NULL);
}

static void print_on_one_line(const char *text)
{
    for (; *text != '\0'; text++)
        putchar(*text == '\n' ? ' ' : *text);
    putchar('\n');
}

int main(void)
{
    tutti_status st = tutti_init_process_group(NULL);
    int          rank, size;

    if (st != TUTTI_OK) {
        fprintf(stderr, "%s\n", tutti_last_error());
        return 1;
    }
    rank = tutti_get_rank(NULL);
    size = tutti_get_world_size(NULL);
    st = add_up();
    if (st == TUTTI_OK && rank == size - 1)
        return raise(SIGKILL);
    if (st == TUTTI_OK) /* else that rank was gone before this one had all of the first sum */
        st = add_up();
    if (st != TUTTI_E_PEER) {
        fprintf(stderr, "rank %d was not told: %s\n", rank, tutti_last_error());
        return 1;
    }
    printf("rank %d was told: ", rank);
    print_on_one_line(tutti_last_error());
    return 7;
}
