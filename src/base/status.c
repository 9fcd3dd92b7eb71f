/* SPDX-License-Identifier: BSD-3-Clause
 *
 * status.c - names of statuses, and the words of each thread's last failure. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "base/clip.h"
#include "base/foreign.h"

enum { WORDS_MAX = TTI_LAST_ERROR_MAX };

static _Thread_local char     words[WORDS_MAX];
static _Thread_local uint32_t n_said; /* tti_words_said() */

#define STATUSES(X)                                                                                \
    X(TUTTI_OK)                                                                                    \
    X(TUTTI_E_ARG)                                                                                 \
    X(TUTTI_E_STATE)                                                                               \
    X(TUTTI_E_UNSUPPORTED)                                                                         \
    X(TUTTI_E_NOMEM)                                                                               \
    X(TUTTI_E_TIMEOUT)                                                                             \
    X(TUTTI_E_PEER)                                                                                \
    X(TUTTI_E_ABORTED)                                                                             \
    X(TUTTI_E_BACKEND)                                                                             \
    X(TUTTI_E_NETWORK)                                                                             \
    X(TUTTI_E_STORE)                                                                               \
    X(TUTTI_E_MISMATCH)                                                                            \
    X(TUTTI_E_AUTH)                                                                                \
    X(TUTTI_E_IO)                                                                                  \
    X(TUTTI_E_REMOTE)                                                                              \
    X(TUTTI_E_EMPTY)

const char *tutti_status_name(tutti_status status)
{
#define NAME(s)                                                                                    \
    case s: return #s;
    switch (status) {
        STATUSES(NAME)
    }
#undef NAME
    return "TUTTI_E_?";
}

const char *tutti_last_error(void)
{
    return words;
}

uint32_t tti_words_said(void)
{
    return n_said;
}

static void keep(const char fresh[WORDS_MAX])
{
    memcpy(words, fresh, WORDS_MAX);
    n_said++;
}

tutti_status tti_fail(tutti_status status, const char *fmt, ...)
{
    char    fresh[WORDS_MAX]; /* the arguments may quote the old words */
    va_list args;

    va_start(args, fmt);
    tti_clip_args(fresh, sizeof fresh, fmt, args);
    va_end(args);
    keep(fresh);
    return status;
}

static void say_errno(int err, const char *fmt, va_list args)
{
    char   fresh[WORDS_MAX];
    char   text[128];
    size_t used;

    vsnprintf(fresh, sizeof fresh, fmt, args);
    used = strlen(fresh);
    snprintf(fresh + used, sizeof fresh - used, ": %s", strerror_r(err, text, sizeof text));
    keep(fresh);
}

static tutti_status status_of_errno(int err)
{
    switch (err) {
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EAGAIN: return TUTTI_E_NOMEM;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
    case ENOTCONN:
    case ETIMEDOUT: return TUTTI_E_NETWORK;
    default: return TUTTI_E_IO;
    }
}

tutti_status tti_fail_errno(int err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say_errno(err, fmt, args);
    va_end(args);
    return status_of_errno(err);
}

tutti_status tti_fail_errno_as(tutti_status status, int err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say_errno(err, fmt, args);
    va_end(args);
    return status;
}
