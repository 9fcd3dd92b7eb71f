/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/glyphs.h - how the digits 0..9 are written: strokes as control points (glyphs.c). */
#ifndef TRAIN_DATA_GLYPHS_H
#define TRAIN_DATA_GLYPHS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TTI_STROKE_POINTS_MAX = 9,
    TTI_GLYPH_STROKES_MAX = 3,
    TTI_GLYPH_FORMS_MAX = 3, /* ways to write one digit */
    TTI_GLYPH_WIDTH = 100,   /* the box a glyph is drawn in; x to the right, y downwards */
    TTI_GLYPH_HEIGHT = 140
};

/* One movement of the pen. A curve is a chain of quadratic Bezier pieces: it starts at the first
 * point, ends at the last, and bends towards those between. Otherwise points are joined by straight
 * lines. */
typedef struct tti_stroke {
    bool curve;
    int n;
    int16_t x[TTI_STROKE_POINTS_MAX];
    int16_t y[TTI_STROKE_POINTS_MAX];
} tti_stroke;

typedef struct tti_glyph {
    int n;
    tti_stroke stroke[TTI_GLYPH_STROKES_MAX];
} tti_glyph;

/* The ways to write digit (0..9): fills *forms_out with how many there are. */
const tti_glyph *tti_glyph_forms(int digit, int *forms_out);

#endif
