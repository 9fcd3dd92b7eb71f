/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agreement_message.c - the messages of an agreement as bytes: one size, little endian, sets as bits.
 *
 *     0 magic 4   4 version 2   6 type 1   7 flags 1   8 n 4   12 status 4
 *     16 ballot 8   24 accepted 8   32 origin 8   40 place   360 words   872 value   ... list */
#include "regroup/agreement_core.h"

#include <string.h>
#include "wire/bytes.h"

#define MAGIC UINT32_C(0x65657267) /* "gree" */

enum { VERSION = 1, HAS_LIST = 1, AT_PLACE = 40, AT_WORDS = AT_PLACE + TTI_AGREE_PLACE_MAX,
       AT_SETS = AT_WORDS + TTI_AGREE_WORDS_MAX };

static size_t set_bytes(int n)
{
    return ((size_t)n + 7) / 8;
}

size_t tti_agreement_message_bytes(int n)
{
    return AT_SETS + 2 * set_bytes(n);
}

static void put_set(uint8_t *at, const bool *set, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (set[i])
            at[i / 8] |= (uint8_t)(1u << (i % 8));
}

static void get_set(const uint8_t *at, bool *set, int n)
{
    int i;

    for (i = 0; i < n; i++)
        set[i] = (at[i / 8] >> (i % 8) & 1u) != 0;
}

void tti_agree_encode(const tti_agreement *a, const tti_agree_message *m, uint8_t *out)
{
    uint8_t *at = out;

    memset(out, 0, tti_agreement_message_bytes(a->n));
    at = tti_put_u32(at, MAGIC);
    at = tti_put_u16(at, VERSION);
    *at++ = (uint8_t)m->type;
    *at++ = a->config.excluded != NULL ? HAS_LIST : 0;
    at = tti_put_u32(at, (uint32_t)a->n);
    at = tti_put_u32(at, (uint32_t)m->status);
    at = tti_put_u64(at, m->ballot);
    at = tti_put_u64(at, m->accepted);
    (void)tti_put_u64(at, m->origin);
    memcpy(out + AT_PLACE, m->place, sizeof m->place);
    memcpy(out + AT_WORDS, m->words, sizeof m->words);
    if (m->value != NULL)
        put_set(out + AT_SETS, m->value, a->n);
    if (a->config.excluded != NULL || m->list != NULL)
        put_set(out + AT_SETS + set_bytes(a->n), a->config.excluded != NULL ? a->config.excluded : m->list, a->n);
}

bool tti_agree_decode(const tti_agreement *a, const uint8_t *in, size_t bytes, tti_agree_message *m)
{
    if (bytes != tti_agreement_message_bytes(a->n) || tti_get_u32(in) != MAGIC || tti_get_u16(in + 4) != VERSION ||
        tti_get_u32(in + 8) != (uint32_t)a->n)
        return false;
    if (in[6] < TTI_AGREE_JOIN || in[6] > TTI_AGREE_ALL_KNOW || tti_get_u32(in + 12) > TUTTI_E_REMOTE)
        return false;
    m->type = (tti_agree_type)in[6];
    m->has_list = (in[7] & HAS_LIST) != 0;
    m->status = (tutti_status)tti_get_u32(in + 12);
    m->ballot = tti_get_u64(in + 16);
    m->accepted = tti_get_u64(in + 24);
    m->origin = tti_get_u64(in + 32);
    memcpy(m->place, in + AT_PLACE, sizeof m->place);
    memcpy(m->words, in + AT_WORDS, sizeof m->words);
    m->place[sizeof m->place - 1] = '\0';
    m->words[sizeof m->words - 1] = '\0';
    get_set(in + AT_SETS, m->value, a->n);
    get_set(in + AT_SETS + set_bytes(a->n), m->list, a->n);
    return true;
}
