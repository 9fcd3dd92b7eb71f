/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tls.c - one end of a TLS connection over OpenSSL; the design stands in tls.h. */
#include "wire/tls.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <tutti/private.h>
#include "base/log.h"
#include "wire/mac.h"
#include "wire/tls_context.h"

enum { KEY_BYTES = 32, CONFIRM_BYTES = 32, WHO_MAX = 96, IDENTITY_MAX = 96 };

_Static_assert((int)KEY_BYTES == (int)TTI_MAC_BYTES && (int)CONFIRM_BYTES == (int)TTI_MAC_BYTES, "each is a whole HMAC");

#define RECORDS_MAX (UINT64_C(1) << 22) /* 2^24.5 are allowed */

typedef enum shake_state { SHAKING, CONFIRMING, OPEN, FAILED } shake_state;

struct tti_tls {
    SSL        *ssl;
    tti_tls_io  io;
    tti_tls_io  counted; /* what the BIO calls, which notes how the stream is */
    int64_t     read;    /* what io.read said last */
    bool        full;    /* io.write has failed */
    bool        over;    /* reading has ended: */
    int64_t     said;    /* 0 or -errno, which every read says from then on */
    shake_state state;
    bool        client;
    bool        is_other_key;  /* server: the peer named another key than ours */
    tti_seal    seal;
    uint64_t    records;       /* sent with this key */
    uint64_t    records_max;
    size_t      confirmed;     /* bytes of theirs that have come */
    uint8_t     theirs[CONFIRM_BYTES], wanted[CONFIRM_BYTES];
    tti_secret  secret;
    uint8_t     key[KEY_BYTES];
    char        identity[IDENTITY_MAX];
    uint8_t     transcript[TTI_HELLO_TRANSCRIPT_BYTES];
    char        who[WHO_MAX];
};

static const char key_label[16] = "tutti-tls-key-1";
static const char server_label[16] = "tutti-confirm-s";
static const char client_label[16] = "tutti-confirm-c";

/* HMAC(secret, label, a byte that keeps "no secret" apart from zeros, transcript, more). */
static bool derive(const tti_tls *tls, const char label[16], const uint8_t *more, size_t more_bytes, uint8_t out[KEY_BYTES])
{
    uint8_t text[16 + 1 + sizeof tls->transcript + KEY_BYTES], secret[TTI_SECRET_BYTES];
    bool    done;

    assert(more_bytes <= KEY_BYTES);
    memcpy(text, label, 16);
    text[16] = tls->secret.present;
    memcpy(text + 17, tls->transcript, sizeof tls->transcript);
    if (more_bytes > 0)
        memcpy(text + 17 + sizeof tls->transcript, more, more_bytes);
    tti_secret_reveal(&tls->secret, secret);
    done = tti_mac(secret, tls->secret.present ? sizeof secret : 0, text, 17 + sizeof tls->transcript + more_bytes, out);
    OPENSSL_cleanse(secret, sizeof secret);
    OPENSSL_cleanse(text, sizeof text);
    return done;
}

/* ---- the key that both ends have ---- */

static SSL_SESSION *session_of(SSL *ssl, const tti_tls *tls)
{
    static const unsigned char suite[] = { 0x13, 0x01 }; /* TLS_AES_128_GCM_SHA256 */
    const SSL_CIPHER          *cipher = SSL_CIPHER_find(ssl, suite);
    SSL_SESSION               *session = SSL_SESSION_new();

    if (cipher != NULL && session != NULL && SSL_SESSION_set1_master_key(session, tls->key, sizeof tls->key) == 1 &&
        SSL_SESSION_set_cipher(session, cipher) == 1 && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

/* Client: what to offer. */
static int offer_key(SSL *ssl, const EVP_MD *digest, const unsigned char **identity_out, size_t *bytes_out,
                     SSL_SESSION **session_out)
{
    const tti_tls *tls = SSL_get_app_data(ssl);

    (void)digest; /* SHA-256: there is one suite */
    *session_out = session_of(ssl, tls);
    *identity_out = (const unsigned char *)tls->identity;
    *bytes_out = strlen(tls->identity);
    return *session_out != NULL;
}

/* Server: the key of that name, if it is ours. */
static int find_key(SSL *ssl, const unsigned char *identity, size_t bytes, SSL_SESSION **session_out)
{
    tti_tls *tls = SSL_get_app_data(ssl);

    *session_out = NULL;
    tls->is_other_key = bytes != strlen(tls->identity) || memcmp(identity, tls->identity, bytes) != 0;
    if (tls->is_other_key)
        return 1; /* without one there is nothing that both can use */
    *session_out = session_of(ssl, tls);
    return *session_out != NULL;
}

static void name_key(tti_tls *tls, const tti_hello_config *config)
{
    int n = snprintf(tls->identity, sizeof tls->identity, "tutti-1 purpose %u generation %" PRIu64 " scope ",
                     (unsigned)config->purpose, config->generation);
    int i;

    for (i = 0; i < TTI_HELLO_SCOPE_BYTES; i++)
        n += snprintf(tls->identity + n, sizeof tls->identity - (size_t)n, "%02x", config->scope[i]);
}

/* ---- the object ---- */

static bool count_write(void *context, const void *data, size_t bytes)
{
    tti_tls *tls = context;

    tls->full = tls->full || !tls->io.write(tls->io.context, data, bytes);
    return !tls->full;
}

static int64_t count_read(void *context, void *out, size_t bytes)
{
    tti_tls *tls = context;

    tls->read = tls->io.read(tls->io.context, out, bytes);
    return tls->read;
}

static bool prepare(tti_tls *tls, SSL_CTX *context)
{
    BIO *bio;

    tls->ssl = SSL_new(context);
    bio = tls->ssl != NULL ? tti_tls_bio(&tls->counted) : NULL;
    if (bio == NULL)
        return false;
    SSL_set_bio(tls->ssl, bio, bio);
    if (SSL_set_app_data(tls->ssl, tls) != 1)
        return false;
    if (tls->seal == TTI_SEAL_KEY) {
        SSL_set_psk_use_session_callback(tls->ssl, offer_key);
        SSL_set_psk_find_session_callback(tls->ssl, find_key);
    }
    if (tls->client)
        SSL_set_connect_state(tls->ssl);
    else
        SSL_set_accept_state(tls->ssl);
    return tls->seal != TTI_SEAL_KEY || derive(tls, key_label, NULL, 0, tls->key);
}

tutti_status tti_tls_create(const tti_hello *hello, const tti_tls_io *io, tti_tls **tls_out)
{
    const tti_hello_config *config = &hello->config;
    tti_tls                *tls = calloc(1, sizeof *tls);
    SSL_CTX                *context = NULL;
    tutti_status            st;

    assert(tti_hello_done(hello) && tti_hello_seal(hello) != TTI_SEAL_NONE);
    if (tls == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for TLS");
    tls->io = *io;
    tls->counted = (tti_tls_io){ .context = tls, .write = count_write, .read = count_read };
    tls->client = config->client;
    tls->seal = tti_hello_seal(hello);
    tls->records_max = RECORDS_MAX;
    tls->read = -EAGAIN; /* a handshake may fail before anything was read: 0 would be the end of the stream */
    tls->secret = *config->secret;
    memcpy(tls->transcript, hello->transcript, sizeof tls->transcript);
    snprintf(tls->who, sizeof tls->who, "%s", config->peer != NULL ? config->peer : "the peer");
    name_key(tls, config);
    st = tti_tls_context(tls->seal, &context);
    if (st == TUTTI_OK && !prepare(tls, context))
        st = tti_fail(TUTTI_E_NOMEM, "no memory for TLS");
    SSL_CTX_free(context); /* the connection has its own reference */
    if (st != TUTTI_OK) {
        tti_tls_free(tls);
        return st;
    }
    *tls_out = tls;
    return TUTTI_OK;
}

void tti_tls_free(tti_tls *tls)
{
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    OPENSSL_cleanse(tls, sizeof *tls);
    free(tls);
}

void tti_tls_renew_after(tti_tls *tls, uint64_t records)
{
    tls->records_max = records;
}

void tti_tls_describe(const tti_tls *tls, char *out, size_t bytes)
{
    const int group = (int)SSL_get_negotiated_group(tls->ssl);

    snprintf(out, bytes, "%s, %s, %s, with %s", SSL_get_version(tls->ssl), SSL_get_cipher_name(tls->ssl),
             group != 0 ? OBJ_nid2sn(group & ~TLSEXT_nid_unknown) : "no exchange",
             tls->seal == TTI_SEAL_CERT ? "certificates" : "the job's secret");
}

/* ---- the handshake ---- */

static tutti_status fail_stream(const tti_tls *tls)
{
    if (tls->full)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the TLS handshake with %s", tls->who);
    if (tls->read == 0)
        return tti_fail(TUTTI_E_NETWORK, "%s closed the connection during the TLS handshake", tls->who);
    return tti_fail_errno_as(TUTTI_E_NETWORK, (int)-tls->read, "connection to %s failed during the TLS handshake", tls->who);
}

/* A certificate that is not believed. */
static tutti_status fail_certificate(const tti_tls *tls, long verdict)
{
    X509 *shown = SSL_get1_peer_certificate(tls->ssl);
    char  subject[128] = "";

    if (shown != NULL)
        X509_NAME_oneline(X509_get_subject_name(shown), subject, sizeof subject);
    X509_free(shown);
    return tti_fail(TUTTI_E_AUTH,
                    "the certificate of %s is not believed: %s%s%s%s\n"
                    "  next: see that TUTTI_TLS_CA has its authority, and that the clocks of both hosts are right",
                    tls->who, X509_verify_cert_error_string(verdict), subject[0] != '\0' ? " ('" : "", subject,
                    subject[0] != '\0' ? "')" : "");
}

/* The peer's word for it: "tlsv1 alert unknown ca". */
static tutti_status fail_refused(const tti_tls *tls, const char *reason)
{
    const char *alert = strstr(reason, "alert ");

    return tti_fail(TUTTI_E_AUTH, "%s ended the TLS handshake: %s\n  next: see what it reported", tls->who,
                    alert != NULL ? alert + strlen("alert ") : reason);
}

/* The peer's, and not a reason of our own: those of OpenSSL as a whole, "malloc failure", are larger numbers. */
static bool is_alert(unsigned long error)
{
    const int reason = ERR_GET_REASON(error);

    return ERR_GET_LIB(error) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET && reason <= SSL_AD_REASON_OFFSET + UINT8_MAX;
}

/* code: SSL_get_error() of the call that failed. */
static tutti_status fail_shake(tti_tls *tls, int code)
{
    const long verdict = SSL_get_verify_result(tls->ssl);
    char       reason[128];
    bool       refused;

    tls->state = FAILED;
    if (tls->full || (code == SSL_ERROR_SYSCALL && tls->read <= 0) || (tls->read <= 0 && tls->read != -EAGAIN)) {
        ERR_clear_error();
        return fail_stream(tls);
    }
    refused = is_alert(ERR_peek_last_error());
    tti_tls_reason(reason, sizeof reason);
    if (tls->seal == TTI_SEAL_CERT && verdict != X509_V_OK && !refused)
        return fail_certificate(tls, verdict);
    if (tls->is_other_key)
        return tti_fail(TUTTI_E_AUTH, "%s has a key for another purpose, generation or world", tls->who);
    if (code == SSL_ERROR_ZERO_RETURN || refused)
        return fail_refused(tls, code == SSL_ERROR_ZERO_RETURN ? "closed" : reason);
    return tti_fail(TUTTI_E_AUTH, "the TLS handshake with %s failed: %s", tls->who, reason);
}

/* Say ours, and know what theirs must be. */
static bool say_confirm(tti_tls *tls)
{
    static const char purpose[] = "EXPORTER-tutti-confirm";
    uint8_t           shared[KEY_BYTES], ours[CONFIRM_BYTES];
    bool              done;

    done = SSL_export_keying_material(tls->ssl, shared, sizeof shared, purpose, sizeof purpose - 1, tls->transcript,
                                      sizeof tls->transcript, 1) == 1 &&
           derive(tls, tls->client ? client_label : server_label, shared, sizeof shared, ours) &&
           derive(tls, tls->client ? server_label : client_label, shared, sizeof shared, tls->wanted) &&
           SSL_write(tls->ssl, ours, sizeof ours) == (int)sizeof ours;
    OPENSSL_cleanse(shared, sizeof shared);
    return done;
}

static void log_open(const tti_tls *tls)
{
    char text[128];

    if (!tti_log_wanted(TTI_LOG_DEBUG))
        return;
    tti_tls_describe(tls, text, sizeof text);
    tti_log(TTI_LOG_DEBUG, "%s: %s", tls->who, text);
}

static tutti_status take_confirm(tti_tls *tls, bool *done_out)
{
    int got;

    while (tls->confirmed < sizeof tls->theirs) {
        ERR_clear_error();
        got = SSL_read(tls->ssl, tls->theirs + tls->confirmed, (int)(sizeof tls->theirs - tls->confirmed));
        if (got <= 0) {
            const int code = SSL_get_error(tls->ssl, got);

            return code == SSL_ERROR_WANT_READ ? TUTTI_OK : fail_shake(tls, code);
        }
        tls->confirmed += (size_t)got;
    }
    if (CRYPTO_memcmp(tls->theirs, tls->wanted, sizeof tls->wanted) != 0) {
        tls->state = FAILED;
        return tti_fail(TUTTI_E_AUTH,
                        "%s does not know this job's secret\n"
                        "  next: give all processes the same TUTTI_SECRET_FILE",
                        tls->who);
    }
    tls->state = OPEN;
    *done_out = true;
    log_open(tls);
    return TUTTI_OK;
}

tutti_status tti_tls_shake(tti_tls *tls, bool *done_out)
{
    int done, code;

    *done_out = tls->state == OPEN;
    if (tls->state == FAILED)
        return tti_fail(TUTTI_E_AUTH, "the TLS handshake with %s has failed before", tls->who);
    if (tls->state == SHAKING) {
        ERR_clear_error();
        done = SSL_do_handshake(tls->ssl);
        if (done != 1) {
            code = SSL_get_error(tls->ssl, done);
            return code == SSL_ERROR_WANT_READ ? TUTTI_OK : fail_shake(tls, code);
        }
        if (!say_confirm(tls))
            return fail_shake(tls, SSL_ERROR_SSL);
        tls->state = CONFIRMING;
    }
    return tls->state == CONFIRMING ? take_confirm(tls, done_out) : TUTTI_OK;
}

/* ---- what follows ---- */

int64_t tti_tls_write(tti_tls *tls, const void *data, size_t bytes)
{
    int sent;

    assert(tls->state == OPEN && bytes > 0 && bytes <= TTI_TLS_RECORD_BYTES);
    ERR_clear_error();
    if (++tls->records > tls->records_max) {
        if (SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1)
            return -EPROTO;
        tls->records = 1;
    }
    sent = SSL_write(tls->ssl, data, (int)bytes);
    if (sent == (int)bytes)
        return sent;
    ERR_clear_error();
    return tls->full ? -ENOMEM : -EPROTO;
}

/* Why nothing was read. */
static int64_t end_of_read(tti_tls *tls, int code)
{
    if (code == SSL_ERROR_WANT_READ)
        return -EAGAIN;
    if (code == SSL_ERROR_ZERO_RETURN)
        return 0;
    if (tls->read <= 0 && tls->read != -EAGAIN) { /* the stream's own end or failure */
        ERR_clear_error();
        return tls->read;
    }
    if (tti_log_wanted(TTI_LOG_INFO)) {
        char reason[128];

        tti_log(TTI_LOG_INFO, "what came from %s is not what it sent: %s", tls->who, tti_tls_reason(reason, sizeof reason));
    }
    ERR_clear_error();
    return -EBADMSG;
}

int64_t tti_tls_read(tti_tls *tls, void *out, size_t bytes)
{
    size_t  total = 0, got;
    int64_t why = -EAGAIN;

    assert(tls->state == OPEN);
    if (tls->over)
        return tls->said;
    while (total < bytes) {
        ERR_clear_error();
        if (SSL_read_ex(tls->ssl, (uint8_t *)out + total, bytes - total, &got) == 1) {
            total += got;
            continue;
        }
        why = end_of_read(tls, SSL_get_error(tls->ssl, 0));
        break;
    }
    if (total < bytes && why != -EAGAIN) {
        tls->over = true;
        tls->said = why;
    }
    return total > 0 ? (int64_t)total : why;
}

bool tti_tls_has_more(const tti_tls *tls)
{
    return tls->over || SSL_has_pending(tls->ssl) == 1;
}

bool tti_tls_is_over(const tti_tls *tls)
{
    return tls->over;
}

void tti_tls_say_end(tti_tls *tls)
{
    if (tls->state != OPEN)
        return;
    ERR_clear_error();
    (void)SSL_shutdown(tls->ssl);
    ERR_clear_error();
}
