/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet.c - NCCL's id, given to all members through the store; who has not come.
 *
 * How     Each member says in the store that it is here. Member 0 has NCCL make an id, and puts it there; the others wait for
 *         it. Then NCCL makes the communicator, for which all have to come: it is asked again and again until it has, or time is
 *         up.
 * True    Keys are the group's own, and a group is made once, so no id is met twice. Who waits looks in pieces, between
 *         which a failure of the world is seen, and at least once, however late it is. A member that fails leaves why it
 *         did: the others end with that.
 * Refused A member that has refused the group before it came here leaves its words with the library, which ends the waits of this
 *         thread in the store when it finds them, and says so to who waits for NCCL, and asks. Nothing is left for the others then:
 *         all are told so by themselves, in better words.
 * Split   Where all members of another group divide that, NCCL may do without an id: split.c. tutti_new_group is not such a
 *         case, also of all ranks: who is not in it waits for nobody, and a rank that refuses its arguments must not cost the
 *         world its communicator. */
#include "nccl_backend.h"

#include <stdio.h>
#include <string.h>

enum { NAMED_MOST = 8, KEY_BYTES = 32 };

static const char id_key[] = "nccl/id", failed_key[] = "nccl/failed";

static const int64_t ASK_NS = 1000 * 1000000; /* for one question to the store, beside what has to be looked at meanwhile */

static bool is_there(const tnccl_backend *b, const char *key, bool *there_out)
{
    return tnccl_host->store_check_until(b->store, &key, 1, tnccl_host->now_ns() + ASK_NS, there_out) == TUTTI_OK;
}

static void here_key(int member, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "nccl/here/%d", member);
}

/* Nobody whom the store cannot be asked about is called missing. */
static bool is_missing(const tnccl_backend *b, int member, bool *asked)
{
    char key[KEY_BYTES];
    bool there = true;

    here_key(member, key);
    *asked = *asked && is_there(b, key, &there);
    return *asked && !there;
}

static tutti_status say_missing(const tnccl_backend *b, const tutti_backend_config *config)
{
    char   text[160] = "";
    size_t used = 0;
    bool   asked = true;
    int    i, n = 0;

    for (i = 0; i < b->n_ranks && n < NAMED_MOST; i++)
        if (is_missing(b, i, &asked) && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", n++ > 0 ? ", " : "", b->global_ranks[i]);
    return tnccl_host->fail(TUTTI_E_TIMEOUT,
                            "making group '%s' timed out after %lld ms on rank %d of %d members\n"
                            "  %s%s\n"
                            "  next: %sgive the group a longer time-out",
                            b->name, (long long)config->timeout_ms, b->global_ranks[b->rank], b->n_ranks,
                            n > 1    ? "not arrived: ranks "
                            : n == 1 ? "not arrived: rank "
                            : asked  ? "all have come by now, NCCL has not connected them"
                                     : "the store does not answer who has come",
                            text, n > 0 ? "see what the ranks named do instead, or " : "");
}

tutti_status tnccl_look_for(tutti_store *store, const char *key, tutti_bytes *found_out)
{
    const tutti_status st = tnccl_host->store_get(store, key, TNCCL_PIECE_MS, found_out);

    return st == TUTTI_E_NETWORK ? TUTTI_E_TIMEOUT : st; /* it is asked again until the deadline */
}

static tutti_status say_ended(const tnccl_backend *b)
{
    return tnccl_host->fail(TUTTI_E_TIMEOUT, "making group '%s' was ended on rank %d", b->name, b->global_ranks[b->rank]);
}

/* What somebody has left who gave up. */
static tutti_status end_with(const tutti_bytes *words)
{
    if (words->size <= 4)
        return TUTTI_OK;
    return tnccl_host->fail(TUTTI_E_BACKEND, "%.*s", (int)words->size, (const char *)words->data);
}

/* TUTTI_OK: nobody has given up. */
static tutti_status heed_others(const tnccl_backend *b)
{
    tutti_bytes  words = { 0 };
    tutti_status st;
    bool         there = false;

    if (!is_there(b, failed_key, &there) || !there ||
        tnccl_host->store_get(b->store, failed_key, TNCCL_PIECE_MS, &words) != TUTTI_OK)
        return TUTTI_OK;
    st = end_with(&words);
    tnccl_host->bytes_free(&words);
    return st;
}

static tutti_status heed_parent(const tutti_backend_config *config)
{
    tnccl_backend *parent = (tnccl_backend *)config->parent;
    tutti_status   st = TUTTI_OK;

    if (parent == NULL || !config->heeds_parent)
        return TUTTI_OK;
    pthread_mutex_lock(&parent->lock);
    if (parent->status != TUTTI_OK)
        st = tnccl_say(parent);
    pthread_mutex_unlock(&parent->lock);
    return st;
}

static tutti_status hear_id(tnccl_backend *b, const tutti_backend_config *config, int64_t deadline_ns, ncclUniqueId *id)
{
    tutti_bytes  found = { 0 };
    tutti_status st = tnccl_look_for(b->store, id_key, &found);

    while (st == TUTTI_E_TIMEOUT) {
        st = heed_parent(config);
        if (st == TUTTI_OK)
            st = tnccl_host->store_stops() ? say_ended(b) : heed_others(b);
        if (st == TUTTI_OK && tnccl_host->now_ns() >= deadline_ns)
            st = say_missing(b, config);
        if (st != TUTTI_OK)
            return st;
        st = tnccl_look_for(b->store, id_key, &found);
    }
    if (st == TUTTI_OK && found.size != sizeof *id)
        st = tnccl_host->fail(TUTTI_E_STORE, "group '%s': NCCL's id in the store has %zu bytes, not %zu", b->name, found.size,
                              sizeof *id);
    if (st == TUTTI_OK)
        memcpy(id, found.data, sizeof *id);
    tnccl_host->bytes_free(&found);
    return st;
}

static tutti_status make_id(const tnccl_backend *b, int64_t deadline_ns, ncclUniqueId *id)
{
    const ncclResult_t code = tnccl.ncclGetUniqueId(id);

    if (code != ncclSuccess)
        return tnccl_fail_nccl(code, NULL, "making an id", b->name);
    return tnccl_host->store_set_until(b->store, id_key, id, sizeof *id, deadline_ns);
}

/* NCCL connects the members; lock held, also on return, and released in between. */
static tutti_status await_all(tnccl_backend *b, const tutti_backend_config *config, ncclResult_t code, int64_t deadline_ns)
{
    int64_t      next_look_ns = tnccl_host->now_ns() + TNCCL_PIECE_MS * INT64_C(1000000);
    uint32_t     rounds = 0;
    tutti_status st = TUTTI_OK;

    while (code == ncclInProgress && st == TUTTI_OK) {
        pthread_mutex_unlock(&b->lock);
        tnccl_host->idle(&rounds, false);
        if (tnccl_host->now_ns() >= deadline_ns) {
            st = say_missing(b, config);
        } else if (tnccl_host->store_stops()) {
            st = say_ended(b);
        } else if (tnccl_host->now_ns() >= next_look_ns) {
            st = heed_parent(config);
            if (st == TUTTI_OK)
                st = heed_others(b);
            next_look_ns = tnccl_host->now_ns() + 5 * TNCCL_PIECE_MS * INT64_C(1000000);
        }
        pthread_mutex_lock(&b->lock);
        if (tnccl.ncclCommGetAsyncError(b->comm, &code) != ncclSuccess)
            code = ncclInternalError;
    }
    if (st == TUTTI_OK && code != ncclSuccess)
        st = tnccl_fail_nccl(code, b->comm, "connecting", b->name);
    return st;
}

/* Why this member goes is told to those who wait. */
static void leave_words(const tnccl_backend *b)
{
    char words[TNCCL_WORDS];

    snprintf(words, sizeof words, "%s", tnccl_host->last_error());
    (void)tnccl_host->store_set_until(b->store, failed_key, words, strlen(words), tnccl_host->now_ns() + ASK_NS);
    tnccl_host->fail(TUTTI_E_BACKEND, "%s", words); /* whatever the store said */
}

int64_t tnccl_deadline(int64_t timeout_ms)
{
    const int64_t now = tnccl_host->now_ns();

    return timeout_ms < 0 || timeout_ms > (INT64_MAX - now) / 1000000 ? INT64_MAX : now + timeout_ms * 1000000;
}

static tutti_status connect_by_id(tnccl_backend *b, const tutti_backend_config *config, int64_t deadline_ns)
{
    ncclConfig_t  how = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId  id;
    ncclResult_t  code;
    tutti_status  st = b->rank == 0 ? make_id(b, deadline_ns, &id) : hear_id(b, config, deadline_ns, &id);

    if (st != TUTTI_OK)
        return st;
    how.blocking = 0;
    code = tnccl.ncclCommInitRankConfig(&b->comm, b->n_ranks, id, b->rank, &how);
    if (code != ncclSuccess && code != ncclInProgress)
        return tnccl_fail_nccl(code, NULL, "connecting", b->name);
    return await_all(b, config, ncclInProgress, deadline_ns);
}

tutti_status tnccl_connect(tnccl_backend *b, const tutti_backend_config *config)
{
    const int64_t deadline_ns = tnccl_deadline(config->timeout_ms);
    char          key[KEY_BYTES];
    tutti_status  st;

    here_key(b->rank, key);
    st = tnccl_host->store_set_until(b->store, key, "1", 1, deadline_ns);
    if (st == TUTTI_OK && config->split_from != NULL)
        st = tnccl_split(b, config, deadline_ns);
    if (st == TUTTI_OK)
        st = b->comm != NULL ? await_all(b, config, ncclInProgress, deadline_ns) : connect_by_id(b, config, deadline_ns);
    if (st != TUTTI_OK && !tnccl_host->store_stops())
        leave_words(b);
    return st;
}
