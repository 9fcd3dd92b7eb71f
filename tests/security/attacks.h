/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attacks.h - the job that is attacked, and the attacks. README.md tells what each is. */
#ifndef ATTACKS_H
#define ATTACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/port.h"
#include "wire/hello.h"

enum { RANKS = 3, PATH_BYTES = 256, WORDS_BYTES = 160 };

/* In a rank's hello: where the place of a connection stands, and that of one for the watch threads. */
enum { STRIPE_SHIFT = 24, WATCH_STRIPE = 0x7f };

/** A training under `tutti run`, ranks over TCP, which goes on until it is told to stop. */
typedef struct job {
    char     dir[PATH_BYTES]; /* private; job.c */
    const char *tutti, *self; /* programs, by absolute paths */
    bool     dumps; /* it runs in dir, and the kernel may write cores there */
    int      n_worlds; /* beside it, that are scribbled on */
    pid_t    launcher;
    pid_t    ranks[RANKS];
    uint16_t store_port;
    uint16_t peer_ports[RANKS];
    uint8_t  scope[TTI_HELLO_SCOPE_BYTES]; /* of its world */
    char     secret_file[PATH_BYTES];
    uint8_t  key[TTI_SECRET_BYTES];
} job;

/** What was seen of an attack; held: it came to nothing. */
typedef struct outcome {
    bool held;
    bool skipped;
    char words[WORDS_BYTES];
} outcome;

/** One row of the table. */
typedef struct attack {
    const char *name;
    const char *does;
    const char *expected;
    outcome (*run)(const job *j, bool at_length);
    bool only_at_length;
} attack;

outcome held(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
outcome failed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
outcome skipped(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

int64_t now_ms(void);

/* ---- job.c --------------------------------------------------------------------------------------------- */

/** Start it, where tutti, self and dumps are set; steps 0: until job_stop(). false: it does not run, and has said why. */
bool job_start(job *j, long steps);
/** Have a rank end by SIGABRT, wait for the end of all of it, and name what dir has of a core: "" nothing. */
void job_crash(job *j, int rank, char core_out[PATH_BYTES]);
/** A file in dir whose name begins with "core". */
bool find_core(const char *dir, char path_out[PATH_BYTES]);
/** What is left of it goes. */
void job_remove(const job *j);
/** End its training and wait for it, at most so long: how many steps it made, and what its parameters came to, by bits. */
bool job_stop(job *j, int64_t patience_ms, long *steps_out, uint64_t *sum_out);
/** What a rank of it does. */
int job_rank(const char *dir, long steps);
/** Whether all its processes are there, and how many steps it has made. */
bool job_lives(const job *j, long *steps_out);

/* ---- talk.c: connections of somebody who may know the secret, or not --------------------------------- */

/** Where to: rank < 0: the store. A connected stream, or -1. */
int dial(const job *j, int rank);
/** What a genuine client's hello there has. */
tti_hello_config genuine(const job *j, int rank, const tti_secret *secret);
/** The whole hello; whether it was taken. */
bool shake_hands(int fd, const tti_hello_config *config);
/** After the hello, at a rank: whether its welcome comes, which says that it has read the proof. */
bool is_welcome(int fd);
/** Send all, as far as the other end takes it. */
void push(int fd, const void *data, size_t bytes);
/** Whether the other end closes it within that, having said no more than most bytes. */
bool is_closed_within(int fd, int64_t ms, size_t most);
/** A proven client's set and get at the store: how long they took together; -1: they failed. */
int64_t proven_client_ms(const job *j, int64_t patience_ms);

/* ---- the attacks --------------------------------------------------------------------------------------- */

extern const attack hello_attacks[], flood_attacks[], frame_attacks[], file_attacks[], leak_attacks[];
extern const size_t n_hello_attacks, n_flood_attacks, n_frame_attacks, n_file_attacks, n_leak_attacks;

#endif
