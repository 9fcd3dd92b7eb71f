/* SPDX-License-Identifier: BSD-3-Clause
 *
 * map_test.c - the map against its contract, and SipHash against its authors' vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/map.h"

/* Key 00 01 .. 0f, messages of 0, 1, 8 and 15 bytes 00 01 02 ..: appendix A of the paper has the
 * last. */
static void siphash_matches_its_vectors(void **state)
{
    const uint64_t key[2] = { UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) };
    const uint8_t  data[15] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };

    (void)state;
    assert_true(tti_siphash(key, data, 0) == UINT64_C(0x726fdb47dd0e0e31));
    assert_true(tti_siphash(key, data, 1) == UINT64_C(0x74f839c593dc67fd));
    assert_true(tti_siphash(key, data, 8) == UINT64_C(0x93f5f5799a932462));
    assert_true(tti_siphash(key, data, 15) == UINT64_C(0xa129ca6149be45e5));
}

static void puts_replace_and_deletes_remove(void **state)
{
    tti_map     map;
    const void *val = NULL;
    size_t      size = 0;

    (void)state;
    tti_map_init(&map, tti_port_system());
    assert_false(tti_map_get(&map, "a", 1, NULL, NULL));
    assert_int_equal(tti_map_put(&map, "a", 1, "one", 3), TUTTI_OK);
    assert_int_equal(tti_map_put(&map, "a\0b", 3, NULL, 0), TUTTI_OK);
    assert_int_equal(map.count, 2);
    assert_int_equal(map.bytes, 7);
    assert_true(tti_map_get(&map, "a", 1, &val, &size));
    assert_int_equal(size, 3);
    assert_memory_equal(val, "one", 3);
    assert_int_equal(tti_map_put(&map, "a", 1, "x", 1), TUTTI_OK);
    assert_int_equal(map.bytes, 5);
    assert_true(tti_map_get(&map, "a\0b", 3, &val, &size));
    assert_int_equal(size, 0);
    assert_true(tti_map_delete(&map, "a", 1));
    assert_false(tti_map_delete(&map, "a", 1));
    assert_int_equal(map.count, 1);
    tti_map_release(&map);
    assert_int_equal(map.count, 0);
    assert_int_equal(map.bytes, 0);
}

static bool count_some(void *arg, const void *key, size_t key_size, const void *val,
                       size_t val_size)
{
    int *left = arg;

    assert_memory_equal(key, "key-", 4);
    assert_true(key_size > 4);
    assert_int_equal(val_size, sizeof(int));
    assert_non_null(val);
    return --*left > 0;
}

static void many_keys_are_kept_apart(void **state)
{
    enum { N = 5000 };
    tti_map     map;
    char        key[16];
    const void *val;
    size_t      size;
    int         i, left = 10;

    (void)state;
    tti_map_init(&map, tti_port_system());
    for (i = 0; i < N; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        assert_int_equal(tti_map_put(&map, key, strlen(key), &i, sizeof i), TUTTI_OK);
    }
    for (i = 0; i < N; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        assert_true(tti_map_get(&map, key, strlen(key), &val, &size));
        assert_memory_equal(val, &i, sizeof i);
    }
    tti_map_each(&map, count_some, &left);
    assert_int_equal(left, 0);
    tti_map_release(&map);
}

static void pointers_come_back(void **state)
{
    tti_map map;
    int     object = 7;

    (void)state;
    tti_map_init(&map, tti_port_system());
    assert_null(tti_map_get_ptr(&map, "p", 1));
    assert_int_equal(tti_map_put_ptr(&map, "p", 1, &object), TUTTI_OK);
    assert_ptr_equal(tti_map_get_ptr(&map, "p", 1), &object);
    tti_map_release(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siphash_matches_its_vectors),
        cmocka_unit_test(puts_replace_and_deletes_remove),
        cmocka_unit_test(many_keys_are_kept_apart),
        cmocka_unit_test(pointers_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
