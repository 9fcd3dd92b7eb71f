/* SPDX-License-Identifier: BSD-3-Clause
 *
 * foreign.c - words for what code that is not the library's does against its contract.
 *
 * Why     A plug-in that fails without words leaves those of an older failure standing, which are then read as its own; a status
 *         that nobody knows is no failure for who compares with those that there are; and what it has promised, and not given, is a
 *         pointer that somebody follows.
 * How     Words count: each failure that this thread words adds one. If none was added while the foreign code ran, it has said
 *         nothing. What a thread of its own has worded does not count, as nobody here can read it. */
#include "base/foreign.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

enum { WORDS_MAX = 1024 };

#define ASK "\n  next: ask those who have made it; with TUTTI_LOG=info the log says which file a plug-in is"

tutti_status tti_foreign_status(const char *kind, const char *name, const char *entry, tutti_status st, uint32_t said)
{
    const bool is_known = st >= TUTTI_OK && st <= TUTTI_E_EMPTY;
    const bool has_words = tti_words_said() != said;
    char       words[WORDS_MAX];

    if (st == TUTTI_OK || (is_known && has_words))
        return st;
    if (is_known)
        return tti_fail(st, "%s '%s' is broken: its entry '%s' has failed with %s, and has no words for it" ASK, kind, name, entry,
                        tutti_status_name(st));
    if (!has_words)
        return tti_fail(TUTTI_E_BACKEND, "%s '%s' is broken: its entry '%s' has failed with status %d, which there is not, and has no "
                        "words for it" ASK, kind, name, entry, (int)st);
    snprintf(words, sizeof words, "%.*s", (int)strcspn(tutti_last_error(), "\n"), tutti_last_error());
    return tti_fail(TUTTI_E_BACKEND, "%s '%s' is broken: its entry '%s' has failed with status %d, which there is not: %s" ASK, kind, name,
                    entry, (int)st, words);
}

tutti_status tti_foreign_broken(const char *kind, const char *name, const char *entry, const char *what)
{
    return tti_fail(TUTTI_E_BACKEND, "%s '%s' is broken: its entry '%s' has succeeded, and %s" ASK, kind, name, entry, what);
}
