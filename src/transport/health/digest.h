/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/health/digest.h - what one host tells another: all that it knows, small enough to be told twice a beat.
 *
 *     | magic 4 | version 2 | kind 2 | stamps 4 | words 4 | deeds 4 | zero 4 |  then records of 16 bytes, in that order:
 *     | rank 4 | zero 4 | value 8 |
 *
 * Little endian. Hosts that nobody heard of, ranks of whom nothing was ever said, and what those did last who are well, are
 * left out. Limits: each of the three counts is at most the number of the world's ranks, ranks are below it, and of lives
 * only those that have names are believed. A stream of digests
 * ends with one of kind goodbye, when the rank leaves, or hang-up, when it needs only the stream no more; one that ends
 * without either is a death. */
#ifndef TTI_TRANSPORT_HEALTH_DIGEST_H
#define TTI_TRANSPORT_HEALTH_DIGEST_H

#include "transport/health/book.h"

enum { TTI_DIGEST_VERSION = 2, TTI_DIGEST_HEAD_BYTES = 24, TTI_DIGEST_RECORD_BYTES = 16 };

typedef enum tti_digest_kind { TTI_DIGEST_BEAT = 1, TTI_DIGEST_GOODBYE = 2, TTI_DIGEST_HANG_UP = 3 } tti_digest_kind;

/** Bytes of the largest one of a world. */
size_t tti_digest_bytes_max(int n_ranks);
/** Write one; out has room for the largest. Returns its bytes. */
size_t tti_digest_write(const tti_book *book, tti_digest_kind kind, uint8_t *out);
/** A hang-up by somebody without a book. */
void tti_digest_hang_up(uint8_t out[TTI_DIGEST_HEAD_BYTES]);

/** How many bytes the digest has that begins with these: 0, more are needed to tell; -1, it is none. */
int64_t tti_digest_size(const tti_book *book, const uint8_t *data, size_t bytes);
/** Take a whole one in, of that size. False: it makes no sense, and what stood before the nonsense was believed. */
bool tti_digest_read(tti_book *book, const uint8_t *data, size_t bytes, tti_digest_kind *kind_out);

#endif
