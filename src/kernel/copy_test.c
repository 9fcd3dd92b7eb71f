/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copy_test.c
 * Goal    tti_copy() and tti_copy_nt() move exactly the bytes they are told, wherever these begin.
 * Method  All lengths around the borders of the size classes, at all alignments of both ends within a
 *         line, beside memcpy; guards before and behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/machine.h"
#include "kernel/copy.h"

enum { LINE = 64, BYTES_MAX = 70000, ROOM = BYTES_MAX + 4 * LINE };

static _Alignas(64) unsigned char from[ROOM], to[ROOM], want[ROOM];

static void copy_cached(void *dst, const void *src, size_t bytes)
{
    tti_copy(dst, src, bytes);
}

typedef void copy_fn(void *dst, const void *src, size_t bytes);

static void check(copy_fn *copy, size_t dst_at, size_t src_at, size_t bytes)
{
    memset(to, 0xa5, bytes + 4 * LINE);
    memset(want, 0xa5, bytes + 4 * LINE);
    memcpy(want + dst_at, from + src_at, bytes);
    copy(to + dst_at, from + src_at, bytes);
    assert_memory_equal(to, want, bytes + 4 * LINE);
}

static void check_all(copy_fn *copy)
{
    static const size_t large[] = { 1000, 4095, 4096, 4097, 8191, 65536, BYTES_MAX };

    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 131 + i / 251);
    for (size_t bytes = 0; bytes <= 5 * LINE + 1; bytes++)
        for (size_t at = 0; at < LINE; at += 7)
            check(copy, LINE + at, LINE + (at * 5 + bytes) % LINE, bytes);
    for (size_t n = 0; n < sizeof large / sizeof *large; n++)
        for (size_t at = 0; at < LINE; at += 9) {
            check(copy, LINE + at, LINE, large[n]);
            check(copy, LINE + at, LINE + at, large[n]);
            check(copy, LINE, LINE + at, large[n]);
        }
    copy(NULL, NULL, 0);
    copy(from, from, 1000); /* in place */
    check(copy, LINE, LINE, 1000);
}

static void copies_move_their_bytes_and_no_others(void **state)
{
    (void)state;
    check_all(copy_cached);
}

static void copies_past_the_caches_do_too(void **state)
{
    (void)state;
    check_all(tti_copy_nt);
}

static void a_core_has_a_bounded_share_of_the_cache(void **state)
{
    (void)state;
    assert_in_range(tti_cache_share(), 1 << 20, 8 << 20);
    assert_int_equal(tti_cache_share(), tti_cache_share());
    assert_in_range(tti_cache_near(), 1 << 18, 4 << 20);
    assert_int_equal(tti_cache_near(), tti_cache_near());
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_move_their_bytes_and_no_others),
        cmocka_unit_test(copies_past_the_caches_do_too),
        cmocka_unit_test(a_core_has_a_bounded_share_of_the_cache),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
