/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rows.c - blocks of seeds, and a table that remembers which have run.
 *
 * A block that the table has a row for is not run again, so that the next call goes on where this one ended. A row is
 * written when its block is done, by one write at the end of the file, so that several may write to it. Blocks are handed out by
 * a counter that the jobs share. */
#include "simulation/seeds.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROW_MAX = 1024 };

static const char head[] = "from\tto\tcommit\tseconds\tturns\tvirtual_s\tharmless\tresults\terrors\tshrunk";

/* One block, and whether the table has it. */
typedef struct block {
    uint64_t from, to;
    bool     done;
} block;

static block *make_blocks(const tt_options *o, size_t *n_out)
{
    const size_t n = (size_t)((o->to - o->from) / o->block + 1);
    block       *blocks = calloc(n, sizeof *blocks);
    size_t       i;

    for (i = 0; blocks != NULL && i < n; i++) {
        blocks[i].from = o->from + i * o->block;
        blocks[i].to = blocks[i].from + o->block - 1 < o->to ? blocks[i].from + o->block - 1 : o->to;
    }
    *n_out = n;
    return blocks;
}

static void mark_done(block *blocks, size_t n, uint64_t from, uint64_t to)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (blocks[i].from >= from && blocks[i].to <= to)
            blocks[i].done = true;
}

/* What the table has. A file that is not there yet gets its heading. */
static bool read_table(const char *path, block *blocks, size_t n)
{
    FILE    *file = fopen(path, "a+e");
    char     line[ROW_MAX];
    uint64_t from, to;
    int      i;

    if (file == NULL)
        return false;
    rewind(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%" SCNu64 "\t%" SCNu64 "\t", &from, &to) == 2)
            mark_done(blocks, n, from, to);
    if (ftell(file) == 0) {
        fputs(head, file);
        for (i = 0; i < TUTTI_FAULT_KINDS; i++)
            fprintf(file, "\t%s", tutti_fault_name((tutti_fault_kind)i));
        fputs("\twrong\twrong_seeds\n", file);
    }
    return fclose(file) == 0;
}

/* "170,984", or "-" */
static void add_wrong(const tt_tally *t, char *row, size_t used)
{
    uint64_t i;

    if (t->wrong == 0)
        snprintf(row + used, ROW_MAX - used, "-");
    for (i = 0; i < t->wrong && i < TT_WRONG_KEPT; i++)
        used += (size_t)snprintf(row + used, ROW_MAX - used, "%s%" PRIu64, i > 0 ? "," : "", (uint64_t)t->wrong_seeds[i]);
}

static bool write_row(const tt_options *o, const block *b, const tt_tally *t, double took_s)
{
    const int fd = open(o->rows, O_WRONLY | O_APPEND | O_CLOEXEC);
    char      row[ROW_MAX];
    int       used, i;
    bool      good;

    used = snprintf(row, sizeof row,
                    "%" PRIu64 "\t%" PRIu64 "\t%s\t%.1f\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64,
                    b->from, b->to, o->commit, took_s, (uint64_t)t->turns, (uint64_t)t->virtual_ms / 1000, (uint64_t)t->harmless,
                    (uint64_t)t->results, (uint64_t)t->errors, (uint64_t)t->shrunk);
    for (i = 0; i < TUTTI_FAULT_KINDS; i++)
        used += snprintf(row + used, sizeof row - (size_t)used, "\t%" PRIu64, (uint64_t)t->faults[i]);
    used += snprintf(row + used, sizeof row - (size_t)used, "\t%" PRIu64 "\t", (uint64_t)t->wrong);
    add_wrong(t, row, (size_t)used);
    strncat(row, "\n", sizeof row - strlen(row) - 1);
    good = fd >= 0 && write(fd, row, strlen(row)) == (ssize_t)strlen(row);
    if (fd >= 0)
        close(fd);
    return good;
}

/* Take blocks until there are no more, or time is up: a process's exit code. */
static int work(const tt_options *o, block *blocks, size_t n, double until, _Atomic uint64_t *next, tt_tally *sum)
{
    uint64_t i;

    while ((until <= 0 || tt_seconds() < until) && (i = (*next)++) < n) {
        const double before = tt_seconds();
        tt_tally    *t;

        if (blocks[i].done)
            continue;
        t = tt_tally_make(blocks[i].from);
        tt_run_seeds(blocks[i].to, 0, o, t);
        sum->results += blocks[i].to - blocks[i].from + 1;
        sum->wrong += t->wrong;
        if (!write_row(o, &blocks[i], t, tt_seconds() - before))
            return 2;
        tt_tally_free(t);
    }
    return 0;
}

static bool await_jobs(int n_jobs)
{
    bool good = true;
    int  status;

    for (; n_jobs > 0; n_jobs--)
        good = wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && good;
    return good;
}

bool tt_run_blocks(const tt_options *o, double began, uint64_t *n_seeds_out, uint64_t *wrong_out)
{
    size_t       n;
    block       *blocks = make_blocks(o, &n);
    tt_tally    *sum = tt_tally_make(0);
    const double until = o->for_s > 0 ? began + (double)o->for_s : 0;
    bool         good = blocks != NULL && read_table(o->rows, blocks, n);
    int          i;

    if (!good)
        fprintf(stderr, "simulation: cannot use the table '%s': %s\n", o->rows, strerror(errno));
    for (i = 0; good && i < o->jobs; i++) {
        const pid_t pid = fork();

        if (pid == 0)
            _exit(work(o, blocks, n, until, &sum->next, sum));
        good = pid > 0;
    }
    if (!await_jobs(good ? o->jobs : i > 0 ? i - 1 : 0) && good) {
        fprintf(stderr, "simulation: not all blocks could be run, or written to '%s'\n", o->rows);
        good = false;
    }
    *n_seeds_out = sum->results;
    *wrong_out = sum->wrong;
    tt_tally_free(sum);
    free(blocks);
    return good;
}
