/* SPDX-License-Identifier: BSD-3-Clause
 *
 * suspects.c - who may be dead. A handful at a time: a list that is gone through.
 *
 * How     To knock is to connect, and to say nothing. A round of it has several knocks, each a connection of its own, so that
 *         what is lost of one, or late, says nothing of the others:
 *
 *             0 ms    150 ms    300 ms          500 ms
 *             knock   knock     knock           nobody has answered: silence
 *
 *         The kernel would ask again after a second, which is too late: by then a death is to be known. The first knock that
 *         is answered ends the round. It stays for STAYS_MS: a process that is just ending may close its door a moment after
 *         its streams, and with it all that waits there.
 *         Where silence proves nothing one knock is enough, and has until the kernel has asked once more: the way may be long,
 *         and nothing is lost by waiting.
 * True    Only what has come counts, not that this thread was late to look: before a silence is told of, the knocks are
 *         looked at once more. */
#include "transport/health/suspects.h"

#include <errno.h>
#include <stddef.h>

#define KNOCK_NS (150 * TTI_MS)
#define SILENCE_NS (500 * TTI_MS)
#define PATIENCE_NS (2000 * TTI_MS) /* where it proves nothing */
#define LAST_NS (200 * TTI_MS) /* that the last knock has at least, whenever it came to it */
#define STAYS_NS (1000 * TTI_MS)

static tti_suspect *find(tti_suspects *s, int rank)
{
    int i;

    for (i = 0; i < s->n; i++)
        if (s->list[i].rank == rank)
            return &s->list[i];
    return NULL;
}

const tti_suspect *tti_suspects_find(const tti_suspects *s, int rank)
{
    int i;

    for (i = 0; i < s->n; i++)
        if (s->list[i].rank == rank)
            return &s->list[i];
    return NULL;
}

/* ---- the list ---- */

static void close_knock(const tti_suspects *s, tti_suspect *who, int k)
{
    s->port->ops->close(s->port, who->knocks[k]);
    who->knocks[k] = TTI_NO_HANDLE;
}

static void begin_round(const tti_suspects *s, tti_suspect *who, int64_t at_ns)
{
    int k;

    for (k = 0; k < who->n_knocks; k++)
        close_knock(s, who, k);
    who->n_knocks = 0;
    who->failed = 0;
    who->ready = 0;
    who->stays = false;
    who->knock_ns = at_ns;
}

bool tti_suspects_add(tti_suspects *s, int rank, bool in_time, int64_t now_ns)
{
    tti_suspect *known = find(s, rank);

    if (known != NULL) {
        known->in_time = known->in_time || in_time;
        known->unheard = false;
        if (known->stays) /* that was before this end */
            known->over_ns = now_ns + STAYS_NS;
        return true;
    }
    if (s->n == TTI_SUSPECTS_MAX)
        return false;
    s->list[s->n++] = (tti_suspect){ .rank = rank, .in_time = in_time, .knock_ns = now_ns };
    return true;
}

void tti_suspects_note_closed(tti_suspects *s, int rank)
{
    tti_suspect *known = find(s, rank);

    if (known != NULL)
        known->closed = true;
}

bool tti_suspects_doubt(tti_suspects *s, int rank, int64_t at_ns)
{
    if (find(s, rank) != NULL)
        return true;
    if (s->n == TTI_SUSPECTS_MAX)
        return false;
    s->list[s->n++] = (tti_suspect){ .rank = rank, .unheard = true, .knock_ns = at_ns };
    return true;
}

void tti_suspects_drop(tti_suspects *s, int rank)
{
    tti_suspect *known = find(s, rank);

    if (known == NULL)
        return;
    begin_round(s, known, TTI_FOREVER);
    *known = s->list[--s->n];
}

void tti_suspects_drop_all(tti_suspects *s)
{
    while (s->n > 0)
        tti_suspects_drop(s, s->list[0].rank);
}

void tti_suspects_again(tti_suspects *s, int rank, int64_t at_ns)
{
    tti_suspect *known = find(s, rank);

    if (known != NULL)
        begin_round(s, known, at_ns);
}

/* ---- one of them ---- */

static bool can_prove_by_silence(const tti_suspect *who)
{
    return who->in_time && !who->answered;
}

/* What a knock has come to; TTI_SIGN_NONE: nothing that says anything. */
static tti_sign fail_knock(const tti_suspects *s, tti_suspect *who, int k, int err)
{
    close_knock(s, who, k);
    who->failed++;
    return err == -ECONNREFUSED ? TTI_SIGN_REFUSED : TTI_SIGN_NONE;
}

static tti_sign knock(const tti_suspects *s, tti_suspect *who, int64_t now_ns)
{
    const int k = who->n_knocks++;
    const int err = s->port->ops->connect(s->port, s->addr_of(s->context, who->rank), &who->knocks[k]);

    if (k == 0)
        who->over_ns = now_ns + (can_prove_by_silence(who) ? SILENCE_NS : PATIENCE_NS);
    else if (who->over_ns < now_ns + LAST_NS)
        who->over_ns = now_ns + LAST_NS;
    who->knock_ns = can_prove_by_silence(who) && who->n_knocks < TTI_KNOCKS_MAX ? now_ns + KNOCK_NS : TTI_FOREVER;
    if (err == 0)
        return TTI_SIGN_NONE;
    who->knocks[k] = TTI_NO_HANDLE;
    return fail_knock(s, who, k, err);
}

/* Its kernel has taken the k-th: the others are not needed. */
static void take_answer(const tti_suspects *s, tti_suspect *who, int k, int64_t now_ns)
{
    const tti_handle taken = who->knocks[k];

    who->knocks[k] = TTI_NO_HANDLE;
    begin_round(s, who, TTI_FOREVER);
    who->knocks[0] = taken;
    who->n_knocks = 1;
    who->stays = who->answered = true;
    who->over_ns = now_ns + STAYS_NS;
}

static tti_sign look_at_knocks(const tti_suspects *s, tti_suspect *who, int64_t now_ns)
{
    tti_sign sign = TTI_SIGN_NONE;
    int      k, err;

    for (k = 0; k < who->n_knocks && sign != TTI_SIGN_REFUSED; k++) {
        if ((who->ready >> k & 1) == 0 || who->knocks[k] == TTI_NO_HANDLE)
            continue;
        err = s->port->ops->connect_result(s->port, who->knocks[k]);
        if (err == 0) {
            take_answer(s, who, k, now_ns);
            break;
        }
        sign = fail_knock(s, who, k, err);
    }
    who->ready = 0;
    return sign;
}

/* Nothing is said on it: it can only end. */
static bool has_ended(const tti_suspects *s, tti_suspect *who)
{
    uint8_t       byte;
    const int64_t n = who->ready != 0 ? s->port->ops->recv(s->port, who->knocks[0], &byte, 1) : -EAGAIN;

    who->ready = 0;
    return n <= 0 && n != -EAGAIN;
}

/* This thread may have had no core since the last poll. */
static bool has_come(const tti_suspects *s, const tti_suspect *who)
{
    tti_poll set[TTI_KNOCKS_MAX];
    int      k;

    for (k = 0; k < who->n_knocks; k++)
        set[k] = (tti_poll){ .handle = who->knocks[k], .want = TTI_WRITE };
    return s->port->ops->poll(s->port, set, who->n_knocks, 0) != 0;
}

/* False: its door has said nothing yet. */
static bool turn_one(const tti_suspects *s, tti_suspect *who, int64_t now_ns, tti_sign *sign_out)
{
    tti_sign sign = TTI_SIGN_NONE;

    if (who->stays) {
        *sign_out = has_ended(s, who) ? TTI_SIGN_ENDED : TTI_SIGN_OPEN;
        return *sign_out == TTI_SIGN_ENDED || now_ns >= who->over_ns;
    }
    if (now_ns >= who->knock_ns)
        sign = knock(s, who, now_ns);
    if (sign != TTI_SIGN_REFUSED)
        sign = look_at_knocks(s, who, now_ns);
    *sign_out = sign;
    if (sign == TTI_SIGN_REFUSED)
        return true;
    if (who->stays || who->n_knocks == 0 || who->knock_ns != TTI_FOREVER)
        return false;
    if (who->failed == who->n_knocks)
        return true;
    *sign_out = who->failed > 0 ? TTI_SIGN_NONE : TTI_SIGN_SILENCE;
    return now_ns >= who->over_ns && !has_come(s, who);
}

int tti_suspects_turn(tti_suspects *s, int64_t now_ns, tti_sign *sign_out)
{
    int i;

    for (i = 0; i < s->n; i++)
        if (turn_one(s, &s->list[i], now_ns, sign_out))
            return s->list[i].rank;
    return -1;
}

int64_t tti_suspects_next_ns(const tti_suspects *s)
{
    int64_t next_ns = TTI_FOREVER;
    int     i;

    for (i = 0; i < s->n; i++) {
        const tti_suspect *who = &s->list[i];
        const int64_t      due_ns = who->n_knocks > 0 && who->over_ns < who->knock_ns ? who->over_ns : who->knock_ns;

        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    return next_ns;
}

/* ---- polling ---- */

int tti_suspects_fill(const tti_suspects *s, tti_poll *set)
{
    int i, k, n = 0;

    for (i = 0; i < s->n; i++)
        for (k = 0; k < s->list[i].n_knocks; k++)
            set[n++] = (tti_poll){ .handle = s->list[i].knocks[k], .want = s->list[i].stays ? TTI_READ : TTI_WRITE };
    return n;
}

void tti_suspects_note(tti_suspects *s, const tti_poll *set)
{
    int i, k, n = 0;

    for (i = 0; i < s->n; i++)
        for (k = 0; k < s->list[i].n_knocks; k++)
            s->list[i].ready |= set[n++].got != 0 ? 1U << k : 0;
}
