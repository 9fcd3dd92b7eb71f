/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls_message.c - messages, batches of them, windows. */
#include "scenarios.h"

#include <stdlib.h>

enum { N = TT_FEW, MANY = 20000, TAG = 3 };

static int next_of(const tt_actor *a)
{
    return (a->rank + 1) % a->size;
}

static int last_of(const tt_actor *a)
{
    return (a->rank + a->size - 1) % a->size;
}

/* Messages that are under way end before their buffers go. */
static void leave(tt_actor *a)
{
    tutti_destroy_process_group(a->group);
    a->group = NULL;
}

static void messages(tt_actor *a)
{
    float      *x = calloc(MANY, sizeof *x), *y = calloc(MANY, sizeof *y);
    const int   to = next_of(a), from = last_of(a);
    tutti_work *work = NULL;

    if (x != NULL && y != NULL) {
        tt_fill(a, x, MANY);
        TRY(tutti_isend(TUTTI_SPAN(x, MANY), to, TAG, a->group, &work));
        if (THEN(tutti_recv(TUTTI_SPAN(y, MANY), from, TAG, a->group, NULL)))
            tt_must_be(a, tt_all_are(y, MANY, (float)(from + 1)), "a wrong message");
        if (work != NULL)
            TRY(tutti_work_wait(work));
        tutti_work_free(work);
    }
    if (a->rank == 0)
        (void)THEN(tutti_send(TUTTI_SPAN(x, 1), 1, TAG, a->group));
    if (a->rank == 1)
        (void)THEN(tutti_recv(TUTTI_SPAN(y, 1), TUTTI_ANY_SOURCE, TAG, a->group, NULL));
    leave(a);
    free(x);
    free(y);
}

static void messages_in_group(tt_actor *a)
{
    float      *got = tt_room(a, 2 * N);
    const int   to = next_of(a), from = last_of(a);
    tutti_work *works[2] = { NULL };

    tt_fill(a, a->in, N);
    TRY(tutti_irecv_in_group(TUTTI_SPAN(got, N), from, TAG, a->group, &works[0]));
    (void)THEN(tutti_isend_in_group(TUTTI_SPAN(a->in, N), to, TAG, a->group, &works[1]));
    if (!a->failed && TRY(tutti_work_wait(works[0])) && TRY(tutti_work_wait(works[1])))
        tt_must_be(a, tt_all_are(got, N, (float)(from + 1)), "a wrong message in a group");
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
    if (a->rank == 0)
        (void)THEN(tutti_send_in_group(TUTTI_SPAN(a->in, N), 1, TAG, a->group));
    if (a->rank == 1 && THEN(tutti_recv_in_group(TUTTI_SPAN(got, N), 0, TAG, a->group, NULL)))
        tt_must_be(a, tt_all_are(got, N, 1.0f), "a wrong message of rank 0 in a group");
    leave(a);
}

static void batch(tt_actor *a)
{
    float       *x = a->in, *y = tt_room(a, N);
    tutti_p2p_op ops[2] = { { true, TUTTI_SPAN(x, N), next_of(a), TAG }, { false, TUTTI_SPAN(y, N), last_of(a), TAG } };
    tutti_work  *works[2] = { NULL };
    tutti_work  *one = NULL;

    tt_fill(a, x, N);
    if (TRY(tutti_batch_isend_irecv(ops, 2, a->group, works)) && TRY(tutti_wait_all(works, 2, 0)) &&
        TRY(tutti_work_wait(works[0])) && TRY(tutti_work_wait(works[1])))
        tt_must_be(a, tt_all_are(y, N, (float)(last_of(a) + 1)), "a wrong message of a batch");
    if (a->rank == 0)
        (void)THEN(tutti_irecv(TUTTI_SPAN(y, N), 1, TAG, a->group, &one));
    if (a->rank == 1)
        (void)THEN(tutti_isend(TUTTI_SPAN(x, N), 0, TAG, a->group, &one));
    if (one != NULL)
        TRY(tutti_work_wait(one));
    leave(a);
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
    tutti_work_free(one);
}

/* ---- windows ---- */

static void windows(tt_actor *a)
{
    const int     to = next_of(a), from = last_of(a);
    void         *memory = NULL;
    tutti_window *window = NULL;
    tutti_span    span;

    tt_fill(a, a->in, N);
    if (!TRY(tutti_alloc(N * sizeof(float), &memory)))
        return;
    span = TUTTI_SPAN((float *)memory, N);
    if (TRY(tutti_window_create(&span, a->group, &window)) && TRY(tutti_window_put(window, TUTTI_SPAN(a->in, N), to, 0)) &&
        TRY(tutti_window_signal(window, to)) && TRY(tutti_window_wait_signal(window, from, 0)))
        tt_must_be(a, tt_all_are(memory, N, (float)(from + 1)), "a wrong put");
    if (window != NULL)
        TRY(tutti_window_free(window));
    TRY(tutti_free(memory));
}

static void ended(tt_actor *a, tutti_work *work)
{
    if (work != NULL)
        TRY(tutti_work_wait(work));
    tutti_work_free(work);
}

/* What a window is used for between its registration and its end. */
static void use_window(tt_actor *a, tutti_window *window, const float *memory)
{
    float      *got = tt_room(a, N);
    const int   to = next_of(a), from = last_of(a);
    tutti_work *put = NULL, *signal = NULL, *get = NULL;

    TRY(tutti_window_put_async(window, TUTTI_SPAN(a->in, N), to, 0, &put));
    ended(a, put);
    (void)THEN(tutti_window_flush(window, to));
    (void)THEN(tutti_window_signal(window, to));
    (void)THEN(tutti_window_wait_signal_async(window, from, &signal));
    ended(a, signal);
    if (!a->failed)
        tt_must_be(a, tt_all_are(memory, N, (float)(from + 1)), "a wrong put of a work");
    if (THEN(tutti_window_get(window, TUTTI_SPAN(got, N), a->rank, 0)))
        tt_must_be(a, tt_all_are(got, N, (float)(from + 1)), "a wrong get");
    (void)THEN(tutti_window_get_async(window, TUTTI_SPAN(got, N), a->rank, 0, &get));
    ended(a, get);
}

static void windows_of_works(tt_actor *a)
{
    void         *memory = NULL;
    tutti_window *window = NULL;

    tt_fill(a, a->in, N);
    if (!TRY(tutti_alloc(N * sizeof(float), &memory)))
        return;
    if (TRY(tutti_window_create(NULL, a->group, &window)) &&
        TRY(tutti_window_register(window, TUTTI_SPAN((float *)memory, N)))) {
        use_window(a, window, memory);
        (void)THEN(tutti_window_deregister(window));
    }
    if (window != NULL)
        TRY(tutti_window_free(window));
    TRY(tutti_free(memory));
}

static const tt_scenario scenarios[] = {
    TT_PLAY("messages", 2, messages),
    TT_PLAY("messages in a group", 2, messages_in_group),
    TT_PLAY("batch", 2, batch),
    TT_PLAY("windows", 2, windows),
    TT_PLAY("windows of works", 2, windows_of_works),
};

TT_FAMILY(tt_message_calls, "messages", scenarios);
