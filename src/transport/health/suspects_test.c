/* SPDX-License-Identifier: BSD-3-Clause
 *
 * suspects_test.c
 * Goal    what a door says is told as it is: a silence only when several knocks, none of them too late, came to nothing.
 * Method  one suspect on a host of a world in memory, and its door on another; virtual time. */
#include "transport/health/suspects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "harness/mem_port.h"

enum { RANK = 3, DOOR = 4000, LIMIT_MS = 5000 };

typedef struct scene {
    tt_mem_world *world;
    tti_port     *here, *there;
    tti_addr      door;
    tti_handle    listener;
    tti_suspects  suspects;
    void (*story)(struct scene *s);
    char failure[160];
} scene;

#define CHECK(s, cond)                                                                  \
    do {                                                                                \
        if (!(cond) && (s)->failure[0] == '\0')                                         \
            snprintf((s)->failure, sizeof(s)->failure, "line %d: %s", __LINE__, #cond); \
    } while (0)

static const tti_addr *addr_of(const void *context, int rank)
{
    (void)rank;
    return &((const scene *)context)->door;
}

static void open_door(scene *s)
{
    tti_addr bound;

    CHECK(s, s->there->ops->listen(s->there, &s->door, 16, &bound, &s->listener) == 0);
}

static int64_t now_of(const scene *s)
{
    return tti_port_now(s->here);
}

static void sleep_ms(scene *s, int64_t ms)
{
    s->here->ops->sleep_until(s->here, now_of(s) + ms * TTI_MS);
}

/* Poll and turn until the door says something, or until then: whether it has. */
static bool await_sign(scene *s, int64_t until_ns, tti_sign *sign_out)
{
    tti_poll set[TTI_KNOCKS_MAX];

    for (;;) {
        const int rank = tti_suspects_turn(&s->suspects, now_of(s), sign_out);
        int64_t   next_ns;

        CHECK(s, rank == -1 || rank == RANK);
        if (rank == RANK || now_of(s) >= until_ns)
            return rank == RANK;
        next_ns = tti_suspects_next_ns(&s->suspects);
        (void)s->here->ops->poll(s->here, set, tti_suspects_fill(&s->suspects, set), next_ns < until_ns ? next_ns : until_ns);
        tti_suspects_note(&s->suspects, set);
    }
}

static tti_sign sign_of(scene *s)
{
    tti_sign sign = TTI_SIGNS;

    CHECK(s, await_sign(s, now_of(s) + LIMIT_MS * TTI_MS, &sign));
    return sign;
}

static void suspect(scene *s, bool in_time)
{
    CHECK(s, tti_suspects_add(&s->suspects, RANK, in_time, now_of(s)));
}

static void nothing_answers(scene *s)
{
    const int64_t began_ns = now_of(s);

    open_door(s);
    tt_mem_isolate(s->world, "there", true);
    suspect(s, true);
    CHECK(s, sign_of(s) == TTI_SIGN_SILENCE);
    CHECK(s, now_of(s) - began_ns >= 500 * TTI_MS && now_of(s) - began_ns < 600 * TTI_MS);
    CHECK(s, tti_suspects_find(&s->suspects, RANK)->n_knocks == TTI_KNOCKS_MAX);
    tt_mem_isolate(s->world, "there", false);
}

static void the_last_knock_is_answered(scene *s)
{
    tti_sign sign;

    open_door(s);
    tt_mem_isolate(s->world, "there", true);
    suspect(s, true);
    CHECK(s, !await_sign(s, now_of(s) + 290 * TTI_MS, &sign));
    tt_mem_isolate(s->world, "there", false);
    CHECK(s, sign_of(s) == TTI_SIGN_OPEN);
}

/* A way that is longer than a knock waits for the next. */
static void the_first_answer_is_late(scene *s)
{
    open_door(s);
    tt_mem_latency(s->world, 220 * TTI_MS);
    suspect(s, true);
    CHECK(s, sign_of(s) == TTI_SIGN_OPEN);
}

static void nobody_listens(scene *s)
{
    const int64_t began_ns = now_of(s);

    suspect(s, true);
    CHECK(s, sign_of(s) == TTI_SIGN_REFUSED);
    CHECK(s, now_of(s) - began_ns < 10 * TTI_MS);
}

/* Its process ends a moment after its streams: who was let in is let go, then nobody listens. */
static void the_door_is_shut_behind_a_knock(scene *s)
{
    tti_sign sign;

    open_door(s);
    suspect(s, true);
    CHECK(s, !await_sign(s, now_of(s) + 20 * TTI_MS, &sign));
    s->there->ops->close(s->there, s->listener);
    CHECK(s, sign_of(s) == TTI_SIGN_ENDED);
    CHECK(s, tti_suspects_find(&s->suspects, RANK)->answered);
    tti_suspects_again(&s->suspects, RANK, now_of(s) + 100 * TTI_MS);
    CHECK(s, sign_of(s) == TTI_SIGN_REFUSED);
}

/* Another end of a stream, while a knock that was answered before it stays: it is waited for anew. */
static void it_ends_once_more(scene *s)
{
    const int64_t began_ns = now_of(s);
    tti_sign      sign;

    open_door(s);
    suspect(s, true);
    CHECK(s, !await_sign(s, now_of(s) + 900 * TTI_MS, &sign));
    suspect(s, true);
    CHECK(s, sign_of(s) == TTI_SIGN_OPEN && now_of(s) - began_ns >= 1900 * TTI_MS);
}

/* This thread gets no core for long; when it looks again the answer has been there for a while. */
static void it_is_looked_at_late(scene *s)
{
    tti_sign sign;

    open_door(s);
    tt_mem_latency(s->world, 100 * TTI_MS);
    suspect(s, true);
    CHECK(s, !await_sign(s, now_of(s) + 190 * TTI_MS, &sign));
    sleep_ms(s, 2000);
    CHECK(s, tti_suspects_turn(&s->suspects, now_of(s), &sign) == -1);
    sleep_ms(s, 2000);
    CHECK(s, tti_suspects_turn(&s->suspects, now_of(s), &sign) == -1);
    CHECK(s, sign_of(s) == TTI_SIGN_OPEN);
}

/* Where it says nothing about a life, it is not asked for three times, and waited for longer. */
static void a_silence_that_proves_nothing(scene *s)
{
    open_door(s);
    tt_mem_latency(s->world, 700 * TTI_MS);
    suspect(s, false);
    CHECK(s, sign_of(s) == TTI_SIGN_OPEN);
    tti_suspects_drop(&s->suspects, RANK);
    tt_mem_latency(s->world, TTI_MS);
    tt_mem_isolate(s->world, "there", true);
    suspect(s, false);
    CHECK(s, sign_of(s) == TTI_SIGN_SILENCE);
    CHECK(s, tti_suspects_find(&s->suspects, RANK)->n_knocks == 1);
    tt_mem_isolate(s->world, "there", false);
}

static void narrator(void *arg)
{
    scene *s = arg;

    s->story(s);
    tti_suspects_drop_all(&s->suspects);
}

static void tell(void (*story)(scene *s))
{
    scene s = { .world = tt_mem_world_new(1), .listener = TTI_NO_HANDLE, .story = story };
    int   n;

    s.here = tt_mem_host(s.world, "here");
    s.there = tt_mem_host(s.world, "there");
    s.suspects = (tti_suspects){ .port = s.here, .context = &s, .addr_of = addr_of };
    assert_int_equal(s.here->ops->resolve(s.here, "there", DOOR, &s.door, 1, &n), TUTTI_OK);
    tt_mem_spawn(s.world, "narrator", TTI_SECOND, narrator, &s);
    tt_mem_run(s.world);
    tt_mem_world_free(s.world);
    if (s.failure[0] != '\0')
        fail_msg("%s", s.failure);
}

static void a_silence_is_three_knocks(void **state)
{
    (void)state;
    tell(nothing_answers);
    tell(the_last_knock_is_answered);
    tell(the_first_answer_is_late);
    tell(it_is_looked_at_late);
    tell(a_silence_that_proves_nothing);
}

static void doors_are_told_from_each_other(void **state)
{
    (void)state;
    tell(nobody_listens);
    tell(the_door_is_shut_behind_a_knock);
    tell(it_ends_once_more);
}

/* Rows and columns of proof.c that must never say more than they do. */
static void little_is_a_proof(void **state)
{
    int standing, sign;

    (void)state;
    for (standing = 0; standing < TTI_STANDINGS; standing++)
        for (sign = 0; sign < TTI_SIGNS; sign++) {
            const tti_ruling ruling = tti_rule((tti_standing)standing, (tti_sign)sign);

            if (ruling == TTI_RULING_DEAD_SILENT)
                assert_true(standing == TTI_STANDING_CUT && sign == TTI_SIGN_SILENCE);
            if (ruling == TTI_RULING_DEAD_REFUSED)
                assert_true(sign == TTI_SIGN_REFUSED && standing != TTI_STANDING_HEARD && standing != TTI_STANDING_BEHIND &&
                            standing != TTI_STANDING_UNHEARD);
            if (ruling == TTI_RULING_AGAIN || ruling == TTI_RULING_CLEAR) /* there is a suspect to do that with */
                assert_true(standing == TTI_STANDING_CUT || standing == TTI_STANDING_DOUBTED);
        }
    assert_int_equal(tti_rule(TTI_STANDING_CUT, TTI_SIGN_SILENCE), TTI_RULING_DEAD_SILENT);
    assert_int_equal(tti_rule(TTI_STANDING_AWAY, TTI_SIGN_REFUSED), TTI_RULING_DEAD_REFUSED);
    assert_int_equal(tti_rule(TTI_STANDING_BEHIND, TTI_SIGN_REFUSED), TTI_RULING_LEFT);
    assert_int_equal(tti_rule(TTI_STANDING_UNHEARD, TTI_SIGN_REFUSED), TTI_RULING_DOUBT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silence_is_three_knocks),
        cmocka_unit_test(doors_are_told_from_each_other),
        cmocka_unit_test(little_is_a_proof),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
