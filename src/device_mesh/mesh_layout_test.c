/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mesh_layout_test.c
 * Goal    positions, indices and sets of dimensions fit together, for every set of every small grid.
 * Method  all shapes of three dimensions of 1 to 3 are walked by plain loops and compared. */
#include "device_mesh/mesh_layout.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* One point: its position, counted by the caller, against what the layout says for each set. */
static void check_point(const tti_mesh_layout *layout, const int *c, int position)
{
    const tti_mesh_dims all = tti_mesh_all(layout);
    tti_mesh_dims       dims;

    assert_int_equal(tti_mesh_index(layout, all, position), position);
    assert_int_equal(tti_mesh_at(layout, all, position), position);
    for (dims = 0; dims <= all; dims++) {
        const int index = tti_mesh_index(layout, dims, position);
        const int rest = tti_mesh_index(layout, all & ~dims, position);

        assert_in_range(index, 0, tti_mesh_extent(layout, dims) - 1);
        assert_int_equal(tti_mesh_at(layout, dims, index) + tti_mesh_at(layout, all & ~dims, rest),
                         position);
    }
    assert_int_equal(tti_mesh_index(layout, 1, position), c[0]);
    assert_int_equal(tti_mesh_index(layout, 2, position), c[1]);
    assert_int_equal(tti_mesh_index(layout, 4, position), c[2]);
    assert_int_equal(tti_mesh_index(layout, 5, position), c[0] * layout->shape[2] + c[2]);
}

static void check_grid(const int *shape)
{
    tti_mesh_layout layout;
    int             c[3];
    int             position = 0;

    assert_int_equal(tti_mesh_layout_init(&layout, shape, 3), TUTTI_OK);
    assert_int_equal(layout.size, shape[0] * shape[1] * shape[2]);
    assert_int_equal(tti_mesh_extent(&layout, 0), 1);
    assert_int_equal(tti_mesh_extent(&layout, 5), shape[0] * shape[2]);
    for (c[0] = 0; c[0] < shape[0]; c[0]++)
        for (c[1] = 0; c[1] < shape[1]; c[1]++)
            for (c[2] = 0; c[2] < shape[2]; c[2]++)
                check_point(&layout, c, position++);
}

static void test_grids(void **state)
{
    int shape[3];

    (void)state;
    for (shape[0] = 1; shape[0] <= 3; shape[0]++)
        for (shape[1] = 1; shape[1] <= 3; shape[1]++)
            for (shape[2] = 1; shape[2] <= 3; shape[2]++)
                check_grid(shape);
}

static void test_before(void **state)
{
    (void)state;
    assert_true(tti_mesh_before(1, 2));
    assert_true(tti_mesh_before(3, 4 | 8));
    assert_false(tti_mesh_before(2, 1));
    assert_false(tti_mesh_before(1, 1));
    assert_false(tti_mesh_before(1 | 4, 2));
    assert_false(tti_mesh_before(2, 1 | 4));
}

static void test_refused(void **state)
{
    const int       empty[] = { 2, 0 };
    const int       large[] = { INT_MAX, 1, 2 };
    const int       largest[] = { INT_MAX, 1 };
    int             many[TUTTI_MESH_DIMS_MAX + 1];
    tti_mesh_layout layout;
    int             d;

    (void)state;
    for (d = 0; d <= TUTTI_MESH_DIMS_MAX; d++)
        many[d] = 1;
    assert_int_equal(tti_mesh_layout_init(&layout, empty, 2), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "dimension 1 has size 0"));
    assert_int_equal(tti_mesh_layout_init(&layout, large, 3), TUTTI_E_ARG);
    assert_int_equal(tti_mesh_layout_init(&layout, largest, 2), TUTTI_OK);
    assert_int_equal(tti_mesh_layout_init(&layout, NULL, 1), TUTTI_E_ARG);
    assert_int_equal(tti_mesh_layout_init(&layout, empty, 0), TUTTI_E_ARG);
    assert_int_equal(tti_mesh_layout_init(&layout, many, TUTTI_MESH_DIMS_MAX), TUTTI_OK);
    assert_int_equal(tti_mesh_layout_init(&layout, many, TUTTI_MESH_DIMS_MAX + 1),
                     TUTTI_E_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grids),
        cmocka_unit_test(test_before),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
