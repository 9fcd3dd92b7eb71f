/* SPDX-License-Identifier: BSD-3-Clause
 *
 * streamed_test.c
 * Goal    a backend that works in streams is told the place of each call when it is issued, and who follows it when it is
 *         waited for; what the device has not ended is not complete; every ticket is given back.
 * Method  a world of one over a table of the test's own, whose "device" ends a call when the test says so. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/plugin/backend.h>
#include <tutti/private.h>
#include <tutti/tutti.h>

struct tutti_ticket {
    void *marked; /* the stream that was there when the call was issued */
    bool  was_run;
};

/* Of the table; calls may be run on a worker. */
static struct {
    _Atomic(void *) marked, followed;
    _Atomic int     marks, runs, follows, waits, releases;
    atomic_bool     ended;
    atomic_bool     held; /* run stays inside */
    _Atomic int     outcome; /* a tutti_status */
} device;

static char line_a, line_b; /* two streams: only their addresses count */

static tutti_status create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    tutti_backend *b = calloc(1, sizeof *b);

    if (b == NULL)
        return TUTTI_E_NOMEM;
    b->ops = config->ops;
    *backend_out = b;
    return TUTTI_OK;
}

static tutti_status run(tutti_backend *backend, const tutti_call *call)
{
    (void)backend;
    device.runs++;
    while (device.held)
        sched_yield();
    if (call->ticket == NULL)
        return tti_fail(TUTTI_E_BACKEND, "a call has no ticket");
    call->ticket->was_run = true;
    return TUTTI_OK;
}

static void stop(tutti_backend *backend)
{
    (void)backend;
}

static void destroy(tutti_backend *backend)
{
    free(backend);
}

static tutti_status mark(tutti_backend *backend, int device_index, void *stream, tutti_ticket **ticket_out)
{
    tutti_ticket *t;

    (void)backend;
    if (device_index > 0)
        return tti_fail(TUTTI_E_ARG, "device %d is another one", device_index);
    t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->marked = stream;
    device.marked = stream;
    device.marks++;
    *ticket_out = t;
    return TUTTI_OK;
}

static tutti_status follow(tutti_ticket *ticket, void *stream)
{
    assert_true(ticket->was_run);
    device.followed = stream;
    device.follows++;
    return TUTTI_OK;
}

static bool test(tutti_ticket *ticket)
{
    assert_true(ticket->was_run);
    return device.ended;
}

static tutti_status wait_ticket(tutti_ticket *ticket, int64_t deadline_ns)
{
    const tutti_status outcome = (tutti_status)device.outcome;

    assert_true(ticket->was_run);
    device.waits++;
    if (!device.ended && deadline_ns == INT64_MAX)
        device.ended = true; /* a device that is waited for comes to its end */
    if (!device.ended)
        return tti_fail(TUTTI_E_TIMEOUT, "the device is not through");
    return outcome == TUTTI_OK ? TUTTI_OK : tti_fail(outcome, "the device has failed");
}

static void release(tutti_ticket *ticket)
{
    device.releases++;
    free(ticket);
}

static const tutti_stream_ops stream_ops = { .size = sizeof(tutti_stream_ops), .mark = mark, .follow = follow, .test = test,
                                             .wait = wait_ticket, .release = release };

static const tutti_backend_ops lines_ops = {
    .api = TUTTI_BACKEND_API,
    .size = sizeof(tutti_backend_ops),
    .name = "lines",
    .create = create,
    .run = run,
    .abort = stop,
    .destroy = destroy,
    .needs_no_peers = true,
    .takes_segments = true,
    .streams = &stream_ops,
};

static tutti_group *world;
static float        x[4];

static tutti_span on_device(int index)
{
    tutti_span span = TUTTI_SPAN(x, 4);

    span.device = (tutti_device){ TUTTI_CUDA, index };
    return span;
}

static int set_up(void **state)
{
    static bool        known;
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    (void)state;
    memset(&device, 0, sizeof device);
    if (!known && tutti_register_backend("lines", &lines_ops, 1u << TUTTI_CUDA) != TUTTI_OK)
        return -1;
    known = true;
    opts.world_size = 1;
    opts.backend = "cuda:lines";
    return tutti_create_process_group(&opts, &world) == TUTTI_OK ? tutti_set_stream(TUTTI_CUDA, NULL) != TUTTI_OK : -1;
}

/* Every ticket was given back. */
static int tear_down(void **state)
{
    (void)state;
    if (world != NULL)
        tutti_destroy_process_group(world);
    world = NULL;
    return device.marks == device.releases ? 0 : -1;
}

static void test_blocking(void **state)
{
    (void)state;
    assert_int_equal(tutti_all_reduce(on_device(0), TUTTI_SUM, world), TUTTI_OK);
    assert_null(device.marked);
    assert_int_equal(device.follows, 1);
    assert_int_equal(tutti_set_stream(TUTTI_CUDA, &line_a), TUTTI_OK);
    assert_ptr_equal(tutti_get_stream(TUTTI_CUDA), &line_a);
    assert_int_equal(tutti_broadcast(on_device(0), 0, world), TUTTI_OK);
    assert_ptr_equal(device.marked, &line_a);
    assert_ptr_equal(device.followed, &line_a);
    assert_int_equal(device.waits, 0);
    assert_int_equal(tutti_barrier(world), TUTTI_OK); /* the program itself is not through before the device is */
    assert_int_equal(device.follows, 2);
    assert_int_equal(device.waits, 1);
}

/* The place is the issuer's, who follows is the one that waits. */
static void test_work(void **state)
{
    tutti_work *work = NULL;

    (void)state;
    tutti_set_stream(TUTTI_CUDA, &line_a);
    assert_int_equal(tutti_all_reduce_async(on_device(0), TUTTI_SUM, world, &work), TUTTI_OK);
    assert_ptr_equal(device.marked, &line_a);
    tutti_set_stream(TUTTI_CUDA, &line_b);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    assert_ptr_equal(device.marked, &line_a);
    assert_ptr_equal(device.followed, &line_b);
    assert_false(tutti_work_is_completed(work));
    assert_int_equal(tutti_work_status(work), TUTTI_E_STATE);
    assert_int_equal(tutti_work_wait_for(work, 1), TUTTI_E_TIMEOUT);
    assert_non_null(strstr(tutti_last_error(), "it goes on"));
    device.ended = true;
    assert_true(tutti_work_is_completed(work));
    assert_int_equal(tutti_work_status(work), TUTTI_OK);
    assert_int_equal(tutti_work_wait_for(work, 1), TUTTI_OK);
    tutti_work_free(work);
}

/* A work may be asked after its group, and is what the device came to. */
static void test_failed_on_device(void **state)
{
    tutti_work *work = NULL;

    (void)state;
    assert_int_equal(tutti_all_reduce_async(on_device(0), TUTTI_SUM, world, &work), TUTTI_OK);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    world = NULL;
    device.outcome = TUTTI_E_BACKEND;
    assert_int_equal(tutti_work_wait_for(work, TUTTI_INFINITE), TUTTI_E_BACKEND);
    assert_int_equal(tutti_work_status(work), TUTTI_E_BACKEND);
    tutti_work_free(work);
}

/* What a scope has recorded is one call, and its works share one ticket. */
static void test_scope(void **state)
{
    tutti_work *works[2] = { NULL, NULL }, *whole = NULL;
    int         i, which = -1;

    (void)state;
    assert_int_equal(tutti_coalescing_begin(world), TUTTI_OK);
    for (i = 0; i < 2; i++)
        assert_int_equal(tutti_all_reduce_async(on_device(0), TUTTI_SUM, world, &works[i]), TUTTI_OK);
    assert_int_equal(device.marks, 0);
    device.held = true;
    assert_int_equal(tutti_coalescing_end(world, &whole), TUTTI_OK);
    assert_int_equal(device.marks, 1);
    assert_int_equal(tutti_work_wait_for(works[1], 20), TUTTI_E_TIMEOUT); /* of a group without a backend for the host */
    device.held = false;
    assert_int_equal(tutti_work_wait(works[1]), TUTTI_OK);
    assert_int_equal(device.runs, 1);
    assert_int_equal(device.follows, 1);
    assert_false(tutti_work_is_completed(works[0]));
    assert_int_equal(tutti_wait_any(works, 2, 1, &which), TUTTI_E_TIMEOUT);
    device.ended = true;
    assert_int_equal(tutti_wait_any(works, 2, TUTTI_INFINITE, &which), TUTTI_OK);
    for (i = 0; i < 2; i++)
        tutti_work_free(works[i]);
    tutti_work_free(whole);
}

static void test_refused(void **state)
{
    tutti_stream_ops  bad = stream_ops;
    tutti_backend_ops ops = lines_ops;
    tutti_work       *work = NULL;

    (void)state;
    assert_int_equal(tutti_all_reduce(on_device(3), TUTTI_SUM, world), TUTTI_E_ARG);
    assert_int_equal(tutti_all_reduce_async(on_device(3), TUTTI_SUM, world, &work), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "device 3 is another one"));
    assert_int_equal(device.runs, 0);
    assert_int_equal(tutti_all_reduce(on_device(0), TUTTI_SUM, world), TUTTI_OK); /* no number was lost */
    assert_int_equal(tutti_set_stream(TUTTI_CPU, &line_a), TUTTI_E_ARG);
    bad.follow = NULL;
    ops.streams = &bad;
    assert_int_equal(tutti_register_backend("lines-less", &ops, 1u << TUTTI_CUDA), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "'follow'"));
    bad = stream_ops;
    bad.size = 0; /* whoever does not say it cannot be looked into */
    assert_int_equal(tutti_register_backend("lines-less", &ops, 1u << TUTTI_CUDA), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "0 bytes"));
    ops.streams = &stream_ops;
    ops.takes_segments = false;
    assert_int_equal(tutti_register_backend("lines-less", &ops, 1u << TUTTI_CUDA), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "does not take segments"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_blocking, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_work, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failed_on_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scope, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
