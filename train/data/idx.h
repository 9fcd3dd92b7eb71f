/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/idx.h - IDX files as this room sees them: a source of bytes, and the two kinds of contents.
 *
 * The format, all numbers 32 bits, big endian:
 *
 *   pictures   0x00000803, count, rows, cols, then count * rows * cols bytes
 *   labels     0x00000801, count, then count bytes */
#ifndef TRAIN_DATA_IDX_H
#define TRAIN_DATA_IDX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/data.h>
#include <tutti/status.h>

enum { TTI_IDX_IMAGES = 0x803, TTI_IDX_LABELS = 0x801 };

/* An open file, plain or gzip, read from front to back (idx_source.c). */
typedef struct tti_idx_source tti_idx_source;

/* Open path, or path.gz where path does not exist. */
tutti_status tti_idx_source_open(const char *path, tti_idx_source **source_out);

/* Read up to n bytes; fewer only at the end. *got_out is how many. */
tutti_status tti_idx_source_read(tti_idx_source *source, void *buf, size_t n, size_t *got_out);

/* No more bytes can come than this; it is exact unless the file is gzip. */
uint64_t tti_idx_source_bytes_max(const tti_idx_source *source);
bool tti_idx_source_is_gzip(const tti_idx_source *source);

/* The name that was opened, for messages. */
const char *tti_idx_source_name(const tti_idx_source *source);

/* Close it; NULL is legal. */
void tti_idx_source_close(tti_idx_source *source);

/* The contents of a whole file. rows and cols are 1 for labels. bytes belongs to the holder:
 * free(). */
typedef struct tti_idx {
    int64_t count, rows, cols;
    uint8_t *bytes;
} tti_idx;

/* Read and check a file of pictures or of labels (idx_read.c). */
tutti_status tti_idx_read(const char *path, uint32_t magic, tti_idx *idx_out);

#endif
