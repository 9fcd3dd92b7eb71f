/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pinned_blocks_test.c
 * Goal    pinned memory is kept up to the limit and not beyond, the largest goes first, and none is let go while a device may be stuck.
 * Method  a device of which this file says whether it has come to an event; it counts what is pinned. */
#include "backend/detour/detour_core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define SMALL ((size_t)64 << 10)
#define LARGE ((size_t)64 << 20)

/* What events are here. */
typedef struct mark {
    bool comes;
} mark;

static int n_pinned;

static tutti_status event_make(int device, void **event_out)
{
    mark *m = malloc(sizeof *m);

    (void)device;
    assert_non_null(m);
    m->comes = true;
    *event_out = m;
    return TUTTI_OK;
}

static void event_drop(int device, void *event)
{
    (void)device;
    free(event);
}

static tutti_status has_come(int device, void *event, bool *come_out)
{
    (void)device;
    *come_out = ((mark *)event)->comes;
    return TUTTI_OK;
}

static tutti_status pin(int device, size_t bytes, void **memory_out)
{
    (void)device;
    (void)bytes; /* nobody touches it */
    *memory_out = malloc(1);
    assert_non_null(*memory_out);
    n_pinned++;
    return TUTTI_OK;
}

static void unpin(int device, void *memory)
{
    (void)device;
    free(memory);
    n_pinned--;
}

static const tutti_device_ops device = { .event_make = event_make, .event_drop = event_drop, .has_come = has_come, .pin = pin,
                                         .unpin = unpin };

static void idle(uint32_t *rounds, bool in_background)
{
    (void)rounds;
    (void)in_background;
}

static tti_pinned *make(const char *most)
{
    tti_pinned *p = NULL;

    assert_int_equal(setenv("TUTTI_PINNED_MAX", most, 1), 0);
    assert_int_equal(tti_pinned_create(idle, &p), TUTTI_OK);
    return p;
}

static tti_block *take(tti_pinned *p, int on, size_t bytes)
{
    tti_block *block = NULL;

    assert_int_equal(tti_pinned_take(p, &device, on, bytes, &block), TUTTI_OK);
    return block;
}

/* A copy with it is under way from here on. */
static void put_busy(tti_pinned *p, tti_block *block, bool unsure)
{
    block->used = true;
    ((mark *)block->event)->comes = false;
    tti_pinned_put(p, block, unsure);
}

static void come(tti_block *block)
{
    ((mark *)block->event)->comes = true;
}

/* Who was kept from letting go of blocks leaves them, here with their little memory and their events. */
static void free_left(tti_block *block)
{
    free(block->memory);
    free(block->event);
    free(block);
    n_pinned--;
}

static void test_sizes(void **state)
{
    (void)state;
    assert_int_equal(tti_pinned_size(1), SMALL);
    assert_int_equal(tti_pinned_size(SMALL + 1), 2 * SMALL);
    assert_int_equal(tti_pinned_size(TTI_PIECE_BYTES), TTI_PIECE_BYTES);
    assert_int_equal(tti_pinned_size((size_t)16 * TTI_PIECE_BYTES + 1), (size_t)17 * TTI_PIECE_BYTES);
    assert_true(tti_pinned_size(SIZE_MAX) == SIZE_MAX);
}

/* What a large call has had goes at the next end of a call, and small blocks, which are not what is too much, stay. */
static void test_the_largest_goes(void **state)
{
    tti_pinned *p = make("1048576");
    tti_block  *large, *small[2];

    (void)state;
    small[0] = take(p, 0, SMALL);
    small[1] = take(p, 0, SMALL);
    large = take(p, 0, LARGE);
    tti_pinned_put(p, small[0], false);
    tti_pinned_put(p, small[1], false);
    put_busy(p, large, false);
    tti_pinned_trim(p);
    assert_int_equal(n_pinned, 3);
    come(large);
    tti_pinned_trim(p);
    assert_int_equal(n_pinned, 2);
    small[0] = take(p, 0, SMALL);
    assert_int_equal(n_pinned, 2); /* it is one of those that were kept */
    tti_pinned_put(p, small[0], false);
    tti_pinned_drop(p);
    assert_int_equal(n_pinned, 0);
}

static void test_not_in_a_call(void **state)
{
    tti_pinned *p = make("0");
    tti_block  *one, *other;

    (void)state;
    one = take(p, 0, SMALL);
    other = take(p, 0, SMALL);
    tti_pinned_put(p, one, false);
    assert_int_equal(n_pinned, 2);
    tti_pinned_trim(p);
    assert_int_equal(n_pinned, 2); /* a call has the other one */
    tti_pinned_put(p, other, false);
    tti_pinned_trim(p);
    assert_int_equal(n_pinned, 0);
    tti_pinned_drop(p);
}

/* A call has failed, and the device has not come to it: nothing is let go until it has. */
static void test_stuck_for_a_while(void **state)
{
    tti_pinned *p = make("0");
    tti_block  *one, *other;

    (void)state;
    one = take(p, 0, SMALL);
    other = take(p, 0, SMALL);
    tti_pinned_put(p, one, false);
    put_busy(p, other, true);
    tti_pinned_trim(p);
    assert_int_equal(n_pinned, 2);
    come(other);
    tti_pinned_trim(p);
    assert_int_equal(n_pinned, 0);
    tti_pinned_drop(p);
}

/* At the end a device that is stuck keeps all of its blocks, idle ones, too; another one keeps none. */
static void test_stuck_at_the_end(void **state)
{
    tti_pinned *p = make("1048576");
    tti_block  *idle_one, *busy, *of_other;

    (void)state;
    idle_one = take(p, 0, SMALL);
    busy = take(p, 0, SMALL);
    of_other = take(p, 1, SMALL);
    put_busy(p, busy, true);
    tti_pinned_put(p, idle_one, false);
    tti_pinned_put(p, of_other, false);
    tti_pinned_drop(p);
    assert_int_equal(n_pinned, 2);
    free_left(idle_one);
    free_left(busy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_the_largest_goes),
        cmocka_unit_test(test_not_in_a_call),
        cmocka_unit_test(test_stuck_for_a_while),
        cmocka_unit_test(test_stuck_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
