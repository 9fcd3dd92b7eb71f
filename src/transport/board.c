/* SPDX-License-Identifier: BSD-3-Clause
 *
 * board.c - reading what every rank has left on a board, in few requests.
 *
 * Why     Everybody needs everybody's piece: asked for one by one that is a round trip for each rank on each rank,
 *         and the store serves the square of their number when all start at the same moment.
 * How     One request asks for up to TTI_BOARD_KEYS_MAX pieces and is answered when the last of them has come. If that
 *         takes longer than a look, the first piece that had not come is asked for: while it is missing nothing else
 *         is looked at; when it is there, the next one that is not is looked for, and those before it are
 *         taken. So pieces are seen in the order of ranks, as if they were asked for one after the
 *         other, what is wrong with one of them is seen although others never come, and all of it takes one request
 *         for 256 ranks that come in time. Who has found nothing at a look waits for that one piece first.
 *         Looks become rarer, up to a limit: a rank that waits long costs the store little.
 *         Who is missing is found by halves: ranges that are there whole take one question.
 * True    come() is called for 0, 1, 2, ..., each once. A piece that was left stays as it is.
 *         Time that is up is up for the whole wait: however many questions are asked then, the last of them ends one grace after
 *         the deadline, or, where this rank came to it later than that, as a near board takes. Each would have a grace of
 *         its own otherwise, and with a board that is far away a call came back after a sum of them.
 * Fails   A board that fails is not asked further: its words stay. One that was only not reached within the time of a look has
 *         not failed: as long as there is more time it is asked again, for the way to it may be cut for a while. */
#include "transport/board.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "base/clip.h"

enum { WORDS_MAX = TTI_LAST_ERROR_MAX, LOOK_MS = 200, LOOK_RANK_MS = 4, LOOK_MOST_MS = 2000 };

static const int64_t GRACE_NS = 40 * TTI_MS;
static const int64_t LAST_LOOK_NS = 200 * TTI_MS; /* for what has been left before somebody was found to be unable to */

void tti_roll_key(const tti_roll *roll, int rank, char key_out[TTI_BOARD_KEY_BYTES])
{
    snprintf(key_out, TTI_BOARD_KEY_BYTES, "%s/%d", roll->what, rank);
}

typedef struct key_list {
    const char *keys[TTI_BOARD_KEYS_MAX];
    char        room[TTI_BOARD_KEYS_MAX][TTI_BOARD_KEY_BYTES];
} key_list;

static void list_keys(const tti_roll *roll, int first, int n, key_list *list)
{
    int i;

    for (i = 0; i < n; i++) {
        tti_roll_key(roll, first + i, list->room[i]);
        list->keys[i] = list->room[i];
    }
}

/* The pieces of n ranks, at most TTI_BOARD_KEYS_MAX. */
static tutti_status get_some(const tti_roll *roll, int first, int n, int64_t deadline_ns, char *out)
{
    const tti_board *board = roll->board;
    tutti_status     st = TUTTI_OK;
    key_list         list;
    int              i;

    list_keys(roll, first, n, &list);
    if (board->get_all != NULL && n > 1)
        return board->get_all(board->context, list.keys, n, out, roll->bytes, deadline_ns);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = board->get(board->context, list.keys[i], out + (size_t)i * roll->bytes, roll->bytes, deadline_ns);
    return st;
}

/* Whether those of n ranks are all there, at most TTI_BOARD_KEYS_MAX. */
static tutti_status has_some(const tti_roll *roll, int first, int n, int64_t deadline_ns, bool *all_out)
{
    const tti_board *board = roll->board;
    tutti_status     st = TUTTI_OK;
    bool             there = true;
    key_list         list;
    int              i;

    list_keys(roll, first, n, &list);
    if (board->has_all != NULL && n > 1)
        return board->has_all(board->context, list.keys, n, deadline_ns, all_out);
    for (i = 0; i < n && st == TUTTI_OK && there; i++)
        st = board->has(board->context, list.keys[i], deadline_ns, &there);
    if (st == TUTTI_OK)
        *all_out = there;
    return st;
}

int64_t tti_board_grace(const tti_board *board, tti_port *port)
{
    return board->grace != NULL ? board->grace(board->context) : tti_port_now(port) + GRACE_NS;
}

static int64_t later_of(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

int64_t tti_board_patience(const tti_board *board, tti_port *port, int64_t deadline_ns)
{
    const int64_t now_ns = tti_port_now(port);
    const int64_t grace_ns = tti_board_grace(board, port);
    const int64_t second_ns = now_ns + TTI_SECOND;

    if (now_ns >= deadline_ns)
        return later_of(deadline_ns + (grace_ns - now_ns), now_ns + GRACE_NS);
    return later_of(second_ns < deadline_ns ? second_ns : deadline_ns, grace_ns);
}

static int64_t grace(const tti_roll *roll)
{
    return tti_board_patience(roll->board, roll->port, roll->until_ns);
}

/* A question that had until then, and less time than the roll: who did not reach the board in it asks again. */
static tutti_status in_time(const tti_roll *roll, int64_t until_ns, tutti_status st)
{
    const bool is_cut = until_ns < roll->until_ns && tti_port_now(roll->port) >= until_ns;

    return st == TUTTI_E_NETWORK && is_cut ? TUTTI_E_TIMEOUT : st;
}

/* How many ranks from first on are there, of at most n, up to the first that is not: 1, 2, 4, ... more at a time, then by
 * halves. */
static tutti_status count_there(const tti_roll *roll, int first, int n, int *n_out)
{
    int          step = 1, at = 0, end = n; /* those before at are there; of those before end, one is not */
    bool         found = false;             /* that end */
    tutti_status st = TUTTI_OK;

    while (st == TUTTI_OK && at < end && !(found && end - at == 1)) {
        const int     left = end - at;
        const int     some = found ? left / 2 : step < left ? step : left;
        const int64_t until_ns = grace(roll);
        bool          there = false;

        st = in_time(roll, until_ns, has_some(roll, first + at, some, until_ns, &there));
        if (there)
            at += some;
        else
            end = at + some;
        found = found || !there;
        step *= 2;
    }
    *n_out = at;
    return st;
}

/* Those from *n_out on that are there already. */
static tutti_status take_there(const tti_roll *roll, int n, char *out, int *n_out)
{
    int          there = 0, i;
    int64_t      until_ns;
    tutti_status st = count_there(roll, *n_out, n, &there);

    if (st == TUTTI_OK && there > 0) {
        until_ns = grace(roll);
        st = in_time(roll, until_ns, get_some(roll, *n_out, there, until_ns, out + (size_t)*n_out * roll->bytes));
    }
    for (i = 0; i < there && st == TUTTI_OK; i++)
        st = roll->come(roll->ctx, (*n_out)++);
    return st;
}

/* At most `most` of those that are left, or what has come of them until then. */
static tutti_status read_some(const tti_roll *roll, int most, int64_t until_ns, char *out, int *n_out)
{
    const int    left = roll->n - *n_out;
    const int    n = left < most ? left : most;
    const int    before = *n_out;
    tutti_status st = in_time(roll, until_ns, get_some(roll, before, n, until_ns, out + (size_t)before * roll->bytes));

    if (st == TUTTI_E_TIMEOUT && n > 1) {
        st = take_there(roll, n, out, n_out);
        return st == TUTTI_OK && *n_out < before + n ? TUTTI_E_TIMEOUT : st;
    }
    while (st == TUTTI_OK && *n_out < before + n)
        st = roll->come(roll->ctx, (*n_out)++);
    return st;
}

/* The board is lost, with st, in the last look for rank, which cannot come any more: whoever served it may have gone for the same
 * reason. */
static tutti_status why_in_vain(const tti_roll *roll, int rank, tutti_status st)
{
    char         kept[WORDS_MAX];
    tutti_status why;

    snprintf(kept, sizeof kept, "%s", tutti_last_error());
    why = roll->awaited(roll->ctx, rank);
    return why != TUTTI_OK ? why : tti_fail(st, "%s", kept);
}

static tutti_status read_all(const tti_roll *roll, int64_t deadline_ns, void *out, int *n_out)
{
    int64_t      look_ns = roll->look_ms * TTI_MS;
    int          most = TTI_BOARD_KEYS_MAX;
    bool         last = false;
    tutti_status st = TUTTI_OK;

    *n_out = 0;
    while (st == TUTTI_OK && *n_out < roll->n) {
        const int64_t slice_ns = tti_port_now(roll->port) + (last && look_ns > LAST_LOOK_NS ? LAST_LOOK_NS : look_ns);
        const int     before = *n_out;

        st = read_some(roll, most, slice_ns < deadline_ns ? slice_ns : deadline_ns, out, n_out);
        most = *n_out > before ? TTI_BOARD_KEYS_MAX : 1;
        if (st == TUTTI_E_NETWORK && last && *n_out == before)
            st = why_in_vain(roll, *n_out, st);
        if (st != TUTTI_E_TIMEOUT)
            continue;
        st = last && *n_out == before ? roll->awaited(roll->ctx, *n_out) : TUTTI_OK;
        if (st != TUTTI_OK)
            return st;
        if (tti_port_now(roll->port) >= deadline_ns)
            return TUTTI_E_TIMEOUT;
        /* it may have come just before whoever is asked finds that it cannot: once more */
        last = roll->awaited != NULL && roll->awaited(roll->ctx, *n_out) != TUTTI_OK;
        look_ns = 2 * look_ns < roll->look_most_ms * TTI_MS ? 2 * look_ns : roll->look_most_ms * TTI_MS;
    }
    return st;
}

int tti_roll_look_ms(int n_ranks)
{
    return n_ranks < (LOOK_MOST_MS - LOOK_MS) / LOOK_RANK_MS ? LOOK_MS + LOOK_RANK_MS * n_ranks : LOOK_MOST_MS;
}

tutti_status tti_roll_read(const tti_roll *roll, int64_t deadline_ns, void *out, int *n_out)
{
    tti_roll own = *roll;

    assert(roll->look_ms > 0 && roll->look_most_ms > 0); /* a look of no time asks in vain, again and again */
    own.until_ns = deadline_ns;
    return read_all(&own, deadline_ns, out, n_out);
}

/* ---- who is missing --------------------------------------------------------------------------------- */

typedef struct search {
    const tti_roll *roll;
    int             left; /* that may still be marked */
    int64_t         deadline_ns;
    bool           *missing;
} search;

/* Among n ranks, at most TTI_BOARD_KEYS_MAX. False: it ended before all were looked at. */
static bool find_missing(search *s, int first, int n)
{
    bool there = true;

    if (s->left <= 0 || has_some(s->roll, first, n, s->deadline_ns, &there) != TUTTI_OK)
        return false;
    if (there)
        return true;
    if (n == 1) {
        s->missing[first] = true;
        s->left--;
        return true;
    }
    return find_missing(s, first, n / 2) && find_missing(s, first + n / 2, n - n / 2);
}

bool tti_roll_missing(const tti_roll *roll, int first, int most, int64_t deadline_ns, bool *missing_out)
{
    search s = { .roll = roll, .left = most, .deadline_ns = deadline_ns, .missing = missing_out };
    int    at, n;

    memset(missing_out + first, false, (size_t)(roll->n - first) * sizeof *missing_out);
    for (at = first; at < roll->n; at += n) {
        n = roll->n - at < TTI_BOARD_KEYS_MAX ? roll->n - at : TTI_BOARD_KEYS_MAX;
        if (!find_missing(&s, at, n))
            return false;
    }
    return true;
}
