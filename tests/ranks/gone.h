/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gone.h - waiting until another rank is stopped, or has left, as far as this one can know. */
#ifndef GONE_H
#define GONE_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
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
