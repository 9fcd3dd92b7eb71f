/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hang_words.c - what was found, in plain words: the causes first, in the first line the one that most wait for, each with
 * what it does instead, who waits for it, and one next step; then a line for each rank, and what the program was told. */
#include "hang.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES = 160, WHO_BYTES = 256, CAUSES_SHOWN = 8, RANKS_SHOWN = 16, JOBS_SHOWN = 4 };

static const char *const at_words[] = {
    [HANG_WAITS] = "waits",
    [HANG_JOINS] = "joins, in tutti_init_process_group()",
    [HANG_BUSY] = "is in no operation",
    [HANG_PARTED] = "has destroyed its world",
    [HANG_DEAD] = "is dead",
    [HANG_LEFT] = "has ended",
    [HANG_STOPPED] = "is stopped by a signal",
    [HANG_TRACED] = "is held by a debugger",
    [HANG_FROZEN] = "is frozen with its control group",
    [HANG_NOT_JOINED] = "runs, and has not joined",
    [HANG_UNRECORDED] = "runs, and records nothing",
    [HANG_UNNAMED] = "runs, and was not among those named",
    [HANG_UNSEEN] = "is not to be seen here",
};

const char *hang_at_words(hang_at at)
{
    return at_words[at];
}

/* ---- pieces ------------------------------------------------------------------------------------ */

/* "rank 2 (pid 4711, n1, rank 3 at first)": the launcher, and what it writes before lines, knows it by the first. */
static void write_who(const hang_rank *r, char out[WHO_BYTES])
{
    char first[32] = "";

    if (r->seen != NULL && r->seen->info.rank >= 0 && r->seen->info.rank != r->rank)
        snprintf(first, sizeof first, ", rank %d at first", r->seen->info.rank);
    if (r->pid != 0)
        snprintf(out, WHO_BYTES, "rank %d (pid %lld%s%.64s%s)", r->rank, (long long)r->pid, r->seen != NULL ? ", " : "",
                 r->seen != NULL ? r->seen->info.host : "", first);
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

void hang_write_op(const hang *h, const view_op *op, char out[HANG_LINE_MAX])
{
    char text[VIEW_TEXT_MAX];

    view_describe(h->view, op, text);
    snprintf(out, HANG_LINE_MAX, "%s on group '%.64s'", text, group_name(h, op));
}

/* What a process does that is in no operation. */
static void write_doing(const hang_rank *r, char out[HANG_LINE_MAX])
{
    const char *in = r->now.waits_in;

    if (r->cpu_share > 0.3)
        snprintf(out, HANG_LINE_MAX, "computes (%.0f%% of a core)", 100 * r->cpu_share);
    else if (r->now.life == PROCESS_DISK)
        snprintf(out, HANG_LINE_MAX, "waits for a device%s%s (state D)", in[0] != '\0' ? " in " : "", in);
    else if (r->now.life == PROCESS_SLEEPS && in[0] != '\0')
        snprintf(out, HANG_LINE_MAX, "sleeps in %s", in);
    else if (r->now.life == PROCESS_RUNS)
        snprintf(out, HANG_LINE_MAX, "is ready to run%s", r->cpu_share >= 0 ? ", and gets little time" : "");
    else
        snprintf(out, HANG_LINE_MAX, "does something else");
}

static void write_last(const hang *h, const hang_rank *r, char out[HANG_LINE_MAX])
{
    char op[HANG_LINE_MAX], ago[32];

    if (r->last == NULL) {
        snprintf(out, HANG_LINE_MAX, "it has done no operation yet");
        return;
    }
    hang_write_op(h, r->last, op);
    write_time(r->last_s, ago);
    if (r->last->r.state == TUTTI_RECORD_FAILED)
        snprintf(out, HANG_LINE_MAX, "its last operation, %.300s, failed %s ago: %s", op, ago, tutti_status_name(r->last->r.status));
    else
        snprintf(out, HANG_LINE_MAX, "its last operation: %.300s, done %s ago", op, ago);
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
    char list[LIST_BYTES], op[HANG_LINE_MAX], since[32];

    if (c->n_waiters == 0) {
        printf("  nobody waits for it in an operation\n");
        return;
    }
    view_write_ranks(c->waiters, c->n_waiters, list, sizeof list);
    if (w == NULL) {
        printf("  rank%s %s wait%s for it to join\n", c->n_waiters == 1 ? "" : "s", list, c->n_waiters == 1 ? "s" : "");
        return;
    }
    hang_write_op(h, w->wait, op);
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

/* By how much r came after who waited for it had given up; 0: it did not. */
static double late_s(const hang_rank *r, const hang_rank *w)
{
    return w != NULL ? hang_came_late_s(r, hang_same_op(r, w), w) : 0;
}

static void print_what_it_does(const hang *h, const hang_rank *r, const hang_rank *w)
{
    const view_op *other = instead(r, w);
    char text[HANG_LINE_MAX], since[32];

    if (late_s(r, w) > 0) {
        hang_write_op(h, hang_same_op(r, w), text);
        write_time(late_s(r, w), since);
        printf("  it came to %s %s after rank %d had given up\n", text, since, w->rank);
    } else if (r->wait != NULL) {
        hang_write_op(h, r->wait, text);
        write_time(r->since_s, since);
        if (r->at == HANG_DEAD || r->at == HANG_LEFT)
            printf("  it ended in %s, which it had begun %s ago\n", text, since);
        else
            printf("  it is in %s, since %s\n", text, since);
    } else if (other != NULL) {
        hang_write_op(h, other, text);
        printf("  under that number it has called %s%s\n", text, other->r.state == TUTTI_RECORD_FAILED ? ", which failed" : "");
    }
    if (r->elsewhere != NULL) {
        hang_write_op(h, r->elsewhere, text);
        write_time(r->elsewhere_s, since);
        printf("  it is in %s of another world, since %s\n", text, since);
    }
    if (r->at == HANG_BUSY && !h->view->from_files) {
        write_doing(r, text);
        printf("  it %s\n", text);
    }
    if (r->at == HANG_UNRECORDED)
        printf("  it was started with %s: what it does is not known\n", r->why);
    if (r->seen != NULL) {
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
    case HANG_PARTED: printf("  next: see why it called tutti_destroy_process_group() before the others were done\n"); break;
    case HANG_UNRECORDED:
        printf("  next: see where it is: gdb -p %lld; start the job without %.*s for the next time\n", (long long)r->pid,
               (int)strcspn(r->why, "="), r->why);
        break;
    case HANG_NOT_JOINED: printf("  next: see what it does before tutti_init_process_group(): gdb -p %lld\n", (long long)r->pid); break;
    case HANG_UNNAMED: printf("  next: name it, too: --pid ... %lld\n", (long long)r->pid); break;
    case HANG_UNSEEN: printf("  next: run tutti doctor hang on its host, or bring its dump (--save, then --dumps)\n"); break;
    default:
        if (late_s(r, w) > 0)
            printf("  next: see what it did before that; if that has to take so long, a longer timeout (TUTTI_TIMEOUT_MS)\n");
        else if (w != NULL && w->wait->r.kind == TUTTI_RECORD_SEND)
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
    printf("%s %s\n", who, late_s(r, w) > 0 ? "came too late" : r->at == HANG_BUSY && w != NULL ? "has not come" : at_words[r->at]);
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

/* Of ranks that wait for each other in messages, of which some are sends. */
static const char *next_of_messages(int sends, int n)
{
    if (sends == 0)
        return "all of them receive: one has to send before it receives";
    if (sends == n)
        return "all of them send: one has to receive before it sends, or to send with tutti_isend()";
    return "see whether both ends of each message have the same tag, and come in the same order";
}

/* Of ranks that wait for each other, and not in messages alone. */
static const char *next_of_calls(bool mismatch, bool one_group)
{
    if (mismatch)
        return "all members of a group have to call the same: see where the program takes another way";
    if (one_group)
        return "all members have to make the calls and messages of a group in one order: see where the program takes another way";
    return "all ranks have to call operations of several groups in one order";
}

static int by_number(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

static void print_circle(const hang *h, const hang_cause *c)
{
    char list[LIST_BYTES], op[HANG_LINE_MAX], since[32], who[WHO_BYTES];
    int ranks[VIEW_RANKS_MAX];
    bool messages = true, mismatch = false, one_group = true;
    int sends = 0;
    int i;

    memcpy(ranks, c->ranks, (size_t)c->n * sizeof *ranks);
    qsort(ranks, (size_t)c->n, sizeof *ranks, by_number);
    view_write_ranks(ranks, c->n, list, sizeof list);
    printf("ranks %s wait for each other\n", list);
    for (i = 0; i < c->n; i++) {
        const hang_rank *r = &h->ranks[c->ranks[i]], *next = &h->ranks[c->ranks[(i + 1) % c->n]];

        write_who(r, who);
        hang_write_op(h, r->wait, op);
        write_time(r->since_s, since);
        printf("  %s waits for rank %d, since %s, in %s\n", who, next->rank, since, op);
        messages = messages && is_message(r);
        sends += r->wait->r.kind == TUTTI_RECORD_SEND;
        mismatch = mismatch || is_mismatch(r, next);
        one_group = one_group && r->wait->group == next->wait->group;
    }
    if (c->n_waiters > 0) {
        view_write_ranks(c->waiters, c->n_waiters, list, sizeof list);
        printf("  and rank%s %s with them\n", c->n_waiters == 1 ? "" : "s", list);
    }
    printf("  next: %s\n", messages ? next_of_messages(sends, c->n) : next_of_calls(mismatch, one_group));
}

/* ---- those that are not in it ------------------------------------------------------------------ */

const char *hang_other_words(const hang_rank *r)
{
    if (r->at == HANG_JOINS)
        return "runs, and is in no world yet";
    if (r->at != HANG_BUSY && r->at != HANG_PARTED && r->at != HANG_WAITS)
        return at_words[r->at];
    return r->seen->is_left ? "lives, and the others went on without it" : "lives, and has no part in it";
}

static void print_other(const hang *h, const hang_rank *r)
{
    const view_rank *seen = r->seen;

    if (seen->is_left)
        printf("  rank %d of world %d (pid %lld, %.64s) %s\n", seen->rank, h->view->worlds[seen->left].generation, (long long)r->pid,
               seen->info.host, hang_other_words(r));
    else
        printf("  pid %lld (%.64s) %s\n", (long long)r->pid, seen->info.host, hang_other_words(r));
}

static void print_others(const hang *h, bool all)
{
    int i;

    if (h->n_others > 0)
        printf("\nnot in it:\n");
    for (i = 0; i < h->n_others && (all || i < CAUSES_SHOWN); i++)
        print_other(h, &h->others[i]);
    if (i < h->n_others)
        printf("  and %d more (--all)\n", h->n_others - i);
}

/* ---- the rest ---------------------------------------------------------------------------------- */

static void print_rank(const hang *h, const hang_rank *r)
{
    char text[HANG_LINE_MAX], since[32], pid[24] = "-";

    if (r->pid != 0)
        snprintf(pid, sizeof pid, "%lld", (long long)r->pid);
    printf("  %5d  %8s  %-12.12s  ", r->rank, pid, r->seen != NULL ? r->seen->info.host : "");
    if (r->at == HANG_WAITS) {
        hang_write_op(h, r->wait, text);
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

    printf("  %5s  %8s  %-12s  %s\n", "rank", "pid", "host", "is");
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

/* "job 'a'"; "jobs 'a', 'b'" of a world that was merged; "job" of one without a name. */
static void print_jobs(const hang *h)
{
    const char *jobs[JOBS_SHOWN];
    const int n = hang_jobs(h, jobs, JOBS_SHOWN);
    int i;

    printf("job%s", n > 1 ? "s" : "");
    for (i = 0; i < n; i++)
        if (jobs[i][0] != '\0' || n > 1)
            printf("%s '%s'", i > 0 ? "," : "", jobs[i]);
}

static void print_summary(const hang *h)
{
    const int generation = h->world >= 0 ? h->view->worlds[h->world].generation : 0;
    char longest[32], world[32] = "";
    int seen = 0, i;

    if (generation > 1)
        snprintf(world, sizeof world, ", world %d", generation);
    for (i = 0; i < h->n; i++)
        seen += h->ranks[i].seen != NULL;
    write_time(h->longest_s, longest);
    print_jobs(h);
    printf("%s: %d rank%s, %d read%s; ", world, h->n, h->n == 1 ? "" : "s", seen, h->view->from_files ? " from files" : "");
    if (h->n_joining > 0)
        printf("%d join%s; ", h->n_joining, h->n_joining == 1 ? "s" : "");
    if (h->n_waiting == 0)
        printf("nobody waits in an operation\n");
    else
        printf("%d wait%s in an operation, the longest for %s\n", h->n_waiting, h->n_waiting == 1 ? "s" : "", longest);
}

static void print_causes(const hang *h, bool all)
{
    int i;

    for (i = 0; i < h->n_causes && (all || i < CAUSES_SHOWN); i++) {
        if (h->causes[i].circle)
            print_circle(h, &h->causes[i]);
        else
            print_single(h, &h->causes[i]);
        putchar('\n');
    }
    if (i < h->n_causes)
        printf("and %d more causes (--all)\n\n", h->n_causes - i);
}

/* The first rank that waits. */
static const hang_rank *first_waiter(const hang *h)
{
    int i = 0;

    while (i < h->n - 1 && h->ranks[i].at != HANG_WAITS)
        i++;
    return &h->ranks[i];
}

/* All are in it that have to be, as far as is known. */
static void print_complete(const hang *h)
{
    switch ((int)first_waiter(h)->wait->r.kind) {
    case TUTTI_RECORD_GROW_GROUP:
        printf("nobody is missing: all members are in it, and wait for newcomers\n"
               "  next: see whether those were started, and call tutti_join_group() with this store and name\n");
        break;
    case TUTTI_RECORD_MERGE_GROUP:
    case TUTTI_RECORD_RECONFIGURE:
        printf("no member is missing: they wait for processes that are not in this group\n"
               "  next: see whether those call the same, with this store\n");
        break;
    case TUTTI_RECORD_SHRINK_GROUP:
        printf("nobody is missing: all that live, and are to go on, are in it, and agree who they are\n"
               "  next: look again; else gdb -p PID on one of them\n");
        break;
    default:
        printf("nobody is missing: all members are in it, and what they send moves slowly, or not at all\n"
               "  next: look again whether the numbers have changed; else gdb -p PID on one of them\n");
        break;
    }
}

/* Whether somebody waits for any of the causes. */
static bool is_explained(const hang *h)
{
    int i;

    for (i = 0; i < h->n_causes; i++)
        if (h->causes[i].n_waiters > 0 || h->causes[i].circle)
            return true;
    return false;
}

void hang_print(const hang *h, bool all)
{
    print_causes(h, all);
    print_summary(h);
    if (h->n_waiting > 0 && (h->n_causes == 0 || (!is_explained(h) && view_is_regrouping(first_waiter(h)->wait))))
        print_complete(h);
    print_ranks(h, all);
    print_others(h, all);
    print_failures(h, all);
}
