/* SPDX-License-Identifier: BSD-3-Clause
 *
 * curve.c - two tables with a header, a row at a time.
 *
 * True    losses.tsv has nothing of the clock in it, and all digits: the same run writes the same bytes, however often
 *         it was interrupted. Tables are flushed before a checkpoint is written, so that a run which goes on from it
 *         finds every row before. The row of held_out.tsv at the checkpoint's own step is measured anew. */
#include "curve.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "examples/common/say.h"
#include "picture.h"

enum { ROW_MAX = 256 };

static bool cannot(const curve *c)
{
    return say("cannot write into '%s': %s", c->dir, strerror(errno));
}

/* Go behind the last whole row of a step below end, and cut off what follows. A header is no number, and stays. */
static bool cut(FILE *f, int64_t end)
{
    char row[ROW_MAX];
    int64_t step;
    long at = 0;

    while (fgets(row, sizeof row, f) != NULL && strchr(row, '\n') != NULL &&
           (sscanf(row, "%" SCNd64, &step) != 1 || step < end))
        at = ftell(f);
    return fseek(f, at, SEEK_SET) == 0 && ftruncate(fileno(f), at) == 0;
}

/* end: rows of steps below it stay. */
static bool open_table(const curve *c, const char *name, const char *header, int64_t end, FILE **f_out)
{
    char path[4096];

    if (snprintf(path, sizeof path, "%s/%s", c->dir, name) >= (int)sizeof path)
        return say("--out: a name of %zu bytes is too long", strlen(c->dir));
    *f_out = fopen(path, end > 0 ? "r+e" : "we");
    if (*f_out != NULL && end > 0)
        return cut(*f_out, end) || say("cannot shorten '%s': %s", path, strerror(errno));
    if (*f_out == NULL)
        *f_out = fopen(path, "we"); /* a checkpoint without its tables: they begin here */
    return *f_out != NULL && fputs(header, *f_out) >= 0 ? true
                                                        : say("cannot write '%s': %s", path, strerror(errno));
}

bool curve_open(curve *c, const char *dir, int64_t step)
{
    c->dir = dir;
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return say("cannot make the folder '%s': %s", dir, strerror(errno));
    return open_table(c, "losses.tsv", "step\tloss\tlr\tgrad_norm\n", step > 0 ? step + 1 : 0, &c->losses) &&
           open_table(c, "held_out.tsv", "step\tseconds\tbytes\tbits_per_byte\n", step, &c->held_out);
}

bool curve_loss(curve *c, int64_t step, double loss, double lr, double norm)
{
    return c->dir == NULL || fprintf(c->losses, "%" PRId64 "\t%.17g\t%.9g\t%.9g\n", step, loss, lr, norm) > 0 ||
           cannot(c);
}

bool curve_held_out(curve *c, int64_t step, double seconds, int64_t bytes, double bits)
{
    return c->dir == NULL ||
           (fprintf(c->held_out, "%" PRId64 "\t%.1f\t%" PRId64 "\t%.9f\n", step, seconds, bytes, bits) > 0 &&
            fflush(c->held_out) == 0) || cannot(c);
}

bool curve_flush(curve *c)
{
    return c->dir == NULL || (fflush(c->losses) == 0 && fflush(c->held_out) == 0) || cannot(c);
}

bool curve_draw(curve *c, double level, const char *level_name)
{
    return c->dir == NULL || (curve_flush(c) && picture_draw(c->dir, level, level_name));
}

bool curve_close(curve *c)
{
    bool ok = c->losses == NULL || fclose(c->losses) == 0;

    ok = (c->held_out == NULL || fclose(c->held_out) == 0) && ok;
    return ok || cannot(c);
}
