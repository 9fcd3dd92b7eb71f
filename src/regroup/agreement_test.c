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

enum { N_MAX = 9, QUEUE_MAX = 512, SEEDS = 400, STEP_MS = 20, LIMIT_S = 60 };

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

static void begin_with(world *w, int n, uint64_t seed, const bool *excluded, bool minority, int patience_s)
{
    int r;

    memset(w, 0, sizeof *w);
    w->n = n;
    w->dice = seed * 7919 + 1;
    w->now = TTI_SECOND;
    w->longest_ms = 400;
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

static void step_member(world *w, int r)
{
    member            *m = &w->m[r];
    tti_agreement_task task;

    if (!is_in(m))
        return;
    if (!is_deaf(m))
        tti_agreement_tick(m->a, w->now);
    task = tti_agreement_now(m->a);
    if (task == TTI_AGREE_BUILD) {
        step_build(w, m);
    } else if (task >= TTI_AGREE_DONE) {
        m->builds_until = 0;
        m->finished = true;
        m->done = task == TTI_AGREE_DONE;
        memcpy(m->chosen, tti_agreement_chosen(m->a), sizeof(bool) * (size_t)w->n);
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
    tti_agreement_refused(w.m[1].a, "rank 4 refuses");
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
    tti_agreement_refused(w.m[3].a, "rank 4 refuses");
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
    tti_agreement_refused(d.a, "rank 1 refuses");
    d.awaited = TTI_AGREE_ACCEPT;
    tti_agreement_built(d.a, TUTTI_OK, "");
    assert_int_equal(d.n_sent, 1);
    tti_agreement_refused(d.a, "rank 1 refuses");
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_WAIT);
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_COMMIT, .origin = ballot_of(0, 1), .value = all });
    say(&d, 0, (tti_agree_message){ .type = TTI_AGREE_ALL_KNOW, .origin = ballot_of(0, 1), .value = all });
    assert_int_equal(tti_agreement_now(d.a), TTI_AGREE_DONE);
    assert_int_equal(tti_agreement_failure(d.a, &words), TUTTI_OK);
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
        cmocka_unit_test(a_refusal_ends_it), cmocka_unit_test(a_late_refusal_changes_nothing),
        cmocka_unit_test(a_refusal_that_was_taken_back_changes_nothing),
        cmocka_unit_test(a_list_needs_all_that_it_leaves),
        cmocka_unit_test(a_death_beside_a_list_ends_the_call_of_all),
        cmocka_unit_test(noise_is_ignored),
        cmocka_unit_test(who_was_replaced_proposes_in_vain),
        cmocka_unit_test(what_may_be_decided_is_kept),
        cmocka_unit_test(what_cannot_be_decided_is_not),
        cmocka_unit_test(what_was_torn_down_is_forgotten),
        cmocka_unit_test(a_leader_forgets_what_it_tears_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
