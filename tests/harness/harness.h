/* SPDX-License-Identifier: BSD-3-Clause
 *
 * harness.h - tests whose ranks are real processes, threads, or processes on two hosts.
 *
 * Why     What a rank does when another one dies, stops, or sits behind another address shows only with
 *         real processes. They must be started, watched, ended and described in one place.
 * How     The program's main() is tt_main() with a table of tests. For each test and each transport word
 *         it forks the ranks, which run the body under cmocka; it stays single threaded itself and only
 *         waits for them.
 *
 *             static void body(tt_ctx *t) { assert_int_equal(tutti_barrier(t->group), TUTTI_OK); }
 *             TT_RANKS_TEST(body, .ranks = 4, .transports = "shm,tcp", .limit_ms = 20000)
 *
 * True    A failed assertion ends its rank, not the others; once one has failed the others get GRACE_MS.
 *         Ranks see no variable of the caller's job (RANK, MASTER_ADDR, TUTTI_..., schedulers'), TUTTI_LOG
 *         excepted. Ranks of a test share a private directory, one TCP port and TT_MARKS counters.
 * Again   The variables TT_CARRIED and TT_PLUGINS have any test run once more over a transport that is a plug-in: it takes the place
 *         of TCP, wherever the test has that, but for tests that encrypt.
 *         TT_RAILS has any test of two hosts run over two interfaces of each: .rails, wherever a veth pair joins them.
 * Fails   A rank that fails, dies unasked, outlives the limit or leaves a process behind fails the test;
 *         the last lines of every rank are printed then. Exit code: 0 all passed, 1 one failed, 77 nothing
 *         failed but the machine refused something, which is printed.
 * Clean   The directory, the ranks and what they started are gone when tt_main() returns. Should the
 *         harness itself be killed: ranks die with it, and hosts (network namespaces) have no name, so
 *         that the last process takes them along; only the directory stays. */
#ifndef TT_HARNESS_H
#define TT_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tutti/status.h>
#include "harness/relay.h"

/* Tests name only what differs from TT_TEST's defaults, which are written first. */
#pragma GCC diagnostic ignored "-Woverride-init"

typedef struct tutti_group tutti_group;

enum { TT_RANKS_MAX = 256, TT_HOSTS_MAX = 2, TT_MARKS = 64 };
enum { TT_PASSED = 0, TT_FAILED = 1, TT_DIED = 42, TT_SKIPPED = 77 };

/** What a body knows. */
typedef struct tt_ctx {
    int          rank;
    int          size;
    const char  *backend;     /* as in the test */
    int          host;        /* 0 .. hosts-1; tt_host_of() */
    tutti_group *group;       /* NULL, which is this rank's world; ranks as threads: the world itself */
    const char  *transport;   /* the word of this run: "shm", "tcp", "threads", "threads-tcp" */
    const char  *dir;         /* private directory, the same for all ranks, removed at the end */
    const char  *addr;        /* numeric address of host 0, as all ranks reach it */
    int          port;        /* a TCP port on host 0 that nobody else uses */
    const char  *init_method; /* how the harness joins this rank, or would have joined it */
    int64_t      limit_ms;    /* of the whole run */
    _Atomic uint32_t *marks;  /* TT_MARKS counters, zero at first, shared by all ranks; tt_post() */
    void             *owned;  /* what tt_alloc() gave */
} tt_ctx;

/** Whether the harness makes the world of each rank before the body, and ends it after. */
typedef enum tt_init { TT_INIT_WORLD, TT_INIT_NONE } tt_init;

/** One test. TT_TEST(body, .field = ...) fills in what is not named. */
typedef struct tt_test {
    const char *name;
    void (*body)(tt_ctx *t);
    int         ranks;      /* 2; 1 .. TT_RANKS_MAX */
    const char *transports; /* "shm"; words with commas. shm: shared memory inside a host; tcp: TCP only;
                               threads, threads-tcp: the same with ranks as threads of one process */
    int     limit_ms;       /* 20000; a run is ended, and has failed, after it */
    int     timeout_ms;     /* of the world's operations; 0: half of the limit, so that its words are seen */
    bool    mixed;          /* ranks are on the hosts by turns; else the first ones are on host 0 */
    bool    tls;            /* TUTTI_TLS=1, with a secret: what goes by TCP is encrypted */
    int     stripes;        /* connections that two ranks have by TCP; 0: nothing is said */
    bool    rails;          /* with hosts = 2: they are joined twice, and TUTTI_SOCKET_IFNAME names both interfaces, tt0 and tt1 */
    bool    threads;        /* one more run, as if transports had "threads" */
    int     dies;           /* -1; the rank that must end by a signal or tt_die(), and not otherwise */
    uint32_t also_die;      /* one bit for each further rank, of the first 32, that must */
    int     hosts;          /* 1; 2: network namespaces joined by a veth pair, store on 10.77.0.1 */
    tt_init init;           /* TT_INIT_WORLD */
    tt_relay_link link;     /* with hosts = 2: what is between them; nothing said: a veth pair */
    const char *backend; /* of the world; NULL: the default one */
    const char *plugins; /* where plug-ins are looked for; NULL: where TT_PLUGINS says, if it says anything */
    const char *carried; /* the plug-in that carries what would go by TCP; NULL: what TT_CARRIED says, else TCP does */
    bool    waits;      /* it waits more than it computes: it runs beside others that do */
} tt_test;

/** The host of a rank. */
static inline int tt_host_of(const tt_test *test, int rank)
{
    return test->mixed ? rank % test->hosts : rank * test->hosts / test->ranks;
}

#define TT_TEST(body_fn, ...)                                                                          \
    {                                                                                                  \
        .name = #body_fn, .body = (body_fn), .ranks = 2, .transports = "shm", .limit_ms = 20000,       \
        .dies = -1, .hosts = 1, __VA_ARGS__                                                            \
    }

/** A program of one test. */
#define TT_RANKS_TEST(body_fn, ...)                                                                    \
    int main(void)                                                                                     \
    {                                                                                                  \
        static const tt_test test = TT_TEST(body_fn, __VA_ARGS__);                                     \
        return tt_main(&test, 1);                                                                      \
    }

/** Run all tests; returns main()'s exit code. A program with arguments of its own calls it as well. */
int tt_main(const tt_test *tests, size_t n);

/** The same for bodies that make no groups: every test is taken as TT_INIT_NONE, libtutti need not have
 * groups. */
int tt_main_bare(const tt_test *tests, size_t n);

/** Memory that the harness frees after the body, zeroed. Fails the test when there is none. */
void *tt_alloc(tt_ctx *t, size_t bytes);

/** count floats of one value, freed by the harness. */
float *tt_floats(tt_ctx *t, size_t count, float value);

/** End this process now, with no goodbye. */
_Noreturn void tt_die(void);

/** Add one to a counter that all ranks see, and wake who waits for it. */
void tt_post(tt_ctx *t, int mark);

/** Wait until a counter is at least that; the limit ends a wait that lasts for ever. */
void tt_await(tt_ctx *t, int mark, uint32_t at_least);

#endif
