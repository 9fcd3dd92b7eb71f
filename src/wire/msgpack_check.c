/* SPDX-License-Identifier: BSD-3-Clause
 *
 * msgpack_check.c - msgpack walked without building anything.
 *
 * Why     A parser that believes lengths takes 96 GB for five bytes ("an array of 2^32-1").
 * How     Each value is a head, of 1 to 9 bytes, and then bytes that belong to it, or values inside. A stack
 *         of TTI_MSGPACK_DEPTH_MAX counts says how many values are still to come at each depth.
 * True    A count is believed only as far as there are bytes left: every value has one at least. So what a
 *         parser takes afterwards is at most a constant times the size. */
#include "wire/msgpack_check.h"

#include <stdbool.h>
#include <tutti/private.h>

typedef struct walk {
    const uint8_t            *data;
    size_t                    size;
    size_t                    at;
    const tti_msgpack_limits *limits;
    const char               *whose;
    uint64_t                  values;
    int                       depth;
    uint64_t                  left[TTI_MSGPACK_DEPTH_MAX + 1]; /* values to come at each depth */
} walk;

static tutti_status bad(const walk *w, const char *what)
{
    return tti_fail(TUTTI_E_MISMATCH, "the %zu bytes of %s are no msgpack value that is allowed: %s at byte %zu",
                    w->size, w->whose, what, w->at);
}

/* A big-endian number of the head, which may be cut off. */
static bool take_number(walk *w, size_t bytes, uint64_t *number_out)
{
    uint64_t number = 0;
    size_t   i;

    if (bytes > w->size - w->at)
        return false;
    for (i = 0; i < bytes; i++)
        number = number << 8 | w->data[w->at + i];
    w->at += bytes;
    *number_out = number;
    return true;
}

static tutti_status skip(walk *w, uint64_t bytes)
{
    if (bytes > w->size - w->at)
        return bad(w, "a string that is cut off");
    w->at += (size_t)bytes;
    return TUTTI_OK;
}

/* Begin an array or a map of so many values. */
static tutti_status enter(walk *w, uint64_t n)
{
    if (n > w->size - w->at)
        return bad(w, "more values than there are bytes");
    if (w->depth >= w->limits->depth)
        return bad(w, "too many arrays and maps inside each other");
    w->left[++w->depth] = n;
    return TUTTI_OK;
}

/* The rest of a value whose length stands in bytes after the head: of a string, with extra more bytes. */
static tutti_status sized_string(walk *w, size_t bytes, uint64_t extra)
{
    uint64_t n = 0;

    return take_number(w, bytes, &n) ? skip(w, n + extra) : bad(w, "a length that is cut off");
}

/* The same of an array (each 1) or a map (each 2). */
static tutti_status sized_list(walk *w, size_t bytes, uint64_t each)
{
    uint64_t n = 0;

    return take_number(w, bytes, &n) ? enter(w, n * each) : bad(w, "a length that is cut off");
}

static tutti_status take_marked(walk *w, uint8_t head)
{
    switch (head) {
    case 0xc0: /* nil, false, true */
    case 0xc2:
    case 0xc3: return TUTTI_OK;
    case 0xc4: /* bin 8, 16, 32 */
    case 0xc5:
    case 0xc6: return sized_string(w, (size_t)1 << (head - 0xc4), 0);
    case 0xc7: /* ext 8, 16, 32: and a type */
    case 0xc8:
    case 0xc9: return sized_string(w, (size_t)1 << (head - 0xc7), 1);
    case 0xca: return skip(w, 4); /* float */
    case 0xcb: return skip(w, 8);
    case 0xcc: /* uint 8 .. 64 */
    case 0xcd:
    case 0xce:
    case 0xcf: return skip(w, UINT64_C(1) << (head - 0xcc));
    case 0xd0: /* int 8 .. 64 */
    case 0xd1:
    case 0xd2:
    case 0xd3: return skip(w, UINT64_C(1) << (head - 0xd0));
    case 0xd4: /* fixext 1 .. 16: and a type */
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8: return skip(w, (UINT64_C(1) << (head - 0xd4)) + 1);
    case 0xd9: /* str 8, 16, 32 */
    case 0xda:
    case 0xdb: return sized_string(w, (size_t)1 << (head - 0xd9), 0);
    case 0xdc: /* array 16, 32 */
    case 0xdd: return sized_list(w, (size_t)2 << (head - 0xdc), 1);
    case 0xde: /* map 16, 32 */
    case 0xdf: return sized_list(w, (size_t)2 << (head - 0xde), 2);
    default: return bad(w, "a head that means nothing"); /* 0xc1 */
    }
}

static tutti_status take_value(walk *w)
{
    uint8_t head;

    if (w->at >= w->size)
        return bad(w, "a value that is missing");
    if (++w->values > w->limits->values)
        return bad(w, "too many values");
    head = w->data[w->at++];
    if (head < 0x80 || head >= 0xe0)
        return TUTTI_OK; /* small numbers */
    if (head < 0x90)
        return enter(w, (uint64_t)(head & 0x0f) * 2);
    if (head < 0xa0)
        return enter(w, head & 0x0f);
    if (head < 0xc0)
        return skip(w, head & 0x1f);
    return take_marked(w, head);
}

tutti_status tti_msgpack_check(const void *data, size_t size, const tti_msgpack_limits *limits, const char *whose)
{
    walk         w = { .data = data, .size = size, .limits = limits, .whose = whose };
    tutti_status st = TUTTI_OK;

    w.left[0] = 1;
    while (st == TUTTI_OK) {
        while (w.depth > 0 && w.left[w.depth] == 0)
            w.depth--;
        if (w.left[w.depth] == 0)
            return w.at == size ? TUTTI_OK : bad(&w, "something behind the value");
        w.left[w.depth]--;
        st = take_value(&w);
    }
    return st;
}
