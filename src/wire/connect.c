/* SPDX-License-Identifier: BSD-3-Clause
 *
 * connect.c - connecting with patience, and whole messages over a stream.
 *
 * Why     The processes of a job start in any order: whoever comes before the server, or before its
 *         name is known, tries again until the deadline.
 * How     A round tries every address of the host once: the next one when the last has failed or has been
 *         silent for STAGGER_NS, all of them together for at most 10 s; whichever answers first is taken
 *         and the others are dropped (RFC 8305 calls this happy eyeballs). Once an address has refused, the
 *         silent ones get GRACE_NS more: its server may be there in the next round. Between rounds it
 *         sleeps: 10 ms, then 1.5 times longer each time up to 2 s, times a random factor of 0.5 to 1.5, so
 *         that a thousand ranks do not knock in step.
 * Once    For a server that was there a moment ago one round is enough, if it had an answer: a refusal says that the server
 *         has ended, and is told at once. That this host has no way to it (its interface is down, its route or its address is
 *         gone, the name cannot be asked for) says nothing of the server: it is waited out for as long as silence is, ATTEMPT_NS.
 * Fails   Only causes that may pass are waited out; the rest ends the call at once. */
#include "wire/addr.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "base/doubt.h"
#include "wire/interfaces.h"
#include "wire/ports.h"

enum { ADDRS_MAX = 16, CAUSE_MAX = 160 };

#define FIRST_PAUSE_NS   (10 * TTI_MS)
#define LONGEST_PAUSE_NS (2 * TTI_SECOND)
#define ONCE_PAUSE_NS    (250 * TTI_MS) /* what has no way leaves no host: nobody's door is knocked at */
#define ATTEMPT_NS       (10 * TTI_SECOND)
#define STAGGER_NS       (250 * TTI_MS)
#define GRACE_NS         (500 * TTI_MS)
#define FIRST_WORD_NS    (3 * TTI_SECOND)
#define WORD_NS          (10 * TTI_SECOND)

typedef struct attempt {
    tti_port   *port;
    const char *host;
    uint16_t    tcp_port;
    int64_t     deadline_ns;
    int64_t     word_ns; /* when to say that it still tries */
    int         tries;
    bool        no_way; /* the last round came nowhere, and met nobody who refused */
    char        cause[CAUSE_MAX]; /* of the last failure; "": none yet */
    const char *advice;           /* of the last round, on what to do; "": nothing is known that helps */
    tti_handle  handle;
} attempt;

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later_by(int64_t now, int64_t ns)
{
    return now > TTI_FOREVER - ns ? TTI_FOREVER : now + ns;
}

static bool may_pass(int err)
{
    switch (err) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRNOTAVAIL:
    case ETIMEDOUT:
    case EAGAIN:
    case EPIPE: return true;
    default: return false;
    }
}

/* Causes on the way, most of them on this host itself: no word of the one that was to be reached. */
static bool is_no_way(int err)
{
    switch (err) {
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRNOTAVAIL: return true;
    default: return false;
    }
}

/* Patience is not silence: say after FIRST_WORD_NS, and then every WORD_NS, what is being waited for. */
static void say_still_trying(attempt *at)
{
    const int64_t now = tti_port_now(at->port);
    const int64_t left_ms = tti_left_ms(at->port, at->deadline_ns);
    const int     line = (int)strcspn(at->advice, "\n"); /* of advice: what is known beyond the cause */
    const char   *cause = at->cause[0] != '\0' ? at->cause : "no answer yet";

    if (now < at->word_ns)
        return;
    at->word_ns = now + WORD_NS;
    if (left_ms < 0)
        tti_log(TTI_LOG_WARN, "still trying to connect to %s port %u: %s%.*s", at->host, at->tcp_port, cause,
                line, at->advice);
    else
        tti_log(TTI_LOG_WARN, "still trying to connect to %s port %u, for another %lld s: %s%.*s", at->host,
                at->tcp_port, (long long)(left_ms / 1000), cause, line, at->advice);
}

/* The addresses of a host, on their way. A handle is there while its connection is. */
typedef struct race {
    attempt        *at;
    const tti_addr *addrs;
    tti_poll        polls[ADDRS_MAX];
    int             n, n_started, n_running;
    int             n_named;  /* of addrs: what the name stands for; the others are guesses (add_own) */
    int64_t         next_ns;  /* when to start one more */
    int64_t         until_ns; /* when to give up */
    bool            may_pass;
    bool            no_way;   /* to one of them */
    bool            refused;  /* by one that the name stands for */
    int             err; /* of the last that failed */
} race;

static void lost(race *r, int i, int err)
{
    char text[TTI_ADDR_TEXT_MAX], reason[64];

    r->err = err;
    r->may_pass = r->may_pass || may_pass(err);
    r->no_way = r->no_way || is_no_way(err);
    r->refused = r->refused || (i < r->n_named && (err == ECONNREFUSED || err == ECONNRESET));
    snprintf(r->at->cause, sizeof r->at->cause, "%s: %s", tti_addr_format(&r->addrs[i], text, sizeof text),
             strerror_r(err, reason, sizeof reason));
    r->next_ns = tti_port_now(r->at->port); /* no need to wait for it any more */
    if (may_pass(err))
        r->until_ns = earlier(r->until_ns, later_by(r->next_ns, GRACE_NS));
}

static void stop(race *r, int i)
{
    r->at->port->ops->close(r->at->port, r->polls[i].handle);
    r->polls[i].handle = TTI_NO_HANDLE;
    r->n_running--;
}

static void start_next(race *r)
{
    tti_port  *port = r->at->port;
    const int  i = r->n_started++;
    tti_handle handle = TTI_NO_HANDLE;
    int        err = port->ops->connect(port, &r->addrs[i], &handle);

    r->at->tries++;
    r->polls[i] = (tti_poll){ .handle = TTI_NO_HANDLE, .want = TTI_WRITE };
    if (err != 0) {
        lost(r, i, -err);
        return;
    }
    r->polls[i].handle = handle;
    r->n_running++;
    r->next_ns = later_by(tti_port_now(port), STAGGER_NS);
}

/* Look at those that poll has something to say about. True: one is connected, and has been taken. */
static bool collect(race *r)
{
    tti_port *port = r->at->port;
    int       i, err;

    for (i = 0; i < r->n_started; i++) {
        if (r->polls[i].handle == TTI_NO_HANDLE || r->polls[i].got == 0)
            continue;
        err = port->ops->connect_result(port, r->polls[i].handle);
        if (err == 0) {
            r->at->handle = r->polls[i].handle;
            r->polls[i].handle = TTI_NO_HANDLE;
            r->n_running--;
            return true;
        }
        stop(r, i);
        lost(r, i, -err);
    }
    return false;
}

/* Until one is connected, all have failed, or the time is up. */
static bool run_race(race *r)
{
    tti_port *port = r->at->port;
    int64_t   wake_ns;
    bool      won = false;
    int       i;

    r->until_ns = earlier(r->at->deadline_ns, later_by(tti_port_now(port), ATTEMPT_NS));
    while (!won && (r->n_running > 0 || r->n_started < r->n)) {
        while (r->n_started < r->n && (r->n_running == 0 || tti_port_now(port) >= r->next_ns))
            start_next(r);
        if (r->n_running == 0)
            continue;
        wake_ns = r->n_started < r->n ? earlier(r->until_ns, r->next_ns) : r->until_ns;
        tti_doubt_poll(port, r->polls, r->n_started, earlier(wake_ns, r->at->word_ns));
        won = collect(r);
        if (!won)
            say_still_trying(r->at);
        if (!won && r->n_started == r->n && tti_port_now(port) >= r->until_ns)
            break;
        if (!won && (tti_port_now(port) >= r->at->deadline_ns || tti_doubt_is_vain()))
            break;
    }
    for (i = 0; i < r->n_started; i++)
        if (r->polls[i].handle != TTI_NO_HANDLE) {
            stop(r, i);
            if (!won)
                lost(r, i, ETIMEDOUT);
        }
    return won;
}

static bool all_own(tti_port *port, const char *host, const tti_addr *addrs, int n)
{
    int i;

    if (n == 0 || strncmp(host, "localhost", strlen("localhost")) == 0)
        return false;
    for (i = 0; i < n; i++)
        if (!tti_addr_is_own(port, &addrs[i]))
            return false;
    return true;
}

static const char *advice_for_own(tti_port *port, const char *host, const tti_addr *addrs, int n)
{
    return all_own(port, host, addrs, n)
               ? "; that is this host itself\n  next: start who is to listen here (rank 0, or the store); if it is on "
                 "another host, name it by an address that only it has (MASTER_ADDR)"
               : "";
}

static const char *advice_after(const race *r, const char *host)
{
    const char *advice = advice_for_own(r->at->port, host, r->addrs, r->n);

    if (advice[0] != '\0')
        return advice;
    switch (r->err) {
    case ECONNREFUSED:
        return "\n  next: start who is to listen there (rank 0, or the store), or correct the address and port (MASTER_ADDR, "
               "MASTER_PORT)";
    case ETIMEDOUT:
    case EHOSTUNREACH:
        return "\n  next: see whether that host is up (ping), and whether a firewall drops what goes to that port; or correct "
               "the address and port (MASTER_ADDR, MASTER_PORT)";
    case ENETUNREACH:
        return "\n  next: see which way leads there (ip route get), or correct the address (MASTER_ADDR)";
    default: return "";
    }
}

/* fe80::1 is on every link: which one is meant has to be said. */
static bool lacks_scope(const tti_addr *addrs, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (addrs[i].family != TTI_ADDR_IP6 || addrs[i].ip[0] != 0xfe || (addrs[i].ip[1] & 0xc0) != 0x80 || addrs[i].scope != 0)
            return false;
    return n > 0;
}

/* Where else a server may be that was told `host`: on this host under its own name, or, where this host is
 * behind a service, on loopback. */
static int add_own(tti_port *port, const char *host, tti_addr *addrs, int n, tti_addr *next)
{
    bool any = false;

    if (tti_addr_beyond_loopback(port, host, addrs, n, next))
        return n + 1;
    if (tti_listens_any(&any) != TUTTI_OK || !any || all_own(port, host, addrs, n))
        return n;
    *next = (tti_addr){ .family = TTI_ADDR_IP4, .port = addrs[0].port, .ip = { 127, 0, 0, 1 } };
    return n + 1;
}

/* Without loopback 127.0.0.1 cannot be reached, which connecting says at once; packets to one's own other addresses, which travel
 * through it as well, are lost, silently. Listing the interfaces takes longer than connecting does. */
static bool would_fail_in_silence(const tti_addr *addrs, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (!tti_addr_is_loopback(&addrs[i]))
            return true;
    return false;
}

static tutti_status check_loopback(tti_port *port, const char *host, const tti_addr *addrs, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (!tti_addr_is_own(port, &addrs[i]))
            return TUTTI_OK;
    if (n == 0 || tti_loopback_is_up(port))
        return TUTTI_OK;
    return tti_fail(TUTTI_E_NETWORK,
                    "cannot connect to %s, which is this host itself: its loopback interface is down\n"
                    "  next: ip link set lo up",
                    host);
}

/* Every address once. *again: worth another round. */
static tutti_status try_host(attempt *at, const char *host, uint16_t tcp_port, bool *again)
{
    tti_addr addrs[ADDRS_MAX];
    race     r = { .at = at, .addrs = addrs };
    int      n;

    *again = at->no_way = true;
    if (at->port->ops->resolve(at->port, host, tcp_port, addrs, ADDRS_MAX - 1, &r.n) != TUTTI_OK) {
        at->tries++;
        snprintf(at->cause, sizeof at->cause, "%s", tutti_last_error());
        at->cause[strcspn(at->cause, "\n")] = '\0';
        at->advice = "\n  next: enter it in DNS or in /etc/hosts of this host, or use an address";
        return TUTTI_E_NETWORK;
    }
    n = r.n_named = r.n;
    if (would_fail_in_silence(addrs, n) && check_loopback(at->port, host, addrs, n) != TUTTI_OK) {
        *again = false;
        return TUTTI_E_NETWORK;
    }
    r.n = add_own(at->port, host, addrs, n, &addrs[n]);
    if (run_race(&r))
        return TUTTI_OK;
    if (!would_fail_in_silence(addrs, n) && check_loopback(at->port, host, addrs, n) != TUTTI_OK) {
        *again = false;
        return TUTTI_E_NETWORK;
    }
    at->no_way = r.no_way && !r.refused;
    at->advice = advice_after(&r, host);
    if (r.may_pass)
        return TUTTI_E_NETWORK;
    *again = false;
    if (lacks_scope(addrs, n))
        return tti_fail(TUTTI_E_ARG,
                        "cannot open a connection to %s port %u: an address of one link does not say which link is meant\n"
                        "  next: write its interface behind it: %s%%eth0",
                        host, tcp_port, host);
    return tti_fail_errno(r.err, "cannot open a connection to %s port %u", host, tcp_port);
}

/* Sleep about pause; never past the deadline. */
static void rest(attempt *at, int64_t pause_ns)
{
    uint32_t dice;
    int64_t  ns;

    at->port->ops->random(at->port, &dice, sizeof dice);
    ns = pause_ns / 2 + (int64_t)((double)pause_ns * (double)dice / 4294967296.0);
    at->port->ops->sleep_until(at->port,
                               earlier(at->deadline_ns, later_by(tti_port_now(at->port), ns)));
}

static tutti_status connect_rounds(tti_port *port, const char *host, uint16_t tcp_port,
                                   int64_t deadline_ns, bool once, tti_handle *handle_out)
{
    const int64_t start = tti_port_now(port), longest_ns = once ? ONCE_PAUSE_NS : LONGEST_PAUSE_NS;
    attempt       at = { .port = port, .host = host, .tcp_port = tcp_port, .deadline_ns = deadline_ns,
                         .word_ns = once ? TTI_FOREVER : start + FIRST_WORD_NS, .advice = "",
                         .handle = TTI_NO_HANDLE };
    int64_t       pause_ns = FIRST_PAUSE_NS;
    bool          again = true;
    char          who[240];
    tutti_status  st;

    for (;;) {
        st = try_host(&at, host, tcp_port, &again);
        if (st == TUTTI_OK) {
            *handle_out = at.handle;
            return TUTTI_OK;
        }
        if (!again)
            return st;
        if (tti_doubt_is_vain()) {
            snprintf(who, sizeof who, "the server at %.200s port %u", host, tcp_port);
            return tti_doubt_fail(who);
        }
        if (once && (!at.no_way || tti_port_now(port) >= later_by(start, ATTEMPT_NS)))
            break;
        say_still_trying(&at);
        rest(&at, pause_ns);
        if (tti_port_now(port) >= deadline_ns)
            break; /* a try without time would hide the cause */
        pause_ns = earlier(pause_ns + pause_ns / 2, longest_ns);
    }
    return tti_fail(
        TUTTI_E_NETWORK, "cannot connect to %s port %u: tried %d time%s in %lld ms, last: %s%s", host,
        tcp_port, at.tries, at.tries == 1 ? "" : "s", (long long)((tti_port_now(port) - start) / TTI_MS), at.cause,
        at.advice);
}

tutti_status tti_connect(tti_port *port, const char *host, uint16_t tcp_port, int64_t deadline_ns,
                         tti_handle *handle_out)
{
    return connect_rounds(port, host, tcp_port, deadline_ns, false, handle_out);
}

tutti_status tti_connect_once(tti_port *port, const char *host, uint16_t tcp_port,
                              int64_t deadline_ns, tti_handle *handle_out)
{
    return connect_rounds(port, host, tcp_port, deadline_ns, true, handle_out);
}

bool tti_is_refused(tti_port *port, const char *host, uint16_t tcp_port, int64_t deadline_ns)
{
    tti_addr addrs[ADDRS_MAX];
    attempt  at = { .port = port, .host = host, .tcp_port = tcp_port, .deadline_ns = deadline_ns, .word_ns = TTI_FOREVER,
                    .advice = "", .handle = TTI_NO_HANDLE };
    race     r = { .at = &at, .addrs = addrs };

    if (port->ops->resolve(port, host, tcp_port, addrs, ADDRS_MAX, &r.n) != TUTTI_OK)
        return false;
    if (!run_race(&r))
        return r.err == ECONNREFUSED;
    port->ops->close(port, at.handle);
    return false;
}

/* Wait until the stream is ready again. */
static tutti_status io_wait(tti_port *port, tti_handle handle, uint8_t want, const char *who,
                            size_t done, size_t bytes, int64_t deadline_ns)
{
    tti_poll set = { .handle = handle, .want = want };

    tti_doubt_poll(port, &set, 1, deadline_ns);
    if (set.got == 0 && tti_doubt_is_vain())
        return tti_doubt_fail(who);
    if (set.got == 0 && tti_port_now(port) >= deadline_ns)
        return tti_fail(TUTTI_E_TIMEOUT, "%s took too long: %zu of %zu bytes %s", who, done, bytes,
                        want == TTI_READ ? "received" : "sent");
    return TUTTI_OK;
}

tutti_status tti_io_send_all(tti_port *port, tti_handle handle, const void *data, size_t bytes,
                             const char *who, int64_t deadline_ns)
{
    tutti_status st;
    size_t       done = 0;

    while (done < bytes) {
        const tti_part part = { .data = (const char *)data + done, .size = bytes - done };
        int64_t        n = port->ops->send(port, handle, &part, 1);

        if (n == -EAGAIN) {
            st = io_wait(port, handle, TTI_WRITE, who, done, bytes, deadline_ns);
            if (st != TUTTI_OK)
                return st;
        } else if (n < 0) {
            return tti_fail_errno_as(TUTTI_E_NETWORK, (int)-n, "lost the connection to %s", who);
        } else {
            done += (size_t)n;
        }
    }
    return TUTTI_OK;
}

tutti_status tti_io_recv_all(tti_port *port, tti_handle handle, void *out, size_t bytes,
                             const char *who, int64_t deadline_ns)
{
    tutti_status st;
    size_t       done = 0;

    while (done < bytes) {
        int64_t n = port->ops->recv(port, handle, (char *)out + done, bytes - done);

        if (n == -EAGAIN) {
            st = io_wait(port, handle, TTI_READ, who, done, bytes, deadline_ns);
            if (st != TUTTI_OK)
                return st;
        } else if (n == 0) {
            return tti_fail(TUTTI_E_NETWORK, "lost the connection to %s: closed by the other side",
                            who);
        } else if (n < 0) {
            return tti_fail_errno_as(TUTTI_E_NETWORK, (int)-n, "lost the connection to %s", who);
        } else {
            done += (size_t)n;
        }
    }
    return TUTTI_OK;
}
