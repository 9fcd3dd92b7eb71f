/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_rank.c - one rank of `tutti bench OP`.
 *
 * The ranks share a file, which rank 0 makes, names to the others with a broadcast, and removes as soon as
 * all have it. So they are processes of one host. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/utsname.h>
#include <tutti/tutti.h>
#include "bench/measure.h"
#include "bench/overlap.h"
#include "bench/tutti_side.h"
#include "bench_options.h"

enum { PATH_BYTES = 512 };

static bool make_file(char path[PATH_BYTES])
{
    const char *folder = getenv("TMPDIR");
    int fd;

    snprintf(path, PATH_BYTES, "%.400s/tutti-bench-XXXXXX",
             folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    fd = mkstemp(path);
    if (fd < 0) {
        bench_fail("cannot make '%s': %s", path, strerror(errno));
        path[0] = '\0';
        return false;
    }
    close(fd);
    return true;
}

bool bench_open_board(bench_board *board, int rank, int ranks)
{
    char path[PATH_BYTES] = "";
    bool ok = rank != 0 || make_file(path);

    if (tutti_broadcast(TUTTI_SPAN((uint8_t *)path, PATH_BYTES), 0, NULL) != TUTTI_OK)
        ok = bench_fail("%s", tutti_last_error());
    else if (ok && path[0] == '\0')
        ok = bench_fail("rank 0 could not make a file to share");
    else if (ok && !bench_board_open(board, path, rank, ranks))
        ok = bench_fail("cannot map '%s' of rank 0: %s; the ranks are measured on one host", path,
                        strerror(errno));
    if (tutti_barrier(NULL) != TUTTI_OK && ok)
        ok = bench_fail("%s", tutti_last_error());
    if (rank == 0 && path[0] != '\0')
        unlink(path);
    return ok;
}

/* ---- what is printed --------------------------------------------------------------------------- */

static const char *transport_of(const bench_options *o)
{
    const char *named = o->transport != NULL ? o->transport : getenv("TUTTI_TRANSPORT");

    return named != NULL && named[0] != '\0' ? named : "auto";
}

static void print_table_head(const bench_options *o, int ranks)
{
    const bench_cell *c = &o->cell;

    printf("%s, %s, %d ranks on %d cores, transport %s, %s, %s buffers, %s memory; us\n",
           bench_op_names[c->op], bench_dtype_names[c->dtype], ranks, bench_cores(), transport_of(o),
           c->async ? "async" : "blocking", c->cold ? "cold" : "warm", bench_memory_names[c->memory]);
    printf("%12s %8s %11s %11s %11s %11s %13s %8s %8s\n", "bytes", "calls", "p10", "median", "p90", "p99",
           "back to back", "GB/s", "bus GB/s");
}

/* Bytes that cross the bus for each byte of the tensor, as others count it. */
static double bus_factor(bench_op op, int ranks)
{
    switch (op) {
    case BENCH_ALL_REDUCE: return 2.0 * (ranks - 1) / ranks;
    case BENCH_ALL_GATHER:
    case BENCH_REDUCE_SCATTER:
    case BENCH_ALL_TO_ALL: return (double)(ranks - 1) / ranks;
    default: return 1.0;
    }
}

static double gb_per_s(const bench_figures *f)
{
    return f->median > 0 ? (double)f->bytes / f->median / 1e3 : 0;
}

/* As --sizes has it: of an exchange the bytes of one message. */
static int64_t bytes_shown(const bench_options *o, const bench_figures *f)
{
    const int messages = bench_messages(o->cell.op);

    return messages > 0 ? f->bytes / messages : f->bytes;
}

static void print_line(const bench_options *o, const bench_figures *f, int ranks)
{
    const double rate = gb_per_s(f);

    printf("%12" PRId64 " %8d %11.3f %11.3f %11.3f %11.3f %13.3f %8.2f %8.2f\n", bytes_shown(o, f), f->calls, f->p10,
           f->median, f->p90, f->p99, f->each, rate, rate * bus_factor(o->cell.op, ranks));
    fflush(stdout);
}

static void print_head(FILE *tsv, bool overlap)
{
    const time_t now = time(NULL);
    struct utsname machine;
    char day[32] = "";

    if (tsv == NULL || uname(&machine) != 0)
        return;
    strftime(day, sizeof day, "%Y-%m-%d", gmtime(&now));
    fprintf(tsv, "# tutti bench, tutti %s, %s, %s %s, %d cores\n", TUTTI_VERSION, day, machine.sysname,
            machine.release, bench_cores());
    if (overlap) {
        fprintf(tsv, "op\tdtype\tranks\ttransport\tmemory\tseed\tbytes\trounds\tproducts\talone_us\tproduct_us\t"
                     "both_us\tbeside_us\thidden\tslowed\n");
        return;
    }
    fprintf(tsv, "op\tdtype\tranks\ttransport\tmode\tbuffers\tseed\tbytes\tcalls\tleast_us\tp10_us\t"
                 "median_us\tp90_us\tp99_us\tchained\teach_us\tgb_per_s\tbus_gb_per_s\tmemory\n");
}

static void print_row(FILE *tsv, const bench_options *o, const bench_figures *f, int ranks)
{
    const bench_cell *c = &o->cell;
    const double rate = gb_per_s(f);

    if (tsv == NULL)
        return;
    fprintf(tsv, "%s\t%s\t%d\t%s\t%s\t%s\t%" PRIu64 "\t%" PRId64 "\t%d\t", bench_op_names[c->op],
            bench_dtype_names[c->dtype], ranks, transport_of(o), c->async ? "async" : "blocking",
            c->cold ? "cold" : "warm", c->seed, bytes_shown(o, f), f->calls);
    fprintf(tsv, "%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t%" PRId64 "\t%.5f\t%.4f\t%.4f\t%s\n", f->least, f->p10,
            f->median, f->p90, f->p99, f->chained, f->each, rate, rate * bus_factor(c->op, ranks),
            bench_memory_names[c->memory]);
    fflush(tsv);
}

/* ---- the rank ---------------------------------------------------------------------------------- */

static bool measure_sizes(const bench_options *o, bench_board *board, FILE *tsv)
{
    const bool prints = board->rank == 0;
    bench_cell cell = o->cell;
    bench_figures figures;
    int i;

    if (prints)
        print_table_head(o, board->ranks);
    for (i = 0; i < o->n_sizes; i++) {
        cell.bytes = o->sizes[i];
        if (!bench_measure(&bench_tutti_side, &cell, board, &figures))
            return false;
        if (prints) {
            print_line(o, &figures, board->ranks);
            print_row(tsv, o, &figures, board->ranks);
        }
    }
    return true;
}

static void print_overlap_row(FILE *tsv, const bench_options *o, const bench_overlapped *v, int ranks)
{
    if (tsv == NULL)
        return;
    fprintf(tsv, "all_reduce\t%s\t%d\t%s\t%s\t%" PRIu64 "\t%" PRId64 "\t%d\t%d\t", bench_dtype_names[o->cell.dtype],
            ranks, transport_of(o), bench_memory_names[o->cell.memory], o->cell.seed, v->bytes, v->rounds, v->products);
    fprintf(tsv, "%.3f\t%.3f\t%.3f\t%.3f\t%.4f\t%.4f\n", v->alone, v->product, v->both, v->beside, v->hidden,
            v->slowed);
    fflush(tsv);
}

static bool measure_overlaps(const bench_options *o, bench_board *board, FILE *tsv)
{
    bench_cell cell = o->cell;
    bench_overlapped v;
    int i;

    if (board->rank == 0)
        printf("all_reduce behind matrix products, %s, %d ranks on %d cores, transport %s, %s memory; us\n"
               "%12s %7s %11s %11s %11s %15s %7s %7s\n",
               bench_dtype_names[cell.dtype], board->ranks, bench_cores(), transport_of(o),
               bench_memory_names[cell.memory], "bytes", "rounds", "alone", "products", "both", "products beside",
               "hidden", "slowed");
    for (i = 0; i < o->n_sizes; i++) {
        cell.bytes = o->sizes[i];
        if (!bench_overlap(&bench_tutti_side, &cell, board, &v))
            return false;
        if (board->rank != 0)
            continue;
        printf("%12" PRId64 " %7d %11.1f %11.1f %11.1f %15.1f %6.0f%% %7.3f\n", v.bytes, v.rounds, v.alone, v.product,
               v.both, v.beside, 100 * v.hidden, v.slowed);
        fflush(stdout);
        print_overlap_row(tsv, o, &v, board->ranks);
    }
    return true;
}

/* Rank 0's file; before anything is measured. */
static bool open_rows(const bench_options *o, int rank, FILE **tsv_out)
{
    if (rank != 0 || o->tsv == NULL)
        return true;
    *tsv_out = fopen(o->tsv, "ae");
    if (*tsv_out == NULL)
        return bench_fail("cannot write '%s': %s", o->tsv, strerror(errno));
    print_head(*tsv_out, o->overlap);
    return true;
}

static bool run(const bench_options *o, int rank, int ranks)
{
    bench_board board = { .shared = NULL };
    FILE *tsv = NULL;
    const char *why = bench_tutti_side.cannot(&o->cell, ranks);
    bool ok;

    if (why != NULL)
        return bench_fail("%s: %s", bench_op_names[o->cell.op], why);
    if (ranks > BENCH_RANKS_MAX)
        return bench_fail("%d ranks; at most %d are measured", ranks, BENCH_RANKS_MAX);
    ok = open_rows(o, rank, &tsv) && bench_open_board(&board, rank, ranks) &&
         (o->overlap ? measure_overlaps : measure_sizes)(o, &board, tsv);
    bench_board_close(&board);
    if (tsv != NULL)
        fclose(tsv);
    return ok;
}

/* Words are one line (bench_fail()), in which the break before "next" has become a space. */
int bench_say_failed(int rank)
{
    static const char mark[] = "   next: ";
    const char *words = bench_words(), *next = strstr(words, mark), *told = getenv("RANK");
    const int   length = next != NULL ? (int)(next - words) : (int)strlen(words);
    char        number[16];

    snprintf(number, sizeof number, "%d", rank);
    fprintf(stderr, "tutti bench: rank %.15s: %.*s%s%s\n", rank < 0 && told != NULL ? told : number, length, words,
            next != NULL ? "\n  next: " : "", next != NULL ? next + strlen(mark) : "");
    return EXIT_FAILURE;
}

int bench_rank(const bench_options *o)
{
    const int local = tutti_get_node_local_rank(0);
    int rank = -1, ranks = 0;
    bool ok;

    bench_cores();
    ok = local < 0 ? bench_fail("%s", tutti_last_error())
                   : bench_pin(local) || bench_fail("cannot pin: %s", strerror(errno));
    if (ok && bench_tutti_side.join(&rank, &ranks)) {
        ok = run(o, rank, ranks);
        bench_tutti_side.leave();
    } else {
        ok = false;
    }
    return ok ? EXIT_SUCCESS : bench_say_failed(rank);
}
