/* SPDX-License-Identifier: BSD-3-Clause
 *
 * line_ring_test.c
 * Goal    frames and payloads of all sizes come out as they went in, in order, many times round the ring.
 * Method  a thread writes and this one reads, so that a race detector sees both ends; payloads imitate records. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "transport/shm/line_ring.h"

enum { ROUNDS = 20000 };

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void fill(uint32_t seed, tti_frame *frame, uint8_t *payload)
{
    static const unsigned sizes[] = { 0, 1, 4, 31, 32, 33, 48, 49, 56, 104, 105, 160, 161, 200, 300,
                                      TTI_NEAR_MAX - 1, TTI_NEAR_MAX };
    const uint32_t        r = next(&seed);
    unsigned              i;

    *frame = (tti_frame){ .magic = TTI_FRAME_MAGIC, .version = TTI_FRAME_VERSION, .size = sizeof *frame,
                          .plane = r % 5, .dtype = (uint8_t)(r % 200), .group = next(&seed), .tag = -(int32_t)(r % 9),
                          .bytes = sizes[r % (sizeof sizes / sizeof sizes[0])] };
    if (r % 3 == 0) {
        frame->word = (uint64_t)next(&seed) << 30 | 1;
        frame->what = next(&seed);
    }
    if (r % 11 == 0)
        frame->bytes = (uint64_t)TTI_NEAR_MAX + 1 + r; /* far */
    for (i = 0; tti_frame_is_near(frame) && i < frame->bytes; i++)
        payload[i] = i % 8 == 0 ? (uint8_t)(seed + i) : 0; /* small numbers, as words of records have */
}

static void *write_all(void *arg)
{
    tti_line_writer w = { .ring = arg };
    uint8_t         payload[TTI_NEAR_MAX];
    tti_frame       frame;
    uint32_t        i;

    for (i = 0; i < ROUNDS; i++) {
        fill(i, &frame, payload);
        while (tti_lines_put(&w, &frame, payload, i) == -EAGAIN)
            sched_yield();
    }
    return NULL;
}

static void read_one(tti_line_reader *r, uint32_t i)
{
    uint8_t   expected[TTI_NEAR_MAX], got[TTI_NEAR_MAX];
    tti_frame want, frame;
    size_t    have = 0;
    int       err;

    fill(i, &want, expected);
    while ((err = tti_lines_frame(r, &frame)) == -EAGAIN)
        sched_yield();
    assert_int_equal(err, 0);
    assert_memory_equal(&frame, &want, sizeof want);
    if (!tti_frame_is_near(&want)) {
        assert_int_equal(r->address, i);
        return;
    }
    while (have < want.bytes) { /* sometimes in parts */
        const size_t part = i % 4 == 0 ? 37 : want.bytes;

        have += tti_lines_take(r, got + have, part < want.bytes - have ? part : want.bytes - have);
    }
    assert_memory_equal(got, expected, want.bytes);
}

static void records_come_out_as_they_went_in(void **state)
{
    tti_line_ring  *ring = aligned_alloc(TTI_LINE, sizeof *ring);
    tti_line_reader r = { .ring = ring };
    pthread_t       writer;
    uint32_t        i;

    (void)state;
    assert_non_null(ring);
    memset(ring, 0, sizeof *ring);
    assert_int_equal(pthread_create(&writer, NULL, write_all, ring), 0);
    for (i = 0; i < ROUNDS; i++)
        read_one(&r, i);
    pthread_join(writer, NULL);
    free(ring);
}

static void impossible_words_are_refused(void **state)
{
    tti_line_ring  *ring = aligned_alloc(TTI_LINE, sizeof *ring);
    tti_line_writer w = { .ring = ring };
    tti_line_reader r = { .ring = ring };
    const tti_frame frame = { .bytes = TTI_NEAR_MAX };
    uint8_t         payload[TTI_NEAR_MAX] = { 0 };
    tti_frame       got;
    int             err = 0;

    (void)state;
    assert_non_null(ring);
    memset(ring, 0, sizeof *ring);
    while (err == 0)
        err = tti_lines_put(&w, &frame, payload, 0);
    assert_int_equal(err, -EAGAIN);
    atomic_store(&ring->head, w.tail + 1); /* more than was written */
    assert_int_equal(tti_lines_put(&w, &frame, payload, 0), -EPROTO);
    atomic_store(&ring->lines[0].word, atomic_load(&ring->lines[0].word) | UINT64_C(0xfff) << 38);
    assert_int_equal(tti_lines_frame(&r, &got), -EPROTO); /* more than a record has */
    free(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_out_as_they_went_in),
        cmocka_unit_test(impossible_words_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
