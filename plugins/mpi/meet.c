/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet.c - who came to the store, and whether they are the ranks of this MPI job.
 *
 * Why     An MPI library that was started by the mpirun of another one, or by none, believes in a world of one, and says
 *         nothing. And the calls that make a communicator have no deadline.
 * How     Each member looks at MPI's world first, and puts what it found below "mpi/" and a number made of the list of members:
 *         nothing, if it is the group's world, else words. Member 0 waits for all, and then puts a number that it has drawn, or
 *         the words of the first that has some: the verdict, which the others wait for. Who leaves before, puts why.
 * True    There is one verdict, the first, and all obey it: nobody leaves for whom others wait in MPI then, which has no
 *         deadline; and who comes after one has left is told at once. (Of a store without compare_set member 0's is
 *         the only one.) Only those meet that were given the same list of members. Who waits looks now and then what the others
 *         were given.
 * Waits   In pieces, between which a failure of the world is seen; a store that is out of reach for one is asked again. Each
 *         looks once at least, however late it is. Who is missing when time is up is looked up then. The library ends them where a
 *         member has refused the group before it came here. All are told so by themselves, in better words than a verdict would
 *         have, and without that member there is none that lets anybody go on.
 * Refused A group that MPI was not asked for, for what all members are told or have found, is no trouble of MPI's: a process that has
 *         another group goes on with that one, and to an orderly end. Who did not come in time, or lost the store, is. */
#include "mpi_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { PIECE_MS = 200, NAMED_MOST = 8, KEY_BYTES = 48 };

typedef struct meeting {
    const tutti_backend_config *config;
    int64_t                     deadline_ns;
    uint64_t                    list; /* a number made of all members */
} meeting;

static uint64_t number_of(const tutti_backend_config *config)
{
    uint64_t hash = 0xcbf29ce484222325u;
    int      i;

    for (i = 0; i < config->n_ranks; i++)
        hash = (hash ^ (uint64_t)config->global_ranks[i]) * 0x100000001b3u;
    return hash;
}

static void member_key(const meeting *m, int member, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "mpi/%016llx/%d", (unsigned long long)m->list, member);
}

static void met_key(const meeting *m, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "mpi/%016llx/met", (unsigned long long)m->list);
}

/* ---- the own world ---- */

static tutti_status check_world(const tutti_backend_config *config)
{
    const tmpi_facts *mpi = tmpi_engine_facts();

    if (config->n_ranks != mpi->size)
        return tmpi_host->fail(TUTTI_E_ARG,
                               "group '%s' has %d ranks, but MPI's world has %d (%s, on rank %d)\n"
                               "  next: start the job with the mpirun of the library that the plug-in was built with, and make the "
                               "world of all its ranks",
                               config->name, config->n_ranks, mpi->size, mpi->library, config->global_ranks[config->rank]);
    if (config->rank != mpi->rank)
        return tmpi_host->fail(TUTTI_E_ARG,
                               "rank %d of group '%s' is rank %d of MPI's world\n"
                               "  next: take rank and size from mpirun: set neither RANK nor WORLD_SIZE",
                               config->rank, config->name, mpi->rank);
    return TUTTI_OK;
}

/* ---- waiting in the store ---- */

static tutti_status parent_failed(const tutti_backend_config *config)
{
    const tmpi_backend *parent = (const tmpi_backend *)config->parent;
    tutti_status        st = TUTTI_OK;

    if (parent == NULL || !config->heeds_parent)
        return TUTTI_OK;
    tmpi_lock();
    if (parent->home->status != TUTTI_OK)
        st = tmpi_say(parent->home);
    tmpi_unlock();
    return st;
}

static void list_key(int global_rank, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "mpi/list/%d", global_rank);
}

static tutti_status tell_list(const meeting *m)
{
    char key[KEY_BYTES];

    list_key(m->config->global_ranks[m->config->rank], key);
    return tmpi_host->store_set(m->config->store, key, &m->list, sizeof m->list);
}

/* Who has come to a group of this name, but with another list, will not come to this one. */
static tutti_status compare_lists(const meeting *m)
{
    const tutti_backend_config *config = m->config;
    tutti_bytes                 told;
    const char                 *name;
    char                        key[KEY_BYTES];
    bool                        there, same = true;
    int                         i;

    for (i = 0; i < config->n_ranks && same; i++) {
        list_key(config->global_ranks[i], key);
        name = key;
        there = false;
        told = (tutti_bytes){ 0 };
        if (tmpi_host->store_check(config->store, &name, 1, &there) != TUTTI_OK || !there ||
            tmpi_host->store_get(config->store, key, PIECE_MS, &told) != TUTTI_OK)
            continue;
        same = told.size == sizeof m->list && memcmp(told.data, &m->list, sizeof m->list) == 0;
        tmpi_host->bytes_free(&told);
    }
    if (same)
        return TUTTI_OK;
    return tmpi_host->fail(TUTTI_E_MISMATCH,
                           "group '%s': rank %d was given another list of ranks than rank %d\n"
                           "  next: let all ranks of the world make its groups in the same order, with the same ranks",
                           config->name, config->global_ranks[i - 1], config->global_ranks[config->rank]);
}

/* Of a member that the store cannot be asked about nothing is said, and asked is false afterwards. */
static bool is_missing(const meeting *m, int member, bool *asked)
{
    const char *name;
    char        key[KEY_BYTES];
    bool        there = true;

    member_key(m, member, key);
    name = key;
    *asked = *asked && tmpi_host->store_check(m->config->store, &name, 1, &there) == TUTTI_OK;
    return *asked && !there;
}

static tutti_status say_missing(const meeting *m)
{
    const tutti_backend_config *config = m->config;
    char                        text[160] = "";
    size_t                      used = 0;
    bool                        asked = true;
    int                         i, n = 0;

    for (i = 0; i < config->n_ranks && n < NAMED_MOST; i++)
        if (is_missing(m, i, &asked) && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", n++ > 0 ? ", " : "", config->global_ranks[i]);
    return tmpi_host->fail(TUTTI_E_TIMEOUT,
                           "making group '%s' timed out after %lld ms on rank %d of %d members\n"
                           "  %s%s\n"
                           "  next: %sgive the group a longer time-out",
                           config->name, (long long)config->timeout_ms, config->global_ranks[config->rank], config->n_ranks,
                           n > 1    ? "not arrived: ranks "
                           : n == 1 ? "not arrived: rank "
                           : asked  ? "all have come by now"
                                    : "the store does not answer who has come",
                           text, n > 0 ? "see what the ranks named do instead, or " : "");
}

/* One piece. Who is not connected to the store within it has not been refused by it. */
static tutti_status look(const meeting *m, const char *key, tutti_bytes *value_out)
{
    const int64_t      until = tmpi_host->now_ns() + PIECE_MS * INT64_C(1000000);
    const tutti_status st = tmpi_host->store_get(m->config->store, key, PIECE_MS, value_out);

    return st == TUTTI_E_NETWORK && tmpi_host->now_ns() >= until ? TUTTI_E_TIMEOUT : st;
}

static tutti_status await_key(const meeting *m, const char *key, tutti_bytes *value_out)
{
    tutti_status st = TUTTI_E_TIMEOUT;
    unsigned     pieces;
    int64_t      left_ms;

    for (pieces = 0; st == TUTTI_E_TIMEOUT; pieces++) {
        left_ms = (m->deadline_ns - tmpi_host->now_ns()) / 1000000;
        if (left_ms <= 0 && pieces > 0)
            return say_missing(m);
        st = parent_failed(m->config);
        if (st == TUTTI_OK && pieces > 0 && (pieces & (pieces - 1)) == 0) /* after 1, 2, 4, 8 ... */
            st = compare_lists(m);
        if (st != TUTTI_OK)
            return st;
        st = look(m, key, value_out);
        if (st == TUTTI_E_TIMEOUT && tmpi_host->store_stops())
            return tmpi_host->fail(TUTTI_E_REMOTE, "making group '%s' was ended on rank %d", m->config->name,
                                   m->config->global_ranks[m->config->rank]);
    }
    return st;
}

/* ---- the meeting ---- */

/* Number, or why there is no group. */
typedef struct verdict {
    uint64_t token;
    uint32_t status;
    uint32_t unused;
    char     words[TMPI_WORDS];
} verdict;

static void draw(uint64_t *token_out)
{
    if (getrandom(token_out, sizeof *token_out, 0) != (ssize_t)sizeof *token_out)
        *token_out = (uint64_t)tmpi_host->now_ns();
}

static void refuse(verdict *v, tutti_status status, const char *words, size_t size)
{
    v->status = (uint32_t)status;
    snprintf(v->words, sizeof v->words, "%.*s", (int)(size < TMPI_WORDS ? size : TMPI_WORDS - 1), words);
}

static tutti_status take_verdict(const meeting *m, const tutti_bytes *said, verdict *v)
{
    if (said->size != sizeof *v)
        return tmpi_host->fail(TUTTI_E_STORE, "group '%s': the verdict in the store has %zu bytes, not %zu", m->config->name,
                               said->size, sizeof *v);
    memcpy(v, said->data, sizeof *v);
    v->words[sizeof v->words - 1] = '\0';
    return TUTTI_OK;
}

/* Give this verdict, and have the one that holds. */
static tutti_status decide(const meeting *m, verdict *v)
{
    tutti_bytes  holds = { 0 };
    tutti_status st;
    char         key[KEY_BYTES];

    met_key(m, key);
    st = tmpi_host->store_compare_set(m->config->store, key, "", 0, v, sizeof *v, &holds);
    if (st == TUTTI_E_UNSUPPORTED)
        return m->config->rank == 0 ? tmpi_host->store_set(m->config->store, key, v, sizeof *v) : TUTTI_OK;
    if (st == TUTTI_OK)
        st = take_verdict(m, &holds, v);
    tmpi_host->bytes_free(&holds);
    return st;
}

/* Member 0: what each of the others has found. */
static tutti_status collect(const meeting *m, verdict *v)
{
    tutti_bytes  found = { 0 };
    tutti_status st = TUTTI_OK;
    char         key[KEY_BYTES];
    int          i;

    for (i = 1; i < m->config->n_ranks && st == TUTTI_OK; i++) {
        member_key(m, i, key);
        st = await_key(m, key, &found);
        if (st != TUTTI_OK)
            return st;
        if (v->words[0] == '\0' && found.size > 1)
            refuse(v, TUTTI_E_ARG, (const char *)found.data, found.size);
        tmpi_host->bytes_free(&found);
    }
    draw(&v->token);
    return decide(m, v);
}

static tutti_status hear(const meeting *m, verdict *v)
{
    tutti_bytes  said = { 0 };
    tutti_status st;
    char         key[KEY_BYTES];

    met_key(m, key);
    st = await_key(m, key, &said);
    if (st != TUTTI_OK)
        return st;
    st = take_verdict(m, &said, v);
    tmpi_host->bytes_free(&said);
    return st;
}

/* Why this member would leave is the verdict, unless there is another one. Where the store cannot be asked, its words hold. */
static tutti_status leave(const meeting *m, tutti_status why, verdict *v)
{
    refuse(v, why, tmpi_host->last_error(), TMPI_WORDS);
    return decide(m, v);
}

bool tmpi_is_refusal(tutti_status st)
{
    return st == TUTTI_E_ARG || st == TUTTI_E_MISMATCH || st == TUTTI_E_REMOTE;
}

tutti_status tmpi_meet(const tutti_backend_config *config, uint64_t *token_out)
{
    const int64_t until = config->timeout_ms < 0 ? INT64_MAX : tmpi_host->now_ns() + config->timeout_ms * 1000000;
    const meeting m = { .config = config, .deadline_ns = until, .list = number_of(config) };
    verdict       v = { 0 };
    char          key[KEY_BYTES];
    tutti_status  fits = config->parent == NULL ? check_world(config) : TUTTI_OK, st;

    if (fits != TUTTI_OK)
        refuse(&v, fits, tmpi_host->last_error(), TMPI_WORDS);
    member_key(&m, config->rank, key);
    st = tell_list(&m);
    if (st == TUTTI_OK)
        st = tmpi_host->store_set(config->store, key, v.words, strlen(v.words) + 1);
    if (st == TUTTI_OK && fits == TUTTI_OK)
        st = config->rank == 0 ? collect(&m, &v) : hear(&m, &v);
    else if (st == TUTTI_OK && config->rank == 0)
        st = decide(&m, &v);
    if (st != TUTTI_OK && !tmpi_host->store_stops())
        st = leave(&m, st, &v);
    if (st == TUTTI_OK && v.words[0] != '\0')
        st = tmpi_host->fail((tutti_status)v.status, "%s", v.words);
    if (st == TUTTI_OK)
        *token_out = v.token;
    return st;
}
