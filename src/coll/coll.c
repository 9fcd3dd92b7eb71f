/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll.c - a group's collectives: made once, then one call after another on the caller's thread.
 *
 * Lazy    A lazy group announces itself when it is made, and looks for the others in its first call:
 *         so ranks may make such groups in any order, and none waits for another.
 * Begun   An asynchronous call enters, and gives what it gives in one phase, when it is issued: then nobody waits
 *         for this rank while it computes. Where it would have to wait for others to enter the call before, or
 *         goes in rounds, run does that. In memory that is one call at a time. Of small calls by messages there may be
 *         several, each with messages and memory of its own; each when all of the one before it is posted. They end in their order.
 * Levels  Of a group on several hosts with several members on one the members of a host have a channel, too: there they
 *         look at each other's calls, and tell each other of failures, whichever row a call takes (level/levels.c). A
 *         call in two levels is not begun when it is issued; it is done in its run.
 * Fails   The first failure is kept with its words, and answers every later call: members are then
 *         in different places, and nothing can be said about what their buffers hold. Members of
 *         this host learn of it through the shared channel, others when their messages do not
 *         come. */
#include "coll/coll.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/private.h>
#include "coll/choice.h"
#include "coll/host/wait.h"
#include "coll/level/levels.h"
#include "coll/net/run.h"
#include "coll/solo.h"
#include "coll/told.h"
#include "recorder/recorder.h"
#include "watch/advice.h"

enum {
    NETS = 4, /* calls by messages under way */
    BEGUN_BYTES_MAX = 64 * 1024, /* larger ones would keep the caller from computing while they are sent */
};

struct tti_coll {
    tti_team          team;
    tti_choice        choice;
    tti_host_channel *host; /* NULL: not all members are on one host, or there is only one */
    tti_levels       *levels; /* NULL: the group has no two levels */
    tti_net           nets[NETS];
    int               first_net; /* of the call that was begun first; or which the next one takes */
    int               n_nets;    /* calls that were begun by messages */
    tti_board         board;  /* of the exchange */
    tti_join          mine;   /* as it was announced */
    bool              joined; /* has met the others; of the calls' thread, like failed */
    bool              alone;  /* of one in a larger world, and has not yet looked whether others think so too */
    bool              named;  /* the watch knows what the group is called */
    int               held;   /* the recorder of the next member of this host; -1: it is not held here */
    bool              begun;  /* the latest call has been entered, but not done */
    uintptr_t         caller; /* the thread that made it */
    bool              has_others; /* calls were begun, for others to end */
    tutti_status      failed;
    tti_words         words; /* of failed */

    /* What ended it from outside of a call: tti_coll_abort() or tti_coll_fail(). */
    _Atomic bool ended;
    _Atomic int  cause;       /* of a failure; stored, with release order, after its words */
    tti_words    cause_words; /* written once */
};

/* What the k-th call that was begun by messages works with. */
static tti_net *net_at(tti_coll *coll, int k)
{
    return &coll->nets[(coll->first_net + k) % NETS];
}

/* The first one is no longer under way. */
static void drop_net(tti_coll *coll)
{
    coll->first_net = (coll->first_net + 1) % NETS;
    coll->n_nets--;
}

/* None is, after a failure. */
static void let_go_nets(tti_coll *coll)
{
    for (; coll->n_nets > 0; drop_net(coll))
        tti_net_let_go(net_at(coll, 0));
}

/* What this rank shares with members of its host: all of them, or some. NULL: nothing. */
static tti_host_channel *shared_of(const tti_coll *coll)
{
    return coll->host != NULL ? coll->host : coll->levels != NULL ? coll->levels->channel : NULL;
}

/* Which cores there are for this rank. */
static void tell_cores(int as_if, tti_join *mine)
{
    int c;

    if (as_if == 0) {
        mine->cores = (uint64_t)tti_running_cores();
        tti_usable_cpus(mine->cpus);
        return;
    }
    mine->cores = (uint64_t)as_if;
    for (c = 0; c < as_if && c < 64 * TTI_CPU_WORDS; c++)
        mine->cpus[c / 64] |= UINT64_C(1) << c % 64;
}

/* Make the own part of the shared channel, and tell the others where it is. */
static tutti_status announce(tti_coll *coll, const tti_coll_config *config)
{
    tti_team    *team = &coll->team;
    tti_join    *mine = &coll->mine;
    tutti_status st = TUTTI_OK;
    const tti_host_channel *shared;

    tell_cores(config->cores, mine);
    tti_choice_announce(&coll->choice, team, config->machine, mine);
    if (team->n_ranks <= TTI_HOST_RANKS_MAX && tti_team_on_one_host(team))
        st = tti_host_channel_create(team, config->patience, &coll->host);
    else if (!tti_team_on_one_host(team))
        st = tti_levels_create(team, config->patience, &coll->levels);
    shared = shared_of(coll);
    if (st == TUTTI_OK && shared != NULL) {
        mine->region = shared->region;
        mine->nonce = shared->members[shared->team->rank].nonce;
        mine->nonce_at = (uint64_t)(uintptr_t)&shared->members[shared->team->rank].nonce;
        mine->pid = (uint64_t)getpid();
        mine->recorder = tti_recorder_to_hold();
        mine->fenced = team->port->ops->fence_join != NULL && team->port->ops->fence_join(team->port);
    }
    return st == TUTTI_OK ? tti_team_announce(team, &coll->board, config->deadline_ns, mine) : st;
}

/* A group of one waits for nobody. But in a larger world others may have been given a list with more: they find what it
 * leaves here, and it looks now, and in its first call, whether they have come. */
static tutti_status announce_alone(tti_coll *coll, const tti_coll_config *config)
{
    tti_join     mine = { .region = 0 };
    tutti_status st = tti_team_announce(&coll->team, &coll->board, config->deadline_ns, &mine);

    return st == TUTTI_OK ? tti_team_look_around(&coll->team, &coll->board, &mine) : st;
}

/* Keep what the next one of this host did last, should it be killed: nobody else holds it without a launcher. Its number
 * was proved to be that of a process here by the memory that was found in it. */
static void hold_neighbour(tti_coll *coll, const tti_join *all)
{
    const tti_host_channel *shared = shared_of(coll);
    const tti_team         *here;
    int                     next, r = 0;

    if (shared == NULL || coll->team.group_id != 0 || coll->held >= 0)
        return;
    here = shared->team;
    next = here->ranks[(here->rank + 1) % here->n_ranks];
    while (coll->team.ranks[r] != next)
        r++;
    coll->held = tti_recorder_hold((int64_t)all[r].pid, all[r].recorder);
}

/* Find the others, and their memory where it is shared. */
static tutti_status join(tti_coll *coll, int64_t deadline_ns)
{
    tti_team    *team = &coll->team;
    tti_join    *all = calloc((size_t)team->n_ranks, sizeof *all);
    tutti_status st;

    if (all == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to meet the %d members of group '%s'",
                        team->n_ranks, team->name);
    st = tti_team_meet(team, &coll->board, deadline_ns, &coll->mine, all);
    if (st == TUTTI_OK && coll->host == NULL)
        st = tti_team_look_who_gave_up(team, &coll->board, deadline_ns);
    team->wire = all[0].machine.wire;
    if (st == TUTTI_OK && coll->levels != NULL)
        st = tti_levels_connect(coll->levels, all);
    if (st == TUTTI_OK)
        tti_choice_settle(&coll->choice, team, all, coll->levels);
    if (st == TUTTI_OK && coll->host != NULL)
        st = tti_host_channel_connect(coll->host, all);
    if (st == TUTTI_OK)
        hold_neighbour(coll, all);
    free(all);
    coll->joined = st == TUTTI_OK;
    return st;
}

static bool compares_messages(const tti_coll *coll)
{
    return coll->team.n_ranks > 1 && coll->team.messenger != NULL;
}

static tutti_status compare_from_now(tti_coll *coll)
{
    const tti_comparer comparer = tti_team_comparer(&coll->team);

    return tti_messenger_compare(coll->team.messenger, coll->team.group_id, &comparer);
}

/* Who makes the calls of this rank: one thread, or several. */
static void note_caller(tti_coll *coll)
{
    if (coll->caller == tti_self())
        return;
    coll->caller = tti_self();
    if (coll->team.messenger != NULL)
        tti_messenger_note_caller(coll->team.messenger, coll->caller);
}

/* Who begins a call leaves the rest to whichever thread takes it. */
static void note_others(tti_coll *coll)
{
    if (coll->has_others || coll->team.messenger == NULL)
        return;
    coll->has_others = true;
    tti_messenger_note_caller(coll->team.messenger, TTI_OTHERS);
}

/* What only this rank knows of: others fail of the rest, too, or are told of it otherwise. */
static bool is_own_failure(tutti_status st)
{
    return st == TUTTI_E_NETWORK || st == TUTTI_E_STORE || st == TUTTI_E_IO || st == TUTTI_E_NOMEM || st == TUTTI_E_BACKEND;
}

/* This rank has left its piece, and cannot make the group all the same, as it has lost the board, say. The others may have made it, look
 * at no board any more, and would wait here for its part of their first call. The last error stays. A world that is founded ends its
 * connections, which tells them. */
static void tell_who_has_it(const tti_coll *coll, const tti_coll_config *config, tutti_status st)
{
    const tti_team *team = &coll->team;
    tti_words       kept = { .used = 0 };

    if (config->founds || team->messenger == NULL || !is_own_failure(st))
        return;
    tti_words_add(&kept, "%s", tutti_last_error());
    tti_fail(TUTTI_E_REMOTE, "it cannot make group '%s': %s", team->name, kept.text);
    tti_messenger_fail(team->messenger, team->group_id, TUTTI_E_REMOTE, team->ranks, team->n_ranks);
    tti_fail(st, "%s", kept.text);
}

/* Its own piece is there. */
static tutti_status join_announced(tti_coll *coll, const tti_coll_config *config)
{
    tutti_status st = compares_messages(coll) ? compare_from_now(coll) : TUTTI_OK;

    if (st == TUTTI_OK && !coll->joined && !config->lazy)
        st = join(coll, config->deadline_ns);
    if (st != TUTTI_OK && !coll->joined && !config->lazy)
        tell_who_has_it(coll, config, st);
    return st;
}

tutti_status tti_coll_open(const tti_coll_config *config, tti_coll **coll_out)
{
    tti_coll    *coll = calloc(1, sizeof *coll);
    tutti_status st;

    if (coll == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the collectives of group '%s'", config->name);
    coll->board = *config->board;
    coll->held = -1;
    coll->joined = config->n_ranks == 1;
    st = tti_team_init(&coll->team, config);
    if (st == TUTTI_OK)
        tti_health_name_group(tti_mesh_health(config->mesh), config->group_id, config->name);
    coll->named = st == TUTTI_OK;
    if (st == TUTTI_OK)
        st = tti_choice_read(&coll->choice);
    if (st == TUTTI_OK)
        note_caller(coll);
    coll->alone = st == TUTTI_OK && coll->joined && !config->lazy && tti_mesh_size(coll->team.mesh) > 1;
    if (coll->alone)
        st = announce_alone(coll, config);
    if (st == TUTTI_OK && !coll->joined)
        st = announce(coll, config);
    if (st == TUTTI_OK)
        st = join_announced(coll, config);
    if (st != TUTTI_OK) {
        tti_coll_close(coll);
        return st;
    }
    *coll_out = coll;
    return TUTTI_OK;
}

void tti_coll_close(tti_coll *coll)
{
    int i;

    if (coll == NULL)
        return;
    tti_recorder_let_go(coll->held);
    if (coll->named)
        tti_health_forget_group(tti_mesh_health(coll->team.mesh), coll->team.group_id);
    if (compares_messages(coll)) /* before the board moves, or goes */
        (void)tti_messenger_compare(coll->team.messenger, coll->team.group_id, NULL);
    tti_host_channel_close(coll->host);
    tti_levels_close(coll->levels);
    let_go_nets(coll);
    for (i = 0; i < NETS; i++)
        tti_net_release(&coll->nets[i]);
    tti_choice_release(&coll->choice);
    tti_team_release(&coll->team);
    free(coll);
}

static tutti_status fail_aborted(const tti_coll *coll, const tutti_call *call)
{
    return tti_fail(TUTTI_E_ABORTED, "%s #%llu: group '%s' was aborted on rank %d",
                    tti_call_kind_name(call->kind), (unsigned long long)call->seq, coll->team.name,
                    coll->team.ranks[coll->team.rank]);
}

static bool is_aborted(const tti_coll *coll)
{
    return atomic_load_explicit(&coll->team.aborted, memory_order_acquire);
}

/* It was found out between two calls that members do not agree, or another member has failed. */
static bool is_finished(const tti_coll *coll)
{
    return atomic_load_explicit(&coll->team.finished, memory_order_acquire) && !is_aborted(coll);
}

/* The row of a call that is not done on registered memory. */
static const tti_algorithm *row_of(const tti_coll *coll, const tutti_call *call)
{
    const tti_algorithm *row = tti_choose_for(&coll->choice.decision, call);

    return row->order == TTI_IN_RANK_ORDER || !tti_needs_one_go(call) ? row
                                                                      : tti_choose_for(&coll->choice.in_one_go, call);
}

static tutti_status do_call(tti_coll *coll, const tutti_call *call, const tti_call_note *note)
{
    const tti_algorithm *how;
    bool                 done = false;
    tutti_status         st;

    if (is_aborted(coll))
        return fail_aborted(coll, call);
    if (coll->host != NULL) {
        st = tti_fused_run(coll->host, call, tti_wish_for_fused(&coll->choice.wishes, call->kind), &done);
        if (st != TUTTI_OK || done)
            return st;
    }
    how = row_of(coll, call);
    if (how->staged != NULL)
        return how->staged(coll->host, call);
    if (how->level != NULL)
        return how->level(coll->levels, call, note);
    return tti_net_run(net_at(coll, 0), &coll->team, how->plan, call, note);
}

/* Do the call that was begun first to its end. */
static tutti_status end_net(tti_coll *coll)
{
    const tutti_status st = tti_net_end(net_at(coll, 0), &coll->team);

    drop_net(coll);
    return st;
}

/* A call that tti_coll_fail() ended finds that the group was aborted; the cause is what to report. */
static tutti_status name_cause(const tti_coll *coll, tutti_status st)
{
    const int cause = atomic_load_explicit(&coll->cause, memory_order_acquire);

    if (st != TUTTI_E_ABORTED || cause == TUTTI_OK)
        return st;
    return tti_fail((tutti_status)cause, "%s", coll->cause_words.text);
}

/* A call of a group of one: nobody to compare with, and nobody to wait for. */
static tutti_status run_alone(tti_coll *coll, const tutti_call *call)
{
    tutti_status st;

    if (is_aborted(coll))
        return fail_aborted(coll, call);
    if (coll->alone) {
        coll->alone = false;
        st = tti_team_look_for_mismatch(&coll->team, &coll->board, tti_port_now(coll->team.port));
        if (st != TUTTI_OK)
            return st;
    }
    tti_solo_run(call);
    return TUTTI_OK;
}

static tutti_status enter(tti_host_channel *host, const tutti_call *call, const tti_call_note *note)
{
    tti_fused_tell(host, call->seq);
    return tti_host_enter(host, call, note);
}

/* The call is entered, whether it was begun or not. */
static tutti_status begin(tti_coll *coll, const tutti_call *call, const tti_call_note *note)
{
    tutti_status st = TUTTI_OK;

    if (!coll->begun)
        tti_team_publish(&coll->team, note);
    if (!coll->joined)
        st = join(coll, tti_call_deadline(call, tti_port_now(coll->team.port)));
    if (st != TUTTI_OK || coll->host == NULL)
        return st;
    tti_host_wait_in_background(coll->host, call->in_background);
    if (!coll->begun)
        return enter(coll->host, call, note);
    coll->begun = false;
    return TUTTI_OK;
}

static tutti_status run_together(tti_coll *coll, const tutti_call *call)
{
    const tti_call_note note = tti_call_note_of(call);
    tutti_status        st;

    if (coll->n_nets > 0)
        return end_net(coll);
    st = begin(coll, call, &note);
    if (st == TUTTI_OK)
        st = do_call(coll, call, &note);
    if (st == TUTTI_OK && coll->host != NULL)
        tti_host_finish(coll->host);
    return st;
}

/* Who finds that a peer is gone knows no call: transport and mesh have many users. Here its words get the call and
 * the group, unless they have them, as those of another member do, and what can be done now. */
static tutti_status name_call(const tti_coll *coll, const tutti_call *call, tutti_status st)
{
    const tti_team *team = &coll->team;
    tti_call_note   note = tti_call_note_of(call);
    tti_words       words = { .used = 0 };
    char            text[TTI_CALL_TEXT_MAX];

    if (!coll->joined || (st != TUTTI_E_PEER && st != TUTTI_E_NETWORK))
        return st;
    if (strstr(tutti_last_error(), "group '") == NULL) {
        tti_team_describe(team, &note, text);
        tti_words_add(&words, "%s on group '%s' failed on rank %d of %d members, and ends the group: ", text, team->name,
                      team->ranks[team->rank], team->n_ranks);
    }
    tti_words_add(&words, "%s", tutti_last_error());
    if (strstr(words.text, "\n  next: ") == NULL)
        tti_words_add(&words, "%s", tti_advice_of_loss(words.text));
    return tti_fail(st, "%s", words.text);
}

/* What this rank was told, as it concerns itself. */
static tutti_status word_for_oneself(const tti_coll *coll, tutti_status st)
{
    const tti_team *team = &coll->team;
    tti_words       words = { .used = 0 };

    tti_words_add(&words, "%s", tutti_last_error());
    tti_advice_for_oneself(team->ranks[team->rank], words.text, sizeof words.text);
    return tti_fail(st, "%s", words.text);
}

/* Another member's words, "rank 1 reported: ...", are of an operation of its own: those of this rank say which call has ended
 * because of it. Members of this host are told the former, so that words do not grow from rank to rank. */
static tutti_status name_own(const tti_coll *coll, const tutti_call *call, tutti_status st)
{
    const tti_team *team = &coll->team;
    tti_call_note   note = tti_call_note_of(call);
    tti_words       words = { .used = 0 };
    char            text[TTI_CALL_TEXT_MAX];

    if (strncmp(tutti_last_error(), "rank ", 5) != 0 || strstr(tutti_last_error(), " reported: ") == NULL)
        return st;
    tti_team_describe(team, &note, text);
    tti_words_add(&words, "%s on group '%s' ended on rank %d of %d members: %s", text, team->name, team->ranks[team->rank],
                  team->n_ranks, tutti_last_error());
    if (strstr(words.text, "\n  next: ") == NULL)
        tti_words_add(&words, "\n  next: see what that rank waited for, and let all ranks make the same calls and messages");
    return tti_fail(st, "%s", words.text);
}

/* The first failure stays. */
static tutti_status keep_failure(tti_coll *coll, const tutti_call *call, tutti_status st)
{
    st = name_call(coll, call, name_cause(coll, st));
    coll->failed = st;
    if (shared_of(coll) != NULL)
        tti_host_raise_own(shared_of(coll), st, -1);
    st = word_for_oneself(coll, name_own(coll, call, st));
    tti_words_add(&coll->words, "%s", tutti_last_error());
    return st;
}

/* What ended the group between two calls is told to the others, as what ends it in one is: whoever told this rank may have
 * reached nobody else, and what the messenger has found by itself it has told nobody. It keeps the first cause, and tells it
 * once. */
static void pass_on(const tti_coll *coll, tutti_status st)
{
    const tti_team *team = &coll->team;

    if (st != TUTTI_OK)
        tti_messenger_fail(team->messenger, team->group_id, st, team->ranks, team->n_ranks);
}

tutti_status tti_coll_run(tti_coll *coll, const tutti_call *call)
{
    tutti_status st;

    if (coll->failed != TUTTI_OK) {
        let_go_nets(coll); /* their messages have ended: who failed saw to it */
        return tti_fail(coll->failed, "%s", coll->words.text);
    }
    if (is_finished(coll)) {
        st = keep_failure(coll, call, tti_messenger_listen(coll->team.messenger, coll->team.group_id));
        pass_on(coll, st);
        let_go_nets(coll);
        return tti_fail(st, "%s", coll->words.text);
    }
    note_caller(coll);
    assert(coll->n_nets == 0 || net_at(coll, 0)->note.seq == call->seq);
    st = coll->team.n_ranks == 1 ? run_alone(coll, call) : run_together(coll, call);
    return st == TUTTI_OK ? TUTTI_OK : keep_failure(coll, call, st);
}

/* The form of a call that waits for nobody before it has given all; NULL: it has none. */
static tti_staged *form_that_gives(const tti_coll *coll, const tutti_call *call)
{
    tti_staged *form;

    if (tti_fused_may_ask(coll->host, call, tti_wish_for_fused(&coll->choice.wishes, call->kind)))
        return NULL; /* cards come first, and whoever has shown one may be written to */
    form = row_of(coll, call)->staged;
    return tti_one_phase_does(form, call, coll->team.n_ranks) ? form : NULL;
}

/* Which of those that were begun by messages call is: n_nets if it is none. */
static int find_net(tti_coll *coll, const tutti_call *call)
{
    int k;

    for (k = 0; k < coll->n_nets; k++)
        if (net_at(coll, k)->note.seq == call->seq)
            break;
    return k;
}

/* Whether a call may be begun behind those that are: all of theirs is posted, so that its messages come behind. */
static bool may_begin_net(const tti_coll *coll)
{
    const int last = (coll->first_net + coll->n_nets - 1) % NETS;

    return coll->n_nets == 0 || (coll->n_nets < NETS && tti_net_has_given(&coll->nets[last]));
}

static tutti_status begin_net(tti_coll *coll, const tutti_call *call)
{
    const tti_call_note note = tti_call_note_of(call);
    tutti_status        st;

    tti_team_publish(&coll->team, &note);
    st = tti_net_begin(net_at(coll, coll->n_nets), &coll->team, 0, row_of(coll, call)->plan, call, &note);
    coll->n_nets += st == TUTTI_OK;
    return st;
}

static tutti_status advance_by_messages(tti_coll *coll, const tutti_call *call, tutti_progress *progress)
{
    const int64_t most = BEGUN_BYTES_MAX / (int64_t)tutti_dtype_size(call->dtype);
    const int     k = find_net(coll, call);
    tutti_status  st = TUTTI_OK;

    if (call->in_counts != NULL || call->count > most || row_of(coll, call)->level != NULL)
        return TUTTI_OK;
    if (k == coll->n_nets) {
        if (!may_begin_net(coll))
            return TUTTI_OK;
        st = begin_net(coll, call);
    } else {
        st = tti_net_advance(net_at(coll, k), &coll->team);
    }
    if (st != TUTTI_OK)
        return st;
    *progress = tti_net_has_given(net_at(coll, k)) ? TUTTI_PROGRESS_GIVEN : TUTTI_PROGRESS_BEGUN;
    if (k == 0 && tti_net_may_end(net_at(coll, 0))) {
        *progress = TUTTI_PROGRESS_DONE;
        return end_net(coll);
    }
    return TUTTI_OK;
}

static tutti_status advance_in_memory(tti_coll *coll, const tutti_call *call, tutti_progress *progress)
{
    const tti_call_note note = tti_call_note_of(call);
    tti_staged         *form;
    tutti_status        st = TUTTI_OK;

    if (coll->begun ? coll->host->note.seq != call->seq : !tti_host_may_enter(coll->host))
        return TUTTI_OK;
    if (!coll->begun) {
        st = begin(coll, call, &note);
        coll->begun = st == TUTTI_OK;
    }
    *progress = TUTTI_PROGRESS_BEGUN;
    form = st == TUTTI_OK ? form_that_gives(coll, call) : NULL;
    if (form == NULL)
        return st;
    coll->host->in_haste = true;
    st = form(coll->host, call);
    coll->host->in_haste = false;
    if (st == TTI_NOT_YET) {
        *progress = coll->host->given ? TUTTI_PROGRESS_GIVEN : TUTTI_PROGRESS_BEGUN;
        return TUTTI_OK;
    }
    coll->begun = false;
    if (st == TUTTI_OK) {
        tti_host_finish(coll->host);
        *progress = TUTTI_PROGRESS_DONE;
    }
    return st;
}

tutti_status tti_coll_advance(tti_coll *coll, const tutti_call *call, tutti_progress *progress_out)
{
    tutti_progress progress = TUTTI_PROGRESS_NONE;
    tutti_status   st = TUTTI_OK;

    if (coll->failed != TUTTI_OK || !coll->joined || coll->alone || is_aborted(coll) || is_finished(coll)) {
        *progress_out = progress; /* run has the words, or meets the others, or looks for them */
        return TUTTI_OK;
    }
    note_others(coll);
    if (coll->team.n_ranks == 1) {
        tti_solo_run(call);
        progress = TUTTI_PROGRESS_DONE;
    } else if (coll->host != NULL) {
        st = advance_in_memory(coll, call, &progress);
    } else {
        st = advance_by_messages(coll, call, &progress);
    }
    if (st != TUTTI_OK)
        return keep_failure(coll, call, st);
    *progress_out = progress;
    return TUTTI_OK;
}

void tti_coll_hasten(tti_coll *coll, uint64_t seq)
{
    if (shared_of(coll) != NULL)
        atomic_store_explicit(&shared_of(coll)->hurried, seq, memory_order_relaxed);
}

uint64_t tti_coll_count_registered(const tti_coll *coll)
{
    return coll->host != NULL ? tti_fused_count(coll->host) : 0;
}

/* For whoever waits, in whichever part of the group. */
static void set_aborted(tti_coll *coll)
{
    atomic_store_explicit(&coll->team.aborted, true, memory_order_release);
    if (coll->levels != NULL)
        tti_levels_abort(coll->levels);
}

void tti_coll_abort(tti_coll *coll)
{
    const tti_team   *team = &coll->team;
    tti_host_channel *shared = shared_of(coll);

    atomic_store(&coll->ended, true);
    set_aborted(coll);
    if (shared != NULL)
        tti_host_raise(shared, TUTTI_E_ABORTED, shared->team->rank, NULL);
    if (team->messenger != NULL)
        tti_messenger_abort(team->messenger, team->group_id);
}

void tti_coll_fail(tti_coll *coll, tutti_status status)
{
    const tti_team   *team = &coll->team;
    tti_host_channel *shared = shared_of(coll);

    if (atomic_exchange(&coll->ended, true))
        return;
    tti_words_add(&coll->cause_words, "%s", tutti_last_error());
    atomic_store_explicit(&coll->cause, (int)status, memory_order_release);
    /* The members of this host must find the cause, and not that a call of this rank was aborted by
     * it: so it is raised first. A call of this rank sleeps until it is woken once more. */
    if (shared != NULL)
        tti_host_raise_own(shared, status, -1);
    set_aborted(coll);
    if (shared != NULL)
        tti_host_raise_own(shared, status, -1);
    if (team->messenger != NULL)
        tti_messenger_fail(team->messenger, team->group_id, status, team->ranks, team->n_ranks);
}
