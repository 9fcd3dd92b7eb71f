/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agreement.c - what every member does: says that it is here, promises, builds, accepts, and looks who leads.
 *
 * Why     After a failure the members that are left must go on as one group, or not at all. None of them may be
 *         needed for that: not rank 0, not who serves the store; and one more may die while they talk.
 * How     Paxos among the last agreed members, about one value: who goes on. Whoever sees nobody before itself, because
 *         all lower ranks are dead or have been silent for too long, leads; several may at times.
 *             JOIN      member -> leader: I am in the call
 *             PREPARE   leader -> all that are there, with a ballot higher than any before
 *             PROMISE   back: no lower ballot will have my vote; this is what I last voted for
 *             PROPOSE   leader -> those: this is the value, meet there. It is new (all that have promised), or one that
 *                       may have been decided already, which is then kept. Also who is known to be gone, for words
 *             ACCEPT    back, for a new value only after having built the successor with all of them
 *             COMMIT    leader -> all: it is decided
 *         The value is built before it is voted for, because a successor that cannot be built is none. A death meanwhile
 *         makes the attempt vain: the leader ends it, and proposes again without the dead in a higher ballot.
 * Quorum  Members of a set may go on if they are more than half of all, or half with the lowest rank: two such sets have
 *         a member in common. A ballot is led only with promises of such a set, so of the two sides of a partition one
 *         leads at most. With TUTTI_SHRINK_MINORITY, or an explicit list, the caller answers for the others.
 * True    At most one value is decided. In the ballot in which a value is new its quorum for votes is all of its members:
 *         if one of them that promised a higher ballot had not voted, it was not decided and never will be, and another
 *         value may be proposed. A value that all of them that can be asked did vote for is proposed again as it is
 *         (RECOVER), and needs votes of a majority in that ballot. Every later leader hears of it from a member that is in
 *         both sets. (Flexible Paxos: quorums of voting differ by ballot, as long as each meets those of promising.)
 *         The leader counts as not having voted for a new value until all others have. Whoever builds a new value has told
 *         its leader of its vote before, which is void by that, and forgets it: its build is torn down.
 * Fails   Who is told REFUSE, or runs out of time, returns an error and leaves the group as it is. What is decided becomes
 *         known to all that live, also if the leader dies while it says COMMIT (agreement_end.c).
 *         A member that dies after it has voted may be among those that go on: a value that is kept stays what it is,
 *         because somebody may have it already, and one that has left the call can be asked nothing. Its death is then met in
 *         the new group like any other, by the first operation, and left behind by the next call.
 * Source  Lamport, "The part-time parliament"; Howard, Malkhi, Spiegelman, "Flexible Paxos" (2016). */
#include "regroup/agreement_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

/* ---- the object ---- */

static bool make_room(tti_agreement *a)
{
    const size_t n = (size_t)a->n;

    a->members = calloc(n, sizeof *a->members);
    a->room = calloc(7 * n, sizeof *a->room);
    a->wire = malloc(tti_agreement_message_bytes(a->n));
    if (a->members == NULL || a->room == NULL || a->wire == NULL)
        return false;
    a->value = a->room;
    a->chosen = a->room + n;
    a->heard = a->room + 2 * n;
    a->heard_list = a->room + 3 * n;
    a->missing = a->room + 4 * n;
    a->absent = a->room + 5 * n;
    a->lost = a->room + 6 * n;
    return true;
}

tutti_status tti_agreement_create(const tti_agreement_config *config, tti_agreement **agreement_out)
{
    tti_agreement *a = calloc(1, sizeof *a);

    if (a == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for an agreement of %d", config->n);
    a->config = *config;
    a->n = config->n;
    a->rank = config->rank;
    a->now_ns = config->now_ns;
    a->heard_of = -1;
    a->odds = -1;
    a->number = config->number;
    if (!make_room(a)) {
        tti_agreement_free(a);
        return tti_fail(TUTTI_E_NOMEM, "no memory for an agreement of %d", config->n);
    }
    *agreement_out = a;
    return TUTTI_OK;
}

void tti_agreement_free(tti_agreement *a)
{
    int r;

    if (a == NULL)
        return;
    for (r = 0; a->members != NULL && r < a->n; r++)
        free(a->members[r].value);
    free(a->members);
    free(a->room);
    free(a->wire);
    free(a);
}

/* ---- what files share ---- */

bool tti_agree_eligible(const tti_agreement *a, int rank)
{
    return a->config.excluded == NULL || !a->config.excluded[rank];
}

/* Each counts two, and rank 0, the lowest of those last agreed on, three. */
bool tti_agree_quorum(const tti_agreement *a, const bool *set)
{
    int weight = set[0] ? 1 : 0;
    int r;

    for (r = 0; r < a->n; r++)
        weight += set[r] ? 2 : 0;
    return weight > a->n;
}

void tti_agree_send(tti_agreement *a, int to, const tti_agree_message *m)
{
    a->members[to].wanted = true;
    tti_agree_encode(a, m, a->wire);
    a->config.send(a->config.ctx, to, a->wire, tti_agreement_message_bytes(a->n));
}

void tti_agree_fail(tti_agreement *a, tutti_status status, const char *words)
{
    if (a->task == TTI_AGREE_DONE || a->task == TTI_AGREE_FAILED)
        return;
    a->task = TTI_AGREE_FAILED;
    a->failure = status;
    snprintf(a->words, sizeof a->words, "%s", words);
}

tti_agree_message tti_agree_refusal(const tti_agreement *a, tutti_status status)
{
    return (tti_agree_message){ .type = TTI_AGREE_REFUSE, .ballot = TTI_AGREE_NO_BALLOT, .status = status, .accepted = a->number,
                                .origin = a->parted };
}

void tti_agree_build(tti_agreement *a, uint64_t ballot)
{
    a->accepted = a->origin = a->built = 0;
    a->building = ballot;
    a->task = TTI_AGREE_BUILD;
}

bool tti_agree_is_alive(const tti_agreement *a, int rank)
{
    return a->members[rank].alive_ns != 0 && a->now_ns - a->members[rank].alive_ns < tti_agree_silence_ns(a);
}

bool tti_agree_is_over(const tti_agreement *a)
{
    int r;

    if (a->now_ns < a->until_ns)
        return false;
    if (a->now_ns - a->since_ns >= a->config.patience_ns)
        return true;
    for (r = 0; r < a->n; r++)
        if (a->members[r].asked && !a->members[r].answered && a->members[r].present && tti_agree_is_alive(a, r))
            return false;
    return true;
}

void tti_agree_begin(tti_agreement *a, int64_t ns)
{
    a->since_ns = a->now_ns;
    a->until_ns = a->now_ns + ns;
}

/* ---- who leads ---- */

/* The lowest member that may. */
static int find_leader(const tti_agreement *a)
{
    int r;

    for (r = 0; r < a->rank; r++)
        if (tti_agree_eligible(a, r) && !tti_agree_is_away(&a->members[r]))
            return r;
    return a->rank;
}

/* Nothing is heard of who should lead. Behind one that was given up the next has less time, unless its process is known to run:
 * a side of a partition finds several that say nothing. */
static void watch_leader(tti_agreement *a, int leader)
{
    const bool    is_slow = a->members[leader].present && tti_agree_is_alive(a, leader);
    const int64_t patience_ns = a->members[leader].present && !is_slow ? tti_agree_silence_ns(a) : a->config.patience_ns;
    const int64_t grace_ns = patience_ns < TTI_AGREE_GRACE_NS ? patience_ns : TTI_AGREE_GRACE_NS;
    const bool    is_next = a->heard_of >= 0 && a->members[a->heard_of].given_up && !tti_agree_is_alive(a, leader);

    if (a->task == TTI_AGREE_BUILD)
        a->heard_ns = a->now_ns; /* who builds listens to nobody */
    if (a->heard_of != leader) {
        a->heard_of = leader;
        a->was_told = false;
        a->heard_ns = is_next ? a->now_ns - patience_ns + grace_ns : a->now_ns;
    }
    if (a->now_ns - a->heard_ns >= patience_ns && a->config.excluded == NULL)
        a->members[leader].given_up = true;
}

/* With a list the leader has its say first, which knows best who has not come. */
int64_t tti_agree_expires_ns(const tti_agreement *a)
{
    const bool waits = a->config.excluded != NULL && a->phase == TTI_AGREE_FOLLOW && a->heard_of >= 0 && a->members[a->heard_of].present &&
                       a->config.deadline_ns != TTI_FOREVER;

    return waits ? a->config.deadline_ns + TTI_AGREE_LAST_SAY_NS : a->config.deadline_ns;
}

/* Whatever has happened: see what follows. */
static void go_on(tti_agreement *a)
{
    int leader;

    if (a->task == TTI_AGREE_DONE || a->task == TTI_AGREE_FAILED)
        return;
    if (a->decided) {
        tti_agree_spread(a);
        return;
    }
    if (a->odds >= 0) {
        tti_agree_part(a);
        return;
    }
    if (a->now_ns >= tti_agree_expires_ns(a)) {
        tti_agree_expire(a);
        return;
    }
    leader = find_leader(a);
    if (leader != a->rank) {
        watch_leader(a, leader);
        leader = find_leader(a);
    }
    if (leader == a->rank || a->phase > TTI_AGREE_GATHER)
        tti_agree_lead(a);
    else
        a->phase = TTI_AGREE_FOLLOW;
}

/* ---- what leaders say ---- */

static tti_agree_message reply(const tti_agree_message *to, tti_agree_type type)
{
    return (tti_agree_message){ .type = type, .ballot = to->ballot };
}

static void say_busy(tti_agreement *a, int from, const tti_agree_message *m)
{
    tti_agree_message busy = reply(m, TTI_AGREE_BUSY);

    busy.accepted = a->promised;
    tti_agree_send(a, from, &busy);
}

static void promise(tti_agreement *a, int from, const tti_agree_message *m)
{
    tti_agree_message answer = reply(m, TTI_AGREE_PROMISE);

    if (m->ballot < a->promised) {
        say_busy(a, from, m);
        return;
    }
    tti_agree_yield(a, m->ballot);
    if (a->task == TTI_AGREE_BUILD) { /* a promise could bring another proposal, and it is inside of this one */
        a->later = m->ballot > a->later ? m->ballot : a->later;
        a->later_to = m->ballot == a->later ? from : a->later_to;
        return;
    }
    a->promised = m->ballot;
    answer.accepted = a->accepted;
    answer.origin = a->origin;
    answer.value = a->value;
    tti_agree_send(a, from, &answer);
}

static void reject(tti_agreement *a, int from, const tti_agree_message *m, const char *words)
{
    tti_agree_message no = reply(m, TTI_AGREE_REJECT);

    no.status = TUTTI_E_STATE;
    snprintf(no.words, sizeof no.words, "%s", words);
    tti_agree_send(a, from, &no);
}

/* A value that may have been decided: nothing is built for it. */
static void vote(tti_agreement *a, int from, const tti_agree_message *m)
{
    tti_agree_message yes = reply(m, TTI_AGREE_ACCEPT);

    a->accepted = m->ballot;
    a->origin = m->origin;
    memcpy(a->value, m->value, (size_t)a->n * sizeof *a->value);
    tti_agree_send(a, from, &yes);
}

/* Who leads is connected to all, and knows of deaths that nobody else has seen yet. */
static void take_lost(tti_agreement *a, const tti_agree_message *m)
{
    int r;

    for (r = 0; !m->has_list && r < a->n; r++)
        a->lost[r] = a->lost[r] || m->list[r];
}

static void take_proposal(tti_agreement *a, int from, const tti_agree_message *m)
{
    if (m->ballot < a->promised || a->task == TTI_AGREE_BUILD) {
        say_busy(a, from, m);
        return;
    }
    a->promised = m->ballot;
    if (m->origin != m->ballot) {
        vote(a, from, m);
    } else if (!m->value[a->rank]) {
        reject(a, from, m, "a value without this member");
    } else if (!a->config.minority && a->config.excluded == NULL && !tti_agree_quorum(a, m->value)) {
        reject(a, from, m, "some members are too few to go on\n  next: pass TUTTI_SHRINK_MINORITY on all of them");
    } else {
        memcpy(a->chosen, m->value, (size_t)a->n * sizeof *a->chosen);
        memcpy(a->place, m->place, sizeof a->place);
        take_lost(a, m);
        tti_agree_build(a, m->ballot);
    }
}

/* Who calls this for the first time, as it was excluded before, counts from where the others are. With another list it fails, and the
 * other one does not where that has failed of this call before: then the next call is the one that both are in. */
static void meet(tti_agreement *a, int from, const tti_agree_message *m)
{
    const bool parts = a->odds >= 0 || a->task > TTI_AGREE_BUILD || tti_agree_differs(a, m);
    uint64_t   number = m->accepted;

    if ((m->type != TTI_AGREE_JOIN && m->type != TTI_AGREE_REFUSE) || !tti_agree_eligible(a, from))
        return;
    if (m->type == TTI_AGREE_JOIN && parts && a->number <= m->origin)
        number = m->origin;
    if (number > a->number)
        a->number = number;
}

/* Said outside of any ballot it counts until something is being built: all that are needed have promised then, and who leaves the
 * call behind that is met as one that has died. */
static void take_refusal(tti_agreement *a, const tti_agree_message *m)
{
    const bool of_none = m->ballot == TTI_AGREE_NO_BALLOT;
    const bool counts = of_none ? a->building == 0 : m->ballot >= a->promised;

    if (counts)
        a->parted = m->origin != 0;
    if (counts && of_none) { /* who said it may have had no way to some that wait for this one */
        tti_agree_message no = tti_agree_refusal(a, m->status);

        memcpy(no.words, m->words, sizeof no.words);
        tti_agree_tell_all(a, &no);
    }
    if (counts)
        tti_agree_fail(a, m->status != TUTTI_OK ? m->status : TUTTI_E_STATE, m->words);
}

/* Who leads says who has not come. */
static void take_alive(tti_agreement *a, int from, const tti_agree_message *m)
{
    if (from != a->heard_of)
        return;
    memcpy(a->missing, m->value, (size_t)a->n * sizeof *a->missing);
    a->was_told = true;
}

/* Nobody asks for another's ballot: who leads one is looked up by its number. */
static bool asks_for_another(int from, const tti_agree_message *m)
{
    return (m->type == TTI_AGREE_PREPARE || m->type == TTI_AGREE_PROPOSE) &&
           m->ballot % TTI_AGREE_RANKS_MAX != (uint64_t)from;
}

static void take(tti_agreement *a, int from, const tti_agree_message *m)
{
    if (asks_for_another(from, m))
        return;
    switch (m->type) {
    case TTI_AGREE_JOIN: break; /* that it is here is known already */
    case TTI_AGREE_PREPARE: promise(a, from, m); break;
    case TTI_AGREE_PROPOSE: take_proposal(a, from, m); break;
    case TTI_AGREE_COMMIT:
        a->members[from].knows = true;
        tti_agree_decided(a, from, m->origin, m->value);
        break;
    case TTI_AGREE_REFUSE: take_refusal(a, m); break;
    case TTI_AGREE_ALIVE: take_alive(a, from, m); break;
    default: tti_agree_answer(a, from, m); break;
    }
}

/* ---- what happened ---- */

void tti_agreement_heard(tti_agreement *a, int from, const void *message, size_t bytes)
{
    tti_agree_message m = { .value = a->heard, .list = a->heard_list };

    if (from < 0 || from >= a->n || from == a->rank || !tti_agree_decode(a, message, bytes, &m))
        return;
    a->members[from].wanted = true;
    a->members[from].given_up = false;
    if (from == a->heard_of)
        a->heard_ns = a->now_ns;
    meet(a, from, &m);
    if (a->decided && a->task == TTI_AGREE_WAIT)
        tti_agree_hear_knowing(a, from, &m);
    else if (a->task != TTI_AGREE_DONE && a->task != TTI_AGREE_FAILED && !tti_agree_compare(a, from, &m))
        take(a, from, &m);
    go_on(a);
}

void tti_agreement_present(tti_agreement *a, int rank)
{
    const tti_agree_message here = { .type = TTI_AGREE_JOIN, .accepted = a->number, .origin = a->config.over };

    a->members[rank].present = true;
    a->members[rank].given_up = false;
    tti_agree_send(a, rank, &here);
    if (rank == a->heard_of)
        a->heard_ns = a->now_ns;
    go_on(a);
}

void tti_agreement_absent(tti_agreement *a, int rank)
{
    a->members[rank].present = false;
    a->members[rank].behind = false;
    tti_agree_lose(a, rank);
    go_on(a);
}

void tti_agreement_gone(tti_agreement *a, int rank)
{
    tti_agree_member *member = &a->members[rank];

    member->present = false;
    if (!member->gone)
        a->attempts = 0;
    member->gone = true;
    tti_agree_lose(a, rank);
    go_on(a);
}

void tti_agreement_alive(tti_agreement *a, int rank)
{
    a->members[rank].alive_ns = a->now_ns;
    a->members[rank].silent = false;
}

void tti_agreement_silent(tti_agreement *a, int rank)
{
    tti_agree_member *member = &a->members[rank];

    if (member->silent || member->gone)
        return;
    member->silent = true;
    tti_agree_lose(a, rank);
    go_on(a);
}

/* With a list, once something is built, all that it leaves have promised in that, so who had refused before has come since. Without one
 * who has left a word is needed by nobody, and whoever leads may be about to propose: from its promise on a member goes where
 * that one goes, or one of them would fail alone. */
static bool is_stale(const tti_agreement *a)
{
    return a->building != 0 || (a->config.excluded == NULL && a->promised != 0);
}

void tti_agreement_refused(tti_agreement *a, tutti_status status, bool parted, const char *words)
{
    tti_agree_message no;

    if (a->decided || a->task != TTI_AGREE_WAIT || is_stale(a) || a->odds >= 0)
        return;
    a->parted = parted;
    no = tti_agree_refusal(a, status);
    snprintf(no.words, sizeof no.words, "%s", words);
    tti_agree_tell_all(a, &no);
    tti_agree_fail(a, status, no.words);
}

/* This one was stopped, or held up: in that time nobody could be heard. */
static void forget_gap(tti_agreement *a, int64_t gap_ns)
{
    int r;

    a->since_ns += gap_ns;
    a->until_ns += gap_ns;
    a->heard_ns += gap_ns;
    a->spread_until_ns += gap_ns;
    for (r = 0; r < a->n; r++)
        if (a->members[r].alive_ns != 0)
            a->members[r].alive_ns += gap_ns;
}

void tti_agreement_tick(tti_agreement *a, int64_t now_ns)
{
    const int64_t gap_ns = now_ns - a->now_ns;

    if (gap_ns > TTI_AGREE_GRACE_NS)
        forget_gap(a, gap_ns);
    a->now_ns = now_ns;
    go_on(a);
}

/* A member has built, or could not; the leader's own is looked at by its phase. */
static void tell_leader(tti_agreement *a, tutti_status status, const char *words)
{
    const int         leader = (int)(a->building % TTI_AGREE_RANKS_MAX);
    tti_agree_message m = { .type = status == TUTTI_OK ? TTI_AGREE_ACCEPT : TTI_AGREE_REJECT,
                            .ballot = a->building, .status = status };

    if (status != TUTTI_OK)
        snprintf(m.words, sizeof m.words, "%s", words);
    if (leader != a->rank) {
        tti_agree_send(a, leader, &m);
    } else if (a->phase == TTI_AGREE_MAKE && a->ballot == a->building) {
        a->own_built = status == TUTTI_OK;
        a->vain = a->vain || status != TUTTI_OK;
        if (status != TUTTI_OK)
            tti_agree_note(a, status, words);
        tti_agree_begin(a, tti_agree_silence_ns(a));
    }
}

void tti_agreement_built(tti_agreement *a, tutti_status status, const char *words)
{
    const bool led = (int)(a->building % TTI_AGREE_RANKS_MAX) == a->rank;

    if (a->task != TTI_AGREE_BUILD)
        return;
    a->task = TTI_AGREE_WAIT;
    if (status == TUTTI_OK)
        a->built = a->building;
    if (status == TUTTI_OK && !led && a->building >= a->promised) {
        a->accepted = a->origin = a->building;
        memcpy(a->value, a->chosen, (size_t)a->n * sizeof *a->value);
    }
    if (a->committed == a->building)
        tti_agree_decided(a, a->committed_by, a->committed, a->chosen);
    tell_leader(a, status, words);
    if (a->later != 0) {
        const tti_agree_message asked = { .type = TTI_AGREE_PREPARE, .ballot = a->later };

        a->later = 0;
        if (a->decided)
            tti_agree_hear_knowing(a, a->later_to, &asked);
        else if (a->task == TTI_AGREE_WAIT)
            promise(a, a->later_to, &asked);
    }
    a->heard_ns = a->now_ns;
    go_on(a);
}

/* ---- what it wants ---- */

tti_agreement_task tti_agreement_now(const tti_agreement *a)
{
    return a->task;
}

bool tti_agreement_wants(const tti_agreement *a, int rank)
{
    int r, before = 0;

    if (rank == a->rank || a->members[rank].gone)
        return false;
    if (a->members[rank].wanted || (a->phase != TTI_AGREE_FOLLOW && tti_agree_eligible(a, rank)))
        return true;
    for (r = 0; r < rank; r++)
        before += tti_agree_eligible(a, r) && !a->members[r].gone;
    return (rank < a->rank || a->config.excluded != NULL) && tti_agree_eligible(a, rank) && before < TTI_AGREE_PROBED;
}

int64_t tti_agreement_next_ns(const tti_agreement *a)
{
    const int64_t soon_ns = a->now_ns + TTI_AGREE_ALIVE_NS / 5;
    const int64_t last_ns = tti_agree_expires_ns(a);

    return soon_ns < last_ns ? soon_ns : last_ns;
}

const bool *tti_agreement_chosen(const tti_agreement *a)
{
    return a->chosen;
}

const char *tti_agreement_place(const tti_agreement *a)
{
    return a->place;
}

bool tti_agreement_leads(const tti_agreement *a)
{
    return a->phase == TTI_AGREE_MAKE && a->ballot == a->building;
}

bool tti_agreement_in_vain(const tti_agreement *a)
{
    return a->vain || a->task == TTI_AGREE_FAILED;
}

uint64_t tti_agreement_number(const tti_agreement *a)
{
    return a->number;
}

bool tti_agreement_has_come(const tti_agreement *a, int rank)
{
    return a->members[rank].present || a->members[rank].wanted;
}

bool tti_agreement_is_gone(const tti_agreement *a, int rank)
{
    return a->members[rank].gone || a->lost[rank];
}

bool tti_agreement_parted(const tti_agreement *a)
{
    return a->parted;
}

tutti_status tti_agreement_failure(const tti_agreement *a, const char **words_out)
{
    *words_out = a->words;
    return a->failure;
}
