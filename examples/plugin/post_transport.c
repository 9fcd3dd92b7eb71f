/* SPDX-License-Identifier: BSD-3-Clause
 *
 * post_transport.c - a whole plug-in: the transport "post", which carries parcels by datagrams of Unix sockets.
 *
 * Why     To read, and to begin one's own with. It reaches the processes of one host only, and is slower there than the shared
 *         memory that it takes the place of.
 * How     Each instance has one socket that everybody sends to, under a name that the kernel chooses: that name is its address.
 *         A way is a socket, too, connected to a peer's. A parcel is a datagram: it arrives once and as a whole, or not at all.
 *         The kernel has its bytes when send returns, so no cookie ever waits; what comes is read into one buffer, which the
 *         library copies from, so nothing is lent.
 * Waits   An epoll is the handle: it tells of datagrams, and, for a way whose peer's queue is full, of room in it. It is asked for
 *         room once for each time that a send found none, so that it does not tell of what nobody wants.
 * Fails   A peer whose socket is closed refuses what is sent to it: the way is broken. A peer on another host has no such
 *         socket, and cannot be connected to.
 * Build   cc -shared -fPIC $(pkg-config --cflags tutti) post_transport.c -o tutti-transport-post.so
 *         and use it with TUTTI_PLUGIN_PATH=$PWD TUTTI_TRANSPORT=only:post; see tutti/plugin/transport.h */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <tutti/plugin/transport.h>

enum { PARCELS_AT_ONCE = 16 }; /* of one call of progress: the library's lock is held meanwhile */

static const tutti_plugin_host *host; /* written once, by init, before anything else is called */

struct tutti_transport {
    const tutti_transport_hooks *hooks;
    struct sockaddr_un           name; /* of box */
    socklen_t                    name_bytes;
    int                          box, set; /* what others send to; the epoll. -1: not there */
    size_t                       parcel_bytes;
    char                         parcel[]; /* [parcel_bytes]: the one that has just come */
};

struct tutti_transport_way {
    tutti_transport *transport;
    int              out; /* connected to the peer's box */
};

static void post_close(tutti_transport *t)
{
    if (t->box >= 0)
        close(t->box);
    if (t->set >= 0)
        close(t->set);
    free(t);
}

/* The box under a name of the kernel's choice, and the epoll that tells of what comes into it. */
static bool open_box(tutti_transport *t)
{
    const struct sockaddr_un any = { .sun_family = AF_UNIX };
    struct epoll_event       comes = { .events = EPOLLIN };

    t->box = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    t->set = epoll_create1(EPOLL_CLOEXEC);
    t->name_bytes = sizeof t->name;
    return t->box >= 0 && t->set >= 0 && bind(t->box, (const struct sockaddr *)&any, sizeof any.sun_family) == 0 &&
           getsockname(t->box, (struct sockaddr *)&t->name, &t->name_bytes) == 0 &&
           epoll_ctl(t->set, EPOLL_CTL_ADD, t->box, &comes) == 0;
}

static tutti_status post_open(const tutti_transport_config *config, tutti_transport **transport_out)
{
    tutti_transport *t = malloc(sizeof *t + config->parcel_bytes);
    tutti_status     st = TUTTI_OK;

    if (t == NULL)
        return host->fail(TUTTI_E_NOMEM, "no memory for an instance of the transport 'post'");
    *t = (tutti_transport){ .hooks = config->hooks, .box = -1, .set = -1, .parcel_bytes = config->parcel_bytes };
    if (!open_box(t)) {
        st = host->fail(TUTTI_E_IO, "the transport 'post' cannot make a socket: %s", strerror(errno));
        post_close(t);
        return st;
    }
    *transport_out = t;
    return st;
}

static const void *post_address(tutti_transport *t, size_t *bytes_out)
{
    *bytes_out = t->name_bytes;
    return &t->name;
}

/* The address is what some rank says that its transport gave: the kernel looks at it, behind its length. */
static int post_connect(tutti_transport *t, const void *address, size_t bytes, void *peer, tutti_transport_way **way_out)
{
    tutti_transport_way *way;
    struct sockaddr_un   name;
    struct epoll_event   nothing = { .events = EPOLLONESHOT };
    int                  err;

    (void)peer; /* what breaks is seen by send alone, which says so itself */
    if (bytes > sizeof name || (way = malloc(sizeof *way)) == NULL)
        return bytes > sizeof name ? -EINVAL : -ENOMEM;
    memcpy(&name, address, bytes);
    nothing.data.ptr = way;
    way->transport = t;
    way->out = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (way->out >= 0 && connect(way->out, (const struct sockaddr *)&name, (socklen_t)bytes) == 0 &&
        epoll_ctl(t->set, EPOLL_CTL_ADD, way->out, &nothing) == 0) {
        *way_out = way;
        return 0;
    }
    err = errno;
    if (way->out >= 0)
        close(way->out);
    free(way);
    return -err;
}

/* Have the epoll tell, once, that there is room at the peer again. */
static int ask_for_room(tutti_transport_way *way)
{
    struct epoll_event room = { .events = EPOLLOUT | EPOLLONESHOT, .data.ptr = way };

    return epoll_ctl(way->transport->set, EPOLL_CTL_MOD, way->out, &room) == 0 ? -EAGAIN : -errno;
}

static int post_send(tutti_transport_way *way, const void *parcel, size_t bytes, void *cookie)
{
    (void)cookie;
    if (send(way->out, parcel, bytes, MSG_NOSIGNAL) >= 0)
        return 1;
    if (errno == EAGAIN || errno == ENOBUFS)
        return ask_for_room(way);
    return errno == ECONNREFUSED || errno == ENOTCONN ? -ECONNRESET : -errno; /* its process has ended, or it has left */
}

/* Closing takes it out of the epoll. What was sent lies at the peer already. */
static void post_disconnect(tutti_transport_way *way)
{
    close(way->out);
    free(way);
}

/* Anybody in this network namespace can send here: what is no parcel by its length is dropped here, and what bears no token that the
 * library knows, there. */
static bool take(tutti_transport *t)
{
    const ssize_t n = recv(t->box, t->parcel, t->parcel_bytes, MSG_TRUNC);

    if (n < 0)
        return false;
    if ((size_t)n <= t->parcel_bytes)
        (void)t->hooks->arrived(t->hooks->context, t->parcel, (size_t)n, NULL);
    return true;
}

/* First, waiting for no time, take note of the ways that have room: what is told once must not be told by the handle for ever. */
static bool post_progress(tutti_transport *t)
{
    struct epoll_event told[PARCELS_AT_ONCE];
    const int          n = epoll_wait(t->set, told, PARCELS_AT_ONCE, 0);
    bool               moved = false;

    for (int i = 0; i < n; i++)
        moved |= told[i].data.ptr != NULL;
    for (int i = 0; i < PARCELS_AT_ONCE && take(t); i++)
        moved = true;
    return moved;
}

static int post_handle(tutti_transport *t)
{
    return t->set;
}

static bool post_arm(tutti_transport *t)
{
    (void)t;
    return true; /* the epoll tells also of what has come before */
}

static void post_give_back(tutti_transport *t, void *loan)
{
    (void)t;
    (void)loan; /* nothing is lent */
}

static tutti_status init(const tutti_plugin_host *given)
{
    host = given;
    return TUTTI_OK;
}

static const tutti_transport_ops ops = { .api = TUTTI_TRANSPORT_API, .size = sizeof(tutti_transport_ops), .name = "post",
                                         .open = post_open, .address = post_address, .connect = post_connect, .send = post_send,
                                         .progress = post_progress, .handle = post_handle, .arm = post_arm,
                                         .give_back = post_give_back, .disconnect = post_disconnect, .close = post_close };

const tutti_transport_plugin tutti_transport_entry = { .api = TUTTI_TRANSPORT_API, .size = sizeof(tutti_transport_plugin),
                                                       .name = "post", .transport = &ops, .init = init };
