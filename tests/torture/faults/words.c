/* SPDX-License-Identifier: BSD-3-Clause
 *
 * words.c - whom an error accuses.
 *
 * Why     An error that has the right number somewhere may accuse another rank beside it, and whoever reads it looks there.
 * How     Words are made of mentions: "rank 3", or a list, "ranks 1, 3 and 5". What a mention is follows from what stands
 *         before it, and from its clause: as far as the next mention, the next ";", the next ": ", or the end of the line.
 *             accused   its clause says that it is gone, has left, has ended, is stopped, silent or unreachable, that it is
 *                       held by a debugger, or writes nonsense; or it stands behind "lost the connection to", "about" (what another
 *                       one reported TUTTI_E_PEER for) or "let", which says that it be let go on; or the link or connection to it
 *                       "was cut", "was closed" or "failed"
 *             missed    it did not come, answer, join, receive or say; or no message from it, no connection to it
 *             neutral   all others: who speaks ("on rank 2"), who tells ("rank 1 reported"), who waits, who has come, what
 *                       was entered last, which ranks are of a group
 *         Who is accused outweighs who is missed: a rank that waits for a stopped one is missed, too, and that is a fact. If
 *         nobody is accused, those that are missed are.
 * True    An error names the right rank if it accuses at least one that is guilty, and nobody who is not.
 * Ends    A connection has two ends, of which neither can tell who cut it. Where it is connections that were taken from a rank,
 *         "rank 2 reported: the connection to rank 1 was cut" is told by the guilty one, and of a connection of its own: it is
 *         accused, and rank 1 is not. Where a rank has died it does not tell, and rank 1 is accused.
 * Before  At the first run of this rule (8be5d0f) such words were "rank 1 has left or died, or something on the way has cut the
 *         connection to it", also where rank 1 read them, and counted against it; and the name of a call, "recv from rank 1, tag 5 on
 *         group '0' failed", was taken for an accusation, which was a mistake here.
 *         At 546b215 "cannot hand shared memory to rank 3" was missing here: a row that is "unnamed" for it (seed 9641000) names the right one.
 * Fails   Words of a form that is not here are neutral, so that an error of such words alone accuses nobody, and that is shown. */
#include "faults.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { BEFORE_MAX = 64 };

/* What a clause says of the rank that it begins with. */
static const char *const accusing[] = {
    " is gone",         " has left",        " left while",      " has ended",        " ended with",      " was ended by",
    " has given up",    " is stopped",      " been stopped",    " sign of life",     " is unreachable",  " held by a debugger",
    " wrote nonsense",  " has closed its",  " gave up while",    " died",            " stopped by a signal",
}, *const missing[] = {
    " not come",        " not answer",      " not joined",      " not say",          " not finish",      " not receive",
    " was not expected",
};

/* The same of a link or a connection to it. */
static const char *const losing[] = { " was cut", " was closed", " failed" };

/* What stands before a mention. */
static const char *const accusing_before[] = { "lost the connection to ", "let " };
static const char *const missing_before[] = {
    "not arrived: ",   "not finished: ", "not joined: ", "not taken by ",   "no connection to ", "no connection yet to ",
    "cannot connect to ", "cannot join ", "cannot reach the local socket of ", "cannot hand shared memory to ",
    "cannot receive shared memory from ",
};

static bool ends_in(const char *words, const char *at, const char *before)
{
    const size_t n = strlen(before);

    return (size_t)(at - words) >= n && strncmp(at - n, before, n) == 0;
}

static bool any_ends_in(const char *words, const char *at, const char *const *list, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (ends_in(words, at, list[i]))
            return true;
    return false;
}

/* Whether text stands in the same clause before at: "no message with tag 5 came from rank 1" has more between the two. */
static bool is_before(const char *words, const char *at, const char *text)
{
    char        clause[BEFORE_MAX + 1];
    const char *from = at - words > BEFORE_MAX ? at - BEFORE_MAX : words;
    const char *p;

    for (p = at; p > from && strchr(";:\n", p[-1]) == NULL; p--)
        continue;
    memcpy(clause, p, (size_t)(at - p));
    clause[at - p] = '\0';
    return strstr(clause, text) != NULL;
}

/* One mention: where it begins and ends, and of whom it is. */
typedef struct mention {
    const char *at, *end;
    bool        ranks[RANKS_MAX + 1]; /* [RANKS_MAX]: one that no world here has */
} mention;

/* "1, 3 and 5", or "1, 3 and 2 more", of which the last is no rank's. Where the list ends. */
static const char *read_list(const char *at, bool *ranks)
{
    const char *listed = at;
    char       *end;

    for (;;) {
        const long rank = strtol(at, &end, 10);

        if (strncmp(end, " more", 5) == 0)
            return listed;
        ranks[rank < RANKS_MAX ? rank : RANKS_MAX] = true;
        listed = end;
        at = end + (strncmp(end, ", ", 2) == 0 ? 2 : strncmp(end, " and ", 5) == 0 ? 5 : 0);
        if (at == listed || !isdigit((unsigned char)*at))
            return listed;
    }
}

/* The next one from at on. */
static bool find_mention(const char *at, mention *out)
{
    while ((at = strstr(at, "rank")) != NULL) {
        const char *number = at + 4 + (at[4] == 's');

        if (number[0] == ' ' && isdigit((unsigned char)number[1])) {
            *out = (mention){ .at = at };
            out->end = read_list(number + 1, out->ranks);
            return true;
        }
        at += 4;
    }
    return false;
}

/* "(host 'n2', pid 40112)" is passed over, for what a host is called says nothing. */
static const char *skip_whereabouts(const char *at)
{
    const char *end = strncmp(at, " (", 2) == 0 ? strchr(at, ')') : NULL;

    return end != NULL ? end + 1 : at;
}

static bool clause_says(const mention *m, const char *const *list, size_t n)
{
    const char *from = skip_whereabouts(m->end), *to;
    mention     next;
    size_t      i;

    for (to = from; *to != '\0' && *to != ';' && *to != '\n' && !(to[0] == ':' && to[1] == ' '); to++)
        continue;
    if (find_mention(from, &next) && next.at < to)
        to = next.at;
    for (i = 0; i < n; i++) {
        const char *said = strstr(from, list[i]);

        if (said != NULL && said < to)
            return true;
    }
    return false;
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* "rank 1 (...) reported TUTTI_E_PEER about rank 3": what the other one could not go on for. */
static bool is_reported(const char *words, const mention *m, bool *dead_out)
{
    if (!ends_in(words, m->at, " about "))
        return false;
    *dead_out = is_before(words, m->at, "TUTTI_E_PEER") || is_before(words, m->at, "TUTTI_E_NETWORK");
    return true;
}

static bool tells_of_connection(const char *words, const mention *m)
{
    return (ends_in(words, m->at, "link to ") || ends_in(words, m->at, "connection to ")) &&
           (clause_says(m, losing, COUNT(losing)) || ends_in(words, m->at, "lost the connection to "));
}

/* "rank 2 reported: ", or a line that begins with "rank 2: ": what follows is what that one says. */
static bool begins_to_tell(const char *words, const mention *m)
{
    const char *said = skip_whereabouts(m->end);

    return strncmp(said, " reported: ", 11) == 0 || (ends_in(words, m->at, "\n  ") && strncmp(said, ": ", 2) == 0);
}

static bool is_guilty(const mention *m, const bool *guilty, int size)
{
    int r;

    for (r = 0; r < size; r++)
        if (m->ranks[r] && guilty[r])
            return true;
    return false;
}

static bool accuses(const char *words, const mention *m)
{
    bool dead = false;

    if (ends_in(words, m->at, "on "))
        return false;
    return clause_says(m, accusing, COUNT(accusing)) || any_ends_in(words, m->at, accusing_before, COUNT(accusing_before)) ||
           tells_of_connection(words, m) || (is_reported(words, m, &dead) && dead);
}

static bool misses(const char *words, const mention *m)
{
    bool dead;

    if (ends_in(words, m->at, "on "))
        return false;
    return clause_says(m, missing, COUNT(missing)) || any_ends_in(words, m->at, missing_before, COUNT(missing_before)) ||
           is_reported(words, m, &dead) ||
           (ends_in(words, m->at, " from ") && (is_before(words, m->at, "no message") || is_before(words, m->at, "no signal"))) ||
           (ends_in(words, m->at, "heard of ") && is_before(words, m->at, "nothing was")) ||
           (ends_in(words, m->at, " to ") && is_before(words, m->at, "sending"));
}

static void add(bool *all, const bool *some)
{
    int r;

    for (r = 0; r <= RANKS_MAX; r++)
        all[r] = all[r] || some[r];
}

tt_verdict tt_words_judge(const char *words, const bool *guilty, int size, bool cut)
{
    bool        accused[RANKS_MAX + 1] = { false }, missed[RANKS_MAX + 1] = { false };
    const bool *whom = missed;
    bool        right = false, wrong = false;
    mention     m, teller = { .at = NULL };
    const char *at;
    int         r;

    for (at = words; find_mention(at, &m); at = m.end)
        if (begins_to_tell(words, &m))
            teller = m;
        else if (cut && tells_of_connection(words, &m) && is_guilty(&teller, guilty, size))
            add(accused, teller.ranks);
        else if (accuses(words, &m))
            add(accused, m.ranks);
        else if (misses(words, &m))
            add(missed, m.ranks);
    for (r = 0; r <= RANKS_MAX; r++)
        if (accused[r])
            whom = accused;
    for (r = 0; r <= RANKS_MAX; r++) {
        right = right || (whom[r] && r < size && guilty[r]);
        wrong = wrong || (whom[r] && !(r < size && guilty[r]));
    }
    return wrong ? TT_ACCUSES_ANOTHER : right ? TT_ACCUSES_RIGHT : TT_ACCUSES_NOBODY;
}

bool tt_words_tell_silence(const char *words)
{
    static const char *const ways[] = { "stopped by a signal", "is unreachable", "no sign of life" };
    size_t i;

    for (i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strstr(words, ways[i]) != NULL)
            return true;
    return false;
}
