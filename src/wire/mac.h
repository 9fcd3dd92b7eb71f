/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/mac.h - HMAC-SHA-256: what every proof and every derived key of a connection is. */
#ifndef TTI_WIRE_MAC_H
#define TTI_WIRE_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TTI_MAC_BYTES = 32, TTI_MAC_KEY_MAX = 64 /* a longer key would have to be hashed first */ };

/** HMAC-SHA-256 of data with a key of at most TTI_MAC_KEY_MAX bytes; 0 is legal. Any thread. False: no memory. */
bool tti_mac(const void *key, size_t key_bytes, const void *data, size_t bytes, uint8_t out[TTI_MAC_BYTES]);

#endif
