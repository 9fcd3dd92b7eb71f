/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mac_test.c
 * Goal    tti_mac() is HMAC-SHA-256: of the RFC's examples, and of keys and data of all sizes around blocks; also when threads
 *         come first at once.
 * Method  the values of RFC 4231; OpenSSL's HMAC(). */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "wire/mac.h"

enum { THREADS = 4, DATA_MAX = 200 };

static const uint8_t hi_there[TTI_MAC_BYTES] = { 0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf,
                                                 0xce, 0xaf, 0x0b, 0xf1, 0x2b, 0x88, 0x1d, 0xc2, 0x00, 0xc9, 0x83,
                                                 0x3d, 0xa7, 0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32, 0xcf, 0xf7 };
static const uint8_t jefe[TTI_MAC_BYTES] = { 0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24,
                                             0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27,
                                             0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43 };

static void *hi(void *out)
{
    uint8_t key[20];

    memset(key, 0x0b, sizeof key);
    return tti_mac(key, sizeof key, "Hi There", 8, out) ? out : NULL;
}

/* First, while nobody has asked for the digest. */
static void test_threads_that_come_first(void **state)
{
    uint8_t   got[THREADS][TTI_MAC_BYTES];
    pthread_t threads[THREADS];
    void     *done;
    int       i;

    (void)state;
    for (i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hi, got[i]), 0);
    for (i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &done), 0);
        assert_non_null(done);
        assert_memory_equal(got[i], hi_there, sizeof hi_there);
    }
}

static void test_the_example_with_a_short_key(void **state)
{
    static const char text[] = "what do ya want for nothing?";
    uint8_t           got[TTI_MAC_BYTES];

    (void)state;
    assert_true(tti_mac("Jefe", 4, text, strlen(text), got));
    assert_memory_equal(got, jefe, sizeof jefe);
}

static void test_all_sizes(void **state)
{
    uint8_t  key[TTI_MAC_KEY_MAX], data[DATA_MAX], got[TTI_MAC_BYTES], wanted[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    size_t   k, n, i;

    (void)state;
    for (i = 0; i < sizeof key; i++)
        key[i] = (uint8_t)(i * 37 + 1);
    for (i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 101 + 3);
    for (k = 0; k <= sizeof key; k++)
        for (n = 0; n <= sizeof data; n += 1 + n / 3) {
            assert_non_null(HMAC(EVP_sha256(), key, (int)k, data, n, wanted, &size));
            assert_int_equal(size, sizeof got);
            assert_true(tti_mac(key, k, data, n, got));
            assert_memory_equal(got, wanted, sizeof got);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_that_come_first),
        cmocka_unit_test(test_the_example_with_a_short_key),
        cmocka_unit_test(test_all_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
