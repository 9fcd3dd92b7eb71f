/* SPDX-License-Identifier: BSD-3-Clause
 *
 * buffer_test.c - the byte queue against a plain model. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "wire/buffer.h"

static void bytes_leave_in_the_order_they_came(void **state)
{
    tti_buffer buffer = { .memory = NULL };
    uint8_t    block[1000];
    uint8_t    next_in = 0, next_out = 0;
    size_t     round, i, size = 0;

    (void)state;
    for (round = 1; round < 400; round++) {
        const size_t in = round * 37 % sizeof block;
        size_t       out = round * 53 % sizeof block;

        for (i = 0; i < in; i++)
            block[i] = next_in++;
        assert_int_equal(tti_buffer_append(&buffer, block, in), TUTTI_OK);
        size += in;
        out = out < size ? out : size;
        for (i = 0; i < out; i++)
            assert_int_equal(tti_buffer_data(&buffer)[i], next_out++);
        tti_buffer_consume(&buffer, out);
        size -= out;
        assert_int_equal(buffer.size, size);
    }
    tti_buffer_release(&buffer);
    assert_int_equal(buffer.size, 0);
}

static void large_memory_is_given_back(void **state)
{
    tti_buffer buffer = { .memory = NULL };

    (void)state;
    assert_non_null(tti_buffer_reserve(&buffer, 1 << 20));
    tti_buffer_commit(&buffer, 1 << 20);
    tti_buffer_consume(&buffer, (1 << 20) - 1);
    assert_true(buffer.room >= 1 << 20);
    tti_buffer_consume(&buffer, 1);
    assert_int_equal(buffer.room, 0);
    assert_int_equal(tti_buffer_append(&buffer, "x", 1), TUTTI_OK);
    tti_buffer_consume(&buffer, 1);
    assert_true(buffer.room > 0); /* little is kept */
    tti_buffer_release(&buffer);
}

static void impossible_sizes_are_refused(void **state)
{
    tti_buffer buffer = { .memory = NULL };

    (void)state;
    assert_int_equal(tti_buffer_append(&buffer, "x", 1), TUTTI_OK);
    assert_null(tti_buffer_reserve(&buffer, SIZE_MAX));
    assert_null(tti_buffer_reserve(&buffer, SIZE_MAX - 1));
    assert_int_equal(buffer.size, 1);
    assert_int_equal(tti_buffer_data(&buffer)[0], 'x');
    tti_buffer_release(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_leave_in_the_order_they_came),
        cmocka_unit_test(large_memory_is_given_back),
        cmocka_unit_test(impossible_sizes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
