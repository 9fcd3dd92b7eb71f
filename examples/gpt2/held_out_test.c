/* SPDX-License-Identifier: BSD-3-Clause
 *
 * held_out_test.c
 * Goal    every held-out byte counts once, against the scores of the byte before it, whoever measures it.
 * Method  networks whose worth is known: one that has no idea (8 bits), one that knows what follows what (0 bits), one
 *         that is wrong about one byte value only; lengths that windows and ranks do not divide. */
#include "harness/harness.h"

#include <math.h>
#include <string.h>

#include "held_out.h"
#include "model.h"

enum { N = 1003, TRAIN = 200, CONTEXT = 32, SURPRISE = 77 };

/* Text: each byte is 7 more than 5 times the one before, so that knowing one is knowing the next. */
static uint8_t follower(uint8_t c)
{
    return (uint8_t)(5 * c + 7);
}

typedef struct oracle {
    float certainty; /* score of the byte that follows; 0: no idea */
    int wrong;       /* a byte whose follower it does not know; -1: none */
} oracle;

static tutti_tensor *oracle_forward(tutti_module *m, tutti_tensor *x)
{
    const oracle *o = tutti_module_context(m);
    const int64_t rows = tutti_tensor_numel(x), shape[2] = { rows, MODEL_BYTES };
    const int64_t *tokens = tutti_tensor_data(x);
    tutti_tensor *y = tutti_tensor_zeros(TUTTI_F32, 2, shape);
    float *scores = tutti_tensor_data(y);

    for (int64_t i = 0; i < rows; i++)
        if (tokens[i] != o->wrong)
            scores[i * MODEL_BYTES + follower((uint8_t)tokens[i])] = o->certainty;
    return y;
}

static double bits_of(oracle o, int64_t n)
{
    uint8_t bytes[N] = { 1 };
    const text t = { .bytes = bytes, .n = n, .train = TRAIN };
    tutti_module *net = tutti_module_create("oracle", oracle_forward, &o, NULL);
    double bits = -1.0;

    for (int i = 1; i < N; i++)
        bytes[i] = follower(bytes[i - 1]);
    assert_non_null(net);
    assert_true(held_out_bits(net, &t, CONTEXT, &bits));
    assert_true(tutti_module_is_training(net)); /* as it was */
    tutti_module_free(net);
    return bits;
}

static int64_t surprises(int64_t n)
{
    uint8_t c = 1;
    int64_t found = 0;

    for (int64_t i = 1; i < n; i++) {
        found += i >= TRAIN && c == SURPRISE;
        c = follower(c);
    }
    return found;
}

static void every_byte_counts_once(tt_ctx *t)
{
    (void)t;
    for (int64_t n = TRAIN + 1; n <= N; n += 73) {
        assert_true(fabs(bits_of((oracle){ 0.0f, -1 }, n) - 8.0) < 1e-12);
        assert_true(bits_of((oracle){ 100.0f, -1 }, n) < 1e-12);
        assert_true(fabs(bits_of((oracle){ 100.0f, SURPRISE }, n) - 8.0 * (double)surprises(n) / (double)(n - TRAIN)) <
                    1e-12);
    }
    assert_true(surprises(N) >= 2);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(every_byte_counts_once, .ranks = 1),
        TT_TEST(every_byte_counts_once, .ranks = 3),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
