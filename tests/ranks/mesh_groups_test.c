/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mesh_groups_test.c
 * Goal    meshes and subgroups of real processes: every group along every dimension computes with the
 *         right members, many groups are in use at once, and a rank that dies is named.
 * Method  the same bodies over shared memory, TCP, threads and two hosts; results compared with sums
 *         over coordinates. */
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

static const char *const names[] = { "pp", "dp", "tp" };
static const int         cube[] = { 2, 2, 2 };

/* The sum of the ranks along one dimension, as group gives it and as ranks do. */
static void check_sum(tutti_group *group, const int *ranks, int n, int rank)
{
    int64_t x = rank;
    int64_t want = 0;
    int     i;

    for (i = 0; i < n; i++)
        want += ranks[i];
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group));
    assert_true(x == want);
    assert_int_equal(tutti_get_world_size(group), n);
}

static void check_slice(tutti_device_mesh *mesh, const char *name, int rank)
{
    tutti_device_mesh *line = NULL;
    tutti_group       *group = NULL;

    OK(tutti_device_mesh_slice(mesh, &name, 1, &line));
    OK(tutti_device_mesh_get_group(line, 0, &group));
    check_sum(group, tutti_device_mesh_ranks(line), tutti_device_mesh_size(line), rank);
    assert_int_equal(tutti_device_mesh_get_local_rank(line, 0), tutti_get_rank(group));
    tutti_device_mesh_free(line);
}

static void every_dimension_computes(tt_ctx *t)
{
    tutti_device_mesh *mesh = NULL;
    tutti_device_mesh *plane = NULL;
    tutti_device_mesh *flat = NULL;
    const char *const  outer[] = { names[0], names[2] };
    const int         *at;
    int                d;

    OK(tutti_init_device_mesh(TUTTI_CPU, cube, 3, names, &mesh));
    at = tutti_device_mesh_get_coordinate(mesh);
    assert_int_equal((at[0] * 2 + at[1]) * 2 + at[2], t->rank);
    for (d = 0; d < 3; d++)
        check_slice(mesh, names[d], t->rank);
    OK(tutti_device_mesh_slice(mesh, outer, 2, &plane));
    OK(tutti_device_mesh_flatten(plane, NULL, &flat));
    check_slice(mesh, "pp_tp", t->rank);
    assert_int_equal(tutti_device_mesh_size(flat), 4);
    tutti_device_mesh_free(mesh);
    tutti_device_mesh_free(plane);
    check_slice(flat, "pp_tp", t->rank); /* the last of the family still has its group */
    tutti_device_mesh_free(flat);
    OK(tutti_barrier(t->group));
}

/* One asynchronous reduction on each dimension's group, all under way at once. */
static void dimensions_at_once(tt_ctx *t)
{
    const int64_t      n = 10000;
    tutti_device_mesh *mesh = NULL;
    tutti_group       *groups[3] = { NULL };
    tutti_work        *works[3] = { NULL };
    float             *x[3];
    int                d;

    OK(tutti_init_device_mesh(TUTTI_CPU, cube, 3, names, &mesh));
    OK(tutti_device_mesh_get_all_groups(mesh, groups));
    for (d = 0; d < 3; d++) {
        x[d] = tt_floats(t, (size_t)n, (float)t->rank);
        OK(tutti_all_reduce_async(TUTTI_SPAN(x[d], n), TUTTI_SUM, groups[d], &works[d]));
    }
    for (d = 2; d >= 0; d--) {
        const int other = t->rank ^ (4 >> d);

        OK(tutti_work_wait(works[d]));
        tutti_work_free(works[d]);
        assert_true(x[d][0] == (float)(t->rank + other) && x[d][n - 1] == x[d][0]);
    }
    tutti_device_mesh_free(mesh);
    OK(tutti_barrier(t->group));
}

/* A mesh of other ranks than the first ones, which leaves one out; it ends with the world. */
static void some_ranks(tt_ctx *t)
{
    const int          ranks[] = { 4, 1, 3, 0 };
    const int          shape[] = { 2, 2 };
    tutti_device_mesh *mesh = NULL;
    tutti_group       *rows = NULL;

    OK(tutti_device_mesh_create(TUTTI_CPU, ranks, shape, 2, NULL, NULL, &mesh));
    OK(tutti_device_mesh_get_group(mesh, 1, &rows));
    if (t->rank == 2) {
        assert_ptr_equal(rows, TUTTI_NON_MEMBER);
        assert_null(tutti_device_mesh_get_coordinate(mesh));
    } else {
        const int row = tutti_device_mesh_get_coordinate(mesh)[0];

        check_sum(rows, &ranks[2 * row], 2, t->rank);
    }
    OK(tutti_barrier(t->group));
    tutti_device_mesh_free(mesh);
}

/* Subgroups, with roots and peers as ranks of the group. */
static void subgroups(tt_ctx *t)
{
    tutti_group *pair = NULL;
    int32_t      x = t->rank;
    int32_t      got = -1;
    int          src = -1;

    OK(tutti_new_subgroups(2, NULL, &pair));
    OK(tutti_broadcast_in_group(TUTTI_SPAN(&x, 1), 1, pair));
    assert_int_equal(x, t->rank | 1);
    if (tutti_get_rank(pair) == 0) {
        OK(tutti_send_in_group(TUTTI_SPAN(&x, 1), 1, 0, pair));
    } else {
        OK(tutti_recv_in_group(TUTTI_SPAN(&got, 1), 0, 0, pair, &src));
        assert_int_equal(got, t->rank);
        assert_int_equal(src, t->rank - 1);
    }
    OK(tutti_destroy_process_group(pair));
    OK(tutti_barrier(t->group));
}

static void enumerated(tt_ctx *t)
{
    const int        odd[] = { 3, 1 };
    const int        even[] = { 0, 2 };
    const int *const lists[] = { odd, even };
    const int        n[] = { 2, 2 };
    tutti_group     *mine = NULL;

    OK(tutti_new_subgroups_by_enumeration(lists, n, 2, NULL, &mine));
    if (t->rank == 4)
        assert_ptr_equal(mine, TUTTI_NON_MEMBER);
    else
        check_sum(mine, t->rank % 2 == 1 ? odd : even, 2, t->rank);
    OK(tutti_barrier(t->group));
}

/* Two ranks read the same shape differently: everybody hears who, and all count groups alike after it. */
static void different_meshes(tt_ctx *t)
{
    const int          flat[] = { 1, 4 };
    const int          square[] = { 2, 2 };
    const int          all[] = { 0, 1, 2, 3 };
    tutti_device_mesh *mesh = NULL;
    tutti_group       *group = NULL;

    if (t->rank != 3)
        tt_await(t, 0, 1);
    else
        tt_post(t, 0); /* comes first, or nearly */
    assert_int_equal(tutti_init_device_mesh(TUTTI_CPU, t->rank == 3 ? flat : square, 2, NULL, &mesh), TUTTI_E_MISMATCH);
    assert_null(mesh);
    assert_non_null(strstr(tutti_last_error(), "rank 3 makes "));
    assert_non_null(strstr(tutti_last_error(), "2 x 2 of ranks"));
    assert_non_null(strstr(tutti_last_error(), "1 x 4 of ranks"));
    assert_int_equal(tutti_get_pg_count(), 1);
    OK(tutti_new_group(all, 4, NULL, &group));
    check_sum(group, all, 4, t->rank);
    OK(tutti_destroy_process_group(group));
}

/* A rank asks for a time-out of its own where the others' mesh is the world: nobody waits for groups that it alone would make. */
static void different_time_outs(tt_ctx *t)
{
    const int           shape[] = { 1, 3 };
    const int           all[] = { 0, 1, 2 };
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_device_mesh  *mesh = NULL;
    tutti_group        *group = NULL;

    if (t->rank == 2)
        opts.timeout_ms = 3000;
    assert_int_equal(tutti_device_mesh_create(TUTTI_CPU, NULL, shape, 2, NULL, &opts, &mesh), TUTTI_E_MISMATCH);
    assert_non_null(strstr(tutti_last_error(), "rank 2 makes "));
    assert_non_null(strstr(tutti_last_error(), "groups with a time-out of their own along 0 1 of 1 x 3 of ranks"));
    assert_non_null(strstr(tutti_last_error(), "groups along 0 1 of 1 x 3 of ranks"));
    assert_null(mesh);
    OK(tutti_new_group(all, 3, NULL, &group));
    check_sum(group, all, 3, t->rank);
    OK(tutti_destroy_process_group(group));
}

/* One rank's mesh is too large: the others hear of it at once, and the next mesh is one for all of them. */
static void one_refuses(tt_ctx *t)
{
    const int          square[] = { 2, 2 };
    const int          large[] = { 2, 4 };
    const int          who = t->rank == 1;
    tutti_device_mesh *mesh = NULL;

    assert_int_equal(tutti_init_device_mesh(TUTTI_CPU, who ? large : square, 2, &names[1], &mesh),
                     who ? TUTTI_E_ARG : TUTTI_E_MISMATCH);
    assert_non_null(strstr(tutti_last_error(), "its shape has 8 ranks, but the world has 4"));
    assert_true(who || strstr(tutti_last_error(), "in call #1 rank 1 cannot make its own") != NULL);
    assert_null(mesh);
    OK(tutti_init_device_mesh(TUTTI_CPU, square, 2, &names[1], &mesh));
    check_slice(mesh, "dp", t->rank);
    check_slice(mesh, "tp", t->rank);
    tutti_device_mesh_free(mesh);
    OK(tutti_barrier(t->group));
}

/* A rank of this host has died before the others make a mesh: they hear of that, long before their time is up. */
static void death_before_a_mesh(tt_ctx *t)
{
    const int          square[] = { 2, 2 };
    tutti_device_mesh *mesh = NULL;

    OK(tutti_barrier(t->group));
    tt_post(t, 0);
    tt_await(t, 0, 4);
    if (t->rank == 3)
        tt_die();
    assert_int_equal(tutti_init_device_mesh(TUTTI_CPU, square, 2, NULL, &mesh), TUTTI_E_PEER);
    assert_non_null(strstr(tutti_last_error(), "rank 3 has not come"));
    assert_null(mesh);
    tt_post(t, 1);
    tt_await(t, 1, 3); /* rank 0 may serve the store */
}

/* A rank dies: who shares a dimension with it hears of it, the others' groups go on. */
static void death_along_a_dimension(tt_ctx *t)
{
    const int          square[] = { 2, 2 };
    tutti_device_mesh *mesh = NULL;
    tutti_group       *groups[2] = { NULL, NULL };
    float             *x = tt_floats(t, 1000, 1.0f);
    tutti_span         span = TUTTI_SPAN(x, 1000);
    tutti_status       st[2] = { TUTTI_OK, TUTTI_OK };
    int                d;

    OK(tutti_init_device_mesh(TUTTI_CPU, square, 2, &names[1], &mesh));
    OK(tutti_device_mesh_get_all_groups(mesh, groups));
    OK(tutti_barrier(t->group));
    tt_post(t, 1);
    tt_await(t, 1, (uint32_t)t->size); /* nobody is in the barrier any more */
    if (t->rank == 3)
        tt_die();
    for (d = 0; d < 2; d++) {
        const bool with_it = d == 0 ? t->rank == 1 : t->rank == 2;

        st[d] = tutti_all_reduce(span, TUTTI_SUM, groups[d]);
        assert_int_equal(st[d], with_it ? TUTTI_E_PEER : TUTTI_OK);
        if (with_it)
            assert_non_null(strstr(tutti_last_error(), "rank 3"));
    }
    tt_post(t, 0);
    tt_await(t, 0, 3);
    tutti_device_mesh_free(mesh);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(every_dimension_computes, .ranks = 8, .transports = "shm,tcp,threads"),
        TT_TEST(every_dimension_computes, .ranks = 8, .hosts = 2),
        TT_TEST(dimensions_at_once, .ranks = 8, .transports = "shm,tcp,threads"),
        TT_TEST(some_ranks, .ranks = 5, .transports = "shm,tcp,threads"),
        TT_TEST(subgroups, .ranks = 6, .transports = "shm,tcp,threads"),
        TT_TEST(enumerated, .ranks = 5, .transports = "shm,threads"),
        TT_TEST(different_meshes, .ranks = 4, .transports = "shm,tcp"),
        TT_TEST(different_time_outs, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(one_refuses, .ranks = 4, .transports = "shm,tcp,threads"),
        TT_TEST(death_before_a_mesh, .ranks = 4, .transports = "shm", .dies = 3),
        TT_TEST(death_along_a_dimension, .ranks = 4, .transports = "shm,tcp", .dies = 3),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
