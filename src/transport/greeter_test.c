/* SPDX-License-Identifier: BSD-3-Clause
 *
 * greeter_test.c
 * Goal    however two members begin to connect to each other, one connection is left, the same for both, and
 *         nothing that was sent on it is lost or doubled; the death of one ends the attempts of the others;
 *         strangers are turned away.
 * Method  greeters on hosts of a world of memory, in virtual time: who wants whom and when, and who runs
 *         next, come from a seed. Many seeds, each with members that begin at about the same time. */
#include "transport/tcp/greeter.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/debug.h>
#include <tutti/private.h>
#include "harness/mem_port.h"

enum { SIDES_MAX = 4, STRIPES = 3, SET_MAX = 160, TCP_PORT = 7000, SEEDS = 400, REST_MIN_MS = 20 };

typedef struct scene scene;

/* One member and its ways to the others. */
typedef struct side {
    scene       *scene;
    tti_port    *port;
    tti_greeter *greeter;
    tti_handle   listener;
    int          rank;
    tti_addr     addr;
    int64_t      dies_ns; /* 0: never */
    tti_addr    *detour;  /* where its attempts end up; NULL: with whom they are for */
    int64_t      wants_ns[SIDES_MAX]; /* 0: not by itself */
    tti_way      way[SIDES_MAX];
    tti_handle   streams[SIDES_MAX][STRIPES];
    int64_t      opened_ns[SIDES_MAX];
    int          n_opened[SIDES_MAX], n_lost[SIDES_MAX];
    tti_cause    why[SIDES_MAX];
    int64_t      watch_ns[SIDES_MAX]; /* when it wants a stream for its watch thread; 0: never */
    bool         watches[SIDES_MAX];
    tti_handle   watch[SIDES_MAX][2]; /* made here, or there */
    int          n_watched[SIDES_MAX];
    int          n_shut[SIDES_MAX];
    int          n_reached[SIDES_MAX];
    bool         over;
} side;

struct scene {
    tt_mem_world *world;
    int           n;
    int           n_stripes;
    side          sides[SIDES_MAX];
    int           n_verdicts[3];
    int64_t       slice_ns; /* how often a member looks whether all is over */
    uint64_t      dice;
    uint8_t       host[4];         /* where members listen */
    const tti_secret *secret;      /* NULL: none */
    char          failure[256];
};

static uint64_t roll(scene *s, uint64_t below)
{
    s->dice = s->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (s->dice >> 33) % below;
}

/* Assertions belong to the test's own thread: programs note what went wrong. */
static void check(side *me, bool cond, const char *what, int about)
{
    if (!cond && me->scene->failure[0] == '\0')
        snprintf(me->scene->failure, sizeof me->scene->failure, "rank %d about rank %d: %s", me->rank, about,
                 what);
}

/* ---- hooks ----------------------------------------------------------------------------------------- */

static tti_verdict judge(void *context, int rank, tti_attempt own)
{
    side             *me = context;
    const tti_verdict verdict = tti_judge_rival(me->rank, rank, me->way[rank], own);

    me->scene->n_verdicts[verdict]++;
    if (verdict == TTI_WELCOME_IT)
        me->way[rank] = TTI_WAY_MAKING;
    return verdict;
}

static void opened(void *context, int rank, const tti_handle *streams)
{
    side *me = context;

    check(me, me->way[rank] == TTI_WAY_MAKING, "opened what was not being made", rank);
    me->way[rank] = TTI_WAY_OPEN;
    memcpy(me->streams[rank], streams, (size_t)me->scene->n_stripes * sizeof *streams);
    me->opened_ns[rank] = tti_port_now(me->port);
    me->n_opened[rank]++;
}

static void lost(void *context, int rank, const tti_cause *why)
{
    side *me = context;

    check(me, me->way[rank] == TTI_WAY_MAKING, "lost what was not being made", rank);
    me->way[rank] = TTI_WAY_LOST;
    me->why[rank] = *why;
    me->n_lost[rank]++;
}

static void watched(void *context, int rank, tti_handle stream)
{
    side *me = context;

    check(me, me->n_watched[rank] < 2, "more streams for the watch threads than are wanted", rank);
    if (me->n_watched[rank] < 2)
        me->watch[rank][me->n_watched[rank]++] = stream;
}

static void reached(void *context, int rank)
{
    ((side *)context)->n_reached[rank]++;
}

static void shut(void *context, int rank)
{
    side *me = context;

    me->n_shut[rank]++;
}

static const char *whereabouts(void *context, int rank)
{
    (void)context;
    (void)rank;
    return "host 'x', pid 1";
}

/* ---- a member's program ---------------------------------------------------------------------------- */

static bool is_settled(const side *me)
{
    int j;

    for (j = 0; j < me->scene->n; j++) {
        const side *other = &me->scene->sides[j];
        const bool  wanted = me->wants_ns[j] != 0 || (other->wants_ns[me->rank] != 0 && other->dies_ns == 0);

        if (j != me->rank && wanted && me->way[j] < TTI_WAY_OPEN)
            return false;
        if (me->n_watched[j] < (me->watch_ns[j] != 0) + (other->watch_ns[me->rank] != 0))
            return false;
    }
    return true;
}

static bool all_are_settled(const scene *s)
{
    int i;

    for (i = 0; i < s->n; i++)
        if (!s->sides[i].over && (s->sides[i].dies_ns != 0 || !is_settled(&s->sides[i])))
            return false;
    return true;
}

static void open_side(side *me)
{
    tti_addr           at = { .family = TTI_ADDR_IP4, .port = me->scene->world != NULL ? TCP_PORT : 0 };
    tti_greeter_config config = { .port = me->port, .secret = me->scene->secret, .rank = me->rank, .n_ranks = me->scene->n,
                                  .n_stripes = me->scene->n_stripes, .whereabouts = whereabouts, .hooks = { me, judge, opened, lost, watched, shut, reached } };

    memcpy(at.ip, me->scene->host, sizeof me->scene->host);
    check(me, me->port->ops->listen(me->port, &at, 16, &me->addr, &me->listener) == 0, "listen", -1);
    config.listener = me->listener;
    memset(config.scope, 7, sizeof config.scope);
    check(me, tti_greeter_create(&config, &me->greeter) == TUTTI_OK, "create", -1);
}

static void begin_due(side *me, int64_t now_ns)
{
    int j;

    for (j = 0; j < me->scene->n; j++)
        if (me->wants_ns[j] != 0 && now_ns >= me->wants_ns[j] && me->way[j] == TTI_WAY_NONE) {
            me->way[j] = TTI_WAY_MAKING;
            tti_greeter_connect(me->greeter, j, me->detour != NULL ? me->detour : &me->scene->sides[j].addr);
        }
    for (j = 0; j < me->scene->n; j++)
        if (me->watch_ns[j] != 0 && now_ns >= me->watch_ns[j] && !me->watches[j]) {
            me->watches[j] = true;
            tti_greeter_watch(me->greeter, j, &me->scene->sides[j].addr);
            tti_greeter_watch(me->greeter, j, &me->scene->sides[j].addr); /* one at a time */
        }
}

static void turn(side *me, int64_t until_ns)
{
    tti_poll set[SET_MAX];
    int64_t  greeter_ns;
    int      n;

    if (tti_greeter_room(me->greeter) > SET_MAX) {
        check(me, false, "too many connections", -1);
        return;
    }
    n = tti_greeter_fill(me->greeter, set, &greeter_ns);
    me->port->ops->poll(me->port, set, n, greeter_ns < until_ns ? greeter_ns : until_ns);
    tti_greeter_turn(me->greeter, set, n);
}

static bool wait_ready(side *me, tti_handle stream, uint8_t want)
{
    tti_poll poll = { .handle = stream, .want = want };

    return me->port->ops->poll(me->port, &poll, 1, tti_port_now(me->port) + TTI_SECOND) > 0;
}

/* What one end of a connection sends is what the other end gets, and then the end. */
static void exchange(side *me, int peer, int stripe)
{
    const tti_handle stream = me->streams[peer][stripe];
    const uint8_t    out[3] = { (uint8_t)me->rank, (uint8_t)peer, (uint8_t)stripe };
    uint8_t          in[3] = { 255, 255, 255 };
    size_t           have = 0;
    int64_t          n;

    check(me, me->port->ops->send(me->port, stream, &(tti_part){ out, 3 }, 1) == 3, "send", peer);
    while (have < 3 && wait_ready(me, stream, TTI_READ)) {
        n = me->port->ops->recv(me->port, stream, in + have, 3 - have);
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    check(me, have == 3 && in[0] == peer && in[1] == me->rank && in[2] == stripe, "another message came, or none",
          peer);
}

static void no_streams(side *me)
{
    int j, k;

    for (j = 0; j < SIDES_MAX; j++)
        for (k = 0; k < STRIPES; k++)
            me->streams[j][k] = TTI_NO_HANDLE;
}

static void close_streams(side *me, int peer)
{
    int k;

    for (k = 0; k < STRIPES; k++)
        me->port->ops->close(me->port, me->streams[peer][k]);
    for (k = 0; k < me->n_watched[peer]; k++)
        me->port->ops->close(me->port, me->watch[peer][k]);
}

static void close_side(side *me)
{
    int j;

    me->over = true;
    tti_greeter_free(me->greeter);
    me->port->ops->close(me->port, me->listener);
    for (j = 0; j < me->scene->n; j++)
        if (me->dies_ns != 0)
            close_streams(me, j);
}

static void side_main(void *arg)
{
    side  *me = arg;
    scene *s = me->scene;
    int    j, k;

    open_side(me);
    while (!all_are_settled(s) && s->failure[0] == '\0') {
        const int64_t now_ns = tti_port_now(me->port);

        if (me->dies_ns != 0 && now_ns >= me->dies_ns)
            break;
        check(me, now_ns < 200 * TTI_SECOND, "what is wanted is not there, or lost", -1);
        begin_due(me, now_ns);
        turn(me, now_ns + s->slice_ns + (int64_t)roll(s, 30000));
    }
    for (j = 0; j < s->n && me->dies_ns == 0 && s->failure[0] == '\0'; j++)
        if (me->way[j] == TTI_WAY_OPEN && s->sides[j].dies_ns == 0)
            for (k = 0; k < s->n_stripes; k++)
                exchange(me, j, k);
    close_side(me);
}

/* ---- scenes ---------------------------------------------------------------------------------------- */

static void begin_scene(scene *s, uint64_t seed, int n)
{
    char name[16];
    int  i;

    memset(s, 0, sizeof *s);
    s->world = tt_mem_world_new(seed);
    s->n = n;
    s->n_stripes = 1;
    s->dice = seed * 2654435761u + 1;
    s->slice_ns = 20000;
    for (i = 0; i < n; i++) {
        side *me = &s->sides[i];

        snprintf(name, sizeof name, "h%d", i);
        *me = (side){ .scene = s, .rank = i, .port = tt_mem_host(s->world, name) };
        no_streams(me);
        tt_mem_spawn(s->world, name, 0, side_main, me);
    }
}

static void run_scene(scene *s, uint64_t seed)
{
    int i, j;

    tt_mem_run(s->world);
    if (s->failure[0] != '\0')
        fail_msg("seed %llu: %s", (unsigned long long)seed, s->failure);
    for (i = 0; i < s->n; i++)
        for (j = 0; j < s->n; j++)
            if (s->sides[i].dies_ns == 0)
                close_streams(&s->sides[i], j);
    tt_mem_world_free(s->world);
}

/* Within a few round trips of each other. */
static int64_t soon(scene *s)
{
    return TTI_SECOND + TTI_MS + (int64_t)roll(s, 12) * 50000 + (int64_t)roll(s, 3);
}

static void one_connection_is_left(void **state)
{
    int      seen[3] = { 0, 0, 0 };
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= SEEDS; seed++) {
        scene s;
        int   i, j;

        begin_scene(&s, seed, 2 + (int)(seed % (SIDES_MAX - 1)));
        s.n_stripes = 1 + (int)(seed / 3 % STRIPES);
        for (i = 0; i < s.n; i++)
            for (j = 0; j < s.n; j++)
                if (i != j && roll(&s, 4) != 0)
                    s.sides[i].wants_ns[j] = soon(&s);
        for (i = 0; i < s.n; i++) /* beside the ways, whatever becomes of those */
            for (j = 0; j < s.n; j++)
                if (i != j && roll(&s, 3) == 0)
                    s.sides[i].watch_ns[j] = soon(&s);
        run_scene(&s, seed);
        for (i = 0; i < s.n; i++)
            for (j = 0; j < s.n; j++) {
                const bool wanted = s.sides[i].wants_ns[j] != 0 || s.sides[j].wants_ns[i] != 0;

                assert_int_equal(s.sides[i].n_opened[j], wanted ? 1 : 0);
                assert_int_equal(s.sides[i].n_lost[j], 0);
                assert_int_equal(s.sides[i].n_watched[j],
                                 (s.sides[i].watch_ns[j] != 0) + (s.sides[j].watch_ns[i] != 0));
            }
        for (i = 0; i < 3; i++)
            seen[i] += s.n_verdicts[i];
    }
    assert_true(seen[TTI_WELCOME_IT] > 0 && seen[TTI_HOLD_IT] > 0); /* rivals did meet */
}

static void a_death_ends_the_attempts(void **state)
{
    int      n_lost = 0;
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= SEEDS; seed++) {
        scene s;
        int   i;

        begin_scene(&s, seed, 3);
        s.n_stripes = 1 + (int)(seed % STRIPES);
        s.sides[1].dies_ns = soon(&s);
        for (i = 0; i < 3; i++) {
            if (i != 1)
                s.sides[i].wants_ns[1] = soon(&s);
            s.sides[1].wants_ns[i] = i != 1 && roll(&s, 2) != 0 ? soon(&s) : 0;
        }
        s.sides[0].wants_ns[2] = s.sides[2].wants_ns[0] = soon(&s);
        run_scene(&s, seed);
        for (i = 0; i < 3; i += 2) {
            const side *me = &s.sides[i];

            assert_int_equal(me->n_opened[1] + me->n_lost[1], 1);
            if (me->n_lost[1] != 0) {
                assert_int_equal(me->why[1].status, TUTTI_E_PEER);
                assert_non_null(strstr(me->why[1].words, "rank 1"));
            }
            n_lost += me->n_lost[1];
            assert_int_equal(me->n_opened[2 - i], 1);
        }
    }
    assert_true(n_lost > 0);
}

/* The kernel knows no owner of an end that was closed. */
static int nobody_is_there(tti_port *port, tti_handle handle, tti_peer_cred *cred_out)
{
    (void)port;
    (void)handle;
    (void)cred_out;
    return -ENOTCONN;
}

static int on_loopback(tti_port *port, tti_handle handle, tti_addr *addr_out)
{
    (void)port;
    (void)handle;
    *addr_out = (tti_addr){ .family = TTI_ADDR_IP4, .port = TCP_PORT, .ip = { 127, 0, 0, 1 } };
    return 0;
}

static tti_port_ops usual;
static size_t       n_told; /* bytes that rank 0 has sent */

static int64_t count_sent(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    const int64_t n = usual.send(port, handle, parts, n_parts);

    n_told += n > 0 ? (size_t)n : 0;
    return n;
}

/* Who has had rank 0's proof may have welcomed it, sent what it had to send, and left. */
static int leaves_when_it_can(tti_port *port, tti_handle handle, tti_peer_cred *cred_out)
{
    (void)port;
    (void)handle;
    *cred_out = (tti_peer_cred){ .uid = (int64_t)geteuid() };
    return n_told > TTI_HELLO_CLIENT_BYTES ? -ENOTCONN : 0;
}

/* Rank 0, whose job has no secret, asks whose end of the connection that is while the other one waits for it: what that one sends right
 * behind its welcome, before it leaves, is not lost. */
static void who_leaves_behind_a_welcome_is_heard(void **state)
{
    tti_port_ops ops;
    scene        s;
    side        *me = &s.sides[0];

    (void)state;
    begin_scene(&s, 5, 2);
    n_told = 0;
    ops = usual = *me->port->ops;
    ops.local_addr = on_loopback;
    ops.peer_cred = leaves_when_it_can;
    ops.send = count_sent;
    me->port->ops = &ops;
    me->wants_ns[1] = soon(&s);
    run_scene(&s, 5);
    assert_int_equal(me->n_lost[1], 0);
    assert_int_equal(me->n_opened[1], 1);
}

/* It has answered rank 0, and has closed the connection before rank 0 asks whose end that is: it is asked again, has left, and is no
 * stranger. */
static void who_leaves_before_a_welcome_has_left(void **state)
{
    tti_port_ops ops;
    scene        s;
    side        *me = &s.sides[0];

    (void)state;
    begin_scene(&s, 5, 2);
    ops = *me->port->ops;
    ops.local_addr = on_loopback;
    ops.peer_cred = nobody_is_there;
    me->port->ops = &ops;
    me->wants_ns[1] = soon(&s);
    s.sides[1].dies_ns = me->wants_ns[1] + TTI_SECOND / 10;
    run_scene(&s, 5);
    assert_int_equal(me->n_lost[1], 1);
    assert_int_equal(me->n_opened[1], 0);
    assert_int_equal(me->why[1].status, TUTTI_E_PEER);
    assert_non_null(strstr(me->why[1].words, "rank 1 (host 'x', pid 1) has left or died: nobody listens at "));
}

static int n_overtaken; /* accepted connections whose other end is closed before anybody asks whose it is */

static int some_are_nobodys(tti_port *port, tti_handle handle, tti_peer_cred *cred_out)
{
    (void)port;
    (void)handle;
    *cred_out = (tti_peer_cred){ .uid = (int64_t)geteuid() };
    return n_overtaken > 0 ? (n_overtaken--, -ENOTCONN) : 0;
}

typedef struct told {
    int strangers, ended;
} told;

static void note_told(tutti_log_level level, const char *line, void *ctx)
{
    told *t = ctx;

    t->strangers += strstr(line, "stranger") != NULL;
    t->ended += level == TUTTI_LOG_INFO && strstr(line, "ended before their hello was over: 1") != NULL;
}

/* It knocks, or has been overtaken by another one: nobody is warned of what may be a rank's own. */
static void who_is_gone_before_it_is_asked_is_no_stranger(void **state)
{
    tti_port_ops ops;
    told         t = { 0 };
    scene        s;

    (void)state;
    begin_scene(&s, 5, 2);
    ops = *s.sides[1].port->ops;
    ops.local_addr = on_loopback;
    ops.peer_cred = some_are_nobodys;
    s.sides[1].port->ops = &ops;
    s.sides[0].wants_ns[1] = soon(&s);
    n_overtaken = 2;
    setenv("TUTTI_LOG", "info", 1);
    assert_int_equal(tutti_log_set_sink("test", note_told, &t), TUTTI_OK);
    run_scene(&s, 5);
    assert_int_equal(tutti_log_set_sink("test", NULL, NULL), TUTTI_OK);
    unsetenv("TUTTI_LOG");
    assert_int_equal(n_overtaken, 0);
    assert_int_equal(t.strangers, 0);
    assert_int_equal(t.ended, 1); /* the other one is counted */
    assert_int_equal(s.sides[0].n_opened[1], 1);
    assert_int_equal(s.sides[1].n_opened[0], 1);
}

static int   n_cut; /* connections that are cut as soon as they are made */
static int (*look)(tti_port *port, tti_handle handle); /* the port's own */

static int cut_some(tti_port *port, tti_handle handle)
{
    const int err = look(port, handle);

    return err == 0 && n_cut > 0 ? (n_cut--, -ECONNRESET) : err;
}

/* Rank 0's first two connections to rank 1, which lives, are cut before rank 0 has seen that they were made: that nobody listens there is
 * not what this says. */
static void a_connection_that_is_cut_is_made_again(void **state)
{
    tti_port_ops ops;
    scene        s;
    side        *me = &s.sides[0];

    (void)state;
    begin_scene(&s, 6, 2);
    ops = *me->port->ops;
    look = ops.connect_result;
    ops.connect_result = cut_some;
    me->port->ops = &ops;
    me->wants_ns[1] = soon(&s);
    n_cut = 2;
    run_scene(&s, 6);
    assert_int_equal(n_cut, 0);
    assert_int_equal(me->n_lost[1], 0);
    assert_int_equal(me->n_opened[1], 1);
}

/* ---- what is not a member -------------------------------------------------------------------------- */

typedef struct stranger {
    tti_port   *port;
    tti_addr    to;
    const char *says;
    int64_t     ended_ns; /* when the stream was closed on it */
    bool        got_bytes;
} stranger;

static void stranger_main(void *arg)
{
    stranger  *me = arg;
    tti_handle stream = TTI_NO_HANDLE;
    tti_poll   poll;
    uint8_t    in[64];

    if (me->port->ops->connect(me->port, &me->to, &stream) != 0)
        return;
    poll = (tti_poll){ .handle = stream, .want = TTI_WRITE };
    me->port->ops->poll(me->port, &poll, 1, TTI_FOREVER);
    if (me->says[0] != '\0')
        me->port->ops->send(me->port, stream, &(tti_part){ me->says, strlen(me->says) }, 1);
    poll.want = TTI_READ;
    me->port->ops->poll(me->port, &poll, 1, tti_port_now(me->port) + 300 * TTI_SECOND);
    me->got_bytes = me->port->ops->recv(me->port, stream, in, sizeof in) > 0;
    me->ended_ns = tti_port_now(me->port);
    me->port->ops->close(me->port, stream);
}

static void strangers_disturb_nobody(void **state)
{
    stranger loud = { .says = "GET / HTTP/1.1\r\n\r\n" }, silent = { .says = "" };
    scene    s;

    (void)state;
    begin_scene(&s, 1, 2);
    s.sides[0].wants_ns[1] = 100 * TTI_SECOND; /* so that the world lasts that long */
    s.slice_ns = 10 * TTI_MS;
    loud.port = silent.port = tt_mem_host(s.world, "else");
    loud.to = silent.to = (tti_addr){ .family = TTI_ADDR_IP4, .port = TCP_PORT, .ip = { 10, 0, 0, 2 } };
    tt_mem_spawn(s.world, "loud", 2 * TTI_SECOND, stranger_main, &loud);
    tt_mem_spawn(s.world, "silent", 2 * TTI_SECOND, stranger_main, &silent);
    run_scene(&s, 1);
    assert_int_equal(s.sides[0].n_opened[1], 1);
    assert_int_equal(s.sides[1].n_opened[0], 1);
    assert_true(loud.ended_ns < 3 * TTI_SECOND && !loud.got_bytes);
    assert_true(silent.ended_ns < 60 * TTI_SECOND && !silent.got_bytes);
}

/* A byte every ten seconds, all of them right. */
static void slow_main(void *arg)
{
    stranger  *me = arg;
    tti_handle stream = TTI_NO_HANDLE;
    tti_poll   poll = { .want = TTI_READ };
    uint8_t    in[8];
    size_t     i;

    if (me->port->ops->connect(me->port, &me->to, &stream) != 0)
        return;
    poll.handle = stream;
    for (i = 0; poll.got == 0 && i < strlen(me->says); i++) {
        me->port->ops->poll(me->port, &poll, 1, tti_port_now(me->port) + 10 * TTI_SECOND);
        if (poll.got == 0)
            me->port->ops->send(me->port, stream, &(tti_part){ me->says + i, 1 }, 1);
    }
    me->port->ops->poll(me->port, &poll, 1, tti_port_now(me->port) + 300 * TTI_SECOND);
    me->got_bytes = me->port->ops->recv(me->port, stream, in, sizeof in) > 0;
    me->ended_ns = tti_port_now(me->port);
    me->port->ops->close(me->port, stream);
}

static void a_slow_stranger_does_not_stay(void **state)
{
    stranger slow = { .says = "TUTI\1" };
    scene    s;

    (void)state;
    begin_scene(&s, 1, 2);
    s.sides[0].wants_ns[1] = 120 * TTI_SECOND; /* so that the world lasts that long */
    s.slice_ns = 10 * TTI_MS;
    slow.port = tt_mem_host(s.world, "else");
    slow.to = (tti_addr){ .family = TTI_ADDR_IP4, .port = TCP_PORT, .ip = { 10, 0, 0, 2 } };
    tt_mem_spawn(s.world, "slow", 2 * TTI_SECOND, slow_main, &slow);
    run_scene(&s, 1);
    assert_int_equal(s.sides[0].n_opened[1], 1);
    assert_true(slow.ended_ns < 40 * TTI_SECOND && !slow.got_bytes);
}

/* As many as may be under way at once, and twice as many again behind them. */
static void crowd_main(void *arg)
{
    stranger  *me = arg;
    tti_handle streams[200];
    int        i;

    for (i = 0; i < 200; i++)
        if (me->port->ops->connect(me->port, &me->to, &streams[i]) != 0)
            streams[i] = TTI_NO_HANDLE;
    me->port->ops->sleep_until(me->port, 100 * TTI_SECOND);
    for (i = 0; i < 200; i++)
        me->port->ops->close(me->port, streams[i]);
}

static void count_warnings(tutti_log_level level, const char *line, void *ctx)
{
    if (level == TUTTI_LOG_WARN && strstr(line, "turned away") != NULL)
        ++*(int *)ctx;
}

static void a_silent_crowd_makes_room(void **state)
{
    stranger crowd = { .says = "" };
    int      warnings = 0;
    scene    s;

    (void)state;
    begin_scene(&s, 1, 2);
    s.sides[0].wants_ns[1] = 3 * TTI_SECOND;
    s.slice_ns = 10 * TTI_MS;
    crowd.port = tt_mem_host(s.world, "else");
    crowd.to = (tti_addr){ .family = TTI_ADDR_IP4, .port = TCP_PORT, .ip = { 10, 0, 0, 2 } };
    tt_mem_spawn(s.world, "crowd", 2 * TTI_SECOND, crowd_main, &crowd);
    assert_int_equal(tutti_log_set_sink("test", count_warnings, &warnings), TUTTI_OK);
    run_scene(&s, 1);
    assert_int_equal(tutti_log_set_sink("test", NULL, NULL), TUTTI_OK);
    assert_in_range(warnings, 1, 4); /* 200 strangers within 20 s */
    assert_int_equal(s.sides[0].n_opened[1], 1);
    assert_true(s.sides[0].opened_ns[1] < 4 * TTI_SECOND); /* nobody waits for the crowd to go */
}

/* ---- a member that is pushed out -------------------------------------------------------------------- */

/* Rank 1's door, where the first connections are closed as those of strangers are when too many have come. */
typedef struct door {
    side             *me;
    const tti_secret *secret;
    int               n_pushed; /* how many are to be closed */
    int               n_came;
    tti_handle        stream;   /* of the one that talks; TTI_NO_HANDLE: none */
    tti_hello         hello;
} door;

static int64_t step_hello(door *d)
{
    tti_port *port = d->me->port;
    uint8_t   in[TTI_HELLO_SERVER_BYTES];
    tti_part  part;
    int64_t   n;

    part.data = tti_hello_output(&d->hello, &part.size);
    if (part.size > 0) {
        n = port->ops->send(port, d->stream, &part, 1);
        if (n > 0)
            tti_hello_sent(&d->hello, (size_t)n);
        return n;
    }
    n = port->ops->recv(port, d->stream, in, tti_hello_wants(&d->hello));
    if (n > 0)
        check(d->me, tti_hello_feed(&d->hello, in, (size_t)n) == TUTTI_OK, "a hello that is not believed", 0);
    return n;
}

/* The client has said its last word, the proof, or with TLS the one behind it; the server has not read that. */
static bool has_said_all(door *d)
{
    tti_poll poll = { .handle = d->stream, .want = TTI_READ };
    size_t   bytes;

    if (tti_hello_output(&d->hello, &bytes) != NULL)
        return false;
    if (tti_hello_seal(&d->hello) != TTI_SEAL_NONE ? !tti_hello_done(&d->hello)
                                                   : tti_hello_wants(&d->hello) != TTI_HELLO_FINISH_BYTES)
        return false;
    return d->me->port->ops->poll(d->me->port, &poll, 1, 0) == 1;
}

static void open_door(door *d)
{
    tti_hello_config config = { .purpose = TTI_PURPOSE_PEER, .rank = (uint32_t)d->me->rank, .secret = d->secret };

    d->stream = d->me->port->ops->accept(d->me->port, d->me->listener, NULL);
    if (d->stream < 0) {
        d->stream = TTI_NO_HANDLE;
        return;
    }
    d->n_came++;
    memset(config.scope, 7, sizeof config.scope);
    tti_hello_begin(&d->hello, d->me->port, &config);
}

/* One step of the door; false: the greeter has it from now on. */
static bool turn_door(door *d, int64_t until_ns)
{
    tti_poll poll = { .handle = d->stream != TTI_NO_HANDLE ? d->stream : d->me->listener, .want = TTI_READ };

    if (d->stream == TTI_NO_HANDLE && d->n_came == d->n_pushed)
        return false;
    if (d->me->port->ops->poll(d->me->port, &poll, 1, until_ns) == 0)
        return true;
    if (d->stream == TTI_NO_HANDLE) {
        open_door(d);
        return true;
    }
    while (!has_said_all(d))
        if (step_hello(d) <= 0)
            return true;
    d->me->port->ops->close(d->me->port, d->stream);
    d->stream = TTI_NO_HANDLE;
    return true;
}

static void pushing_main(void *arg)
{
    door        *d = arg;
    side        *me = d->me;
    const int64_t limit_ns = 9 * TTI_SECOND;

    open_side(me);
    while (me->scene->sides[0].way[1] < TTI_WAY_OPEN && turn_door(d, tti_port_now(me->port) + TTI_MS))
        check(me, tti_port_now(me->port) < limit_ns, "nobody came", 0);
    while (me->scene->sides[0].way[1] < TTI_WAY_OPEN && me->scene->failure[0] == '\0')
        turn(me, tti_port_now(me->port) + TTI_MS);
    close_side(me);
}

static void pushed_main(void *arg)
{
    side *me = arg;

    open_side(me);
    me->way[1] = TTI_WAY_MAKING;
    tti_greeter_connect(me->greeter, 1, &me->scene->sides[1].addr);
    while (me->way[1] == TTI_WAY_MAKING && me->scene->failure[0] == '\0')
        turn(me, tti_port_now(me->port) + TTI_SECOND);
    close_side(me);
}

/* Its ranks, each on a host of its own; rank 1 has a door. */
static void set_sides(scene *s)
{
    char name[16];
    int  i;

    for (i = 0; i < s->n; i++) {
        snprintf(name, sizeof name, "h%d", i);
        s->sides[i] = (side){ .scene = s, .rank = i, .port = tt_mem_host(s->world, name) };
        no_streams(&s->sides[i]);
    }
    s->sides[1].addr = (tti_addr){ .family = TTI_ADDR_IP4, .port = TCP_PORT, .ip = { 10, 0, 0, 2 } };
}

/* What becomes of rank 0 where the first n_pushed of its connections are closed behind its proof. */
static void push_out(scene *s, door *d, int n_pushed)
{
    *s = (scene){ .n = 2, .n_stripes = 1, .world = tt_mem_world_new(1) };
    set_sides(s);
    *d = (door){ .me = &s->sides[1], .n_pushed = n_pushed, .stream = TTI_NO_HANDLE };
    tt_mem_spawn(s->world, "pushing", 0, pushing_main, d);
    tt_mem_spawn(s->world, "pushed", 2 * TTI_SECOND, pushed_main, &s->sides[0]);
    run_scene(s, 1);
}

/* Its proof was sent, and not read: it cannot know more than that, and lets the crowd pass before it tries again. */
static void who_is_pushed_out_comes_again(void **state)
{
    scene s;
    door  d;

    (void)state;
    push_out(&s, &d, 3);
    assert_int_equal(d.n_came, 3);
    assert_int_equal(s.sides[0].n_lost[1], 0);
    assert_int_equal(s.sides[0].n_opened[1], 1);
    assert_in_range(s.sides[0].opened_ns[1] - 2 * TTI_SECOND, 60 * TTI_MS, 400 * TTI_MS);
}

/* However often: that a rank has died is another's to say. */
static void a_door_that_closes_is_no_death(void **state)
{
    scene s;
    door  d;

    (void)state;
    push_out(&s, &d, 1000);
    assert_in_range(d.n_came, 5, 20);
    assert_int_equal(s.sides[0].n_lost[1], 1);
    assert_int_equal(s.sides[0].why[1].status, TUTTI_E_NETWORK);
    assert_null(strstr(s.sides[0].why[1].words, "died"));
    assert_non_null(strstr(s.sides[0].why[1].words, "ended before they were welcomed"));
}

/* From the member's own address, so many in each millisecond, for a while: less than a hello takes push out all others. */
typedef struct flood {
    tti_port *port;
    tti_addr  to;
    int       rate;
    int64_t   until_ns;
} flood;

static void flood_main(void *arg)
{
    enum { KEPT = 150 };
    const flood *f = arg;
    tti_handle   streams[KEPT];
    int          i, n = 0;

    for (i = 0; i < KEPT; i++)
        streams[i] = TTI_NO_HANDLE;
    while (tti_port_now(f->port) < f->until_ns) {
        for (i = 0; i < f->rate; i++, n++) {
            f->port->ops->close(f->port, streams[n % KEPT]);
            if (f->port->ops->connect(f->port, &f->to, &streams[n % KEPT]) != 0)
                streams[n % KEPT] = TTI_NO_HANDLE;
        }
        f->port->ops->sleep_until(f->port, tti_port_now(f->port) + TTI_MS);
    }
    for (i = 0; i < KEPT; i++)
        f->port->ops->close(f->port, streams[i]);
}

static void floods_are_outlived(void **state)
{
    int rate;

    (void)state;
    for (rate = 8; rate <= 20; rate += 6) {
        flood f = { .rate = rate, .until_ns = 2 * TTI_SECOND + 150 * TTI_MS };
        scene s;

        begin_scene(&s, (uint64_t)rate, 2);
        tt_mem_latency(s.world, 2 * TTI_MS);
        s.slice_ns = 2 * TTI_MS;
        s.sides[0].wants_ns[1] = 2 * TTI_SECOND + 30 * TTI_MS;
        f.port = tt_mem_host(s.world, "h0");
        f.to = (tti_addr){ .family = TTI_ADDR_IP4, .port = TCP_PORT, .ip = { 10, 0, 0, 2 } };
        tt_mem_spawn(s.world, "flood", 2 * TTI_SECOND, flood_main, &f);
        run_scene(&s, (uint64_t)rate);
        assert_int_equal(s.sides[0].n_lost[1], 0);
        assert_int_equal(s.sides[0].n_opened[1], 1);
        if (rate > 12) /* it was pushed out at least once */
            assert_true(s.sides[0].opened_ns[1] > s.sides[0].wants_ns[1] + REST_MIN_MS * TTI_MS);
    }
}

/* The same with TLS, which worlds of memory do not have: over loopback, all of it on this thread. */
static void pushed_out_of_tls(void **state)
{
    const tti_secret secret = { .present = true, .seal = TTI_SEAL_KEY, .padded = { 1, 2, 3 } };
    tti_port        *port = tti_port_system();
    const int64_t    limit_ns = tti_deadline(port, 20000, 0);
    scene            s = { .n = 2, .n_stripes = 1, .host = { 127, 0, 0, 1 }, .secret = &secret };
    door             d = { .me = &s.sides[1], .secret = &secret, .n_pushed = 2, .stream = TTI_NO_HANDLE };
    int              i;

    (void)state;
    for (i = 0; i < 2; i++) {
        s.sides[i] = (side){ .scene = &s, .rank = i, .port = port };
        no_streams(&s.sides[i]);
        open_side(&s.sides[i]);
    }
    s.sides[0].way[1] = TTI_WAY_MAKING;
    tti_greeter_connect(s.sides[0].greeter, 1, &s.sides[1].addr);
    while (s.sides[0].way[1] == TTI_WAY_MAKING && s.failure[0] == '\0' && tti_port_now(port) < limit_ns) {
        turn(&s.sides[0], tti_port_now(port) + TTI_MS);
        if (!turn_door(&d, tti_port_now(port) + TTI_MS))
            turn(&s.sides[1], tti_port_now(port) + TTI_MS);
    }
    assert_string_equal(s.failure, "");
    assert_int_equal(d.n_came, 2);
    assert_int_equal(s.sides[0].n_lost[1], 0);
    assert_int_equal(s.sides[0].n_opened[1], 1);
    for (i = 0; i < 2; i++) {
        close_side(&s.sides[i]);
        close_streams(&s.sides[i], 1 - i);
    }
}

/* A host of a net of IPv6, which has as many addresses as it likes: one for each connection. */
typedef struct many {
    tt_mem_world *world;
    tti_port     *port;
    tti_addr      to;
} many;

static void many_main(void *arg)
{
    enum { CONNECTIONS = 200 };
    const many *m = arg;
    tti_handle  streams[CONNECTIONS];
    int         i;

    for (i = 0; i < CONNECTIONS; i++) {
        const tti_addr at = { .family = TTI_ADDR_IP6, .ip = { 0x20, 1, 0xd, 0xb8, [15] = (uint8_t)i } };

        tt_mem_place(m->world, "many", &at);
        if (m->port->ops->connect(m->port, &m->to, &streams[i]) != 0)
            streams[i] = TTI_NO_HANDLE;
        if (i % 10 == 9)
            m->port->ops->sleep_until(m->port, tti_port_now(m->port) + TTI_MS);
    }
    m->port->ops->sleep_until(m->port, 100 * TTI_SECOND);
    for (i = 0; i < CONNECTIONS; i++)
        m->port->ops->close(m->port, streams[i]);
}

/* It has the part of one, so that who comes from elsewhere keeps its time. */
static void many_addresses_of_one_have_one_part(void **state)
{
    stranger other = { .says = "" };
    scene    s;
    many     m;

    (void)state;
    begin_scene(&s, 1, 2);
    s.sides[0].wants_ns[1] = 60 * TTI_SECOND; /* so that the world lasts that long */
    s.slice_ns = 10 * TTI_MS;
    other.port = tt_mem_host(s.world, "else");
    other.to = (tti_addr){ .family = TTI_ADDR_IP4, .port = TCP_PORT, .ip = { 10, 0, 0, 2 } };
    m = (many){ .world = s.world, .port = tt_mem_host(s.world, "many"), .to = other.to };
    tt_mem_spawn(s.world, "other", 2 * TTI_SECOND, stranger_main, &other);
    tt_mem_spawn(s.world, "many", 3 * TTI_SECOND, many_main, &m);
    run_scene(&s, 1);
    assert_int_equal(s.sides[0].n_opened[1], 1);
    assert_true(other.ended_ns > 31 * TTI_SECOND);
}

/* Something in between takes what rank 0 sends to rank 1, says nothing, and closes. */
typedef struct trap {
    tti_port *port;
    tti_addr  at;
} trap;

static void trap_main(void *arg)
{
    trap          *me = arg;
    const tti_addr at = { .family = TTI_ADDR_IP4, .port = TCP_PORT };
    tti_handle     listener = TTI_NO_HANDLE, stream;
    tti_poll       poll = { .want = TTI_READ };

    if (me->port->ops->listen(me->port, &at, 16, &me->at, &listener) != 0)
        return;
    poll.handle = listener;
    me->port->ops->poll(me->port, &poll, 1, 20 * TTI_SECOND);
    stream = me->port->ops->accept(me->port, listener, NULL);
    me->port->ops->sleep_until(me->port, 5 * TTI_SECOND);
    me->port->ops->close(me->port, stream);
    me->port->ops->close(me->port, listener);
}

static void who_waits_takes_the_place_of_a_lost_attempt(void **state)
{
    trap  between;
    scene s;

    (void)state;
    begin_scene(&s, 1, 2);
    s.sides[0].wants_ns[1] = 2 * TTI_SECOND;
    s.sides[1].wants_ns[0] = 3 * TTI_SECOND; /* while rank 0's attempt talks */
    between.port = tt_mem_host(s.world, "between");
    s.sides[0].detour = &between.at;
    tt_mem_spawn(s.world, "between", 0, trap_main, &between);
    run_scene(&s, 1);
    assert_int_equal(s.n_verdicts[TTI_HOLD_IT], 1);
    assert_int_equal(s.sides[0].n_opened[1], 1);
    assert_int_equal(s.sides[1].n_opened[0], 1);
    assert_int_equal(s.sides[0].n_lost[1] + s.sides[1].n_lost[0], 0);
}

static void note_word(tutti_log_level level, const char *line, void *ctx)
{
    (void)level;
    if (strstr(line, "rank 1 (host 'x', pid 1) does not answer at 10.0.0.2:7000") != NULL)
        ++*(int *)ctx;
}

/* Host 1 does not answer: one word says so in time, whatever the time-out is. */
static void unanswered_main(void *arg)
{
    scene *s = arg;
    side  *me = &s->sides[0];

    open_side(me);
    me->way[1] = TTI_WAY_MAKING;
    tt_mem_isolate(s->world, "h1", true);
    tti_greeter_connect(me->greeter, 1, &s->sides[1].addr);
    while (tti_port_now(me->port) < 9 * TTI_SECOND)
        turn(me, 9 * TTI_SECOND);
    close_side(me);
}

static void silence_is_told_of(void **state)
{
    scene s = { .n = 2, .n_stripes = 1, .world = tt_mem_world_new(1) };
    int   words = 0;

    (void)state;
    set_sides(&s);
    tt_mem_spawn(s.world, "unanswered", 2 * TTI_SECOND, unanswered_main, &s);
    assert_int_equal(tutti_log_set_sink("test", note_word, &words), TUTTI_OK);
    run_scene(&s, 1);
    assert_int_equal(tutti_log_set_sink("test", NULL, NULL), TUTTI_OK);
    assert_int_equal(words, 1);
    assert_int_equal(s.sides[0].n_lost[1], 0);
}

/* Host 1 does not answer: the attempt can be taken back, and made again later. */
static void withdraw_main(void *arg)
{
    scene *s = arg;
    side  *me = &s->sides[0];

    open_side(me);
    me->way[1] = TTI_WAY_MAKING;
    tt_mem_isolate(s->world, "h1", true);
    tti_greeter_connect(me->greeter, 1, &s->sides[1].addr);
    turn(me, tti_port_now(me->port) + TTI_SECOND);
    check(me, tti_greeter_withdraw(me->greeter, 1), "cannot take it back", 1);
    check(me, !tti_greeter_withdraw(me->greeter, 1), "can take it back twice", 1);
    tt_mem_isolate(s->world, "h1", false);
    tti_greeter_connect(me->greeter, 1, &s->sides[1].addr);
    while (me->way[1] == TTI_WAY_MAKING && tti_port_now(me->port) < 9 * TTI_SECOND)
        turn(me, 9 * TTI_SECOND);
    check(me, me->way[1] == TTI_WAY_OPEN, "not connected", 1);
    close_side(me);
}

static void answer_main(void *arg)
{
    side *me = &((scene *)arg)->sides[1];

    open_side(me);
    while (me->way[0] != TTI_WAY_OPEN && tti_port_now(me->port) < 9 * TTI_SECOND)
        turn(me, 9 * TTI_SECOND);
    close_side(me);
}

static void an_attempt_can_be_withdrawn(void **state)
{
    scene s = { .n = 2, .n_stripes = 1, .world = tt_mem_world_new(1) };

    (void)state;
    set_sides(&s);
    tt_mem_spawn(s.world, "answer", 0, answer_main, &s);
    tt_mem_spawn(s.world, "withdraw", 2 * TTI_SECOND, withdraw_main, &s);
    run_scene(&s, 1);
    assert_int_equal(s.sides[0].n_opened[1], 1);
    assert_int_equal(s.sides[1].n_opened[0], 1);
    assert_int_equal(s.sides[0].n_lost[1], 0);
}

/* Host 1 is out of reach for long: the kernel would wait twice as long each time before it asks again. */
static void back_main(void *arg)
{
    const int64_t back_ns = 40 * TTI_SECOND, limit_ns = back_ns + 3 * TTI_SECOND;
    scene        *s = arg;
    side         *me = &s->sides[0];

    open_side(me);
    me->way[1] = TTI_WAY_MAKING;
    tt_mem_isolate(s->world, "h1", true);
    tti_greeter_connect(me->greeter, 1, &s->sides[1].addr);
    tti_greeter_watch(me->greeter, 1, &s->sides[1].addr);
    while (tti_port_now(me->port) < back_ns)
        turn(me, back_ns);
    check(me, me->n_shut[1] == 0, "no answer is no refusal", 1);
    check(me, me->n_reached[1] == 0, "nobody has answered", 1);
    tt_mem_isolate(s->world, "h1", false);
    while ((me->way[1] == TTI_WAY_MAKING || me->n_watched[1] == 0) && tti_port_now(me->port) < limit_ns)
        turn(me, limit_ns);
    check(me, me->way[1] == TTI_WAY_OPEN && me->n_watched[1] == 1, "not connected", 1);
    check(me, me->n_reached[1] == 1, "its kernel has answered, and that is not told", 1);
    while (!s->sides[1].over)
        turn(me, tti_port_now(me->port) + TTI_MS);
    tti_greeter_watch(me->greeter, 1, &s->sides[1].addr);
    turn(me, tti_port_now(me->port) + TTI_SECOND);
    check(me, me->n_shut[1] == 1, "the door is shut, and that is not told", 1);
    check(me, me->n_reached[1] == 1, "a refusal is no answer", 1);
    close_side(me);
}

static void found_main(void *arg)
{
    side *me = &((scene *)arg)->sides[1];

    open_side(me);
    while ((me->way[0] != TTI_WAY_OPEN || me->n_watched[0] == 0) && tti_port_now(me->port) < 60 * TTI_SECOND)
        turn(me, 60 * TTI_SECOND);
    close_side(me);
}

static void a_host_that_is_back_is_found_soon(void **state)
{
    scene s = { .n = 2, .n_stripes = 1, .world = tt_mem_world_new(1) };

    (void)state;
    set_sides(&s);
    tt_mem_spawn(s.world, "found", 0, found_main, &s);
    tt_mem_spawn(s.world, "back", 2 * TTI_SECOND, back_main, &s);
    run_scene(&s, 1);
}

/* Rank 1 has come, and shut its door, and what it says is held up: that its door is shut is told when it has gone. Somebody
 * from another host concerns nobody. */
static void visited_main(void *arg)
{
    scene *s = arg;
    side  *me = &s->sides[0];

    open_side(me);
    while (tti_port_now(me->port) < 2 * TTI_SECOND)
        turn(me, 2 * TTI_SECOND);
    tti_greeter_watch(me->greeter, 1, &s->sides[1].addr);
    while (tti_port_now(me->port) < 4 * TTI_SECOND)
        turn(me, 4 * TTI_SECOND);
    check(me, me->n_shut[1] == 0, "its door is shut, and it was at this one", 1);
    while (tti_port_now(me->port) < 5 * TTI_SECOND)
        turn(me, 5 * TTI_SECOND);
    check(me, me->n_shut[1] == 1, "its door is shut, and that is not told", 1);
    close_side(me);
}

static void visit(scene *s, int i, int64_t until_ns)
{
    tti_port  *port = s->sides[i].port;
    tti_handle stream = TTI_NO_HANDLE;

    check(&s->sides[i], port->ops->connect(port, &s->sides[0].addr, &stream) == 0, "connect", 0);
    port->ops->sleep_until(port, until_ns);
    port->ops->close(port, stream);
}

static void visitor_main(void *arg)
{
    visit(arg, 1, 4 * TTI_SECOND + TTI_MS);
}

static void another_main(void *arg)
{
    visit(arg, 2, 6 * TTI_SECOND);
}

static void who_has_come_is_heard_first(void **state)
{
    scene s = { .n = 3, .n_stripes = 1, .world = tt_mem_world_new(1) };

    (void)state;
    set_sides(&s);
    tt_mem_spawn(s.world, "visited", 0, visited_main, &s);
    tt_mem_spawn(s.world, "visitor", TTI_SECOND + TTI_SECOND / 2, visitor_main, &s);
    tt_mem_spawn(s.world, "stranger", TTI_SECOND + TTI_SECOND / 2, another_main, &s);
    run_scene(&s, 1);
}

/* Whoever is at this door says nothing for as long as he may stay: that the other one is shut is told soon. */
static void beset_main(void *arg)
{
    scene *s = arg;
    side  *me = &s->sides[0];

    open_side(me);
    while (tti_port_now(me->port) < 2 * TTI_SECOND)
        turn(me, 2 * TTI_SECOND);
    tti_greeter_watch(me->greeter, 1, &s->sides[1].addr);
    while (tti_port_now(me->port) < 6 * TTI_SECOND)
        turn(me, 6 * TTI_SECOND);
    check(me, me->n_shut[1] == 1, "its door is shut, and that is not told", 1);
    close_side(me);
}

static void mute_main(void *arg)
{
    visit(arg, 1, 20 * TTI_SECOND);
}

static void who_says_nothing_keeps_no_secret(void **state)
{
    scene s = { .n = 2, .n_stripes = 1, .world = tt_mem_world_new(1) };

    (void)state;
    set_sides(&s);
    tt_mem_spawn(s.world, "beset", 0, beset_main, &s);
    tt_mem_spawn(s.world, "mute", TTI_SECOND + TTI_SECOND / 2, mute_main, &s);
    run_scene(&s, 1);
}

/* The way is long, and the watch thread asks for a stream more often than one can be had. */
static void impatient_main(void *arg)
{
    const int64_t limit_ns = 4 * TTI_SECOND;
    scene        *s = arg;
    side         *me = &s->sides[0];

    open_side(me);
    tt_mem_latency(s->world, 300 * TTI_MS);
    while (me->n_watched[1] == 0 && tti_port_now(me->port) < limit_ns) {
        const int64_t now_ns = tti_port_now(me->port);

        tti_greeter_watch(me->greeter, 1, &s->sides[1].addr);
        while (tti_port_now(me->port) < now_ns + 100 * TTI_MS && me->n_watched[1] == 0)
            turn(me, now_ns + 100 * TTI_MS);
    }
    check(me, me->n_watched[1] == 1, "no stream for the watch threads", 1);
    close_side(me);
}

static void watched_main(void *arg)
{
    side *me = &((scene *)arg)->sides[1];

    open_side(me);
    while (me->n_watched[0] == 0 && tti_port_now(me->port) < 5 * TTI_SECOND)
        turn(me, 5 * TTI_SECOND);
    close_side(me);
}

static void a_long_way_is_waited_for(void **state)
{
    scene s = { .n = 2, .n_stripes = 1, .world = tt_mem_world_new(1) };

    (void)state;
    set_sides(&s);
    tt_mem_spawn(s.world, "watched", 0, watched_main, &s);
    tt_mem_spawn(s.world, "impatient", TTI_SECOND, impatient_main, &s);
    run_scene(&s, 1);
}

/* Host 1 is back, but the kernel of host 0 still says that there is no way to it; later it says so for longer than anybody
 * should wait for. */
static void way_main(void *arg)
{
    const int64_t back_ns = 4 * TTI_SECOND, limit_ns = back_ns + TTI_SECOND, lost_ns = 30 * TTI_SECOND;
    scene        *s = arg;
    side         *me = &s->sides[0];

    open_side(me);
    me->way[1] = TTI_WAY_MAKING;
    tt_mem_unroute(s->world, "h1", true);
    tti_greeter_connect(me->greeter, 1, &s->sides[1].addr);
    while (tti_port_now(me->port) < back_ns)
        turn(me, back_ns);
    check(me, me->way[1] == TTI_WAY_MAKING, "lost because there was no way just then", 1);
    tt_mem_unroute(s->world, "h1", false);
    while (me->way[1] == TTI_WAY_MAKING && tti_port_now(me->port) < limit_ns)
        turn(me, limit_ns);
    check(me, me->way[1] == TTI_WAY_OPEN, "not connected", 1);
    tt_mem_unroute(s->world, "h1", true);
    me->way[2] = TTI_WAY_MAKING;
    tti_greeter_connect(me->greeter, 2, &s->sides[1].addr);
    while (me->way[2] == TTI_WAY_MAKING && tti_port_now(me->port) < lost_ns)
        turn(me, lost_ns);
    check(me, me->way[2] == TTI_WAY_LOST && tti_port_now(me->port) < lost_ns, "waited for too long for a way", 2);
    close_side(me);
}

static void way_back_main(void *arg)
{
    side *me = &((scene *)arg)->sides[1];

    open_side(me);
    while (me->way[0] != TTI_WAY_OPEN && tti_port_now(me->port) < 60 * TTI_SECOND)
        turn(me, 60 * TTI_SECOND);
    close_side(me);
}

static void who_has_no_way_just_now_waits(void **state)
{
    scene s = { .n = 3, .n_stripes = 1, .world = tt_mem_world_new(1) };
    int   i;

    (void)state;
    for (i = 0; i < 3; i++) {
        s.sides[i] = (side){ .scene = &s, .rank = i, .port = tt_mem_host(s.world, i == 0 ? "h0" : i == 1 ? "h1" : "h2") };
        no_streams(&s.sides[i]);
    }
    s.sides[1].addr = (tti_addr){ .family = TTI_ADDR_IP4, .port = TCP_PORT, .ip = { 10, 0, 0, 2 } };
    tt_mem_spawn(s.world, "back", 0, way_back_main, &s);
    tt_mem_spawn(s.world, "way", 2 * TTI_SECOND, way_main, &s);
    run_scene(&s, 2);
}

/* The rule by itself: of two ends that judge each other's attempt, one holds and one welcomes. */
static void the_rule_is_one_sided(void **state)
{
    (void)state;
    assert_int_equal(tti_judge_rival(0, 1, TTI_WAY_MAKING, TTI_ATTEMPT_TALKS), TTI_HOLD_IT);
    assert_int_equal(tti_judge_rival(1, 0, TTI_WAY_MAKING, TTI_ATTEMPT_TALKS), TTI_WELCOME_IT);
    assert_int_equal(tti_judge_rival(0, 1, TTI_WAY_MAKING, TTI_ATTEMPT_CALLS), TTI_WELCOME_IT);
    assert_int_equal(tti_judge_rival(1, 0, TTI_WAY_MAKING, TTI_ATTEMPT_NONE), TTI_REFUSE_IT);
    assert_int_equal(tti_judge_rival(0, 1, TTI_WAY_NONE, TTI_ATTEMPT_NONE), TTI_WELCOME_IT);
    assert_int_equal(tti_judge_rival(0, 1, TTI_WAY_WANTED, TTI_ATTEMPT_NONE), TTI_WELCOME_IT);
    assert_int_equal(tti_judge_rival(0, 1, TTI_WAY_OPEN, TTI_ATTEMPT_NONE), TTI_REFUSE_IT);
    assert_int_equal(tti_judge_rival(0, 1, TTI_WAY_LOST, TTI_ATTEMPT_NONE), TTI_REFUSE_IT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule_is_one_sided),
        cmocka_unit_test(one_connection_is_left),
        cmocka_unit_test(a_death_ends_the_attempts),
        cmocka_unit_test(who_leaves_behind_a_welcome_is_heard),
        cmocka_unit_test(who_leaves_before_a_welcome_has_left),
        cmocka_unit_test(who_is_gone_before_it_is_asked_is_no_stranger),
        cmocka_unit_test(a_connection_that_is_cut_is_made_again),
        cmocka_unit_test(strangers_disturb_nobody),
        cmocka_unit_test(a_slow_stranger_does_not_stay),
        cmocka_unit_test(a_silent_crowd_makes_room),
        cmocka_unit_test(who_is_pushed_out_comes_again),
        cmocka_unit_test(a_door_that_closes_is_no_death),
        cmocka_unit_test(floods_are_outlived),
        cmocka_unit_test(pushed_out_of_tls),
        cmocka_unit_test(many_addresses_of_one_have_one_part),
        cmocka_unit_test(who_waits_takes_the_place_of_a_lost_attempt),
        cmocka_unit_test(silence_is_told_of),
        cmocka_unit_test(an_attempt_can_be_withdrawn),
        cmocka_unit_test(a_host_that_is_back_is_found_soon),
        cmocka_unit_test(who_has_come_is_heard_first),
        cmocka_unit_test(who_says_nothing_keeps_no_secret),
        cmocka_unit_test(a_long_way_is_waited_for),
        cmocka_unit_test(who_has_no_way_just_now_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
