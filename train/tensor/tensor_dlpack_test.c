/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tensor_dlpack_test.c
 * Goal    tensors are lent and borrowed as DLPack, old and versioned: every field, strides, who
 *         deletes what and how often, and what is refused stays its producer's.
 * Method  the test is the other library: a producer that counts how often its deleter runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tutti/autograd.h>
#include <tutti/dlpack.h>

#include "tensor/tensor.h"
#include "tensor/checks.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static double at(tutti_tensor *t, int64_t i, int64_t j)
{
    double v = NAN;

    assert_int_equal(tutti_tensor_item(tutti_tensor_select(tutti_tensor_select(t, 0, i), 0, j), &v),
                     TUTTI_OK);
    return v;
}

/* ---- a producer ------------------------------------------------------------------------------- */

/* x seen as 2 x 3 by columns, one element behind its start. */
typedef struct producer {
    float x[8];
    int64_t shape[2];
    int64_t strides[2];
    DLManagedTensor plain;
    DLManagedTensorVersioned versioned;
    int deleted;
} producer;

static void delete_plain(DLManagedTensor *managed)
{
    ((producer *)managed->manager_ctx)->deleted++;
}

static void delete_versioned(DLManagedTensorVersioned *managed)
{
    ((producer *)managed->manager_ctx)->deleted++;
}

static producer *produce(producer *p)
{
    const DLTensor dl = { .data = p->x,
                          .device = { .device_type = kDLCPU },
                          .ndim = 2,
                          .dtype = { kDLFloat, 32, 1 },
                          .shape = p->shape,
                          .strides = p->strides,
                          .byte_offset = sizeof p->x[0] };

    *p = (producer){ .x = { -1, 0, 10, 1, 11, 2, 12, -1 }, .shape = { 2, 3 }, .strides = { 1, 2 } };
    p->plain = (DLManagedTensor){ .dl_tensor = dl, .manager_ctx = p, .deleter = delete_plain };
    p->versioned = (DLManagedTensorVersioned){
        .version = { 1, 0 }, .manager_ctx = p, .deleter = delete_versioned, .dl_tensor = dl
    };
    return p;
}

/* ---- borrowing -------------------------------------------------------------------------------- */

static void check_borrowed(producer *p, tutti_tensor *t)
{
    assert_non_null(t);
    assert_ptr_equal(tutti_tensor_data(t), &p->x[1]);
    assert_int_equal(tutti_tensor_dim(t), 2);
    assert_int_equal(tutti_tensor_size(t, 0), 2);
    assert_int_equal(tutti_tensor_size(t, 1), 3);
    assert_int_equal(tutti_tensor_stride(t, 0), 1);
    assert_int_equal(tutti_tensor_stride(t, 1), 2);
    assert_int_equal(tutti_tensor_dtype(t), TUTTI_F32);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            assert_true(at(t, i, j) == 10 * i + j);
}

static void borrowed_memory_goes_back_once(void **state)
{
    producer p;
    tutti_tensor *view;

    (void)state;
    tutti_scope_begin();
    view = tutti_tensor_from_dlpack(&produce(&p)->plain);
    check_borrowed(&p, view);
    view = tutti_tensor_retain(tutti_tensor_select(view, 1, 2));
    tutti_scope_end();
    assert_int_equal(p.deleted, 0); /* a view still looks at it */
    tutti_tensor_release(view);
    assert_int_equal(p.deleted, 1);

    tutti_scope_begin();
    check_borrowed(&p, tutti_tensor_from_dlpack_versioned(&produce(&p)->versioned));
    assert_int_equal(p.deleted, 0);
    tutti_scope_end();
    assert_int_equal(p.deleted, 1);
}

static void writes_go_through(void **state)
{
    producer p;
    tutti_tensor *t;

    (void)state;
    produce(&p)->plain.deleter = NULL; /* legal: there is nothing to give back */
    tutti_scope_begin();
    t = tutti_tensor_from_dlpack(&p.plain);
    assert_int_equal(tti_raw_fill_(tutti_tensor_select(t, 0, 1), 5.0), TUTTI_OK);
    tutti_scope_end();
    assert_true(p.x[0] == -1 && p.x[1] == 0 && p.x[2] == 5 && p.x[4] == 5 && p.x[6] == 5);
    assert_true(p.x[7] == -1);
    assert_int_equal(p.deleted, 0);
}

static void what_is_read_only_is_copied(void **state)
{
    producer p;
    tutti_tensor *t;

    (void)state;
    produce(&p)->versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    t = tutti_tensor_from_dlpack_versioned(&p.versioned);
    assert_int_equal(p.deleted, 1); /* and not again at the end of the scope */
    assert_ptr_not_equal(tutti_tensor_data(t), &p.x[1]);
    assert_int_equal(tti_raw_fill_(t, 5.0), TUTTI_OK);
    assert_true(p.x[1] == 0);
    assert_true(at(t, 1, 2) == 5.0);
}

static void without_strides_it_is_row_major(void **state)
{
    producer p;
    tutti_tensor *t;

    (void)state;
    tutti_scope_begin();
    produce(&p)->plain.dl_tensor.strides = NULL;
    t = tutti_tensor_from_dlpack(&p.plain);
    assert_true(tutti_tensor_is_contiguous(t));
    assert_true(at(t, 1, 0) == 11.0);
    tutti_scope_end();

    tutti_scope_begin();
    produce(&p)->plain.dl_tensor.ndim = 0;
    p.plain.dl_tensor.shape = p.plain.dl_tensor.strides = NULL;
    t = tutti_tensor_from_dlpack(&p.plain);
    assert_int_equal(tutti_tensor_numel(t), 1);
    tutti_scope_end();

    tutti_scope_begin();
    produce(&p)->shape[1] = 0;
    p.plain.dl_tensor.data = NULL;
    t = tutti_tensor_from_dlpack(&p.plain);
    assert_int_equal(tutti_tensor_numel(t), 0);
    tutti_scope_end();
    assert_int_equal(p.deleted, 1);
}

static void refused(producer *p, tutti_status status, const char *fact)
{
    tutti_tensor *t = tutti_tensor_from_dlpack_versioned(&p->versioned);

    assert_null(t);
    assert_int_equal(tutti_tensor_check(), status);
    assert_non_null(strstr(tutti_last_error(), "from_dlpack"));
    assert_non_null(strstr(tutti_last_error(), fact));
    assert_int_equal(p->deleted, 0);
}

static void what_is_refused_stays_the_producers(void **state)
{
    producer p;

    (void)state;
    assert_null(tutti_tensor_from_dlpack(NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_null(tutti_tensor_from_dlpack_versioned(NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    produce(&p)->versioned.version.major = 2;
    refused(&p, TUTTI_E_UNSUPPORTED, "DLPack 2.0");
    produce(&p)->strides[1] = -2;
    refused(&p, TUTTI_E_ARG, "stride -2 of dimension 1");
    produce(&p)->shape[0] = -1;
    refused(&p, TUTTI_E_ARG, "size -1 of dimension 0");
    produce(&p)->versioned.dl_tensor.ndim = 9;
    refused(&p, TUTTI_E_ARG, "9 dimensions");
    produce(&p)->versioned.dl_tensor.byte_offset = 1;
    refused(&p, TUTTI_E_ARG, "not aligned for f32");
    produce(&p)->versioned.dl_tensor.data = NULL;
    refused(&p, TUTTI_E_ARG, "NULL for 6 elements");
    produce(&p)->versioned.dl_tensor.device.device_type = kDLCUDA;
    refused(&p, TUTTI_E_UNSUPPORTED, "on a device");
    produce(&p)->versioned.dl_tensor.device.device_type = kDLVulkan;
    refused(&p, TUTTI_E_UNSUPPORTED, "device type 7");
    produce(&p)->versioned.dl_tensor.dtype.bits = 24;
    refused(&p, TUTTI_E_UNSUPPORTED, "24 bits");
    produce(&p)->versioned.dl_tensor.dtype = (DLDataType){ kDLInt, 16, 1 };
    refused(&p, TUTTI_E_UNSUPPORTED, "'i16'");
}

/* ---- lending ---------------------------------------------------------------------------------- */

static void check_lent(const DLTensor *dl, const tutti_tensor *t)
{
    assert_ptr_equal(dl->data, tutti_tensor_data(t));
    assert_int_equal(dl->byte_offset, 0);
    assert_int_equal(dl->device.device_type, kDLCPU);
    assert_int_equal(dl->device.device_id, 0);
    assert_int_equal(dl->ndim, 2);
    assert_int_equal(dl->shape[0], 3);
    assert_int_equal(dl->shape[1], 1);
    assert_int_equal(dl->strides[0], 1);
    assert_int_equal(dl->strides[1], 3);
    assert_int_equal(dl->dtype.code, kDLInt);
    assert_int_equal(dl->dtype.bits, 64);
    assert_int_equal(dl->dtype.lanes, 1);
}

static void free_count(void *data, void *ctx)
{
    (void)data;
    ++*(int *)ctx;
}

static void lent_memory_stays_until_it_is_deleted(void **state)
{
    int64_t x[6] = { 0, 1, 2, 3, 4, 5 };
    int freed = 0;
    DLManagedTensor *plain = NULL;
    DLManagedTensorVersioned *versioned = NULL;
    tutti_tensor *t;

    (void)state;
    tutti_scope_begin();
    t = tutti_tensor_from_ptr(x, TUTTI_I64, 2, SHAPE(2, 3), free_count, &freed);
    t = tutti_tensor_narrow(tutti_tensor_transpose(t, 0, 1), 1, 1, 1);
    assert_int_equal(tutti_tensor_to_dlpack(t, &plain), TUTTI_OK);
    assert_int_equal(tutti_tensor_to_dlpack_versioned(t, &versioned), TUTTI_OK);
    check_lent(&plain->dl_tensor, t);
    check_lent(&versioned->dl_tensor, t);
    tutti_scope_end();
    assert_int_equal(versioned->version.major, 1);
    assert_int_equal(versioned->version.minor, 1);
    assert_int_equal(versioned->flags, 0);
    assert_int_equal(((int64_t *)plain->dl_tensor.data)[2], 5);
    plain->deleter(plain);
    assert_int_equal(freed, 0);
    versioned->deleter(versioned);
    assert_int_equal(freed, 1);
}

static void tensors_take_their_own_way_back(void **state)
{
    DLManagedTensorVersioned *versioned = NULL;
    tutti_tensor *t = tutti_tensor_arange(TUTTI_F64, 0, 6, 1);
    tutti_tensor *back;

    (void)state;
    assert_int_equal(tutti_tensor_to_dlpack_versioned(t, &versioned), TUTTI_OK);
    back = tutti_tensor_from_dlpack_versioned(versioned);
    assert_ptr_equal(tutti_tensor_data(back), tutti_tensor_data(t));
    assert_true(tutti_tensor_equal(back, t));
}

static void an_empty_tensor_has_no_address(void **state)
{
    DLManagedTensor *plain = NULL;

    (void)state;
    assert_int_equal(tutti_tensor_to_dlpack(tutti_tensor_zeros(TUTTI_BOOL, 2, SHAPE(0, 3)), &plain),
                     TUTTI_OK);
    assert_null(plain->dl_tensor.data);
    assert_int_equal(plain->dl_tensor.shape[0], 0);
    assert_int_equal(plain->dl_tensor.dtype.code, kDLBool);
    plain->deleter(plain);
}

static void gradients_are_not_lent(void **state)
{
    DLManagedTensor *plain = NULL;
    tutti_tensor *t = tutti_tensor_requires_grad_(tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(2)), true);

    (void)state;
    assert_int_equal(tutti_tensor_to_dlpack(t, &plain), TUTTI_E_STATE);
    assert_non_null(strstr(tutti_last_error(), "tutti_tensor_detach"));
    assert_null(plain);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_STATE);
    assert_int_equal(tutti_tensor_to_dlpack(NULL, &plain), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_to_dlpack(tutti_tensor_detach(t), &plain), TUTTI_OK);
    plain->deleter(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(borrowed_memory_goes_back_once, begin, end),
        cmocka_unit_test_setup_teardown(writes_go_through, begin, end),
        cmocka_unit_test_setup_teardown(what_is_read_only_is_copied, begin, end),
        cmocka_unit_test_setup_teardown(without_strides_it_is_row_major, begin, end),
        cmocka_unit_test_setup_teardown(what_is_refused_stays_the_producers, begin, end),
        cmocka_unit_test_setup_teardown(lent_memory_stays_until_it_is_deleted, begin, end),
        cmocka_unit_test_setup_teardown(tensors_take_their_own_way_back, begin, end),
        cmocka_unit_test_setup_teardown(an_empty_tensor_has_no_address, begin, end),
        cmocka_unit_test_setup_teardown(gradients_are_not_lent, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
