/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random.c - random numbers, draw for draw those of PyTorch on a CPU.
 *
 * Why     Equal seeds must give equal initial weights and equal order of samples, so that a run can
 *         be compared with a PyTorch run number by number.
 * How     f32 takes 24 bits of one 32-bit output, f64 takes 53 bits of two. Normal numbers come in
 *         two ways. 16 and more, contiguous: the memory is filled with uniform numbers, then each
 *         block of 16 becomes 8 Box-Muller pairs (j, j + 8); a rest is made of the last 16 elements
 *         with 16 fresh draws. Fewer: pairs of f64, the second one kept for the next call.
 * True    Draws go in memory order of the logical tensor, one per element. Seeding forgets a kept
 *         normal number.
 * Source  ours, after the observable behaviour; golden values in random_test.c. */
#include "tensor/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

#include "tensor/mt19937.h"

enum { PAIR_BLOCK = 16 };
static const uint64_t default_seed = 67280421310721u;
static const uint32_t state_magic = 0x74724e47u;

struct tutti_generator {
    tti_mt19937 mt;
    uint32_t magic; /* of a saved state; 0 in a default generator nobody has used yet */
    bool has_normal;
    double next_normal; /* the second of a pair, if has_normal */
    uint64_t seed;
};

/* Per thread, because threads can be ranks: each draws as if it were a process of its own. */
static _Thread_local tutti_generator own_default;

static tutti_generator *resolve(tutti_generator *gen)
{
    if (gen != NULL)
        return gen;
    if (own_default.magic == 0)
        tutti_generator_seed(&own_default, default_seed);
    return &own_default;
}

void tutti_generator_seed(tutti_generator *gen, uint64_t seed)
{
    tutti_generator *g = gen != NULL ? gen : &own_default;

    memset(g, 0, sizeof *g);
    g->magic = state_magic;
    g->seed = seed;
    tti_mt19937_seed(&g->mt, (uint32_t)seed);
}

void tutti_manual_seed(uint64_t seed)
{
    tutti_generator_seed(NULL, seed);
}

tutti_generator *tutti_generator_create(uint64_t seed)
{
    tutti_generator *gen = calloc(1, sizeof *gen);

    if (gen == NULL)
        (void)tti_refuse(TUTTI_E_NOMEM, "generator", "no memory for its state");
    else
        tutti_generator_seed(gen, seed);
    return gen;
}

void tutti_generator_free(tutti_generator *gen)
{
    free(gen);
}

size_t tutti_generator_state_bytes(void)
{
    return sizeof(tutti_generator);
}

void tutti_generator_get_state(const tutti_generator *gen, void *state_out)
{
    memcpy(state_out, gen != NULL ? gen : resolve(NULL), sizeof *gen);
}

tutti_status tutti_generator_set_state(tutti_generator *gen, const void *state, size_t bytes)
{
    tutti_generator saved;

    if (state == NULL || bytes != sizeof saved)
        return tti_fail(TUTTI_E_ARG, "set_state: %zu bytes, a saved generator has %zu", bytes,
                        sizeof saved);
    memcpy(&saved, state, sizeof saved);
    if (saved.magic != state_magic || saved.mt.pos < 0 || saved.mt.pos > TTI_MT_WORDS)
        return tti_fail(TUTTI_E_ARG, "set_state: the bytes are no saved generator");
    *resolve(gen) = saved;
    return TUTTI_OK;
}

static uint64_t random64(tutti_generator *g)
{
    const uint64_t high = tti_mt19937_next(&g->mt);

    return high << 32 | tti_mt19937_next(&g->mt);
}

uint64_t tutti_generator_random64(tutti_generator *gen)
{
    return random64(resolve(gen));
}

static float uniform_f32(tutti_generator *g)
{
    return (float)(tti_mt19937_next(&g->mt) & 0xffffff) * 0x1p-24f;
}

static double uniform_f64(tutti_generator *g)
{
    return (double)(random64(g) & 0x1fffffffffffff) * 0x1p-53;
}

static double normal_f64(tutti_generator *g)
{
    double u1, u2, radius, angle;

    if (g->has_normal) {
        g->has_normal = false;
        return g->next_normal;
    }
    u1 = uniform_f64(g);
    u2 = uniform_f64(g);
    radius = sqrt(-2.0 * log1p(-u2));
    angle = 2.0 * M_PI * u1;
    g->next_normal = radius * sin(angle);
    g->has_normal = true;
    return radius * cos(angle);
}

/* ---- filling contiguous memory ----------------------------------------------------------------
 */

typedef void (*filler)(tutti_generator *g, void *at, int64_t n, double p, double q);

static void fill_uniform(tutti_generator *g, void *at, int64_t n, double low, double high)
{
    float *x = at;
    const float range = (float)high - (float)low;

    for (int64_t i = 0; i < n; i++)
        x[i] = uniform_f32(g) * range + (float)low;
}

static void fill_uniform_f64(tutti_generator *g, void *at, int64_t n, double low, double high)
{
    double *x = at;

    for (int64_t i = 0; i < n; i++)
        x[i] = uniform_f64(g) * (high - low) + low;
}

/* Sixteen uniform numbers become sixteen normal ones. */
static void pair_block(float *x, float mean, float std)
{
    for (int j = 0; j < PAIR_BLOCK / 2; j++) {
        const float radius = sqrtf(-2.0f * logf(1.0f - x[j]));
        const float angle = 2.0f * (float)M_PI * x[j + 8];

        x[j] = radius * cosf(angle) * std + mean;
        x[j + 8] = radius * sinf(angle) * std + mean;
    }
}

static void pair_block_f64(double *x, double mean, double std)
{
    for (int j = 0; j < PAIR_BLOCK / 2; j++) {
        const double radius = sqrt(-2.0 * log(1.0 - x[j]));
        const double angle = 2.0 * M_PI * x[j + 8];

        x[j] = radius * cos(angle) * std + mean;
        x[j + 8] = radius * sin(angle) * std + mean;
    }
}

static void fill_normal(tutti_generator *g, void *at, int64_t n, double mean, double std)
{
    float *x = at;
    int64_t i = 0;

    if (n < PAIR_BLOCK) {
        for (; i < n; i++)
            x[i] = (float)(normal_f64(g) * std + mean);
        return;
    }
    fill_uniform(g, x, n, 0.0, 1.0);
    for (; i + PAIR_BLOCK <= n; i += PAIR_BLOCK)
        pair_block(x + i, (float)mean, (float)std);
    if (i < n) {
        fill_uniform(g, x + n - PAIR_BLOCK, PAIR_BLOCK, 0.0, 1.0);
        pair_block(x + n - PAIR_BLOCK, (float)mean, (float)std);
    }
}

static void fill_normal_f64(tutti_generator *g, void *at, int64_t n, double mean, double std)
{
    double *x = at;
    int64_t i = 0;

    if (n < PAIR_BLOCK) {
        for (; i < n; i++)
            x[i] = normal_f64(g) * std + mean;
        return;
    }
    fill_uniform_f64(g, x, n, 0.0, 1.0);
    for (; i + PAIR_BLOCK <= n; i += PAIR_BLOCK)
        pair_block_f64(x + i, mean, std);
    if (i < n) {
        fill_uniform_f64(g, x + n - PAIR_BLOCK, PAIR_BLOCK, 0.0, 1.0);
        pair_block_f64(x + n - PAIR_BLOCK, mean, std);
    }
}

static void fill_bernoulli(tutti_generator *g, void *at, int64_t n, double p, double unused)
{
    float *x = at;

    (void)unused;
    for (int64_t i = 0; i < n; i++)
        x[i] = uniform_f64(g) < p;
}

static void fill_bernoulli_f64(tutti_generator *g, void *at, int64_t n, double p, double unused)
{
    double *x = at;

    (void)unused;
    for (int64_t i = 0; i < n; i++)
        x[i] = uniform_f64(g) < p;
}

static tutti_status fill(const char *op, tutti_tensor *t, filler f32, filler f64, double p,
                         double q, tutti_generator *gen)
{
    tutti_tensor *whole;
    tutti_status st = TUTTI_OK;

    if (t == NULL)
        return tti_refuse_null(op);
    if (!tti_is_real(t->dtype))
        return tti_refuse(TUTTI_E_UNSUPPORTED, op, "elements of %s, f32 and f64 are offered",
                          tutti_dtype_name(t->dtype));
    whole = tutti_tensor_is_contiguous(t) ? tutti_tensor_retain(t)
                                          : tti_raw_empty(t->dtype, t->nd, t->shape);
    if (whole == NULL)
        return tti_refused();
    (t->dtype == TUTTI_F32 ? f32 : f64)(resolve(gen), tti_at(whole), t->numel, p, q);
    if (whole != t)
        st = tti_raw_copy_(t, whole);
    else
        tti_version_bump(t);
    tutti_tensor_release(whole);
    return st;
}

tutti_status tti_raw_uniform_(tutti_tensor *t, double low, double high, tutti_generator *gen)
{
    if (!(low <= high))
        return tti_refuse(TUTTI_E_ARG, "uniform_", "the range %g to %g is empty", low, high);
    return fill("uniform_", t, fill_uniform, fill_uniform_f64, low, high, gen);
}

tutti_status tti_raw_normal_(tutti_tensor *t, double mean, double std, tutti_generator *gen)
{
    if (!(std >= 0.0))
        return tti_refuse(TUTTI_E_ARG, "normal_", "the deviation %g is negative", std);
    return fill("normal_", t, fill_normal, fill_normal_f64, mean, std, gen);
}

tutti_status tti_raw_bernoulli_(tutti_tensor *t, double p, tutti_generator *gen)
{
    if (!(p >= 0.0 && p <= 1.0))
        return tti_refuse(TUTTI_E_ARG, "bernoulli_", "the probability %g is not within 0..1", p);
    return fill("bernoulli_", t, fill_bernoulli, fill_bernoulli_f64, p, 0.0, gen);
}

/* ---- new tensors ------------------------------------------------------------------------------
 */

tutti_tensor *tutti_tensor_rand(tutti_dtype dtype, int nd, const int64_t *shape,
                                tutti_generator *gen)
{
    tutti_tensor *t = tti_raw_empty(dtype, nd, shape);

    if (t != NULL && tti_raw_uniform_(t, 0.0, 1.0, gen) != TUTTI_OK) {
        tutti_tensor_release(t);
        t = NULL;
    }
    return tti_temp(t);
}

tutti_tensor *tutti_tensor_randn(tutti_dtype dtype, int nd, const int64_t *shape,
                                 tutti_generator *gen)
{
    tutti_tensor *t = tti_raw_empty(dtype, nd, shape);

    if (t != NULL && tti_raw_normal_(t, 0.0, 1.0, gen) != TUTTI_OK) {
        tutti_tensor_release(t);
        t = NULL;
    }
    return tti_temp(t);
}

tutti_tensor *tutti_tensor_randint(int64_t low, int64_t high, int nd, const int64_t *shape,
                                   tutti_generator *gen)
{
    const uint64_t range = (uint64_t)high - (uint64_t)low;
    tutti_generator *g = resolve(gen);
    tutti_tensor *t;

    if (low >= high)
        return tti_poison(TUTTI_E_ARG, "randint", "the range %lld to %lld is empty", (long long)low,
                          (long long)high);
    t = tti_raw_empty(TUTTI_I64, nd, shape);
    for (int64_t i = 0; t != NULL && i < t->numel; i++) {
        const uint64_t draw = range >> 32 ? random64(g) : tti_mt19937_next(&g->mt);

        ((int64_t *)tti_at(t))[i] = (int64_t)((uint64_t)low + draw % range);
    }
    return tti_temp(t);
}

tutti_tensor *tutti_tensor_randperm(int64_t n, tutti_generator *gen)
{
    tutti_generator *g = resolve(gen);
    tutti_tensor *t;
    int64_t *a;

    if (n < 0 || n > (int64_t)UINT32_MAX)
        return tti_poison(TUTTI_E_ARG, "randperm", "%lld is not within 0..2^32-1", (long long)n);
    t = tti_raw_empty(TUTTI_I64, 1, &n);
    if (t == NULL)
        return NULL;
    a = tti_at(t);
    for (int64_t i = 0; i < n; i++)
        a[i] = i;
    tti_mt19937_permute(&g->mt, n, a);
    return tti_temp(t);
}

tutti_tensor *tutti_tensor_arange(tutti_dtype dtype, double start, double end, double step)
{
    const double count = ceil((end - start) / step);
    tutti_tensor *ramp, *t;
    int64_t n;

    if (!(count >= 0.0 && count < 0x1p53))
        return tti_poison(TUTTI_E_ARG, "arange", "steps of %g do not lead from %g to %g", step,
                          start, end);
    n = (int64_t)count;
    ramp = tti_raw_empty(TUTTI_F64, 1, &n);
    for (int64_t i = 0; ramp != NULL && i < n; i++)
        ((double *)tti_at(ramp))[i] = start + (double)i * step;
    t = tti_raw_to(ramp, dtype);
    tutti_tensor_release(ramp);
    return tti_temp(t);
}
