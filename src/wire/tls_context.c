/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tls_context.c - what is allowed on a TLS connection, and the files of certificates.
 *
 * State   A context is made once for a process and each kind, because reading certificates takes longer than a
 *         handshake; it never changes after that, and connections keep the one that they began with. With certificates it
 *         is made anew when a file is another than it was, so that those which are renewed are used from then on.
 * Files   Whoever can write to one of them lets in whom he likes, so they are taken as secret files are (own_file.h): the key
 *         is private, and the certificates nobody else's but root's, who may give them out on a host. What is read is what was
 *         looked at, from one descriptor: OpenSSL gets the text.
 *         A child of fork() finds the lock free: it is held across the fork. */
#include "wire/tls_context.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <tutti/private.h>
#include "base/fork.h"
#include "wire/crypto.h"
#include "wire/own_file.h"
#include "wire/tls.h"

enum { CERT, KEY, CA, FILES, AHEAD_BYTES = 64 << 10, TEXT_BYTES_MAX = 4 << 20 };

static const char *const variables[FILES] = { "TUTTI_TLS_CERT", "TUTTI_TLS_KEY", "TUTTI_TLS_CA" };

/* Which files a context was made of, and when their text, owner or mode had changed. */
typedef struct origin {
    dev_t           dev;
    ino_t           ino;
    struct timespec changed;
} origin;

/* One of them, read. */
typedef struct pem {
    origin origin;
    char  *text; /* NULL: not yet */
    size_t bytes, room;
} pem;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static SSL_CTX        *contexts[TTI_SEAL_CERT + 1]; /* by tti_seal; NULL: not yet */
static origin          origins[FILES];              /* of the one with certificates */
static BIO_METHOD     *method;                      /* NULL: not yet */

/* ---- the stream ---- */

static int bio_write(BIO *bio, const char *data, int bytes)
{
    const tti_tls_io *io = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    return io->write(io->context, data, (size_t)bytes) ? bytes : -1;
}

static int bio_read(BIO *bio, char *out, int bytes)
{
    const tti_tls_io *io = BIO_get_data(bio);
    const int64_t     got = io->read(io->context, out, (size_t)bytes);

    BIO_clear_retry_flags(bio);
    if (got == -EAGAIN)
        BIO_set_retry_read(bio);
    return got >= 0 ? (int)got : -1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH; /* everything else does not exist here */
}

static bool make_method(void)
{
    BIO_METHOD *fresh = method != NULL ? NULL : BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tutti stream");

    if (fresh == NULL)
        return method != NULL;
    BIO_meth_set_write(fresh, bio_write);
    BIO_meth_set_read(fresh, bio_read);
    BIO_meth_set_ctrl(fresh, bio_control);
    method = fresh;
    return true;
}

BIO *tti_tls_bio(const void *io)
{
    BIO *bio = BIO_new(method); /* there is a context, and so it */

    if (bio == NULL)
        return NULL;
    BIO_set_data(bio, (void *)(uintptr_t)io);
    BIO_set_init(bio, 1);
    return bio;
}

const char *tti_tls_reason(char *out, size_t bytes)
{
    const unsigned long code = ERR_peek_last_error();
    const char         *reason = ERR_reason_error_string(code);

    snprintf(out, bytes, "%s", reason != NULL ? reason : "no reason given");
    ERR_clear_error();
    return out;
}

/* ---- the context ---- */

/* The same on all ends, so nothing is left to choose. */
static bool restrict_it(SSL_CTX *context)
{
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY); /* a new key is no reason to wait for more */
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, AHEAD_BYTES);
    return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
           SSL_CTX_set1_groups_list(context, "X25519:P-256") == 1 && SSL_CTX_set_num_tickets(context, 0) == 1;
}

static origin origin_of(const struct stat *st)
{
    return (origin){ st->st_dev, st->st_ino, st->st_ctim };
}

static tutti_status look_at(const char *variable, origin *out)
{
    const char *path = tti_env(variable);
    struct stat st;

    if (path == NULL || stat(path, &st) != 0)
        return tti_fail_errno_as(TUTTI_E_IO, path == NULL ? ENOENT : errno, "cannot look at %s '%s'", variable,
                                 path != NULL ? path : "");
    *out = origin_of(&st);
    return TUTTI_OK;
}

/* All that the file has; it may grow meanwhile, and then it is cut. */
static tutti_status read_text(int fd, const char *variable, pem *out)
{
    struct stat st;
    ssize_t     got = 1;

    if (fstat(fd, &st) != 0)
        return tti_fail_errno_as(TUTTI_E_IO, errno, "cannot look at %s '%s'", variable, tti_env(variable));
    if (st.st_size > TEXT_BYTES_MAX)
        return tti_fail(TUTTI_E_AUTH, "%s '%s' has %lld bytes, %d are the most", variable, tti_env(variable),
                        (long long)st.st_size, TEXT_BYTES_MAX);
    out->origin = origin_of(&st);
    out->room = (size_t)st.st_size + 1;
    out->text = malloc(out->room);
    if (out->text == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %s '%s'", variable, tti_env(variable));
    while (got > 0 && out->bytes < (size_t)st.st_size) {
        got = read(fd, out->text + out->bytes, (size_t)st.st_size - out->bytes);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got < 0)
            return tti_fail_errno_as(TUTTI_E_IO, errno, "cannot read %s '%s'", variable, tti_env(variable));
        else
            out->bytes += (size_t)got;
    }
    return TUTTI_OK;
}

static tutti_status read_pem(int which, pem *out)
{
    const tti_own_rule rule = which == KEY ? TTI_OWN_PRIVATE : TTI_OWN_GIVEN;
    tutti_status       st;
    int                fd;

    st = tti_own_file_open(tti_env(variables[which]), O_RDONLY, 0, rule, variables[which], &fd);
    if (st != TUTTI_OK)
        return st;
    st = read_text(fd, variables[which], out);
    close(fd);
    return st;
}

static void drop_pems(pem pems[FILES])
{
    int i;

    for (i = 0; i < FILES; i++)
        if (pems[i].text != NULL) {
            OPENSSL_cleanse(pems[i].text, pems[i].room);
            free(pems[i].text);
        }
}

static tutti_status refuse_file(int which, const char *what)
{
    char reason[128];

    return tti_fail(TUTTI_E_AUTH, "%s '%s' %s: %s", variables[which], tti_env(variables[which]), what,
                    tti_tls_reason(reason, sizeof reason));
}

/* A passphrase is asked for at a terminal; nobody sits at a rank's. */
static int no_passphrase(char *out, int bytes, int writing, void *arg)
{
    (void)out;
    (void)bytes;
    (void)writing;
    (void)arg;
    return 0;
}

/* What PEM says behind the last of several. */
static bool is_at_the_end(void)
{
    const unsigned long error = ERR_peek_last_error();

    return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

/* The certificate comes first, and then those that lead to the authority. */
static bool use_chain(SSL_CTX *context, BIO *text)
{
    X509 *cert = PEM_read_bio_X509_AUX(text, NULL, no_passphrase, NULL);
    bool  used = cert != NULL && SSL_CTX_use_certificate(context, cert) == 1;

    X509_free(cert);
    while (used && (cert = PEM_read_bio_X509(text, NULL, no_passphrase, NULL)) != NULL) {
        used = SSL_CTX_add0_chain_cert(context, cert) == 1;
        if (!used)
            X509_free(cert);
    }
    return used && is_at_the_end();
}

static bool use_key(SSL_CTX *context, BIO *text)
{
    EVP_PKEY  *key = PEM_read_bio_PrivateKey(text, NULL, no_passphrase, NULL);
    const bool used = key != NULL && SSL_CTX_use_PrivateKey(context, key) == 1;

    EVP_PKEY_free(key);
    return used;
}

/* Authorities, and what they have withdrawn. */
static bool use_authorities(SSL_CTX *context, BIO *text)
{
    STACK_OF(X509_INFO) *all = PEM_X509_INFO_read_bio(text, NULL, no_passphrase, NULL);
    X509_STORE          *store = SSL_CTX_get_cert_store(context);
    bool                 used = all != NULL;
    int                  i, n = 0;

    for (i = 0; used && i < sk_X509_INFO_num(all); i++) {
        const X509_INFO *info = sk_X509_INFO_value(all, i);

        used = (info->x509 == NULL || X509_STORE_add_cert(store, info->x509) == 1) &&
               (info->crl == NULL || X509_STORE_add_crl(store, info->crl) == 1);
        n += info->x509 != NULL;
    }
    if (used && n == 0)
        ERR_raise(ERR_LIB_X509, X509_R_NO_CERTIFICATE_FOUND);
    sk_X509_INFO_pop_free(all, X509_INFO_free);
    return used && n > 0;
}

static tutti_status use_text(SSL_CTX *context, int which, const pem *file)
{
    static bool (*const uses[FILES])(SSL_CTX *context, BIO *text) = { use_chain, use_key, use_authorities };
    static const char *const wrong[FILES] = { "holds no certificate in PEM",
                                              "is no private key in PEM, or not that of the certificate",
                                              "holds no certificate in PEM" };
    BIO *text = BIO_new_mem_buf(file->text, (int)file->bytes);
    bool used;

    if (text == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %s '%s'", variables[which], tti_env(variables[which]));
    ERR_clear_error();
    used = uses[which](context, text);
    BIO_free(text);
    if (!used)
        return refuse_file(which, wrong[which]);
    ERR_clear_error();
    return TUTTI_OK;
}

static tutti_status load_files(SSL_CTX *context, origin origins_out[FILES])
{
    pem          pems[FILES] = { { .text = NULL } };
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < FILES && st == TUTTI_OK; i++) {
        st = read_pem(i, &pems[i]);
        if (st == TUTTI_OK)
            st = use_text(context, i, &pems[i]);
        origins_out[i] = pems[i].origin;
    }
    drop_pems(pems);
    if (st == TUTTI_OK)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return st;
}

/* origins_out: of those with certificates. */
static tutti_status make(tti_seal seal, SSL_CTX **context_out, origin origins_out[FILES])
{
    SSL_CTX     *context = SSL_CTX_new(TLS_method());
    tutti_status st = TUTTI_OK;

    if (context == NULL || !restrict_it(context))
        st = tti_fail(TUTTI_E_NOMEM, "cannot prepare TLS connections");
    if (st == TUTTI_OK)
        SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    if (st == TUTTI_OK && seal == TTI_SEAL_CERT)
        st = load_files(context, origins_out);
    if (st != TUTTI_OK) {
        SSL_CTX_free(context);
        return st;
    }
    *context_out = context;
    return TUTTI_OK;
}

/* Lock held. The context of certificates is that of the files as they are now. While they are being renewed they may not
 * fit each other: the one before serves until they do. */
static tutti_status look_at_files(void)
{
    SSL_CTX     *fresh = NULL;
    origin       now[FILES];
    tutti_status st = TUTTI_OK;
    int          i;

    memset(now, 0, sizeof now);
    for (i = 0; i < FILES && st == TUTTI_OK; i++)
        st = look_at(variables[i], &now[i]);
    if (st == TUTTI_OK && contexts[TTI_SEAL_CERT] != NULL && memcmp(now, origins, sizeof now) == 0)
        return TUTTI_OK;
    if (st == TUTTI_OK)
        st = make(TTI_SEAL_CERT, &fresh, now);
    if (st == TUTTI_OK) {
        SSL_CTX_free(contexts[TTI_SEAL_CERT]);
        contexts[TTI_SEAL_CERT] = fresh;
        memcpy(origins, now, sizeof origins);
    } else if (contexts[TTI_SEAL_CERT] != NULL) {
        tti_log(TTI_LOG_WARN, "going on with the certificate that there was: %s", tutti_last_error());
        st = TUTTI_OK;
    }
    return st;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(bool in_child)
{
    (void)in_child;
    pthread_mutex_unlock(&lock);
}

tutti_status tti_tls_context(tti_seal seal, SSL_CTX **context_out)
{
    static tti_fork_part part = { .before = before_fork, .after = after_fork };
    tutti_status         st = TUTTI_OK;

    tti_fork_guard(&part);
    tti_crypto_begin();
    pthread_mutex_lock(&lock);
    if (!make_method())
        st = tti_fail(TUTTI_E_NOMEM, "cannot prepare TLS connections");
    if (st == TUTTI_OK && seal == TTI_SEAL_CERT)
        st = look_at_files();
    if (st == TUTTI_OK && contexts[seal] == NULL)
        st = make(seal, &contexts[seal], origins);
    if (st == TUTTI_OK) {
        SSL_CTX_up_ref(contexts[seal]);
        *context_out = contexts[seal];
    }
    pthread_mutex_unlock(&lock);
    return st;
}
