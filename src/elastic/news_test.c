/* SPDX-License-Identifier: BSD-3-Clause
 *
 * news_test.c
 * Goal    what launchers tell is heard by all, in one order, whoever of them gives up, is killed or leaves at any moment, and
 *         however slow the store is; and that all have heard it is said when they have, and not before.
 * Method  launchers that play their parts one after the other, in this thread, on one store, which a test has run out of time for
 *         a call: before it is carried out, or after that. */
#include "elastic/news.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/plugin/store.h>
#include <tutti/private.h>
#include "base/port.h"
#include "store/store.h"

enum { HEARD_MAX = 8 };

typedef enum fate { FINE, NOT_DONE, DONE_LATE } fate;

/* A store over another one, whose next calls of that beginning of a key have that fate. */
typedef struct slow_store {
    tutti_store  base; /* first */
    tutti_store *inner;
    const char  *key;
    fate         fate;
    int          n_left;
} slow_store;

static fate fate_of(slow_store *s, const char *key)
{
    if (s->n_left == 0 || strncmp(key, s->key, strlen(s->key)) != 0)
        return FINE;
    s->n_left--;
    return s->fate;
}

static tutti_status run_late(void)
{
    return tti_fail(TUTTI_E_TIMEOUT, "the store did not answer");
}

static tutti_status slow_set(tutti_store *store, const char *key, const void *val, size_t len, int64_t deadline_ns)
{
    slow_store  *s = (slow_store *)store;
    const fate   f = fate_of(s, key);
    tutti_status st = f == NOT_DONE ? TUTTI_OK : tti_store_set_until(s->inner, key, val, len, deadline_ns);

    return f == FINE || st != TUTTI_OK ? st : run_late();
}

static tutti_status slow_get(tutti_store *store, const char *key, int64_t deadline_ns, tutti_bytes *val_out)
{
    slow_store *s = (slow_store *)store;

    return fate_of(s, key) == FINE ? tti_store_get_until(s->inner, key, deadline_ns, val_out) : run_late();
}

static tutti_status slow_add(tutti_store *store, const char *key, int64_t delta, int64_t deadline_ns, int64_t *sum_out)
{
    slow_store  *s = (slow_store *)store;
    const fate   f = fate_of(s, key);
    tutti_status st = f == NOT_DONE ? TUTTI_OK : tti_store_add_until(s->inner, key, delta, deadline_ns, sum_out);

    return f == FINE || st != TUTTI_OK ? st : run_late();
}

static tutti_status slow_compare_set(tutti_store *store, const char *key, const void *expected, size_t expected_len,
                                     const void *desired, size_t desired_len, int64_t deadline_ns, tutti_bytes *val_out)
{
    slow_store  *s = (slow_store *)store;
    const fate   f = fate_of(s, key);
    tutti_bytes  now = { 0 };
    tutti_status st = TUTTI_OK;

    if (f != NOT_DONE)
        st = tti_store_compare_set_until(s->inner, key, expected, expected_len, desired, desired_len, deadline_ns, &now);
    if (f == FINE && st == TUTTI_OK)
        *val_out = now;
    else
        tutti_bytes_free(&now);
    return f == FINE || st != TUTTI_OK ? st : run_late();
}

static void slow_close(tutti_store *store)
{
    tutti_store_close(((slow_store *)store)->inner);
}

static const tutti_store_ops slow_ops = { .api = TUTTI_STORE_API, .size = sizeof(tutti_store_ops), .scheme = "slow", .set = slow_set,
                                          .get = slow_get, .add = slow_add, .compare_set = slow_compare_set, .close = slow_close };

static void begin(slow_store *s)
{
    *s = (slow_store){ .base = { .ops = &slow_ops } };
    assert_int_equal(tutti_hash_store_open(&s->inner), TUTTI_OK);
    assert_int_equal(tutti_store_adopt(&s->base), TUTTI_OK);
}

static void go_wrong(slow_store *s, const char *key, fate how, int times)
{
    s->key = key;
    s->fate = how;
    s->n_left = times;
}

/* ---- launchers ---- */

static int64_t soon(void)
{
    return tti_now_ns() + 60 * TTI_SECOND;
}

static tti_news_item item_of(const char *words)
{
    return (tti_news_item){ .data = words, .size = strlen(words) };
}

static tti_news arrive(slow_store *s)
{
    tti_news news = { .store = &s->base };

    assert_int_equal(tti_news_arrive(&news, soon()), TUTTI_OK);
    return news;
}

static void tell(tti_news *news, tti_news_item *item)
{
    assert_int_equal(tti_news_tell(news, item, soon()), TUTTI_OK);
}

/* Listens until it has heard n items. */
typedef struct ear {
    int          n, n_heard;
    char         heard[HEARD_MAX][16];
    _Atomic bool leaving;
} ear;

static void hear(void *ctx, const tutti_bytes *data)
{
    ear *e = ctx;

    assert_true(e->n_heard < HEARD_MAX);
    snprintf(e->heard[e->n_heard++], sizeof e->heard[0], "%.*s", (int)data->size, (const char *)data->data);
    if (e->n_heard == e->n)
        atomic_store(&e->leaving, true);
}

static void listen_for(tti_news *news, ear *e, int n)
{
    *e = (ear){ .n = n };
    assert_int_equal(tti_news_listen(news, &e->leaving, hear, e), TUTTI_OK);
    assert_int_equal(e->n_heard, n);
}

static bool all_have_heard(tti_news *news, const tti_news_item *item)
{
    return tti_news_await_hearing(news, item, tti_now_ns()); /* which looks once */
}

/* ---- telling ---- */

static void all_hear_in_one_order(void **state)
{
    tti_news_item item[3] = { item_of("zero"), item_of("one"), item_of("two") };
    slow_store    s;
    tti_news      news[2];
    ear           e;
    int           i;

    (void)state;
    begin(&s);
    news[0] = arrive(&s);
    news[1] = arrive(&s);
    tell(&news[1], &item[0]);
    tell(&news[0], &item[1]); /* who knows nothing of the first yet */
    tell(&news[1], &item[2]);
    for (i = 0; i < 2; i++) {
        assert_false(all_have_heard(&news[0], &item[1]));
        listen_for(&news[i], &e, 3);
        assert_string_equal(e.heard[0], "zero");
        assert_string_equal(e.heard[1], "one");
        assert_string_equal(e.heard[2], "two");
    }
    assert_true(all_have_heard(&news[0], &item[1]));
    tutti_store_close(&s.base);
}

/* One that is killed while it tells, or gives up, leaves nothing that the others would wait at. */
static void who_gives_up_holds_up_nobody(void **state)
{
    tti_news_item lost = item_of("lost"), next = item_of("next");
    fate          how;

    (void)state;
    for (how = NOT_DONE; how <= DONE_LATE; how++) {
        slow_store s;
        tti_news   news[2];
        ear        e;

        begin(&s);
        news[0] = arrive(&s);
        news[1] = arrive(&s);
        go_wrong(&s, "tutti/launcher/news", how, 1);
        lost.number = next.number = 0;
        assert_int_equal(tti_news_tell(&news[0], &lost, soon()), TUTTI_E_TIMEOUT);
        tell(&news[1], &next);
        listen_for(&news[1], &e, how == DONE_LATE ? 2 : 1);
        assert_string_equal(e.heard[e.n - 1], "next");
        tutti_store_close(&s.base);
    }
}

static void who_tells_again_is_heard_once(void **state)
{
    fate how;

    (void)state;
    for (how = NOT_DONE; how <= DONE_LATE; how++) {
        tti_news_item again = item_of("again"), other = item_of("other");
        slow_store    s;
        tti_news      news[2];
        ear           e;

        begin(&s);
        news[0] = arrive(&s);
        news[1] = arrive(&s);
        go_wrong(&s, "tutti/launcher/news", how, 2);
        assert_int_equal(tti_news_tell(&news[0], &again, soon()), TUTTI_E_TIMEOUT);
        assert_int_equal(tti_news_tell(&news[0], &again, soon()), TUTTI_E_TIMEOUT);
        tell(&news[1], &other);
        tell(&news[0], &again);
        listen_for(&news[0], &e, 2);
        assert_string_equal(e.heard[how == DONE_LATE ? 0 : 1], "again");
        assert_string_equal(e.heard[how == DONE_LATE ? 1 : 0], "other");
        listen_for(&news[1], &e, 2);
        assert_true(all_have_heard(&news[0], &again));
        tutti_store_close(&s.base);
    }
}

/* ---- listening ---- */

static void a_slow_store_ends_no_listening(void **state)
{
    static const char *const keys[] = { "tutti/launcher/heard/1", "tutti/launcher/news/2" };
    size_t                   i;

    (void)state;
    for (i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        tti_news_item item[2] = { item_of("one"), item_of("two") };
        slow_store    s;
        tti_news      news;
        ear           e;

        begin(&s);
        news = arrive(&s);
        tell(&news, &item[0]);
        tell(&news, &item[1]);
        go_wrong(&s, keys[i], NOT_DONE, 1);
        listen_for(&news, &e, 2);
        assert_int_equal(s.n_left, 0);
        assert_string_equal(e.heard[1], "two");
        assert_true(all_have_heard(&news, &item[1]));
        tutti_store_close(&s.base);
    }
}

/* ---- who has heard ---- */

/* Of three launchers one hears it and leaves, and the second has not heard it yet. */
static void who_has_heard_and_left_is_one(void **state)
{
    tti_news_item item = item_of("why");
    slow_store    s;
    tti_news      news[3];
    ear           e;
    int           i;

    (void)state;
    begin(&s);
    for (i = 0; i < 3; i++)
        news[i] = arrive(&s);
    tell(&news[0], &item);
    listen_for(&news[2], &e, 1);
    tti_news_leave(&news[2], soon());
    assert_false(all_have_heard(&news[0], &item));
    listen_for(&news[0], &e, 1);
    assert_false(all_have_heard(&news[0], &item));
    listen_for(&news[1], &e, 1);
    assert_true(all_have_heard(&news[0], &item));
    tutti_store_close(&s.base);
}

static void who_had_left_is_not_waited_for(void **state)
{
    tti_news_item item = item_of("why");
    slow_store    s;
    tti_news      news[2];
    ear           e;

    (void)state;
    begin(&s);
    news[0] = arrive(&s);
    news[1] = arrive(&s);
    tti_news_leave(&news[1], soon());
    tell(&news[0], &item);
    assert_false(all_have_heard(&news[0], &item));
    listen_for(&news[0], &e, 1);
    assert_true(all_have_heard(&news[0], &item));
    news[1] = arrive(&s); /* who comes now has not heard it */
    assert_false(all_have_heard(&news[0], &item));
    listen_for(&news[1], &e, 1);
    assert_true(all_have_heard(&news[0], &item));
    tutti_store_close(&s.base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_hear_in_one_order),
        cmocka_unit_test(who_gives_up_holds_up_nobody),
        cmocka_unit_test(who_tells_again_is_heard_once),
        cmocka_unit_test(a_slow_store_ends_no_listening),
        cmocka_unit_test(who_has_heard_and_left_is_one),
        cmocka_unit_test(who_had_left_is_not_waited_for),
    };

    return cmocka_run_group_tests_name("news", tests, NULL, NULL);
}
