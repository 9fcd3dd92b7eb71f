/* SPDX-License-Identifier: BSD-3-Clause
 *
 * msgpack_check_test.c
 * Goal    what the checker lets through is what msgpack-c can parse, in memory that the size bounds; it reads
 *         no byte behind the input, and takes every value that msgpack-c packs.
 * Method  heads that lie; values drawn from a printed seed, whole, cut off at every byte, and with bytes
 *         changed, each in a block of exactly its size (for the address sanitizer), compared with msgpack-c's
 *         own verdict. Only what the checker has let through is given to msgpack-c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <msgpack.h>
#include "wire/msgpack_check.h"

static const tti_msgpack_limits wide = { .depth = TTI_MSGPACK_DEPTH_MAX, .values = 1 << 20 };

static uint64_t draw_state = 20240607;

static uint32_t draw(uint32_t below)
{
    draw_state ^= draw_state << 13;
    draw_state ^= draw_state >> 7;
    draw_state ^= draw_state << 17;
    return (uint32_t)(draw_state >> 33) % below;
}

static bool allowed(const void *data, size_t size, const tti_msgpack_limits *limits)
{
    return tti_msgpack_check(data, size, limits, "the test") == TUTTI_OK;
}

/* Parse with msgpack-c: whether it is one value and nothing else. */
static bool parses(const char *data, size_t size)
{
    msgpack_zone         zone;
    msgpack_object       value;
    size_t               at = 0;
    msgpack_unpack_return got;

    assert_true(msgpack_zone_init(&zone, 512));
    got = msgpack_unpack(data, size, &at, &zone, &value);
    msgpack_zone_destroy(&zone);
    return got == MSGPACK_UNPACK_SUCCESS && at == size;
}

static void lengths_that_lie_are_refused(void **state)
{
    static const struct {
        size_t      size;
        const char *data;
        const char *word;
    } rows[] = {
        { 5, "\xdd\xff\xff\xff\xff", "more values" }, /* 96 GB, were it believed */
        { 5, "\xdf\xff\xff\xff\xff", "more values" },
        { 5, "\xdb\xff\xff\xff\xff", "cut off" },
        { 5, "\xc6\xff\xff\xff\xff", "cut off" },
        { 6, "\xc9\xff\xff\xff\xff\x01", "cut off" },
        { 3, "\xdc\x00\x01", "more values" },
        { 2, "\xdc\x00", "length that is cut off" },
        { 1, "\xa1", "cut off" },
        { 1, "\x91", "more values" },
        { 2, "\x81\x01", "more values" },
        { 1, "\xc1", "means nothing" },
        { 0, "", "missing" },
        { 2, "\x01\x02", "behind the value" },
        { 9, "\xcf\x00\x00\x00\x00\x00\x00\x00", "" },
    };
    size_t i;

    (void)state;
    for (i = 0; i + 1 < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(tti_msgpack_check(rows[i].data, rows[i].size, &wide, "rank 7"), TUTTI_E_MISMATCH);
        if (strstr(tutti_last_error(), rows[i].word) == NULL || strstr(tutti_last_error(), "rank 7") == NULL)
            fail_msg("row %zu: %s", i, tutti_last_error());
    }
    assert_true(allowed(rows[i].data, rows[i].size, &wide));
}

static void limits_are_exact(void **state)
{
    tti_msgpack_limits limits = { .depth = 3, .values = 5 };
    char               deep[TTI_MSGPACK_DEPTH_MAX + 2];

    (void)state;
    assert_true(allowed("\x91\x91\x91\xc0", 4, &limits));
    assert_false(allowed("\x91\x91\x91\x91\xc0", 5, &limits));
    assert_true(allowed("\x94\x01\x02\x03\x04", 5, &limits));
    assert_false(allowed("\x95\x01\x02\x03\x04\x05", 6, &limits));
    memset(deep, 0x91, sizeof deep);
    deep[TTI_MSGPACK_DEPTH_MAX] = 1;
    assert_true(allowed(deep, TTI_MSGPACK_DEPTH_MAX + 1, &wide));
    assert_true(parses(deep, TTI_MSGPACK_DEPTH_MAX + 1)); /* what is allowed, msgpack-c takes */
    deep[TTI_MSGPACK_DEPTH_MAX] = (char)0x91;
    deep[TTI_MSGPACK_DEPTH_MAX + 1] = 1;
    assert_false(allowed(deep, sizeof deep, &wide));
}

/* ---- drawn values ---- */

static void pack_leaf(msgpack_packer *pk)
{
    static const char filler[70000];
    const uint32_t    kind = draw(9);
    const size_t      size = kind < 3 && draw(20) == 0 ? draw(70000) : draw(40);

    switch (kind) {
    case 0: msgpack_pack_str_with_body(pk, filler, size); return;
    case 1: msgpack_pack_bin_with_body(pk, filler, size); return;
    case 2: msgpack_pack_ext_with_body(pk, filler, size, 3); return;
    case 3: msgpack_pack_nil(pk); return;
    case 4: msgpack_pack_true(pk); return;
    case 5: msgpack_pack_double(pk, 0.5); return;
    case 6: msgpack_pack_float(pk, 0.5f); return;
    case 7: msgpack_pack_uint64(pk, UINT64_MAX >> draw(64)); return;
    default: msgpack_pack_int64(pk, INT64_MIN >> draw(64)); return;
    }
}

static void pack_some(msgpack_packer *pk, int depth)
{
    const uint32_t n = draw(30) == 0 ? draw(100) : draw(6);
    const bool     map = draw(2) == 0;
    uint32_t       i;

    if (depth == 0 || draw(3) == 0) {
        pack_leaf(pk);
        return;
    }
    if (map)
        msgpack_pack_map(pk, n);
    else
        msgpack_pack_array(pk, n);
    for (i = 0; i < (map ? 2 * n : n); i++)
        pack_some(pk, (int)draw((uint32_t)depth));
}

/* In a block of its own size: what reads behind it is seen. */
static void compare(const char *data, size_t size)
{
    char *exact = malloc(size != 0 ? size : 1);

    assert_non_null(exact);
    if (size != 0)
        memcpy(exact, data, size);
    if (allowed(exact, size, &wide) && !parses(exact, size))
        fail_msg("%zu bytes are allowed, but msgpack-c does not take them", size);
    free(exact);
}

static void drawn_values_pass_and_damaged_ones_do_no_harm(void **state)
{
    enum { VALUES = 400, CHANGES = 60 };
    msgpack_sbuffer buffer;
    msgpack_packer  pk;
    size_t          cut;
    int             i, k;

    (void)state;
    print_message("seed %llu\n", (unsigned long long)draw_state);
    for (i = 0; i < VALUES; i++) {
        msgpack_sbuffer_init(&buffer);
        msgpack_packer_init(&pk, &buffer, msgpack_sbuffer_write);
        pack_some(&pk, 6);
        if (!allowed(buffer.data, buffer.size, &wide))
            fail_msg("value %d of %zu bytes: %s", i, buffer.size, tutti_last_error());
        assert_true(parses(buffer.data, buffer.size));
        for (cut = 0; cut < buffer.size && cut < 300; cut++) {
            assert_false(allowed(buffer.data, cut, &wide));
            compare(buffer.data, cut);
        }
        for (k = 0; k < CHANGES; k++) {
            buffer.data[draw((uint32_t)buffer.size)] = (char)(draw(2) == 0 ? draw(256) : 0xc0 + draw(32));
            compare(buffer.data, buffer.size);
        }
        msgpack_sbuffer_destroy(&buffer);
    }
}

static void noise_does_no_harm(void **state)
{
    char   noise[64];
    size_t size, i;
    int    k;

    (void)state;
    for (k = 0; k < 200000; k++) {
        size = draw(sizeof noise + 1);
        for (i = 0; i < size; i++)
            noise[i] = (char)(draw(3) == 0 ? 0x80 + draw(128) : draw(256));
        compare(noise, size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_that_lie_are_refused),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(drawn_values_pass_and_damaged_ones_do_no_harm),
        cmocka_unit_test(noise_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
