/* SPDX-License-Identifier: BSD-3-Clause
 *
 * joining.c - what a store holds of worlds that others have made, as a rank reads it that joins one.
 *
 * How     A store in this process is filled with the input: the latest number, sizes of worlds, who took which place: honest
 *         claims, changed ones, or whatever comes. No time is left to wait for anything. Then ranks join, one after the other, twice
 *         at the same time, while a launcher says that rank 0 has ended, and on a store that cannot compare; and say that they
 *         are through, while some are gone, which the last byte of the input says.
 * Holds   A number that is joined is positive, and told in all ways; a failure has words. */
#include "fuzz/fuzz.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>
#include <tutti/store.h>
#include "base/machine.h"
#include "rendezvous/generation.h"
#include "store/store_front.h"
#include "watch/bulletin.h"

enum { WORLD = 4, ENTRIES_MAX = 12, CLAIM_BYTES = 144 };

static uint8_t dice;
static uint8_t gone; /* a bit for each rank */

static void roll(tti_port *port, void *out, size_t bytes)
{
    (void)port;
    memset(out, ++dice, bytes);
}

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

/* Time stands still; what is random is other each time. */
static tti_port *rolling_port(void)
{
    static tti_port_ops ops;
    static tti_port     port = { &ops };

    if (ops.name == NULL) {
        ops = *tt_still_port()->ops;
        ops.random = roll;
    }
    return &port;
}

/* The number that was joined; 0: none. */
static int64_t try_join(tti_port *port, const tti_join *join)
{
    int64_t n = 0;

    if (tti_generation_join(port, join, &n) != TUTTI_OK)
        TT_MUST(n == 0 && strlen(tutti_last_error()) > 0);
    else
        TT_MUST(n > 0 && (join->number_out == NULL || *join->number_out == n));
    return n;
}

static bool is_gone(void *context, int rank)
{
    (void)context;
    TT_MUST(rank > 0 && rank < WORLD);
    return (gone >> rank & 1) != 0;
}

/* All of joining, and what follows it. */
static void join_as(tutti_store *store, int rank, const char *backends)
{
    tti_members    members = { .is_gone = is_gone };
    int64_t        number = 0, refused = 0;
    tti_join       join = { .store = store, .rank = rank, .world_size = WORLD, .deadline_ns = 1, .rank0_serves = true,
                            .number_out = &number, .refused_out = &refused };
    bool           absent[WORLD];
    int64_t        n;

    snprintf(join.backends, sizeof join.backends, "%s", backends);
    n = try_join(tt_still_port(), &join);
    if (n > 0 && tti_generation_arrive(tt_still_port(), &join, n, gone != 0 ? &members : NULL) != TUTTI_OK)
        TT_MUST(rank == 0 && strlen(tutti_last_error()) > 0);
    tti_generation_end(&join);
    tti_generation_absent(tt_still_port(), &join, n, absent);
    tti_generation_fail(tt_still_port(), &join, n);
}

/* Two threads of a process, as far as the list of those who join knows. */
static void join_twice(tutti_store *store, int rank)
{
    const tti_join first = { .store = store, .rank = rank, .world_size = WORLD, .deadline_ns = 1 }, second = first;
    const int64_t  n = try_join(rolling_port(), &first);

    TT_MUST(try_join(rolling_port(), &second) != n || n == 0);
    tti_generation_end(&first);
    tti_generation_end(&second);
}

static void join_alone(tutti_store *store)
{
    const tti_join join = { .store = store, .world_size = 1, .deadline_ns = 1, .alone = true, .rank0_serves = true };
    const int64_t  n = try_join(tt_still_port(), &join);

    TT_MUST(n == 1 && tti_generation_arrive(tt_still_port(), &join, n, NULL) == TUTTI_OK);
    tti_generation_end(&join);
}

/* A launcher has told how rank 0 ended. */
static void join_while_rank_0_has_ended(tutti_store *store)
{
    static tti_bulletin *bulletin;
    const tti_ending     ending = { .version = TTI_ENDING_VERSION, .exit_code = 3, .pid = 4711, .host = "host" };
    int                  fd = -1;

    if (bulletin == NULL) {
        TT_MUST(tti_bulletin_make(WORLD, WORLD, &bulletin, &fd) == TUTTI_OK);
        close(fd);
        tti_bulletin_post(bulletin, &ending);
    }
    tti_bulletin_heed(bulletin);
    join_as(store, 1, "");
    tti_bulletin_heed(NULL);
}

static void join_without_comparing(tutti_store *store)
{
    const tutti_store_ops whole = store->front->ops;

    store->front->ops.compare_set = NULL;
    join_as(store, 0, "");
    join_as(store, 1, "");
    store->front->ops = whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_input     in = tt_input_of(data, size);
    tutti_store *store = NULL;
    int          n;

    dice = 0;
    gone = size > 0 ? data[size - 1] : 0;
    TT_MUST(tutti_hash_store_open(&store) == TUTTI_OK);
    for (n = 0; n < ENTRIES_MAX && in.left > 0; n++)
        put_entry(store, &in);
    (void)tti_generation_has_rank0(tt_still_port(), store, 1);
    join_as(store, 1, "cpu:native");
    join_as(store, 0, "cpu:native");
    join_as(store, 1, "cpu:gloo");
    join_while_rank_0_has_ended(store);
    join_twice(store, 0);
    join_twice(store, 1);
    join_without_comparing(store);
    join_alone(store);
    tutti_store_close(store);
    return 0;
}
