/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hang_words.c - what was found, in plain words: the causes first, each with what it does instead, who waits for it, and
 * one next step; then a line for each rank. */
#include "hang.h"

#include <string.h>

enum { LIST_BYTES = 160, WHO_BYTES = 256, LINE_BYTES = 768, CAUSES_SHOWN = 8, RANKS_SHOWN = 16 };

static const char *const at_words[] = {
    [HANG_WAITS] = "waits",
    [HANG_JOINS] = "joins, in tutti_init_process_group()",
    [HANG_BUSY] = "is in no operation",
    [HANG_DEAD] = "is dead",
    [HANG_LEFT] = "has ended",
    [HANG_STOPPED] = "is stopped by a signal",
    [HANG_TRACED] = "is held by a debugger",
    [HANG_FROZEN] = "is frozen with its control group",
    [HANG_NOT_JOINED] = "runs, and has not joined",
    [HANG_UNSEEN] = "is not to be seen here",
};

const char *hang_at_words(hang_at at)
{
    return at_words[at];
}

/* ---- pieces ------------------------------------------------------------------------------------ */

static void write_who(const hang_rank *r, char out[WHO_BYTES])
{
    if (r->pid != 0)
        snprintf(out, WHO_BYTES, "rank %d (pid %lld%s%.64s)", r->rank, (long long)r->pid, r->seen != NULL ? ", " : "",
                 r->seen != NULL ? r->seen->info.host : "");
    else
        snprintf(out, WHO_BYTES, "rank %d", r->rank);
}

static void write_time(double s, char out[32])
{
    if (s < 0.1)
        snprintf(out, 32, "%.0f ms", 1000 * s);
    else if (s < 100)
        snprintf(out, 32, "%.1f s", s);
    else
        snprintf(out, 32, "%.0f min", s / 60);
}

static const char *group_name(const hang *h, const view_op *op)
{
    return op->group >= 0 ? h->view->groups[op->group].label : "?";
}

/* "all_reduce #3 (sum, 4 f32) on group 'world'". */
static void write_op(const hang *h, const view_op *op, char out[LINE_BYTES])
{
    char text[VIEW_TEXT_MAX];

    view_describe(op, text);
    snprintf(out, LINE_BYTES, "%s on group '%.64s'", text, group_name(h, op));
}

/* What a process does that is in no operation. */
static void write_doing(const hang_rank *r, char out[LINE_BYTES])
{
    const char *in = r->now.waits_in;

    if (r->cpu_share > 0.3)
        snprintf(out, LINE_BYTES, "computes (%.0f%% of a core)", 100 * r->cpu_share);
    else if (r->now.life == PROCESS_DISK)
        snprintf(out, LINE_BYTES, "waits for a device%s%s (state D)", in[0] != '\0' ? " in " : "", in);
    else if (r->now.life == PROCESS_SLEEPS && in[0] != '\0')
        snprintf(out, LINE_BYTES, "sleeps in %s", in);
    else if (r->now.life == PROCESS_RUNS)
        snprintf(out, LINE_BYTES, "is ready to run%s", r->cpu_share >= 0 ? ", and gets little time" : "");
    else
        snprintf(out, LINE_BYTES, "does something else");
}

static void write_last(const hang *h, const hang_rank *r, char out[LINE_BYTES])
{
    char op[LINE_BYTES], ago[32];

    if (r->last == NULL) {
        snprintf(out, LINE_BYTES, "it has done no operation yet");
        return;
    }
    write_op(h, r->last, op);
    write_time(r->last_s, ago);
    if (r->last->r.state == TUTTI_RECORD_FAILED)
        snprintf(out, LINE_BYTES, "its last operation, %.300s, failed %s ago: %s", op, ago, tutti_status_name(r->last->r.status));
    else
        snprintf(out, LINE_BYTES, "its last operation: %.300s, done %s ago", op, ago);
}

/* ---- one cause --------------------------------------------------------------------------------- */

static bool is_message(const hang_rank *r)
{
    return r->wait->r.kind == TUTTI_RECORD_SEND || r->wait->r.kind == TUTTI_RECORD_RECV;
}

/* Who waits for this very rank, the longest; who does so in a message before others, as that says more. */
static const hang_rank *waiter_of(const hang *h, const hang_cause *c)
{
    const hang_rank *found = NULL;
    int i, k;

    for (i = 0; i < c->n_waiters; i++) {
        const hang_rank *w = &h->ranks[c->waiters[i]];

        for (k = 0; k < w->n_awaits && w->wait != NULL; k++)
            if (w->awaits[k] == c->ranks[0] && (found == NULL || is_message(w) > is_message(found) ||
                                                (is_message(w) == is_message(found) && w->since_s > found->since_s)))
                found = w;
    }
    return found;
}

static void print_waiters(const hang *h, const hang_cause *c)
{
    const hang_rank *w = waiter_of(h, c);
    char list[LIST_BYTES], op[LINE_BYTES], since[32];

    if (c->n_waiters == 0) {
        printf("  nobody waits for it in an operation\n");
        return;
    }
    view_write_ranks(c->waiters, c->n_waiters, list, sizeof list);
    if (w == NULL) {
        printf("  rank%s %s wait%s for it to join\n", c->n_waiters == 1 ? "" : "s", list, c->n_waiters == 1 ? "s" : "");
        return;
    }
    write_op(h, w->wait, op);
    write_time(w->since_s, since);
    printf("  rank%s %s wait%s for it, rank %d since %s in %s\n", c->n_waiters == 1 ? "" : "s", list,
           c->n_waiters == 1 ? "s" : "", w->rank, since, op);
}

/* What the awaited rank has called in place of what the waiter is in; NULL: nothing. */
static const view_op *instead(const hang_rank *r, const hang_rank *w)
{
    const view_op *its = w != NULL && r->seen != NULL && w->wait->group >= 0 && view_is_collective(w->wait)
                             ? view_find_op(r->seen, w->wait->group, w->wait->r.seq)
                             : NULL;

    return its;
}

static void print_what_it_does(const hang *h, const hang_rank *r, const hang_rank *w)
{
    const view_op *other = instead(r, w);
    char text[LINE_BYTES], since[32];

    if (r->wait != NULL) {
        write_op(h, r->wait, text);
        write_time(r->since_s, since);
        printf("  it is in %s, since %s\n", text, since);
    } else if (other != NULL) {
        write_op(h, other, text);
        printf("  under that number it has called %s%s\n", text, other->r.state == TUTTI_RECORD_FAILED ? ", which failed" : "");
    }
    if (r->at == HANG_BUSY && !h->view->from_files) {
        write_doing(r, text);
        printf("  it %s\n", text);
    }
    if (r->seen != NULL && r->at != HANG_NOT_JOINED) {
        write_last(h, r, text);
        printf("  %s\n", text);
    }
}

static void print_next(const hang_rank *r, const hang_rank *w)
{
    switch (r->at) {
    case HANG_DEAD:
        printf("  next: see its last lines of output, and dmesg for whether the kernel killed it; the others may go on with "
               "tutti_shrink_group()\n");
        break;
    case HANG_LEFT: printf("  next: see why it returned from main() before the others were done\n"); break;
    case HANG_STOPPED: printf("  next: kill -CONT %lld\n", (long long)r->pid); break;
    case HANG_TRACED:
        printf("  next: let it go on in the debugger%s%s\n", r->now.tracer_name[0] != '\0' ? " " : "", r->now.tracer_name);
        break;
    case HANG_FROZEN: printf("  next: thaw its control group (cgroup.freeze, or docker unpause)\n"); break;
    case HANG_NOT_JOINED: printf("  next: see what it does before tutti_init_process_group(): gdb -p %lld\n", (long long)r->pid); break;
    case HANG_UNSEEN: printf("  next: run tutti doctor hang on its host, or bring its dump (--save, then --dumps)\n"); break;
    default:
        if (w != NULL && w->wait->r.kind == TUTTI_RECORD_SEND)
            printf("  next: rank %d has to post the receive: recv from rank %d, tag %d; or rank %d sends with tutti_isend()\n", r->rank,
                   w->rank, w->wait->r.tag, w->rank);
        else if (r->pid != 0)
            printf("  next: see where it is: gdb -p %lld\n", (long long)r->pid);
        break;
    }
}

static void print_single(const hang *h, const hang_cause *c)
{
    const hang_rank *r = &h->ranks[c->ranks[0]], *w = waiter_of(h, c);
    char who[WHO_BYTES];

    write_who(r, who);
    printf("\n%s %s\n", who, r->at == HANG_BUSY && w != NULL ? "has not come" : at_words[r->at]);
    print_waiters(h, c);
    print_what_it_does(h, r, w);
    print_next(r, w);
}

/* Whether two of a circle are in the same number of one group, and call different things. */
static bool is_mismatch(const hang_rank *a, const hang_rank *b)
{
    return view_is_collective(a->wait) && view_is_collective(b->wait) && a->wait->group == b->wait->group &&
           a->wait->r.seq == b->wait->r.seq;
}

static void print_circle(const hang *h, const hang_cause *c)
{
    char list[LIST_BYTES], op[LINE_BYTES], since[32], who[WHO_BYTES];
    bool messages = true, mismatch = false;
    int i;

    printf("\nranks wait for each other\n");
    for (i = 0; i < c->n; i++) {
        const hang_rank *r = &h->ranks[c->ranks[i]], *next = &h->ranks[c->ranks[(i + 1) % c->n]];

        write_who(r, who);
        write_op(h, r->wait, op);
        write_time(r->since_s, since);
        printf("  %s waits for rank %d, since %s, in %s\n", who, next->rank, since, op);
        messages = messages && is_message(r);
        mismatch = mismatch || is_mismatch(r, next);
    }
    if (c->n_waiters > 0) {
        view_write_ranks(c->waiters, c->n_waiters, list, sizeof list);
        printf("  and rank%s %s with them\n", c->n_waiters == 1 ? "" : "s", list);
    }
    printf("  next: %s\n", messages   ? "let one of them receive first, or send with tutti_isend()"
                           : mismatch ? "all members of a group have to call the same: see where the program takes another way"
                                      : "all ranks have to call operations of several groups in one order");
}

/* ---- the rest ---------------------------------------------------------------------------------- */

static void print_rank(const hang *h, const hang_rank *r)
{
    char text[LINE_BYTES], since[32];

    printf("  %5d  %8lld  %-12.12s  ", r->rank, (long long)r->pid, r->seen != NULL ? r->seen->info.host : "");
    if (r->at == HANG_WAITS) {
        write_op(h, r->wait, text);
        write_time(r->since_s, since);
        printf("in %s, since %s\n", text, since);
    } else if (r->at == HANG_BUSY && !h->view->from_files) {
        write_doing(r, text);
        printf("%s\n", text);
    } else {
        printf("%s\n", at_words[r->at]);
    }
}

static void print_ranks(const hang *h, bool all)
{
    int i;

    printf("\n  %5s  %8s  %-12s  %s\n", "rank", "pid", "host", "is");
    for (i = 0; i < h->n && (all || i < RANKS_SHOWN); i++)
        print_rank(h, &h->ranks[i]);
    if (i < h->n)
        printf("  and %d more (--all)\n", h->n - i);
}

static bool has_failed(const hang_rank *r)
{
    return r->seen != NULL && r->seen->info.failures > 0 && r->seen->info.failed_words[0] != '\0';
}

/* When a rank's first failure was, as long ago as the ring tells; negative: it does not. */
static double failed_s(const hang_rank *r)
{
    int i;

    for (i = 0; i < r->seen->n_ops; i++)
        if (r->seen->ops[i].r.id == r->seen->info.failed_id && r->seen->ops[i].r.ended_ns != 0)
            return 1e-9 * (double)(r->seen->info.read_ns - r->seen->ops[i].r.ended_ns);
    return -1;
}

static void print_failure(const hang_rank *r)
{
    const tutti_recorder_info *info = &r->seen->info;
    char time[32], ago[48] = "before what its ring has";

    if (failed_s(r) >= 0) {
        write_time(failed_s(r), time);
        snprintf(ago, sizeof ago, "%s ago", time);
    }
    printf("\nrank %d was told %s (%llu failure%s in all, this was the first):\n  %.*s\n", r->rank, ago,
           (unsigned long long)info->failures, info->failures == 1 ? "" : "s", (int)strcspn(info->failed_words, "\n"),
           info->failed_words);
}

/* What programs were told, the earliest failure first: it is the cause of others more often than the other way round. */
static void print_failures(const hang *h, bool all)
{
    const hang_rank *first = NULL;
    int others[VIEW_RANKS_MAX], n = 0, i;
    char list[LIST_BYTES];

    for (i = 0; i < h->n; i++)
        if (has_failed(&h->ranks[i]) && (first == NULL || failed_s(&h->ranks[i]) > failed_s(first)))
            first = &h->ranks[i];
    if (first != NULL)
        print_failure(first);
    for (i = 0; i < h->n; i++) {
        if (!has_failed(&h->ranks[i]) || &h->ranks[i] == first)
            continue;
        if (all)
            print_failure(&h->ranks[i]);
        others[n++] = i;
    }
    if (n == 0 || all)
        return;
    view_write_ranks(others, n, list, sizeof list);
    printf("and rank%s %s later (--all)\n", n == 1 ? "" : "s", list);
}

static void print_summary(const hang *h)
{
    const char *job = h->view->n_recorders > 0 && h->n > 0 ? h->view->ranks[0].info.job : "";
    char longest[32];
    int seen = 0, i;

    for (i = 0; i < h->n; i++)
        seen += h->ranks[i].seen != NULL;
    write_time(h->longest_s, longest);
    printf("job%s%s%s: %d rank%s, %d read%s; ", job[0] != '\0' ? " '" : "", job, job[0] != '\0' ? "'" : "", h->n, h->n == 1 ? "" : "s",
           seen, h->view->from_files ? " from files" : "");
    if (h->n_joining > 0)
        printf("%d join%s; ", h->n_joining, h->n_joining == 1 ? "s" : "");
    if (h->n_waiting == 0)
        printf("nobody waits in an operation\n");
    else
        printf("%d wait%s in an operation, the longest for %s\n", h->n_waiting, h->n_waiting == 1 ? "s" : "", longest);
}

void hang_print(const hang *h, bool all)
{
    int i;

    print_summary(h);
    for (i = 0; i < h->n_causes && (all || i < CAUSES_SHOWN); i++) {
        if (h->causes[i].circle)
            print_circle(h, &h->causes[i]);
        else
            print_single(h, &h->causes[i]);
    }
    if (i < h->n_causes)
        printf("\nand %d more causes (--all)\n", h->n_causes - i);
    if (h->n_causes == 0 && h->n_waiting > 0)
        printf("\nnobody is missing: all members are in it, and what they send moves slowly, or not at all\n"
               "  next: look again whether the numbers have changed; else gdb -p PID on one of them\n");
    print_failures(h, all);
    print_ranks(h, all);
}

/* ---- for programs ------------------------------------------------------------------------------ */

static json_t *list_of(const int *ranks, int n)
{
    json_t *list = json_array();
    int i;

    for (i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ranks[i]));
    return list;
}

static json_t *json_of_rank(const hang *h, const hang_rank *r)
{
    char op[LINE_BYTES] = "", last[LINE_BYTES] = "";

    if (r->wait != NULL)
        write_op(h, r->wait, op);
    if (r->last != NULL)
        write_op(h, r->last, last);
    return json_pack("{si sI ss so sf so so}", "rank", r->rank, "pid", (json_int_t)r->pid, "is", at_words[r->at], "operation",
                     view_text(op), "since_s", r->wait != NULL ? r->since_s : 0.0, "last", view_text(last), "waits_for",
                     list_of(r->awaits, r->n_awaits));
}

json_t *hang_json(const hang *h)
{
    json_t *ranks = json_array(), *causes = json_array();
    int i;

    for (i = 0; i < h->n; i++)
        json_array_append_new(ranks, json_of_rank(h, &h->ranks[i]));
    for (i = 0; i < h->n_causes; i++)
        json_array_append_new(causes, json_pack("{ss so so}", "is",
                                                h->causes[i].circle ? "a circle" : at_words[h->ranks[h->causes[i].ranks[0]].at],
                                                "ranks", list_of(h->causes[i].ranks, h->causes[i].n), "waiting",
                                                list_of(h->causes[i].waiters, h->causes[i].n_waiters)));
    return json_pack("{ss si so so}", "doctor", "hang", "waiting", h->n_waiting, "causes", causes, "ranks", ranks);
}
