/* SPDX-License-Identifier: BSD-3-Clause
 *
 * picture.c - an SVG in plain words, so that a run needs no other program for it.
 *
 * How     Losses, one for each step, are drawn as means of equal stretches, at most STRETCHES of them; what was held
 *         out as it was measured. Both axes begin at 0. */
#include "picture.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/common/say.h"

enum { WIDTH = 900, HEIGHT = 520, LEFT = 60, RIGHT = 20, TOP = 20, BOTTOM = 50, STRETCHES = 300, ROW_MAX = 256 };

typedef struct point {
    double x, y;
} point;

typedef struct line {
    point *points;
    int64_t n;
} line;

/* Columns 0 and y of a table; y times factor. */
static bool read_table(const char *dir, const char *name, int y, double factor, line *l)
{
    char path[4096], row[ROW_MAX];
    int64_t room = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "re");
    if (f == NULL)
        return say("cannot read '%s': %s", path, strerror(errno));
    while (fgets(row, sizeof row, f) != NULL) {
        double v[4];

        if (sscanf(row, "%lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3]) != 4)
            continue; /* the header */
        if (l->n == room) {
            point *more = realloc(l->points, (size_t)(room = 2 * room + 1024) * sizeof *more);

            if (more == NULL) {
                fclose(f);
                return say("no memory for %" PRId64 " points", room);
            }
            l->points = more;
        }
        l->points[l->n++] = (point){ v[0], factor * v[y] };
    }
    fclose(f);
    return true;
}

/* Means of equal stretches, in place. */
static void smooth(line *l)
{
    const int64_t n = l->n < STRETCHES ? l->n : STRETCHES;

    for (int64_t k = 0; k < n; k++) {
        const int64_t first = k * l->n / n, end = (k + 1) * l->n / n;
        point sum = { 0.0, 0.0 };

        for (int64_t i = first; i < end; i++)
            sum = (point){ sum.x + l->points[i].x, sum.y + l->points[i].y };
        l->points[k] = (point){ sum.x / (double)(end - first), sum.y / (double)(end - first) };
    }
    l->n = n;
}

/* Where axes end. */
static point extent(const line *a, const line *b, double level)
{
    point most = { 1.0, level };

    for (int64_t i = 0; i < a->n; i++)
        most = (point){ fmax(most.x, a->points[i].x), fmax(most.y, a->points[i].y) };
    for (int64_t i = 0; i < b->n; i++)
        most = (point){ fmax(most.x, b->points[i].x), fmax(most.y, b->points[i].y) };
    return most;
}

static double at_x(double x, const point *most)
{
    return LEFT + x / most->x * (WIDTH - LEFT - RIGHT);
}

static double at_y(double y, const point *most)
{
    return HEIGHT - BOTTOM - y / most->y * (HEIGHT - BOTTOM - TOP);
}

/* 1, 2 or 5 times a power of ten: about five of them make up the axis. */
static double tick(double most)
{
    const double power = pow(10.0, floor(log10(most / 5.0))), part = most / 5.0 / power;

    return power * (part < 2.0 ? 1.0 : part < 5.0 ? 2.0 : 5.0);
}

static void draw_axes(FILE *f, const point *most)
{
    fprintf(f, "<g stroke=\"#ddd\" fill=\"#444\">\n");
    for (double y = 0.0; y <= most->y; y += tick(most->y))
        fprintf(f,
                "<path d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" stroke=\"none\" text-anchor=\"end\">%g</text>\n",
                LEFT, at_y(y, most), WIDTH - RIGHT, LEFT - 8, at_y(y, most) + 4.0, y);
    for (double x = 0.0; x <= most->x; x += tick(most->x))
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" stroke=\"none\" text-anchor=\"middle\">%g</text>\n", at_x(x, most),
                HEIGHT - BOTTOM + 18, x);
    fprintf(f,
            "<text x=\"%d\" y=\"%d\" stroke=\"none\" text-anchor=\"middle\">steps</text>\n"
            "<text x=\"16\" y=\"%d\" stroke=\"none\" text-anchor=\"middle\" transform=\"rotate(-90 16 %d)\">"
            "bits per byte</text>\n</g>\n",
            WIDTH / 2, HEIGHT - 8, HEIGHT / 2, HEIGHT / 2);
}

static void draw_line(FILE *f, const line *l, const point *most, const char *style)
{
    fprintf(f, "<polyline fill=\"none\" %s points=\"", style);
    for (int64_t i = 0; i < l->n; i++)
        fprintf(f, "%.1f,%.1f ", at_x(l->points[i].x, most), at_y(l->points[i].y, most));
    fprintf(f, "\"/>\n");
}

static void draw_legend(FILE *f, int row, const char *style, const char *name)
{
    fprintf(f, "<path d=\"M%d %dh30\" %s/><text x=\"%d\" y=\"%d\">%s</text>\n", WIDTH - 330, TOP + 20 + 20 * row, style,
            WIDTH - 292, TOP + 24 + 20 * row, name);
}

static void draw(FILE *f, const line *losses, const line *held_out, double level, const char *level_name)
{
    static const char *const thin = "stroke=\"#7aa6d6\" stroke-width=\"1\"";
    static const char *const thick = "stroke=\"#c0392b\" stroke-width=\"2.5\"";
    static const char *const dashed = "stroke=\"#333\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"";
    const point most = extent(losses, held_out, level);

    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
               "font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", WIDTH, HEIGHT);
    draw_axes(f, &most);
    draw_line(f, losses, &most, thin);
    draw_line(f, held_out, &most, thick);
    fprintf(f, "<path d=\"M%d %.1fH%d\" %s/>\n", LEFT, at_y(level, &most), WIDTH - RIGHT, dashed);
    draw_legend(f, 0, thin, "learned from");
    draw_legend(f, 1, thick, "held out");
    draw_legend(f, 2, dashed, level_name);
    fprintf(f, "</svg>\n");
}

static bool write_picture(const char *dir, const line *losses, const line *held_out, double level,
                          const char *level_name)
{
    char path[4096];
    FILE *f;

    snprintf(path, sizeof path, "%s/curve.svg", dir);
    f = fopen(path, "we");
    if (f != NULL)
        draw(f, losses, held_out, level, level_name);
    return (f != NULL && fclose(f) == 0) || say("cannot write '%s': %s", path, strerror(errno));
}

bool picture_draw(const char *dir, double level, const char *level_name)
{
    line losses = { 0 }, held_out = { 0 };
    bool ok = read_table(dir, "losses.tsv", 1, 1.0 / M_LN2, &losses) &&
              read_table(dir, "held_out.tsv", 3, 1.0, &held_out);

    smooth(&losses);
    ok = ok && write_picture(dir, &losses, &held_out, level, level_name);
    free(losses.points);
    free(held_out.points);
    return ok;
}
