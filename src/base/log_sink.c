/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log_sink.c - who gets the lines of the log.
 *
 * Why     A program with a log of its own wants tutti's lines there, a test wants to read them.
 * How     A table of names for the process: the log has no handle that could carry it. Lines are handed out
 *         under its lock for reading, so that many threads log at once, and a sink that was removed has no
 *         caller left when its removal returns.
 * True    A sink that logs would wait for itself behind a writer: what its thread logs meanwhile is
 *         dropped, and changing the table in it is refused. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

typedef struct sink {
    char         name[TUTTI_LOG_SINK_NAME_MAX];
    tutti_log_fn fn; /* NULL: free */
    void        *ctx;
} sink;

#define STDERR_NAME "stderr"

/* One line, one write: lines of ranks that share a terminal do not mix. */
static void write_stderr(tutti_log_level level, const char *line, void *ctx)
{
    char    whole[2400];
    int     used = snprintf(whole, sizeof whole, "%s\n", line);
    ssize_t written;

    (void)level;
    (void)ctx;
    if (used >= (int)sizeof whole) {
        used = (int)sizeof whole - 1;
        whole[used - 1] = '\n';
    }
    written = write(STDERR_FILENO, whole, (size_t)used);
    (void)written; /* nowhere to report that the log itself cannot be written */
}

static struct {
    pthread_rwlock_t lock;
    sink             sinks[TUTTI_LOG_SINKS_MAX]; /* guarded by lock */
} table = { .lock = PTHREAD_RWLOCK_INITIALIZER, .sinks = { { STDERR_NAME, write_stderr, NULL } } };

static _Thread_local bool delivering;

void tti_log_deliver(tti_log_level level, const char *line)
{
    int i;

    if (delivering)
        return;
    delivering = true;
    pthread_rwlock_rdlock(&table.lock);
    for (i = 0; i < TUTTI_LOG_SINKS_MAX; i++)
        if (table.sinks[i].fn != NULL)
            table.sinks[i].fn((tutti_log_level)level, line, table.sinks[i].ctx);
    pthread_rwlock_unlock(&table.lock);
    delivering = false;
}

/* The sink called name, else (fn is there) a free place, else NULL. Lock held. */
static sink *place_of(const char *name, bool or_free)
{
    sink *free_one = NULL;
    int   i;

    for (i = 0; i < TUTTI_LOG_SINKS_MAX; i++) {
        if (table.sinks[i].fn == NULL)
            free_one = free_one != NULL ? free_one : &table.sinks[i];
        else if (strcmp(table.sinks[i].name, name) == 0)
            return &table.sinks[i];
    }
    return or_free ? free_one : NULL;
}

tutti_status tutti_log_set_sink(const char *name, tutti_log_fn fn, void *ctx)
{
    sink *place;

    if (name == NULL || name[0] == '\0' || strlen(name) >= TUTTI_LOG_SINK_NAME_MAX)
        return tti_fail(TUTTI_E_ARG, "tutti_log_set_sink: a name has 1 to %d bytes",
                        TUTTI_LOG_SINK_NAME_MAX - 1);
    if (delivering)
        return tti_fail(TUTTI_E_STATE, "tutti_log_set_sink: called by a sink, for '%s'", name);
    pthread_rwlock_wrlock(&table.lock);
    place = place_of(name, fn != NULL);
    if (place != NULL) {
        snprintf(place->name, sizeof place->name, "%s", name);
        place->fn = fn;
        place->ctx = ctx;
    }
    pthread_rwlock_unlock(&table.lock);
    if (place == NULL && fn != NULL)
        return tti_fail(TUTTI_E_NOMEM, "tutti_log_set_sink: there are %d sinks, no room for '%s'",
                        TUTTI_LOG_SINKS_MAX, name);
    return TUTTI_OK;
}

tutti_status tutti_log_restore_stderr(void)
{
    return tutti_log_set_sink(STDERR_NAME, write_stderr, NULL);
}

/* A sink that forks has the lock for reading: nobody writes meanwhile, and it lets go of it itself, on both sides. */
static void before_fork(void)
{
    if (!delivering)
        pthread_rwlock_wrlock(&table.lock);
}

/* The lock's writer was a thread by another number: who unlocks it here is not the one that it knows. */
static void make_anew(void)
{
#if defined(__SANITIZE_THREAD__) /* which else takes it for one that is held still */
    __tsan_mutex_pre_unlock(&table.lock, 0);
    __tsan_mutex_post_unlock(&table.lock, 0);
#endif
    (void)pthread_rwlock_init(&table.lock, NULL);
}

static void after_fork(bool in_child)
{
    if (in_child && !delivering)
        make_anew();
    else if (!delivering)
        pthread_rwlock_unlock(&table.lock);
}

tti_fork_part *tti_log_fork_part(void)
{
    static tti_fork_part part = { .before = before_fork, .after = after_fork, .known = true };

    return &part;
}
