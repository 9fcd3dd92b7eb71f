/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fails.c - which call fails, and how calls of the port do. */
#include "fails.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include "torture/points.h"

static _Thread_local int own_side = TT_NOBODY;

static struct {
    _Atomic int     what; /* TT_RESOURCES: nothing is watched */
    _Atomic int     side;
    _Atomic int64_t n;
    _Atomic int     variant;
    _Atomic bool    on;
    _Atomic int64_t passed;
    _Atomic bool    failed;
} plan = { .what = TT_RESOURCES };

int tt_side_of_thread(void);

int tt_side_of_thread(void)
{
    return own_side;
}

const char *tt_resource_name(tt_resource what)
{
    static const char *const names[TT_RESOURCES] = { "memory", "port", "system" };

    return names[what];
}

void tt_be_side(int side)
{
    own_side = side;
}

bool tt_is_to_fail(tt_resource what, int64_t *which_out)
{
    int64_t passed, n;

    if (atomic_load(&plan.what) != (int)what || own_side != atomic_load(&plan.side) || own_side == TT_NOBODY)
        return false;
    passed = atomic_fetch_add(&plan.passed, 1) + 1;
    n = atomic_load(&plan.n);
    *which_out = passed + atomic_load(&plan.variant);
    if (n == 0 || passed < n || (passed > n && !atomic_load(&plan.on)))
        return false;
    atomic_store(&plan.failed, true);
    return true;
}

/* The ways in which the kernel may refuse each of them. */
static int at_point(tt_point at, tti_handle handle)
{
    static const int connecting[] = { ENOBUFS, EMFILE, ECONNREFUSED, ENETUNREACH, EADDRNOTAVAIL };
    static const int connected[] = { ECONNREFUSED, ETIMEDOUT, ECONNRESET, EHOSTUNREACH };
    static const int accepting[] = { EAGAIN, EMFILE, ECONNABORTED, ENOBUFS };
    static const int sending[] = { TT_SHORT, EAGAIN, ECONNRESET, EPIPE, ENOBUFS };
    static const int receiving[] = { TT_SHORT, EAGAIN, ECONNRESET, ETIMEDOUT };
    static const int making[] = { EMFILE, ENFILE, ENOMEM };
    int64_t          which;

    (void)handle;
    if (!tt_is_to_fail(TT_PORT, &which))
        return 0;
#define ONE_OF(list) list[(size_t)which % (sizeof list / sizeof list[0])]
    switch (at) {
    case TT_AT_CONNECT: return ONE_OF(connecting);
    case TT_AT_CONNECT_RESULT: return ONE_OF(connected);
    case TT_AT_ACCEPT: return ONE_OF(accepting);
    case TT_AT_SEND: return ONE_OF(sending);
    case TT_AT_RECV: return ONE_OF(receiving);
    case TT_AT_SEND_FDS: return which % 2 == 0 ? EAGAIN : EPIPE;
    case TT_AT_RECV_FDS: return which % 2 == 0 ? EAGAIN : ECONNRESET;
    case TT_AT_LISTEN: return which % 2 == 0 ? EADDRINUSE : EMFILE;
    default: return ONE_OF(making);
    }
#undef ONE_OF
}

void tt_fail_at(tt_resource what, int side, int64_t n, int variant, bool on)
{
    atomic_store(&plan.what, TT_RESOURCES);
    atomic_store(&plan.side, side);
    atomic_store(&plan.n, n);
    atomic_store(&plan.variant, variant);
    atomic_store(&plan.on, on);
    atomic_store(&plan.passed, 0);
    atomic_store(&plan.failed, false);
    atomic_store(&tt_at_point, at_point);
    atomic_store(&plan.what, (int)what);
}

int64_t tt_fail_end(void)
{
    atomic_store(&plan.what, TT_RESOURCES);
    return atomic_load(&plan.passed);
}

bool tt_has_failed(void)
{
    return atomic_load(&plan.failed);
}
