/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group.c - making and ending groups; ranks and their translation.
 *
 * Names   A world is "0". Its children are "1", "2", ... in the order of creation: every rank of the
 *         world counts every one, also those it is not in, so that all agree without asking.
 * Keys    What a group puts into the store stands below its name, inside of its world's, with the
 *         device before a backend's own: "default_pg/0//cpu//k", "default_pg/0//1//cpu//k". A store
 *         that the caller made gets no "default_pg". Who joins through the same store again
 *         joins another world (rendezvous/generation.c), and from the second on the first part has
 *         its number, "default_pg.2": keys of an earlier world are never read.
 * True    A child holds its world's runner by being in the world: children end before it.
 * Source  torch.distributed's names and layout, so that what a store holds looks familiar. */
#include "group/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rendezvous/generation.h"
#include <tutti/private.h>

/* ---- options ---- */

tutti_status tti_options_read(void *known, size_t known_size, const void *opts, const char *macro)
{
    enum { LARGEST = 4096 };
    const unsigned char *bytes = opts;
    size_t               size;
    size_t               i;

    memcpy(&size, opts, sizeof size); /* every option struct begins with it */
    if (size <= sizeof size || size > LARGEST)
        return tti_fail(TUTTI_E_ARG,
                        "the options say that they have %zu bytes\n"
                        "  next: initialise them with %s",
                        size, macro);
    for (i = known_size; i < size; i++)
        if (bytes[i] != 0)
            return tti_fail(TUTTI_E_UNSUPPORTED,
                            "the options of a newer version (%zu bytes, here %zu) set a field "
                            "that this library does not know",
                            size, known_size);
    memcpy(known, opts, size < known_size ? size : known_size);
    return TUTTI_OK;
}

/* ---- stores ---- */

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

/* Fill group's two stores, below parent. */
static tutti_status open_stores(tutti_group *group, tutti_store *parent)
{
    char         prefix[TTI_GROUP_NAME_MAX + 2];
    tutti_status st;

    snprintf(prefix, sizeof prefix, "%s/", group->name);
    st = tutti_prefix_store_open(prefix, parent, &group->store);
    if (st != TUTTI_OK)
        return st;
    return tutti_prefix_store_open("cpu/", group->store, &group->backend_store);
}

/* ---- the object ---- */

/* A group without stores and backend: free it with free_group(). */
static tutti_status alloc_group(int rank, int size, tutti_group **group_out)
{
    tutti_group *group = calloc(1, sizeof *group);
    int         *ranks = calloc((size_t)size, sizeof *ranks);

    if (group == NULL || ranks == NULL) {
        free(group);
        free(ranks);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a group of %d", size);
    }
    group->world = group;
    group->rank = rank;
    group->size = size;
    group->ranks = ranks;
    group->n_made = 1;
    group->next_seq = 1;
    group->turn = 1;
    *group_out = group;
    return TUTTI_OK;
}

static void free_group(tutti_group *group)
{
    if (group == NULL)
        return;
    tutti_store_close(group->backend_store);
    tutti_store_close(group->store);
    free(group->ranks);
    free(group->desc);
    free(group);
}

/* Make group's backend; waits for the members, until deadline_ns. */
static tutti_status open_backend(tutti_group *group, int64_t deadline_ns)
{
    const int64_t        left_ms = tti_left_ms(group->runner->port, deadline_ns);
    tutti_backend_config config = {
        .size = sizeof config,
        .store = group->backend_store,
        .rank = group->rank,
        .n_ranks = group->size,
        .global_ranks = group->ranks,
        .group_id = group->id,
        .name = group->name,
        .timeout_ms = left_ms != 0 ? left_ms : 1, /* too late: let the backend say who is missing */
        .parent = group->world != group ? group->world->backend : NULL,
        .listen_host = group->listen_host,
    };

    return group->ops->create(&config, &group->backend);
}

/* ---- a world ---- */

static tutti_status fill_world(tutti_group *world, tti_port *port, const tutti_backend_ops *ops,
                               const tti_join *join)
{
    int i;

    world->ops = ops;
    world->timeout_ms = join->timeout_ms;
    snprintf(world->name, sizeof world->name, "0");
    snprintf(world->listen_host, sizeof world->listen_host, "%s", join->listen_host);
    for (i = 0; i < world->size; i++)
        world->ranks[i] = i;
    return tti_runner_create(port, &world->runner);
}

/* Free a world that could not be made; the words of the failure stay. */
static tutti_status give_up(tti_port *port, const tti_join *join, int64_t generation,
                            tutti_group *world, tutti_status failure)
{
    char words[TTI_GROUP_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_generation_fail(port, join, generation);
    if (world->backend != NULL)
        world->ops->destroy(world->backend);
    if (world->runner != NULL)
        tti_runner_drop(world->runner);
    free_group(world);
    return tti_fail(failure, "%s", words);
}

tutti_status tti_world_create(tti_port *port, const tutti_backend_ops *ops, const tti_join *join,
                              tutti_group **group_out)
{
    tutti_group *world = NULL;
    tutti_store *root = NULL;
    int64_t      generation = 0;
    tutti_status st;

    st = alloc_group(join->rank, join->world_size, &world);
    if (st != TUTTI_OK)
        return st;
    st = fill_world(world, port, ops, join);
    if (st != TUTTI_OK)
        goto out;
    st = tti_generation_join(port, join, &generation);
    if (st != TUTTI_OK)
        goto out;
    st = open_root(join, generation, &root);
    if (st != TUTTI_OK)
        goto out;
    st = open_stores(world, root);
    if (st != TUTTI_OK)
        goto out;
    st = open_backend(world, join->deadline_ns);
    if (st != TUTTI_OK)
        goto out;
    st = tti_generation_arrive(port, join, generation);
    if (st == TUTTI_OK)
        *group_out = world;

out:
    if (st != TUTTI_OK)
        st = give_up(port, join, generation, world, st);
    tutti_store_close(root);
    return st;
}

/* ---- children ---- */

static int compare_ranks(const void *a, const void *b)
{
    const int x = *(const int *)a;
    const int y = *(const int *)b;

    return (x > y) - (x < y);
}

static tutti_status check_counts(const tutti_group *world, const int *ranks, int n_ranks)
{
    if (ranks == NULL && n_ranks != 0)
        return tti_fail(TUTTI_E_ARG, "new_group: ranks is NULL, but n_ranks is %d", n_ranks);
    if (ranks != NULL && n_ranks <= 0)
        return tti_fail(TUTTI_E_ARG,
                        "new_group: the list of ranks is empty (n_ranks is %d)\n"
                        "  next: NULL and 0 mean all ranks",
                        n_ranks);
    if (n_ranks > world->size)
        return tti_fail(TUTTI_E_ARG, "new_group: %d ranks, but the world has %d", n_ranks,
                        world->size);
    return TUTTI_OK;
}

/* Fill sorted[n] (all ranks of the world when ranks is NULL) and check it. */
static tutti_status sort_ranks(const tutti_group *world, const int *ranks, int *sorted, int n)
{
    int i;

    for (i = 0; i < n; i++)
        sorted[i] = ranks != NULL ? ranks[i] : i;
    qsort(sorted, (size_t)n, sizeof sorted[0], compare_ranks);
    for (i = 0; i < n; i++) {
        if (sorted[i] < 0 || sorted[i] >= world->size)
            return tti_fail(TUTTI_E_ARG, "new_group: rank %d is outside of 0 .. %d", sorted[i],
                            world->size - 1);
        if (i > 0 && sorted[i] == sorted[i - 1])
            return tti_fail(TUTTI_E_ARG, "new_group: rank %d is there twice", sorted[i]);
    }
    return TUTTI_OK;
}

static int find_rank(const int *sorted, int n, int rank)
{
    const int *at = bsearch(&rank, sorted, (size_t)n, sizeof sorted[0], compare_ranks);

    return at != NULL ? (int)(at - sorted) : -1;
}

/* Inherit from world, then apply opts; group->ranks is filled. Takes the next number. */
static tutti_status fill_child(tutti_group *group, tutti_group *world, uint32_t id,
                               const tutti_group_options *opts)
{
    group->world = world;
    group->runner = world->runner;
    group->ops = world->ops;
    group->id = id;
    group->timeout_ms = opts->timeout_ms != 0 ? opts->timeout_ms : world->timeout_ms;
    snprintf(group->name, sizeof group->name, "%u", id);
    snprintf(group->listen_host, sizeof group->listen_host, "%s", world->listen_host);
    if (opts->desc == NULL)
        return TUTTI_OK;
    group->desc = strdup(opts->desc);
    return group->desc != NULL ? TUTTI_OK : tti_fail(TUTTI_E_NOMEM, "no memory for a group's name");
}

uint32_t tti_group_take_number(tutti_group *world)
{
    uint32_t id;

    tti_lock(&world->runner->lock);
    id = world->n_made++;
    tti_unlock(&world->runner->lock);
    return id;
}

static void link_child(tutti_group *world, tutti_group *group)
{
    tti_lock(&world->runner->lock);
    group->next = world->children;
    world->children = group;
    tti_unlock(&world->runner->lock);
}

static void unlink_child(tutti_group *world, const tutti_group *group)
{
    tutti_group **at;

    tti_lock(&world->runner->lock);
    for (at = &world->children; *at != group; at = &(*at)->next)
        continue;
    *at = group->next;
    tti_unlock(&world->runner->lock);
}

/* The rest of a child whose ranks are known to be good. */
static tutti_status open_child(tutti_group *group, tutti_group *world, uint32_t id,
                               const tutti_group_options *opts)
{
    tti_port    *port = world->runner->port;
    tutti_status st;

    st = fill_child(group, world, id, opts);
    if (st == TUTTI_OK)
        st = open_stores(group, world->store);
    if (st != TUTTI_OK)
        return st;
    return open_backend(group, tti_deadline(port, group->timeout_ms, group->timeout_ms));
}

tutti_status tti_group_options_read(const char *what, const tutti_group_options *opts,
                                    tutti_group_options *known)
{
    tutti_status st = TUTTI_OK;

    if (opts != NULL)
        st = tti_options_read(known, sizeof *known, opts, "TUTTI_GROUP_OPTIONS");
    if (st == TUTTI_OK && known->timeout_ms < TUTTI_INFINITE)
        st = tti_fail(TUTTI_E_ARG,
                      "%s: timeout_ms is %lld\n"
                      "  next: 0 for the world's, -1 for none",
                      what, (long long)known->timeout_ms);
    return st;
}

tutti_status tti_group_create(tutti_group *world, const int *ranks, int n_ranks,
                              const tutti_group_options *opts, tutti_group **group_out)
{
    const int           n = ranks != NULL ? n_ranks : world->size;
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;
    tutti_status        st;
    uint32_t            id;

    st = tti_group_options_read("new_group", opts, &known);
    if (st == TUTTI_OK)
        st = check_counts(world, ranks, n_ranks);
    if (st == TUTTI_OK)
        st = alloc_group(-1, n, &group);
    if (st != TUTTI_OK)
        return st;
    st = sort_ranks(world, ranks, group->ranks, n);
    if (st != TUTTI_OK)
        goto out;
    id = tti_group_take_number(world);
    group->rank = find_rank(group->ranks, n, world->rank);
    if (group->rank < 0) {
        *group_out = TUTTI_NON_MEMBER;
        goto out;
    }
    st = open_child(group, world, id, &known);
    if (st != TUTTI_OK)
        goto out;
    link_child(world, group);
    *group_out = group;
    return TUTTI_OK;

out:
    free_group(group);
    return st;
}

tutti_status tutti_new_group(const int *ranks, int n_ranks, const tutti_group_options *opts,
                             tutti_group **group_out)
{
    tutti_group *world = NULL;
    tutti_status st;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "new_group: group_out is NULL");
    st = tti_group_world("new_group", &world);
    if (st == TUTTI_OK)
        st = tti_group_create(world, ranks, n_ranks, opts, group_out);
    if (st != TUTTI_OK)
        *group_out = TUTTI_NO_GROUP;
    return st;
}

/* ---- ending ---- */

static void destroy_one(tutti_group *group)
{
    tutti_work *messages;

    tti_queue_close(group);
    messages = tti_messages_take(group);
    if (group->world == group)
        tti_runner_stop(group->runner);
    group->ops->destroy(group->backend);
    tti_messages_give(messages);
    if (group->world == group)
        tti_callbacks_stop(group->runner);
    free_group(group);
}

void tti_group_destroy(tutti_group *group)
{
    tti_runner *runner = group->runner;

    if (group->world != group) {
        unlink_child(group->world, group);
        destroy_one(group);
        return;
    }
    tti_mesh_families_end(group);
    while (group->children != NULL) {
        tutti_group *child = group->children;

        unlink_child(group, child);
        destroy_one(child);
    }
    destroy_one(group);
    tti_runner_drop(runner);
}

/* ---- ranks ---- */

int tutti_get_rank(const tutti_group *group)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL ? g->rank : -1;
}

int tutti_get_world_size(const tutti_group *group)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL ? g->size : -1;
}

int tutti_get_global_rank(const tutti_group *group, int group_rank)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL && group_rank >= 0 && group_rank < g->size ? g->ranks[group_rank] : -1;
}

int tutti_get_group_rank(const tutti_group *group, int global_rank)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL ? find_rank(g->ranks, g->size, global_rank) : -1;
}
