/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contender.c - one rank of a contender: it measures the cells that peers.py asks for.
 *
 * Why     Contenders are compared within one run, cell by cell, so all of them have to be there all the time,
 *         and cost nothing while others are measured.
 * How     peers.py starts the ranks with the contender's own launcher. Each connects to the socket that it is
 *         given and says "hello RANK RANKS VERSION". Then it sleeps in a read until a line comes:
 *           cell OP DTYPE BYTES FORM MODE BUFFERS BUDGET_MS SEED MEMORY   all ranks get the same
 *           overlap OP ... MEMORY [PRODUCTS]                      the same words: overlap.h instead of measure.h
 *           products OP ...                                       only how many products that would take
 *         and answers "ok", on rank 0 with the figures; "cannot WHY"; or "failed WHY", after which it is not
 *         asked again. It leaves when the socket does.
 * True    One process is one thread of the loop, pinned before it joins, so that threads that a library
 *         makes are pinned, too. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "contender.h"
#include "measure.h"
#include "overlap.h"

static int rank_of_environment(void)
{
    static const char *const names[] = { "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK" };
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]) != NULL)
            return atoi(getenv(names[i]));
    return 0;
}

static bool dial(const char *path, FILE **control_out)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (strlen(path) >= sizeof to.sun_path)
        return bench_fail("the path of the socket is too long: %s", path);
    memcpy(to.sun_path, path, strlen(path) + 1);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        return bench_fail("cannot connect to '%s': %s", path, strerror(errno));
    *control_out = fdopen(fd, "r+");
    return *control_out != NULL || bench_fail("no memory");
}

/* The memory, last: an older build of tutti says nothing there, which has not been asked for any but ordinary. */
static void answer_figures(FILE *control, const bench_figures *f, int rank, bench_memory memory)
{
    if (rank != 0)
        fprintf(control, "ok\n");
    else
        fprintf(control, "ok %d %.4f %.4f %.4f %.4f %.4f %" PRId64 " %.5f %d %" PRId64 " %s\n", f->calls,
                f->least, f->p10, f->median, f->p90, f->p99, f->chained, f->each, f->buffers, f->bytes,
                bench_memory_names[memory]);
}

static bool answer_cell(const bench_side *side, bench_board *board, const bench_cell *cell, FILE *control)
{
    bench_figures figures;

    if (!bench_measure(side, cell, board, &figures))
        return false;
    answer_figures(control, &figures, board->rank, cell->memory);
    return true;
}

static bool answer_overlap(const bench_side *side, bench_board *board, const bench_cell *cell, FILE *control)
{
    bench_overlapped o;

    if (!bench_overlap(side, cell, board, &o))
        return false;
    if (board->rank != 0)
        fprintf(control, "ok\n");
    else
        fprintf(control, "ok %d %d %.3f %.3f %.3f %.3f %.4f %.4f\n", o.rounds, o.products, o.alone, o.product, o.both,
                o.beside, o.hidden, o.slowed);
    return true;
}

static bool answer_products(const bench_side *side, bench_board *board, const bench_cell *cell, FILE *control)
{
    int products;

    if (!bench_overlap_products(side, cell, board, &products))
        return false;
    fprintf(control, "ok %d\n", products);
    return true;
}

typedef bool (*answer_fn)(const bench_side *side, bench_board *board, const bench_cell *cell, FILE *control);

/* What a line's first word asks for, and where the cell begins; NULL: nothing that is known. */
static answer_fn asked_for(const char *line, const char **cell_out)
{
    static const struct {
        const char *word;
        answer_fn answer;
    } asked[] = { { "cell ", answer_cell }, { "overlap ", answer_overlap }, { "products ", answer_products } };
    size_t i;

    for (i = 0; i < sizeof asked / sizeof asked[0]; i++)
        if (strncmp(line, asked[i].word, strlen(asked[i].word)) == 0) {
            *cell_out = line + strlen(asked[i].word);
            return asked[i].answer;
        }
    return NULL;
}

/* False: this rank is not to be asked again. */
static bool answer(const bench_side *side, bench_board *board, const char *line, FILE *control)
{
    const char *why, *words = NULL;
    const answer_fn with = asked_for(line, &words);
    bench_cell cell;

    if (side->answer != NULL) {
        if (side->answer(board, line, control))
            return true;
        fprintf(control, "failed %s\n", bench_words());
        return false;
    }
    if (with == NULL || !bench_cell_read(words, &cell)) {
        fprintf(control, "failed no such cell\n");
        return false;
    }
    why = side->cannot == NULL ? NULL : side->cannot(&cell, board->ranks);
    if (why != NULL) {
        fprintf(control, "cannot %s\n", why);
        return true;
    }
    if (!with(side, board, &cell, control)) {
        fprintf(control, "failed %s\n", bench_words());
        return false;
    }
    return true;
}

static void serve(const bench_side *side, bench_board *board, FILE *control)
{
    char version[256] = "", line[256];
    bool more = true;

    if (side->version != NULL)
        side->version(version, sizeof version);
    fprintf(control, "hello %d %d %s\n", board->rank, board->ranks, version);
    while (more && fflush(control) == 0 && fgets(line, sizeof line, control) != NULL) {
        fseek(control, 0, SEEK_CUR); /* from reading to writing, as the standard has it */
        more = answer(side, board, line, control);
    }
    fflush(control);
}

int bench_contender(const bench_side *side, int argc, char **argv)
{
    bench_board board = { .shared = NULL };
    FILE *control = NULL;
    int rank, ranks, code = EXIT_FAILURE;

    if (argc != 3) {
        fprintf(stderr, "usage: %s SOCKET BOARD, for peers.py\n", argv[0]);
        return 2;
    }
    bench_cores();
    if (!bench_pin(rank_of_environment()))
        bench_fail("cannot pin: %s", strerror(errno));
    else if (side->join(&rank, &ranks)) {
        if (ranks > BENCH_RANKS_MAX)
            bench_fail("%d ranks; at most %d are measured", ranks, BENCH_RANKS_MAX);
        else if (!bench_board_open(&board, argv[2], rank, ranks))
            bench_fail("cannot map '%s': %s", argv[2], strerror(errno));
        else if (dial(argv[1], &control)) {
            serve(side, &board, control);
            code = EXIT_SUCCESS;
        }
        side->leave();
    }
    if (control != NULL)
        fclose(control);
    if (code != EXIT_SUCCESS)
        fprintf(stderr, "contender %s: %s\n", side->name, bench_words());
    bench_board_close(&board);
    return code;
}
