/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world_create.c - making a world: a number in the store, the store's keys below it, a backend.
 *
 * Keys    A store that the caller made gets no "default_pg". Who joins through the same store again
 *         joins another world (rendezvous/generation.c), and from the second on the first part has
 *         its number, "default_pg.2": keys of an earlier world are never read.
 * Waits   A rank that has ended will not come. Where a launcher says so (watch/bulletin.h), who waits for it fails at once. Without
 *         one the store says so, if it can (store/store_will.c): a rank that has its place leaves a will there, until it has met
 *         all others. */
#include "group/asked.h"
#include "group/make.h"
#include "group/hooks.h"
#include "backend/registry.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/clip.h"
#include "rendezvous/generation.h"
#include "store/store.h"
#include "store/store_turned.h"
#include "watch/bulletin.h"
#include "watch/trouble.h"
#include <tutti/private.h>

enum { FILES_A_RANK = 8, SPARE_FILES = 256 };

/* Below that, in a world's folder: where its members look for each other, in the backend of its memory (route.c). */
#define WAITED_BELOW "//cpu//"

_Static_assert((int)TTI_JOIN_BACKENDS_MAX == (int)TTI_DEVICE_MAP_TEXT, "what ranks tell of their backends is all of it");

/* The store below which a world's name stands. */
static tutti_status open_root(const tti_join *join, int64_t generation, tutti_store **store_out)
{
    char prefix[48];

    if (join->user_store && generation == 1) {
        *store_out = tutti_store_retain(join->store);
        return TUTTI_OK;
    }
    if (generation == 1)
        snprintf(prefix, sizeof prefix, "default_pg");
    else
        snprintf(prefix, sizeof prefix, "default_pg.%lld", (long long)generation);
    return tutti_prefix_store_open(prefix, join->store, store_out);
}

static tutti_status fill_world(tutti_group *world, tti_port *port, const tti_backing *backing,
                               const tti_join *join, const char *name)
{
    tutti_status st = tti_routes_find(world, backing);
    int          i;

    if (st == TUTTI_OK)
        st = tti_recorder_start(join->rank, join->world_size);
    if (st != TUTTI_OK)
        return st;
    world->timeout_ms = join->timeout_ms;
    world->generation = join->generation != 0 ? join->generation : 1;
    snprintf(world->listen_host, sizeof world->listen_host, "%s", join->listen_host);
    for (i = 0; i < world->size; i++)
        world->ranks[i] = i;
    world->root = tutti_store_retain(join->store);
    tti_handle_make(port, world);
    st = tti_group_name_by_text(world, name);
    return st == TUTTI_OK ? tti_runner_create(port, &world->runner) : st;
}

/* Free a world that could not be made; NULL is fine. */
static void discard(tutti_group *world)
{
    if (world != NULL && world->runner != NULL)
        tti_runner_drop(world->runner);
    tti_group_free(world);
}

tutti_status tti_world_begin(tti_port *port, const tti_backing *backing, const tti_join *join,
                             tutti_group **group_out)
{
    tutti_group *world = NULL;
    tutti_status st = tti_group_alloc(join->rank, join->world_size, &world);

    if (st == TUTTI_OK)
        st = fill_world(world, port, backing, join, "0");
    if (st == TUTTI_OK)
        st = tti_detail_log_attach(world);
    if (st != TUTTI_OK) {
        discard(world);
        return st;
    }
    *group_out = world;
    return TUTTI_OK;
}

/* Nobody joins this number any more; the words of the failure stay. */
static tutti_status give_up(tti_port *port, const tti_join *join, int64_t generation,
                            tutti_group *world, tutti_status failure)
{
    char words[TTI_GROUP_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_generation_fail(port, join, generation);
    if (world != NULL)
        tti_group_destroy(world);
    return tti_fail(failure, "%s", words);
}

/* Leave value under key until then; the first stays. This thread's last error stays. */
static void leave(int64_t until, tutti_store *store, const char *key, const void *value, size_t bytes, tutti_status failure)
{
    tutti_bytes kept = { 0 };
    char        words[TTI_GROUP_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (tti_store_compare_set_until(store, key, "", 0, value, bytes, until, &kept) == TUTTI_OK)
        tutti_bytes_free(&kept);
    tti_fail(failure, "%s", words);
}

/* Where members wait below a device: in a backend, and in one below backend/debug. */
static const char *const inside[] = { "", "inner//" };

/* Leave value under `what` wherever members may wait: they may have another backend than this rank. below: from store on. */
static void leave_at(tti_port *port, tutti_store *store, const char *below, const char *what, const void *value, size_t bytes,
                     tutti_status failure)
{
    const int64_t until = tti_port_now(port) + TTI_SECOND;
    char          key[TTI_GROUP_NAME_MAX + 64];
    int           i;

    for (i = 0; i < 2 * TTI_DEVICES; i++) {
        snprintf(key, sizeof key, "%s%s//%s%s", below, tti_device_name((tutti_device_type)(i / 2)), inside[i % 2], what);
        leave(until, store, key, value, bytes, failure);
    }
}

static void tell_at(tti_port *port, tutti_store *store, const char *below, const char *what, const tti_trouble *trouble,
                    tutti_status failure)
{
    leave_at(port, store, below, what, trouble, sizeof *trouble, failure);
}

/* The last error. */
static tti_trouble trouble_of(tutti_status failure)
{
    tti_trouble trouble = { .status = (int32_t)failure };

    tti_clip(trouble.words, sizeof trouble.words, "%s", tutti_last_error());
    return trouble;
}

void tti_world_tell_why(tti_port *port, tutti_store *root, tutti_status failure)
{
    const tti_trouble trouble = trouble_of(failure);

    tell_at(port, root, "0//", TTI_TROUBLE_KEY, &trouble, failure);
}

void tti_group_tell_of(tti_port *port, tutti_store *root, int rank, tutti_status failure)
{
    const tti_trouble trouble = trouble_of(failure);
    char              what[24];

    snprintf(what, sizeof what, TTI_REFUSAL_KEY, rank);
    tell_at(port, root, "0//", what, &trouble, failure);
}

bool tti_group_has_foreign(const tutti_group *group)
{
    int i;

    for (i = 0; i < TTI_DEVICES; i++)
        if (group->routes[i].ops != NULL && !tti_backend_is_own(group->routes[i].ops))
            return true;
    return false;
}

/* Whether a world that was not made for that could not be on this rank, whatever the others do. */
static bool is_refusal(tutti_status failure)
{
    return failure == TUTTI_E_ARG || failure == TUTTI_E_UNSUPPORTED || failure == TUTTI_E_STATE || failure == TUTTI_E_BACKEND ||
           failure == TUTTI_E_NOMEM;
}

/* What only this rank knows it tells those that wait for it in folder key of root; the last error stays. Where a backend has said so
 * itself, its word is the first, and stays. */
static void tell_of_refusal(tti_port *port, int rank, tutti_store *root, const char *key, tutti_status failure)
{
    tti_trouble trouble = { .status = TUTTI_E_REMOTE };
    char        below[16];

    tti_clip(trouble.words, sizeof trouble.words, "rank %d cannot make it: %s", rank, tutti_last_error());
    snprintf(below, sizeof below, "%s//", key);
    tell_at(port, root, below, TTI_TROUBLE_KEY, &trouble, failure);
}

tutti_status tti_world_found(tti_port *port, const tti_backing *backing, const tti_join *join,
                             const char *name, const char *key, tutti_store *root,
                             tutti_group **group_out)
{
    tutti_group *world = NULL;
    tutti_status st = tti_group_alloc(join->rank, join->world_size, &world);

    if (st == TUTTI_OK)
        st = fill_world(world, port, backing, join, name);
    if (st == TUTTI_OK)
        st = tti_group_open_stores(world, key, root);
    if (st == TUTTI_OK)
        st = tti_group_open_backend(world, join->deadline_ns, TTI_OPEN_ALONE);
    if (st != TUTTI_OK) {
        if (world != NULL && tti_group_has_foreign(world) && is_refusal(st))
            tell_of_refusal(port, join->rank, root, key, st);
        discard(world);
        return st;
    }
    *group_out = world;
    return TUTTI_OK;
}

static tti_trouble refusal_of(const tutti_group *world, tutti_status told, char what_out[24])
{
    tti_trouble trouble = { .status = (int32_t)told };

    snprintf(what_out, 24, TTI_REFUSAL_KEY, world->rank);
    tti_clip(trouble.words, sizeof trouble.words, "rank %d cannot make it: %s", world->rank, tutti_last_error());
    return trouble;
}

void tti_group_tell_in(tutti_group *world, const char *folder, tutti_status told, tutti_status failure)
{
    char              below[TTI_GROUP_NAME_MAX + 4], what[24];
    const tti_trouble trouble = refusal_of(world, told, what);

    snprintf(below, sizeof below, "%s//", folder);
    tell_at(world->runner->port, world->store, below, what, &trouble, failure);
}

void tti_group_tell_why(tutti_group *world, uint32_t id, tutti_status told, tutti_status failure)
{
    char folder[16];

    snprintf(folder, sizeof folder, "%u", id);
    tti_group_tell_in(world, folder, told, failure);
}

void tti_group_tell_members(tutti_group *group, tutti_status told, tutti_status failure)
{
    tti_port         *port = group->runner->port;
    char              what[24];
    const tti_trouble trouble = refusal_of(group->world, told, what);

    tell_at(port, group->store, "", what, &trouble, failure);
    tell_at(port, group->store, "", TTI_TROUBLE_KEY, &trouble, failure); /* who founds connections for it looks there */
}

void tti_group_tell_mismatch(tutti_group *group)
{
    char words[TTI_MISMATCH_WORDS_MAX] = "";

    tti_clip(words, sizeof words, "rank %d reported: %s", group->world->rank, tutti_last_error());
    leave_at(group->runner->port, group->store, "", TTI_MISMATCH_KEY, words, sizeof words, TUTTI_E_MISMATCH);
}

void tti_group_tell_otherwise(tutti_group *group, int64_t deadline_ns)
{
    const int64_t soon_ns = tti_port_now(group->runner->port) + TTI_SECOND;
    tti_trouble   trouble = { .status = TUTTI_E_MISMATCH };
    char          key[64];
    int           i;

    snprintf(trouble.words, sizeof trouble.words,
             "rank %d makes it with backend '%s', and who names none has '%s'\n  next: give all members the same options.backend",
             group->world->rank, group->backend_config, group->carrier->backend_config);
    for (i = 0; i < TTI_DEVICES; i++) {
        const tutti_backend_ops *usual = group->carrier->routes[i].ops;
        const bool               deeper = usual != NULL && tti_backend_is_own(usual) && tti_backend_inside(usual) != usual;

        if (usual == NULL || usual == group->routes[i].ops)
            continue;
        snprintf(key, sizeof key, "%s//%s" TTI_OTHERWISE_KEY, tti_device_name((tutti_device_type)i), inside[deeper], group->world->rank);
        leave(soon_ns < deadline_ns ? soon_ns : deadline_ns, group->store, key, &trouble, sizeof trouble, TUTTI_OK);
    }
}

/* This process may not be in world number n, because of this thread's last error: those who are wait for somebody who is
 * not to be had, as a rule, and look for such words. */
static void tell_who_waits(tti_port *port, const tti_join *join, int64_t n, tutti_status failure)
{
    tutti_store *root = NULL;
    char         words[TTI_GROUP_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (open_root(join, n, &root) != TUTTI_OK) {
        tti_fail(failure, "%s", words);
        return;
    }
    tti_fail(failure, "%s", words);
    tti_world_tell_why(port, root, failure);
    tutti_store_close(root);
}

/* Whether rank 0 may have to serve the store, and hand around memory, with as many descriptors as there are ranks, some times
 * over: then one connection more for each is not asked of it. */
static bool has_few_files(int n_ranks)
{
    struct rlimit files;

    return getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < (rlim_t)n_ranks * FILES_A_RANK + SPARE_FILES;
}

tti_store_will *tti_world_leave_ending(tti_port *port, tutti_store *store, const char *key, int rank, int64_t deadline_ns)
{
    const int64_t   until = tti_port_now(port) + TTI_SECOND;
    tti_ending      ending = { .version = TTI_ENDING_VERSION, .flags = TTI_ENDING_UNKNOWN, .rank = rank, .local = rank };
    tti_store_will *will = NULL;

    ending.pid = port->ops->process != NULL ? port->ops->process(port) : getpid();
    if (gethostname(ending.host, sizeof ending.host - 1) != 0)
        snprintf(ending.host, sizeof ending.host, "?");
    if (tti_store_will_leave(store, key, &ending, sizeof ending, until < deadline_ns ? until : deadline_ns, &will) != TUTTI_OK)
        tti_log(TTI_LOG_DEBUG, "no will is left: %s", tutti_last_error());
    return will;
}

/* Without: those that wait for this rank wait until their time is up, unless something else tells them. */
tti_store_will *tti_world_leave_will(tti_port *port, const tti_join *join, tutti_store *root, const char *key)
{
    char at[64];

    if (join->alone || join->world_size < 2 || has_few_files(join->world_size))
        return NULL;
    snprintf(at, sizeof at, "%s" WAITED_BELOW TTI_ENDED_KEY, key);
    return tti_world_leave_ending(port, root, at, join->rank, join->deadline_ns);
}

void tti_world_take_back_will(tti_port *port, tti_store_will *will, tutti_status st)
{
    char words[TTI_GROUP_WORDS_MAX];

    if (will == NULL)
        return;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_store_will_take_back(will, tti_port_now(port) + TTI_SECOND);
    if (st != TUTTI_OK)
        tti_fail(st, "%s", words);
}

static bool is_gone(void *context, int rank)
{
    const tutti_group *world = context;

    return world->ops->alive != NULL && tti_asked_alive(world->ops, world->backend, rank) == TUTTI_E_PEER;
}

/* What this rank will make the world of, for rank 0 and the others to compare. What cannot be had is said when the world is made.
 * Whether it is of a backend that is not the library's own: what those find wrong they do not tell each other as a rule. */
static bool note_backends(const tti_backing *backing, tti_join *join)
{
    tutti_group probe = { .size = 0 };

    if (tti_routes_find(&probe, backing) != TUTTI_OK)
        return false;
    snprintf(join->backends, sizeof join->backends, "%s", probe.backend_config);
    return !tti_backend_is_own(probe.ops);
}

/* World number n, of a backend that is not the library's own, could not be made on this rank, and the others have been told: rank 0,
 * which may serve the store, waits until they have heard. The last error stays. */
static void part(tti_port *port, const tti_join *join, int64_t n, tutti_status failure)
{
    const bool told = failure == TUTTI_E_REMOTE || failure == TUTTI_E_MISMATCH; /* others may still have to be */
    char       words[TTI_GROUP_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (failure != TUTTI_E_NETWORK) /* it may be the store that is lost */
        tti_generation_part(port, join, n, is_refusal(failure) || told);
    tti_fail(failure, "%s", words);
}

/* By which rank this process is in its launcher's job, and one; above that its age: not of a child that was forked. Written with a
 * world, once, as the launcher has given it one rank; read by any thread. */
static _Atomic uint64_t launched_as;

static void note_launched(int rank)
{
    atomic_store(&launched_as, (uint64_t)tti_fork_age() << 32 | (uint32_t)(rank + 1));
}

int tti_world_launched_rank(void)
{
    const uint64_t as = atomic_load(&launched_as);

    return as != 0 && !tti_is_inherited((uint32_t)(as >> 32)) ? (int)(uint32_t)as - 1 : -1;
}

tutti_status tti_world_create_named(tti_port *port, const tti_backing *backing,
                                    const tti_join *joining, const char *name, tutti_group **group_out)
{
    tti_join        mine = *joining;
    const tti_join *join = &mine;
    tti_bulletin   *bulletin = join->launched ? tti_bulletin_open() : NULL;
    tutti_group    *world = NULL;
    tutti_store    *root = NULL;
    tti_store_will *will = NULL;
    tti_making      making = { .port = NULL };
    int64_t         generation = 0, refused = 0;
    bool            foreign;
    tutti_status    st;

    mine.refused_out = &refused;
    foreign = note_backends(backing, &mine);
    tti_bulletin_heed(bulletin);
    st = tti_generation_join(port, join, &generation);
    if (refused != 0)
        tell_who_waits(port, join, refused, st);
    if (mine.generation == 0)
        mine.generation = (uint32_t)generation;
    if (st == TUTTI_OK)
        st = open_root(join, generation, &root);
    if (st == TUTTI_OK && join->rank0_serves)
        tti_making_begin(&making, port, root, "0", join->rank, NULL);
    if (st == TUTTI_OK && bulletin == NULL)
        will = tti_world_leave_will(port, join, root, "0");
    if (st == TUTTI_OK)
        st = tti_world_found(port, backing, join, name, "0", root, &world);
    if (st != TUTTI_OK && foreign && root != NULL)
        part(port, join, generation, st);
    tti_world_take_back_will(port, will, st);
    if (making.port != NULL)
        st = tti_making_end(&making, TTI_MADE_ALONE, join->deadline_ns, st);
    if (st == TUTTI_OK)
        st = tti_generation_arrive(port, join, generation, &(tti_members){ is_gone, world });
    tti_bulletin_heed(NULL);
    if (st == TUTTI_OK) {
        world->bulletin = bulletin;
        if (bulletin != NULL)
            note_launched(join->rank);
        *group_out = world;
    } else {
        tti_bulletin_close(bulletin);
        st = give_up(port, join, generation, world, st);
        if (join->rank0_serves && join->rank == 0)
            st = tti_store_turned_add(st, join->deadline_ns != TTI_FOREVER ? join->deadline_ns - join->timeout_ms * TTI_MS : 0);
    }
    tti_generation_end(join);
    tutti_store_close(root);
    return st;
}

tutti_status tti_world_create(tti_port *port, const tti_backing *backing, const tti_join *join,
                              tutti_group **group_out)
{
    return tti_world_create_named(port, backing, join, "0", group_out);
}
