/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waits.c - what ranks that have waited for long tell each other, and what follows from it.
 *
 * Why     Who has called something else, or the calls of two groups in another order, may send nothing at all: two ranks
 *         that both take the other for the root of a broadcast only wait.
 * How     Who waits in a call for long shows it to the ranks of its host (in the head of its heap), and tells it to the
 *         others of the group: which call it is, whose part it needs, and which waits it answers: those that end only
 *         behind it. Each looks at what others have shown and told
 *           - when it waits for long itself, again and again, and when something is told;
 *           - calls of one group and one number are compared: another one is a mismatch;
 *           - waits in several groups may be a circle: an answer to this rank's own wait comes back from one that needs it.
 *             If two are in it, this rank ends both groups. If there are more, who finds it first does not reach the groups of
 *             all: it waits until the others have found it, too, which nothing can take from them any more.
 *         Who makes a group waits for its members outside of any call: where one of them waits in a call for this rank, neither
 *         goes on. Members that have come may be a call further already, so that is only said once it is known that the other
 *         one has not come (coll/team.c). Who shrinks a group waits so, too, and is not to come to any of its calls, whichever
 *         thread would make them (regroup/survivors.c).
 *         A blocking receive is a wait, too, for a message that the other has not sent: who answers it says how many it has
 *         sent to the receiver, and who receives says how many have come. Two receives are a circle like any other, and so are
 *         a receive and a group that is made.
 * True    A circle is one: watch/waits.c has the argument. It needs no order of what is told, and no connection that lasts.
 *         A wait that has failed is hidden before its rank does anything else, and to other hosts the notice of the
 *         failure goes first.
 * Alone   Calls of one group and one number are compared whoever makes them. All else needs that nobody else of the program
 *         can do what is waited for: there are programs in which one thread waits while another, which has not called anything
 *         yet, works on what it will send, or on what it brings to a call. So an answer is given only where the thread that waits
 *         is the program's only one, and the program has given no function to be called by others (base/last.h). It stays the only
 *         one as long as it waits. (The calls of one group on memory of the host and of a device come one by one, whoever makes
 *         them: they need none of that.) Threads that make calls, or messages, in this world are counted, too, by the first one that is
 *         another: a program whose asynchronous calls are run by threads of the library is not alone. Who is not alone is
 *         told by nothing but the time-out.
 * Cost    Nothing before a wait is long. Then one frame to each member of other hosts, and one for each answer. */
#include "base/last.h"
#include "transport/connector.h"
#include "transport/window_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum {
    ALL_TOLD_MAX = 64, /* members; of larger groups only some are told */
    STEP_MS = 100,     /* that an answer takes from one rank to the next */
    MORE_STEPS = 2,    /* that the last to find a circle may be behind the first */
    LOOKS_OF_A_TURN = 4,
};

/* A circle that a wait of this rank is in. */
typedef struct tti_circle {
    uint32_t  group; /* the wait's */
    uint64_t  seq;
    uint32_t  other;  /* the group of the one that needs this rank's part */
    int64_t   due_ns; /* when both end */
    tti_cause why;
} tti_circle;

_Static_assert(TTI_WAIT_WORDS * sizeof(uint64_t) < TTI_NOTICE_MAX, "a wait that is told fits where notices do");

void tti_messenger_note_caller(tti_messenger *m, uintptr_t thread)
{
    uintptr_t first = 0;

    if (!atomic_compare_exchange_strong(&m->caller, &first, thread) && first != thread)
        atomic_store(&m->several_callers, true);
}

/* ---- telling --------------------------------------------------------------------------------------- */

void tti_queue_wait(tti_messenger *m, tti_lane *lane, const tti_wait *wait)
{
    const tti_frame frame = { .magic = TTI_FRAME_MAGIC, .version = TTI_FRAME_VERSION, .size = sizeof(tti_frame),
                              .plane = TTI_PLANE_CALL, .group = wait->group, .word = wait->note.word,
                              .bytes = TTI_WAIT_WORDS * sizeof(uint64_t) };
    uint64_t        words[TTI_WAIT_WORDS];

    if (lane->way == TTI_WAY_LOST)
        return;
    tti_wait_pack(wait, words);
    (void)tti_queue_own(m, lane, &frame, words); /* without memory nobody is told: the time-out is left */
}

static bool is_near(const tti_messenger *m, int rank)
{
    return tti_mesh_heap(m->mesh, rank) != NULL;
}

/* Memory for what was heard of each rank, and what it was told last. */
static bool has_room(tti_messenger *m)
{
    if (m->heard == NULL)
        m->heard = calloc(2 * (size_t)m->n_ranks, sizeof *m->heard);
    return m->heard != NULL;
}

static tti_wait *last_told(tti_messenger *m, int rank)
{
    return &m->heard[m->n_ranks + rank];
}

static bool says_the_same(const tti_wait *a, const tti_wait *b)
{
    uint64_t one[TTI_WAIT_WORDS], other[TTI_WAIT_WORDS];

    tti_wait_pack(a, one);
    tti_wait_pack(b, other);
    return memcmp(one, other, sizeof one) == 0;
}

/* Members of other hosts: those there is a way to, and so many others that, whoever is told nothing of somebody's, all
 * hear of each other by way of a few. */
static void tell_far(tti_messenger *m, const tti_known_group *known, const tti_wait *wait)
{
    const int own = tti_index_of(known->ranks, known->n_ranks, tti_mesh_rank(m->mesh));
    int       i;

    for (i = 0; i < known->n_ranks && has_room(m); i++) {
        tti_lane *lane = &m->lanes[known->ranks[i]];

        if (i == own || is_near(m, lane->peer) || says_the_same(last_told(m, lane->peer), wait))
            continue;
        if (!tti_are_neighbours(own, i, known->n_ranks) && (lane->link == NULL || known->n_ranks > ALL_TOLD_MAX))
            continue;
        *last_told(m, lane->peer) = *wait;
        tti_queue_wait(m, lane, wait);
        tti_want_lane(m, lane, 0);
    }
}

static tti_wait_board *own_board(tti_messenger *m)
{
    return &tti_heap_head_of(tti_mesh_heap(m->mesh, tti_mesh_rank(m->mesh)))->waits;
}

/* ---- looking --------------------------------------------------------------------------------------- */

/* In what rank waits, as far as it is known here. */
static bool wait_of(tti_messenger *m, int rank, tti_wait *wait_out)
{
    if (is_near(m, rank))
        return tti_wait_read(&tti_heap_head_of(tti_mesh_heap(m->mesh, rank))->waits, wait_out);
    if (m->heard == NULL || m->heard[rank].note.seq == 0)
        return false;
    *wait_out = m->heard[rank];
    return true;
}

static bool differs(const tti_known_group *known, int rank, const tti_wait *theirs, tti_cause *why)
{
    tti_call_note ours;

    *why = (tti_cause){ .status = TUTTI_E_MISMATCH };
    return theirs->group == known->group && !tti_wait_is_receive(theirs) &&
           known->comparer.differs(known->comparer.ctx, rank, &theirs->note, false, &ours, why->words, sizeof why->words);
}

static bool includes(int needs, int rank)
{
    return needs == TTI_NEEDS_ANY || needs == rank;
}

static bool has_come_to(const tti_known_group *known, uint64_t seq)
{
    tti_call_note last;

    return tti_call_last(known->comparer.board, &last) && last.seq >= seq;
}

static bool are_receives(const tti_wait *a, const tti_wait *b)
{
    return tti_wait_is_receive(a) && tti_wait_is_receive(b);
}

/* Whether both are calls that one group makes one after the other, on memory of the host and of a device: whichever thread makes the
 * next one, it does not begin before the one that waits has ended. */
static bool are_of_one_group(tti_messenger *m, const tti_wait *a, const tti_wait *b)
{
    const tti_known_group *one = tti_compared_group(m, a->group);
    const tti_known_group *other = tti_compared_group(m, b->group);

    return one != NULL && other != NULL && !tti_wait_is_receive(a) && !tti_wait_is_receive(b) &&
           strcmp(one->comparer.name, other->comparer.name) == 0;
}

/* Whether another's wait, in another group or for a message, needs this rank's part of what it has not come to. */
static bool waits_for_us(tti_messenger *m, const tti_wait *own, const tti_wait *theirs)
{
    const bool             is_other = theirs->group != own->group || tti_wait_is_receive(theirs) || tti_wait_is_receive(own);
    const tti_known_group *known = is_other ? tti_compared_group(m, theirs->group) : NULL;

    if (known == NULL || !theirs->alone || !includes(theirs->needs, tti_mesh_rank(m->mesh)))
        return false;
    if (!own->only && !are_of_one_group(m, own, theirs)) /* another thread may send, or come to theirs, some day */
        return false;
    return tti_wait_is_receive(theirs) || !has_come_to(known, theirs->note.seq);
}

static void add_wait(tti_messenger *m, int rank, const tti_wait *wait, char *words, size_t bytes)
{
    const tti_known_group *known = tti_mailbox_group(&m->mailbox, wait->group);
    const size_t           used = strlen(words);
    char                   text[TTI_CALL_TEXT_MAX + 80];

    if (tti_wait_is_receive(wait))
        snprintf(text, sizeof text, "recv with tag %d from rank %d", (int)wait->note.count, wait->needs);
    else
        known->comparer.describe(known->comparer.ctx, &wait->note, text, sizeof text);
    snprintf(words + used, bytes - used, "\n  rank %d: %.200s", rank, text);
}

static void add_making(int rank, const char *name, char *words, size_t bytes)
{
    const size_t used = strlen(words);

    snprintf(words + used, bytes - used, "\n  rank %d: tutti_new_group(), which makes group '%.64s'"
                                         "\n  next: let all ranks make groups and calls in the same order", rank, name);
}

/* In what two waits, or more, are a circle, and how there would be none. */
typedef struct circle_words {
    const char *of_two;
    const char *of_more;
    const char *next;
} circle_words;

static const circle_words *words_of(const tti_wait *a, const tti_wait *b)
{
    static const circle_words calls = { "calls of different groups", "calls of different groups",
                                        "let all members make the calls of these groups in the same order" };
    static const circle_words mixed = { "a call and a message", "calls and messages",
                                        "let all members make calls and messages in the same order" };
    static const circle_words receives = { "receives", "calls and messages", "let one of them send before it receives" };

    return are_receives(a, b) ? &receives : tti_wait_is_receive(a) || tti_wait_is_receive(b) ? &mixed : &calls;
}

/* "ranks wait for each other in calls of different groups": the two that meet here, of `steps` and this one. */
static void word_circle(tti_messenger *m, const tti_wait *own, int rank, const tti_wait *theirs, int steps, tti_cause *why)
{
    const int           me = tti_mesh_rank(m->mesh);
    const circle_words *words = words_of(own, theirs);
    size_t              used;

    *why = (tti_cause){ .status = TUTTI_E_MISMATCH };
    if (steps == 1)
        snprintf(why->words, sizeof why->words, "ranks wait for each other in %s", words->of_two);
    else
        snprintf(why->words, sizeof why->words, "%d ranks wait for each other in a circle, in %s; two of them", steps + 1,
                 words->of_more);
    add_wait(m, me < rank ? me : rank, me < rank ? own : theirs, why->words, sizeof why->words);
    add_wait(m, me < rank ? rank : me, me < rank ? theirs : own, why->words, sizeof why->words);
    used = strlen(why->words);
    snprintf(why->words + used, sizeof why->words - used, "\n  next: %s", words->next);
}

/* Both groups end: each of the two waits in one of them. In this order: whoever waits in the other, and is told so, knows of own
 * by then, and does not go on there. */
static void end_both(tti_messenger *m, uint32_t own_group, uint32_t other_group, const tti_cause *why)
{
    tti_fail_group(m, own_group, why);
    if (own_group != other_group)
        tti_fail_group(m, other_group, why);
}

/* Own is in a circle of three and more, for good, whatever the others show from here on: they may be told of it by somebody
 * else, and show nothing any more. Without memory it stays where it was not found. */
static void note_circle(tti_messenger *m, const tti_wait *own, int rank, const tti_wait *theirs, int steps)
{
    tti_circle *circle = m->circle;

    if (circle != NULL && circle->group == own->group && circle->seq == own->note.seq)
        return;
    if (circle == NULL)
        circle = m->circle = malloc(sizeof *circle);
    if (circle == NULL)
        return;
    *circle = (tti_circle){ .group = own->group, .seq = own->note.seq, .other = theirs->group,
                            .due_ns = tti_port_now(m->port) + (steps + MORE_STEPS) * STEP_MS * TTI_MS };
    word_circle(m, own, rank, theirs, steps, &circle->why);
}

/* Whether own was in one, and the others can have found it, too. */
static bool has_ended_circle(tti_messenger *m, const tti_wait *own)
{
    const tti_circle *circle = m->circle;

    if (circle == NULL || circle->group != own->group || circle->seq != own->note.seq || tti_port_now(m->port) < circle->due_ns)
        return false;
    end_both(m, circle->group, circle->other, &circle->why);
    return true;
}

/* Look at what a rank waits in; what is to be answered goes into own. Whether that has ended own's group. */
static bool look_at(tti_messenger *m, int rank, tti_wait *own)
{
    const tti_known_group *known = tti_compared_group(m, own->group);
    const int              me = tti_mesh_rank(m->mesh);
    const uint64_t         sent = m->lanes[rank].n_sent;
    tti_wait               theirs;
    tti_cause              why;
    int                    steps;

    if (known == NULL || rank == me || !wait_of(m, rank, &theirs))
        return known == NULL;
    if (differs(known, rank, &theirs, &why)) {
        tti_fail_group(m, known->group, &why);
        return true;
    }
    if (!own->alone || !waits_for_us(m, own, &theirs))
        return false;
    steps = tti_wait_follows(&theirs, own, sent) ? tti_wait_steps(own, me, &theirs) : 0;
    if (steps == 1) {
        word_circle(m, own, rank, &theirs, steps, &why);
        end_both(m, own->group, theirs.group, &why);
        return true;
    }
    if (steps > 1)
        note_circle(m, own, rank, &theirs, steps);
    tti_wait_answer_to(own, rank, &theirs, sent);
    return false;
}

/* The one that is needed first, then all, beginning with another one now and then: there may be more to answer than there is
 * room for. */
static bool look_at_all(tti_messenger *m, tti_wait *own)
{
    const int first = (int)(m->n_looks++ / LOOKS_OF_A_TURN % (unsigned)m->n_ranks);
    bool      over = own->needs >= 0 && own->needs < m->n_ranks && look_at(m, own->needs, own);
    int       i;

    for (i = 0; i < m->n_ranks && !over; i++)
        over = look_at(m, (first + i) % m->n_ranks, own);
    return over;
}

static void tell_wait(tti_messenger *m, tti_wait *own)
{
    const tti_known_group *known = tti_compared_group(m, own->group);

    own->alone = !atomic_load(&m->several_callers);
    own->only = own->alone && tti_is_only_thread();
    if (known == NULL || look_at_all(m, own) || has_ended_circle(m, own))
        return;
    m->shown_group = own->group;
    m->shown_seq = own->note.seq;
    tti_wait_show(own_board(m), own);
    tell_far(m, known, own);
}

static void end_wait(tti_messenger *m, uint32_t group, uint64_t seq)
{
    if (m->shown_group == group && m->shown_seq == seq) {
        m->shown_seq = 0;
        tti_wait_hide(own_board(m));
    }
}

/* ---- a message that is late ------------------------------------------------------------------------- */

/* Whether rank waits in it still. What another host has told is not taken back; but it lasts where it needs this rank's part. */
static bool waits_still(tti_messenger *m, const tti_known_group *known, int rank, const tti_wait *theirs)
{
    return is_near(m, rank) || (includes(theirs->needs, tti_mesh_rank(m->mesh)) && !has_come_to(known, theirs->note.seq));
}

const char *tti_waits_instead(tti_messenger *m, int rank, char out[TTI_INSTEAD_TEXT_MAX])
{
    const tti_known_group *known;
    tti_wait               theirs;
    char                   text[TTI_CALL_TEXT_MAX + 80];

    out[0] = '\0';
    if (rank == tti_mesh_rank(m->mesh) || !wait_of(m, rank, &theirs) || tti_wait_is_receive(&theirs))
        return out;
    known = tti_compared_group(m, theirs.group);
    if (known == NULL || !waits_still(m, known, rank, &theirs))
        return out;
    known->comparer.describe(known->comparer.ctx, &theirs.note, text, sizeof text);
    snprintf(out, TTI_INSTEAD_TEXT_MAX, "; it waits in %.200s", text);
    return out;
}

/* ---- a call here, a group that is made there -------------------------------------------------------- */

/* Whether rank's receive does not end before this rank goes on: all that was sent to it has come. */
static bool has_nothing_more(const tti_messenger *m, int rank, const tti_wait *theirs)
{
    return theirs->taken == m->lanes[rank].n_sent;
}

/* Whether nobody else can come, neither here to what rank waits in, nor there to where this rank waits for it: threads that have
 * called nothing yet count. */
static bool comes_nobody_else(const tti_messenger *m, const tti_wait *theirs)
{
    return theirs->only && !atomic_load(&m->several_callers) && tti_is_only_thread();
}

/* The group of the call, or of the receive, in which rank, whose only thread waits there, needs this rank's part; NULL: it is in
 * none. */
static const tti_known_group *needed_in(tti_messenger *m, int rank, tti_wait *theirs)
{
    const tti_known_group *known;

    if (rank == tti_mesh_rank(m->mesh) || !wait_of(m, rank, theirs) || !includes(theirs->needs, tti_mesh_rank(m->mesh)) ||
        !comes_nobody_else(m, theirs))
        return NULL;
    known = tti_compared_group(m, theirs->group);
    if (known == NULL || (tti_wait_is_receive(theirs) ? !has_nothing_more(m, rank, theirs) : has_come_to(known, theirs->note.seq)))
        return NULL;
    return known;
}

tutti_status tti_messenger_look_crossed(tti_messenger *m, int rank, uint32_t making, const char *name, uint32_t *group_out)
{
    const tti_known_group *known;
    tti_wait               theirs;
    tti_cause              why = { .status = TUTTI_OK };

    tti_lock(&m->lock);
    known = needed_in(m, rank, &theirs);
    if (known != NULL && known->group == making) /* it has made the group, and this rank has not heard of that yet */
        known = NULL;
    if (known != NULL) {
        tti_cause_set(&why, TUTTI_E_MISMATCH, "ranks wait for each other, in a %s and in a group that is made",
                      tti_wait_is_receive(&theirs) ? "receive" : "call");
        add_wait(m, rank, &theirs, why.words, sizeof why.words);
        add_making(tti_mesh_rank(m->mesh), name, why.words, sizeof why.words);
        *group_out = known->group;
    }
    tti_unlock(&m->lock);
    return why.status == TUTTI_OK ? TUTTI_OK : tti_fail(why.status, "%s", why.words);
}

void tti_messenger_end_crossed(tti_messenger *m, uint32_t group)
{
    tti_cause why;

    tti_cause_set(&why, TUTTI_E_MISMATCH, "%s", tutti_last_error());
    tti_lock(&m->lock);
    tti_fail_group(m, group, &why);
    (void)tti_messenger_turn(m, false);
    tti_unlock(&m->lock);
    m->port->ops->bell_ring(m->port, m->bell);
    tti_fail(TUTTI_E_MISMATCH, "%s", why.words);
}

/* ---- a call here, its group left there -------------------------------------------------------------- */

/* Whether rank waits in a call of a known group that this one has not come to. */
static bool waits_in(tti_messenger *m, const tti_known_group *known, int rank, tti_wait *theirs)
{
    return rank != tti_mesh_rank(m->mesh) && wait_of(m, rank, theirs) && theirs->group == known->group && !tti_wait_is_receive(theirs) &&
           !has_come_to(known, theirs->note.seq);
}

tutti_status tti_messenger_look_missed(tti_messenger *m, const int *ranks, const bool *awaited, int n, uint32_t group,
                                       const char *instead, tti_missed *missed_out)
{
    const tti_known_group *known;
    tti_wait               theirs;
    tti_cause              why = { .status = TUTTI_OK };
    char                   words[TTI_CALL_TEXT_MAX + 80] = "";
    int                    i;

    tti_lock(&m->lock);
    tti_messenger_turn_sockets(m); /* nobody of this rank may be waiting for anything */
    known = tti_compared_group(m, group);
    for (i = 0; known != NULL && i < n && why.status == TUTTI_OK; i++) {
        if (!awaited[i] || !waits_in(m, known, ranks[i], &theirs))
            continue;
        add_wait(m, ranks[i], &theirs, words, sizeof words);
        tti_cause_set(&why, TUTTI_E_MISMATCH,
                      "ranks of group '%s' called different things%s\n  rank %d: %s\n"
                      "  next: let all members that go on call it at the same place of the program", known->comparer.name, words,
                      tti_mesh_rank(m->mesh), instead);
        *missed_out = (tti_missed){ .index = i, .seq = theirs.note.seq };
    }
    tti_unlock(&m->lock);
    return why.status == TUTTI_OK ? TUTTI_OK : tti_fail(why.status, "%s", why.words);
}

void tti_messenger_tell_wait(tti_messenger *m, uint32_t group, const tti_call_note *note, int needs)
{
    tti_wait own = { .note = *note, .group = group, .needs = needs };

    tti_lock(&m->lock);
    tti_messenger_turn_sockets(m); /* who waits in shared memory reads them for nothing else */
    tell_wait(m, &own);
    (void)tti_messenger_turn(m, false);
    tti_unlock(&m->lock);
}

void tti_messenger_wait_over(tti_messenger *m, uint32_t group, uint64_t seq)
{
    tti_lock(&m->lock);
    end_wait(m, group, seq);
    tti_unlock(&m->lock);
}

uint64_t tti_tell_receive(tti_messenger *m, const tti_request *request, uint64_t number)
{
    tti_wait own = { .note = { .count = (uint64_t)(uint32_t)request->parcel.tag, .seq = number },
                     .group = request->channel.group, .needs = request->parcel.peer,
                     .taken = m->lanes[request->parcel.peer].n_taken };

    if (number == 0)
        own.note.seq = TTI_WAIT_RECEIVE | (uint64_t)tti_mesh_rank(m->mesh) << 40 | ++m->n_receives;
    tell_wait(m, &own);
    return own.note.seq;
}

void tti_end_receive(tti_messenger *m, const tti_request *request, uint64_t number)
{
    end_wait(m, request->channel.group, number);
}

void tti_take_wait(tti_messenger *m, const tti_lane *lane)
{
    const tti_known_group *known = tti_compared_group(m, lane->frame.group);
    uint64_t               words[TTI_WAIT_WORDS];
    tti_wait               wait;
    tti_cause              why;

    memcpy(words, lane->notice, sizeof words);
    tti_wait_unpack(words, &wait);
    if (known == NULL || wait.group != known->group)
        return;
    if (differs(known, lane->peer, &wait, &why)) {
        m->mailbox.has_notice = m->mailbox.notice_is_ours = true; /* the lane is being drained: turn.c acts on it */
        m->mailbox.notice_group = known->group;
        m->mailbox.notice = why;
    } else if (has_room(m)) {
        m->heard[lane->peer] = wait;
    }
}
