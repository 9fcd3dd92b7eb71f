/* SPDX-License-Identifier: BSD-3-Clause
 *
 * post_local_sgd.c - averages over all ranks until a step, over the ranks of a host after it.
 *
 * How     The hosts are found when the first bucket needs them: ranks tell each other where they are, and those at one
 *         place become a group. All ranks are in that bucket, so the exchange has its turn on the reducer's group.
 *         A place is this boot of a machine and the network that it sees: containers that share no network count as
 *         hosts, as they do for connections. Where that cannot be read a rank is a host of its own.
 *         What is saved is the number of steps, in bytes like those of PowerSGD: hosts are looked for anew.
 * True    Both groups see the same order on all their ranks: buckets are begun in it. */
#include "parallel/hooks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/machine.h"
#include "base/options.h"
#include <tutti/comm_hooks.h>
#include <tutti/private.h>
#include <tutti/regroup.h>

/* Where a rank is, as it travels. */
typedef struct place {
    char     boot[TTI_BOOT_ID_BYTES];
    uint8_t  known;
    uint8_t  unused[2];
    uint64_t network;
} place;

_Static_assert(sizeof(place) == 48, "a place has no gaps");

struct tutti_post_local_hook {
    tutti_comm_hook hook;
    tutti_group    *near;      /* averages after the start; NULL: not made yet */
    bool            owns_near;
    bool            stays_own; /* no averages after the start */
    int64_t         start_iter;
    tti_hook_steps  steps;
};

static const char MAGIC[8] = "tuttiPLS";
enum { VERSION = 1, ORDER = 0x01020304 };

/* What is saved. Numbers as the machine has them: one from another kind of machine is not one. */
typedef struct saved {
    char     magic[8];
    uint32_t version, order;
    int64_t  iter;
} saved;

_Static_assert(sizeof(saved) == 24, "what is saved has no gaps");

/* ---- hosts ---- */

static place find_place(void)
{
    struct stat network;
    place       here = { .known = 0 };

    here.known = tti_boot_id(here.boot) && stat("/proc/self/ns/net", &network) == 0;
    if (here.known)
        here.network = (uint64_t)network.st_ino;
    return here;
}

/* The lowest rank at the same place names it. */
static int32_t color_of(const place *places, int rank)
{
    int q;

    for (q = 0; q < rank; q++)
        if (places[rank].known && memcmp(&places[q], &places[rank], sizeof places[q]) == 0)
            return q;
    return rank;
}

static tutti_status find_near(tutti_post_local_hook *s, tutti_group *group)
{
    const place         here = find_place();
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    const int           rank = tutti_get_rank(group), size = tutti_get_world_size(group);
    place              *places = calloc((size_t)size, sizeof *places);
    tutti_status        st;

    if (places == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the hosts of %d ranks", size);
    st = tutti_all_gather_into_tensor(TUTTI_SPAN((uint8_t *)places, (int64_t)(size * (int)sizeof *places)),
                                      TUTTI_SPAN((uint8_t *)&here, (int64_t)sizeof here), group);
    opts.desc = "post_local_sgd";
    if (st == TUTTI_OK)
        st = tutti_split_group_by_color(group, color_of(places, rank), &opts, &s->near);
    s->owns_near = st == TUTTI_OK;
    if (st != TUTTI_OK)
        s->near = NULL;
    free(places);
    return st;
}

/* ---- the hook ---- */

static tutti_status stay_own(tutti_future **future_out)
{
    tutti_future *future = NULL;
    tutti_status  st = tutti_future_create(&future);

    if (st == TUTTI_OK)
        st = tutti_future_set_result(future, NULL, NULL);
    if (st == TUTTI_OK)
        *future_out = future;
    return st;
}

static tutti_status run(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    tutti_post_local_hook *s = state;
    tutti_status          st = TUTTI_OK;

    tti_hook_steps_note(&s->steps, bucket);
    if (s->steps.n <= s->start_iter)
        return tti_hook_average(bucket->buffer, bucket->group, future_out);
    if (s->stays_own)
        return stay_own(future_out);
    if (s->near == NULL)
        st = find_near(s, bucket->group);
    return st == TUTTI_OK ? tti_hook_average(bucket->buffer, s->near, future_out) : st;
}

/* The hosts are looked for anew. */
static void forget_near(void *state)
{
    tutti_post_local_hook *s = state;

    if (s->owns_near)
        s->near = NULL;
    s->owns_near = false;
}

/* ---- the object ---- */

static void free_state(void *state)
{
    tutti_post_local_hook_free(state);
}

tutti_status tutti_post_local_hook_create(const tutti_reducer *reducer, const tutti_post_local_hook_options *opts,
                                          tutti_post_local_hook **state_out)
{
    tutti_post_local_hook_options known = TUTTI_POST_LOCAL_HOOK_OPTIONS;
    tutti_post_local_hook        *s;
    tutti_status                 st = TUTTI_OK;

    if (reducer == NULL || state_out == NULL)
        return tti_fail(TUTTI_E_ARG, "post_local_hook_create: the %s is NULL", reducer == NULL ? "reducer" : "output");
    if (opts != NULL)
        st = tti_options_read(&known, sizeof known, opts, "TUTTI_POST_LOCAL_HOOK_OPTIONS");
    if (st != TUTTI_OK)
        return st;
    if (known.start_iter < 0)
        return tti_fail(TUTTI_E_ARG, "post_local_hook_create: a start_iter of %lld", (long long)known.start_iter);
    if (known.subgroup != NULL && tutti_get_rank(known.subgroup) < 0)
        return tti_fail(TUTTI_E_ARG, "post_local_hook_create: this rank is not in the subgroup");
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for post-local SGD");
    *s = (tutti_post_local_hook){ .near = known.subgroup, .stays_own = known.no_gradient_all_reduce,
                                 .start_iter = known.start_iter, .steps.last = TTI_STEP_OVER };
    s->hook = (tutti_comm_hook){ .api = TUTTI_COMM_HOOK_API, .size = sizeof s->hook, .name = "post_localSGD_hook",
                                 .run = run, .free_state = free_state, .group_changed = forget_near };
    *state_out = s;
    return TUTTI_OK;
}

void tutti_post_local_hook_free(tutti_post_local_hook *state)
{
    if (state == NULL)
        return;
    if (state->owns_near)
        tutti_destroy_process_group(state->near);
    free(state);
}

const tutti_comm_hook *tutti_post_local_hook_table(const tutti_post_local_hook *state)
{
    return state != NULL ? &state->hook : NULL;
}

/* ---- what is saved ---- */

tutti_status tutti_post_local_hook_save(const tutti_post_local_hook *state, tutti_bytes *bytes_out)
{
    saved  now = { .version = VERSION, .order = ORDER };
    saved *data;

    if (state == NULL || bytes_out == NULL)
        return tti_fail(TUTTI_E_ARG, "post_local_hook_save: the %s is NULL", state == NULL ? "state" : "output");
    data = malloc(sizeof *data);
    if (data == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the state of post-local SGD: %zu bytes", sizeof *data);
    memcpy(now.magic, MAGIC, sizeof now.magic);
    now.iter = state->steps.n;
    *data = now;
    *bytes_out = (tutti_bytes){ .data = (char *)data, .size = sizeof *data };
    return TUTTI_OK;
}

tutti_status tutti_post_local_hook_load(tutti_post_local_hook *state, const void *data, size_t bytes)
{
    saved then;

    if (state == NULL || data == NULL)
        return tti_fail(TUTTI_E_ARG, "post_local_hook_load: the %s is NULL", state == NULL ? "state" : "data");
    if (bytes == sizeof then)
        memcpy(&then, data, sizeof then);
    if (bytes != sizeof then || memcmp(then.magic, MAGIC, sizeof then.magic) != 0 || then.version != VERSION ||
        then.order != ORDER || then.iter < 0)
        return tti_fail(TUTTI_E_ARG, "post_local_hook_load: these %zu bytes are not what post_local_hook_save() has made, "
                                     "or not all of it", bytes);
    state->steps = (tti_hook_steps){ .n = then.iter, .last = TTI_STEP_OVER };
    return TUTTI_OK;
}
