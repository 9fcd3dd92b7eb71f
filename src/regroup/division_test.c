/* SPDX-License-Identifier: BSD-3-Clause
 *
 * division_test.c
 * Goal    a backend that splits what a divided group has is told so: of members at create, of those in no part at sit_out, of those
 *         that cannot come as far as create there, too; in the parent's turn; and of nothing else.
 * Method  a world of one rank, of backends that this program registers and that note what they are asked for. What ranks
 *         have to agree on is shown where there are several (tests/fake_nccl, nccl_split). */
#include "backend/plugin/plugin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/tutti.h>

enum { LONG_MS = 60000 };

static tutti_group *world;

/* What was noted. */
static struct {
    int            n_creates, n_sat_out, n_runs, runs_before_create;
    tutti_backend *split_from, *sat_out_of;
    uint64_t       step;
    int            color;
    bool           has_failed, cannot; /* the second: of the backend of the host */
    int64_t        timeout_ms;
    uint64_t       last_seq;
    const char    *no_store_for; /* the prefix of a backend's store that does not open; NULL: all do */
} seen;

tutti_status __real_tutti_prefix_store_open(const char *prefix, tutti_store *inner, tutti_store **store_out);
tutti_status __wrap_tutti_prefix_store_open(const char *prefix, tutti_store *inner, tutti_store **store_out);

tutti_status __wrap_tutti_prefix_store_open(const char *prefix, tutti_store *inner, tutti_store **store_out)
{
    if (seen.no_store_for != NULL && strcmp(prefix, seen.no_store_for) == 0)
        return (tti_plugin_host.fail)(TUTTI_E_NOMEM, "no memory for the store");
    return __real_tutti_prefix_store_open(prefix, inner, store_out);
}

static tutti_status make(const tutti_backend_config *config, tutti_backend **backend_out)
{
    tutti_backend *backend = calloc(1, sizeof *backend);

    if (backend == NULL)
        return TUTTI_E_NOMEM;
    backend->ops = config->ops;
    *backend_out = backend;
    return TUTTI_OK;
}

static tutti_status create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    seen.n_creates++;
    seen.runs_before_create = seen.n_runs;
    seen.split_from = config->split_from;
    seen.step = config->split_step;
    seen.color = config->split_color;
    return make(config, backend_out);
}

static tutti_status create_on_host(const tutti_backend_config *config, tutti_backend **backend_out)
{
    assert_null(config->split_from); /* it has no sit_out */
    return seen.cannot ? (tti_plugin_host.fail)(TUTTI_E_BACKEND, "the host is full") : make(config, backend_out);
}

static tutti_status run(tutti_backend *backend, const tutti_call *call)
{
    (void)backend;
    seen.n_runs++;
    seen.last_seq = call->seq;
    if (call->kind == TUTTI_CALL_ALL_GATHER && call->count > 0)
        memmove(call->list[0], call->in, (size_t)call->count * tutti_dtype_size(call->dtype));
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

static tutti_status sit_out(tutti_backend *backend, uint64_t step, int64_t timeout_ms, bool has_failed)
{
    seen.n_sat_out++;
    seen.sat_out_of = backend;
    seen.step = step;
    seen.timeout_ms = timeout_ms;
    seen.has_failed = has_failed;
    return has_failed ? (tti_plugin_host.fail)(TUTTI_E_STORE, "nobody wants to know this") : TUTTI_OK;
}

static const tutti_backend_ops splitting = {
    .api = TUTTI_BACKEND_API, .size = sizeof(tutti_backend_ops), .name = "splits", .create = create, .run = run, .abort = drop,
    .destroy = destroy, .needs_no_peers = true, .sit_out = sit_out,
};

static const tutti_backend_ops on_host = {
    .api = TUTTI_BACKEND_API, .size = sizeof(tutti_backend_ops), .name = "host", .create = create_on_host, .run = run, .abort = drop,
    .destroy = destroy, .needs_no_peers = true,
};

/* As one that was built before there was a sit_out: what lies behind its table is nothing of it. */
static const tutti_backend_ops *of_version_1(void)
{
    static tutti_backend_ops old;

    old = splitting;
    old.api = 1;
    old.size = offsetof(tutti_backend_ops, sit_out);
    return &old;
}

static int register_all(void **state)
{
    (void)state;
    assert_int_equal(tutti_register_backend("splits", &splitting, 1u << TUTTI_CPU | 1u << TUTTI_CUDA), TUTTI_OK);
    assert_int_equal(tutti_register_backend("host", &on_host, 1u << TUTTI_CPU), TUTTI_OK);
    assert_int_equal(tutti_register_backend("old", of_version_1(), 1u << TUTTI_CUDA), TUTTI_OK);
    return 0;
}

static void begin(const char *backend)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    memset(&seen, 0, sizeof seen);
    assert_int_equal(tutti_hash_store_open(&opts.store), TUTTI_OK);
    opts.world_size = 1;
    opts.timeout_ms = LONG_MS;
    opts.backend = backend;
    assert_int_equal(tutti_create_process_group(&opts, &world), TUTTI_OK);
    tutti_store_close(opts.store);
    tutti_use_group(world);
    assert_null(seen.split_from);
}

static void end(void)
{
    tutti_use_group(NULL);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    world = NULL;
}

static tutti_status split(const tutti_group_options *opts, tutti_group **group_out)
{
    const int        me = 0, n = 1;
    const int *const lists[1] = { &me };

    return tutti_split_group(world, lists, &n, 1, opts, group_out);
}

static void test_member(void **state)
{
    tutti_group *part = NULL, *other = NULL;

    (void)state;
    begin("cpu:host,cuda:splits");
    assert_int_equal(split(NULL, &part), TUTTI_OK);
    assert_non_null(seen.split_from);
    assert_int_equal(seen.n_creates, 2);
    assert_int_equal(seen.step, 1);
    assert_int_equal(seen.color, 0);
    assert_int_equal(tutti_split_group_by_color(part, 5, NULL, &other), TUTTI_OK); /* of a part: its first division */
    assert_int_equal(seen.step, 1);
    assert_int_equal(seen.n_creates, 3);
    assert_int_equal(seen.n_sat_out, 0);
    end();
}

/* Wrapped, it hears of the backend that is inside. */
static void test_wrapped(void **state)
{
    tutti_group *part = NULL;

    (void)state;
    begin("cpu:host,cuda:debug-splits");
    assert_int_equal(split(NULL, &part), TUTTI_OK);
    assert_non_null(seen.split_from);
    assert_string_equal(seen.split_from->ops->name, "splits");
    end();
}

static void test_in_no_part(void **state)
{
    tutti_group *part = NULL;

    (void)state;
    begin("splits"); /* for both devices: one backend, asked once */
    assert_int_equal(tutti_split_group_by_color(world, -1, NULL, &part), TUTTI_OK);
    assert_ptr_equal(part, TUTTI_NON_MEMBER);
    assert_int_equal(seen.n_sat_out, 1);
    assert_int_equal(seen.n_creates, 1);
    assert_non_null(seen.sat_out_of);
    assert_int_equal(seen.step, 1);
    assert_int_equal(seen.timeout_ms, LONG_MS);
    assert_false(seen.has_failed);
    end();
}

/* What it fails with is told by the call, whatever sit_out says. */
static void test_cannot_come(void **state)
{
    tutti_group *part = NULL;

    (void)state;
    begin("cpu:host,cuda:splits");
    seen.cannot = true;
    assert_int_equal(split(NULL, &part), TUTTI_E_BACKEND);
    assert_non_null(strstr(tutti_last_error(), "the host is full"));
    assert_int_equal(seen.n_creates, 1);
    assert_int_equal(seen.n_sat_out, 1);
    assert_true(seen.has_failed);
    seen.cannot = false;
    assert_int_equal(split(NULL, &part), TUTTI_OK); /* the parent is as it was */
    assert_int_equal(seen.step, 2);
    end();
}

/* Of the world's next collective. */
static uint64_t next_number(void)
{
    float      x = 0;
    tutti_span span = tutti_span_of(&x, 1, TUTTI_F32);

    span.device.type = TUTTI_CUDA;
    assert_int_equal(tutti_all_reduce(span, TUTTI_SUM, world), TUTTI_OK);
    return seen.last_seq;
}

/* So early that it has no group: it has its turn, and sits out, as the others have theirs and may wait for it. */
static void test_cannot_begin(void **state)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *part = NULL;
    uint64_t            before;

    (void)state;
    begin("cpu:host,cuda:splits");
    before = next_number();
    opts.backend = "nowhere";
    assert_int_equal(split(&opts, &part), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "nowhere"));
    assert_int_equal(seen.n_sat_out, 1);
    assert_non_null(seen.sat_out_of);
    assert_true(seen.has_failed);
    assert_int_equal(seen.step, 1);
    assert_int_equal(seen.timeout_ms, 0);
    assert_int_equal(next_number(), before + 2);
    assert_int_equal(tutti_split_group_by_color(world, -1, &opts, &part), TUTTI_E_ARG); /* also in no part */
    assert_int_equal(seen.n_sat_out, 2);
    assert_int_equal(seen.step, 2);
    assert_int_equal(split(NULL, &part), TUTTI_OK); /* the parent is as it was */
    assert_int_equal(seen.step, 3);
    end();
}

/* Nor with lists or options that are refused before anything is looked up. */
static void test_refused(void **state)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *part = NULL;
    uint64_t            before;

    (void)state;
    begin("cpu:host,cuda:splits");
    before = next_number();
    assert_int_equal(tutti_split_group(world, NULL, NULL, 0, NULL, &part), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "there are no lists"));
    assert_int_equal(seen.n_sat_out, 1);
    assert_true(seen.has_failed);
    assert_int_equal(seen.step, 1);
    opts.use_local_synchronization = true;
    assert_int_equal(split(&opts, &part), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "use_local_synchronization is for tutti_new_group"));
    assert_int_equal(seen.n_sat_out, 2);
    assert_int_equal(seen.step, 2);
    assert_int_equal(next_number(), before + 3);
    assert_int_equal(split(NULL, &part), TUTTI_OK);
    assert_int_equal(seen.step, 3);
    end();
}

/* A backend that has not been asked for its part cannot have told that of it which is divided. */
static void test_not_asked(void **state)
{
    tutti_group *part = NULL;

    (void)state;
    begin("cpu:host,cuda:splits");
    seen.no_store_for = "cuda/";
    assert_int_equal(split(NULL, &part), TUTTI_E_NOMEM);
    assert_non_null(strstr(tutti_last_error(), "no memory for the store"));
    assert_int_equal(seen.n_creates, 1); /* the world's */
    assert_int_equal(seen.n_sat_out, 1);
    assert_true(seen.has_failed);
    seen.no_store_for = NULL;
    assert_int_equal(split(NULL, &part), TUTTI_OK);
    end();
}

/* The parent's calls are counted alike on all members, whatever backend each of them names for its part. */
static void test_own_backend_has_the_turn(void **state)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *part = NULL;
    uint64_t            before;

    (void)state;
    begin("cpu:host,cuda:splits");
    before = next_number();
    opts.backend = "host";
    assert_int_equal(split(&opts, &part), TUTTI_OK);
    assert_int_equal(next_number(), before + 2);
    assert_int_equal(split(NULL, &part), TUTTI_OK);
    assert_int_equal(next_number(), before + 4);
    end();
}

/* Behind what was issued, and before what comes then. */
static void test_turn(void **state)
{
    float        x[4] = { 0 };
    tutti_span   span = tutti_span_of(x, 4, TUTTI_F32);
    tutti_work  *works[8];
    tutti_group *part = NULL;
    int          i;

    (void)state;
    begin("cpu:host,cuda:splits");
    span.device.type = TUTTI_CUDA;
    for (i = 0; i < 8; i++)
        assert_int_equal(tutti_all_reduce_async(span, TUTTI_SUM, world, &works[i]), TUTTI_OK);
    assert_int_equal(split(NULL, &part), TUTTI_OK);
    assert_int_equal(seen.runs_before_create, 8);
    assert_int_equal(tutti_all_reduce(span, TUTTI_SUM, world), TUTTI_OK);
    for (i = 0; i < 8; i++) {
        assert_int_equal(tutti_work_wait(works[i]), TUTTI_OK);
        tutti_work_free(works[i]);
    }
    end();
}

/* A group that is no division, one with other backends, and a table that is older. */
static void test_not_told(void **state)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    (void)state;
    begin("cpu:host,cuda:splits");
    assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_OK);
    assert_null(seen.split_from);
    opts.backend = "host";
    assert_int_equal(split(&opts, &group), TUTTI_OK);
    assert_int_equal(seen.n_creates, 2);
    assert_int_equal(seen.n_sat_out, 0);
    end();
    begin("cpu:host,cuda:old");
    assert_int_equal(split(NULL, &group), TUTTI_OK);
    assert_null(seen.split_from);
    assert_int_equal(tutti_split_group_by_color(world, -1, NULL, &group), TUTTI_OK);
    assert_int_equal(seen.n_sat_out, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_member),   cmocka_unit_test(test_wrapped), cmocka_unit_test(test_in_no_part),
        cmocka_unit_test(test_cannot_come), cmocka_unit_test(test_turn), cmocka_unit_test(test_not_told),
        cmocka_unit_test(test_cannot_begin), cmocka_unit_test(test_not_asked), cmocka_unit_test(test_own_backend_has_the_turn),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, register_all, NULL);
}
