/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mac.c - HMAC-SHA-256 over a digest of OpenSSL's that is looked up once.
 *
 * Why     OpenSSL 3 looks a digest and an HMAC up by name in each call of its own HMAC(), and makes three contexts for it: that
 *         takes twice as long as the four blocks that a proof is. A hello has four of them, and TLS behind it six.
 * How     HMAC(key, data) = H((key ^ 5c..) | H((key ^ 36..) | data)), the key filled up with zeros to a block.
 * True    The digest is fetched by whoever comes first and never given back, as pad.c keeps its page: of two at once one
 *         keeps its own. Contexts are of a call, so nothing is shared that changes.
 * Source  RFC 2104; RFC 4231 for the test. */
#include "wire/mac.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include "wire/crypto.h"

enum { BLOCK = 64, INNER = 0x36, OUTER = 0x5c };

_Static_assert((int)TTI_MAC_KEY_MAX == (int)BLOCK, "a key is no longer than a block of SHA-256");

static const EVP_MD *sha256(void)
{
    static _Atomic(EVP_MD *) of_process;
    EVP_MD                  *known = atomic_load_explicit(&of_process, memory_order_acquire);
    EVP_MD                  *fresh;

    if (known != NULL)
        return known;
    tti_crypto_begin();
    fresh = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (fresh == NULL || atomic_compare_exchange_strong(&of_process, &known, fresh))
        return fresh;
    EVP_MD_free(fresh);
    return known; /* another thread's */
}

/* H((key ^ fill) | data). */
static bool pass(EVP_MD_CTX *context, const EVP_MD *digest, const uint8_t key[BLOCK], uint8_t fill, const void *data, size_t bytes,
                 uint8_t out[TTI_MAC_BYTES])
{
    uint8_t  block[BLOCK];
    unsigned size = 0;
    bool     done;
    int      i;

    for (i = 0; i < BLOCK; i++)
        block[i] = key[i] ^ fill;
    done = EVP_DigestInit_ex2(context, digest, NULL) == 1 && EVP_DigestUpdate(context, block, sizeof block) == 1 &&
           EVP_DigestUpdate(context, data, bytes) == 1 && EVP_DigestFinal_ex(context, out, &size) == 1;
    OPENSSL_cleanse(block, sizeof block);
    return done && size == TTI_MAC_BYTES;
}

bool tti_mac(const void *key, size_t key_bytes, const void *data, size_t bytes, uint8_t out[TTI_MAC_BYTES])
{
    const EVP_MD *digest = sha256();
    EVP_MD_CTX   *context = digest != NULL ? EVP_MD_CTX_new() : NULL;
    uint8_t       whole[BLOCK] = { 0 }, inner[TTI_MAC_BYTES];
    bool          done;

    assert(key_bytes <= sizeof whole);
    if (context == NULL)
        return false;
    if (key_bytes > 0)
        memcpy(whole, key, key_bytes);
    done = pass(context, digest, whole, INNER, data, bytes, inner) && pass(context, digest, whole, OUTER, inner, sizeof inner, out);
    EVP_MD_CTX_free(context); /* it wipes what it has */
    OPENSSL_cleanse(whole, sizeof whole);
    OPENSSL_cleanse(inner, sizeof inner);
    return done;
}
