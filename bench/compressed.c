/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compressed.c - what sums that send less cost in time and in error, beside dense ones: one rank, which joins as its
 * environment says; compressed.py starts it on links of several rates.
 *
 *     compressed LABEL NUMBERS ROUNDS
 *
 * How     Every row has its own data, the same in every round: numbers as gradients have them, of a normal distribution or one
 *         with heavy tails, or zeros but for a share of the blocks, drawn by each rank for itself. In a round each row
 *         has its turn: a barrier, then one call; the longest rank counts. The first round warms up, verifies, and measures
 *         errors: against the average in f64 of what all ranks had, which rank 0 makes again.
 *         Bytes on the wire are what the network interfaces of this namespace have sent, over the rounds that are timed.
 * Rows    tab-separated, of rank 0: label, ranks, row, dtype, data, numbers, median and 10 % and 90 % in us, rounds, bits per
 *         number on the wire (-1: not known), share of blocks that were sent, error as nmse, largest error over the rms. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tutti/tutti.h>

enum { BLOCK = 256, ROUNDS_MAX = 1000 };

typedef enum kind { DENSE, QUANTIZED, SPARSE } kind;
typedef enum data { NORMAL, HEAVY, SHARE_1, SHARE_5, SHARE_20, SHARE_50 } data;

static const char *const data_names[] = { "normal", "heavy tails", "1 % of blocks", "5 % of blocks", "20 % of blocks",
                                          "50 % of blocks" };
static const char *const kind_names[] = { "dense", "8 bits", "block-sparse" };

typedef struct row {
    kind        kind;
    tutti_dtype dtype;
    data        data;
    double      us[ROUNDS_MAX];
    int64_t     sent; /* blocks */
    double      bits, nmse, largest;
} row;

static row rows[] = {
    { .kind = DENSE, .dtype = TUTTI_F32, .data = NORMAL },   { .kind = QUANTIZED, .dtype = TUTTI_F32, .data = NORMAL },
    { .kind = QUANTIZED, .dtype = TUTTI_F32, .data = HEAVY }, { .kind = DENSE, .dtype = TUTTI_BF16, .data = NORMAL },
    { .kind = QUANTIZED, .dtype = TUTTI_BF16, .data = NORMAL }, { .kind = QUANTIZED, .dtype = TUTTI_BF16, .data = HEAVY },
    { .kind = SPARSE, .dtype = TUTTI_F32, .data = SHARE_1 },  { .kind = SPARSE, .dtype = TUTTI_F32, .data = SHARE_5 },
    { .kind = SPARSE, .dtype = TUTTI_F32, .data = SHARE_20 }, { .kind = SPARSE, .dtype = TUTTI_F32, .data = SHARE_50 },
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "compressed: %s: %s\n", what, tutti_last_error());
    exit(1);
}

#define TRY(call)               \
    do {                        \
        if ((call) != TUTTI_OK) \
            die(#call);         \
    } while (0)

/* ---- data ---- */

static double uniform(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return ((double)(x >> 32 ^ (x & 0xffffffff)) + 0.5) / 4294967296.0;
}

static double normal(uint64_t seed)
{
    return sqrt(-2.0 * log(uniform(2 * seed))) * cos(6.283185307179586 * uniform(2 * seed + 1));
}

static double share_of(data d)
{
    static const double shares[] = { 1, 1, 0.01, 0.05, 0.2, 0.5 };

    return shares[d];
}

static uint16_t to_bf16(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float          f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Numbers of a rank, as f32 holds them. */
static void fill(const row *r, int rank, float *x, int64_t count)
{
    int64_t i;

    for (i = 0; i < count; i++) {
        const uint64_t seed = (uint64_t)i + ((uint64_t)(rank + 1) << 40);
        const double   n = normal(seed) * 1e-3;

        if (r->data == HEAVY)
            x[i] = (float)(n * exp(1.5 * normal(seed + (UINT64_C(1) << 60))));
        else if (uniform(((uint64_t)(i / BLOCK) << 20) + (uint64_t)rank) < share_of(r->data))
            x[i] = (float)n;
        else
            x[i] = 0.0f;
        if (r->dtype == TUTTI_BF16)
            x[i] = from_bf16(to_bf16(x[i]));
    }
}

static void pack(const row *r, const float *x, int64_t count, void *to)
{
    int64_t i;

    if (r->dtype == TUTTI_F32)
        memcpy(to, x, (size_t)count * sizeof *x);
    else
        for (i = 0; i < count; i++)
            ((uint16_t *)to)[i] = to_bf16(x[i]);
}

static double number_at(const row *r, const void *p, int64_t i)
{
    return r->dtype == TUTTI_F32 ? ((const float *)p)[i] : from_bf16(((const uint16_t *)p)[i]);
}

/* ---- one call ---- */

static void call(row *r, void *buf, int64_t count)
{
    const tutti_span           span = tutti_span_of(buf, count, r->dtype);
    tutti_block_sparse_options sparse = TUTTI_BLOCK_SPARSE_OPTIONS;

    sparse.sent = &r->sent;
    if (r->kind == DENSE)
        TRY(tutti_all_reduce(span, TUTTI_AVG, NULL));
    else if (r->kind == QUANTIZED)
        TRY(tutti_all_reduce_quantized(span, TUTTI_AVG, NULL, NULL));
    else
        TRY(tutti_all_reduce_block_sparse(span, TUTTI_AVG, &sparse, NULL));
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Bytes that the interfaces here have sent, but for loopback; -1: there are none. */
static double wire_bytes(void)
{
    FILE              *f = fopen("/proc/net/dev", "r");
    char               line[512], name[64];
    double             all = -1;
    unsigned long long sent;

    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, " %63[^:]: %*u %*u %*u %*u %*u %*u %*u %*u %llu", name, &sent) == 2 && strcmp(name, "lo") != 0)
            all = (all < 0 ? 0 : all) + (double)sent;
    if (f != NULL)
        fclose(f);
    return all;
}

static double longest(double us)
{
    TRY(tutti_all_reduce(TUTTI_SPAN(&us, 1), TUTTI_MAX, NULL));
    return us;
}

/* ---- errors ---- */

/* Ranks have the same bits; rank 0 knows how far they are from the average. */
static void verify(row *r, const void *buf, int64_t count, float *scratch)
{
    const int rank = tutti_get_rank(NULL), size = tutti_get_world_size(NULL);
    const size_t bytes = (size_t)count * tutti_dtype_size(r->dtype);
    double   *want = calloc((size_t)count, sizeof *want), off = 0, square = 0, largest = 0;
    uint64_t  print = 0, first;
    int64_t   i;
    size_t    k;
    int       q;

    for (k = 0; k < bytes; k++)
        print = (print ^ ((const unsigned char *)buf)[k]) * UINT64_C(0x100000001b3);
    first = print;
    TRY(tutti_broadcast(TUTTI_SPAN(&first, 1), 0, NULL));
    if (first != print || want == NULL) {
        fprintf(stderr, "compressed: rank %d has other bits than rank 0 (%s, %s)\n", rank, kind_names[r->kind],
                data_names[r->data]);
        exit(1);
    }
    for (q = 0; q < size && rank == 0; q++) {
        fill(r, q, scratch, count);
        for (i = 0; i < count; i++)
            want[i] += (double)scratch[i] / size;
    }
    for (i = 0; i < count && rank == 0; i++) {
        const double e = number_at(r, buf, i) - want[i];

        off += e * e;
        square += want[i] * want[i];
        largest = fabs(e) > largest ? fabs(e) : largest;
    }
    r->nmse = off / square;
    r->largest = largest / sqrt(square / (double)count);
    free(want);
    if (rank == 0 && !(r->nmse < (r->kind == QUANTIZED ? 1e-2 : 1e-4))) {
        fprintf(stderr, "compressed: %s of %s is off by %g\n", kind_names[r->kind], data_names[r->data], r->nmse);
        exit(1);
    }
}

/* ---- rounds ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void tell(const char *label, row *r, int64_t count, int rounds)
{
    const int64_t blocks = (count + BLOCK - 1) / BLOCK;

    qsort(r->us, (size_t)rounds, sizeof r->us[0], compare);
    printf("%s\t%d\t%s\t%s\t%s\t%" PRId64 "\t%.1f\t%.1f\t%.1f\t%d\t%.3f\t%.4f\t%.3g\t%.3g\n", label,
           tutti_get_world_size(NULL), kind_names[r->kind], tutti_dtype_name(r->dtype), data_names[r->data], count,
           r->us[rounds / 2], r->us[rounds / 10], r->us[rounds - 1 - rounds / 10], rounds,
           r->bits < 0 ? -1.0 : r->bits / rounds / (double)count,
           r->kind == SPARSE ? (double)r->sent / (double)blocks : 1.0, r->nmse, r->largest);
}

static void turn(row *r, int round, const void *input, void *buf, int64_t count, float *scratch)
{
    double began, before;

    memcpy(buf, input, (size_t)count * tutti_dtype_size(r->dtype));
    TRY(tutti_barrier(NULL));
    before = wire_bytes();
    began = now_us();
    call(r, buf, count);
    began = now_us() - began;
    if (round < 0) {
        verify(r, buf, count, scratch);
        return;
    }
    r->bits = before < 0 ? -1 : r->bits + 8 * (wire_bytes() - before);
    r->us[round] = longest(began);
}

int main(int argc, char **argv)
{
    const int64_t count = argc > 3 ? strtoll(argv[2], NULL, 10) : 0;
    const int     rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0;
    void         *inputs[ROWS], *buf = malloc((size_t)(count > 0 ? count : 1) * sizeof(float));
    float        *scratch = malloc((size_t)(count > 0 ? count : 1) * sizeof(float));
    int           round, i;

    if (count < 1 || rounds < 1 || rounds > ROUNDS_MAX || buf == NULL || scratch == NULL) {
        fprintf(stderr, "usage: compressed LABEL NUMBERS ROUNDS\n");
        return 2;
    }
    TRY(tutti_init_process_group(NULL));
    for (i = 0; i < ROWS; i++) {
        inputs[i] = malloc((size_t)count * sizeof(float));
        if (inputs[i] == NULL)
            die("no memory");
        fill(&rows[i], tutti_get_rank(NULL), scratch, count);
        pack(&rows[i], scratch, count, inputs[i]);
    }
    for (round = -1; round < rounds; round++)
        for (i = 0; i < ROWS; i++)
            turn(&rows[i], round, inputs[i], buf, count, scratch);
    for (i = 0; i < ROWS; i++) {
        if (tutti_get_rank(NULL) == 0)
            tell(argv[1], &rows[i], count, rounds);
        free(inputs[i]);
    }
    free(buf);
    free(scratch);
    TRY(tutti_destroy_process_group(NULL));
    return 0;
}
