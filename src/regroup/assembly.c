/* SPDX-License-Identifier: BSD-3-Clause
 *
 * assembly.c - connections among members that have lost their store.
 *
 * How     Every member has a door that stays open as long as its mesh (transport/mesh.h): a local socket for members of its
 *         host, a TCP listener for others. A stream carries messages one way, from who made it; its first bytes are the
 *         hello, with the job's secret, the world's number and the group's. It is there when the other side has taken it,
 *         which happens inside of the call only: until then it waits in the kernel's queue.
 *         Streams are made when they are wanted, so that members who all talk to one make few.
 * Proof   A door that refuses belongs to nobody any more: its process has ended, or has ended that world. So a stream that
 *         breaks is made again at once, and the answer tells death from a call that was over. On this host the mesh's own
 *         signs of life count, too. What it had said is heard before it counts as gone: until its own streams have ended.
 *         Whatever else a network says (no route, no answer) proves nothing: again, a little later.
 *         A door that refuses does not say how its rank ended: one that has left may have gone on without this one, and one that has died has
 *         not. The watch threads know a little later: they are given LEARN_NS.
 * True    Nothing is read before the hello's proof; strangers are STRANGERS_MAX at most, each for STRANGER_NS, and some are let
 *         in at a time, so that each is heard before it may have to go for another (wire/strangers.h). A message from a stream
 *         counts as that of the rank its hello told; who knows the secret is believed that, as everywhere. */
#include "regroup/assembly.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "wire/buffer.h"
#include "wire/hello.h"
#include "wire/strangers.h"
#include "wire/tls_stream.h"

#define AGAIN_NS (50 * TTI_MS)
#define STRANGER_NS (10 * TTI_SECOND)
#define LAST_WORDS_NS (1 * TTI_SECOND)
#define LEARN_NS (500 * TTI_MS)

enum { WORDS_MAX = 384, COMERS_MORE = 16, STRANGERS_MAX = 64 };

typedef enum way_state { WAY_NONE, WAY_CONNECTING, WAY_HELLO, WAY_SEAL, WAY_OPEN, WAY_ENDING, WAY_GONE } way_state;

/* The stream to a member. */
typedef struct way {
    way_state  state;
    tti_handle stream;
    int64_t    again_ns; /* not before; ending: since when */
    tti_hello  hello;
    tti_buffer queue;
    char       words[WORDS_MAX]; /* once gone */
} way;

/* A stream that has come. */
typedef struct comer {
    tti_handle      stream;
    tti_addr_source from;
    int64_t         until_ns; /* a stranger goes then */
    tti_hello       hello;
    bool            sealed; /* it goes through TLS, whose handshake may be under way */
    bool            known;
    int             rank;
    tti_buffer      in;
} comer;

struct tti_assembly {
    tti_mesh          *mesh;
    tti_port          *port;
    const int         *ranks;
    int                n;
    int                rank;
    uint64_t           topic;
    size_t             message_bytes;
    tti_assembly_hooks hooks;
    tti_handle         bell;
    int64_t            closed_until_ns; /* nobody is let in before: there were no descriptors */
    way               *ways; /* [n] */
    comer            **comers; /* [n_comers] of room for max_comers */
    int                n_comers, max_comers;
    tti_poll          *set;
    int                max_set;
};

static tti_hello_config hello_config(const tti_assembly *as, bool client, bool local)
{
    const tti_assembly_door door = tti_mesh_assembly_door(as->mesh);
    tti_hello_config        hello = { .client = client, .local = local, .purpose = TTI_PURPOSE_ASSEMBLY, .rank = (uint32_t)as->rank,
                                      .generation = as->topic, .secret = door.secret, .peer = "a member" };

    memcpy(hello.scope, door.scope, sizeof hello.scope);
    return hello;
}

/* ---- the object ---- */

tutti_status tti_assembly_open(tti_mesh *mesh, const int *ranks, int n, int rank, uint64_t topic, size_t message_bytes,
                               const tti_assembly_hooks *hooks, tti_assembly **assembly_out)
{
    tti_assembly *as = calloc(1, sizeof *as);
    way          *ways = calloc((size_t)n, sizeof *ways);
    int           r;

    if (as == NULL || ways == NULL) {
        free(as);
        free(ways);
        return tti_fail(TUTTI_E_NOMEM, "no memory to talk to %d members", n);
    }
    *as = (tti_assembly){ .mesh = mesh, .port = tti_mesh_port(mesh), .ranks = ranks, .n = n, .rank = rank, .topic = topic,
                          .message_bytes = message_bytes, .hooks = *hooks, .bell = TTI_NO_HANDLE, .ways = ways };
    for (r = 0; r < n; r++)
        ways[r].stream = TTI_NO_HANDLE;
    if (as->port->ops->bell_create(as->port, &as->bell) != 0) {
        tti_assembly_close(as);
        return tti_fail(TUTTI_E_NOMEM, "cannot create a bell");
    }
    *assembly_out = as;
    return TUTTI_OK;
}

static void free_comer(tti_assembly *as, comer *c)
{
    as->port->ops->close(as->port, c->stream);
    tti_hello_release(&c->hello);
    tti_buffer_release(&c->in);
    free(c);
}

static void close_way(tti_assembly *as, way *w)
{
    as->port->ops->close(as->port, w->stream);
    w->stream = TTI_NO_HANDLE;
    tti_hello_release(&w->hello);
}

void tti_assembly_close(tti_assembly *as)
{
    int i;

    if (as == NULL)
        return;
    for (i = 0; i < as->n; i++) {
        close_way(as, &as->ways[i]);
        tti_buffer_release(&as->ways[i].queue);
    }
    for (i = 0; i < as->n_comers; i++)
        free_comer(as, as->comers[i]);
    as->port->ops->close(as->port, as->bell);
    free(as->comers);
    free(as->ways);
    free(as->set);
    free(as);
}

const char *tti_assembly_words(const tti_assembly *as, int rank)
{
    return as->ways[rank].words;
}

/* By which door a stream has come. */
static bool is_local(const tti_assembly *as, tti_handle stream)
{
    tti_addr here = { .family = TTI_ADDR_NONE };

    return as->port->ops->local_addr(as->port, stream, &here) == 0 && here.family == TTI_ADDR_LOCAL;
}

/* ---- ways out ---- */

static void lose_way(tti_assembly *as, int rank, int64_t again_ns)
{
    way       *w = &as->ways[rank];
    const bool was_open = w->state == WAY_OPEN;

    close_way(as, w);
    w->state = WAY_NONE;
    w->again_ns = again_ns;
    if (was_open) {
        tti_buffer_release(&w->queue);
        as->hooks.absent(as->hooks.ctx, rank);
    }
}

static void end_way(tti_assembly *as, int rank, const char *words)
{
    way *w = &as->ways[rank];

    close_way(as, w);
    tti_buffer_release(&w->queue);
    w->state = WAY_ENDING;
    w->again_ns = tti_port_now(as->port);
    snprintf(w->words, sizeof w->words, "%s", words);
}

static bool may_still_say(const tti_assembly *as, int rank)
{
    int i;

    for (i = 0; i < as->n_comers; i++)
        if (as->comers[i]->known && as->comers[i]->rank == rank)
            return true;
    return false;
}

static bool is_known_how(const tti_assembly *as, int rank)
{
    char words[WORDS_MAX];

    return tti_mesh_has_left(as->mesh, as->ranks[rank]) || !tti_mesh_is_alive(as->mesh, as->ranks[rank], words, sizeof words);
}

/* Those that are gone, of whom nothing more will come, and of whom it is known how they ended, or will not be. */
static void tell_gone(tti_assembly *as, int64_t now_ns)
{
    int64_t ending_ns;
    int     r;

    for (r = 0; r < as->n; r++) {
        ending_ns = now_ns - as->ways[r].again_ns;
        if (as->ways[r].state != WAY_ENDING || (ending_ns < LAST_WORDS_NS && may_still_say(as, r)) ||
            (ending_ns < LEARN_NS && !is_known_how(as, r)))
            continue;
        as->ways[r].state = WAY_GONE;
        tti_log(TTI_LOG_INFO, "%s", as->ways[r].words);
        as->hooks.gone(as->hooks.ctx, r);
    }
}

/* A connection was not to be had. */
static void take_refusal(tti_assembly *as, int rank, int err)
{
    char words[WORDS_MAX];

    if (err != ECONNREFUSED) {
        lose_way(as, rank, tti_port_now(as->port) + AGAIN_NS);
        return;
    }
    snprintf(words, sizeof words, "rank %d (%.120s) is gone: nobody listens there any more", rank,
             tti_mesh_whereabouts(as->mesh, as->ranks[rank]));
    end_way(as, rank, words);
}

static void begin_way(tti_assembly *as, int rank)
{
    way      *w = &as->ways[rank];
    const int err = as->port->ops->connect(as->port, tti_mesh_assembly_addr(as->mesh, as->ranks[rank]), &w->stream);

    if (err != 0) {
        w->stream = TTI_NO_HANDLE;
        take_refusal(as, rank, -err);
    } else {
        w->state = WAY_CONNECTING;
    }
}

static void open_way(tti_assembly *as, int rank)
{
    as->ways[rank].state = WAY_OPEN;
    as->hooks.present(as->hooks.ctx, rank);
}

/* Behind the hello, where there is TLS. */
static void step_seal(tti_assembly *as, int rank)
{
    way *w = &as->ways[rank];
    bool done = false;

    if (tti_tls_shake_on(w->stream, &done) != TUTTI_OK)
        lose_way(as, rank, tti_port_now(as->port) + AGAIN_NS);
    else if (done)
        open_way(as, rank);
}

/* The other side knows us, or we it: what the hello wants next. */
static void step_hello(tti_assembly *as, int rank)
{
    way     *w = &as->ways[rank];
    uint8_t  in[TTI_HELLO_SERVER_BYTES];
    tti_part part;
    int64_t  n;

    part.data = tti_hello_output(&w->hello, &part.size);
    if (part.size > 0) {
        n = as->port->ops->send(as->port, w->stream, &part, 1);
        if (n > 0)
            tti_hello_sent(&w->hello, (size_t)n);
    } else {
        n = as->port->ops->recv(as->port, w->stream, in, tti_hello_wants(&w->hello));
        if (n > 0 && tti_hello_feed(&w->hello, in, (size_t)n) != TUTTI_OK)
            n = 0;
    }
    if (n == 0 || (n < 0 && n != -EAGAIN))
        lose_way(as, rank, tti_port_now(as->port) + (n < 0 ? 0 : AGAIN_NS));
    else if (tti_hello_done(&w->hello) &&
             tti_secret_check_user(tti_mesh_assembly_door(as->mesh).secret, as->port, w->stream, "a member") != TUTTI_OK)
        lose_way(as, rank, tti_port_now(as->port) + AGAIN_NS);
    else if (tti_hello_done(&w->hello) && tti_hello_seal(&w->hello) == TTI_SEAL_NONE) {
        open_way(as, rank);
    } else if (tti_hello_done(&w->hello)) {
        w->state = WAY_SEAL;
        if (tti_tls_attach(as->port, w->stream, &w->hello) != TUTTI_OK)
            lose_way(as, rank, tti_port_now(as->port) + AGAIN_NS);
        else
            step_seal(as, rank);
    }
}

static void take_connection(tti_assembly *as, int rank)
{
    way                   *w = &as->ways[rank];
    const bool             local = tti_mesh_assembly_addr(as->mesh, as->ranks[rank])->family == TTI_ADDR_LOCAL;
    const tti_hello_config hello = hello_config(as, true, local);
    const int              err = as->port->ops->connect_result(as->port, w->stream);

    if (err != 0) {
        take_refusal(as, rank, -err);
        return;
    }
    tti_hello_begin(&w->hello, as->port, &hello);
    w->state = WAY_HELLO;
    step_hello(as, rank);
}

static void push_queue(tti_assembly *as, int rank)
{
    way *w = &as->ways[rank];

    while (w->state == WAY_OPEN && w->queue.size > 0) {
        const tti_part part = { .data = tti_buffer_data(&w->queue), .size = w->queue.size };
        const int64_t  n = as->port->ops->send(as->port, w->stream, &part, 1);

        if (n == -EAGAIN)
            return;
        if (n < 0)
            lose_way(as, rank, 0);
        else
            tti_buffer_consume(&w->queue, (size_t)n);
    }
}

/* Nothing is ever said on it: it can only end. */
static void look_at_end(tti_assembly *as, int rank)
{
    uint8_t       byte;
    const int64_t n = as->port->ops->recv(as->port, as->ways[rank].stream, &byte, 1);

    if (n != -EAGAIN)
        lose_way(as, rank, 0);
}

static void turn_way(tti_assembly *as, int rank, uint8_t got)
{
    way *w = &as->ways[rank];

    if (got == 0)
        return;
    if (w->state == WAY_CONNECTING)
        take_connection(as, rank);
    else if (w->state == WAY_HELLO)
        step_hello(as, rank);
    else if (w->state == WAY_SEAL)
        step_seal(as, rank);
    else if (w->state == WAY_OPEN && (got & (TTI_READ | TTI_HANGUP)) != 0)
        look_at_end(as, rank);
    if (w->state == WAY_OPEN)
        push_queue(as, rank);
}

void tti_assembly_send(tti_assembly *as, int rank, const void *message, size_t bytes)
{
    way *w = &as->ways[rank];

    if (w->state >= WAY_ENDING)
        return;
    if (tti_buffer_append(&w->queue, message, bytes) != TUTTI_OK)
        lose_way(as, rank, tti_port_now(as->port) + AGAIN_NS); /* without memory: as if it had broken */
    if (w->state == WAY_OPEN)
        push_queue(as, rank);
}

/* The mesh may know more than the network says. */
static void look_for_the_dead(tti_assembly *as)
{
    char words[WORDS_MAX];
    int  r;

    for (r = 0; r < as->n; r++)
        if (r != as->rank && as->ways[r].state < WAY_ENDING &&
            !tti_mesh_is_alive(as->mesh, as->ranks[r], words, sizeof words))
            end_way(as, r, words);
}

static void begin_ways(tti_assembly *as, int64_t now_ns)
{
    int r;

    for (r = 0; r < as->n; r++)
        if (as->ways[r].state == WAY_NONE && now_ns >= as->ways[r].again_ns && as->hooks.wants(as->hooks.ctx, r))
            begin_way(as, r);
}

/* ---- who comes ---- */

static const tti_addr_source *stranger_at(const void *context, int i)
{
    const tti_assembly *as = context;

    return as->comers[i]->known ? NULL : &as->comers[i]->from;
}

static int count_strangers(const tti_assembly *as)
{
    int i, n = 0;

    for (i = 0; i < as->n_comers; i++)
        n += !as->comers[i]->known;
    return n;
}

/* One more comes from there: a member that is pushed out for it comes again. */
static void make_place(tti_assembly *as, const tti_addr_source *from)
{
    const tti_strangers crowd = { .context = as, .n = as->n_comers, .stranger_at = stranger_at };
    const int       victim = count_strangers(as) >= STRANGERS_MAX ? tti_stranger_to_go(&crowd, as->port, from) : -1;

    if (victim < 0)
        return;
    free_comer(as, as->comers[victim]);
    as->n_comers--;
    memmove(&as->comers[victim], &as->comers[victim + 1], (size_t)(as->n_comers - victim) * sizeof(comer *));
}

static void take_comer(tti_assembly *as, tti_handle stream, const tti_addr *from)
{
    const tti_hello_config hello = hello_config(as, false, is_local(as, stream));
    const tti_addr_source  source = tti_addr_source_of(from);
    comer                 *c = calloc(1, sizeof *c);

    make_place(as, &source);
    if (as->n_comers == as->max_comers) {
        comer **more = realloc(as->comers, (size_t)(as->max_comers + COMERS_MORE) * sizeof(comer *));

        if (more == NULL) {
            free(c);
            c = NULL;
        } else {
            as->comers = more;
            as->max_comers += COMERS_MORE;
        }
    }
    if (c == NULL) {
        as->port->ops->close(as->port, stream); /* it comes again */
        return;
    }
    c->stream = stream;
    c->from = source;
    c->until_ns = tti_port_now(as->port) + STRANGER_NS;
    tti_hello_begin(&c->hello, as->port, &hello);
    as->comers[as->n_comers++] = c;
}

/* Who cannot be let in waits at the door: looking at it all the time would not help. */
static void accept_some(tti_assembly *as, tti_handle listener)
{
    tti_addr from = { .family = TTI_ADDR_NONE };
    int      stream = -EAGAIN, n;

    for (n = 0; n < TTI_STRANGERS_ACCEPTS_MAX && (stream = as->port->ops->accept(as->port, listener, &from)) >= 0; n++)
        if (tti_secret_check_user(tti_mesh_assembly_door(as->mesh).secret, as->port, stream, "a process") == TUTTI_OK)
            take_comer(as, stream, &from);
        else
            as->port->ops->close(as->port, stream);
    if (stream < 0 && stream != -EAGAIN)
        as->closed_until_ns = tti_port_now(as->port) + AGAIN_NS;
}

/* More bytes of a comer's; false: it has ended, or is a stranger. */
static bool read_comer(tti_assembly *as, comer *c)
{
    uint8_t  in[TTI_HELLO_SERVER_BYTES];
    uint8_t *room;
    tti_part part;
    int64_t  n;

    part.data = c->known ? NULL : tti_hello_output(&c->hello, &part.size);
    if (c->sealed && !c->known)
        return true; /* know_comer() goes on with it */
    if (part.data != NULL) {
        n = as->port->ops->send(as->port, c->stream, &part, 1);
        if (n > 0)
            tti_hello_sent(&c->hello, (size_t)n);
    } else if (!c->known) {
        n = as->port->ops->recv(as->port, c->stream, in, tti_hello_wants(&c->hello));
        if (n > 0 && tti_hello_feed(&c->hello, in, (size_t)n) != TUTTI_OK) {
            part.data = tti_hello_last_words(&c->hello, &part.size);
            if (part.data != NULL)
                (void)as->port->ops->send(as->port, c->stream, &part, 1);
            return false;
        }
    } else {
        room = tti_buffer_reserve(&c->in, as->message_bytes);
        n = room != NULL ? as->port->ops->recv(as->port, c->stream, room, as->message_bytes) : 0;
        if (n > 0)
            tti_buffer_commit(&c->in, (size_t)n);
    }
    return n > 0 || n == -EAGAIN;
}

/* Its TLS. False: it is a stranger. */
static bool seal_comer(tti_assembly *as, comer *c, bool *done_out)
{
    if (!c->sealed && tti_tls_attach(as->port, c->stream, &c->hello) != TUTTI_OK)
        return false;
    c->sealed = true;
    return tti_tls_shake_on(c->stream, done_out) == TUTTI_OK;
}

static bool know_comer(tti_assembly *as, comer *c)
{
    bool done = true;

    if (c->known || !tti_hello_done(&c->hello))
        return true;
    if (tti_hello_seal(&c->hello) != TTI_SEAL_NONE && !seal_comer(as, c, &done))
        return false;
    if (!done)
        return true;
    c->known = true;
    c->rank = (int)tti_hello_peer_rank(&c->hello);
    return c->rank >= 0 && c->rank < as->n && c->rank != as->rank;
}

static void hear_comer(tti_assembly *as, comer *c)
{
    while (c->in.size >= as->message_bytes) {
        as->hooks.heard(as->hooks.ctx, c->rank, tti_buffer_data(&c->in), as->message_bytes);
        tti_buffer_consume(&c->in, as->message_bytes);
    }
}

static void turn_comers(tti_assembly *as, const tti_poll *set, int n, int64_t now_ns)
{
    int i, kept = 0;

    for (i = 0; i < n; i++) {
        comer *c = as->comers[i];
        bool   stays = set[i].got == 0 || read_comer(as, c);

        stays = stays && know_comer(as, c) && (c->known || now_ns < c->until_ns);
        if (c->known)
            hear_comer(as, c);
        if (stays)
            as->comers[kept++] = c;
        else
            free_comer(as, c);
    }
    as->n_comers = kept;
}

/* ---- turning ---- */

static bool grow_set(tti_assembly *as)
{
    const int need = 3 + as->n + as->n_comers;
    tti_poll *set;

    if (need <= as->max_set)
        return true;
    set = realloc(as->set, (size_t)need * 2 * sizeof *set);
    if (set == NULL)
        return false;
    as->set = set;
    as->max_set = need * 2;
    return true;
}

static uint8_t wish_of(const way *w)
{
    size_t bytes = 0;

    switch (w->state) {
    case WAY_CONNECTING: return TTI_WRITE;
    case WAY_HELLO: return tti_hello_output(&w->hello, &bytes) != NULL ? TTI_WRITE : TTI_READ;
    case WAY_SEAL: return TTI_READ;
    case WAY_OPEN: return w->queue.size > 0 ? TTI_READ | TTI_WRITE : TTI_READ;
    default: return 0;
    }
}

/* Bell, two listeners, ways, comers. */
static void fill_set(tti_assembly *as)
{
    const tti_assembly_door door = tti_mesh_assembly_door(as->mesh);
    const uint8_t           door_wish = tti_port_now(as->port) < as->closed_until_ns ? 0 : TTI_READ;
    tti_poll               *set = as->set;
    size_t                  bytes = 0;
    int                     i;

    set[0] = (tti_poll){ .handle = as->bell, .want = TTI_READ };
    set[1] = (tti_poll){ .handle = door.local, .want = door_wish };
    set[2] = (tti_poll){ .handle = door.tcp, .want = door_wish };
    for (i = 0; i < as->n; i++)
        set[3 + i] = (tti_poll){ .handle = as->ways[i].stream, .want = wish_of(&as->ways[i]) };
    for (i = 0; i < as->n_comers; i++) {
        comer *c = as->comers[i];

        set[3 + as->n + i] = (tti_poll){ .handle = c->stream, .want = TTI_READ };
        if (!c->known && tti_hello_output(&c->hello, &bytes) != NULL)
            set[3 + as->n + i].want = TTI_WRITE;
    }
}

void tti_assembly_turn(tti_assembly *as, int64_t until_ns)
{
    const tti_assembly_door door = tti_mesh_assembly_door(as->mesh);
    const int64_t           again_ns = tti_port_now(as->port) + AGAIN_NS;
    int                     i, n_comers;

    look_for_the_dead(as);
    begin_ways(as, tti_port_now(as->port));
    if (!grow_set(as)) {
        as->port->ops->sleep_until(as->port, until_ns < again_ns ? until_ns : again_ns);
        return;
    }
    fill_set(as);
    n_comers = as->n_comers;
    as->port->ops->poll(as->port, as->set, 3 + as->n + n_comers, until_ns < again_ns ? until_ns : again_ns);
    if (as->set[0].got != 0)
        as->port->ops->bell_clear(as->port, as->bell);
    for (i = 0; i < as->n; i++)
        turn_way(as, i, as->set[3 + i].got);
    turn_comers(as, as->set + 3 + as->n, n_comers, tti_port_now(as->port));
    for (i = 1; i <= 2; i++)
        if (as->set[i].got != 0)
            accept_some(as, i == 1 ? door.local : door.tcp);
    tell_gone(as, tti_port_now(as->port));
}

void tti_assembly_wake(tti_assembly *as)
{
    as->port->ops->bell_ring(as->port, as->bell);
}

static bool has_queued(const tti_assembly *as)
{
    int r;

    for (r = 0; r < as->n; r++)
        if (as->ways[r].state == WAY_OPEN && as->ways[r].queue.size > 0)
            return true;
    return false;
}

void tti_assembly_flush(tti_assembly *as, int64_t until_ns)
{
    while (has_queued(as) && tti_port_now(as->port) < until_ns)
        tti_assembly_turn(as, until_ns);
}
