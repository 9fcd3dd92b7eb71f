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
 * That ranks call the same thing is always compared, at any level: kind, number, dtype, operation, root, counts.
 * Every rank is told within a second, on one host and between hosts, also those whose messages nobody sends: in the call,
 * if it waits; in a later one, if its call was over before (the root of a broadcast, so also two ranks who both take
 * themselves for it). Ranks that call groups in different orders, and so wait for each other, two of them or more in a circle, are told
 * too, and so are ranks of which one makes a group that the other does not come to, as long as the thread that waits is its program's only
 * one. Where there is another thread, a library's own or one that has called nothing yet, or where calls run on the library's threads, or
 * the program has given functions that these call (works, hooks, a backend), somebody may still do what is waited for: nobody can know, and
 * the time-out tells. A value that is none of these is an error of whoever makes a
 * world. */
#ifndef TUTTI_DEBUG_H
#define TUTTI_DEBUG_H

#include <stdbool.h>
#include <stdint.h>
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

typedef struct tutti_group tutti_group;

/** A barrier that says who has not come. Rank 0 of the group hears from every other rank, then lets all go on.
 *
 * On a failure the group is finished on all members, whose errors have rank 0's words: a rank that comes late
 * to it, or was never missing, can read there who was. A rank that is known to be gone ends it at once, and is named first,
 * whoever else has not come yet.
 *
 * @param timeout_ms      for all ranks together, counted on rank 0; 0: the group's, TUTTI_INFINITE: none. Other
 *                        ranks wait as long as the group's time-out if that is longer, each from when it comes. Where one's time
 *                        is up before rank 0's, rank 0 tells that, and for whom it waited then
 * @param wait_all_ranks  false: give up at the first rank, in order, that does not come in time or is gone, and
 *                        name it and those that had come before it. true: name all that have not come in time
 *                        or, when somebody is gone, by then
 * @units    ms
 * @errors   TUTTI_E_ARG      timeout_ms is below -1
 *           TUTTI_E_TIMEOUT  ranks did not come; the text names them
 *           TUTTI_E_PEER     a rank is gone; the text names it
 * @threads  any; it is not one of the group's numbered collectives
 * @cost     2 (P-1) messages, all of them rank 0's
 * @source   torch.distributed.monitored_barrier (Gloo only; 30 min whatever the group's time-out is, and with
 *           wait_all_ranks for each rank) */
TUTTI_API tutti_status tutti_monitored_barrier(tutti_group *group, int64_t timeout_ms, bool wait_all_ranks);

/** Change the time-out of a group's later operations. What is under way keeps its own.
 *
 * @param timeout_ms  0: the world's, and of a world TUTTI_TIMEOUT_MS; TUTTI_INFINITE: none
 * @units    ms
 * @errors   TUTTI_E_ARG  timeout_ms is below -1
 * @threads  any
 * @source   torch.distributed.distributed_c10d._set_pg_timeout */
TUTTI_API tutti_status tutti_set_timeout(tutti_group *group, int64_t timeout_ms);

/** Stop one rank in a debugger, while the others wait. All ranks of the world call it.
 *
 * On rank, the command in TUTTI_DEBUGGER ("gdb") is started with -p and the process's number, on the terminal
 * if there is one. It goes on when the debugger lets it, or has ended. If the debugger cannot be started, the
 * log says where the process is, and it waits for a debugger to attach, or for SIGCONT. All others wait for it
 * in a barrier, and say so in their logs. The time-outs of the world and all its groups are raised to
 * timeout_ms first, and stay: whoever steps on makes the others wait again.
 *
 * @param rank        global rank
 * @param skip        so many calls before do nothing
 * @param timeout_ms  0: one hour; TUTTI_INFINITE: none
 * @units    ms
 * @errors   TUTTI_E_ARG      rank is none, skip is negative
 *           TUTTI_E_TIMEOUT  nobody came in time; the others go on all the same
 *           TUTTI_E_STATE    there is no world
 * @threads  one at a time per world
 * @source   torch.distributed.breakpoint */
TUTTI_API tutti_status tutti_breakpoint(int rank, int skip, int64_t timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
