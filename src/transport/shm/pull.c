/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pull.c - large payloads that the receiver copies out of the sender's memory, once.
 *
 * Why     A payload that goes through a ring is copied twice, and its lines are written anew on the way. The kernel
 *         copies it once (process_vm_readv), for some page walking.
 *         A ring has two cores at work instead of one, if there are two: then it wins where the payload is not in
 *         the receiver's cache anyway. And a sender can go on when its payload is in a ring: where ranks share cores it
 *         need not be waited for, nor wait, once for each message; then the ring wins as long as it holds all of the payload (512 KiB
 *         took 171 us by a pull and 74 through the ring), or copying costs less than giving the core away.
 *         With a core for each, the system call costs more than a second copy up to 16 KiB; at 32 KiB they are equal.
 * How     The sender leaves its data where it is and makes an offer: a word in shared memory, then a frame with the
 *         address. The receiver reads in pieces, and after each counts it in the word. The word is the number of the
 *         offer, its state, and the bytes that were taken:
 *
 *           open, 0 --> open, n --> ... --> open, all      by the receiver, after it has read
 *              |           '-> withdrawn, n                by the sender: its buffer goes back to its user
 *              '-> refused, n                              by the receiver: it may not read, or the kernel cannot
 *
 *         What an offer leaves comes through the bulk ring, so both ends agree about every byte.
 * True    Every step is a compare and exchange from what its maker knows, so withdrawing and counting exclude each
 *         other: a piece that was read while, or after, the offer was withdrawn is not counted, and is read again.
 *         The number keeps a late step of the receiver away from the next offer. Counting comes after the read, with
 *         release order; the sender loads the word, with acquire order, before it lets go of its buffer.
 *         Only reading: the sender's memory is never written, and a buffer that is gone is an error of the kernel's.
 * Who     The pid comes from the descriptor that the sender itself has sent, in this process's numbers. Where these
 *         cannot be had, or belong to somebody else, a token read back from the sender's memory shows it, before the
 *         first pull. A pid is not given to another process before 32,000 others were made: those who wait for a dead
 *         sender are told 20 times a second.
 * Fails   Who is not allowed to read (a debugger's rules apply), or has no such system call, refuses: the sender
 *         offers nothing to it any more. A sender that has died is found out by whoever waits, as always. */
#include "transport/shm/pull.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

enum { PIECE = 512 * 1024, SHARED_MIN = 96 * 1024, DONE_BITS = 48, STATE_SHIFT = 48, NUMBER_SHIFT = 50, PROOF_MAX = 64 };

typedef enum offer_state { OPEN = 1, WITHDRAWN = 2, REFUSED = 3 } offer_state;

#define DONE_MASK ((UINT64_C(1) << DONE_BITS) - 1)
#define NUMBER_MASK ((1U << (64 - NUMBER_SHIFT)) - 1)

tti_pull_sizes tti_pull_sizes_of(bool own_cores, size_t ring_bytes)
{
    const size_t held = ring_bytes + 1 > SHARED_MIN ? ring_bytes + 1 : SHARED_MIN;

    return own_cores ? (tti_pull_sizes){ .min = 32 << 10, .max = 1 << 20 }
                     : (tti_pull_sizes){ .min = held, .max = 16 << 20 };
}

static uint64_t word_of(uint64_t number, offer_state state, uint64_t done)
{
    return number << NUMBER_SHIFT | (uint64_t)state << STATE_SHIFT | done;
}

static offer_state state_of(uint64_t word)
{
    return (offer_state)(word >> STATE_SHIFT & 3);
}

/* ---- the sender ------------------------------------------------------------------------------------ */

void tti_offer_begin(tti_offerer *o, uint64_t bytes)
{
    o->seen = word_of(((o->seen >> NUMBER_SHIFT) + 1) & NUMBER_MASK, OPEN, 0);
    o->bytes = bytes;
    o->told = 0;
    o->open = true;
    atomic_store_explicit(o->word, o->seen, memory_order_relaxed);
}

void tti_offer_undo(tti_offerer *o)
{
    if (o->open)
        o->seen = word_of(((o->seen >> NUMBER_SHIFT) + NUMBER_MASK) & NUMBER_MASK, WITHDRAWN, 0); /* one less */
    o->open = false;
}

uint64_t tti_offer_progress(tti_offerer *o)
{
    uint64_t more;

    if (o->open)
        o->seen = atomic_load_explicit(o->word, memory_order_acquire);
    more = (o->seen & DONE_MASK) - o->told;
    if (more > o->bytes - o->told) /* impossible: what the receiver says is its own loss */
        more = o->bytes - o->told;
    o->told += more;
    o->refused = o->refused || state_of(o->seen) == REFUSED;
    if (o->told == o->bytes || o->refused)
        o->open = false;
    return more;
}

void tti_offer_retract(tti_offerer *o)
{
    if (!o->open)
        return;
    o->open = false;
    while (state_of(o->seen) == OPEN &&
           !atomic_compare_exchange_weak(o->word, &o->seen,
                                         word_of(o->seen >> NUMBER_SHIFT, WITHDRAWN, o->seen & DONE_MASK)))
        continue;
}

/* ---- the receiver ---------------------------------------------------------------------------------- */

pid_t tti_pid_of(int pidfd)
{
    char  path[64], line[128];
    long  pid = 0;
    FILE *info;

    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    info = fopen(path, "re");
    if (info == NULL)
        return 0;
    while (fgets(line, sizeof line, info) != NULL && sscanf(line, "Pid: %ld", &pid) != 1)
        continue;
    fclose(info);
    return pid > 0 ? (pid_t)pid : 0;
}

static ssize_t read_memory(pid_t pid, uint64_t address, void *out, size_t bytes)
{
    const struct iovec to = { .iov_base = out, .iov_len = bytes };
    const struct iovec from = { .iov_base = (void *)(uintptr_t)address, .iov_len = bytes };

    return process_vm_readv(pid, &to, 1, &from, 1, 0);
}

static bool prove(tti_puller *p, const tti_proof *proof)
{
    uint8_t there[PROOF_MAX];

    if (p->pid == 0 && p->pidfd > 0) { /* once: asking costs more than many a message */
        p->pid = tti_pid_of(p->pidfd);
        p->pidfd = 0;
    }
    if (!p->proved && p->pid > 0 && proof->bytes <= sizeof there)
        p->proved = read_memory(p->pid, proof->address, there, proof->bytes) == (ssize_t)proof->bytes &&
                    memcmp(there, proof->expected, proof->bytes) == 0;
    return p->proved;
}

/* From what this side knows to state and done: false if the sender has withdrawn the offer, which is closed then. */
static bool step(tti_puller *p, offer_state state, uint64_t done)
{
    const uint64_t next = word_of(p->number, state, done);

    p->open = atomic_compare_exchange_strong(p->word, &p->seen, next);
    p->seen = next;
    return p->open;
}

static void refuse(tti_puller *p)
{
    (void)step(p, REFUSED, p->done);
    p->open = false;
}

void tti_pull_begin(tti_puller *p, uint64_t address, const tti_proof *proof)
{
    p->number = (p->number + 1) & NUMBER_MASK;
    p->seen = word_of(p->number, OPEN, 0);
    p->address = address;
    p->done = 0;
    p->open = true;
    if (!prove(p, proof))
        refuse(p);
}

int64_t tti_pull(tti_puller *p, void *out, size_t bytes)
{
    const ssize_t got = read_memory(p->pid, p->address + p->done, out, bytes < PIECE ? bytes : PIECE);

    if (got < 0 && errno == ESRCH)
        return -EAGAIN;
    if (got <= 0) {
        refuse(p);
        return 0;
    }
    if (!step(p, OPEN, p->done + (uint64_t)got))
        return 0;
    p->done += (uint64_t)got;
    return got;
}
