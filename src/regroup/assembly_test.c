/* SPDX-License-Identifier: BSD-3-Clause
 *
 * assembly_test.c
 * Goal    members that have lost their store find each other, also where somebody opens connections without pause that
 *         prove nothing.
 * Method  two meshes of one process, by TCP; their assemblies are turned one after the other in one thread. Strangers come
 *         from some address of loopback, in front of every turn of rank 0, more than may stay. */
#include "regroup/assembly.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "base/thread.h"

enum { KEYS_MAX = 32, LIMIT_MS = 30000, TOPIC = 7, BYTES = 8, FLOOD_MAX = 240, TURNS = 60, TURN_MS = 20, LEARN_MS = 500 };

/* ---- a board in memory, where two ranks meet ---- */

typedef struct board_memory {
    tti_mutex lock;
    tti_event changed;
    int       n;
    struct {
        char    key[32];
        uint8_t data[512];
        size_t  bytes;
    } entry[KEYS_MAX];
} board_memory;

static int find_key(const board_memory *b, const char *key)
{
    int i;

    for (i = 0; i < b->n; i++)
        if (strcmp(b->entry[i].key, key) == 0)
            return i;
    return -1;
}

static tutti_status put(void *context, const char *key, const void *data, size_t bytes, int64_t deadline_ns)
{
    board_memory *b = context;

    (void)deadline_ns;
    tti_lock(&b->lock);
    snprintf(b->entry[b->n].key, sizeof b->entry[0].key, "%s", key);
    memcpy(b->entry[b->n].data, data, bytes);
    b->entry[b->n++].bytes = bytes;
    tti_unlock(&b->lock);
    tti_event_signal(tti_port_system(), &b->changed);
    return TUTTI_OK;
}

static tutti_status has(void *context, const char *key, int64_t deadline_ns, bool *there_out)
{
    board_memory *b = context;

    (void)deadline_ns;
    tti_lock(&b->lock);
    *there_out = find_key(b, key) >= 0;
    tti_unlock(&b->lock);
    return TUTTI_OK;
}

static tutti_status get(void *context, const char *key, void *out, size_t bytes, int64_t deadline_ns)
{
    board_memory *b = context;
    bool          there = false;

    for (;;) {
        const uint32_t seen = tti_event_now(&b->changed);

        (void)has(b, key, 0, &there);
        if (there)
            break;
        if (tti_port_now(tti_port_system()) >= deadline_ns)
            return tti_fail(TUTTI_E_TIMEOUT, "key '%s' did not come", key);
        tti_event_wait(tti_port_system(), &b->changed, seen, deadline_ns);
    }
    tti_lock(&b->lock);
    memcpy(out, b->entry[find_key(b, key)].data, bytes);
    tti_unlock(&b->lock);
    return TUTTI_OK;
}

/* ---- two members ---- */

typedef struct member {
    int           rank;
    board_memory *memory;
    tti_mesh     *mesh;
    tti_assembly *assembly;
    bool          is_present[2], is_gone[2];
    int           n_heard;
} member;

static void *open_mesh(void *arg)
{
    member               *m = arg;
    const tti_board       board = { .context = m->memory, .put = put, .get = get, .has = has };
    const tti_mesh_config config = { .port = tti_port_system(), .board = &board, .rank = m->rank, .n_ranks = 2,
                                     .listen_host = "127.0.0.1", .tcp_only = true,
                                     .deadline_ns = tti_deadline(tti_port_system(), LIMIT_MS, 0) };

    return tti_mesh_open(&config, &m->mesh) == TUTTI_OK ? m : NULL;
}

static bool wants(void *ctx, int rank)
{
    return rank != ((member *)ctx)->rank;
}

static void present(void *ctx, int rank)
{
    ((member *)ctx)->is_present[rank] = true;
}

static void absent(void *ctx, int rank)
{
    ((member *)ctx)->is_present[rank] = false;
}

static void gone(void *ctx, int rank)
{
    ((member *)ctx)->is_gone[rank] = true;
}

static void heard(void *ctx, int rank, const void *message, size_t bytes)
{
    member *m = ctx;

    m->n_heard += rank != m->rank && bytes == BYTES && memcmp(message, "a letter", BYTES) == 0;
}

static void begin(member m[2], board_memory *memory)
{
    static const int ranks[2] = { 0, 1 };
    pthread_t        threads[2];
    void            *opened;
    int              r;

    memset(memory, 0, sizeof *memory);
    tti_mutex_init(&memory->lock);
    for (r = 0; r < 2; r++) {
        m[r] = (member){ .rank = r, .memory = memory };
        assert_int_equal(pthread_create(&threads[r], NULL, open_mesh, &m[r]), 0);
    }
    for (r = 0; r < 2; r++) {
        pthread_join(threads[r], &opened);
        assert_non_null(opened);
    }
    for (r = 0; r < 2; r++) {
        const tti_assembly_hooks hooks = { &m[r], wants, present, absent, gone, heard };

        assert_int_equal(tti_assembly_open(m[r].mesh, ranks, 2, r, TOPIC, BYTES, &hooks, &m[r].assembly), TUTTI_OK);
    }
}

static void end(member m[2], board_memory *memory)
{
    int r;

    for (r = 0; r < 2; r++)
        tti_assembly_close(m[r].assembly);
    for (r = 0; r < 2; r++)
        tti_mesh_close(m[r].mesh);
    tti_mutex_release(&memory->lock);
}

static void turn(member *m)
{
    tti_assembly_turn(m->assembly, tti_deadline(tti_port_system(), TURN_MS, 0));
}

/* ---- strangers ---- */

typedef struct flood {
    int fds[FLOOD_MAX];
    int next; /* the oldest, in whose place the next one comes */
} flood;

static void add_stranger(flood *f, uint32_t address, const tti_addr *door)
{
    const struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
    struct sockaddr_in       to = { .sin_family = AF_INET, .sin_port = htons(door->port) };
    int                      fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    memcpy(&to.sin_addr, door->ip, 4);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof from), 0);
    (void)connect(fd, (const struct sockaddr *)&to, sizeof to); /* where the queue is full it waits, or not */
    if (f->fds[f->next] >= 0)
        close(f->fds[f->next]);
    f->fds[f->next] = fd;
    f->next = (f->next + 1) % FLOOD_MAX;
}

/* ---- cases ---- */

static void members_talk(void **state)
{
    board_memory memory;
    member       m[2];
    int          i;

    (void)state;
    begin(m, &memory);
    tti_assembly_send(m[1].assembly, 0, "a letter", BYTES);
    for (i = 0; i < TURNS && m[0].n_heard == 0; i++) {
        turn(&m[1]);
        turn(&m[0]);
    }
    assert_int_equal(m[0].n_heard, 1);
    assert_true(m[1].is_present[0] && !m[1].is_gone[0]);
    end(m, &memory);
}

/* Its door refuses at once: whether it has left is known a little later, also in the midst of the turn that tells of it. */
static void how_one_ended_is_waited_for(void **state)
{
    board_memory memory;
    member       m[2];
    char         words[512];
    int64_t      from_ns, took_ns;
    bool         known;
    int          i;

    (void)state;
    begin(m, &memory);
    tti_assembly_close(m[1].assembly);
    tti_mesh_close(m[1].mesh);
    m[1].assembly = NULL;
    m[1].mesh = NULL;
    from_ns = tti_port_now(tti_port_system());
    for (i = 0; i < TURNS && !m[0].is_gone[1]; i++)
        turn(&m[0]);
    known = tti_mesh_has_left(m[0].mesh, 1) || !tti_mesh_is_alive(m[0].mesh, 1, words, sizeof words);
    took_ns = tti_port_now(tti_port_system()) - from_ns;
    assert_true(m[0].is_gone[1]);
    assert_true(known || took_ns >= LEARN_MS * INT64_C(1000000));
    end(m, &memory);
}

/* So many strangers come in front of each turn of rank 0; rank 1 has one turn while rank 0 has several. */
static void talk_in_a_flood(uint32_t address, int n_a_turn, int slowly)
{
    board_memory memory;
    member       m[2];
    flood        f = { .next = 0 };
    tti_addr     door;
    int          i, k;

    memset(f.fds, -1, sizeof f.fds);
    begin(m, &memory);
    door = *tti_mesh_assembly_addr(m[1].mesh, 0);
    assert_int_equal(door.family, TTI_ADDR_IP4);
    tti_assembly_send(m[1].assembly, 0, "a letter", BYTES);
    for (i = 0; i < TURNS && m[0].n_heard == 0; i++) {
        if (i % slowly == 0)
            turn(&m[1]);
        for (k = 0; k < n_a_turn; k++)
            add_stranger(&f, address, &door);
        turn(&m[0]);
    }
    assert_int_equal(m[0].n_heard, 1);
    for (k = 0; k < FLOOD_MAX; k++)
        if (f.fds[k] >= 0)
            close(f.fds[k]);
    end(m, &memory);
}

/* An address of this host that is no part of the loopback net, all of which is one source; 0: there is none. */
static uint32_t other_address(void)
{
    struct ifaddrs *all, *a;
    uint32_t        address = 0;

    assert_int_equal(getifaddrs(&all), 0);
    for (a = all; a != NULL && address == 0; a = a->ifa_next)
        if (a->ifa_addr != NULL && a->ifa_addr->sa_family == AF_INET && (a->ifa_flags & IFF_LOOPBACK) == 0)
            address = ntohl(((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr.s_addr);
    freeifaddrs(all);
    return address;
}

/* A member is slow, but from elsewhere. Where all addresses are one source strangers_test alone has the rule. */
static void a_flood_drops_its_own(void **state)
{
    const uint32_t address = other_address();

    (void)state;
    if (address == 0)
        skip();
    talk_in_a_flood(address, 20, 6);
}

/* The addresses are the same: each is heard before it may have to go. */
static void who_comes_with_a_flood_is_heard(void **state)
{
    (void)state;
    talk_in_a_flood(0x7f000001, 100, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_talk),
        cmocka_unit_test(how_one_ended_is_waited_for),
        cmocka_unit_test(a_flood_drops_its_own),
        cmocka_unit_test(who_comes_with_a_flood_is_heard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
