/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_life.c - whether the store of a world lives, asked while its members agree.
 *
 * Why     Who leads the survivors has to know whether they need a fresh store. A dead one says so at once: it refuses. One whose host
 *         is stopped, or out of reach, says nothing, and is given as long as a silent member is (tti_health_silence_ns()). Asked only when all
 *         have agreed, that time would come on top of the one that they have waited for a member, and often for the same process.
 * How     A thread asks as soon as the call begins. Who leads waits for what it has found, as far as it is not there yet. A store that
 *         has answered is asked once more then: its host may be the one whose death the call is about, and die a moment later.
 * True    `state` is written by the thread, behind `asked_ns`, by release order, and once; when it is not ASKING any
 *         more, the thread writes nothing, and all is the caller's.
 * Fails   Whatever else the store fails with, it is none that the world can use: it is dead. */
#include "regroup/store_life.h"

#include <stdio.h>
#include <stdlib.h>
#include <tutti/private.h>
#include "base/doubt.h"
#include "base/thread.h"

typedef enum state { ASKING, LIVES, SILENT, DEAD } state;

struct tti_store_life {
    tti_port    *port;
    tutti_store *store;
    int64_t      silence_ns;
    int64_t      begun_ns; /* constant */
    int64_t      asked_ns; /* the question that is or was under way */
    tti_event    changed;  /* state, over */
    _Atomic int  state;
    _Atomic bool over;
    tti_thread   thread;
    char         words[TTI_STORE_LIFE_WORDS];
};

static bool is_over(void *context)
{
    return atomic_load_explicit(&((tti_store_life *)context)->over, memory_order_acquire);
}

/* Any question would do. */
static tutti_status ask_store(tutti_store *store, int64_t until_ns)
{
    const char *key = "tutti/worlds";
    bool        there;

    return tti_store_check_until(store, &key, 1, until_ns, &there);
}

bool tti_store_life_answers(tutti_store *store, int64_t until_ns)
{
    return ask_store(store, until_ns) == TUTTI_OK;
}

static state ask(tti_store_life *life, int64_t until_ns)
{
    tutti_status st;

    life->asked_ns = tti_port_now(life->port);
    st = ask_store(life->store, until_ns);
    return st == TUTTI_OK ? LIVES : st == TUTTI_E_TIMEOUT ? SILENT : DEAD;
}

static void ask_once(void *arg)
{
    tti_store_life *life = arg;
    const tti_doubt doubt = { .is_vain = is_over, .context = life };

    tti_doubt_waits(&doubt);
    atomic_store_explicit(&life->state, ask(life, tti_port_now(life->port) + life->silence_ns), memory_order_release);
    tti_doubt_waits(NULL);
    tti_event_signal(life->port, &life->changed);
}

tti_store_life *tti_store_life_ask(tutti_store *store, int64_t silence_ns)
{
    tti_store_life *life = calloc(1, sizeof *life);

    if (life == NULL)
        return NULL;
    life->port = tti_store_port(store);
    life->store = store;
    life->silence_ns = silence_ns;
    life->begun_ns = tti_port_now(life->port);
    if (tti_thread_start(&life->thread, "tutti-store", ask_once, life) == TUTTI_OK)
        return life;
    free(life);
    return NULL;
}

static state await_state(tti_store_life *life, int64_t until_ns)
{
    for (;;) {
        const uint32_t seen = tti_event_now(&life->changed);
        const state    now = (state)atomic_load_explicit(&life->state, memory_order_acquire);

        if (now != ASKING || tti_port_now(life->port) >= until_ns)
            return now;
        tti_event_wait(life->port, &life->changed, seen, until_ns);
    }
}

bool tti_store_life_is_over(tti_store_life *life, int64_t until_ns)
{
    state found = await_state(life, until_ns);

    if (found == LIVES) {
        const int64_t most_ns = tti_port_now(life->port) + life->silence_ns;

        found = ask(life, most_ns < until_ns ? most_ns : until_ns);
        atomic_store_explicit(&life->state, found, memory_order_relaxed);
    }
    if (found == DEAD)
        snprintf(life->words, sizeof life->words, "is dead");
    else /* of one that is still asked only the thread knows more */
        snprintf(life->words, sizeof life->words, "has not answered for %.1f s",
                 (double)(tti_port_now(life->port) - (found == ASKING ? life->begun_ns : life->asked_ns)) / (double)TTI_SECOND);
    return found != LIVES;
}

const char *tti_store_life_words(const tti_store_life *life)
{
    return life != NULL && life->words[0] != '\0' ? life->words : "is dead";
}

void tti_store_life_end(tti_store_life *life)
{
    if (life == NULL)
        return;
    atomic_store_explicit(&life->over, true, memory_order_release);
    tti_thread_join(&life->thread);
    free(life);
}
