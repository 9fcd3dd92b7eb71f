/* SPDX-License-Identifier: BSD-3-Clause
 *
 * supervisor.c - one loop over everything that can happen to the ranks of a host.
 *
 * How     poll() on the signal pipe, our own two outputs, and per rank a pidfd and two pipes.
 *
 *           RUNNING --a rank fails by exit code--> SETTLING --20 ms--> TELLING --> STOPPING --shutdown--> KILLING
 *              |                                      |                  ^
 *              +--a rank dies of a signal, or a signal comes from outside+
 *
 *         TELLING lasts until the launchers of other hosts know why (herald.c), TELL_NS at the most; alone on a host,
 *         no time. STOPPING sends SIGTERM (or the signal that came) to all process groups, KILLING sends
 *         SIGKILL. All phases end when the last rank has ended. What is left of the process groups
 *         then (grandchildren) has LINGER_NS to finish if it holds a pipe of ours, and is killed.
 * Kept    With job->keep a rank that fails changes no phase: the others run on, and a spare is started in its place,
 *         if there is one left. Ranks and spares are in one array, spares last. The job has done its work if a rank ended well,
 *         and no survivor ended with another code: who failed first, died of a signal or was replaced is lost, and not a
 *         survivor, nor is a spare that fails when all ranks have ended, as nobody let it in.
 * Stopped Who is stopped by a signal when all others have ended is told of (stopped.c); with job->keep they have gone on
 *         without it, so after the time for a shutdown it is ended.
 * Output  Nobody reads our stdout any more: the ranks' stdout pipes are closed, so that they get SIGPIPE
 *         as they would without us; stderr likewise. It cannot be written (a full disk): it is read and
 *         dropped, and a job that would have succeeded ends with 1.
 * True    An ended rank is observed, but collected only at the very end: until then its number, which
 *         is its process group's, cannot go to a stranger whom we would signal. Only our own pids are
 *         waited for. Every byte that a rank wrote before it ended is passed on.
 * First   A rank that crashes takes its neighbours along: they see its connections close, fail, and
 *         may even be gone before it can be waited for. Hence SETTLING: a death by signal within
 *         these 20 ms goes before exits with a code, and while a rank is in the middle of its end (leaving.c) it is waited
 *         for, SETTLE_MAX_NS at the most. With job->keep nobody waits, but one that was in the middle of its end, or had ended,
 *         when the first exit with a code was seen goes before that if it has died of a signal. Otherwise the order is
 *         that of observation.
 * Fails   No memory or descriptors for a rank: those started are stopped as after a failure. poll()
 *         itself fails: we are blind, so all are killed, and looked at by turns until they are gone. */
#include "elastic/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/port.h"
#include "elastic/child.h"
#include "elastic/herald.h"
#include "elastic/leaving.h"
#include "elastic/output.h"
#include "elastic/signals.h"
#include "elastic/stopped.h"
#include "recorder/read.h"

#define SETTLE_NS         (20 * TTI_MS)
#define SETTLE_MAX_NS     (2 * TTI_SECOND) /* for ranks that have begun to end */
#define TELL_NS           (500 * TTI_MS) /* for other hosts to know why ranks of this one are ended */
#define LINGER_NS         (500 * TTI_MS) /* for grandchildren that still write, after the last rank */
#define DRAIN_NS          (100 * TTI_MS) /* for pipes held by processes that left their group */
#define BLIND_MS          10             /* between looks at the ranks, when poll() does not work */
#define STALLED_OUTPUT_NS TTI_SECOND     /* for our own reader, when a signal has ended the job */

enum {
    LATE_BYTES_MAX = 1 << 20
}; /* per rank: what a pipe can hold, written by processes we killed */

typedef enum phase { RUNNING, SETTLING, TELLING, STOPPING, KILLING } phase;

typedef struct rank {
    tti_child child;
    bool running;
    bool was_leaving; /* when another one was seen to have failed first */
    tti_lines out;
    tti_lines err;
} rank;

enum { SLOT_SIGNAL, SLOT_OUT, SLOT_ERR, SLOT_TOLD, SLOT_RANKS };
enum { SLOT_PIDFD, SLOT_RANK_OUT, SLOT_RANK_ERR, SLOTS_PER_RANK };

typedef struct supervisor {
    const tti_job *job;
    rank *ranks;
    tti_rank_end *ends;
    struct pollfd *polls;
    tti_sink *out;
    tti_sink *err;
    int n_slots;   /* ranks and spares */
    int n_started; /* ranks 0 .. n_started-1 have a pid, now or before */
    int n_running;
    int n_wanted; /* spares that are to be started */
    phase phase;
    int64_t deadline_ns; /* of the phase */
    int64_t settle_ns;   /* when SETTLING ends, whoever is about to end */
    int stop_with;       /* the signal that ends the ranks, from TELLING on */
    tti_stopped stopped; /* whoever is left */
    int64_t look_ns;     /* when to look at that */
    tti_left *left;      /* [n_slots] room for it */
    tutti_status broken; /* TUTTI_OK while poll() works */
    int first;
    int signal;
    bool lost;         /* output of the ranks */
    size_t late_bytes; /* read since the groups were killed */
} supervisor;

/* ---- making and freeing ------------------------------------------------------------------------ */

static void close_all(supervisor *s)
{
    int i;

    for (i = 0; s->ranks != NULL && i < s->n_slots; i++)
        tti_child_close(&s->ranks[i].child);
    free(s->ranks);
    free(s->polls);
    free(s->left);
    free(s->out);
    free(s->err);
}

static tutti_status make(supervisor *s, const tti_job *job)
{
    size_t n = (size_t)(job->n_ranks + job->n_spares);
    size_t i;

    *s = (supervisor){ .job = job, .n_slots = (int)n, .first = -1, .deadline_ns = TTI_FOREVER };
    s->ranks = calloc(n, sizeof *s->ranks);
    s->ends = calloc(n, sizeof *s->ends);
    s->polls = calloc(SLOT_RANKS + n * SLOTS_PER_RANK, sizeof *s->polls);
    s->left = calloc(n, sizeof *s->left);
    s->out = malloc(sizeof *s->out);
    s->err = malloc(sizeof *s->err);
    if (s->ranks != NULL)
        for (i = 0; i < n; i++)
            s->ranks[i].child = (tti_child){ .pidfd = -1, .out_fd = -1, .err_fd = -1 };
    if (s->ranks == NULL || s->ends == NULL || s->polls == NULL || s->left == NULL || s->out == NULL || s->err == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to watch %d ranks", s->n_slots);
    tti_sink_init(s->out, STDOUT_FILENO);
    tti_sink_init(s->err, STDERR_FILENO);
    return TUTTI_OK;
}

/* ---- stopping ---------------------------------------------------------------------------------- */

/* To every process group that there is. A stopped process must go on to receive anything else. */
static void signal_groups(const supervisor *s, int number)
{
    int i;

    for (i = 0; i < s->n_slots; i++) {
        pid_t pid = s->ranks[i].child.pid;

        if (pid > 0 && kill(-pid, number) == 0 && number != SIGKILL)
            kill(-pid, SIGCONT);
    }
}

static void stop_now(supervisor *s)
{
    signal_groups(s, s->stop_with);
    s->phase = STOPPING;
    s->deadline_ns = tti_now_ns() + s->job->shutdown_ns;
}

/* Why the ranks are ended: a failure, a signal from outside, or neither, if some could not be started. */
static void tell_why(const supervisor *s)
{
    if (s->first >= 0 && !s->job->keep)
        tti_herald_tell_why(s->job->herald, s->first, 0);
    else if (s->signal != 0)
        tti_herald_tell_why(s->job->herald, -1, s->signal);
}

/* What the ranks are at, before anything is done to them. */
static void note_sights(const supervisor *s)
{
    int i;

    for (i = 0; s->job->sights != NULL && i < s->n_started; i++)
        if (s->ranks[i].running)
            tti_sight_take(s->ranks[i].child.pid, &s->job->sights[i]);
}

/* Others hear why, then the ranks get the signal. */
static void begin_stopping(supervisor *s, int number)
{
    s->stop_with = number;
    if (s->phase >= STOPPING) {
        signal_groups(s, number);
    } else if (s->phase != TELLING) {
        s->phase = TELLING;
        s->deadline_ns = tti_now_ns() + TELL_NS;
        note_sights(s);
        tell_why(s);
        if (tti_herald_is_told(s->job->herald))
            stop_now(s);
    }
}

static bool ranks_run(const supervisor *s)
{
    int i;

    for (i = 0; i < s->job->n_ranks; i++)
        if (s->ranks[i].running)
            return true;
    return false;
}

/* With keep: a spare goes to the place of i, if there is one. */
static void note_loss(supervisor *s, int i)
{
    const bool replaced = s->n_started + s->n_wanted < s->n_slots;
    const bool uninvited = i >= s->job->n_ranks && !ranks_run(s);

    s->ends[i].lost = s->ends[i].signal != 0 || replaced || uninvited;
    s->n_wanted += replaced;
}

/* With keep: i has failed first by an exit code. Who had begun to end by then may have been why. */
static void note_leaving(supervisor *s, int i)
{
    int k;

    for (k = 0; k < s->n_started; k++)
        s->ranks[k].was_leaving = k != i && s->ranks[k].running && tti_is_leaving(s->ranks[k].child.pid);
}

/* A rank that died of a signal goes before the first that failed with an exit code. */
static bool goes_before_first(const supervisor *s, int i)
{
    return s->ends[i].signal != 0 && s->ends[s->first].signal == 0 && (!s->job->keep || s->ranks[i].was_leaving);
}

static void note_failure(supervisor *s, int i)
{
    bool crash = s->ends[i].signal != 0;

    if (s->phase >= TELLING) { /* the first has been told of */
        s->ends[i].stopped = s->phase >= STOPPING;
        s->ends[i].killed = s->phase == KILLING && s->ends[i].signal == SIGKILL;
        return;
    }
    if (s->first < 0 && s->job->keep && !crash)
        note_leaving(s, i);
    if (s->first < 0 || goes_before_first(s, i))
        s->first = i;
    if (s->job->keep) {
        note_loss(s, i);
        return;
    }
    if (s->phase == RUNNING) {
        s->phase = SETTLING;
        s->deadline_ns = tti_now_ns() + SETTLE_NS;
        s->settle_ns = tti_now_ns() + SETTLE_MAX_NS;
    }
    if (crash)
        s->deadline_ns = tti_now_ns(); /* after this round: others may have ended in it, too */
}

/* Who failed first may have been the end of it. */
static bool some_are_leaving(const supervisor *s)
{
    int i;

    for (i = 0; i < s->n_started; i++)
        if (s->ranks[i].running && tti_is_leaving(s->ranks[i].child.pid))
            return true;
    return false;
}

static void settle(supervisor *s)
{
    const int64_t now_ns = tti_now_ns();

    if (s->ends[s->first].signal == 0 && now_ns < s->settle_ns && some_are_leaving(s))
        s->deadline_ns = now_ns + SETTLE_NS; /* its end is noticed before */
    else
        begin_stopping(s, SIGTERM);
}

static void advance(supervisor *s)
{
    if (tti_now_ns() < s->deadline_ns)
        return;
    if (s->phase == SETTLING) {
        settle(s);
    } else if (s->phase == TELLING) {
        stop_now(s);
    } else if (s->phase == STOPPING) {
        s->phase = KILLING;
        s->deadline_ns = TTI_FOREVER;
        signal_groups(s, SIGKILL);
    }
}

/* Without poll() the job cannot go on: end it while we still know whom to signal. */
static void give_up(supervisor *s, int err)
{
    s->broken = tti_fail_errno_as(TUTTI_E_IO, err, "cannot watch %d ranks", s->n_started);
    s->phase = KILLING;
    s->deadline_ns = TTI_FOREVER;
    signal_groups(s, SIGKILL);
}

/* ---- what happens ------------------------------------------------------------------------------ */

static void note_signals(supervisor *s)
{
    int number;

    while ((number = tti_signals_next(s->job->signal_fd)) != 0) {
        if (s->signal == 0)
            s->signal = number;
        begin_stopping(s, number);
    }
}

/* Replacements that run, or are about to be started: who waits for one to come in hears of no others. */
static int count_coming(const supervisor *s)
{
    int n = s->n_wanted, i;

    for (i = s->job->n_ranks; i < s->n_started; i++)
        n += s->ranks[i].running;
    return n;
}

/* A rank has ended: see how, and leave it for collect_all(). */
static void note_end(supervisor *s, int i)
{
    tti_rank_end *end = &s->ends[i];
    siginfo_t info = { .si_pid = 0 };
    int sys;

    do
        sys = waitid(P_PID, (id_t)s->ranks[i].child.pid, &info, WEXITED | WNOHANG | WNOWAIT);
    while (sys != 0 && errno == EINTR);
    if (sys == 0 && info.si_pid == 0)
        return;
    s->ranks[i].running = false;
    s->n_running--;
    close(s->ranks[i].child.pidfd);
    s->ranks[i].child.pidfd = -1;
    end->when = time(NULL);
    if (sys != 0)
        end->exit_code = 1; /* somebody else in this process has collected it: its code is lost */
    else if (info.si_code == CLD_EXITED)
        end->exit_code = info.si_status;
    else
        end->signal = info.si_status;
    if (end->signal != 0)
        end->exit_code = 128 + end->signal;
    if (end->exit_code != 0)
        note_failure(s, i);
    tti_herald_tell(s->job->herald, i, end, count_coming(s));
}

/* Read once; the end of the stream closes it. */
static void move_stream(supervisor *s, int *fd, tti_lines *lines)
{
    char data[TTI_OUTPUT_READ];
    ssize_t n = read(*fd, data, sizeof data);

    if (n > 0) {
        tti_lines_feed(lines, data, (size_t)n);
        s->late_bytes += (size_t)n;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        tti_lines_finish(lines);
        close(*fd);
        *fd = -1;
    }
}

static struct pollfd want(int fd, bool wanted, short events)
{
    return (struct pollfd){ .fd = wanted ? fd : -1, .events = events };
}

static int ms_until(int64_t deadline_ns)
{
    int64_t left = deadline_ns == TTI_FOREVER ? -1 : deadline_ns - tti_now_ns();

    if (deadline_ns == TTI_FOREVER)
        return -1;
    if (left <= 0)
        return 0;
    left = (left + TTI_MS - 1) / TTI_MS;
    return left < 60000 ? (int)left : 60000;
}

static void wait_for_something(supervisor *s, int64_t deadline_ns)
{
    size_t n = SLOT_RANKS;
    int i;

    s->polls[SLOT_SIGNAL] = want(s->job->signal_fd, true, POLLIN);
    s->polls[SLOT_OUT] = want(s->out->fd, tti_sink_pending(s->out), POLLOUT);
    s->polls[SLOT_ERR] = want(s->err->fd, tti_sink_pending(s->err), POLLOUT);
    s->polls[SLOT_TOLD] = want(tti_herald_bell(s->job->herald), s->phase == TELLING && !tti_herald_is_told(s->job->herald), POLLIN);
    for (i = 0; i < s->n_started; i++, n += SLOTS_PER_RANK) {
        const tti_child *child = &s->ranks[i].child;

        s->polls[n + SLOT_PIDFD] = want(child->pidfd, true, POLLIN);
        s->polls[n + SLOT_RANK_OUT] = want(child->out_fd, tti_sink_has_room(s->out), POLLIN);
        s->polls[n + SLOT_RANK_ERR] = want(child->err_fd, tti_sink_has_room(s->err), POLLIN);
    }
    if (s->broken != TUTTI_OK) {
        poll(NULL, 0, BLIND_MS);
    } else if (poll(s->polls, n, ms_until(deadline_ns)) < 0) {
        if (errno != EINTR)
            give_up(s, errno);
        for (i = 0; (size_t)i < n; i++)
            s->polls[i].revents = 0;
    }
}

/* The first write to fail on our stdout or stderr: see "Output" above. */
static void note_lost_output(supervisor *s, const tti_sink *sink)
{
    const bool is_out = sink == s->out;
    char text[128];
    int i;

    if (sink->error != EPIPE) {
        s->lost = true;
        if (is_out) /* of stderr there is nowhere to say it */
            tti_log(TTI_LOG_ERROR,
                    "standard output cannot be written: %s; the ranks' output is lost",
                    strerror_r(sink->error, text, sizeof text));
        return;
    }
    for (i = 0; i < s->n_started; i++) {
        int *fd = is_out ? &s->ranks[i].child.out_fd : &s->ranks[i].child.err_fd;

        if (*fd >= 0)
            close(*fd);
        *fd = -1;
    }
}

static void flush_sink(supervisor *s, tti_sink *sink)
{
    const bool worked = sink->error == 0;

    tti_sink_flush(sink);
    if (worked && sink->error != 0)
        note_lost_output(s, sink);
}

static void move_output(supervisor *s)
{
    const struct pollfd *p = s->polls + SLOT_RANKS;
    int i;

    if (s->polls[SLOT_OUT].revents != 0)
        flush_sink(s, s->out);
    if (s->polls[SLOT_ERR].revents != 0)
        flush_sink(s, s->err);
    for (i = 0; i < s->n_started; i++, p += SLOTS_PER_RANK) {
        rank *r = &s->ranks[i];

        if (p[SLOT_RANK_OUT].revents != 0 && r->child.out_fd >= 0 && tti_sink_has_room(s->out))
            move_stream(s, &r->child.out_fd, &r->out);
        if (p[SLOT_RANK_ERR].revents != 0 && r->child.err_fd >= 0 && tti_sink_has_room(s->err))
            move_stream(s, &r->child.err_fd, &r->err);
    }
}

static bool pidfd_rang(const supervisor *s, int i)
{
    return s->polls[SLOT_RANKS + i * SLOTS_PER_RANK + SLOT_PIDFD].revents != 0;
}

/* ---- starting ---------------------------------------------------------------------------------- */

static void name_streams(supervisor *s, int i)
{
    char prefix[TTI_PREFIX_MAX] = "";

    if (!s->job->plain_output)
        snprintf(prefix, sizeof prefix, "[default%d]:", i);
    tti_lines_init(&s->ranks[i].out, prefix, s->out);
    tti_lines_init(&s->ranks[i].err, prefix, s->err);
}

/* The next one. */
static tutti_status start_next(supervisor *s)
{
    const tti_job *job = s->job;
    const int i = s->n_started;
    rank *r = &s->ranks[i];
    tti_command command = { job->path, job->argvs[i], job->envps[i], job->files, job->keeper, job->recorders[i],
                            tti_herald_fd(job->herald) };
    tutti_status st;

    name_streams(s, i);
    st = tti_child_start(&command, &r->child, &s->ends[i].exec_errno);
    if (st != TUTTI_OK)
        return st;
    s->n_started++;
    s->ends[i].pid = r->child.pid;
    if (s->ends[i].exec_errno != 0) {
        r->child.pid = 0; /* gone and collected: nobody to signal */
        s->ends[i].exit_code = 127;
        s->ends[i].when = time(NULL);
        note_failure(s, i);
        tti_herald_tell(job->herald, i, &s->ends[i], count_coming(s));
        return TUTTI_OK;
    }
    r->running = true;
    s->n_running++;
    return TUTTI_OK;
}

/* A program that cannot be executed on one rank cannot on the others. */
static tutti_status start_all(supervisor *s)
{
    tutti_status st = TUTTI_OK;

    while (st == TUTTI_OK && s->n_started < s->job->n_ranks &&
           (s->n_started == 0 || s->ends[s->n_started - 1].exec_errno == 0))
        st = start_next(s);
    return st;
}

/* In the places of those that have failed. */
static void start_spares(supervisor *s)
{
    while (s->n_wanted > 0) {
        s->n_wanted--; /* one that cannot even begin is counted no more when that is told */
        if (s->phase != RUNNING || s->n_running == 0) /* nobody is left to come to */
            continue;
        if (start_next(s) != TUTTI_OK)
            tti_log(TTI_LOG_ERROR, "a replacement cannot be started: %s", tutti_last_error());
    }
}

/* Once others have ended: whether those that are left run. */
static void look_at_left(supervisor *s)
{
    const int64_t now_ns = tti_now_ns();
    const int64_t limit_ns = s->job->keep ? s->job->shutdown_ns : 0;
    int           n = 0, i;

    if (s->phase != RUNNING || s->n_running == 0 || s->n_running == s->n_started || now_ns < s->look_ns)
        return;
    for (i = 0; i < s->n_started; i++)
        if (s->ranks[i].running)
            s->left[n++] = (tti_left){ .pid = s->ranks[i].child.pid,
                                       .rank = i < s->job->n_ranks ? s->job->first_rank + i : -1 };
    s->look_ns = now_ns + TTI_STOPPED_LOOK_MS * TTI_MS;
    if (tti_stopped_look(&s->stopped, s->left, n, now_ns, limit_ns) <= limit_ns || !s->job->keep)
        return;
    s->stop_with = SIGTERM;
    stop_now(s);
}

/* Of the phase, or of the next look. */
static int64_t next_deadline(const supervisor *s)
{
    const bool looks = s->phase == RUNNING && s->n_running < s->n_started;

    return looks && s->look_ns < s->deadline_ns ? s->look_ns : s->deadline_ns;
}

static void watch(supervisor *s)
{
    int i;

    while (s->n_running > 0) {
        wait_for_something(s, next_deadline(s));
        move_output(s);
        for (i = 0; i < s->n_started; i++)
            if (s->ranks[i].running && (s->broken != TUTTI_OK || pidfd_rang(s, i)))
                note_end(s, i);
        note_signals(s);
        start_spares(s);
        if (s->phase == TELLING && tti_herald_is_told(s->job->herald))
            s->deadline_ns = tti_now_ns();
        advance(s);
        look_at_left(s);
    }
}

/* ---- the end ----------------------------------------------------------------------------------- */

/* Close the pipes that nothing waits in, or all. */
static void close_pipes(supervisor *s, bool all)
{
    int i;

    for (i = 0; i < s->n_slots; i++) {
        tti_child *child = &s->ranks[i].child;
        tti_lines *lines[] = { &s->ranks[i].out, &s->ranks[i].err };
        int *fds[] = { &child->out_fd, &child->err_fd };
        int k;

        for (k = 0; k < 2; k++) {
            int waiting = 0;

            if (*fds[k] < 0 || (!all && ioctl(*fds[k], FIONREAD, &waiting) == 0 && waiting > 0))
                continue;
            if (tti_sink_has_room(lines[k]->to))
                tti_lines_finish(lines[k]);
            else if (!all)
                continue;
            close(*fds[k]);
            *fds[k] = -1;
        }
    }
}

static bool pipes_open(const supervisor *s)
{
    int i;

    for (i = 0; i < s->n_slots; i++)
        if (s->ranks[i].child.out_fd >= 0 || s->ranks[i].child.err_fd >= 0)
            return true;
    return false;
}

/* The ranks are gone. Pass on what they wrote, and let nothing of their groups live on. */
static void drain(supervisor *s)
{
    size_t late_max = (size_t)s->n_slots * LATE_BYTES_MAX;
    int64_t deadline = tti_now_ns() + (s->phase == KILLING ? 0 : LINGER_NS);
    bool killed = false;

    while (s->broken == TUTTI_OK && pipes_open(s)) {
        wait_for_something(s, deadline);
        move_output(s);
        note_signals(s);
        if (s->signal != 0 && !killed)
            deadline = tti_now_ns();
        if (tti_now_ns() < deadline && !(killed && s->late_bytes > late_max))
            continue;
        if (killed) {
            close_pipes(s, s->signal != 0 || s->late_bytes > late_max);
        } else {
            signal_groups(s, SIGKILL);
            killed = true;
            s->late_bytes = 0;
        }
        deadline = tti_now_ns() + DRAIN_NS;
    }
    if (!killed)
        signal_groups(s, SIGKILL);
}

/* Our own reader takes the rest at its own pace, unless the job was ended from outside. */
static void flush(supervisor *s)
{
    int64_t deadline = TTI_FOREVER;

    while (s->broken == TUTTI_OK && (tti_sink_pending(s->out) || tti_sink_pending(s->err))) {
        if (s->signal != 0 && deadline == TTI_FOREVER)
            deadline = tti_now_ns() + STALLED_OUTPUT_NS;
        if (deadline != TTI_FOREVER && tti_now_ns() >= deadline)
            break;
        wait_for_something(s, deadline);
        move_output(s);
        note_signals(s);
    }
}

static void collect_all(supervisor *s)
{
    int i;

    tti_keeper_release(s->job->keeper);
    for (i = 0; i < s->n_slots; i++) {
        pid_t pid = s->ranks[i].child.pid;

        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        s->ranks[i].child.pid = 0;
    }
}

/* Whether somebody went on when others had failed, and all that did ended well. */
static bool survivors_ended_well(const supervisor *s)
{
    bool any = false;
    int  i;

    for (i = 0; i < s->n_started; i++) {
        const tti_rank_end *end = &s->ends[i];

        any = any || end->exit_code == 0;
        if (end->exit_code != 0 && i != s->first && !end->lost && !end->stopped)
            return false;
    }
    return any;
}

static void fill(const supervisor *s, tti_job_result *out)
{
    *out = (tti_job_result){
        .first = s->first, .signal = s->signal, .lost = s->lost, .n_ranks = s->job->n_ranks
    };
    out->ends = s->ends;
    if (s->n_started > out->n_ranks)
        out->n_ranks = s->n_started;
    out->kept = s->first >= 0 && s->job->keep && s->signal == 0 && survivors_ended_well(s);
    if (s->first >= 0 && !out->kept)
        out->exit_code = s->ends[s->first].exit_code;
    else if (s->signal != 0)
        out->exit_code = 128 + s->signal;
    else if (s->lost)
        out->exit_code = EXIT_FAILURE;
}

tutti_status tti_supervise(const tti_job *job, tti_job_result *result_out)
{
    supervisor s;
    tutti_status st = make(&s, job);

    if (st != TUTTI_OK)
        goto out;
    st = start_all(&s);
    if (st != TUTTI_OK)
        begin_stopping(&s, SIGTERM);
    watch(&s);
    if (s.phase < TELLING)
        tell_why(&s); /* there was nobody left to end */
    drain(&s);
    collect_all(&s);
    flush(&s);
    if (st == TUTTI_OK)
        st = s.broken;
    if (st == TUTTI_OK)
        fill(&s, result_out);

out:
    if (st != TUTTI_OK)
        free(s.ends);
    close_all(&s);
    return st;
}
