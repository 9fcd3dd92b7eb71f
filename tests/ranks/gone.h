/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gone.h - ranks that have left, or are stopped for a while: knowing that another one is, and being one. */
#ifndef GONE_H
#define GONE_H

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

/* Whether all threads of a process have stopped: each does when it gets a core. */
static inline bool tt_is_stopped(int pid)
{
    char           path[512], state = 'T';
    struct dirent *entry;
    DIR           *tasks;
    FILE          *file;

    snprintf(path, sizeof path, "/proc/%d/task", pid);
    tasks = opendir(path);
    assert_non_null(tasks);
    while (state == 'T' && (entry = readdir(tasks)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.32s/stat", pid, entry->d_name);
        file = fopen(path, "r");
        if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
            state = '?';
        if (file != NULL)
            fclose(file);
    }
    closedir(tasks);
    return state == 'T';
}

/* For tutti_log_set_sink(): this rank stops as soon as it has met the others of a world of four, before they are through. */
static inline void tt_stop_when_met(tutti_log_level level, const char *line, void *ctx)
{
    (void)level;
    (void)ctx;
    if (strstr(line, "world of 4 on ") != NULL)
        kill(getpid(), SIGSTOP);
}

/* A child, to be waited for, lets this rank go on when n have posted mark. */
static inline pid_t tt_wake_later(tt_ctx *t, int mark, int n)
{
    const pid_t self = getpid();
    const pid_t helper = fork();

    if (helper == 0) {
        tt_await(t, mark, (uint32_t)n);
        kill(self, SIGCONT);
        _exit(0);
    }
    return helper;
}

/* Until rank's goodbye is here, some seconds at most: who is not scheduled may see its doors shut before, and would not know how it has
 * ended. */
static inline void tt_await_goodbye(tt_ctx *t, int rank)
{
    const struct timespec moment = { .tv_nsec = 20000000 };
    int32_t               x = 0;
    int                   tries;

    for (tries = 0; tries < 150; tries++) {
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), rank, 7, t->group, NULL), TUTTI_E_PEER);
        if (strstr(tutti_last_error(), "has left") != NULL && strstr(tutti_last_error(), "has left or died") == NULL)
            return;
        nanosleep(&moment, NULL);
    }
}

#endif
