/* SPDX-License-Identifier: BSD-3-Clause
 *
 * socket_floor.c - a bare socket exchange: what a message between two processes costs without a library.
 *
 * Why     A time of ours between hosts says little without the least that the same link, sockets and cores
 *         allow, taken a moment before or after.
 * How     Two processes, one TCP connection, no frames, no matching, no waking of anybody. The client says
 *         what a cell is; then both do it:
 *
 *           one-way  the client sends so many bytes, the server sends as many back: half of that time
 *           two-way  both send and receive at once: the whole time
 *
 *         Who waits tries again at once (spin), or sleeps in the kernel (block).
 *
 *           socket_floor serve ADDR PORT              one client, then the end
 *           socket_floor run ADDR PORT BYTES...       the client; waits 10 s for the server to listen
 *           socket_floor here BYTES...                both, over the loopback of this host
 *             --modes one-way,two-way  --waits spin,block  --seconds 0.3 (of a cell)  --congestion NAME
 *
 *         The client writes a line of names, and a line for each cell, with tabs: mode, wait, bytes, how many
 *         exchanges were timed, the least, median and 90th percentile of them in us, MB/s of one direction at the
 *         median, congestion control.
 * True    The bytes of the first exchange of a cell are looked at, of both ends.
 * Fails   A connection that ends, or cannot be made: words on stderr, status 1. Nothing lasts longer than
 *         LIMIT_S. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "sample.h"

enum { LIMIT_S = 600, PILOTS = 6, COUNT_MIN = 5, COUNT_MAX = 20000, PATIENCE_S = 10, NAME_MAX_BYTES = 16 };
#define CELL_MAGIC UINT32_C(0x666c7232)
#define BYTES_MAX (UINT64_C(1) << 30)

enum { ONE_WAY, TWO_WAY, MODES };
enum { SPIN, BLOCK, WAITS };
static const char *const mode_names[] = { "one-way", "two-way" };
static const char *const wait_names[] = { "spin", "block" };

/* What the client tells the server before each; both have the same byte order, or the magic differs. */
typedef struct cell {
    uint32_t magic;
    uint32_t mode, wait;
    uint32_t warm, count; /* exchanges that are not timed, and that are */
    uint32_t zero;
    uint64_t bytes;
} cell;

typedef struct end {
    int fd;
    bool client;
    char *in, *out; /* of room bytes */
    uint64_t room;
} end;

typedef struct options {
    bool modes[MODES], waits[WAITS];
    double seconds;
    const char *congestion; /* NULL: the system's */
} options;

static bool complain(const char *what)
{
    fprintf(stderr, "socket_floor: %s: %s\n", what, strerror(errno));
    return false;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- moving bytes ------------------------------------------------------------------------------ */

/* Take what a call moved off what is left: false at the end of the stream, or after an error. */
static bool took(ssize_t n, uint64_t *left, bool *moved)
{
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n == 0)
        errno = ECONNRESET;
    if (n <= 0)
        return complain("the connection ended");
    *left -= (uint64_t)n;
    *moved = true;
    return true;
}

static void sleep_until_ready(int fd, bool sending, bool receiving)
{
    struct pollfd p = { .fd = fd, .events = (short)((sending ? POLLOUT : 0) | (receiving ? POLLIN : 0)) };

    (void)poll(&p, 1, -1);
}

/* Send so many bytes and receive as many, both at once. What alone is left may sleep in its own call. */
static bool move(const end *e, uint64_t sends, uint64_t recvs, bool block)
{
    uint64_t to_send = sends, to_recv = recvs;

    while (to_send + to_recv > 0) {
        const bool both = to_send > 0 && to_recv > 0;
        const int wait = block && !both ? 0 : MSG_DONTWAIT;
        bool moved = false;

        if (to_send > 0 &&
            !took(send(e->fd, e->out + (sends - to_send), to_send, MSG_NOSIGNAL | wait), &to_send, &moved))
            return false;
        if (to_recv > 0 && (both || !moved) &&
            !took(recv(e->fd, e->in + (recvs - to_recv), to_recv, wait), &to_recv, &moved))
            return false;
        if (!moved && block)
            sleep_until_ready(e->fd, to_send > 0, to_recv > 0);
    }
    return true;
}

static bool exchange(const end *e, const cell *c)
{
    const bool block = c->wait == BLOCK;

    if (c->mode == TWO_WAY)
        return move(e, c->bytes, c->bytes, block);
    if (e->client)
        return move(e, c->bytes, 0, block) && move(e, 0, c->bytes, block);
    return move(e, 0, c->bytes, block) && move(e, c->bytes, 0, block);
}

/* ---- a cell ------------------------------------------------------------------------------------ */

static char pattern(uint64_t i, bool client)
{
    return (char)(i * 131 + (i >> 11) * 17 + (client ? 1 : 2));
}

static bool prepare(end *e, const cell *c)
{
    uint64_t i;

    if (e->room < c->bytes) {
        free(e->in);
        free(e->out);
        e->room = c->bytes;
        e->in = malloc(c->bytes);
        e->out = malloc(c->bytes);
    }
    if (e->in == NULL || e->out == NULL)
        return complain("no memory for the messages");
    for (i = 0; i < c->bytes; i++)
        e->out[i] = pattern(i, e->client);
    memset(e->in, 0, c->bytes);
    return true;
}

static bool is_right(const end *e, const cell *c)
{
    uint64_t i;

    for (i = 0; i < c->bytes; i++)
        if (e->in[i] != pattern(i, !e->client)) {
            fprintf(stderr, "socket_floor: byte %llu of %llu came wrong\n", (unsigned long long)i,
                    (unsigned long long)c->bytes);
            return false;
        }
    return true;
}

/* times[count], of the client. */
static bool run_cell(end *e, const cell *c, uint64_t *times)
{
    uint32_t i;

    if (!prepare(e, c) || !exchange(e, c) || !is_right(e, c))
        return false;
    for (i = 0; i < c->warm; i++)
        if (!exchange(e, c))
            return false;
    for (i = 0; i < c->count; i++) {
        const uint64_t began = e->client ? now_ns() : 0;

        if (!exchange(e, c))
            return false;
        if (e->client)
            times[i] = (now_ns() - began) / (c->mode == ONE_WAY ? 2 : 1);
    }
    return true;
}

/* A header goes in one piece, as nothing else is on its way. */
static bool tell_and_run(end *e, const cell *c, uint64_t *times)
{
    if (send(e->fd, c, sizeof *c, MSG_NOSIGNAL) != (ssize_t)sizeof *c)
        return complain("cannot tell the server what to do");
    return run_cell(e, c, times);
}

/* How many exchanges take so many ns. */
static uint32_t count_for(double ns, uint64_t one_ns)
{
    const double n = ns / (double)(one_ns > 0 ? one_ns : 1);

    return n < COUNT_MIN ? COUNT_MIN : n > COUNT_MAX ? COUNT_MAX : (uint32_t)n;
}

static void print_cell(const cell *c, const uint64_t *sorted, const char *congestion)
{
    const double median = bench_quantile(sorted, (int)c->count, 0.5);

    printf("%s\t%s\t%llu\t%u\t%.2f\t%.2f\t%.2f\t%.1f\t%s\n", mode_names[c->mode], wait_names[c->wait],
           (unsigned long long)c->bytes, c->count, (double)sorted[0] / 1e3, median / 1e3,
           bench_quantile(sorted, (int)c->count, 0.9) / 1e3, (double)c->bytes * 1e3 / median, congestion);
    fflush(stdout);
}

static bool measure(end *e, cell *c, double seconds, const char *congestion)
{
    static uint64_t times[COUNT_MAX];

    c->warm = 2;
    c->count = PILOTS;
    if (!tell_and_run(e, c, times))
        return false;
    bench_sort(times, PILOTS);
    c->count = count_for(seconds * 1e9 / (c->mode == ONE_WAY ? 2 : 1), times[PILOTS / 2]);
    c->warm = c->count / 5;
    if (!tell_and_run(e, c, times))
        return false;
    bench_sort(times, (int)c->count);
    print_cell(c, times, congestion);
    return true;
}

/* ---- both ends --------------------------------------------------------------------------------- */

static bool set_up(int fd, const char *congestion)
{
    const int one = 1;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
        return complain("cannot set TCP_NODELAY");
    if (congestion != NULL &&
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) != 0)
        return complain("cannot set the congestion control");
    return true;
}

/* The server takes the client's congestion control, of which the first words are. */
static bool serve(int fd)
{
    end e = { .fd = fd };
    char name[NAME_MAX_BYTES + 1] = "";
    cell c;
    bool fine = recv(fd, name, NAME_MAX_BYTES, MSG_WAITALL) == NAME_MAX_BYTES &&
                set_up(fd, name[0] != '\0' ? name : NULL);

    while (fine && recv(fd, &c, sizeof c, MSG_WAITALL) == (ssize_t)sizeof c) {
        fine = c.magic == CELL_MAGIC && c.mode < MODES && c.wait < WAITS && c.bytes > 0 && c.bytes <= BYTES_MAX &&
               run_cell(&e, &c, NULL);
    }
    free(e.in);
    free(e.out);
    return fine;
}

static bool ask(int fd, const options *o, char *const *sizes, int n_sizes)
{
    end e = { .fd = fd, .client = true };
    char name[NAME_MAX_BYTES + 1] = "";
    socklen_t room = NAME_MAX_BYTES;
    int i, mode, wait;
    bool fine;

    puts("mode\twait\tbytes\tn\tmin_us\tmedian_us\tp90_us\tmb_per_s\tcongestion");
    if (o->congestion != NULL)
        snprintf(name, sizeof name, "%s", o->congestion);
    fine = set_up(fd, o->congestion) && send(fd, name, NAME_MAX_BYTES, MSG_NOSIGNAL) == NAME_MAX_BYTES &&
           getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &room) == 0;
    for (i = 0; i < n_sizes; i++)
        for (mode = 0; mode < MODES; mode++)
            for (wait = 0; wait < WAITS; wait++) {
                cell c = { .magic = CELL_MAGIC, .mode = (uint32_t)mode, .wait = (uint32_t)wait,
                           .bytes = strtoull(sizes[i], NULL, 0) };

                if (fine && o->modes[mode] && o->waits[wait])
                    fine = c.bytes > 0 && c.bytes <= BYTES_MAX && measure(&e, &c, o->seconds, name);
            }
    free(e.in);
    free(e.out);
    return fine;
}

/* ---- the connection ---------------------------------------------------------------------------- */

static bool look_up(const char *host, const char *port, struct addrinfo **found_out)
{
    const struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };
    const int err = getaddrinfo(host, port, &want, found_out);

    if (err != 0)
        fprintf(stderr, "socket_floor: '%s' port '%s': %s\n", host, port, gai_strerror(err));
    return err == 0;
}

static int listen_at(const struct addrinfo *at)
{
    const int one = 1;
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 1) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool accept_and_serve(int listener)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    bool fine;

    if (fd < 0)
        return complain("cannot accept");
    fine = serve(fd);
    close(fd);
    return fine;
}

/* -1 once it was in vain for PATIENCE_S. */
static int connect_to(const struct addrinfo *at)
{
    const struct timespec pause = { .tv_nsec = 20 * 1000000 };
    const uint64_t until = now_ns() + PATIENCE_S * UINT64_C(1000000000);

    do {
        const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, at->ai_addr, at->ai_addrlen) == 0)
            return fd;
        close(fd);
        nanosleep(&pause, NULL);
    } while (now_ns() < until);
    return -1;
}

static bool connect_and_ask(const struct addrinfo *at, const options *o, char *const *sizes, int n_sizes)
{
    const int fd = connect_to(at);
    bool fine;

    if (fd < 0)
        return complain("cannot connect");
    fine = ask(fd, o, sizes, n_sizes);
    close(fd);
    return fine;
}

/* Both ends, over loopback. */
static bool run_here(const options *o, char *const *sizes, int n_sizes)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct addrinfo info = { .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&at, .ai_addrlen = sizeof at };
    const int listener = listen_at(&info);
    socklen_t bytes = sizeof at;
    pid_t child;
    int status = 1;
    bool fine;

    if (listener < 0 || getsockname(listener, info.ai_addr, &bytes) != 0)
        return complain("cannot listen on loopback");
    child = fork();
    if (child == 0)
        _exit(accept_and_serve(listener) ? 0 : 1);
    close(listener);
    fine = child > 0 && connect_and_ask(&info, o, sizes, n_sizes);
    if (child > 0)
        (void)waitpid(child, &status, 0);
    return fine && status == 0;
}

static bool run_apart(bool server, char *const *where, const options *o, char *const *sizes, int n_sizes)
{
    struct addrinfo *at = NULL;
    int listener;
    bool fine;

    if (!look_up(where[0], where[1], &at))
        return false;
    if (!server) {
        fine = connect_and_ask(at, o, sizes, n_sizes);
    } else {
        listener = listen_at(at);
        fine = listener < 0 ? complain("cannot listen") : accept_and_serve(listener);
        if (listener >= 0)
            close(listener);
    }
    freeaddrinfo(at);
    return fine;
}

/* ---- arguments --------------------------------------------------------------------------------- */

static void choose(const char *list, const char *const *names, int n, bool *chosen)
{
    int i;

    for (i = 0; i < n; i++)
        chosen[i] = strstr(list, names[i]) != NULL;
}

/* Takes the options out of the arguments: how many others are left. */
static int take_options(int argc, char **argv, options *o)
{
    int i, n = 0;

    for (i = 0; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strncmp(argv[i], "--", 2) != 0) {
            argv[n++] = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--modes") == 0)
            choose(value, mode_names, MODES, o->modes);
        else if (strcmp(argv[i], "--waits") == 0)
            choose(value, wait_names, WAITS, o->waits);
        else if (strcmp(argv[i], "--seconds") == 0)
            o->seconds = atof(value);
        else if (strcmp(argv[i], "--congestion") == 0)
            o->congestion = value;
        else
            return 0;
        i++;
    }
    return n;
}

int main(int argc, char **argv)
{
    options o = { .modes = { true, true }, .waits = { true, true }, .seconds = 0.3 };
    const int n = take_options(argc - 1, argv + 1, &o);
    char **args = argv + 1;
    bool fine;

    alarm(LIMIT_S);
    if (n >= 2 && strcmp(args[0], "here") == 0)
        fine = run_here(&o, args + 1, n - 1);
    else if (n == 3 && strcmp(args[0], "serve") == 0)
        fine = run_apart(true, args + 1, &o, NULL, 0);
    else if (n >= 4 && strcmp(args[0], "run") == 0)
        fine = run_apart(false, args + 1, &o, args + 3, n - 3);
    else {
        fprintf(stderr, "usage: socket_floor serve ADDR PORT | run ADDR PORT BYTES... | here BYTES...\n"
                        "  [--modes one-way,two-way] [--waits spin,block] [--seconds S] [--congestion NAME]\n");
        return 2;
    }
    return fine ? 0 : 1;
}
