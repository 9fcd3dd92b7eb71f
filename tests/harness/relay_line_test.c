/* SPDX-License-Identifier: BSD-3-Clause
 *
 * relay_line_test.c
 * Goal    A line delays by what it was told, keeps order under jitter unless told otherwise, loses its share and always the
 *         same packets, sends no faster than its rate, and drops what does not fit.
 * Method  A clock made here; packets that are their number. */
#include "harness/relay.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { MS = 1000000, MANY = 20000, BYTES = 1000 };

static bool put(tt_line *line, int64_t now, int number)
{
    unsigned char packet[BYTES] = { 0 };

    memcpy(packet, &number, sizeof number);
    return tt_line_put(line, now, packet, sizeof packet);
}

static int take(tt_line *line)
{
    const void  *packet = NULL;
    const size_t bytes = tt_line_take(line, &packet);
    int          number = -1;

    if (bytes == 0)
        return -1;
    assert_int_equal(bytes, BYTES);
    memcpy(&number, packet, sizeof number);
    return number;
}

static void delays_exactly(void **state)
{
    tt_line *line = tt_line_open(&(tt_relay_link){ .delay_ns = 10 * MS }, 0);
    int      i;

    (void)state;
    assert_true(tt_line_due(line) == INT64_MAX && take(line) == -1);
    for (i = 0; i < 100; i++)
        assert_true(put(line, i * MS, i));
    for (i = 0; i < 100; i++) {
        assert_int_equal(tt_line_due(line), (10 + i) * (int64_t)MS);
        assert_int_equal(take(line), i);
    }
    tt_line_close(line);
}

/* Packets a tenth of a millisecond apart, 5 +- 5 ms. How many are overtaken; the range of delays goes out. */
static int overtaken(bool reorder, int64_t *least_out, int64_t *most_out)
{
    tt_line *line = tt_line_open(&(tt_relay_link){ .delay_ns = 5 * MS, .jitter_ns = 5 * MS, .reorder = reorder, .seed = 3 }, 0);
    int      i, number, last = -1, n = 0;

    *least_out = INT64_MAX;
    *most_out = 0;
    for (i = 0; i < MANY; i++)
        assert_true(put(line, i * (int64_t)(MS / 10), i));
    for (i = 0; i < MANY; i++) {
        const int64_t due = tt_line_due(line);
        int64_t       took;

        number = take(line);
        took = due - number * (int64_t)(MS / 10);
        *least_out = took < *least_out ? took : *least_out;
        *most_out = took > *most_out ? took : *most_out;
        n += number < last;
        last = number;
    }
    tt_line_close(line);
    return n;
}

static void order_is_kept_unless_asked(void **state)
{
    int64_t least, most;

    (void)state;
    assert_int_equal(overtaken(false, &least, &most), 0);
    assert_in_range(most, 9 * MS, 10 * MS);
    assert_true(overtaken(true, &least, &most) > MANY / 4);
    assert_in_range(least, 0, MS / 10); /* the range is used, and not left */
    assert_in_range(most, 99 * MS / 10, 10 * MS);
}

static int lost_of(double loss, uint64_t seed, uint64_t which, char *fates)
{
    tt_line *line = tt_line_open(&(tt_relay_link){ .loss = loss, .seed = seed }, which);
    int      i, n = 0;

    for (i = 0; i < MANY; i++) {
        fates[i] = put(line, i, i);
        n += !fates[i];
        if (fates[i])
            assert_int_equal(take(line), i);
    }
    tt_line_close(line);
    return n;
}

static void loses_its_share_and_always_the_same(void **state)
{
    static char   a[MANY], b[MANY];
    const double  shares[] = { 0.001, 0.01, 0.3 };
    uint64_t      seed;
    size_t        i;

    (void)state;
    for (i = 0; i < sizeof shares / sizeof shares[0]; i++)
        for (seed = 1; seed < 6; seed++) {
            const double mean = MANY * shares[i], deviation = sqrt(mean * (1 - shares[i]));
            const int    lost = lost_of(shares[i], seed, 0, a);

            assert_true(fabs(lost - mean) < 5 * deviation);
            assert_int_equal(lost_of(shares[i], seed, 0, b), lost);
            assert_memory_equal(a, b, MANY);
        }
    lost_of(0.3, 1, 1, b);
    assert_memory_not_equal(a, b, MANY); /* another line has luck of its own */
    assert_int_equal(lost_of(0, 1, 0, a), 0);
}

static void sends_at_its_rate_and_drops_what_is_too_much(void **state)
{
    /* 8 Mbit/s: a packet of 1000 bytes takes a millisecond; ten of them fit into the queue */
    tt_line        *line = tt_line_open(&(tt_relay_link){ .rate_bps = 8000000, .queue_bytes = 10 * BYTES, .delay_ns = MS }, 0);
    tt_relay_counts counts = { 0 };
    int             i;

    (void)state;
    for (i = 0; i < 20; i++)
        assert_int_equal(put(line, 0, i), i <= 10);
    for (i = 0; i <= 10; i++) {
        assert_int_equal(tt_line_due(line), (2 + i) * (int64_t)MS);
        assert_int_equal(take(line), i);
    }
    assert_true(put(line, 100 * MS, 20)); /* a rest is not saved up */
    assert_int_equal(tt_line_due(line), 102 * MS);
    tt_line_count(line, &counts);
    assert_int_equal(counts.packets, 21);
    assert_int_equal(counts.dropped, 9);
    assert_int_equal(counts.delivered, 11);
    assert_int_equal(counts.lost, 0);
    tt_line_close(line); /* with a packet in it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_exactly),
        cmocka_unit_test(order_is_kept_unless_asked),
        cmocka_unit_test(loses_its_share_and_always_the_same),
        cmocka_unit_test(sends_at_its_rate_and_drops_what_is_too_much),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
