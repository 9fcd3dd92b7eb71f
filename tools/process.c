/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.c - /proc/PID: stat, syscall, wchan, status, environ. Nothing is attached to, so a process that is looked at
 * does not notice. The system call can be read by who might trace the process; without that there is the place in the
 * kernel, and without that nothing but the state. */
#include "process.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "proc.h"

enum { PATH_BYTES = 64, STAT_BYTES = 1024, ENVIRON_BYTES = 1 << 20 };

static const struct {
    long number;
    const char *name;
} calls[] = {
    { SYS_read, "read" },           { SYS_write, "write" },       { SYS_readv, "readv" },
    { SYS_writev, "writev" },       { SYS_ppoll, "ppoll" },       { SYS_pselect6, "pselect" },
    { SYS_futex, "futex" },         { SYS_nanosleep, "nanosleep" }, { SYS_clock_nanosleep, "clock_nanosleep" },
    { SYS_epoll_pwait, "epoll_wait" }, { SYS_connect, "connect" }, { SYS_accept4, "accept" },
    { SYS_recvfrom, "recv" },       { SYS_sendto, "send" },       { SYS_recvmsg, "recvmsg" },
    { SYS_sendmsg, "sendmsg" },     { SYS_wait4, "wait" },        { SYS_waitid, "waitid" },
    { SYS_openat, "open" },         { SYS_fsync, "fsync" },       { SYS_flock, "flock" },
    { SYS_fcntl, "fcntl" },         { SYS_rt_sigtimedwait, "sigwait" }, { SYS_rt_sigsuspend, "sigsuspend" },
#ifdef SYS_poll
    { SYS_poll, "poll" },           { SYS_select, "select" },     { SYS_epoll_wait, "epoll_wait" },
    { SYS_pause, "pause" },         { SYS_open, "open" },
#endif
};

static void name_call(long number, char out[PROCESS_WORD_MAX])
{
    size_t i;

    for (i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].number == number) {
            snprintf(out, PROCESS_WORD_MAX, "%s()", calls[i].name);
            return;
        }
    snprintf(out, PROCESS_WORD_MAX, "system call %ld", number);
}

/* The system call that the first thread is in, else the function of the kernel. */
static void read_wait(pid_t pid, process_facts *f)
{
    char path[PATH_BYTES], text[STAT_BYTES], *end;
    long number;

    snprintf(path, sizeof path, "/proc/%ld/syscall", (long)pid);
    if (proc_line(path, text, sizeof text)) {
        number = strtol(text, &end, 10);
        if (end != text && number >= 0)
            name_call(number, f->waits_in);
        if (end != text)
            return;
    }
    snprintf(path, sizeof path, "/proc/%ld/wchan", (long)pid);
    if (proc_line(path, text, sizeof text) && strcmp(text, "0") != 0)
        snprintf(f->waits_in, sizeof f->waits_in, "%.*s", PROCESS_WORD_MAX - 1, text);
}

static bool is_frozen(pid_t pid)
{
    char path[PATH_BYTES], text[STAT_BYTES];

    snprintf(path, sizeof path, "/proc/%ld/wchan", (long)pid);
    return proc_line(path, text, sizeof text) && (strstr(text, "freezer") != NULL || strstr(text, "refrigerator") != NULL);
}

static void read_tracer(pid_t pid, process_facts *f)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    f->tracer = (long)proc_value(path, "TracerPid");
    if (f->tracer <= 0)
        return;
    snprintf(path, sizeof path, "/proc/%ld/comm", f->tracer);
    proc_line(path, f->tracer_name, sizeof f->tracer_name);
}

static process_life life_of(char state)
{
    switch (state) {
    case 'R': return PROCESS_RUNS;
    case 'S':
    case 'I': return PROCESS_SLEEPS;
    case 'T': return PROCESS_STOPPED;
    case 't': return PROCESS_TRACED;
    case 'D': return PROCESS_DISK;
    default: return PROCESS_GONE; /* Z, X */
    }
}

process_facts process_look(pid_t pid)
{
    process_facts f = { .life = PROCESS_GONE, .state = '?' };
    char path[PATH_BYTES], text[STAT_BYTES];
    const char *behind;
    unsigned long long user = 0, kernel = 0;

    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    if (pid <= 0 || !proc_line(path, text, sizeof text))
        return f;
    behind = strrchr(text, ')'); /* the program's name may have any character */
    if (behind == NULL ||
        sscanf(behind + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &f.state, &user, &kernel) != 3)
        return f;
    f.life = life_of(f.state);
    f.cpu_s = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
    read_wait(pid, &f);
    read_tracer(pid, &f);
    if ((f.life == PROCESS_SLEEPS || f.life == PROCESS_DISK) && is_frozen(pid))
        f.life = PROCESS_FROZEN;
    return f;
}

/* ---- environments ------------------------------------------------------------------------------ */

static char *read_environ(pid_t pid, size_t *bytes_out)
{
    char path[PATH_BYTES], *text;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return NULL;
    text = malloc(ENVIRON_BYTES);
    if (text != NULL) {
        *bytes_out = fread(text, 1, ENVIRON_BYTES - 1, file);
        text[*bytes_out] = '\0';
    }
    fclose(file);
    return text;
}

static const char *find_variable(const char *text, size_t bytes, const char *name)
{
    const size_t len = strlen(name);
    const char *at = text;

    for (; at < text + bytes; at += strlen(at) + 1)
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return at + len + 1;
    return NULL;
}

bool process_variable(pid_t pid, const char *name, char *value, size_t bytes)
{
    size_t n = 0;
    char *text = read_environ(pid, &n);
    const char *found = text != NULL ? find_variable(text, n, name) : NULL;

    if (found != NULL)
        snprintf(value, bytes, "%s", found);
    free(text);
    return found != NULL;
}

bool process_records_nothing(pid_t pid, char why_out[PROCESS_WORD_MAX])
{
    static const char *const switches[] = { "TUTTI_RECORDER", "TUTTI_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE",
                                            "TORCH_NCCL_TRACE_BUFFER_SIZE" };
    char value[16];
    size_t i;

    for (i = 0; i < sizeof switches / sizeof switches[0]; i++)
        if (process_variable(pid, switches[i], value, sizeof value)) {
            snprintf(why_out, PROCESS_WORD_MAX, "%s=%s", switches[i], value);
            if (i == 0 ? value[0] != '\0' && strchr("0nNfF", value[0]) != NULL : strcmp(value, "0") == 0)
                return true;
            if (i > 0)
                return false; /* the first of the sizes counts */
        }
    return false;
}

/* The rank that a process was given in a job, or -1. */
static int rank_in(pid_t pid, const char *run_id)
{
    size_t n = 0;
    char *text = read_environ(pid, &n);
    const char *id = text != NULL ? find_variable(text, n, "TORCHELASTIC_RUN_ID") : NULL;
    const char *rank = text != NULL ? find_variable(text, n, "RANK") : NULL;
    const int found = id != NULL && rank != NULL && strcmp(id, run_id) == 0 ? atoi(rank) : -1;

    free(text);
    return found;
}

int process_find(const char *run_id, pid_t *pids, int *ranks, int max)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int n = 0, rank;

    while (dir != NULL && n < max && (entry = readdir(dir)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        rank = rank_in((pid_t)atoi(entry->d_name), run_id);
        if (rank < 0)
            continue;
        pids[n] = (pid_t)atoi(entry->d_name);
        ranks[n++] = rank;
    }
    if (dir != NULL)
        closedir(dir);
    return n;
}
