/* SPDX-License-Identifier: BSD-3-Clause
 *
 * digest.c - a book as bytes, and back. Whoever sends them has proved that it belongs to the job; what it sends is
 * checked all the same: counts and ranks before they are used, lives before they are believed. */
#include "transport/health/digest.h"

#include <string.h>

#define DIGEST_MAGIC UINT32_C(0x74616562) /* "beat" */

typedef struct head {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint32_t n_stamps;
    uint32_t n_words;
    uint32_t n_deeds;
    uint32_t zero;
} head;

typedef struct record {
    uint32_t rank;
    uint32_t zero;
    uint64_t value;
} record;

_Static_assert(sizeof(head) == TTI_DIGEST_HEAD_BYTES && sizeof(record) == TTI_DIGEST_RECORD_BYTES,
               "digests cross hosts");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "digests are sent as they lie in memory");

size_t tti_digest_bytes_max(int n_ranks)
{
    return sizeof(head) + 3 * (size_t)n_ranks * sizeof(record);
}

static uint8_t *add_record(uint8_t *at, int rank, uint64_t value)
{
    const record r = { .rank = (uint32_t)rank, .value = value };

    memcpy(at, &r, sizeof r);
    return at + sizeof r;
}

size_t tti_digest_write(const tti_book *book, tti_digest_kind kind, uint8_t *out)
{
    head     h = { .magic = DIGEST_MAGIC, .version = TTI_DIGEST_VERSION, .kind = (uint16_t)kind };
    uint8_t *at = out + sizeof h;
    int      r;

    for (r = 0; r < book->n_ranks; r++)
        if (book->hosts[r] == r && tti_book_stamp_ms(book, r) != 0) {
            at = add_record(at, r, (uint64_t)tti_book_stamp_ms(book, r));
            h.n_stamps++;
        }
    for (r = 0; r < book->n_ranks; r++)
        if (tti_book_said(book, r) != 0) {
            at = add_record(at, r, tti_book_said(book, r));
            h.n_words++;
        }
    for (r = 0; r < book->n_ranks; r++)
        if (tti_book_report(book, r).deed != 0) {
            at = add_record(at, r, tti_book_deed(book, r));
            h.n_deeds++;
        }
    memcpy(out, &h, sizeof h);
    return (size_t)(at - out);
}

void tti_digest_hang_up(uint8_t out[TTI_DIGEST_HEAD_BYTES])
{
    const head h = { .magic = DIGEST_MAGIC, .version = TTI_DIGEST_VERSION, .kind = TTI_DIGEST_HANG_UP };

    memcpy(out, &h, sizeof h);
}

int64_t tti_digest_size(const tti_book *book, const uint8_t *data, size_t bytes)
{
    const uint32_t n_ranks = (uint32_t)book->n_ranks;
    head           h;

    if (bytes < sizeof h)
        return 0;
    memcpy(&h, data, sizeof h);
    if (h.magic != DIGEST_MAGIC || h.version != TTI_DIGEST_VERSION || h.n_stamps > n_ranks || h.n_words > n_ranks ||
        h.n_deeds > n_ranks || h.zero != 0 ||
        h.kind < TTI_DIGEST_BEAT || h.kind > TTI_DIGEST_HANG_UP)
        return -1;
    return (int64_t)(sizeof h + ((size_t)h.n_stamps + h.n_words + h.n_deeds) * sizeof(record));
}

bool tti_digest_read(tti_book *book, const uint8_t *data, size_t bytes, tti_digest_kind *kind_out)
{
    const uint8_t *at = data + sizeof(head), *end = data + bytes;
    record         r;
    head           h;
    uint32_t       i;

    memcpy(&h, data, sizeof h);
    for (i = 0; at < end; i++, at += sizeof r) {
        memcpy(&r, at, sizeof r);
        if (r.rank >= (uint32_t)book->n_ranks || r.zero != 0)
            return false;
        if (i < h.n_stamps)
            tti_book_hear_stamp(book, (int)r.rank, (int64_t)(r.value & INT64_MAX));
        else if (i < h.n_stamps + h.n_words)
            tti_book_hear_said(book, (int)r.rank, r.value);
        else
            tti_book_hear_deed(book, (int)r.rank, r.value);
    }
    *kind_out = (tti_digest_kind)h.kind;
    return true;
}
