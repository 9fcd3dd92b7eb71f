/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dlpack_old_test.c
 * Goal    a program that includes a real dlpack.h from before version 1 first does not clash with
 *         tutti/dlpack.h, and gets from it what the old one lacks.
 * Method  what such a header declares, in as few words as the ABI allows, stands in for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define DLPACK_DLPACK_H_
#define DLPACK_VERSION 60
typedef enum { kDLCPU = 1, kDLCUDA = 2 } DLDeviceType;
typedef struct {
    DLDeviceType device_type;
    int device_id;
} DLDevice;
typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DLDataType;
typedef struct {
    void *data;
    DLDevice device;
    int ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#include <tutti/dlpack.h>

static void test_old_first(void **state)
{
    float x[2] = { 1, 2 };
    tutti_span span = TUTTI_SPAN(x, 2), back;
    DLManagedTensorVersioned m = { .version = { 1, 0 }, .flags = DLPACK_FLAG_BITMASK_READ_ONLY };

    (void)state;
    assert_int_equal(tutti_span_to_dlpack(&span, &m.dl_tensor), TUTTI_OK);
    assert_int_equal(m.dl_tensor.device.device_type, kDLCPU);
    assert_int_equal(tutti_span_from_dlpack(&m.dl_tensor, &back), TUTTI_OK);
    assert_ptr_equal(back.data, x);
    assert_int_equal(m.flags, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_old_first) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
