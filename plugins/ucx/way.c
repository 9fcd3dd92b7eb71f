/* SPDX-License-Identifier: BSD-3-Clause
 *
 * way.c - endpoints, and parcels that go.
 *
 * How     A parcel is one active message without a header of its own: the library's stands in front of its bytes. Whether it goes
 *         eagerly or by rendezvous is UCX's choice, by UCX_RNDV_THRESH.
 * Fails   Endpoints handle the errors of their peer: UCX tells the first one, once, and ends what was being sent. That
 *         callback is where a broken way is told; a send that fails on its own tells the library by its result.
 *         UCX's shared memory cannot do that (in 1.13), and is then taken as it is: that a peer is dead is known by
 *         the library's connection to it. Such an endpoint cannot be closed by force either: it is flushed, and what its
 *         peer does not take any more goes with the worker. */
#include "ucx_transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    tutti_transport_way         *way = arg;
    const tutti_transport_hooks *hooks = way->transport->hooks;

    (void)ep;
    if (way->ep != NULL)
        hooks->broken(hooks->context, way->peer, tucx_errno(status), ucs_status_string(status));
}

static ucs_status_t make_endpoint(tutti_transport_way *way, const void *address, bool handles_errors)
{
    ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                               .address = address,
                               .err_mode = UCP_ERR_HANDLING_MODE_NONE };

    if (handles_errors) {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler = (ucp_err_handler_t){ .cb = on_error, .arg = way };
    }
    way->handles_errors = handles_errors;
    return ucp_ep_create(way->transport->worker, &params, &way->ep);
}

/* UCX has no way to a peer: what it says of that, and then what it warned of as it began, which may be why. */
static void tell_unreachable(tutti_transport *t, void *peer, ucs_status_t status, const char *said)
{
    char words[4 * TUCX_WORDS];

    snprintf(words, sizeof words, "UCX has no way to it: %s%s%s%s%s" TUCX_NEXT, ucs_status_string(status), said[0] != '\0' ? ": " : "", said,
             t->warned[0] != '\0' ? "; when it began: " : "", t->warned);
    t->hooks->broken(t->hooks->context, peer, tucx_errno(status), words);
}

int tucx_connect(tutti_transport *t, const void *address, size_t bytes, void *peer, tutti_transport_way **way_out)
{
    tutti_transport_way *way = calloc(1, sizeof *way);
    ucs_status_t         status;
    char                 said[TUCX_WORDS];

    (void)bytes; /* UCX asks for no length (docs/ucx.md) */
    if (way == NULL)
        return -ENOMEM;
    *way = (tutti_transport_way){ .transport = t, .peer = peer };
    tucx_listen(said);
    status = make_endpoint(way, address, true);
    if (status == UCS_ERR_UNREACHABLE)
        status = make_endpoint(way, address, false);
    tucx_heard();
    if (status != UCS_OK) {
        tell_unreachable(t, peer, status, said);
        free(way);
        return -tucx_errno(status);
    }
    way->next = t->ways;
    t->ways = way;
    *way_out = way;
    return 0;
}

/* What has failed is for the error's callback to say, where there is one. */
static void on_sent(void *request, ucs_status_t status, void *user_data)
{
    tucx_note       *note = user_data;
    tutti_transport *t = note->transport;

    if (status != UCS_OK && status != UCS_ERR_CANCELED && note->way->ep != NULL && !note->way->handles_errors)
        t->hooks->broken(t->hooks->context, note->way->peer, tucx_errno(status), ucs_status_string(status));
    t->hooks->sent(t->hooks->context, note->cookie);
    tucx_note_drop(t, &t->sends, note);
    ucp_request_free(request);
}

int tucx_send(tutti_transport_way *way, const void *parcel, size_t bytes, void *cookie)
{
    tutti_transport    *t = way->transport;
    tucx_note          *note = tucx_note_add(t, &t->sends);
    ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                  UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                  .cb = { .send = on_sent },
                                  .user_data = note,
                                  .memory_type = UCS_MEMORY_TYPE_HOST };
    ucs_status_ptr_t    sent;

    if (note == NULL)
        return -ENOMEM;
    note->way = way;
    note->cookie = cookie;
    sent = ucp_am_send_nbx(way->ep, TUCX_AM_ID, NULL, 0, parcel, bytes, &param);
    if (sent != NULL && !UCS_PTR_IS_ERR(sent))
        return 0;
    tucx_note_drop(t, &t->sends, note);
    return sent == NULL ? 1 : -tucx_errno(UCS_PTR_STATUS(sent));
}

static void on_closed(void *request, ucs_status_t status, void *user_data)
{
    (void)status;
    ((tutti_transport *)user_data)->n_closing--;
    ucp_request_free(request);
}

void tucx_disconnect(tutti_transport_way *way)
{
    tutti_transport          *t = way->transport;
    const ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
                                                        UCP_OP_ATTR_FIELD_USER_DATA,
                                        .flags = way->handles_errors ? UCP_EP_CLOSE_FLAG_FORCE : 0,
                                        .cb = { .send = on_closed },
                                        .user_data = t };
    ucp_ep_h                  ep = way->ep;
    ucs_status_ptr_t          closed;

    way->ep = NULL; /* nothing is told of its peer any more */
    t->n_closing++;
    closed = ucp_ep_close_nbx(ep, &param);
    if (closed == NULL || UCS_PTR_IS_ERR(closed))
        t->n_closing--;
}
