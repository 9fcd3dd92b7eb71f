/* SPDX-License-Identifier: BSD-3-Clause
 *
 * refused.c - a member that cannot go on as the others wish tells them, and they do not wait for it.
 *
 * Why     With a list all that it leaves must come. Whoever returns at once, as it has operations under way, comes to no meeting, and
 *         so the others would wait until time is up, and would not know why.
 * How     Who refuses leaves a word in the group's store, below "shrink", and then says that there is one:
 *             refused/RANK   why (watch/trouble.h); of status TUTTI_OK: not any more
 *             refusals       how many times anybody has refused
 *             passed/RANK    which ranks it excludes, and in which of its calls: where nothing but the store tells that, and of who has
 *                            waited for a look; empty: in none
 *             passed         how many times anybody has passed some: what all have is read again when that has changed
 *         Who waits has a thread that looks at the second now and then (group/looking.h), which costs one request however many
 *         members there are, and at the first of each member only when it is there.
 * True    Refusing is no vote: who has refused is in no meeting, and a list is decided only by all that it leaves. A word that is read
 *         too late, as who left it has come since, counts for nothing: who meets knows that all have come to where it is
 *         (agreement.c), or asks whether that one has (by_store.c). So nothing that was agreed on is undone by what is read here.
 *         `status`, `parted` and `words` are the looking thread's until it has found something; the others read them behind that.
 * Again   Who has refused, and calls it once more, takes its word back first. Who has read it before has returned, and calls it
 *         again, too: where it does so while the word is still there it reads it once more, a look later.
 * Late    Nobody looks in the last moment before the call's time is up: it comes back in time also from a store that does not answer.
 * Lists   Who has met another list (agreement_lists.c) leaves word of that in the same way, and so does who reads it: it may be the only
 *         one of them that somebody needs who comes still later. All that called it so have to call it once more, one before the
 *         other: so calls have numbers, which members that meet make equal, and who has failed of lists in one that is as late as
 *         a word, or later, does not heed it. Who comes for the first time has not, and may be told of the others' call before; who
 *         has called it once more waits until that one has, too.
 *         Who has no list heeds only what is of lists, and only of members that are well: what the dead have said is over, and who
 *         has met a collective with its list was in no call that this one is in.
 *         Of those that have lists one may end the wait of others by what it has read (by_store.c): who is ended so reads it, too.
 * Rivals  Two members whose lists exclude each other do not meet. Each that waits for others leaves its list here, and looks at those of the
 *         ranks that it excludes: what it finds is for the words of a time-out alone. `has_rival` is to `rival` what `found` is to `words`.
 * Fails   A store that does not answer, or is dead, says nothing against anybody: then they wait, as they did without. So does
 *         who is excluded: its word is not looked at. */
#include "regroup/refused.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/clip.h"
#include "group/looking.h"
#include "regroup/agreement.h"
#include "store/store.h"
#include "watch/trouble.h"

#define ANSWER_NS TTI_SECOND
#define LATE_NS   (50 * TTI_MS) /* of a word, beyond the deadline of its call */
#define LOOK_NS   (TTI_SECOND / 4) /* for the answer to a look: who has agreed waits for it */
#define COUNT_KEY "shrink/refusals"
#define WORD_KEY  "shrink/refused/%d"
#define LISTS_KEY "shrink/passed"
#define LIST_KEY  "shrink/passed/%d"

enum { KEY_MAX = 40 };

/* What a member leaves. Crosses processes and hosts. */
typedef struct refusal {
    tti_trouble trouble;
    uint64_t    number; /* of its call */
    uint64_t    parted; /* 1: lists differed */
} refusal;

_Static_assert(sizeof(refusal) == 528, "a refusal crosses processes and hosts");

struct tti_refused {
    tutti_group       *old;
    const bool        *excluded; /* NULL: there is no list */
    bool               compares; /* what others have passed */
    int64_t            n_passed; /* as it was when they were read last */
    tti_refused_counts *counts;
    void              *context;
    tti_port          *port;
    int64_t            deadline_ns; /* of the call */
    tti_looking        looking;
    tutti_status       status; /* of the call, as words say */
    bool               parted; /* and whether lists differ */
    char               words[TTI_TROUBLE_WORDS_MAX];
    bool               passes; /* the own list is there for rivals; of the looking thread, until it has ended */
    _Atomic bool       has_rival;
    char               rival[TTI_REFUSED_RIVAL_MAX];
};

/* ---- who refuses ---- */

void tti_refused_meet(tutti_group *old, uint64_t number)
{
    uint64_t mine = atomic_load(&old->shrinks);

    while (mine < number && !atomic_compare_exchange_weak(&old->shrinks, &mine, number))
        continue;
}

/* Until when the store may answer what is said at the end of a call. */
static int64_t last_moment(const tutti_group *old, int64_t deadline_ns)
{
    const int64_t until_ns = tti_port_now(old->runner->port) + ANSWER_NS;

    return deadline_ns == TTI_FOREVER || until_ns <= deadline_ns + LATE_NS ? until_ns : deadline_ns + LATE_NS;
}

static tutti_status leave_word(tutti_group *old, const refusal *word, int64_t until_ns)
{
    char         key[KEY_MAX];
    int64_t      n = 0;
    tutti_status st;

    snprintf(key, sizeof key, WORD_KEY, old->rank);
    st = tti_store_set_until(old->store, key, word, sizeof *word, until_ns);
    return st == TUTTI_OK && word->trouble.status != TUTTI_OK ? tti_store_add_until(old->store, COUNT_KEY, 1, until_ns, &n) : st;
}

void tti_refused_tell(tutti_group *old, tutti_status failure, bool parted, int64_t deadline_ns)
{
    refusal word = { .trouble = { .status = (int32_t)failure }, .number = atomic_load(&old->shrinks), .parted = parted };

    if (failure == TUTTI_E_MISMATCH)
        atomic_store(&old->parted, word.number);
    if (old->store == NULL || old->size < 2)
        return;
    tti_clip(word.trouble.words, sizeof word.trouble.words, "%s", tutti_last_error());
    if (leave_word(old, &word, last_moment(old, deadline_ns)) != TUTTI_OK)
        tti_log(TTI_LOG_DEBUG, "group '%s': the others do not hear why this rank does not shrink it: %s", old->name, tutti_last_error());
    else
        old->refuses = true;
    (void)tti_fail(failure, "%s", word.trouble.words);
}

void tti_refused_take_back(tutti_group *old)
{
    const refusal none = { .trouble = { .status = TUTTI_OK } };

    if (!old->refuses)
        return;
    old->refuses = false;
    if (leave_word(old, &none, last_moment(old, TTI_FOREVER)) != TUTTI_OK)
        tti_log(TTI_LOG_DEBUG, "group '%s': that this rank shrinks it after all is not known: %s", old->name, tutti_last_error());
}

/* ---- who waits ---- */

static bool is_there(const tti_refused *r, const char *key)
{
    bool there = false;

    return tti_store_check_until(r->old->store, &key, 1, tti_port_now(r->port) + LOOK_NS, &there) == TUTTI_OK && there;
}

/* Whether a word is none, or of a call of which this member was told before; without a list also if it is not of lists, or of a call
 * before the one that this member is in with others. */
static bool is_nothing(const tti_refused *r, const refusal *word)
{
    const int32_t st = word->trouble.status;

    if (r->excluded == NULL && (st != TUTTI_E_MISMATCH || word->parted == 0 || word->number < atomic_load(&r->old->shrinks)))
        return true;
    return st <= TUTTI_OK || st > TUTTI_E_REMOTE || (st == TUTTI_E_MISMATCH && word->number <= atomic_load(&r->old->parted));
}

/* Whether this member needs rank, or would go on with it. */
static bool is_looked_at(const tti_refused *r, int rank)
{
    return rank != r->old->rank && (r->excluded == NULL || !r->excluded[rank]);
}

/* What rank says, if it refuses, and in which of its calls. */
static bool read_word(tti_refused *r, int rank, uint64_t *number_out)
{
    tutti_bytes value = { 0 };
    refusal     word = { .trouble = { .status = TUTTI_OK } };
    char        key[KEY_MAX];

    snprintf(key, sizeof key, WORD_KEY, rank);
    if (!is_there(r, key) || tti_store_get_until(r->old->store, key, tti_port_now(r->port) + LOOK_NS, &value) != TUTTI_OK)
        return false;
    if (value.size == sizeof word)
        memcpy(&word, value.data, sizeof word);
    tutti_bytes_free(&value);
    word.trouble.words[sizeof word.trouble.words - 1] = '\0';
    if (is_nothing(r, &word))
        return false;
    r->status = word.trouble.status == TUTTI_E_MISMATCH ? TUTTI_E_MISMATCH : TUTTI_E_REMOTE;
    r->parted = r->status == TUTTI_E_MISMATCH && word.parted != 0;
    if (r->status == TUTTI_E_MISMATCH)
        memcpy(r->words, word.trouble.words, sizeof r->words);
    else
        tti_clip(r->words, sizeof r->words, "shrink_group on group '%.64s': rank %d, which is to stay, refuses it: %s", r->old->name,
                 rank, word.trouble.words);
    *number_out = word.number;
    return true;
}

/* Whether rank has left a word that counts. What does not count changes nothing here, the number of the own call neither. */
static bool heeds(tti_refused *r, int rank)
{
    uint64_t number;

    if (!is_looked_at(r, rank) || !read_word(r, rank, &number) ||
        (r->counts != NULL && !r->counts(r->context, rank, r->status, r->words)))
        return false;
    if (r->status == TUTTI_E_MISMATCH)
        tti_refused_meet(r->old, number);
    return true;
}

static bool find_word(tti_refused *r)
{
    int rank;

    if (!is_there(r, COUNT_KEY))
        return false;
    for (rank = 0; rank < r->old->size && !tti_looking_is_over(&r->looking); rank++)
        if (heeds(r, rank))
            return true;
    return false;
}

/* ---- what others have passed ---- */

/* What stands before a list, as its member counts. Crosses processes and hosts. */
typedef struct list_head {
    uint64_t number; /* of its call */
    uint64_t over;   /* calls up to this one have ended there because lists differed */
} list_head;

tutti_status tti_refused_pass(tutti_group *old, const bool *excluded, int64_t deadline_ns)
{
    const list_head head = { .number = atomic_load(&old->shrinks), .over = atomic_load(&old->parted) };
    const size_t    bytes = sizeof head + (size_t)old->size;
    uint8_t        *value = old->store != NULL ? malloc(bytes) : NULL;
    char            key[KEY_MAX];
    int64_t         n = 0;
    int             r;
    tutti_status    st;

    if (value == NULL)
        return old->store == NULL ? TUTTI_OK : tti_fail(TUTTI_E_NOMEM, "no memory to shrink a group of %d", old->size);
    memcpy(value, &head, sizeof head);
    for (r = 0; r < old->size; r++)
        value[sizeof head + (size_t)r] = excluded[r];
    snprintf(key, sizeof key, LIST_KEY, old->rank);
    st = tti_store_set_until(old->store, key, value, bytes, deadline_ns);
    free(value);
    return st == TUTTI_OK ? tti_store_add_until(old->store, LISTS_KEY, 1, deadline_ns, &n) : st;
}

void tti_refused_pass_no_more(tutti_group *old, int64_t deadline_ns)
{
    char key[KEY_MAX];

    if (old->store == NULL)
        return;
    snprintf(key, sizeof key, LIST_KEY, old->rank);
    if (tti_store_set_until(old->store, key, "", 0, last_moment(old, deadline_ns)) != TUTTI_OK)
        tti_log(TTI_LOG_DEBUG, "group '%s': that this rank's list counts no more is not known: %s", old->name, tutti_last_error());
}

/* Another list, of a call that head is of: what both count on from. */
static void meet_odd(tutti_group *old, const list_head *head)
{
    tti_refused_meet(old, atomic_load(&old->shrinks) <= head->over ? head->over : head->number);
}

/* What rank has passed, in a call of which this member was not told before, into [size] and head. False: nothing. */
static bool take_list(const tti_refused *r, const tutti_bytes *value, bool *theirs, list_head *head)
{
    int i;

    if (value->size != sizeof *head + (size_t)r->old->size)
        return false;
    memcpy(head, value->data, sizeof *head);
    for (i = 0; i < r->old->size; i++)
        theirs[i] = ((const char *)value->data)[sizeof *head + (size_t)i] != 0;
    return head->number > atomic_load(&r->old->parted);
}

/* Who has the same list is in the same call. True: the lists differ; into words. */
static bool compare_list(tti_refused *r, int rank, const bool *theirs, const list_head *head)
{
    tutti_group *old = r->old;
    char         what[TTI_GROUP_NAME_MAX + 32], words[TTI_AGREE_WORDS_MAX];

    if (memcmp(theirs, r->excluded, (size_t)old->size * sizeof *theirs) == 0) {
        tti_refused_meet(old, head->number);
        return false;
    }
    meet_odd(old, head);
    snprintf(what, sizeof what, "shrink_group on group '%s'", old->name);
    tti_agreement_word_lists(what, old->size, old->rank, r->excluded, rank, theirs, words);
    r->status = TUTTI_E_MISMATCH;
    r->parted = true;
    tti_clip(r->words, sizeof r->words, "%s", words);
    return true;
}

/* What rank has passed, as take_list() has it; false: nothing that counts. */
static bool get_list(const tti_refused *r, int rank, bool *theirs, list_head *head, tutti_status *st_out)
{
    const int64_t until_ns = tti_port_now(r->port) + LOOK_NS;
    char          key[KEY_MAX];
    const char   *one = key;
    tutti_bytes   value = { 0 };
    bool          there = false;
    tutti_status  st;

    snprintf(key, sizeof key, LIST_KEY, rank);
    st = tti_store_check_until(r->old->store, &one, 1, until_ns, &there);
    if (st == TUTTI_OK && there)
        st = tti_store_get_until(r->old->store, key, until_ns, &value);
    there = st == TUTTI_OK && there && take_list(r, &value, theirs, head);
    tutti_bytes_free(&value);
    *st_out = st;
    return there;
}

/* Whether rank's list is another one, and counts; *unread_out: it is not known. */
static bool read_list(tti_refused *r, int rank, bool *unread_out)
{
    bool        *theirs = malloc((size_t)r->old->size * sizeof *theirs);
    list_head    head;
    tutti_status st = TUTTI_E_NOMEM;
    bool         differs = theirs != NULL && get_list(r, rank, theirs, &head, &st) && compare_list(r, rank, theirs, &head);

    free(theirs);
    if (differs && r->counts != NULL && !r->counts(r->context, rank, r->status, r->words)) {
        differs = false;
        st = TUTTI_E_REMOTE;
    }
    *unread_out = *unread_out || st != TUTTI_OK;
    return differs;
}

static bool find_list(tti_refused *r)
{
    int64_t n_passed = 0;
    bool    unread = false;
    int     rank;

    if (tti_store_add_until(r->old->store, LISTS_KEY, 0, tti_port_now(r->port) + LOOK_NS, &n_passed) != TUTTI_OK || n_passed == r->n_passed)
        return false;
    for (rank = 0; rank < r->old->size && !tti_looking_is_over(&r->looking); rank++)
        if (is_looked_at(r, rank) && read_list(r, rank, &unread))
            return true;
    if (!unread && rank == r->old->size)
        r->n_passed = n_passed; /* else all are read again */
    return false;
}

/* ---- rivals ---- */

/* Whether rank, which this one excludes, excludes this one; then rival says so. *unread_out: it is not known. */
static bool is_rival(tti_refused *r, int rank, bool *unread_out)
{
    const tutti_group *old = r->old;
    bool              *theirs = malloc((size_t)old->size * sizeof *theirs);
    char               text[TTI_AGREE_LIST_MAX];
    list_head          head;
    tutti_status       st = TUTTI_E_NOMEM;
    const bool         is = theirs != NULL && get_list(r, rank, theirs, &head, &st) && theirs[old->rank];

    if (is)
        snprintf(r->rival, sizeof r->rival, "; rank %d, which this one excludes, excludes this one: it passed %s", rank,
                 tti_agreement_list_text(old->size, theirs, text));
    free(theirs);
    *unread_out = *unread_out || st != TUTTI_OK;
    return is;
}

/* Only for words: whoever answers for a list goes on with those that have it, whatever others pass. */
static void find_rival(tti_refused *r)
{
    const int64_t until_ns = tti_port_now(r->port) + LOOK_NS;
    int64_t       n_passed = 0;
    bool          unread = false;
    int           rank;

    if (r->excluded == NULL || r->compares || atomic_load(&r->has_rival))
        return;
    r->passes = r->passes || tti_refused_pass(r->old, r->excluded, until_ns) == TUTTI_OK;
    if (!r->passes || tti_store_add_until(r->old->store, LISTS_KEY, 0, until_ns, &n_passed) != TUTTI_OK || n_passed == r->n_passed)
        return;
    for (rank = 0; rank < r->old->size && !tti_looking_is_over(&r->looking); rank++)
        if (r->excluded[rank] && is_rival(r, rank, &unread)) {
            atomic_store_explicit(&r->has_rival, true, memory_order_release);
            return;
        }
    if (!unread && rank == r->old->size)
        r->n_passed = n_passed; /* else all are read again */
}

const char *tti_refused_rival(const tti_refused *r)
{
    return r != NULL && atomic_load_explicit(&r->has_rival, memory_order_acquire) ? r->rival : "";
}

/* ---- looking ---- */

static bool find(void *context)
{
    tti_refused *r = context;

    if (find_word(r) || (r->compares && find_list(r)))
        return true;
    find_rival(r);
    return false;
}

tti_refused *tti_refused_begin(tutti_group *old, const bool *excluded, bool compares, int64_t deadline_ns, tti_refused_counts *counts,
                               void *context)
{
    const int64_t until_ns = deadline_ns == TTI_FOREVER ? TTI_FOREVER : deadline_ns - 2 * LOOK_NS;
    tti_refused  *r = old->store != NULL ? calloc(1, sizeof *r) : NULL;

    if (r == NULL)
        return NULL;
    r->old = old;
    r->excluded = excluded;
    r->compares = compares;
    r->counts = counts;
    r->context = context;
    r->port = old->runner->port;
    r->deadline_ns = deadline_ns;
    if (tti_looking_begin(&r->looking, "tutti-refused", r->port, old->size, until_ns, find, r) == TUTTI_OK)
        return r;
    tti_log(TTI_LOG_DEBUG, "group '%s': nobody looks for who refuses to shrink it: %s", old->name, tutti_last_error());
    free(r);
    return NULL;
}

bool tti_refused_found(const tti_refused *r, tutti_status *st_out, bool *parted_out, const char **words_out)
{
    if (r == NULL || !tti_looking_found(&r->looking))
        return false;
    *st_out = r->status;
    *parted_out = r->parted;
    *words_out = r->words;
    return true;
}

const _Atomic bool *tti_refused_flag(const tti_refused *r)
{
    return r != NULL ? &r->looking.found : NULL;
}

void tti_refused_end(tti_refused *r, tutti_status st)
{
    if (r == NULL)
        return;
    tti_looking_end(&r->looking);
    if (r->passes && st != TUTTI_OK) {
        char words[TTI_GROUP_WORDS_MAX];

        snprintf(words, sizeof words, "%s", tutti_last_error());
        tti_refused_pass_no_more(r->old, r->deadline_ns);
        (void)tti_fail(st, "%s", words);
    }
    free(r);
}

/* Another member may have read what this one has not read yet, and have ended the wait of both: st is what it made of that. On the
 * waiting thread, when the looking one has ended. True: now this one has read it. The last error stays. */
static bool look_once_more(tti_refused *r, tutti_status st)
{
    char words[TTI_GROUP_WORDS_MAX];
    bool found;

    if (st == TUTTI_E_TIMEOUT)
        return false;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    atomic_store(&r->looking.over, false);
    found = find_word(r) || (r->compares && find_list(r));
    (void)tti_fail(st, "%s", words);
    return found;
}

tutti_status tti_refused_conclude(tti_refused *r, tutti_status st)
{
    if (r == NULL)
        return st;
    tti_looking_end(&r->looking);
    if (st != TUTTI_OK && (tti_looking_found(&r->looking) || look_once_more(r, st)))
        st = tti_fail(r->status, "%s", r->words);
    free(r);
    return st;
}
