/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crypto_test.c
 * Goal    what OpenSSL has is still there after all handlers of exit(), where tti_crypto_begin() was first.
 * Method  a child ends by exit(); its destructor, which runs after the handlers, computes a digest. A second child that
 *         began with OpenSSL itself shows that the destructor finds out. */
#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "wire/crypto.h"

enum { STILL_THERE = 0, GONE = 7 };

static bool is_child;

static bool can_digest(void)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned      size;

    return EVP_Digest("", 0, digest, &size, EVP_sha256(), NULL) == 1;
}

__attribute__((destructor)) static void look_again(void)
{
    if (is_child)
        _exit(OPENSSL_init_crypto(0, NULL) == 1 && can_digest() ? STILL_THERE : GONE);
}

/* How a child ends that computes a digest and leaves by exit(). */
static int end_of_a_child(void (*begin)(void))
{
    int   how = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        is_child = true;
        begin();
        exit(can_digest() ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

static void begin_by_itself(void)
{
}

static void test_what_openssl_has_stays(void **state)
{
    (void)state;
    assert_int_equal(end_of_a_child(tti_crypto_begin), STILL_THERE);
}

static void test_without_it_all_is_gone(void **state)
{
    (void)state;
    assert_int_equal(end_of_a_child(begin_by_itself), GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_openssl_has_stays),
        cmocka_unit_test(test_without_it_all_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
