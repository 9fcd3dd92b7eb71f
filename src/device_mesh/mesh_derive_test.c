/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mesh_derive_test.c
 * Goal    a dimension that is split, and slices that are put together, have the shape, ranks, coordinates and
 *         groups that follow from the mesh they come from; only new dimensions get groups, which end with the
 *         last mesh; the current mesh is a thread's own; a mesh in words.
 * Method  ranks as threads. */
#include "group/fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/debug.h>
#include <tutti/device_mesh.h>

enum { LONG_MS = 30000 };

static const char *const pp_dp_tp[] = { "pp", "dp", "tp" };
static const char *const a_b[] = { "a", "b" };
static const int cube[] = { 2, 2, 2 };
static const int twos[] = { 2, 2 };

static bool said(const char *word)
{
    return strstr(tutti_last_error(), word) != NULL;
}

static tutti_device_mesh *make(const int *shape, int ndim, const char *const *names)
{
    tutti_device_mesh *mesh = NULL;

    CHECK(tutti_init_device_mesh(TUTTI_CPU, shape, ndim, names, &mesh) == TUTTI_OK);
    return mesh;
}

static tutti_device_mesh *slice(tutti_device_mesh *mesh, const char *a, const char *b)
{
    const char *const names[] = { a, b };
    tutti_device_mesh *out = NULL;

    CHECK(tutti_device_mesh_slice(mesh, names, b != NULL ? 2 : 1, &out) == TUTTI_OK);
    return out;
}

static tutti_group *along(const tutti_device_mesh *mesh, const char *name)
{
    tutti_group *group = NULL;

    CHECK(tutti_device_mesh_get_group_by_name(mesh, name, &group) == TUTTI_OK);
    return group;
}

static bool members(const tutti_group *group, int first, int second)
{
    const int *ranks = tutti_get_process_group_ranks(group);

    return tutti_get_world_size(group) == 2 && ranks[0] == first && ranks[1] == second;
}

static int sum_along(tutti_group *group, int value)
{
    int32_t x = value;

    CHECK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group) == TUTTI_OK);
    return x;
}

static void expect_words(const tutti_device_mesh *mesh, const char *words)
{
    char text[256] = "?";

    CHECK(tutti_device_mesh_to_string(mesh, text, sizeof text) == strlen(words));
    if (strcmp(text, words) != 0)
        fprintf(stderr, "in words: %s\n", text);
    CHECK(strcmp(text, words) == 0);
}

/* ---- one dimension into several ---- */

static void split_root(fake_rank *r)
{
    const int shape[] = { 2, 4 };
    const char *const dp_tp[] = { "dp", "tp" };
    tutti_device_mesh *mesh = make(shape, 2, dp_tp);
    tutti_device_mesh *fine = NULL;
    const int n_made = tutti_get_pg_count();
    const int tp = r->rank % 4;

    CHECK(tutti_device_mesh_unflatten(mesh, 1, twos, 2, a_b, &fine) == TUTTI_OK);
    CHECK(tutti_device_mesh_ndim(fine) == 3 && tutti_device_mesh_size(fine) == 8);
    CHECK(memcmp(tutti_device_mesh_shape(fine), cube, sizeof cube) == 0);
    CHECK(tutti_device_mesh_ranks(fine)[5] == 5);
    CHECK(tutti_device_mesh_get_coordinate(fine)[0] == r->rank / 4);
    CHECK(tutti_device_mesh_get_coordinate(fine)[1] == tp / 2);
    CHECK(tutti_device_mesh_get_coordinate(fine)[2] == tp % 2);
    CHECK(along(fine, "dp") == along(mesh, "dp"));
    CHECK(members(along(fine, "a"), r->rank - tp + tp % 2, r->rank - tp + tp % 2 + 2));
    CHECK(members(along(fine, "b"), r->rank / 2 * 2, r->rank / 2 * 2 + 1));
    CHECK(tutti_get_pg_count() == n_made + 8); /* four along a, four along b, none along dp */
    tutti_device_mesh_free(mesh);
    CHECK(sum_along(along(fine, "dp"), r->rank) == 2 * tp + 4); /* the finer one keeps them */
    tutti_device_mesh_free(fine);
    CHECK(r->world->children == NULL && r->world->meshes == NULL);
}

static void test_split(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(8, split_root, NULL), 0);
}

/* Of a slice: what it leaves out stays out. */
static void split_slice(fake_rank *r)
{
    const int shape[] = { 2, 4 };
    const char *const pp_x[] = { "pp", "x" };
    tutti_device_mesh *mesh = make(shape, 2, pp_x);
    tutti_device_mesh *x = slice(mesh, "x", NULL);
    tutti_device_mesh *fine = NULL, *a = NULL, *flat = NULL;
    const int base = r->rank / 4 * 4;

    CHECK(tutti_device_mesh_unflatten(x, 0, twos, 2, a_b, &fine) == TUTTI_OK);
    CHECK(tutti_device_mesh_ndim(fine) == 2 && tutti_device_mesh_size(fine) == 4);
    CHECK(tutti_device_mesh_ranks(fine)[3] == base + 3);
    CHECK(tutti_device_mesh_get_coordinate(fine)[0] == r->rank % 4 / 2);
    CHECK(members(along(fine, "b"), r->rank / 2 * 2, r->rank / 2 * 2 + 1));
    CHECK(tutti_device_mesh_flatten(fine, "again", &flat) == TUTTI_OK);
    CHECK(sum_along(along(flat, "again"), r->rank) == 4 * base + 6);
    a = slice(fine, "a", NULL);
    CHECK(tutti_device_mesh_ranks(a)[1] == base + r->rank % 2 + 2);
    expect_words(fine, "DeviceMesh((a=2, b=2), 'cpu', stride=(2, 1))");
    tutti_device_mesh_free(flat);
    tutti_device_mesh_free(mesh);
    tutti_device_mesh_free(x);
    tutti_device_mesh_free(fine);
    tutti_device_mesh_free(a);
    CHECK(r->world->children == NULL && r->world->meshes == NULL);
}

static void test_split_slice(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(8, split_slice, NULL), 0);
}

/* Dimensions that are no neighbours, flattened, and split again; on a rank outside of the mesh as well. */
static void split_flattened(fake_rank *r)
{
    tutti_device_mesh *mesh = make(cube, 3, pp_dp_tp);
    tutti_device_mesh *pp_tp = slice(mesh, "pp", "tp");
    tutti_device_mesh *flat = NULL, *fine = NULL;
    const int dp = r->rank / 2 % 2;

    CHECK(tutti_device_mesh_flatten(pp_tp, "plane", &flat) == TUTTI_OK);
    CHECK(tutti_device_mesh_unflatten(flat, 0, twos, 2, a_b, &fine) == TUTTI_OK);
    CHECK(tutti_device_mesh_size(fine) == 4);
    if (r->rank == 8) {
        CHECK(tutti_device_mesh_get_coordinate(fine) == NULL);
        CHECK(along(fine, "a") == TUTTI_NON_MEMBER);
    } else {
        CHECK(tutti_device_mesh_ranks(fine)[2] == 2 * dp + 4);
        CHECK(members(along(fine, "a"), r->rank % 4, r->rank % 4 + 4)); /* the lines of pp, */
        CHECK(members(along(fine, "b"), r->rank / 2 * 2, r->rank / 2 * 2 + 1)); /* and of tp */
    }
    expect_words(flat, "DeviceMesh((plane=4), 'cpu', stride=((4, 1)))");
    tutti_device_mesh_free(mesh);
    tutti_device_mesh_free(pp_tp);
    tutti_device_mesh_free(flat);
    tutti_device_mesh_free(fine);
    CHECK(r->world->children == NULL && r->world->meshes == NULL);
}

static void test_split_flattened(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(9, split_flattened, NULL), 0);
}

static void split_refused(fake_rank *r)
{
    const int shape[] = { 1, 4 };
    const int odd[] = { 2, 3 }, zero[] = { 0, 4 };
    const char *const dp_tp[] = { "dp", "tp" }, *const same[] = { "dp", "b" };
    const int fives[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4 };
    tutti_device_mesh *mesh = make(shape, 2, dp_tp), *bare = make(shape, 2, NULL), *out = NULL;
    const int n_made = tutti_get_pg_count();

    CHECK(tutti_device_mesh_unflatten(mesh, 2, twos, 2, a_b, &out) == TUTTI_E_ARG &&
          said("outside of 0 .. 1"));
    CHECK(tutti_device_mesh_unflatten(mesh, 1, odd, 2, a_b, &out) == TUTTI_E_ARG &&
          said("do not multiply to 4"));
    CHECK(tutti_device_mesh_unflatten(mesh, 1, zero, 2, a_b, &out) == TUTTI_E_ARG);
    CHECK(tutti_device_mesh_unflatten(mesh, 1, NULL, 2, a_b, &out) == TUTTI_E_ARG);
    CHECK(tutti_device_mesh_unflatten(mesh, 1, twos, 0, a_b, &out) == TUTTI_E_ARG &&
          said("split into 0"));
    CHECK(tutti_device_mesh_unflatten(mesh, 1, twos, 2, NULL, &out) == TUTTI_E_ARG &&
          said("parts have no"));
    CHECK(tutti_device_mesh_unflatten(bare, 1, twos, 2, a_b, &out) == TUTTI_E_ARG &&
          said("mesh has no names"));
    CHECK(tutti_device_mesh_unflatten(mesh, 1, twos, 2, same, &out) == TUTTI_E_ARG &&
          said("both named 'dp'"));
    CHECK(tutti_device_mesh_unflatten(bare, 1, fives, 15, NULL, &out) == TUTTI_E_UNSUPPORTED);
    CHECK(tutti_device_mesh_unflatten(mesh, 1, twos, 2, a_b, NULL) == TUTTI_E_ARG && out == NULL);
    CHECK(tutti_get_pg_count() == n_made && r->world->n_meshes == 11); /* nine were refused */
    CHECK(tutti_device_mesh_unflatten(bare, 1, twos, 2, NULL, &out) == TUTTI_OK);
    expect_words(out, "DeviceMesh((1, 2, 2), 'cpu', stride=(4, 2, 1))");
    tutti_device_mesh_free(out);
    tutti_device_mesh_free(bare);
    tutti_device_mesh_free(mesh);
}

static void test_split_refused(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, split_refused, NULL), 0);
}

/* Ranks that split differently: both hear of it. */
static void split_differently(fake_rank *r)
{
    const int shape[] = { 2 };
    const int parts[2][2] = { { 1, 2 }, { 2, 1 } };
    tutti_device_mesh *mesh = make(shape, 1, a_b), *out = NULL;
    tutti_status st = tutti_device_mesh_unflatten(mesh, 0, parts[r->rank], 2, pp_dp_tp, &out);

    CHECK(st == TUTTI_E_MISMATCH && out == NULL && said("rank 1 makes ") && said("2 x 1") && said("1 x 2"));
    tutti_device_mesh_free(mesh);
}

/* ---- several into one ---- */

static void put_together(fake_rank *r)
{
    tutti_device_mesh *mesh = make(cube, 3, pp_dp_tp), *other = make(cube, 3, pp_dp_tp);
    tutti_device_mesh *pp = slice(mesh, "pp", NULL), *dp_tp = slice(mesh, "dp", "tp");
    tutti_device_mesh *tp = slice(mesh, "tp", NULL), *foreign = slice(other, "tp", NULL),
                      *out = NULL;
    const int n_made = tutti_get_pg_count();

    CHECK(tutti_device_mesh_concatenate((tutti_device_mesh *[]){ pp, dp_tp }, 2, &out) == TUTTI_OK);
    CHECK(tutti_device_mesh_equal(out, mesh) && along(out, "dp") == along(mesh, "dp"));
    tutti_device_mesh_free(out);
    CHECK(tutti_device_mesh_concatenate((tutti_device_mesh *[]){ pp, tp }, 2, &out) == TUTTI_OK);
    CHECK(tutti_device_mesh_size(out) == 4 && along(out, "tp") == along(mesh, "tp"));
    CHECK(tutti_device_mesh_ranks(out)[3] == r->rank / 2 % 2 * 2 + 5);
    tutti_device_mesh_free(out);
    CHECK(tutti_device_mesh_concatenate(&tp, 1, &out) == TUTTI_OK && out == tp);
    tutti_device_mesh_free(out);
    out = NULL;
    CHECK(tutti_device_mesh_concatenate((tutti_device_mesh *[]){ tp, pp }, 2, &out) == TUTTI_E_ARG);
    CHECK(said("'pp' does not come after 'tp'"));
    CHECK(tutti_device_mesh_concatenate((tutti_device_mesh *[]){ dp_tp, tp }, 2, &out) ==
          TUTTI_E_ARG);
    CHECK(tutti_device_mesh_concatenate((tutti_device_mesh *[]){ pp, foreign }, 2, &out) ==
          TUTTI_E_ARG);
    CHECK(said("mesh 1 is not of the same root"));
    CHECK(tutti_device_mesh_concatenate(NULL, 1, &out) == TUTTI_E_ARG);
    CHECK(tutti_device_mesh_concatenate(&tp, 0, &out) == TUTTI_E_ARG && out == NULL);
    CHECK(tutti_get_pg_count() == n_made);
    tutti_device_mesh_free(mesh);
    tutti_device_mesh_free(other);
    tutti_device_mesh_free(pp);
    tutti_device_mesh_free(dp_tp);
    tutti_device_mesh_free(tp);
    tutti_device_mesh_free(foreign);
    CHECK(r->world->children == NULL);
}

static void test_put_together(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(8, put_together, NULL), 0);
}

static void test_split_differently(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, split_differently, NULL), 0);
}

/* ---- the current mesh, and words ---- */

static void each_its_own(fake_rank *r)
{
    const int shape[] = { 1, 2 };
    tutti_device_mesh *mesh = make(shape, 2, a_b), *b = slice(mesh, "b", NULL), *now = NULL;
    int i;

    CHECK(tutti_device_mesh_current(&now) == TUTTI_E_STATE && said("none is pushed"));
    CHECK(tutti_device_mesh_pop() == TUTTI_E_STATE && tutti_device_mesh_push(NULL) == TUTTI_E_ARG);
    if (r->rank == 0)
        CHECK(tutti_device_mesh_push(mesh) == TUTTI_OK);
    CHECK(tutti_barrier(r->world) == TUTTI_OK);
    CHECK(tutti_device_mesh_current(&now) == (r->rank == 0 ? TUTTI_OK : TUTTI_E_STATE));
    CHECK(now == (r->rank == 0 ? mesh : NULL));
    CHECK(tutti_device_mesh_push(b) == TUTTI_OK);
    tutti_device_mesh_free(b); /* the thread holds it */
    CHECK(tutti_device_mesh_current(&now) == TUTTI_OK && now == b &&
          tutti_device_mesh_size(now) == 2);
    CHECK(tutti_device_mesh_current(NULL) == TUTTI_E_ARG);
    CHECK(tutti_device_mesh_pop() == TUTTI_OK);
    for (i = r->rank == 0; i < TUTTI_MESH_CONTEXTS_MAX; i++)
        CHECK(tutti_device_mesh_push(mesh) == TUTTI_OK);
    CHECK(tutti_device_mesh_push(mesh) == TUTTI_E_UNSUPPORTED);
    while (tutti_device_mesh_pop() == TUTTI_OK)
        continue;
    tutti_device_mesh_free(mesh);
    CHECK(r->world->meshes == NULL);
}

static void test_each_its_own(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, each_its_own, NULL), 0);
}

static void test_words(void **state)
{
    const int shape[] = { 1, 1 };
    tutti_group *world = fake_world_of_one(LONG_MS);
    const tutti_debug_level level = tutti_get_debug_level();
    const char *all = "DeviceMesh((a=1, b=1), 'cpu', stride=(1, 1))";
    tutti_device_mesh *mesh;
    char text[8];

    (void)state;
    tutti_use_group(world);
    mesh = make(shape, 2, a_b);
    expect_words(mesh, all);
    assert_int_equal(tutti_device_mesh_to_string(mesh, NULL, 0), strlen(all));
    assert_int_equal(tutti_device_mesh_to_string(mesh, text, sizeof text), strlen(all));
    assert_string_equal(text, "DeviceM");
    tutti_set_debug_level(TUTTI_DEBUG_DETAIL);
    expect_words(mesh, "DeviceMesh((a=1, b=1), 'cpu', stride=(1, 1), ranks=[0])");
    tutti_set_debug_level(level);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    assert_int_equal(tutti_device_mesh_unflatten(mesh, 0, shape, 2, pp_dp_tp, &mesh),
                     TUTTI_E_STATE);
    expect_words(mesh, all);
    tutti_device_mesh_free(mesh);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_split),
        TEST(test_split_slice),
        TEST(test_split_flattened),
        TEST(test_split_refused),
        TEST(test_split_differently),
        TEST(test_put_together),
        TEST(test_each_its_own),
        TEST(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
