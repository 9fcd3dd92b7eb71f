/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log.c - which lines are logged, and what one looks like: time, rank, level, message. Standard output is
 * never touched.
 *
 * Read    The variables are read at every line of the program's threads, so that it may change them, and are kept. Threads of ours
 *         read what was kept, and never the environment: a program that has made no thread takes itself for the only one that
 *         could read what it changes by setenv(), which may move it or give it back. Before a thread of ours is started they are
 *         read for it.
 * True    Each of what is kept is one atomic, stored by threads of the program's and loaded by ours. Relaxed: nothing else hangs on it, and
 *         a line that sees the old level for a moment is logged by the old level. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include "base/last.h"
#include "base/log.h"

enum { LINE_MAX_BYTES = 2300 };

static _Atomic int      kept_level = TTI_LOG_WARN; /* a tti_log_level: what was asked for, whatever the debug level is */
static _Atomic uint64_t kept_rank;                 /* the first characters of RANK's text, which are all of a rank's; 0: none */

static const char *const level_names[] = { "error", "warn", "info", "debug", "trace" };

/* torch's words, and its numbers. */
static const struct {
    const char   *word;
    tti_log_level level;
} torch_levels[] = {
    { "info", TTI_LOG_INFO },   { "warning", TTI_LOG_WARN }, { "error", TTI_LOG_ERROR },
    { "fatal", TTI_LOG_ERROR }, { "0", TTI_LOG_INFO },       { "1", TTI_LOG_WARN },
    { "2", TTI_LOG_ERROR },     { "3", TTI_LOG_ERROR },
};

static bool own_level(const char *text, tti_log_level *level_out)
{
    int i;

    for (i = TTI_LOG_ERROR; i <= TTI_LOG_TRACE; i++) {
        if (strcasecmp(text, level_names[i]) == 0) {
            *level_out = (tti_log_level)i;
            return true;
        }
    }
    return false;
}

static bool torch_level(const char *text, tti_log_level *level_out)
{
    size_t i;

    for (i = 0; i < sizeof torch_levels / sizeof torch_levels[0]; i++) {
        if (strcasecmp(text, torch_levels[i].word) == 0) {
            *level_out = torch_levels[i].level;
            return true;
        }
    }
    return false;
}

/* What TUTTI_LOG says, else its alias; false: something that is no level. */
static bool read_level(tti_log_level *level_out)
{
    const char *text = tti_env("TUTTI_LOG");

    if (text != NULL)
        return own_level(text, level_out);
    return torch_level(tti_env("TORCH_CPP_LOG_LEVEL"), level_out);
}

static tti_log_level level_asked_for(void)
{
    tti_log_level level = TTI_LOG_WARN;

    if (tti_is_own_thread())
        return (tti_log_level)atomic_load_explicit(&kept_level, memory_order_relaxed);
    (void)read_level(&level);
    atomic_store_explicit(&kept_level, (int)level, memory_order_relaxed);
    return level;
}

static tti_log_level level_wanted(void)
{
    const tti_log_level level = level_asked_for();

    if (level != TTI_LOG_INFO)
        return level;
    switch (tutti_get_debug_level()) {
    case TUTTI_DEBUG_DETAIL: return TTI_LOG_TRACE;
    case TUTTI_DEBUG_INFO: return TTI_LOG_DEBUG;
    case TUTTI_DEBUG_OFF: break;
    }
    return TTI_LOG_INFO;
}

bool tti_log_wanted(tti_log_level level)
{
    return level <= level_wanted();
}

/* The text of RANK, as far as it is kept. */
static uint64_t rank_said(void)
{
    uint64_t    packed = 0;
    const char *rank;

    if (tti_is_own_thread())
        return atomic_load_explicit(&kept_rank, memory_order_relaxed);
    rank = tti_env("RANK");
    if (rank != NULL)
        memcpy(&packed, rank, strnlen(rank, sizeof packed));
    atomic_store_explicit(&kept_rank, packed, memory_order_relaxed);
    return packed;
}

void tti_log_keep_env(void)
{
    (void)level_wanted(); /* the debug level, too, if that counts */
    (void)rank_said();
}

tutti_status tti_log_check(const char *name)
{
    const char   *text = tti_env(name);
    tti_log_level level;

    if (strcmp(name, "TUTTI_LOG") == 0 && text != NULL && !own_level(text, &level))
        return tti_fail(TUTTI_E_ARG,
                        "TUTTI_LOG is '%.64s', not 'error', 'warn', 'info', 'debug' or 'trace'\n"
                        "  next: set it to one of these, or unset it",
                        text);
    if (strcmp(name, "TORCH_CPP_LOG_LEVEL") == 0 && !torch_level(text, &level))
        return tti_fail(TUTTI_E_ARG, "TORCH_CPP_LOG_LEVEL is '%.64s', not 'ERROR', 'WARNING' or 'INFO'\n"
                                     "  next: set it to one of these, or unset it",
                        text);
    return TUTTI_OK;
}

tutti_status tti_log_check_env(void)
{
    tutti_debug_level debug;
    tutti_status      st = tti_log_check(tti_env("TUTTI_LOG") != NULL ? "TUTTI_LOG" : "TORCH_CPP_LOG_LEVEL");

    return st == TUTTI_OK ? tti_debug_level_read(&debug) : st;
}

void tti_log(tti_log_level level, const char *fmt, ...)
{
    char            line[LINE_MAX_BYTES], rank[sizeof(uint64_t) + 1] = "";
    uint64_t        packed;
    struct timespec now;
    struct tm       day;
    va_list         args;
    size_t          used;

    if (!tti_log_wanted(level))
        return;
    packed = rank_said();
    memcpy(rank, &packed, sizeof packed);
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &day);
    used = strftime(line, sizeof line, "%H:%M:%S", &day);
    used += (size_t)snprintf(line + used, sizeof line - used, ".%03ld tutti%s%s %s: ", now.tv_nsec / 1000000,
                             rank[0] != '\0' ? " rank " : "", rank, level_names[level]);
    va_start(args, fmt);
    vsnprintf(line + used, sizeof line - used, fmt, args);
    va_end(args);
    tti_log_deliver(level, line);
}
