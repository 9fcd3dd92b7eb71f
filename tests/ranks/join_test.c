/* SPDX-License-Identifier: BSD-3-Clause
 *
 * join_test.c
 * Goal    ranks with fewer inputs than others play along until all have run out, in every mode of a reducer, and keep
 *         their gradients meanwhile; averages are over all ranks or over those with inputs; the state at the end is that of
 *         the last one to run out; a static graph may begin without a rank; joinables of the program take part; early
 *         termination is an error on all ranks.
 * Method  gradients that are 1 on every active rank, so that averages count ranks. */
#include <stdlib.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { N = 5, COUNT = 3000 };

typedef struct mode {
    bool views, find_unused, static_graph, divide_by_active;
    int  hook;      /* -1: none */
    int  first_run; /* the rank that has no input at all */
} mode;

/* How many inputs a rank has: none on one, and one more on each after it. */
static int inputs_of(const tt_ctx *t, const mode *m, int rank)
{
    return (rank - m->first_run + t->size) % t->size * 2;
}

static int active_in(const tt_ctx *t, const mode *m, int step)
{
    int r, n = 0;

    for (r = 0; r < t->size; r++)
        n += inputs_of(t, m, r) > step;
    return n;
}

static tutti_reducer *make(tt_ctx *t, const mode *m)
{
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param   params[N] = { { 0 } };
    tutti_reducer        *r = NULL;
    int                   i;

    opts.group = t->group;
    opts.bucket_cap_bytes = 2 * COUNT * (int64_t)sizeof(float);
    opts.gradient_as_bucket_view = m->views;
    opts.find_unused_parameters = m->find_unused;
    opts.static_graph = m->static_graph;
    for (i = 0; i < N; i++)
        params[i] = (tutti_reducer_param){ .dtype = TUTTI_F32, .numel = COUNT,
                                           .grad = m->views ? NULL : tt_floats(t, COUNT, 0.0f) };
    OK(tutti_reducer_create(params, N, &opts, &r));
    if (m->hook >= 0)
        OK(tutti_reducer_register_builtin_comm_hook(r, (tutti_builtin_comm_hook)m->hook));
    return r;
}

static void fill(tutti_reducer *r, int i, float value)
{
    float *grad = tutti_reducer_grad(r, i);
    int    k;

    for (k = 0; k < COUNT; k++)
        grad[k] = value;
}

static void expect(tutti_reducer *r, int i, float value)
{
    const float *grad = tutti_reducer_grad(r, i);
    int          k;

    for (k = 0; k < COUNT; k++)
        if (grad[k] != value)
            fail_msg("gradient %d[%d] is %g, not %g", i, k, (double)grad[k], (double)value);
}

/* A step whose odd halves only accumulate; parameter 0 is unused where parameters may be. */
static tutti_status step(tutti_reducer *r, const mode *m, bool sync)
{
    const int    unused = 0, first = m->find_unused;
    tutti_status st;
    int          i;

    tutti_reducer_set_sync(r, sync);
    st = tutti_reducer_prepare_for_backward(r, &unused, m->find_unused);
    for (i = N - 1; i >= first && st == TUTTI_OK; i--) {
        fill(r, i, 1.0f);
        st = tutti_reducer_mark_ready(r, i);
    }
    return st == TUTTI_OK ? tutti_reducer_finish(r) : st;
}

static void run(tt_ctx *t, const mode *m)
{
    tutti_reducer_join_options opts = TUTTI_REDUCER_JOIN_OPTIONS;
    const int                  n = inputs_of(t, m, t->rank);
    float                      state[2] = { (float)n, 0.0f };
    const tutti_span           spans[2] = { TUTTI_SPAN(state, 1), TUTTI_SPAN(state + 1, 1) };
    tutti_reducer             *r = make(t, m);
    tutti_joinable             joinable;
    tutti_join                *join = NULL;
    float                      want = 0.0f;
    int                        s, i;

    opts.divide_by_active = m->divide_by_active;
    opts.state = spans;
    opts.n_state = 2;
    OK(tutti_reducer_joinable(r, &opts, &joinable));
    OK(tutti_join_begin(&joinable, 1, NULL, &join));
    for (i = 0; i < N; i++)
        fill(r, i, 99.0f);
    want = 99.0f; /* of a rank that never had an input */
    for (s = 0; s < n; s++) {
        const bool sync = m->static_graph || s % 2 == 0;

        OK(step(r, m, sync));
        want = !sync ? 1.0f
               : m->divide_by_active && m->hook < 0 ? 1.0f
                                                    : (float)active_in(t, m, s) / (float)t->size;
        for (i = m->find_unused; i < N; i++)
            expect(r, i, want);
        state[1] += 1.0f;
    }
    OK(tutti_join_end(join, TUTTI_OK));
    for (i = m->find_unused; i < N; i++)
        expect(r, i, want); /* nothing of the steps of others is seen */
    expect(r, 0, m->find_unused ? 99.0f : want);
    assert_true(state[0] == 2.0f * (float)(t->size - 1)); /* the last joiner's */
    assert_true(state[1] == state[0]);
    tutti_reducer_set_sync(r, true);
    OK(step(r, m, true)); /* outside of the scope all average again */
    expect(r, N - 1, 1.0f);
    tutti_reducer_free(r);
}

/* All but static graphs, which are below. */
static void uneven_inputs_in_all_modes(tt_ctx *t)
{
    mode m;
    int  bits;

    for (bits = 0; bits < 32; bits++) {
        m = (mode){ .views = bits & 1, .find_unused = bits & 2, .divide_by_active = bits & 4,
                    .hook = bits & 8 ? TUTTI_HOOK_ALLREDUCE : -1, .first_run = bits & 16 ? 0 : t->size - 1 };
        run(t, &m);
    }
}

/* All have the first step, which counts the marks; then inputs run out one after the other. */
static void uneven_inputs_of_a_static_graph(tt_ctx *t)
{
    const mode     m = { .static_graph = true, .views = true, .hook = -1 };
    tutti_reducer *r = make(t, &m);
    tutti_joinable joinable;
    tutti_join    *join = NULL;
    int            s;

    OK(step(r, &m, true));
    OK(tutti_reducer_joinable(r, NULL, &joinable));
    OK(tutti_join_begin(&joinable, 1, NULL, &join));
    for (s = 0; s < inputs_of(t, &m, t->rank); s++) {
        OK(step(r, &m, true));
        expect(r, 1, (float)active_in(t, &m, s) / (float)t->size);
    }
    OK(tutti_join_end(join, TUTTI_OK));
    OK(step(r, &m, true));
    expect(r, 1, 1.0f);
    tutti_reducer_free(r);
}

/* ---- a static graph whose first step one rank does not make ---- */

enum { TWICE = 0, NOBODYS = 1, NOT_LATE = 2 }; /* parameters that are marked in another way than once by all */

/* The late rank does without one that the others use, and may take one that nobody else uses. */
static tutti_status graph_step(const tt_ctx *t, tutti_reducer *r, int late, bool takes_more)
{
    static const int order[] = { 4, TWICE, NOT_LATE, 3, TWICE, NOBODYS };
    tutti_status     st = tutti_reducer_prepare_for_backward(r, NULL, 0);
    float            twice = 0.0f;
    int              k;

    fill(r, NOT_LATE, 0.0f); /* what is not used counts as well */
    for (k = 0; k < 6 && st == TUTTI_OK; k++) {
        if (order[k] == (t->rank == late ? NOT_LATE : NOBODYS) || (order[k] == NOBODYS && !takes_more))
            continue;
        if (order[k] == TWICE)
            twice += 1.0f;
        fill(r, order[k], order[k] == TWICE ? twice : 1.0f);
        st = tutti_reducer_mark_ready(r, order[k]);
    }
    return st == TUTTI_OK ? tutti_reducer_finish(r) : st;
}

static void expect_graph_step(const tt_ctx *t, tutti_reducer *r, int n_active, int n_others)
{
    expect(r, TWICE, 2.0f * (float)n_active / (float)t->size);
    expect(r, NOBODYS, 7.0f);
    expect(r, NOT_LATE, (float)n_others / (float)t->size);
    expect(r, 3, (float)n_active / (float)t->size);
    expect(r, 4, (float)n_active / (float)t->size);
}

/* So many steps of the others, the first one among them; the late rank has none but one without sync. */
static tutti_reducer *begin_without(tt_ctx *t, const mode *m, int late, int n_steps)
{
    tutti_reducer *r = make(t, m);
    tutti_joinable joinable;
    tutti_join    *join = NULL;
    int            s, i;

    if (t->rank == late) {
        tutti_reducer_set_sync(r, false);
        OK(graph_step(t, r, late, false));
        tutti_reducer_set_sync(r, true);
    }
    for (i = 0; i < N; i++)
        fill(r, i, i == NOBODYS ? 7.0f : 99.0f);
    OK(tutti_reducer_joinable(r, NULL, &joinable));
    OK(tutti_join_begin(&joinable, 1, NULL, &join));
    for (s = 0; s < n_steps && t->rank != late; s++) {
        OK(graph_step(t, r, late, false));
        expect_graph_step(t, r, t->size - 1, t->size - 1);
    }
    OK(tutti_join_end(join, TUTTI_OK));
    for (i = 0; i < N && t->rank == late; i++)
        expect(r, i, i == NOBODYS ? 7.0f : 99.0f);
    return r;
}

/* Whether its own first step is the second of all, in which the order of gradients is recorded, or a later one. */
static void run_late(tt_ctx *t, const mode *m, int late, int n_before)
{
    tutti_reducer *r = begin_without(t, m, late, n_before);
    tutti_joinable joinable;
    tutti_join    *join = NULL;
    int            s, q;

    OK(tutti_reducer_joinable(r, NULL, &joinable));
    OK(tutti_join_begin(&joinable, 1, NULL, &join));
    for (s = 0; s < 2 + t->rank; s++) {
        int n_active = 0;

        for (q = 0; q < t->size; q++)
            n_active += 2 + q > s;
        OK(graph_step(t, r, late, false));
        expect_graph_step(t, r, n_active, n_active - (2 + late > s));
    }
    OK(tutti_join_end(join, TUTTI_OK));
    for (s = 0; s < 2; s++) {
        OK(graph_step(t, r, late, false));
        expect_graph_step(t, r, t->size, t->size - 1);
    }
    tutti_reducer_free(r);
}

static void a_static_graph_begins_without_a_rank(tt_ctx *t)
{
    int bits;

    for (bits = 0; bits < 16; bits++) {
        const mode m = { .static_graph = true, .views = bits & 1, .hook = bits & 2 ? TUTTI_HOOK_ALLREDUCE : -1 };

        run_late(t, &m, bits & 4 ? 0 : t->size - 1, bits & 8 ? 3 : 1);
    }
}

/* The map of what is used was made without it. */
static void what_only_a_late_rank_uses_is_refused(tt_ctx *t)
{
    static const char words[] = "parameter 1 is used by rank 0, and was used by no rank in the first step";
    tutti_reducer    *r;
    int               bits, s;

    for (bits = 0; bits < 4; bits++) {
        const mode m = { .static_graph = true, .views = bits & 1, .hook = bits & 2 ? TUTTI_HOOK_ALLREDUCE : -1 };

        r = begin_without(t, &m, 0, 1);
        assert_int_equal(graph_step(t, r, 0, true), t->rank == 0 ? TUTTI_E_STATE : TUTTI_E_REMOTE);
        if (strstr(tutti_last_error(), words) == NULL)
            fail_msg("other words: %s", tutti_last_error());
        fill(r, NOBODYS, 7.0f);
        for (s = 0; s < 3; s++) { /* and without it all goes well */
            OK(graph_step(t, r, 0, false));
            expect_graph_step(t, r, t->size, t->size - 1);
        }
        tutti_reducer_free(r);
    }
}

/* ---- early termination ---- */

static void early_termination_is_an_error_on_all(tt_ctx *t)
{
    const mode         m = { .hook = -1 };
    tutti_join_options opts = TUTTI_JOIN_OPTIONS;
    tutti_reducer     *r = make(t, &m);
    tutti_joinable     joinable;
    tutti_join        *join = NULL;
    tutti_status       st = TUTTI_OK;
    int                s;

    opts.throw_on_early_termination = true;
    OK(tutti_reducer_joinable(r, NULL, &joinable));
    OK(tutti_join_begin(&joinable, 1, &opts, &join));
    for (s = 0; s < (t->rank == 0 ? 2 : 5) && st == TUTTI_OK; s++)
        st = step(r, &m, true);
    st = tutti_join_end(join, st);
    assert_int_equal(st, TUTTI_E_STATE);
    if (strstr(tutti_last_error(), t->rank == 0 ? "Rank 0 exhausted all inputs"
                                                : "Detected at least one rank that exhausted inputs") == NULL)
        fail_msg("other words: %s", tutti_last_error());
    tutti_reducer_free(r);
    OK(tutti_barrier(t->group));
}

/* ---- joinables of the program ---- */

typedef struct counter {
    tutti_group *group;
    tutti_join  *join;
    float        total;
    int          shadows, posts, entered;
    bool         was_last;
} counter;

static tutti_status count(counter *c, float ours)
{
    tutti_status st = tutti_join_notify(c->join, c);

    if (st == TUTTI_OK)
        st = tutti_all_reduce(TUTTI_SPAN(&ours, 1), TUTTI_SUM, c->group);
    c->total += ours;
    return st;
}

static tutti_status count_in_place(void *object, int n_active)
{
    counter *c = object;
    float    ours = 0.0f;

    c->shadows++;
    assert_true(n_active > 0);
    if (tutti_all_reduce(TUTTI_SPAN(&ours, 1), TUTTI_SUM, c->group) != TUTTI_OK)
        return TUTTI_E_REMOTE;
    c->total += ours;
    return TUTTI_OK;
}

static tutti_status note_post(void *object, bool is_last_joiner)
{
    counter *c = object;

    c->posts++;
    c->was_last = is_last_joiner;
    return TUTTI_OK;
}

static void note_enter(void *object, tutti_join *join)
{
    counter *c = object;

    c->entered++;
    c->join = join;
}

static void joinables_of_the_program(tt_ctx *t)
{
    counter        counters[2] = { { .group = t->group }, { .group = t->group } };
    tutti_joinable joinables[2];
    tutti_join    *join = NULL;
    int            s, i;

    for (i = 0; i < 2; i++)
        joinables[i] = (tutti_joinable){ .group = t->group, .object = &counters[i], .main_hook = count_in_place,
                                         .post_hook = note_post, .enter = note_enter };
    assert_int_equal(tutti_join_begin(joinables, 0, NULL, &join), TUTTI_E_ARG);
    joinables[1].main_hook = NULL;
    assert_int_equal(tutti_join_begin(joinables, 2, NULL, &join), TUTTI_E_ARG);
    joinables[1].main_hook = count_in_place;
    OK(tutti_join_begin(joinables, 2, NULL, &join));
    for (s = 0; s <= 3 * t->rank; s++)
        for (i = 0; i < 2; i++)
            OK(count(&counters[i], 1.0f));
    OK(tutti_join_end(join, TUTTI_OK));
    for (i = 0; i < 2; i++) {
        /* Every step adds up its active ranks; all see all steps. */
        assert_true(counters[i].total == (float)(t->size + 3 * t->size * (t->size - 1) / 2));
        assert_int_equal(counters[i].shadows, 3 * (t->size - 1 - t->rank));
        assert_int_equal(counters[i].posts, 1);
        assert_int_equal(counters[i].entered, 2);
        assert_null(counters[i].join);
        assert_int_equal(counters[i].was_last, t->rank == t->size - 1);
    }
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(uneven_inputs_in_all_modes, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 120000),
        TT_TEST(uneven_inputs_in_all_modes, .ranks = 4, .transports = "shm", .limit_ms = 120000),
        TT_TEST(uneven_inputs_of_a_static_graph, .ranks = 4, .transports = "shm,tcp"),
        TT_TEST(a_static_graph_begins_without_a_rank, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(a_static_graph_begins_without_a_rank, .ranks = 4, .transports = "shm", .limit_ms = 60000),
        TT_TEST(what_only_a_late_rank_uses_is_refused, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(what_only_a_late_rank_uses_is_refused, .ranks = 4, .transports = "shm"),
        TT_TEST(early_termination_is_an_error_on_all, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(early_termination_is_an_error_on_all, .ranks = 4, .transports = "shm"),
        TT_TEST(joinables_of_the_program, .ranks = 4, .transports = "shm,threads"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
