/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ngram_test.c
 * Goal    the 3-gram model has the probabilities that Kneser and Ney's formula gives, and they are probabilities.
 * Method  a text of nine bytes, small enough to count by hand; sums over all bytes behind contexts of each kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "ngram.h"

/* "aabaabaac" has the 3-grams aab aba baa aab aba baa aac.
 *
 *     #aab = #aba = #baa = 2, #aac = 1       one count is 1, three are 2:         d3 = 1 / (1 + 2 * 3) = 1/7
 *     ab, ba, aa, ac: each behind one byte   four counts are 1, none is 2:        d2 = 1/2
 *     #b = 1 (ab), #a = 2 (ba, aa), #c = 1   two counts are 1, one is 2:          d1 = 2 / (2 + 2) = 1/2
 *
 * One context, three bytes, four in all; x = 1/256:
 *     p1(a) = (2 - 1/2 + 1/2 3 x) / 4 = 3/8 + 3x/8,   p1(b) = p1(c) = 1/8 + 3x/8,   p1(other) = 3x/8
 * behind a come a, b, c, once each, three in all; behind b comes a, once:
 *     p2(y | a) = (1 - 1/2 + 1/2 3 p1(y)) / 3 = 1/6 + p1(y) / 2   of a, b, c;   p1(y) / 2 of others
 *     p2(a | b) = 1/2 + p1(a) / 2
 * behind aa come b twice and c once:
 *     p3(b | aa) = (2 - 1/7 + 1/7 2 p2(b | a)) / 3,   p3(a | aa) = 2/7 p2(a | a) / 3 */
static const char text[] = "aabaabaac";

static ngram *counted(void)
{
    ngram *g = ngram_create((const uint8_t *)text, (int64_t)strlen(text));

    assert_non_null(g);
    return g;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-15))
        fail_msg("%.17g instead of %.17g", got, want);
}

static void probabilities_by_hand(void **state)
{
    const double x = 1.0 / 256.0;
    const double a1 = 3.0 / 8.0 + 3.0 * x / 8.0, b1 = 1.0 / 8.0 + 3.0 * x / 8.0, z1 = 3.0 * x / 8.0;
    ngram *g = counted();

    (void)state;
    near(ngram_probability(g, 'a', 'a', 'b'), (2.0 - 1.0 / 7.0 + 2.0 / 7.0 * (1.0 / 6.0 + b1 / 2.0)) / 3.0);
    near(ngram_probability(g, 'a', 'a', 'c'), (1.0 - 1.0 / 7.0 + 2.0 / 7.0 * (1.0 / 6.0 + b1 / 2.0)) / 3.0);
    near(ngram_probability(g, 'a', 'a', 'a'), 2.0 / 7.0 * (1.0 / 6.0 + a1 / 2.0) / 3.0);
    near(ngram_probability(g, 'a', 'a', 'z'), 2.0 / 7.0 * z1 / 2.0 / 3.0);
    near(ngram_probability(g, 'a', 'b', 'a'), (2.0 - 1.0 / 7.0 + 1.0 / 7.0 * (0.5 + a1 / 2.0)) / 2.0);
    near(ngram_probability(g, 'z', 'b', 'a'), 0.5 + a1 / 2.0); /* never seen: as behind b */
    near(ngram_probability(g, 'z', 'z', 'a'), a1);             /* nor that: as anywhere */
    near(ngram_probability(g, 'a', 'c', 'z'), z1);
    ngram_free(g);
}

static void bits_are_means_of_logarithms(void **state)
{
    const uint8_t more[] = "aabaz";
    ngram *g = counted();
    const double p = ngram_probability(g, 'a', 'b', 'a'), q = ngram_probability(g, 'b', 'a', 'z');

    (void)state;
    near(ngram_bits(g, more, 3, 5), -(log2(p) + log2(q)) / 2.0);
    ngram_free(g);
}

static void they_sum_to_one(void **state)
{
    static const char *const contexts[] = { "aa", "ab", "ba", "ac", "zb", "zz", "\xff\xff" };
    ngram *g = counted();

    (void)state;
    for (size_t i = 0; i < sizeof contexts / sizeof contexts[0]; i++) {
        const uint8_t *k = (const uint8_t *)contexts[i];
        double sum = 0.0;

        for (int c = 0; c < 256; c++) {
            assert_true(ngram_probability(g, k[0], k[1], (uint8_t)c) > 0.0);
            sum += ngram_probability(g, k[0], k[1], (uint8_t)c);
        }
        assert_true(fabs(sum - 1.0) < 1e-12);
    }
    ngram_free(g);
}

/* Two bytes have no 3-gram: all bytes are alike. */
static void nothing_counted_is_eight_bits(void **state)
{
    ngram *g = ngram_create((const uint8_t *)text, 2);

    (void)state;
    assert_non_null(g);
    near(ngram_bits(g, (const uint8_t *)text, 2, 9), 8.0);
    ngram_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_by_hand),
        cmocka_unit_test(bits_are_means_of_logarithms),
        cmocka_unit_test(they_sum_to_one),
        cmocka_unit_test(nothing_counted_is_eight_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
