/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fake_backend.h - a backend for tests of this room: ranks are threads that meet in memory.
 *
 * All groups of the program meet in one hub, by group id. Data moves for all kinds; reductions know
 * sum of i32. The controls below make operations wait, fail, and tell what was run. */
#ifndef FAKE_BACKEND_H
#define FAKE_BACKEND_H

#include "group/group.h"

extern const tutti_backend_ops fake_ops;

/** Forget everything; no backend may be alive (checked). */
void fake_reset(void);
/** While held, every run waits before it begins, until its deadline or an abort. */
void fake_hold(bool held);
/** Runs whose sequence number is seq fail with st from now on; 0: none does. */
void fake_fail_at(uint64_t seq, tutti_status st);
/** The n-th message from now on cannot be posted: st. 0: all can. */
void fake_fail_post(int n, tutti_status st);
/** From now on who looks whether a member is alive waits until there is a message that nobody has taken. */
void fake_look_long(void);
/** Wait until somebody has looked. */
void fake_await_look(void);
/** Wait until n threads are inside of run. */
void fake_await_running(int n);
/** How often abort was called. */
int fake_aborts(void);
/** Backends that are alive. */
int fake_alive(void);
/** The last run of this hub, in order of begin: group id * 1000 + seq, n entries at most. */
int fake_runs(int *out, int n);
/** The thread that ran the latest operation. */
pthread_t fake_runner(void);
/** The time-out of the latest creation, and its listening address. */
int64_t     fake_create_timeout_ms(void);
const char *fake_create_host(void);

/* Ranks as threads. */

typedef struct fake_rank {
    int          rank;
    int          size;
    tutti_group *world;
    void        *arg;
} fake_rank;

/** Run body on n threads, each with a world of its own over a fresh hash store and with NULL
 * meaning it, and end the worlds. Returns how many checks failed. */
int fake_ranks(int n, void (*body)(fake_rank *r), void *arg);
/** A world of one whose operations have timeout_ms. */
tutti_group *fake_world_of_one(int64_t timeout_ms);
/** Make one rank's world over store, as by an explicit store. */
tutti_status fake_world(tutti_store *store, int rank, int size, int64_t timeout_ms,
                        tutti_group **world_out);

/** An assertion that works on any thread: it is counted and printed. */
#define CHECK(cond) fake_check((cond), #cond, __FILE__, __LINE__)
bool fake_check(bool ok, const char *text, const char *file, int line);
/** Checks that have failed since the last fake_reset(). */
int fake_failures(void);

/** What every test over this backend begins and ends with: nothing failed, nothing was left alive. */
int fake_setup(void **state);
int fake_teardown(void **state);

#endif
