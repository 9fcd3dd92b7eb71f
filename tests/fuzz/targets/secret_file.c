/* SPDX-License-Identifier: BSD-3-Clause
 *
 * secret_file.c - the file with the job's secret.
 *
 * How     The first byte of the input says how the file stands there, what TUTTI_AUTH says, and where a port is to be.
 * Holds   A file that others may touch is refused. What is accepted is 64 hex digits and at most one newline, and the key is what they say. */
#include "fuzz/fuzz.h"

#include <sys/stat.h>
#include "wire/secret.h"

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
    if (tti_secret_suffices(secret, &at, "listen") == TUTTI_OK)
        TT_MUST(secret->present || tti_addr_is_loopback(&at) || (how & 12) == 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const auth[] = { NULL, "none", "secret", "nonsense" };
    tt_input                 in = tt_input_of(data, size);
    const uint8_t            how = (uint8_t)tt_take(&in, 1);
    const char              *path = tt_file(in.at, in.left);
    tti_secret               secret = { .present = false };

    tt_set_env("TUTTI_AUTH", auth[how >> 2 & 3]);
    tt_set_env("TUTTI_SECRET_FILE", how & 2 ? path : NULL);
    TT_MUST(chmod(path, how & 1 ? 0640 : 0600) == 0);
    if (tti_secret_load(how & 32 ? path : NULL, &secret) == TUTTI_OK && secret.present) {
        TT_MUST((how & 1) == 0);
        check_key(in.at, in.left, &secret);
    }
    ask_whether_it_suffices(&secret, how);
    tti_secret_release(&secret);
    TT_MUST(!secret.present);
    return 0;
}
