/* SPDX-License-Identifier: BSD-3-Clause
 *
 * measure.c - buffers, the check, warming up, two measures.
 *
 * True    All ranks do the same number of calls: what depends on a clock, rank 0 decides and tells. */
#include "measure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "sample.h"
#include "values.h"

enum {
    CALLS_MIN = 3, /* one, where a single call is longer than everything may take */
    BLOCK_CALLS = 16,       /* synchronised calls between two looks at the clock */
    CHAIN_BLOCKS = 12,      /* blocks of calls back to back that the time is divided into */
    CHAIN_CALLS_MAX = 100000,
    COLD_BUFFERS_MAX = 1024,
    HALF = BENCH_SAMPLES_MAX / 2,
    BF16_RANKS_MAX = 16, /* values.h */
};
#define COLD_BYTES ((size_t)512 << 20) /* of all ranks together: more than the caches of most machines */
#define NS_PER_MS UINT64_C(1000000)
#define LONG_CALL_NS (1 * NS_PER_MS)

typedef struct run {
    const bench_side *side;
    const bench_cell *cell;
    bench_board *board;
    bench_op_fn op;
    size_t in_bytes, out_bytes; /* of one buffer */
    char *in, *out;
    int buffers;
    bench_call call;
    int64_t begins[BENCH_RANKS_MAX + 1];
    uint64_t each_ns; /* one call, as warming up found it */
} run;

char *bench_words(void)
{
    static char words[BENCH_WORDS_MAX]; /* a contender's process is one thread of these functions */

    return words;
}

bool bench_fail(const char *format, ...)
{
    char *words = bench_words(), *c;
    va_list args;

    va_start(args, format);
    vsnprintf(words, BENCH_WORDS_MAX, format, args);
    va_end(args);
    for (c = words; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    return false;
}

static bool alone(void)
{
    return bench_fail("another rank did not come to the barrier within two minutes");
}

/* ---- buffers ----------------------------------------------------------------------------------- */

bool bench_take_pages(size_t bytes, char **at_out)
{
    void *at = NULL;

    if (bytes > 0)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return bench_fail("cannot get %zu bytes for buffers: %s", bytes, strerror(errno));
    *at_out = at;
    return true;
}

void bench_give_pages(char *at, size_t bytes)
{
    if (at != NULL)
        munmap(at, bytes);
}

static int buffers_of(const run *r)
{
    const size_t bytes = r->in_bytes + r->out_bytes;
    size_t n = bytes > 0 ? COLD_BYTES / (size_t)r->board->ranks / bytes : 1;

    if (!r->cell->cold)
        return 1;
    return n < 2 ? 2 : n > COLD_BUFFERS_MAX ? COLD_BUFFERS_MAX : (int)n;
}

static bool take_buffers(run *r)
{
    size_t in_bytes, out_bytes;

    r->buffers = buffers_of(r);
    in_bytes = r->in_bytes * (size_t)r->buffers;
    out_bytes = r->out_bytes * (size_t)r->buffers;
    if (r->side->take != NULL)
        return r->side->take(r->cell, r->board, in_bytes, out_bytes, &r->in, &r->out);
    return bench_take_pages(in_bytes, &r->in) && bench_take_pages(out_bytes, &r->out);
}

static void give_buffers(run *r)
{
    const size_t in_bytes = r->in_bytes * (size_t)r->buffers, out_bytes = r->out_bytes * (size_t)r->buffers;

    if (r->side->take != NULL) {
        r->side->give(r->cell, r->in, in_bytes, r->out, out_bytes);
        return;
    }
    bench_give_pages(r->in, in_bytes);
    bench_give_pages(r->out, out_bytes);
}

/* The call with the i-th buffers and root. */
static const bench_call *call_of(run *r, int64_t i)
{
    const size_t b = (size_t)(i % r->buffers);

    r->call.in = r->in == NULL ? NULL : r->in + b * r->in_bytes;
    r->call.out = r->out == NULL ? NULL : r->out + b * r->out_bytes;
    r->call.root = (int)(i % r->board->ranks);
    return &r->call;
}

/* ---- the check --------------------------------------------------------------------------------- */

static bool one_result(run *r, int root)
{
    const bench_call *call = call_of(r, 0);
    const int64_t in_count = (int64_t)(r->in_bytes / bench_dtype_size(r->cell->dtype));
    uint64_t wrong = 0;
    int64_t at = -1;

    r->call.root = root;
    if (in_count > 0)
        bench_fill(r->call.in, in_count, r->cell, r->board->rank);
    if (r->out != NULL)
        memset(r->call.out, 0xff, r->out_bytes);
    if (!bench_board_barrier(r->board))
        return alone();
    r->call.check = r->board;
    if (!r->op(call))
        return false;
    r->call.check = NULL;
    if (!bench_board_barrier(r->board)) /* limits write what is others' */
        return alone();
    at = bench_first_wrong(r->out != NULL ? r->call.out : r->call.in, r->cell, r->board->rank,
                           r->board->ranks, root);
    if (!bench_board_largest(r->board, at >= 0, &wrong))
        return alone();
    if (at >= 0)
        return bench_fail("wrong result: element %lld on rank %d, root %d", (long long)at,
                          r->board->rank, root);
    return wrong == 0 || bench_fail("wrong result on another rank, root %d", root);
}

static bool results_are_right(run *r)
{
    if (r->call.count == 0)
        return true;
    if (!one_result(r, 0))
        return false;
    return r->board->ranks == 1 || one_result(r, r->board->ranks - 1);
}

/* Sums of sums grow without end; zeros stay, and take as long. All pages are touched here. */
static bool clear(run *r)
{
    if (r->in != NULL)
        memset(r->in, 0, r->in_bytes * (size_t)r->buffers);
    if (r->out != NULL)
        memset(r->out, 0, r->out_bytes * (size_t)r->buffers);
    return bench_board_barrier(r->board) || alone();
}

/* ---- times ------------------------------------------------------------------------------------- */

/* Whether rank 0's clock has not come to its end yet: the same answer on all ranks. */
static bool goes_on(run *r, uint64_t end_ns, bool *more_out)
{
    uint64_t more;

    if (!bench_board_tell(r->board, bench_now_ns() < end_ns, &more))
        return alone();
    *more_out = more != 0;
    return true;
}

static bool chain(run *r, int64_t calls, uint64_t *start_out, uint64_t *end_out)
{
    int64_t i;

    if (!bench_board_barrier(r->board))
        return alone();
    *start_out = bench_now_ns();
    for (i = 0; i < calls; i++)
        if (!r->op(call_of(r, i)))
            return false;
    *end_out = bench_now_ns();
    return true;
}

static bool warm_up(run *r, uint64_t budget_ns)
{
    const uint64_t end = bench_now_ns() + budget_ns;
    uint64_t ns = 0, each = 0, first = 0, last = 0;
    int64_t calls;
    bool more = true;

    for (calls = 1; more; calls = ns < budget_ns / 8 && calls < CHAIN_CALLS_MAX ? 2 * calls : calls) {
        if (!chain(r, calls, &first, &last))
            return false;
        if (!bench_board_largest(r->board, last - first, &ns))
            return alone();
        each = ns / (uint64_t)calls;
        if (!goes_on(r, end, &more))
            return false;
    }
    r->each_ns = each > 0 ? each : 1;
    return true;
}

/* What ranks wrote into their samples: rank 0 makes its own the longest of all. */
static bool longest_of_ranks(run *r, int n)
{
    uint64_t *mine = bench_board_samples(r->board, 0);
    int rank, i;

    if (!bench_board_barrier(r->board))
        return alone();
    if (r->board->rank == 0)
        for (rank = 1; rank < r->board->ranks; rank++) {
            const uint64_t *theirs = bench_board_samples(r->board, rank);

            for (i = 0; i < n; i++)
                mine[i] = theirs[i] > mine[i] ? theirs[i] : mine[i];
        }
    return bench_board_barrier(r->board) || alone();
}

/* The same of blocks, which ranks wrote as starts and, HALF further on, ends: rank 0's samples become the times
 * from the first rank's start to the last one's end. Ranks that wait for nobody may take turns on a core. */
static bool from_first_to_last(run *r, int n)
{
    uint64_t *mine = bench_board_samples(r->board, 0);
    int rank, i;

    if (!bench_board_barrier(r->board))
        return alone();
    for (i = 0; i < n && r->board->rank == 0; i++) {
        uint64_t first = mine[i], last = mine[HALF + i];

        for (rank = 1; rank < r->board->ranks; rank++) {
            const uint64_t *theirs = bench_board_samples(r->board, rank);

            first = theirs[i] < first ? theirs[i] : first;
            last = theirs[HALF + i] > last ? theirs[HALF + i] : last;
        }
        mine[i] = last - first;
    }
    return bench_board_barrier(r->board) || alone();
}

static bool block_of_calls(run *r, uint64_t *samples, int n, int block)
{
    uint64_t start;
    int i;

    for (i = n; i < n + block; i++) {
        const bench_call *call = call_of(r, i);

        if (!bench_board_barrier(r->board))
            return alone();
        start = bench_now_ns();
        if (!r->op(call))
            return false;
        samples[i] = bench_now_ns() - start;
    }
    return true;
}

static bool synchronised(run *r, uint64_t budget_ns, bench_figures *f)
{
    const int block = r->each_ns > LONG_CALL_NS ? 1 : BLOCK_CALLS;
    const int least = r->each_ns > budget_ns ? 1 : CALLS_MIN;
    const uint64_t end = bench_now_ns() + budget_ns;
    uint64_t *samples = bench_board_samples(r->board, r->board->rank);
    bool more = true;
    int n;

    for (n = 0; (more || n < least) && n + block <= BENCH_SAMPLES_MAX; n += block)
        if (!block_of_calls(r, samples, n, block) || !goes_on(r, end, &more))
            return false;
    if (!longest_of_ranks(r, n))
        return false;
    if (r->board->rank != 0)
        return true;
    bench_sort(samples, n);
    f->calls = n;
    f->least = (double)samples[0] / 1e3;
    f->p10 = bench_quantile(samples, n, 0.1) / 1e3;
    f->median = bench_quantile(samples, n, 0.5) / 1e3;
    f->p90 = bench_quantile(samples, n, 0.9) / 1e3;
    f->p99 = bench_quantile(samples, n, 0.99) / 1e3;
    return true;
}

static bool back_to_back(run *r, uint64_t budget_ns, bench_figures *f)
{
    const uint64_t end = bench_now_ns() + budget_ns;
    uint64_t *samples = bench_board_samples(r->board, r->board->rank);
    int64_t calls = (int64_t)(budget_ns / CHAIN_BLOCKS / r->each_ns);
    bool more = true;
    int n;

    calls = calls < 1 ? 1 : calls > CHAIN_CALLS_MAX ? CHAIN_CALLS_MAX : calls;
    for (n = 0; more && n < HALF; n++)
        if (!chain(r, calls, &samples[n], &samples[HALF + n]) || !goes_on(r, end, &more))
            return false;
    if (!from_first_to_last(r, n))
        return false;
    if (r->board->rank != 0)
        return true;
    bench_sort(samples, n);
    f->chained = calls * n;
    f->each = bench_quantile(samples, n, 0.5) / 1e3 / (double)calls;
    return true;
}

static void take_sizes(run *r)
{
    const int rank = r->board->rank, ranks = r->board->ranks;
    int i;

    r->in_bytes = bench_in_bytes(r->cell, rank, ranks);
    r->out_bytes = bench_out_bytes(r->cell, rank, ranks);
    for (i = 0; i <= ranks; i++)
        r->begins[i] = bench_part_begin(r->cell, rank, ranks, i);
    r->call = (bench_call){ .cell = r->cell, .rank = rank, .ranks = ranks, .begins = r->begins };
    r->call.count = bench_tensor_count(r->cell, ranks);
    r->call.part = r->begins[rank + 1] - r->begins[rank];
}

bool bench_measure(const bench_side *side, const bench_cell *cell, bench_board *board,
                   bench_figures *figures_out)
{
    const uint64_t budget = (uint64_t)cell->budget_ms * NS_PER_MS;
    bench_figures f = { .calls = 0 };
    run r = { .side = side, .cell = cell, .board = board, .op = side->op(cell) };
    bool ok;

    if (cell->dtype == BENCH_BF16 && board->ranks > BF16_RANKS_MAX)
        return bench_fail("bf16 does not hold the sums of %d ranks", board->ranks);
    take_sizes(&r);
    ok = take_buffers(&r) && results_are_right(&r) && clear(&r) && warm_up(&r, budget / 4) &&
         synchronised(&r, budget * 9 / 20, &f) && back_to_back(&r, budget * 3 / 10, &f);
    give_buffers(&r);
    f.buffers = r.buffers;
    f.bytes = r.call.count * (int64_t)bench_dtype_size(cell->dtype);
    if (ok)
        *figures_out = f;
    return ok;
}
