/* SPDX-License-Identifier: BSD-3-Clause
 *
 * idx.c - IDX files of pictures and labels, plain and gzip.
 *
 * Holds   What is accepted has as many bytes as its numbers say, and labels are classes. */
#include "fuzz/fuzz.h"

#include "data/idx.h"

static size_t sum; /* of what came, so that reading it is not left out */

static void try_kind(const char *path, uint32_t magic)
{
    tti_idx idx;
    int64_t i;

    if (tti_idx_read(path, magic, &idx) != TUTTI_OK)
        return;
    TT_MUST(idx.count >= 1 && idx.count <= TUTTI_IDX_COUNT_MAX && idx.rows >= 1 && idx.cols >= 1);
    for (i = 0; i < idx.count * idx.rows * idx.cols; i++) {
        sum += idx.bytes[i];
        TT_MUST(magic == TTI_IDX_IMAGES || idx.bytes[i] < TUTTI_DATASET_CLASSES);
    }
    free(idx.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = tt_file(data, size);

    try_kind(path, TTI_IDX_IMAGES);
    try_kind(path, TTI_IDX_LABELS);
    return 0;
}
