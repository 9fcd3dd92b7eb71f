/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls_collective.c - collectives: blocking, asynchronous, several at once, compressed, sparse. */
#include "scenarios.h"

#include <stdlib.h>

enum { N = TT_FEW, MANY = 20000, WORKS = 32 };

#define FEW(x)   TUTTI_SPAN(x, N)
#define EACH(x)  TUTTI_SPAN(x, N *a->size)
#define IN       FEW(a->in)
#define IN_EACH  EACH(a->in)
#define OUT      FEW(tt_room(a, N))
#define OUT_EACH EACH(tt_room(a, N *a->size))

/* A span for each rank, one behind the other. */
typedef struct parts {
    tutti_span at[TT_SCENARIO_RANKS];
} parts;

static parts parts_of(const tt_actor *a, float *x)
{
    parts p;
    int   r;

    for (r = 0; r < a->size; r++)
        p.at[r] = FEW(x + r * N);
    return p;
}

/* ---- one after the other ---- */

static void reductions(tt_actor *a)
{
    float *x = malloc(MANY * sizeof *x), *y = a->out;

    if (x == NULL)
        return;
    tt_fill(a, x, MANY);
    tt_fill(a, y, N);
    if (TRY(tutti_all_reduce(FEW(y), TUTTI_SUM, a->group)))
        tt_must_be(a, tt_all_are(y, N, tt_sum_of(a)), "wrong sum of few");
    if (THEN(tutti_all_reduce(TUTTI_SPAN(x, MANY), TUTTI_SUM, a->group)))
        tt_must_be(a, tt_all_are(x, MANY, tt_sum_of(a)), "wrong sum of many");
    tt_fill(a, y, N);
    if (THEN(tutti_reduce(FEW(y), 0, TUTTI_MAX, a->group)))
        tt_must_be(a, a->rank != 0 || tt_all_are(y, N, (float)a->size), "wrong maximum");
    tt_fill(a, x, N * a->size);
    if (THEN(tutti_reduce_scatter_tensor(FEW(y), EACH(x), TUTTI_SUM, a->group)))
        tt_must_be(a, tt_all_are(y, N, tt_sum_of(a)), "wrong part of a sum");
    free(x);
}

static void moves(tt_actor *a)
{
    float *x = tt_room(a, N), *all = tt_room(a, N * a->size), *got = tt_room(a, N * a->size);

    tt_fill(a, x, N);
    if (TRY(tutti_broadcast(FEW(x), 0, a->group)))
        tt_must_be(a, tt_all_are(x, N, 1.0f), "wrong broadcast");
    if (THEN(tutti_all_gather_into_tensor(EACH(all), FEW(x), a->group)))
        tt_must_be(a, tt_all_are(all, N * a->size, 1.0f), "wrong gathering");
    tt_fill(a, all, N * a->size);
    if (THEN(tutti_all_to_all_single(EACH(got), EACH(all), NULL, NULL, a->group)))
        tt_must_be(a, tt_all_are(got + N, N, 2.0f), "wrong exchange");
    (void)THEN(tutti_barrier(a->group));
}

static void parts_of_all(tt_actor *a)
{
    float     *x = tt_room(a, N), *all = tt_room(a, N * a->size), *got = tt_room(a, N * a->size);
    const bool root = a->rank == 0;
    parts      list = parts_of(a, all), gotten = parts_of(a, got);

    tt_fill(a, x, N);
    tt_fill(a, all, N * a->size);
    if (TRY(tutti_gather(root ? list.at : NULL, root ? a->size : 0, FEW(x), 0, a->group)))
        tt_must_be(a, !root || tt_all_are(all + N, N, 2.0f), "wrong gathering at the root");
    tt_fill(a, all, N * a->size);
    if (THEN(tutti_scatter(FEW(x), root ? list.at : NULL, root ? a->size : 0, 0, a->group)))
        tt_must_be(a, tt_all_are(x, N, 1.0f), "wrong scattering");
    tt_fill(a, x, N);
    if (THEN(tutti_all_gather(list.at, a->size, FEW(x), a->group)))
        tt_must_be(a, tt_all_are(all + N, N, 2.0f), "wrong list");
    tt_fill(a, all, N * a->size);
    if (THEN(tutti_all_to_all(gotten.at, a->size, list.at, a->size, a->group)))
        tt_must_be(a, tt_all_are(got + N, N, 2.0f), "wrong exchange of lists");
    tt_fill(a, all, N * a->size);
    if (THEN(tutti_reduce_scatter(FEW(x), list.at, a->size, TUTTI_SUM, a->group)))
        tt_must_be(a, tt_all_are(x, N, tt_sum_of(a)), "wrong part of a sum of lists");
    (void)THEN(tutti_barrier(a->group));
}

/* Rank r has r + 1 numbers. */
static void of_all_sizes(tt_actor *a)
{
    const bool root = a->rank == 0;
    int64_t    counts[TT_SCENARIO_RANKS], sum = 0;
    tutti_span list[TT_SCENARIO_RANKS], mine, all;
    float     *to = tt_room(a, N);
    int        r;

    for (r = 0; r < a->size; r++) {
        counts[r] = r + 1;
        list[r] = TUTTI_SPAN(to + sum, counts[r]);
        sum += counts[r];
    }
    mine = TUTTI_SPAN(tt_room(a, N), counts[a->rank]);
    all = TUTTI_SPAN(to, sum);
    tt_fill(a, mine.data, (int)mine.count);
    if (TRY(tutti_all_gather_into_tensor_v(all, mine, counts, a->group)))
        tt_must_be(a, to[1] == 2.0f && to[0] == 1.0f, "wrong gathering of all sizes");
    if (THEN(tutti_gather_v(root ? list : NULL, root ? a->size : 0, mine, 0, a->group)))
        tt_must_be(a, !root || to[2] == 2.0f, "wrong gathering of all sizes at the root");
    if (THEN(tutti_scatter_v(mine, root ? list : NULL, root ? a->size : 0, 0, a->group)))
        tt_must_be(a, ((float *)mine.data)[0] == (float)(a->rank + 1), "wrong scattering of all sizes");
    tt_fill(a, to, (int)sum);
    if (THEN(tutti_reduce_scatter_tensor_v(mine, all, counts, TUTTI_SUM, a->group)))
        tt_must_be(a, tt_all_are(mine.data, (int)mine.count, tt_sum_of(a)), "wrong part of a sum of all sizes");
}

static void roots_in_group(tt_actor *a)
{
    float     *x = tt_room(a, N), *all = tt_room(a, N * a->size);
    const bool root = a->rank == 1;
    parts      list = parts_of(a, all);
    const int  n = root ? a->size : 0;

    tt_fill(a, x, N);
    if (TRY(tutti_broadcast_in_group(FEW(x), 1, a->group)))
        tt_must_be(a, tt_all_are(x, N, 2.0f), "wrong broadcast in a group");
    tt_fill(a, x, N);
    if (THEN(tutti_reduce_in_group(FEW(x), 1, TUTTI_SUM, a->group)))
        tt_must_be(a, !root || tt_all_are(x, N, tt_sum_of(a)), "wrong sum at the root");
    tt_fill(a, x, N);
    if (THEN(tutti_gather_in_group(root ? list.at : NULL, n, FEW(x), 1, a->group)))
        tt_must_be(a, !root || tt_all_are(all, N, 1.0f), "wrong gathering in a group");
    if (THEN(tutti_gather_v_in_group(root ? list.at : NULL, n, FEW(x), 1, a->group)))
        tt_must_be(a, !root || tt_all_are(all, N, 1.0f), "wrong gathering of all sizes in a group");
    tt_fill(a, all, N * a->size);
    if (THEN(tutti_scatter_in_group(FEW(x), root ? list.at : NULL, n, 1, a->group)))
        tt_must_be(a, tt_all_are(x, N, 2.0f), "wrong scattering in a group");
    tt_fill(a, x, N);
    if (THEN(tutti_scatter_v_in_group(FEW(x), root ? list.at : NULL, n, 1, a->group)))
        tt_must_be(a, tt_all_are(x, N, 2.0f), "wrong scattering of all sizes in a group");
}

/* ---- asynchronous ---- */

typedef struct pile {
    tutti_work *at[WORKS];
    int         n;
} pile;

static tutti_work **more(pile *p)
{
    if (p->n == WORKS)
        __builtin_trap();
    return &p->at[p->n++];
}

/* Wait for all that there are, and drop them. */
static void finish(tt_actor *a, pile *p)
{
    int i;

    for (i = 0; i < p->n; i++)
        if (p->at[i] != NULL)
            TRY(tutti_work_wait(p->at[i]));
    for (i = 0; i < p->n; i++)
        tutti_work_free(p->at[i]);
}

static void called_back(tutti_work *work, void *ctx)
{
    (void)work;
    (void)ctx;
}

static void asynchronous(tt_actor *a)
{
    float *x = tt_room(a, N), *y = tt_room(a, N);
    pile   p = { .n = 0 };

    tt_fill(a, x, N);
    tt_fill(a, y, N);
    if (TRY(tutti_all_reduce_async(FEW(x), TUTTI_SUM, a->group, more(&p))))
        TRY(tutti_work_then(p.at[0], called_back, NULL));
    (void)THEN(tutti_all_reduce_async(FEW(y), TUTTI_SUM, a->group, more(&p)));
    if (!a->failed)
        TRY(tutti_work_wait(p.at[1]));
    finish(a, &p);
    if (!a->failed)
        tt_must_be(a, tt_all_are(x, N, tt_sum_of(a)), "wrong sum of a work");
}

static void asynchronous_sums(tt_actor *a)
{
    float *x = tt_room(a, N), *part = tt_room(a, N), *each = tt_room(a, N * a->size);
    parts  list = parts_of(a, each);
    pile   p = { .n = 0 };

    tt_fill(a, x, N);
    tt_fill(a, a->in, N * a->size);
    tt_fill(a, each, N * a->size);
    (void)THEN(tutti_reduce_async(FEW(x), 0, TUTTI_SUM, a->group, more(&p)));
    (void)THEN(tutti_reduce_in_group_async(OUT, 0, TUTTI_SUM, a->group, more(&p)));
    (void)THEN(tutti_reduce_scatter_async(FEW(part), list.at, a->size, TUTTI_SUM, a->group, more(&p)));
    (void)THEN(tutti_reduce_scatter_tensor_async(OUT, IN_EACH, TUTTI_SUM, a->group, more(&p)));
    (void)THEN(tutti_reduce_scatter_tensor_v_async(OUT, IN_EACH, (int64_t[]){ N, N, N }, TUTTI_SUM, a->group, more(&p)));
    (void)THEN(tutti_barrier_async(a->group, more(&p)));
    finish(a, &p);
    if (!a->failed)
        tt_must_be(a, tt_all_are(part, N, tt_sum_of(a)), "wrong part of a sum of a work");
}

static void asynchronous_moves(tt_actor *a)
{
    const bool root = a->rank == 0;
    const int  n = root ? a->size : 0;
    float     *each = tt_room(a, N * a->size);
    parts      ins = parts_of(a, a->in), outs = parts_of(a, each), more_outs = parts_of(a, tt_room(a, N * a->size));
    pile       p = { .n = 0 };

    tt_fill(a, a->in, N * a->size);
    (void)THEN(tutti_broadcast_async(OUT, 0, a->group, more(&p)));
    (void)THEN(tutti_broadcast_in_group_async(OUT, 0, a->group, more(&p)));
    (void)THEN(tutti_all_gather_async(outs.at, a->size, IN, a->group, more(&p)));
    (void)THEN(tutti_all_gather_into_tensor_async(OUT_EACH, IN, a->group, more(&p)));
    (void)THEN(tutti_all_gather_into_tensor_v_async(OUT_EACH, IN, (int64_t[]){ N, N, N }, a->group, more(&p)));
    (void)THEN(tutti_all_to_all_async(more_outs.at, a->size, ins.at, a->size, a->group, more(&p)));
    (void)THEN(tutti_all_to_all_single_async(OUT_EACH, IN_EACH, NULL, NULL, a->group, more(&p)));
    (void)THEN(tutti_scatter_async(OUT, root ? ins.at : NULL, n, 0, a->group, more(&p)));
    (void)THEN(tutti_scatter_in_group_async(OUT, root ? ins.at : NULL, n, 0, a->group, more(&p)));
    (void)THEN(tutti_scatter_v_async(OUT, root ? ins.at : NULL, n, 0, a->group, more(&p)));
    (void)THEN(tutti_scatter_v_in_group_async(OUT, root ? ins.at : NULL, n, 0, a->group, more(&p)));
    finish(a, &p);
    if (!a->failed)
        tt_must_be(a, tt_all_are(each + N, N, 2.0f), "wrong gathering of a work");
}

/* Each to lists of its own: they are under way side by side. */
static void asynchronous_gathers(tt_actor *a)
{
    const bool root = a->rank == 0;
    const int  n = root ? a->size : 0;
    float     *each = tt_room(a, N * a->size);
    parts      outs[4] = { parts_of(a, each), parts_of(a, tt_room(a, N * a->size)), parts_of(a, tt_room(a, N * a->size)),
                           parts_of(a, tt_room(a, N * a->size)) };
    pile       p = { .n = 0 };

    tt_fill(a, a->in, N);
    (void)THEN(tutti_gather_async(root ? outs[0].at : NULL, n, IN, 0, a->group, more(&p)));
    (void)THEN(tutti_gather_in_group_async(root ? outs[1].at : NULL, n, IN, 0, a->group, more(&p)));
    (void)THEN(tutti_gather_v_async(root ? outs[2].at : NULL, n, IN, 0, a->group, more(&p)));
    (void)THEN(tutti_gather_v_in_group_async(root ? outs[3].at : NULL, n, IN, 0, a->group, more(&p)));
    finish(a, &p);
    if (!a->failed)
        tt_must_be(a, !root || tt_all_are(each + N, N, 2.0f), "wrong gathering of a work at the root");
}

/* ---- waiting for works ---- */

static void works(tt_actor *a)
{
    tutti_future *future = NULL, *all = NULL;
    int           index = -1;
    pile          p = { .n = 0 };

    (void)THEN(tutti_all_reduce_async(OUT, TUTTI_SUM, a->group, more(&p)));
    (void)THEN(tutti_all_reduce_async(OUT, TUTTI_SUM, a->group, more(&p)));
    (void)THEN(tutti_wait_any(p.at, 2, 0, &index));
    (void)THEN(tutti_work_wait_for(p.at[0], a->timeout_ms));
    (void)THEN(tutti_wait_all(p.at, 2, a->timeout_ms));
    (void)THEN(tutti_all_reduce_async(OUT, TUTTI_SUM, a->group, more(&p)));
    (void)THEN(tutti_work_get_future(p.at[2], &future));
    (void)THEN(tutti_future_wait(future, a->timeout_ms));
    (void)THEN(tutti_collect_all(&future, 1, &all));
    (void)THEN(tutti_future_wait_all(&all, 1, a->timeout_ms));
    tutti_future_free(all);
    tutti_future_free(future);
    finish(a, &p);
}

/* ---- several buffers at once ---- */

static void coalesced(tt_actor *a)
{
    float           *x = tt_room(a, 2 * N), *each = tt_room(a, N * a->size);
    const tutti_span sums[2] = { FEW(x), FEW(x + N) }, in = IN, in_each = IN_EACH, whole = EACH(each), out = OUT;
    parts            list = parts_of(a, each);
    const tutti_span *outs[TT_SCENARIO_RANKS];
    int               r;

    tt_fill(a, x, 2 * N);
    tt_fill(a, a->in, N * a->size);
    for (r = 0; r < a->size; r++)
        outs[r] = &list.at[r];
    if (TRY(tutti_all_reduce_coalesced(sums, 2, TUTTI_SUM, a->group)))
        tt_must_be(a, tt_all_are(x, 2 * N, tt_sum_of(a)), "wrong sums of several");
    if (THEN(tutti_all_gather_coalesced(outs, a->size, &in, 1, a->group)))
        tt_must_be(a, tt_all_are(each + N, N, 2.0f), "wrong lists of several");
    if (THEN(tutti_all_gather_into_tensor_coalesced(&whole, &in, 1, a->group)))
        tt_must_be(a, tt_all_are(each + N, N, 2.0f), "wrong gathering of several");
    if (THEN(tutti_reduce_scatter_tensor_coalesced(&out, &in_each, 1, TUTTI_SUM, a->group)))
        tt_must_be(a, tt_all_are(out.data, N, tt_sum_of(a)), "wrong parts of several");
}

static void coalesced_works(tt_actor *a)
{
    float            *x = tt_room(a, N);
    const tutti_span  sum = FEW(x), in = IN, in_each = IN_EACH, whole = OUT_EACH, out = OUT;
    parts             list = parts_of(a, tt_room(a, N * a->size));
    const tutti_span *outs[TT_SCENARIO_RANKS];
    pile              p = { .n = 0 };
    int               r;

    tt_fill(a, x, N);
    tt_fill(a, a->in, N * a->size);
    for (r = 0; r < a->size; r++)
        outs[r] = &list.at[r];
    (void)THEN(tutti_all_reduce_coalesced_async(&sum, 1, TUTTI_SUM, a->group, more(&p)));
    (void)THEN(tutti_all_gather_coalesced_async(outs, a->size, &in, 1, a->group, more(&p)));
    (void)THEN(tutti_all_gather_into_tensor_coalesced_async(&whole, &in, 1, a->group, more(&p)));
    (void)THEN(tutti_reduce_scatter_tensor_coalesced_async(&out, &in_each, 1, TUTTI_SUM, a->group, more(&p)));
    finish(a, &p);
    if (!a->failed)
        tt_must_be(a, tt_all_are(x, N, tt_sum_of(a)), "wrong sum of several in a work");
}

static void recorded(tt_actor *a)
{
    float *x = tt_room(a, N), *y = tt_room(a, N);
    pile   p = { .n = 0 };

    tt_fill(a, x, N);
    tt_fill(a, y, N);
    if (!TRY(tutti_coalescing_begin(a->group)))
        return;
    (void)THEN(tutti_all_reduce_async(FEW(x), TUTTI_SUM, a->group, more(&p)));
    (void)THEN(tutti_all_reduce(FEW(y), TUTTI_SUM, a->group));
    TRY(tutti_coalescing_end(a->group, NULL));
    finish(a, &p);
    if (!a->failed)
        tt_must_be(a, tt_all_are(x, N, tt_sum_of(a)) && tt_all_are(y, N, tt_sum_of(a)), "wrong sums of what was recorded");
}

static void registered(tt_actor *a)
{
    void *memory = NULL;

    if (!TRY(tutti_alloc(MANY * sizeof(float), &memory)))
        return;
    tt_fill(a, memory, MANY);
    if (TRY(tutti_all_reduce(TUTTI_SPAN((float *)memory, MANY), TUTTI_SUM, a->group)))
        tt_must_be(a, tt_all_are(memory, MANY, tt_sum_of(a)), "wrong sum in registered memory");
    TRY(tutti_free(memory));
}

/* ---- sums that send less ---- */

static bool about_the_sum(const tt_actor *a, const float *x)
{
    return x[0] > tt_sum_of(a) - 0.5f && x[0] < tt_sum_of(a) + 0.5f;
}

static void compressed(tt_actor *a)
{
    float *x = tt_room(a, N), *y = tt_room(a, N), *z = tt_room(a, N);
    pile   p = { .n = 0 };

    tt_fill(a, x, N);
    if (TRY(tutti_all_reduce_quantized(FEW(x), TUTTI_SUM, NULL, a->group)))
        tt_must_be(a, about_the_sum(a, x), "wrong sum of 8 bits");
    tt_fill(a, x, N);
    if (THEN(tutti_all_reduce_block_sparse(FEW(x), TUTTI_SUM, NULL, a->group)))
        tt_must_be(a, tt_all_are(x, N, tt_sum_of(a)), "wrong sum of blocks");
    tt_fill(a, y, N);
    tt_fill(a, z, N);
    (void)THEN(tutti_all_reduce_quantized_async(FEW(y), TUTTI_SUM, NULL, a->group, more(&p)));
    (void)THEN(tutti_all_reduce_block_sparse_async(FEW(z), TUTTI_SUM, NULL, a->group, more(&p)));
    finish(a, &p);
    if (!a->failed)
        tt_must_be(a, about_the_sum(a, y) && tt_all_are(z, N, tt_sum_of(a)), "wrong sum of less in a work");
}

/* Rank r has blocks 0 and r + 1 of 2 numbers each. */
static void sparse(tt_actor *a)
{
    const int64_t          at[2] = { 0, a->rank + 1 };
    const tutti_sparse_coo in = { .sparse_dim = 1, .dense_dim = 1, .sizes = { 8, 2 }, .nnz = 2, .indices = at,
                                  .values = TUTTI_SPAN(a->in, 4) };
    tutti_sparse_coo       out = { .owned = NULL };

    tt_fill(a, a->in, 4);
    if (TRY(tutti_sparse_all_reduce(&in, TUTTI_SUM, a->group, &out)))
        tt_must_be(a, out.nnz == a->size + 1 && out.indices[a->size] == a->size &&
                          tt_all_are(out.values.data, 2, tt_sum_of(a)), "wrong sum of sparse tensors");
    tutti_sparse_free(&out);
}

static const tt_scenario scenarios[] = {
    TT_PLAY("reductions", 2, reductions),
    TT_PLAY("reductions of 3", 3, reductions),
    TT_PLAY("moves", 2, moves),
    TT_PLAY("parts", 2, parts_of_all),
    TT_PLAY("parts of all sizes", 3, of_all_sizes),
    TT_PLAY("roots in a group", 2, roots_in_group),
    TT_PLAY("asynchronous", 2, asynchronous),
    TT_PLAY("asynchronous sums", 2, asynchronous_sums),
    TT_PLAY("asynchronous moves", 2, asynchronous_moves),
    TT_PLAY("asynchronous gathers", 2, asynchronous_gathers),
    TT_PLAY("works and futures", 2, works),
    TT_PLAY("coalesced", 2, coalesced),
    TT_PLAY("coalesced works", 2, coalesced_works),
    TT_PLAY("recorded", 2, recorded),
    TT_PLAY("registered", 2, registered),
    TT_PLAY("compressed", 2, compressed),
    TT_PLAY("sparse", 3, sparse),
};

TT_FAMILY(tt_collective_calls, "collectives", scenarios);
