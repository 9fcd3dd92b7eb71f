/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scenarios.c - the scenarios. A body stops at the first call that fails, frees what it has, and says nothing more. */
#include "scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 96, MANY = 20000, TAG = 3 };

#define TRY(call) tt_went_well(a, (call), #call)

bool tt_went_well(tt_actor *a, tutti_status st, const char *call)
{
    if (st == TUTTI_OK)
        return true;
    if (tutti_last_error()[0] == '\0' && a->wrong == NULL)
        a->wrong = "a call failed without words";
    if (!a->failed) {
        a->failed = true;
        a->st = st;
        a->call = call;
    }
    return false;
}

static void must_be(tt_actor *a, bool right, const char *what)
{
    if (!right && a->wrong == NULL)
        a->wrong = what;
}

static void fill(const tt_actor *a, float *x, int n)
{
    int i;

    for (i = 0; i < n; i++)
        x[i] = (float)(a->rank + 1);
}

static bool all_are(const float *x, int n, float value)
{
    int i;

    for (i = 0; i < n; i++)
        if (x[i] != value)
            return false;
    return true;
}

static float sum_of(const tt_actor *a)
{
    return (float)(a->size * (a->size + 1) / 2);
}

/* ---- collectives ---- */

static void nothing(tt_actor *a)
{
    (void)a;
}

static void reductions(tt_actor *a)
{
    float *x = malloc(MANY * sizeof *x), y[N];

    if (x == NULL)
        return;
    fill(a, x, MANY);
    fill(a, y, N);
    if (TRY(tutti_all_reduce(TUTTI_SPAN(y, N), TUTTI_SUM, a->group)))
        must_be(a, all_are(y, N, sum_of(a)), "wrong sum of few");
    if (!a->failed && TRY(tutti_all_reduce(TUTTI_SPAN(x, MANY), TUTTI_SUM, a->group)))
        must_be(a, all_are(x, MANY, sum_of(a)), "wrong sum of many");
    fill(a, y, N);
    if (!a->failed && TRY(tutti_reduce(TUTTI_SPAN(y, N), 0, TUTTI_MAX, a->group)))
        must_be(a, a->rank != 0 || all_are(y, N, (float)a->size), "wrong maximum");
    fill(a, x, N * a->size);
    if (!a->failed && TRY(tutti_reduce_scatter_tensor(TUTTI_SPAN(y, N), TUTTI_SPAN(x, N * a->size), TUTTI_SUM, a->group)))
        must_be(a, all_are(y, N, sum_of(a)), "wrong part of a sum");
    free(x);
}

static void moves(tt_actor *a)
{
    float x[N], all[N * TT_SCENARIO_RANKS], got[N * TT_SCENARIO_RANKS];

    fill(a, x, N);
    fill(a, all, N * TT_SCENARIO_RANKS);
    if (!TRY(tutti_broadcast(TUTTI_SPAN(x, N), 0, a->group)))
        return;
    must_be(a, all_are(x, N, 1.0f), "wrong broadcast");
    if (!TRY(tutti_all_gather_into_tensor(TUTTI_SPAN(all, N * a->size), TUTTI_SPAN(x, N), a->group)))
        return;
    must_be(a, all_are(all, N * a->size, 1.0f), "wrong gathering");
    fill(a, all, N * a->size);
    if (TRY(tutti_all_to_all_single(TUTTI_SPAN(got, N * a->size), TUTTI_SPAN(all, N * a->size), NULL, NULL, a->group)))
        must_be(a, all_are(got + N, N, 2.0f), "wrong exchange");
    if (!a->failed)
        TRY(tutti_barrier(a->group));
}

static void parts(tt_actor *a)
{
    float      x[N], all[N * TT_SCENARIO_RANKS];
    tutti_span list[TT_SCENARIO_RANKS];
    const bool root = a->rank == 0;
    int        r;

    fill(a, x, N);
    fill(a, all, N * TT_SCENARIO_RANKS);
    for (r = 0; r < a->size; r++)
        list[r] = TUTTI_SPAN(all + r * N, N);
    if (!TRY(tutti_gather(root ? list : NULL, root ? a->size : 0, TUTTI_SPAN(x, N), 0, a->group)))
        return;
    must_be(a, !root || all_are(all + N, N, 2.0f), "wrong gathering at the root");
    fill(a, all, N * TT_SCENARIO_RANKS);
    if (!TRY(tutti_scatter(TUTTI_SPAN(x, N), root ? list : NULL, root ? a->size : 0, 0, a->group)))
        return;
    must_be(a, all_are(x, N, 1.0f), "wrong scattering");
    fill(a, x, N);
    if (!TRY(tutti_all_gather(list, a->size, TUTTI_SPAN(x, N), a->group)))
        return;
    must_be(a, all_are(all + N, N, 2.0f), "wrong list");
    TRY(tutti_barrier(a->group));
}

static void called_back(tutti_work *work, void *ctx)
{
    (void)work;
    (void)ctx;
}

static void asynchronous(tt_actor *a)
{
    float       x[N], y[N];
    tutti_work *one = NULL, *two = NULL;

    fill(a, x, N);
    fill(a, y, N);
    TRY(tutti_all_reduce_async(TUTTI_SPAN(x, N), TUTTI_SUM, a->group, &one));
    if (one != NULL)
        TRY(tutti_work_then(one, called_back, NULL));
    if (!a->failed)
        TRY(tutti_all_reduce_async(TUTTI_SPAN(y, N), TUTTI_SUM, a->group, &two));
    if (two != NULL)
        TRY(tutti_work_wait(two));
    if (one != NULL && TRY(tutti_work_wait(one)))
        must_be(a, all_are(x, N, sum_of(a)), "wrong sum of a work");
    tutti_work_free(one);
    tutti_work_free(two);
}

static void coalesced(tt_actor *a)
{
    float      x[N], y[N];
    tutti_span list[2] = { TUTTI_SPAN(x, N), TUTTI_SPAN(y, N) };

    fill(a, x, N);
    fill(a, y, N);
    if (TRY(tutti_all_reduce_coalesced(list, 2, TUTTI_SUM, a->group)))
        must_be(a, all_are(x, N, sum_of(a)) && all_are(y, N, sum_of(a)), "wrong sums of several");
}

static void registered(tt_actor *a)
{
    void *memory = NULL;

    if (!TRY(tutti_alloc(MANY * sizeof(float), &memory)))
        return;
    fill(a, memory, MANY);
    if (TRY(tutti_all_reduce(TUTTI_SPAN((float *)memory, MANY), TUTTI_SUM, a->group)))
        must_be(a, all_are(memory, MANY, sum_of(a)), "wrong sum in registered memory");
    TRY(tutti_free(memory));
}

static void compressed(tt_actor *a)
{
    float x[N];

    fill(a, x, N);
    if (TRY(tutti_all_reduce_quantized(TUTTI_SPAN(x, N), TUTTI_SUM, NULL, a->group)))
        must_be(a, x[0] > sum_of(a) - 0.5f && x[0] < sum_of(a) + 0.5f, "wrong sum of 8 bits");
    fill(a, x, N);
    if (!a->failed && TRY(tutti_all_reduce_block_sparse(TUTTI_SPAN(x, N), TUTTI_SUM, NULL, a->group)))
        must_be(a, all_are(x, N, sum_of(a)), "wrong sum of blocks");
}

/* ---- messages ---- */

static void messages(tt_actor *a)
{
    float      *x = calloc(MANY, sizeof *x), *y = calloc(MANY, sizeof *y);
    const int   to = (a->rank + 1) % a->size, from = (a->rank + a->size - 1) % a->size;
    tutti_work *work = NULL;

    if (x != NULL && y != NULL) {
        fill(a, x, MANY);
        TRY(tutti_isend(TUTTI_SPAN(x, MANY), to, TAG, a->group, &work));
        if (!a->failed && TRY(tutti_recv(TUTTI_SPAN(y, MANY), from, TAG, a->group, NULL)))
            must_be(a, all_are(y, MANY, (float)(from + 1)), "a wrong message");
        if (work != NULL)
            TRY(tutti_work_wait(work));
        tutti_work_free(work);
    }
    if (!a->failed && a->rank == 0)
        TRY(tutti_send(TUTTI_SPAN(x, 1), 1, TAG, a->group));
    if (!a->failed && a->rank == 1)
        TRY(tutti_recv(TUTTI_SPAN(y, 1), TUTTI_ANY_SOURCE, TAG, a->group, NULL));
    tutti_destroy_process_group(a->group); /* messages that are under way end before their buffers go */
    a->group = NULL;
    free(x);
    free(y);
}

static void batch(tt_actor *a)
{
    float        x[N], y[N];
    const int    to = (a->rank + 1) % a->size, from = (a->rank + a->size - 1) % a->size;
    tutti_p2p_op ops[2] = { { true, TUTTI_SPAN(x, N), to, TAG }, { false, TUTTI_SPAN(y, N), from, TAG } };
    tutti_work  *works[2] = { NULL };

    fill(a, x, N);
    if (TRY(tutti_batch_isend_irecv(ops, 2, a->group, works)) && TRY(tutti_wait_all(works, 2, 0)) &&
        TRY(tutti_work_wait(works[0])) && TRY(tutti_work_wait(works[1])))
        must_be(a, all_are(y, N, (float)(from + 1)), "a wrong message of a batch");
    tutti_destroy_process_group(a->group);
    a->group = NULL;
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
}

static void windows(tt_actor *a)
{
    const int     to = (a->rank + 1) % a->size, from = (a->rank + a->size - 1) % a->size;
    void         *memory = NULL;
    tutti_window *window = NULL;
    float         x[N];
    tutti_span    span;

    fill(a, x, N);
    if (!TRY(tutti_alloc(N * sizeof(float), &memory)))
        return;
    span = TUTTI_SPAN((float *)memory, N);
    if (TRY(tutti_window_create(&span, a->group, &window)) && TRY(tutti_window_put(window, TUTTI_SPAN(x, N), to, 0)) &&
        TRY(tutti_window_signal(window, to)) && TRY(tutti_window_wait_signal(window, from, 0)))
        must_be(a, all_are(memory, N, (float)(from + 1)), "a wrong put");
    if (window != NULL)
        TRY(tutti_window_free(window));
    TRY(tutti_free(memory));
}

static void objects(tt_actor *a)
{
    const char    text[] = "an object";
    tutti_objects all = TUTTI_OBJECTS_NONE, list = TUTTI_OBJECTS_NONE;
    tutti_bytes   mine = { (void *)(uintptr_t)text, sizeof text };

    if (TRY(tutti_all_gather_object(text, sizeof text, a->group, &all)))
        must_be(a, all.n == a->size && strcmp(all.at[1].data, text) == 0, "wrong objects");
    tutti_objects_free(&all);
    if (!a->failed && a->rank == 0)
        TRY(tutti_send_object_list(&mine, 1, 1, TAG, a->group));
    if (!a->failed && a->rank == 1 && TRY(tutti_recv_object_list(0, TAG, a->group, &list, NULL)))
        must_be(a, list.n == 1 && strcmp(list.at[0].data, text) == 0, "a wrong object in a message");
    tutti_objects_free(&list);
}

/* ---- groups ---- */

static void more_groups(tt_actor *a)
{
    const int    all[] = { 0, 1, 2 };
    tutti_group *group = NULL, *part = NULL;
    float        x = 1.0f;

    tutti_use_group(a->group);
    if (TRY(tutti_new_group(all, a->size, NULL, &group)) && TRY(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group)))
        must_be(a, x == (float)a->size, "wrong sum in a new group");
    if (!a->failed && TRY(tutti_split_group_by_color(a->group, a->rank == 0, NULL, &part)))
        TRY(tutti_barrier(part));
    if (!a->failed)
        TRY(tutti_destroy_process_group(group));
    tutti_use_group(NULL);
}

static void shrinking(tt_actor *a)
{
    const int    last = a->size - 1;
    tutti_group *left = NULL;
    float        x = 1.0f;

    if (a->rank == last)
        return;
    if (!TRY(tutti_shrink_group(&last, 1, a->group, TUTTI_SHRINK_ABORT, NULL, &left)))
        return;
    a->group = left;
    if (TRY(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, left)))
        must_be(a, x == (float)(a->size - 1), "wrong sum after shrinking");
}

static void meshes(tt_actor *a)
{
    const int          shape[] = { 1, a->size };
    const char *const  names[] = { "one", "all" };
    tutti_device_mesh *mesh = NULL;
    tutti_group       *group = NULL;
    float              x = 1.0f;

    tutti_use_group(a->group);
    if (TRY(tutti_init_device_mesh(TUTTI_CPU, shape, 2, names, &mesh)) &&
        TRY(tutti_device_mesh_get_group(mesh, 1, &group)) && TRY(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group)))
        must_be(a, x == (float)a->size, "wrong sum along a mesh");
    tutti_device_mesh_free(mesh);
    tutti_use_group(NULL);
}

static void reducers(tt_actor *a)
{
    float                 grads[2][N];
    tutti_reducer_param   params[2] = { { .name = "a", .dtype = TUTTI_F32, .numel = N, .grad = grads[0] },
                                        { .name = "b", .dtype = TUTTI_F32, .numel = N, .grad = grads[1] } };
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer        *reducer = NULL;

    fill(a, grads[0], N);
    fill(a, grads[1], N);
    opts.group = a->group;
    opts.bucket_cap_bytes = N * sizeof(float);
    if (TRY(tutti_reducer_create(params, 2, &opts, &reducer)) && TRY(tutti_reducer_prepare_for_forward(reducer)) &&
        TRY(tutti_reducer_prepare_for_backward(reducer, NULL, 0)) && TRY(tutti_reducer_mark_ready(reducer, 1)) &&
        TRY(tutti_reducer_mark_ready(reducer, 0)) && TRY(tutti_reducer_finish(reducer)))
        must_be(a, all_are(grads[0], N, sum_of(a) / (float)a->size), "a wrong average");
    tutti_reducer_free(reducer);
}

/* ---- stores ---- */

static void use_store(tt_actor *a, tutti_store *store)
{
    tutti_store *part = NULL;
    tutti_bytes  got = { NULL, 0 };
    int64_t      sum = 0;
    const char  *keys[] = { "a", "b" };

    if (TRY(tutti_prefix_store_open("part", store, &part)) && TRY(tutti_store_set(part, "a", "1", 1)) &&
        TRY(tutti_store_get(part, "a", 200, &got)))
        must_be(a, got.size == 1 && memcmp(got.data, "1", 1) == 0, "a wrong value");
    tutti_bytes_free(&got);
    if (!a->failed && TRY(tutti_store_add(part, "b", 2, &sum)))
        must_be(a, sum == 2, "a wrong counter");
    if (!a->failed)
        TRY(tutti_store_wait(part, keys, 2, 200));
    if (!a->failed)
        TRY(tutti_store_append(part, "a", "23", 2));
    if (!a->failed)
        TRY(tutti_store_compare_set(part, "a", "123", 3, "4", 1, &got));
    tutti_bytes_free(&got);
    if (part != NULL)
        tutti_store_close(part);
}

static void hash_store(tt_actor *a)
{
    tutti_store *store = NULL;

    if (TRY(tutti_hash_store_open(&store)))
        use_store(a, store);
    tutti_store_close(store);
}

static void file_store(tt_actor *a)
{
    tutti_store *store = NULL;
    char         path[256];

    snprintf(path, sizeof path, "%s/store", a->dir);
    remove(path);
    if (TRY(tutti_file_store_open(path, 1, &store)))
        use_store(a, store);
    tutti_store_close(store);
    remove(path);
}

static void tcp_store(tt_actor *a)
{
    tutti_tcp_store_options opts = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;

    opts.host = "127.0.0.1";
    opts.is_master = true;
    opts.timeout_ms = 500;
    if (TRY(tutti_tcp_store_open(&opts, &store)))
        use_store(a, store);
    tutti_store_close(store);
}

const tt_scenario *tt_scenarios(int *n_out)
{
    static const tt_scenario all[] = {
        { "init", 2, TT_IN_ALL, nothing },
        { "destroy", 2, TT_IN_END, reductions },
        { "reductions", 2, TT_IN_BODY, reductions },
        { "reductions of 3", 3, TT_IN_BODY, reductions },
        { "moves", 2, TT_IN_BODY, moves },
        { "parts", 2, TT_IN_BODY, parts },
        { "asynchronous", 2, TT_IN_BODY, asynchronous },
        { "coalesced", 2, TT_IN_BODY, coalesced },
        { "registered", 2, TT_IN_BODY, registered },
        { "compressed", 2, TT_IN_BODY, compressed },
        { "messages", 2, TT_IN_BODY, messages },
        { "batch", 2, TT_IN_BODY, batch },
        { "windows", 2, TT_IN_BODY, windows },
        { "objects", 2, TT_IN_BODY, objects },
        { "groups", 2, TT_IN_BODY, more_groups },
        { "shrinking", 3, TT_IN_BODY, shrinking },
        { "meshes", 2, TT_IN_BODY, meshes },
        { "reducers", 2, TT_IN_BODY, reducers },
        { "hash store", 1, TT_IN_BODY, hash_store },
        { "file store", 1, TT_IN_BODY, file_store },
        { "tcp store", 1, TT_IN_BODY, tcp_store },
    };

    *n_out = (int)(sizeof all / sizeof all[0]);
    return all;
}
