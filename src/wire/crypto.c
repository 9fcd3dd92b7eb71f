/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/crypto.h"

#include <openssl/crypto.h>

void tti_crypto_begin(void)
{
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}
