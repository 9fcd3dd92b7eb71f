/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dtype_test.c
 * Goal    names, sizes and the table of operations are those of tutti/dtype.h, and a refusal says
 *         what was asked and what is possible.
 * Method  the header's table is written down again by hand, one word of letters per operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/dtype.h>

static const struct {
    tutti_dtype dtype;
    const char *name;
    size_t size;
    char family; /* b: bool, i: integer, r: real, c: complex */
} dtypes[] = {
    { TUTTI_BOOL, "bool", 1, 'b' },     { TUTTI_U8, "u8", 1, 'i' },
    { TUTTI_I8, "i8", 1, 'i' },         { TUTTI_U16, "u16", 2, 'i' },
    { TUTTI_I16, "i16", 2, 'i' },       { TUTTI_U32, "u32", 4, 'i' },
    { TUTTI_I32, "i32", 4, 'i' },       { TUTTI_U64, "u64", 8, 'i' },
    { TUTTI_I64, "i64", 8, 'i' },       { TUTTI_F16, "f16", 2, 'r' },
    { TUTTI_BF16, "bf16", 2, 'r' },     { TUTTI_F32, "f32", 4, 'r' },
    { TUTTI_F64, "f64", 8, 'r' },       { TUTTI_F8E4M3FN, "f8e4m3fn", 1, 'r' },
    { TUTTI_F8E5M2, "f8e5m2", 1, 'r' }, { TUTTI_C64, "c64", 8, 'c' },
    { TUTTI_C128, "c128", 16, 'c' },
};

static const struct {
    tutti_op_kind kind;
    const char *name;
    const char *families;
} ops[] = {
    { TUTTI_OP_SUM, "sum", "birc" },
    { TUTTI_OP_AVG, "avg", "rc" },
    { TUTTI_OP_PRODUCT, "product", "bir" },
    { TUTTI_OP_MIN, "min", "bir" },
    { TUTTI_OP_MAX, "max", "bir" },
    { TUTTI_OP_BAND, "band", "bi" },
    { TUTTI_OP_BOR, "bor", "bi" },
    { TUTTI_OP_BXOR, "bxor", "bi" },
    { TUTTI_OP_PREMUL_SUM, "premul_sum", "rc" },
};

enum { N_DTYPES = sizeof dtypes / sizeof *dtypes, N_OPS = sizeof ops / sizeof *ops };

static void sizes_and_names(void **state)
{
    (void)state;
    assert_int_equal(N_DTYPES, TUTTI_DTYPE_COUNT);
    for (int d = 0; d < N_DTYPES; d++) {
        assert_int_equal(tutti_dtype_size(dtypes[d].dtype), dtypes[d].size);
        assert_string_equal(tutti_dtype_name(dtypes[d].dtype), dtypes[d].name);
    }
    for (int o = 0; o < N_OPS; o++)
        assert_string_equal(tutti_op_name(ops[o].kind), ops[o].name);
}

static void out_of_range_is_answered(void **state)
{
    const tutti_op no_op = { .kind = TUTTI_OP_COUNT };

    (void)state;
    assert_int_equal(tutti_dtype_size(TUTTI_DTYPE_COUNT), 0);
    assert_int_equal(tutti_dtype_size((tutti_dtype)-1), 0);
    assert_string_equal(tutti_dtype_name((tutti_dtype)-1), "?");
    assert_string_equal(tutti_op_name(TUTTI_OP_COUNT), "?");
    assert_int_equal(tutti_op_check(no_op, TUTTI_F32), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "9 is no reduction operation"));
    assert_int_equal(tutti_op_check(TUTTI_SUM, (tutti_dtype)1000), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "1000 is no dtype"));
}

static void op_check_follows_the_table(void **state)
{
    (void)state;
    assert_int_equal(N_OPS, TUTTI_OP_COUNT);
    for (int o = 0; o < N_OPS; o++)
        for (int d = 0; d < N_DTYPES; d++) {
            const tutti_op op = { .kind = ops[o].kind, .factor = 1.0 };
            const int defined = strchr(ops[o].families, dtypes[d].family) != NULL;

            assert_int_equal(tutti_op_check(op, dtypes[d].dtype), defined ? TUTTI_OK : TUTTI_E_ARG);
        }
}

static void a_refusal_names_what_is_possible(void **state)
{
    (void)state;
    assert_int_equal(tutti_op_check(TUTTI_AVG, TUTTI_I32), TUTTI_E_ARG);
    assert_string_equal(tutti_last_error(),
                        "op 'avg' is not defined for dtype 'i32', only for f16, bf16, f32, f64, "
                        "f8e4m3fn, f8e5m2, c64, c128\n"
                        "  next: reduce 'i32' with one of sum, product, min, max, band, bor, bxor");
    assert_int_equal(tutti_op_check(TUTTI_MAX, TUTTI_C64), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "for bool, u8, i8, u16, i16, u32, i32, u64, i64, "
                                               "f16, bf16, f32, f64, f8e4m3fn, f8e5m2\n"));
    assert_non_null(strstr(tutti_last_error(), "'c64' with one of sum, avg, premul_sum"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_names),
        cmocka_unit_test(out_of_range_is_answered),
        cmocka_unit_test(op_check_follows_the_table),
        cmocka_unit_test(a_refusal_names_what_is_possible),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
