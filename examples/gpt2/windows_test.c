/* SPDX-License-Identifier: BSD-3-Clause
 *
 * windows_test.c
 * Goal    ranks learn from every window once an epoch, from no byte that is held out, from the same windows in a step
 *         however many they are; and a place in the order is all that is needed to go on there.
 * Method  a text whose held-out bytes have a value of their own and whose other bytes tell where they stand; all
 *         ranks of a world are played in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "windows.h"

enum { N = 2800, TRAIN = N - N / 10, CONTEXT = 16, BATCH = 12, HELD_OUT = 255, STEPS = 13 };

static uint8_t bytes[N];
static const text all = { .bytes = bytes, .n = N, .train = TRAIN };

static void fill(void)
{
    for (int i = 0; i < N; i++)
        bytes[i] = (uint8_t)(i < TRAIN ? (uint32_t)i * 2654435761u / 8191 % HELD_OUT : HELD_OUT);
}

static windows opened(int rank, int size)
{
    windows w = { 0 };

    assert_true(windows_open(&w, &all, CONTEXT, BATCH, 7, rank, size));
    assert_int_equal(w.steps, STEPS); /* 156 windows by 12 */
    return w;
}

/* Inputs of the next step, [batch of the rank, CONTEXT]; targets are checked. */
static int64_t next(windows *w, int64_t inputs[BATCH * CONTEXT])
{
    const int64_t n = w->batch * CONTEXT;
    const int64_t *x, *y;
    tutti_tensor *tx, *ty;

    tutti_scope_begin();
    assert_true(windows_next(w, &tx, &ty));
    assert_true(tutti_tensor_numel(tx) == n && tutti_tensor_numel(ty) == n);
    x = tutti_tensor_data(tx);
    y = tutti_tensor_data(ty);
    for (int64_t i = 0; i < n; i++) {
        assert_true(x[i] != HELD_OUT && y[i] != HELD_OUT);
        assert_true(i % CONTEXT == CONTEXT - 1 || y[i] == x[i + 1]);
    }
    memcpy(inputs, x, (size_t)n * sizeof *x);
    tutti_scope_end();
    return n;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, CONTEXT * sizeof(int64_t));
}

/* The windows of a step of all ranks, sorted. */
static void step_of_all(windows *w, int size, int64_t out[BATCH * CONTEXT])
{
    int64_t n = 0;

    for (int r = 0; r < size; r++)
        n += next(&w[r], out + n);
    assert_int_equal(n, BATCH * CONTEXT);
    qsort(out, BATCH, CONTEXT * sizeof *out, by_bytes);
}

static void any_world_has_the_same_steps(void **state)
{
    static int64_t want[3 * STEPS][BATCH * CONTEXT], got[BATCH * CONTEXT];
    windows w[4];

    (void)state;
    for (int size = 1; size <= 4; size++) {
        for (int r = 0; r < size; r++)
            w[r] = opened(r, size);
        for (int k = 0; k < 3 * STEPS; k++) {
            step_of_all(w, size, size == 1 ? want[k] : got);
            if (size > 1)
                assert_memory_equal(got, want[k], sizeof got);
        }
        for (int r = 0; r < size; r++)
            windows_close(&w[r]);
    }
}

/* Where in the text a window stands; it is there once. */
static int64_t place_of(const int64_t *x)
{
    int64_t found = -1;

    for (int64_t at = 0; at + CONTEXT <= TRAIN; at++) {
        int64_t i = 0;

        while (i < CONTEXT && x[i] == bytes[at + i])
            i++;
        if (i == CONTEXT) {
            assert_int_equal(found, -1);
            found = at;
        }
    }
    assert_true(found >= 0);
    return found;
}

static void an_epoch_has_each_window_once(void **state)
{
    int64_t x[BATCH * CONTEXT], first[2];
    windows w = opened(0, 1);

    (void)state;
    for (int epoch = 0; epoch < 2; epoch++) {
        bool seen[TRAIN] = { false };

        first[epoch] = -1;
        for (int64_t k = 0; k < w.steps; k++) {
            (void)next(&w, x);
            for (int b = 0; b < BATCH; b++) {
                const int64_t at = place_of(x + b * CONTEXT);

                if (first[epoch] < 0)
                    first[epoch] = at % CONTEXT;
                assert_int_equal(at % CONTEXT, first[epoch]); /* side by side */
                assert_false(seen[at]);
                seen[at] = true;
            }
        }
        assert_int_equal(w.epoch, epoch + 1);
        assert_int_equal(w.step, 0);
    }
    assert_true(first[0] != first[1]); /* by this seed */
    windows_close(&w);
}

static void a_place_is_enough_to_go_on(void **state)
{
    int64_t want[BATCH * CONTEXT] = { 0 }, got[BATCH * CONTEXT] = { 0 };
    windows a = opened(1, 2), b;

    (void)state;
    for (int k = 0; k < 2 * STEPS + 3; k++) {
        b = opened(1, 2);
        b.epoch = a.epoch;
        b.step = a.step;
        (void)next(&a, want);
        (void)next(&b, got);
        assert_memory_equal(got, want, sizeof got);
        windows_close(&b);
    }
    windows_close(&a);
}

static void too_short_a_text(void **state)
{
    const text some = { .bytes = bytes, .n = 200, .train = 180 };
    windows w = { 0 };

    (void)state;
    assert_false(windows_open(&w, &some, CONTEXT, BATCH, 7, 0, 1)); /* 10 windows */
    windows_close(&w);
    w = (windows){ 0 };
    assert_true(windows_open(&w, &some, CONTEXT, 10, 7, 0, 1));
    windows_close(&w);
}

static int begin(void **state)
{
    (void)state;
    fill();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_world_has_the_same_steps),
        cmocka_unit_test(an_epoch_has_each_window_once),
        cmocka_unit_test(a_place_is_enough_to_go_on),
        cmocka_unit_test(too_short_a_text),
    };

    return cmocka_run_group_tests(tests, begin, NULL);
}
