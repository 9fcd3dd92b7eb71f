/* SPDX-License-Identifier: BSD-3-Clause
 *
 * clip.c - words of a failure where there may be no room for all of them.
 *
 * Why     Words quote words: of a rank that reported them, of the members that something is wrong with. What they end with, the next
 *         step, is what their reader needs most, and what a plain cut would take first.
 * How     What comes first is kept, as much as there is room for, then "..." and the last "next:" with what is behind it. A line is
 *         cut where it must be: how it begins says more than that it is not there. A next step that leaves no room for others goes.
 * Quote   A line that begins "rank 3: " is what that rank said: the last one is the cause, of which all before it are consequences, each
 *         rank's that passed it on. So what is before it loses its end first, down to a quarter of the room.
 * Limit   Words of more than WHOLE_MAX bytes are cut there first. */
#include "base/clip.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { WHOLE_MAX = 2 * TTI_LAST_ERROR_MAX, QUOTING_MIN = 48 /* less room is not shared */ };

#define NEXT  "\n  next: "
#define QUOTE "\n  rank "
#define MARK  "..."

/* The last next step of text, with the end of the line before it; NULL: it has none. */
static const char *find_next(const char *text)
{
    const char *found = NULL, *at = text;

    while ((at = strstr(at, NEXT)) != NULL)
        found = at++;
    return found;
}

/* How many of text's first bytes there is room for, without a part of a character. */
static size_t whole_characters(const char *text, size_t room)
{
    size_t n = room;

    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

/* The last line of another rank's words before a next step, with the end of the line before it; NULL: there is none. */
static const char *find_quote(const char *text)
{
    const char *next = strstr(text, NEXT), *at = text, *found = NULL, *behind;

    while ((at = strstr(at, QUOTE)) != NULL && (next == NULL || at < next)) {
        behind = at + strlen(QUOTE);
        behind += strspn(behind, "0123456789");
        if (behind > at + strlen(QUOTE) && strncmp(behind, ": ", 2) == 0)
            found = at;
        at++;
    }
    return found;
}

/* The first n bytes or fewer, and that something is not there. Where what comes next begins. */
static size_t put_cut(char *out, const char *text, size_t n)
{
    const size_t kept = whole_characters(text, n);

    memcpy(out, text, kept);
    memcpy(out + kept, MARK, strlen(MARK));
    return kept + strlen(MARK);
}

/* text is longer than that. A next step of tail_most bytes or more goes: what was wrong comes first. */
static void shorten_end(char *out, size_t size, const char *text, size_t tail_most)
{
    const size_t mark = strlen(MARK);
    const char  *next = find_next(text);
    size_t       tail = next != NULL ? strlen(next) : 0, n;

    assert(size > mark + 1);
    if (tail + mark >= tail_most)
        tail = 0;
    n = put_cut(out, text, size - 1 - mark - tail);
    memcpy(out + n, tail > 0 ? next : "", tail + 1);
}

/* text is longer than that. */
static void shorten(char *out, size_t size, const char *text)
{
    const char  *quote = find_quote(text);
    const size_t mark = strlen(MARK), least = size / 4;
    size_t       behind, head;

    if (size < QUOTING_MIN || quote == NULL || (size_t)(quote - text) <= least + mark) {
        shorten_end(out, size, text, size / 2);
        return;
    }
    behind = strlen(quote);
    head = size - 1 > behind + mark + least ? size - 1 - behind - mark : least;
    head = put_cut(out, text, head);
    if (behind < size - head)
        memcpy(out + head, quote, behind + 1);
    else
        shorten_end(out + head, size - head, quote, size / 2);
}

void tti_clip_args(char *out, size_t size, const char *fmt, va_list args)
{
    char         whole[WHOLE_MAX];
    const int    n = vsnprintf(whole, sizeof whole, fmt, args);
    const size_t used = n < 0 ? 0 : (size_t)n < sizeof whole ? (size_t)n : sizeof whole - 1;

    whole[used] = '\0';
    if (used < size)
        memcpy(out, whole, used + 1);
    else
        shorten(out, size, whole);
}

void tti_clip(char *out, size_t size, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    tti_clip_args(out, size, fmt, args);
    va_end(args);
}
