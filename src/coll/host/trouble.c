/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trouble.c - what a waiting member looks at, and the words for what it finds.
 *
 * How     In this order, so that the text has the most that is known: another call on a board, an
 *         abort, a dead member (asked about every 10 ms, and at once when a member reports one), a
 *         failure on another host, where the channel's members are some of a group, a member that failed, the deadline. Each ends the operation here, and tells the others.
 * True    A member that has done its part of this operation cannot spoil it, whatever became of it
 *         since: it may have gone on to the next call, or left. What it wrote before it died is
 *         still there; so the counter is looked at once more before a death is reported. Who is waited for has its
 *         part before it until the counter has come that is waited for. */
#include "coll/host/wait.h"

#include <tutti/private.h>

enum { LOOK_MS = 10, TELL_MS = 100 /* what takes longer may be a mistake */, DETAILED_MAX = 4 };

static uint64_t value_of(const tti_host_channel *channel, int rank, tti_counter_kind kind)
{
    const tti_counter *counter = &channel->members[rank].lines->counters[kind];

    return atomic_load_explicit(&counter->at.value, memory_order_acquire);
}

bool tti_host_entered(const tti_host_channel *channel, int rank, uint64_t seq)
{
    return value_of(channel, rank, TTI_ENTERED) >= seq;
}

/* While a call is entered, the part of a member is to have entered the one before it; in rounds, to have done
 * the last. */
static bool has_done_its_part(const tti_host_channel *channel, int rank)
{
    if (channel->entering != 0)
        return tti_host_entered(channel, rank, channel->entering);
    if (channel->end != 0 && value_of(channel, rank, TTI_DONE) >= channel->end)
        return true;
    return value_of(channel, rank, TTI_FINISHED) >= channel->note.seq;
}

static tutti_status tell(tti_host_channel *channel, tutti_status status, int culprit)
{
    tti_host_raise_own(channel, status, culprit);
    return status;
}

static tutti_status compare_with(tti_host_channel *channel, int rank, const tti_call_note *note)
{
    const tti_team *team = channel->team;
    tti_call_note   other;
    tti_words       words = { .used = 0 };

    if (!tti_call_differs(&channel->members[rank].lines->board, note, &other))
        return TUTTI_OK;
    tti_team_add_difference(team, &words, note, team->ranks[rank], &other);
    tti_fail(TUTTI_E_MISMATCH, "%s", words.text);
    return tell(channel, TUTTI_E_MISMATCH, rank);
}

tutti_status tti_host_compare(tti_host_channel *channel, int rank)
{
    const uint64_t calls = channel->calls, agreed = channel->members[rank].agreed;
    uint64_t       call = calls < TTI_HOST_PLACES ? 1 : calls - TTI_HOST_AHEAD;
    tutti_status   st = TUTTI_OK;

    for (; call <= calls && st == TUTTI_OK; call++)
        if (channel->past[call % TTI_HOST_PLACES].note.seq > agreed)
            st = compare_with(channel, rank, &channel->past[call % TTI_HOST_PLACES].note);
    return st;
}

static tutti_status compare_all(tti_host_channel *channel)
{
    tutti_status st = TUTTI_OK;
    int          r;

    for (r = 0; r < channel->team->n_ranks && st == TUTTI_OK; r++)
        if (r != channel->team->rank)
            st = tti_host_compare(channel, r);
    return st;
}

static tutti_status check_abort(tti_host_channel *channel)
{
    const tti_team *team = channel->team;
    char            call[TTI_CALL_TEXT_MAX];

    if (!atomic_load_explicit(&team->aborted, memory_order_acquire))
        return TUTTI_OK;
    tti_team_describe(team, &channel->note, call);
    tti_fail(TUTTI_E_ABORTED, "%s: group '%s' was aborted on rank %d", call, team->name,
             team->ranks[team->rank]);
    return tell(channel, TUTTI_E_ABORTED, team->rank);
}

/* What a wait is for. */
typedef struct awaited {
    int              rank;
    tti_counter_kind kind;
    uint64_t         value;
} awaited;

static bool has_come(const tti_host_channel *channel, int rank, const awaited *what)
{
    return tti_host_has_come(channel, rank, what->kind, what->value);
}

static uint32_t failure_of(const tti_host_channel *channel, int rank)
{
    return atomic_load_explicit(&channel->members[rank].lines->failed, memory_order_acquire);
}

/* Whether its death would not matter to this wait. That of who is awaited does, whatever its other counters say: it may have
 * died between the one that ends its part and the one that says that it has left the call. */
static bool is_through(const tti_host_channel *channel, int rank, const awaited *what)
{
    return rank == what->rank ? has_come(channel, rank, what) : has_done_its_part(channel, rank);
}

/* Member r is lost. What it, or another one, has told by a message before is the reason. */
static tutti_status tell_lost(tti_host_channel *channel, tutti_status st, int r)
{
    const tti_team *team = channel->team;
    tutti_status    heard;
    tti_words       lost = { .used = 0 }, told = { .used = 0 };
    char            call[TTI_CALL_TEXT_MAX];

    tti_words_add(&lost, "%s", tutti_last_error());
    heard = team->messenger != NULL ? tti_messenger_listen(team->messenger, team->group_id) : TUTTI_OK;
    if (heard == TUTTI_OK || heard == TUTTI_E_PEER || heard == TUTTI_E_ABORTED) {
        tti_fail(st, "%s", lost.text);
        return tell(channel, st, r);
    }
    tti_words_add(&told, "%s", tutti_last_error());
    tti_team_describe(team, &channel->note, call);
    tti_fail(heard, "%s on group '%s', on rank %d: %s", call, team->name, team->ranks[team->rank], told.text);
    return tell(channel, heard, -1);
}

/* Whom this wait needs and is lost: one that has died before one that has left, perhaps because of it; -1: nobody. A member that has
 * failed and left is not the cause: it has said what was. */
static int find_lost(const tti_host_channel *channel, const awaited *what)
{
    const tti_team *team = channel->team;
    int             left = -1, r;

    for (r = 0; r < team->n_ranks; r++) {
        if (r == team->rank || is_through(channel, r, what) || failure_of(channel, r) != TUTTI_OK)
            continue;
        if (tti_mesh_alive(team->mesh, team->ranks[r]) == TUTTI_OK || is_through(channel, r, what) ||
            failure_of(channel, r) != TUTTI_OK)
            continue;
        if (!tti_mesh_has_left(team->mesh, team->ranks[r]))
            return r;
        left = left < 0 ? r : left;
    }
    return left;
}

static tutti_status check_alive(tti_host_channel *channel, const awaited *what)
{
    const tti_team *team = channel->team;
    const int       lost = find_lost(channel, what);
    tutti_status    st;

    if (lost < 0 || has_come(channel, what->rank, what))
        return TUTTI_OK;
    st = tti_mesh_alive(team->mesh, team->ranks[lost]);
    return st == TUTTI_OK ? TUTTI_OK : tell_lost(channel, st, lost);
}

/* What a member's `failed` says; a status or a rank that cannot be is taken for "a peer" and "nobody". */
static tutti_status status_of(uint32_t failed)
{
    const uint32_t status = failed & 0xff;

    return status > TUTTI_OK && status <= TUTTI_E_REMOTE ? (tutti_status)status : TUTTI_E_PEER;
}

static int culprit_of(const tti_host_channel *channel, uint32_t failed)
{
    const uint32_t about = failed >> 8;

    return about <= (uint32_t)channel->team->n_ranks ? (int)about - 1 : -1;
}

static tutti_status fail_reported(tti_host_channel *channel, int rank, uint32_t failed)
{
    const tti_team    *team = channel->team;
    const tutti_status status = status_of(failed);
    const int          culprit = culprit_of(channel, failed);
    char               call[TTI_CALL_TEXT_MAX];
    tti_host_report    report = channel->members[rank].lines->report;
    tti_words          words = { .used = 0 };
    bool               has_words;

    report.words[TTI_HOST_WORDS_MAX - 1] = '\0';
    has_words = report.words[0] != '\0' && report.origin >= 0 && report.origin < team->n_ranks;
    tti_team_describe(team, &channel->note, call);
    tti_words_add(&words, "%s: rank %d (%s) reported %s", call, team->ranks[rank],
                  tti_mesh_whereabouts(team->mesh, team->ranks[rank]), tutti_status_name(status));
    if (culprit >= 0 && culprit != rank && status != TUTTI_E_MISMATCH) /* of two calls that differ nobody knows which is wrong */
        tti_words_add(&words, " about rank %d", team->ranks[culprit]);
    tti_words_add(&words, "; group '%s' is finished", team->name);
    if (has_words)
        tti_words_add(&words, "\n  rank %d: %s", team->ranks[report.origin], report.words);
    if (status == TUTTI_E_MISMATCH && team->messenger != NULL) /* another group may have ended with this one */
        (void)tti_messenger_listen(team->messenger, team->group_id);
    /* The words are passed on as they were, for the origin may be gone before all have read them. */
    tti_host_raise(channel, status, culprit, &report); /* who tells is not whom it tells of */
    if (status == TUTTI_E_MISMATCH && team->whole != NULL && has_words) /* a message has not the room for more */
        return tti_fail(status, "rank %d reported: %s", team->ranks[report.origin], report.words);
    return tti_fail(status, "%s", words.text);
}

static tutti_status check_failed(tti_host_channel *channel, const awaited *what)
{
    const tti_team *team = channel->team;
    uint32_t        failed;
    tutti_status    st;
    int             r;

    for (r = 0; r < team->n_ranks; r++) {
        if (r == team->rank || has_done_its_part(channel, r))
            continue;
        failed = failure_of(channel, r);
        if (failed == TUTTI_OK)
            continue;
        st = (failed & 0xff) == TUTTI_E_PEER ? check_alive(channel, what) : TUTTI_OK;
        return st != TUTTI_OK ? st : fail_reported(channel, r, failed);
    }
    return TUTTI_OK;
}

/* Who has failed and has entered no later call failed in this one, in an earlier one or between: in one way
 * or another it has left the group, and this rank does not begin what the others have given up. Who failed
 * later has done its part. */
tutti_status tti_host_look_back(tti_host_channel *channel)
{
    const tti_team *team = channel->team;
    uint32_t        failed;
    int             r;

    for (r = 0; r < team->n_ranks; r++) {
        if (r == team->rank)
            continue;
        failed = failure_of(channel, r);
        if (failed != TUTTI_OK && !tti_host_entered(channel, r, channel->note.seq + 1))
            return fail_reported(channel, r, failed);
    }
    return TUTTI_OK;
}

/* The call that rank is in or was in last, if its board still has it. The word tells 40 bits of its
 * number, which is near our own. */
static bool last_call(const tti_host_channel *channel, int rank, tti_call_note *note_out)
{
    const tti_call_board *board = &channel->members[rank].lines->board;
    const uint64_t        word = atomic_load_explicit(&board->word, memory_order_acquire);
    const uint64_t        ours = channel->note.seq;
    const int64_t         further = (int64_t)(((word >> 24) - ours) << 24) / (INT64_C(1) << 24);

    return word != 0 && tti_call_find(board, ours + (uint64_t)further, note_out);
}

/* "rank 5 (host 'n2', pid 40112) last entered broadcast #1840 (...)", behind what sets it apart. */
static void add_last_call(const tti_host_channel *channel, const char *apart, int rank, tti_words *words)
{
    const tti_team *team = channel->team;
    tti_call_note   note;
    char            call[TTI_CALL_TEXT_MAX];
    const bool      entered = last_call(channel, rank, &note);

    if (entered)
        tti_team_describe(team, &note, call);
    tti_words_add(words, "%srank %d (%s) %s%s", apart, team->ranks[rank],
                  tti_mesh_whereabouts(team->mesh, team->ranks[rank]),
                  entered ? "last entered " : "has entered no call yet", entered ? call : "");
    tti_team_add_health(team, words, rank);
}

/* Mark who has not entered the operation; if nobody is missing, who has not come as far as is
 * awaited. */
static bool mark_missing(const tti_host_channel *channel, const awaited *what, bool *missing)
{
    const tti_team *team = channel->team;
    bool            absent = false;
    tti_call_note   note;
    int             r;

    for (r = 0; r < team->n_ranks; r++) {
        missing[r] = !has_done_its_part(channel, r) &&
                     !tti_call_find(&channel->members[r].lines->board, channel->note.seq, &note);
        absent = absent || missing[r];
    }
    for (r = 0; r < team->n_ranks && !absent; r++)
        missing[r] = r == what->rank || (r != team->rank && !has_come(channel, r, what));
    return absent;
}

static bool is_unwell(const tti_team *team, int rank)
{
    const tti_life life = tti_health_now(tti_mesh_health(team->mesh), team->ranks[rank]).life;

    return rank != team->rank && life != TTI_LIFE_WELL;
}

/* What those of the missing entered last that are unwell, or are not: DETAILED_MAX in all, n of them before. Whose was told is
 * marked. In a line of their own, if there is one before. */
static int add_last_calls(const tti_host_channel *channel, const bool *missing, bool unwell, bool *told, int n, bool new_line,
                          tti_words *words)
{
    const char *apart = new_line ? "\n  " : "; ";
    int         r;

    for (r = 0; r < channel->team->n_ranks && n < DETAILED_MAX; r++)
        if (missing[r] && !told[r] && is_unwell(channel->team, r) == unwell) {
            add_last_call(channel, apart, r, words);
            apart = "; ";
            told[r] = true;
            n++;
        }
    return n;
}

/* Many may be missing for the sake of one, who may be on another host: who is unwell comes first, as what is passed on to
 * others is cut. */
static void add_missing(const tti_host_channel *channel, const awaited *what, tti_words *words)
{
    const tti_team *team = channel->team;
    bool            missing[TTI_HOST_RANKS_MAX], told[TTI_HOST_RANKS_MAX] = { false };
    const bool      absent = mark_missing(channel, what, missing);
    size_t          used;
    int             n;

    tti_words_add(words, absent ? "not arrived: " : "arrived but not finished: ");
    tti_team_add_ranks(team, words, missing);
    n = add_last_calls(channel, missing, true, told, 0, false, words);
    used = words->used;
    tti_team_add_unwell(team, words, told);
    (void)add_last_calls(channel, missing, false, told, n, words->used > used, words);
}

static tutti_status fail_timeout(tti_host_channel *channel, const awaited *what, int64_t now_ns)
{
    const tti_team *team = channel->team;
    tti_words       words = { .used = 0 };
    char            call[TTI_CALL_TEXT_MAX], step[TTI_NEXT_TEXT_MAX];

    tti_team_describe(team, &channel->note, call);
    add_missing(channel, what, &words);
    tti_fail(TUTTI_E_TIMEOUT,
             "%s on group '%s' timed out after %lld ms on rank %d of %d members\n  %s\n"
             "  next: %s",
             call, team->name, (long long)((now_ns - channel->waiting_ns) / TTI_MS), team->ranks[team->rank],
             tti_team_whole(team)->n_ranks, words.text,
             tti_team_next_step(team, "see what the ranks named do instead, or give the group a longer time-out", step));
    return tell(channel, TUTTI_E_TIMEOUT, what->rank);
}

/* What others wait for may be that this rank comes to a call of another group (transport/waits.c). */
static void tell_wait(tti_host_channel *channel, const awaited *what, int64_t now_ns)
{
    const tti_team *team = channel->team;
    const int       needs = tti_call_needs_all(&channel->note) ? TTI_NEEDS_ANY : team->ranks[what->rank];

    if (now_ns - channel->told_ns < TELL_MS * TTI_MS)
        return;
    channel->told_ns = now_ns;
    tti_messenger_tell_wait(team->messenger, team->group_id, &channel->note, needs);
}

void tti_host_end_wait(tti_host_channel *channel)
{
    if (channel->told_ns == 0)
        return;
    channel->told_ns = 0;
    tti_messenger_wait_over(channel->team->messenger, channel->team->group_id, channel->note.seq);
}

/* Members of other hosts tell by messages, for which nobody may be waiting here, and so does whoever finds that calls of
 * several groups are mixed up. */
static tutti_status check_messages(tti_host_channel *channel, const awaited *what, int64_t now_ns)
{
    const tti_team *team = channel->team;
    const bool      is_long = now_ns - channel->waiting_ns >= TELL_MS * TTI_MS;
    tutti_status    st = TUTTI_OK;
    tti_words       words = { .used = 0 };
    char            call[TTI_CALL_TEXT_MAX];

    if (team->messenger == NULL)
        return TUTTI_OK;
    if (is_long)
        tell_wait(channel, what, now_ns);
    if (team->whole != NULL)
        st = tti_messenger_heard(team->messenger, team->group_id);
    else if (is_long)
        st = tti_messenger_listen(team->messenger, team->group_id);
    if (st == TUTTI_OK)
        return TUTTI_OK;
    tti_words_add(&words, "%s", tutti_last_error());
    tti_team_describe(team, &channel->note, call);
    tti_fail(st, "%s on group '%s', on rank %d: %s", call, team->name, team->ranks[team->rank], words.text);
    return tell(channel, st, -1);
}

tutti_status tti_host_look(tti_host_channel *channel, int rank, tti_counter_kind kind,
                           uint64_t value)
{
    const awaited what = { rank, kind, value };
    const int64_t now_ns = tti_port_now(channel->team->port);
    tutti_status  st = compare_all(channel);

    if (channel->waiting_ns == 0)
        channel->waiting_ns = channel->looked_ns = now_ns;
    if (channel->deadline_ns == 0)
        channel->deadline_ns = tti_later(now_ns, channel->timeout_ms); /* as tti_call_deadline() */
    if (st == TUTTI_OK)
        st = check_abort(channel);
    if (st == TUTTI_OK && now_ns - channel->looked_ns >= LOOK_MS * TTI_MS) {
        channel->looked_ns = now_ns;
        st = check_alive(channel, &what);
        if (st == TUTTI_OK)
            st = check_messages(channel, &what, now_ns);
    }
    if (st == TUTTI_OK)
        st = check_failed(channel, &what);
    if (st == TUTTI_OK && now_ns >= channel->deadline_ns)
        st = fail_timeout(channel, &what, now_ns);
    return st;
}
