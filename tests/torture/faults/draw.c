/* SPDX-License-Identifier: BSD-3-Clause
 *
 * draw.c - what happens in a job and in each of its rounds, as functions of a seed. */
#include "faults.h"

enum { STOPS_EVERY = 12, DRAWS_MAX = 200 };

const char *tt_fault_name(tt_fault what)
{
    static const char *const names[FAULTS + 1] = { "SIGKILL", "SIGSTOP", "_exit",      "segfault",  "abort",
                                                   "RST",     "black-hole", "half-close", "-" };

    return names[what];
}

const char *tt_phase_name(tt_phase when)
{
    static const char *const names[PHASES] = { "connect", "handshake", "algorithm", "p2p", "teardown", "shrink" };

    return names[when];
}

const char *tt_layout_name(tt_layout where)
{
    static const char *const names[LAYOUTS] = { "shm", "tcp", "two-level" };

    return names[where];
}

bool tt_fault_leaves_alive(tt_fault what)
{
    return what == F_STOP || what == F_RESET || what == F_HOLE || what == F_HALF;
}

bool tt_fault_is_silent(tt_fault what)
{
    return what == F_STOP || what == F_HOLE;
}

uint64_t tt_dice(uint64_t seed, uint64_t what)
{
    uint64_t z = seed * UINT64_C(0xd1342543de82ef95) + what * UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int tt_host_of_slot(const tt_job *job, int slot)
{
    return slot % job->hosts;
}

void tt_draw_job(uint64_t seed, tt_job *job)
{
    static const int sizes[] = { 2, 3, 4, 4, 5, 6, 8, 8 };

    job->seed = seed;
    job->size = sizes[tt_dice(seed, 1) % (sizeof sizes / sizeof sizes[0])];
    if (job->layout == L_TWO_LEVEL && job->size < 4)
        job->size = 4;
    job->hosts = job->layout == L_SHM ? 1 : job->layout == L_TCP ? job->size : 2 + (int)(tt_dice(seed, 2) % 2);
}

/* A host is cut off with all its ranks: they must be fewer than the others. */
static bool may_cut(const tt_job *job, int size, const int *slots, int victim)
{
    const int host = tt_host_of_slot(job, slots[victim]);
    int       there = 0, i;

    for (i = 0; i < size; i++)
        there += tt_host_of_slot(job, slots[i]) == host;
    return 2 * there < size;
}

static bool has_streams(const tt_job *job, int size, const int *slots)
{
    int i;

    for (i = 1; i < size; i++)
        if (tt_host_of_slot(job, slots[i]) != tt_host_of_slot(job, slots[0]))
            return true;
    return false;
}

static tt_fault draw_fault(const tt_job *job, uint64_t dice, int size, const int *slots, int victim)
{
    int total = 0, at, i;

    for (i = 0; i < FAULTS; i++)
        total += job->faults[i];
    at = (int)(dice % (uint64_t)total);
    for (i = 0; at >= job->faults[i]; i++)
        at -= job->faults[i];
    if (tt_fault_cuts((tt_fault)i) && !has_streams(job, size, slots))
        return F_KILL;
    if (i == F_HOLE && (!has_streams(job, size, slots) || !may_cut(job, size, slots, victim)))
        return F_KILL;
    return (tt_fault)i;
}

enum { JOINING = 1u << P_CONNECT | 1u << P_HANDSHAKE };

static bool is_wanted(const tt_job *job, tt_phase when)
{
    return job->phases == 0 || (job->phases & 1u << when) != 0;
}

/* Where only joining is wanted there is no world to go on with. */
int tt_rounds(const tt_job *job)
{
    return job->phases != 0 && (job->phases & ~JOINING) == 0 ? 1 : ROUNDS_MAX;
}

/* The first round may be the making of the world, the last one its end. */
static tt_phase draw_phase(uint64_t dice, int round, int size)
{
    const int at = (int)(dice % 100);

    if (round == 0 && at < 50)
        return at < 20 ? P_CONNECT : P_HANDSHAKE;
    if (at >= (size == 2 ? 50 : 94))
        return P_TEARDOWN;
    if (size > 3 && at < 20)
        return P_SHRINK;
    return at < 72 ? P_ALGORITHM : P_P2P;
}

/* One of those that are wanted, if the round may have it: the dice are thrown until they show one. */
static tt_phase draw_wanted(const tt_job *job, uint64_t seed, int round, int size)
{
    tt_phase when = draw_phase(tt_dice(seed, 1), round, size);
    int      n;

    for (n = 1; !is_wanted(job, when) && n < DRAWS_MAX; n++)
        when = draw_phase(tt_dice(seed, 1000 + (uint64_t)n), round, size);
    return when;
}

static int64_t draw_count(uint64_t dice)
{
    static const int64_t counts[] = { 1, 16, 300, 1000, 5000, 20000, 70000, 300000, 1000000 };

    return counts[dice % (sizeof counts / sizeof counts[0])];
}

static unsigned draw_points(const tt_job *job, tt_phase when)
{
    const unsigned connecting = TT_POINT_BIT(TT_AT_RESOLVE) | TT_POINT_BIT(TT_AT_LISTEN) | TT_POINT_BIT(TT_AT_CONNECT) |
                                TT_POINT_BIT(TT_AT_CONNECT_RESULT) | TT_POINT_BIT(TT_AT_ACCEPT);

    if (job->every)
        return TT_POINT_BIT(TT_AT_STORE);
    return when == P_CONNECT ? connecting : TT_POINTS_ALL;
}

/* Each store of each small call, one after the other: the board says whose turn it is. */
static tt_draw next_round(const tt_job *job, int round, int size)
{
    const int  call = (int)atomic_load(&job->board->next[0]);
    const bool stops = atomic_load(&job->board->next[1]) % STOPS_EVERY == 0; /* that takes seconds each time */

    return (tt_draw){ .what = stops ? F_STOP : F_KILL, .when = P_ALGORITHM, .call = call, .count = 8,
                   .victim = (int)(tt_dice(job->seed, (uint64_t)round) % (uint64_t)size), .leaves = -1,
                   .points = draw_points(job, P_ALGORITHM) };
}

/* Whether a victim has connections to one that stays. */
static bool goes_abroad(const tt_job *job, int size, const int *slots, const tt_draw *d)
{
    int i;

    for (i = 0; i < size; i++)
        if (i != d->leaves && tt_host_of_slot(job, slots[i]) != tt_host_of_slot(job, slots[d->victim]))
            return true;
    return false;
}

tt_draw tt_draw_round(const tt_job *job, int round, int size, const int *slots)
{
    const uint64_t seed = tt_dice(job->seed, 100 + (uint64_t)round);
    tt_draw        d = { .leaves = -1 };

    if (job->every)
        return next_round(job, round, size);
    d.when = draw_wanted(job, seed, round, size);
    d.victim = (int)(tt_dice(seed, 2) % (uint64_t)size);
    d.what = draw_fault(job, tt_dice(seed, 3), size, slots, d.victim);
    d.call = (int)(tt_dice(seed, 4) % (uint64_t)tt_n_calls(d.when));
    d.count = draw_count(tt_dice(seed, 5));
    d.dice = tt_dice(seed, 6);
    d.points = draw_points(job, d.when);
    if (d.when == P_SHRINK)
        d.leaves = (d.victim + 1 + (int)(tt_dice(seed, 7) % (uint64_t)(size - 1))) % size;
    if (d.when == P_SHRINK && tt_fault_cuts(d.what) && !goes_abroad(job, size, slots, &d))
        d.what = F_KILL;
    return d;
}
