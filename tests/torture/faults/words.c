/* SPDX-License-Identifier: BSD-3-Clause
 *
 * words.c - whom an error accuses.
 *
 * Its words name ranks as "rank 3" or "ranks 1, 3"; those that "on rank 2" and "on group" name are the speaker's. */
#include "faults.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* "3" or "1, 3 and 5", from at on: whether one of them is guilty. */
static bool list_names(const char *at, const bool *guilty, int size)
{
    while (isdigit((unsigned char)*at)) {
        char      *end;
        const long rank = strtol(at, &end, 10);

        if (rank < size && guilty[rank])
            return true;
        at = end;
        if (strncmp(at, ", ", 2) == 0)
            at += 2;
        else if (strncmp(at, " and ", 5) == 0)
            at += 5;
        else
            break;
    }
    return false;
}

static bool is_speaker(const char *words, const char *at)
{
    return at - words >= 3 && strncmp(at - 3, "on ", 3) == 0;
}

bool tt_words_name(const char *words, const bool *guilty, int size)
{
    const char *at = words;

    while ((at = strstr(at, "rank")) != NULL) {
        const char *number = at + 4 + (at[4] == 's');

        if (*number == ' ' && !is_speaker(words, at) && list_names(number + 1, guilty, size))
            return true;
        at += 4;
    }
    return false;
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
