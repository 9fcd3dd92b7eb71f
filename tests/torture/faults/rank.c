/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rank.c - one rank's way through the rounds of a job.
 *
 * A round: all make the call once while the victim counts its points; all make it again while the victim is armed;
 * whoever has come out of it with TUTTI_OK goes on with other calls, until there is an error. Then the survivors leave
 * the others behind and check a sum. A victim that lives goes the same way as far as the error, then it leaves.
 *
 * Ranks that are cut off with a victim's host are gone like the victim. */
#include "faults.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <tutti/private.h>

enum { VAIN_MAX = 5, CHECKS = 3, POINTS_GUESSED = 300, BATCH = 2 /* of the messages in calls.c */ };

typedef struct me {
    const tt_job   *job;
    int          slot;
    tutti_group *world; /* NULL: there is none */
    int          rank, size;
    int          slots[RANKS_MAX]; /* of the world's ranks */
    int          attempt;          /* worlds joined */
    int          salt;
    int          meeting;
    int64_t      shrink_points; /* that the last shrinking took; 0: there was none */
    /* the round */
    round_page *page;
    bool        gone[RANKS_MAX];   /* by rank */
    bool        guilty[RANKS_MAX]; /* the same, as the world that fails numbers them */
    int         n_gone;
    bool        cut;  /* tt_is_cut() of the round, as it was drawn */
    bool        kept; /* and the victim goes on with the others */
} me;

/* ---- beside the library ---- */

static void at(const me *m, const char *what)
{
    snprintf(m->job->board->where[m->slot], WORDS_MAX, "round %d, rank %d of %d: %s",
             atomic_load(&m->job->board->round), m->rank, m->size, what);
}

static void post(_Atomic uint32_t *mark)
{
    atomic_fetch_add(mark, 1);
    syscall(SYS_futex, mark, 1 /* FUTEX_WAKE */, INT32_MAX, NULL, NULL, 0);
}

static void await(_Atomic uint32_t *mark, uint32_t at_least)
{
    uint32_t now;

    while ((now = atomic_load(mark)) < at_least)
        syscall(SYS_futex, mark, 0 /* FUTEX_WAIT */, now, NULL, NULL, 0);
}

/* Until n ranks are here; all that meet have met as often. */
static void meet(me *m, int n)
{
    _Atomic uint32_t *mark = &m->job->board->met[m->meeting++ % MEETINGS];

    at(m, "meets the others, on the board");
    post(mark);
    await(mark, (uint32_t)n);
}

static _Noreturn void leave(me *m, int code)
{
    if (m->world != NULL) {
        at(m, "destroys its world");
        tutti_destroy_process_group(m->world);
    }
    fflush(NULL);
    syscall(SYS_exit_group, code);
    abort();
}

/* Something that must go well has not. */
static _Noreturn void broken(me *m, const char *what)
{
    snprintf(m->job->board->where[m->slot], WORDS_MAX, "rank %d of %d: %.80s: %.400s", m->rank, m->size, what,
             tutti_last_error());
    fprintf(stderr, "%s\n", m->job->board->where[m->slot]);
    fflush(NULL);
    syscall(SYS_exit_group, 1);
    abort();
}

/* ---- worlds ---- */

/* The store's part for the worlds of an attempt. */
static tutti_status open_part(me *m, int attempt, int64_t timeout_ms, tutti_store **part_out)
{
    tutti_tcp_store_options to = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;
    char                    name[64];
    tutti_status            st;

    snprintf(name, sizeof name, "attempt-%d", attempt);
    to.host = m->job->store_host;
    to.port = m->job->store_port;
    to.timeout_ms = timeout_ms;
    st = tutti_tcp_store_open(&to, &store);
    if (st == TUTTI_OK)
        st = tutti_prefix_store_open(name, store, part_out);
    tutti_store_close(store);
    return st;
}

static tutti_status join(me *m, int64_t timeout_ms)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_store       *part = NULL;
    tutti_status       st;

    at(m, "joins");
    tt_wish_algorithms(tt_dice(m->job->seed, 50 + (uint64_t)m->attempt), m->job->every);
    st = open_part(m, m->attempt++, timeout_ms, &part);
    if (st != TUTTI_OK)
        return st;
    opts.store = part;
    opts.rank = m->rank;
    opts.world_size = m->size;
    opts.timeout_ms = timeout_ms;
    st = tutti_create_process_group(&opts, &m->world);
    tutti_store_close(part);
    if (st != TUTTI_OK)
        m->world = NULL;
    else
        st = tutti_set_timeout(m->world, timeout_ms);
    return st;
}

static tutti_status call_once(me *m, tt_phase when, int call, int64_t count, bool *wrong_out)
{
    const call_args args = { m->world, tutti_get_rank(m->world), tutti_get_world_size(m->world), count, m->salt };

    return tt_call(when, call, &args, wrong_out);
}

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* As a program does that a launcher has started, which tells who has ended before it came. */
static tutti_status join_launched(me *m, int64_t timeout_ms)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_status       st;

    at(m, "joins as it was launched");
    tt_wish_algorithms(tt_dice(m->job->seed, 50 + (uint64_t)m->attempt), m->job->every);
    set_number("RANK", m->rank);
    set_number("WORLD_SIZE", m->size);
    set_number("MASTER_PORT", m->job->store_port);
    set_number("TORCHELASTIC_RESTART_COUNT", m->attempt++);
    if (!m->job->no_launcher)
        set_number("TUTTI_LAUNCHER_FD", m->job->bulletin_fd);
    set_number("TUTTI_AGENT_STORE", 1);
    setenv("MASTER_ADDR", m->job->store_host, 1);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    opts.timeout_ms = timeout_ms;
    st = tutti_create_process_group(&opts, &m->world);
    if (st != TUTTI_OK)
        m->world = NULL;
    else
        st = tutti_set_timeout(m->world, timeout_ms);
    return st;
}

/* Joining, and the first time that each rank talks to its neighbours. */
static tutti_status join_and_talk(me *m, int64_t timeout_ms)
{
    bool         wrong = false;
    tutti_status st = join_launched(m, timeout_ms);

    if (st == TUTTI_OK)
        st = tutti_barrier(m->world);
    if (st == TUTTI_OK)
        st = call_once(m, P_P2P, 0, 10, &wrong);
    return st;
}

static void end_world(me *m)
{
    at(m, "destroys its world");
    if (m->world != NULL && tutti_destroy_process_group(m->world) != TUTTI_OK)
        broken(m, "destroy");
    m->world = NULL;
}

/* Whether the survivors find out by themselves who is gone; those that are silent are named by a list. */
static bool agrees(const me *m)
{
    const tt_draw *plan = &m->page->plan;

    return (m->cut || !tt_fault_leaves_alive(plan->what)) && plan->dice / 7 % 2 == 0;
}

/* Number those that are not in gone anew. */
static void count_off(me *m)
{
    int n = 0, r, mine = -1;

    for (r = 0; r < m->size; r++) {
        if (m->gone[r])
            continue;
        if (r == m->rank)
            mine = n;
        m->slots[n++] = m->slots[r];
    }
    m->size = n;
    m->rank = mine;
}

/* Leave out whoever is dead, by agreement of those that are left. */
static tutti_status shrink_together(me *m, int64_t timeout_ms)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    const bool          few = !m->cut && 2 * (m->size - m->n_gone) <= m->size; /* all that are cut off live: two worlds could */
    tutti_group        *left = NULL;
    tutti_status        st;

    opts.timeout_ms = timeout_ms;
    st = tutti_shrink_group(NULL, 0, m->world, TUTTI_SHRINK_ABORT | (few ? TUTTI_SHRINK_MINORITY : 0u), &opts, &left);
    if (st != TUTTI_OK)
        return st;
    m->world = left;
    return tutti_set_timeout(left, timeout_ms);
}

static tutti_status shrink_without(me *m, const bool *out, int64_t timeout_ms)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *left = NULL;
    int                 ranks[RANKS_MAX], n = 0, r;
    tutti_status        st;

    for (r = 0; r < m->size; r++)
        if (out[r])
            ranks[n++] = r;
    opts.timeout_ms = timeout_ms;
    st = tutti_shrink_group(ranks, n, m->world, TUTTI_SHRINK_ABORT, &opts, &left);
    if (st != TUTTI_OK)
        return st;
    m->world = left;
    return tutti_set_timeout(left, timeout_ms);
}

/* ---- a round ---- */

static void page_fill(me *m, int round)
{
    const tt_draw plan = tt_draw_round(m->job, round, m->size, m->slots);

    m->page = &m->job->board->rounds[round];
    if (m->rank == 0) {
        m->page->plan = plan;
        m->page->size = m->size;
        memcpy(m->page->slots, m->slots, sizeof m->slots);
        snprintf(m->page->call, sizeof m->page->call, "%s", tt_call_name(plan.when, plan.call));
    }
    meet(m, m->size);
}

static void find_gone(me *m)
{
    const tt_draw *plan = &m->page->plan;
    int         r;

    m->n_gone = 0;
    m->cut = tt_is_cut(m->page);
    m->kept = false;
    for (r = 0; r < m->size; r++) {
        m->gone[r] = r == plan->victim || r == plan->leaves ||
                     (plan->what == F_HOLE && tt_host_of_slot(m->job, m->slots[r]) ==
                                                  tt_host_of_slot(m->job, m->slots[plan->victim]));
        m->n_gone += m->gone[r];
    }
    memcpy(m->guilty, m->gone, sizeof m->gone);
}

static bool is_victim(const me *m)
{
    return m->rank == m->page->plan.victim;
}

/* With --every the n-th is the board's, until a call has been through all of them. */
static int64_t choose_nth(me *m, int64_t points)
{
    tt_board *b = m->job->board;
    int64_t n;

    if (points < 1)
        points = 1;
    if (!m->job->every)
        return 1 + (int64_t)(m->page->plan.dice % (uint64_t)points);
    n = atomic_fetch_add(&b->next[1], 1) + 1;
    if (n >= points) {
        atomic_store(&b->next[1], 0);
        atomic_store(&b->next[0], (atomic_load(&b->next[0]) + 1) % tt_n_calls(P_ALGORITHM));
    }
    return n <= points ? n : points;
}

static void arm(me *m, int64_t points)
{
    const int64_t nth = choose_nth(m, points);

    atomic_store(&m->page->points, points);
    atomic_store(&m->page->nth, nth);
    tt_arm(m->job, m->page, m->slot, nth);
}

/* The call has ended without its n-th point. */
static void act_late(me *m)
{
    if (is_victim(m))
        tt_act_now();
}

static void note(me *m, tutti_status st, int64_t begun_ns)
{
    seen *s = &m->page->by[m->rank];

    s->begun_ns = begun_ns;
    s->ended_ns = tti_now_ns();
    s->status = st;
    snprintf(s->words, sizeof s->words, "%s", st == TUTTI_OK ? "" : tutti_last_error());
    s->verdict = st == TUTTI_OK ? TT_ACCUSES_RIGHT : tt_words_judge(s->words, m->guilty, m->size, tt_fault_cuts(m->page->plan.what));
    s->said = st == TUTTI_OK || m->page->plan.when == P_CONNECT || m->page->plan.when == P_HANDSHAKE ||
              m->page->plan.when == P_SHRINK || tt_words_tell_silence(s->words); /* of a world that is not made yet nobody knows */
}

static void note_wrong(me *m, bool wrong)
{
    if (wrong)
        m->page->by[m->rank].wrong = true;
}

/* Go on with barriers, and with messages between all pairs, until one fails: a connection that nothing uses may be lost
 * without anybody's notice. If only such ones were, the victim dies after all. */
static void until_it_fails(me *m, tutti_status st, int64_t begun_ns)
{
    bool wrong = false;
    int  vain = 0;

    act_late(m);
    if (m->world != NULL && tt_fault_is_silent(m->page->plan.what))
        tutti_set_timeout(m->world, TIMEOUT_MS);
    while (st == TUTTI_OK && m->world != NULL && tutti_get_world_size(m->world) > m->size - m->n_gone) {
        at(m, "waits in a barrier that is to fail");
        if (is_victim(m) && vain++ == VAIN_MAX && tt_fault_leaves_alive(m->page->plan.what))
            tt_act_instead();
        st = tutti_barrier(m->world);
        if (st == TUTTI_OK)
            st = call_once(m, P_P2P, BATCH, 1, &wrong);
    }
    note_wrong(m, wrong);
    note(m, st, begun_ns);
    tt_counted();
}

/* Those that are gone have nothing more to do here. */
static void leave_if_gone(me *m)
{
    if (!m->gone[m->rank])
        return;
    leave(m, 0);
}

static void do_call(me *m)
{
    const tt_draw *plan = &m->page->plan;
    int64_t     points = 0, begun;
    bool        wrong = false;

    at(m, "makes the call that goes well");
    if (is_victim(m))
        tt_count(plan->points);
    if (call_once(m, plan->when, plan->call, plan->count, &wrong) != TUTTI_OK || wrong)
        broken(m, wrong ? "wrong values though nobody has failed" : "an error though nobody has failed");
    if (is_victim(m))
        points = tt_counted();
    meet(m, m->size);
    if (is_victim(m))
        arm(m, points);
    if (tt_fault_is_silent(plan->what))
        tutti_set_timeout(m->world, TIMEOUT_MS);
    at(m, m->page->call);
    begun = tti_now_ns();
    m->salt++;
    until_it_fails(m, call_once(m, plan->when, plan->call, plan->count, &wrong), begun);
    note_wrong(m, wrong);
}

static void do_join(me *m)
{
    const tt_draw *plan = &m->page->plan;
    int64_t     points = 0, begun;

    if (is_victim(m))
        tt_count(plan->points);
    if (join_and_talk(m, CALM_MS) != TUTTI_OK)
        broken(m, "join");
    if (is_victim(m))
        points = tt_counted();
    meet(m, m->size);
    end_world(m);
    meet(m, m->size);
    if (is_victim(m))
        arm(m, points);
    begun = tti_now_ns();
    at(m, "joins, and somebody fails");
    until_it_fails(m, join_and_talk(m, JOIN_FAULT_MS), begun);
}

/* Shrinking has gone well: who is guilty has another number now, or is no member. */
static void renumber_guilty(me *m)
{
    bool before[RANKS_MAX];
    int  r;

    memcpy(before, m->guilty, sizeof before);
    memset(m->guilty, 0, sizeof m->guilty);
    for (r = 0; r < tutti_get_world_size(m->world); r++)
        m->guilty[r] = before[tutti_get_former_rank(m->world, r)];
}

static tutti_status shrink_while_one_fails(me *m)
{
    const tt_draw *plan = &m->page->plan;
    bool           out[RANKS_MAX] = { false };
    tutti_status   st;

    meet(m, m->size);
    if (m->rank == plan->leaves)
        kill(getpid(), SIGKILL);
    out[plan->leaves] = true;
    if (is_victim(m))
        arm(m, m->shrink_points > 0 ? m->shrink_points : POINTS_GUESSED);
    at(m, "shrinks, and somebody fails");
    st = agrees(m) ? shrink_together(m, JOIN_FAULT_MS) : shrink_without(m, out, JOIN_FAULT_MS);
    if (st == TUTTI_OK)
        renumber_guilty(m);
    return st;
}

/* One leaves, and the victim fails while the others shrink. They may well find that out by themselves. */
static void do_shrink(me *m)
{
    const int64_t begun = tti_now_ns();

    until_it_fails(m, shrink_while_one_fails(m), begun);
}

/* Sums, barriers, and messages between all pairs. Numbers of rounds are the same on all, whoever comes how far. */
static tutti_status try_world(me *m)
{
    const int    salt = m->salt;
    tutti_status st = TUTTI_OK;
    bool         wrong = false;
    int          i;

    at(m, "tries the world in which it goes on");
    for (i = 0; i < CHECKS && st == TUTTI_OK && !wrong; i++) {
        m->salt++;
        st = call_once(m, P_ALGORITHM, 0, 1000, &wrong);
        if (st == TUTTI_OK && !wrong)
            st = tutti_barrier(m->world);
        if (st == TUTTI_OK && !wrong)
            st = call_once(m, P_P2P, BATCH, 1, &wrong);
    }
    m->salt = salt;
    note_wrong(m, wrong);
    return st;
}

static unsigned members_before(const me *m)
{
    unsigned members = 0;
    int      r;

    for (r = 0; r < tutti_get_world_size(m->world); r++)
        members |= 1u << tutti_get_former_rank(m->world, r);
    return members;
}

/* Nothing was there to be cut off: it dies, and is not waited for where the others meet next. */
static void die_instead(me *m)
{
    post(&m->job->board->met[m->meeting % MEETINGS]);
    tt_act_instead();
}

/* One leaves, and the victim loses its connections while all shrink: it may go on, or not, but all know. */
static void do_shrink_cut(me *m)
{
    const int64_t begun = tti_now_ns();
    tutti_status  st = shrink_while_one_fails(m);

    act_late(m);
    if (is_victim(m) && !tt_acted())
        die_instead(m);
    if (st == TUTTI_OK)
        st = try_world(m);
    m->salt += CHECKS;
    note(m, st, begun);
    m->page->by[m->rank].world = st == TUTTI_OK ? members_before(m) : 0;
    meet(m, m->size - 1);
    if (!tt_is_cut(m->page)) {
        if (st == TUTTI_OK)
            until_it_fails(m, st, begun);
        return;
    }
    tt_counted();
    m->kept = tt_cut_outcome(m->page) == CUT_KEPT;
    if (m->kept) {
        m->gone[m->page->plan.victim] = false;
        m->n_gone--;
    }
}

static void do_destroy(me *m)
{
    const int64_t begun = tti_now_ns();
    tutti_status  st;

    meet(m, m->size);
    if (is_victim(m))
        arm(m, m->shrink_points > 0 ? m->shrink_points / 4 + 1 : POINTS_GUESSED);
    at(m, "destroys its world, and somebody fails");
    st = tutti_destroy_process_group(m->world);
    m->world = NULL;
    act_late(m);
    note(m, st, begun);
    tt_counted();
}

/* ---- going on ---- */

/* Those that were only stopped or cut off find their way back, to nobody. */
static void let_go_on(me *m)
{
    const tt_draw *plan = &m->page->plan;
    int         r, first = 0;

    while (m->gone[first])
        first++;
    if (m->rank != first)
        return;
    if (plan->what == F_HOLE)
        tt_net_plug(m->job->switch_fd, tt_host_of_slot(m->job, m->slots[plan->victim]), true);
    for (r = 0; r < m->size; r++)
        if (r == plan->victim && plan->what == F_STOP)
            atomic_store(&m->page->let_go_pid, atomic_load(&m->job->board->pids[m->slots[r]]));
}

static void check_sum(me *m, seen *s)
{
    bool wrong = false;
    int  i;

    for (i = 0; i < CHECKS; i++) {
        m->salt++;
        if (call_once(m, P_ALGORITHM, 0, 1000, &wrong) != TUTTI_OK)
            broken(m, "the sum after shrinking");
        if (wrong)
            broken(m, "the sum after shrinking is wrong");
        if (s->on_ns == 0)
            s->on_ns = tti_now_ns();
    }
}

/* Everybody says where it sits in the world that has grown. */
static void take_places(me *m)
{
    tt_board *b = m->job->board;

    m->rank = tutti_get_rank(m->world);
    m->size = tutti_get_world_size(m->world);
    b->places[m->rank] = m->slot;
    meet(m, m->size);
    memcpy(m->slots, b->places, sizeof m->slots);
    tutti_set_timeout(m->world, CALM_MS);
}

/* Have the runner start others for those that are gone, and let them in. */
static void grow(me *m, int round)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tt_board           *b = m->job->board;
    tutti_group        *grown = NULL;
    seen                nothing = { 0 };
    unsigned            slots = (1u << m->job->size) - 1;
    int                 r;

    for (r = 0; r < m->size; r++)
        slots &= ~(1u << m->slots[r]);
    if (m->rank == 0) {
        b->attempt = m->attempt;
        b->salt = m->salt;
        b->meeting = m->meeting;
        b->world_round = round;
        atomic_store(&b->wanted, slots);
    }
    at(m, "lets others in");
    tt_wish_algorithms(tt_dice(m->job->seed, 90 + (uint64_t)round), m->job->every);
    opts.timeout_ms = CALM_MS;
    if (tutti_grow_group(m->world, NULL, m->job->size - m->size, &opts, &grown) != TUTTI_OK)
        broken(m, "growing");
    m->world = grown;
    take_places(m);
    check_sum(m, &nothing);
}

static void end_round(me *m, int round)
{
    meet(m, m->size);
    if (m->rank == 0) {
        atomic_store(&m->job->board->rounds[round].over, true);
        atomic_store(&m->job->board->round, round + 1);
    }
    meet(m, m->size);
}

/* Whether the survivors join anew instead of shrinking: where they have no world in common, and, for a short run, where
 * connections were cut and all live: who is gone then is what they do not agree upon (README.md). */
static bool goes_on_anew(const me *m)
{
    const tt_draw *plan = &m->page->plan;

    return (plan->when != P_ALGORITHM && plan->when != P_P2P) ||
           (m->job->lenient && tt_fault_cuts(plan->what));
}

/* A new world of those that are left: by shrinking, or, where there is none to shrink, by joining anew. */
static void go_on(me *m)
{
    const int     round = atomic_load(&m->job->board->round);
    const tt_phase   when = m->page->plan.when;
    seen         *s = &m->page->by[m->rank];
    const int     left = m->size - m->n_gone;
    const bool    has_world = left >= 2 && when != P_TEARDOWN;
    tutti_status  st;

    meet(m, left);
    tt_wish_algorithms(tt_dice(m->job->seed, 70 + (uint64_t)round), m->job->every);
    if (m->kept) {
        count_off(m);
        tutti_set_timeout(m->world, CALM_MS);
    } else if (has_world && goes_on_anew(m)) {
        end_world(m);
        let_go_on(m);
        count_off(m);
        if (join(m, CALM_MS) != TUTTI_OK)
            broken(m, "joining anew");
    } else if (has_world) {
        at(m, "shrinks");
        tt_count(TT_POINTS_ALL);
        st = agrees(m) ? shrink_together(m, CALM_MS) : shrink_without(m, m->gone, CALM_MS);
        m->shrink_points = tt_counted();
        if (st != TUTTI_OK)
            broken(m, "shrinking");
        check_sum(m, s); /* before a stopped one wakes up, */
        let_go_on(m);
        count_off(m);
    } else {
        end_world(m);
        let_go_on(m);
        count_off(m);
    }
    if (has_world)
        check_sum(m, s); /* and while it does */
    if (has_world && m->page->plan.what != F_HOLE && round + 1 < tt_rounds(m->job))
        grow(m, round);
    end_round(m, round);
}

static void one_round(me *m, int round)
{
    page_fill(m, round);
    find_gone(m);
    switch (m->page->plan.when) {
    case P_CONNECT:
    case P_HANDSHAKE:
        do_join(m);
        break;
    case P_SHRINK:
        if (m->cut)
            do_shrink_cut(m);
        else
            do_shrink(m);
        break;
    case P_TEARDOWN:
        do_destroy(m);
        break;
    default:
        do_call(m);
    }
    leave_if_gone(m);
    go_on(m);
}

static bool begins_without_world(const me *m)
{
    const tt_phase when = tt_draw_round(m->job, 0, m->size, m->slots).when;

    return when == P_CONNECT || when == P_HANDSHAKE;
}

static void enter(const tt_job *job, int slot)
{
    char path[200];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(path, sizeof path, "%s/rank-%d.log", job->dir, slot);
    if (freopen(path, "w", stderr) == NULL || dup2(2, 1) < 0)
        _exit(1);
    setvbuf(stderr, NULL, _IOLBF, 0);
    if (job->net != NULL && job->layout != L_SHM && !tt_hosts_enter(job->net, tt_host_of_slot(job, slot)))
        _exit(1);
    snprintf(path, sizeof path, "%s/secret", job->dir);
    setenv("TUTTI_SECRET_FILE", path, 1);
    snprintf(path, sizeof path, "%d", BEAT_MS);
    setenv("TUTTI_HEARTBEAT_MS", path, 1);
    if (job->net == NULL && job->layout == L_TCP)
        setenv("TUTTI_TRANSPORT", "tcp", 1);
}

static _Noreturn void go_through(me *m, int round)
{
    for (; round < tt_rounds(m->job) && m->size >= 2; round++) {
        one_round(m, round);
        if (m->page->plan.when == P_TEARDOWN)
            break;
        if (m->page->plan.what == F_HOLE) /* a host that is back on the bridge has no way to the others for seconds */
            break;
    }
    leave(m, 0);
}

void tt_fault_rank(const tt_job *job, int slot)
{
    me  m = { .job = job, .slot = slot, .rank = slot, .size = job->size };
    int r;

    enter(job, slot);
    for (r = 0; r < job->size; r++)
        m.slots[r] = r;
    if (!begins_without_world(&m) && join(&m, CALM_MS) != TUTTI_OK)
        broken(&m, "the first join");
    go_through(&m, 0);
}

void tt_fault_newcomer(const tt_job *job, int slot)
{
    const tt_board    *b = job->board;
    me                 m = { .job = job, .slot = slot, .rank = -1, .attempt = b->attempt, .salt = b->salt, .meeting = b->meeting };
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    seen               nothing = { 0 };
    tutti_store       *part = NULL;

    enter(job, slot);
    at(&m, "comes in");
    tt_wish_algorithms(tt_dice(job->seed, 90 + (uint64_t)b->world_round), job->every);
    opts.timeout_ms = CALM_MS;
    if (open_part(&m, b->attempt - 1, CALM_MS, &part) != TUTTI_OK)
        broken(&m, "a newcomer's store");
    opts.store = part;
    if (tutti_join_group(&opts, NULL, &m.world) != TUTTI_OK)
        broken(&m, "coming in");
    tutti_store_close(part);
    take_places(&m);
    check_sum(&m, &nothing);
    end_round(&m, b->world_round);
    go_through(&m, b->world_round + 1);
}
