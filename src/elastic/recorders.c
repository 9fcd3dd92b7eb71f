/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorders.c - holds the ranks' recorders, so that they can be read when the ranks are dead.
 *
 * How     Memory without a name is made for each rank before it is started; the rank inherits the descriptor, and its
 *         number in TUTTI_RECORDER_FD. `tutti doctor` and others find it among this process's descriptors
 *         (recorder/find.c), and after a failure it is dumped from here. With the launcher the memory goes, however it
 *         ends.
 * True    Who is dumped here was killed, as a rule, and some by this launcher, when others had failed. Of those the dump says
 *         what they were at before: one that was stopped, or late, is behind the hang, and its death is none of it. */
#include "elastic/recorders.h"

#include <stdlib.h>
#include <unistd.h>
#include "recorder/dump.h"
#include "recorder/memory.h"
#include "recorder/read.h"
#include <tutti/private.h>

enum { PATH_LIMIT = 512 };

tutti_status tti_recorders_make(int n, int **fds_out)
{
    int         *fds = malloc((size_t)n * sizeof *fds);
    tutti_status st = TUTTI_OK;
    int          i;

    if (fds == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the recorders of %d ranks", n);
    for (i = 0; i < n; i++)
        fds[i] = -1;
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = tti_recorder_prepare(&fds[i]);
    if (st == TUTTI_E_ARG) {
        tti_recorders_close(fds, n);
        free(fds);
        return st;
    }
    if (st != TUTTI_OK)
        tti_log(TTI_LOG_WARN, "ranks that are killed cannot be asked what they did: %s", tutti_last_error());
    *fds_out = fds;
    return TUTTI_OK;
}

void tti_recorders_close(const int *fds, int n)
{
    int i;

    for (i = 0; fds != NULL && i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* Whether a process that has dumped a failure has made a group since, and so has gone on: its own file says how many it had. */
static bool has_gone_on(const tutti_recorder *recorder)
{
    const tutti_recorder_head *head = tti_recorder_head_of(recorder);
    tutti_recorder            *dumped = NULL;
    char                       path[PATH_LIMIT];
    bool                       more;

    if (!tti_trace_path(head->rank, head->dumps, ".rec", path, sizeof path) || tutti_recorder_open_file(path, &dumped) != TUTTI_OK)
        return false;
    more = tti_recorder_made_by(recorder) > tti_recorder_made_by(dumped);
    tutti_recorder_close(dumped);
    return more;
}

static tutti_status dump(const tutti_recorder *recorder, char *path, size_t bytes)
{
    const tutti_recorder_head *head = tti_recorder_head_of(recorder);

    path[0] = '\0';
    if (head->use == TUTTI_RECORDER_FREE)
        return TUTTI_OK; /* it has made no world */
    if (head->dumps > 0 && (head->dumps >= TTI_DUMPS_MAX || !has_gone_on(recorder)))
        return TUTTI_OK; /* it has done so itself */
    return tti_recorder_dump_of(recorder, head->dumps + 1, path, bytes);
}

void tti_recorders_dump(const int *fds, const tti_sight *sights, int n)
{
    tutti_recorder *recorder = NULL;
    char            path[PATH_LIMIT], last[PATH_LIMIT] = "";
    tutti_status    st = TUTTI_OK;
    int             i, n_dumped = 0;

    for (i = 0; i < n && tti_trace_prefix() != NULL && st == TUTTI_OK; i++) {
        if (fds[i] < 0)
            continue;
        st = tti_recorder_read_fd(fds[i], "of a rank", &recorder);
        if (st != TUTTI_OK)
            break;
        tti_recorder_date(recorder, &sights[i]);
        st = dump(recorder, path, sizeof path);
        tutti_recorder_close(recorder);
        if (st != TUTTI_OK || path[0] == '\0')
            continue;
        n_dumped++;
        memcpy(last, path, sizeof last);
    }
    if (st != TUTTI_OK)
        tti_log(TTI_LOG_WARN, "the recorder of a rank could not be dumped: %s", tutti_last_error());
    else if (n_dumped > 0)
        tti_log(TTI_LOG_WARN, "what %d rank%s did last was written, to '%s'%s", n_dumped, n_dumped == 1 ? "" : "s", last,
                n_dumped == 1 ? "" : " and the like");
}
