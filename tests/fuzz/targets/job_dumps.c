/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_dumps.c - saved recorders of several ranks, as `tutti doctor hang` and `tutti trace` put them together.
 *
 * How     The input is one to three files. Its first byte says which of them are of a process that lived when they were written, how
 *         that one was, or is, and whether they are looked at as files, or as recorders of a job that runs, of whose processes the
 *         tools then ask /proc. The files are known to the kernel as little as their
 *         descriptors (fuzz/descriptors.h), and what /proc says of a process that lives is asked for once.
 * Holds   What is written is JSON; whom somebody waits for is a rank of the job. */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <jansson.h>
#include "base/machine.h"
#include "fuzz/descriptors.h"
#include "recorder/find.h"
#include "../tools/hang.h"
#include "../tools/trace.h"

enum { FILES_MAX = 3, WORLDS_MAX = 4, RANKS_MAX = 100 };

/* ---- in place of tools/process.c ---- */

typedef enum manner { AS_FILES, AS_JOB, AS_JOB_OF_MORE, AS_JOB_THAT_RECORDS_NOTHING } manner;

static struct {
    unsigned alive;   /* a bit for each file */
    unsigned life;    /* 0 .. 7 */
    manner   manner;
    double   cpu_s;   /* what processes have used: it grows with every look at one */
} how; /* the first byte of the input */

static void take_how(uint8_t byte)
{
    how.alive = byte & 7;
    how.life = byte >> 3 & 7;
    how.manner = (manner)(byte >> 6);
    how.cpu_s = 0;
}

process_facts process_look(pid_t pid)
{
    (void)pid;
    how.cpu_s += how.manner == AS_JOB ? 0.5 : 0;
    return (process_facts){ .life = (process_life)(how.life % (PROCESS_DISK + 1)), .state = 'S', .waits_in = "futex", .cpu_s = how.cpu_s };
}

/* What the launcher has told it. */
bool process_variable(pid_t pid, const char *name, char *value, size_t bytes)
{
    if (how.manner < AS_JOB_OF_MORE || strcmp(name, "RANK") != 0)
        return false;
    snprintf(value, bytes, "%d", (int)(pid & 3));
    return true;
}

bool process_records_nothing(pid_t pid, char why_out[PROCESS_WORD_MAX])
{
    (void)pid;
    snprintf(why_out, PROCESS_WORD_MAX, "TUTTI_RECORDER=0");
    return how.manner == AS_JOB_THAT_RECORDS_NOTHING;
}

/* Others of the job that have no recorder. */
int process_find(const char *run_id, pid_t *pids, int *ranks, int max)
{
    int n = 0;

    (void)run_id;
    for (; how.manner >= AS_JOB_OF_MORE && n < 4 && n < max; n++) {
        pids[n] = 1000 + n;
        ranks[n] = n;
    }
    return n;
}

/* ---- the files ---- */

typedef struct files {
    char  names[FILES_MAX][TT_FD_PATH_BYTES];
    char *list[FILES_MAX];
    int   fds[FILES_MAX];
    int   n;
} files;

/* How the process was that a recorder is of, as its file says, if it is of those that do. */
static void tell_state(tutti_recorder_head *head)
{
    static const char letters[] = "RSDTtXZS";

    if (head->head_bytes >= sizeof *head)
        head->saved_state = (uint8_t)letters[how.life];
}

/* A process that lives here. */
typedef struct living {
    int64_t  pid, seen_here;
    uint64_t began;
    char     state;
} living;

int64_t __real_tti_process_seen_here(int64_t inner, uint64_t began, char *state_out);
int64_t __wrap_tti_process_seen_here(int64_t inner, uint64_t began, char *state_out);

/* This one, who started it, and the first of all, one for each file: what /proc says of them is asked for once. */
static const living *living_of(int file)
{
    static living all[FILES_MAX];
    static bool   known;
    int           i;

    if (!known || all[0].pid != getpid()) {
        known = true;
        all[0].pid = getpid();
        all[1].pid = getppid();
        all[2].pid = 1;
        for (i = 0; i < FILES_MAX; i++) {
            all[i].began = tti_process_began((pid_t)all[i].pid);
            all[i].seen_here = __real_tti_process_seen_here(all[i].pid, all[i].began, &all[i].state);
        }
    }
    return &all[file];
}

/* In place of recorder/find.c's. */
int64_t __wrap_tti_process_seen_here(int64_t inner, uint64_t began, char *state_out)
{
    int i;

    for (i = 0; i < FILES_MAX; i++)
        if (living_of(i)->pid == inner && living_of(i)->began == began) {
            *state_out = living_of(i)->state;
            return living_of(i)->seen_here;
        }
    return __real_tti_process_seen_here(inner, began, state_out);
}

/* Have it be one of those; the file is memory then, as a recorder is, and its process is looked for. */
static void bring_to_life(tutti_recorder_head *head, int file)
{
    static char boot[TTI_BOOT_ID_BYTES];

    if (boot[0] == '\0')
        TT_MUST(tti_boot_id(boot) && sizeof boot <= sizeof head->boot);
    head->pid = living_of(file)->pid;
    head->pid_began = living_of(file)->began;
    memcpy(head->boot, boot, sizeof boot);
}

static void change_head(uint8_t *data, size_t size, int file, bool alive)
{
    tutti_recorder_head head;

    if (size < sizeof head)
        return;
    memcpy(&head, data, sizeof head);
    tell_state(&head);
    if (alive)
        bring_to_life(&head, file);
    memcpy(data, &head, sizeof head);
}

static void add_file(files *f, const uint8_t *data, size_t size)
{
    const bool alive = (how.alive >> f->n & 1) != 0;
    uint8_t   *copy = tt_copy(data, size);
    int        fd;

    change_head(copy, size, f->n, alive);
    fd = tt_fd_memory(copy, size, alive ? F_SEAL_SHRINK : 0);
    free(copy);
    tt_fd_path(fd, f->names[f->n]);
    f->list[f->n] = f->names[f->n];
    f->fds[f->n++] = fd;
}

static void close_files(files *f)
{
    while (f->n > 0)
        close(f->fds[--f->n]);
}

/* ---- the tools ---- */

/* Worlds whose ranks are nearly all unseen take long, with the square of their number, and show nothing that small ones do not. */
static bool is_small(const job_view *view, int world)
{
    int i;

    if (world >= 0 && view->worlds[world].size > RANKS_MAX)
        return false;
    for (i = 0; i < view->n_ranks; i++)
        if (view->ranks[i].rank > RANKS_MAX || view->ranks[i].first_rank > RANKS_MAX || view->ranks[i].info.world_size > RANKS_MAX)
            return false;
    return true;
}

static void look_at_world(const job_view *view, int world, const hang_look *look)
{
    hang        h = { .n = 0 };
    const char *job = view->n_ranks > 0 ? view->ranks[0].info.job : "";
    json_t     *json;
    char       *text;
    int         i, k;

    TT_MUST(hang_find(view, world >= 0 ? view->worlds[world].job : job, world, look, 0, &h));
    for (i = 0; i < h.n; i++)
        for (k = 0; k < h.ranks[i].n_awaits; k++)
            TT_MUST(h.ranks[i].awaits[k] >= 0 && h.ranks[i].awaits[k] < h.n);
    hang_print(&h, true);
    json = hang_json(&h);
    TT_MUST(json != NULL && (text = json_dumps(json, 0)) != NULL);
    free(text);
    json_decref(json);
    hang_release(&h);
}

static void try_hang(job_view *view)
{
    hang_look look;
    int       i;

    view->from_files = how.manner == AS_FILES;
    TT_MUST(hang_look_begin(view, &look));
    look.at_ns -= TTI_SECOND; /* the first look was a second ago */
    job_view_update(view);
    TT_MUST(job_view_arrange(view, true));
    for (i = -1; i < view->n_worlds && i < WORLDS_MAX; i++)
        if (is_small(view, i))
            look_at_world(view, i, &look);
    hang_look_release(&look);
}

static void try_trace(job_view *view)
{
    trace       t = { .view = NULL };
    trace_flow *flows = NULL;
    char       *text = NULL;
    size_t      bytes = 0;
    FILE       *out = open_memstream(&text, &bytes);
    json_t     *json;
    int         n = 0;

    TT_MUST(out != NULL && job_view_arrange(view, false) && trace_make(view, &t) && trace_match(&t, &flows, &n));
    TT_MUST(trace_write(&t, flows, n, out) && fclose(out) == 0);
    json = json_loadb(text, bytes, 0, NULL);
    TT_MUST(json != NULL);
    json_decref(json);
    free(text);
    free(flows);
    trace_release(&t);
}

/* Once for each process: jobs and processes that are named, not files, and are not there. */
static void ask_for_nobody(void)
{
    static bool done;
    char        own[24], odd[] = "12x", high[] = "999999999", *const nobody[] = { odd, high }, *const self[] = { own };
    job_view    view = { .recorders = NULL };

    if (done)
        return;
    done = true;
    snprintf(own, sizeof own, "%ld", (long)getpid());
    TT_MUST(!job_view_find("fuzz", "a job that nobody has", &view));
    job_view_release(&view);
    TT_MUST(!job_view_open_pids("fuzz", nobody, 1, &view));
    job_view_release(&view);
    TT_MUST(!job_view_open_pids("fuzz", nobody + 1, 1, &view));
    job_view_release(&view);
    (void)job_view_open_pids("fuzz", self, 1, &view);
    job_view_release(&view);
}

/* What is meant for people goes nowhere. */
static void run(files *f)
{
    static FILE *nowhere;
    FILE *const  out = stdout, *const err = stderr;
    job_view     view = { .recorders = NULL };

    if (nowhere == NULL)
        nowhere = fopen("/dev/null", "we");
    TT_MUST(nowhere != NULL);
    stdout = stderr = nowhere;
    ask_for_nobody();
    if (job_view_open_files("fuzz", f->list, f->n, &view)) {
        try_hang(&view);
        try_trace(&view);
    }
    job_view_release(&view);
    stdout = out;
    stderr = err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_input in = tt_input_of(data, size);
    files    f = { .n = 0 };
    tt_input part;

    take_how((uint8_t)tt_take(&in, 1));
    while (in.left > 2 && f.n < FILES_MAX) {
        part = tt_take_sized(&in);
        add_file(&f, part.at, part.left);
    }
    if (f.n > 0)
        run(&f);
    close_files(&f);
    TT_MUST(tt_fds_open() == 0);
    return 0;
}
