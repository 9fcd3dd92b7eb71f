/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls_object.c - objects: byte strings, msgpack values, results. A call that fails has given nothing. */
#include "scenarios.h"

#include <string.h>
#include <tutti/msgpack.h>

enum { TAG = 3 };

static const char text[] = "an object";

#define MINE text, sizeof text

static tutti_bytes mine(void)
{
    return tutti_bytes_of(MINE);
}

/* There are n, and the one at i is ours. */
static void check(tt_actor *a, tutti_objects *got, int n, int i, const char *wrong)
{
    if (!a->failed)
        tt_must_be(a, got->n == n && (n == 0 || strcmp(got->at[i].data, text) == 0), wrong);
    tutti_objects_free(got);
}

static void objects(tt_actor *a)
{
    tutti_objects all = TUTTI_OBJECTS_NONE, list = TUTTI_OBJECTS_NONE;
    tutti_bytes   one = mine();

    TRY(tutti_all_gather_object(MINE, a->group, &all));
    check(a, &all, a->size, 1, "wrong objects");
    if (a->rank == 0)
        (void)THEN(tutti_send_object_list(&one, 1, 1, TAG, a->group));
    if (a->rank == 1 && THEN(tutti_recv_object_list(0, TAG, a->group, &list, NULL)))
        check(a, &list, 1, 0, "a wrong object in a message");
    if (a->rank == 1)
        (void)THEN(tutti_send_object_list_in_group(&one, 1, 0, TAG, a->group));
    if (a->rank == 0 && THEN(tutti_recv_object_list_in_group(1, TAG, a->group, &list, NULL)))
        check(a, &list, 1, 0, "a wrong object in a message in a group");
}

/* The root of a gathering is the only one to get, of a broadcast the only one to get nothing. */
static void objects_of_roots(tt_actor *a)
{
    tutti_bytes        ones[TT_SCENARIO_RANKS] = { mine(), mine(), mine() };
    const bool         root = a->rank == 0;
    const tutti_bytes *list = root ? ones : NULL;
    const int          n = root ? a->size : 0;
    tutti_objects      got = TUTTI_OBJECTS_NONE, *gathered = root ? &got : NULL, *sent = root ? NULL : &got;

    if (TRY(tutti_gather_object(MINE, 0, a->group, gathered)))
        check(a, &got, n, a->size - 1, "wrong objects at the root");
    if (THEN(tutti_gather_object_in_group(MINE, 0, a->group, gathered)))
        check(a, &got, n, a->size - 1, "wrong objects at the root in a group");
    if (THEN(tutti_broadcast_object_list(list, 1, 0, a->group, sent)))
        check(a, &got, !root, 0, "wrong objects of the root");
    if (THEN(tutti_broadcast_object_list_in_group(list, 1, 0, a->group, sent)))
        check(a, &got, !root, 0, "wrong objects of the root in a group");
    if (THEN(tutti_scatter_object_list(list, n, 0, a->group, &got)))
        check(a, &got, 1, 0, "a wrong part of the root's objects");
    if (THEN(tutti_scatter_object_list_in_group(list, n, 0, a->group, &got)))
        check(a, &got, 1, 0, "a wrong part of the root's objects in a group");
}

/* ---- msgpack ---- */

static void check_value(tt_actor *a, tutti_msgpack *got, int n, const char *wrong)
{
    tt_must_be(a, got->n == n && (n == 0 || got->at[n - 1].via.u64 == 7), wrong);
    tutti_msgpack_free(got);
}

static void values(tt_actor *a)
{
    const msgpack_object seven = { .type = MSGPACK_OBJECT_POSITIVE_INTEGER, .via = { .u64 = 7 } };
    msgpack_object       ones[TT_SCENARIO_RANKS];
    const bool           root = a->rank == 0;
    tutti_msgpack        got = TUTTI_MSGPACK_NONE;
    int                  r;

    for (r = 0; r < TT_SCENARIO_RANKS; r++)
        ones[r] = seven;
    if (TRY(tutti_all_gather_msgpack(&seven, a->group, &got)))
        check_value(a, &got, a->size, "wrong values");
    if (THEN(tutti_gather_msgpack(&seven, 0, a->group, root ? &got : NULL)))
        check_value(a, &got, root ? a->size : 0, "wrong values at the root");
    if (THEN(tutti_broadcast_msgpack_list(root ? ones : NULL, 1, 0, a->group, root ? NULL : &got)))
        check_value(a, &got, !root, "wrong values of the root");
    if (THEN(tutti_scatter_msgpack_list(root ? ones : NULL, root ? a->size : 0, 0, a->group, &got)))
        check_value(a, &got, 1, "a wrong part of the root's values");
    if (root)
        (void)THEN(tutti_send_msgpack_list(ones, 1, 1, TAG, a->group));
    if (a->rank == 1 && THEN(tutti_recv_msgpack_list(0, TAG, a->group, &got, NULL)))
        check_value(a, &got, 1, "a wrong value in a message");
}

/* ---- results ---- */

static void results(tt_actor *a)
{
    tutti_bytes   one = mine(), value = { .data = NULL };
    tutti_objects all = TUTTI_OBJECTS_NONE;

    if (TRY(tutti_broadcast_result("a stage", NULL, &one, 0, a->group, &value)))
        tt_must_be(a, value.size == sizeof text && strcmp(value.data, text) == 0, "a wrong result");
    tutti_bytes_free(&value);
    if (THEN(tutti_all_gather_results("a stage of all", NULL, &one, a->group, &all)))
        check(a, &all, a->size, 1, "wrong results");
    if (THEN(tutti_all_gather_object_enforce_type(MINE, "text", a->group, &all)))
        check(a, &all, a->size, 1, "wrong objects of one type");
    if (THEN(tutti_report_random_states(MINE, a->group, &value)))
        tt_must_be(a, value.size == 0, "states that are the same are told as different");
    tutti_bytes_free(&value);
}

static const tt_scenario scenarios[] = {
    TT_PLAY("objects", 2, objects),
    TT_PLAY("objects of roots", 2, objects_of_roots),
    TT_PLAY("msgpack", 2, values),
    TT_PLAY("results", 2, results),
};

TT_FAMILY(tt_object_calls, "objects", scenarios);
