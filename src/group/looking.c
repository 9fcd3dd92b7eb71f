/* SPDX-License-Identifier: BSD-3-Clause
 *
 * looking.c - a thread that looks at a store now and then, for one that waits.
 *
 * Why     Who waits for members of a group is often inside of something that knows nothing of the words that they may leave
 *         in a store (refusals.c, and the room regroup, which looks for those that refuse to shrink).
 * How     The first look comes LOOK_MS after the beginning, as most waits are over by then: they cost a thread, and no request.
 * True    over is written by the thread that ends the looking, and then signalled; the looking thread takes the event's number
 *         before it reads over, so that it never sleeps over a signal. found is written by the looking thread, once, by release
 *         order, behind all that look() has written; whoever reads it as true, by acquire order, may read that. What look() writes
 *         without saying true may be read when the looking has been ended, which joins the thread.
 *         The looking thread heeds over in stores: nobody waits for one that does not answer just now. */
#include "group/looking.h"

#include "store/store.h"

enum { LOOK_MS = 200, LOOK_RANK_MS = 4, LOOK_MOST_MS = 2000 };

bool tti_looking_is_over(const tti_looking *looking)
{
    return atomic_load(&looking->over) || (looking->until_ns != TTI_FOREVER && tti_port_now(looking->port) >= looking->until_ns);
}

static void run(void *arg)
{
    tti_looking *l = arg;
    int64_t      next_ns = tti_port_now(l->port) + l->pause_ns;

    tti_store_heed(&l->over);
    while (!tti_looking_is_over(l)) {
        const uint32_t seen = tti_event_now(&l->changed);

        if (tti_port_now(l->port) < next_ns) {
            if (!atomic_load(&l->over))
                tti_event_wait(l->port, &l->changed, seen, next_ns);
            continue;
        }
        if (l->look(l->context)) {
            atomic_store_explicit(&l->found, true, memory_order_release);
            break;
        }
        next_ns = tti_port_now(l->port) + l->pause_ns;
    }
    tti_store_heed(NULL);
}

tutti_status tti_looking_begin(tti_looking *looking, const char *name, tti_port *port, int n_members, int64_t until_ns,
                               tti_look_fn *look, void *context)
{
    const int64_t most_ms = LOOK_MS + (int64_t)LOOK_RANK_MS * n_members;

    looking->port = port;
    looking->look = look;
    looking->context = context;
    looking->pause_ns = (most_ms < LOOK_MOST_MS ? most_ms : LOOK_MOST_MS) * TTI_MS;
    looking->until_ns = until_ns;
    return tti_thread_start(&looking->thread, name, run, looking);
}

bool tti_looking_found(const tti_looking *looking)
{
    return atomic_load_explicit(&looking->found, memory_order_acquire);
}

void tti_looking_end(tti_looking *looking)
{
    atomic_store(&looking->over, true);
    tti_event_signal(looking->port, &looking->changed);
    tti_thread_join(&looking->thread);
}
