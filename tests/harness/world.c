/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world.c - how ranks of a test join their world and leave it. A file of its own, so that tests of
 * tt_main_bare() link no groups. */
#include "harness/run.h"

#include <tutti/init.h>

static tutti_status join(tt_ctx *t, int64_t timeout_ms, void *store)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_status       st;

    opts.timeout_ms = timeout_ms;
    opts.backend = t->backend;
    if (store == NULL) {
        opts.init_method = t->init_method;
        return tutti_init_process_group(&opts);
    }
    opts.store = store;
    opts.rank = t->rank;
    opts.world_size = t->size;
    st = tutti_create_process_group(&opts, &t->group);
    if (st == TUTTI_OK)
        tutti_use_group(t->group);
    return st;
}

/* A body that has ended its process's world itself is fine; one whose rank is a thread says so by setting
 * t->group to NULL. */
static void leave(tt_ctx *t)
{
    tutti_group *group = t->group;

    t->group = NULL;
    if (group != NULL)
        tutti_use_group(NULL);
    else if (!tutti_is_initialized())
        return;
    assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
}

static void *store_open(void)
{
    tutti_store *store = NULL;

    return tutti_hash_store_open(&store) == TUTTI_OK ? store : NULL;
}

static void store_close(void *store)
{
    tutti_store_close(store);
}

int tt_main(const tt_test *tests, size_t n)
{
    static const tt_world_ops ops = { join, leave, store_open, store_close };

    return tt_run_all(tests, n, &ops);
}
