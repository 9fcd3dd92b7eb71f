/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - the backend table over mesh, messenger and collectives; native_device.c has the calls on memory of devices.
 *
 * The world's backend owns the mesh and the messenger; the backends of groups made from it borrow them and
 * add a channel of their own. Group ranks become mesh ranks here, in one place: a mesh rank is a rank of
 * the world. */
#include "backend/native/native_core.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <tutti/private.h>
#include "backend/native/store_board.h"
#include "backend/plugin/transport.h"
#include "store/store.h"
#include "transport/trouble.h"

enum { POSTS_MAX = 64 }; /* messages that are posted under one lock */

static tti_membership *members_make(const tutti_backend_config *config)
{
    const size_t n = (size_t)config->n_ranks;
    tti_membership  *members = malloc(sizeof *members + n * sizeof members->ranks[0]);

    if (members == NULL)
        return NULL;
    atomic_init(&members->refs, 1);
    members->n = config->n_ranks;
    memcpy(members->ranks, config->global_ranks, n * sizeof members->ranks[0]);
    return members;
}

static void members_drop(tti_membership *members)
{
    if (members != NULL && atomic_fetch_sub_explicit(&members->refs, 1, memory_order_acq_rel) == 1)
        free(members);
}

/* The library's own two have no plug-in. */
static bool is_own(const char *name)
{
    return strcasecmp(name, "auto") == 0 || strcasecmp(name, "tcp") == 0;
}

/* In small letters, which those of files are; what is too long is cut, and is too long for a name then, too. */
static void small_letters(const char *from, char *out, size_t bytes)
{
    size_t i;

    for (i = 0; from[i] != '\0' && i + 1 < bytes; i++)
        out[i] = (char)tolower((unsigned char)from[i]);
    out[i] = '\0';
}

/* The plug-in that TUTTI_TRANSPORT names. */
static tutti_status find_plugin(const char *value, const char *wanted, const tutti_transport_ops **ops_out)
{
    const tutti_transport_ops *ops = NULL;
    char                       name[64], places[TTI_PLACES_TEXT], words[1024];
    tutti_status               st;

    small_letters(wanted, name, sizeof name);
    st = tti_transport_find(name, &ops, places);
    if (st != TUTTI_OK) {
        snprintf(words, sizeof words, "%s", tutti_last_error());
        return tti_fail(st, "TUTTI_TRANSPORT is '%.64s': %s", value, words);
    }
    if (ops == NULL && places[0] == '\0')
        return tti_fail(TUTTI_E_ARG,
                        "TUTTI_TRANSPORT is '%.64s', not 'auto' or 'tcp', and no plug-in can have that name\n  next: "
                        "unset it (auto: memory inside a host, TCP between hosts), or set it to tcp", value);
    if (ops == NULL)
        return tti_fail(TUTTI_E_ARG,
                        "TUTTI_TRANSPORT is '%.64s', not 'auto' or 'tcp', and the plug-in 'tutti-transport-%s.so' is not in %s\n"
                        "  next: install it there, or name its directory in TUTTI_PLUGIN_PATH",
                        value, name, places);
    *ops_out = ops;
    return TUTTI_OK;
}

/* "auto", "tcp", NAME, "only:NAME". */
static tutti_status read_transport(bool *everywhere_out, const tutti_transport_ops **ops_out)
{
    static const char only[] = "only:";
    const char       *value = tti_env("TUTTI_TRANSPORT");
    const bool        alone = strncasecmp(value, only, sizeof only - 1) == 0;
    tutti_status      st = TUTTI_OK;

    *ops_out = NULL;
    if (alone && is_own(value + sizeof only - 1))
        return tti_fail(TUTTI_E_ARG, "TUTTI_TRANSPORT is '%.64s', and 'only:' goes before the name of a plug-in\n  next: set it to "
                        "%s", value, strcasecmp(value, "only:tcp") == 0 ? "tcp, which is TCP inside a host, too" : "auto");
    if (!is_own(value))
        st = find_plugin(value, alone ? value + sizeof only - 1 : value, ops_out);
    if (st == TUTTI_OK)
        *everywhere_out = alone || strcasecmp(value, "tcp") == 0;
    return st;
}

tutti_status tti_native_check_env(tutti_store *store)
{
    const tutti_transport_ops *ops;
    bool                       everywhere;
    tutti_status               st = read_transport(&everywhere, &ops);

    if (st == TUTTI_OK)
        st = tti_mesh_check_transport(ops);
    if (st == TUTTI_OK)
        st = tti_mesh_check_env(ops);
    return st == TUTTI_OK && store != NULL && tti_store_is_foreign(store) ? tti_mesh_check_plain_board() : st;
}

static tutti_status open_world(tti_native *nat, const tutti_backend_config *config, const tti_board *board,
                               int64_t deadline_ns)
{
    tti_mesh_config mesh = { .port = tti_port_system(), .board = board, .rank = config->rank,
                             .n_ranks = config->n_ranks, .listen_host = config->listen_host,
                             .fresh_secret = tti_store_is_foreign(config->store) ||
                                             tti_store_is_private_file(config->store),
                             .fresh_in_plain = tti_store_is_foreign(config->store),
                             .deadline_ns = deadline_ns };
    tutti_status    st = read_transport(&mesh.tcp_only, &mesh.transport);

    nat->owns_mesh = true;
    if (mesh.port->ops->place != NULL)
        mesh.as_host = mesh.port->ops->place(mesh.port);
    if (st == TUTTI_OK)
        st = tti_mesh_open(&mesh, &nat->mesh);
    if (st == TUTTI_OK)
        st = tti_messenger_open(nat->mesh, &nat->messenger);
    return st;
}

static tutti_status open_group(tti_native *nat, const tutti_backend_config *config, const tti_board *board,
                               int64_t deadline_ns)
{
    const tti_native     *parent = (const tti_native *)config->parent;
    const tti_coll_config coll = { .mesh = nat->mesh, .messenger = nat->messenger,
                                   .group_id = config->group_id, .rank = config->rank,
                                   .n_ranks = config->n_ranks, .ranks = config->global_ranks,
                                   .name = config->name, .board = board, .deadline_ns = deadline_ns,
                                   .founds = config->parent == NULL, .lazy = config->lazy,
                                   .within = parent != NULL && config->heeds_parent ? &parent->group_id : NULL,
                                   .has_queued = config->has_queued };
    tutti_status          st = tti_messenger_enter(nat->messenger, config->group_id,
                                                   config->global_ranks, config->n_ranks);

    return st == TUTTI_OK ? tti_coll_open(&coll, &nat->coll) : st;
}

static void native_destroy(tutti_backend *backend)
{
    tti_native *nat = (tti_native *)backend;

    tti_detour_close(nat->detour); /* has a backend that uses the connections of this one */
    if (nat->messenger != NULL)
        tti_messenger_leave(nat->messenger, nat->group_id);
    tti_coll_close(nat->coll);
    if (nat->owns_mesh) {
        tti_messenger_close(nat->messenger);
        tti_mesh_close(nat->mesh);
    }
    members_drop(nat->members);
    free(nat);
}

static tutti_status native_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    const tti_native *parent = (const tti_native *)config->parent;
    const tti_board board = tti_store_board(config->store);
    const int64_t   deadline_ns = tti_deadline(tti_port_system(), config->timeout_ms, -1);
    tti_native     *nat = calloc(1, sizeof *nat);
    tutti_status    st = TUTTI_OK;

    if (nat == NULL || (nat->members = members_make(config)) == NULL) {
        free(nat);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a backend of %d ranks", config->n_ranks);
    }
    nat->base.ops = &tti_native_backend_ops;
    nat->group_id = config->group_id;
    st = tti_native_open_detour(nat, config);
    if (st != TUTTI_OK && parent == NULL) /* the others wait for this one, or will */
        tti_trouble_leave(&board, tti_port_system(), config->rank, st);
    if (st == TUTTI_OK && parent != NULL) {
        nat->mesh = parent->mesh;
        nat->messenger = parent->messenger;
    } else if (st == TUTTI_OK) {
        st = open_world(nat, config, &board, deadline_ns);
    }
    if (st == TUTTI_OK)
        st = open_group(nat, config, &board, deadline_ns);
    if (st != TUTTI_OK && parent == NULL && nat->mesh != NULL) /* the mesh has said itself what it failed with */
        tti_trouble_leave(&board, tti_port_system(), config->rank, st);
    if (st != TUTTI_OK) {
        native_destroy(&nat->base);
        return st;
    }
    if (nat->owns_mesh && !config->lazy) /* all have met: each has a watch thread */
        tti_mesh_complete(nat->mesh);
    *backend_out = &nat->base;
    return TUTTI_OK;
}

/* A member may wait in the detour while this one fails here. */
static __attribute__((noinline, cold)) tutti_status fail_run(tti_native *nat, tutti_status st)
{
    if (st == TUTTI_E_UNSUPPORTED)
        return st;
    tti_detour_fail(nat->detour, st);
    return st;
}

static tutti_status native_run(tutti_backend *backend, const tutti_call *call)
{
    tti_native  *nat = (tti_native *)backend;
    tutti_status st;

    if (__builtin_expect(call->device != TUTTI_CPU, 0) && call->kind != TUTTI_CALL_BARRIER)
        return tti_native_run_on_device(nat, call);
    st = tti_coll_run(nat->coll, call);
    return st == TUTTI_OK ? st : fail_run(nat, st);
}

/* A call on memory of a device is not begun before it is run. */
static tutti_status native_advance(tutti_backend *backend, const tutti_call *call, tutti_progress *progress_out)
{
    if (call->device == TUTTI_CPU || call->kind == TUTTI_CALL_BARRIER)
        return tti_coll_advance(((tti_native *)backend)->coll, call, progress_out);
    *progress_out = TUTTI_PROGRESS_NONE;
    return TUTTI_OK;
}

static void native_hasten(tutti_backend *backend, uint64_t seq)
{
    tti_coll_hasten(((tti_native *)backend)->coll, seq);
}

tutti_request *tti_native_wrap(const tti_native *nat, tti_request *message, bool is_send)
{
    tutti_request *request = tti_request_room(message);

    atomic_fetch_add_explicit(&nat->members->refs, 1, memory_order_relaxed);
    *request = (tutti_request){ .message = message, .members = nat->members, .is_send = is_send };
    return request;
}

static tti_channel channel_of(const tti_native *nat)
{
    return (tti_channel){ .group = nat->group_id, .plane = TTI_PLANE_P2P };
}

static tti_parcel parcel_of(const tti_native *nat, const tutti_message *message)
{
    return (tti_parcel){ .peer = message->peer >= 0 ? nat->members->ranks[message->peer] : -1, .tag = message->tag,
                         .dtype = (uint8_t)message->dtype, .data = message->data,
                         .bytes = (size_t)message->count * tutti_dtype_size(message->dtype) };
}

static tutti_status native_post(tutti_backend *backend, const tutti_message *message,
                                tutti_request **request_out)
{
    tti_native      *nat = (tti_native *)backend;
    const tti_parcel parcel = parcel_of(nat, message);
    tti_request     *posted = NULL;
    tutti_status     st;

    if (__builtin_expect(message->device != TUTTI_CPU, 0))
        return tti_native_refuse_message(message);
    tti_messenger_note_message(nat->messenger, channel_of(nat), &parcel, message->is_send);
    if (tti_messenger_at_once(nat->messenger, channel_of(nat), &parcel, message->is_send)) {
        *request_out = NULL;
        return TUTTI_OK;
    }
    st = (message->is_send ? tti_messenger_send : tti_messenger_recv)(nat->messenger, channel_of(nat), &parcel,
                                                                      &posted);
    if (st == TUTTI_OK)
        *request_out = tti_native_wrap(nat, posted, message->is_send);
    return st;
}

static tutti_status native_post_all(tutti_backend *backend, const tutti_message *messages, int n,
                                    tutti_request **requests_out, int *n_out)
{
    tti_native  *nat = (tti_native *)backend;
    tti_post     posts[POSTS_MAX];
    tutti_status st = TUTTI_OK;
    int          i, some, begun = 0;

    *n_out = 0;
    if (n > 0 && messages[0].device != TUTTI_CPU) /* the others are of the same */
        return tti_native_refuse_message(&messages[0]);
    for (; *n_out < n && st == TUTTI_OK; *n_out += begun) {
        some = n - *n_out < POSTS_MAX ? n - *n_out : POSTS_MAX;
        for (i = 0; i < some; i++)
            posts[i] = (tti_post){ .parcel = parcel_of(nat, &messages[*n_out + i]),
                                   .is_send = messages[*n_out + i].is_send };
        if (some > 0) /* they begin together: the last of them is as good as any */
            tti_messenger_note_message(nat->messenger, channel_of(nat), &posts[some - 1].parcel, posts[some - 1].is_send);
        st = tti_messenger_post_all(nat->messenger, channel_of(nat), posts, some, &begun);
        for (i = 0; i < begun; i++)
            requests_out[*n_out + i] =
                posts[i].request != NULL ? tti_native_wrap(nat, posts[i].request, posts[i].is_send) : NULL;
    }
    return st;
}

/* The group rank of a mesh rank, or -1. */
static int group_rank_of(const tti_membership *members, int peer)
{
    int i;

    for (i = 0; i < members->n; i++)
        if (members->ranks[i] == peer)
            return i;
    return -1;
}

static tutti_status native_transfer(tutti_backend *backend, const tutti_message *message, int64_t timeout_ms,
                                    void (*expired)(void *ctx, int64_t waited_ns), void *ctx, int *source_out)
{
    const tti_native *nat = (tti_native *)backend;
    const tti_parcel  parcel = parcel_of(nat, message);
    const tti_expiry  expiry = { .timeout_ms = timeout_ms, .expired = expired, .ctx = ctx };
    int               peer = -1;
    tutti_status      st;

    *source_out = -1;
    if (__builtin_expect(message->device != TUTTI_CPU, 0))
        return tti_native_refuse_message(message);
    tti_messenger_note_message(nat->messenger, channel_of(nat), &parcel, message->is_send);
    st = tti_messenger_transfer(nat->messenger, channel_of(nat), &parcel, message->is_send, &expiry, &peer);
    *source_out = message->is_send ? -1 : message->peer >= 0 ? message->peer : group_rank_of(nat->members, peer);
    return st;
}

static tutti_status native_wait(tutti_request *request, int64_t deadline_ns)
{
    return tti_request_wait(request->message, deadline_ns);
}

static bool native_test(tutti_request *request)
{
    return tti_request_ended(request->message);
}

static void native_notify(tutti_request *request, void (*fn)(void *ctx), void *ctx)
{
    tti_request_notify(request->message, fn, ctx);
}

static int native_source(const tutti_request *request)
{
    if (request->is_send || !tti_request_ended(request->message))
        return -1;
    return group_rank_of(request->members, tti_request_peer(request->message));
}

static void native_release(tutti_request *request)
{
    tti_membership *members = request->members;

    tti_request_release(request->message); /* request goes with it */
    members_drop(members);
}

static void native_abort(tutti_backend *backend)
{
    tti_native *nat = (tti_native *)backend;

    tti_detour_abort(nat->detour);
    tti_coll_abort(nat->coll);
    tti_messenger_abort(nat->messenger, nat->group_id);
}

tti_mesh *tti_native_mesh(const tutti_backend *backend)
{
    return backend != NULL && backend->ops == &tti_native_backend_ops ? ((const tti_native *)backend)->mesh : NULL;
}

tutti_status tti_native_look_missed(tutti_backend *backend, const bool *awaited, const char *instead, int *rank_out, uint64_t *seq_out)
{
    const tti_native   *nat = (tti_native *)backend;
    tti_missed          missed;
    const tutti_status  st = tti_messenger_look_missed(nat->messenger, nat->members->ranks, awaited, nat->members->n, nat->group_id,
                                                       instead, &missed);

    if (st != TUTTI_OK) {
        *rank_out = missed.index;
        *seq_out = missed.seq;
    }
    return st;
}

void tti_native_end_missed(tutti_backend *backend)
{
    const tti_native *nat = (tti_native *)backend;

    tti_messenger_end_crossed(nat->messenger, nat->group_id);
}

int tti_native_connections(const tutti_backend *backend)
{
    return tti_messenger_connections(((const tti_native *)backend)->messenger);
}

static void native_fail(tutti_backend *backend, tutti_status status)
{
    tti_native *nat = (tti_native *)backend;

    tti_coll_fail(nat->coll, status);
    tti_detour_fail(nat->detour, status);
}

static tutti_status native_alive(tutti_backend *backend, int rank)
{
    const tti_native *nat = (tti_native *)backend;

    return tti_mesh_alive(nat->mesh, nat->members->ranks[rank]);
}

static uint64_t native_world_id(tutti_backend *backend)
{
    return tti_mesh_world_id(((const tti_native *)backend)->mesh);
}

const tutti_backend_ops tti_native_backend_ops = {
    .api = TUTTI_BACKEND_API,
    .size = sizeof(tutti_backend_ops),
    .name = "native",
    .create = native_create,
    .run = native_run,
    .post = native_post,
    .wait = native_wait,
    .test = native_test,
    .source = native_source,
    .release = native_release,
    .abort = native_abort,
    .destroy = native_destroy,
    .fail = native_fail,
    .notify = native_notify,
    .windows = &tti_native_window_ops,
    .alive = native_alive,
    .transfer = native_transfer,
    .late_deadlines = true,
    .advance = native_advance,
    .hasten = native_hasten,
    .post_all = native_post_all,
    .world_id = native_world_id,
    .takes_segments = true,
    .streams = &tti_native_stream_ops,
};
