/* SPDX-License-Identifier: BSD-3-Clause
 *
 * advice.c - reading words for what helps; advice.h says why. */
#include "watch/advice.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define GO_ON_HINT "; kill -CONT lets it go on"

#define AFTER_SHRINK "those that are left can go on with tutti_shrink_group()"

#define LOST "\n  next: see why that rank ended; " AFTER_SHRINK

/* Of one that lives and was given up: TUTTI_SILENT_MS. Who is told to go on itself has no hint in its words any more. */
#define LET_IT_GO_ON     "\n  next: let that rank go on: kill -CONT"
#define ALL_AFTER_SHRINK "all can go on with tutti_shrink_group() then"
#define AFTER_SILENCE    ALL_AFTER_SHRINK ", or the others without it; TUTTI_SILENT_MS says how long one may be silent"

/* "rank 3 (host 'n1', pid 40112) has left", as is known for sure; not "has left or died". */
static bool tells_of_leaving(const char *words)
{
    static const char left[] = ") has left";
    const char       *at = words;

    while ((at = strstr(at, left)) != NULL) {
        at += sizeof left - 1;
        if (strncmp(at, " or died", 8) != 0)
            return true;
    }
    return false;
}

const char *tti_advice_of_loss(const char *words)
{
    if (tells_of_leaving(words))
        return "\n  next: see why that rank destroyed its group, or its world, before the others were done with it, "
               "or whether it went on without this one in tutti_shrink_group(); " AFTER_SHRINK;
    if (strstr(words, "its process has ended") != NULL)
        return LOST;
    if (strstr(words, GO_ON_HINT) != NULL)
        return LET_IT_GO_ON "; " AFTER_SILENCE;
    if (strstr(words, "stopped by a signal") != NULL)
        return "\n  next: this rank had been stopped, and goes on: see who stops it; " ALL_AFTER_SHRINK;
    if (strstr(words, "no sign of life") != NULL || strstr(words, " unreachable: ") != NULL)
        return "\n  next: see what holds that rank up, or cuts it off; " AFTER_SILENCE;
    return LOST;
}

/* Whether the rank of whom the words before at speak is this one: the last that they name, in that line. */
static bool is_said_of(const char *words, const char *at, const char *name)
{
    const char *found = NULL, *next = words;

    while ((next = strstr(next, "rank ")) != NULL && next < at) {
        found = next;
        next += strlen("rank ");
    }
    return found != NULL && strncmp(found, name, strlen(name)) == 0 && memchr(found, '\n', (size_t)(at - found)) == NULL;
}

static void take_out(char *at, size_t n)
{
    memmove(at, at + n, strlen(at + n) + 1);
}

void tti_advice_for_oneself(int rank, char *words, size_t bytes)
{
    static const char step[] = "\n  next: this rank had been stopped, and goes on: see who stops it, or give the group a longer time-out";
    char  name[24], asked[48];
    char *at = words;
    bool  is_told = false;

    snprintf(name, sizeof name, "rank %d (", rank);
    snprintf(asked, sizeof asked, "\n  next: let %s", name);
    while ((at = strstr(at, GO_ON_HINT)) != NULL) {
        if (is_said_of(words, at, name)) {
            take_out(at, strlen(GO_ON_HINT));
            is_told = true;
        } else {
            at += strlen(GO_ON_HINT);
        }
    }
    at = strstr(words, asked);
    if (at == NULL && is_told)
        at = strstr(words, LET_IT_GO_ON);
    if (at != NULL)
        snprintf(at, bytes - (size_t)(at - words), "%s", step);
}
