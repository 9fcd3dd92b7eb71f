/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend.c - a group: its communicator, how it waits, how it fails.
 *
 * World    Its members are the ranks of MPI_COMM_WORLD, each under its own number: other worlds are refused (meet.c). Its
 *          communicator is a copy, so that nothing meets what the program sends itself. What the copies carry first
 *          is the number of the meeting in the store: two jobs that were mixed up do not get further.
 * Group    A communicator of some ranks of the world's, which only they make. MPI has no way to give that up once it is
 *          begun, so all meet in the store before, where a deadline is heeded.
 * Failure  The first one is kept, with its words, and is what every later call returns. MPI cannot take back a collective
 *          that was begun, nor a message that was sent: it only ever sees memory of ours, so the caller's is free at
 *          once, and ours stays until the process ends. Neither is the communicator given back then.
 * End      Groups that are open are in a list, for when the program ends MPI before them: that is their failure. */
#include "mpi_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tmpi_backend *open_groups; /* under the lock */

/* ---- failing ---- */

void tmpi_finish(tmpi_backend *b, tutti_status status, const char *words)
{
    if (b->home->status != TUTTI_OK)
        return;
    b->home->status = status;
    snprintf(b->home->words, sizeof b->home->words, "%s", words);
    tmpi_messages_end(b->home);
}

tutti_status tmpi_say(const tmpi_home *home)
{
    return tmpi_host->fail(home->status, "%s", home->words);
}

void tmpi_fail(tutti_backend *backend, tutti_status status)
{
    tmpi_backend *b = (tmpi_backend *)backend;
    char          words[TMPI_WORDS];

    snprintf(words, sizeof words, "%s", tmpi_host->last_error());
    tmpi_lock();
    if (b->home->status == TUTTI_OK) {
        tmpi_finish(b, status, words);
        tmpi_notices_end(b);
    }
    tmpi_unlock();
}

void tmpi_abort(tutti_backend *backend)
{
    tmpi_backend *b = (tmpi_backend *)backend;

    tmpi_lock();
    tmpi_finish(b, TUTTI_E_ABORTED, "the group was aborted on this rank");
    tmpi_unlock();
}

/* Who waits for them, in a thread of its own, finds out by itself. */
void tmpi_groups_end(void)
{
    tmpi_backend *b;

    for (b = open_groups; b != NULL; b = b->next) {
        tmpi_finish(b, TUTTI_E_STATE, "the program has ended MPI, which this group of backend 'mpi' stands on\n"
                                      "  next: call MPI_Finalize after the last group of backend 'mpi' is destroyed");
        tmpi_notices_hush(b);
    }
}

/* ---- waiting ---- */

/* The deadline has passed. What is told to others is told once, by whoever is first. */
static tutti_status time_is_up(tmpi_backend *b, const tmpi_wait *wait)
{
    const long long waited_ms = (long long)((tmpi_host->now_ns() - wait->began_ns) / 1000000);
    char            missing[192], words[TMPI_WORDS];
    tutti_status    st;

    if (wait->seq != 0 && tmpi_roll_call(b, wait->seq, missing, sizeof missing))
        snprintf(words, sizeof words, "%s on group '%s' timed out after %lld ms on rank %d of %d members\n"
                                      "  %s\n"
                                      "  next: see what the ranks named do instead, or give the group a longer time-out",
                 wait->what, b->name, waited_ms, b->global_ranks[b->rank], b->n_ranks, missing);
    else
        snprintf(words, sizeof words, "%s on group '%s' timed out after %lld ms on rank %d of %d members\n"
                                      "  all of them have come, MPI has not moved everything\n"
                                      "  next: give the group a longer time-out",
                 wait->what, b->name, waited_ms, b->global_ranks[b->rank], b->n_ranks);
    tmpi_lock();
    if (b->home->status == TUTTI_OK) {
        tmpi_finish(b, TUTTI_E_TIMEOUT, words);
        tmpi_notices_end(b);
    }
    st = tmpi_say(b->home);
    tmpi_unlock();
    return st;
}

/* Under the lock: MPI has failed. */
static void mpi_failed(tmpi_backend *b, int code, const char *what)
{
    const tutti_status st = tmpi_fail_mpi(code, what, b->name);

    if (b->home->status != TUTTI_OK)
        return;
    tmpi_finish(b, st, tmpi_host->last_error());
    tmpi_notices_end(b);
}

tutti_status tmpi_await(tmpi_backend *b, MPI_Request *request, const tmpi_wait *wait)
{
    tutti_status st = TUTTI_OK;
    uint32_t     rounds = 0;
    int          done = 0, code;

    while (!done && st == TUTTI_OK) {
        tmpi_lock();
        code = TMPI_CALL(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        if (code != MPI_SUCCESS)
            mpi_failed(b, code, wait->what);
        if (!done && b->notices != NULL)
            tmpi_notices_look(b);
        if (b->home->status != TUTTI_OK)
            st = tmpi_say(b->home);
        tmpi_unlock();
        if (st == TUTTI_OK && !done && tmpi_host->now_ns() >= wait->deadline_ns)
            st = time_is_up(b, wait);
        else if (st == TUTTI_OK && !done)
            tmpi_host->idle(&rounds, wait->in_background);
    }
    if (!done)
        b->stuck = true;
    return st;
}

/* ---- communicators ---- */

static tmpi_wait making(const tutti_backend_config *config)
{
    const int64_t now = tmpi_host->now_ns();

    return (tmpi_wait){ .what = "making a communicator",
                        .deadline_ns = config->timeout_ms < 0 ? INT64_MAX : now + config->timeout_ms * 1000000,
                        .began_ns = now };
}

/* Whether those on the communicator have the number of the meeting. */
static tutti_status check_token(tmpi_backend *b, const tmpi_wait *wait)
{
    MPI_Request  request;
    uint64_t    *theirs = calloc((size_t)b->n_ranks + 1, sizeof *theirs);
    tutti_status st;
    int          code, i;

    if (theirs == NULL)
        return tmpi_host->fail(TUTTI_E_NOMEM, "no memory for a group of %d", b->n_ranks);
    theirs[b->n_ranks] = b->token;
    tmpi_lock();
    code = TMPI_CALL(MPI_Iallgather(&theirs[b->n_ranks], (int)sizeof *theirs, MPI_BYTE, theirs, (int)sizeof *theirs, MPI_BYTE,
                                    b->comm, &request));
    tmpi_unlock();
    if (code != MPI_SUCCESS)
        st = tmpi_fail_mpi(code, wait->what, b->name);
    else
        st = tmpi_await(b, &request, wait);
    if (b->stuck)
        return st; /* MPI may still write there */
    for (i = 0; i < b->n_ranks && st == TUTTI_OK; i++)
        if (theirs[i] != b->token)
            st = tmpi_host->fail(TUTTI_E_ARG,
                                 "rank %d of MPI's world is not the rank %d that came to the store: two jobs were mixed up\n"
                                 "  next: give each job a MASTER_ADDR and MASTER_PORT of its own", i, i);
    free(theirs);
    return st;
}

static tutti_status copy_world(tmpi_backend *b, const tutti_backend_config *config)
{
    const tmpi_wait wait = making(config);
    MPI_Request     request;
    tutti_status    st;
    int             code;

    tmpi_lock();
    code = TMPI_CALL(MPI_Comm_idup(MPI_COMM_WORLD, &b->comm, &request));
    tmpi_unlock();
    if (code != MPI_SUCCESS)
        return tmpi_fail_mpi(code, wait.what, b->name);
    st = tmpi_await(b, &request, &wait);
    if (st != TUTTI_OK)
        return st;
    tmpi_lock();
    code = TMPI_CALL(MPI_Comm_set_errhandler(b->comm, MPI_ERRORS_RETURN));
    tmpi_unlock();
    return code == MPI_SUCCESS ? check_token(b, &wait) : tmpi_fail_mpi(code, wait.what, b->name);
}

/* The members have met and are about to call this, too: MPI's waiting is short. Without the lock, where MPI allows
 * it: two groups may be made at once, by threads that come to it in another order elsewhere. */
static int create_among(MPI_Comm world, MPI_Group members, int tag, MPI_Comm *comm_out)
{
    const bool alone = !tmpi_engine_facts()->multiple;
    int        code;

    if (alone)
        tmpi_lock();
    code = MPI_Comm_create_group(world, members, tag, comm_out);
    if (alone)
        tmpi_unlock();
    return code;
}

static tutti_status choose_members(tmpi_backend *b, const tutti_backend_config *config)
{
    const tmpi_backend *world = (const tmpi_backend *)config->parent;
    MPI_Group           all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
    int                 code;

    tmpi_lock();
    code = TMPI_CALL(MPI_Comm_group(world->comm, &all));
    if (code == MPI_SUCCESS)
        code = MPI_Group_incl(all, config->n_ranks, config->global_ranks, &members);
    tmpi_unlock();
    if (code == MPI_SUCCESS)
        code = create_among(world->comm, members, (int)(config->group_id % 32767), &b->comm);
    tmpi_lock();
    if (code == MPI_SUCCESS)
        code = TMPI_CALL(MPI_Comm_set_errhandler(b->comm, MPI_ERRORS_RETURN));
    if (members != MPI_GROUP_NULL)
        (void)TMPI_CALL(MPI_Group_free(&members));
    if (all != MPI_GROUP_NULL)
        (void)TMPI_CALL(MPI_Group_free(&all));
    tmpi_unlock();
    return code == MPI_SUCCESS ? TUTTI_OK : tmpi_fail_mpi(code, "making a communicator", b->name);
}

/* ---- memory ---- */

static size_t stage_bytes(int n_ranks)
{
    const size_t least = (size_t)n_ranks * TMPI_SLICE_LEAST;

    return least > TMPI_STAGE ? least : TMPI_STAGE;
}

static bool take_memory(tmpi_backend *b, const tutti_backend_config *config)
{
    const size_t n = (size_t)config->n_ranks;

    b->home = calloc(1, sizeof *b->home);
    b->global_ranks = malloc(n * sizeof *b->global_ranks);
    b->counts = malloc(4 * n * sizeof *b->counts);
    b->operands = malloc(n * sizeof *b->operands);
    b->cards = calloc(n + 1, sizeof(tmpi_card));
    b->out = malloc(stage_bytes(config->n_ranks));
    b->in = malloc(stage_bytes(config->n_ranks));
    if (b->home == NULL || b->global_ranks == NULL || b->counts == NULL || b->operands == NULL || b->cards == NULL ||
        b->out == NULL || b->in == NULL)
        return false;
    b->home->refs = 1;
    b->home->backend = b;
    memcpy(b->global_ranks, config->global_ranks, n * sizeof *b->global_ranks);
    return true;
}

void tmpi_home_drop(tmpi_home *home)
{
    if (home != NULL && --home->refs == 0)
        free(home);
}

/* What MPI may still use stays, and it may be any of this. */
static void give_memory(tmpi_backend *b)
{
    if (b->stuck)
        return;
    free(b->counts);
    free(b->operands);
    free(b->cards);
    free(b->out);
    free(b->in);
    free(b->global_ranks);
    free(b);
}

/* ---- the table's entries ---- */

/* Whether the process has another group. */
static bool has_others(const tmpi_backend *b)
{
    bool others;

    tmpi_lock();
    others = b->next != NULL || b->link != &open_groups;
    tmpi_unlock();
    return others;
}

static tutti_status open_comm(tmpi_backend *b, const tutti_backend_config *config)
{
    tutti_status st = tmpi_meet(config, &b->token);

    b->refused = tmpi_is_refusal(st) && has_others(b);
    if (st == TUTTI_OK)
        st = config->parent == NULL ? copy_world(b, config) : choose_members(b, config);
    return st == TUTTI_OK ? tmpi_notices_open(b) : st;
}

/* Under the lock. */
static void enter(tmpi_backend *b)
{
    b->next = open_groups;
    b->link = &open_groups;
    if (open_groups != NULL)
        open_groups->link = &b->next;
    open_groups = b;
    tmpi_engine_enter();
}

static void leave(tmpi_backend *b, bool failed)
{
    *b->link = b->next;
    if (b->next != NULL)
        b->next->link = b->link;
    tmpi_engine_leave(failed);
}

tutti_status tmpi_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    tmpi_backend *b;
    tutti_status  st;

    if (config->lazy)
        return tmpi_host->fail(TUTTI_E_UNSUPPORTED, "group '%s': backend 'mpi' makes a group when all its members are there\n"
                                                    "  next: make it without use_local_synchronization", config->name);
    st = tmpi_engine_start();
    if (st != TUTTI_OK)
        return st;
    b = calloc(1, sizeof *b);
    if (b == NULL || !take_memory(b, config)) {
        if (b != NULL) {
            free(b->home);
            give_memory(b);
        }
        return tmpi_host->fail(TUTTI_E_NOMEM, "no memory for a group of %d", config->n_ranks);
    }
    b->base.ops = &tmpi_ops;
    b->comm = MPI_COMM_NULL;
    b->rank = config->rank;
    b->n_ranks = config->n_ranks;
    snprintf(b->name, sizeof b->name, "%s", config->name);
    tmpi_lock();
    enter(b);
    tmpi_unlock();
    st = open_comm(b, config);
    if (st != TUTTI_OK) {
        tmpi_fail(&b->base, st);
        tmpi_destroy(&b->base);
        return st;
    }
    *backend_out = &b->base;
    return TUTTI_OK;
}

void tmpi_destroy(tutti_backend *backend)
{
    tmpi_backend *b = (tmpi_backend *)backend;
    bool          failed;

    tmpi_lock();
    failed = b->home->status != TUTTI_OK;
    tmpi_finish(b, TUTTI_E_ABORTED, "the group was destroyed");
    tmpi_notices_close(b);
    /* Freeing one is a thing of all members by the standard's words, but waits for nobody in the libraries that there
     * are; after a failure, of which MPI's end is one, MPI may still use it. */
    if (!failed && !b->stuck && b->comm != MPI_COMM_NULL)
        (void)TMPI_CALL(MPI_Comm_free(&b->comm));
    leave(b, failed && !b->refused);
    b->home->backend = NULL;
    tmpi_home_drop(b->home);
    tmpi_unlock();
    give_memory(b);
}
