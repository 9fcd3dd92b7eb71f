/* SPDX-License-Identifier: BSD-3-Clause
 *
 * url_job.c - a rank that joins by a URL, adds up, and tells; two_hosts.py starts it.
 *
 *   url_job URL RANK SIZE TIMEOUT_MS */
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

static tutti_status add_up(int32_t *sum_out)
{
    *sum_out = 1 + tutti_get_rank(NULL);
    return tutti_all_reduce(TUTTI_SPAN(sum_out, 1), TUTTI_SUM, NULL);
}

int main(int argc, char **argv)
{
    tutti_init_options options = TUTTI_INIT_OPTIONS;
    int32_t            sum = 0;

    if (argc != 5) {
        fprintf(stderr, "usage: url_job URL RANK SIZE TIMEOUT_MS\n");
        return 2;
    }
    options.init_method = argv[1];
    options.rank = atoi(argv[2]);
    options.world_size = atoi(argv[3]);
    options.timeout_ms = atoi(argv[4]);
    if (tutti_init_process_group(&options) == TUTTI_OK && add_up(&sum) == TUTTI_OK) {
        printf("rank %d of %d: the sum is %d\n", tutti_get_rank(NULL), tutti_get_world_size(NULL), (int)sum);
        if (tutti_destroy_process_group(NULL) == TUTTI_OK)
            return 0;
    }
    fprintf(stderr, "%s\n", tutti_last_error());
    return 1;
}
