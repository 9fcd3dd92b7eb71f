/* SPDX-License-Identifier: BSD-3-Clause
 *
 * monitored_barrier.c - a barrier that says who has not come.
 *
 * How     Rank 0 of the group hears from every other rank, and then answers all. The messages have tags
 *         below 0, which no program can use, so they meet no message of anybody's.
 *             others   "here"  -> 0, then wait for "go" <- 0
 *             rank 0   waits for each "here", in order of rank, until one deadline for all; then "go"
 * Dead    While rank 0 waits for one that is late, another one may die. So it waits in pieces of LOOK_NS, and looks between
 *         them whether somebody is known to be gone: then the barrier can never end well, and is over at once. The dead are
 *         named first, and those that were merely not there yet behind them. Another member may hear of a death first, and end the
 *         group, as may calls that differ, or one whose time is up, be it that it came before rank 0: then who is awaited is merely late,
 *         and what has ended the group is told, with all that had not come by then.
 * Fails   Rank 0 words who is missing and fails the group, which carries the words to all members that
 *         can be told: those who wait for "go" report them, late comers find the group finished. What was
 *         posted ends with the group, so no buffer stays in use.
 * Source  torch.distributed.monitored_barrier, whose budget with wait_all_ranks is the time-out for each
 *         rank, and where only rank 0 learns who is missing. */
#include "group/asked.h"
#include "group/hooks.h"
#include "group/recorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/debug.h>
#include <tutti/private.h>

#define LOOK_NS (100 * TTI_MS)

enum { TAG_HERE = -101, TAG_GO = -102, NAMED_MAX = 24 };

static const char WHAT[] = "monitored_barrier";

/* What one rank has under way. */
typedef struct meeting {
    tutti_group    *group;
    int64_t         timeout_ms;
    int64_t         began_ns;
    int64_t         deadline_ns;
    tutti_request **requests; /* [group->size], by group rank; NULL: none */
    int32_t        *words;    /* [group->size] what is sent and received */
    bool           *missing;  /* [group->size], rank 0 */
    bool           *gone;     /* the same: known to be */
} meeting;

static tutti_status meeting_init(meeting *m, tutti_group *group, int64_t timeout_ms)
{
    const size_t n = (size_t)group->size;

    *m = (meeting){ .group = group, .timeout_ms = timeout_ms != 0 ? timeout_ms : (int64_t)group->timeout_ms };
    m->began_ns = tti_port_now(group->runner->port);
    m->deadline_ns = tti_deadline(group->runner->port, m->timeout_ms, -1);
    m->requests = calloc(n, sizeof *m->requests);
    m->words = calloc(n, sizeof *m->words);
    m->missing = calloc(n, sizeof *m->missing);
    m->gone = calloc(n, sizeof *m->gone);
    if (m->requests != NULL && m->words != NULL && m->missing != NULL && m->gone != NULL)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_NOMEM, "no memory for a monitored_barrier of %d ranks", group->size);
}

static void meeting_release(meeting *m)
{
    int i;

    for (i = 0; m->requests != NULL && i < m->group->size; i++)
        if (m->requests[i] != NULL)
            m->group->ops->release(m->requests[i]);
    free(m->requests);
    free(m->words);
    free(m->missing);
    free(m->gone);
}

/* Begin a message with the rank of the group; one at a time for each. */
static tutti_status post(meeting *m, bool is_send, int peer, int tag)
{
    const tutti_message message = { .is_send = is_send, .peer = peer, .tag = tag, .dtype = TUTTI_I32,
                                    .count = 1, .data = &m->words[peer] };

    if (m->requests[peer] != NULL)
        m->group->ops->release(m->requests[peer]);
    m->requests[peer] = NULL;
    return tti_asked_post(m->group->ops, m->group->backend, &message, &m->requests[peer]);
}

static tutti_status await(const meeting *m, int peer, int64_t deadline_ns)
{
    if (m->requests[peer] == NULL)
        return TUTTI_OK; /* it was done when it was begun */
    return tti_asked_wait(m->group->ops, m->requests[peer], deadline_ns);
}

/* The group ends with this thread's words; so do the messages under way. */
static tutti_status fail_group(meeting *m, tutti_status st)
{
    const tutti_status group_st = tti_group_finishes(st) ? st : TUTTI_E_BACKEND;
    tutti_group       *group = m->group;
    char               words[TTI_GROUP_WORDS_MAX];
    int                i;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_hooks_abort(group, WHAT, group_st);
    tti_lock(&group->runner->lock);
    tti_group_fail(group, WHAT, group_st, words);
    tti_unlock(&group->runner->lock);
    for (i = 0; i < group->size; i++)
        if (m->requests[i] != NULL)
            await(m, i, TTI_FOREVER);
    return tti_fail(st, "%s", words);
}

/* ---- rank 0 ---- */

/* "rank 3", "ranks 1, 2, 5": global ranks of members 1 .. end-1 that are marked so. */
static void list_ranks(const meeting *m, const bool *marks, bool marked, int end, char *out, size_t bytes)
{
    size_t used = 0;
    int    n = 0, named = 0;
    int    i;

    for (i = 1; i < end; i++)
        n += marks[i] == marked;
    if (n == 0)
        snprintf(out, bytes, "none");
    for (i = 1; i < end && used < bytes && named < NAMED_MAX; i++)
        if (marks[i] == marked)
            used += (size_t)snprintf(out + used, bytes - used, "%s%d",
                                     named++ > 0 ? ", " : n == 1 ? "rank " : "ranks ", m->group->ranks[i]);
    if (n > named && used < bytes)
        snprintf(out + used, bytes - used, " and %d more", n - named);
}

static int64_t took_ms(const meeting *m)
{
    return (tti_port_now(m->group->runner->port) - m->began_ns) / TTI_MS;
}

/* The first one that did not come, and who had come by then. first has the words of its failure. */
static tutti_status word_first(const meeting *m, int rank, tutti_status st, const char *first)
{
    char came[256];

    list_ranks(m, m->missing, false, rank, came, sizeof came);
    return tti_fail(st,
                    "%s on group '%s': rank %d did not come, on rank %d after %lld ms of %lld; heard before it: "
                    "%s; later ranks were not waited for\n  rank %d: %s",
                    WHAT, m->group->name, m->group->ranks[rank], m->group->ranks[0], (long long)took_ms(m),
                    (long long)m->timeout_ms, came, m->group->ranks[rank], first);
}

static tutti_status word_all(const meeting *m, int first_rank, tutti_status st, const char *first)
{
    char missing[256];

    list_ranks(m, m->missing, true, m->group->size, missing, sizeof missing);
    return tti_fail(st, "%s on group '%s': not arrived: %s, on rank %d after %lld ms of %lld\n  rank %d: %s", WHAT,
                    m->group->name, missing, m->group->ranks[0], (long long)took_ms(m), (long long)m->timeout_ms,
                    m->group->ranks[first_rank], first);
}

/* Whether member i has ended, as far as that is known without waiting; then why is this thread's last error. A backend that knows
 * nothing of its members says it by the message that can never come. */
static bool is_gone(const meeting *m, int i)
{
    const tutti_backend_ops *ops = m->group->ops;

    if (ops->alive != NULL)
        return tti_asked_alive(ops, m->group->backend, i) != TUTTI_OK;
    return m->requests[i] != NULL && ops->test(m->requests[i]) && await(m, i, TTI_FOREVER) == TUTTI_E_PEER;
}

/* Mark all that are gone: the first of them, whose words are kept; 0: nobody is. */
static int find_gone(meeting *m, char *words, size_t bytes)
{
    int first = 0, i;

    for (i = 1; i < m->group->size; i++) {
        m->gone[i] = is_gone(m, i);
        if (m->gone[i] && first == 0) {
            first = i;
            snprintf(words, bytes, "%s", tutti_last_error());
        }
    }
    return first;
}

/* Somebody is gone: that is why, whoever is late beside. */
static tutti_status word_gone(const meeting *m, int first_rank, const char *first)
{
    char gone[256], late[256];
    int  i;

    for (i = 1; i < m->group->size; i++)
        m->missing[i] = !m->gone[i] && m->requests[i] != NULL && !m->group->ops->test(m->requests[i]);
    list_ranks(m, m->gone, true, m->group->size, gone, sizeof gone);
    list_ranks(m, m->missing, true, m->group->size, late, sizeof late);
    return tti_fail(TUTTI_E_PEER, "%s on group '%s': gone: %s, on rank %d after %lld ms of %lld; not arrived by then: %s\n  rank %d: %s",
                    WHAT, m->group->name, gone, m->group->ranks[0], (long long)took_ms(m), (long long)m->timeout_ms, late,
                    m->group->ranks[first_rank], first);
}

/* The wait for member i ended before its time, and nobody is known to be gone: something else did, which words say. All before it have
 * come. */
static tutti_status word_ended(const meeting *m, int i, tutti_status st, const char *words)
{
    const int64_t now_ns = tti_port_now(m->group->runner->port);
    char          late[256];
    int           k;

    for (k = 1; k < m->group->size; k++)
        m->missing[k] = k >= i && await(m, k, now_ns) != TUTTI_OK;
    list_ranks(m, m->missing, true, m->group->size, late, sizeof late);
    return tti_fail(st, "%s on group '%s' ended on rank %d after %lld ms of %lld, while it waited for %s: %s", WHAT, m->group->name,
                    m->group->ranks[0], (long long)took_ms(m), (long long)m->timeout_ms, late, words);
}

/* Whether a wait for member i ended with st before its time, and not for want of it: another one's may have been up. */
static bool has_ended(const meeting *m, int i, tutti_status st)
{
    if (st == TUTTI_E_TIMEOUT)
        return tti_port_now(m->group->runner->port) < m->deadline_ns && m->group->ops->test(m->requests[i]);
    return st != TUTTI_OK;
}

/* Wait for member i. gone_out: one that is gone, he or another, with its words; 0: nobody is known to be. */
static tutti_status hear(meeting *m, int i, int *gone_out, char *words, size_t bytes)
{
    tutti_status st;
    int64_t      until_ns;

    do {
        until_ns = tti_port_now(m->group->runner->port) + LOOK_NS;
        until_ns = until_ns < m->deadline_ns ? until_ns : m->deadline_ns;
        st = await(m, i, until_ns);
        if (st == TUTTI_OK)
            return TUTTI_OK;
        snprintf(words, bytes, "%s", tutti_last_error());
        *gone_out = find_gone(m, words, bytes);
    } while (*gone_out == 0 && st == TUTTI_E_TIMEOUT && until_ns < m->deadline_ns && !m->group->ops->test(m->requests[i]));
    if (*gone_out != 0 || st != TUTTI_E_TIMEOUT || !m->group->ops->test(m->requests[i]))
        return tti_fail(st, "%s", words);
    st = await(m, i, m->deadline_ns); /* it has come, or ended, while others were looked at */
    if (st == TUTTI_OK)
        return TUTTI_OK;
    snprintf(words, bytes, "%s", tutti_last_error());
    *gone_out = find_gone(m, words, bytes); /* somebody may be gone since they were */
    return st;
}

static tutti_status hear_all(meeting *m, bool wait_all)
{
    tutti_status first_st = TUTTI_OK, st;
    char         first[512] = "", words[512] = "";
    int          first_rank = 0, gone = 0;
    int          i;

    for (i = 1; i < m->group->size && (first_st == TUTTI_OK || wait_all); i++) {
        st = hear(m, i, &gone, words, sizeof words);
        if (gone != 0)
            return word_gone(m, gone, words);
        if (first_st == TUTTI_OK && has_ended(m, i, st)) /* else the time is up for this one, too */
            return word_ended(m, i, st, words);
        m->missing[i] = st != TUTTI_OK;
        if (st == TUTTI_OK || first_st != TUTTI_OK)
            continue;
        first_st = st;
        first_rank = i;
        snprintf(first, sizeof first, "%s", words);
    }
    if (first_st == TUTTI_OK)
        return TUTTI_OK;
    return wait_all ? word_all(m, first_rank, first_st, first) : word_first(m, first_rank, first_st, first);
}

static tutti_status lead(meeting *m, bool wait_all)
{
    const int    n = m->group->size;
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 1; i < n && st == TUTTI_OK; i++)
        st = post(m, false, i, TAG_HERE);
    if (st == TUTTI_OK)
        st = hear_all(m, wait_all);
    for (i = 1; i < n && st == TUTTI_OK; i++)
        st = post(m, true, i, TAG_GO);
    for (i = 1; i < n && st == TUTTI_OK; i++)
        st = await(m, i, m->deadline_ns);
    return st;
}

/* ---- the others ---- */

/* They wait as long as the group allows, or longer if the barrier does: rank 0 tells when it gives up. */
static int64_t patience(const meeting *m)
{
    const int64_t group_ns =
        tti_deadline(m->group->runner->port, m->group->timeout_ms, -1);

    return group_ns > m->deadline_ns ? group_ns : m->deadline_ns;
}

static tutti_status follow(meeting *m)
{
    const int64_t deadline_ns = patience(m);
    char          words[TTI_GROUP_WORDS_MAX];
    tutti_status  st = post(m, true, 0, TAG_HERE);

    if (st == TUTTI_OK)
        st = await(m, 0, deadline_ns);
    if (st == TUTTI_OK)
        st = post(m, false, 0, TAG_GO);
    if (st == TUTTI_OK)
        st = await(m, 0, deadline_ns);
    if (st == TUTTI_OK)
        return TUTTI_OK;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    return tti_fail(st,
                    "%s on group '%s': rank %d reached it, and rank %d did not let it go on: %s\n"
                    "  next: see what rank %d reports",
                    WHAT, m->group->name, m->group->ranks[m->group->rank], m->group->ranks[0], words,
                    m->group->ranks[0]);
}

static tutti_status run(tutti_group *group, int64_t timeout_ms, bool wait_all)
{
    meeting      m;
    tutti_status st = meeting_init(&m, group, timeout_ms);

    if (st == TUTTI_OK) {
        st = group->rank == 0 ? lead(&m, wait_all) : follow(&m);
        if (st != TUTTI_OK)
            st = fail_group(&m, st);
    }
    meeting_release(&m);
    return st;
}

tutti_status tutti_monitored_barrier(tutti_group *group, int64_t timeout_ms, bool wait_all_ranks)
{
    tutti_group *g = NULL;
    tutti_status st = tti_group_resolve(group, WHAT, &g);
    uint64_t     record;

    if (st != TUTTI_OK || g == NULL)
        return st;
    if (timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': timeout_ms is %lld\n  next: 0 for the group's, -1 for none",
                        WHAT, g->name, (long long)timeout_ms);
    st = tti_messages_check(g, WHAT, tti_control_device(g));
    if (st == TUTTI_OK)
        st = tti_group_enter(g);
    if (st != TUTTI_OK)
        return st;
    record = tti_recorded_other(g, TUTTI_RECORD_MONITORED_BARRIER, -1, (tutti_span){ .count = 0 }, 0);
    st = run(g, timeout_ms, wait_all_ranks);
    tti_record_end_slowly(record, st);
    if (st != TUTTI_OK)
        st = tti_recorder_dump_failure(st);
    tti_group_leave(g, WHAT, TUTTI_OK); /* what failed has been told */
    return st;
}
