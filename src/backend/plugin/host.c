/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - what plug-ins are given, since they link no libtutti. */
#include "backend/plugin/plugin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/memory.h>
#include <tutti/plugin/store.h>
#include <tutti/private.h>
#include "backend/plugin/device.h"
#include "base/thread.h"
#include "kernel/kernel.h"
#include "store/store.h"

enum {
    SPINS = 200,           /* looks with nothing but a pause between them, */
    YIELDS = 50,           /* with the core given to others, */
    NAP_NS = 20000,        /* and with a sleep, which grows by as much each time, */
    NAP_MAX_NS = 1000000   /* to this */
};

/* The levels of the two headers are the same ones. */
_Static_assert((int)TTI_LOG_ERROR == (int)TUTTI_LOG_ERROR && (int)TTI_LOG_TRACE == (int)TUTTI_LOG_TRACE, "levels of log lines");

static void write_line(tutti_log_level level, const char *fmt, ...)
{
    char    line[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    tti_log((tti_log_level)level, "%s", line);
}

static void wait_word(const tutti_word *word, uint32_t seen, int64_t deadline_ns)
{
    tti_port *port = tti_port_system();

    port->ops->wait_word(port, word, seen, deadline_ns);
}

static void wake_word(const tutti_word *word)
{
    tti_port *port = tti_port_system();

    port->ops->wake_word(port, word);
}

static void idle(uint32_t *rounds, bool in_background)
{
    tti_port      *port = tti_port_system();
    const uint32_t round = *rounds < UINT32_MAX ? (*rounds)++ : *rounds;
    int64_t        nap_ns;

    if (round < SPINS && !in_background) {
        tti_pause();
    } else if (round < SPINS + YIELDS) {
        port->ops->yield(port);
    } else {
        nap_ns = (int64_t)(round - SPINS - YIELDS + 1) * NAP_NS;
        port->ops->sleep_until(port, tti_port_now(port) + (nap_ns < NAP_MAX_NS ? nap_ns : NAP_MAX_NS));
    }
}

static void reduce(tutti_op_kind kind, tutti_dtype dtype, void *out, const void *const *in, int n_in, int64_t count,
                   int n_ranks)
{
    tti_reduce(tti_reduce_kernel_for(kind, dtype), out, in, n_in, count, n_ranks);
}

static void scale(tutti_dtype dtype, void *out, const void *in, int64_t count, double factor)
{
    tti_scale(out, in, count, factor, dtype);
}

struct tutti_plugin_thread {
    tti_thread thread;
};

static tutti_status start_thread(const char *name, void (*body)(void *arg), void *arg, tutti_plugin_thread **thread_out)
{
    tutti_plugin_thread *made = calloc(1, sizeof *made);
    tutti_status         st;

    if (made == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to start thread '%s'", name);
    st = tti_thread_start_real(&made->thread, name, body, arg);
    if (st == TUTTI_OK)
        *thread_out = made;
    else
        free(made);
    return st;
}

static void join_thread(tutti_plugin_thread *thread)
{
    tti_thread_join_real(&thread->thread);
    free(thread);
}

const tutti_plugin_host tti_plugin_host = {
    .api = TUTTI_PLUGIN_API,
    .size = sizeof(tutti_plugin_host),
    .version = TUTTI_VERSION,
    .fail = tti_fail,
    .last_error = tutti_last_error,
    .status_name = tutti_status_name,
    .log = write_line,
    .now_ns = tti_now_ns,
    .wait_word = wait_word,
    .wake_word = wake_word,
    .idle = idle,
    .alloc = tutti_alloc,
    .free = tutti_free,
    .dtype_size = tutti_dtype_size,
    .dtype_name = tutti_dtype_name,
    .op_name = tutti_op_name,
    .reduce = reduce,
    .scale = scale,
    .store_set = tutti_store_set,
    .store_get = tti_store_look,
    .store_add = tutti_store_add,
    .store_wait = tutti_store_wait,
    .store_check = tutti_store_check,
    .store_compare_set = tutti_store_compare_set,
    .store_delete_key = tutti_store_delete_key,
    .bytes_free = tutti_bytes_free,
    .store_set_until = tti_store_set_until,
    .store_check_until = tti_store_check_until,
    .device = tti_device_ops_of,
    .thread_start = start_thread,
    .thread_join = join_thread,
    .store_stops = tutti_store_stops,
};
