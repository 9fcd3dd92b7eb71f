/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attack_frames.c - who knows the secret, and says what nobody says: to the store, to a rank, to its watch thread. */
#include "attacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tutti/store.h>
#include "store/store_proto.h"
#include "wire/bytes.h"

enum { SOON_MS = 5000, GARBAGE = 4096, OP_AT = 5, TRIES = 4 };

static tti_secret secret_of(const job *j)
{
    tti_secret secret = { .present = false };

    (void)tti_secret_make(j->key, &secret);
    return secret;
}

/* A connection that was taken in; stripe: of a rank. */
static int join(const job *j, int rank, uint32_t stripe)
{
    const tti_secret secret = secret_of(j);
    tti_hello_config config = genuine(j, rank, &secret);
    const int        fd = dial(j, rank);

    if (rank >= 0)
        config.rank |= stripe << STRIPE_SHIFT;
    if (fd >= 0 && shake_hands(fd, &config))
        return fd;
    close(fd);
    return -1;
}

static void fill(uint8_t *out, size_t bytes, unsigned seed)
{
    size_t i;

    for (i = 0; i < bytes; i++) {
        seed = seed * 1103515245 + 12345;
        out[i] = (uint8_t)(seed >> 16);
    }
}

static outcome garbage_at_the_store(const job *j, bool at_length)
{
    const int rounds = at_length ? 1000 : 30;
    uint8_t   data[GARBAGE];
    int       i, fd;
    bool      closed;

    for (i = 0; i < rounds; i++) {
        fd = join(j, -1, 0);
        if (fd < 0)
            return failed("not taken in, round %d", i);
        fill(data, sizeof data, (unsigned)i);
        if (i % 2 == 1) /* a frame that begins well */
            memcpy(data, (uint8_t[]){ (uint8_t)i, 0, 0, 0, TTI_STORE_VERSION, (uint8_t)(1 + i % 16), 0, 0 }, 8);
        push(fd, data, sizeof data);
        closed = is_closed_within(fd, SOON_MS, 1 << 16);
        close(fd);
        if (!closed)
            return failed("the connection stayed, round %d", i);
    }
    return proven_client_ms(j, SOON_MS) >= 0 ? held("closed, %d times; others are served", rounds) : failed("nobody is served");
}

static outcome oversized_at_the_store(const job *j, bool at_length)
{
    uint8_t head[TTI_STORE_HEAD_BYTES] = { 0 };
    int     op, fd, n = 0;
    bool    closed;

    (void)at_length;
    for (op = 0; op < TTI_STORE_OP_END; op++) {
        const uint32_t sizes[] = { UINT32_MAX, 0x7fffffff, 33 << 20 };
        size_t         i;

        for (i = 0; i < 3; i++, n++) {
            fd = join(j, -1, 0);
            tti_put_u32(head, sizes[i]);
            head[4] = TTI_STORE_VERSION;
            head[OP_AT] = (uint8_t)op;
            push(fd, head, sizeof head);
            closed = fd >= 0 && is_closed_within(fd, SOON_MS, 0);
            close(fd);
            if (!closed)
                return failed("operation %d of %u bytes was waited for", op, (unsigned)sizes[i]);
        }
    }
    return held("%d frames refused by their heads", n);
}

/* The ways of the world are open already: a second one to a rank is none, whoever asks for it. */
static outcome garbage_at_a_rank(const job *j, bool at_length)
{
    const int rounds = at_length ? 300 : 20;
    uint8_t   data[GARBAGE];
    int       i, fd, n = 0;
    bool      closed;

    for (i = 0; i < rounds; i++) {
        fd = join(j, i % RANKS, (uint32_t)(i % 4));
        if (fd < 0)
            continue; /* it was closed before we could say a word */
        n++;
        fill(data, sizeof data, (unsigned)i);
        push(fd, data, sizeof data);
        closed = is_closed_within(fd, SOON_MS, 64);
        close(fd);
        if (!closed)
            return failed("the connection stayed, round %d", i);
    }
    return n > 0 ? held("closed, %d times", n) : failed("none of %d was taken in", rounds);
}

static outcome garbage_for_a_watch(const job *j, bool at_length)
{
    const int rounds = at_length ? 300 : 10;
    uint8_t   data[GARBAGE];
    int       i, fd, n = 0;

    for (i = 0; i < rounds; i++) {
        fd = join(j, i % RANKS, WATCH_STRIPE);
        if (fd < 0)
            continue;
        n += is_welcome(fd);
        fill(data, sizeof data, (unsigned)i);
        if (i % 2 == 1) /* as a digest begins, and says that it has four billion records */
            memcpy(data, (uint8_t[]){ 'b', 'e', 'a', 't', 1, 0, 1, 0, 0xff, 0xff, 0xff, 0xff }, 12);
        push(fd, data, sizeof data);
        (void)is_closed_within(fd, 100, 1 << 16);
        close(fd);
    }
    return n > 0 ? held("%d streams taken, none believed", n) : failed("none of %d was taken", rounds);
}

/* ---- the store's memory ---------------------------------------------------------------------------------- */

/* Names that unkeyed hashes of strings (31 x + c, 33 x + c and their kin) take for one: "Aa" and "BB", in every order. */
static void name_colliding(unsigned n, char out[40])
{
    int bit;

    for (bit = 0; bit < 16; bit++)
        memcpy(out + 2 * bit, n >> bit & 1 ? "BB" : "Aa", 2);
    out[32] = '\0';
}

static double sets_a_second(tutti_store *store, unsigned n, bool colliding)
{
    const int64_t start = now_ms();
    char          name[40];
    unsigned      i;

    for (i = 0; i < n; i++) {
        if (colliding)
            name_colliding(i, name);
        else
            snprintf(name, sizeof name, "plain-%024u", i * 2654435761U);
        if (tutti_store_set(store, name, "x", 1) != TUTTI_OK)
            return 0;
    }
    return 1000.0 * n / (double)(now_ms() - start + 1);
}

static tutti_store *open_store(const job *j)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;

    setenv("TUTTI_SECRET_FILE", j->secret_file, 1);
    options.host = "127.0.0.1";
    options.port = j->store_port;
    (void)tutti_tcp_store_open(&options, &store);
    unsetenv("TUTTI_SECRET_FILE");
    return store;
}

static void delete_all(tutti_store *store, unsigned n)
{
    char     name[40];
    unsigned i;

    for (i = 0; i < n; i++) {
        name_colliding(i, name);
        (void)tutti_store_delete_key(store, name, NULL);
        snprintf(name, sizeof name, "plain-%024u", i * 2654435761U);
        (void)tutti_store_delete_key(store, name, NULL);
    }
}

/* Somebody may have had the cores just when it was the turn of one of them: a table that collides is slow each time. */
static outcome colliding_keys(const job *j, bool at_length)
{
    const unsigned n = at_length ? 60000 : 4000;
    tutti_store   *store = open_store(j);
    double         plain = 1, colliding = 0;
    int            tries;

    if (store == NULL)
        return failed("the store cannot be reached");
    for (tries = 0; tries < TRIES && colliding * 4 <= plain; tries++) {
        plain = sets_a_second(store, n, false);
        colliding = sets_a_second(store, n, true);
        delete_all(store, n);
    }
    tutti_store_close(store);
    return colliding * 4 > plain ? held("%.0f sets a second; of other keys %.0f", colliding, plain)
                                 : failed("%.0f sets a second; of other keys %.0f", colliding, plain);
}

/* Until the store refuses; what it has refused it goes on without. */
static outcome full_store(const job *j, bool at_length)
{
    enum { CHUNK = 15 << 20, MOST = 200 };
    tutti_store *store = open_store(j);
    char        *value = calloc(1, CHUNK), name[24];
    tutti_status st = TUTTI_OK;
    int          i, n;

    (void)at_length;
    for (n = 0; n < MOST && st == TUTTI_OK && store != NULL && value != NULL; n++) {
        snprintf(name, sizeof name, "flood-%d", n);
        st = tutti_store_set(store, name, value, CHUNK);
    }
    for (i = 0; i < n; i++) {
        snprintf(name, sizeof name, "flood-%d", i);
        (void)tutti_store_delete_key(store, name, NULL);
    }
    tutti_store_close(store);
    free(value);
    if (st != TUTTI_E_STORE)
        return failed("%d values of 15 MiB were taken: %s", n, tutti_status_name(st));
    return proven_client_ms(j, SOON_MS) >= 0 ? held("refused after %d values of 15 MiB; others are served", n - 1)
                                             : failed("nobody is served");
}

const attack frame_attacks[] = {
    { "garbage after proof, store", "random bytes, and frames that begin well", "closed", garbage_at_the_store, false },
    { "oversized frames, store", "every operation with sizes up to 4 GiB", "refused by the head", oversized_at_the_store, false },
    { "garbage after proof, rank", "random bytes in place of messages", "closed", garbage_at_a_rank, false },
    { "garbage after proof, watch", "random bytes in place of signs of life", "not believed", garbage_for_a_watch, false },
    { "colliding keys", "keys that unkeyed hashes take for one", "as fast as others", colliding_keys, false },
    { "full store", "values until it takes no more", "refused; others served", full_store, true },
};
const size_t n_frame_attacks = sizeof frame_attacks / sizeof frame_attacks[0];
