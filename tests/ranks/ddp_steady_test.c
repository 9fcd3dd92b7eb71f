/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ddp_steady_test.c
 * Goal    a step of a ddp that has settled asks the system for no memory on the thread that steps, beside what each of
 *         its collectives asks for, whatever the modes.
 * Method  calls of malloc and its kin are counted by the linker, where no sanitizer has them already. Collectives of
 *         the same kinds are counted by themselves; as they may take more at times, the best of several steps counts. */
#include "ddp_nets.h"

enum { SETTLED = 6, STEPS = 8 };

static _Thread_local int64_t calls;

#ifdef COUNTED
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);

void *__wrap_malloc(size_t n)
{
    calls++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    calls++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *block, size_t n)
{
    calls++;
    return __real_realloc(block, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    calls++;
    return __real_aligned_alloc(align, n);
}
#endif

/* Of an asynchronous all_reduce, and of a broadcast that is waited for. */
static int64_t of_collectives(tt_ctx *t, int n_reduced, int n_sent)
{
    tutti_work *work = NULL;
    tutti_span span;
    float x[64] = { 0.0f };
    int64_t before = calls, most_reduced = 0, most_sent = 0;

    for (int i = 0; i < 32; i++) {
        before = calls;
        OK(tutti_all_reduce_async(TUTTI_SPAN(x, 64), TUTTI_AVG, t->group, &work));
        OK(tutti_work_wait(work));
        tutti_work_free(work);
        most_reduced = calls - before > most_reduced ? calls - before : most_reduced;
        span = TUTTI_SPAN(x, 64);
        before = calls;
        OK(tutti_broadcast_coalesced(&span, 1, 0, tutti_get_global_rank(t->group, 0), t->group));
        most_sent = calls - before > most_sent ? calls - before : most_sent;
    }
    return n_reduced * most_reduced + n_sent * most_sent;
}

/* n_reduced: buckets, and the map of used parameters where there is one. */
static void settle(tt_ctx *t, const tutti_ddp_options *opts, int n_reduced, bool buffer)
{
    const int64_t allowed = of_collectives(t, n_reduced, buffer);
    int64_t least = INT64_MAX;
    tutti_ddp_options o = *opts;
    numbers n;

    numbers_make(&n, t);
    tutti_scope_begin();
    if (buffer)
        OK(tutti_module_register_buffer(n.m, "seen", tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(64)), true));
    tutti_scope_end();
    o.group = t->group;
    o.bucket_cap_bytes = 8;
    OK(tutti_ddp_create(n.m, &o, &n.ddp));
    for (int i = 0; i < SETTLED + STEPS; i++) {
        const int64_t before = calls;

        OK(numbers_step(&n, (double[]){ 1, 2, 3, 4 }));
        tutti_module_zero_grad(n.m);
        if (i >= SETTLED && calls - before < least)
            least = calls - before;
    }
    if (least > allowed)
        fail_msg("a step takes memory %lld times, its collectives %lld times", (long long)least, (long long)allowed);
    numbers_free(&n);
}

static void a_settled_step_takes_no_memory(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;

    settle(t, &opts, 2, false);
    settle(t, &opts, 2, true);
    opts.gradient_as_bucket_view = true;
    settle(t, &opts, 2, false);
    opts.find_unused_parameters = true;
    settle(t, &opts, 3, false);
    opts.find_unused_parameters = false;
    opts.static_graph = true;
    settle(t, &opts, 2, true);
}

int main(void)
{
    static const tt_test tests[] = { TT_TEST(a_settled_step_takes_no_memory, .ranks = 2, .transports = "shm") };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
