/* SPDX-License-Identifier: BSD-3-Clause
 *
 * secret.c - reading the secret from its file, and refusing files that others could have read; refusing
 * to go without one where others could connect. */
#include "wire/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <openssl/crypto.h>
#include <tutti/private.h>
#include "wire/own_file.h"
#include "wire/pad.h"

enum { HEX_DIGITS = 2 * TTI_SECRET_BYTES, WORDS_MAX = 96 };

_Static_assert((int)TTI_PAD_BYTES == (int)TTI_SECRET_BYTES, "the pad is as long as a key");

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* text[n] is 64 hex digits and at most one newline. */
static bool decode(const char *text, size_t n, uint8_t key[TTI_SECRET_BYTES])
{
    size_t i;

    if (n != HEX_DIGITS && !(n == HEX_DIGITS + 1 && text[HEX_DIGITS] == '\n'))
        return false;
    for (i = 0; i < TTI_SECRET_BYTES; i++) {
        int high = hex_value(text[2 * i]);
        int low = hex_value(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        key[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* Up to max bytes from the start of the file, or -errno. */
static ssize_t read_start(int fd, char *out, size_t max)
{
    size_t  n = 0;
    ssize_t got;

    while (n < max) {
        got = read(fd, out + n, max - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

tutti_status tti_auth_wanted(bool *wanted_out)
{
    const char *auth = tti_env("TUTTI_AUTH");

    if (strcmp(auth, "secret") != 0 && strcmp(auth, "none") != 0)
        return tti_fail(TUTTI_E_ARG, "TUTTI_AUTH is '%.64s', not 'secret' or 'none'\n"
                                     "  next: set it to one of these, or unset it",
                        auth);
    *wanted_out = strcmp(auth, "secret") == 0;
    return TUTTI_OK;
}

/* TLS where it is asked for: all connections or none, so a value that says neither is refused. */
tutti_status tti_seal_wanted(tti_seal *seal_out)
{
    const char *tls = tti_env("TUTTI_TLS");
    const int   named = (tti_env("TUTTI_TLS_CERT") != NULL) + (tti_env("TUTTI_TLS_KEY") != NULL) +
                      (tti_env("TUTTI_TLS_CA") != NULL);

    if (strcmp(tls, "0") != 0 && strcmp(tls, "1") != 0)
        return tti_fail(TUTTI_E_ARG, "TUTTI_TLS is '%.64s', not '0' or '1'\n"
                                     "  next: set TUTTI_TLS=1 in all processes of the job, or unset it in all",
                        tls);
    if (named != 0 && named != 3)
        return tti_fail(TUTTI_E_ARG, "certificates need TUTTI_TLS_CERT, TUTTI_TLS_KEY and TUTTI_TLS_CA; %d of them %s set\n"
                                     "  next: set all three, or none",
                        named, named == 1 ? "is" : "are");
    if (named == 3 && strcmp(tls, "0") == 0)
        return tti_fail(TUTTI_E_ARG, "TUTTI_TLS_CERT is set, but TUTTI_TLS is not 1: nothing would be encrypted\n"
                                     "  next: set TUTTI_TLS=1, or unset TUTTI_TLS_CERT, TUTTI_TLS_KEY and TUTTI_TLS_CA");
    *seal_out = strcmp(tls, "0") == 0 || tti_port_stand_in() != NULL ? TTI_SEAL_NONE
                : named == 3                                         ? TTI_SEAL_CERT
                                                                     : TTI_SEAL_KEY;
    return TUTTI_OK;
}

tutti_status tti_secret_read(const char *path, tti_secret *out)
{
    char         text[HEX_DIGITS + 2]; /* one more than allowed, to see that there is more */
    uint8_t      key[TTI_SECRET_BYTES];
    tutti_status st;
    ssize_t      n;
    int          fd;

    st = tti_own_file_open(path, O_RDONLY, 0, TTI_OWN_PRIVATE, "secret file", &fd);
    if (st != TUTTI_OK)
        return st;
    n = read_start(fd, text, sizeof text);
    if (n < 0) {
        st = tti_fail_errno_as(TUTTI_E_IO, (int)-n, "cannot read secret file '%s'", path);
        goto out;
    }
    if (!decode(text, (size_t)n, key)) {
        st = tti_fail(TUTTI_E_AUTH,
                      "secret file '%s' does not hold %d hex digits and nothing else\n"
                      "  next: make one with 'openssl rand -hex 32', and copy it to all hosts",
                      path, HEX_DIGITS);
        goto out;
    }
    st = tti_secret_make(key, out);

out:
    OPENSSL_cleanse(text, sizeof text);
    OPENSSL_cleanse(key, sizeof key);
    close(fd);
    return st;
}

tutti_status tti_secret_load(const char *path, tti_secret *out)
{
    tutti_status st;
    tti_seal     seal = TTI_SEAL_NONE;
    bool         wanted;

    st = tti_auth_wanted(&wanted); /* a wrong value is refused wherever one joins, not only where it would matter */
    if (st == TUTTI_OK)
        st = tti_seal_wanted(&seal);
    if (st != TUTTI_OK)
        return st;
    if (path == NULL)
        path = tti_env("TUTTI_SECRET_FILE");
    if (path == NULL)
        *out = (tti_secret){ .present = false };
    else
        st = tti_secret_read(path, out);
    if (st == TUTTI_OK)
        out->seal = seal;
    return st;
}

tutti_status tti_secret_make(const uint8_t key[TTI_SECRET_BYTES], tti_secret *out)
{
    const volatile uint8_t *pad = tti_pad();
    int                     i;

    *out = (tti_secret){ .present = false };
    if (pad == NULL)
        return tti_fail_errno(errno, "no memory that stays out of cores, for the job's secret");
    for (i = 0; i < TTI_SECRET_BYTES; i++)
        out->padded[i] = key[i] ^ pad[i];
    out->present = true;
    return TUTTI_OK;
}

void tti_secret_reveal(const tti_secret *secret, uint8_t key_out[TTI_SECRET_BYTES])
{
    const volatile uint8_t *pad = tti_pad();
    int                     i;

    for (i = 0; i < TTI_SECRET_BYTES; i++)
        key_out[i] = secret->padded[i] ^ (pad != NULL ? pad[i] : 0);
}

tutti_status tti_secret_suffices(const tti_secret *secret, const tti_addr *addr, const char *what)
{
    static atomic_bool warned; /* of the process, as the environment is: one warning, not one a port */
    bool               wanted = true;
    tutti_status       st;

    if (secret->seal == TTI_SEAL_KEY && !secret->present)
        return tti_fail(TUTTI_E_AUTH,
                        "will not %s: TUTTI_TLS is 1, and there is no secret to make its keys of\n"
                        "  next: set TUTTI_SECRET_FILE to a file of mode 0600 with 64 hex digits, the same on all hosts; "
                        "or TUTTI_TLS_CERT, TUTTI_TLS_KEY and TUTTI_TLS_CA",
                        what);
    if (secret->present || secret->seal == TTI_SEAL_CERT || tti_addr_is_loopback(addr))
        return TUTTI_OK;
    st = tti_auth_wanted(&wanted);
    if (st != TUTTI_OK)
        return st;
    if (wanted)
        return tti_fail(TUTTI_E_AUTH,
                        "will not %s without a secret: whoever reaches it could join\n"
                        "  next: set TUTTI_SECRET_FILE to a file of mode 0600 with 64 hex digits, the "
                        "same on all hosts; or TUTTI_AUTH=none to do without",
                        what);
    if (!atomic_exchange(&warned, true))
        tti_log(TTI_LOG_WARN, "TUTTI_AUTH is none: whoever reaches this job's ports may join it; will %s", what);
    return TUTTI_OK;
}

tutti_status tti_secret_suffices_at(const tti_secret *secret, const tti_addr *addr, const char *what)
{
    char words[WORDS_MAX + TTI_ADDR_TEXT_MAX], at[TTI_ADDR_TEXT_MAX];

    snprintf(words, sizeof words, "%.*s at %s", WORDS_MAX - 8, what, tti_addr_format(addr, at, sizeof at));
    return tti_secret_suffices(secret, addr, words);
}

tutti_status tti_secret_check_user(const tti_secret *secret, tti_port *port, tti_handle stream, const char *who)
{
    tti_peer_cred cred = { .uid = -1 };
    tti_addr      here;
    bool          wanted = true;
    tutti_status  st;
    int           err;

    if ((secret != NULL && secret->present) || port->ops->peer_cred == NULL || port->ops->local_addr == NULL ||
        port->ops->local_addr(port, stream, &here) != 0 || !tti_addr_is_loopback(&here))
        return TUTTI_OK;
    st = tti_auth_wanted(&wanted);
    if (st != TUTTI_OK || !wanted)
        return st;
    err = port->ops->peer_cred(port, stream, &cred);
    if (err == -EOPNOTSUPP || (err == 0 && (cred.uid == 0 || cred.uid == (int64_t)geteuid())))
        return TUTTI_OK;
    if (err == -ENOTCONN)
        return tti_fail(TUTTI_E_NETWORK, "%s closed the connection", who);
    if (err != 0)
        return tti_fail_errno_as(TUTTI_E_AUTH, -err, "cannot tell whose process %s is", who);
    return tti_fail(TUTTI_E_AUTH,
                    "%s is a process of user %lld, this one is of user %lld, and the job has no secret\n"
                    "  next: give all processes the same TUTTI_SECRET_FILE, or set TUTTI_AUTH=none",
                    who, (long long)cred.uid, (long long)geteuid());
}

void tti_secret_release(tti_secret *secret)
{
    if (secret != NULL)
        OPENSSL_cleanse(secret, sizeof *secret);
}
