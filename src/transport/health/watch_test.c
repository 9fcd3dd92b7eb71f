/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch_test.c
 * Goal    what happens to one rank is known on all, in time, whoever speaks for a host at that moment.
 * Method  watch threads of several hosts in one process on the port in memory: virtual time, several seeds. A rank's port
 *         can be frozen, which is a stopped process; a bell is its pidfd; connecting is a doorman's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "harness/mem_port.h"
#include "transport/health/digest.h"
#include "transport/health/health.h"

enum { RANKS_MAX = 8, BEAT_MS = 1000, SEEDS = 6, DOOR = 4000, DOOR_MS = 50, GUESTS_MAX = 16, QUEUE = 128 };

typedef struct sim sim;

/* A port that stands still while its rank does. */
typedef struct rank_port {
    tti_port  port; /* first: the two pointers convert both ways */
    tti_port *real;
    bool      frozen;
    bool      is_full; /* it has no descriptor left */
    int64_t   late_ms; /* each time that it waits it gets its core so much later */
} rank_port;

typedef struct sim_rank {
    sim             *s;
    int              rank;
    char             host[16];
    tti_addr         at; /* its door */
    rank_port        door; /* of its watch thread */
    tti_health_page *page;
    _Atomic uint32_t closed;
    tti_handle       life, bell;
    char             state;
    tti_end_cause    cause;
    tti_health      *health;
    bool             ended; /* its watch thread has */
    bool             died;  /* its process has: nobody listens */
    bool             turns_away; /* whoever comes: there are too many strangers */
    int              wanted[RANKS_MAX], n_wanted; /* whom the watch thread wants a stream to */
    bool             dialled[RANKS_MAX]; /* whom it has wanted one to, ever */
} sim_rank;

struct sim {
    tt_mem_world *world;
    int           n, per_host;
    int           hosts[RANKS_MAX];
    sim_rank      ranks[RANKS_MAX];
    bool          over;
    bool          is_making; /* the world is being made as long as the story lasts */
    void (*story)(sim *s);
    char          failure[256];
};

#define CHECK(s, cond)                                                                                  \
    do {                                                                                                \
        if (!(cond) && (s)->failure[0] == '\0')                                                         \
            snprintf((s)->failure, sizeof(s)->failure, "line %d: %s", __LINE__, #cond);                 \
    } while (0)

/* ---- the port of a rank ---- */

static tti_port *real_of(tti_port *port)
{
    rank_port *p = (rank_port *)port;

    while (p->frozen)
        p->real->ops->sleep_until(p->real, tti_port_now(p->real) + 10 * TTI_MS);
    return p->real;
}

static int64_t now_of(tti_port *port)
{
    return tti_port_now(((rank_port *)port)->real);
}

static int64_t send_of(tti_port *port, tti_handle handle, const tti_part *parts, int n)
{
    tti_port *real = real_of(port);

    return real->ops->send(real, handle, parts, n);
}

static int64_t recv_of(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    tti_port *real = real_of(port);

    return real->ops->recv(real, handle, out, bytes);
}

static int poll_of(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    tti_port *real = real_of(port);
    int       ready = real->ops->poll(real, set, n, deadline_ns);

    if (((rank_port *)port)->late_ms > 0 && deadline_ns > 0)
        real->ops->sleep_until(real, tti_port_now(real) + ((rank_port *)port)->late_ms * TTI_MS);
    (void)real_of(port); /* frozen meanwhile */
    return ready;
}

static int connect_of(tti_port *port, const tti_addr *to, tti_handle *handle_out)
{
    tti_port *real = real_of(port);

    return ((rank_port *)port)->is_full ? -EMFILE : real->ops->connect(real, to, handle_out);
}

static int connect_result_of(tti_port *port, tti_handle handle)
{
    tti_port *real = real_of(port);

    return real->ops->connect_result(real, handle);
}

static void close_of(tti_port *port, tti_handle handle)
{
    tti_port *real = ((rank_port *)port)->real;

    real->ops->close(real, handle);
}

static int bell_create_of(tti_port *port, tti_handle *bell_out)
{
    tti_port *real = ((rank_port *)port)->real;

    return real->ops->bell_create(real, bell_out);
}

static void bell_ring_of(tti_port *port, tti_handle bell)
{
    tti_port *real = ((rank_port *)port)->real;

    real->ops->bell_ring(real, bell);
}

static void bell_clear_of(tti_port *port, tti_handle bell)
{
    tti_port *real = ((rank_port *)port)->real;

    real->ops->bell_clear(real, bell);
}

/* Of those the round trip alone is known: the way there and back; and, if a story wants it, that the kernel there has just
 * acknowledged something. */
static int64_t latency_ns = 100000;
static bool    acknowledges;

static int stream_facts_of(tti_port *port, tti_handle handle, tti_stream_facts *facts_out)
{
    (void)port;
    (void)handle;
    *facts_out = (tti_stream_facts){ .round_trip_us = (uint32_t)(2 * latency_ns / 1000), .heard_ms = acknowledges ? 0 : UINT32_MAX };
    return 0;
}

static const tti_port_ops rank_ops = {
    .name = "rank", .now_ns = now_of, .send = send_of, .recv = recv_of, .poll = poll_of, .close = close_of,
    .connect = connect_of, .connect_result = connect_result_of, .stream_facts = stream_facts_of,
    .bell_create = bell_create_of, .bell_ring = bell_ring_of, .bell_clear = bell_clear_of,
};

/* ---- doormen: what the greeter is in earnest ---- */

static tti_port *port_of(const sim_rank *r)
{
    return r->door.real;
}

static void wait_for(tti_port *port, tti_handle handle, uint8_t want)
{
    tti_poll poll = { .handle = handle, .want = want };

    (void)port->ops->poll(port, &poll, 1, tti_port_now(port) + TTI_SECOND / 2);
}

/* Connect, say who it is, and wait for the welcome: a process that does not run gives none. */
static void call(sim_rank *r, int rank)
{
    tti_port  *port = port_of(r);
    tti_handle stream = TTI_NO_HANDLE;
    tti_part   who = { &r->rank, sizeof r->rank };
    char       word = 0;
    int        err;

    if (port->ops->connect(port, &r->s->ranks[rank].at, &stream) != 0)
        return;
    wait_for(port, stream, TTI_WRITE);
    err = port->ops->connect_result(port, stream);
    if (err == -ECONNREFUSED && !r->ended)
        tti_health_is_shut(r->health, rank);
    if (err == 0 && !r->ended)
        tti_health_is_reached(r->health, rank);
    if (err == 0 && port->ops->send(port, stream, &who, 1) > 0)
        wait_for(port, stream, TTI_READ);
    if (port->ops->recv(port, stream, &word, 1) == 1 && !r->ended)
        tti_health_adopt(r->health, rank, stream);
    else
        port->ops->close(port, stream);
}

/* Who says who he is is welcome; who says nothing stays. False: there is nothing more to do with this one. */
static bool serve(sim_rank *r, tti_handle guest)
{
    tti_port      *port = port_of(r);
    const tti_part word = { "w", 1 };
    int            who = -1;
    const int64_t  n = port->ops->recv(port, guest, &who, sizeof who);

    if (n == -EAGAIN && !r->turns_away)
        return true;
    if (n == sizeof who && !r->ended && port->ops->send(port, guest, &word, 1) == 1)
        tti_health_adopt(r->health, who, guest);
    else
        port->ops->close(port, guest);
    return false;
}

static bool is_open(const sim_rank *r)
{
    return !r->s->over && !r->died && !(r->ended && atomic_load(&r->closed) != 0);
}

static void doorman(void *arg)
{
    sim_rank  *r = arg;
    tti_port  *port = port_of(r);
    tti_poll   set[1 + GUESTS_MAX];
    tti_handle listener, comer;
    tti_addr   bound;
    int        n = 1, i, kept;

    CHECK(r->s, port->ops->listen(port, &r->at, 16, &bound, &listener) == 0);
    while (is_open(r)) {
        set[0] = (tti_poll){ .handle = r->door.frozen ? TTI_NO_HANDLE : listener, .want = TTI_READ };
        (void)port->ops->poll(port, set, r->door.frozen ? 1 : n, tti_port_now(port) + DOOR_MS * TTI_MS);
        if (r->door.frozen)
            continue;
        while (n <= GUESTS_MAX && (comer = port->ops->accept(port, listener, NULL)) >= 0)
            set[n++] = (tti_poll){ .handle = comer, .want = TTI_READ };
        for (i = kept = 1; i < n; i++)
            if (serve(r, set[i].handle))
                set[kept++] = set[i];
        n = kept;
    }
    for (i = 1; i < n; i++)
        port->ops->close(port, set[i].handle);
    port->ops->close(port, listener);
}

static void caller(void *arg)
{
    sim_rank *r = arg;
    tti_port *port = port_of(r);

    while (!r->s->over) {
        tti_poll poll = { .handle = r->bell, .want = TTI_READ };

        (void)port->ops->poll(port, &poll, 1, tti_port_now(port) + 100 * TTI_MS);
        port->ops->bell_clear(port, r->bell);
        while (r->n_wanted > 0 && !r->door.frozen)
            call(r, r->wanted[--r->n_wanted]);
    }
}

static void dial(void *context, int rank)
{
    sim_rank *r = context;

    r->dialled[rank] = true;
    if (r->n_wanted < RANKS_MAX)
        r->wanted[r->n_wanted++] = rank;
    port_of(r)->ops->bell_ring(port_of(r), r->bell);
}

/* ---- the world ---- */

static char state_of(void *context, tti_handle life)
{
    const sim *s = context;
    int        r;

    for (r = 0; r < s->n; r++)
        if (s->ranks[r].life == life)
            return s->ranks[r].state;
    return 0;
}

static tti_end_cause cause_of(void *context, tti_handle life)
{
    const sim *s = context;
    int        r;

    for (r = 0; r < s->n && s->ranks[r].life != life; r++)
        continue;
    return s->ranks[r].cause;
}

static const tti_addr *addr_of(const void *context, int rank)
{
    const sim *s = context;

    return &s->ranks[rank].at;
}

static const char *whereabouts(void *context, int rank)
{
    const sim *s = context;

    return s->ranks[rank].host;
}

static void watch(void *arg)
{
    sim_rank *r = arg;

    tti_health_run(r->health);
    r->ended = true;
}

static void make_rank(sim *s, int rank)
{
    sim_rank    *r = &s->ranks[rank];
    const size_t bytes = tti_health_page_bytes(s->n);
    int          n;

    *r = (sim_rank){ .s = s, .rank = rank, .state = 'S' };
    s->hosts[rank] = rank / s->per_host * s->per_host;
    snprintf(r->host, sizeof r->host, "host%d", rank / s->per_host);
    r->door = (rank_port){ .port = { .ops = &rank_ops }, .real = tt_mem_host(s->world, r->host) };
    assert_int_equal(port_of(r)->ops->resolve(port_of(r), r->host, (uint16_t)(DOOR + rank), &r->at, 1, &n), TUTTI_OK);
    r->page = aligned_alloc(128, bytes);
    assert_non_null(r->page);
    memset(r->page, 0, bytes);
    assert_int_equal(port_of(r)->ops->bell_create(port_of(r), &r->life), 0);
    assert_int_equal(port_of(r)->ops->bell_create(port_of(r), &r->bell), 0);
}

static void make_health(sim *s, int rank)
{
    sim_rank         *r = &s->ranks[rank];
    tti_health_member members[RANKS_MAX];
    tti_health_config config = { .port = &r->door.port, .rank = rank, .n_ranks = s->n, .hosts = s->hosts, .members = members,
                                 .heartbeat_ms = BEAT_MS, .whereabouts = whereabouts, .addr_of = addr_of, .state_of = state_of,
                                 .cause_of = cause_of, .context = s };
    int               i;

    for (i = 0; i < s->n; i++)
        if (s->hosts[i] == s->hosts[rank])
            members[config.n_members++] = (tti_health_member){ .rank = i, .page = s->ranks[i].page,
                                                               .closed = &s->ranks[i].closed, .life = s->ranks[i].life };
    assert_int_equal(tti_health_make(&config, &r->health), TUTTI_OK);
    tti_health_set_dialer(r->health, dial, r);
    if (!s->is_making)
        tti_health_complete(r->health);
}

/* Tell the story, then let everybody leave. */
static void narrator(void *arg)
{
    sim *s = arg;
    int  r;

    s->story(s);
    for (r = 0; r < s->n; r++) {
        s->ranks[r].door.frozen = false;
        s->ranks[r].door.late_ms = 0;
        tti_health_stop(s->ranks[r].health);
    }
    s->over = true;
}

static void run_seed(uint64_t seed, int n, int per_host, bool is_making, void (*story)(sim *s))
{
    sim  s = { .world = tt_mem_world_new(seed), .n = n, .per_host = per_host, .is_making = is_making, .story = story };
    char name[24];
    int  r;

    for (r = 0; r < n; r++)
        make_rank(&s, r);
    for (r = 0; r < n; r++)
        make_health(&s, r);
    for (r = 0; r < n; r++) {
        snprintf(name, sizeof name, "watch%d", r);
        tt_mem_spawn(s.world, name, TTI_SECOND, watch, &s.ranks[r]);
        snprintf(name, sizeof name, "door%d", r);
        tt_mem_spawn(s.world, name, TTI_SECOND, doorman, &s.ranks[r]);
        snprintf(name, sizeof name, "caller%d", r);
        tt_mem_spawn(s.world, name, TTI_SECOND, caller, &s.ranks[r]);
    }
    tt_mem_spawn(s.world, "narrator", TTI_SECOND, narrator, &s);
    tt_mem_run(s.world);
    for (r = 0; r < n; r++) {
        tti_health_close(s.ranks[r].health);
        port_of(&s.ranks[r])->ops->close(port_of(&s.ranks[r]), s.ranks[r].life);
        port_of(&s.ranks[r])->ops->close(port_of(&s.ranks[r]), s.ranks[r].bell);
        free(s.ranks[r].page);
    }
    tt_mem_world_free(s.world);
    if (s.failure[0] != '\0')
        fail_msg("seed %llu: %s", (unsigned long long)seed, s.failure);
}

static void run(int n, int per_host, void (*story)(sim *s))
{
    uint64_t seed;

    for (seed = 1; seed <= SEEDS; seed++)
        run_seed(seed, n, per_host, false, story);
}

/* The same, of a world that is not made yet. */
static void run_making(int n, int per_host, void (*story)(sim *s))
{
    uint64_t seed;

    for (seed = 1; seed <= SEEDS; seed++)
        run_seed(seed, n, per_host, true, story);
}

static void sleep_ms(sim *s, int64_t ms)
{
    tti_port *port = s->ranks[0].door.real;

    port->ops->sleep_until(port, tti_port_now(port) + ms * TTI_MS);
}

static tti_health_report seen_by(const sim *s, int by, int rank)
{
    return tti_health_of(s->ranks[by].health, rank);
}

/* Whether all but those two see rank so. */
static bool all_see(const sim *s, int rank, int but, tti_life life)
{
    int by;

    for (by = 0; by < s->n; by++)
        if (by != rank && by != but && seen_by(s, by, rank).life != life)
            return false;
    return true;
}

/* How long until all do, in ms; -1: not within most. */
static int64_t until_all_see(sim *s, int rank, int but, tti_life life, int64_t most_ms)
{
    int64_t ms;

    for (ms = 0; ms <= most_ms; ms += 10) {
        if (all_see(s, rank, but, life))
            return ms;
        sleep_ms(s, 10);
    }
    return -1;
}

static bool all_are_well(const sim *s)
{
    int r;

    for (r = 0; r < s->n; r++)
        if (!all_see(s, r, -1, TTI_LIFE_WELL))
            return false;
    return true;
}

/* A process ends: its thread runs no more, nobody holds its door, its descriptor tells. One that had streams loses them. */
static void end_rank(sim *s, int rank, tti_end_cause cause, bool cut)
{
    s->ranks[rank].door.frozen = true;
    s->ranks[rank].died = true;
    s->ranks[rank].cause = cause;
    sleep_ms(s, DOOR_MS + 1);
    if (cut)
        tt_mem_cut(s->world, s->ranks[rank].host);
    port_of(&s->ranks[rank])->ops->bell_ring(port_of(&s->ranks[rank]), s->ranks[rank].life);
}

static void stop_rank(sim *s, int rank, bool on)
{
    s->ranks[rank].door.frozen = on;
    s->ranks[rank].state = on ? 'T' : 'S';
}

static bool nobody_is_lost(const sim *s)
{
    int r;

    for (r = 0; r < s->n; r++)
        if (tti_health_verdicts(s->ranks[r].health) != 0)
            return false;
    return true;
}

static void leave(sim *s, int rank)
{
    atomic_store(&s->ranks[rank].closed, 1);
    tti_health_stop(s->ranks[rank].health);
}

/* ---- stories ---- */

static void nothing_happens(sim *s)
{
    int i;

    for (i = 0; i < 120; i++) {
        sleep_ms(s, BEAT_MS);
        CHECK(s, all_are_well(s));
    }
}

static void a_death_is_known_to_all(sim *s)
{
    int64_t ms;

    sleep_ms(s, 3 * BEAT_MS);
    end_rank(s, 1, (tti_end_cause){ TTI_CAUSE_SIGNAL, 9 }, false);
    ms = until_all_see(s, 1, -1, TTI_LIFE_DEAD, 1000);
    CHECK(s, ms >= 0 && ms < 600);
    CHECK(s, seen_by(s, s->n - 1, 1).cause.kind == TTI_CAUSE_SIGNAL && seen_by(s, s->n - 1, 1).cause.value == 9);
    CHECK(s, tti_health_is_lost(s->ranks[s->n - 1].health, 1));
    CHECK(s, tti_health_verdicts(s->ranks[s->n - 1].health) == 1);
    CHECK(s, !tti_health_is_lost(s->ranks[s->n - 1].health, 0));
}

static void a_speaker_dies_and_the_next_one_goes_on(sim *s)
{
    int64_t ms;

    sleep_ms(s, 3 * BEAT_MS);
    end_rank(s, 0, (tti_end_cause){ TTI_CAUSE_EXIT, 3 }, true);
    ms = until_all_see(s, 0, -1, TTI_LIFE_DEAD, 1000);
    CHECK(s, ms >= 0 && ms < 600);
    sleep_ms(s, 10 * BEAT_MS);
    CHECK(s, all_see(s, 1, 0, TTI_LIFE_WELL)); /* another speaks for its host */
    end_rank(s, 1, (tti_end_cause){ TTI_CAUSE_SIGNAL, 6 }, true);
    ms = until_all_see(s, 1, 0, TTI_LIFE_DEAD, 1000);
    CHECK(s, ms >= 0 && ms < 600);
    sleep_ms(s, 5 * BEAT_MS);
    CHECK(s, seen_by(s, s->n - 1, 0).cause.kind == TTI_CAUSE_EXIT && seen_by(s, s->n - 1, 0).cause.value == 3);
}

/* How many of the others would go on without it. */
static int count_without(sim *s, int rank)
{
    int r, n = 0;

    for (r = 0; r < s->n; r++)
        n += r != rank && tti_health_is_silent(s->ranks[r].health, rank);
    return n;
}

static void a_stopped_rank_is_reported_and_heard_again(sim *s)
{
    int64_t ms;

    sleep_ms(s, 3 * BEAT_MS);
    stop_rank(s, 1, true);
    ms = until_all_see(s, 1, -1, TTI_LIFE_STOPPED, 6 * BEAT_MS);
    CHECK(s, ms >= 2900 && ms <= 4 * BEAT_MS);
    CHECK(s, seen_by(s, s->n - 1, 1).since_ns <= tti_port_now(s->ranks[0].door.real) - 2900 * TTI_MS);
    sleep_ms(s, 4 * BEAT_MS + 500 - ms);
    CHECK(s, count_without(s, 1) == s->n - 1);
    sleep_ms(s, 20 * BEAT_MS);
    CHECK(s, all_see(s, 1, -1, TTI_LIFE_STOPPED));
    CHECK(s, tti_health_verdicts(s->ranks[s->n - 1].health) == 0);
    stop_rank(s, 1, false);
    CHECK(s, until_all_see(s, 1, -1, TTI_LIFE_WELL, 3 * BEAT_MS) >= 0);
    CHECK(s, count_without(s, 1) == 0);
    sleep_ms(s, 5 * BEAT_MS);
    CHECK(s, all_are_well(s)); /* nor has it accused anybody */
}

/* Those of its host find it; the others hear of it then, however many hosts are between, and whenever the next digest would
 * have been due. */
static void a_silence_goes_out_at_once(sim *s)
{
    int i;

    for (i = 0; i < 8; i++) {
        sleep_ms(s, 6 * BEAT_MS + i * BEAT_MS / 8);
        stop_rank(s, 1, true);
        while (seen_by(s, 0, 1).life == TTI_LIFE_WELL)
            sleep_ms(s, 10);
        CHECK(s, until_all_see(s, 1, -1, TTI_LIFE_STOPPED, BEAT_MS / 4) >= 0);
        stop_rank(s, 1, false);
    }
}

static void a_stopped_speaker_is_not_taken_for_its_host(sim *s)
{
    int i;

    sleep_ms(s, 3 * BEAT_MS);
    stop_rank(s, 0, true);
    for (i = 0; i < 100; i++) {
        sleep_ms(s, 100);
        CHECK(s, all_see(s, 1, 0, TTI_LIFE_WELL));
    }
    CHECK(s, all_see(s, 0, -1, TTI_LIFE_STOPPED));
    stop_rank(s, 0, false);
    sleep_ms(s, 5 * BEAT_MS);
    CHECK(s, all_are_well(s));
}

static void stop_host(sim *s, int host, bool on)
{
    int r;

    for (r = 0; r < s->n; r++)
        if (s->hosts[r] == host)
            stop_rank(s, r, on);
}

/* From now on no rank of another host that runs says for so long that host is out of reach; then all say that it is mute. */
static void check_mute(sim *s, int host, int64_t for_ms)
{
    int64_t ms;
    int     r;

    for (ms = 0; ms < for_ms; ms += 10) {
        for (r = 0; r < s->n; r++)
            CHECK(s, s->hosts[r] == host || s->ranks[r].door.frozen || seen_by(s, r, host).life != TTI_LIFE_UNREACHABLE);
        sleep_ms(s, 10);
    }
    for (r = 0; r < s->n; r++)
        CHECK(s, s->hosts[r] == host || s->ranks[r].door.frozen || seen_by(s, r, host).life == TTI_LIFE_MUTE);
}

/* One here sees that its kernel answers, and the others take that from it: whoever looks first. */
static void a_stopped_host_is_mute_for_all(sim *s)
{
    const int n_others = s->n / s->per_host - 1;
    int       i;

    acknowledges = true;
    for (i = 0; i < 8; i++) {
        const int host = (1 + i % n_others) * s->per_host; /* who speaks here looks at some of them only */

        sleep_ms(s, 6 * BEAT_MS + i * BEAT_MS / 8);
        stop_host(s, host, true);
        check_mute(s, host, 5 * BEAT_MS);
        stop_host(s, host, false);
    }
    acknowledges = false;
}

/* Who speaks here is stopped soon after it: the next one has no stream to there, and a kernel that takes connections. */
static void a_stopped_host_is_mute_for_the_next_speaker(sim *s)
{
    const int host = s->per_host;
    int       i;

    for (i = 0; i < 6; i++) {
        sleep_ms(s, 6 * BEAT_MS);
        stop_host(s, host, true);
        sleep_ms(s, i * BEAT_MS / 2);
        stop_rank(s, 0, true);
        check_mute(s, host, 7 * BEAT_MS);
        stop_rank(s, 0, false);
        stop_host(s, host, false);
    }
    sleep_ms(s, 6 * BEAT_MS);
    CHECK(s, all_are_well(s));
}

static void a_host_out_of_reach_comes_back(sim *s)
{
    int64_t ms;

    sleep_ms(s, 3 * BEAT_MS);
    tt_mem_isolate(s->world, "host0", true);
    sleep_ms(s, 5 * BEAT_MS);
    ms = seen_by(s, s->n - 1, 0).life;
    CHECK(s, ms == TTI_LIFE_UNREACHABLE);
    CHECK(s, seen_by(s, 0, s->n - 1).life == TTI_LIFE_UNREACHABLE);
    CHECK(s, seen_by(s, 0, 1).life == TTI_LIFE_WELL);
    tt_mem_isolate(s->world, "host0", false);
    sleep_ms(s, 6 * BEAT_MS);
    CHECK(s, all_are_well(s));
}

static int64_t data_came_ns; /* of rank 0, on a stream that is not the watch threads' */

static uint32_t data_ms_of(void *context, int rank)
{
    const sim_rank *r = context;

    return rank == 0 ? (uint32_t)((tti_port_now(port_of(r)) - data_came_ns) / TTI_MS) : UINT32_MAX;
}

/* What its watch thread says does not get through, while its data does. */
static void whose_data_comes_is_well(sim *s)
{
    sim_rank *last = &s->ranks[s->n - 1];
    int       i;

    data_came_ns = tti_port_now(port_of(last));
    tti_health_set_ear(last->health, data_ms_of, last);
    sleep_ms(s, 3 * BEAT_MS);
    tt_mem_isolate(s->world, "host0", true);
    for (i = 0; i < 20; i++) {
        sleep_ms(s, BEAT_MS / 2);
        data_came_ns = tti_port_now(port_of(last));
        CHECK(s, seen_by(s, s->n - 1, 0).life == TTI_LIFE_WELL);
    }
    sleep_ms(s, 5 * BEAT_MS);
    CHECK(s, seen_by(s, s->n - 1, 0).life == TTI_LIFE_UNREACHABLE); /* no more */
    tt_mem_isolate(s->world, "host0", false);
    sleep_ms(s, 6 * BEAT_MS);
    CHECK(s, all_are_well(s));
    tti_health_set_ear(last->health, NULL, NULL);
}

static void who_leaves_is_not_dead(sim *s)
{
    sleep_ms(s, 3 * BEAT_MS);
    leave(s, 0);
    CHECK(s, until_all_see(s, 0, -1, TTI_LIFE_LEFT, 1000) >= 0);
    port_of(&s->ranks[0])->ops->bell_ring(port_of(&s->ranks[0]), s->ranks[0].life); /* and its process ends */
    sleep_ms(s, 5 * BEAT_MS);
    CHECK(s, all_see(s, 0, -1, TTI_LIFE_LEFT));
    CHECK(s, tti_health_verdicts(s->ranks[s->n - 1].health) == 0);
}

/* What a box on the way does that forgets its connections, or a process to its own: both ends live. */
static void a_cut_stream_is_no_death(sim *s)
{
    int i;

    sleep_ms(s, 3 * BEAT_MS);
    for (i = 0; i < 3; i++) {
        tt_mem_cut(s->world, "host0");
        sleep_ms(s, 2 * BEAT_MS);
        CHECK(s, all_are_well(s));
    }
    stop_rank(s, 0, true); /* whose kernel answers for it */
    tt_mem_cut(s->world, "host0");
    sleep_ms(s, 2 * BEAT_MS);
    CHECK(s, nobody_is_lost(s));
    stop_rank(s, 0, false);
    sleep_ms(s, 5 * BEAT_MS);
    CHECK(s, all_are_well(s));
}

/* The same, and the box needs a moment before it lets anything through: what asks first is lost. */
static void a_knock_that_is_lost_is_no_death(sim *s)
{
    int i;

    sleep_ms(s, 3 * BEAT_MS);
    for (i = 0; i < 3; i++) {
        tt_mem_isolate(s->world, "host0", true);
        tt_mem_cut(s->world, "host0");
        sleep_ms(s, 200);
        tt_mem_isolate(s->world, "host0", false);
        sleep_ms(s, 3 * BEAT_MS);
        CHECK(s, nobody_is_lost(s));
        CHECK(s, all_are_well(s));
    }
}

static void set_latency(sim *s, int64_t ns)
{
    latency_ns = ns;
    tt_mem_latency(s->world, ns);
}

/* An answer takes longer than all the knocks. */
static void a_long_way_is_no_death(sim *s)
{
    const int64_t before_ns = latency_ns;

    sleep_ms(s, 3 * BEAT_MS);
    set_latency(s, 300 * TTI_MS);
    sleep_ms(s, BEAT_MS);
    tt_mem_cut(s->world, "host0");
    sleep_ms(s, 2 * BEAT_MS);
    CHECK(s, nobody_is_lost(s));
    set_latency(s, before_ns);
    sleep_ms(s, 4 * BEAT_MS);
    CHECK(s, nobody_is_lost(s));
    CHECK(s, all_are_well(s));
}

/* Who cannot ask knows nothing, and asks again, now and then. */
static void who_cannot_knock_accuses_nobody(sim *s)
{
    const int64_t before_ns = latency_ns;
    int           r;

    sleep_ms(s, 3 * BEAT_MS);
    for (r = 0; r < s->n; r++)
        s->ranks[r].door.is_full = true;
    tt_mem_cut(s->world, "host0");
    sleep_ms(s, BEAT_MS);
    CHECK(s, nobody_is_lost(s));
    set_latency(s, 300 * TTI_MS); /* nor where one knock is enough, as silence proves nothing */
    tt_mem_cut(s->world, "host0");
    sleep_ms(s, 10);
    set_latency(s, before_ns);
    sleep_ms(s, BEAT_MS);
    CHECK(s, nobody_is_lost(s));
    end_rank(s, 0, (tti_end_cause){ TTI_CAUSE_SIGNAL, 9 }, true);
    for (r = 0; r < s->n; r++)
        s->ranks[r].door.is_full = false;
    CHECK(s, until_all_see(s, 0, -1, TTI_LIFE_DEAD, 1000) >= 0);
}

/* What was begun before the streams ended says nothing about what is so since: dials to those that are away are on their
 * way, unanswered, when the net is back, and what was there before is reset. */
static void a_knock_is_not_measured_by_a_dial(sim *s)
{
    int64_t away_ms;

    sleep_ms(s, 3 * BEAT_MS);
    tt_mem_latency(s->world, 15 * TTI_MS);
    for (away_ms = 2 * BEAT_MS + 300; away_ms < 2 * BEAT_MS + 800; away_ms += 70) {
        tt_mem_isolate(s->world, "host0", true);
        sleep_ms(s, away_ms);
        tt_mem_isolate(s->world, "host0", false);
        tt_mem_cut(s->world, "host0");
        sleep_ms(s, 3 * BEAT_MS);
        CHECK(s, nobody_is_lost(s));
        CHECK(s, all_are_well(s));
    }
}

/* Strangers come without pause: some of what is asked is let in and turned away, the rest is dropped. */
static void a_crowded_door_is_no_death(sim *s)
{
    sleep_ms(s, 3 * BEAT_MS);
    s->ranks[0].turns_away = true;
    tt_mem_cut(s->world, "host0");
    sleep_ms(s, 300);
    tt_mem_isolate(s->world, "host0", true);
    sleep_ms(s, 2 * BEAT_MS);
    CHECK(s, nobody_is_lost(s));
    tt_mem_isolate(s->world, "host0", false);
    s->ranks[0].turns_away = false;
    sleep_ms(s, 5 * BEAT_MS);
    CHECK(s, nobody_is_lost(s));
    CHECK(s, all_are_well(s));
}

/* Nobody opens the door of one that is stopped, and its kernel drops what comes when the queue is full. */
static void a_full_queue_is_no_death(sim *s)
{
    tti_port  *port = tt_mem_host(s->world, "host9");
    tti_handle crowd[QUEUE];
    int        i;

    sleep_ms(s, 3 * BEAT_MS);
    stop_rank(s, 0, true);
    CHECK(s, until_all_see(s, 0, -1, TTI_LIFE_STOPPED, 6 * BEAT_MS) >= 0);
    for (i = 0; i < QUEUE; i++)
        CHECK(s, port->ops->connect(port, &s->ranks[0].at, &crowd[i]) == 0);
    sleep_ms(s, 50);
    tt_mem_cut(s->world, "host0");
    sleep_ms(s, 2 * BEAT_MS);
    CHECK(s, nobody_is_lost(s));
    for (i = 0; i < QUEUE; i++)
        port->ops->close(port, crowd[i]);
    stop_rank(s, 0, false);
    sleep_ms(s, 6 * BEAT_MS);
    CHECK(s, all_are_well(s));
}

/* The one that speaks says goodbye before it knows of the other, and that one has nobody to say it to. */
static void a_host_leaves_rank_by_rank(sim *s)
{
    const int first = s->n - s->per_host;
    int       r;

    sleep_ms(s, 3 * BEAT_MS);
    leave(s, first);
    CHECK(s, until_all_see(s, first, first + 1, TTI_LIFE_LEFT, 200) >= 0);
    for (r = first + 1; r < s->n; r++)
        leave(s, r);
    sleep_ms(s, 10 * BEAT_MS);
    for (r = 0; r < first; r++) {
        CHECK(s, tti_health_verdicts(s->ranks[r].health) == 0);
        CHECK(s, seen_by(s, r, first + 1).life == TTI_LIFE_LEFT);
    }
}

/* Both at once: the last word of the one that speaks has both. */
static void a_host_leaves_as_one(sim *s)
{
    const int first = s->n - s->per_host;
    int       r;

    sleep_ms(s, 3 * BEAT_MS);
    for (r = s->n - 1; r >= first; r--)
        atomic_store(&s->ranks[r].closed, 1);
    for (r = first; r < s->n; r++)
        tti_health_stop(s->ranks[r].health);
    sleep_ms(s, 200);
    for (r = 0; r < first; r++)
        CHECK(s, seen_by(s, r, first + 1).life == TTI_LIFE_LEFT);
}

/* One that stays behind, and is heard, has not left when it dies. */
static void who_stays_behind_can_die(sim *s)
{
    const int last = s->n - 1;

    sleep_ms(s, 3 * BEAT_MS);
    leave(s, last - 1);
    sleep_ms(s, 5 * BEAT_MS);
    CHECK(s, seen_by(s, 0, last).life == TTI_LIFE_WELL);
    end_rank(s, last, (tti_end_cause){ TTI_CAUSE_SIGNAL, 9 }, true);
    sleep_ms(s, BEAT_MS);
    CHECK(s, seen_by(s, 0, last).life == TTI_LIFE_DEAD);
}

/* A quota of its processor lets it run late, every time. */
static void who_is_always_late_judges_too(sim *s)
{
    s->ranks[0].door.late_ms = 250;
    sleep_ms(s, 4 * BEAT_MS);
    CHECK(s, all_are_well(s));
    tt_mem_isolate(s->world, s->ranks[s->n - 1].host, true);
    sleep_ms(s, 8 * BEAT_MS);
    CHECK(s, seen_by(s, 0, s->n - 1).life == TTI_LIFE_UNREACHABLE);
    tt_mem_isolate(s->world, s->ranks[s->n - 1].host, false);
    sleep_ms(s, 6 * BEAT_MS);
    CHECK(s, all_are_well(s));
}

static void a_host_that_goes_with_its_process_is_dead(sim *s)
{
    sleep_ms(s, 3 * BEAT_MS);
    tt_mem_isolate(s->world, "host0", true);
    end_rank(s, 0, (tti_end_cause){ TTI_CAUSE_SIGNAL, 9 }, true);
    CHECK(s, until_all_see(s, 0, -1, TTI_LIFE_DEAD, 1000) >= 0);
}

static void who_dies_out_of_reach_is_found_dead(sim *s)
{
    sleep_ms(s, 3 * BEAT_MS);
    tt_mem_isolate(s->world, "host0", true);
    sleep_ms(s, 5 * BEAT_MS);
    end_rank(s, 0, (tti_end_cause){ TTI_CAUSE_SIGNAL, 9 }, false);
    sleep_ms(s, 5 * BEAT_MS);
    CHECK(s, all_see(s, 0, -1, TTI_LIFE_UNREACHABLE));
    tt_mem_isolate(s->world, "host0", false);
    CHECK(s, until_all_see(s, 0, -1, TTI_LIFE_DEAD, 6 * BEAT_MS) >= 0); /* what it had said comes first, and counts */
    CHECK(s, seen_by(s, s->n - 1, 0).cause.value == TTI_STREAM_TURNED_AWAY); /* its streams were never closed */
}

/* In the first moments, before anybody has had a stream with it. */
static void who_dies_unheard_is_found_dead(sim *s)
{
    end_rank(s, 1, (tti_end_cause){ TTI_CAUSE_SIGNAL, 9 }, false);
    CHECK(s, until_all_see(s, 1, -1, TTI_LIFE_DEAD, 700) >= 0);
    sleep_ms(s, 5 * BEAT_MS);
    CHECK(s, tti_health_verdicts(s->ranks[s->n - 1].health) == 1);
}

static void who_leaves_unheard_is_not_dead(sim *s)
{
    int r;

    atomic_store(&s->ranks[0].closed, 1);
    tti_health_stop(s->ranks[0].health);
    while (!s->ranks[0].ended)
        sleep_ms(s, 1);
    s->ranks[0].died = true; /* nobody holds its door any more */
    sleep_ms(s, 5 * BEAT_MS);
    CHECK(s, all_see(s, 0, -1, TTI_LIFE_LEFT));
    for (r = 1; r < s->n; r++) {
        CHECK(s, tti_health_verdicts(s->ranks[r].health) == 0);
        if (s->per_host == 1 && s->ranks[r].dialled[0]) /* it would find the door shut */
            CHECK(s, s->ranks[0].dialled[r]);
    }
}

/* A rank dies when another of its host has just found that it is to leave, and polls lives no more: that one tells it with its
 * goodbye, and nobody else could. Which of the two has spoken for the host is all the same. */
static void who_dies_beside_one_that_leaves(sim *s, int victim, int leaver)
{
    sim_rank *dying = &s->ranks[victim], *leaving = &s->ranks[leaver];
    int       r;

    sleep_ms(s, 3 * BEAT_MS);
    leaving->door.frozen = true;
    leave(s, leaver);
    dying->door.frozen = dying->died = true;
    dying->cause = (tti_end_cause){ TTI_CAUSE_SIGNAL, 9 };
    sleep_ms(s, 2 * DOOR_MS);
    port_of(dying)->ops->bell_ring(port_of(dying), dying->life);
    leaving->door.frozen = false;
    while (!leaving->ended)
        sleep_ms(s, 1);
    leaving->died = true;
    sleep_ms(s, BEAT_MS);
    for (r = 2; r < s->n; r++) {
        CHECK(s, seen_by(s, r, leaver).life == TTI_LIFE_LEFT);
        CHECK(s, seen_by(s, r, victim).life == TTI_LIFE_DEAD && seen_by(s, r, victim).cause.value == 9);
    }
}

static void a_death_is_told_with_a_goodbye(sim *s)
{
    who_dies_beside_one_that_leaves(s, 1, 0);
}

static void a_speakers_death_is_told_with_a_goodbye(sim *s)
{
    who_dies_beside_one_that_leaves(s, 0, 1);
}

/* One host has two streams with it when it leaves, as where both ends made one at the same time; those with others are still
 * being made. As long as the others have no streams with each other each knows only what it was told by the one that leaves. */
static void who_leaves_unheard_tells_each_host(sim *s)
{
    int r;

    leave(s, 0);
    call(&s->ranks[2], 0);
    call(&s->ranks[2], 0);
    while (!s->ranks[0].ended)
        sleep_ms(s, 1);
    s->ranks[0].died = true;
    CHECK(s, all_see(s, 0, -1, TTI_LIFE_LEFT));
    sleep_ms(s, 5 * BEAT_MS);
    CHECK(s, all_see(s, 0, -1, TTI_LIFE_LEFT));
    for (r = 1; r < s->n; r++)
        CHECK(s, tti_health_verdicts(s->ranks[r].health) == 0);
}

/* Rank 2 has come to say something, and has not said it yet, while the door of another of its host is shut. */
static void who_has_a_stream_is_heard_first(sim *s)
{
    s->ranks[2].door.frozen = s->ranks[3].door.frozen = true;
    s->ranks[3].died = true;
    sleep_ms(s, 2 * DOOR_MS);
    call(&s->ranks[2], 0);
    tti_health_is_shut(s->ranks[0].health, 3);
    sleep_ms(s, BEAT_MS);
    CHECK(s, tti_health_verdicts(s->ranks[0].health) == 0);
    s->ranks[2].door.frozen = s->ranks[3].door.frozen = false;
    sleep_ms(s, 6 * BEAT_MS);
    CHECK(s, all_are_well(s));
}

/* Something on the way refuses for it, and lets it out. */
static void who_is_heard_behind_a_shut_door_is_well(sim *s)
{
    int i;

    s->ranks[1].died = true; /* for its doorman */
    for (i = 0; i < 10; i++) {
        sleep_ms(s, BEAT_MS);
        CHECK(s, all_see(s, 1, -1, TTI_LIFE_WELL));
    }
}

/* Its door is shut, and it will tell why in the store. */
static void who_gives_up_joining_is_nobodys_death(sim *s)
{
    int r;

    s->ranks[1].door.frozen = s->ranks[1].died = true;
    sleep_ms(s, 10 * BEAT_MS);
    CHECK(s, all_see(s, 1, -1, TTI_LIFE_WELL));
    for (r = 0; r < s->n; r++)
        CHECK(s, tti_health_verdicts(s->ranks[r].health) == 0);
    s->ranks[1].door.frozen = false;
}

/* Its kernel takes connections, of whoever makes one; the others hear of it. */
static void who_stops_unheard_is_silent(sim *s)
{
    stop_rank(s, 1, true);
    sleep_ms(s, 4 * BEAT_MS);
    CHECK(s, all_see(s, 1, -1, TTI_LIFE_MUTE));
    stop_rank(s, 1, false);
    sleep_ms(s, 6 * BEAT_MS);
    CHECK(s, all_are_well(s));
}

static void quiet_worlds_are_well(void **state)
{
    (void)state;
    run(4, 4, nothing_happens);
    run(4, 2, nothing_happens);
    run(8, 1, nothing_happens);
}

static void deaths_flood(void **state)
{
    (void)state;
    run(4, 4, a_death_is_known_to_all);
    run(4, 2, a_death_is_known_to_all);
    run(8, 2, a_death_is_known_to_all);
}

static void speakers_are_followed(void **state)
{
    (void)state;
    run(4, 2, a_speaker_dies_and_the_next_one_goes_on);
    run(8, 2, a_speaker_dies_and_the_next_one_goes_on);
}

static void stopped_ranks_are_told_from_dead_ones(void **state)
{
    (void)state;
    run(3, 3, a_stopped_rank_is_reported_and_heard_again);
    run(4, 2, a_stopped_rank_is_reported_and_heard_again);
    run(8, 2, a_stopped_rank_is_reported_and_heard_again);
    run(4, 2, a_silence_goes_out_at_once);
    run(8, 2, a_silence_goes_out_at_once);
    run(4, 2, a_stopped_speaker_is_not_taken_for_its_host);
    run(8, 2, a_stopped_speaker_is_not_taken_for_its_host);
}

static void whole_hosts_are_told_from_lost_ones(void **state)
{
    (void)state;
    run(6, 3, a_stopped_host_is_mute_for_all);
    run(8, 1, a_stopped_host_is_mute_for_all);
    run(6, 3, a_stopped_host_is_mute_for_the_next_speaker);
}

static void partitions_heal(void **state)
{
    (void)state;
    run(4, 2, a_host_out_of_reach_comes_back);
    run(6, 2, a_host_out_of_reach_comes_back);
    run(2, 1, whose_data_comes_is_well);
}

static void leaving_is_no_death(void **state)
{
    (void)state;
    run(3, 3, who_leaves_is_not_dead);
    run(4, 2, who_leaves_is_not_dead);
    run(4, 1, who_leaves_is_not_dead);
    run(4, 2, a_host_leaves_rank_by_rank);
    run(6, 2, a_host_leaves_rank_by_rank);
    run(4, 2, a_host_leaves_as_one);
    run(4, 2, who_stays_behind_can_die);
    run(4, 2, a_death_is_told_with_a_goodbye);
    run(6, 2, a_death_is_told_with_a_goodbye);
    run(4, 2, a_speakers_death_is_told_with_a_goodbye);
}

static void a_connection_is_no_process(void **state)
{
    (void)state;
    run(4, 2, a_cut_stream_is_no_death);
    run(3, 1, a_cut_stream_is_no_death);
    run(8, 1, a_cut_stream_is_no_death);
    run(3, 1, a_host_that_goes_with_its_process_is_dead);
    run(3, 1, who_dies_out_of_reach_is_found_dead);
    run(6, 1, who_dies_out_of_reach_is_found_dead);
}

static void silence_is_no_proof(void **state)
{
    (void)state;
    run(4, 2, a_knock_that_is_lost_is_no_death);
    run(3, 1, a_knock_that_is_lost_is_no_death);
    run(4, 2, a_long_way_is_no_death);
    run(3, 1, a_knock_is_not_measured_by_a_dial);
    run(4, 2, a_crowded_door_is_no_death);
    run(3, 1, a_crowded_door_is_no_death);
    run(4, 2, a_full_queue_is_no_death);
    run(3, 1, who_cannot_knock_accuses_nobody);
}

static void lateness_is_no_absence(void **state)
{
    (void)state;
    run(2, 1, who_is_always_late_judges_too);
    run(4, 2, who_is_always_late_judges_too);
}

static int  n_sends;
static bool is_closed;

static int64_t send_a_byte(tti_port *port, tti_handle handle, const tti_part *parts, int n)
{
    (void)port, (void)handle, (void)parts, (void)n;
    n_sends++;
    return 1;
}

static void close_it(tti_port *port, tti_handle handle)
{
    (void)port, (void)handle;
    is_closed = true;
}

/* A part of it would say that the stream was cut, by which its rank is suspected. */
static void a_refusal_is_said_as_a_whole(void **state)
{
    static const tti_port_ops ops = { .name = "bytes", .send = send_a_byte, .close = close_it };
    tti_port                  port = { .ops = &ops };

    (void)state;
    n_sends = 0;
    is_closed = false;
    tti_health_refuse(&port, 5);
    assert_int_equal(n_sends, TTI_DIGEST_HEAD_BYTES);
    assert_true(is_closed);
}

static void the_first_moments_are_watched(void **state)
{
    (void)state;
    run(3, 1, who_dies_unheard_is_found_dead);
    run(8, 1, who_dies_unheard_is_found_dead);
    run(4, 2, who_dies_unheard_is_found_dead);
    run(3, 1, who_leaves_unheard_is_not_dead);
    run(8, 1, who_leaves_unheard_is_not_dead);
    run(4, 2, who_leaves_unheard_is_not_dead);
    run(4, 1, who_leaves_unheard_tells_each_host);
    run(4, 2, who_has_a_stream_is_heard_first);
    run(3, 1, who_is_heard_behind_a_shut_door_is_well);
    run(8, 1, who_is_heard_behind_a_shut_door_is_well);
    run_making(3, 1, who_gives_up_joining_is_nobodys_death);
    run_making(8, 1, who_gives_up_joining_is_nobodys_death);
    run(3, 1, who_stops_unheard_is_silent);
    run(8, 1, who_stops_unheard_is_silent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_worlds_are_well),        cmocka_unit_test(deaths_flood),
        cmocka_unit_test(speakers_are_followed),        cmocka_unit_test(stopped_ranks_are_told_from_dead_ones),
        cmocka_unit_test(partitions_heal),              cmocka_unit_test(leaving_is_no_death),
        cmocka_unit_test(a_connection_is_no_process),   cmocka_unit_test(silence_is_no_proof),
        cmocka_unit_test(lateness_is_no_absence),       cmocka_unit_test(the_first_moments_are_watched),
        cmocka_unit_test(whole_hosts_are_told_from_lost_ones), cmocka_unit_test(a_refusal_is_said_as_a_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
