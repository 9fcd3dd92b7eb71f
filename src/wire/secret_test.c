/* SPDX-License-Identifier: BSD-3-Clause
 *
 * secret_test.c - only a private file with exactly one key is a secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "wire/secret.h"

#define DIGITS "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"

static char dir[] = "/tmp/tutti-secret-XXXXXX";
static char path[64];

static int make_dir(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/key", dir);
    return unsetenv("TUTTI_SECRET_FILE");
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static void write_key(const char *text, mode_t mode)
{
    int fd;

    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void no_variable_is_no_secret(void **state)
{
    tti_secret secret = { .present = true };

    (void)state;
    assert_int_equal(tti_secret_load(NULL, &secret), TUTTI_OK);
    assert_false(secret.present);
}

static void good_files_are_read(void **state)
{
    tti_secret secret = { .present = false };
    uint8_t    key[TTI_SECRET_BYTES];

    (void)state;
    write_key(DIGITS "\n", 0600);
    assert_int_equal(setenv("TUTTI_SECRET_FILE", path, 1), 0);
    assert_int_equal(tti_secret_load(NULL, &secret), TUTTI_OK);
    assert_true(secret.present);
    tti_secret_reveal(&secret, key);
    assert_int_equal(key[1], 0x11);
    assert_int_equal(key[31], 0xff);
    assert_memory_not_equal(secret.padded, key, sizeof key);
    tti_secret_release(&secret);
    assert_false(secret.present);
    assert_int_equal(secret.padded[31], 0);
    unsetenv("TUTTI_SECRET_FILE");
    write_key(DIGITS, 0400);
    assert_int_equal(tti_secret_load(path, &secret), TUTTI_OK);
    tti_secret_release(&secret);
    tti_secret_release(NULL);
}

static void refused_with(tutti_status status, const char *words)
{
    tti_secret secret = { .present = false };

    assert_int_equal(tti_secret_load(path, &secret), status);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' does not say '%s'", tutti_last_error(), words);
    assert_non_null(strstr(tutti_last_error(), path));
    assert_false(secret.present);
}

static void bad_files_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "00",
        DIGITS "0",
        DIGITS "\n\n",
        DIGITS " ",
        " " DIGITS,
        "0x112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF0"
    };
    size_t i;

    (void)state;
    unlink(path);
    refused_with(TUTTI_E_IO, "cannot open");
    write_key(DIGITS, 0640);
    refused_with(TUTTI_E_AUTH, "mode 0640");
    write_key(DIGITS, 0604);
    refused_with(TUTTI_E_AUTH, "next: chmod 600");
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_key(wrong[i], 0600);
        refused_with(TUTTI_E_AUTH, "64 hex digits");
    }
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused_with(TUTTI_E_AUTH, "not a regular file");
    if (geteuid() == 0) {
        write_key(DIGITS, 0600);
        assert_int_equal(chown(path, 12345, 0), 0);
        refused_with(TUTTI_E_AUTH, "belongs to user 12345");
    }
}

/* What a child of fork() has of a secret is no key; what it reads itself is. */
static void a_child_has_none(void **state)
{
    tti_secret secret = { .present = false };
    uint8_t    key[TTI_SECRET_BYTES], theirs[TTI_SECRET_BYTES];
    int        status = -1;
    pid_t      child;

    (void)state;
    write_key(DIGITS, 0600);
    assert_int_equal(tti_secret_load(path, &secret), TUTTI_OK);
    tti_secret_reveal(&secret, key);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tti_secret_reveal(&secret, theirs);
        if (memcmp(theirs, key, sizeof key) == 0 || tti_secret_load(path, &secret) != TUTTI_OK)
            _exit(1);
        tti_secret_reveal(&secret, theirs);
        _exit(memcmp(theirs, key, sizeof key) != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    tti_secret_reveal(&secret, theirs);
    assert_memory_equal(theirs, key, sizeof key);
}

static void beyond_loopback_it_is_needed(void **state)
{
    tti_secret secret = { .present = false };
    tti_addr   near, far;

    (void)state;
    assert_int_equal(tti_addr_parse("127.0.0.1", 80, &near), TUTTI_OK);
    assert_int_equal(tti_addr_parse("192.0.2.1", 80, &far), TUTTI_OK);
    assert_int_equal(tti_secret_suffices_at(&secret, &near, "knock"), TUTTI_OK);
    assert_int_equal(tti_secret_suffices_at(&secret, &far, "knock"), TUTTI_E_AUTH);
    assert_non_null(strstr(tutti_last_error(), "will not knock at 192.0.2.1:80"));
    assert_non_null(strstr(tutti_last_error(), "TUTTI_SECRET_FILE"));
    assert_int_equal(setenv("TUTTI_AUTH", "off", 1), 0);
    assert_int_equal(tti_secret_suffices_at(&secret, &far, "knock"), TUTTI_E_ARG);
    assert_int_equal(tti_secret_load(NULL, &secret), TUTTI_E_ARG); /* also where it would not matter */
    assert_non_null(strstr(tutti_last_error(), "TUTTI_AUTH is 'off', not 'secret' or 'none'"));
    assert_int_equal(setenv("TUTTI_AUTH", "none", 1), 0);
    assert_int_equal(tti_secret_suffices_at(&secret, &far, "knock"), TUTTI_OK);
    assert_int_equal(unsetenv("TUTTI_AUTH"), 0);
    secret.present = true;
    assert_int_equal(tti_secret_suffices_at(&secret, &far, "knock"), TUTTI_OK);
}

static void what_follows_the_hello_is_read(void **state)
{
    const tti_addr loopback = { .family = TTI_ADDR_IP4, .ip = { 127, 0, 0, 1 } };
    tti_secret     secret = { .seal = TTI_SEAL_CERT };

    (void)state;
    assert_int_equal(tti_secret_load(NULL, &secret), TUTTI_OK);
    assert_int_equal(secret.seal, TTI_SEAL_NONE);
    setenv("TUTTI_TLS", "1", 1);
    assert_int_equal(tti_secret_load(NULL, &secret), TUTTI_OK);
    assert_int_equal(secret.seal, TTI_SEAL_KEY);
    assert_int_equal(tti_secret_suffices_at(&secret, &loopback, "listen"), TUTTI_E_AUTH); /* of what would the key be? */
    secret.present = true;
    assert_int_equal(tti_secret_suffices_at(&secret, &loopback, "listen"), TUTTI_OK);
    setenv("TUTTI_TLS_CERT", "cert", 1);
    assert_int_equal(tti_secret_load(NULL, &secret), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "1 of them is set"));
    setenv("TUTTI_TLS_KEY", "key", 1);
    setenv("TUTTI_TLS_CA", "ca", 1);
    assert_int_equal(tti_secret_load(NULL, &secret), TUTTI_OK);
    assert_int_equal(secret.seal, TTI_SEAL_CERT);
    assert_int_equal(tti_secret_suffices_at(&secret, &loopback, "listen"), TUTTI_OK);
    setenv("TUTTI_TLS", "0", 1);
    assert_int_equal(tti_secret_load(NULL, &secret), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "nothing would be encrypted"));
    setenv("TUTTI_TLS", "on", 1);
    assert_int_equal(tti_secret_load(NULL, &secret), TUTTI_E_ARG);
    unsetenv("TUTTI_TLS");
    unsetenv("TUTTI_TLS_CERT");
    unsetenv("TUTTI_TLS_KEY");
    unsetenv("TUTTI_TLS_CA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_variable_is_no_secret),
        cmocka_unit_test(good_files_are_read),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(a_child_has_none),
        cmocka_unit_test(beyond_loopback_it_is_needed),
        cmocka_unit_test(what_follows_the_hello_is_read),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
