/* SPDX-License-Identifier: BSD-3-Clause
 *
 * planes_loops.h - the source of a table of tti_plane_ops; included once by each of planes_*.c, which say how many
 * registers there are:
 *   LANES          floats of a vector
 *   OUTS, VECTORS  a tile of sums: OUTS planes, VECTORS vectors of each, held in registers
 *   TILE, TAPS     a tile of slopes: TILE planes of y, TAPS shifts of x
 *   TABLE          its name
 *
 * How     A tile is a function with its size as constants, so that loops over it unroll and its sums stay in
 *         registers. Outs are dealt out to tiles evenly: 20 of them are four tiles of 5, not three of 6 and a rest. */
#include <string.h>

#include "nn/planes.h"

#define INLINED static inline __attribute__((always_inline))
#define UNROLL  _Pragma("GCC unroll 16")

typedef float vec __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

INLINED vec splat(float x)
{
    return x - (vec){ 0 };
}

INLINED vec load(const float *from)
{
    return *(const vec *)from;
}

/* The first n of a vector; 0 behind them. */
INLINED vec load_part(const float *from, int64_t n)
{
    vec v = { 0 };

    memcpy(&v, from, (size_t)n * sizeof(float));
    return v;
}

static inline int64_t tiles_of(int64_t outs, int64_t most)
{
    return (outs + most - 1) / most;
}

static void pack(int64_t outs, int64_t terms, const float *w, float *to)
{
    const int64_t tiles = tiles_of(outs, OUTS);

    for (int64_t b = 0; b < tiles; b++)
        for (int64_t k = 0; k < terms; k++)
            for (int64_t o = outs * b / tiles; o < outs * (b + 1) / tiles; o++)
                *to++ = w[o * terms + k];
}

/* ---- sums ------------------------------------------------------------------------------------- */

/* m outs and v vectors from plane position p on; of the last vector `part` floats are stored. */
INLINED void sum_tile(const tti_plane_sums *s, const int m, const int v, int64_t first, int64_t p, int64_t part)
{
    const float *w = s->w + first * s->terms, *x = s->x + p;
    float *y = s->y + first * s->ld + p;
    vec sum[OUTS][VECTORS], in[VECTORS];

    UNROLL for (int o = 0; o < m; o++)
        UNROLL for (int j = 0; j < v; j++)
            sum[o][j] = splat(s->bias != NULL ? s->bias[first + o] : 0.0f);
    for (int64_t k = 0; k < s->terms; k++, w += m) {
        UNROLL for (int j = 0; j < v; j++)
            in[j] = load(x + s->at[k] + j * LANES);
        UNROLL for (int o = 0; o < m; o++)
            UNROLL for (int j = 0; j < v; j++)
                sum[o][j] += splat(w[o]) * in[j];
    }
    UNROLL for (int o = 0; o < m; o++) {
        UNROLL for (int j = 0; j < v - 1; j++)
            *(vec *)(y + o * s->ld + j * LANES) = sum[o][j];
        memcpy(y + o * s->ld + (v - 1) * LANES, &sum[o][v - 1], (size_t)part * sizeof(float));
    }
}

INLINED void sum_tile_of(const tti_plane_sums *s, const int v, int64_t m, int64_t first, int64_t p, int64_t part)
{
    switch (m) {
    case 1: sum_tile(s, 1, v, first, p, part); break;
    case 2: sum_tile(s, 2, v, first, p, part); break;
    case 3: sum_tile(s, 3, v, first, p, part); break;
#if OUTS > 3
    case 4: sum_tile(s, 4, v, first, p, part); break;
#endif
#if OUTS > 4
    case 5: sum_tile(s, 5, v, first, p, part); break;
    case 6: sum_tile(s, 6, v, first, p, part); break;
#endif
    default: break;
    }
}

static void sum_wide(const tti_plane_sums *s, int64_t m, int64_t first, int64_t p)
{
    sum_tile_of(s, VECTORS, m, first, p, LANES);
}

static void sum_two(const tti_plane_sums *s, int64_t m, int64_t first, int64_t p)
{
    sum_tile_of(s, 2, m, first, p, LANES);
}

static void sum_one(const tti_plane_sums *s, int64_t m, int64_t first, int64_t p)
{
    sum_tile_of(s, 1, m, first, p, LANES);
}

static void sum_rest(const tti_plane_sums *s, int64_t m, int64_t first, int64_t p)
{
    sum_tile_of(s, 1, m, first, p, s->n - p);
}

static void sums(const tti_plane_sums *s)
{
    const int64_t tiles = tiles_of(s->outs, OUTS);
    int64_t p = 0, width;

    for (; p < s->n; p += width) {
        const int64_t left = s->n - p;
        void (*tile)(const tti_plane_sums *, int64_t, int64_t, int64_t) =
            left >= VECTORS * LANES ? sum_wide : left >= 2 * LANES ? sum_two : left >= LANES ? sum_one : sum_rest;

        width = left >= VECTORS * LANES ? VECTORS * LANES : left >= 2 * LANES ? 2 * LANES : LANES;
        for (int64_t b = 0; b < tiles; b++) {
            const int64_t first = s->outs * b / tiles;

            tile(s, s->outs * (b + 1) / tiles - first, first, p);
        }
    }
}

/* ---- slopes ----------------------------------------------------------------------------------- */

INLINED void slope_tile(const tti_plane_slopes *s, const int m, const int t, int64_t first, int64_t tap)
{
    const int64_t whole = s->n / LANES * LANES, rest = s->n - whole;
    const float *y0 = s->y + first * s->y_out, *x0 = s->x + tap * s->step;
    float *to = s->sums + first * s->ld + tap * TTI_PLANES_LANES;
    vec sum[TILE][TAPS], in[TAPS];

    UNROLL for (int o = 0; o < m; o++)
        UNROLL for (int i = 0; i < t; i++)
            sum[o][i] = load(to + o * s->ld + i * TTI_PLANES_LANES);
    for (int64_t k = 0; k < s->images; k++, y0 += s->y_image, x0 += s->x_image) {
        for (int64_t p = 0; p < whole; p += LANES) {
            UNROLL for (int i = 0; i < t; i++)
                in[i] = load(x0 + i * s->step + p);
            UNROLL for (int o = 0; o < m; o++) {
                const vec y = load(y0 + o * s->y_out + p);

                UNROLL for (int i = 0; i < t; i++)
                    sum[o][i] += y * in[i];
            }
        }
        if (rest == 0)
            continue;
        UNROLL for (int i = 0; i < t; i++)
            in[i] = load_part(x0 + i * s->step + whole, rest);
        UNROLL for (int o = 0; o < m; o++) {
            const vec y = load_part(y0 + o * s->y_out + whole, rest);

            UNROLL for (int i = 0; i < t; i++)
                sum[o][i] += y * in[i];
        }
    }
    UNROLL for (int o = 0; o < m; o++)
        UNROLL for (int i = 0; i < t; i++)
            *(vec *)(to + o * s->ld + i * TTI_PLANES_LANES) = sum[o][i];
}

INLINED void slope_tile_of(const tti_plane_slopes *s, const int m, int64_t t, int64_t first, int64_t tap)
{
    switch (t) {
    case 1: slope_tile(s, m, 1, first, tap); break;
    case 2: slope_tile(s, m, 2, first, tap); break;
    case 3: slope_tile(s, m, 3, first, tap); break;
    case 4: slope_tile(s, m, 4, first, tap); break;
    case 5: slope_tile(s, m, 5, first, tap); break;
    default: break;
    }
}

static void slopes_of(const tti_plane_slopes *s, int64_t m, int64_t t, int64_t first, int64_t tap)
{
    switch (m) {
    case 1: slope_tile_of(s, 1, t, first, tap); break;
    case 2: slope_tile_of(s, 2, t, first, tap); break;
#if TILE > 2
    case 3: slope_tile_of(s, 3, t, first, tap); break;
    case 4: slope_tile_of(s, 4, t, first, tap); break;
    case 5: slope_tile_of(s, 5, t, first, tap); break;
#endif
    default: break;
    }
}

static void slopes(const tti_plane_slopes *s)
{
    const int64_t tiles = tiles_of(s->outs, TILE), runs = tiles_of(s->taps, TAPS);

    for (int64_t b = 0; b < tiles; b++)
        for (int64_t r = 0; r < runs; r++) {
            const int64_t first = s->outs * b / tiles, tap = s->taps * r / runs;

            slopes_of(s, s->outs * (b + 1) / tiles - first, s->taps * (r + 1) / runs - tap, first, tap);
        }
}

const tti_plane_ops TABLE = { pack, sums, slopes };
