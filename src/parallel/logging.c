/* SPDX-License-Identifier: BSD-3-Clause
 *
 * logging.c - what a reducer tells of itself, entry by entry, in torch's names. Values are made as they are asked for. */
#include "parallel/parallel.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/backends.h>
#include <tutti/debug.h>
#include <tutti/private.h>

/* Text that grows. Without memory it ends early, and says so. */
typedef struct text {
    char  *at;
    size_t used, room;
} text;

typedef struct teller {
    tutti_logging_fn fn;
    void            *ctx;
    text             list;
} teller;

static void add(text *t, const char *fmt, ...) TUTTI_PRINTF(2, 3);

static void add(text *t, const char *fmt, ...)
{
    char    piece[64];
    char   *more;
    size_t  bytes;
    va_list args;

    va_start(args, fmt);
    vsnprintf(piece, sizeof piece, fmt, args);
    va_end(args);
    bytes = strlen(piece);
    if (t->used + bytes + 1 > t->room) {
        more = realloc(t->at, 2 * (t->used + bytes + 1));
        if (more == NULL)
            return;
        t->at = more;
        t->room = 2 * (t->used + bytes + 1);
    }
    memcpy(t->at + t->used, piece, bytes + 1);
    t->used += bytes;
}

static void tell(teller *to, const char *key, const char *value)
{
    to->fn(key, value != NULL ? value : "N/A", to->ctx);
}

static void tell_number(teller *to, const char *key, int64_t value)
{
    char digits[32];

    snprintf(digits, sizeof digits, "%" PRId64, value);
    tell(to, key, digits);
}

static void tell_list(teller *to, const char *key)
{
    tell(to, key, to->list.used > 0 ? to->list.at : "");
    to->list.used = 0;
}

/* ---- what they say ---- */

static const char *const debug_levels[] = { [TUTTI_DEBUG_OFF] = "OFF", [TUTTI_DEBUG_INFO] = "INFO",
                                            [TUTTI_DEBUG_DETAIL] = "DETAIL" };

static void tell_sizes(teller *to, const tutti_reducer *r, const char *key)
{
    int b;

    for (b = 0; b < r->layout.n_buckets; b++)
        add(&to->list, "%s%" PRId64, b > 0 ? ", " : "",
            r->buckets[b].count * (int64_t)tutti_dtype_size(r->buckets[b].dtype));
    tell_list(to, key);
}

static void tell_rebuilt(teller *to, const tutti_reducer *r)
{
    int b, k;

    tell_number(to, "has_rebuilt_buckets", r->has_rebuilt);
    if (!r->has_rebuilt)
        return;
    tell_sizes(to, r, "rebuilt_bucket_sizes");
    for (b = 0; b < r->layout.n_buckets; b++)
        for (k = 0; k < r->buckets[b].n; k++)
            add(&to->list, "%s%d", k > 0 ? " " : b > 0 ? ", " : "", r->buckets[b].params[k]);
    tell_list(to, "rebuilt_per_bucket_param_indices");
}

static void tell_dtypes(teller *to, const tutti_reducer *r)
{
    bool seen[TUTTI_DTYPE_COUNT] = { false };
    int  i;

    for (i = 0; i < r->n; i++) {
        const tutti_dtype dtype = r->slots[i].dtype;

        if (!seen[dtype])
            add(&to->list, "%s%s", to->list.used > 0 ? ", " : "", tutti_dtype_name(dtype));
        seen[dtype] = true;
    }
    tell_list(to, "dtypes");
}

/* As torch has it: of a list the largest one. */
static int64_t cap_of(const tutti_reducer *r)
{
    int64_t cap = r->caps.cap > 0 ? r->caps.cap : TTI_BUCKET_CAP;
    int     i;

    for (i = 0; i < r->caps.n_list; i++)
        cap = i == 0 || r->caps.list[i] > cap ? r->caps.list[i] : cap;
    return cap;
}

static void tell_construction(teller *to, const tutti_reducer *r)
{
    int64_t total = 0;
    int     i;

    for (i = 0; i < r->n; i++)
        total += (int64_t)r->slots[i].bytes;
    tell(to, "module_name", r->name);
    tell_number(to, "world_size", r->size);
    tell_number(to, "rank", r->rank);
    tell_number(to, "num_parameter_tensors", r->n);
    tell_number(to, "total_parameter_size_bytes", total);
    tell_dtypes(to, r);
    tell_sizes(to, r, "bucket_sizes");
    tell_number(to, "bucket_cap_bytes", cap_of(r));
    tell_number(to, "find_unused_parameters", r->caps.find_unused);
    tell_number(to, "gradient_as_bucket_view", r->views);
    if (r->caps.static_graph)
        tell_number(to, "static_graph", 1);
    tell(to, "backend_name", tutti_get_backend(r->group));
    tell(to, "master_addr", tti_env("MASTER_ADDR"));
    tell(to, "master_port", tti_env("MASTER_PORT"));
    tell(to, "torch_distributed_debug", debug_levels[tutti_get_debug_level()]);
    if (r->hook != NULL)
        tell(to, "comm_hook", tti_hook_name(r));
}

static void tell_times(teller *to, const tti_reducer_times *t)
{
    tell_number(to, "forward_compute_time", t->forward);
    tell_number(to, "backward_compute_time", t->backward);
    tell_number(to, "backward_comm_time", t->comm);
    tell_number(to, "backward_compute_comm_overlap_time", t->overlap);
    tell_number(to, "avg_forward_compute_time", (int64_t)t->avg_forward);
    tell_number(to, "avg_backward_compute_time", (int64_t)t->avg_backward);
    tell_number(to, "avg_backward_comm_time", (int64_t)t->avg_comm);
    tell_number(to, "avg_backward_compute_comm_overlap_time", (int64_t)t->avg_overlap);
    tell_number(to, "forward_compute_time_start", t->forward_start);
    tell_number(to, "backward_compute_time_start", t->backward_start);
    tell_number(to, "backward_compute_time_end", t->backward_end);
    tell_number(to, "backward_comm_time_start", t->comm_start);
    tell_number(to, "backward_comm_time_end", t->comm_end);
}

static void tell_running(teller *to, const tutti_reducer *r)
{
    int64_t unused = 0;
    int     i;

    for (i = 0; i < r->n; i++)
        unused += r->slots[i].unused ? (int64_t)r->slots[i].bytes : 0;
    tell_number(to, "iteration", r->iterations);
    tell_number(to, "unused_parameter_size", unused);
    tell_rebuilt(to, r);
    for (i = 0; i < r->n_order_before; i++)
        add(&to->list, "%s%d", i > 0 ? ", " : "", r->order_before[i]);
    tell_list(to, "prev_iteration_grad_ready_order_indices");
    tell_number(to, "num_buckets_reduced", r->n_reduced);
    if (tti_is_dynamic(r))
        tell_number(to, "can_set_static_graph", !r->varies);
    tell_times(to, &r->times);
    tell_number(to, "has_error", r->has_error);
    if (r->has_error)
        tell(to, "error", r->error);
}

void tutti_reducer_logging_data(tutti_reducer *reducer, tutti_logging_fn fn, void *ctx)
{
    teller to = { .fn = fn, .ctx = ctx };

    if (reducer == NULL || fn == NULL)
        return;
    tell_construction(&to, reducer);
    tell_running(&to, reducer);
    free(to.list.at);
}
