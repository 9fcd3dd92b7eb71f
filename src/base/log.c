/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log.c - one line, one write: time, rank, level, message. Standard output is never touched. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include <tutti/private.h>

enum { LINE_MAX_BYTES = 2300 };

static const char *const level_names[] = { "error", "warn", "info", "debug" };

static tti_log_level level_wanted(void)
{
    const char *text = tti_env("TUTTI_LOG");
    int         i;

    for (i = TTI_LOG_ERROR; i <= TTI_LOG_DEBUG; i++)
        if (strcasecmp(text, level_names[i]) == 0)
            return (tti_log_level)i;
    return TTI_LOG_WARN;
}

void tti_log(tti_log_level level, const char *fmt, ...)
{
    char            line[LINE_MAX_BYTES];
    const char     *rank = tti_env("RANK");
    struct timespec now;
    struct tm       day;
    va_list         args;
    size_t          used;
    ssize_t         written;

    if (level > level_wanted())
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &day);
    used = strftime(line, sizeof line, "%H:%M:%S", &day);
    used += (size_t)snprintf(line + used, sizeof line - used, ".%03ld tutti%s%.12s %s: ",
                             now.tv_nsec / 1000000, rank != NULL ? " rank " : "",
                             rank != NULL ? rank : "", level_names[level]);
    va_start(args, fmt);
    vsnprintf(line + used, sizeof line - used - 1, fmt, args);
    va_end(args);
    used = strlen(line);
    line[used++] = '\n';
    written = write(STDERR_FILENO, line, used);
    (void)written; /* nowhere to report that the log itself cannot be written */
}
