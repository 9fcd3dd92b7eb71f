/* SPDX-License-Identifier: BSD-3-Clause
 *
 * detail_log.c - a line for every operation of a group, at the debug level "detail".
 *
 * Why     Which rank left the common path, and with which data, shows when the lines of all ranks are laid
 *         side by side: equal numbers stand for the same collective, equal hashes for the same bytes.
 * How     Two hooks like a program's: one line when an operation is issued, one when it has ended well.
 *         Whether they are there is decided when the group is made; a group without them pays nothing.
 * Cost    Every byte read and written is hashed, on the issuing thread. What an asynchronous operation has
 *         written belongs to the program again when it ends: it is not looked at. */
#include "group/hooks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"

enum { TEXT_MAX = 512 };

/* FNV-1a, eight bytes at a time: a fingerprint for eyes, not for enemies. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t             word;

    for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    for (; bytes > 0; bytes--, at++)
        hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_spans(const tutti_span *spans, int n)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    int      i;

    for (i = 0; i < n; i++)
        if (spans[i].count > 0 && spans[i].device.type == TUTTI_CPU)
            hash = hash_bytes(hash, spans[i].data, (size_t)spans[i].count * tutti_dtype_size(spans[i].dtype));
    return hash;
}

/* ", read 1000 + 3 f32". */
static void describe(const char *word, const tutti_span *spans, int n, char *out, size_t bytes)
{
    int64_t elements = 0;
    int     i;

    out[0] = '\0';
    for (i = 0; i < n; i++)
        elements += spans[i].count;
    if (n == 1)
        snprintf(out, bytes, ", %s %" PRId64 " %s", word, elements, tutti_dtype_name(spans[0].dtype));
    else if (n > 1)
        snprintf(out, bytes, ", %s %d buffers with %" PRId64 " %s", word, n, elements,
                 tutti_dtype_name(spans[0].dtype));
}

/* "all_reduce #12 (native:all_reduce) on group '0'". */
static void title(const tutti_op_event *event, char *out, size_t bytes)
{
    if (event->seq != 0)
        snprintf(out, bytes, "%s #%" PRIu64 " (%s) on group '%s'", event->op, event->seq, event->name,
                 event->group_name);
    else
        snprintf(out, bytes, "%s (%s) with rank %d, tag %d, on group '%s'", event->op, event->name,
                 event->peer, event->tag, event->group_name);
}

static void log_begin(const tutti_op_event *event, void *ctx)
{
    char what[TEXT_MAX / 2], read[64], write[64];

    (void)ctx;
    title(event, what, sizeof what);
    describe("reads", event->ins, event->n_ins, read, sizeof read);
    describe("writes", event->outs, event->n_outs, write, sizeof write);
    tti_log(TTI_LOG_TRACE, "%s begins%s%s, hash %016" PRIx64, what, read, write,
            hash_spans(event->ins, event->n_ins));
}

static void log_end(const tutti_op_event *event, void *ctx)
{
    char what[TEXT_MAX / 2];
    char took[48] = "";

    (void)ctx;
    title(event, what, sizeof what);
    if (event->duration_ns >= 0)
        snprintf(took, sizeof took, " after %.3f ms", (double)event->duration_ns / 1e6);
    if (event->is_async)
        tti_log(TTI_LOG_TRACE, "%s is complete%s", what, took);
    else
        tti_log(TTI_LOG_TRACE, "%s is complete%s, hash %016" PRIx64, what, took,
                hash_spans(event->outs, event->n_outs));
}

tutti_status tti_detail_log_attach(tutti_group *group)
{
    tutti_status st;

    if (tutti_get_debug_level() != TUTTI_DEBUG_DETAIL || !tti_log_wanted(TTI_LOG_TRACE))
        return TUTTI_OK;
    st = tti_hook_add(group, TUTTI_HOOK_PRE, log_begin, NULL, NULL);
    return st == TUTTI_OK ? tti_hook_add(group, TUTTI_HOOK_COMPLETION, log_end, NULL, NULL) : st;
}
