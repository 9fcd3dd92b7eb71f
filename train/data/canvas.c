/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/canvas.c - anti-aliased lines and curves.
 *
 * Why     The digits must be the same bits on every machine: only + - * / and square roots are
 *         used, which IEEE 754 defines to the last bit; no function of libm is.
 * How     The ink of a pixel falls from full to none over one pixel of distance around the pen's
 *         edge. A curve is STEPS straight lines.
 * True    Only pixels in the line's bounding box are touched; parts outside of the canvas are cut
 *         off. */
#include "data/canvas.h"

#include <math.h>

enum { STEPS = 8 };

typedef struct range {
    int first, last;
} range;

/* The pixels that a span lo..hi can reach. */
static range pixels_between(double lo, double hi)
{
    range r = { 0, TTI_CANVAS_SIDE - 1 };

    if (lo > 0)
        r.first = lo < TTI_CANVAS_SIDE ? (int)lo : TTI_CANVAS_SIDE;
    if (hi < TTI_CANVAS_SIDE)
        r.last = hi > 0 ? (int)hi : -1;
    return r;
}

/* Distance of p from the line a-b, whose squared length is given. */
static double distance(tti_point p, tti_point a, tti_point b, double length2)
{
    double dx = b.x - a.x, dy = b.y - a.y;
    double t = 0;

    if (length2 > 0) {
        t = ((p.x - a.x) * dx + (p.y - a.y) * dy) / length2;
        t = t < 0 ? 0 : t > 1 ? 1 : t;
    }
    dx = p.x - (a.x + t * dx);
    dy = p.y - (a.y + t * dy);
    return sqrt(dx * dx + dy * dy);
}

void tti_canvas_line(tti_canvas *canvas, tti_pen pen, tti_point a, tti_point b)
{
    const double reach = pen.radius + 1;
    const double length2 = (b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y);
    const range rows =
        pixels_between((a.y < b.y ? a.y : b.y) - reach, (a.y < b.y ? b.y : a.y) + reach);
    const range cols =
        pixels_between((a.x < b.x ? a.x : b.x) - reach, (a.x < b.x ? b.x : a.x) + reach);

    for (int row = rows.first; row <= rows.last; row++) {
        for (int col = cols.first; col <= cols.last; col++) {
            tti_point p = { col + 0.5, row + 0.5 };
            double cover = pen.radius + 0.5 - distance(p, a, b, length2);
            double *ink = &canvas->ink[row * TTI_CANVAS_SIDE + col];

            cover = cover < 0 ? 0 : cover > 1 ? 1 : cover;
            if (cover * pen.ink > *ink)
                *ink = cover * pen.ink;
        }
    }
}

void tti_canvas_curve(tti_canvas *canvas, tti_pen pen, tti_point a, tti_point b, tti_point c)
{
    tti_point from = a;

    for (int i = 1; i <= STEPS; i++) {
        double t = (double)i / STEPS, s = 1 - t;
        tti_point to = { s * s * a.x + 2 * s * t * b.x + t * t * c.x,
                         s * s * a.y + 2 * s * t * b.y + t * t * c.y };

        tti_canvas_line(canvas, pen, from, to);
        from = to;
    }
}
