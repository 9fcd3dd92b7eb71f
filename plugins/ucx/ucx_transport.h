/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ucx_transport.h - the transport "ucx" as its files see it.
 *
 *   plugin.c     what the object shows
 *   transport.c  an instance: context, worker, address, progress, its end
 *   way.c        endpoints, and parcels that go
 *   parcel.c     parcels that come
 *   words.c      what UCX says in its log
 *
 * The library calls one entry of an instance at a time (tutti/plugin/transport.h), and UCX calls back from within
 * ucp_worker_progress() or the call that the answer is for: so nothing here has a lock. */
#ifndef TUCX_TRANSPORT_H
#define TUCX_TRANSPORT_H

#include <sys/types.h>
#include <tutti/plugin/transport.h>
#include <ucp/api/ucp.h>

enum { TUCX_AM_ID = 7 /* of all parcels, at both ends */, TUCX_WORDS = 160 /* of a line of UCX's log */ };

/** Something that UCX has not given back yet, or that the library has not: in one list of its instance, or free. */
typedef struct tucx_note {
    struct tucx_note    *prev, *next;
    tutti_transport     *transport;
    tutti_transport_way *way;    /* of a parcel that is being sent, */
    void                *cookie; /* and what it was sent with */
    void                *data;   /* of one that came: UCX's memory */
    void                *buffer; /* the same: ours */
    size_t               bytes;
} tucx_note;

typedef struct tucx_list {
    tucx_note *first;
} tucx_list;

struct tutti_transport_way {
    tutti_transport     *transport;
    tutti_transport_way *next; /* in the instance's list: it is freed with that */
    ucp_ep_h             ep;   /* NULL: disconnected */
    bool                 handles_errors; /* UCX tells of its peer's */
    void                *peer;
};

struct tutti_transport {
    const tutti_transport_hooks *hooks;
    ucp_context_h                context;
    ucp_worker_h                 worker;
    ucp_address_t               *address;
    size_t                       address_bytes;
    size_t                       parcel_bytes; /* no parcel is larger */
    char                         warned[TUCX_WORDS]; /* what UCX said of its networks as it began; "": nothing */
    int                          handle; /* -1: none */
    tutti_transport_way         *ways;
    int                          n_closing; /* endpoints whose end UCX has not told */
    tucx_list                    sends, receives, loans;
    tucx_note                   *spare; /* by next */
};

extern const tutti_plugin_host *tucx_host;
extern pid_t                    tucx_pid; /* of the process that UCX was loaded in */

/** A failure of UCX's: what was done, and its words; said: what it said in its log, "" for nothing. */
tutti_status tucx_fail(ucs_status_t status, const char *what, const char *said);
/** What its words end with, where it is about networks. */
#define TUCX_NEXT "\n  next: look at UCX_TLS and UCX_NET_DEVICES; `ucx_info -d` lists what there is"
/** As hooks tell it. */
int tucx_errno(ucs_status_t status);

/* transport.c */
tutti_status tucx_open(const tutti_transport_config *config, tutti_transport **transport_out);
const void  *tucx_address(tutti_transport *t, size_t *bytes_out);
bool         tucx_progress(tutti_transport *t);
int          tucx_handle(tutti_transport *t);
bool         tucx_arm(tutti_transport *t);
void         tucx_close(tutti_transport *t);
/** A note in a list; NULL without memory. */
tucx_note *tucx_note_add(tutti_transport *t, tucx_list *list);
void       tucx_note_drop(tutti_transport *t, tucx_list *list, tucx_note *note);

/* way.c */
int  tucx_connect(tutti_transport *t, const void *address, size_t bytes, void *peer, tutti_transport_way **way_out);
int  tucx_send(tutti_transport_way *way, const void *parcel, size_t bytes, void *cookie);
void tucx_disconnect(tutti_transport_way *way);

/* words.c: from the one to the other the worst line that UCX logs on this thread is kept in words; "": none was. */
void tucx_listen(char words[TUCX_WORDS]);
void tucx_heard(void);

/* parcel.c */
ucs_status_t tucx_take_parcels(tutti_transport *t);
void         tucx_give_back(tutti_transport *t, void *loan);

#endif
