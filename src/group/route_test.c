/* SPDX-License-Identifier: BSD-3-Clause
 *
 * route_test.c
 * Goal    one process plays any rank of a world of 64 with the backend "fake", meshes and groups included;
 *         spans go to the backend of their device; what is missing is named when it is needed. */
#include "group/group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/last.h"
#include "base/thread.h"
#include <tutti/backends.h>
#include <tutti/coalesce.h>
#include <tutti/device_mesh.h>
#include <tutti/hooks.h>
#include <tutti/plugin/backend.h>

enum { RANK = 37, SIZE = 64, LONG_MS = 30000 };

static tutti_group *world;

static tutti_status make(const char *backend)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.rank = RANK;
    opts.world_size = SIZE;
    opts.timeout_ms = LONG_MS;
    opts.backend = backend;
    return tutti_create_process_group(&opts, &world);
}

static int set_up(void **state)
{
    (void)state;
    world = NULL;
    unsetenv("TUTTI_FAKE_ERROR");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tutti_use_group(NULL);
    unsetenv("TUTTI_FAKE_ERROR");
    return world != NULL && tutti_destroy_process_group(world) != TUTTI_OK;
}

/* A grid of 4 x 4 x 4: rank 37 is 2, 1, 1. */
static void test_mesh_code(void **state)
{
    static const char *const names[] = { "pp", "dp", "tp" };
    static const int         shape[] = { 4, 4, 4 };
    const int               *at, *members;
    tutti_device_mesh       *mesh = NULL;
    tutti_group             *dp = NULL;

    (void)state;
    assert_int_equal(make("fake"), TUTTI_OK);
    tutti_use_group(world);
    assert_string_equal(tutti_get_backend(NULL), "fake");
    assert_string_equal(tutti_get_backend_config(NULL), "cpu:fake,cuda:fake");
    assert_int_equal(tutti_init_device_mesh(TUTTI_CUDA, shape, 3, names, &mesh), TUTTI_OK);
    at = tutti_device_mesh_get_coordinate(mesh);
    assert_int_equal(at[0] * 16 + at[1] * 4 + at[2], RANK);
    assert_int_equal(tutti_device_mesh_get_group_by_name(mesh, "dp", &dp), TUTTI_OK);
    assert_int_equal(tutti_get_world_size(dp), 4);
    members = tutti_get_process_group_ranks(dp);
    assert_int_equal(members[0], 33);
    assert_int_equal(members[3], 45);
    assert_int_equal(tutti_barrier(dp), TUTTI_OK);
    tutti_device_mesh_free(mesh);
}

/* A program that names no backend takes the one that its environment names. */
static void test_backend_of_the_environment(void **state)
{
    (void)state;
    setenv("TUTTI_BACKEND", "fake", 1);
    assert_int_equal(make(NULL), TUTTI_OK);
    unsetenv("TUTTI_BACKEND");
    assert_string_equal(tutti_get_backend(world), "fake");
    assert_int_equal(tutti_barrier(world), TUTTI_OK); /* of 64, which a backend with peers would wait for */
}

/* What the documentation says of buffers. */
static void test_data(void **state)
{
    int32_t     own[2] = { 7, 8 }, all[2 * SIZE], x = 5;
    tutti_work *work = NULL;
    int         i, source = -1;

    (void)state;
    memset(all, 0, sizeof all);
    assert_int_equal(make("fake"), TUTTI_OK);
    assert_int_equal(tutti_all_gather_into_tensor(TUTTI_SPAN(all, 2 * SIZE), TUTTI_SPAN(own, 2), world),
                     TUTTI_OK);
    for (i = 0; i < SIZE; i++)
        assert_true(all[2 * i] == 7 && all[2 * i + 1] == 8);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, world), TUTTI_OK);
    assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), 0, 0, world), TUTTI_OK);
    assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), 3, 0, world, &source), TUTTI_OK);
    assert_int_equal(source, 3);
    assert_int_equal(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, world, &work), TUTTI_OK);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    tutti_work_free(work);
    assert_int_equal(x, 5);
}

/* Several buffers at once, and parts of other sizes: as far as each has room. */
static void test_data_in_parts(void **state)
{
    int32_t         own[3] = { 7, 8, 9 }, a[SIZE], b[2 * SIZE], v[3 * SIZE];
    tutti_span      outs[2] = { TUTTI_SPAN(a, SIZE), TUTTI_SPAN(b, 2 * SIZE) };
    tutti_span      ins[2] = { TUTTI_SPAN(own, 1), TUTTI_SPAN(own + 1, 2) };
    int64_t         counts[SIZE];
    int32_t        *at = v;
    tutti_work     *work = NULL;
    int             i, k;

    (void)state;
    memset(v, 0, sizeof v);
    assert_int_equal(make("fake"), TUTTI_OK);
    assert_int_equal(tutti_all_gather_into_tensor_coalesced_async(outs, ins, 2, world, &work), TUTTI_OK);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    tutti_work_free(work);
    for (i = 0; i < SIZE; i++)
        assert_true(a[i] == 7 && b[2 * i] == 8 && b[2 * i + 1] == 9);
    for (i = 0; i < SIZE; i++)
        counts[i] = i % 4;
    counts[RANK] = 2;
    counts[RANK + 1] = 1; /* as many in all */
    assert_int_equal(tutti_all_gather_into_tensor_v(TUTTI_SPAN(v, 6 * SIZE / 4), TUTTI_SPAN(own, 2), counts, world),
                     TUTTI_OK);
    for (i = 0; i < SIZE; at += counts[i++])
        for (k = 0; k < counts[i]; k++)
            assert_int_equal(at[k], k < 2 ? own[k] : 0);
    assert_int_equal(tutti_reduce_scatter_tensor_coalesced(ins, outs, 2, TUTTI_SUM, world), TUTTI_OK);
    assert_true(own[0] == 7 && own[1] == 8 && own[2] == 9);
}

/* Works that a scope has recorded have the number and the times of its operation. */
static void test_recorded(void **state)
{
    tutti_group        *timed = NULL;
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_work         *works[2], *all = NULL;
    int32_t             x[2] = { 1, 2 };
    double              ms;
    int                 round, i;

    (void)state;
    assert_int_equal(make("fake"), TUTTI_OK);
    tutti_use_group(world);
    opts.enable_timing = true;
    assert_int_equal(tutti_new_group(NULL, 0, &opts, &timed), TUTTI_OK);
    for (round = 0; round < 2; round++) {
        assert_int_equal(tutti_coalescing_begin(timed), TUTTI_OK);
        for (i = 0; i < 2; i++)
            assert_int_equal(tutti_all_reduce_async(TUTTI_SPAN(x + i, 1), TUTTI_SUM, timed, &works[i]), TUTTI_OK);
        assert_int_equal(tutti_coalescing_end(timed, round == 0 ? NULL : &all), TUTTI_OK);
        for (i = 0; i < 2; i++) {
            ms = -1.0;
            assert_int_equal(tutti_work_wait(works[i]), TUTTI_OK);
            assert_int_equal(tutti_work_sequence(works[i]), round + 1);
            assert_int_equal(tutti_work_duration(works[i], &ms), TUTTI_OK);
            assert_true(ms >= 0.0 && ms < LONG_MS);
            tutti_work_free(works[i]);
        }
    }
    tutti_work_free(all);
}

static void test_error_on_collective(void **state)
{
    int32_t x = 5;

    (void)state;
    setenv("TUTTI_FAKE_ERROR", "1", 1);
    assert_int_equal(make("fake"), TUTTI_OK);
    assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), 0, 0, world), TUTTI_OK);
    assert_int_equal(tutti_barrier(world), TUTTI_E_BACKEND);
    assert_non_null(strstr(tutti_last_error(), "TUTTI_FAKE_ERROR"));
}

/* A world of one, on the real backend; device memory is somebody else's, and is never looked at. */
static void make_small(const char *backend)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_status       st;

    assert_int_equal(tutti_hash_store_open(&opts.store), TUTTI_OK);
    opts.world_size = 1;
    opts.backend = backend;
    st = tutti_create_process_group(&opts, &world);
    tutti_store_close(opts.store);
    assert_int_equal(st, TUTTI_OK);
}

static tutti_span on_cuda(void *data)
{
    tutti_span span = tutti_span_of(data, 1, TUTTI_F32);

    span.device.type = TUTTI_CUDA;
    return span;
}

static void assert_refused(tutti_status st, tutti_status wanted, const char *word)
{
    assert_int_equal(st, wanted);
    if (strstr(tutti_last_error(), word) == NULL)
        fail_msg("'%s' is not in '%s'", word, tutti_last_error());
}

static void test_routing(void **state)
{
    float            x = 1.0f;
    tutti_span       gathered = TUTTI_SPAN(&x, 1);
    void *const      nowhere = (void *)(uintptr_t)0x1000;
    const tutti_span cuda = on_cuda(nowhere);
    tutti_work      *work = NULL;

    (void)state;
    make_small("CPU:native,cuda:fake");
    assert_string_equal(tutti_get_backend(world), "cpu:native,cuda:fake");
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, world), TUTTI_OK);
    assert_int_equal(tutti_all_reduce(cuda, TUTTI_SUM, world), TUTTI_OK);
    assert_int_equal(tutti_broadcast(cuda, 0, world), TUTTI_OK);
    assert_int_equal(tutti_barrier(world), TUTTI_OK);
    assert_int_equal(tutti_all_reduce_async(cuda, TUTTI_SUM, world, &work), TUTTI_OK);
    assert_string_equal(tutti_work_name(work), "fake:all_reduce");
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    tutti_work_free(work);
    assert_refused(tutti_all_gather(&gathered, 1, cuda, world), TUTTI_E_ARG, "other spans are of 'cuda'");
}

/* Without a backend for the CPU the control traffic is that of the device there is. */
static void test_cuda_alone(void **state)
{
    float x = 1.0f;

    (void)state;
    assert_int_equal(make("cuda:fake"), TUTTI_OK);
    assert_int_equal(tutti_barrier(world), TUTTI_OK);
    assert_int_equal(tutti_all_reduce(on_cuda(&x), TUTTI_SUM, world), TUTTI_OK);
    assert_refused(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, world), TUTTI_E_UNSUPPORTED,
                   "no backend for 'cpu'");
}

static void test_missing_plugin(void **state)
{
    float x = 1.0f;

    (void)state;
    make_small("cpu:native,cuda:nccl");
    assert_string_equal(tutti_get_backend_config(world), "cpu:native,cuda:nccl");
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, world), TUTTI_OK);
    assert_refused(tutti_all_reduce(on_cuda(&x), TUTTI_SUM, world), TUTTI_E_UNSUPPORTED, "tutti-backend-nccl.so");
    assert_int_equal(tutti_barrier(world), TUTTI_OK); /* the group goes on */
}

static void test_no_backend(void **state)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL, *on_host = NULL;
    float               x = 1.0f;

    (void)state;
    assert_refused(make("nccl"), TUTTI_E_UNSUPPORTED, "tutti-backend-nccl.so");
    assert_refused(make("cpu:nccl"), TUTTI_E_ARG, "does not take memory of 'cpu'");
    make_small(NULL);
    assert_string_equal(tutti_get_backend(world), "native");
    assert_string_equal(tutti_get_backend_config(world), "cpu:native,cuda:native");
    assert_refused(tutti_all_reduce(on_cuda(&x), TUTTI_SUM, world), TUTTI_E_UNSUPPORTED, "'tutti-device-cuda.so' is not in ");
    assert_int_equal(tutti_barrier(world), TUTTI_OK); /* the group goes on */
    tutti_use_group(world);
    opts.backend = "fake"; /* a group may have another one than its world */
    assert_int_equal(tutti_new_group(NULL, 0, &opts, &group), TUTTI_OK);
    assert_string_equal(tutti_get_backend(group), "fake");
    opts.backend = "cpu:native";
    assert_int_equal(tutti_new_group(NULL, 0, &opts, &on_host), TUTTI_OK);
    assert_refused(tutti_all_reduce(on_cuda(&x), TUTTI_SUM, on_host), TUTTI_E_UNSUPPORTED, "no backend for 'cuda'");
    assert_int_equal(tutti_all_reduce(on_cuda(&x), TUTTI_SUM, group), TUTTI_OK);
    opts.backend = "cuda";
    assert_refused(tutti_new_group(NULL, 0, &opts, &group), TUTTI_E_ARG, "no backend 'cuda'");
    assert_null(tutti_get_backend(TUTTI_NON_MEMBER));
}

/* A backend of the program's own. */
static tutti_status own_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    tutti_backend *backend = malloc(sizeof *backend);

    if (backend == NULL || config->group_id != 0) {
        free(backend);
        return backend == NULL ? TUTTI_E_NOMEM : TUTTI_E_UNSUPPORTED;
    }
    assert_false(tti_is_only_thread()); /* from before it is there */
    backend->ops = config->ops;
    *backend_out = backend;
    return TUTTI_OK;
}

static tutti_status own_run(tutti_backend *backend, const tutti_call *call)
{
    (void)backend;
    return call->kind == TUTTI_CALL_BARRIER ? TUTTI_OK : TUTTI_E_UNSUPPORTED;
}

static void own_abort(tutti_backend *backend)
{
    (void)backend;
}

static void own_destroy(tutti_backend *backend)
{
    assert_false(tti_is_only_thread());
    free(backend);
}

static const tutti_backend_ops own_ops = {
    .api = TUTTI_BACKEND_API, .size = sizeof(tutti_backend_ops), .name = "programs", .create = own_create, .run = own_run,
    .abort = own_abort, .destroy = own_destroy,
};

static void make_alone(const char *backend)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    assert_int_equal(tutti_hash_store_open(&opts.store), TUTTI_OK);
    opts.world_size = 1;
    opts.timeout_ms = LONG_MS;
    opts.backend = backend;
    assert_int_equal(tutti_create_process_group(&opts, &world), TUTTI_OK);
    tutti_store_close(opts.store);
}

static void end_world(void)
{
    tutti_use_group(NULL);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    world = NULL;
}

/* Threads of the world that was before end meanwhile. */
static bool is_alone_soon(void)
{
    tti_port     *port = tti_port_system();
    const int64_t until_ns = tti_deadline(port, LONG_MS, 0);

    while (!tti_is_only_thread() && tti_port_now(port) < until_ns)
        port->ops->yield(port);
    return tti_is_only_thread();
}

/* Threads of ours run calls of the program's backend: while it has one, nobody can say that nothing of it goes on. */
static void test_threads_run_the_programs(void **state)
{
    tutti_group *group = NULL;

    (void)state;
#ifdef __SANITIZE_THREAD__ /* it has a thread in every process, which is not ours */
    skip();
#endif
    assert_int_equal(tutti_register_backend("programs", &own_ops, 1u << TUTTI_CPU), TUTTI_OK);
    make_alone("native");
    assert_true(is_alone_soon());
    end_world();
    make_alone("programs");
    assert_false(tti_is_only_thread());
    tutti_use_group(world);
    assert_int_equal(tutti_new_group(NULL, 0, NULL, &group), TUTTI_E_UNSUPPORTED); /* what is not made has no calls */
    assert_false(tti_is_only_thread());
    end_world();
    assert_true(is_alone_soon());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_mesh_code, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_backend_of_the_environment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_data_in_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_recorded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_error_on_collective, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_routing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cuda_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing_plugin, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_backend, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_threads_run_the_programs, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
