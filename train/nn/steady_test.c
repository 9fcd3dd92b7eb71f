/* SPDX-License-Identifier: BSD-3-Clause
 *
 * steady_test.c
 * Goal    a loop that trains a transformer block asks the system for no memory once it has settled.
 * Method  embedding, causal attention, a feed-forward part, cross entropy, AdamW, for some steps. The
 *         library's own counter must stand still; and so must a count of calls of malloc and its kin, put
 *         in by the linker, where no sanitizer has them already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <tutti/nn.h>
#include <tutti/optim.h>

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

enum { VOCAB = 61, DIM = 32, BATCH = 3, TIME = 17, SETTLED = 3, STEPS = 12 };

static int64_t calls;

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

/* x + attention(norm(x)), then x + feed-forward(norm(x)) */
static tutti_tensor *block_forward(tutti_module *m, tutti_tensor *x)
{
    tutti_tensor *h = tutti_forward(tutti_module_child(m, "ln_1"), x);

    x = tutti_tensor_add(x, tutti_forward(tutti_module_child(m, "attn"), h));
    h = tutti_forward(tutti_module_child(m, "ln_2"), x);
    h = tutti_tensor_gelu_tanh(tutti_forward(tutti_module_child(m, "c_fc"), h));
    return tutti_tensor_add(x, tutti_forward(tutti_module_child(m, "c_proj"), h));
}

static tutti_module *model(void)
{
    tutti_multihead_options heads = TUTTI_MULTIHEAD_OPTIONS;
    tutti_module *m = tutti_sequential();
    tutti_module *block = tutti_module_create("block", block_forward, NULL, NULL);

    heads.is_causal = true;
    heads.dropout = 0.1;
    tutti_module_add(m, "wte", tutti_embedding(VOCAB, DIM, -1));
    tutti_module_add(m, "h", block);
    tutti_module_add(block, "ln_1", tutti_layer_norm(1, SHAPE(DIM), 1e-5));
    tutti_module_add(block, "attn", tutti_multihead_attention(DIM, 4, &heads));
    tutti_module_add(block, "ln_2", tutti_layer_norm(1, SHAPE(DIM), 1e-5));
    tutti_module_add(block, "c_fc", tutti_linear(DIM, 4 * DIM, true));
    tutti_module_add(block, "c_proj", tutti_linear(4 * DIM, DIM, true));
    tutti_module_add(m, "ln_f", tutti_rms_norm(1, SHAPE(DIM), -1.0));
    tutti_module_add(m, "head", tutti_linear(DIM, VOCAB, false));
    return m;
}

/* The next token is the one after, of a sequence that counts. */
static double step(tutti_module *m, tutti_optim *opt, int number)
{
    tutti_tensor *tokens, *target, *logits, *loss;
    int64_t data[BATCH * (TIME + 1)];
    double v = NAN;

    for (int b = 0; b < BATCH; b++)
        for (int t = 0; t <= TIME; t++)
            data[b * (TIME + 1) + t] = (number * 7 + b * 13 + 3 * t) % VOCAB;
    tutti_scope_begin();
    tokens = tutti_tensor_from_data(data, TUTTI_I64, 2, SHAPE(BATCH, TIME + 1));
    target = tutti_tensor_flatten(tutti_tensor_narrow(tokens, 1, 1, TIME), 0);
    logits = tutti_forward(m, tutti_tensor_narrow(tokens, 1, 0, TIME));
    logits = tutti_tensor_reshape(logits, 2, SHAPE(BATCH * TIME, VOCAB));
    loss = tutti_tensor_cross_entropy(logits, target, NULL);
    tutti_optim_zero_grad(opt);
    assert_int_equal(tutti_tensor_backward(loss), TUTTI_OK);
    assert_int_equal(tutti_optim_step(opt), TUTTI_OK);
    assert_int_equal(tutti_tensor_item(loss, &v), TUTTI_OK);
    tutti_scope_end();
    return v;
}

static void a_settled_loop_takes_no_memory(void **state)
{
    tutti_adam_options opts = TUTTI_ADAMW_OPTIONS;
    tutti_module *m;
    tutti_optim *opt;
    tutti_tensor *const *params;
    double first, loss = 0.0;
    int64_t misses = 0, before = 0;
    int n;

    (void)state;
    tutti_manual_seed(3);
    m = model();
    params = tutti_module_parameters(m, &n);
    opts.lr = 1e-2;
    opt = tutti_adamw(params, n, &opts);
    assert_non_null(opt);
    first = step(m, opt, 0);
    for (int i = 1; i < STEPS; i++) {
        if (i == SETTLED) {
            misses = tutti_cache_misses();
            before = calls;
        }
        loss = step(m, opt, i);
    }
    assert_true(loss < first);
#ifdef COUNTED
    assert_true(before > 0); /* the count does count */
#endif
#if defined(__SANITIZE_ADDRESS__)
    (void)misses, (void)before; /* it keeps no blocks, so that uses after free are seen */
#else
    assert_int_equal(tutti_cache_misses(), misses);
    assert_int_equal(calls, before);
#endif
    tutti_optim_free(opt);
    tutti_module_free(m);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_settled_loop_takes_no_memory) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
