/* SPDX-License-Identifier: BSD-3-Clause
 *
 * joining.c - what a store holds of worlds that others have made, as a rank reads it that joins one.
 *
 * How     A store in this process is filled with the input: the latest number, sizes of worlds, who took which place: honest
 *         claims, changed ones, or whatever comes. No time is left to wait for anything.
 * Holds   A number that is joined is positive; a failure has words. */
#include "fuzz/fuzz.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>
#include <tutti/store.h>
#include "base/machine.h"
#include "rendezvous/generation.h"

enum { WORLD = 4, ENTRIES_MAX = 12, CLAIM_BYTES = 144 };

static void put(tutti_store *store, const char *key, const void *data, size_t size)
{
    TT_MUST(tutti_store_set(store, key, data, size) == TUTTI_OK);
}

/* It is of this machine, so that whoever made it can be looked for; now and then it is this process. */
static void set_here(uint8_t claim[CLAIM_BYTES])
{
    const int64_t  pid = getpid();
    struct stat    space;
    const uint64_t number = stat("/proc/self/ns/pid", &space) == 0 ? (uint64_t)space.st_ino : 0;

    if (claim[8] % 2 == 0)
        memcpy(claim + 8, &pid, sizeof pid);
    memcpy(claim + 16, &number, sizeof number);
    memset(claim + 24, 0, 40);
    TT_MUST(tti_boot_id((char *)claim + 24));
}

/* A claim of a process that there may be: its magic, version and size are right. */
static void put_claim(tutti_store *store, const char *key, tt_input *in, bool here)
{
    uint8_t  claim[CLAIM_BYTES] = { 'c', 'l', 'i', 'm', 1, 0, CLAIM_BYTES };
    tt_input part = tt_take_part(in, CLAIM_BYTES - 8);

    memcpy(claim + 8, part.at, part.left);
    if (here)
        set_here(claim);
    put(store, key, claim, sizeof claim);
}

static void put_entry(tutti_store *store, tt_input *in)
{
    const uint8_t what = (uint8_t)tt_take(in, 1);
    const int64_t n = what & 0x40 ? (int64_t)tt_take(in, 8) : 1 + (what >> 3 & 3);
    const int     rank = (int)(what & 1);
    char          key[64], text[24];
    tt_input      part;

    snprintf(key, sizeof key, "tutti/world/%" PRId64 "/%d", n, rank);
    if (what & 2) {
        put_claim(store, key, in, (what & 0x20) != 0);
        return;
    }
    if (what & 4)
        snprintf(key, sizeof key, what & 1 ? "tutti/worlds" : "tutti/world/%" PRId64, n);
    if (what & 0x80) {
        snprintf(text, sizeof text, "%" PRId64, what & 1 ? n : (int64_t)WORLD);
        put(store, key, text, strlen(text));
        return;
    }
    part = tt_take_sized(in);
    put(store, key, part.at, part.left);
}

static void join_as(tutti_store *store, int rank)
{
    const tti_join join = { .store = store, .rank = rank, .world_size = WORLD, .deadline_ns = 1 };
    bool           absent[WORLD];
    int64_t        n = 0;

    if (tti_generation_join(tt_still_port(), &join, &n) == TUTTI_OK)
        TT_MUST(n > 0);
    else
        TT_MUST(strlen(tutti_last_error()) > 0);
    tti_generation_end(&join);
    tti_generation_absent(tt_still_port(), &join, n, absent);
    tti_generation_fail(tt_still_port(), &join, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_input     in = tt_input_of(data, size);
    tutti_store *store = NULL;
    int          n;

    TT_MUST(tutti_hash_store_open(&store) == TUTTI_OK);
    for (n = 0; n < ENTRIES_MAX && in.left > 0; n++)
        put_entry(store, &in);
    join_as(store, 1);
    join_as(store, 0);
    join_as(store, 1);
    tutti_store_close(store);
    return 0;
}
