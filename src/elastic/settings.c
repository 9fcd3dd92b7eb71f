/* SPDX-License-Identifier: BSD-3-Clause
 *
 * settings.c - whether all launchers of a job were given the same.
 *
 * Why     A job of several hosts is started by one command on each. Where they differ nothing breaks at once: ranks of one host
 *         go on after a failure which ends those of the other, or two jobs that were meant to be apart are one.
 * How     The first launcher that comes to the job's store leaves a text there, a line for each setting; the others compare
 *         theirs with it. Whoever differs says so, with both values, and sends its own text to all (news.c): those that came
 *         before compare theirs with that. Who came with the same values as the first has nothing to send.
 * True    It is a warning: what differs may be meant. What is in the store is only compared and shown, up to a bound. */
#include "elastic/settings.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store.h"

#define KEY "tutti/launcher/settings"
#define HEAD "tutti settings\n" /* of what is sent: nothing else that launchers tell begins so */

enum { TEXT_MAX = TTI_SETTINGS_TEXT_MAX - sizeof HEAD, VALUE_MAX = 80, SETTINGS = 4 };

/* One line, "--on-failure=keep". */
typedef struct setting {
    const char *name;
    char        value[VALUE_MAX];
} setting;

static void list(const tti_settings *own, setting out[SETTINGS])
{
    out[0].name = "--nnodes";
    snprintf(out[0].value, VALUE_MAX, "%d", own->nnodes);
    out[1].name = "--nproc-per-node";
    snprintf(out[1].value, VALUE_MAX, "%d", own->nproc);
    out[2].name = "--on-failure";
    snprintf(out[2].value, VALUE_MAX, "%s", own->keep ? "keep" : "kill");
    out[3].name = "--rdzv-id";
    snprintf(out[3].value, VALUE_MAX, "%s", own->run_id != NULL ? own->run_id : "");
}

static void write_all(const tti_settings *own, const setting *all, char out[TEXT_MAX])
{
    size_t used = (size_t)snprintf(out, TEXT_MAX, "host '%.64s' (node %d)\n", own->host, own->node);
    int    i;

    for (i = 0; i < SETTINGS && used < TEXT_MAX; i++)
        used += (size_t)snprintf(out + used, TEXT_MAX - used, "%s=%s\n", all[i].name, all[i].value);
}

/* What a text says of name: false, nothing. Its line begins with it. */
static bool find(const char *text, const char *name, char value_out[VALUE_MAX])
{
    const size_t n = strlen(name);
    const char  *line;

    for (line = strchr(text, '\n'); line != NULL; line = strchr(line + 1, '\n')) {
        if (strncmp(line + 1, name, n) != 0 || line[1 + n] != '=')
            continue;
        snprintf(value_out, VALUE_MAX, "%.*s", (int)strcspn(line + n + 2, "\n"), line + n + 2);
        return true;
    }
    return false;
}

static const char *shown(const char *value)
{
    return value[0] != '\0' ? value : "not given";
}

static bool compare(const tti_settings *own, const setting *all, const char *first, char out[TTI_SETTINGS_WORDS_MAX])
{
    const int where = (int)strcspn(first, "\n");
    size_t    used = 0;
    char      theirs[VALUE_MAX];
    int       i;

    for (i = 0; i < SETTINGS; i++) {
        if (!find(first, all[i].name, theirs) || strcmp(theirs, all[i].value) == 0 || used >= TTI_SETTINGS_WORDS_MAX)
            continue;
        used += (size_t)snprintf(out + used, TTI_SETTINGS_WORDS_MAX - used,
                                 "%s%s: %s on %.*s, %s here, on host '%.64s' (node %d)", used == 0 ? "" : "; ", all[i].name,
                                 shown(theirs), where < VALUE_MAX ? where : VALUE_MAX, first, shown(all[i].value), own->host,
                                 own->node);
    }
    if (used > 0 && used < TTI_SETTINGS_WORDS_MAX)
        snprintf(out + used, TTI_SETTINGS_WORDS_MAX - used, "\n  next: give all launchers of a job the same");
    return used > 0;
}

bool tti_settings_differ(tutti_store *store, const tti_settings *own, int64_t deadline_ns, char words_out[TTI_SETTINGS_WORDS_MAX])
{
    setting     all[SETTINGS];
    char        text[TEXT_MAX], first[TEXT_MAX];
    tutti_bytes kept = { 0 };

    list(own, all);
    write_all(own, all, text);
    if (tti_store_compare_set_until(store, KEY, "", 0, text, strlen(text), deadline_ns, &kept) != TUTTI_OK)
        return false;
    snprintf(first, sizeof first, "%.*s", (int)(kept.size < TEXT_MAX ? kept.size : TEXT_MAX - 1), (const char *)kept.data);
    tutti_bytes_free(&kept);
    return compare(own, all, first, words_out);
}

size_t tti_settings_write(const tti_settings *own, char out[TTI_SETTINGS_TEXT_MAX])
{
    setting all[SETTINGS];
    char    text[TEXT_MAX];

    list(own, all);
    write_all(own, all, text);
    return (size_t)snprintf(out, TTI_SETTINGS_TEXT_MAX, HEAD "%s", text);
}

bool tti_settings_heard(const tti_settings *own, const void *data, size_t bytes, char words_out[TTI_SETTINGS_WORDS_MAX])
{
    const size_t n = sizeof HEAD - 1;
    setting      all[SETTINGS];
    char         text[TEXT_MAX];

    if (bytes <= n || bytes - n >= TEXT_MAX || memcmp(data, HEAD, n) != 0)
        return false;
    memcpy(text, (const char *)data + n, bytes - n);
    text[bytes - n] = '\0';
    list(own, all);
    return compare(own, all, text, words_out); /* own's own is the same in everything */
}
