/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait.c - waiting for another member: look, give the core away, sleep.
 *
 * How     A few looks with a pause between; then up to 64 times the core is given to whoever else
 *         can run; then sleep on the low half of the counter, at most 50 ms. From the first yield
 *         on every turn also looks around (trouble.c): deadline, abort, failed, dead or mistaken
 *         members.
 * True    No wake-up is lost. The poster stores value and then reads waiters; the sleeper raises
 *         waiters and then reads value; all four are sequentially consistent, so at least one sees
 *         the other: the poster wakes, or the sleeper does not go to sleep. If value moves after
 *         the sleeper's read, the low half differs from what it read, and the port does not sleep
 *         at all. */
#include "coll/host/wait.h"

#include "base/thread.h"

enum { CHECKS_OWN_CORE = 400, CHECKS_SHARED_CORE = 16, YIELDS = 64, SLEEP_MS_MAX = 50 };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { LOW_HALF = 0 };
#else
enum { LOW_HALF = 1 };
#endif

int tti_host_checks(bool crowded)
{
    return crowded ? CHECKS_SHARED_CORE : CHECKS_OWN_CORE;
}

static bool has_come(const tti_counter *counter, uint64_t value)
{
    return atomic_load_explicit(&counter->value, memory_order_acquire) >= value;
}

static bool comes_soon(const tti_counter *counter, uint64_t value, int checks)
{
    int i;

    for (i = 0; i < checks; i++) {
        if (has_come(counter, value))
            return true;
        tti_pause();
    }
    return false;
}

static void sleep_on(tti_host_channel *channel, tti_counter *counter, uint64_t value)
{
    tti_port *port = channel->team->port;
    int64_t   until = tti_port_now(port) + SLEEP_MS_MAX * TTI_MS;
    uint64_t  seen;

    if (until > channel->deadline_ns)
        until = channel->deadline_ns;
    atomic_fetch_add(&counter->waiters, 1);
    seen = atomic_load(&counter->value);
    if (seen < value)
        port->ops->wait_word(port, &counter->half[LOW_HALF], (uint32_t)seen, until);
    atomic_fetch_sub(&counter->waiters, 1);
}

tutti_status tti_host_wait(tti_host_channel *channel, int rank, tti_counter_kind kind,
                           uint64_t value)
{
    tti_counter *counter = &channel->members[rank].lines->counters[kind];
    tti_port    *port = channel->team->port;
    tutti_status st = TUTTI_OK;
    int          turn;

    if (comes_soon(counter, value, channel->checks))
        return TUTTI_OK;
    for (turn = 0; !has_come(counter, value) && st == TUTTI_OK; turn++) {
        if (turn < YIELDS)
            port->ops->yield(port);
        else
            sleep_on(channel, counter, value);
        if (!has_come(counter, value))
            st = tti_host_look(channel, rank, kind, value);
    }
    return st;
}

void tti_counter_wake(tti_port *port, tti_counter *counter)
{
    if (atomic_load(&counter->waiters) != 0)
        port->ops->wake_word(port, &counter->half[LOW_HALF]);
}

void tti_counter_move(tti_port *port, tti_counter *counter, uint64_t word, uint64_t value)
{
    atomic_store_explicit(&counter->word, word, memory_order_relaxed);
    atomic_store(&counter->value, value);
    tti_counter_wake(port, counter);
}
