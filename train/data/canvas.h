/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/canvas.h - a small grey picture that round pens draw lines on (canvas.c). */
#ifndef TRAIN_DATA_CANVAS_H
#define TRAIN_DATA_CANVAS_H

#include <stdint.h>

enum { TTI_CANVAS_SIDE = 28 };

/* Ink of every pixel, 0 (paper) to 1, row by row. */
typedef struct tti_canvas {
    double ink[TTI_CANVAS_SIDE * TTI_CANVAS_SIDE];
} tti_canvas;

/* A pen: half its width in pixels, and how dark it writes, 0..1. */
typedef struct tti_pen {
    double radius;
    double ink;
} tti_pen;

typedef struct tti_point {
    double x, y; /* pixels; (0.5, 0.5) is the middle of the first pixel */
} tti_point;

/* Draw the straight line a-b; a pixel keeps the darkest ink that reached it, so that lines may
 * cross. */
void tti_canvas_line(tti_canvas *canvas, tti_pen pen, tti_point a, tti_point b);

/* Draw the quadratic Bezier curve from a to c that bends towards b. */
void tti_canvas_curve(tti_canvas *canvas, tti_pen pen, tti_point a, tti_point b, tti_point c);

#endif
