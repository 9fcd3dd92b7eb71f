/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/debug.h - how much is said and checked, where it is said, and how ranks are looked at.
 *
 * Two settings decide what is logged: TUTTI_LOG (else TORCH_CPP_LOG_LEVEL), the most that is logged, and
 * the debug level, TUTTI_DEBUG (else TORCH_DISTRIBUTED_DEBUG):
 *
 * | TUTTI_LOG | debug level | logged |
 * |---|---|---|
 * | error | any | error |
 * | warn | any | warn |
 * | info | off | info |
 * | info | info | debug |
 * | info | detail | trace |
 * | debug, trace | any | debug, trace |
 *
 * That ranks call the same thing is always compared, at any level. A value that is none of these is an error
 * of whoever makes a world. */
#ifndef TUTTI_DEBUG_H
#define TUTTI_DEBUG_H

#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How much is looked at beyond what is always checked. */
typedef enum tutti_debug_level {
    TUTTI_DEBUG_OFF = 0,
    TUTTI_DEBUG_INFO = 1,
    TUTTI_DEBUG_DETAIL = 2
} tutti_debug_level;

/** The debug level: what was set last, else what the environment says, else TUTTI_DEBUG_OFF.
 * @errors   none; a variable that says nothing known counts as off here, and is refused by whoever makes a
 *           world
 * @threads  any
 * @source   torch.distributed.get_debug_level */
TUTTI_API tutti_debug_level tutti_get_debug_level(void);

/** Change the debug level of this process.
 * @errors   TUTTI_E_ARG  level is none
 * @threads  any
 * @source   torch.distributed.set_debug_level */
TUTTI_API tutti_status tutti_set_debug_level(tutti_debug_level level);

/** Change it to what TUTTI_DEBUG, else TORCH_DISTRIBUTED_DEBUG says now; neither: off.
 * @errors   TUTTI_E_ARG  the variable is not off, info or detail, in any case of letters; nothing is changed
 * @threads  any, if nobody calls setenv meanwhile
 * @source   torch.distributed.set_debug_level_from_env */
TUTTI_API tutti_status tutti_set_debug_level_from_env(void);

/** Levels of log lines, most urgent first. */
typedef enum tutti_log_level {
    TUTTI_LOG_ERROR = 0,
    TUTTI_LOG_WARN = 1,
    TUTTI_LOG_INFO = 2,
    TUTTI_LOG_DEBUG = 3,
    TUTTI_LOG_TRACE = 4
} tutti_log_level;

/** What a sink is called with: line is the whole line, without the newline, and borrowed for the call. */
typedef void (*tutti_log_fn)(tutti_log_level level, const char *line, void *ctx);

enum { TUTTI_LOG_SINKS_MAX = 8, TUTTI_LOG_SINK_NAME_MAX = 32 };

/** Register, replace or remove the receiver of log lines called name.
 *
 * There is one at first, "stderr", which writes lines to standard error. Every sink gets every line that is
 * logged at all. Lines that a sink causes reach no sink.
 *
 * @param name  1 .. TUTTI_LOG_SINK_NAME_MAX-1 bytes, copied
 * @param fn    NULL: remove it; "stderr" is then silent. NULL for a name that is not there does nothing
 * @param ctx   handed to fn
 *
 * @errors   TUTTI_E_ARG    the name is NULL, empty or too long
 *           TUTTI_E_STATE  called by a sink
 *           TUTTI_E_NOMEM  there are TUTTI_LOG_SINKS_MAX sinks already
 * @threads  any; fn is called on any thread, on several at once, sometimes under a lock of the library: it
 *           must not call back. When this returns nobody is inside the sink that was replaced or removed
 * @source   torch.distributed.logging_handlers */
TUTTI_API tutti_status tutti_log_set_sink(const char *name, tutti_log_fn fn, void *ctx);

/** Have "stderr" write to standard error again.
 * @errors   as tutti_log_set_sink
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_log_restore_stderr(void);

#ifdef __cplusplus
}
#endif
#endif
