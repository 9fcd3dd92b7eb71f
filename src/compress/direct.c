/* SPDX-License-Identifier: BSD-3-Clause
 *
 * direct.c - the motion of a quantised sum: each slice to its owner, its sum to all.
 *
 * Why     Rounded numbers that are added and rounded again at every hop of a ring lose bits with every rank. Sent to an
 *         owner at once they are rounded twice, however many ranks there are.
 * How     A piece goes through three steps, and each step of a rank deals with three pieces, AHEAD apart:
 *
 *             give   piece s        codes of the others' parts, sent to their owners
 *             add    piece s - 3    from all others: what they stand for and the own numbers summed in rank order,
 *                                   rounded once; codes sent to all
 *             take   piece s - 6    from all owners: numbers into buf
 *
 *         Messages are the backend's, with tags below those that programs may use. While a step computes, what the
 *         pieces before it have sent is on the way. Receives stand WINDOW pieces ahead, so that what arrives lands in place.
 * True    A part of buf is read in give (the own one in add) and written later, in take (add). The owner writes what the codes
 *         stand for, as all others do: the same bits.
 *         A slot has one piece at a time: give waits until the sends of the piece before are done; take has had all its
 *         receives when it posts those of the next. No rank waits in a cycle: what it needs in a step the others have
 *         sent AHEAD steps before theirs, without waiting for anything of this rank's that is later.
 *         Messages of one tag between two ranks arrive in order, and operations of a group do not overlap (a turn is held
 *         throughout), so pieces need no numbers.
 * Fails   The first failure is worded and told to all members; then all requests end, and are waited for, because they
 *         have the memory. */
#include "compress/compress.h"
#include "group/asked.h"

#include <stdio.h>
#include <string.h>
#include "kernel/quantize.h"
#include <tutti/private.h>

enum { AHEAD = 3, WINDOW = 2 * AHEAD + 1, TAG_GIVE = -2, TAG_SUM = -3, LINE = 64 };

/* Messages of each other rank in a slot, and what happens to them. */
typedef enum lane { GIVEN, TAKEN, RESULT, LANES } lane;
typedef enum errand { GIVE, TAKE, TELL, HEAR, ERRANDS } errand;

typedef struct motion {
    const tti_direct        *d;
    const tutti_backend_ops *ops;
    tutti_backend           *backend;
    tti_slices               s;
    int                      rank, others;
    int                      n_slots;
    size_t                   room; /* of a message */
    int64_t                  deadline_ns;
    tutti_request          **requests; /* [slot][errand][other] NULL: none is under way */
    tti_quantized           *in;       /* [ranks] */
    char                    *memory;   /* [slot]: [lane][other], and the own sum */
} motion;

/* ---- places ---- */

static int64_t slots_of(const tti_slices *s)
{
    return s->n_pieces < WINDOW ? s->n_pieces : WINDOW;
}

static size_t round_up(size_t bytes)
{
    return (bytes + LINE - 1) & ~(size_t)(LINE - 1);
}

static size_t requests_bytes(const tti_slices *s)
{
    return round_up((size_t)slots_of(s) * ERRANDS * (size_t)(s->n_ranks - 1) * sizeof(tutti_request *));
}

static size_t inputs_bytes(const tti_slices *s)
{
    return round_up((size_t)s->n_ranks * sizeof(tti_quantized));
}

size_t tti_direct_bytes(const tti_slices *s)
{
    const size_t messages = (size_t)slots_of(s) * (LANES * (size_t)(s->n_ranks - 1) + 1);

    return requests_bytes(s) + inputs_bytes(s) + messages * tti_slices_room(s) + LINE;
}

static int slot_of(const motion *m, int64_t k)
{
    return (int)(k % m->n_slots);
}

/* Other 0 is the rank behind this one, so that not all begin with the same. */
static int peer_of(const motion *m, int other)
{
    return (m->rank + 1 + other) % m->s.n_ranks;
}

static tutti_request **request_at(const motion *m, int slot, errand e, int other)
{
    return &m->requests[((size_t)slot * ERRANDS + (size_t)e) * (size_t)m->others + (size_t)other];
}

static char *message_at(const motion *m, int slot, lane l, int other)
{
    const size_t each = LANES * (size_t)m->others + 1;

    return m->memory + ((size_t)slot * each + (size_t)l * (size_t)m->others + (size_t)other) * m->room;
}

/* The own sum is behind the lanes of its slot. */
static char *sum_at(const motion *m, int slot)
{
    return message_at(m, slot, LANES, 0);
}

static float *scales_of(char *message)
{
    return (float *)(void *)message;
}

static int8_t *codes_of(char *message, const tti_stretch *part)
{
    return (int8_t *)(message + (size_t)part->n_blocks * sizeof(float));
}

static void *numbers_of(const motion *m, const tti_stretch *part)
{
    return (char *)m->d->buf.data + (size_t)part->from * tutti_dtype_size(m->d->buf.dtype);
}

static float *error_of(const motion *m, const tti_stretch *part)
{
    return m->d->error != NULL ? m->d->error + part->from : NULL;
}

/* ---- messages ---- */

static tutti_status post(const motion *m, int slot, errand e, int other, char *data, const tti_stretch *part)
{
    const tutti_message message = { .is_send = e == GIVE || e == TELL, .peer = peer_of(m, other),
                                    .tag = e == GIVE || e == TAKE ? TAG_GIVE : TAG_SUM, .dtype = TUTTI_U8,
                                    .count = (int64_t)tti_stretch_bytes(part), .data = data,
                                    .device = m->d->buf.device.type };

    return tti_asked_post(m->ops, m->backend, &message, request_at(m, slot, e, other));
}

/* Wait for one of them, if it is under way. After a failure it may be, still: drain() has it. */
static tutti_status await(const motion *m, int slot, errand e, int other)
{
    tutti_request **at = request_at(m, slot, e, other);
    tutti_status    st;

    if (*at == NULL)
        return TUTTI_OK;
    st = tti_asked_wait(m->ops, *at, m->deadline_ns);
    if (st == TUTTI_OK) {
        m->ops->release(*at);
        *at = NULL;
    }
    return st;
}

static tutti_status await_all(const motion *m, int slot, errand e)
{
    tutti_status st = TUTTI_OK;
    int          o;

    for (o = 0; o < m->others && st == TUTTI_OK; o++)
        st = await(m, slot, e, o);
    return st;
}

/* The group has failed, so they all end. */
static void drain(const motion *m)
{
    const size_t n = (size_t)m->n_slots * ERRANDS * (size_t)m->others;
    size_t       i;

    for (i = 0; i < n; i++)
        if (m->requests[i] != NULL) {
            m->ops->wait(m->requests[i], TTI_FOREVER);
            m->ops->release(m->requests[i]);
        }
}

static tutti_status fail(const motion *m, tutti_status st)
{
    char words[TTI_GROUP_WORDS_MAX];

    st = tti_compound_fail(m->d->compound, m->d->group, st);
    snprintf(words, sizeof words, "%s", tutti_last_error());
    drain(m);
    return tti_fail(st, "%s", words);
}

/* ---- steps ---- */

/* Be ready for what others give of piece k, and for the sums of theirs. */
static tutti_status expect(const motion *m, int64_t k)
{
    const int      slot = slot_of(m, k);
    const tti_stretch own = tti_slices_part(&m->s, m->rank, k);
    tutti_status   st = TUTTI_OK;
    int            o;

    for (o = 0; o < m->others && st == TUTTI_OK; o++) {
        const tti_stretch theirs = tti_slices_part(&m->s, peer_of(m, o), k);

        if (own.count > 0)
            st = post(m, slot, TAKE, o, message_at(m, slot, TAKEN, o), &own);
        if (st == TUTTI_OK && theirs.count > 0)
            st = post(m, slot, HEAR, o, message_at(m, slot, RESULT, o), &theirs);
    }
    return st;
}

static tutti_status give(const motion *m, int64_t k)
{
    const int    slot = slot_of(m, k);
    tutti_status st = await_all(m, slot, GIVE);
    int          o;

    for (o = 0; o < m->others && st == TUTTI_OK; o++) {
        const tti_stretch theirs = tti_slices_part(&m->s, peer_of(m, o), k);
        char          *message = message_at(m, slot, GIVEN, o);

        if (theirs.count == 0)
            continue;
        tti_quantize(codes_of(message, &theirs), scales_of(message), numbers_of(m, &theirs), m->d->buf.dtype,
                     theirs.count, m->s.block, error_of(m, &theirs));
        st = post(m, slot, GIVE, o, message, &theirs);
    }
    return st;
}

/* Codes of the sum of this rank's part of piece k, whose inputs are there. */
static void add_up(const motion *m, int slot, const tti_stretch *own)
{
    const float by = m->d->average ? (float)m->s.n_ranks : 1.0f;
    char       *sum = sum_at(m, slot);
    int         o;

    m->in[m->rank] = (tti_quantized){ .numbers = numbers_of(m, own) };
    for (o = 0; o < m->others; o++) {
        char *message = message_at(m, slot, TAKEN, o);

        m->in[peer_of(m, o)] = (tti_quantized){ .codes = codes_of(message, own), .scales = scales_of(message) };
    }
    tti_quantize_sum(codes_of(sum, own), scales_of(sum), m->in, m->s.n_ranks, m->d->buf.dtype, own->count, m->s.block,
                     by, error_of(m, own));
}

static tutti_status add(const motion *m, int64_t k)
{
    const int      slot = slot_of(m, k);
    const tti_stretch own = tti_slices_part(&m->s, m->rank, k);
    char          *sum = sum_at(m, slot);
    tutti_status   st = await_all(m, slot, TAKE);
    int            o;

    if (st == TUTTI_OK)
        st = await_all(m, slot, TELL); /* of the piece before: they have the memory of its sum */
    if (st != TUTTI_OK || own.count == 0)
        return st;
    add_up(m, slot, &own);
    for (o = 0; o < m->others && st == TUTTI_OK; o++)
        st = post(m, slot, TELL, o, sum, &own);
    tti_dequantize(numbers_of(m, &own), m->d->buf.dtype, codes_of(sum, &own), scales_of(sum), own.count, m->s.block);
    return st;
}

static tutti_status take(const motion *m, int64_t k)
{
    const int    slot = slot_of(m, k);
    tutti_status st = TUTTI_OK;
    int          o;

    for (o = 0; o < m->others && st == TUTTI_OK; o++) {
        const tti_stretch theirs = tti_slices_part(&m->s, peer_of(m, o), k);
        char          *message = message_at(m, slot, RESULT, o);

        st = await(m, slot, HEAR, o);
        if (st == TUTTI_OK && theirs.count > 0)
            tti_dequantize(numbers_of(m, &theirs), m->d->buf.dtype, codes_of(message, &theirs), scales_of(message),
                           theirs.count, m->s.block);
    }
    if (st == TUTTI_OK && k + WINDOW < m->s.n_pieces)
        st = expect(m, k + WINDOW);
    return st;
}

static tutti_status step(const motion *m, int64_t s)
{
    tutti_status st = s < m->s.n_pieces ? give(m, s) : TUTTI_OK;

    if (st == TUTTI_OK && s >= AHEAD && s - AHEAD < m->s.n_pieces)
        st = add(m, s - AHEAD);
    if (st == TUTTI_OK && s >= 2 * AHEAD)
        st = take(m, s - 2 * AHEAD);
    return st;
}

static tutti_status move(const motion *m)
{
    tutti_status st = TUTTI_OK;
    int64_t      k;

    for (k = 0; k < m->n_slots && st == TUTTI_OK; k++)
        st = expect(m, k);
    for (k = 0; k < m->s.n_pieces + 2 * AHEAD && st == TUTTI_OK; k++)
        st = step(m, k);
    for (k = 0; k < m->n_slots && st == TUTTI_OK; k++) {
        st = await_all(m, (int)k, GIVE);
        if (st == TUTTI_OK)
            st = await_all(m, (int)k, TELL);
    }
    return st;
}

tutti_status tti_direct_run(const tti_direct *d)
{
    const tti_slices *s = &d->slices;
    const tti_route  *route = &d->group->routes[d->buf.device.type];
    const int64_t     timeout_ms = d->group->timeout_ms;
    char             *memory = d->memory;
    const motion      m = { .d = d, .ops = route->ops, .backend = route->backend, .s = *s, .rank = d->group->rank,
                            .others = s->n_ranks - 1, .n_slots = (int)slots_of(s), .room = tti_slices_room(s),
                            .deadline_ns = tti_deadline(d->group->runner->port, timeout_ms, timeout_ms),
                            .requests = (tutti_request **)(void *)memory,
                            .in = (tti_quantized *)(void *)(memory + requests_bytes(s)),
                            .memory = memory + requests_bytes(s) + inputs_bytes(s) };
    tutti_status      st;

    memset(memory, 0, requests_bytes(s));
    st = move(&m);
    return st == TUTTI_OK ? TUTTI_OK : fail(&m, st);
}
