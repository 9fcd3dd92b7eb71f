/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tls_test.c - both ends of TLS in one thread, with somebody in between who keeps, cuts and changes what passes.
 *
 * Goal    ends that have proved the same thing understand each other, all others say why not, and nothing that was
 *         changed on the way is ever handed out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include "wire/buffer.h"
#include "wire/tls.h"

static const tti_secret by_key = { .present = true, .seal = TTI_SEAL_KEY, .padded = { 1, 2, 3 } };
static const tti_secret other_key = { .present = true, .seal = TTI_SEAL_KEY, .padded = { 1, 2, 4 } };
static const tti_secret by_cert = { .present = true, .seal = TTI_SEAL_CERT, .padded = { 1, 2, 3 } };
static const tti_secret cert_alone = { .seal = TTI_SEAL_CERT };

/* One end, and what is on its way to it. */
typedef struct end {
    tti_hello  hello;
    tti_tls   *tls;
    tti_buffer coming;
    bool       cut; /* behind that nothing comes any more */
    size_t     piece; /* it gets at most so much at once; 0: all */
    struct end *peer;
} end;

static bool put(void *context, const void *data, size_t bytes)
{
    return tti_buffer_append(&((end *)context)->peer->coming, data, bytes) == TUTTI_OK;
}

static int64_t take(void *context, void *out, size_t bytes)
{
    end *e = context;

    if (e->piece > 0 && bytes > e->piece)
        bytes = e->piece;
    if (bytes > e->coming.size)
        bytes = e->coming.size;
    if (bytes == 0)
        return e->cut ? 0 : -EAGAIN;
    memcpy(out, tti_buffer_data(&e->coming), bytes);
    tti_buffer_consume(&e->coming, bytes);
    return (int64_t)bytes;
}

static void move_hello(end *from, end *to)
{
    size_t      bytes;
    const void *data = tti_hello_output(&from->hello, &bytes);

    assert_int_equal(tti_hello_feed(&to->hello, data, bytes), TUTTI_OK);
    tti_hello_sent(&from->hello, bytes);
}

typedef struct pair {
    end client, server;
} pair;

/* Two ends that have said hello with a secret of that kind; TLS is to begin. */
static void greet(pair *p, const tti_secret *secret)
{
    tti_hello_config config = { .client = true, .purpose = TTI_PURPOSE_PEER, .generation = 7, .scope = { 9, 8 },
                                .secret = secret, .peer = "the server" };

    memset(p, 0, sizeof *p);
    p->client.peer = &p->server;
    p->server.peer = &p->client;
    tti_hello_begin(&p->client.hello, tti_port_system(), &config);
    config.client = false;
    config.peer = "the client";
    tti_hello_begin(&p->server.hello, tti_port_system(), &config);
    move_hello(&p->client, &p->server);
    move_hello(&p->server, &p->client);
    move_hello(&p->client, &p->server);
}

static void begin(end *e)
{
    const tti_tls_io io = { .context = e, .write = put, .read = take };

    if (tti_tls_create(&e->hello, &io, &e->tls) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
}

static void end_pair(pair *p)
{
    tti_tls_free(p->client.tls);
    tti_tls_free(p->server.tls);
    tti_buffer_release(&p->client.coming);
    tti_buffer_release(&p->server.coming);
}

/* How a handshake went at each end. */
typedef struct outcome {
    tutti_status client, server;
    bool         client_done, server_done;
    char         client_words[512], server_words[512];
} outcome;

static outcome shake(pair *p)
{
    outcome o = { .client = TUTTI_OK };
    int     i;

    for (i = 0; i < 100000 && (!o.client_done || !o.server_done) && (o.client == TUTTI_OK || o.server == TUTTI_OK); i++) {
        if (o.client == TUTTI_OK && (o.client = tti_tls_shake(p->client.tls, &o.client_done)) != TUTTI_OK) {
            snprintf(o.client_words, sizeof o.client_words, "%s", tutti_last_error());
            p->server.cut = true;
        }
        if (o.server == TUTTI_OK && (o.server = tti_tls_shake(p->server.tls, &o.server_done)) != TUTTI_OK) {
            snprintf(o.server_words, sizeof o.server_words, "%s", tutti_last_error());
            p->client.cut = true;
        }
    }
    return o;
}

static void meet(pair *p, const tti_secret *secret)
{
    outcome o;

    greet(p, secret);
    begin(&p->client);
    begin(&p->server);
    o = shake(p);
    if (!o.client_done || !o.server_done)
        fail_msg("client: %s; server: %s", o.client_words, o.server_words);
}

static void fill(uint8_t *out, size_t bytes, uint32_t seed)
{
    size_t i;

    for (i = 0; i < bytes; i++)
        out[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
}

/* Send bytes through, and see that they are the same. */
static void carry(end *from, end *to, size_t bytes)
{
    uint8_t *out = malloc(bytes), *in = malloc(bytes);
    size_t   sent = 0, got = 0;
    int64_t  n;

    assert_true(out != NULL && in != NULL);
    fill(out, bytes, (uint32_t)bytes);
    while (sent < bytes) {
        const size_t step = bytes - sent < TTI_TLS_RECORD_BYTES ? bytes - sent : TTI_TLS_RECORD_BYTES;

        assert_int_equal(tti_tls_write(from->tls, out + sent, step), step);
        sent += step;
    }
    while (got < bytes) {
        n = tti_tls_read(to->tls, in + got, bytes - got);
        assert_true(n > 0);
        got += (size_t)n;
    }
    assert_memory_equal(in, out, bytes);
    assert_int_equal(tti_tls_read(to->tls, in, 1), -EAGAIN);
    free(out);
    free(in);
}

/* ---- keys from the secret ---- */

static void bytes_pass_in_both_directions(void **state)
{
    static const size_t sizes[] = { 1, 40, 16384, 16385, 1 << 20 };
    char                text[128];
    pair                p;
    size_t              i;

    (void)state;
    meet(&p, &by_key);
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        carry(&p.client, &p.server, sizes[i]);
        carry(&p.server, &p.client, sizes[i]);
    }
    tti_tls_describe(p.client.tls, text, sizeof text);
    assert_string_equal(text, "TLSv1.3, TLS_AES_128_GCM_SHA256, X25519, with the job's secret");
    tti_tls_describe(p.server.tls, text, sizeof text);
    assert_string_equal(text, "TLSv1.3, TLS_AES_128_GCM_SHA256, X25519, with the job's secret");
    end_pair(&p);
}

static void pieces_of_one_byte_are_enough(void **state)
{
    pair    p;
    outcome o;

    (void)state;
    greet(&p, &by_key);
    begin(&p.client);
    begin(&p.server);
    p.client.piece = p.server.piece = 1;
    o = shake(&p);
    assert_true(o.client_done && o.server_done);
    carry(&p.client, &p.server, 50000);
    end_pair(&p);
}

/* Ends whose hello was the same, and of which one then goes on with something else. */
static outcome differ(const tti_secret *secret, tti_purpose purpose, uint64_t generation, uint8_t flip)
{
    pair    p;
    outcome o;

    greet(&p, &by_key);
    p.client.hello.config.secret = secret;
    p.client.hello.config.purpose = purpose;
    p.client.hello.config.generation = generation;
    p.client.hello.transcript[100] ^= flip;
    begin(&p.client);
    begin(&p.server);
    o = shake(&p);
    assert_false(o.client_done);
    assert_false(o.server_done);
    end_pair(&p);
    return o;
}

static void keys_are_for_one_purpose_and_connection(void **state)
{
    outcome o;

    (void)state;
    o = differ(&other_key, TTI_PURPOSE_PEER, 7, 0);
    assert_int_equal(o.server, TUTTI_E_AUTH);
    assert_int_equal(o.client, TUTTI_E_AUTH);
    assert_non_null(strstr(o.client_words, "the server ended the TLS handshake"));
    o = differ(&by_key, TTI_PURPOSE_STORE, 7, 0);
    assert_int_equal(o.server, TUTTI_E_AUTH);
    assert_non_null(strstr(o.server_words, "another purpose, generation or world"));
    assert_int_equal(o.client, TUTTI_E_AUTH);
    o = differ(&by_key, TTI_PURPOSE_PEER, 8, 0);
    assert_int_equal(o.server, TUTTI_E_AUTH);
    assert_non_null(strstr(o.server_words, "another purpose, generation or world"));
    o = differ(&by_key, TTI_PURPOSE_PEER, 7, 1); /* a key of another connection */
    assert_int_equal(o.server, TUTTI_E_AUTH);
    assert_int_equal(o.client, TUTTI_E_AUTH);
}

/* Whatever is changed in the handshake, at either end, nobody gets through it with another. */
static void changed_handshakes_fail(void **state)
{
    size_t at;
    int    side;

    (void)state;
    for (side = 0; side < 2; side++)
        for (at = 0; at < 160; at += 3) {
            pair    p;
            outcome o;
            end    *to;
            bool    done;

            greet(&p, &by_key);
            begin(&p.client);
            begin(&p.server);
            assert_int_equal(tti_tls_shake(p.client.tls, &done), TUTTI_OK);
            to = side == 0 ? &p.server : &p.client;
            if (side == 1)
                assert_int_equal(tti_tls_shake(p.server.tls, &done), TUTTI_OK);
            if (at < to->coming.size && at != 1 && at != 2) /* the version that a record's head gives counts for nothing */
                to->coming.memory[to->coming.start + at] ^= 1;
            else
                to->coming.size = to->coming.size > 4 ? to->coming.size - 4 : 0, to->cut = true;
            p.client.cut = p.server.cut = true;
            o = shake(&p);
            if (o.client_done && o.server_done)
                fail_msg("a change of byte %zu of side %d does not matter", at, side);
            end_pair(&p);
        }
}

/* Here no algorithm is to be had: an end fails by itself before it has read anything, and must not say that the other has
 * closed the connection. */
static void an_own_failure_is_no_end_of_the_stream(void **state)
{
    pair         p;
    tutti_status st;
    bool         done;

    (void)state;
    greet(&p, &by_key);
    begin(&p.client);
    assert_int_equal(EVP_set_default_properties(NULL, "provider=nobody"), 1);
    st = tti_tls_shake(p.client.tls, &done);
    assert_int_equal(EVP_set_default_properties(NULL, NULL), 1);
    assert_int_equal(st, TUTTI_E_AUTH);
    assert_null(strstr(tutti_last_error(), "closed the connection"));
    assert_non_null(strstr(tutti_last_error(), "the TLS handshake with the server failed"));
    assert_null(strstr(tutti_last_error(), "no reason given"));
    end_pair(&p);
}

static void plain_bytes_are_no_handshake(void **state)
{
    pair p;
    bool done = true;

    (void)state;
    greet(&p, &by_key);
    begin(&p.server);
    assert_int_equal(tti_buffer_append(&p.server.coming, "\0\0\0\1welcome, in plain", 20), TUTTI_OK);
    assert_int_equal(tti_tls_shake(p.server.tls, &done), TUTTI_E_AUTH);
    assert_false(done);
    assert_int_equal(tti_tls_shake(p.server.tls, &done), TUTTI_E_AUTH); /* and never again */
    end_pair(&p);
}

/* ---- what comes after ---- */

static void changed_records_are_never_handed_out(void **state)
{
    uint8_t in[64];
    size_t  at;

    (void)state;
    for (at = 0; at < 5 + 32 + 17; at++) {
        pair p;

        if (at == 3) /* a length beyond what there is: more is waited for; the next one is too long at once */
            continue;
        meet(&p, &by_key);
        assert_int_equal(tti_tls_write(p.client.tls, "0123456789abcdef0123456789abcdef", 32), 32);
        assert_int_equal(p.server.coming.size, 5 + 32 + 17);
        p.server.coming.memory[p.server.coming.start + at] ^= at == 4 ? 1 : 0x81;
        p.server.cut = true;
        if (at == 1 || at == 2) /* the version that a record's head gives: authenticated, as all of the head is */
            assert_true(tti_tls_read(p.server.tls, in, sizeof in) < 0);
        else
            assert_true(tti_tls_read(p.server.tls, in, sizeof in) <= 0);
        assert_true(tti_tls_read(p.server.tls, in, sizeof in) <= 0);
        end_pair(&p);
    }
}

static void records_come_once_and_in_order(void **state)
{
    uint8_t first[64], second[64], in[64];
    size_t  n;
    pair    p;

    (void)state;
    meet(&p, &by_key);
    assert_int_equal(tti_tls_write(p.client.tls, "once", 4), 4);
    n = p.server.coming.size;
    assert_true(n <= sizeof first);
    memcpy(first, tti_buffer_data(&p.server.coming), n);
    assert_int_equal(tti_buffer_append(&p.server.coming, first, n), TUTTI_OK);
    assert_int_equal(tti_tls_read(p.server.tls, in, 4), 4);
    assert_memory_equal(in, "once", 4);
    assert_int_equal(tti_tls_read(p.server.tls, in, 4), -EBADMSG); /* again */
    end_pair(&p);

    meet(&p, &by_key);
    assert_int_equal(tti_tls_write(p.client.tls, "left", 4), 4);
    memcpy(second, tti_buffer_data(&p.server.coming), n);
    tti_buffer_consume(&p.server.coming, n);
    assert_int_equal(tti_tls_write(p.client.tls, "last", 4), 4);
    assert_int_equal(tti_tls_read(p.server.tls, in, 4), -EBADMSG); /* the second before the first */
    end_pair(&p);

    meet(&p, &by_key);
    assert_int_equal(tti_tls_write(p.client.tls, "mine", 4), 4);
    assert_int_equal(tti_buffer_append(&p.client.coming, tti_buffer_data(&p.server.coming), n), TUTTI_OK);
    assert_int_equal(tti_tls_read(p.client.tls, in, 4), -EBADMSG); /* back to whom it came from */
    end_pair(&p);
}

static void a_cut_record_is_the_end_and_no_data(void **state)
{
    uint8_t in[64];
    pair    p;

    (void)state;
    meet(&p, &by_key);
    assert_int_equal(tti_tls_write(p.client.tls, "whole", 5), 5);
    assert_int_equal(tti_tls_write(p.client.tls, "half of it", 10), 10);
    p.server.coming.size -= 8;
    p.server.cut = true;
    assert_int_equal(tti_tls_read(p.server.tls, in, sizeof in), 5);
    assert_int_equal(tti_tls_read(p.server.tls, in, sizeof in), 0);
    assert_int_equal(tti_tls_read(p.server.tls, in, sizeof in), 0);
    end_pair(&p);

    meet(&p, &by_key);
    tti_tls_say_end(p.client.tls);
    assert_true(p.server.coming.size > 0);
    assert_int_equal(tti_tls_read(p.server.tls, in, sizeof in), 0);
    end_pair(&p);
}

static void keys_are_renewed(void **state)
{
    pair p;
    int  i;

    (void)state;
    meet(&p, &by_key);
    tti_tls_renew_after(p.client.tls, 2);
    tti_tls_renew_after(p.server.tls, 3);
    for (i = 0; i < 200; i++) {
        const size_t before = p.server.coming.size;

        assert_int_equal(tti_tls_write(p.client.tls, "tick", 4), 4);
        /* A record of 4 bytes, and before every third one of 5: the update. */
        assert_int_equal(p.server.coming.size - before, i >= 2 && i % 2 == 0 ? 26 + 27 : 26);
        carry(&p.server, &p.client, 100);
    }
    for (i = 0; i < 200; i++) {
        char in[4];

        assert_int_equal(tti_tls_read(p.server.tls, in, 4), 4);
        assert_memory_equal(in, "tick", 4);
    }
    assert_int_equal(tti_tls_write(p.client.tls, "tick", 4), 4); /* a new key alone is not all there is */
    assert_int_equal(tti_tls_write(p.client.tls, "tock", 4), 4);
    {
        char in[16];

        assert_int_equal(tti_tls_read(p.server.tls, in, sizeof in), 8);
        assert_memory_equal(in, "ticktock", 8);
    }
    end_pair(&p);
}

/* ---- certificates ---- */

static char dir[] = "/tmp/tutti-tls-XXXXXX";

static const char *in_dir(const char *name)
{
    static char paths[4][128];
    static int  next;
    char       *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

typedef struct identity {
    EVP_PKEY *key;
    X509     *cert;
} identity;

static void extend(X509 *cert, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    assert_non_null(extension);
    assert_int_equal(X509_add_ext(cert, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* By an authority, or its own; valid from now on for so many seconds. */
static identity issue(const char *name, const identity *by, long seconds)
{
    static long serial = 1;
    identity    id = { .key = EVP_EC_gen("P-256"), .cert = X509_new() };
    X509_NAME  *subject;

    assert_true(id.key != NULL && id.cert != NULL);
    X509_set_version(id.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(id.cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(id.cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(id.cert), seconds);
    X509_set_pubkey(id.cert, id.key);
    subject = X509_get_subject_name(id.cert);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(id.cert, by != NULL ? X509_get_subject_name(by->cert) : subject);
    extend(id.cert, NID_basic_constraints, by == NULL ? "critical,CA:TRUE" : "CA:FALSE");
    assert_true(X509_sign(id.cert, by != NULL ? by->key : id.key, EVP_sha256()) > 0);
    return id;
}

static void save(const identity *id, const char *cert_name, const char *key_name)
{
    FILE *file = fopen(in_dir(cert_name), "w");

    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0644), 0); /* whatever the umask is: files that others may write to are refused */
    assert_int_equal(PEM_write_X509(file, id->cert), 1);
    fclose(file);
    if (key_name == NULL)
        return;
    file = fopen(in_dir(key_name), "w");
    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    assert_int_equal(PEM_write_PrivateKey(file, id->key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
}

static void drop(identity *id)
{
    EVP_PKEY_free(id->key);
    X509_free(id->cert);
}

static void use(const char *cert, const char *key, const char *ca)
{
    setenv("TUTTI_TLS_CERT", in_dir(cert), 1);
    setenv("TUTTI_TLS_KEY", in_dir(key), 1);
    setenv("TUTTI_TLS_CA", in_dir(ca), 1);
}

static int make_files(void **state)
{
    identity ca = { NULL }, other_ca = { NULL }, good, stranger, old;

    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    ca = issue("the cluster", NULL, 3600);
    other_ca = issue("another cluster", NULL, 3600);
    good = issue("a member", &ca, 3600);
    stranger = issue("a stranger", &other_ca, 3600);
    old = issue("a late member", &ca, -60);
    save(&ca, "ca", NULL);
    save(&good, "good", "good.key");
    save(&stranger, "stranger", "stranger.key");
    save(&old, "old", "old.key");
    drop(&ca);
    drop(&other_ca);
    drop(&good);
    drop(&stranger);
    drop(&old);
    return 0;
}

static int remove_files(void **state)
{
    static const char *const names[] = { "ca", "good", "good.key", "stranger", "stranger.key", "old", "old.key" };
    size_t                   i;

    (void)state;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        unlink(in_dir(names[i]));
    return rmdir(dir);
}

static void certificates_are_enough(void **state)
{
    char text[128];
    pair p;

    (void)state;
    use("good", "good.key", "ca");
    meet(&p, &by_cert);
    carry(&p.client, &p.server, 100000);
    tti_tls_describe(p.server.tls, text, sizeof text);
    assert_non_null(strstr(text, "with certificates"));
    end_pair(&p);
    meet(&p, &cert_alone);
    carry(&p.server, &p.client, 100000);
    end_pair(&p);
}

/* One end has the certificate of a member, the other one that. */
static outcome show(const char *cert, const char *key, bool by_client)
{
    pair    p;
    outcome o;

    greet(&p, &by_cert);
    use(cert, key, "ca");
    begin(by_client ? &p.client : &p.server);
    use("good", "good.key", "ca");
    begin(by_client ? &p.server : &p.client);
    o = shake(&p);
    assert_false(o.client_done || o.server_done);
    end_pair(&p);
    return o;
}

static void strange_certificates_are_refused(void **state)
{
    outcome o;

    (void)state;
    o = show("stranger", "stranger.key", true);
    assert_int_equal(o.server, TUTTI_E_AUTH);
    assert_non_null(strstr(o.server_words, "the certificate of the client is not believed: unable to get local issuer"));
    assert_int_equal(o.client, TUTTI_E_AUTH);
    assert_non_null(strstr(o.client_words, "the server ended the TLS handshake: unknown ca"));
    o = show("stranger", "stranger.key", false);
    assert_int_equal(o.client, TUTTI_E_AUTH);
    assert_non_null(strstr(o.client_words, "the certificate of the server is not believed"));
    assert_int_equal(o.server, TUTTI_E_AUTH);
    o = show("old", "old.key", true);
    assert_non_null(strstr(o.server_words, "certificate has expired"));
    assert_non_null(strstr(o.client_words, "certificate expired"));
    o = show("old", "old.key", false);
    assert_non_null(strstr(o.client_words, "certificate has expired"));
    assert_int_equal(o.server, TUTTI_E_AUTH);
}

/* Somebody with a certificate who has passed on the hello of a member does not know the secret. */
static void certificates_are_tied_to_the_secret(void **state)
{
    tti_secret other = by_cert;
    pair       p;
    outcome    o;

    (void)state;
    other.padded[0]++;
    use("good", "good.key", "ca");
    greet(&p, &by_cert);
    p.client.hello.config.secret = &other;
    begin(&p.client);
    begin(&p.server);
    o = shake(&p);
    assert_false(o.client_done || o.server_done);
    assert_int_equal(o.server, TUTTI_E_AUTH);
    assert_non_null(strstr(o.server_words, "does not know this job's secret"));
    end_pair(&p);
}

/* With that mode it is not taken for an authority. */
static void refuse_ca(const char *name, mode_t mode, const char *words)
{
    const tti_tls_io io = { .write = put, .read = take };
    tti_tls         *tls = NULL;
    tutti_status     st;
    pair             p;

    greet(&p, &by_cert);
    use("good", "good.key", name);
    assert_int_equal(chmod(in_dir(name), mode), 0);
    st = tti_tls_create(&p.client.hello, &io, &tls);
    assert_true(st == TUTTI_E_AUTH || st == TUTTI_E_IO);
    if (strstr(tutti_last_error(), words) == NULL || strstr(tutti_last_error(), "TUTTI_TLS_CA") == NULL)
        fail_msg("'%s' does not say '%s'", tutti_last_error(), words);
    use("good", "good.key", "ca");
}

static void files_are_looked_at(void **state)
{
    const tti_tls_io io = { .write = put, .read = take };
    tti_tls         *tls = NULL;
    pair             p;

    (void)state;
    greet(&p, &by_cert);
    use("stranger", "good.key", "ca"); /* before any context is there: the renewal of one may be under way */
    assert_int_equal(tti_tls_create(&p.client.hello, &io, &tls), TUTTI_E_AUTH);
    assert_non_null(strstr(tutti_last_error(), "TUTTI_TLS_KEY"));
    use("good", "good.key", "nothing");
    assert_int_equal(tti_tls_create(&p.client.hello, &io, &tls), TUTTI_E_IO);
    assert_non_null(strstr(tutti_last_error(), "TUTTI_TLS_CA"));
    use("good", "good.key", "good.key");
    assert_int_equal(tti_tls_create(&p.client.hello, &io, &tls), TUTTI_E_AUTH);
    assert_non_null(strstr(tutti_last_error(), "holds no certificate"));
    assert_int_equal(chmod(in_dir("good.key"), 0640), 0);
    use("good", "good.key", "ca");
    assert_int_equal(tti_tls_create(&p.client.hello, &io, &tls), TUTTI_E_AUTH);
    assert_non_null(strstr(tutti_last_error(), "mode 0640"));
    assert_int_equal(chmod(in_dir("good.key"), 0600), 0);
    refuse_ca("ca", 0666, "others may write to it");
    refuse_ca("ca", 0620, "has mode 0620");
    assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
    refuse_ca("fifo", 0600, "not a regular file"); /* and does not wait for somebody to write to it */
    unlink(in_dir("fifo"));
    if (geteuid() == 0) {
        assert_int_equal(chown(in_dir("ca"), 12345, 12345), 0);
        refuse_ca("ca", 0644, "belongs to user 12345");
        assert_int_equal(chown(in_dir("ca"), 0, 0), 0);
    }
    assert_int_equal(chmod(in_dir("ca"), 0644), 0);
    assert_null(tls);
}

/* New files are used from the next connection on; while they do not fit each other the old ones are. */
static void renewed_certificates_are_used(void **state)
{
    pair p;

    (void)state;
    use("good", "good.key", "ca");
    meet(&p, &by_cert);
    end_pair(&p);
    use("good", "stranger.key", "ca");
    meet(&p, &by_cert);
    end_pair(&p);
    use("good", "good.key", "ca");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_pass_in_both_directions),
        cmocka_unit_test(pieces_of_one_byte_are_enough),
        cmocka_unit_test(keys_are_for_one_purpose_and_connection),
        cmocka_unit_test(changed_handshakes_fail),
        cmocka_unit_test(an_own_failure_is_no_end_of_the_stream),
        cmocka_unit_test(plain_bytes_are_no_handshake),
        cmocka_unit_test(changed_records_are_never_handed_out),
        cmocka_unit_test(records_come_once_and_in_order),
        cmocka_unit_test(a_cut_record_is_the_end_and_no_data),
        cmocka_unit_test(keys_are_renewed),
        cmocka_unit_test(files_are_looked_at), /* before the next: no context with certificates is there yet */
        cmocka_unit_test(certificates_are_enough),
        cmocka_unit_test(strange_certificates_are_refused),
        cmocka_unit_test(certificates_are_tied_to_the_secret),
        cmocka_unit_test(renewed_certificates_are_used),
    };

    return cmocka_run_group_tests(tests, make_files, remove_files);
}
