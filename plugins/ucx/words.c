/* SPDX-License-Identifier: BSD-3-Clause
 *
 * words.c - what UCX says in its log, for our words.
 *
 * Why     A status of UCX's is one of thirty; which network was asked for in vain, and which there are, stands in its log alone, on
 *         standard output, which is the program's.
 * How     A handler in front of UCX's own sees each line. While this thread is in a call that may fail (tucx_listen() to tucx_heard())
 *         the last one of the worst kind is kept, of warnings and what is worse. None goes further, but what is fatal, unless
 *         UCX_LOG_LEVEL is set: then UCX says what it was asked to say, where it says it.
 * True    The handler is put in front once, by the first instance, as the object is not unloaded any more from then on. It is
 *         called on any thread that uses UCX in this process, MPI's and UCX's own, too: what it keeps is the thread's. */
#include "ucx_transport.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>

static _Thread_local char           *kept; /* [TUCX_WORDS]; NULL: nobody listens on this thread */
static _Thread_local ucs_log_level_t kept_level;
static bool                          shown; /* written before the handler is there */

static ucs_log_func_rc_t take_line(const char *file, unsigned line, const char *function, ucs_log_level_t level,
                                   const ucs_log_component_config_t *component, const char *format, va_list args)
{
    va_list ours;

    (void)file;
    (void)line;
    (void)function;
    (void)component;
    if (kept != NULL && level <= kept_level) {
        va_copy(ours, args);
        vsnprintf(kept, TUCX_WORDS, format, ours);
        va_end(ours);
        kept[strcspn(kept, "\n")] = '\0';
        kept_level = level;
    }
    return shown || level <= UCS_LOG_LEVEL_FATAL ? UCS_LOG_FUNC_RC_CONTINUE : UCS_LOG_FUNC_RC_STOP;
}

static void put_in_front(void)
{
    shown = getenv("UCX_LOG_LEVEL") != NULL;
    ucs_log_push_handler(take_line);
    if (!shown)
        (void)ucs_global_opts_set_value("LOG_LEVEL", "warn");
}

void tucx_listen(char words[TUCX_WORDS])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, put_in_front);
    words[0] = '\0';
    kept_level = UCS_LOG_LEVEL_WARN;
    kept = words;
}

void tucx_heard(void)
{
    kept = NULL;
}
