/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agreement.c - messages of the agreement on who goes on, from members that may say anything.
 *
 * How     One member of five, whose state machine is the real one, is told what has happened: members come, are lost or dead, say
 *         something, time passes, a build ends. Messages come raw, or sound but for what the input says.
 * Holds   Members that do not exist are never spoken to; what it is to build has this member in it, and a place that ends; a
 *         failure has a status and words. What is decoded and encoded again is decoded as the same. */
#include "fuzz/fuzz.h"

#include "regroup/agreement_core.h"
#include "wire/bytes.h"

enum { MEMBERS = 5, RANK = 2, EVENTS_MAX = 400 };

static tutti_status open_place(void *ctx, const bool *chosen, char place_out[TTI_AGREE_PLACE_MAX])
{
    (void)ctx;
    (void)chosen;
    snprintf(place_out, TTI_AGREE_PLACE_MAX, "here");
    return TUTTI_OK;
}

static void send(void *ctx, int to, const void *message, size_t bytes)
{
    (void)ctx;
    TT_MUST(to >= 0 && to < MEMBERS && to != RANK && message != NULL && bytes == tti_agreement_message_bytes(MEMBERS));
}

/* A message with a sound head, and the rest out of the input. */
static void make_message(tt_input *in, uint8_t *out, size_t bytes)
{
    const uint8_t type = (uint8_t)tt_take(in, 1);
    const tt_input rest = tt_take_part(in, bytes - 12);

    memset(out, 0, bytes);
    tti_put_u32(out, UINT32_C(0x65657267));
    tti_put_u16(out + 4, 1);
    out[6] = type & 15;
    out[7] = type >> 7;
    tti_put_u32(out + 8, MEMBERS);
    memcpy(out + 12, rest.at, rest.left);
}

static void check_encoding(const tti_agreement *a, const uint8_t *message, size_t bytes)
{
    bool              value[MEMBERS], list[MEMBERS], value2[MEMBERS], list2[MEMBERS];
    tti_agree_message m = { .value = value, .list = list }, again = { .value = value2, .list = list2 };
    uint8_t          *copy;

    if (!tti_agree_decode(a, message, bytes, &m))
        return;
    TT_MUST(m.type >= TTI_AGREE_JOIN && m.type <= TTI_AGREE_ALL_KNOW && (unsigned)m.status <= TUTTI_E_REMOTE);
    TT_MUST(memchr(m.words, '\0', sizeof m.words) != NULL && memchr(m.place, '\0', sizeof m.place) != NULL);
    copy = malloc(bytes);
    TT_MUST(copy != NULL);
    tti_agree_encode(a, &m, copy);
    TT_MUST(tti_agree_decode(a, copy, bytes, &again));
    TT_MUST(again.type == m.type && again.ballot == m.ballot && again.origin == m.origin && again.accepted == m.accepted);
    TT_MUST(memcmp(value, value2, sizeof value) == 0 && strcmp(m.words, again.words) == 0);
    free(copy);
}

static void hear(tti_agreement *a, tt_input *in, int from, bool raw)
{
    const size_t bytes = tti_agreement_message_bytes(MEMBERS);
    uint8_t     *message;
    tt_input     part;

    if (raw) {
        part = tt_take_sized(in);
        message = tt_copy(part.at, part.left);
        check_encoding(a, message, part.left);
        tti_agreement_heard(a, from, message, part.left);
    } else {
        message = malloc(bytes);
        TT_MUST(message != NULL);
        make_message(in, message, bytes);
        check_encoding(a, message, bytes);
        tti_agreement_heard(a, from, message, bytes);
    }
    free(message);
}

static void event(tti_agreement *a, tt_input *in, int64_t *now_ns)
{
    const uint8_t what = (uint8_t)tt_take(in, 1);
    const int     rank = what >> 4 & 7;
    const bool    other = rank < MEMBERS && rank != RANK;

    switch (what & 15) {
    case 0:
    case 1: *now_ns += (int64_t)tt_take(in, 1) * 50 * TTI_MS; tti_agreement_tick(a, *now_ns); break;
    case 2:
        if (other)
            tti_agreement_present(a, rank);
        break;
    case 3:
        if (other)
            tti_agreement_absent(a, rank);
        break;
    case 4:
        if (other)
            tti_agreement_gone(a, rank);
        break;
    case 5: tti_agreement_built(a, what & 0x80 ? TUTTI_E_PEER : TUTTI_OK, "it went wrong"); break;
    case 6: hear(a, in, rank, true); break;
    default: hear(a, in, rank, false); break;
    }
}

static void look(const tti_agreement *a)
{
    const char *words = NULL;
    int         r;

    for (r = 0; r < MEMBERS; r++)
        (void)tti_agreement_wants(a, r);
    switch (tti_agreement_now(a)) {
    case TTI_AGREE_BUILD:
    case TTI_AGREE_DONE:
        TT_MUST(tti_agreement_chosen(a)[RANK]);
        TT_MUST(memchr(tti_agreement_place(a), '\0', TTI_AGREE_PLACE_MAX) != NULL);
        break;
    case TTI_AGREE_FAILED:
        TT_MUST(tti_agreement_failure(a, &words) != TUTTI_OK && words != NULL);
        TT_MUST((unsigned)tti_agreement_failure(a, &words) <= TUTTI_E_REMOTE);
        break;
    case TTI_AGREE_WAIT: break;
    }
    (void)tti_agreement_leads(a);
    (void)tti_agreement_in_vain(a);
    (void)tti_agreement_next_ns(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const bool    excluded[MEMBERS] = { false, true, false, false, false };
    tt_input             in = tt_input_of(data, size);
    const uint8_t        how = (uint8_t)tt_take(&in, 1);
    int64_t              now_ns = TTI_SECOND;
    tti_agreement_config config = { .n = MEMBERS, .rank = RANK, .minority = (how & 1) != 0, .what = "shrink_group",
                                    .excluded = how & 2 ? excluded : NULL, .now_ns = now_ns,
                                    .deadline_ns = now_ns + 30 * TTI_SECOND, .patience_ns = 2 * TTI_SECOND,
                                    .open = open_place, .send = send };
    tti_agreement       *a = NULL;
    int                  n;

    TT_MUST(tti_agreement_create(&config, &a) == TUTTI_OK);
    for (n = 0; in.left > 0 && n < EVENTS_MAX; n++) {
        event(a, &in, &now_ns);
        look(a);
    }
    tti_agreement_free(a);
    return 0;
}
