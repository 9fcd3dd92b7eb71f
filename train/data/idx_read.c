/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/idx_read.c - one whole IDX file, checked, in memory.
 *
 * Why     The file may come from anywhere: what its header claims is not believed.
 * How     Header; limits; what the claim needs against what the file can hold; then the bytes, into
 *         memory that doubles as they really come; then one more byte, which must not be there.
 * True    Every number is compared with its limit before it is multiplied, so nothing overflows:
 *         2^24 * 2^12 * 2^12 fits in 64 bits. Memory stays below twice what the file really gave.
 * Fails   TUTTI_E_IO with the file's name and the two numbers that disagree. */
#include "data/idx.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { STEP_BYTES = 1 << 20, HEADER_WORDS_MAX = 4 };

static const char *kind(uint32_t magic)
{
    return magic == TTI_IDX_IMAGES ? "pictures" : "labels";
}

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static tutti_status check_range(const tti_idx_source *source, const char *what, uint32_t value,
                                uint32_t max)
{
    if (value >= 1 && value <= max)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_IO, "'%s' claims %lu %s: 1 to %lu can be read",
                    tti_idx_source_name(source), (unsigned long)value, what, (unsigned long)max);
}

static tutti_status check_claim(const tti_idx_source *source, const uint32_t *word,
                                tti_idx *idx_out)
{
    tutti_status st = check_range(source, kind(word[0]), word[1], TUTTI_IDX_COUNT_MAX);

    if (st == TUTTI_OK)
        st = check_range(source, "rows", word[2], TUTTI_IDX_SIDE_MAX);
    if (st == TUTTI_OK)
        st = check_range(source, "columns", word[3], TUTTI_IDX_SIDE_MAX);
    if (st != TUTTI_OK)
        return st;
    if ((uint64_t)word[1] * word[2] * word[3] > TUTTI_IDX_BYTES_MAX)
        return tti_fail(TUTTI_E_IO,
                        "'%s' claims %lu pictures of %lu x %lu pixels: at most %d bytes can"
                        " be read",
                        tti_idx_source_name(source), (unsigned long)word[1], (unsigned long)word[2],
                        (unsigned long)word[3], TUTTI_IDX_BYTES_MAX);
    idx_out->count = word[1];
    idx_out->rows = word[2];
    idx_out->cols = word[3];
    return TUTTI_OK;
}

static bool named_gzip(const tti_idx_source *source)
{
    const char *name = tti_idx_source_name(source);
    const size_t n = strlen(name);

    return n > 3 && strcmp(name + n - 3, ".gz") == 0;
}

static tutti_status read_header(tti_idx_source *source, uint32_t magic, size_t *header_out,
                                tti_idx *idx_out)
{
    const size_t n_words = magic == TTI_IDX_IMAGES ? 4 : 2;
    uint8_t raw[4 * HEADER_WORDS_MAX];
    uint32_t word[HEADER_WORDS_MAX] = { 0, 0, 1, 1 };
    size_t got = 0;
    tutti_status st = tti_idx_source_read(source, raw, 4 * n_words, &got);

    if (st != TUTTI_OK)
        return st;
    for (size_t i = 0; i < got / 4; i++)
        word[i] = big_endian(raw + 4 * i);
    if (got >= 4 && word[0] != magic && !tti_idx_source_is_gzip(source) && named_gzip(source))
        return tti_fail(TUTTI_E_IO,
                        "'%s' is no gzip file, and no IDX file of %s: it begins with 0x%08lx",
                        tti_idx_source_name(source), kind(magic), (unsigned long)word[0]);
    if (got >= 4 && word[0] != magic)
        return tti_fail(
            TUTTI_E_IO, "'%s' is no IDX file of %s: it begins with 0x%08lx, not 0x%08lx",
            tti_idx_source_name(source), kind(magic), (unsigned long)word[0], (unsigned long)magic);
    if (got < 4 * n_words)
        return tti_fail(TUTTI_E_IO, "'%s' is truncated: %zu bytes, and its header alone has %zu",
                        tti_idx_source_name(source), got, 4 * n_words);
    *header_out = 4 * n_words;
    return check_claim(source, word, idx_out);
}

/* Read need bytes into memory that grows as they come. */
static tutti_status read_growing(tti_idx_source *source, size_t need, uint8_t **bytes_out,
                                 size_t *got_out)
{
    uint8_t *bytes = NULL;
    size_t room = 0, got = 0;
    tutti_status st = TUTTI_OK;

    while (st == TUTTI_OK && got == room && got < need) {
        const size_t want = room < STEP_BYTES ? STEP_BYTES : 2 * room;
        uint8_t *more;
        size_t some = 0;

        room = want < need ? want : need;
        more = realloc(bytes, room);
        if (more == NULL) {
            st = tti_fail(TUTTI_E_NOMEM, "no memory for %zu bytes of '%s'", room,
                          tti_idx_source_name(source));
            break;
        }
        bytes = more;
        st = tti_idx_source_read(source, bytes + got, room - got, &some);
        got += some;
    }
    if (st != TUTTI_OK) {
        free(bytes);
        return st;
    }
    *bytes_out = bytes;
    *got_out = got;
    return TUTTI_OK;
}

static tutti_status check_end(tti_idx_source *source, size_t header, size_t need)
{
    uint8_t extra;
    size_t got = 0;
    tutti_status st = tti_idx_source_read(source, &extra, 1, &got);

    if (st == TUTTI_OK && got != 0)
        st = tti_fail(TUTTI_E_IO, "'%s' has bytes behind the %zu that its header accounts for",
                      tti_idx_source_name(source), header + need);
    return st;
}

static tutti_status truncated(const tti_idx_source *source, uint64_t claimed, const char *up_to,
                              uint64_t held)
{
    return tti_fail(
        TUTTI_E_IO, "'%s' is truncated: its header accounts for %llu bytes, it holds %s%llu",
        tti_idx_source_name(source), (unsigned long long)claimed, up_to, (unsigned long long)held);
}

static tutti_status read_all(tti_idx_source *source, uint32_t magic, tti_idx *idx)
{
    size_t header = 0, need, got = 0;
    tutti_status st = read_header(source, magic, &header, idx);

    if (st != TUTTI_OK)
        return st;
    need = (size_t)(idx->count * idx->rows * idx->cols);
    if (header + need > tti_idx_source_bytes_max(source))
        return truncated(source, header + need, tti_idx_source_is_gzip(source) ? "at most " : "",
                         tti_idx_source_bytes_max(source));
    st = read_growing(source, need, &idx->bytes, &got);
    if (st == TUTTI_OK && got < need)
        st = truncated(source, header + need, "", header + got);
    if (st == TUTTI_OK)
        st = check_end(source, header, need);
    return st;
}

static tutti_status check_labels(const tti_idx_source *source, const tti_idx *idx)
{
    for (int64_t i = 0; i < idx->count; i++) {
        if (idx->bytes[i] >= TUTTI_DATASET_CLASSES)
            return tti_fail(TUTTI_E_IO, "'%s' has label %d at position %lld: labels are 0 to %d",
                            tti_idx_source_name(source), idx->bytes[i], (long long)i,
                            TUTTI_DATASET_CLASSES - 1);
    }
    return TUTTI_OK;
}

tutti_status tti_idx_read(const char *path, uint32_t magic, tti_idx *idx_out)
{
    tti_idx_source *source = NULL;
    tti_idx idx = { 0, 0, 0, NULL };
    tutti_status st;

    assert(magic == TTI_IDX_IMAGES || magic == TTI_IDX_LABELS);
    st = tti_idx_source_open(path, &source);
    if (st == TUTTI_OK)
        st = read_all(source, magic, &idx);
    if (st == TUTTI_OK && magic == TTI_IDX_LABELS)
        st = check_labels(source, &idx);
    if (st == TUTTI_OK)
        *idx_out = idx;
    else
        free(idx.bytes);
    tti_idx_source_close(source);
    return st;
}
