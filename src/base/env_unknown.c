/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env_unknown.c - a word about variables that nobody reads.
 *
 * Why     TUTTI_TRANSPROT=tcp changes nothing, and nothing says so: the job runs, only not as it was meant to.
 * How     Every variable whose name begins with TUTTI_ has to stand in the table. Names that begin with
 *         TUTTI_TEST_ are free for tests and programs. */
#include "base/env.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 48 }; /* longer names are near to nothing */

static const char prefix[] = "TUTTI_", free_prefix[] = "TUTTI_TEST_";

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Of ASCII, whatever the locale: names of the table have no other letters. */
static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* Letters to be changed, put in or left out; n: those of candidate. Both are at most NAME_MAX_BYTES long. */
static int distance(const char *word, size_t len, const char *candidate, int n)
{
    int row[NAME_MAX_BYTES + 1], corner, above, i, k;

    for (k = 0; k <= n; k++)
        row[k] = k;
    for (i = 1; i <= (int)len; i++) {
        corner = row[0];
        row[0] = i;
        for (k = 1; k <= n; k++) {
            above = row[k];
            row[k] = least(corner + (upper(word[i - 1]) != upper(candidate[k - 1])), least(above, row[k - 1]) + 1);
            corner = above;
        }
    }
    return row[n];
}

static const char *nearest(const char *name, size_t len)
{
    size_t               n, i;
    const tti_env_entry *table = tti_env_table(&n);
    const char          *found = NULL;
    int                  best = (int)(len - strlen(prefix)) / 3 + 2, d; /* from here on it is no slip */

    for (i = 0; i < n && len <= NAME_MAX_BYTES; i++) {
        const int letters = (int)strlen(table[i].name);

        if (strncmp(table[i].name, prefix, strlen(prefix)) != 0 || letters > NAME_MAX_BYTES)
            continue;
        if (abs(letters - (int)len) >= best) /* so many are to be put in, or left out, at least */
            continue;
        d = distance(name, len, table[i].name, letters);
        if (d < best) {
            best = d;
            found = table[i].name;
        }
    }
    return found;
}

static bool is_known(const char *name, size_t len)
{
    size_t               n, i;
    const tti_env_entry *table = tti_env_table(&n);

    for (i = 0; i < n; i++)
        if (strncmp(table[i].name, name, len) == 0 && table[i].name[len] == '\0')
            return true;
    return false;
}

bool tti_env_is_unknown(const char *entry, const char **near_out)
{
    const size_t len = strcspn(entry, "=");

    if (strncmp(entry, prefix, strlen(prefix)) != 0 || strncmp(entry, free_prefix, strlen(free_prefix)) == 0 ||
        is_known(entry, len))
        return false;
    *near_out = nearest(entry, len);
    return true;
}

void tti_env_tell_unknown(void)
{
    static _Atomic bool told; /* of the process, as the environment is: worlds and threads share both */
    const char         *near = NULL;
    char              **entry;

    if (atomic_exchange(&told, true))
        return;
    for (entry = environ; entry != NULL && *entry != NULL; entry++) {
        if (!tti_env_is_unknown(*entry, &near))
            continue;
        if (near != NULL)
            tti_log(TTI_LOG_WARN, "environment variable %.*s is unknown and changes nothing; did you mean %s?",
                    (int)strcspn(*entry, "="), *entry, near);
        else
            tti_log(TTI_LOG_WARN, "environment variable %.*s is unknown and changes nothing",
                    (int)strcspn(*entry, "="), *entry);
    }
}
