/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cases_object.c - objects, as bytes and as msgpack, and results. */
#include "deadlines.h"
#include <tutti/msgpack.h>

#define BYTES "bytes", 5

static const tutti_bytes one_object = { .data = (char *)(uintptr_t) "bytes", .size = 5 };

/* A call that fails has given nothing; one that does not is wrong, and is seen. */
#define OBJECTS(name, ...)                                                                             \
    TT_CASE(tutti_##name)                                                                              \
    {                                                                                                  \
        tutti_objects objects = TUTTI_OBJECTS_NONE;                                                    \
                                                                                                       \
        return tutti_##name(__VA_ARGS__, &objects);                                                    \
    }

OBJECTS(all_gather_object, BYTES, c->group)
OBJECTS(gather_object, BYTES, c->me, c->group)
OBJECTS(gather_object_in_group, BYTES, c->me, c->group)
OBJECTS(broadcast_object_list, NULL, 1, c->peer, c->group)
OBJECTS(broadcast_object_list_in_group, NULL, 1, c->peer, c->group)
OBJECTS(scatter_object_list, NULL, 0, c->peer, c->group)
OBJECTS(scatter_object_list_in_group, NULL, 0, c->peer, c->group)
OBJECTS(all_gather_object_enforce_type, BYTES, "text", c->group)

TT_CASE(tutti_recv_object_list)
{
    tutti_objects objects = TUTTI_OBJECTS_NONE;

    return tutti_recv_object_list(c->peer, 0, c->group, &objects, NULL);
}

TT_CASE(tutti_recv_object_list_in_group)
{
    tutti_objects objects = TUTTI_OBJECTS_NONE;

    return tutti_recv_object_list_in_group(c->peer, 0, c->group, &objects, NULL);
}

TT_CASE(tutti_send_object_list, .may_end = true)
{
    return tutti_send_object_list(&one_object, 1, c->peer, 0, c->group);
}

TT_CASE(tutti_send_object_list_in_group, .may_end = true)
{
    return tutti_send_object_list_in_group(&one_object, 1, c->peer, 0, c->group);
}

/* ---- msgpack ---- */

static const msgpack_object one_value = { .type = MSGPACK_OBJECT_POSITIVE_INTEGER, .via = { .u64 = 7 } };

#define VALUES(name, ...)                                                                              \
    TT_CASE(tutti_##name)                                                                              \
    {                                                                                                  \
        tutti_msgpack values = { 0 };                                                                  \
                                                                                                       \
        return tutti_##name(__VA_ARGS__, &values);                                                     \
    }

VALUES(all_gather_msgpack, &one_value, c->group)
VALUES(gather_msgpack, &one_value, c->me, c->group)
VALUES(broadcast_msgpack_list, NULL, 1, c->peer, c->group)
VALUES(scatter_msgpack_list, NULL, 0, c->peer, c->group)

TT_CASE(tutti_recv_msgpack_list)
{
    tutti_msgpack values = { 0 };

    return tutti_recv_msgpack_list(c->peer, 0, c->group, &values, NULL);
}

TT_CASE(tutti_send_msgpack_list, .may_end = true)
{
    return tutti_send_msgpack_list(&one_value, 1, c->peer, 0, c->group);
}

/* ---- results ---- */

TT_CASE(tutti_broadcast_result)
{
    tutti_bytes value = { .data = NULL };

    return tutti_broadcast_result("a stage", NULL, NULL, c->peer, c->group, &value);
}

TT_CASE(tutti_all_gather_results)
{
    tutti_bytes   mine = one_object;
    tutti_objects values = TUTTI_OBJECTS_NONE;

    return tutti_all_gather_results("a stage", NULL, &mine, c->group, &values);
}

TT_CASE(tutti_report_random_states)
{
    tutti_bytes report = { .data = NULL };

    return tutti_report_random_states(BYTES, c->group, &report);
}
