/* SPDX-License-Identifier: BSD-3-Clause
 *
 * words.c - what is said of a rank, and what the environment says of silence. */
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "base/env.h"
#include "transport/health/book.h"
#include "watch/control.h"

/* "is behind", or, where it is known since when, "for_long for 3.2 s, behind". */
typedef struct form {
    const char *is, *for_long, *behind;
} form;

static const form forms[] = {
    [TTI_LIFE_SILENT] = { "gives no sign of life", "has given no sign of life",
                          ", though its process is there: it gets no core, or hangs in the kernel" },
    [TTI_LIFE_STOPPED] = { "is stopped by a signal", "has been stopped by a signal", "; kill -CONT lets it go on" },
    [TTI_LIFE_PAUSED] = { "is held by a debugger", "has been held by a debugger", "" },
    [TTI_LIFE_MUTE] = { "gives no sign of life", "has given no sign of life", ", though its host answers: it is stopped, or gets no core, or the "
                        "way here is cut or too slow for its heartbeats" },
    [TTI_LIFE_UNREACHABLE] = { "is unreachable: nothing comes from its host", "is unreachable: nothing has come from its host", "" },
};

static const char *word_stream(int end)
{
    switch ((tti_stream_end)end) {
    case TTI_STREAM_REFUSED:
    case TTI_STREAM_TURNED_AWAY: return "nobody listens where it did";
    case TTI_STREAM_CUT: break;
    }
    return "its connection ended without a goodbye";
}

static void word_cause(const tti_end_cause *cause, char *out, size_t bytes)
{
    switch (cause->kind) {
    case TTI_CAUSE_UNKNOWN: snprintf(out, bytes, "cause unknown"); break;
    case TTI_CAUSE_STREAM: snprintf(out, bytes, "%s, cause unknown", word_stream(cause->value)); break;
    case TTI_CAUSE_EXIT: snprintf(out, bytes, "exit code %d", cause->value); break;
    case TTI_CAUSE_SIGNAL:
        snprintf(out, bytes, "signal %d (%s)", cause->value,
                 sigdescr_np(cause->value) != NULL ? sigdescr_np(cause->value) : "unknown");
        break;
    }
}

static bool may_be_walled(const tti_end_cause *cause)
{
    return cause->kind == TTI_CAUSE_STREAM && cause->value == TTI_STREAM_TURNED_AWAY;
}

const char *tti_health_words(const tti_health_report *report, int64_t now_ns, char out[TTI_HEALTH_TEXT_MAX])
{
    const double seconds = report->since_ns != 0 ? (double)(now_ns - report->since_ns) / (double)TTI_SECOND : 0;
    char         how[80], since[32] = "";

    out[0] = '\0';
    if (report->since_ns != 0)
        snprintf(since, sizeof since, " for %.1f s", seconds);
    if (report->life == TTI_LIFE_LEFT) {
        snprintf(out, TTI_HEALTH_TEXT_MAX, "has left");
    } else if (report->life == TTI_LIFE_DEAD) {
        word_cause(&report->cause, how, sizeof how);
        snprintf(out, TTI_HEALTH_TEXT_MAX, "is gone: its process has ended%s (%s)", may_be_walled(&report->cause) ? ", or a firewall "
                 "there resets what comes" : "", how);
    } else if (report->life != TTI_LIFE_WELL) {
        const form *f = &forms[report->life];

        snprintf(out, TTI_HEALTH_TEXT_MAX, "%s%s%s%s", since[0] != '\0' ? f->for_long : f->is, since, f->behind,
                 report->nobody_heard ? "; nothing comes from any other host: it may be this one that is cut off" : "");
    }
    return out;
}

tutti_status tti_health_read_env(int64_t *heartbeat_ms_out, int64_t *silent_ms_out)
{
    int64_t      heartbeat_ms = 0, silent_ms = 0;
    tutti_status st = tti_env_int("TUTTI_HEARTBEAT_MS", 10, 3600000, &heartbeat_ms);

    if (st == TUTTI_OK && tti_env("TUTTI_SILENT_MS") != NULL)
        st = tti_env_int("TUTTI_SILENT_MS", 1, INT64_MAX / 1000000, &silent_ms);
    if (st != TUTTI_OK)
        return st;
    *heartbeat_ms_out = heartbeat_ms;
    *silent_ms_out = silent_ms;
    return TUTTI_OK;
}

enum { GROUP_TEXT_MAX = 48 };

/* A call that makes a group of another one; NULL: the kind is none such. */
static const char *name_regrouping(unsigned kind)
{
    switch (kind) {
    case TTI_DEED_SPLIT_GROUP: return "split_group";
    case TTI_DEED_SHRINK_GROUP: return "shrink_group";
    case TTI_DEED_GROW_GROUP: return "grow_group";
    case TTI_DEED_MERGE_GROUP: return "merge_remote_group";
    case TTI_DEED_RECONFIGURE: return "reconfigure";
    default: return NULL;
    }
}

/* "; it last entered all_reduce #12 of the group called '0'", "; it last began to send to rank 3, in the group called 'pair'". Not
 * "group '0'": where that stands in words of a failure it is the group that has failed. */
static void word_deed(const tti_health *health, uint64_t deed, char *out, size_t bytes)
{
    const unsigned kind = (unsigned)(deed >> 56) - 1, group = (unsigned)(deed >> TTI_DEED_WHICH_BITS) & ((1u << TTI_DEED_GROUP_BITS) - 1);
    const uint64_t which = deed & ((UINT64_C(1) << TTI_DEED_WHICH_BITS) - 1);
    char           name[GROUP_TEXT_MAX], where[GROUP_TEXT_MAX + 24], peer[32] = "any rank";

    if (tti_health_group_name(health, group, name, sizeof name))
        snprintf(where, sizeof where, "the group called '%s'", name);
    else
        snprintf(where, sizeof where, "a group that is not here");
    if (which != 0)
        snprintf(peer, sizeof peer, "rank %llu", (unsigned long long)(which - 1));
    if (kind == TTI_DEED_SEND || kind == TTI_DEED_RECV)
        snprintf(out, bytes, "; it last began to %s %s, in %s", kind == TTI_DEED_SEND ? "send to" : "receive from", peer, where);
    else if (name_regrouping(kind) != NULL)
        snprintf(out, bytes, "; it last entered %s of %s", name_regrouping(kind), where);
    else
        snprintf(out, bytes, "; it last entered %s #%llu of %s", tti_call_kind_name((tutti_call_kind)kind), (unsigned long long)which,
                 where);
}

const char *tti_report_words(const tti_health *health, const tti_health_report *report, int64_t now_ns, char out[TTI_HEALTH_TEXT_MAX])
{
    size_t used;

    used = strlen(tti_health_words(report, now_ns, out));
    if (used > 0 && report->deed != 0 && report->life != TTI_LIFE_LEFT)
        word_deed(health, report->deed, out + used, TTI_HEALTH_TEXT_MAX - used);
    return out;
}
