/* SPDX-License-Identifier: BSD-3-Clause
 *
 * text.c - files to one text. Names are put in order by their bytes, whatever the language of the machine, so that the
 * same files are the same text everywhere. */
#include "text.h"

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tutti/group.h>

#include "examples/common/say.h"

static char docs[] = TEXT_ROOT "/docs", headers[] = TEXT_ROOT "/include"; /* not const: fts_open() wants it so */

/* All of f behind what there is. */
static bool append_file(text *t, FILE *f, const char *path)
{
    const int64_t before = t->n;
    int64_t room = before;

    for (;;) {
        if (t->n == room) {
            uint8_t *more = realloc(t->bytes, (size_t)(room = 2 * room + 65536));

            if (more == NULL)
                return say("no memory for %" PRId64 " bytes of text", room);
            t->bytes = more;
        }
        t->n += (int64_t)fread(t->bytes + t->n, 1, (size_t)(room - t->n), f);
        if (t->n < room)
            break;
    }
    t->files++;
    if (ferror(f))
        return say("cannot read '%s': %s", path, strerror(errno));
    return t->n > before || say("'%s' is empty", path);
}

static bool append(text *t, const char *path)
{
    FILE *f = fopen(path, "re");
    bool ok;

    if (f == NULL)
        return say("cannot open '%s': %s", path, strerror(errno));
    ok = append_file(t, f, path);
    fclose(f);
    return ok;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool is_prose(const FTSENT *e)
{
    const char *dot = strrchr(e->fts_name, '.');

    return e->fts_info == FTS_F && e->fts_statp->st_size > 0 && dot != NULL &&
           (strcmp(dot, ".md") == 0 || strcmp(dot, ".h") == 0);
}

static bool append_repository(text *t)
{
    char *const roots[] = { docs, headers, NULL };
    FTS *tree = fts_open(roots, FTS_PHYSICAL, by_name);
    bool ok = true;
    FTSENT *e;

    if (tree == NULL)
        return say("cannot look into '%s': %s", docs, strerror(errno));
    while (ok && (e = fts_read(tree)) != NULL)
        ok = !is_prose(e) || append(t, e->fts_accpath);
    fts_close(tree);
    if (ok && t->n == 0)
        return say("'%s' has no pages\n  next: name files to learn from", docs);
    return ok;
}

static bool read_all(text *t, char *const *files, int n_files)
{
    for (int i = 0; i < n_files; i++)
        if (!append(t, files[i]))
            return false;
    return n_files > 0 || append_repository(t);
}

/* FNV-1a. */
static uint64_t checksum(const uint8_t *bytes, int64_t n)
{
    uint64_t sum = 0xcbf29ce484222325u;

    for (int64_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3u;
    return sum;
}

bool text_open(text *t, char *const *files, int n_files, int rank)
{
    int64_t n = rank == 0 && read_all(t, files, n_files) ? t->n : -1;

    TRY(tutti_broadcast(TUTTI_SPAN(&n, 1), 0, NULL));
    if (n < 0)
        return false;
    if (rank != 0)
        t->bytes = malloc((size_t)n);
    if (t->bytes == NULL)
        return say("no memory for %" PRId64 " bytes of text", n);
    t->n = n;
    TRY(tutti_broadcast(TUTTI_SPAN(t->bytes, n), 0, NULL));
    t->train = n - n / 10;
    t->sum = checksum(t->bytes, n);
    return true;
}

void text_close(text *t)
{
    free(t->bytes);
}
