/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ngram.c - a 3-gram model of bytes, interpolated Kneser-Ney.
 *
 * Why     A network that has learned something knows more than which byte mostly follows two others. What such a
 *         table is worth depends on how it treats what it has not seen; this is about the best that is known.
 * How     Each order takes a discount off its counts and deals it out as the order below says:
 *
 *             p3(c | a b) = ([#abc - d3] + d3 types(a b) p2(c | b)) / #ab
 *             p2(c | b)   = ([#bc  - d2] + d2 types(b)   p1(c))     / #b       [x] = x, or 0 below 0
 *             p1(c)       = ([#c   - d1] + d1 types      / 256)     / #
 *
 *         where #abc counts in the text, but #bc counts the bytes that bc was seen behind, and #c those that c was
 *         seen behind in some bc. A context that was never seen leaves it all to the order below.
 * True    d = n1 / (n1 + 2 n2), n1 and n2 being how many counts of the order are 1 and 2; one half where a text is too
 *         small to have both. All d are above 0, so that every probability is.
 * Memory  64 MiB of counts, most of it never touched.
 * Source  Kneser & Ney 1995, Chen & Goodman 1999. */
#include "ngram.h"

#include <math.h>
#include <stdlib.h>

enum { BYTES = 256 };

/* The counts of one order, by contexts. */
typedef struct order {
    uint32_t *count;    /* [contexts, BYTES] */
    uint32_t *total;    /* [contexts] */
    uint32_t *types;    /* [contexts] bytes with a count above 0 */
    size_t contexts;
    double discount;
} order;

struct ngram {
    order one, two, three;
};

static bool order_alloc(order *o, size_t contexts)
{
    o->contexts = contexts;
    o->count = calloc(contexts * BYTES, sizeof *o->count);
    o->total = calloc(contexts, sizeof *o->total);
    o->types = calloc(contexts, sizeof *o->types);
    return o->count != NULL && o->total != NULL && o->types != NULL;
}

static void order_free(order *o)
{
    free(o->count);
    free(o->total);
    free(o->types);
}

/* Returns whether it is the first of its kind. */
static bool order_add(order *o, size_t context, uint8_t c)
{
    const bool first = o->count[context * BYTES + c]++ == 0;

    o->total[context]++;
    o->types[context] += first;
    return first;
}

static void order_discount(order *o)
{
    double n1 = 0.0, n2 = 0.0;

    for (size_t k = 0; k < o->contexts; k++)
        for (size_t c = 0; o->types[k] > 0 && c < BYTES; c++) {
            n1 += o->count[k * BYTES + c] == 1;
            n2 += o->count[k * BYTES + c] == 2;
        }
    o->discount = n1 > 0.0 && n2 > 0.0 ? n1 / (n1 + 2.0 * n2) : 0.5;
}

static double order_probability(const order *o, size_t context, uint8_t c, double below)
{
    const double count = o->count[context * BYTES + c], total = o->total[context];

    if (total == 0.0)
        return below;
    return (fmax(count - o->discount, 0.0) + o->discount * o->types[context] * below) / total;
}

ngram *ngram_create(const uint8_t *text, int64_t n)
{
    ngram *g = calloc(1, sizeof *g);

    if (g == NULL || !order_alloc(&g->one, 1) || !order_alloc(&g->two, BYTES) ||
        !order_alloc(&g->three, (size_t)BYTES * BYTES)) {
        ngram_free(g);
        return NULL;
    }
    for (int64_t i = 2; i < n; i++)
        if (order_add(&g->three, (size_t)text[i - 2] * BYTES + text[i - 1], text[i]) &&
            order_add(&g->two, text[i - 1], text[i]))
            (void)order_add(&g->one, 0, text[i]);
    order_discount(&g->one);
    order_discount(&g->two);
    order_discount(&g->three);
    return g;
}

double ngram_probability(const ngram *g, uint8_t a, uint8_t b, uint8_t c)
{
    double p = order_probability(&g->one, 0, c, 1.0 / BYTES);

    p = order_probability(&g->two, b, c, p);
    return order_probability(&g->three, (size_t)a * BYTES + b, c, p);
}

double ngram_bits(const ngram *g, const uint8_t *text, int64_t first, int64_t n)
{
    double bits = 0.0;

    for (int64_t i = first; i < n; i++)
        bits -= log2(ngram_probability(g, text[i - 2], text[i - 1], text[i]));
    return bits / (double)(n - first);
}

void ngram_free(ngram *g)
{
    if (g == NULL)
        return;
    order_free(&g->one);
    order_free(&g->two);
    order_free(&g->three);
    free(g);
}
