/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/coll_ranks.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "transport/trouble.h"

enum { KEYS_MAX = 1024, VALUE_MAX = 512, KEY_MAX = 48 };

typedef struct entry {
    char    key[KEY_MAX];
    uint8_t value[VALUE_MAX];
    size_t  bytes;
    int     n_read;
} entry;

typedef struct tt_world {
    tti_mutex         lock; /* guards the entries */
    tti_event         changed;
    pthread_barrier_t here;
    int               n;                 /* of all time */
    entry             entries[KEYS_MAX]; /* the last ones */
    tt_body          *body;
    tt_rank          *ranks;
    tt_setting        setting;
} tt_world;

/* A board is the world's, seen through a prefix. */
typedef struct view {
    tt_world *world;
    char      prefix[16];
    const _Atomic bool *lost; /* NULL; or it takes what is left, and answers nothing before this is so: then it is lost */
} view;

static entry *find(view *v, const char *key, char full[KEY_MAX])
{
    int i;

    snprintf(full, KEY_MAX, "%s%s", v->prefix, key);
    for (i = 0; i < v->world->n && i < KEYS_MAX; i++) {
        entry *at = &v->world->entries[(v->world->n - 1 - i) % KEYS_MAX];

        if (strcmp(at->key, full) == 0)
            return at;
    }
    return NULL;
}

static tutti_status board_put(void *context, const char *key, const void *data, size_t bytes,
                              int64_t deadline_ns)
{
    view        *v = context;
    char         full[KEY_MAX];
    tutti_status st = TUTTI_OK;

    (void)deadline_ns;
    tti_lock(&v->world->lock);
    if (find(v, key, full) != NULL || bytes > VALUE_MAX) {
        st = tti_fail(TUTTI_E_STATE, "cannot put key '%s'", full);
    } else {
        entry *fresh = &v->world->entries[v->world->n++ % KEYS_MAX];

        memcpy(fresh->key, full, sizeof fresh->key);
        memcpy(fresh->value, data, bytes);
        fresh->bytes = bytes;
        fresh->n_read = 0;
    }
    tti_unlock(&v->world->lock);
    tti_event_signal(tti_port_system(), &v->world->changed);
    return st;
}

/* What is said in a host, and what each rank leaves. A roll that was not whole at a look is asked for once more, what has come of it
 * included: on a machine that is busy one more reading would be counted. */
static bool is_awaited_by_all(const char *key)
{
    return strncmp(key, "hand/", 5) == 0 || strncmp(key, "card/", 5) == 0 || strncmp(key, "member/", 7) == 0;
}

static tutti_status board_get(void *context, const char *key, void *out, size_t bytes,
                              int64_t deadline_ns)
{
    view *v = context;
    char  full[KEY_MAX];

    if (v->lost != NULL) {
        while (!atomic_load(v->lost) && tti_port_now(tti_port_system()) < deadline_ns)
            sched_yield();
        return atomic_load(v->lost) ? tti_fail(TUTTI_E_NETWORK, "the board is lost") : tti_fail(TUTTI_E_TIMEOUT, "no answer");
    }
    if (v->world->setting.patient_readers && is_awaited_by_all(key))
        deadline_ns = tt_in_ms(TT_LIMIT_MS);
    for (;;) {
        const uint32_t seen = tti_event_now(&v->world->changed);
        entry         *found;

        tti_lock(&v->world->lock);
        found = find(v, key, full);
        if (found != NULL) {
            memcpy(out, found->value, bytes);
            found->n_read++;
        }
        tti_unlock(&v->world->lock);
        if (found != NULL)
            return TUTTI_OK;
        if (tti_port_now(tti_port_system()) >= deadline_ns)
            return tti_fail(TUTTI_E_TIMEOUT, "key '%s' did not come", full);
        tti_event_wait(tti_port_system(), &v->world->changed, seen, deadline_ns);
    }
}

static tutti_status board_has(void *context, const char *key, int64_t deadline_ns,
                              bool *there_out)
{
    view *v = context;
    char  full[KEY_MAX];

    (void)deadline_ns;
    tti_lock(&v->world->lock);
    *there_out = find(v, key, full) != NULL;
    tti_unlock(&v->world->lock);
    return TUTTI_OK;
}

int tt_count_read(tt_rank *t, const char *begin)
{
    tt_world *world = t->world;
    int       sum = 0, i;

    tti_lock(&world->lock);
    for (i = 0; i < world->n && i < KEYS_MAX; i++)
        if (strncmp(world->entries[i].key, begin, strlen(begin)) == 0)
            sum += world->entries[i].n_read;
    tti_unlock(&world->lock);
    return sum;
}

static double drawn(uint32_t *state, double least, double most)
{
    *state = *state * 1664525u + 1013904223u;
    return least + (most - least) * (*state >> 8) / 0x1p24;
}

tti_machine tt_drawn_machine(uint32_t *state)
{
    tti_machine m = { .line = drawn(state, 20, 5000) };

    m.give = drawn(state, 200, 50000);
    m.copy = drawn(state, 0.005, 2);
    m.copy_far = drawn(state, 0.01, 5);
    m.fetch = drawn(state, 0.01, 5);
    m.combine = drawn(state, 0.005, 5);
    m.pull = drawn(state, 0.01, 5);
    m.pull_call = drawn(state, 100, 50000);
    m.message = drawn(state, 1000, 1e6);
    m.post = drawn(state, 100, 1e5);
    m.wire = drawn(state, 0.02, 50);
    m.cache_bytes = drawn(state, 1e4, 1e8);
    m.near_bytes = drawn(state, 1e3, 1e6);
    m.last_bytes = drawn(state, 1e2, 1e5);
    m.crowd = drawn(state, 0, 16);
    return m;
}

int64_t tt_in_ms(int64_t ms)
{
    return tti_port_now(tti_port_system()) + ms * TTI_MS;
}

tutti_status tt_open(tt_rank *t, uint32_t group_id, int64_t deadline_ns, tti_coll **coll_out)
{
    static const int all[TT_RANKS_MOST] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    view             v = { .world = t->world, .lost = t->board_lost };
    const tti_board  board = { .context = &v, .put = board_put, .get = board_get, .has = board_has };
    const tti_coll_config config = { .mesh = t->mesh, .messenger = t->messenger,
                                     .group_id = group_id, .founds = group_id == 0, .rank = t->rank, .n_ranks = t->size,
                                     .ranks = all, .name = "test", .board = &board,
                                     .deadline_ns = deadline_ns, .machine = t->world->setting.machine,
                                     .patience = t->world->setting.patience,
                                     .cores = t->world->setting.cores };

    snprintf(v.prefix, sizeof v.prefix, "g%u/", group_id);
    if (group_id == 0) { /* others are not left, as the groups of a backend are */
        const tutti_status st = tti_messenger_enter(t->messenger, group_id, all, t->size);

        if (st != TUTTI_OK)
            return st;
    }
    return tti_coll_open(&config, coll_out);
}

/* A look at one handle without waiting: mesh.c asks so for signs of life. */
static int counting_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    if (n == 1 && deadline_ns == 0)
        atomic_fetch_add(&((tt_port *)port)->n_looks, 1);
    return tti_port_system()->ops->poll(tti_port_system(), set, n, deadline_ns);
}

static _Thread_local bool is_rank; /* and not a thread that the library has started for one */

/* Whose wake-up is lost stays away for long, which is counted. */
static void long_wait_word(tti_port *port, const _Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns)
{
    const int64_t until_ns = tt_in_ms(TT_LONG_MS);

    (void)deadline_ns;
    tti_port_system()->ops->wait_word(tti_port_system(), word, seen, until_ns);
    if (is_rank && tt_in_ms(0) >= until_ns)
        atomic_fetch_add(&((tt_port *)port)->n_unended, 1);
}

/* Whoever has the core meanwhile computes for his slice of time. */
static void yield_to_one_who_computes(tti_port *port)
{
    tti_port *system = tti_port_system();

    atomic_fetch_add(&((tt_port *)port)->n_given, 1);
    atomic_fetch_add(&((tt_port *)port)->n_idle, 1);
    system->ops->sleep_until(system, tti_port_now(system) + TT_KEPT_MS * TTI_MS);
}

static void wait_word_and_count(tti_port *port, const _Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns)
{
    atomic_fetch_add(&((tt_port *)port)->n_idle, 1);
    tti_port_system()->ops->wait_word(tti_port_system(), word, seen, deadline_ns);
}

static tti_port *port_of(tt_port *port, const tt_setting *setting)
{
    port->ops = *tti_port_system()->ops;
    port->ops.poll = counting_poll;
    if (setting->fenceless)
        port->ops.fence_join = NULL;
    if (setting->long_sleeps)
        port->ops.wait_word = long_wait_word;
    if (setting->kept) {
        port->ops.yield = yield_to_one_who_computes;
        port->ops.wait_word = wait_word_and_count;
    }
    port->base.ops = &port->ops;
    return &port->base;
}

void tt_await_looks(tt_rank *t, int rank, int n)
{
    _Atomic int *looks = &t->world->ranks[rank].port.n_looks;
    const int    enough = atomic_load(looks) + n;

    while (atomic_load(looks) < enough && tt_in_ms(0) < t->deadline_ns)
        sched_yield();
    TT_CHECK(t, atomic_load(looks) >= enough);
}

/* On the board of the group that is not made. */
static void give_up(tt_rank *t, const char *why)
{
    view            v = { .world = t->world, .prefix = "g0/" };
    const tti_board board = { .context = &v, .put = board_put, .get = board_get, .has = board_has };

    tti_fail(TUTTI_E_PEER, "%s", why);
    tti_trouble_leave(&board, tti_port_system(), t->rank, TUTTI_E_PEER);
    tt_leave(t);
}

static void make_group_without(tt_rank *t, const char *why)
{
    if (t->rank == 0) {
        give_up(t, why);
        return;
    }
    TT_CHECK(t, tt_open(t, 0, t->deadline_ns, &t->coll) == TUTTI_E_PEER);
    snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
}

static void enter(tt_rank *t)
{
    view                  v = { .world = t->world };
    const tti_board       board = { .context = &v, .put = board_put, .get = board_get, .has = board_has };
    const tti_mesh_config config = { .port = port_of(&t->port, &t->world->setting), .board = &board, .rank = t->rank,
                                     .n_ranks = t->size, .listen_host = "127.0.0.1",
                                     .tcp_only = t->tcp, .together_from = t->world->setting.together_from,
                                     .as_host = t->hosts != NULL ? (uint32_t)t->hosts[t->rank] + 1 : 0, .deadline_ns = t->deadline_ns };

    TT_CHECK(t, tti_mesh_open(&config, &t->mesh) == TUTTI_OK);
    if (t->mesh != NULL)
        TT_CHECK(t, tti_messenger_open(t->mesh, &t->messenger) == TUTTI_OK);
    if (t->messenger != NULL && t->world->setting.given_up_for != NULL)
        make_group_without(t, t->world->setting.given_up_for);
    else if (t->messenger != NULL)
        TT_CHECK(t, tt_open(t, 0, t->deadline_ns, &t->coll) == TUTTI_OK);
}

void tt_leave(tt_rank *t)
{
    tti_coll_close(t->coll);
    tti_messenger_close(t->messenger);
    tti_mesh_close(t->mesh);
    t->coll = NULL;
    t->messenger = NULL;
    t->mesh = NULL;
}

static void *rank_main(void *arg)
{
    tt_rank *t = arg;

    is_rank = true;
    enter(t);
    tt_all_here(t);
    if (t->coll != NULL)
        t->world->body(t);
    tt_leave(t);
    return NULL;
}

void tt_all_here(tt_rank *t)
{
    pthread_barrier_wait(&t->world->here);
}

void tt_run(int size, bool tcp, tt_body *body, tt_rank *ranks_out)
{
    tt_run_on(&tti_machine_default, size, tcp, body, ranks_out);
}

void tt_run_on(const tti_machine *machine, int size, bool tcp, tt_body *body, tt_rank *ranks_out)
{
    const tt_setting setting = { .machine = machine };

    tt_run_in(&setting, size, tcp, body, ranks_out);
}

void tt_run_in(const tt_setting *setting, int size, bool tcp, tt_body *body, tt_rank *ranks_out)
{
    tt_world *world = calloc(1, sizeof *world);
    pthread_t threads[TT_RANKS_MOST];
    int       rank;

    assert_non_null(world);
    world->body = body;
    world->setting = *setting;
    world->ranks = ranks_out;
    tti_mutex_init(&world->lock);
    pthread_barrier_init(&world->here, NULL, (unsigned)size);
    for (rank = 0; rank < size; rank++) {
        ranks_out[rank] = (tt_rank){ .rank = rank, .size = size, .tcp = tcp, .world = world,
                                     .hosts = setting->hosts,
                                     .deadline_ns = tt_in_ms(TT_LIMIT_MS) };
        assert_int_equal(pthread_create(&threads[rank], NULL, rank_main, &ranks_out[rank]), 0);
    }
    for (rank = 0; rank < size; rank++)
        pthread_join(threads[rank], NULL);
    pthread_barrier_destroy(&world->here);
    tti_mutex_release(&world->lock);
    free(world);
    for (rank = 0; rank < size; rank++)
        if (ranks_out[rank].failure[0] != '\0')
            fail_msg("%s: %s", setting->hosts != NULL ? "several hosts" : tcp ? "tcp" : "shared memory", ranks_out[rank].failure);
}

tutti_call tt_call(tt_rank *t, tutti_call_kind kind, tutti_dtype dtype, int64_t count)
{
    return (tutti_call){ .kind = kind, .seq = ++t->seq, .dtype = dtype, .op = TUTTI_SUM, .root = -1,
                         .count = count, .deadline_ns = t->deadline_ns };
}

tutti_status tt_barrier(tt_rank *t)
{
    const tutti_call call = tt_call(t, TUTTI_CALL_BARRIER, TUTTI_U8, 0);

    return tti_coll_run(t->coll, &call);
}
