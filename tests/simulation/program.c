/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program.c - a seed's program: steps of all kinds, their results, and the judgement.
 *
 * Goal    safety: whatever happens, a call that returns TUTTI_OK has the right result on this rank, and never is there a mismatch,
 *         for all ranks call the same, but for lists of ranks to exclude where one has another; where nothing happened that may make a call fail, none does.
 *         liveness: every call returns within its time-out and a margin, of virtual time, and the run comes to its end.
 *         The margin is what a store that is slow may be given when time is up, half a second to say what has come, and the same to
 *         say who is missing (store/tcp_pool.c, transport/board.c), and as much for what is told behind that.
 * Method  ranks follow a plan that the seed gives, and come late to some steps. The first error ends a rank's plan, as the group is
 *         finished then. It does not leave at once, so that the others must be told, and do not just see it go. Then those who are
 *         left shrink the world and add up once more: without those on a list, that are lost by then, or, in half of the
 *         seeds, without a list, so that they have to agree who is left; and should that world fail, a second time. Whoever
 *         agreed must have agreed on the same. In some of the seeds with a list one has a rank more on its own: then those go on
 *         whose list leaves nobody with another one, and the others are told so, and do not wait until time is up.
 *         Where nothing but that is of interest they do so at once, in all seeds, and up to three things go wrong meanwhile, at
 *         any moment of it, and for as long as makes others give up, give or take a little: what is held back then comes when it
 *         is the least expected. */
#include "simulation/program.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 5000, MARGIN_MS = 1500, STEPS_MAX = 16, COUNT_MAX = 40000, IN_FLIGHT = 4,
       LATE_MS = 200, STAYS_MS = 2 * TIMEOUT_MS, ROUNDS = 2, SECOND_MS = 8000, CUT_OFF_MS = 30000,
       TURNS_LEAST = 60, TURNS_MORE = 240 /* for each rank: as many as they may take */,
       TROUBLES_MAX = 3, RANK_TURNS = 500, RUN_TURNS = 3000 /* of an agreement, as a rule, and the group that comes out of it */,
       ODD_IN = 8, /* lists, of which one differs */
       PATIENCE_MS = TIMEOUT_MS / 3 /* of those that agree, with one that says nothing */ };

typedef enum step_kind {
    ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BARRIER, SEVERAL, RING, BATCH, SUBGROUP, STEP_KINDS
} step_kind;

static const char *const step_names[STEP_KINDS] = {
    "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier",
    "several all_reduce_async", "send and recv", "batch_isend_irecv", "new_group and all_reduce",
};

typedef struct step {
    step_kind kind;
    int64_t   count; /* elements of one part */
    int       root;
    uint64_t  salt;
    int       late_rank; /* comes late; -1: nobody */
    int       late_ms;
} step;

/* One rank. */
typedef struct part {
    tutti_status made;
    int64_t      made_ns;  /* how long that took */
    int          n_ok;
    int          failed_at; /* step; -1: none */
    tutti_status failure;
    int64_t      longest_ns; /* of all calls */
    int          longest_at;
    bool         shrunk; /* and the sum in the smaller world was right */
    int64_t      shrinking_ns; /* the longest */
    tutti_status shrinking;
    uint64_t     went_on[ROUNDS]; /* with whom, as bits; 0: not */
    uint64_t     listed; /* the ranks that it has excluded by a list; 0: it has not called it */
    bool         returned;
    bool         wrong;
    char         words[600]; /* of what is wrong, or of the first failure */
    char         shrinking_words[600];
} part;

/* What goes wrong once more, when somebody begins to shrink the world. */
typedef struct trouble {
    tutti_fault_kind kind;
    int              target;
    int64_t          in_turns, lasts_ms;
} trouble;

typedef struct plan {
    int      n_ranks, n_steps;
    step     steps[STEPS_MAX];
    part     parts[TT_RANKS_MAX];
    bool     only_agrees; /* there are no steps */
    bool     agrees; /* who is lost; else there is a list */
    int      odd;    /* whose list has one more; -1: nobody's */
    int      victim; /* dies before they do, where that is all; -1: nobody */
    int      n_troubles; /* that are not there yet */
    trouble  troubles[TROUBLES_MAX];
    int64_t  meet_ns[ROUNDS]; /* when those that failed come together; 0: none has */
    uint64_t salt;
    bool     tells;
} plan;

/* ---- numbers ---------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t draw(uint64_t *dice, uint64_t n)
{
    return mix(*dice += UINT64_C(0x9e3779b97f4a7c15)) % n;
}

/* Element i of a rank's input to a step. */
static int64_t input_of(const step *s, int rank, int64_t i)
{
    return (int64_t)(mix(s->salt + (uint64_t)rank * 1000003 + (uint64_t)i) >> 20);
}

static int64_t sum_of(const step *s, int n_ranks, int64_t i)
{
    int64_t sum = 0;
    int     rank;

    for (rank = 0; rank < n_ranks; rank++)
        sum += input_of(s, rank, i);
    return sum;
}

static int64_t draw_count(uint64_t *dice)
{
    switch (draw(dice, 8)) {
    case 0: return 1 + (int64_t)draw(dice, COUNT_MAX);
    case 1:
    case 2: return 1 + (int64_t)draw(dice, 3000);
    default: return 1 + (int64_t)draw(dice, 64);
    }
}

static const tutti_fault_kind kinds_of_trouble[] = { TUTTI_FAULT_KILL, TUTTI_FAULT_KILL, TUTTI_FAULT_STOP, TUTTI_FAULT_STOP,
                                                     TUTTI_FAULT_PART, TUTTI_FAULT_RESET };

/* What, and whom. */
static void draw_trouble(uint64_t *dice, int n_hosts, int n_ranks, trouble *out)
{
    out->kind = kinds_of_trouble[draw(dice, sizeof kinds_of_trouble / sizeof kinds_of_trouble[0])];
    out->target = (int)draw(dice, (uint64_t)(out->kind == TUTTI_FAULT_PART ? n_hosts : n_ranks));
    if (draw(dice, 2) == 0)
        out->target = 0; /* who leads, as a rule */
}

static void draw_second(uint64_t *dice, int n_hosts, int n_ranks, plan *p)
{
    p->n_troubles = draw(dice, 2) == 0;
    draw_trouble(dice, n_hosts, n_ranks, &p->troubles[0]);
    p->troubles[0].in_turns = 1 + (int64_t)draw(dice, draw(dice, 2) == 0 ? 30 : 120);
    p->troubles[0].lasts_ms = (int64_t)draw(dice, SECOND_MS);
}

/* As often of each length in binary digits, up to a little more than most. */
static int64_t draw_any(uint64_t *dice, int64_t most)
{
    uint64_t bits = 0;

    while (INT64_C(1) << bits < most)
        bits++;
    return 1 + (int64_t)draw(dice, UINT64_C(1) << draw(dice, bits + 1));
}

static int64_t draw_turns(uint64_t *dice, int64_t most)
{
    return draw(dice, 3) == 0 ? draw_any(dice, 4 * most) : 1 + (int64_t)draw(dice, (uint64_t)most);
}

static int64_t draw_lasting(uint64_t *dice)
{
    const int64_t about = PATIENCE_MS * (1 + (int64_t)draw(dice, 2));

    switch (draw(dice, 4)) {
    case 0: return draw_any(dice, SECOND_MS);
    case 1: return about + (int64_t)draw(dice, 2 * LATE_MS);
    default: return about - 20 + (int64_t)draw(dice, 60);
    }
}

static void draw_troubles(uint64_t *dice, int n_hosts, plan *p)
{
    int i;

    p->agrees = true;
    p->victim = (int)draw(dice, 2 * (uint64_t)p->n_ranks);
    p->n_troubles = (int)draw(dice, TROUBLES_MAX + 1);
    for (i = 0; i < p->n_troubles; i++) {
        trouble *t = &p->troubles[i];

        draw_trouble(dice, n_hosts, p->n_ranks, t);
        if (draw(dice, 4) == 0) {
            t->kind = TUTTI_FAULT_PART; /* what is held back comes afterwards */
            t->target = draw(dice, 2) == 0 ? 0 : (int)draw(dice, (uint64_t)n_hosts);
        }
        t->in_turns = draw_turns(dice, t->kind == TUTTI_FAULT_PART ? RUN_TURNS : RANK_TURNS);
        t->lasts_ms = draw_lasting(dice);
    }
}

static void make_plan(uint64_t seed, int n_hosts, plan *p)
{
    uint64_t dice = seed * UINT64_C(0x2545f4914f6cdd1d) + 7;
    int      i;

    p->n_steps = 1 + (int)draw(&dice, STEPS_MAX);
    p->salt = draw(&dice, UINT64_MAX);
    p->agrees = draw(&dice, 2) == 0;
    draw_second(&dice, n_hosts, p->n_ranks, p);
    for (i = 0; i < p->n_steps; i++) {
        p->steps[i].kind = (step_kind)draw(&dice, STEP_KINDS);
        p->steps[i].count = draw_count(&dice);
        p->steps[i].root = (int)draw(&dice, (uint64_t)p->n_ranks);
        p->steps[i].salt = mix(seed + (uint64_t)i * 7919);
        p->steps[i].late_rank = (int)draw(&dice, 4 * (uint64_t)p->n_ranks);
        p->steps[i].late_ms = (int)draw(&dice, LATE_MS) >> draw(&dice, 8);
    }
    p->victim = p->odd = -1;
    if (!p->only_agrees && !p->agrees && p->n_ranks > 2 && mix(p->salt + 1) % ODD_IN == 0)
        p->odd = (int)(mix(p->salt + 2) % (uint64_t)p->n_ranks);
    if (!p->only_agrees)
        return;
    p->n_steps = 0;
    draw_troubles(&dice, n_hosts, p);
}

/* ---- what is wrong ------------------------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static void blame(part *mine, const char *fmt, ...)
{
    va_list args;

    if (mine->wrong)
        return;
    mine->wrong = true;
    va_start(args, fmt);
    vsnprintf(mine->words, sizeof mine->words, fmt, args);
    va_end(args);
}

/* got[n] must be what `want` says of element 0 .. n-1. */
static void check(part *mine, const step *s, const char *what, const int64_t *got, int64_t n,
                  int64_t (*want)(const step *s, int of, int64_t i), int of)
{
    int64_t i;

    for (i = 0; i < n; i++)
        if (got[i] != want(s, of, i)) {
            blame(mine, "%s of %" PRId64 " elements said OK, and element %" PRId64 " is %" PRId64 ", not %" PRId64, what,
                  s->count, i, got[i], want(s, of, i));
            return;
        }
}

static void fill(int64_t *out, const step *s, int rank, int64_t n)
{
    int64_t i;

    for (i = 0; i < n; i++)
        out[i] = input_of(s, rank, i);
}

/* ---- steps ---------------------------------------------------------------------------------------------------- */

/* What a step works with: room[2] of n_ranks * COUNT_MAX elements each. */
typedef struct desk {
    plan        *p;
    part        *mine;
    const step  *s;
    const char  *name;
    int          rank, n, at; /* which step */
    int64_t      call_ns;     /* when the call that is under way began */
    tutti_group *group;
    int64_t     *a, *b;
} desk;

/* A call has returned st, and another one begins: each has the time-out for itself. */
static tutti_status call_ends(desk *d, tutti_status st)
{
    const int64_t now_ns = tutti_rehearsed_ns(), took_ns = now_ns - d->call_ns;

    if (took_ns > d->mine->longest_ns) {
        d->mine->longest_ns = took_ns;
        d->mine->longest_at = d->at;
    }
    d->call_ns = now_ns;
    return st;
}

static tutti_status do_all_reduce(desk *d)
{
    tutti_status st;

    fill(d->a, d->s, d->rank, d->s->count);
    st = tutti_all_reduce(TUTTI_SPAN(d->a, d->s->count), TUTTI_SUM, d->group);
    if (st == TUTTI_OK)
        check(d->mine, d->s, d->name, d->a, d->s->count, sum_of, d->n);
    return st;
}

static tutti_status do_broadcast(desk *d)
{
    tutti_status st;

    fill(d->a, d->s, d->rank, d->s->count);
    st = tutti_broadcast(TUTTI_SPAN(d->a, d->s->count), d->s->root, d->group);
    if (st == TUTTI_OK)
        check(d->mine, d->s, d->name, d->a, d->s->count, input_of, d->s->root);
    return st;
}

static tutti_status do_reduce(desk *d)
{
    tutti_status st;

    fill(d->a, d->s, d->rank, d->s->count);
    st = tutti_reduce(TUTTI_SPAN(d->a, d->s->count), d->s->root, TUTTI_SUM, d->group);
    if (st == TUTTI_OK && d->rank == d->s->root)
        check(d->mine, d->s, d->name, d->a, d->s->count, sum_of, d->n);
    return st;
}

static tutti_status do_all_gather(desk *d)
{
    tutti_status st;
    int          r;

    fill(d->a, d->s, d->rank, d->s->count);
    st = tutti_all_gather_into_tensor(TUTTI_SPAN(d->b, d->s->count * d->n), TUTTI_SPAN(d->a, d->s->count), d->group);
    for (r = 0; st == TUTTI_OK && r < d->n; r++)
        check(d->mine, d->s, d->name, d->b + r * d->s->count, d->s->count, input_of, r);
    return st;
}

static tutti_status do_reduce_scatter(desk *d)
{
    const int64_t at = d->rank * d->s->count;
    tutti_status  st;
    int64_t       i;

    fill(d->a, d->s, d->rank, d->s->count * d->n);
    st = tutti_reduce_scatter_tensor(TUTTI_SPAN(d->b, d->s->count), TUTTI_SPAN(d->a, d->s->count * d->n), TUTTI_SUM, d->group);
    for (i = 0; st == TUTTI_OK && i < d->s->count && !d->mine->wrong; i++)
        if (d->b[i] != sum_of(d->s, d->n, at + i))
            blame(d->mine, "%s of %" PRId64 " elements said OK, and element %" PRId64 " is wrong", d->name, d->s->count, i);
    return st;
}

static tutti_status do_all_to_all(desk *d)
{
    tutti_status st;
    int64_t      i;
    int          r;

    fill(d->a, d->s, d->rank, d->s->count * d->n);
    st = tutti_all_to_all_single(TUTTI_SPAN(d->b, d->s->count * d->n), TUTTI_SPAN(d->a, d->s->count * d->n), NULL, NULL, d->group);
    for (r = 0; st == TUTTI_OK && r < d->n; r++)
        for (i = 0; i < d->s->count; i++)
            if (d->b[r * d->s->count + i] != input_of(d->s, r, d->rank * d->s->count + i)) {
                blame(d->mine, "%s of %" PRId64 " elements said OK, and what came from rank %d is wrong at %" PRId64, d->name,
                      d->s->count, r, i);
                return st;
            }
    return st;
}

static tutti_status do_several(desk *d)
{
    tutti_work  *works[IN_FLIGHT] = { NULL };
    const step   s = *d->s;
    step         own = s;
    tutti_status st = TUTTI_OK, one;
    int          i, n;

    own.count = s.count / IN_FLIGHT + 1;
    for (n = 0; n < IN_FLIGHT && st == TUTTI_OK; n++) {
        own.salt = s.salt + (uint64_t)n;
        fill(d->a + n * own.count, &own, d->rank, own.count);
        st = call_ends(d, tutti_all_reduce_async(TUTTI_SPAN(d->a + n * own.count, own.count), TUTTI_SUM, d->group, &works[n]));
    }
    for (i = 0; i < IN_FLIGHT && works[i] != NULL; i++) {
        one = call_ends(d, tutti_work_wait(works[i]));
        own.salt = s.salt + (uint64_t)i;
        if (one == TUTTI_OK)
            check(d->mine, &own, d->name, d->a + i * own.count, own.count, sum_of, d->n);
        else if (st == TUTTI_OK)
            st = one;
        tutti_work_free(works[i]);
    }
    return st;
}

/* To the next one, from the one before. */
static tutti_status do_ring(desk *d)
{
    const int     to = (d->rank + 1) % d->n, from = (d->rank + d->n - 1) % d->n;
    tutti_work   *work = NULL;
    tutti_status  st, sent;
    int           src = -1;

    fill(d->a, d->s, d->rank, d->s->count);
    st = call_ends(d, tutti_isend(TUTTI_SPAN(d->a, d->s->count), to, 3, d->group, &work));
    if (st != TUTTI_OK)
        return st;
    st = call_ends(d, tutti_recv(TUTTI_SPAN(d->b, d->s->count), from, 3, d->group, &src));
    if (st == TUTTI_OK)
        check(d->mine, d->s, d->name, d->b, d->s->count, input_of, from);
    if (st == TUTTI_OK && src != from)
        blame(d->mine, "recv says that rank %d sent, not %d", src, from);
    sent = tutti_work_wait(work);
    tutti_work_free(work);
    return st != TUTTI_OK ? st : sent;
}

static tutti_status do_batch(desk *d)
{
    const int    to = (d->rank + 1) % d->n, from = (d->rank + d->n - 1) % d->n;
    tutti_p2p_op ops[2] = { { .span = TUTTI_SPAN(d->b, d->s->count), .peer = from, .tag = 5 },
                            { .is_send = true, .span = TUTTI_SPAN(d->a, d->s->count), .peer = to, .tag = 5 } };
    tutti_work  *works[2] = { NULL, NULL };
    tutti_status st;

    fill(d->a, d->s, d->rank, d->s->count);
    st = call_ends(d, tutti_batch_isend_irecv(ops, 2, d->group, works));
    if (st == TUTTI_OK)
        st = tutti_wait_all(works, 2, 0);
    if (st == TUTTI_OK)
        check(d->mine, d->s, d->name, d->b, d->s->count, input_of, from);
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
    return st;
}

/* All but the root; the group stays until the world goes. */
static tutti_status do_subgroup(desk *d)
{
    int          ranks[TT_RANKS_MAX], n = 0, r;
    tutti_group *group = NULL;
    tutti_status st;
    int64_t      i, sum;

    for (r = 0; r < d->n; r++)
        if (r != d->s->root || d->n < 3)
            ranks[n++] = r;
    st = call_ends(d, tutti_new_group(ranks, n, NULL, &group));
    if (st != TUTTI_OK || group == TUTTI_NON_MEMBER)
        return st;
    fill(d->a, d->s, d->rank, d->s->count);
    st = tutti_all_reduce(TUTTI_SPAN(d->a, d->s->count), TUTTI_SUM, group);
    for (i = 0; st == TUTTI_OK && i < d->s->count && !d->mine->wrong; i++) {
        for (r = 0, sum = 0; r < n; r++)
            sum += input_of(d->s, ranks[r], i);
        if (d->a[i] != sum)
            blame(d->mine, "%s of %" PRId64 " elements said OK, and element %" PRId64 " is wrong", d->name, d->s->count, i);
    }
    return st;
}

static tutti_status do_barrier(desk *d)
{
    return tutti_barrier(d->group);
}

static tutti_status (*const doers[STEP_KINDS])(desk *d) = {
    do_all_reduce, do_broadcast, do_reduce, do_all_gather, do_reduce_scatter, do_all_to_all, do_barrier, do_several, do_ring,
    do_batch, do_subgroup,
};

/* ---- a rank ------------------------------------------------------------------------------------------------------ */

static void do_steps(desk *d)
{
    part *mine = d->mine;
    int   i;

    for (i = 0; i < d->p->n_steps && mine->failed_at < 0; i++) {
        d->s = &d->p->steps[i];
        d->at = i;
        if (d->s->late_rank == d->rank)
            tutti_rehearsed_sleep(d->s->late_ms);
        d->call_ns = tutti_rehearsed_ns();
        d->name = step_names[d->s->kind];
        mine->failure = call_ends(d, doers[d->s->kind](d));
        if (d->p->tells)
            fprintf(stderr, "rank %d: step %d, %s of %" PRId64 ": %s%s%s\n", d->rank, i, d->name, d->s->count,
                    tutti_status_name(mine->failure), mine->failure != TUTTI_OK ? ": " : "",
                    mine->failure != TUTTI_OK ? tutti_last_error() : "");
        if (mine->failure == TUTTI_OK)
            mine->n_ok++;
        else
            mine->failed_at = i;
        if (mine->failure != TUTTI_OK && !mine->wrong)
            snprintf(mine->words, sizeof mine->words, "%s", tutti_last_error());
    }
}

static uint64_t bit(int rank)
{
    return UINT64_C(1) << rank;
}

/* Add up once more, among those that are left. */
static tutti_status add_up(desk *d, uint64_t left)
{
    static const step s = { .count = 100, .salt = 99 };
    tutti_status      st;
    int64_t           i, sum;
    int               r;

    fill(d->a, &s, d->rank, s.count);
    st = tutti_all_reduce(TUTTI_SPAN(d->a, s.count), TUTTI_SUM, NULL);
    for (i = 0; st == TUTTI_OK && i < s.count && !d->mine->wrong; i++) {
        for (r = 0, sum = 0; r < d->n; r++)
            sum += (left & bit(r)) != 0 ? input_of(&s, r, i) : 0;
        if (d->a[i] != sum)
            blame(d->mine, "all_reduce in the smaller world said OK, and element %" PRId64 " is wrong", i);
    }
    return st;
}

/* The members of a group that came out of one with `before`. */
static uint64_t members_of(const tutti_group *group, uint64_t before)
{
    uint64_t members = 0;
    int      former, r, i;

    for (i = 0; i < tutti_get_world_size(group); i++) {
        former = tutti_get_former_rank(group, i);
        for (r = 0; former >= 0 && r < TT_RANKS_MAX; r++)
            if ((before & bit(r)) != 0 && former-- == 0)
                members |= bit(r);
    }
    return members;
}

/* The next one behind this rank that is left. */
static uint64_t one_more(const desk *d, uint64_t left)
{
    int r = (d->rank + 1) % d->n;

    while (r != d->rank && (left & bit(r)) == 0)
        r = (r + 1) % d->n;
    return r == d->rank ? 0 : bit(r);
}

/* Go on from a world of `before` without those that are lost: with whom. */
static tutti_status shrink(desk *d, uint64_t before, uint64_t lost, uint64_t *left_out)
{
    tutti_group *smaller = NULL;
    int          list[TT_RANKS_MAX], n = 0, r, in_old = 0;
    tutti_status st;

    if (d->rank == d->p->odd)
        lost |= one_more(d, before & ~lost);
    for (r = 0; r < d->n; r++) {
        if ((lost & bit(r)) != 0 && (before & bit(r)) != 0)
            list[n++] = in_old;
        in_old += (before & bit(r)) != 0;
    }
    if (d->p->agrees)
        n = 0;
    else
        d->mine->listed = lost & before;
    st = tutti_shrink_group(n > 0 ? list : NULL, n, NULL, TUTTI_SHRINK_ABORT, NULL, &smaller);
    if (st != TUTTI_OK)
        return st;
    *left_out = members_of(smaller, before);
    if (n > 0 && *left_out != (before & ~lost))
        blame(d->mine, "the smaller world has ranks %#" PRIx64 ", not %#" PRIx64, *left_out, before & ~lost);
    if ((*left_out & bit(d->rank)) == 0)
        blame(d->mine, "the smaller world has ranks %#" PRIx64 ", and not this one", *left_out);
    return TUTTI_OK;
}

static void trouble_once(plan *p)
{
    for (; p->agrees && p->n_troubles > 0; p->n_troubles--) {
        const trouble *t = &p->troubles[p->n_troubles - 1];

        (void)tutti_rehearsed_fault(t->kind, t->target, t->in_turns, t->lasts_ms);
    }
}

/* Whether there is another round. */
static bool go_on_once(desk *d, int round, uint64_t *left)
{
    const uint64_t lost = tutti_rehearsed_lost();
    const int64_t  before_ns = tutti_rehearsed_ns();
    const uint64_t before = *left;
    part          *mine = d->mine;
    bool           again = false;

    if ((lost & bit(d->rank)) != 0 || (before & ~bit(d->rank)) == 0 || (!d->p->agrees && (lost & before) == 0))
        return false;
    mine->shrunk = false;
    trouble_once(d->p);
    mine->shrinking = shrink(d, before, lost, left);
    if (mine->shrinking == TUTTI_OK) {
        mine->went_on[round] = *left;
        mine->shrinking = add_up(d, *left);
        mine->shrunk = mine->shrinking == TUTTI_OK;
        again = !mine->shrunk && d->p->agrees;
    }
    if (tutti_rehearsed_ns() - before_ns > mine->shrinking_ns)
        mine->shrinking_ns = tutti_rehearsed_ns() - before_ns;
    if (d->p->tells)
        fprintf(stderr, "rank %d: a world of %#" PRIx64 ": %s: %s\n", d->rank, *left, tutti_status_name(mine->shrinking),
                mine->shrinking != TUTTI_OK ? tutti_last_error() : "");
    if (mine->shrinking != TUTTI_OK)
        snprintf(mine->shrinking_words, sizeof mine->shrinking_words, "%s", tutti_last_error());
    return again;
}

/* All come at the same time, more or less: who agrees without a list waits for nobody for long. */
static void await_others(desk *d, int round)
{
    int64_t *meet_ns = &d->p->meet_ns[round];

    if (*meet_ns == 0)
        *meet_ns = tutti_rehearsed_ns() + STAYS_MS * INT64_C(1000000);
    tutti_rehearsed_sleep((*meet_ns - tutti_rehearsed_ns()) / 1000000 + (int64_t)(mix(d->p->salt + (uint64_t)d->rank) % LATE_MS));
}

/* After a failure: stay, so that others have to be told, and then go on with those that are left. */
static void go_on(desk *d)
{
    uint64_t left = bit(d->n) - 1;
    int      round;

    for (round = 0; round < ROUNDS; round++) {
        await_others(d, round);
        if (!go_on_once(d, round, &left))
            return;
    }
}

static void program(const tutti_rehearsed *me, void *arg)
{
    plan   *p = arg;
    part   *mine = &p->parts[me->rank];
    desk    d = { .p = p, .mine = mine, .rank = me->rank, .n = me->n_ranks, .group = me->world };
    int64_t bytes = 0;
    int     i;

    mine->made = me->made;
    mine->made_ns = tutti_rehearsed_ns();
    if (me->made != TUTTI_OK)
        snprintf(mine->words, sizeof mine->words, "%s", tutti_last_error());
    if (p->tells)
        fprintf(stderr, "rank %d: world %s%s%s\n", me->rank, tutti_status_name(me->made), me->made != TUTTI_OK ? ": " : "",
                me->made != TUTTI_OK ? tutti_last_error() : "");
    for (i = 0; i < p->n_steps; i++)
        bytes = p->steps[i].count > bytes ? p->steps[i].count : bytes;
    bytes = (bytes + 100) * p->n_ranks * (int64_t)sizeof *d.a;
    d.a = malloc((size_t)bytes);
    d.b = malloc((size_t)bytes);
    if (me->made == TUTTI_OK && d.a != NULL && d.b != NULL)
        do_steps(&d);
    if (me->made == TUTTI_OK && p->victim == me->rank)
        (void)tutti_rehearsed_fault(TUTTI_FAULT_KILL, me->rank, 1, 0);
    if (mine->failed_at >= 0 || (p->only_agrees && me->made == TUTTI_OK))
        go_on(&d);
    free(d.a);
    free(d.b);
    mine->returned = true;
}

/* ---- the judgement ------------------------------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static void judge_wrong(tt_verdict *v, const char *fmt, ...)
{
    va_list args;

    if (v->wrong)
        return;
    v->wrong = true;
    va_start(args, fmt);
    vsnprintf(v->words, sizeof v->words, fmt, args);
    va_end(args);
}

/* Whether calls had to go well: nothing was lost, and whatever held things up was short. */
static bool was_harmless(const tutti_rehearse_report *r)
{
    return r->faults[TUTTI_FAULT_KILL] + r->faults[TUTTI_FAULT_POWER] + r->faults[TUTTI_FAULT_RESET] == 0 &&
           r->faults[TUTTI_FAULT_SLOW] == 0 &&
           r->longest_ms * (r->faults[TUTTI_FAULT_STOP] + r->faults[TUTTI_FAULT_PART]) < TIMEOUT_MS / 3;
}

/* An error that a rank may be told when something went wrong; not one that says that ranks call different things. */
static bool may_be(tutti_status st)
{
    return st == TUTTI_OK || st == TUTTI_E_PEER || st == TUTTI_E_TIMEOUT || st == TUTTI_E_ABORTED || st == TUTTI_E_NETWORK ||
           st == TUTTI_E_STORE || st == TUTTI_E_STATE || st == TUTTI_E_REMOTE /* another one has lost the store */;
}

/* Whether nothing happened to the others but that ranks were killed: that is proved, so nobody has to wait for time to be up. */
static bool was_proved(const tutti_rehearse_report *r)
{
    return r->faults[TUTTI_FAULT_KILL] > 0 &&
           r->faults[TUTTI_FAULT_POWER] + r->faults[TUTTI_FAULT_RESET] + r->faults[TUTTI_FAULT_SLOW] + r->faults[TUTTI_FAULT_STOP] +
                   r->faults[TUTTI_FAULT_PART] + r->faults[TUTTI_FAULT_CLOG] == 0;
}

/* Nothing has happened but that the victim died. */
static bool was_only_the_victim(const plan *p, const tutti_rehearse_report *r)
{
    int i, n = 0;

    for (i = 0; i < TUTTI_FAULT_KINDS; i++)
        n += r->faults[i];
    return n == 0 || (n == 1 && p->victim < p->n_ranks && r->lost == bit(p->victim));
}

/* One was killed, and all that are left met an error by it, or agree in any case: on whom to leave out, unless they are the other half. */
static bool all_came_to_shrink(const plan *p, const tutti_rehearse_report *r)
{
    int rank;

    if (p->only_agrees)
        return was_only_the_victim(p, r) && !(p->n_ranks == 2 && (r->lost & 1) != 0);
    for (rank = 0; rank < p->n_ranks; rank++)
        if ((r->lost >> rank & 1) == 0 && p->parts[rank].failed_at < 0)
            return false;
    return r->faults[TUTTI_FAULT_KILL] == 1 && !(p->agrees && p->n_ranks == 2 && (r->lost & 1) != 0);
}

/* Whether all that rank's list leaves have that list. */
static bool is_of_one_mind(const plan *p, int rank)
{
    const uint64_t listed = p->parts[rank].listed;
    int            r;

    for (r = 0; r < p->n_ranks; r++)
        if ((listed & bit(r)) == 0 && p->parts[r].listed != listed)
            return false;
    return true;
}

/* It was told that lists differ, and they did. */
static bool is_told_of_lists(const plan *p, int rank)
{
    return p->parts[rank].shrinking == TUTTI_E_MISMATCH && p->parts[rank].listed != 0 && !is_of_one_mind(p, rank);
}

static void judge_rank(const plan *p, int rank, tt_verdict *v)
{
    const part   *mine = &p->parts[rank];
    const bool    one_mind = p->only_agrees || p->agrees || is_of_one_mind(p, rank);
    const bool    lost = (v->report.lost >> rank & 1) != 0;
    const char   *step_name = mine->failed_at >= 0 ? step_names[p->steps[mine->failed_at].kind] : "";
    const int64_t held_ms = v->report.longest_ms * (v->report.faults[TUTTI_FAULT_STOP] + v->report.faults[TUTTI_FAULT_PART]);
    const int64_t most_ns = (TIMEOUT_MS + MARGIN_MS + held_ms) * INT64_C(1000000);

    if (mine->wrong)
        judge_wrong(v, "safety: rank %d: %s", rank, mine->words);
    if (!may_be(mine->made))
        judge_wrong(v, "safety: rank %d: making the world came to %s: %s", rank, tutti_status_name(mine->made), mine->words);
    if (!may_be(mine->failure))
        judge_wrong(v, "safety: rank %d: %s came to %s: %s", rank, step_name, tutti_status_name(mine->failure), mine->words);
    if (!may_be(mine->shrinking) && !is_told_of_lists(p, rank))
        judge_wrong(v, "safety: rank %d: shrinking came to %s: %s", rank, tutti_status_name(mine->shrinking),
                    mine->shrinking_words);
    if (v->harmless && mine->made != TUTTI_OK)
        judge_wrong(v, "safety: rank %d: nothing went wrong, but making the world came to %s: %s", rank,
                    tutti_status_name(mine->made), mine->words);
    if (v->harmless && mine->failed_at >= 0)
        judge_wrong(v, "safety: rank %d: nothing went wrong, but step %d, %s, came to %s: %s", rank, mine->failed_at, step_name,
                    tutti_status_name(mine->failure), mine->words);
    if (!lost && was_proved(&v->report) && mine->failed_at >= 0 && mine->failure == TUTTI_E_TIMEOUT)
        judge_wrong(v, "liveness: rank %d: a rank was killed, but step %d, %s, waited until its time was up: %s", rank,
                    mine->failed_at, step_name, mine->words);
    if (!lost && mine->longest_ns > most_ns)
        judge_wrong(v, "liveness: rank %d: step %d, %s, took %" PRId64 " ms with a time-out of %d", rank, mine->longest_at,
                    step_names[p->steps[mine->longest_at].kind], mine->longest_ns / 1000000, TIMEOUT_MS);
    if (!lost && mine->shrinking_ns > 2 * most_ns)
        judge_wrong(v, "liveness: rank %d: going on without the lost took %" PRId64 " ms", rank, mine->shrinking_ns / 1000000);
    if (!lost && (p->only_agrees || was_proved(&v->report)) && all_came_to_shrink(p, &v->report) && one_mind && !mine->shrunk)
        judge_wrong(v, "liveness: rank %d: nothing else went wrong, and those that are left did not go on: %s: %s", rank,
                    tutti_status_name(mine->shrinking), mine->shrinking_words);
    if (!lost && was_proved(&v->report) && all_came_to_shrink(p, &v->report) && !one_mind && (mine->shrunk || mine->shrinking == TUTTI_E_TIMEOUT))
        judge_wrong(v, "safety: rank %d: another list than that of one that it needs, and shrinking came to %s: %s", rank,
                    tutti_status_name(mine->shrinking), mine->shrinking_words);
    if (!lost && !mine->returned)
        judge_wrong(v, "liveness: rank %d did not return", rank);
    v->n_results += mine->n_ok;
    v->n_shrunk += mine->shrunk;
    v->n_errors += mine->failed_at >= 0 || mine->made != TUTTI_OK;
}

/* Whoever went on from one world has gone on with the same ranks: no two smaller worlds came out of it. */
static void judge_worlds(const plan *p, tt_verdict *v)
{
    uint64_t first;
    int      round, rank, who;

    for (round = 0; round < ROUNDS; round++)
        for (first = 0, who = -1, rank = 0; rank < p->n_ranks; rank++) {
            const uint64_t with = p->parts[rank].went_on[round];

            if (with != 0 && first == 0) {
                first = with;
                who = rank;
            } else if (with != 0 && with != first) {
                judge_wrong(v, "safety: rank %d went on with ranks %#" PRIx64 ", and rank %d with %#" PRIx64, who, first, rank,
                            with);
            }
        }
}

void tt_seed_run(uint64_t seed, bool only_agrees, bool tells, tt_verdict *out)
{
    tutti_rehearse_options o = TUTTI_REHEARSE_OPTIONS;
    uint64_t               dice = seed ^ UINT64_C(0x5851f42d4c957f2d);
    plan                  *p = calloc(1, sizeof *p);
    tt_verdict             v = { .wrong = false };
    tutti_status           st;
    int                    rank;

    if (p == NULL)
        abort();
    do {
        o.hosts = 1 + (int)draw(&dice, 4);
        o.ranks_per_host = 1 + (int)draw(&dice, 3);
    } while (o.hosts * o.ranks_per_host < 2 || o.hosts * o.ranks_per_host > TT_RANKS_MAX);
    p->n_ranks = o.hosts * o.ranks_per_host;
    p->tells = tells;
    p->only_agrees = only_agrees;
    o.seed = seed;
    o.faults_max = only_agrees ? -1 : 0;
    o.timeout_ms = TIMEOUT_MS;
    o.turns = (TURNS_LEAST + (int64_t)draw(&dice, TURNS_MORE)) * p->n_ranks;
    o.tells = tells;
    make_plan(seed, o.hosts, p);
    if (p->agrees && draw(&dice, 4) == 0)
        o.lasts_ms = CUT_OFF_MS; /* until after they have agreed, or not */
    for (rank = 0; rank < p->n_ranks; rank++)
        p->parts[rank].failed_at = -1;
    st = tutti_rehearse(program, p, &o, &v.report);
    v.n_ranks = p->n_ranks;
    v.harmless = was_harmless(&v.report);
    for (rank = 0; rank < p->n_ranks; rank++)
        if (p->parts[rank].wrong)
            judge_rank(p, rank, &v);
    if (st != TUTTI_OK)
        judge_wrong(&v, "liveness: %s", tutti_last_error());
    for (rank = 0; st == TUTTI_OK && rank < p->n_ranks; rank++)
        judge_rank(p, rank, &v);
    if (st == TUTTI_OK)
        judge_worlds(p, &v);
    *out = v;
    if (st == TUTTI_OK) /* else there are ranks that still have it */
        free(p);
}
