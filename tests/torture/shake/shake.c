/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shake.c - threads held up at random.
 * Goal    a schedule that comes once in ten thousand runs comes in one of some.
 * Method  a library that is loaded before a program (LD_PRELOAD). A busy machine stops a thread for a while between two steps that others
 *         can see: a message, a lock, a word that is slept on. So each thread draws a manner: most are left alone, some are slow (a
 *         pause of 0.1 to 3 ms at one call of eight), few are starved (5 to 60 ms at one of forty); after half a second to one and a half
 *         it draws again. The pause comes before the call or behind it. All pauses of a process are less than SHAKE_SHARE per cent of its
 *         time (15 without it), so that a test of a million messages ends, too.
 *
 *     SHAKE_SEED    what manners are drawn from, beside the number of the process: a seed is not a run
 *     SHAKE_IN      only programs whose path has this text
 *     SHAKE_TELL    not empty: how many pauses there were is said at the end
 *
 * What fails is to be read: a promise in milliseconds is broken by a pause, too.
 *
 * Threads: a thread's manner is its own; what all have used is one counter. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CALM, SLOW, STARVED };
enum { MANNER_NS = 500000000, GRACE_NS = 300000000, SHARE = 15 };

static _Atomic int64_t used_ns;
static _Atomic int     pauses;
static int64_t         begun_ns;
static uint64_t        seed;
static int             share = SHARE;
static bool            is_on, tells;

static _Thread_local uint64_t drawn; /* 0: this thread has not begun */
static _Thread_local int      manner;
static _Thread_local int64_t  manner_until;
static _Thread_local bool     inside;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t draw(void)
{
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return drawn;
}

static uint64_t mixed(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ULL;
    return x ^ (x >> 33);
}

__attribute__((constructor)) static void begin(void)
{
    char        exe[4096] = "";
    const char *in = getenv("SHAKE_IN"), *number = getenv("SHAKE_SEED"), *percent = getenv("SHAKE_SHARE"), *tell = getenv("SHAKE_TELL");

    begun_ns = now_ns();
    seed = number != NULL ? strtoull(number, NULL, 10) : 1;
    share = percent != NULL ? atoi(percent) : SHARE;
    tells = tell != NULL && *tell != '\0';
    is_on = readlink("/proc/self/exe", exe, sizeof exe - 1) > 0 && (in == NULL || strstr(exe, in) != NULL);
}

__attribute__((destructor)) static void end(void)
{
    if (is_on && tells)
        fprintf(stderr, "shake: %d pauses, %lld ms of %lld\n", atomic_load(&pauses), (long long)(atomic_load(&used_ns) / 1000000),
                (long long)((now_ns() - begun_ns) / 1000000));
}

static void begin_thread(void)
{
    drawn = mixed(seed * 1000003 + (uint64_t)getpid() * 7919 + (uint64_t)(uintptr_t)&drawn) | 1;
    manner_until = 0;
}

static void take_manner(int64_t now)
{
    const uint64_t of = draw() % 16;

    manner = of < 9 ? CALM : of < 13 ? SLOW : STARVED;
    manner_until = now + MANNER_NS / 2 + (int64_t)(draw() % MANNER_NS);
}

static int64_t pause_of(void)
{
    if (manner == SLOW && draw() % 8 == 0)
        return 100000 + (int64_t)(draw() % 2900000);
    if (manner == STARVED && draw() % 40 == 0)
        return 5000000 + (int64_t)(draw() % 55000000);
    return 0;
}

static void hold_up(void)
{
    const int keep = errno;
    int64_t   now, ns;

    if (!is_on || inside)
        return;
    inside = true;
    if (drawn == 0)
        begin_thread();
    now = now_ns();
    if (now >= manner_until)
        take_manner(now);
    ns = pause_of();
    if (ns > 0 && (atomic_load(&used_ns) + ns) * 100 < (now - begun_ns + GRACE_NS) * share) {
        const struct timespec t = { .tv_nsec = ns };

        atomic_fetch_add(&used_ns, ns);
        atomic_fetch_add(&pauses, 1);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    }
    inside = false;
    errno = keep;
}

/* The function behind this library that has the name. */
static void real(const char *name, void *function_out)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(function_out, &found, sizeof found);
}

/* A function of the C library, held up before it and behind it. */
#define SHAKEN(type, name, params, args)      \
    type name params                          \
    {                                         \
        static type(*_Atomic next) params;    \
        type(*call) params = next;            \
        type result;                          \
                                              \
        if (call == NULL) {                   \
            real(#name, &call);               \
            next = call;                      \
        }                                     \
        hold_up();                            \
        result = call args;                   \
        hold_up();                            \
        return result;                        \
    }

SHAKEN(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))
SHAKEN(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
SHAKEN(ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags))
SHAKEN(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags))
SHAKEN(int, poll, (struct pollfd * f, nfds_t n, int ms), (f, n, ms))
SHAKEN(int, epoll_wait, (int fd, struct epoll_event *e, int n, int ms), (fd, e, n, ms))
SHAKEN(int, connect, (int fd, __CONST_SOCKADDR_ARG a, socklen_t n), (fd, a, n))
SHAKEN(int, accept4, (int fd, __SOCKADDR_ARG a, socklen_t *n, int flags), (fd, a, n, flags))
SHAKEN(int, pthread_mutex_unlock, (pthread_mutex_t * m), (m))
SHAKEN(int, shutdown, (int fd, int how), (fd, how))

/* Words that are slept on: the only call by number that others can see. */
long syscall(long number, ...)
{
    static long (*_Atomic next)(long, ...);
    long (*call)(long, ...) = next;
    va_list ap;
    long    a[6], result;
    int     i;

    if (call == NULL) {
        real("syscall", &call);
        next = call;
    }
    va_start(ap, number);
    for (i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_futex)
        hold_up();
    result = call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_futex)
        hold_up();
    return result;
}
