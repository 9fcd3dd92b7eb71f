/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mem_world.c - the world: its dice, its trace, the baton and the clock. */
#include "harness/mem_world.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_NS (86400 * TTI_SECOND)

uint64_t tt_mem_dice(tt_mem_world *w)
{
    uint64_t z = (w->dice += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* One event into the hash: FNV-1a over its numbers. */
void tt_mem_note(tt_mem_world *w, char what, int64_t a, int64_t b)
{
    const int64_t parts[] = { w->now_ns, w->turn, what, a, b };
    size_t        i, byte;

    for (i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (byte = 0; byte < 8; byte++)
            w->trace =
                (w->trace ^ (uint8_t)((uint64_t)parts[i] >> (8 * byte))) * UINT64_C(0x100000001b3);
}

tt_mem_world *tt_mem_world_new(uint64_t seed)
{
    tt_mem_world *w = calloc(1, sizeof *w);

    if (w == NULL)
        abort();
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->main_turn, NULL);
    w->turn = MAIN;
    w->now_ns = TTI_SECOND;
    w->latency_ns = TTI_MS / 10;
    w->dice = seed;
    w->trace = UINT64_C(0xcbf29ce484222325);
    return w;
}

void tt_mem_world_free(tt_mem_world *world)
{
    int i;

    for (i = 0; i < HANDLES_MAX; i++)
        tt_mem_drop_segments(&world->handles[i]);
    for (i = 0; i < world->n_threads; i++)
        pthread_cond_destroy(&world->threads[i].turn);
    pthread_cond_destroy(&world->main_turn);
    pthread_mutex_destroy(&world->lock);
    free(world);
}

mem_host *tt_mem_find_host(tt_mem_world *w, const char *name)
{
    int i;

    for (i = 0; i < w->n_hosts; i++)
        if (strcmp(w->hosts[i].name, name) == 0)
            return &w->hosts[i];
    return NULL;
}

uint64_t tt_mem_trace(const tt_mem_world *world)
{
    return world->trace;
}

int64_t tt_mem_now(const tt_mem_world *world)
{
    return world->now_ns;
}

static bool can_go_on(tt_mem_world *w, mem_thread *t)
{
    if (t->done)
        return false;
    if (t->kind == WAIT_NONE || w->now_ns >= t->deadline_ns)
        return true;
    if (t->kind == WAIT_WORD)
        return t->woken || atomic_load(t->word) != t->seen;
    return t->kind == WAIT_POLL && tt_mem_look(w, t->set, t->n_set) > 0;
}

static int64_t sooner(int64_t best, int64_t at, int64_t now)
{
    return at > now && at < best ? at : best;
}

/* When something can happen next. */
static int64_t next_moment(const tt_mem_world *w)
{
    int64_t best = TTI_FOREVER;
    int     i;

    for (i = 0; i < w->n_threads; i++)
        if (!w->threads[i].done && w->threads[i].kind != WAIT_NONE)
            best = sooner(best, w->threads[i].deadline_ns, w->now_ns);
    for (i = 0; i < HANDLES_MAX; i++) {
        const mem_handle *h = &w->handles[i];

        if (h->kind != STREAM)
            continue;
        if (h->connecting)
            best = sooner(best, h->connect_ns, w->now_ns);
        if (h->first != NULL)
            best = sooner(best, h->first->arrives_ns, w->now_ns);
    }
    return best;
}

static void give_up(const tt_mem_world *w)
{
    static const char *const kinds[] = { "nothing", "a time", "a word", "a poll" };
    int                      i;

    fprintf(stderr, "mem_port: nobody can go on at %" PRId64 " ms\n", w->now_ns / TTI_MS);
    for (i = 0; i < w->n_threads; i++)
        if (!w->threads[i].done)
            fprintf(stderr, "  '%s' waits for %s\n", w->threads[i].name, kinds[w->threads[i].kind]);
    abort();
}

/* Who runs next; MAIN when all are done. The clock moves only here. */
static int pick(tt_mem_world *w)
{
    for (;;) {
        int able[THREADS_MAX], n_able = 0, left = 0, i;

        tt_mem_settle(w);
        for (i = 0; i < w->n_threads; i++) {
            left += !w->threads[i].done;
            if (can_go_on(w, &w->threads[i]))
                able[n_able++] = i;
        }
        if (left == 0)
            return MAIN;
        if (n_able > 0)
            return able[tt_mem_dice(w) % (uint64_t)n_able];
        w->now_ns = next_moment(w);
        if (w->now_ns > DAY_NS)
            give_up(w);
    }
}

static pthread_cond_t *turn_of(tt_mem_world *w, int who)
{
    return who == MAIN ? &w->main_turn : &w->threads[who].turn;
}

/* Hand the baton to who; with come_back, return when it is ours again. */
static void hand_over(tt_mem_world *w, int me, int who, bool come_back)
{
    if (who == me)
        return;
    pthread_mutex_lock(&w->lock);
    w->turn = who;
    pthread_cond_signal(turn_of(w, who));
    while (come_back && w->turn != me)
        pthread_cond_wait(turn_of(w, me), &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* The running thread has filled in what it waits for. */
void tt_mem_wait_turn(tt_mem_world *w)
{
    const int me = w->turn;
    const int who = pick(w);

    assert(me != MAIN); /* only programs of the world wait */
    tt_mem_note(w, '>', who, 0);
    hand_over(w, me, who, true);
    w->threads[me].kind = WAIT_NONE;
}

mem_thread *tt_mem_self(tt_mem_world *w)
{
    assert(w->turn != MAIN);
    return &w->threads[w->turn];
}

static void *thread_main(void *arg)
{
    mem_thread   *t = arg;
    tt_mem_world *w = t->world;
    const int     me = (int)(t - w->threads);

    pthread_mutex_lock(&w->lock);
    while (w->turn != me)
        pthread_cond_wait(&t->turn, &w->lock);
    pthread_mutex_unlock(&w->lock);
    t->kind = WAIT_NONE;
    t->body(t->arg);
    t->done = true;
    tt_mem_note(w, 'd', me, 0);
    hand_over(w, me, pick(w), false);
    return NULL;
}

void tt_mem_spawn(tt_mem_world *world, const char *name, int64_t start_ns, void (*body)(void *arg),
                  void *arg)
{
    mem_thread *t = &world->threads[world->n_threads];

    assert(world->n_threads < THREADS_MAX && world->turn == MAIN);
    *t = (mem_thread){
        .world = world, .body = body, .arg = arg, .kind = WAIT_TIME, .deadline_ns = start_ns
    };
    snprintf(t->name, sizeof t->name, "%s", name);
    pthread_cond_init(&t->turn, NULL);
    world->n_threads++;
}

void tt_mem_run(tt_mem_world *world)
{
    int i;

    for (i = 0; i < world->n_threads; i++)
        if (pthread_create(&world->threads[i].id, NULL, thread_main, &world->threads[i]) != 0)
            abort();
    hand_over(world, MAIN, pick(world), true);
    for (i = 0; i < world->n_threads; i++)
        pthread_join(world->threads[i].id, NULL);
}
