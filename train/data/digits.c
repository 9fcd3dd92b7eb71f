/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/digits.c - digits that nobody has to download.
 *
 * Why     The demo and the tests need a data set like MNIST that is free, small and the same
 *         everywhere. It must need a convolution: a linear classifier has to fail visibly.
 * How     Digit i of a seed: pick a label and a way to write it (glyphs.c), shake the control
 *         points, slant, turn, scale and shift them, draw them with a round pen of random width
 *         (canvas.c) over specks and stray lines, then add noise. Shift, turn and size are what a
 *         linear classifier cannot follow; the numbers stand in one table below.
 * True    Digit i is a function of (seed, i) alone, to the last bit, on every machine: integer
 *         random numbers, and of floating point only what IEEE 754 defines exactly.
 * Source  splitmix64: Steele, Lea, Flood 2014. */
#include <tutti/data.h>
#include <tutti/private.h>

#include "data/canvas.h"
#include "data/glyphs.h"

#include <string.h>

/* How wildly we write. Lengths in pixels of the 28 x 28 picture, ranges are lo..hi. */
static const struct {
    double height_lo, height_hi; /* of the glyph */
    double aspect_lo, aspect_hi; /* width against the glyph's own */
    double shift;                /* either way, in x and in y */
    double slant;                /* x per y, either way */
    double turn;                 /* tangent of half the angle, either way */
    double shake;                /* of each control point, against the glyph's height */
    double pen_lo, pen_hi;       /* half the width of a stroke */
    double ink_lo, ink_hi;
    int stray_lines, specks; /* at most so many of each */
    double stray_ink;
    double noise; /* of every pixel */
} hand = {
    /* clang-format off */
    .height_lo = 17, .height_hi = 20, .aspect_lo = 0.7, .aspect_hi = 1.20,
    .shift = 3.85, .slant = 0.20, .turn = 0.06, .shake = 0.03,
    .pen_lo = 1.1, .pen_hi = 1.7, .ink_lo = 0.95, .ink_hi = 1.0,
    .stray_lines = 2, .specks = 4, .stray_ink = 0.6, .noise = 0.08,
    /* clang-format on */
};

static uint64_t next64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* A number of lo..hi: 53 random bits, exact in a double. */
static double between(uint64_t *state, double lo, double hi)
{
    return lo + (hi - lo) * ((double)(next64(state) >> 11) * 0x1p-53);
}

/* One of 0..n-1; n is tiny, so the bias of the remainder is far below one in 2^50. */
static int below(uint64_t *state, int n)
{
    return (int)(next64(state) % (uint64_t)n);
}

/* From glyph space (height 1, middle 0) to pixels. */
typedef struct placing {
    double xx, xy, x0;
    double yx, yy, y0;
} placing;

static placing random_placing(uint64_t *state)
{
    const double height = between(state, hand.height_lo, hand.height_hi);
    const double width = height * between(state, hand.aspect_lo, hand.aspect_hi);
    const double slant = between(state, -hand.slant, hand.slant) * height;
    const double t = between(state, -hand.turn, hand.turn);
    const double c = (1 - t * t) / (1 + t * t), s = 2 * t / (1 + t * t);
    placing p;

    p.xx = c * width;
    p.xy = -(c * slant + s * height);
    p.yx = s * width;
    p.yy = c * height - s * slant;
    p.x0 = TTI_CANVAS_SIDE / 2.0 + between(state, -hand.shift, hand.shift);
    p.y0 = TTI_CANVAS_SIDE / 2.0 + between(state, -hand.shift, hand.shift);
    return p;
}

static tti_point place(const placing *p, const tti_stroke *stroke, int i, uint64_t *state)
{
    double u = (stroke->x[i] - TTI_GLYPH_WIDTH / 2.0) / TTI_GLYPH_HEIGHT;
    double v = (stroke->y[i] - TTI_GLYPH_HEIGHT / 2.0) / TTI_GLYPH_HEIGHT;
    tti_point out;

    u += between(state, -hand.shake, hand.shake);
    v += between(state, -hand.shake, hand.shake);
    out.x = p->xx * u + p->xy * v + p->x0;
    out.y = p->yx * u + p->yy * v + p->y0;
    return out;
}

/* The chain of pieces that a curved stroke means: piece i bends towards point i, and the pieces
 * meet half-way between the points. */
static void draw_curve(tti_canvas *canvas, tti_pen pen, const tti_point *at, int n)
{
    tti_point from = at[0];

    for (int i = 1; i + 1 < n; i++) {
        tti_point to = at[i + 1];

        if (i + 2 < n) {
            to.x = (at[i].x + at[i + 1].x) / 2;
            to.y = (at[i].y + at[i + 1].y) / 2;
        }
        tti_canvas_curve(canvas, pen, from, at[i], to);
        from = to;
    }
}

static void draw_stroke(tti_canvas *canvas, tti_pen pen, const placing *p, const tti_stroke *stroke,
                        uint64_t *state)
{
    tti_point at[TTI_STROKE_POINTS_MAX];

    for (int i = 0; i < stroke->n; i++)
        at[i] = place(p, stroke, i, state);
    if (stroke->curve) {
        draw_curve(canvas, pen, at, stroke->n);
        return;
    }
    for (int i = 0; i + 1 < stroke->n; i++)
        tti_canvas_line(canvas, pen, at[i], at[i + 1]);
}

static void draw_glyph(tti_canvas *canvas, int digit, uint64_t *state)
{
    int forms = 0;
    const tti_glyph *glyph = tti_glyph_forms(digit, &forms);
    placing p = random_placing(state);
    tti_pen pen;

    glyph += below(state, forms);
    pen.radius = between(state, hand.pen_lo, hand.pen_hi);
    pen.ink = between(state, hand.ink_lo, hand.ink_hi);
    for (int i = 0; i < glyph->n; i++)
        draw_stroke(canvas, pen, &p, &glyph->stroke[i], state);
}

/* Stray lines of 3 to 7 pixels and specks, thinner and paler than the digit. */
static void draw_clutter(tti_canvas *canvas, uint64_t *state)
{
    const int lines = below(state, hand.stray_lines + 1);
    const int specks = below(state, hand.specks + 1);

    for (int i = 0; i < lines + specks; i++) {
        const double reach = i < lines ? 5 : 0.5;
        tti_pen pen = { 0.5, between(state, 0.2, hand.stray_ink) };
        tti_point a, b;

        a.x = between(state, 0, TTI_CANVAS_SIDE);
        a.y = between(state, 0, TTI_CANVAS_SIDE);
        b.x = a.x + between(state, -reach, reach);
        b.y = a.y + between(state, -reach, reach);
        tti_canvas_line(canvas, pen, a, b);
    }
}

static void develop(const tti_canvas *canvas, uint64_t *state, uint8_t *pixels_out)
{
    for (int i = 0; i < TTI_CANVAS_SIDE * TTI_CANVAS_SIDE; i++) {
        double grey = canvas->ink[i] + between(state, -hand.noise, hand.noise);

        grey = grey < 0 ? 0 : grey > 1 ? 1 : grey;
        pixels_out[i] = (uint8_t)(grey * 255 + 0.5);
    }
}

static int draw_digit(uint64_t seed, int64_t index, uint8_t *pixels_out)
{
    tti_canvas canvas;
    uint64_t state = seed;
    int digit;

    state = next64(&state) ^ (uint64_t)index;
    state = next64(&state);
    memset(&canvas, 0, sizeof canvas);
    digit = below(&state, 10);
    draw_clutter(&canvas, &state);
    draw_glyph(&canvas, digit, &state);
    develop(&canvas, &state, pixels_out);
    return digit;
}

tutti_status tutti_digits_draw(uint64_t seed, int64_t first, int64_t count, uint8_t *images_out,
                               uint8_t *labels_out)
{
    if (first < 0 || count < 0 || first > INT64_MAX - count)
        return tti_fail(TUTTI_E_ARG, "cannot draw digits %lld to %lld + %lld", (long long)first,
                        (long long)first, (long long)count);
    if (count > 0 && (images_out == NULL || labels_out == NULL))
        return tti_fail(TUTTI_E_ARG, "no buffer for %lld digits", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        int digit = draw_digit(seed, first + i, images_out + i * TTI_CANVAS_SIDE * TTI_CANVAS_SIDE);

        labels_out[i] = (uint8_t)digit;
    }
    return TUTTI_OK;
}
