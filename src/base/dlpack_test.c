/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dlpack_test.c
 * Goal    spans become DLPack's tensors and come back, field by field; what is no span is refused
 *         with the fact that was wrong.
 * Method  the table of element types is written down again, in DLPack's numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/dlpack.h>

static const struct {
    tutti_dtype dtype;
    uint8_t code;
    uint8_t bits;
} types[] = {
    { TUTTI_BOOL, 6, 8 }, { TUTTI_U8, 1, 8 },        { TUTTI_I8, 0, 8 },
    { TUTTI_U16, 1, 16 }, { TUTTI_I16, 0, 16 },      { TUTTI_U32, 1, 32 },
    { TUTTI_I32, 0, 32 }, { TUTTI_U64, 1, 64 },      { TUTTI_I64, 0, 64 },
    { TUTTI_F16, 2, 16 }, { TUTTI_BF16, 4, 16 },     { TUTTI_F32, 2, 32 },
    { TUTTI_F64, 2, 64 }, { TUTTI_F8E4M3FN, 10, 8 }, { TUTTI_F8E5M2, 12, 8 },
    { TUTTI_C64, 5, 64 }, { TUTTI_C128, 5, 128 },
};

static void test_types(void **state)
{
    DLDataType type;
    tutti_dtype dtype;
    size_t i;

    (void)state;
    assert_int_equal(sizeof types / sizeof types[0], TUTTI_DTYPE_COUNT);
    for (i = 0; i < TUTTI_DTYPE_COUNT; i++) {
        memset(&type, 0xff, sizeof type);
        assert_int_equal(tutti_dtype_to_dlpack(types[i].dtype, &type), TUTTI_OK);
        assert_int_equal(type.code, types[i].code);
        assert_int_equal(type.bits, types[i].bits);
        assert_int_equal(type.lanes, 1);
        assert_int_equal(tutti_dtype_from_dlpack(type, &dtype), TUTTI_OK);
        assert_int_equal(dtype, types[i].dtype);
    }
    assert_int_equal(tutti_dtype_to_dlpack(TUTTI_DTYPE_COUNT, &type), TUTTI_E_ARG);
}

static void test_unknown_types(void **state)
{
    static const DLDataType unknown[] = {
        { kDLFloat, 32, 4 }, /* lanes */
        { kDLFloat, 32, 0 }, { kDLFloat, 128, 1 },         { kDLInt, 4, 1 },
        { kDLBool, 1, 1 },   { kDLFloat8_e4m3fnuz, 8, 1 }, { kDLOpaqueHandle, 64, 1 },
        { 200, 8, 1 },
    };
    tutti_dtype dtype = TUTTI_F64;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_int_equal(tutti_dtype_from_dlpack(unknown[i], &dtype), TUTTI_E_UNSUPPORTED);
        assert_non_null(strstr(tutti_last_error(), "lanes"));
    }
    assert_int_equal(dtype, TUTTI_F64); /* untouched */
}

static void test_to(void **state)
{
    float x[3] = { 1, 2, 3 };
    tutti_span span = TUTTI_SPAN(x, 3);
    tutti_span gpu = { .data = x, .count = 3, .dtype = TUTTI_BF16, .device = { TUTTI_CUDA, 2 } };
    DLTensor t;

    (void)state;
    memset(&t, 0xff, sizeof t);
    assert_int_equal(tutti_span_to_dlpack(&span, &t), TUTTI_OK);
    assert_ptr_equal(t.data, x);
    assert_int_equal(t.device.device_type, 1);
    assert_int_equal(t.device.device_id, 0);
    assert_int_equal(t.ndim, 1);
    assert_ptr_equal(t.shape, &span.count);
    assert_int_equal(t.shape[0], 3);
    assert_int_equal(t.strides[0], 1);
    assert_int_equal(t.byte_offset, 0);
    assert_int_equal(t.dtype.code, kDLFloat);
    assert_int_equal(tutti_span_to_dlpack(&gpu, &t), TUTTI_OK);
    assert_int_equal(t.device.device_type, 2);
    assert_int_equal(t.device.device_id, 2);
}

static void test_to_refused(void **state)
{
    float x = 0;
    tutti_span span = TUTTI_SPAN(&x, 1);
    DLTensor t;

    (void)state;
    assert_int_equal(tutti_span_to_dlpack(NULL, &t), TUTTI_E_ARG);
    assert_int_equal(tutti_span_to_dlpack(&span, NULL), TUTTI_E_ARG);
    span.count = -1;
    assert_int_equal(tutti_span_to_dlpack(&span, &t), TUTTI_E_ARG);
    span = tutti_span_of(NULL, 1, TUTTI_F32);
    assert_int_equal(tutti_span_to_dlpack(&span, &t), TUTTI_E_ARG);
    span = tutti_span_of(&x, 1, (tutti_dtype)77);
    assert_int_equal(tutti_span_to_dlpack(&span, &t), TUTTI_E_ARG);
    span = tutti_span_of(NULL, 0, TUTTI_F32);
    assert_int_equal(tutti_span_to_dlpack(&span, &t), TUTTI_OK);
}

/* A tensor of 2 x 3 f32 that begins 4 bytes into x; the tests bend one field of it at a time. */
typedef struct model {
    float x[8];
    int64_t shape[2];
    int64_t strides[2];
    DLTensor t;
} model;

static model *model_reset(model *m)
{
    *m = (model){ .shape = { 2, 3 }, .strides = { 3, 1 } };
    m->t = (DLTensor){ .data = m->x,
                       .device = { kDLCPU, 0 },
                       .ndim = 2,
                       .dtype = { kDLFloat, 32, 1 },
                       .shape = m->shape,
                       .strides = m->strides,
                       .byte_offset = 4 };
    return m;
}

static void test_from(void **state)
{
    model m;
    tutti_span span;

    (void)state;
    assert_int_equal(tutti_span_from_dlpack(&model_reset(&m)->t, &span), TUTTI_OK);
    assert_ptr_equal(span.data, &m.x[1]);
    assert_int_equal(span.count, 6);
    assert_int_equal(span.dtype, TUTTI_F32);
    assert_int_equal(span.device.type, TUTTI_CPU);

    m.t.strides = NULL; /* before 1.2: row-major */
    m.t.device.device_type = kDLCUDAHost;
    assert_int_equal(tutti_span_from_dlpack(&m.t, &span), TUTTI_OK);
    assert_int_equal(span.device.type, TUTTI_CPU);

    m.t.device = (DLDevice){ kDLCUDA, 3 };
    assert_int_equal(tutti_span_from_dlpack(&m.t, &span), TUTTI_OK);
    assert_int_equal(span.device.type, TUTTI_CUDA);
    assert_int_equal(span.device.index, 3);

    model_reset(&m)->t.ndim = 0; /* a scalar */
    m.t.shape = m.t.strides = NULL;
    assert_int_equal(tutti_span_from_dlpack(&m.t, &span), TUTTI_OK);
    assert_int_equal(span.count, 1);
}

/* Strides of dimensions of one element, and of tensors without or with one element, mean nothing. */
static void test_idle_strides(void **state)
{
    model m;
    tutti_span span;

    (void)state;
    model_reset(&m)->shape[0] = 1;
    m.strides[0] = 77;
    assert_int_equal(tutti_span_from_dlpack(&m.t, &span), TUTTI_OK);
    assert_int_equal(span.count, 3);

    model_reset(&m)->shape[1] = 0;
    m.strides[0] = -5;
    m.t.data = NULL;
    assert_int_equal(tutti_span_from_dlpack(&m.t, &span), TUTTI_OK);
    assert_int_equal(span.count, 0);
    assert_null(span.data);
}

static void refuse(const DLTensor *tensor, tutti_status status, const char *fact)
{
    tutti_span span = { .count = 42 };

    assert_int_equal(tutti_span_from_dlpack(tensor, &span), status);
    assert_non_null(strstr(tutti_last_error(), fact));
    assert_int_equal(span.count, 42);
}

static void test_from_refused(void **state)
{
    model m;

    (void)state;
    refuse(NULL, TUTTI_E_ARG, "NULL");
    assert_int_equal(tutti_span_from_dlpack(&model_reset(&m)->t, NULL), TUTTI_E_ARG);
    model_reset(&m)->strides[0] = 4;
    refuse(&m.t, TUTTI_E_ARG, "dimension 0 has stride 4, row-major is 3");
    model_reset(&m)->strides[1] = -1;
    refuse(&m.t, TUTTI_E_ARG, "dimension 1 has stride -1");
    model_reset(&m)->shape[1] = -3;
    refuse(&m.t, TUTTI_E_ARG, "size -3 of dimension 1");
    model_reset(&m)->shape[0] = INT64_MAX;
    refuse(&m.t, TUTTI_E_ARG, "more elements than memory");
    model_reset(&m)->shape[0] = INT64_MAX / 8; /* fits as a count, not as bytes */
    refuse(&m.t, TUTTI_E_ARG, "more elements than memory");
    model_reset(&m)->t.ndim = -1;
    refuse(&m.t, TUTTI_E_ARG, "-1 dimensions");
    model_reset(&m)->t.shape = NULL;
    refuse(&m.t, TUTTI_E_ARG, "without a shape");
    model_reset(&m)->t.data = NULL;
    refuse(&m.t, TUTTI_E_ARG, "no data for 6");
    model_reset(&m)->t.byte_offset = 2;
    refuse(&m.t, TUTTI_E_ARG, "not aligned for f32");
    model_reset(&m)->t.dtype.lanes = 2;
    refuse(&m.t, TUTTI_E_UNSUPPORTED, "2 lanes");
    model_reset(&m)->t.device.device_type = kDLMetal;
    refuse(&m.t, TUTTI_E_UNSUPPORTED, "device type 8");
}

/* Complex numbers are aligned like their parts. */
static void test_alignment_of_complex(void **state)
{
    model m;
    tutti_span span;

    (void)state;
    model_reset(&m)->t.dtype = (DLDataType){ kDLComplex, 64, 1 };
    m.shape[1] = 1;
    m.strides[0] = 1;
    assert_int_equal(tutti_span_from_dlpack(&m.t, &span), TUTTI_OK);
    assert_int_equal(span.dtype, TUTTI_C64);
    assert_int_equal(span.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),        cmocka_unit_test(test_unknown_types),
        cmocka_unit_test(test_to),           cmocka_unit_test(test_to_refused),
        cmocka_unit_test(test_from),         cmocka_unit_test(test_idle_strides),
        cmocka_unit_test(test_from_refused), cmocka_unit_test(test_alignment_of_complex),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
