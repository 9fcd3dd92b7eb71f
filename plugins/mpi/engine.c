/* SPDX-License-Identifier: BSD-3-Clause
 *
 * engine.c - MPI itself, of which a process has one.
 *
 * Threads  All calls of MPI are made under one lock, and none of them waits, so MPI_THREAD_SERIALIZED is enough for
 *          us. A program that calls MPI as well does not know the lock: it needs MPI_THREAD_MULTIPLE, which is asked
 *          for here, and has to be asked for by a program that begins MPI itself. One call does wait, the one
 *          that makes a group's communicator: with MPI_THREAD_MULTIPLE it is made without the lock.
 * End      What we have begun is ended when the process exits, as MPI cannot begin twice. MPI_Finalize waits for all
 *          ranks, so it is called only after an orderly end: every group was destroyed, none had failed, and MPI has
 *          nothing of ours any more. Else the process goes without, and mpirun, which sees that, ends the others.
 *          What the program has begun it ends, and it may end what we have; MPI then first deletes what hangs on
 *          MPI_COMM_SELF, which is how we learn of it. Groups that are open then fail, in words, what is MPI's is
 *          given back, and from there on MPI is called no more: it would end the process. `ended` is set once, under the
 *          lock, after the last call; whoever calls MPI holds the lock and looks at it first. It is atomic for those that
 *          put words together without the lock.
 * Errors   Our communicators return them. If we have begun MPI, MPI_COMM_WORLD does, too. */
#include "mpi_backend.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    bool            up;       /* facts are there */
    bool            ours;     /* we have begun MPI */
    pid_t           process;  /* in this process: a child that was forked has nothing to end */
    int             groups;   /* open ones */
    bool            disorder; /* a group has failed */
    _Atomic bool    ended;    /* MPI, or it does in a moment */
    tmpi_facts      facts;
} engine = { .lock = PTHREAD_MUTEX_INITIALIZER };

void tmpi_lock(void)
{
    pthread_mutex_lock(&engine.lock);
}

void tmpi_unlock(void)
{
    pthread_mutex_unlock(&engine.lock);
}

const tmpi_facts *tmpi_engine_facts(void)
{
    return &engine.facts;
}

void tmpi_engine_enter(void)
{
    engine.groups++;
}

void tmpi_engine_leave(bool failed)
{
    engine.groups--;
    engine.disorder |= failed;
}

bool tmpi_has_ended(void)
{
    return engine.ended;
}

tutti_status tmpi_fail_ended(void)
{
    return tmpi_host->fail(TUTTI_E_STATE, "MPI has ended in this process, and cannot begin again\n"
                                          "  next: call MPI_Finalize after the last group of backend 'mpi' is destroyed");
}

tutti_status tmpi_fail_mpi(int code, const char *what, const char *group)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int  length = 0;

    if (tmpi_has_ended())
        return tmpi_fail_ended();
    MPI_Error_string(code, words, &length);
    words[strcspn(words, "\n")] = '\0';
    return tmpi_host->fail(TUTTI_E_BACKEND, "%s on group '%s': MPI says '%.200s'", what, group, words);
}

tutti_status tmpi_usable(void)
{
    int ended = 0;

    MPI_Finalized(&ended); /* may be called at any time */
    return ended || tmpi_has_ended() ? tmpi_fail_ended() : TUTTI_OK;
}

/* ---- beginning ---- */

/* Open MPI opens parts of its own at run time, which look for its symbols among those that everybody sees; a plug-in's
 * libraries are not seen by everybody. */
static void show_library(void)
{
    const char *file = tmpi_library_file();

    if (file != NULL)
        (void)dlopen(file, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

static bool is_orderly(void)
{
    return engine.ours && engine.groups == 0 && !engine.disorder && !tmpi_messages_left();
}

/* At exit. */
static void end_mpi(void)
{
    int ended = 0;

    if (engine.process != getpid())
        return;
    tmpi_messages_stop();
    tmpi_lock();
    if (MPI_Finalized(&ended) == MPI_SUCCESS && !ended) {
        if (is_orderly()) {
            MPI_Type_free(&engine.facts.block);
            engine.ended = true; /* before what is told of the end looks */
            MPI_Finalize();
        } else if (engine.ours) {
            tmpi_host->log(TUTTI_LOG_WARN, "this process ends without MPI_Finalize, as a group of backend 'mpi' %s%s",
                           engine.groups > 0 ? "was not destroyed"
                           : engine.disorder ? "had failed"
                                             : "has messages that nobody took",
                           engine.facts.size > 1 ? ": mpirun will end the other ranks" : ""); /* alone: no mpirun, or no others */
        }
    }
    tmpi_unlock();
}

/* In MPI_Finalize. In our own there is nothing left to do, and the lock is held. */
static int mpi_ends(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    if (engine.ended)
        return MPI_SUCCESS;
    tmpi_lock();
    tmpi_groups_end();
    tmpi_unlock();
    tmpi_messages_stop();
    tmpi_lock();
    if (engine.up)
        MPI_Type_free(&engine.facts.block); /* what MPI still moves of that type, it moves */
    engine.ended = true;
    tmpi_unlock();
    return MPI_SUCCESS;
}

static tutti_status learn_of_end(void)
{
    int key = MPI_KEYVAL_INVALID;
    int code = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, mpi_ends, &key, NULL);

    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_free_keyval(&key); /* it goes with the last use */
    return code == MPI_SUCCESS ? TUTTI_OK : tmpi_fail_mpi(code, "asking to be told of MPI's end", "world");
}

static const char *level_name(int level)
{
    return level == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED";
}

static tutti_status begin_mpi(int *level_out)
{
    int ended = 0, begun = 0, code;

    MPI_Finalized(&ended);
    MPI_Initialized(&begun);
    if (ended)
        return tmpi_fail_ended();
    if (begun) {
        MPI_Query_thread(level_out);
        if (*level_out >= MPI_THREAD_SERIALIZED)
            return learn_of_end();
        return tmpi_host->fail(TUTTI_E_STATE, "the program has begun MPI with %s, and backend 'mpi' has a thread of its own\n"
                                              "  next: begin it with MPI_Init_thread and MPI_THREAD_MULTIPLE, or leave it to the "
                                              "backend", level_name(*level_out));
    }
    show_library();
    code = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, level_out);
    if (code != MPI_SUCCESS)
        return tmpi_host->fail(TUTTI_E_BACKEND, "MPI does not begin: MPI_Init_thread has returned %d", code);
    engine.ours = true;
    engine.process = getpid();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (atexit(end_mpi) != 0)
        return tmpi_host->fail(TUTTI_E_NOMEM, "no memory to note that MPI has to be ended");
    if (*level_out < MPI_THREAD_SERIALIZED)
        return tmpi_host->fail(TUTTI_E_UNSUPPORTED, "this MPI library offers %s only, and backend 'mpi' has a thread of its own\n"
                                                    "  next: take a library that was built with threads",
                               level_name(*level_out));
    return learn_of_end();
}

/* Others have an own name for it, or none: then nobody says so. */
static void ask_for_cuda(tmpi_facts *f)
{
    void *address = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
    int (*says)(void);

    f->tells_of_cuda = address != NULL;
    if (address == NULL)
        return;
    memcpy(&says, &address, sizeof says);
    f->takes_cuda = says() == 1;
}

static tutti_status find_facts(int level)
{
    tmpi_facts *f = &engine.facts;
    int        *tag_most = NULL;
    int         there = 0;
    int         code = MPI_Comm_rank(MPI_COMM_WORLD, &f->rank);

    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(MPI_COMM_WORLD, &f->size);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_most, &there);
    if (code == MPI_SUCCESS)
        code = MPI_Type_contiguous(TMPI_BLOCK, MPI_BYTE, &f->block);
    if (code == MPI_SUCCESS)
        code = MPI_Type_commit(&f->block);
    if (code != MPI_SUCCESS)
        return tmpi_fail_mpi(code, "asking MPI for its world", "world");
    f->tag_most = there ? *tag_most : 32767; /* what the standard promises at least */
    f->multiple = level == MPI_THREAD_MULTIPLE;
    tmpi_library_name(f->library, sizeof f->library);
    ask_for_cuda(f);
    return TUTTI_OK;
}

tutti_status tmpi_engine_start(void)
{
    tutti_status st = TUTTI_OK;
    int          level = MPI_THREAD_SINGLE;

    tmpi_lock();
    if (tmpi_has_ended()) {
        st = tmpi_fail_ended();
    } else if (!engine.up) {
        st = begin_mpi(&level);
        if (st == TUTTI_OK)
            st = find_facts(level);
        engine.up = st == TUTTI_OK;
    }
    tmpi_unlock();
    return st;
}
