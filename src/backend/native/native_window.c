/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native_window.c - the table of one-sided access over transport/window.h. Group ranks become mesh ranks here. */
#include "backend/native/native_core.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "transport/window.h"

struct tutti_backend_window {
    const tti_native *nat;
    tti_window       *window;
};

_Static_assert(sizeof(tti_window_card) <= TUTTI_WINDOW_CARD_BYTES, "a card fits the table's");

static int mesh_rank(const tutti_backend_window *w, int peer)
{
    return w->nat->members->ranks[peer];
}

static tutti_status window_open(tutti_backend *backend, uint32_t id, void *data, size_t bytes,
                                uint8_t card_out[TUTTI_WINDOW_CARD_BYTES], tutti_backend_window **window_out)
{
    const tti_native     *nat = (const tti_native *)backend;
    tutti_backend_window *w = malloc(sizeof *w);
    tti_window_card       card;
    tutti_status          st;

    if (w == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a window");
    w->nat = nat;
    st = tti_window_open(nat->messenger, nat->group_id, id, nat->members->ranks, nat->members->n, data, bytes, &card,
                         &w->window);
    if (st != TUTTI_OK) {
        free(w);
        return st;
    }
    memset(card_out, 0, TUTTI_WINDOW_CARD_BYTES);
    memcpy(card_out, &card, sizeof card);
    *window_out = w;
    return TUTTI_OK;
}

static tutti_status window_attach(tutti_backend_window *w, const uint8_t (*cards)[TUTTI_WINDOW_CARD_BYTES])
{
    const int        n = w->nat->members->n;
    tti_window_card *known = malloc((size_t)n * sizeof *known);
    tutti_status     st;
    int              i;

    if (known == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a window of %d ranks", n);
    for (i = 0; i < n; i++)
        memcpy(&known[i], cards[i], sizeof known[i]);
    st = tti_window_attach(w->window, known);
    free(known);
    return st;
}

/* What was begun, for the caller; message NULL: it is done. */
static tutti_status hand_out(const tutti_backend_window *w, tutti_status st, tti_request *message,
                             tutti_request **request_out)
{
    *request_out = st == TUTTI_OK && message != NULL ? tti_native_wrap(w->nat, message, true) : NULL;
    return st;
}

static tutti_status window_put(tutti_backend_window *w, int peer, uint64_t offset, const void *data, size_t bytes,
                               tutti_request **request_out)
{
    tti_request *message = NULL;
    tutti_status st = tti_window_put(w->window, mesh_rank(w, peer), offset, data, bytes, &message);

    return hand_out(w, st, message, request_out);
}

static tutti_status window_get(tutti_backend_window *w, int peer, uint64_t offset, void *data, size_t bytes,
                               tutti_request **request_out)
{
    tti_request *message = NULL;
    tutti_status st = tti_window_get(w->window, mesh_rank(w, peer), offset, data, bytes, &message);

    return hand_out(w, st, message, request_out);
}

static tutti_status window_signal(tutti_backend_window *w, int peer)
{
    return tti_window_signal(w->window, mesh_rank(w, peer));
}

static tutti_status window_wait_signal(tutti_backend_window *w, int peer, tutti_request **request_out)
{
    tti_request *message = NULL;
    tutti_status st = tti_window_wait_signal(w->window, mesh_rank(w, peer), &message);

    return hand_out(w, st, message, request_out);
}

static bool window_cancel(tutti_backend_window *w, tutti_request *request)
{
    return tti_window_cancel(w->window, request->message);
}

static tutti_status window_flush(tutti_backend_window *w, int peer, tutti_request **request_out)
{
    tti_request *message = NULL;
    tutti_status st = tti_window_flush(w->window, mesh_rank(w, peer), &message);

    return hand_out(w, st, message, request_out);
}

static bool window_is_direct(tutti_backend_window *w, int peer)
{
    return tti_window_is_direct(w->window, mesh_rank(w, peer));
}

static void *window_memory(tutti_backend_window *w, int peer)
{
    return tti_window_memory(w->window, mesh_rank(w, peer));
}

static size_t window_bytes(tutti_backend_window *w, int peer)
{
    return tti_window_bytes(w->window, mesh_rank(w, peer));
}

static void window_close(tutti_backend_window *w, bool agreed)
{
    tti_window_close(w->window, agreed);
    free(w);
}

const tutti_window_ops tti_native_window_ops = {
    .size = sizeof(tutti_window_ops),
    .open = window_open,
    .attach = window_attach,
    .put = window_put,
    .get = window_get,
    .signal = window_signal,
    .wait_signal = window_wait_signal,
    .cancel = window_cancel,
    .flush = window_flush,
    .is_direct = window_is_direct,
    .memory = window_memory,
    .close = window_close,
    .bytes = window_bytes,
};
