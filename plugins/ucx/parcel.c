/* SPDX-License-Identifier: BSD-3-Clause
 *
 * parcel.c - parcels that come.
 *
 *   eager, UCX's memory stays   lent to the library, until it gives it back
 *   eager, it does not stay     the library copies
 *   rendezvous                  into a buffer of ours, which is lent when it is full
 *
 * A rendezvous names a length that a peer has chosen, whoever that is: beyond what a parcel can be nothing is received. */
#include "ucx_transport.h"

#include <errno.h>
#include <stdlib.h>

static void hand_on(tutti_transport *t, tucx_note *loan, const void *parcel, size_t bytes)
{
    if (!t->hooks->arrived(t->hooks->context, parcel, bytes, loan))
        tucx_give_back(t, loan);
}

void tucx_give_back(tutti_transport *t, void *given)
{
    tucx_note *loan = given;

    if (loan->data != NULL)
        ucp_am_data_release(t->worker, loan->data);
    free(loan->buffer);
    tucx_note_drop(t, &t->loans, loan);
}

/* A parcel is lost, and nobody knows whose it was: no way has all of its parcels for certain. */
static void lose_all(tutti_transport *t)
{
    tutti_transport_way *way;

    for (way = t->ways; way != NULL; way = way->next)
        if (way->ep != NULL)
            t->hooks->broken(t->hooks->context, way->peer, ENOMEM, "no memory for a parcel that came");
}

/* A rendezvous has ended. */
static void received(tucx_note *note, ucs_status_t status)
{
    tutti_transport *t = note->transport;
    void            *buffer = note->buffer;
    const size_t     bytes = note->bytes;
    tucx_note       *loan;

    tucx_note_drop(t, &t->receives, note);
    loan = status == UCS_OK ? tucx_note_add(t, &t->loans) : NULL;
    if (loan == NULL) { /* what has failed is told to its sender (docs/ucx.md) */
        free(buffer);
        if (status == UCS_OK)
            lose_all(t);
        return;
    }
    loan->buffer = buffer;
    hand_on(t, loan, buffer, bytes);
}

static void on_received(void *request, ucs_status_t status, size_t length, void *user_data)
{
    (void)length;
    received(user_data, status);
    ucp_request_free(request);
}

static ucs_status_t take_rendezvous(tutti_transport *t, void *descriptor, size_t bytes)
{
    tucx_note          *note = tucx_note_add(t, &t->receives);
    ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                  UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                  .cb = { .recv_am = on_received },
                                  .user_data = note,
                                  .memory_type = UCS_MEMORY_TYPE_HOST };
    ucs_status_ptr_t    begun;

    if (note == NULL || (note->buffer = malloc(bytes)) == NULL) {
        if (note != NULL)
            tucx_note_drop(t, &t->receives, note);
        lose_all(t);
        return UCS_OK; /* it is dropped */
    }
    note->bytes = bytes;
    begun = ucp_am_recv_data_nbx(t->worker, descriptor, note->buffer, bytes, &param);
    if (begun == NULL || UCS_PTR_IS_ERR(begun))
        received(note, UCS_PTR_STATUS(begun));
    return UCS_INPROGRESS;
}

static ucs_status_t on_parcel(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
                              const ucp_am_recv_param_t *param)
{
    tutti_transport *t = arg;
    tucx_note       *loan;

    (void)header;
    (void)header_bytes;
    if (bytes > t->parcel_bytes)
        return UCS_OK; /* a stranger's: it is dropped */
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)
        return take_rendezvous(t, data, bytes);
    loan = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0 ? tucx_note_add(t, &t->loans) : NULL;
    if (loan == NULL) {
        (void)t->hooks->arrived(t->hooks->context, data, bytes, NULL);
        return UCS_OK;
    }
    if (t->hooks->arrived(t->hooks->context, data, bytes, loan)) {
        loan->data = data;
        return UCS_INPROGRESS;
    }
    tucx_note_drop(t, &t->loans, loan);
    return UCS_OK;
}

ucs_status_t tucx_take_parcels(tutti_transport *t)
{
    const ucp_am_handler_param_t param = { .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                         UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                           .id = TUCX_AM_ID,
                                           .cb = on_parcel,
                                           .arg = t };

    return ucp_worker_set_am_recv_handler(t->worker, &param);
}
