/* SPDX-License-Identifier: BSD-3-Clause
 *
 * survivors.c - the members that are left agree, build what they go on in, and have a store again.
 *
 * How     The agreement (agreement.c) decides, the assembly (assembly.c) carries its messages, successor.c builds.
 *             store   Whoever leads serves a store for each attempt, and proposes its address: there the chosen members
 *                     meet. The successor keeps it for the keys of groups. If the one that the world was found with is
 *                     dead, its handles are led to the new one, on all members, and what it held is lost. Those of a
 *                     subgroup have one that the rest of their world does not know: when that goes on, all get a new one. It
 *                     is served until the world ends here, or the group shrinks once more: others may still make parts.
 *                     Who is dead refuses; one that says nothing is given as long as a silent member, from the beginning of the call
 *                     (store_life.c). It may only have been stopped, and go on: then it sends whoever comes to it to the new one
 *                     (store/store_moved.c), if nobody can be there who lives in it still.
 *                     Where that one is served by another program, which is known to live on, it is used instead.
 *             watch   Building waits in the store, so the leader has a thread that goes on turning the assembly. When one
 *                     of the chosen dies, it stops the store's server: every wait in it ends at once, on all of them, and
 *                     the agreement goes on with those that are left. A server of another program it cannot stop: it
 *                     leaves word there, which all of them look for while they wait.
 *             silent  Nothing ends the waits of a build for one that is stopped, who may be the one that serves. So all
 *                     that build ask the watch threads of the old group while they wait (base/doubt.h), and fail when one
 *                     of the chosen has been silent for four heartbeats; the agreement hears of it, too, and goes on without
 *                     it. Whoever shrinks waits for a silent one that long, and no longer, wherever it fell silent.
 *             missed  With a list one that is to stay may wait for this one in a collective. Members make the calls of a group in
 *                     one order, so neither goes on: when that has been so for MISSED_NS, in which a death would have ended
 *                     the call, the group is finished on all, with both calls in the words.
 *             refused With a list one that is to stay may refuse to come, and leaves word of that in the old store (refused.c); so does
 *                     who has met another list, which members without one are to hear of, too.
 * True    Agreement and assembly belong to one thread at a time: the caller's, or, while the leader builds, its watcher's,
 *         between whose start and join the caller does not touch them, but for reading the place and the chosen of what it
 *         builds: nothing is written there until it says that it has built. What the watcher does to the store is meant
 *         for other threads.
 *         Until the agreement is done the old group is untouched. */
#include "regroup/successor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/native/native.h"
#include "base/doubt.h"
#include "base/fnv.h"
#include "base/log.h"
#include "regroup/agreement.h"
#include "regroup/assembly.h"
#include "regroup/refused.h"
#include "regroup/store_life.h"
#include "store/store.h"
#include "store/store_moved.h"
#include <tutti/private.h>

enum { SILENT_TEXT_MAX = TTI_HEALTH_TEXT_MAX + 160, PART_TEXT_MAX = 20, NAMED_MAX = 3, WORDED_MAX = 96 };

#define BUILD_NS (30 * TTI_SECOND)
#define PATIENCE_NS (60 * TTI_SECOND)
/* For the store to answer, whatever time there is; the dead refuse at once. */
#define PROBE_LEAST_NS (500 * TTI_MS)
#define LAST_WORDS_NS (1 * TTI_SECOND)
#define LATE_NS (50 * TTI_MS) /* of them, beyond the deadline */
#define LOOK_NS (100 * TTI_MS)
#define MISSED_NS (400 * TTI_MS)
#define WITHOUT_NS (1 * TTI_SECOND) /* a list: who waits for longer looks for lists of others */

typedef struct council {
    tutti_group               *old;
    const tutti_group_options *opts;
    const bool                *listed; /* [old->size] the caller's list; NULL: none */
    tti_port                  *port;
    tti_mesh                  *mesh;
    int                       *ranks; /* [old->size] in the mesh */
    int                       *left;  /* [old->size] who is chosen */
    int64_t                    timeout_ms;
    int64_t                    began_ns;
    int64_t                    deadline_ns;
    int64_t                    patience_ns;
    tti_agreement             *agreement;
    tti_assembly              *assembly;
    tutti_store               *served;    /* on the leader: the store of the latest attempt, with its server */
    tutti_store               *store;     /* where this attempt meets */
    tti_store_life            *life;      /* of the one that there was; NULL: it is not asked */
    tutti_group               *group;     /* what was built last */
    tti_refused               *refused;   /* who looks for members that do not come */
    bool                       looks;     /* it was begun */
    bool                      *awaited;   /* [old->size] with a list: who has not come */
    int                        missed;    /* one of those that waits in a call of old; -1: none is known */
    uint64_t                   missed_seq;
    int64_t                    missed_ns; /* since when */
    int64_t                    look_ns;   /* when to look for such a one */
    bool                       minority;  /* TUTTI_SHRINK_MINORITY */
    bool                       led;       /* this member led that, and served */
    bool                       in_vain;   /* what is being built: one of those that it needs is silent */
    tti_thread                 watcher;
    _Atomic bool               watching;
} council;

/* How the chosen ones meet: "tcp HOST PORT rehost" or "old PART". */
typedef struct place {
    char     host[TTI_HOST_MAX];
    unsigned port; /* 0: the store that there was */
    char     part[PART_TEXT_MAX]; /* of that one: nobody has been there, so that an attempt meets nothing of another one */
    bool     rehost;
} place;

/* ---- between agreement and assembly ---- */

static void send_message(void *ctx, int to, const void *message, size_t bytes)
{
    tti_assembly_send(((council *)ctx)->assembly, to, message, bytes);
}

static bool wants(void *ctx, int rank)
{
    return tti_agreement_wants(((council *)ctx)->agreement, rank);
}

static void is_present(void *ctx, int rank)
{
    tti_agreement_present(((council *)ctx)->agreement, rank);
}

static void is_absent(void *ctx, int rank)
{
    tti_agreement_absent(((council *)ctx)->agreement, rank);
}

static void is_gone(void *ctx, int rank)
{
    tti_agreement_gone(((council *)ctx)->agreement, rank);
}

static bool has_left(void *ctx, int rank)
{
    const council *c = ctx;

    return tti_mesh_has_left(c->mesh, c->ranks[rank]);
}

static void hear(void *ctx, int rank, const void *message, size_t bytes)
{
    tti_agreement_heard(((council *)ctx)->agreement, rank, message, bytes);
}

/* What the watch threads know: who merely has no core for a while is no less waited for, and who is silent no longer. */
static void look_at_health(council *c)
{
    const tti_health *health = tti_mesh_health(c->mesh);
    int               r;

    for (r = 0; r < c->old->size; r++)
        if (tti_health_of(health, c->ranks[r]).life == TTI_LIFE_WELL)
            tti_agreement_alive(c->agreement, r);
        else if (r != c->old->rank && tti_health_is_silent(health, c->ranks[r]))
            tti_agreement_silent(c->agreement, r);
}

static void turn(council *c)
{
    look_at_health(c);
    tti_assembly_turn(c->assembly, tti_agreement_next_ns(c->agreement));
    tti_agreement_tick(c->agreement, tti_port_now(c->port));
}

/* ---- where they meet ---- */

/* The others wait meanwhile, and have patience with who leads. */
static bool store_is_dead(const council *c)
{
    const int64_t fair_ns = c->patience_ns / 4 * 3;
    const int64_t fair_until_ns = tti_port_now(c->port) + (fair_ns > PROBE_LEAST_NS ? fair_ns : PROBE_LEAST_NS);
    const int64_t until_ns = fair_until_ns < c->deadline_ns ? fair_until_ns : c->deadline_ns;

    return c->life != NULL ? tti_store_life_is_over(c->life, until_ns) : !tti_store_life_answers(c->old->world->root, until_ns);
}

/* Loopback where all are on one host: it works without any network. */
static const char *find_host(const council *c, const bool *chosen)
{
    const int here = tti_mesh_host(c->mesh, tti_mesh_rank(c->mesh));
    int       r;

    for (r = 0; r < c->old->size; r++)
        if (chosen[r] && tti_mesh_host(c->mesh, c->ranks[r]) != here)
            return c->old->listen_host;
    return "127.0.0.1";
}

/* The leader's: serve a store for this attempt. */
static tutti_status open_place(void *ctx, const bool *chosen, char place_out[TTI_AGREE_PLACE_MAX])
{
    council                *c = ctx;
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    uint64_t                part;
    tutti_status            st;

    tutti_store_close(c->served);
    c->served = NULL;
    if (tti_store_is_foreign(c->old->world->root)) {
        c->port->ops->random(c->port, &part, sizeof part);
        snprintf(place_out, TTI_AGREE_PLACE_MAX, "old %016" PRIx64, part);
        return TUTTI_OK;
    }
    options.host = find_host(c, chosen);
    options.is_master = true;
    options.timeout_ms = c->timeout_ms;
    st = tutti_tcp_store_open(&options, &c->served);
    if (st == TUTTI_OK)
        snprintf(place_out, TTI_AGREE_PLACE_MAX, "tcp %s %d %d", options.host, tutti_tcp_store_port(c->served),
                 c->old->world->root_is_partial || store_is_dead(c));
    return st;
}

static tutti_status read_place(const char *text, place *out)
{
    int rehost = 0;

    *out = (place){ .port = 0 };
    if (sscanf(text, "old %16[0-9a-f]", out->part) == 1)
        return TUTTI_OK;
    if (sscanf(text, "tcp %255s %u %d", out->host, &out->port, &rehost) != 3 || out->port == 0 || out->port > 65535)
        return tti_fail(TUTTI_E_STORE, "the place to go on at is damaged: '%.80s'", text);
    out->rehost = rehost != 0;
    return TUTTI_OK;
}

/* The attempt's part of the store that there was. */
static tutti_status open_old(const council *c, const char *part, tutti_store **store_out)
{
    char     prefix[TTI_GROUP_NAME_MAX + 80];
    uint64_t print = tti_fnv(TTI_FNV_BEGIN, tti_agreement_chosen(c->agreement), (size_t)c->old->size);

    snprintf(prefix, sizeof prefix, "tutti/successor/%s/%016" PRIx64 "/%s", c->old->name, print, part);
    return tutti_prefix_store_open(prefix, c->old->world->root, store_out);
}

static tutti_status open_store(council *c)
{
    tutti_store *store = NULL;
    place        at;
    tutti_status st = read_place(tti_agreement_place(c->agreement), &at);

    if (st == TUTTI_OK && at.port == 0)
        return open_old(c, at.part, &c->store);
    if (st == TUTTI_OK && c->served != NULL && c->led) {
        store = tutti_store_retain(c->served);
    } else if (st == TUTTI_OK) {
        st = tti_tcp_store_reach(c->port, at.host, (uint16_t)at.port, c->timeout_ms, c->deadline_ns, &store);
    }
    if (st == TUTTI_OK)
        st = tutti_prefix_store_open("tutti/successor", store, &c->store);
    tutti_store_close(store);
    return st;
}

/* ---- building ---- */

static void discard(council *c)
{
    if (c->group != NULL)
        tti_group_destroy(c->group);
    c->group = NULL;
    tutti_store_close(c->store);
    c->store = NULL;
}

/* Whether one that this build needs is silent: then it ends here, whoever serves the store, and also in waits that are not for
 * the store. */
static bool is_in_vain(void *ctx)
{
    council          *c = ctx;
    const bool       *chosen = tti_agreement_chosen(c->agreement);
    const tti_health *health = tti_mesh_health(c->mesh);
    int               r;

    for (r = 0; r < c->old->size && !c->in_vain; r++)
        c->in_vain = r != c->old->rank && chosen[r] && tti_health_is_silent(health, c->ranks[r]);
    return c->in_vain;
}

static tutti_status build(council *c)
{
    const bool        *chosen = tti_agreement_chosen(c->agreement);
    const int64_t      until_ns = tti_port_now(c->port) + BUILD_NS;
    tti_successor_plan plan = { .old = c->old, .ranks = c->left, .opts = c->opts, .timeout_ms = c->timeout_ms,
                                .deadline_ns = until_ns < c->deadline_ns ? until_ns : c->deadline_ns };
    tutti_status       st = open_store(c);
    int                r;

    for (r = 0; r < c->old->size; r++) {
        if (r == c->old->rank)
            plan.rank = plan.n;
        if (chosen[r])
            c->left[plan.n++] = r;
    }
    if (st != TUTTI_OK)
        return st;
    plan.store = c->store;
    plan.listen_host = find_host(c, chosen);
    return tti_successor_make(&plan, &c->group);
}

/* One of the chosen is gone: who, as far as it is known here. */
static tutti_status name_the_gone(const council *c)
{
    const bool *chosen = tti_agreement_chosen(c->agreement);
    char        words[SILENT_TEXT_MAX];
    int         r;

    for (r = 0; r < c->old->size; r++)
        if (chosen[r] && !tti_mesh_is_alive(c->mesh, c->ranks[r], words, sizeof words))
            return tti_fail(TUTTI_E_PEER,
                            "group '%s' cannot go on with all that were chosen: %s\n  next: call tutti_shrink_group() again",
                            c->old->name, words);
    return tti_fail(TUTTI_E_PEER, "group '%s' cannot go on with all that were chosen\n  next: call tutti_shrink_group() again",
                    c->old->name);
}

/* Every wait of this attempt is to end, on all that are chosen. */
static void end_attempt(council *c)
{
    tutti_store *store = NULL;
    place        at;

    if (c->served != NULL) {
        tti_tcp_store_stop_serving(c->served);
    } else if (read_place(tti_agreement_place(c->agreement), &at) == TUTTI_OK && open_old(c, at.part, &store) == TUTTI_OK) {
        tti_world_tell_why(c->port, store, name_the_gone(c));
        tutti_store_close(store);
    }
}

/* The leader's second thread, while the first one builds. */
static void watch(void *arg)
{
    council *c = arg;
    bool     stopped = false;

    while (atomic_load_explicit(&c->watching, memory_order_acquire)) {
        if (tti_agreement_now(c->agreement) == TTI_AGREE_BUILD)
            turn(c);
        else /* it has failed: nothing is due, until building ends and rings */
            tti_assembly_turn(c->assembly, TTI_FOREVER);
        if (!stopped && tti_agreement_in_vain(c->agreement)) {
            end_attempt(c);
            stopped = true;
        }
    }
}

static tutti_status build_in_doubt(council *c)
{
    const tti_doubt doubt = { .is_vain = is_in_vain, .context = c };
    tutti_status    st;

    c->in_vain = false;
    tti_doubt_waits(&doubt);
    st = build(c);
    tti_doubt_waits(NULL);
    return st;
}

static tutti_status build_watched(council *c)
{
    tutti_status st;

    atomic_store_explicit(&c->watching, true, memory_order_release);
    st = tti_thread_start(&c->watcher, "tutti-regroup", watch, c);
    if (st == TUTTI_OK)
        st = build_in_doubt(c);
    atomic_store_explicit(&c->watching, false, memory_order_release);
    tti_assembly_wake(c->assembly);
    tti_thread_join(&c->watcher);
    return st;
}

static void build_and_tell(council *c)
{
    char         words[TTI_AGREE_WORDS_MAX] = "";
    tutti_status st;

    discard(c);
    c->led = tti_agreement_leads(c->agreement);
    st = c->led ? build_watched(c) : build_in_doubt(c);
    if (st != TUTTI_OK) {
        snprintf(words, sizeof words, "%s", tutti_last_error());
        tti_log(TTI_LOG_INFO, "going on from group '%s': %s", c->old->name, words);
    }
    tti_agreement_tick(c->agreement, tti_port_now(c->port));
    tti_agreement_built(c->agreement, st, words);
}

/* ---- the end ---- */

/* Whether it may live, although it does not go on. The agreement may have proof of an end that the
 * watch threads here have not heard of. */
static bool may_live(const council *c, int rank)
{
    return !tti_agreement_is_gone(c->agreement, rank) && tti_health_of(tti_mesh_health(c->mesh), c->ranks[rank]).life < TTI_LIFE_DEAD;
}

/* Whether nobody can go on in the store that there was. Those that agree without a list are most of all. By a list, or as few, they may
 * have no way to that store where others have one, who live in it: then whoever comes to it is theirs. */
static bool nobody_stays(const council *c)
{
    const bool *chosen = tti_agreement_chosen(c->agreement);
    int         r;

    if (c->listed == NULL && !c->minority)
        return true;
    for (r = 0; r < c->old->size; r++)
        if (!chosen[r] && may_live(c, r))
            return false;
    return true;
}

/* The store that the world was found with is dead: what leads to it leads to the new one. */
static void rehost(council *c)
{
    tutti_group *world = c->group->world;
    tutti_store *root = tutti_store_underlying_non_prefix(c->old->world->root);
    char         how[TTI_STORE_LIFE_WORDS];
    place        at;

    if (read_place(tti_agreement_place(c->agreement), &at) != TUTTI_OK || !at.rehost)
        return;
    snprintf(how, sizeof how, "%s", tti_store_life_words(c->life));
    tti_store_life_end(c->life); /* who follows may still ask: not the new one */
    c->life = NULL;
    world->root_is_partial = c->old->world != c->old;
    if (c->led && c->served != NULL && nobody_stays(c) && !world->root_is_partial) /* where the rest of a world is a part of it cannot say */
        tti_store_tell_moved(c->served, c->old->world->root, at.host);
    if (!tti_tcp_store_redirect(root, at.host, (uint16_t)at.port) || !c->led || c->served == NULL)
        return;
    tutti_store_close(world->root_server);
    world->root_server = tutti_store_retain(c->served);
    tti_log(TTI_LOG_WARN,
            "the store of group '%s' %s: rank %d of it serves a fresh one at %s port %u; what the program had put "
            "into the old one is lost",
            c->old->name, how, c->old->rank, at.host, at.port);
}

/* Of a subgroup the store that this member serves is to outlive the group here. Without memory it goes with the group. */
static void keep_serving(council *c)
{
    tti_served *served;

    if (c->old->world == c->old || !c->led || c->served == NULL)
        return;
    served = calloc(1, sizeof *served);
    if (served == NULL) {
        tti_log(TTI_LOG_WARN, "no memory to keep the store of group '%s' for longer than the group is here", c->group->name);
        return;
    }
    served->store = tutti_store_retain(c->served);
    c->group->served = served;
}

/* Who lives, and is in nothing any more with those that go on: a program that loses one so is to hear it. */
static void warn_of_the_left_out(const council *c)
{
    const bool       *chosen = tti_agreement_chosen(c->agreement);
    const tti_health *health = tti_mesh_health(c->mesh);
    const double      waited_s = (double)(tti_port_now(c->port) - c->began_ns) / (double)TTI_SECOND;
    char              list[NAMED_MAX * SILENT_TEXT_MAX] = "", how[TTI_HEALTH_TEXT_MAX];
    size_t            used = 0;
    int               n = 0, r;

    for (r = 0; r < c->old->size; r++) {
        if (chosen[r] || !may_live(c, r) || n++ >= NAMED_MAX)
            continue;
        tti_health_describe(health, c->ranks[r], how);
        used += (size_t)snprintf(list + used, sizeof list - used, "%srank %d (%.150s), which %.200s", n > 1 ? "; " : "", r,
                                 tti_mesh_whereabouts(c->mesh, c->ranks[r]), how[0] != '\0' ? how : "lives and did not come");
    }
    if (n > 0)
        tti_log(TTI_LOG_WARN,
                "group '%s' goes on without %d of its members that may live: %s%s; this call has waited for %.1f s: a longer time-out "
                "waits longer. Who is left out comes in again by tutti_join_group() only",
                c->old->name, n, list, n > NAMED_MAX ? "; and more" : "", waited_s);
}

static tutti_status council_open(council *c, const bool *excluded, bool minority, const char *what)
{
    const int64_t            now_ns = tti_port_now(c->port);
    const int64_t            third_ns = c->deadline_ns == TTI_FOREVER ? PATIENCE_NS : (c->deadline_ns - now_ns) / 3;
    const tti_assembly_hooks hooks = { c, wants, is_present, is_absent, is_gone, hear };
    tti_agreement_config     config = { .n = c->old->size, .rank = c->old->rank, .excluded = excluded,
                                        .minority = minority, .what = what, .now_ns = now_ns, .number = atomic_load(&c->old->shrinks),
                                        .over = atomic_load(&c->old->parted),
                                        .deadline_ns = c->deadline_ns, .ctx = c, .open = open_place,
                                        .patience_ns = third_ns < PATIENCE_NS ? third_ns : PATIENCE_NS,
                                        .send = send_message, .has_left = has_left };
    tutti_status             st;

    c->began_ns = now_ns;
    c->patience_ns = config.patience_ns;
    st = tti_assembly_open(c->mesh, c->ranks, c->old->size, c->old->rank,
                           tti_fnv(TTI_FNV_BEGIN, c->old->name, strlen(c->old->name)),
                           tti_agreement_message_bytes(c->old->size), &hooks, &c->assembly);
    return st == TUTTI_OK ? tti_agreement_create(&config, &c->agreement) : st;
}

/* One that is stopped takes no words any more: the call does not wait for it beyond its time. */
static int64_t last_words_until(const council *c)
{
    const int64_t now_ns = tti_port_now(c->port);
    const int64_t until_ns = c->deadline_ns == TTI_FOREVER || c->deadline_ns - now_ns > LAST_WORDS_NS ? now_ns + LAST_WORDS_NS
                                                                                                    : c->deadline_ns + LATE_NS;

    return until_ns > now_ns + LATE_NS / 2 ? until_ns : now_ns + LATE_NS / 2;
}

/* "; rank 3 (host 'n2', pid 40112) has been stopped by a signal for 3.2 s": the first member that is silent. Whoever waits for one
 * that waits for it would name the wrong one. */
static const char *who_is_silent(const council *c, char out[SILENT_TEXT_MAX])
{
    const tti_health *health = tti_mesh_health(c->mesh);
    char              how[TTI_HEALTH_TEXT_MAX];
    int               r;

    out[0] = '\0';
    for (r = 0; r < c->old->size && out[0] == '\0'; r++) {
        const tti_life life = tti_health_now(health, c->ranks[r]).life;

        if (r != c->old->rank && life != TTI_LIFE_WELL && life < TTI_LIFE_DEAD)
            snprintf(out, SILENT_TEXT_MAX, "; rank %d (%s) %s", r, tti_mesh_whereabouts(c->mesh, c->ranks[r]),
                     tti_health_describe(health, c->ranks[r], how));
    }
    return out;
}

/* What is said, then what to do next. */
static tutti_status fail_in_time(const council *c, const char *words)
{
    char      silent[SILENT_TEXT_MAX];
    const int said = (int)strcspn(words, "\n");

    return tti_fail(TUTTI_E_TIMEOUT, "%.*s%s%s%s", said, words, who_is_silent(c, silent), tti_refused_rival(c->refused), words + said);
}

/* "tutti_shrink_group() without rank 1, 3" */
static void word_call(const council *c, char out[WORDED_MAX])
{
    size_t used = (size_t)snprintf(out, WORDED_MAX, "tutti_shrink_group() without rank");
    int    r, n = 0;

    for (r = 0; r < c->old->size && n <= NAMED_MAX; r++)
        if (c->listed[r])
            used += (size_t)(n++ < NAMED_MAX ? snprintf(out + used, WORDED_MAX - used, "%s %d", n > 1 ? "," : "", r)
                                             : snprintf(out + used, WORDED_MAX - used, ", ..."));
}

/* The first member that is to stay and waits in a collective of the old group. The words are this thread's last error. */
static int find_missed(const council *c, uint64_t *seq_out)
{
    char call[WORDED_MAX];
    int  r, rank = -1;

    word_call(c, call);
    for (r = 0; r < c->old->size; r++)
        c->awaited[r] = r != c->old->rank && !c->listed[r] && !tti_agreement_has_come(c->agreement, r);
    (void)tti_native_look_missed(c->old->backend, c->awaited, call, &rank, seq_out);
    return rank;
}

static void look_for_missed(council *c)
{
    const int64_t now_ns = tti_port_now(c->port);
    uint64_t      seq = 0;
    int           rank;

    if (c->listed == NULL || now_ns < c->look_ns)
        return;
    c->look_ns = now_ns + LOOK_NS;
    rank = find_missed(c, &seq);
    if (rank != c->missed || seq != c->missed_seq)
        c->missed_ns = now_ns;
    c->missed = rank;
    c->missed_seq = seq;
    if (rank < 0 || now_ns - c->missed_ns < MISSED_NS)
        return;
    tti_native_end_missed(c->old->backend);
    tti_agreement_refused(c->agreement, TUTTI_E_MISMATCH, false, tutti_last_error());
}

/* Without a list whoever is dead, or says nothing, is gone on without, and its word is nothing. On the looking thread: what is read of
 * the council was written before that began, and stays until it has ended. */
static bool is_heeded(void *context, int rank, tutti_status st, const char *words)
{
    const council *c = context;

    (void)st;
    (void)words;
    return c->listed != NULL || tti_health_of(tti_mesh_health(c->mesh), c->ranks[rank]).life == TTI_LIFE_WELL;
}

/* Who looks in the old store for members that refuse. */
static void look_for_refusals(council *c)
{
    if (!c->looks && (c->listed != NULL || tti_port_now(c->port) - c->began_ns >= WITHOUT_NS)) {
        c->looks = true;
        c->refused = tti_refused_begin(c->old, c->listed, false, c->deadline_ns, is_heeded, c);
    }
}

/* Until it is decided. */
static tutti_status hold(council *c)
{
    const char        *words;
    tti_agreement_task task;
    tutti_status       st, why;
    bool               parted;

    if (!tti_store_is_foreign(c->old->world->root) && !c->old->world->root_is_partial)
        c->life = tti_store_life_ask(c->old->world->root, tti_health_silence_ns(tti_mesh_health(c->mesh)));
    while ((task = tti_agreement_now(c->agreement)) <= TTI_AGREE_BUILD) {
        look_for_refusals(c);
        if (task == TTI_AGREE_BUILD)
            build_and_tell(c);
        else
            turn(c);
        tti_refused_meet(c->old, tti_agreement_number(c->agreement));
        if (tti_refused_found(c->refused, &why, &parted, &words))
            tti_agreement_refused(c->agreement, why, parted, words);
        else if (tti_agreement_now(c->agreement) == TTI_AGREE_WAIT)
            look_for_missed(c);
    }
    tti_assembly_flush(c->assembly, last_words_until(c));
    if (task == TTI_AGREE_DONE)
        return TUTTI_OK;
    st = tti_agreement_failure(c->agreement, &words);
    return st == TUTTI_E_TIMEOUT ? fail_in_time(c, words) : tti_fail(st, "%s", words);
}

static void council_close(council *c, tutti_status st)
{
    tti_refused_end(c->refused, st);
    tti_store_life_end(c->life);
    tti_assembly_close(c->assembly);
    tti_agreement_free(c->agreement);
    tutti_store_close(c->store);
    tutti_store_close(c->served);
    free(c->ranks);
    free(c->left);
    free(c->awaited);
}

/* The members of old as members of its connections. */
static tutti_status find_members(council *c)
{
    const tutti_group *old = c->old;
    int                r;

    c->ranks = malloc((size_t)old->size * sizeof *c->ranks);
    c->left = malloc((size_t)old->size * sizeof *c->left);
    c->awaited = calloc((size_t)old->size, sizeof *c->awaited);
    if (c->ranks == NULL || c->left == NULL || c->awaited == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to shrink a group of %d", old->size);
    for (r = 0; r < old->size; r++)
        c->ranks[r] = old->carrier == old ? r : tti_group_find(old->carrier, old->ranks[r]);
    return TUTTI_OK;
}

bool tti_survivors_can(const tutti_group *old)
{
    const tti_mesh *mesh = tti_native_mesh(old->backend);

    return mesh != NULL && old->carrier->ops == old->ops && tti_mesh_can_assemble(mesh);
}

tutti_status tti_survivors_agree(tutti_group *old, const bool *excluded, bool minority, const tutti_group_options *opts,
                                 tutti_group **group_out, int **former_out)
{
    council      c = { .old = old, .opts = opts, .listed = excluded, .port = old->runner->port, .mesh = tti_native_mesh(old->backend),
                       .missed = -1, .minority = minority,
                       .timeout_ms = opts->timeout_ms != 0 ? opts->timeout_ms : old->timeout_ms };
    char         what[TTI_GROUP_NAME_MAX + 32];
    tutti_status st = find_members(&c);

    snprintf(what, sizeof what, "shrink_group on group '%s'", old->name);
    c.deadline_ns = tti_deadline(c.port, c.timeout_ms, -1);
    if (st == TUTTI_OK)
        st = council_open(&c, excluded, minority, what);
    if (st == TUTTI_OK)
        st = hold(&c);
    if (st == TUTTI_OK) {
        if (excluded == NULL)
            warn_of_the_left_out(&c);
        tti_refused_end(c.refused, TUTTI_OK); /* it asks the store, which is about to lead elsewhere */
        c.refused = NULL;
        rehost(&c);
        keep_serving(&c);
        *group_out = c.group;
        *former_out = c.left;
        c.left = NULL;
    } else {
        char words[TTI_GROUP_WORDS_MAX];

        snprintf(words, sizeof words, "%s", tutti_last_error());
        discard(&c);
        (void)tti_fail(st, "%s", words);
        if (st == TUTTI_E_MISMATCH) /* for those that come later */
            tti_refused_tell(old, st, c.agreement != NULL && tti_agreement_parted(c.agreement), c.deadline_ns);
    }
    council_close(&c, st);
    return st;
}
