/* SPDX-License-Identifier: BSD-3-Clause
 *
 * split.c - communicators out of a group's communicator, where all of its members divide themselves.
 *
 * Why     From 2.18 on NCCL makes them without an id, out of what the ranks know of each other already (ncclCommSplit). It wants all
 *         ranks of the old communicator, with nothing of that under way. For one that does not come it waits in vain, and then the
 *         old communicator is lost, too.
 * How     So members agree before NCCL hears of it, in the old group's store. Who is ready, with nothing on the device any more,
 *         counts up, and who counts last proposes to split. Who cannot, because another GPU is current, NCCL is older or something
 *         has failed on the way, proposes ids; so does who has waited for half of its time, or is no longer to wait, as a member has
 *         refused the group. The first proposal holds, for all.
 *           split  all call NCCL, those that are in no group without a color
 *           ids    each group is made as if nothing had been (meet.c), and who is in none is done
 * True    A division has its turn among the old group's calls (tutti/plugin/backend.h): nobody gives its communicator anything
 *         meanwhile, and all members divide it in the same order. NCCL writes where the new communicator is when the old one is no
 *         longer in progress: into the old group, which is there as long as its communicator.
 * Fails   What fails before NCCL was called has cost nothing. What fails from then on has broken the old communicator, and ends its
 *         group as a call that fails does. A communicator that NCCL has made by then, and nobody has taken, ends with the old one. */
#include "nccl_backend.h"

#include <stdio.h>
#include <string.h>

enum { KEY_BYTES = 48, FIRST_WITH_SPLIT = 21800, NO_COLOR = -1 };

static const char to_split[] = "split", by_ids[] = "ids";

static void write_key(uint64_t step, const char *what, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "nccl/split/%llu/%s", (unsigned long long)step, what);
}

/* ---- agreeing ---- */

static bool is_split(const tutti_bytes *proposal)
{
    return proposal->size == strlen(to_split) && memcmp(proposal->data, to_split, proposal->size) == 0;
}

/* What holds from now on. A store that cannot compare and set has ids: nobody ever gets to know of anything else there. */
static tutti_status propose(const tnccl_backend *from, uint64_t step, const char *what, bool *split_out)
{
    tutti_bytes  holds = { 0 };
    char         key[KEY_BYTES];
    tutti_status st;

    write_key(step, "way", key);
    st = tnccl_host->store_compare_set(from->store, key, "", 0, what, strlen(what), &holds);
    if (st == TUTTI_E_UNSUPPORTED)
        st = tnccl_host->store_set(from->store, key, by_ids, strlen(by_ids));
    else if (st == TUTTI_OK)
        *split_out = is_split(&holds);
    tnccl_host->bytes_free(&holds);
    return st;
}

static bool has_failed(tnccl_backend *from)
{
    bool failed;

    pthread_mutex_lock(&from->lock);
    failed = from->status != TUTTI_OK;
    pthread_mutex_unlock(&from->lock);
    return failed;
}

/* What the others have agreed on; until time is up, the library ends it, or the old group has failed. With ids the library's end is
 * met again, and told, where those are waited for. */
static tutti_status hear(tnccl_backend *from, uint64_t step, int64_t until_ns, bool *split_out)
{
    tutti_bytes  said = { 0 };
    char         key[KEY_BYTES];
    tutti_status st;

    write_key(step, "way", key);
    while ((st = tnccl_look_for(from->store, key, &said)) == TUTTI_E_TIMEOUT)
        if (tnccl_host->store_stops() || tnccl_host->now_ns() >= until_ns || has_failed(from))
            return propose(from, step, by_ids, split_out);
    if (st != TUTTI_OK)
        return st;
    *split_out = is_split(&said);
    tnccl_host->bytes_free(&said);
    return TUTTI_OK;
}

/* Whether NCCL has nothing of the old communicator any more. Takes until a deadline, at most. */
static bool is_idle(tnccl_backend *from, int64_t until_ns)
{
    const int device = tnccl_enter(from);
    uint32_t  rounds = 0;
    bool      idle;

    pthread_mutex_lock(&from->lock);
    for (;;) {
        tnccl_tickets_look(from);
        idle = from->under_way == NULL && from->status == TUTTI_OK;
        if (idle || from->status != TUTTI_OK || tnccl_host->now_ns() >= until_ns)
            break;
        pthread_mutex_unlock(&from->lock);
        tnccl_host->idle(&rounds, false);
        pthread_mutex_lock(&from->lock);
    }
    pthread_mutex_unlock(&from->lock);
    tnccl_leave(device);
    return idle;
}

static bool is_able(int device, const tnccl_backend *from)
{
    return tnccl.ncclCommSplit != NULL && tnccl.version >= FIRST_WITH_SPLIT && device == from->device;
}

static tutti_status agree(tnccl_backend *from, uint64_t step, int device, int64_t until_ns, bool *split_out)
{
    char         key[KEY_BYTES];
    int64_t      n = 0;
    tutti_status st;

    *split_out = false;
    if (!is_able(device, from) || !is_idle(from, until_ns))
        return propose(from, step, by_ids, split_out);
    write_key(step, "ready", key);
    st = tnccl_host->store_add(from->store, key, 1, &n);
    if (st != TUTTI_OK)
        return st;
    return n == from->n_ranks ? propose(from, step, to_split, split_out) : hear(from, step, until_ns, split_out);
}

/* Half of the time is for agreeing: after that there is as much to make the groups by ids. */
static int64_t half_way(int64_t deadline_ns)
{
    const int64_t now = tnccl_host->now_ns();

    return deadline_ns == INT64_MAX ? INT64_MAX : now + (deadline_ns - now) / 2;
}

/* ---- splitting ---- */

/* Asked once, at least: NCCL may go on with it in the background whatever it says. */
static tutti_status split(tnccl_backend *from, int color, int key, int64_t deadline_ns, ncclComm_t *comm_out)
{
    const int    device = tnccl_enter(from);
    tutti_status st;
    ncclResult_t code;

    pthread_mutex_lock(&from->lock);
    if (from->status == TUTTI_OK) {
        snprintf(from->begun, sizeof from->begun, "split");
        from->split = NULL;
        code = tnccl.ncclCommSplit(from->comm, color, key, &from->split, NULL); /* as from: it does not block */
        st = tnccl_settle(from, code == ncclSuccess ? ncclInProgress : code, deadline_ns);
    } else {
        st = tnccl_say(from);
    }
    if (st == TUTTI_OK) {
        *comm_out = from->split;
        from->split = NULL;
    }
    pthread_mutex_unlock(&from->lock);
    tnccl_leave(device);
    return st;
}

tutti_status tnccl_split(tnccl_backend *b, const tutti_backend_config *config, int64_t deadline_ns)
{
    tnccl_backend *from = (tnccl_backend *)config->split_from;
    bool           splits = false;
    tutti_status   st = agree(from, config->split_step, b->device, half_way(deadline_ns), &splits);

    if (st != TUTTI_OK || !splits)
        return st;
    st = split(from, config->split_color, config->rank, deadline_ns, &b->comm);
    if (st == TUTTI_OK && b->comm == NULL)
        st = tnccl_host->fail(TUTTI_E_BACKEND, "group '%s': NCCL has split group '%s', and given no communicator", b->name, from->name);
    return st;
}

/* The others do without this member, if they have not begun; this thread's last error stays. */
static void leave(tnccl_backend *from, uint64_t step)
{
    char words[TNCCL_WORDS];
    bool splits;

    snprintf(words, sizeof words, "%s", tnccl_host->last_error());
    (void)propose(from, step, by_ids, &splits);
    tnccl_host->fail(TUTTI_E_BACKEND, "%s", words); /* whatever the store said */
}

void tnccl_split_leave(const tutti_backend_config *config)
{
    if (config->split_from != NULL)
        leave((tnccl_backend *)config->split_from, config->split_step);
}

tutti_status tnccl_sit_out(tutti_backend *backend, uint64_t step, int64_t timeout_ms, bool has_failed_here)
{
    tnccl_backend *from = (tnccl_backend *)backend;
    const int64_t  deadline_ns = tnccl_deadline(timeout_ms);
    ncclComm_t     none = NULL;
    bool           splits = false;
    tutti_status   st;

    if (has_failed_here)
        return propose(from, step, by_ids, &splits);
    st = agree(from, step, from->device, half_way(deadline_ns), &splits);
    if (st == TUTTI_OK && splits)
        return split(from, NO_COLOR, 0, deadline_ns, &none);
    if (st != TUTTI_OK)
        leave(from, step);
    return st;
}
