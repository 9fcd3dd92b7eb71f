/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agreement_test.c
 * Goal    whatever dies, stops or is cut off while members agree, all that go on have the same list, and they go on when
 *         enough of them are left.
 * Method  all members of an agreement in one thread, on a network and a clock made of arrays: streams keep their order,
 *         the dead lose the end of what they had sent, the stopped answer late, sides of a partition hear nothing of each
 *         other. Which event comes next is drawn from a seed, which a failure prints. And one member, to which the others say
 *         what schedules rarely bring about. */
#include "regroup/agreement_core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/port.h"

enum { N_MAX = 9, QUEUE_MAX = 512, SEEDS = 400, STEP_MS = 20, LIMIT_S = 60, LOOK_MS = 240 };

typedef struct letter {
    unsigned char *bytes;
    struct letter *next;
} letter;

typedef struct member {
    tti_agreement *a;
    bool           dead;
    bool           stopped;
    bool           finished;
    bool           done;
    bool           chosen[N_MAX];
    char           place[TTI_AGREE_PLACE_MAX];
    int64_t        builds_until; /* 0: not building */
    bool           watches;      /* while it builds: it led when that began */
    char           builds_at[TTI_AGREE_PLACE_MAX];
    int            side;         /* of a partition */
    int            rank;
    struct world  *w;
} member;

typedef struct world {
    member   m[N_MAX];
    int      n;
    int64_t  now;
    uint64_t dice;
    unsigned places;
    unsigned longest_ms; /* of a build */
    bool     is_patient; /* builds wait for who is stopped */
    bool     silent[N_MAX]; /* as all know that watch */
    bool     has_left[N_MAX]; /* the same: it did not die */
    bool     is_there[N_MAX][N_MAX]; /* a connection from .. to */
    bool     told_gone[N_MAX][N_MAX];
    bool   (*lists)[N_MAX];   /* of each; NULL: all have the same. Then there is a store: */
    int64_t  told_ns[N_MAX];  /* when a member left word there that lists differ; 0: it has not */
    uint64_t told_number[N_MAX]; /* of its call */
    uint64_t met[N_MAX];      /* the highest number of a call that a member has read there */
    letter  *first[N_MAX][N_MAX];
} world;

static unsigned draw(world *w, unsigned below)
{
    w->dice = w->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(w->dice >> 33) % below;
}

static tutti_status open_place(void *ctx, const bool *chosen, char place_out[TTI_AGREE_PLACE_MAX])
{
    member *m = ctx;

    (void)chosen;
    snprintf(place_out, TTI_AGREE_PLACE_MAX, "%u by %d", ++m->w->places, m->rank);
    return TUTTI_OK;
}

static void send_letter(void *ctx, int to, const void *message, size_t bytes)
{
    member  *m = ctx;
    letter **at = &m->w->first[m->rank][to];
    letter  *l = malloc(sizeof *l);

    assert_non_null(l);
    l->bytes = malloc(bytes);
    l->next = NULL;
    memcpy(l->bytes, message, bytes);
    while (*at != NULL)
        at = &(*at)->next;
    *at = l;
}

static bool has_left(void *ctx, int rank)
{
    return ((const member *)ctx)->w->has_left[rank];
}

static void drop_letters(world *w, int from, int to)
{
    letter *l;

    while ((l = w->first[from][to]) != NULL) {
        w->first[from][to] = l->next;
        free(l->bytes);
        free(l);
    }
}

static void begin_time(world *w, int n, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->n = n;
    w->dice = seed * 7919 + 1;
    w->now = TTI_SECOND;
    w->longest_ms = 400;
}

static void begin_with(world *w, int n, uint64_t seed, const bool *excluded, bool minority, int patience_s)
{
    int r;

    begin_time(w, n, seed);
    for (r = 0; r < n; r++) {
        const tti_agreement_config config = { .n = n, .rank = r, .excluded = excluded, .minority = minority, .what = "test",
                                              .now_ns = w->now, .deadline_ns = w->now + LIMIT_S * TTI_SECOND,
                                              .patience_ns = patience_s * TTI_SECOND, .ctx = &w->m[r], .open = open_place,
                                              .send = send_letter, .has_left = has_left };

        w->m[r].w = w;
        w->m[r].rank = r;
        if (excluded != NULL && excluded[r])
            w->m[r].dead = true;
        else
            assert_int_equal(tti_agreement_create(&config, &w->m[r].a), TUTTI_OK);
    }
}

static void begin(world *w, int n, uint64_t seed, const bool *excluded, bool minority)
{
    begin_with(w, n, seed, excluded, minority, 3);
}

/* Each has a list of its own, and its time is up up to later_ms later than that of others. */
static void begin_with_lists(world *w, int n, uint64_t seed, bool lists[][N_MAX], unsigned later_ms)
{
    int r;

    begin_time(w, n, seed);
    w->lists = lists;
    for (r = 0; r < n; r++) {
        const tti_agreement_config config = { .n = n, .rank = r, .excluded = lists[r], .what = "test", .now_ns = w->now,
                                              .deadline_ns = w->now + 3 * TTI_SECOND + draw(w, later_ms + 1) * TTI_MS,
                                              .patience_ns = TTI_SECOND, .ctx = &w->m[r], .open = open_place, .send = send_letter,
                                              .number = 1, .has_left = has_left };

        w->m[r].w = w;
        w->m[r].rank = r;
        assert_int_equal(tti_agreement_create(&config, &w->m[r].a), TUTTI_OK);
    }
}

static void end(world *w)
{
    int i, j;

    for (i = 0; i < w->n; i++) {
        tti_agreement_free(w->m[i].a);
        for (j = 0; j < w->n; j++)
            drop_letters(w, i, j);
    }
}

/* It runs and is inside of the call. */
static bool is_in(const member *m)
{
    return !m->dead && !m->stopped && !m->finished;
}

/* It builds, and has no thread that listens meanwhile. */
static bool is_deaf(const member *m)
{
    return m->builds_until != 0 && !m->watches;
}

static void die(world *w, int r)
{
    int to;

    w->m[r].dead = true;
    for (to = 0; to < w->n; to++) { /* some of what it said last is lost */
        letter **at = &w->first[r][to];

        while (*at != NULL && draw(w, 3) != 0)
            at = &(*at)->next;
        if (*at != NULL) {
            letter *rest = *at;

            *at = NULL;
            while (rest != NULL) {
                letter *next = rest->next;

                free(rest->bytes);
                free(rest);
                rest = next;
            }
        }
    }
}

/* ---- what happens ---- */

static void look_at_connection(world *w, int from, int to)
{
    member *m = &w->m[from], *peer = &w->m[to];

    if (m->side != peer->side || !is_in(m) || is_deaf(m))
        return;
    if (peer->dead || (peer->finished && peer->done)) { /* its door is closed */
        if (!w->told_gone[from][to] && w->first[to][from] == NULL) {
            w->told_gone[from][to] = true;
            drop_letters(w, from, to);
            tti_agreement_gone(m->a, to);
        }
    } else if (peer->finished && w->is_there[from][to]) {
        w->is_there[from][to] = false;
        drop_letters(w, from, to);
        tti_agreement_absent(m->a, to);
    } else if (is_in(peer) && !is_deaf(peer) && !w->is_there[from][to] && tti_agreement_wants(m->a, to)) {
        w->is_there[from][to] = true;
        tti_agreement_present(m->a, to);
    }
}

static void deliver(world *w, int from, int to)
{
    letter *l = w->first[from][to];
    member *m = &w->m[to];

    if (l == NULL || !is_in(m) || is_deaf(m) ||
        w->m[from].side != m->side || (!w->is_there[from][to] && !w->m[from].dead))
        return;
    w->first[from][to] = l->next;
    tti_agreement_heard(m->a, from, l->bytes, tti_agreement_message_bytes(w->n));
    free(l->bytes);
    free(l);
}

/* Whether all chosen are in the same build, or have finished it. */
static bool can_be_built(world *w, const member *m)
{
    const bool *chosen = tti_agreement_chosen(m->a);
    int         r;

    for (r = 0; r < w->n; r++) {
        const member *other = &w->m[r];

        if (chosen[r] && (other->dead || other->stopped || other->side != m->side))
            return false;
    }
    return true;
}

static bool awaits_silent(const world *w, const member *m)
{
    int r;

    for (r = 0; r < w->n; r++)
        if (tti_agreement_chosen(m->a)[r] && w->silent[r])
            return true;
    return false;
}

static bool awaits_stopped(const world *w, const member *m)
{
    int r;

    for (r = 0; r < w->n; r++)
        if (tti_agreement_chosen(m->a)[r] && w->m[r].stopped)
            return true;
    return false;
}

static void step_build(world *w, member *m)
{
    const bool vain = awaits_silent(w, m) || (tti_agreement_leads(m->a) && tti_agreement_in_vain(m->a));
    bool       good;

    if (m->builds_until == 0) {
        m->builds_until = w->now + (int64_t)(1 + draw(w, w->longest_ms)) * TTI_MS;
        m->watches = tti_agreement_leads(m->a);
        memcpy(m->builds_at, tti_agreement_place(m->a), sizeof m->builds_at);
        return;
    }
    assert_string_equal(m->builds_at, tti_agreement_place(m->a)); /* it is read while it builds */
    if (w->is_patient && !vain && awaits_stopped(w, m))
        return;
    if (w->now >= m->builds_until || vain) {
        if (!m->watches)
            tti_agreement_tick(m->a, w->now); /* as survivors.c does */
        good = can_be_built(w, m) && !vain && draw(w, 200) != 0;
        m->builds_until = 0;
        tti_agreement_built(m->a, good ? TUTTI_OK : TUTTI_E_NETWORK, "it broke");
    }
}

/* It leaves: what it had to say where there is no stream yet goes nowhere. */
static void lose_unsent(world *w, int r)
{
    int to;

    for (to = 0; to < w->n; to++)
        if (!w->is_there[r][to])
            drop_letters(w, r, to);
}

/* What those that a member needs have left in the store, as refused.c has it. */
static void look_in_store(world *w, int r)
{
    const char  *words;
    tutti_status st;
    int          i;

    for (i = 0; w->lists != NULL && i < w->n; i++) {
        if (w->lists[r][i] || w->told_ns[i] == 0 || w->now - w->told_ns[i] < LOOK_MS * TTI_MS ||
            (w->told_number[i] != 0 && w->told_number[i] <= w->m[r].a->config.over))
            continue;
        w->met[r] = w->told_number[i] > w->met[r] ? w->told_number[i] : w->met[r];
        st = tti_agreement_failure(w->m[i].a, &words);
        tti_agreement_refused(w->m[r].a, st, tti_agreement_parted(w->m[i].a), words);
    }
}

static void step_member(world *w, int r)
{
    member            *m = &w->m[r];
    tti_agreement_task task;
    const char        *words;

    if (!is_in(m))
        return;
    if (!is_deaf(m))
        tti_agreement_tick(m->a, w->now);
    look_in_store(w, r);
    task = tti_agreement_now(m->a);
    if (task == TTI_AGREE_BUILD) {
        step_build(w, m);
    } else if (task >= TTI_AGREE_DONE) {
        m->builds_until = 0;
        m->finished = true;
        m->done = task == TTI_AGREE_DONE;
        w->told_ns[r] = tti_agreement_failure(m->a, &words) == TUTTI_E_MISMATCH ? w->now : 0;
        w->met[r] = tti_agreement_number(m->a) > w->met[r] ? tti_agreement_number(m->a) : w->met[r];
        w->told_number[r] = w->met[r];
        memcpy(m->chosen, tti_agreement_chosen(m->a), sizeof(bool) * (size_t)w->n);
        lose_unsent(w, r);
    }
}

static void step(world *w)
{
    int i, from, to;

    for (i = 0; i < 3 * w->n * w->n; i++) {
        from = (int)draw(w, (unsigned)w->n);
        to = (int)draw(w, (unsigned)w->n);
        if (from == to)
            continue;
        if (draw(w, 3) == 0)
            look_at_connection(w, from, to);
        else
            deliver(w, from, to);
        if (draw(w, 4) == 0)
            step_member(w, from);
    }
    w->now += STEP_MS * TTI_MS;
}

static bool any_in(const world *w)
{
    int r;

    for (r = 0; r < w->n; r++)
        if (is_in(&w->m[r]))
            return true;
    return false;
}

static void run(world *w)
{
    const int64_t limit = w->now + (LIMIT_S + 5) * TTI_SECOND;

    while (any_in(w) && w->now < limit)
        step(w);
    assert_false(any_in(w));
}

/* How many went on; all with one list, which they are in. */
static int check_one_list(const world *w)
{
    const bool *list = NULL;
    int         r, n = 0;

    for (r = 0; r < w->n; r++) {
        const member *m = &w->m[r];

        if (!m->finished || !m->done)
            continue;
        n++;
        assert_true(m->chosen[r]);
        if (list == NULL)
            list = m->chosen;
        assert_memory_equal(list, m->chosen, sizeof(bool) * (size_t)w->n);
    }
    return n;
}

/* ---- tests ---- */

static void the_living_go_on(void **state)
{
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= SEEDS; seed++) {
        const int n = 2 + (int)(seed % (N_MAX - 1));
        world     w;
        int       r, n_dead = 0;

        begin(&w, n, seed, NULL, false);
        for (r = 0; r < n; r++)
            if (2 * (n_dead + 1) < n && draw(&w, 3) == 0) {
                die(&w, r);
                n_dead++;
            }
        run(&w);
        if (check_one_list(&w) != n - n_dead)
            fail_msg("seed %llu: %d of %d went on", (unsigned long long)seed, check_one_list(&w), n - n_dead);
        end(&w);
    }
}

static bool any_lives_on(const world *w, bool done)
{
    int r;

    for (r = 0; r < w->n; r++)
        if (!w->m[r].dead && w->m[r].done == done)
            return true;
    return false;
}

/* Fewer than half die, each at any time: also a leader between two words of what is decided. Then all that live go on, or,
 * where builds have failed too often, none. */
static void deaths_leave_nobody_behind(void **state)
{
    uint64_t seed, failed = 0;

    (void)state;
    for (seed = 1; seed <= 5 * SEEDS; seed++) {
        const int n = 3 + (int)(seed % (N_MAX - 2));
        world     w;
        int       i, n_dead = 0;

        begin(&w, n, seed, NULL, false);
        w.longest_ms = 40;
        for (i = 0; any_in(&w) && i < 1000; i++) {
            const int r = (int)draw(&w, seed % 2 == 0 ? (unsigned)n : 2);

            step(&w);
            if (2 * (n_dead + 1) < n && draw(&w, 4) == 0 && !w.m[r].dead) {
                die(&w, r);
                n_dead++;
            }
        }
        run(&w);
        check_one_list(&w);
        if (any_lives_on(&w, true) && any_lives_on(&w, false))
            fail_msg("seed %llu: some of %d went on, and others that live did not", (unsigned long long)seed, n);
        failed += any_lives_on(&w, false);
        end(&w);
    }
    assert_true(failed < SEEDS / 20);
}

/* Nobody waits to see whether the others know: they say so. */
static void all_leave_when_all_know(void **state)
{
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= 20; seed++) {
        world   w;
        int64_t began;

        begin(&w, 5, seed, NULL, false);
        w.longest_ms = 40;
        began = w.now;
        run(&w);
        if (check_one_list(&w) != 5 || w.now - began > TTI_SECOND)
            fail_msg("seed %llu: %d of 5 went on after %lld ms", (unsigned long long)seed, check_one_list(&w),
                     (long long)((w.now - began) / TTI_MS));
        end(&w);
    }
}

/* One is stopped when it has voted, and cannot say that it knows: the leader waits for it. The others wait for the leader, and
 * do not all begin to tell each other. */
static void only_the_leader_tells(void **state)
{
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= 40; seed++) {
        const int n = 5 + (int)(seed % 3);
        world     w;
        int       r;

        begin(&w, n, seed, NULL, false);
        w.longest_ms = 40;
        while (w.m[n - 1].a->built == 0)
            step(&w);
        w.m[n - 1].stopped = true;
        run(&w);
        assert_int_equal(check_one_list(&w), n - 1);
        for (r = 0; r < n; r++)
            if (w.m[r].a->spreads)
                fail_msg("seed %llu: rank %d of %d told the others", (unsigned long long)seed, r, n);
        end(&w);
    }
}

/* One stands still for longer than anybody may be silent, but its process is seen to run. */
static void who_is_slow_is_not_left_out(void **state)
{
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= SEEDS / 4; seed++) {
        const int n = 4 + (int)(seed % 3);
        world     w;
        int       i, slow, steps;

        begin_with(&w, n, seed, NULL, false, 20);
        w.is_patient = true;
        die(&w, n - 1);
        slow = (int)draw(&w, (unsigned)n - 1);
        for (i = (int)draw(&w, 8); i > 0; i--)
            step(&w);
        w.m[slow].stopped = true;
        for (steps = 0; steps < 8000 / STEP_MS; steps++) {
            for (i = 0; i < n; i++)
                if (is_in(&w.m[i]))
                    tti_agreement_alive(w.m[i].a, slow);
            step(&w);
        }
        w.m[slow].stopped = false;
        run(&w);
        if (check_one_list(&w) != n - 1)
            fail_msg("seed %llu: %d of %d went on, rank %d was slow", (unsigned long long)seed, check_one_list(&w), n - 1,
                     slow);
        end(&w);
    }
}

/* Who watches tells all that listen. */
static void tell_how_all_are(world *w)
{
    int r, of;

    for (r = 0; r < w->n; r++)
        for (of = 0; of < w->n; of++) {
            if (!is_in(&w->m[r]) || is_deaf(&w->m[r]) || r == of || w->m[of].dead)
                continue;
            if (w->silent[of])
                tti_agreement_silent(w->m[r].a, of);
            else if (!w->m[of].stopped)
                tti_agreement_alive(w->m[r].a, of);
        }
}

enum { WATCHED_MS = 4000, ROUND_MS = 1000 };

/* One falls silent some steps after the beginning, while builds wait for it: how long the last of the others is in the call
 * from then on. */
static int64_t run_with_a_silent_one(world *w, int silent, int after)
{
    int64_t since;

    w->is_patient = true;
    w->longest_ms = 40;
    for (; after > 0; after--)
        step(w);
    w->m[silent].stopped = true;
    since = w->now;
    while (any_in(w) && w->now - since < LIMIT_S * TTI_SECOND) {
        w->silent[silent] = w->now - since >= WATCHED_MS * TTI_MS;
        tell_how_all_are(w);
        step(w);
    }
    assert_false(any_in(w));
    return (w->now - since) / TTI_MS;
}

/* Also where it leads, and also in a build, which listens to nobody: its silence is known from elsewhere, and the others need
 * no more than a round beyond that. */
static void a_silent_one_is_left_behind_as_soon_as_that_is_known(void **state)
{
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= SEEDS; seed++) {
        const int n = 4 + (int)(seed % 4);
        world     w;
        int64_t   ms;
        int       silent;

        begin_with(&w, n, seed, NULL, false, 20);
        silent = seed % 2 == 0 ? 0 : (int)draw(&w, (unsigned)n);
        ms = run_with_a_silent_one(&w, silent, (int)draw(&w, 12));
        if (check_one_list(&w) < n - 1 || ms > WATCHED_MS + ROUND_MS)
            fail_msg("seed %llu: %d of %d went on without rank %d, which fell silent, after %lld ms", (unsigned long long)seed,
                     check_one_list(&w), n, silent, (long long)ms);
        end(&w);
    }
}

/* With a list nobody can go on without it: that is told to all as soon as it is known, or all have what was decided. */
static void a_silent_one_beside_a_list_ends_the_call_soon(void **state)
{
    const bool excluded[5] = { false, false, false, true, false };
    uint64_t   seed;

    (void)state;
    for (seed = 1; seed <= SEEDS; seed++) {
        world   w;
        int64_t ms;
        int     silent, n_done;

        begin_with(&w, 5, seed, excluded, false, 20);
        silent = seed % 2 == 0 ? 0 : 4;
        ms = run_with_a_silent_one(&w, silent, (int)draw(&w, 12));
        n_done = check_one_list(&w);
        if ((n_done != 0 && n_done < 3) || ms > WATCHED_MS + ROUND_MS)
            fail_msg("seed %llu: %d of 4 went on after rank %d fell silent, after %lld ms", (unsigned long long)seed, n_done,
                     silent, (long long)ms);
        end(&w);
    }
}

/* Building takes longer than anybody may be silent: who listens to nobody accuses nobody. */
static void a_long_build_is_no_silence(void **state)
{
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= SEEDS / 4; seed++) {
        const int n = 3 + (int)(seed % 3);
        world     w;

        begin(&w, n, seed, NULL, false);
        w.longest_ms = 4500;
        die(&w, n - 1);
        run(&w);
        if (check_one_list(&w) != n - 1)
            fail_msg("seed %llu: %d of %d went on", (unsigned long long)seed, check_one_list(&w), n - 1);
        end(&w);
    }
}

/* Who should lead comes back while another leads and builds: what is being built stays what it is. */
static void a_leader_that_comes_back_waits_for_the_build(void **state)
{
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= SEEDS / 8; seed++) {
        const int n = 3 + (int)(seed % 3);
        world     w;
        int       i, r;

        begin(&w, n, seed, NULL, false);
        w.m[0].stopped = true;
        w.longest_ms = 60000;
        while (!w.m[1].watches)
            step(&w);
        w.m[0].stopped = false;
        w.longest_ms = 400;
        for (r = 2; r < n; r++)
            if (w.m[r].builds_until != 0)
                w.m[r].builds_until = w.now;
        for (i = 0; i < 60; i++)
            step(&w);
        w.m[1].builds_until = w.m[1].builds_until != 0 ? w.now : 0;
        run(&w);
        if (check_one_list(&w) < n - 1) /* it may be too late for it */
            fail_msg("seed %llu: %d of %d went on", (unsigned long long)seed, check_one_list(&w), n);
        end(&w);
    }
}

/* Deaths, stops and returns at any time. */
static void one_list_whatever_happens(void **state)
{
    uint64_t seed, went_on = 0;

    (void)state;
    for (seed = 1; seed <= SEEDS; seed++) {
        const int n = 3 + (int)(seed % (N_MAX - 2));
        world     w;
        int       i, r, n_hit = 0;

        begin(&w, n, seed, NULL, false);
        w.longest_ms = seed % 4 == 0 ? 8000 : 400; /* also beyond anybody's patience */
        for (i = 0; i < 400 && any_in(&w); i++) {
            step(&w);
            if (draw(&w, 12) != 0)
                continue;
            r = (int)draw(&w, (unsigned)n);
            if (w.m[r].stopped)
                w.m[r].stopped = false;
            else if (!w.m[r].dead && draw(&w, 2) == 0 && n_hit < n / 2) {
                die(&w, r);
                n_hit++;
            } else if (!w.m[r].dead)
                w.m[r].stopped = true;
        }
        for (r = 0; r < n; r++)
            w.m[r].stopped = false; /* zombies wake up */
        run(&w);
        went_on += check_one_list(&w) > 0;
        end(&w);
    }
    assert_true(went_on > SEEDS / 2);
}

/* At most one side; the side that has enough does. */
static void a_partition_lets_one_side_go_on(void **state)
{
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= SEEDS; seed++) {
        const int n = 2 + (int)(seed % (N_MAX - 1));
        world     w;
        int       r, n_there = 0;
        bool      here;

        begin(&w, n, seed, NULL, false);
        for (r = 0; r < n; r++)
            n_there += w.m[r].side = (int)draw(&w, 2);
        here = 2 * (n - n_there) > n || (2 * n_there == n && w.m[0].side == 0);
        run(&w);
        assert_true(check_one_list(&w) > 0);
        for (r = 0; r < n; r++)
            assert_int_equal(w.m[r].done, (w.m[r].side == 0) == here);
        end(&w);
    }
}

/* It breaks while they agree, and heals or not. */
static void a_partition_at_any_time(void **state)
{
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= SEEDS; seed++) {
        const int n = 2 + (int)(seed % (N_MAX - 1));
        world     w;
        int       i, r;

        begin(&w, n, seed, NULL, false);
        for (i = (int)draw(&w, 40); i > 0; i--)
            step(&w);
        for (r = 0; r < n; r++)
            w.m[r].side = (int)draw(&w, 2);
        for (i = (int)draw(&w, 400); i > 0 && any_in(&w); i--)
            step(&w);
        for (r = 0; r < n && seed % 2 == 0; r++)
            w.m[r].side = 0;
        run(&w);
        check_one_list(&w);
        end(&w);
    }
}

static void a_minority_may_if_it_is_told(void **state)
{
    world w;
    int   r;

    (void)state;
    begin(&w, 5, 1, NULL, true);
    for (r = 0; r < 3; r++)
        die(&w, r);
    run(&w);
    assert_int_equal(check_one_list(&w), 2);
    end(&w);
    begin(&w, 5, 1, NULL, false);
    for (r = 0; r < 3; r++)
        die(&w, r);
    run(&w);
    assert_int_equal(check_one_list(&w), 0);
    end(&w);
}

/* What helps where too few are here: to go on as a minority only where none of the others is known to live. */
static void a_minority_is_advised_of_the_dead_only(void **state)
{
    const char *words;
    world       w;
    int         r, has_left;

    (void)state;
    for (has_left = 0; has_left < 2; has_left++) {
        begin(&w, 5, 1, NULL, false);
        for (r = 0; r < 3; r++) {
            die(&w, r);
            w.has_left[r] = has_left != 0 && r < 2;
        }
        run(&w);
        assert_int_equal(tti_agreement_failure(w.m[3].a, &words), TUTTI_E_PEER);
        assert_non_null(strstr(words, "only 2 of the last 5 members are here, fewer than half: "));
        assert_int_equal(strstr(words, "TUTTI_SHRINK_MINORITY") == NULL, has_left);
        assert_int_equal(strstr(words, "ranks 0, 1 left the group before this call") != NULL, has_left);
        assert_int_equal(strstr(words, "tutti_join_group()") != NULL, has_left);
        end(&w);
    }
}

/* Who has left may have gone on: with a list it is no advice to exclude it as well. It counts more than one that has died beside. */
static void who_has_left_is_not_to_be_excluded(void **state)
{
    const bool  excluded[5] = { false, false, true, false, false };
    const char *words;
    world       w;
    int         r, has_left;

    (void)state;
    for (has_left = 0; has_left < 2; has_left++) {
        begin(&w, 5, 1, excluded, false);
        for (r = 0; r < 2; r++)
            die(&w, r);
        w.has_left[1] = has_left != 0;
        run(&w);
        for (r = 3; r < 5; r++) {
            assert_int_equal(tti_agreement_failure(w.m[r].a, &words), has_left != 0 ? TUTTI_E_STATE : TUTTI_E_PEER);
            assert_int_equal(strstr(words, "exclude it as well, on all that go on") == NULL, has_left);
            assert_int_equal(strstr(words, "test: rank 1 left the group before this call: it has gone on without") != NULL, has_left);
            assert_int_equal(strstr(words, "tutti_join_group()") != NULL, has_left);
        }
        end(&w);
    }
}

/* One that the list leaves has refused: whoever hears of it fails with its reason, and tells the others if it leads. */
static void a_refusal_ends_it(void **state)
{
    const bool  excluded[5] = { true, false, true, false, false };
    const char *words;
    world       w;
    int         r;

    (void)state;
    begin(&w, 5, 1, excluded, false);
    w.m[4].stopped = true; /* it is not in the call */
    for (r = 0; r < 50; r++)
        step(&w);
    assert_int_equal(tti_agreement_now(w.m[1].a), TTI_AGREE_WAIT);
    tti_agreement_refused(w.m[1].a, TUTTI_E_REMOTE, false, "rank 4 refuses");
    assert_int_equal(tti_agreement_failure(w.m[1].a, &words), TUTTI_E_REMOTE);
    assert_string_equal(words, "rank 4 refuses");
    for (r = 0; r < 50; r++)
        step(&w);
    assert_int_equal(tti_agreement_now(w.m[3].a), TTI_AGREE_FAILED);
    assert_int_equal(tti_agreement_failure(w.m[3].a, &words), TUTTI_E_REMOTE);
    assert_string_equal(words, "rank 4 refuses");
    end(&w);
}

/* What is decided is not undone by one that was read too late. */
static void a_late_refusal_changes_nothing(void **state)
{
    const bool excluded[5] = { true, false, true, false, false };
    world      w;

    (void)state;
    begin(&w, 5, 1, excluded, false);
    run(&w);
    tti_agreement_refused(w.m[3].a, TUTTI_E_REMOTE, false, "rank 4 refuses");
    assert_int_equal(tti_agreement_now(w.m[3].a), TTI_AGREE_DONE);
    assert_int_equal(check_one_list(&w), 3);
    end(&w);
}

static void a_list_needs_all_that_it_leaves(void **state)
{
    const bool  excluded[5] = { true, false, true, true, false };
    const char *words;
    world       w;

    (void)state;
    begin(&w, 5, 1, excluded, false);
    run(&w);
    assert_int_equal(check_one_list(&w), 2);
    end(&w);
    begin(&w, 5, 1, excluded, false);
    die(&w, 4);
    run(&w);
    assert_int_equal(check_one_list(&w), 0);
    assert_int_equal(tti_agreement_failure(w.m[1].a, &words), TUTTI_E_PEER);
    assert_non_null(strstr(words, "rank 4 is gone"));
    end(&w);
}

/* Whether all that r's list leaves have that list. */
static bool is_of_one_mind(int n, bool lists[][N_MAX], int r)
{
    int i;

    for (i = 0; i < n; i++)
        if (!lists[r][i] && memcmp(lists[i], lists[r], (size_t)n * sizeof(bool)) != 0)
            return false;
    return true;
}

static bool needs_one_that_went_on(const world *w, bool lists[][N_MAX], int r)
{
    int i;

    for (i = 0; i < w->n; i++)
        if (i != r && !lists[r][i] && w->m[i].done)
            return true;
    return false;
}

/* Of two or three lists each has one that it is not on. */
static void draw_lists(world *w, int n, bool lists[][N_MAX])
{
    bool kinds[3][N_MAX] = { { false } };
    int  i, r;

    for (i = 0; i < 3; i++)
        kinds[i][draw(w, (unsigned)n)] = kinds[i][draw(w, (unsigned)n)] = true;
    for (r = 0; r < n; r++) {
        i = (int)draw(w, 3);
        memcpy(lists[r], kinds[i], sizeof kinds[i]);
        lists[r][r] = false;
    }
}

/* Whatever the lists: who has one with all that it leaves goes on, all others are told within a second that lists differ, and nobody
 * that came is accused. Who is needed and went on without this one may be found gone. */
static void lists_that_differ_are_told_to_all(void **state)
{
    uint64_t seed, n_told = 0, n_went = 0, n_told_late = 0;

    (void)state;
    for (seed = 1; seed <= 3 * SEEDS; seed++) {
        const int   n = 3 + (int)(seed % (N_MAX - 2));
        bool        lists[N_MAX][N_MAX];
        const char *words;
        world       w;
        int         r, told = 0, went = 0;

        begin_time(&w, n, seed);
        draw_lists(&w, n, lists);
        begin_with_lists(&w, n, seed, lists, 0);
        run(&w);
        for (r = 0; r < n; r++) {
            const tutti_status st = tti_agreement_failure(w.m[r].a, &words);
            const bool         one_mind = is_of_one_mind(n, lists, r);

            if (one_mind != w.m[r].done ||
                (!one_mind && st != TUTTI_E_MISMATCH && !(st == TUTTI_E_PEER && needs_one_that_went_on(&w, lists, r))) ||
                (st == TUTTI_E_MISMATCH && strstr(words, "the members passed different ranks to exclude: rank ") == NULL))
                fail_msg("seed %llu: rank %d of %d came to %d: %s", (unsigned long long)seed, r, n, (int)st, words);
            told += st == TUTTI_E_MISMATCH;
            went += w.m[r].done;
        }
        if (told > 0 && went == 0 && w.now > 2 * TTI_SECOND)
            fail_msg("seed %llu: it took %lld ms", (unsigned long long)seed, (long long)((w.now - TTI_SECOND) / TTI_MS));
        n_told += (uint64_t)told;
        n_went += (uint64_t)went;
        n_told_late += told > 0 && went == 0;
        end(&w);
    }
    assert_true(n_told > SEEDS && n_went > 0 && n_told_late > SEEDS);
}

/* A member that was told calls it again, as shrink.c does; nothing that it said before is on its way any more. */
static void call_again(world *w, int r, uint64_t *number, const bool *list)
{
    member                    *m = &w->m[r];
    const uint64_t             over = w->met[r];
    const tti_agreement_config config = { .n = w->n, .rank = r, .excluded = list, .what = "test", .now_ns = w->now,
                                          .deadline_ns = w->now + 5 * TTI_SECOND, .patience_ns = TTI_SECOND, .ctx = m,
                                          .number = over + 1, .over = over, .open = open_place, .send = send_letter,
                                          .has_left = has_left };
    int                        i;

    *number = over + 1;
    for (i = 0; i < w->n; i++) {
        look_at_connection(w, i, r);
        w->is_there[r][i] = false;
        drop_letters(w, r, i);
        drop_letters(w, i, r);
    }
    tti_agreement_free(m->a);
    m->finished = false;
    w->told_ns[r] = 0;
    assert_int_equal(tti_agreement_create(&config, &m->a), TUTTI_OK);
}

/* Lists differ, and who is told calls again at some time, with the list that is right: all that it leaves go on, before anybody's time
 * is up, however often somebody is told of the call before. */
static void who_is_told_calls_again(void **state)
{
    uint64_t seed, n_again = 0, n_most = 0;

    (void)state;
    for (seed = 1; seed <= SEEDS; seed++) {
        const int n = 4 + (int)(seed % (N_MAX - 3));
        bool      lists[N_MAX][N_MAX] = { { false } }, right[N_MAX] = { false };
        uint64_t  number[N_MAX] = { 0 }, most = 0;
        int64_t   again_ns[N_MAX] = { 0 };
        world     w;
        int       r, i, n_on = 0;

        right[n - 1] = true;
        for (r = 0; r < n; r++)
            lists[r][r % 2 == 0 || r == n - 1 ? n - 1 : n - 2] = true;
        lists[n - 2][n - 2] = lists[n - 1][n - 1] = false;
        begin_with_lists(&w, n, seed, lists, 0);
        w.m[n - 1].stopped = true; /* it does not call, and is not to stay */
        for (i = 0; i < 1000 && n_on < n - 1; i++) {
            step(&w);
            for (r = n_on = 0; r < n - 1; r++) {
                const char *words;

                n_on += w.m[r].done;
                if (!w.m[r].finished || w.m[r].done)
                    continue;
                if (tti_agreement_failure(w.m[r].a, &words) != TUTTI_E_MISMATCH)
                    fail_msg("seed %llu: rank %d of %d: %s", (unsigned long long)seed, r, n, words);
                if (again_ns[r] == 0)
                    again_ns[r] = w.now + draw(&w, seed % 2 == 0 ? 20 : 700) * TTI_MS;
                if (w.now < again_ns[r])
                    continue;
                again_ns[r] = 0;
                memcpy(lists[r], right, sizeof right);
                call_again(&w, r, &number[r], lists[r]);
                n_again++;
                most = number[r] > most ? number[r] : most;
            }
        }
        if (n_on < n - 1 || check_one_list(&w) != n - 1)
            fail_msg("seed %llu: %d of %d went on", (unsigned long long)seed, n_on, n - 1);
        n_most = most > n_most ? most : n_most;
        end(&w);
    }
    assert_true(n_again > 2 * SEEDS && n_most < 6);
}

/* With a list one never comes: it is what all that wait name, and nothing else, whose time is up first and whoever leads. */
static void only_who_does_not_come_is_named(void **state)
{
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= SEEDS; seed++) {
        const int   n = 4 + (int)(seed % (N_MAX - 3)), late = (int)(seed / 8 % (unsigned)(n - 1));
        bool        lists[N_MAX][N_MAX] = { { false } };
        char        named[32];
        const char *words;
        world       w;
        int         r;

        for (r = 0; r < n; r++)
            lists[r][n - 1] = true;
        begin_with_lists(&w, n, seed, lists, seed % 2 == 0 ? 0 : 800);
        die(&w, n - 1);
        w.m[late].stopped = true;
        run(&w);
        snprintf(named, sizeof named, "test: rank %d", late);
        for (r = 0; r < n - 1; r++)
            if (r != late && (tti_agreement_failure(w.m[r].a, &words) != TUTTI_E_TIMEOUT || strncmp(words, named, strlen(named)) != 0 ||
                              strstr(words, "come") == NULL))
                fail_msg("seed %llu: rank %d of %d, without %d: %s", (unsigned long long)seed, r, n, late, words);
        end(&w);
    }
}

/* Who leads then cannot go on, and says so also to those that have promised the vote to the dead one. */
static void a_death_beside_a_list_ends_the_call_of_all(void **state)
{
    const bool excluded[4] = { false, false, true, false };
    uint64_t   seed;

    (void)state;
    for (seed = 1; seed <= SEEDS; seed++) {
        world   w;
        int64_t died;
        int     i;

        begin(&w, 4, seed, excluded, false);
        for (i = (int)draw(&w, 60); i > 0; i--)
            step(&w);
        die(&w, 0);
        died = w.now;
        run(&w);
        check_one_list(&w);
        if (w.now - died > 10 * TTI_SECOND)
            fail_msg("seed %llu: %lld ms after the death somebody still waited", (unsigned long long)seed,
                     (long long)((w.now - died) / TTI_MS));
        end(&w);
    }
}

static void noise_is_ignored(void **state)
{
    unsigned char noise[2048];
    world         w;
    size_t        i;

    (void)state;
    begin(&w, 3, 1, NULL, false);
    for (i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)(i * 37);
    tti_agreement_heard(w.m[0].a, 1, noise, tti_agreement_message_bytes(3));
    tti_agreement_heard(w.m[0].a, 1, noise, 3);
    tti_agreement_heard(w.m[0].a, 7, noise, tti_agreement_message_bytes(3));
    run(&w);
    assert_int_equal(check_one_list(&w), 3);
    end(&w);
}

/* ---- one member, and what the others say ---- */

/* What came out of it last, of the kind that is awaited. */
typedef struct desk {
    tti_agreement    *a;
    int               n;
    tti_agree_type    awaited;
    int               n_sent;
    tti_agree_message sent;
    bool              value[N_MAX];
    bool              list[N_MAX];
} desk;

static void note_letter(void *ctx, int to, const void *message, size_t bytes)
{
    desk             *d = ctx;
    bool              list[N_MAX], value[N_MAX];
    tti_agree_message m = { .value = value, .list = list };

    (void)to;
    assert_true(tti_agree_decode(d->a, message, bytes, &m));
    if (m.type != d->awaited)
        return;
    d->n_sent++;
    d->sent = m;
    memcpy(d->value, value, sizeof value);
    memcpy(d->list, list, sizeof list);
}

static tutti_status open_nowhere(void *ctx, const bool *chosen, char place_out[TTI_AGREE_PLACE_MAX])
{
    (void)ctx;
    (void)chosen;
    snprintf(place_out, TTI_AGREE_PLACE_MAX, "nowhere");
    return TUTTI_OK;
}

static void sit_down(desk *d, int rank, int n)
{
    const tti_agreement_config config = { .n = n, .rank = rank, .what = "test", .now_ns = TTI_SECOND,
                                          .deadline_ns = LIMIT_S * TTI_SECOND, .patience_ns = 3 * TTI_SECOND, .ctx = d,
                                          .open = open_nowhere, .send = note_letter };

    memset(d, 0, sizeof *d);
    d->n = n;
    assert_int_equal(tti_agreement_create(&config, &d->a), TUTTI_OK);
}

static void say(desk *d, int from, tti_agree_message m)
{
    uint8_t bytes[2048];

    assert_true(tti_agreement_message_bytes(d->n) <= sizeof bytes);
    tti_agree_encode(d->a, &m, bytes);
    tti_agreement_heard(d->a, from, bytes, tti_agreement_message_bytes(d->n));
}

/* The k-th ballot of a leader. */
static uint64_t ballot_of(int leader, uint64_t k)
{
    return k * TTI_AGREE_RANKS_MAX + (uint64_t)leader;
}

static void who_was_replaced_proposes_in_vain(void **state)
{
    bool all[] = { true, true, true };
    desk d;

    (void)state;
    sit_down(&d, 2, 3);
    tti_agreement_present(d.a, 0);
    tti_agreement_present(d.a, 1);
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_PREPARE, .ballot = ballot_of(0, 1) });
    say(&d, 1, (tti_agree_message){ .type = TTI_AGREE_PREPARE, .ballot = ballot_of(1, 1) });
    d.awaited = TTI_AGREE_BUSY;
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_PROPOSE, .ballot = ballot_of(0, 1), .origin = ballot_of(0, 1), .value = all });
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_WAIT);
    assert_int_equal(d.n_sent, 1);
    assert_true(d.sent.accepted == ballot_of(1, 1));
    say(&d, 1, (tti_agree_message){ .type = TTI_AGREE_PROPOSE, .ballot = ballot_of(1, 1), .origin = ballot_of(1, 1), .value = all });
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_BUILD);
    tti_agreement_free(d.a);
}

/* Who builds, or has built and voted, goes on: what is proposed needs a promise of each that the list leaves, so who refused has come
 * since. */
static void a_refusal_that_was_taken_back_changes_nothing(void **state)
{
    bool        all[] = { true, true, true };
    const char *words;
    desk        d;

    (void)state;
    sit_down(&d, 2, 3);
    tti_agreement_present(d.a, 0);
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_PREPARE, .ballot = ballot_of(0, 1) });
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_PROPOSE, .ballot = ballot_of(0, 1), .origin = ballot_of(0, 1), .value = all });
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_BUILD);
    tti_agreement_refused(d.a, TUTTI_E_REMOTE, false, "rank 1 refuses");
    d.awaited = TTI_AGREE_ACCEPT;
    tti_agreement_built(d.a, TUTTI_OK, "");
    assert_int_equal(d.n_sent, 1);
    tti_agreement_refused(d.a, TUTTI_E_REMOTE, false, "rank 1 refuses");
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_WAIT);
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_COMMIT, .origin = ballot_of(0, 1), .value = all });
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_ALL_KNOW, .origin = ballot_of(0, 1), .value = all });
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_DONE);
    assert_int_equal(tti_agreement_failure(d.a, &words), TUTTI_OK);
    tti_agreement_free(d.a);
}

/* Without a list: whoever leads may be about to propose, and who failed alone would be gone on without. Before its promise it fails. */
static void a_word_behind_a_promise_changes_nothing(void **state)
{
    const char *words;
    desk        d;

    (void)state;
    sit_down(&d, 2, 3);
    tti_agreement_present(d.a, 0);
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_PREPARE, .ballot = ballot_of(0, 1) });
    tti_agreement_refused(d.a, TUTTI_E_MISMATCH, true, "lists differ");
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_WAIT);
    tti_agreement_free(d.a);
    sit_down(&d, 2, 3);
    tti_agreement_refused(d.a, TUTTI_E_MISMATCH, true, "lists differ");
    assert_int_equal(tti_agreement_failure(d.a, &words), TUTTI_E_MISMATCH);
    assert_true(tti_agreement_parted(d.a));
    tti_agreement_free(d.a);
}

/* Who follows has no connection to most of the others: who leads tells it who is gone, and a later one that knows less takes nothing
 * back. */
static void who_leads_says_who_is_gone(void **state)
{
    bool without[] = { true, true, false, true }, lost[] = { false, false, true, false }, none[] = { false, false, false, false };
    desk d;

    (void)state;
    sit_down(&d, 3, 4);
    tti_agreement_present(d.a, 0);
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_PREPARE, .ballot = ballot_of(0, 1), .list = lost });
    assert_false(tti_agreement_is_gone(d.a, 2));
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_PROPOSE, .ballot = ballot_of(0, 1), .origin = ballot_of(0, 1), .value = without,
                                    .list = lost });
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_BUILD);
    assert_true(tti_agreement_is_gone(d.a, 2) && !tti_agreement_is_gone(d.a, 1));
    tti_agreement_built(d.a, TUTTI_E_NETWORK, "it broke");
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_PREPARE, .ballot = ballot_of(0, 2) });
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_PROPOSE, .ballot = ballot_of(0, 2), .origin = ballot_of(0, 2), .value = without,
                                    .list = none });
    assert_true(tti_agreement_is_gone(d.a, 2));
    tti_agreement_free(d.a);
    sit_down(&d, 0, 4); /* and who leads says it */
    tti_agreement_present(d.a, 1);
    tti_agreement_present(d.a, 3);
    d.awaited = TTI_AGREE_PREPARE;
    tti_agreement_gone(d.a, 2);
    assert_int_equal(d.n_sent, 2);
    d.awaited = TTI_AGREE_PROPOSE;
    say(&d, 1, (tti_agree_message){ .type = TTI_AGREE_PROMISE, .ballot = d.sent.ballot });
    say(&d, 3, (tti_agree_message){ .type = TTI_AGREE_PROMISE, .ballot = d.sent.ballot });
    assert_int_equal(d.n_sent, 4);
    assert_memory_equal(d.list, lost, sizeof lost);
    assert_memory_equal(d.value, without, sizeof without);
    tti_agreement_free(d.a);
}

/* Rank 1 of 5 has voted for what rank 0 proposed, and leads when that one has died. */
static void lead_after_a_vote(desk *d, bool *all)
{
    int r;

    sit_down(d, 1, 5);
    tti_agreement_present(d->a, 0);
    say(d, 0, (tti_agree_message){ .type = TTI_AGREE_PREPARE, .ballot = ballot_of(0, 1) });
    say(d, 0, (tti_agree_message){ .type = TTI_AGREE_PROPOSE, .ballot = ballot_of(0, 1), .origin = ballot_of(0, 1), .value = all });
    assert_int_equal(tti_agreement_now(d->a), TTI_AGREE_BUILD);
    tti_agreement_built(d->a, TUTTI_OK, "");
    for (r = 2; r < 5; r++)
        tti_agreement_present(d->a, r);
    d->awaited = TTI_AGREE_PREPARE;
    tti_agreement_gone(d->a, 0);
    tti_agreement_tick(d->a, TTI_SECOND + TTI_MS);
    assert_int_equal(d->n_sent, 3);
    d->awaited = TTI_AGREE_PROPOSE;
    d->n_sent = 0;
}

/* Another one may have been told that it is decided, and be out of reach: what all have voted for stays as it is. */
static void what_may_be_decided_is_kept(void **state)
{
    bool all[] = { true, true, true, true, true };
    desk d;
    int  r;

    (void)state;
    lead_after_a_vote(&d, all);
    for (r = 2; r < 5; r++)
        say(&d, r, (tti_agree_message){ .type = TTI_AGREE_PROMISE, .ballot = d.sent.ballot, .accepted = ballot_of(0, 1),
                                        .origin = ballot_of(0, 1), .value = all });
    assert_int_equal(d.n_sent, 3);
    assert_true(d.sent.origin == ballot_of(0, 1));
    assert_memory_equal(d.value, all, sizeof all);
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_WAIT); /* it was built */
    tti_agreement_free(d.a);
}

/* Promises of ranks 2 to 4, of which the last had not voted. */
static void all_but_one_had_voted(desk *d, bool *all)
{
    int r;

    for (r = 2; r < 5; r++)
        say(d, r, (tti_agree_message){ .type = TTI_AGREE_PROMISE, .ballot = d->sent.ballot,
                                       .accepted = r < 4 ? ballot_of(0, 1) : 0, .origin = r < 4 ? ballot_of(0, 1) : 0,
                                       .value = all });
}

/* One of them had not voted: it was not decided, and those that are left make a new one. */
static void what_cannot_be_decided_is_not(void **state)
{
    bool all[] = { true, true, true, true, true };
    desk d;

    (void)state;
    lead_after_a_vote(&d, all);
    all_but_one_had_voted(&d, all);
    assert_int_equal(d.n_sent, 3);
    assert_true(d.sent.origin == d.sent.ballot && d.sent.ballot > ballot_of(0, 1));
    assert_false(d.value[0]);
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_BUILD);
    tti_agreement_free(d.a);
}

/* Whoever builds again has torn down what it had built before: that is not taken up again, whatever others have of it. */
static void what_was_torn_down_is_forgotten(void **state)
{
    bool all[] = { true, true, true, true, true }, most[] = { true, true, true, true, false };
    desk d;
    int  r;

    (void)state;
    sit_down(&d, 1, 5);
    tti_agreement_present(d.a, 0);
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_PROPOSE, .ballot = ballot_of(0, 1), .origin = ballot_of(0, 1), .value = all });
    tti_agreement_built(d.a, TUTTI_OK, "");
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_PROPOSE, .ballot = ballot_of(0, 2), .origin = ballot_of(0, 2), .value = most });
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_BUILD);
    tti_agreement_built(d.a, TUTTI_E_PEER, "rank 0 has died");
    for (r = 2; r < 4; r++)
        tti_agreement_present(d.a, r);
    tti_agreement_gone(d.a, 4);
    d.awaited = TTI_AGREE_PREPARE;
    tti_agreement_gone(d.a, 0);
    assert_int_equal(d.n_sent, 2);
    d.awaited = TTI_AGREE_PROPOSE;
    for (r = 2; r < 4; r++)
        say(&d, r, (tti_agree_message){ .type = TTI_AGREE_PROMISE, .ballot = d.sent.ballot, .accepted = ballot_of(0, 1),
                                        .origin = ballot_of(0, 1), .value = all });
    assert_true(d.sent.origin == d.sent.ballot && d.sent.ballot > ballot_of(0, 2));
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_BUILD);
    tti_agreement_free(d.a);
}

/* The same of one that leads, also if somebody says that it is decided, as where minorities may go on. */
static void a_leader_forgets_what_it_tears_down(void **state)
{
    bool all[] = { true, true, true, true, true };
    desk d;
    int  r;

    (void)state;
    lead_after_a_vote(&d, all);
    all_but_one_had_voted(&d, all);
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_BUILD);
    d.awaited = TTI_AGREE_PREPARE;
    tti_agreement_gone(d.a, 4);
    tti_agreement_built(d.a, TUTTI_E_PEER, "rank 4 has died");
    tti_agreement_tick(d.a, TTI_SECOND + 2 * TTI_MS);
    d.awaited = TTI_AGREE_PROPOSE;
    for (r = 2; r < 4; r++)
        say(&d, r, (tti_agree_message){ .type = TTI_AGREE_PROMISE, .ballot = d.sent.ballot, .accepted = ballot_of(0, 1),
                                        .origin = ballot_of(0, 1), .value = all });
    assert_true(d.sent.origin == d.sent.ballot);
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_BUILD);
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_COMMIT, .origin = ballot_of(0, 1), .value = all });
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_FAILED);
    tti_agreement_free(d.a);
}

/* Rank 1 of 3 in its call of that number, where those up to over have failed of lists; without rank 2. */
static void sit_down_with_a_list(desk *d, const bool *excluded, uint64_t number, uint64_t over)
{
    const tti_agreement_config config = { .n = 3, .rank = 1, .excluded = excluded, .what = "test", .now_ns = TTI_SECOND,
                                          .number = number, .over = over, .deadline_ns = LIMIT_S * TTI_SECOND,
                                          .patience_ns = 3 * TTI_SECOND, .ctx = d, .open = open_nowhere, .send = note_letter };

    memset(d, 0, sizeof *d);
    d->n = 3;
    assert_int_equal(tti_agreement_create(&config, &d->a), TUTTI_OK);
}

/* As one that has that list. */
static void say_with(desk *d, int from, const bool *list, tti_agree_message m)
{
    const bool *own = d->a->config.excluded;
    uint8_t     bytes[2048];

    d->a->config.excluded = list;
    tti_agree_encode(d->a, &m, bytes);
    d->a->config.excluded = own;
    tti_agreement_heard(d->a, from, bytes, tti_agreement_message_bytes(d->n));
}

/* Who was told, and calls it once more at once, meets one that is in the call before still, with its list of then: that one is told, in
 * the number of that call, and what it says counts for nothing until it has called again. */
static void who_is_in_the_call_before_is_told_alone(void **state)
{
    const bool   mine[] = { false, false, true }, other[] = { false, false, false };
    const char  *words;
    desk         d;

    (void)state;
    sit_down_with_a_list(&d, mine, 2, 1);
    d.awaited = TTI_AGREE_REFUSE;
    tti_agreement_present(d.a, 0);
    say_with(&d, 0, other, (tti_agree_message){ .type = TTI_AGREE_JOIN, .accepted = 1 });
    assert_int_equal(d.n_sent, 1);
    assert_int_equal(d.sent.status, TUTTI_E_MISMATCH);
    assert_true(d.sent.accepted == 1);
    say_with(&d, 0, other, (tti_agree_message){ .type = TTI_AGREE_PREPARE, .ballot = ballot_of(0, 1) });
    say_with(&d, 0, other, (tti_agree_message){ .type = TTI_AGREE_REFUSE, .ballot = TTI_AGREE_NO_BALLOT, .status = TUTTI_E_MISMATCH,
                                                .accepted = 1 });
    tti_agreement_tick(d.a, TTI_SECOND + 900 * TTI_MS);
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_WAIT);
    tti_agreement_absent(d.a, 0);
    d.awaited = TTI_AGREE_PROMISE;
    d.n_sent = 0;
    tti_agreement_present(d.a, 0);
    say_with(&d, 0, mine, (tti_agree_message){ .type = TTI_AGREE_JOIN, .accepted = 2, .origin = 1 });
    say_with(&d, 0, mine, (tti_agree_message){ .type = TTI_AGREE_PREPARE, .ballot = ballot_of(0, 1) });
    assert_int_equal(d.n_sent, 1);
    tti_agreement_free(d.a);
    sit_down_with_a_list(&d, mine, 2, 0); /* it has failed of something else: nobody was told of lists */
    tti_agreement_present(d.a, 0);
    say_with(&d, 0, other, (tti_agree_message){ .type = TTI_AGREE_JOIN, .accepted = 1 });
    assert_int_equal(tti_agreement_failure(d.a, &words), TUTTI_E_MISMATCH);
    tti_agreement_free(d.a);
}

/* The number of the call that is over comes with a refusal, and of one that goes on with its JOIN. */
static void numbers_are_met(void **state)
{
    const bool mine[] = { false, false, true }, other[] = { false, false, false };
    desk       d;

    (void)state;
    sit_down_with_a_list(&d, mine, 1, 0);
    say_with(&d, 0, mine, (tti_agree_message){ .type = TTI_AGREE_REFUSE, .ballot = TTI_AGREE_NO_BALLOT, .status = TUTTI_E_MISMATCH,
                                               .accepted = 4 });
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_FAILED);
    assert_true(tti_agreement_number(d.a) == 4);
    tti_agreement_free(d.a);
    sit_down_with_a_list(&d, mine, 1, 0);
    tti_agreement_present(d.a, 0);
    say_with(&d, 0, other, (tti_agree_message){ .type = TTI_AGREE_JOIN, .accepted = 4, .origin = 3 });
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_FAILED);
    assert_true(tti_agreement_number(d.a) == 3); /* the other one stays in its own, which this one's next is */
    tti_agreement_free(d.a);
    sit_down_with_a_list(&d, mine, 1, 0);
    say_with(&d, 0, mine, (tti_agree_message){ .type = TTI_AGREE_JOIN, .accepted = 4, .origin = 3 });
    assert_true(tti_agreement_number(d.a) == 4);
    tti_agreement_free(d.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_living_go_on),
        cmocka_unit_test(deaths_leave_nobody_behind),
        cmocka_unit_test(all_leave_when_all_know),
        cmocka_unit_test(only_the_leader_tells),
        cmocka_unit_test(who_is_slow_is_not_left_out),
        cmocka_unit_test(a_silent_one_is_left_behind_as_soon_as_that_is_known),
        cmocka_unit_test(a_silent_one_beside_a_list_ends_the_call_soon),
        cmocka_unit_test(a_long_build_is_no_silence),
        cmocka_unit_test(a_leader_that_comes_back_waits_for_the_build),
        cmocka_unit_test(one_list_whatever_happens),
        cmocka_unit_test(a_partition_lets_one_side_go_on),
        cmocka_unit_test(a_partition_at_any_time),
        cmocka_unit_test(a_minority_may_if_it_is_told), cmocka_unit_test(a_minority_is_advised_of_the_dead_only),
        cmocka_unit_test(who_has_left_is_not_to_be_excluded),
        cmocka_unit_test(a_refusal_ends_it), cmocka_unit_test(a_late_refusal_changes_nothing),
        cmocka_unit_test(a_refusal_that_was_taken_back_changes_nothing),
        cmocka_unit_test(a_word_behind_a_promise_changes_nothing),
        cmocka_unit_test(a_list_needs_all_that_it_leaves), cmocka_unit_test(lists_that_differ_are_told_to_all),
        cmocka_unit_test(only_who_does_not_come_is_named), cmocka_unit_test(who_is_told_calls_again),
        cmocka_unit_test(a_death_beside_a_list_ends_the_call_of_all),
        cmocka_unit_test(noise_is_ignored),
        cmocka_unit_test(who_was_replaced_proposes_in_vain),
        cmocka_unit_test(who_leads_says_who_is_gone),
        cmocka_unit_test(what_may_be_decided_is_kept),
        cmocka_unit_test(what_cannot_be_decided_is_not),
        cmocka_unit_test(what_was_torn_down_is_forgotten),
        cmocka_unit_test(a_leader_forgets_what_it_tears_down),
        cmocka_unit_test(who_is_in_the_call_before_is_told_alone), cmocka_unit_test(numbers_are_met),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
