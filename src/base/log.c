/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log.c - which lines are logged, and what one looks like: time, rank, level, message. Standard output is
 * never touched.
 *
 * The variables are read at every line, so that a program may change them before it makes threads. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include "base/log.h"

enum { LINE_MAX_BYTES = 2300 };

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

static tti_log_level level_wanted(void)
{
    tti_log_level level = TTI_LOG_WARN;

    if (!read_level(&level) || level != TTI_LOG_INFO)
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
    char            line[LINE_MAX_BYTES];
    const char     *rank = tti_env("RANK");
    struct timespec now;
    struct tm       day;
    va_list         args;
    size_t          used;

    if (!tti_log_wanted(level))
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &day);
    used = strftime(line, sizeof line, "%H:%M:%S", &day);
    used += (size_t)snprintf(line + used, sizeof line - used, ".%03ld tutti%s%.12s %s: ",
                             now.tv_nsec / 1000000, rank != NULL ? " rank " : "",
                             rank != NULL ? rank : "", level_names[level]);
    va_start(args, fmt);
    vsnprintf(line + used, sizeof line - used, fmt, args);
    va_end(args);
    tti_log_deliver(level, line);
}
