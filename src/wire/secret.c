/* SPDX-License-Identifier: BSD-3-Clause
 *
 * secret.c - reading the secret from its file, and refusing files that others could have read; refusing
 * to go without one where others could connect. */
#include "wire/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <openssl/crypto.h>
#include <tutti/private.h>

enum { HEX_DIGITS = 2 * TTI_SECRET_BYTES };

static tutti_status check_file(int fd, const char *path)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return tti_fail_errno_as(TUTTI_E_IO, errno, "cannot look at secret file '%s'", path);
    if (!S_ISREG(st.st_mode))
        return tti_fail(TUTTI_E_AUTH, "secret file '%s' is not a regular file", path);
    if (st.st_uid != geteuid())
        return tti_fail(TUTTI_E_AUTH, "secret file '%s' belongs to user %ld, not to user %ld", path,
                        (long)st.st_uid, (long)geteuid());
    if ((st.st_mode & 077) != 0)
        return tti_fail(
            TUTTI_E_AUTH,
            "secret file '%s' has mode %04o: others may touch it\n  next: chmod 600 '%s'", path,
            (unsigned)(st.st_mode & 07777), path);
    return TUTTI_OK;
}

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

static tutti_status wants_auth(bool *wanted_out)
{
    const char *auth = tti_env("TUTTI_AUTH");

    if (strcmp(auth, "secret") != 0 && strcmp(auth, "none") != 0)
        return tti_fail(TUTTI_E_ARG, "TUTTI_AUTH is '%.64s', not 'secret' or 'none'", auth);
    *wanted_out = strcmp(auth, "secret") == 0;
    return TUTTI_OK;
}

tutti_status tti_secret_load(const char *path, tti_secret *out)
{
    char         text[HEX_DIGITS + 2]; /* one more than allowed, to see that there is more */
    tti_secret   secret = { .present = true };
    tutti_status st;
    ssize_t      n;
    bool         wanted;
    int          fd;

    st = wants_auth(&wanted); /* a wrong value is refused wherever one joins, not only where it would matter */
    if (st != TUTTI_OK)
        return st;
    if (path == NULL)
        path = tti_env("TUTTI_SECRET_FILE");
    if (path == NULL) {
        *out = (tti_secret){ .present = false };
        return TUTTI_OK;
    }
    /* Without O_NONBLOCK the open of a fifo would wait for a writer. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return tti_fail_errno_as(TUTTI_E_IO, errno, "cannot open secret file '%s'", path);
    st = check_file(fd, path);
    if (st != TUTTI_OK)
        goto out;
    n = read_start(fd, text, sizeof text);
    if (n < 0) {
        st = tti_fail_errno_as(TUTTI_E_IO, (int)-n, "cannot read secret file '%s'", path);
        goto out;
    }
    if (!decode(text, (size_t)n, secret.key)) {
        st = tti_fail(TUTTI_E_AUTH,
                      "secret file '%s' does not hold %d hex digits and nothing else\n"
                      "  next: make one with 'openssl rand -hex 32', and copy it to all hosts",
                      path, HEX_DIGITS);
        goto out;
    }
    *out = secret;

out:
    OPENSSL_cleanse(text, sizeof text);
    tti_secret_release(&secret);
    close(fd);
    return st;
}

tutti_status tti_secret_suffices(const tti_secret *secret, const tti_addr *addr, const char *what)
{
    static atomic_bool warned; /* of the process, as the environment is: one warning, not one a port */
    char               at[TTI_ADDR_TEXT_MAX];
    bool               wanted = true;
    tutti_status       st;

    if (secret->present || tti_addr_is_loopback(addr))
        return TUTTI_OK;
    st = wants_auth(&wanted);
    if (st != TUTTI_OK)
        return st;
    tti_addr_format(addr, at, sizeof at);
    if (wanted)
        return tti_fail(TUTTI_E_AUTH,
                        "will not %s at %s without a secret: whoever reaches it could join\n"
                        "  next: set TUTTI_SECRET_FILE to a file of mode 0600 with 64 hex digits, the "
                        "same on all hosts; or TUTTI_AUTH=none to do without",
                        what, at);
    if (!atomic_exchange(&warned, true))
        tti_log(TTI_LOG_WARN, "TUTTI_AUTH is none: whoever reaches %s may join this job", at);
    return TUTTI_OK;
}

void tti_secret_release(tti_secret *secret)
{
    if (secret != NULL)
        OPENSSL_cleanse(secret, sizeof *secret);
}
