/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_index_test.c
 * Goal    what a work has written, and what hooks are told, is memory of the device that the spans of the call were of, so that a
 *         collective on it goes there; all memory of the host is of one device.
 * Method  one rank of a world of three over backend "fake", which moves nothing; a table around it notes the device of each call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "backend/fake/fake.h"
#include <tutti/future.h>
#include <tutti/hooks.h>
#include <tutti/private.h>
#include <tutti/tutti.h>

enum { RANK = 1, SIZE = 3, COUNT = 4, GPU = 1, LONG_MS = 30000 };

static tutti_group *world;
static float        memory[7 * COUNT]; /* never looked into */
static _Atomic int  noted;             /* the device of the latest call or message */

/* ---- the backend ---- */

static tutti_status create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    tutti_status st = tti_fake_backend_ops.create(config, backend_out);

    if (st == TUTTI_OK)
        (*backend_out)->ops = config->ops;
    return st;
}

static tutti_status run(tutti_backend *backend, const tutti_call *call)
{
    noted = call->device_index;
    return tti_fake_backend_ops.run(backend, call);
}

static tutti_status post(tutti_backend *backend, const tutti_message *message, tutti_request **request_out)
{
    noted = message->device_index;
    return tti_fake_backend_ops.post(backend, message, request_out);
}

static int register_backend(void **state)
{
    static tutti_backend_ops ops;

    (void)state;
    ops = tti_fake_backend_ops;
    ops.name = "noting";
    ops.create = create;
    ops.run = run;
    ops.post = post;
    return tutti_register_backend("noting", &ops, 1u << TUTTI_CUDA) != TUTTI_OK;
}

static int set_up(void **state)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    (void)state;
    opts.rank = RANK;
    opts.world_size = SIZE;
    opts.timeout_ms = LONG_MS;
    opts.backend = "cpu:fake,cuda:noting";
    return tutti_create_process_group(&opts, &world) != TUTTI_OK;
}

static int tear_down(void **state)
{
    (void)state;
    return tutti_destroy_process_group(world) != TUTTI_OK;
}

/* ---- operations on the second GPU: lists of three parts at 0 and at 3, one more part at 6 ---- */

static tutti_span on_gpu(int part, int n_parts)
{
    tutti_span span = TUTTI_SPAN(memory + part * COUNT, (int64_t)n_parts * COUNT);

    span.device = (tutti_device){ .type = TUTTI_CUDA, .index = GPU };
    return span;
}

static tutti_span own(void)
{
    return on_gpu(6, 1);
}

static const tutti_span *list(int first)
{
    static tutti_span spans[2 * SIZE];
    int               i;

    for (i = 0; i < 2 * SIZE; i++)
        spans[i] = on_gpu(i, 1);
    return &spans[first];
}

static tutti_status do_all_reduce(tutti_work **work_out)
{
    return tutti_all_reduce_async(own(), TUTTI_SUM, world, work_out);
}

static tutti_status do_broadcast(tutti_work **work_out)
{
    return tutti_broadcast_async(own(), RANK, world, work_out);
}

static tutti_status do_broadcast_of_another(tutti_work **work_out)
{
    return tutti_broadcast_async(own(), 0, world, work_out);
}

static tutti_status do_reduce(tutti_work **work_out)
{
    return tutti_reduce_async(own(), RANK, TUTTI_SUM, world, work_out);
}

static tutti_status do_all_gather(tutti_work **work_out)
{
    return tutti_all_gather_async(list(0), SIZE, own(), world, work_out);
}

static tutti_status do_all_gather_into_tensor(tutti_work **work_out)
{
    return tutti_all_gather_into_tensor_async(on_gpu(0, SIZE), own(), world, work_out);
}

static tutti_status do_gather(tutti_work **work_out)
{
    return tutti_gather_async(list(0), SIZE, own(), RANK, world, work_out);
}

static tutti_status do_scatter(tutti_work **work_out)
{
    return tutti_scatter_async(own(), list(0), SIZE, RANK, world, work_out);
}

static tutti_status do_gather_v(tutti_work **work_out)
{
    return tutti_gather_v_async(list(0), SIZE, own(), RANK, world, work_out);
}

static tutti_status do_scatter_v(tutti_work **work_out)
{
    return tutti_scatter_v_async(own(), list(0), SIZE, RANK, world, work_out);
}

static tutti_status do_reduce_scatter(tutti_work **work_out)
{
    return tutti_reduce_scatter_async(own(), list(0), SIZE, TUTTI_SUM, world, work_out);
}

static tutti_status do_reduce_scatter_tensor(tutti_work **work_out)
{
    return tutti_reduce_scatter_tensor_async(own(), on_gpu(0, SIZE), TUTTI_SUM, world, work_out);
}

static tutti_status do_all_to_all(tutti_work **work_out)
{
    return tutti_all_to_all_async(list(SIZE), SIZE, list(0), SIZE, world, work_out);
}

static tutti_status do_all_to_all_single(tutti_work **work_out)
{
    return tutti_all_to_all_single_async(on_gpu(SIZE, SIZE), on_gpu(0, SIZE), NULL, NULL, world, work_out);
}

static tutti_status do_all_reduce_coalesced(tutti_work **work_out)
{
    return tutti_all_reduce_coalesced_async(list(0), SIZE, TUTTI_SUM, world, work_out);
}

static tutti_status do_recv(tutti_work **work_out)
{
    return tutti_irecv(own(), 0, 0, world, work_out);
}

static tutti_status do_send(tutti_work **work_out)
{
    return tutti_isend(own(), 0, 0, world, work_out);
}

static tutti_status do_batch(tutti_work **work_out)
{
    const tutti_p2p_op op = { .span = own(), .peer = 0 };

    return tutti_batch_isend_irecv(&op, 1, world, work_out);
}

static const struct operation {
    const char *name;
    tutti_status (*issue)(tutti_work **work_out);
    int n_spans;   /* that are written */
    int n_watched; /* that hooks are told */
} operations[] = {
    { "all_reduce", do_all_reduce, 1, 2 },
    { "broadcast", do_broadcast, 1, 1 },
    { "broadcast of another", do_broadcast_of_another, 1, 1 },
    { "reduce", do_reduce, 1, 2 },
    { "all_gather", do_all_gather, SIZE, SIZE + 1 },
    { "all_gather_into_tensor", do_all_gather_into_tensor, SIZE, SIZE + 1 },
    { "gather", do_gather, SIZE, SIZE + 1 },
    { "scatter", do_scatter, 1, SIZE + 1 },
    { "gather_v", do_gather_v, SIZE, 2 * SIZE },
    { "scatter_v", do_scatter_v, 1, 2 * SIZE },
    { "reduce_scatter", do_reduce_scatter, 1, SIZE + 1 },
    { "reduce_scatter_tensor", do_reduce_scatter_tensor, 1, SIZE + 1 },
    { "all_to_all", do_all_to_all, SIZE, 2 * SIZE },
    { "all_to_all_single", do_all_to_all_single, SIZE, 2 * SIZE },
    { "all_reduce_coalesced", do_all_reduce_coalesced, SIZE, 2 * SIZE },
    { "recv", do_recv, 1, 1 },
    { "send", do_send, 0, 1 },
    { "batch", do_batch, 1, 1 },
};

enum { N_OPERATIONS = sizeof operations / sizeof operations[0] };

/* ---- results ---- */

/* How many of them are. */
static int count_on_gpu(const tutti_span *spans, int n)
{
    int i, count = 0;

    for (i = 0; i < n; i++)
        count += spans[i].device.type == TUTTI_CUDA && spans[i].device.index == GPU;
    return count;
}

static void assert_on_gpu(const struct operation *operation, const tutti_span *spans, int n)
{
    if (n != operation->n_spans || count_on_gpu(spans, n) != n)
        fail_msg("%s: %d of %d spans are of the GPU, not %d", operation->name, count_on_gpu(spans, n), n, operation->n_spans);
}

static void look_at_future(const struct operation *operation, tutti_work *work)
{
    tutti_future *future = NULL;
    void         *value = NULL;

    assert_int_equal(tutti_work_get_future(work, &future), TUTTI_OK);
    assert_int_equal(tutti_future_wait(future, LONG_MS), TUTTI_OK);
    assert_int_equal(tutti_future_value(future, &value), TUTTI_OK);
    assert_on_gpu(operation, ((const tutti_spans *)value)->at, ((const tutti_spans *)value)->n);
    tutti_future_free(future);
}

/* The result is what the next call works on. */
static void chain(const struct operation *operation, tutti_span result)
{
    noted = -1;
    assert_int_equal(tutti_all_reduce(result, TUTTI_SUM, world), TUTTI_OK);
    if (noted != GPU)
        fail_msg("%s: what follows it goes to GPU %d", operation->name, noted);
}

static void a_result_is_where_it_was_written(void **state)
{
    tutti_span  spans[SIZE];
    tutti_work *work = NULL;
    int         i, n = 0;

    (void)state;
    for (i = 0; i < N_OPERATIONS; i++) {
        noted = -1;
        assert_int_equal(operations[i].issue(&work), TUTTI_OK);
        assert_int_equal(tutti_work_wait(work), TUTTI_OK);
        assert_int_equal(noted, GPU);
        assert_int_equal(tutti_work_result(work, spans, SIZE, &n), TUTTI_OK);
        assert_on_gpu(&operations[i], spans, n);
        look_at_future(&operations[i], work);
        tutti_work_free(work);
        if (n > 0)
            chain(&operations[i], spans[n - 1]);
    }
}

static void the_host_is_one_device(void **state)
{
    float       x = 1.0f;
    tutti_span  span = TUTTI_SPAN(&x, 1);
    tutti_work *work = NULL;
    int         n = 0;

    (void)state;
    span.device.index = GPU; /* means nothing */
    assert_int_equal(tutti_all_reduce_async(span, TUTTI_SUM, world, &work), TUTTI_OK);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    assert_int_equal(tutti_work_result(work, &span, 1, &n), TUTTI_OK);
    assert_int_equal(n, 1);
    assert_int_equal(span.device.type, TUTTI_CPU);
    assert_int_equal(span.device.index, 0);
    tutti_work_free(work);
}

/* ---- hooks ---- */

typedef struct watched {
    int n, n_on_gpu;
} watched;

/* A pre hook, which is called on the thread that issues. */
static void look_at_event(const tutti_op_event *event, void *ctx)
{
    watched *spans = ctx;

    spans->n += event->n_ins + event->n_outs;
    spans->n_on_gpu += count_on_gpu(event->ins, event->n_ins) + count_on_gpu(event->outs, event->n_outs);
}

static void hooks_are_told_where(void **state)
{
    tutti_work *work = NULL;
    watched     spans;
    int         i, id = 0;

    (void)state;
    assert_int_equal(tutti_register_hook(world, TUTTI_HOOK_PRE, look_at_event, &spans, &id), TUTTI_OK);
    for (i = 0; i < N_OPERATIONS; i++) {
        spans = (watched){ .n = 0 };
        assert_int_equal(operations[i].issue(&work), TUTTI_OK);
        if (spans.n != operations[i].n_watched || spans.n_on_gpu != spans.n)
            fail_msg("%s: %d of %d spans are of the GPU, not %d", operations[i].name, spans.n_on_gpu, spans.n, operations[i].n_watched);
        assert_int_equal(tutti_work_wait(work), TUTTI_OK);
        tutti_work_free(work);
    }
    spans = (watched){ .n = 0 };
    assert_int_equal(tutti_recv(own(), 0, 0, world, NULL), TUTTI_OK);
    assert_int_equal(spans.n, 1);
    assert_int_equal(spans.n_on_gpu, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_result_is_where_it_was_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_host_is_one_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hooks_are_told_where, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, register_backend, NULL);
}
