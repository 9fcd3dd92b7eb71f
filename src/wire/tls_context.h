/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/tls_context.h - what all TLS connections of a process share; only tls.c looks in here. */
#ifndef TTI_WIRE_TLS_CONTEXT_H
#define TTI_WIRE_TLS_CONTEXT_H

#include <openssl/ssl.h>
#include "wire/secret.h"

/** The context for connections of that kind; SSL_CTX_free() gives it back.
 * @errors TUTTI_E_NOMEM; of certificates TUTTI_E_IO and TUTTI_E_AUTH */
tutti_status tti_tls_context(tti_seal seal, SSL_CTX **context_out);
/** The stream below a connection: reads and writes by tti_tls_io. NULL: no memory. */
BIO *tti_tls_bio(const void *io);
/** The reason of the last failure of OpenSSL on this thread, which is forgotten: "certificate verify failed". */
const char *tti_tls_reason(char *out, size_t bytes);

#endif
