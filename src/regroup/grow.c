/* SPDX-License-Identifier: BSD-3-Clause
 *
 * grow.c - processes that have just been started come into a world that is at work: what its members do.
 *
 * Why     After a failure a job wants to be as large as before, without starting those anew that live.
 * How     First the members tell each other whether all of them can: one that cannot, for its arguments or for what it is at, would
 *         be waited for; whether all were given the same; and how much time each of them has left, as they come to the call at
 *         different times. Then rank 0 takes
 *         the next numbers of those that have asked (admission.h), passes over those that are gone, tells the others their
 *         places, waits until they are here, and tells the members through the group, whose order the call is in. Then all found
 *         a world in the folder of the attempt: members first, newcomers behind them in the order in which they asked.
 * True    Until the new world is whole the old one is as it was. A number is used once: a newcomer that ends after it was given a
 *         place costs one attempt. Who has taken a number and says nothing is passed over when somebody has come behind it:
 *         by the key in which it would ask, which is written once, so it either has asked or knows that it has to ask anew.
 *         The least of the members' times is that of all: rank 0 waits for a part of it, and who waits for rank 0 has all of it and
 *         TELL_SLACK_MS more, also who had less of its own.
 *         Nothing is waited for that will not come: while rank 0 waits, it looks every LOOK_NS whether a member, or a newcomer
 *         that has a place, has ended, or a replacement before it asked or was let in (unasked.h); then its words are left for
 *         those that have a place already. Members hear of it from rank 0, or from the old world, where the broadcast fails.
 * Fails   Who does not come is named by the world's own words.
 *         What another member calls instead of this is told as of any collective, which says "grow_group" of it; members that
 *         were given different names or numbers hear of rank 0's, and of those of the lowest rank that has others, and go on.
 *         A caller that is a callback of the world cannot talk in it, and so tells nobody that it refuses. */
#include "regroup/admission.h"
#include "regroup/unasked.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "watch/bulletin.h"
#include "watch/trouble.h"
#include <tutti/private.h>
#include <tutti/regroup.h>
#include "base/clip.h"
#include "base/fnv.h"
#include "group/collective.h"
#include "group/recorded.h"
#include "regroup/deed.h"
#include "backend/native/native.h"
#include "transport/mesh.h"

enum { KEY_MAX = TTI_ADMISSION_KEY_MAX };

#define LOOK_NS (200 * TTI_MS)

/* Who has taken a number asks within so long, or is passed over; less where there is less time. */
#define SILENT_NS (5 * TTI_SECOND)

/* What the others have for rank 0's last words with a store that does not answer. */
enum { TELL_SLACK_MS = 2000 };

/* What one member tells all others, as bytes: the same machine type on all, as the rest of a group's is. */
typedef struct verdict {
    int64_t status; /* of the call on that member */
    int64_t attempt;
    int64_t size; /* of the new world; 0: nobody comes */
    char    words[TTI_TROUBLE_WORDS_MAX];
} verdict;

/* ---- rank 0: who comes ---- */

/* Those that are let in: numbers in the order in which they asked. */
typedef struct list {
    int64_t *numbers; /* [n] */
    int      n;
    int64_t  first, last; /* the numbers behind first that were looked at, up to last */
    int64_t  least_ms;    /* what all members have for the call, of which rank 0 waits for a part; TUTTI_INFINITE */
} list;

/* Whether the launcher says that number t, a replacement, has ended. */
static bool launcher_knows(const tutti_group *group, const tti_admission *to, int64_t t, tti_ending *ending_out)
{
    tutti_bytes place = { 0 };
    char        key[KEY_MAX];
    int         node, local;
    bool        ended;

    if (group->bulletin == NULL)
        return false;
    snprintf(key, sizeof key, "ask/%" PRId64, t);
    ended = tti_store_get_until(to->folder, key, tti_store_grace(to->folder), &place) == TUTTI_OK &&
            sscanf(place.data, "%d %d", &node, &local) == 2 && tti_bulletin_find_at(group->bulletin, node, local, ending_out);
    tutti_bytes_free(&place);
    return ended;
}

/* The same of its last will, or of its own word; words_out: how. */
static bool is_gone(const tutti_group *group, const tti_admission *to, int64_t t, char words_out[TTI_ENDING_TEXT_MAX])
{
    char         key[KEY_MAX];
    const char  *one = key;
    tutti_bytes  kept = { 0 };
    tti_ending   ending = { .rank = -1 };
    bool         there = false;
    tutti_status st;

    snprintf(key, sizeof key, "gone/%" PRId64, t);
    st = tti_store_check_until(to->folder, &one, 1, tti_store_grace(to->folder), &there);
    if (st == TUTTI_OK && there)
        st = tti_store_get_until(to->folder, key, tti_store_grace(to->folder), &kept);
    there = st == TUTTI_OK && there;
    if (there && kept.size >= sizeof ending) {
        memcpy(&ending, kept.data, sizeof ending);
        ending.host[sizeof ending.host - 1] = '\0';
        snprintf(words_out, TTI_ENDING_TEXT_MAX, "(host '%.63s', pid %lld) has ended, or lost its way to the store,", ending.host,
                 (long long)ending.pid);
    } else if (there) {
        snprintf(words_out, TTI_ENDING_TEXT_MAX, "has given up");
    } else if ((there = launcher_knows(group, to, t, &ending))) {
        char words[TTI_ENDING_TEXT_MAX];

        snprintf(words_out, TTI_ENDING_TEXT_MAX, "is %.*s, as the launcher reports,", TTI_ENDING_TEXT_MAX - 40,
                 tti_ending_words(&ending, words));
    }
    tutti_bytes_free(&kept);
    return there;
}

/* Wait for key of number t. TUTTI_OK with *gone_out: it comes no more, and words_out says why. */
static tutti_status await_number(const tutti_group *group, tti_admission *to, const char *key, int64_t t, int64_t deadline_ns,
                                 bool *gone_out, char words_out[TTI_ENDING_TEXT_MAX])
{
    tutti_status st;
    int64_t      look_ns;

    *gone_out = false;
    do {
        look_ns = tti_port_now(to->port) + LOOK_NS;
        st = tti_store_wait_until(to->folder, &key, 1, look_ns < deadline_ns ? look_ns : deadline_ns);
        if (st != TUTTI_E_TIMEOUT)
            return st;
        *gone_out = is_gone(group, to, t, words_out);
        st = *gone_out ? TUTTI_OK : tti_members_check(group, "grow_group");
    } while (st == TUTTI_OK && !*gone_out && tti_port_now(to->port) < deadline_ns);
    return st == TUTTI_OK && !*gone_out ? TUTTI_E_TIMEOUT : st;
}

/* Whether number t, which has written there, found the place taken by those words, and asks anew. */
static tutti_status find_passed_over(const tti_admission *to, int64_t t, int64_t deadline_ns, bool *passed_out)
{
    tutti_bytes  asked = { 0 };
    char         key[KEY_MAX];
    tutti_status st;

    snprintf(key, sizeof key, "ask/%" PRId64, t);
    st = tti_store_get_until(to->folder, key, deadline_ns, &asked);
    *passed_out = st == TUTTI_OK && tti_is_passed_over(&asked);
    tutti_bytes_free(&asked);
    return st;
}

/* Number t is not waited for any longer, unless it has asked meanwhile.
 * Errors: TUTTI_E_UNSUPPORTED: the store cannot compare_set */
static tutti_status pass_over(const tti_admission *to, int64_t t, int64_t deadline_ns, bool *passed_out)
{
    tutti_bytes  kept = { 0 };
    char         key[KEY_MAX];
    tutti_status st;

    snprintf(key, sizeof key, "ask/%" PRId64, t);
    st = tti_store_compare_set_until(to->folder, key, "", 0, TTI_PASSED_OVER, strlen(TTI_PASSED_OVER), deadline_ns, &kept);
    *passed_out = st == TUTTI_OK && tti_is_passed_over(&kept);
    tutti_bytes_free(&kept);
    return st;
}

/* A number that does not ask. */
typedef struct silence {
    int64_t patience_ns; /* 0: it is not waited for */
    int64_t since_ns;    /* when somebody was first seen to have come behind it; TTI_FOREVER: nobody was */
} silence;

/* Number t has not asked yet. TUTTI_E_TIMEOUT: it is not waited for, and cannot be passed over. */
static tutti_status bear(const tti_admission *to, int64_t t, silence *s, int64_t deadline_ns, bool *passed_out)
{
    const int64_t now_ns = tti_port_now(to->port);
    const bool    waits = s->patience_ns > 0;
    int64_t       asked = 0;
    tutti_status  st = tti_store_add_until(to->folder, "asked", 0, deadline_ns, &asked);

    if (st == TUTTI_OK && asked <= t)
        return waits ? TUTTI_OK : TUTTI_E_TIMEOUT;
    if (s->since_ns == TTI_FOREVER)
        s->since_ns = now_ns;
    if (st == TUTTI_OK && now_ns - s->since_ns >= s->patience_ns)
        st = pass_over(to, t, deadline_ns, passed_out);
    if (st == TUTTI_E_UNSUPPORTED)
        st = waits ? TUTTI_OK : TUTTI_E_TIMEOUT;
    return st;
}

/* Of the newcomers that are to come nobody more will, as a launcher has said.
 * Errors: TUTTI_E_PEER: always */
static tutti_status fail_unasked(const tti_unasked *found)
{
    char words[TTI_ENDING_TEXT_MAX];

    return tti_fail(TUTTI_E_PEER, "grow_group: %s %s, as its launcher reports, which starts no other one\n"
                                  "  next: see what it wrote; call this again if somebody else starts newcomers",
                    tti_ending_words(&found->ending, words),
                    found->asked ? "after it had asked to come in, and before it was let in" : "before it asked to come in");
}

/* Wait for the number behind l->last to ask. TUTTI_OK with *gone_out: it does not, and words_out says why. */
static tutti_status await_asking(tutti_group *group, tti_admission *to, const list *l, int64_t patience_ns, int64_t deadline_ns,
                                 bool *gone_out, char words_out[TTI_ENDING_TEXT_MAX])
{
    const int64_t t = l->last + 1;
    silence       s = { .patience_ns = patience_ns, .since_ns = TTI_FOREVER };
    char          key[KEY_MAX];
    bool          passed = false;
    int64_t       look_ns;
    tti_unasked   found;
    tutti_status  st;

    snprintf(key, sizeof key, "ask/%" PRId64, t);
    do {
        look_ns = tti_port_now(to->port) + LOOK_NS;
        st = await_number(group, to, key, t, look_ns < deadline_ns ? look_ns : deadline_ns, gone_out, words_out);
        if (st != TUTTI_E_TIMEOUT || tti_port_now(to->port) >= deadline_ns)
            break;
        if (patience_ns > 0 && tti_unasked_find(group, to, l->first, t, deadline_ns, &found))
            return fail_unasked(&found);
        st = bear(to, t, &s, deadline_ns, &passed);
    } while (st == TUTTI_OK && !passed);
    if (st == TUTTI_OK && !*gone_out && !passed)
        st = find_passed_over(to, t, deadline_ns, &passed);
    if (st == TUTTI_OK && passed) {
        *gone_out = true;
        snprintf(words_out, TTI_ENDING_TEXT_MAX, "had taken its turn, and did not ask,");
    }
    return st;
}

/* What rank 0 waits for newcomers of the time that all have: the rest is for the new world, and for telling the others, who wait for
 * rank 0 in a broadcast: it must be back before they lose patience. */
static int64_t part_for_newcomers(int64_t least_ms)
{
    return least_ms / 4 * 3;
}

/* Where newcomers have to look for the store: it may be another one than at first, as a shrink makes a new one for a dead one. Empty: it
 * has no address. */
static void describe_store(tutti_store *store, char *out, size_t bytes)
{
    const tutti_store *keeper = tutti_store_underlying_non_prefix(store);
    const char        *host = tutti_tcp_store_host(keeper);

    out[0] = '\0';
    if (host != NULL)
        snprintf(out, bytes, ", which rank 0 reaches at %.255s port %d,", host, tutti_tcp_store_port(keeper));
}

static tutti_status too_few(const tti_admission *to, const list *l, int wanted, int64_t deadline_ns)
{
    const int64_t n_gone = l->last - l->first - l->n;
    int64_t       taken = 0, asked = l->n;
    char          within[96] = "", gone[64] = "", silent[64] = "", where[320];

    if (l->least_ms != TUTTI_INFINITE)
        snprintf(within, sizeof within, " within %" PRId64 " of the %" PRId64 " ms that all members had",
                 part_for_newcomers(l->least_ms), l->least_ms);
    describe_store(to->join.store, where, sizeof where);
    (void)tti_store_add_until(to->folder, "asked", 0, deadline_ns + TTI_SECOND, &taken);
    if (n_gone > 0)
        snprintf(gone, sizeof gone, ", and %" PRId64 " more that have are gone", n_gone);
    if (taken > l->last) { /* of the numbers behind last the first is silent, and those behind that one have not been looked at */
        asked += taken - l->last - 1;
        snprintf(silent, sizeof silent, "; one has taken its turn, and says nothing");
    }
    return tti_fail(TUTTI_E_TIMEOUT, "grow_group: %" PRId64 " of %d newcomers have asked to come in%s%s%s\n"
                                     "  next: check that they call tutti_join_group() with this store%s and this name",
                    asked, wanted, within, gone, silent, where);
}

/* How long a number may be silent where n are to come. */
static int64_t patience_of(const tti_admission *to, int n, int64_t deadline_ns)
{
    const int64_t quarter_ns = (deadline_ns - tti_port_now(to->port)) / 4;

    if (n == 0)
        return 0;
    return quarter_ns < SILENT_NS ? (quarter_ns > 0 ? quarter_ns : 1) : SILENT_NS;
}

/* Choose n numbers behind first; all that have asked, if n is 0. */
static tutti_status choose(tutti_group *group, tti_admission *to, int n, int64_t deadline_ns, list *l)
{
    const int64_t patience_ns = patience_of(to, n, deadline_ns);
    const bool    all = n == 0;
    char          words[TTI_ENDING_TEXT_MAX];
    int64_t       asked = 0;
    bool          gone = false;
    tutti_status  st = tti_store_add_until(to->folder, "asked", 0, deadline_ns, &asked);

    if (st == TUTTI_OK && all)
        n = asked > l->first ? (int)(asked - l->first) : 0;
    l->last = l->first;
    l->numbers = calloc((size_t)n + 1, sizeof *l->numbers);
    if (st == TUTTI_OK && l->numbers == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory for %d newcomers", n);
    while (st == TUTTI_OK && l->n < n && !(all && l->last == asked)) {
        gone = is_gone(group, to, l->last + 1, words); /* it may have asked, and ended since */
        if (!gone)
            st = await_asking(group, to, l, patience_ns, deadline_ns, &gone, words);
        if (st == TUTTI_E_TIMEOUT && all)
            return TUTTI_OK; /* the last one is about to ask, or will never: a later call sees it */
        if (st != TUTTI_OK)
            break;
        l->last++;
        if (gone)
            tti_log(TTI_LOG_INFO, "grow_group: newcomer %" PRId64 " %s before it was let in", l->last, words);
        else
            l->numbers[l->n++] = l->last;
    }
    return st == TUTTI_E_TIMEOUT ? too_few(to, l, n, deadline_ns) : st;
}

/* ---- rank 0: their places ---- */

static tutti_status give_places(const tutti_group *group, tti_admission *to, const list *l, int64_t deadline_ns)
{
    char         key[KEY_MAX], value[64];
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < l->n && st == TUTTI_OK; i++) {
        snprintf(key, sizeof key, "place/%" PRId64, l->numbers[i]);
        snprintf(value, sizeof value, "%" PRId64 " %d %d %" PRIu32, to->attempt, group->size + i, to->size,
                 group->generation + 1);
        st = tti_store_set_until(to->folder, key, value, strlen(value), deadline_ns);
    }
    return st;
}

/* This attempt is off, with st, whose words stay: nobody is to wait for a place. Who has read its own hears of it in the folder of the
 * attempt, as its members say there why they do not come. */
static void turn_away(tti_admission *to, const list *l, tutti_status st)
{
    const int64_t until = tti_port_now(to->port) + TTI_SECOND;
    char          words[TTI_GROUP_WORDS_MAX], key[KEY_MAX], value[64];
    int           i;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    snprintf(value, sizeof value, "%" PRId64 " 0 0 0", to->attempt);
    for (i = 0; i < l->n; i++) {
        snprintf(key, sizeof key, "place/%" PRId64, l->numbers[i]);
        (void)tti_store_set_until(to->folder, key, value, strlen(value), until);
    }
    tti_fail(st, "%s", words);
}

static tutti_status await_all(const tutti_group *group, tti_admission *to, const list *l, int64_t deadline_ns)
{
    char         key[KEY_MAX], words[TTI_ENDING_TEXT_MAX];
    bool         gone = false;
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < l->n && st == TUTTI_OK; i++) {
        snprintf(key, sizeof key, "here/%" PRId64, l->numbers[i]);
        st = await_number(group, to, key, l->numbers[i], deadline_ns, &gone, words);
        if (st == TUTTI_OK && gone)
            st = tti_fail(TUTTI_E_PEER, "grow_group: newcomer %" PRId64 ", which was to be rank %d, %s before it came in\n"
                                        "  next: call it again; a newcomer that failed has to ask anew", l->numbers[i],
                          group->size + i, words);
        else if (st == TUTTI_E_TIMEOUT)
            st = tti_fail(st, "grow_group: newcomer %" PRId64 ", which was to be rank %d, has not come in\n"
                              "  next: see whether its process is stopped", l->numbers[i], group->size + i);
    }
    return st;
}

static tutti_status let_in(tutti_group *group, tti_admission *to, const list *l, int64_t deadline_ns)
{
    int64_t      admitted = 0;
    tutti_status st = tti_store_add_until(to->folder, "attempts", 1, deadline_ns, &to->attempt);

    to->size = group->size + l->n;
    if (st != TUTTI_OK)
        return st; /* they wait for the next call */
    st = tti_store_add_until(to->folder, "admitted", l->last - l->first, deadline_ns, &admitted);
    if (st == TUTTI_OK)
        st = tti_admission_meet(to, group);
    if (st == TUTTI_OK)
        st = give_places(group, to, l, deadline_ns);
    if (st != TUTTI_OK)
        turn_away(to, l, st);
    return st == TUTTI_OK ? await_all(group, to, l, deadline_ns) : st;
}

static int64_t waits_until(const tti_admission *to, int64_t least_ms)
{
    return least_ms == TUTTI_INFINITE ? TTI_FOREVER : tti_port_now(to->port) + part_for_newcomers(least_ms) * TTI_MS;
}

/* Who comes in, and where; size 0: nobody. */
static tutti_status admit(tutti_group *group, tti_admission *to, int n, int64_t least_ms)
{
    const int64_t deadline_ns = waits_until(to, least_ms);
    list          l = { .least_ms = least_ms };
    tutti_status  st = tti_store_add_until(to->folder, "admitted", 0, deadline_ns, &l.first);

    if (st == TUTTI_OK)
        st = choose(group, to, n, deadline_ns, &l);
    if (st == TUTTI_OK && l.n > 0)
        st = let_in(group, to, &l, deadline_ns);
    free(l.numbers);
    return st;
}

/* ---- all members: the agreement ---- */

/* Operations of this call have a time of its own, not the group's: nothing else is under way there. */
static int64_t borrow_time(tutti_group *group, int64_t lent_ms)
{
    return atomic_exchange(&group->timeout_ms, lent_ms);
}

static void give_time_back(tutti_group *group, int64_t lent_ms, int64_t before_ms)
{
    (void)atomic_compare_exchange_strong(&group->timeout_ms, &lent_ms, before_ms); /* unless it was set meanwhile */
}

/* What a member was given, as bytes, like a verdict: unused ones of the name are 0. */
typedef struct request {
    int64_t n_new;
    char    name[TTI_ADMISSION_NAME_MAX + 1];
} request;

static request request_of(const char *name, int n_new)
{
    request r;

    memset(&r, 0, sizeof r);
    r.n_new = n_new;
    snprintf(r.name, sizeof r.name, "%s", tti_admission_name(name));
    return r;
}

static bool is_same(const request *a, const request *b)
{
    return a->n_new == b->n_new && strcmp(a->name, b->name) == 0;
}

/* One step of this call, within lent_ms. Who calls something else hears of grow_group, and so does who reads of its failure. */
static tutti_status take_step(tutti_group *group, int64_t lent_ms, const request *mine, tutti_call *step)
{
    const int64_t before_ms = borrow_time(group, lent_ms);
    tti_turns     turns;
    tutti_status  st = tti_turns_take(group, 1, &turns);

    if (st == TUTTI_OK) {
        turns.whole = TUTTI_WHOLE_GROW;
        step->op.factor = (double)mine->n_new;
        st = tti_turns_run(&turns, step);
        tti_turns_give(&turns, "grow_group", TUTTI_OK); /* if it has failed, the group has */
    }
    give_time_back(group, lent_ms, before_ms);
    return st;
}

static const tutti_device here = { .type = TUTTI_CPU };

/* The most that any member says of each of n things. */
static tutti_status find_most(tutti_group *group, int64_t lent_ms, const request *mine, int64_t *said, int n)
{
    tutti_call step = tti_call_of(TUTTI_CALL_ALL_REDUCE, TUTTI_I64, n, here);

    step.op.kind = TUTTI_OP_MAX;
    step.in = step.out = said;
    return take_step(group, lent_ms, mine, &step);
}

/* What all find out together at first: who comes first waits for all others there. */
typedef struct opening {
    int  refuser; /* the lowest rank whose own status is none to go on with, -1: nobody's */
    bool differs; /* those that can go on were not all given the same */
} opening;

enum { REFUSER, NUMBER, NUMBER_BACK, NAME, NAME_BACK, N_SAID }; /* of the two in the middle the most, and the least with its sign turned */

static tutti_status open_talks(tutti_group *group, const tti_admission *to, tutti_status own, const request *mine, opening *out)
{
    const int64_t left_ms = tti_left_ms(to->port, to->join.deadline_ns);
    const int64_t name = (int64_t)(tti_fnv(TTI_FNV_BEGIN, mine->name, strlen(mine->name)) >> 1);
    int64_t       said[N_SAID] = { group->size - group->rank, -INT64_MAX, -INT64_MAX, -INT64_MAX, -INT64_MAX };
    tutti_status  st;

    if (own == TUTTI_OK)
        memcpy(said, (const int64_t[N_SAID]){ 0, mine->n_new, -mine->n_new, name, -name }, sizeof said);
    st = find_most(group, left_ms != 0 ? left_ms : 1, mine, said, N_SAID);
    if (st == TUTTI_OK)
        *out = (opening){ .refuser = said[REFUSER] == 0 ? -1 : group->size - (int)said[REFUSER],
                          .differs = said[NUMBER] != -said[NUMBER_BACK] || said[NAME] != -said[NAME_BACK] };
    return st;
}

/* *least_ms_out: the least time that any member has left, now that all are here; TUTTI_INFINITE: none is in a hurry. A round of its own:
 * what is said in open_talks() is said before the wait for who comes last. */
static tutti_status find_least_time(tutti_group *group, const tti_admission *to, const request *mine, int64_t *least_ms_out)
{
    const int64_t left_ms = tti_left_ms(to->port, to->join.deadline_ns);
    int64_t       less = left_ms == TUTTI_INFINITE ? -INT64_MAX : -left_ms; /* the most of these is the least time */
    tutti_status  st = find_most(group, left_ms == TUTTI_INFINITE ? left_ms : left_ms + TELL_SLACK_MS, mine, &less, 1);

    if (st == TUTTI_OK)
        *least_ms_out = less == -INT64_MAX ? TUTTI_INFINITE : -less;
    return st;
}

/* All have the same time for what follows find_least_time(), which they have just left together: also who has less. */
static int64_t time_to_tell(int64_t least_ms)
{
    return least_ms == TUTTI_INFINITE ? least_ms : least_ms + TELL_SLACK_MS;
}

/* What rank from has in bytes all have then. */
static tutti_status tell_all(tutti_group *group, int64_t least_ms, const request *mine, int from, void *data, size_t bytes)
{
    tutti_call step = tti_call_of(TUTTI_CALL_BROADCAST, TUTTI_U8, (int64_t)bytes, here);

    step.root = from;
    if (from == group->rank)
        step.in = data;
    else
        step.out = data;
    return take_step(group, time_to_tell(least_ms), mine, &step);
}

static void describe(const request *r, char *out, size_t bytes)
{
    if (r->n_new == 0)
        snprintf(out, bytes, "grow_group ('%s', those that have asked)", r->name);
    else
        snprintf(out, bytes, "grow_group ('%s', %" PRId64 " newcomer%s)", r->name, r->n_new, r->n_new == 1 ? "" : "s");
}

/* Members were given different things: all say what rank 0 was, and the lowest rank that was given something else. Nothing was begun:
 * the group goes on. */
static tutti_status fail_differing(tutti_group *group, int64_t least_ms, const request *mine)
{
    request      of_first = *mine, of_other = *mine;
    char         first[128], other[128];
    int64_t      highest = 0;
    tutti_status st = tell_all(group, least_ms, mine, 0, &of_first, sizeof of_first);

    of_first.name[sizeof of_first.name - 1] = '\0';
    if (st == TUTTI_OK && !is_same(&of_first, mine))
        highest = group->size - group->rank;
    if (st == TUTTI_OK)
        st = find_most(group, time_to_tell(least_ms), mine, &highest, 1);
    if (st == TUTTI_OK)
        st = tell_all(group, least_ms, mine, group->size - (int)highest, &of_other, sizeof of_other);
    if (st != TUTTI_OK)
        return st;
    of_other.name[sizeof of_other.name - 1] = '\0';
    describe(&of_first, first, sizeof first);
    describe(&of_other, other, sizeof other);
    return tti_fail(TUTTI_E_MISMATCH, "ranks of group '%s' call different things: rank 0 %s, rank %d %s; %s differ\n"
                                      "  next: give all members the same name and number; the group is as it was",
                    group->name, first, group->size - (int)highest, other,
                    strcmp(of_first.name, of_other.name) != 0 ? "the names" : "the numbers of newcomers");
}

static bool is_wrong(tutti_status st)
{
    return st == TUTTI_E_ARG || st == TUTTI_E_UNSUPPORTED;
}

/* What rank from has failed with, as the others say it: which call it was in is said once. */
static tutti_status fail_as_told(const verdict *v, int from, bool refused)
{
    static const char  call[] = "grow_group: ";
    const tutti_status st = (tutti_status)v->status;
    const char        *words = v->words;

    if (strncmp(words, call, strlen(call)) == 0)
        words += strlen(call);
    if (!refused)
        return tti_fail(st, "%srank 0 could not let anybody in: %s", call, words);
    return tti_fail(is_wrong(st) ? TUTTI_E_MISMATCH : TUTTI_E_REMOTE, "%srank %d cannot take part: %s", call, from, words);
}

/* own: what this member has come to so far, with its words. Some member says what follows: the one that refuses, or rank 0. */
static tutti_status agree(tutti_group *group, tti_admission *to, tutti_status own, const request *mine)
{
    verdict      v = { .status = TUTTI_OK };
    opening      found = { .refuser = -1 };
    char         words[TTI_GROUP_WORDS_MAX] = "";
    int64_t      least_ms = 0;
    int          from;
    tutti_status st;

    snprintf(words, sizeof words, "%s", own != TUTTI_OK ? tutti_last_error() : "");
    st = open_talks(group, to, own, mine, &found);
    if (st == TUTTI_OK)
        st = find_least_time(group, to, mine, &least_ms);
    if (st == TUTTI_OK && found.refuser < 0 && found.differs)
        st = fail_differing(group, least_ms, mine);
    if (st != TUTTI_OK)
        return own != TUTTI_OK ? tti_fail(own, "%s", words) : st;
    from = found.refuser >= 0 ? found.refuser : 0;
    if (found.refuser < 0 && group->rank == 0) {
        own = admit(group, to, (int)mine->n_new, least_ms);
        if (own != TUTTI_OK)
            snprintf(words, sizeof words, "%s", tutti_last_error());
    }
    if (group->rank == from) {
        v = (verdict){ .status = (int64_t)own, .attempt = to->attempt, .size = to->size };
        tti_clip(v.words, sizeof v.words, "%s", words);
    }
    st = tell_all(group, least_ms, mine, from, &v, sizeof v);
    v.words[sizeof v.words - 1] = '\0';
    if (own != TUTTI_OK)
        return tti_fail(own, "%s", words);
    if (st == TUTTI_OK && v.status != (int64_t)TUTTI_OK)
        st = fail_as_told(&v, from, found.refuser >= 0);
    to->attempt = v.attempt;
    to->size = (int)v.size;
    return st;
}

/* ---- the call ---- */

static tutti_status check_grow(tutti_group *group, int n_new)
{
    if (n_new < 0)
        return tti_fail(TUTTI_E_ARG, "grow_group: n_new is %d\n  next: 0 for those that have asked, or how many to wait for", n_new);
    if (tti_group_is_busy(group))
        return tti_fail(TUTTI_E_STATE, "grow_group on group '%s': operations are under way\n  next: wait for them",
                        group->name);
    return TUTTI_OK;
}

/* The new world in the place of the old one. */
static void replace(tutti_group *old, tutti_group *group, const tutti_group_options *opts)
{
    group->timed = old->timed || opts->enable_timing;
    tutti_store_close(group->root);
    group->root = tutti_store_retain(old->root);
    group->root_server = tutti_store_retain(old->root_server);
    tti_world_succeed(old, group);
    tti_group_destroy(old);
}


/* The attempt is known to some, and this member does not come to it. The last error stays. */
static void call_off(tti_admission *to, tutti_status st)
{
    if (to->part != NULL)
        tti_world_tell_why(to->port, to->part, st);
}

enum { NAMED_MAX = 3, UNWELL_TEXT_MAX = NAMED_MAX * (TTI_HEALTH_TEXT_MAX + 160) };

/* "\n  rank 1 (host 'n1', pid 4712) has been stopped by a signal for 3.2 s": a line for each member of the old world that is there,
 * and not well; NAMED_MAX at the most. How many. */
static int list_unwell(const tutti_group *old, char out[UNWELL_TEXT_MAX])
{
    tti_mesh         *mesh = tti_native_mesh(old->backend);
    const tti_health *health = mesh != NULL ? tti_mesh_health(mesh) : NULL;
    char              how[TTI_HEALTH_TEXT_MAX];
    size_t            used = 0;
    int               r, n = 0;

    out[0] = '\0';
    for (r = 0; health != NULL && r < old->size && n < NAMED_MAX; r++) {
        const tti_life life = r != old->rank ? tti_health_now(health, r).life : TTI_LIFE_WELL;

        if (life == TTI_LIFE_WELL || life >= TTI_LIFE_DEAD)
            continue;
        used += (size_t)snprintf(out + used, UNWELL_TEXT_MAX - used, "\n  rank %d (%s) %s", r, tti_mesh_whereabouts(mesh, r),
                                 tti_health_describe(health, r, how));
        n++;
    }
    return n;
}

/* If time is up: the ranks of the new world may not know each other yet; those of the old one do. */
static tutti_status found(const tutti_group *old, tti_admission *to, const tti_backing *backing, tutti_group **group_out)
{
    static const char  next[] = "\n  next: ";
    const tutti_status st = tti_admission_found(to, backing, group_out);
    char               words[TTI_GROUP_WORDS_MAX], unwell[UNWELL_TEXT_MAX];
    const char        *end;

    if (st != TUTTI_E_TIMEOUT || strstr(tutti_last_error(), "kill -CONT") != NULL || list_unwell(old, unwell) == 0)
        return st;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    end = strstr(words, next);
    return tti_fail(st, "%.*s%s%ssee whether it is stopped, which kill -CONT ends; then call this again on all members",
                    end != NULL ? (int)(end - words) : (int)strlen(words), words, unwell, next);
}

static tutti_status grow(tutti_group *old, const char *name, int n_new, const tutti_group_options *opts, tutti_status st,
                         tutti_group **group_out)
{
    const tti_backing backing = tti_backing_like(old, opts);
    tti_admission     to = { .port = old->runner->port,
                             .join = { .store = old->root, .user_store = true, .rank = old->rank,
                                       .timeout_ms = opts->timeout_ms != 0 ? opts->timeout_ms : old->timeout_ms,
                                       .generation = old->generation + 1 } };
    const request     mine = request_of(name, n_new);
    tutti_group      *group = NULL;

    to.join.deadline_ns = tti_deadline(to.port, to.join.timeout_ms, -1);
    snprintf(to.join.listen_host, sizeof to.join.listen_host, "%s", old->listen_host);
    if (st == TUTTI_OK)
        st = check_grow(old, n_new);
    if (st == TUTTI_OK)
        st = tti_backing_check(&backing);
    if (st == TUTTI_OK)
        st = tti_backing_check_members("grow_group", &backing, TTI_NAME_ANOTHER);
    if (st == TUTTI_OK)
        st = tti_admission_open("grow_group", old->root, name, &to);
    st = agree(old, &to, st, &mine);
    if (st == TUTTI_OK && to.size > 0 && to.part == NULL)
        st = tti_admission_meet(&to, old);
    if (st != TUTTI_OK)
        call_off(&to, st);
    else if (to.size > 0)
        st = found(old, &to, &backing, &group);
    tti_admission_close(&to, st);
    if (st != TUTTI_OK)
        return st;
    if (group != NULL) {
        tti_unasked_settle(old);
        replace(old, group, opts);
    }
    *group_out = group != NULL ? group : old;
    return TUTTI_OK;
}

/* The same, as the flight recorder has it: old may be gone when it ends. The steps have records of their own within this one. */
static tutti_status grow_recorded(tutti_group *old, const char *name, int n_new, const tutti_group_options *opts, tutti_status st,
                                  tutti_group **group_out)
{
    const uint64_t record = tti_recorded_regrouping(old, TUTTI_RECORD_GROW_GROUP, -1, n_new > 0 ? n_new : 0);

    tti_regroup_begins(old, TTI_DEED_GROW_GROUP);
    st = tti_recorded_regrouping_end(record, grow(old, name, n_new, opts, st, group_out));
    if (st != TUTTI_OK || *group_out == old)
        tti_regroup_ends(old);
    return st;
}

/* What no member of the world can be told of: who calls is told. */
static tutti_status check_caller(const tutti_group *group)
{
    if (group->world != group)
        return tti_fail(TUTTI_E_UNSUPPORTED, "grow_group: group '%s' is no world\n"
                                             "  next: let them into the world, and make the group anew", group->name);
    if (tti_group_calls_us(group))
        return tti_fail(TUTTI_E_STATE, "grow_group: called by a hook, or by a callback of the same world\n"
                                       "  next: call it where no operation waits for the caller");
    return TUTTI_OK;
}

/* What all members know alike, as all name the same backends or none: nobody is told. Who has options that cannot be read does not know
 * what the others name, and is to tell them; where another field of them is wrong it does. */
static tutti_status check_backing(const tutti_group *group, const tutti_group_options *opts)
{
    const tti_backing like = { .like = group };

    return opts->size != 0 && opts->backend == NULL ? tti_backing_check_members("grow_group", &like, TTI_NAME_ANOTHER) : TUTTI_OK;
}

tutti_status tutti_grow_group(tutti_group *group, const char *name, int n_new, const tutti_group_options *opts,
                              tutti_group **group_out)
{
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    tutti_group        *old = NULL;
    tutti_status        st, read;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "grow_group: group_out is NULL\n  next: pass where to put the group");
    st = tti_group_resolve(group, "grow_group", &old);
    if (st == TUTTI_OK && old == NULL) {
        *group_out = TUTTI_NON_MEMBER;
        return TUTTI_OK;
    }
    if (st == TUTTI_OK) {
        if (opts != NULL)
            known.size = 0; /* until they have been read */
        read = tti_joint_options_read("grow_group", opts, &known);
        st = check_caller(old);
        if (st == TUTTI_OK)
            st = check_backing(old, &known);
        if (read != TUTTI_OK)
            known = (tutti_group_options)TUTTI_GROUP_OPTIONS;
        if (st == TUTTI_OK)
            st = grow_recorded(old, name, n_new, &known, read, group_out); /* also where they cannot be taken: others are told */
    }
    if (st != TUTTI_OK)
        *group_out = TUTTI_NO_GROUP;
    return st;
}
