/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world.c - joining, leaving, agreeing. */
#include "examples/common/world.h"

#include <stdint.h>
#include <stdlib.h>
#include <tutti/group.h>
#include <tutti/store.h>

#include "examples/common/say.h"

static tutti_status alone(void)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_status st = tutti_hash_store_open(&opts.store);

    if (st != TUTTI_OK)
        return st;
    opts.world_size = 1;
    st = tutti_init_process_group(&opts);
    tutti_store_close(opts.store);
    return st;
}

/* By tutti run or torchrun, by one of the mpiruns, or by srun. */
static bool launched(void)
{
    static const char *const signs[] = { "RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_ID" };
    size_t i;

    for (i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (getenv(signs[i]) != NULL)
            return true;
    return false;
}

bool world_join(void)
{
    if (launched())
        TRY(tutti_init_process_group(NULL));
    else
        TRY(alone());
    return true;
}

bool world_leave(void)
{
    TRY(tutti_destroy_process_group(NULL));
    return true;
}

bool world_agrees(bool ok)
{
    int32_t word = ok;

    TRY(tutti_broadcast(TUTTI_SPAN(&word, 1), 0, NULL));
    return word != 0;
}
