/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fixed_world_test.c
 * Goal    a backend whose table says that its worlds are fixed is asked for no other one: what would make one is refused, in words, before
 *         anything of the group is run or made, and the group goes on; another backend can be named. One that says that it cannot be
 *         used here is not met for. Tables that are older say neither.
 * Method  rank 0 of a world of two in one process, over backends that this program registers, which need no peers and count what they are
 *         asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/plugin/backend.h>
#include <tutti/plugin/store.h>
#include <tutti/tutti.h>

enum { LONG_MS = 60000 };

#define FIXED   "has worlds of all ranks that the job was started with, and no others\n  next: "
#define ANOTHER FIXED "name another backend in the options of all"

static tutti_group *world;
static int          n_creates, n_runs;
static bool         has_ended; /* the library below of "ends" */

static tutti_status create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    tutti_backend *backend = calloc(1, sizeof *backend);

    if (backend == NULL)
        return TUTTI_E_NOMEM;
    n_creates++;
    backend->ops = config->ops;
    *backend_out = backend;
    return TUTTI_OK;
}

static tutti_status run(tutti_backend *backend, const tutti_call *call)
{
    (void)backend;
    (void)call;
    n_runs++;
    return TUTTI_OK;
}

static void drop(tutti_backend *backend)
{
    (void)backend;
}

static void destroy(tutti_backend *backend)
{
    free(backend);
}

static tutti_status never_usable(void)
{
    return tutti_store_fail(TUTTI_E_STATE, "the library below has ended");
}

static tutti_status usable_once(void)
{
    return has_ended ? never_usable() : TUTTI_OK;
}

#define TABLE                                                                                                                      \
    .api = TUTTI_BACKEND_API, .size = sizeof(tutti_backend_ops), .create = create, .run = run, .abort = drop, .destroy = destroy,  \
    .needs_no_peers = true

static const tutti_backend_ops any_world = { TABLE, .name = "any" };
static const tutti_backend_ops fixed = { TABLE, .name = "fixed", .fixed_world = true };
static const tutti_backend_ops ended = { TABLE, .name = "ended", .usable = never_usable };
static const tutti_backend_ops ends = { TABLE, .name = "ends", .usable = usable_once };

/* As one that was built before there were these entries: what lies behind its table is nothing of it. */
static const tutti_backend_ops *of_version_3(void)
{
    static tutti_backend_ops old;

    old = fixed;
    old.usable = never_usable;
    old.api = 3;
    old.size = offsetof(tutti_backend_ops, usable);
    return &old;
}

static int register_all(void **state)
{
    (void)state;
    assert_int_equal(tutti_register_backend("any", &any_world, 1u << TUTTI_CPU), TUTTI_OK);
    assert_int_equal(tutti_register_backend("fixed", &fixed, 1u << TUTTI_CPU), TUTTI_OK);
    assert_int_equal(tutti_register_backend("ended", &ended, 1u << TUTTI_CPU | 1u << TUTTI_CUDA), TUTTI_OK);
    assert_int_equal(tutti_register_backend("ends", &ends, 1u << TUTTI_CPU), TUTTI_OK);
    assert_int_equal(tutti_register_backend("old", of_version_3(), 1u << TUTTI_CPU), TUTTI_OK);
    return 0;
}

/* ---- a world of two, of which this is rank 0 ---- */

static tutti_status make(const char *backend)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.world_size = 2;
    opts.rank = 0;
    opts.timeout_ms = LONG_MS;
    opts.backend = backend;
    return tutti_create_process_group(&opts, &world);
}

static void begin(const char *backend)
{
    assert_int_equal(make(backend), TUTTI_OK);
    n_creates = n_runs = 0;
}

static void end(void)
{
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    world = NULL;
}

static tutti_status shrink(bool has_list, const char *backend, tutti_group **group_out)
{
    const int           other = 1;
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;

    opts.backend = backend;
    return tutti_shrink_group(has_list ? &other : NULL, has_list, world, TUTTI_SHRINK_DEFAULT, &opts, group_out);
}

static tutti_status grow(const char *backend, tutti_group **group_out)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;

    opts.backend = backend;
    return tutti_grow_group(world, NULL, 1, &opts, group_out);
}

/* To this many members. */
static tutti_status reconfigure(int n)
{
    tutti_reconfigure_options opts = TUTTI_RECONFIGURE_OPTIONS;
    const char               *own = tutti_get_reconfigure_handle(world);
    char                      other[256];
    const char               *handles[] = { own, other };

    assert_true(strlen(own) < sizeof other);
    strcpy(other, own); /* as another process would have: another nonce behind the same beginning */
    other[strlen(other) - 1] = other[strlen(other) - 1] == '0' ? '1' : '0';
    opts.handles = handles;
    opts.n_handles = n;
    opts.uuid = n;
    return tutti_reconfigure(world, &opts);
}

/* With another process, which would have to come. */
static tutti_status merge(const char *backend, tutti_group **group_out)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_store        *store = NULL;
    tutti_status        st;
    int64_t             n = -1;

    opts.backend = backend;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    st = tutti_merge_remote_group(world, store, 3, &opts, group_out);
    assert_int_equal(tutti_store_num_keys(store, &n), TUTTI_OK); /* nobody has come */
    assert_int_equal(n, 0);
    tutti_store_close(store);
    return st;
}

static void expect_refused(tutti_status st, const char *words)
{
    assert_int_equal(st, TUTTI_E_UNSUPPORTED);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("not in '%s': '%s'", tutti_last_error(), words);
    assert_int_equal(n_creates, 0);
}

/* ---- the tests ---- */

static void test_refused(void **state)
{
    tutti_group *group = NULL;

    (void)state;
    begin("fixed");
    expect_refused(shrink(true, NULL, &group), "shrink_group: backend 'fixed' " ANOTHER);
    assert_true(group == TUTTI_NO_GROUP);
    expect_refused(shrink(false, NULL, &group), "shrink_group: backend 'fixed' " ANOTHER);
    expect_refused(grow(NULL, &group), "grow_group: backend 'fixed' " ANOTHER);
    assert_true(group == TUTTI_NO_GROUP);
    expect_refused(merge(NULL, &group), "merge_remote_group: backend 'fixed' " ANOTHER);
    assert_true(group == TUTTI_NO_GROUP);
    expect_refused(reconfigure(1), "reconfigure: backend 'fixed' " FIXED "pass the handles of all its members");
    assert_int_equal(n_runs, 0); /* nobody was waited for */
    assert_int_equal(tutti_barrier(world), TUTTI_OK);
    assert_int_equal(n_runs, 1);
    end();
}

/* As many as there were: what it takes to begin anew after a failure. */
static void test_as_many(void **state)
{
    (void)state;
    begin("fixed");
    assert_int_equal(reconfigure(2), TUTTI_OK);
    assert_int_equal(n_creates, 1);
    assert_int_equal(tutti_barrier(world), TUTTI_OK);
    end();
}

static void test_wrapped(void **state)
{
    tutti_group *group = NULL;

    (void)state;
    begin("any");
    expect_refused(shrink(true, "debug-fixed", &group), "backend 'debug-fixed' " ANOTHER);
    end();
}

/* Where the world is of one that has any, and a fixed one is named for what is to be made; and the other way round. */
static void test_named(void **state)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *group = NULL;

    (void)state;
    begin("any");
    expect_refused(shrink(true, "fixed", &group), "shrink_group: backend 'fixed' " ANOTHER);
    expect_refused(grow("fixed", &group), "grow_group: backend 'fixed' " ANOTHER);
    expect_refused(merge("fixed", &group), "merge_remote_group: backend 'fixed' " ANOTHER);
    end();
    assert_int_equal(tutti_hash_store_open(&opts.store), TUTTI_OK);
    opts.backend = "fixed";
    opts.timeout_ms = LONG_MS;
    expect_refused(tutti_join_group(&opts, NULL, &group), "join_group: backend 'fixed' " ANOTHER);
    tutti_store_close(opts.store);
    opts.store = NULL; /* nobody is looked for: there is nothing to find them by */
    expect_refused(tutti_join_group(&opts, NULL, &group), "join_group: backend 'fixed' " ANOTHER);
    begin("fixed");
    assert_int_equal(shrink(true, "any", &world), TUTTI_OK);
    assert_int_equal(tutti_get_world_size(world), 1);
    assert_string_equal(tutti_get_backend(world), "any");
    end();
}

static void test_old_table(void **state)
{
    (void)state;
    begin("old");
    assert_int_equal(shrink(true, NULL, &world), TUTTI_OK);
    assert_int_equal(tutti_get_world_size(world), 1);
    end();
}

/* In its words, and not in those of who finds no rank, or no other member. */
static void test_not_usable(void **state)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    (void)state;
    n_creates = 0;
    assert_int_equal(make("ended"), TUTTI_E_STATE);
    assert_string_equal(tutti_last_error(), "the library below has ended");
    opts.backend = "debug-ended";
    assert_int_equal(unsetenv("RANK"), 0);
    assert_int_equal(tutti_create_process_group(&opts, &world), TUTTI_E_STATE);
    assert_string_equal(tutti_last_error(), "the library below has ended");
    assert_int_equal(n_creates, 0);
}

static void expect_ended(tutti_status st)
{
    assert_int_equal(st, TUTTI_E_STATE);
    assert_string_equal(tutti_last_error(), "the library below has ended");
    assert_int_equal(n_creates, 0);
}

/* Also one that is not the first of those that are named; and whoever joins a world, or gives it other members, is told so, too. */
static void test_each_is_asked(void **state)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *group = NULL;

    (void)state;
    n_creates = 0;
    expect_ended(make("cpu:any,cuda:ended"));
    assert_int_equal(tutti_hash_store_open(&opts.store), TUTTI_OK);
    opts.backend = "cpu:any,cuda:ended";
    opts.timeout_ms = LONG_MS;
    expect_ended(tutti_join_group(&opts, NULL, &group));
    tutti_store_close(opts.store);
    begin("ends");
    has_ended = true;
    expect_ended(reconfigure(2));
    has_ended = false;
    assert_int_equal(reconfigure(2), TUTTI_OK);
    end();
}

/* One member's options are wrong: where the others may name another backend it comes, and tells them; where it knows that all are
 * refused it need not. */
static void test_bad_options(void **state)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    (void)state;
    begin("fixed");
    opts.timeout_ms = -2;
    expect_refused(tutti_grow_group(world, NULL, 1, &opts, &group), "grow_group: backend 'fixed' " ANOTHER);
    assert_int_equal(n_runs, 0);
    opts.backend = "any";
    assert_int_equal(tutti_grow_group(world, NULL, 1, &opts, &group), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "timeout_ms is -2"));
    assert_in_range(n_runs, 1, INT32_MAX);
    n_runs = 0;
    opts.size = 1;
    assert_int_equal(tutti_grow_group(world, NULL, 1, &opts, &group), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "the options say that they have 1 bytes"));
    assert_in_range(n_runs, 1, INT32_MAX);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused), cmocka_unit_test(test_as_many),   cmocka_unit_test(test_wrapped),
        cmocka_unit_test(test_named),   cmocka_unit_test(test_old_table), cmocka_unit_test(test_not_usable),
        cmocka_unit_test(test_each_is_asked), cmocka_unit_test(test_bad_options),
    };

    return cmocka_run_group_tests(tests, register_all, NULL);
}
