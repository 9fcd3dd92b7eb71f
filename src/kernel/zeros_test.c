/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zeros_test.c
 * Goal    zeros are told from other numbers, and negative ones from plain ones, wherever the one that counts stands.
 * Method  blocks of zeros of many lengths with one number, at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "kernel/zeros.h"

enum { COUNT = 300 };

static const tutti_dtype dtypes[] = { TUTTI_F16, TUTTI_BF16, TUTTI_F32, TUTTI_F64 };

/* The number whose highest byte, and all others, are these. */
static void put(unsigned char *p, size_t size, unsigned char high, unsigned char low)
{
    memset(p, low, size);
    p[size - 1] = high; /* little-endian, as all machines that there are */
}

static void check(tutti_dtype dtype, int64_t n)
{
    static unsigned char room[(COUNT + 1) * 8];
    const size_t         size = tutti_dtype_size(dtype);
    unsigned char       *p = room + size; /* not the boundary of a word */
    int64_t              i;

    memset(room, 0xff, sizeof room);
    memset(p, 0, (size_t)n * size);
    assert_int_equal(tti_zeros_of(p, dtype, n), TTI_ZEROS_PLAIN);
    for (i = 0; i < n; i++) {
        put(p + (size_t)i * size, size, 0x80, 0);
        assert_int_equal(tti_zeros_of(p, dtype, n), TTI_ZEROS_SIGNED);
        put(p + (size_t)i * size, size, 0, 1);
        assert_int_equal(tti_zeros_of(p, dtype, n), TTI_ZEROS_NONE);
        put(p + (size_t)i * size, size, 0x7f, 0xff); /* NaN */
        assert_int_equal(tti_zeros_of(p, dtype, n), TTI_ZEROS_NONE);
        put(p + (size_t)i * size, size, 0, 0);
    }
}

static void zeros_are_told_from_numbers(void **state)
{
    static const int64_t counts[] = { 0, 1, 2, 3, 4, 7, 64, 129, COUNT };
    size_t               d, c;

    (void)state;
    for (d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (c = 0; c < sizeof counts / sizeof *counts; c++)
            check(dtypes[d], counts[c]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(zeros_are_told_from_numbers) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
