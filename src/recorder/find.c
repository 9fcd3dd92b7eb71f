/* SPDX-License-Identifier: BSD-3-Clause
 *
 * find.c - looks for recorders: in the descriptors of the processes of this machine.
 *
 * How     /proc/PID/fd has a link for each descriptor, and a recorder's memory has a name there. A process's own
 *         is in its own descriptors while it lives; of a dead one somebody else holds a descriptor: its launcher, or a
 *         neighbour. So the living are asked directly, and for the dead all are looked through. The head says whose a
 *         memory is; numbers of processes are used again, so the moment it began is compared, too. In a container a
 *         process has another number than outside, which its NSpid line tells.
 * Fails   Whose descriptors this user may not see is passed over. */
#include "recorder/find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fork.h"
#include "base/port.h"
#include "recorder/memory.h"
#include "recorder/read.h"
#include <tutti/private.h>

/* ---- processes ---- */

/* A small file of /proc as text: false if it is not there. pid 0: this process, also where /proc is that of another namespace,
 * in which it has another number than it sees itself. */
static bool read_proc(int64_t pid, const char *name, char *text, size_t bytes)
{
    char    path[64];
    int     fd;
    ssize_t got;

    if (pid == 0)
        snprintf(path, sizeof path, "/proc/self/%s", name);
    else
        snprintf(path, sizeof path, "/proc/%lld/%s", (long long)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    got = read(fd, text, bytes - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* The command's name, in parentheses, may have spaces and parentheses: fields are counted behind the last one. */
static uint64_t read_stat(int64_t pid, char *state_out)
{
    enum { FIRST_BEHIND = 3, START = 22 };
    char     text[1024];
    char    *at;
    int      field;

    if (!read_proc(pid, "stat", text, sizeof text))
        return 0;
    at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ')
        return 0;
    *state_out = at[2];
    for (field = FIRST_BEHIND - 1; at != NULL && field < START; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

uint64_t tti_process_began(int64_t pid)
{
    char state;

    return read_stat(pid, &state);
}

char tti_process_letter(int64_t pid)
{
    char state = '\0';

    (void)read_stat(pid, &state);
    return state;
}

/* The number of process pid as it sees it itself: the last one of its NSpid line. */
static int64_t inner_pid(int64_t pid)
{
    char  text[4096];
    char *line, *last;

    if (!read_proc(pid, "status", text, sizeof text))
        return pid;
    line = strstr(text, "\nNSpid:");
    if (line == NULL)
        return pid;
    line += sizeof "\nNSpid:" - 1;
    line[strcspn(line, "\n")] = '\0';
    last = strrchr(line, '\t');
    return last != NULL ? strtoll(last + 1, NULL, 10) : pid;
}

/* Whether process pid is the one that sees itself as inner, and began then. */
static bool is_that(int64_t pid, int64_t inner, uint64_t began, char *state_out)
{
    char state = '\0';

    if (read_stat(pid, &state) != began || inner_pid(pid) != inner)
        return false;
    *state_out = state;
    return true;
}

int64_t tti_process_seen_here(int64_t inner, uint64_t began, char *state_out)
{
    DIR           *dir;
    struct dirent *entry;
    int64_t        pid, found = 0;

    if (inner <= 0 || began == 0)
        return 0;
    if (is_that(inner, inner, began, state_out))
        return inner;
    dir = opendir("/proc");
    while (dir != NULL && found == 0 && (entry = readdir(dir)) != NULL) {
        pid = strtoll(entry->d_name, NULL, 10); /* what is no number is 0 */
        if (pid > 0 && is_that(pid, inner, began, state_out))
            found = pid;
    }
    if (dir != NULL)
        closedir(dir);
    return found;
}

bool tti_recorder_is_memory(int fd)
{
    const int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

/* ---- their descriptors ---- */

/* What is looked for, and where it is collected. */
typedef struct search {
    int64_t          pid;   /* 0: of any process */
    uint64_t         began; /* of that process; 0: of any */
    const char      *job;   /* NULL: of any */
    tutti_recorder **list;
    int              n;
    int              room;
    bool             no_memory;
} search;

static bool is_named(int dir, const char *entry)
{
    static const char name[] = "/memfd:" TTI_RECORDER_NAME;
    char              target[64];
    const ssize_t     got = readlinkat(dir, entry, target, sizeof target);

    return got >= (ssize_t)sizeof name - 1 && memcmp(target, name, sizeof name - 1) == 0;
}

static bool is_wanted(const search *s, const tutti_recorder_head *head)
{
    if (head->use == TUTTI_RECORDER_FREE || head->pid == 0 || (s->pid != 0 && head->pid != s->pid) ||
        (s->began != 0 && head->pid_began != s->began))
        return false;
    return s->job == NULL || strncmp(head->job, s->job, sizeof head->job) == 0;
}

static bool is_known(const search *s, int fd)
{
    int i;

    for (i = 0; i < s->n; i++)
        if (tti_recorder_reads_same(s->list[i], fd))
            return true;
    return false;
}

static void collect(search *s, int fd, const char *path)
{
    tutti_recorder **more;
    tutti_recorder  *found = NULL;

    if (s->n == s->room) {
        more = realloc(s->list, ((size_t)s->room * 2 + 16) * sizeof *more);
        s->no_memory = more == NULL;
        if (more == NULL)
            return;
        s->list = more;
        s->room = s->room * 2 + 16;
    }
    if (tti_recorder_read_fd(fd, path, &found) == TUTTI_OK)
        s->list[s->n++] = found;
}

static void look_at(search *s, int64_t pid, int dir, const char *entry)
{
    tutti_recorder_head head;
    char                path[64];
    int                 fd;

    if (!is_named(dir, entry))
        return;
    fd = openat(dir, entry, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe may have that name in another's folders */
    if (fd < 0)
        return;
    snprintf(path, sizeof path, "/proc/%lld/fd/%.16s", (long long)pid, entry);
    if (pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head && is_wanted(s, &head) && !is_known(s, fd))
        collect(s, fd, path); /* it has a descriptor of its own from there on */
    close(fd);
}

static void look_into(search *s, int64_t pid)
{
    char           path[48];
    DIR           *dir;
    struct dirent *entry;

    snprintf(path, sizeof path, "/proc/%lld/fd", (long long)pid);
    dir = opendir(path);
    while (dir != NULL && !s->no_memory && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            look_at(s, pid, dirfd(dir), entry->d_name);
    if (dir != NULL)
        closedir(dir);
}

static tutti_status look_everywhere(search *s)
{
    DIR           *dir = opendir("/proc");
    struct dirent *entry;
    char          *end;
    long long      pid;

    if (dir == NULL)
        return tti_fail_errno(errno, "cannot look for recorders in /proc");
    while (!s->no_memory && (entry = readdir(dir)) != NULL) {
        pid = strtoll(entry->d_name, &end, 10);
        if (pid > 0 && *end == '\0')
            look_into(s, pid);
    }
    closedir(dir);
    return s->no_memory ? tti_fail(TUTTI_E_NOMEM, "no memory for a list of recorders") : TUTTI_OK;
}

/* ---- neighbours ---- */

uint64_t tti_recorder_to_hold(void)
{
    const tti_ring *ring = tti_port_stand_in() == NULL ? tti_ring_now() : NULL;

    return ring != NULL && !ring->is_held ? (uint64_t)ring->fd + 1 : 0;
}

int tti_recorder_hold(int64_t pid, uint64_t number)
{
    tutti_recorder_head head;
    char                path[64];
    int                 fd;

    if (number == 0 || number > INT32_MAX)
        return -1;
    snprintf(path, sizeof path, "/proc/%lld/fd/%llu", (long long)pid, (unsigned long long)number - 1);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && tti_recorder_is_memory(fd) && pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
        memcmp(head.magic, TUTTI_RECORDER_MAGIC, sizeof head.magic) == 0 && head.pid == pid) {
        tti_fork_own(fd);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

void tti_recorder_let_go(int fd)
{
    tti_fork_disown(fd);
    if (fd >= 0)
        close(fd);
}

/* ---- answers ---- */

/* Keep the one whose process began last; numbers come again. */
static tutti_recorder *keep_newest(search *s)
{
    tutti_recorder *best = NULL;
    int             i;

    for (i = 0; i < s->n; i++) {
        if (best == NULL || tti_recorder_head_of(s->list[i])->pid_began > tti_recorder_head_of(best)->pid_began) {
            tutti_recorder_close(best);
            best = s->list[i];
        } else {
            tutti_recorder_close(s->list[i]);
        }
    }
    free(s->list);
    return best;
}

tutti_status tutti_recorder_open_pid(int64_t pid, tutti_recorder **recorder_out)
{
    search          s = { .pid = pid };
    tutti_recorder *found;
    tutti_status    st = TUTTI_OK;

    if (recorder_out == NULL || pid < 0)
        return tti_fail(TUTTI_E_ARG, "tutti_recorder_open_pid: %s",
                        recorder_out == NULL ? "recorder_out is NULL" : "the number of a process is not negative");
    if (pid == 0 && tti_ring_now() != NULL)
        return tti_recorder_read_fd(tti_ring_now()->fd, "of this process", recorder_out);
    if (pid == 0)
        pid = s.pid = getpid();
    s.began = tti_process_began(pid);
    if (s.began != 0) {
        s.pid = inner_pid(pid);
        look_into(&s, pid);
    }
    if (s.n == 0)
        st = look_everywhere(&s); /* it is dead, or has closed its descriptors */
    found = keep_newest(&s);
    if (st == TUTTI_OK && found == NULL)
        return tti_fail(TUTTI_E_STATE, "there is no recorder of process %lld here: it %s, or this user may not look\n"
                                       "  next: ask as its user; a dead process's is held by its launcher, while that runs",
                        (long long)pid, s.began != 0 ? "has made no world, or TUTTI_RECORDER is 0" : "is gone, nobody holds it");
    if (st == TUTTI_OK)
        *recorder_out = found;
    else
        tutti_recorder_close(found);
    return st;
}

static int by_rank(const void *a, const void *b)
{
    const tutti_recorder_head *x = tti_recorder_head_of(*(tutti_recorder *const *)a);
    const tutti_recorder_head *y = tti_recorder_head_of(*(tutti_recorder *const *)b);

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

tutti_status tutti_recorder_find(const char *job, tutti_recorder ***list_out, int *n_out)
{
    search       s = { .job = job };
    tutti_status st;

    if (list_out == NULL || n_out == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_recorder_find: %s is NULL", list_out == NULL ? "list_out" : "n_out");
    st = look_everywhere(&s);
    if (st != TUTTI_OK) {
        tutti_recorder_list_free(s.list, s.n);
        return st;
    }
    if (s.n > 1)
        qsort(s.list, (size_t)s.n, sizeof(tutti_recorder *), by_rank);
    *list_out = s.list;
    *n_out = s.n;
    return TUTTI_OK;
}

void tutti_recorder_list_free(tutti_recorder **list, int n)
{
    int i;

    for (i = 0; i < n; i++)
        tutti_recorder_close(list[i]);
    free(list);
}
