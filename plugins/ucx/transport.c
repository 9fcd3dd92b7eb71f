/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport.c - an instance: a context and a worker of UCP.
 *
 * How     Each instance has a context of its own: it is made once for a world, and nothing is shared between worlds. One
 *         worker has all ways. Which networks are used is UCX's choice, and UCX_TLS's and UCX_NET_DEVICES's.
 * End     Endpoints are closed by force (way.c), which waits for no peer; UCX tells their end, and that of what they were
 *         sending, as it progresses. What it has not told after ROUNDS it never will: an endpoint without handling of errors
 *         (way.c), whose peer has died and takes nothing any more. A worker with such a one cannot be destroyed, UCX aborts
 *         over it: it is left to the end of the process. Nobody calls it any more, so nothing reads what the library is then
 *         told was sent. */
#include "ucx_transport.h"

#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 100000 };

/* ---- notes ---- */

tucx_note *tucx_note_add(tutti_transport *t, tucx_list *list)
{
    tucx_note *note = t->spare;

    if (note != NULL)
        t->spare = note->next;
    else if ((note = malloc(sizeof *note)) == NULL)
        return NULL;
    *note = (tucx_note){ .transport = t, .next = list->first };
    if (list->first != NULL)
        list->first->prev = note;
    list->first = note;
    return note;
}

void tucx_note_drop(tutti_transport *t, tucx_list *list, tucx_note *note)
{
    if (note->prev != NULL)
        note->prev->next = note->next;
    else
        list->first = note->next;
    if (note->next != NULL)
        note->next->prev = note->prev;
    note->next = t->spare;
    t->spare = note;
}

/* ---- life ---- */

static ucs_status_t make_context(tutti_transport *t, int n_ranks)
{
    const ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME,
                                  .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                                  .estimated_num_eps = (size_t)n_ranks,
                                  .name = "tutti" };
    ucp_config_t *config = NULL;
    ucs_status_t  status = ucp_config_read(NULL, NULL, &config);

    if (status != UCS_OK)
        return status;
    status = ucp_init(&params, config, &t->context);
    ucp_config_release(config);
    return status;
}

static ucs_status_t make_worker(tutti_transport *t)
{
    const ucp_worker_params_t params = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                         .thread_mode = UCS_THREAD_MODE_SERIALIZED };
    ucs_status_t status = ucp_worker_create(t->context, &params, &t->worker);

    if (status == UCS_OK)
        status = tucx_take_parcels(t);
    if (status == UCS_OK)
        status = ucp_worker_get_address(t->worker, &t->address, &t->address_bytes);
    if (status == UCS_OK && ucp_worker_get_efd(t->worker, &t->handle) != UCS_OK)
        t->handle = -1;
    return status;
}

/* What is only warned of, as a device that is not there, is said once: should a peer be out of reach, it is why. */
static tutti_status begin_ucx(tutti_transport *t, int n_ranks)
{
    const char  *what = "begin UCX";
    ucs_status_t status;

    tucx_listen(t->warned);
    status = make_context(t, n_ranks);
    if (status == UCS_OK) {
        what = "make a worker of UCX";
        status = make_worker(t);
    }
    tucx_heard();
    if (status != UCS_OK)
        return tucx_fail(status, what, t->warned);
    if (t->warned[0] != '\0')
        tucx_host->log(TUTTI_LOG_WARN, "UCX says: %s", t->warned);
    return TUTTI_OK;
}

tutti_status tucx_open(const tutti_transport_config *config, tutti_transport **transport_out)
{
    tutti_transport *t = calloc(1, sizeof *t);
    tutti_status     st;

    if (t == NULL)
        return tucx_host->fail(TUTTI_E_NOMEM, "no memory for an instance of the transport 'ucx'");
    if (getpid() != tucx_pid) {
        free(t);
        return tucx_host->fail(TUTTI_E_UNSUPPORTED,
                               "the transport 'ucx' was begun in process %ld, and this is a child of it that has its state but not "
                               "its threads\n  next: fork before the first world, or start a program", (long)tucx_pid);
    }
    t->hooks = config->hooks;
    t->parcel_bytes = config->parcel_bytes;
    t->handle = -1;
    st = begin_ucx(t, config->n_ranks);
    if (st != TUTTI_OK) {
        tucx_close(t);
        return st;
    }
    *transport_out = t;
    return TUTTI_OK;
}

const void *tucx_address(tutti_transport *t, size_t *bytes_out)
{
    *bytes_out = t->address_bytes;
    return t->address;
}

bool tucx_progress(tutti_transport *t)
{
    return ucp_worker_progress(t->worker) != 0;
}

int tucx_handle(tutti_transport *t)
{
    return t->handle;
}

bool tucx_arm(tutti_transport *t)
{
    return ucp_worker_arm(t->worker) == UCS_OK;
}

/* Those that UCX has forgotten, and who is gone. */
static void free_notes(tutti_transport *t)
{
    tucx_note *note;

    while ((note = t->sends.first) != NULL) {
        t->hooks->sent(t->hooks->context, note->cookie);
        tucx_note_drop(t, &t->sends, note);
    }
    while ((note = t->receives.first) != NULL) {
        free(note->buffer);
        tucx_note_drop(t, &t->receives, note);
    }
    while ((note = t->spare) != NULL) {
        t->spare = note->next;
        free(note);
    }
}

static bool is_busy(const tutti_transport *t)
{
    return t->n_closing > 0 || t->sends.first != NULL || t->receives.first != NULL;
}

static void free_ucx(tutti_transport *t)
{
    if (t->address != NULL)
        ucp_worker_release_address(t->worker, t->address);
    if (t->worker != NULL)
        ucp_worker_destroy(t->worker);
    if (t->context != NULL)
        ucp_cleanup(t->context);
}

void tucx_close(tutti_transport *t)
{
    tutti_transport_way *way;
    int                  i;

    for (i = 0; i < ROUNDS && is_busy(t); i++)
        (void)ucp_worker_progress(t->worker);
    if (is_busy(t))
        tucx_host->log(TUTTI_LOG_DEBUG, "a worker of UCX is left to the end of the process: %d of its endpoints do not end",
                       t->n_closing);
    else
        free_ucx(t);
    free_notes(t);
    while ((way = t->ways) != NULL) {
        t->ways = way->next;
        free(way);
    }
    free(t);
}
