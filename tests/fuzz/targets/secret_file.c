/* SPDX-License-Identifier: BSD-3-Clause
 *
 * secret_file.c - the file with the job's secret.
 *
 * How     The first byte of the input says how the file stands there, what TUTTI_AUTH says, and where a port is to be; if it says so a
 *         second one says what there is in its place, what is asked of TLS, and whose the process at the other end is.
 * Holds   A file that others may touch is refused. What is accepted is 64 hex digits and at most one newline, and the key is what they
 *         say. Without a secret nobody is let in but this user and root, unless TUTTI_AUTH says that none is wanted. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include "wire/secret.h"

enum { SECOND_BYTE = 64, STREAM = 5 };

/* ---- who is at the other end ---- */

static int     cred_err;
static int64_t cred_uid;
static bool    comes_from_afar;

static int port_local_addr(tti_port *port, tti_handle handle, tti_addr *addr_out)
{
    (void)port;
    TT_MUST(handle == STREAM);
    *addr_out = (tti_addr){ .family = TTI_ADDR_IP4, .ip = { comes_from_afar ? 10 : 127, 0, 0, 1 } };
    return 0;
}

static int port_peer_cred(tti_port *port, tti_handle handle, tti_peer_cred *cred_out)
{
    (void)port;
    TT_MUST(handle == STREAM);
    cred_out->uid = cred_uid;
    return cred_err;
}

static const tti_port_ops port_ops = { .name = "door", .local_addr = port_local_addr, .peer_cred = port_peer_cred };

static void let_somebody_in(const tti_secret *secret, uint8_t more, bool none_wanted)
{
    static const int errs[] = { 0, 0, -ENOTCONN, -EIO };
    tti_port         port = { &port_ops };
    tutti_status     st;

    cred_err = errs[more >> 6];
    cred_uid = more & 1 ? (int64_t)geteuid() : (int64_t)geteuid() + 1;
    comes_from_afar = (more & 0x3f) == 0x3f;
    st = tti_secret_check_user(secret, &port, STREAM, "somebody");
    TT_MUST(st != TUTTI_OK || secret->present || none_wanted || comes_from_afar || (cred_err == 0 && (cred_uid == 0 || (more & 1))));
}

/* ---- what is asked of TLS ---- */

static void ask_for_tls(uint8_t more)
{
    static const char *const tls[] = { NULL, "0", "1", "yes" };
    static const char *const names[] = { "TUTTI_TLS_CERT", "TUTTI_TLS_KEY", "TUTTI_TLS_CA" };
    size_t                   i;

    tt_set_env("TUTTI_TLS", tls[more & 3]);
    for (i = 0; i < 3; i++)
        tt_set_env(names[i], i < (more >> 2 & 3) ? "/nowhere/file.pem" : NULL);
}

/* ---- the file ---- */

static void check_key(const uint8_t *data, size_t size, const tti_secret *secret)
{
    uint8_t key[TTI_SECRET_BYTES];
    char    digits[3] = "";
    size_t  i;

    TT_MUST(secret->present && (size == 64 || (size == 65 && data[64] == '\n')));
    tti_secret_reveal(secret, key);
    for (i = 0; i < TTI_SECRET_BYTES; i++) {
        memcpy(digits, data + 2 * i, 2);
        TT_MUST(strtoul(digits, NULL, 16) == key[i]);
    }
}

static void ask_whether_it_suffices(const tti_secret *secret, uint8_t how)
{
    tti_addr at;

    TT_MUST(tti_addr_parse(how & 16 ? "127.0.0.1" : "10.0.0.1", 80, &at) == TUTTI_OK);
    if (tti_secret_suffices_at(secret, &at, "listen") == TUTTI_OK)
        TT_MUST(secret->present || secret->seal == TTI_SEAL_CERT || tti_addr_is_loopback(&at) || (how & 12) == 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const auth[] = { NULL, "none", "secret", "nonsense" };
    tt_input                 in = tt_input_of(data, size);
    static const char *const places[] = { NULL, "/nowhere/secret", "/", "/dev/null" };
    const uint8_t            how = (uint8_t)tt_take(&in, 1);
    const uint8_t            more = how & SECOND_BYTE ? (uint8_t)tt_take(&in, 1) : 0;
    const char              *path = tt_file(in.at, in.left);
    tti_secret               secret = { .present = false };

    ask_for_tls(more);
    tt_set_env("TUTTI_AUTH", auth[how >> 2 & 3]);
    tt_set_env("TUTTI_SECRET_FILE", how & 2 ? path : NULL);
    TT_MUST(chmod(path, how & 1 ? 0640 : 0600) == 0);
    path = places[more >> 4 & 3] != NULL ? places[more >> 4 & 3] : path;
    if (tti_secret_load(how & 32 ? path : NULL, &secret) == TUTTI_OK && secret.present) {
        TT_MUST((how & 1) == 0 && (more >> 4 & 3) == 0);
        check_key(in.at, in.left, &secret);
    }
    ask_whether_it_suffices(&secret, how);
    let_somebody_in(&secret, more, (how & 12) == 4);
    tti_secret_release(&secret);
    TT_MUST(!secret.present);
    return 0;
}
