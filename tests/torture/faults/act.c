/* SPDX-License-Identifier: BSD-3-Clause
 *
 * act.c - this process's points are counted, and at one of them it does something to itself.
 *
 * The thread that passes the point does it, whichever of the library's that is, before what it was about to do. The
 * time is taken last of all before. */
#include "faults.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <tutti/private.h>

enum { HANDLES = 1024 };

static struct {
    const tt_job      *job; /* NULL: only counting */
    round_page     *page;
    int             slot;
    unsigned        points;
    int64_t         nth;
    _Atomic int64_t passed;
    _Atomic bool    done;
} armed;

/* A connected TCP stream of this process, not a listener. */
static bool is_stream(int fd)
{
    int       domain = 0, type = 0, listens = 0;
    socklen_t n = sizeof(int);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && (domain == AF_INET || domain == AF_INET6) &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) == 0 && listens == 0;
}

/* Connecting to nowhere drops a connection with a RST, and leaves the descriptor as it is. */
static void reset(int fd)
{
    const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };

    connect(fd, &nowhere, sizeof nowhere);
}

/* Whether the other end is a rank, not the store. */
static bool leads_to_rank(const tt_job *job, int fd)
{
    struct sockaddr_in to;
    socklen_t          n = sizeof to;

    return getpeername(fd, (struct sockaddr *)&to, &n) == 0 && ntohs(to.sin_port) != job->store_port;
}

static bool has_streams(void)
{
    int fd;

    for (fd = 3; fd < HANDLES; fd++)
        if (is_stream(fd) && leads_to_rank(armed.job, fd))
            return true;
    return false;
}

static void on_streams(tt_fault what)
{
    int fd;

    for (fd = 3; fd < HANDLES; fd++) {
        if (!is_stream(fd))
            continue;
        if (what == F_RESET)
            reset(fd);
        else
            shutdown(fd, SHUT_WR);
    }
}

static void kill_instead(void)
{
    armed.page->plan.what = F_KILL;
    kill(getpid(), SIGKILL);
}

static void act(void)
{
    volatile int *volatile nothing = NULL;

    switch (armed.page->plan.what) {
    case F_KILL:
        kill(getpid(), SIGKILL);
        break;
    case F_STOP:
        kill(getpid(), SIGSTOP);
        break;
    case F_EXIT:
        syscall(SYS_exit_group, 0);
        break;
    case F_SEGV:
        *nothing = 0;
        break;
    case F_ABORT:
        abort();
    case F_RESET:
    case F_HALF:
        if (has_streams())
            on_streams(armed.page->plan.what);
        else
            kill_instead(); /* nobody was connected to it: there was nothing to see */
        break;
    case F_HOLE:
        tt_net_plug(armed.job->switch_fd, tt_host_of_slot(armed.job, armed.slot), false);
        break;
    default:
        break;
    }
}

/* While ranks shrink there are moments in which nobody is connected to it: it happens later then. */
static void happen(int at)
{
    if (atomic_exchange(&armed.done, true))
        return;
    if (tt_is_cut(armed.page) && !has_streams()) {
        atomic_store(&armed.done, false);
        return;
    }
    atomic_store(&armed.page->hit_at, at);
    atomic_store(&armed.page->hit_ns, tti_now_ns());
    act();
}

/* Whether it is due at a point that is the n-th to be passed, or one behind it. */
static bool is_due(tt_point at, int64_t passed)
{
    if (armed.job == NULL || passed < armed.nth)
        return false;
    return passed == armed.nth || (tt_is_cut(armed.page) && at < TT_AT_WAIT && !atomic_load(&armed.done));
}

static int at_point(tt_point at, tti_handle handle)
{
    int64_t passed;

    (void)handle;
    if ((armed.points & TT_POINT_BIT(at)) == 0)
        return 0;
    passed = atomic_fetch_add(&armed.passed, 1) + 1;
    if (is_due(at, passed))
        happen((int)at);
    return 0;
}

void tt_count(unsigned points)
{
    atomic_store(&tt_at_point, NULL);
    armed.job = NULL;
    armed.points = points;
    atomic_store(&armed.passed, 0);
    atomic_store(&tt_at_point, at_point);
}

void tt_arm(const tt_job *job, round_page *page, int slot, int64_t nth)
{
    atomic_store(&tt_at_point, NULL);
    armed.job = job;
    armed.page = page;
    armed.slot = slot;
    armed.points = page->plan.points;
    armed.nth = nth;
    atomic_store(&armed.passed, 0);
    atomic_store(&armed.done, false);
    atomic_store(&tt_at_point, at_point);
}

int64_t tt_counted(void)
{
    atomic_store(&tt_at_point, NULL);
    return atomic_load(&armed.passed);
}

void tt_act_now(void)
{
    happen(TT_POINTS);
}

bool tt_acted(void)
{
    return atomic_load(&armed.done);
}

void tt_act_instead(void)
{
    atomic_store(&armed.page->hit_ns, tti_now_ns());
    kill_instead();
}
