/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_mesh_test.c
 * Goal    meshes have the shape, ranks, coordinates and groups that are promised, for members and
 *         others; groups are made once, and end with the meshes or the world; wrong uses are refused
 *         before anything is made.
 * Method  ranks as threads. */
#include "group/fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/device_mesh.h>

enum { SHORT_MS = 50, LONG_MS = 30000 };

static const char *const dp_tp[] = { "dp", "tp" };
static const int         two_by_three[] = { 2, 3 };

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
    const char *const  names[] = { a, b };
    tutti_device_mesh *out = NULL;

    CHECK(tutti_device_mesh_slice(mesh, names, b != NULL ? 2 : 1, &out) == TUTTI_OK);
    return out;
}

static tutti_device_mesh *flatten(tutti_device_mesh *mesh, const char *name)
{
    tutti_device_mesh *out = NULL;

    CHECK(tutti_device_mesh_flatten(mesh, name, &out) == TUTTI_OK);
    return out;
}

static tutti_group *along(const tutti_device_mesh *mesh, const char *name)
{
    tutti_group *group = NULL;

    CHECK(tutti_device_mesh_get_group_by_name(mesh, name, &group) == TUTTI_OK);
    return group;
}

static bool members(const tutti_group *group, const int *ranks, int n)
{
    return tutti_get_world_size(group) == n &&
           memcmp(tutti_get_process_group_ranks(group), ranks, (size_t)n * sizeof *ranks) == 0;
}

static int sum_along(tutti_group *group, int value)
{
    int32_t x = value;

    CHECK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group) == TUTTI_OK);
    return x;
}

/* ---- a grid ---- */

static void grid(fake_rank *r)
{
    tutti_device_mesh *mesh = make(two_by_three, 2, dp_tp);
    const int          row = r->rank / 3, col = r->rank % 3;
    const int          column[] = { col, col + 3 };
    const int         *at = tutti_device_mesh_get_coordinate(mesh);
    tutti_group       *groups[2] = { 0 };

    CHECK(tutti_device_mesh_ndim(mesh) == 2 && tutti_device_mesh_size(mesh) == 6);
    CHECK(memcmp(tutti_device_mesh_shape(mesh), two_by_three, sizeof two_by_three) == 0);
    CHECK(tutti_device_mesh_ranks(mesh)[4] == 4);
    CHECK(at != NULL && at[0] == row && at[1] == col);
    CHECK(tutti_device_mesh_get_local_rank(mesh, 0) == row);
    CHECK(tutti_device_mesh_get_local_rank(mesh, 1) == col);
    CHECK(tutti_device_mesh_get_local_rank(mesh, 2) == -1);
    CHECK(tutti_device_mesh_get_rank(mesh) == r->rank);
    CHECK(tutti_device_mesh_device_type(mesh) == TUTTI_CPU);
    CHECK(strcmp(tutti_device_mesh_dim_name(mesh, 1), "tp") == 0);
    CHECK(tutti_device_mesh_dim_name(mesh, 2) == NULL &&
          tutti_device_mesh_dim_name(mesh, -1) == NULL);
    CHECK(tutti_device_mesh_find_dim(mesh, "tp") == 1 &&
          tutti_device_mesh_find_dim(mesh, "x") == -1);
    CHECK(tutti_device_mesh_get_all_groups(mesh, groups) == TUTTI_OK);
    CHECK(groups[0] == along(mesh, "dp") && groups[1] == along(mesh, "tp"));
    CHECK(members(groups[0], column, 2) && tutti_get_rank(groups[1]) == col);
    CHECK(strcmp(tutti_get_group_desc(groups[0]), "mesh_dp") == 0);
    CHECK(sum_along(groups[0], r->rank) == 2 * col + 3);
    CHECK(sum_along(groups[1], r->rank) == 9 * row + 3);
    CHECK(tutti_get_pg_count() == 6); /* the world, three columns, two rows */
    tutti_device_mesh_free(mesh);
    CHECK(r->world->children == NULL && r->world->meshes == NULL);
}

static void test_grid(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(6, grid, NULL), 0);
}

/* Ranks in any order: groups are sorted, coordinates are not. */
static void any_order(fake_rank *r)
{
    const int           ranks[] = { 3, 1, 2, 0 };
    const int           shape[] = { 2, 2 };
    const int           first_row[] = { 1, 3 };
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_device_mesh  *mesh = NULL;
    tutti_group        *row = NULL;

    opts.desc = "grid";
    opts.timeout_ms = LONG_MS / 2;
    CHECK(tutti_device_mesh_create(TUTTI_CPU, ranks, shape, 2, NULL, &opts, &mesh) == TUTTI_OK);
    CHECK(tutti_device_mesh_dim_name(mesh, 0) == NULL);
    CHECK(tutti_device_mesh_get_group(mesh, 1, &row) == TUTTI_OK);
    CHECK(strcmp(tutti_get_group_desc(row), "grid_dim_1") == 0 && row->timeout_ms == LONG_MS / 2);
    if (r->rank == 3) {
        CHECK(members(row, first_row, 2));
        CHECK(tutti_device_mesh_get_coordinate(mesh)[1] == 0);
        CHECK(tutti_device_mesh_get_local_rank(mesh, 1) == 1 && tutti_get_rank(row) == 1);
    }
    tutti_device_mesh_free(mesh);
}

static void test_any_order(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, any_order, NULL), 0);
}

/* A dimension that is the whole world is the world, unless it asks for a time-out of its own. */
static void world_reused(fake_rank *r)
{
    const int           shape[] = { 1, 3 };
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_device_mesh  *mesh = make(shape, 2, dp_tp);

    CHECK(along(mesh, "tp") == r->world);
    CHECK(tutti_get_world_size(along(mesh, "dp")) == 1);
    tutti_device_mesh_free(mesh);
    CHECK(tutti_barrier(r->world) == TUTTI_OK); /* not ended with the mesh */
    opts.timeout_ms = 1000;
    CHECK(tutti_device_mesh_create(TUTTI_CPU, NULL, shape, 2, dp_tp, &opts, &mesh) == TUTTI_OK);
    CHECK(along(mesh, "tp") != r->world && tutti_get_world_size(along(mesh, "tp")) == 3);
    tutti_device_mesh_free(mesh);
}

static void test_world_reused(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(3, world_reused, NULL), 0);
}

/* A mesh smaller than the world: others take part and get nothing. */
static void non_members(fake_rank *r)
{
    const int          shape[] = { 2, 2 };
    tutti_device_mesh *mesh = make(shape, 2, dp_tp);
    tutti_device_mesh *tp = slice(mesh, "tp", NULL);
    tutti_device_mesh *flat = flatten(mesh, NULL);
    tutti_group       *groups[2] = { 0 };

    CHECK(tutti_device_mesh_ranks(mesh)[3] == 3 && tutti_device_mesh_ranks(flat)[3] == 3);
    CHECK(tutti_device_mesh_size(tp) == 2);
    if (r->rank == 4) {
        CHECK(tutti_device_mesh_get_coordinate(mesh) == NULL);
        CHECK(tutti_device_mesh_get_local_rank(mesh, 0) == -1);
        CHECK(tutti_device_mesh_get_all_groups(mesh, groups) == TUTTI_OK);
        CHECK(groups[0] == TUTTI_NON_MEMBER && groups[1] == TUTTI_NON_MEMBER);
        CHECK(tutti_device_mesh_ranks(tp) == NULL && tutti_device_mesh_get_coordinate(tp) == NULL);
        CHECK(along(flat, "dp_tp") == TUTTI_NON_MEMBER);
        CHECK(r->world->children == NULL);
    } else {
        CHECK(sum_along(along(flat, "dp_tp"), r->rank) == 6);
    }
    tutti_device_mesh_free(flat);
    tutti_device_mesh_free(mesh);
    tutti_device_mesh_free(tp);
    CHECK(tutti_get_pg_count() == 6);
}

static void test_non_members(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(5, non_members, NULL), 0);
}

/* ---- slices and flattened meshes ---- */

static const char *const pp_dp_tp[] = { "pp", "dp", "tp" };
static const int         cube[] = { 2, 2, 2 };

static void slices(fake_rank *r)
{
    tutti_device_mesh *mesh = make(cube, 3, pp_dp_tp);
    tutti_device_mesh *pp_tp = slice(mesh, "pp", "tp");
    tutti_device_mesh *tp = slice(pp_tp, "tp", NULL);
    tutti_device_mesh *same = slice(pp_tp, "pp", "tp");
    const int          dp = r->rank / 2 % 2;
    const int          plane[] = { 2 * dp, 2 * dp + 1, 2 * dp + 4, 2 * dp + 5 };
    const int          n_made = tutti_get_pg_count();

    CHECK(same == pp_tp);
    CHECK(tutti_device_mesh_ndim(pp_tp) == 2 && tutti_device_mesh_size(pp_tp) == 4);
    CHECK(memcmp(tutti_device_mesh_ranks(pp_tp), plane, sizeof plane) == 0);
    CHECK(tutti_device_mesh_get_coordinate(pp_tp)[0] == r->rank / 4);
    CHECK(tutti_device_mesh_get_coordinate(pp_tp)[1] == r->rank % 2);
    CHECK(tutti_device_mesh_ranks(tp)[1] == r->rank / 2 * 2 + 1);
    CHECK(along(tp, "tp") == along(mesh, "tp") && along(pp_tp, "pp") == along(mesh, "pp"));
    CHECK(tutti_get_pg_count() == n_made); /* slices make nothing */
    tutti_device_mesh_free(mesh);          /* the slices keep the groups */
    tutti_device_mesh_free(same);
    CHECK(sum_along(along(tp, "tp"), r->rank) == r->rank / 2 * 4 + 1);
    tutti_device_mesh_free(pp_tp);
    tutti_device_mesh_free(tp);
    CHECK(r->world->children == NULL);
}

static void test_slices(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(8, slices, NULL), 0);
}

static tutti_status try_slice(tutti_device_mesh *mesh, const char *a, const char *b)
{
    const char *const  names[] = { a, b };
    tutti_device_mesh *out = NULL;
    tutti_status       st = tutti_device_mesh_slice(mesh, names, b != NULL ? 2 : 1, &out);

    CHECK(out == NULL);
    return st;
}

static void slices_refused(fake_rank *r)
{
    const int          shape[] = { 1, 1, 2 };
    tutti_device_mesh *mesh = make(shape, 3, pp_dp_tp);
    tutti_device_mesh *dp = slice(mesh, "dp", NULL);
    tutti_device_mesh *flat = flatten(mesh, "all");
    tutti_device_mesh *out = NULL;
    tutti_group       *group = NULL;

    (void)r;
    CHECK(try_slice(mesh, "x", NULL) == TUTTI_E_ARG && said("no dimension 'x'"));
    CHECK(said("'pp', 'dp', 'tp'"));
    CHECK(try_slice(mesh, NULL, NULL) == TUTTI_E_ARG);
    CHECK(try_slice(mesh, "tp", "dp") == TUTTI_E_ARG && said("'dp' does not come after 'tp'"));
    CHECK(try_slice(mesh, "dp", "dp") == TUTTI_E_ARG);
    CHECK(try_slice(mesh, "dp", "all") == TUTTI_E_ARG && said("'all' does not come after 'dp'"));
    CHECK(try_slice(dp, "tp", NULL) == TUTTI_E_ARG && said("this mesh has 'dp'"));
    CHECK(try_slice(dp, "all", NULL) == TUTTI_E_ARG); /* not of this slice's dimensions alone */
    CHECK(tutti_device_mesh_slice(mesh, dp_tp, 0, &out) == TUTTI_E_ARG);
    CHECK(tutti_device_mesh_slice(mesh, NULL, 1, &out) == TUTTI_E_ARG);
    CHECK(tutti_device_mesh_slice(mesh, dp_tp, 1, NULL) == TUTTI_E_ARG && out == NULL);
    CHECK(tutti_device_mesh_get_group(mesh, 3, &group) == TUTTI_E_ARG && said("outside of 0 .. 2"));
    CHECK(tutti_device_mesh_get_group(mesh, -1, &group) == TUTTI_E_ARG);
    CHECK(tutti_device_mesh_get_group(mesh, 0, NULL) == TUTTI_E_ARG);
    CHECK(tutti_device_mesh_get_group_by_name(mesh, "y", &group) == TUTTI_E_ARG);
    CHECK(tutti_device_mesh_get_group_by_name(mesh, "dp", NULL) == TUTTI_E_ARG);
    CHECK(tutti_device_mesh_get_all_groups(mesh, NULL) == TUTTI_E_ARG && group == NULL);
    tutti_device_mesh_free(flat);
    tutti_device_mesh_free(dp);
    tutti_device_mesh_free(mesh);
}

static void test_slices_refused(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, slices_refused, NULL), 0);
}

/* Dimensions that are not neighbours: planes through the cube, made once whatever they are called. */
static void flattened(fake_rank *r)
{
    tutti_device_mesh *mesh = make(cube, 3, pp_dp_tp);
    tutti_device_mesh *pp_tp = slice(mesh, "pp", "tp");
    tutti_device_mesh *flat = flatten(pp_tp, NULL);
    const int          n_made = tutti_get_pg_count();
    tutti_device_mesh *again = flatten(pp_tp, "pp_tp");
    tutti_device_mesh *other = flatten(pp_tp, "plane");
    tutti_device_mesh *of_root = slice(mesh, "pp_tp", NULL);
    tutti_device_mesh *itself = flatten(flat, NULL);
    const int          dp = r->rank / 2 % 2;

    CHECK(n_made == 15); /* the world, 3 x 4 lines, 2 planes */
    CHECK(tutti_device_mesh_ndim(flat) == 1 && tutti_device_mesh_size(flat) == 4);
    CHECK(strcmp(tutti_device_mesh_dim_name(flat, 0), "pp_tp") == 0);
    CHECK(tutti_device_mesh_get_coordinate(flat)[0] == r->rank / 4 * 2 + r->rank % 2);
    CHECK(tutti_device_mesh_get_local_rank(flat, 0) == r->rank / 4 * 2 + r->rank % 2);
    CHECK(tutti_device_mesh_ranks(flat)[2] == 2 * dp + 4);
    CHECK(sum_along(along(flat, "pp_tp"), r->rank) == 10 + 8 * dp);
    CHECK(along(mesh, "pp_tp") == along(flat, "pp_tp") &&
          along(other, "plane") == along(flat, "pp_tp"));
    CHECK(strcmp(tutti_get_group_desc(along(flat, "pp_tp")), "mesh_pp_tp") == 0);
    CHECK(tutti_get_pg_count() == n_made);
    CHECK(tutti_device_mesh_equal(again, flat) && tutti_device_mesh_equal(of_root, flat));
    CHECK(!tutti_device_mesh_equal(other, flat) && itself == flat);
    tutti_device_mesh_free(itself);
    tutti_device_mesh_free(of_root);
    tutti_device_mesh_free(other);
    tutti_device_mesh_free(again);
    tutti_device_mesh_free(pp_tp);
    tutti_device_mesh_free(mesh);
    CHECK(sum_along(along(flat, "pp_tp"), 1) == 4);
    tutti_device_mesh_free(flat);
    CHECK(r->world->children == NULL);
}

static void test_flattened(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(8, flattened, NULL), 0);
}

static void flatten_refused(fake_rank *r)
{
    const int          shape[] = { 1, 2 };
    tutti_device_mesh *mesh = make(shape, 2, dp_tp);
    tutti_device_mesh *bare = make(shape, 2, NULL);
    tutti_device_mesh *dp = slice(mesh, "dp", NULL);
    tutti_device_mesh *all = flatten(mesh, "all");
    tutti_device_mesh *out = NULL;

    CHECK(along(all, "all") == r->world);
    CHECK(tutti_device_mesh_flatten(mesh, "tp", &out) == TUTTI_E_ARG &&
          said("'tp' is the name of"));
    CHECK(tutti_device_mesh_flatten(dp, "all", &out) == TUTTI_E_ARG &&
          said("'all' is the name of"));
    CHECK(tutti_device_mesh_flatten(mesh, "", &out) == TUTTI_E_ARG && said("empty name"));
    CHECK(tutti_device_mesh_flatten(bare, NULL, &out) == TUTTI_E_ARG && said("no names to join"));
    CHECK(tutti_device_mesh_flatten(mesh, "x", NULL) == TUTTI_E_ARG && out == NULL);
    CHECK(r->world->n_meshes == 4); /* two meshes, a flatten, and one that was refused where the others would have made groups */
    tutti_device_mesh_free(all);
    tutti_device_mesh_free(dp);
    all = flatten(bare, "all");
    CHECK(strcmp(tutti_device_mesh_dim_name(all, 0), "all") == 0);
    tutti_device_mesh_free(all);
    tutti_device_mesh_free(bare);
    tutti_device_mesh_free(mesh);
}

static void test_flatten_refused(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, flatten_refused, NULL), 0);
}

/* Names are looked up on another thread while dimensions are flattened to new ones. */
typedef struct reader {
    tutti_device_mesh *mesh;
    _Atomic int        stop;
    int                found;
} reader;

static void read_names(void *arg)
{
    reader      *reading = arg;
    tutti_group *group = NULL;

    do {
        CHECK(tutti_device_mesh_get_group_by_name(reading->mesh, "tp", &group) == TUTTI_OK);
        if (tutti_device_mesh_get_group_by_name(reading->mesh, "flat 99", &group) == TUTTI_OK)
            reading->found++;
    } while (!atomic_load(&reading->stop));
}

static void test_read_while_flattening(void **state)
{
    const int    shape[] = { 1, 1 };
    tutti_group *world = fake_world_of_one(LONG_MS);
    tti_thread   thread = { 0 };
    reader       reading = { 0 };
    char         name[32];
    int          i;

    (void)state;
    tutti_use_group(world);
    reading.mesh = make(shape, 2, dp_tp);
    assert_int_equal(tti_thread_start(&thread, "reader", read_names, &reading), TUTTI_OK);
    for (i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "flat %d", i);
        tutti_device_mesh_free(flatten(reading.mesh, name));
    }
    atomic_store(&reading.stop, 1);
    tti_thread_join(&thread);
    read_names(&reading); /* one more look, now that all are there */
    assert_true(reading.found > 0);
    tutti_device_mesh_free(reading.mesh);
    tutti_destroy_process_group(world);
}

/* ---- refused and failed ---- */

static tutti_status try_make(const int *ranks, const int *shape, int ndim, const char *const *names)
{
    tutti_device_mesh *mesh = NULL;
    tutti_status       st;

    st = tutti_device_mesh_create(TUTTI_CPU, ranks, shape, ndim, names, NULL, &mesh);
    CHECK(mesh == NULL);
    return st;
}

static void refused(fake_rank *r)
{
    const int           pair[] = { 2, 1 };
    const int           large[] = { 2, 2 };
    const int           twice[] = { 1, 1 };
    const int           outside[] = { 0, 3 };
    const char *const   same[] = { "dp", "dp" };
    const char *const   empty[] = { "dp", "" };
    const char *const   missing[] = { "dp", NULL };
    tutti_group_options raw = { 0 };
    tutti_device_mesh  *mesh = NULL;

    CHECK(try_make(NULL, large, 2, NULL) == TUTTI_E_ARG);
    CHECK(said("has 4 ranks, but the world has 3"));
    CHECK(try_make(twice, pair, 2, NULL) == TUTTI_E_ARG && said("rank 1 is there twice"));
    CHECK(try_make(outside, pair, 2, NULL) == TUTTI_E_ARG && said("rank 3 is outside of 0 .. 2"));
    CHECK(try_make(NULL, pair, 2, same) == TUTTI_E_ARG && said("both named 'dp'"));
    CHECK(try_make(NULL, pair, 2, empty) == TUTTI_E_ARG && said("dimension 1 has no name"));
    CHECK(try_make(NULL, pair, 2, missing) == TUTTI_E_ARG);
    CHECK(try_make(NULL, NULL, 2, NULL) == TUTTI_E_ARG);
    CHECK(tutti_init_device_mesh(TUTTI_CUDA, pair, 2, NULL, &mesh) == TUTTI_E_UNSUPPORTED);
    CHECK(tutti_init_device_mesh(TUTTI_CPU, pair, 2, NULL, NULL) == TUTTI_E_ARG);
    CHECK(tutti_device_mesh_create(TUTTI_CPU, NULL, pair, 2, NULL, &raw, &mesh) == TUTTI_E_ARG);
    CHECK(tutti_get_pg_count() == 1 && r->world->n_meshes == 9 && r->world->meshes == NULL);
    mesh = make(pair, 2, NULL); /* and the world goes on */
    CHECK(try_slice(mesh, "dp", NULL) == TUTTI_E_ARG && said("no names"));
    tutti_device_mesh_free(mesh);
    tutti_device_mesh_free(NULL);
    tutti_use_group(TUTTI_NON_MEMBER);
    CHECK(try_make(NULL, pair, 2, NULL) == TUTTI_E_STATE);
}

static void test_refused(void **state)
{
    const int          shape[] = { 1 };
    tutti_device_mesh *mesh = NULL;

    (void)state;
    assert_int_equal(tutti_init_device_mesh(TUTTI_CPU, shape, 1, NULL, &mesh), TUTTI_E_STATE);
    assert_true(said("no world"));
    assert_int_equal(fake_ranks(3, refused, NULL), 0);
}

/* A rank that makes another mesh, whenever it comes: all hear who it is, none has made a group, and they
 * go on counting alike. */
static void different(fake_rank *r)
{
    const int          square[] = { 2, 2 };
    const int          line[] = { 1, 4 };
    const bool         other = r->rank == 3;
    tutti_device_mesh *mesh = NULL;
    tutti_group       *group = NULL;

    CHECK(tutti_init_device_mesh(TUTTI_CPU, other ? line : square, 2, dp_tp, &mesh) == TUTTI_E_MISMATCH);
    CHECK(mesh == NULL && said("rank 3 makes ") && said("1 x 4 (dp, tp) of ranks 0") && said("2 x 2 (dp, tp) of ranks 0"));
    CHECK(tutti_get_pg_count() == 1 && r->world->children == NULL && r->world->meshes == NULL);
    CHECK(tutti_new_group(NULL, 0, NULL, &group) == TUTTI_OK && sum_along(group, 1) == 4);
    mesh = make(square, 2, dp_tp);
    tutti_device_mesh_free(mesh);
}

static void test_different(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, different, NULL), 0);
}

/* All count groups alike: the next one has the same number everywhere. */
static void check_numbers(const fake_rank *r)
{
    tutti_group *group = NULL;

    CHECK(tutti_new_group(NULL, 0, NULL, &group) == TUTTI_OK && sum_along(group, 1) == r->size);
}

/* The same grid of the same ranks, where one rank asks for a time-out of its own: it would make groups that are the world elsewhere. */
static void time_outs_differ(fake_rank *r)
{
    const int           shape[] = { 1, 3 };
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_device_mesh  *mesh = NULL;

    if (r->rank == 1)
        opts.timeout_ms = LONG_MS / 10;
    CHECK(tutti_device_mesh_create(TUTTI_CPU, NULL, shape, 2, dp_tp, &opts, &mesh) == TUTTI_E_MISMATCH);
    CHECK(mesh == NULL && said("rank 1 makes ") && said("cpu groups with a time-out of their own along 0 1 of 1 x 3"));
    CHECK(said("cpu groups along 0 1 of 1 x 3") && tutti_get_pg_count() == 1);
    check_numbers(r);
}

static void test_time_outs_differ(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(3, time_outs_differ, NULL), 0);
}

/* The same grid, made anew and by splitting: one makes groups along all of it, the other along the parts. */
static void parts_differ(fake_rank *r)
{
    const int          line[] = { 1, 4 };
    const int          grid_of_3[] = { 1, 2, 2 };
    tutti_device_mesh *base = make(line, 2, pp_dp_tp);
    tutti_device_mesh *mesh = NULL;
    const int          n_made = tutti_get_pg_count();
    tutti_status       st;

    if (r->rank == 3)
        st = tutti_device_mesh_unflatten(base, 1, &grid_of_3[1], 2, &pp_dp_tp[1], &mesh);
    else
        st = tutti_init_device_mesh(TUTTI_CPU, grid_of_3, 3, pp_dp_tp, &mesh);
    CHECK(st == TUTTI_E_MISMATCH && mesh == NULL && said("rank 3 makes "));
    CHECK(said("groups along 1 2 of 1 x 2 x 2 (pp, dp, tp)") && said("groups along 0 1 2 of 1 x 2 x 2 (pp, dp, tp)"));
    CHECK(tutti_get_pg_count() == n_made);
    check_numbers(r);
    tutti_device_mesh_free(base);
}

static void test_parts_differ(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, parts_differ, NULL), 0);
}

/* Two equal meshes, one of which knows the plane already: the same flattening makes groups of the other one alone. */
static void flattened_of_another(fake_rank *r)
{
    const int          shape[] = { 1, 2, 2 };
    tutti_device_mesh *knows = make(shape, 3, pp_dp_tp);
    tutti_device_mesh *fresh = make(shape, 3, pp_dp_tp);
    tutti_device_mesh *of_knows = slice(knows, "pp", "dp");
    tutti_device_mesh *of_fresh = slice(fresh, "pp", "dp");
    tutti_device_mesh *flat = flatten(of_knows, "flat");
    tutti_device_mesh *out = NULL;
    const int          n_made = tutti_get_pg_count();

    CHECK(tutti_device_mesh_flatten(r->rank == 2 ? of_fresh : of_knows, "again", &out) == TUTTI_E_MISMATCH && out == NULL);
    CHECK(said("rank 2 makes ") && said("a name for cpu groups along 0 1, flattened to again, of 1 x 2 x 2"));
    CHECK(tutti_get_pg_count() == n_made);
    check_numbers(r);
    tutti_device_mesh_free(flat);
    tutti_device_mesh_free(of_fresh);
    tutti_device_mesh_free(of_knows);
    tutti_device_mesh_free(fresh);
    tutti_device_mesh_free(knows);
}

static void test_flattened_of_another(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, flattened_of_another, NULL), 0);
}

/* One rank's mesh is for memory of another device. The world has a row for that, and nothing is made with it. */
static void devices_differ(fake_rank *r)
{
    const int          shape[] = { 2, 1 };
    tutti_device_mesh *mesh = NULL;

    r->world->routes[TUTTI_CUDA].ops = &fake_ops;
    CHECK(tutti_init_device_mesh(r->rank == 1 ? TUTTI_CUDA : TUTTI_CPU, shape, 2, dp_tp, &mesh) == TUTTI_E_MISMATCH);
    r->world->routes[TUTTI_CUDA].ops = NULL;
    CHECK(mesh == NULL && said("rank 1 makes ") && said("cuda groups along 0 1 of 2 x 1") && said("cpu groups along 0 1 of 2 x 1"));
    CHECK(tutti_get_pg_count() == 1);
}

static void test_devices_differ(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, devices_differ, NULL), 0);
}

/* ---- refused by one ---- */

/* What rank `by` has refused, with a word of why: it has its own failure, the others hear of it. */
static void check_refused(const fake_rank *r, int by, tutti_status st, const char *why)
{
    char who[48];

    snprintf(who, sizeof who, "rank %d cannot make its own: ", by);
    CHECK(st == (r->rank == by ? TUTTI_E_ARG : TUTTI_E_MISMATCH) && said(why));
    CHECK(said(who) == (r->rank != by));
}

/* Whatever call it is that one rank refuses, and whoever: the others do not wait for that rank, and the next call is the same for all. */
static void refused_by_one(fake_rank *r)
{
    const int          square[] = { 2, 2 };
    const int          large[] = { 2, 3 };
    const char *const  a_b[] = { "a", "b" };
    tutti_device_mesh *mesh = NULL;
    tutti_device_mesh *dp_tp_mesh;
    tutti_status       st;

    st = tutti_init_device_mesh(TUTTI_CPU, r->rank == 3 ? large : square, 2, dp_tp, &mesh);
    check_refused(r, 3, st, "its shape has 6 ranks, but the world has 4");
    dp_tp_mesh = make(square, 2, dp_tp);
    st = tutti_device_mesh_flatten(dp_tp_mesh, r->rank == 0 ? "tp" : "all", &mesh);
    check_refused(r, 0, st, "'tp' is the name of other dimensions");
    st = tutti_device_mesh_flatten(dp_tp_mesh, r->rank == 2 ? "" : "all", &mesh);
    check_refused(r, 2, st, "empty name");
    st = tutti_device_mesh_unflatten(dp_tp_mesh, 1, r->rank == 1 ? large : (int[]){ 1, 2 }, 2, a_b, &mesh);
    check_refused(r, 1, st, "do not multiply to 2");
    st = tutti_device_mesh_unflatten(dp_tp_mesh, 1, (int[]){ 1, 2 }, 2, r->rank == 1 ? dp_tp : a_b, &mesh);
    check_refused(r, 1, st, "both named 'dp'");
    CHECK(mesh == NULL && r->world->n_meshes == 6);
    mesh = flatten(dp_tp_mesh, "all");
    tutti_device_mesh_free(mesh);
    mesh = NULL;
    st = tutti_device_mesh_flatten(dp_tp_mesh, r->rank == 1 ? "" : "all", &mesh); /* which waits for nobody */
    CHECK(st == (r->rank == 1 ? TUTTI_E_ARG : TUTTI_OK) && r->world->n_meshes == 7);
    tutti_device_mesh_free(mesh);
    tutti_device_mesh_free(dp_tp_mesh);
    check_numbers(r);
}

static void test_refused_by_one(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, refused_by_one, NULL), 0);
}

/* Names that cannot be joined, on one rank: its mesh has none. */
static void no_names_on_one(fake_rank *r)
{
    const int          shape[] = { 1, 2 };
    tutti_device_mesh *named = make(shape, 2, dp_tp);
    tutti_device_mesh *bare = make(shape, 2, NULL);
    tutti_device_mesh *out = NULL;

    check_refused(r, 1, tutti_device_mesh_flatten(r->rank == 1 ? bare : named, NULL, &out), "no names to join");
    tutti_device_mesh_free(flatten(named, NULL));
    tutti_device_mesh_free(bare);
    tutti_device_mesh_free(named);
}

static void test_no_names_on_one(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, no_names_on_one, NULL), 0);
}

/* A rank that does not come: the others' call ends in time, nothing was made, and everybody who came hears the
 * same. */
static void missing(fake_rank *r)
{
    const int           shape[] = { 2, 2 };
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_device_mesh  *mesh = NULL;

    if (r->rank == 3)
        return;
    opts.timeout_ms = SHORT_MS;
    CHECK(tutti_device_mesh_create(TUTTI_CPU, NULL, shape, 2, dp_tp, &opts, &mesh) ==
          TUTTI_E_TIMEOUT);
    CHECK(said("rank 3 did not come") && said("(3 of 4 here)") && mesh == NULL);
    CHECK(tutti_get_pg_count() == 1 && r->world->children == NULL && r->world->meshes == NULL);
}

static void test_missing(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(4, missing, NULL), 0);
}

static void test_null(void **state)
{
    tutti_device_mesh *mesh = NULL;
    tutti_group       *group = NULL;
    char               text[8] = "x";

    (void)state;
    assert_int_equal(tutti_device_mesh_slice(NULL, dp_tp, 1, &mesh), TUTTI_E_ARG);
    assert_int_equal(tutti_device_mesh_flatten(NULL, NULL, &mesh), TUTTI_E_ARG);
    assert_int_equal(tutti_device_mesh_flatten(NULL, "x", &mesh), TUTTI_E_ARG);
    assert_int_equal(tutti_device_mesh_unflatten(NULL, 0, two_by_three, 2, dp_tp, &mesh), TUTTI_E_ARG);
    assert_int_equal(tutti_device_mesh_get_group(NULL, 0, &group), TUTTI_E_ARG);
    assert_int_equal(tutti_device_mesh_get_group_by_name(NULL, "dp", &group), TUTTI_E_ARG);
    assert_int_equal(tutti_device_mesh_get_all_groups(NULL, &group), TUTTI_E_ARG);
    assert_true(said("device mesh: mesh is NULL") && mesh == NULL && group == NULL);
    assert_int_equal(tutti_device_mesh_ndim(NULL), 0);
    assert_int_equal(tutti_device_mesh_size(NULL), 0);
    assert_null(tutti_device_mesh_shape(NULL));
    assert_null(tutti_device_mesh_ranks(NULL));
    assert_null(tutti_device_mesh_get_coordinate(NULL));
    assert_null(tutti_device_mesh_dim_name(NULL, 0));
    assert_int_equal(tutti_device_mesh_find_dim(NULL, "dp"), -1);
    assert_int_equal(tutti_device_mesh_get_rank(NULL), -1);
    assert_int_equal(tutti_device_mesh_get_local_rank(NULL, 0), -1);
    assert_int_equal(tutti_device_mesh_device_type(NULL), TUTTI_CPU);
    assert_true(tutti_device_mesh_equal(NULL, NULL));
    assert_int_equal(tutti_device_mesh_to_string(NULL, text, sizeof text), 0);
    assert_string_equal(text, "");
}

/* ---- from_group ---- */

static void around_groups(fake_rank *r)
{
    tutti_device_mesh *made = make(two_by_three, 2, dp_tp);
    tutti_device_mesh *mesh = NULL;
    tutti_device_mesh *one = NULL;
    tutti_device_mesh *flat;
    tutti_group       *groups[2] = { 0 };
    const int          n_made = tutti_get_pg_count();

    CHECK(tutti_device_mesh_get_all_groups(made, groups) == TUTTI_OK);
    CHECK(tutti_device_mesh_from_group(groups, 2, TUTTI_CPU, tutti_device_mesh_ranks(made),
                                       two_by_three, dp_tp, &mesh) == TUTTI_OK);
    CHECK(tutti_device_mesh_from_group(&groups[1], 1, TUTTI_CPU, NULL, NULL, &dp_tp[1], &one) ==
          TUTTI_OK);
    CHECK(tutti_get_pg_count() == n_made);
    CHECK(tutti_device_mesh_equal(mesh, made) && along(mesh, "dp") == groups[0]);
    CHECK(along(one, "tp") == groups[1] && tutti_device_mesh_size(one) == 3);
    CHECK(tutti_device_mesh_get_coordinate(one)[0] == r->rank % 3);
    CHECK(!tutti_device_mesh_equal(one, mesh));
    flat = flatten(mesh, NULL);
    CHECK(along(flat, "dp_tp") == r->world);
    tutti_device_mesh_free(flat);
    tutti_device_mesh_free(mesh);
    tutti_device_mesh_free(one);
    CHECK(sum_along(groups[1], 1) == 3); /* not ended with the meshes around it */
    tutti_device_mesh_free(made);
}

static void test_around_groups(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(6, around_groups, NULL), 0);
}

static tutti_status around(tutti_group *group, const int *ranks, int n,
                           tutti_device_mesh **mesh_out)
{
    return tutti_device_mesh_from_group(&group, 1, TUTTI_CPU, ranks, &n, NULL, mesh_out);
}

static void around_refused(fake_rank *r)
{
    const int          low[] = { 1, 0 };
    const int          high[] = { 1, 2 };
    const int          three[] = { 0, 1, 2 };
    tutti_group       *pair = NULL;
    tutti_group       *both[] = { NULL, NULL };
    tutti_device_mesh *mesh = NULL;

    CHECK(tutti_new_group(low, 2, NULL, &pair) == TUTTI_OK);
    CHECK(around(pair, low, 2, &mesh) == TUTTI_OK); /* the order of a mesh is its own */
    CHECK((tutti_device_mesh_get_coordinate(mesh) == NULL) == (r->rank == 2));
    CHECK(tutti_device_mesh_ranks(mesh)[0] == 1);
    tutti_device_mesh_free(mesh);
    mesh = NULL;
    CHECK(around(pair, high, 2, &mesh) == TUTTI_E_ARG);
    CHECK(around(pair, three, 3, &mesh) == TUTTI_E_ARG);
    CHECK(r->rank == 2 ? said("rank 2 is in the mesh, but not in the group") : said("has 3 ranks"));
    CHECK(around(TUTTI_NO_GROUP, low, 2, &mesh) == TUTTI_E_STATE);
    if (r->rank == 2)
        CHECK(around(pair, NULL, 2, &mesh) == TUTTI_E_ARG && said("not in the group"));
    CHECK(tutti_device_mesh_from_group(both, 2, TUTTI_CPU, NULL, NULL, NULL, &mesh) == TUTTI_E_ARG);
    CHECK(said("there are 2 groups"));
    CHECK(tutti_device_mesh_from_group(NULL, 1, TUTTI_CPU, NULL, NULL, NULL, &mesh) == TUTTI_E_ARG);
    CHECK(tutti_device_mesh_from_group(both, 0, TUTTI_CPU, NULL, NULL, NULL, &mesh) == TUTTI_E_ARG);
    CHECK(mesh == NULL && r->world->meshes == NULL);
    CHECK(around(NULL, three, 3, &mesh) == TUTTI_OK); /* the world */
    tutti_device_mesh_free(mesh);
}

static void test_around_refused(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(3, around_refused, NULL), 0);
}

/* ---- the world's end ---- */

static void test_after_the_world(void **state)
{
    const int          shape[] = { 1, 1 };
    tutti_group       *world = fake_world_of_one(LONG_MS);
    tutti_group       *other = fake_world_of_one(LONG_MS);
    tutti_group       *groups[2] = { world, other };
    tutti_device_mesh *mesh;
    tutti_device_mesh *tp;
    tutti_device_mesh *out = NULL;
    tutti_group       *group = NULL;

    (void)state;
    tutti_use_group(world);
    mesh = make(shape, 2, dp_tp);
    tp = slice(mesh, "tp", NULL);
    assert_int_equal(
        tutti_device_mesh_from_group(groups, 2, TUTTI_CPU, &(int){ 0 }, shape, NULL, &out),
        TUTTI_E_ARG);
    assert_true(said("of another world"));
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(other), TUTTI_OK);
    assert_int_equal(tutti_device_mesh_get_group(tp, 0, &group), TUTTI_E_STATE);
    assert_int_equal(tutti_device_mesh_get_group_by_name(mesh, "dp", &group), TUTTI_E_STATE);
    assert_int_equal(tutti_device_mesh_flatten(mesh, NULL, &out), TUTTI_E_STATE);
    assert_true(said("world was destroyed"));
    assert_int_equal(tutti_device_mesh_get_coordinate(mesh)[1], 0);
    assert_int_equal(tutti_device_mesh_size(tp), 1);
    tutti_device_mesh_free(tp);
    tutti_device_mesh_free(mesh);
    assert_null(out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_grid),          TEST(test_any_order),       TEST(test_world_reused),
        TEST(test_non_members),   TEST(test_slices),          TEST(test_slices_refused),
        TEST(test_flattened),     TEST(test_flatten_refused), TEST(test_read_while_flattening),
        TEST(test_refused),       TEST(test_different),       TEST(test_missing),
        TEST(test_null),          TEST(test_time_outs_differ), TEST(test_parts_differ),
        TEST(test_flattened_of_another), TEST(test_devices_differ),
        TEST(test_refused_by_one), TEST(test_no_names_on_one),
        TEST(test_around_groups), TEST(test_around_refused),  TEST(test_after_the_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
