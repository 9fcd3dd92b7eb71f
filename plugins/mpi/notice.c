/* SPDX-License-Identifier: BSD-3-Clause
 *
 * notice.c - what members tell each other beside their data.
 *
 * Why     In MPI who waits in a call does not learn that another member has given it up, nor who has not come.
 * How     Messages of one size under the largest tag, which no message of the program has. Each member always has one receive
 *         open, and looks at it whenever it asks MPI for something else.
 *           end   the sender has failed: status and words
 *           ask   whose time is up asks who is in the call
 *           here  the answer of one that is, or was: it may be through, and wait elsewhere
 * True    A notice of another group is no news: MPI may give the communicator of a new group the place of one that is gone, and
 *         what was sent on that, and not taken, is met again. So each has the number of its group's meeting.
 * Limits  A member that waits for nothing looks at nothing: it learns of an end with its next call, and does not answer,
 *         though it may be through with the call that is asked for. And one may have no core for a while. So who asks waits
 *         for seconds, and says no more than that there was no answer. Of a process that has ended mpirun tells, by
 *         ending all. */
#include "mpi_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 3000, NAMED_MOST = 8 };

typedef enum notice_kind { NOTICE_END = 1, NOTICE_ASK = 2, NOTICE_HERE = 3 } notice_kind;

typedef struct notice {
    uint32_t kind;
    int32_t  status;
    uint64_t token; /* of the group's meeting */
    uint64_t seq;
    char     words[TMPI_WORDS];
} notice;

struct tmpi_notices {
    MPI_Request request;
    notice      got;     /* MPI's, while the request is open */
    uint64_t    asked;   /* the call that this member has asked for */
    bool        is_here[]; /* [n_ranks]: who has answered */
};

static int tag(void)
{
    return tmpi_engine_facts()->tag_most;
}

static int listen_again(tmpi_backend *b)
{
    tmpi_notices *n = b->notices;

    return MPI_Irecv(&n->got, (int)sizeof n->got, MPI_BYTE, MPI_ANY_SOURCE, tag(), b->comm, &n->request);
}

tutti_status tmpi_notices_open(tmpi_backend *b)
{
    int code;

    b->notices = calloc(1, sizeof *b->notices + (size_t)b->n_ranks);
    if (b->notices == NULL)
        return tmpi_host->fail(TUTTI_E_NOMEM, "no memory for a group of %d", b->n_ranks);
    tmpi_lock();
    code = TMPI_CALL(listen_again(b));
    tmpi_unlock();
    if (code == MPI_SUCCESS)
        return TUTTI_OK;
    free(b->notices);
    b->notices = NULL;
    return tmpi_fail_mpi(code, "listening", b->name);
}

/* Taking back a receive is a local thing, and so is the wait for it. Once MPI has ended none is open: it was taken back before. */
void tmpi_notices_hush(tmpi_backend *b)
{
    if (b->notices == NULL || b->notices->request == MPI_REQUEST_NULL || tmpi_has_ended())
        return;
    MPI_Cancel(&b->notices->request);
    MPI_Wait(&b->notices->request, MPI_STATUS_IGNORE);
}

void tmpi_notices_close(tmpi_backend *b)
{
    if (b->notices == NULL)
        return;
    tmpi_notices_hush(b);
    free(b->notices);
    b->notices = NULL;
}

/* ---- telling ---- */

static void tell_all(tmpi_backend *b, const notice *n)
{
    int r;

    for (r = 0; r < b->n_ranks; r++)
        if (r != b->rank)
            tmpi_post_copy(b, r, tag(), n, sizeof *n);
}

void tmpi_notices_end(tmpi_backend *b)
{
    notice n = { .kind = NOTICE_END, .token = b->token, .status = (int32_t)b->home->status };

    if (b->notices == NULL)
        return;
    memcpy(n.words, b->home->words, sizeof n.words);
    tell_all(b, &n);
}

/* ---- hearing ---- */

static void hear_end(tmpi_backend *b, notice *n, int source)
{
    const bool   known = n->status > TUTTI_OK && tmpi_host->status_name((tutti_status)n->status)[0] != '?';
    tutti_status status = known ? (tutti_status)n->status : TUTTI_E_BACKEND;
    char         words[2 * TMPI_WORDS]; /* of which the group keeps the first half */

    n->words[sizeof n->words - 1] = '\0';
    snprintf(words, sizeof words, "rank %d has ended group '%s': %s", b->global_ranks[source], b->name, n->words);
    tmpi_finish(b, status, words);
}

static void hear(tmpi_backend *b, notice *n, int source)
{
    const notice here = { .kind = NOTICE_HERE, .token = b->token, .seq = n->seq };

    if (n->token != b->token)
        return;
    if (n->kind == NOTICE_END)
        hear_end(b, n, source);
    else if (n->kind == NOTICE_ASK && n->seq != 0 && n->seq <= b->last_seq)
        tmpi_post_copy(b, source, tag(), &here, sizeof here);
    else if (n->kind == NOTICE_HERE && n->seq == b->notices->asked)
        b->notices->is_here[source] = true;
}

void tmpi_notices_look(tmpi_backend *b)
{
    MPI_Status status;
    notice     n;
    int        done = 1;

    while (done && b->notices != NULL && b->notices->request != MPI_REQUEST_NULL && !tmpi_has_ended()) {
        done = 0;
        if (MPI_Test(&b->notices->request, &done, &status) != MPI_SUCCESS || !done)
            return;
        n = b->notices->got;
        if (listen_again(b) != MPI_SUCCESS)
            b->notices->request = MPI_REQUEST_NULL;
        hear(b, &n, status.MPI_SOURCE);
    }
}

/* ---- asking ---- */

static int count_missing(const tmpi_backend *b)
{
    int r, n = 0;

    for (r = 0; r < b->n_ranks; r++)
        n += r != b->rank && !b->notices->is_here[r];
    return n;
}

static void write_missing(const tmpi_backend *b, int missing, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, missing > 1 ? "ranks" : "rank");
    int    r, n = 0;

    for (r = 0; r < b->n_ranks && n < NAMED_MOST && used < bytes; r++)
        if (r != b->rank && !b->notices->is_here[r])
            used += (size_t)snprintf(text + used, bytes - used, "%s%d", n++ > 0 ? ", " : " ", b->global_ranks[r]);
    if (used < bytes)
        snprintf(text + used, bytes - used, "%s not answered within %d ms that %s in it",
                 missing > n ? " and others have" : missing > 1 ? " have" : " has", ANSWER_MS, missing > 1 ? "they are" : "it is");
}

bool tmpi_roll_call(tmpi_backend *b, uint64_t seq, char *text, size_t bytes)
{
    const notice  ask = { .kind = NOTICE_ASK, .token = b->token, .seq = seq };
    const int64_t until = tmpi_host->now_ns() + ANSWER_MS * INT64_C(1000000);
    uint32_t      rounds = 0;
    bool          over = false;
    int           missing = 0;

    tmpi_lock();
    b->notices->asked = seq;
    memset(b->notices->is_here, 0, (size_t)b->n_ranks);
    tell_all(b, &ask);
    tmpi_unlock();
    while (!over) {
        tmpi_lock();
        tmpi_notices_look(b);
        missing = count_missing(b);
        over = missing == 0 || b->home->status != TUTTI_OK || tmpi_host->now_ns() >= until;
        if (over && missing > 0)
            write_missing(b, missing, text, bytes);
        tmpi_unlock();
        if (!over)
            tmpi_host->idle(&rounds, false);
    }
    return missing > 0;
}
