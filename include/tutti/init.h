/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/init.h - from a program to a member of a job.
 *
 * env:// (the default) reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which `tutti run` and torchrun set.
 * Without RANK it asks the variables of Open MPI, Slurm and MPICH: under their mpirun and srun a job on one
 * host needs nothing else; on several, srun's neither, while mpirun has to pass on MASTER_ADDR. docs/networks.md
 * tells which address and port are taken.
 *
 * A world is the group of all ranks. tutti_init_process_group() makes the process's world, the one that
 * NULL means; tutti_create_process_group() makes one as a plain object, as many per process as wanted, and
 * tutti_use_group() lets NULL mean it on one thread, so that ranks can be threads.
 *
 * fork() is safe in a process with a world: nothing that its peers see changes. The child has no part in it:
 * connections and shared memory are the parent's, and its threads are not there. Every call on a group, work, window,
 * store or future from before the fork fails in it with TUTTI_E_STATE, at once; what returns no status says "not a
 * member" (-1, NULL, false), and what frees leaves alone. It may join a world of its own, which is then what NULL means.
 * Its copies of the library's connections are closed. A child of vfork(), or of clone() without the C library, may only
 * exec(). A library with threads is never unloaded: dlclose() of it does nothing. */
#ifndef TUTTI_INIT_H
#define TUTTI_INIT_H

#include <stdbool.h>
#include <tutti/store.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_group tutti_group;

enum { TUTTI_GROUP_TIMEOUT_MS = 1800000 }; /* default time-out of worlds where TUTTI_TIMEOUT_MS is not set */

/** How to join. Initialise with TUTTI_INIT_OPTIONS; every zero field means its default. */
typedef struct tutti_init_options {
    size_t      size;        /* sizeof(tutti_init_options), set by the initialiser */
    const char *init_method; /* "env://", "tcp://host:port?rank=R&world_size=W", "torch-tcp://..." (the
                                same, on a TCPStore that PyTorch serves),
                                "file:///path?rank=R&world_size=W"; NULL: "env://" */
    tutti_store *store;      /* instead of init_method; the world keeps a reference of its own */
    int          rank;       /* counts only if world_size > 0; URLs may carry it instead, not both */
    int          world_size;
    int64_t      timeout_ms; /* of the rendezvous and of every operation; 0: TUTTI_TIMEOUT_MS (30 min),
                                TUTTI_INFINITE: none */
    const char *backend;     /* "native", "cpu:native,cuda:nccl", ... (tutti/backends.h); NULL: TUTTI_BACKEND, else "native" */
    bool        enable_timing; /* works of the world take times: tutti_work_duration() */
    bool        enable_reconfigure; /* meet nobody: the world refuses calls until tutti_reconfigure() */
    const char *group_name;         /* keeps worlds of one store apart: only ranks that give the same one
                                       meet, so all of a world do, also in tutti_reconfigure(); at most
                                       128 bytes; NULL: none */
    const char *store_host;         /* of a store that is the program's own, and not one of this library's: the host that it
                                       stands on, by name or address. Ranks listen where they would reach it. MASTER_ADDR
                                       comes first, where it is set; NULL: not known */
} tutti_init_options;

#define TUTTI_INIT_OPTIONS                                                                             \
    {                                                                                                  \
        sizeof(tutti_init_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                       \
    }

/** Join the job and make its world the process's default group.
 *
 * Blocks until all ranks have come; where rank 0 serves the store, on rank 0 until all others are through,
 * too. On failure the call may be repeated, on all ranks: a retry is a new world, which meets nothing of
 * the failed one. Worlds of one store are made one after another; those that threads of a process make at the
 * same time need a group_name each.
 *
 * @param opts   NULL: env:// and every default
 *
 * @units    times in ms
 * @errors   TUTTI_E_STATE    the process has a world already, or joins one of this store with the same rank,
 *                            and without another group_name, at this moment
 *           TUTTI_E_ARG      a variable, rank or size is missing or wrong; the text names it. Or another
 *                            process has joined with this rank; the text has its pid and host
 *           TUTTI_E_MISMATCH ranks were started with different world sizes, or with different backends; the text has both
 *           TUTTI_E_TIMEOUT  ranks did not come; the text names them
 *           TUTTI_E_PEER     one that has not come never will: its process has ended, as tutti's launcher says at once, on
 *                            all hosts. Under other launchers, or none, nobody says so: that is a TUTTI_E_TIMEOUT
 *           TUTTI_E_NETWORK  the store cannot be reached, or its port is taken
 *           TUTTI_E_AUTH     the store does not know this job's secret, or there is none and an address is
 *                            not loopback: TUTTI_SECRET_FILE, or TUTTI_AUTH=none
 * @threads  one at a time, before other threads use the world
 * @source   torch.distributed.init_process_group */
TUTTI_API tutti_status tutti_init_process_group(const tutti_init_options *opts);

/** The same without any global: the world is an object of the caller's.
 *
 * @param group_out  a new world; end it with tutti_destroy_process_group(group)
 * @errors   as tutti_init_process_group, less TUTTI_E_STATE
 * @threads  any; several ranks of one job may be threads of one process, each with its own world
 * @source   torch.distributed._dist2.new_group */
TUTTI_API tutti_status tutti_create_process_group(const tutti_init_options *opts, tutti_group **group_out);

/** Let NULL mean group in the calling thread, until called again; NULL: the process's world again.
 * The group must outlive its use.
 *
 * @errors   none
 * @threads  changes the calling thread only
 * @source   torch.distributed._dist2.process_group */
TUTTI_API void tutti_use_group(tutti_group *group);

/** What NULL means in the calling thread, where that is a group of which this rank is a member; else NULL.
 * @errors   none
 * @threads  any
 * @source   torch.distributed._dist2.current_process_group, torch.distributed.group.WORLD */
TUTTI_API tutti_group *tutti_current_group(void);

/** End at once whatever waits in a group, here and on its other members: a way out for threads that are
 * inside.
 *
 * Operations under way, and every later call, fail with TUTTI_E_ABORTED; the other members read in it which
 * rank it was. Waits for nobody, whatever has become of them, and frees nothing: end the group with tutti_destroy_process_group() when the
 * others have left it. Of a world all groups made from it end, too. A group that is finished already keeps
 * its cause.
 *
 * @param group  NULL: the calling thread's world, else the process's
 * @errors   TUTTI_E_STATE  there is no world
 *           TUTTI_E_NOMEM  nothing was ended
 * @threads  any, also hooks and callbacks, as long as no other thread destroys or makes groups of the world
 * @source   torch.distributed.distributed_c10d._abort_process_group (which frees, too),
 *           torch.distributed.ProcessGroup.abort */
TUTTI_API tutti_status tutti_abort_process_group(tutti_group *group);

/** Leave a group in an orderly way and free it.
 *
 * Local: no rank waits for another, be it stopped, dead or unreachable; but for calls that a device has under way
 * (tutti/stream.h), which are waited for, each until its time-out, unless the group has failed or was aborted: until
 * this rank's device is through, so have a barrier before, if others may come to such a call later. Works of the group that are
 * not complete end with TUTTI_E_ABORTED. Destroying a world also destroys the groups made from it, and returns after the
 * functions that tutti_work_then() attached to its works have run; after a failure it stays for at most 70 ms, until those
 * who are told of it have heard; where all calls have ended well, for at most 2 s, while something that it has sent by TCP is
 * on its way to a peer that takes it and was heard of in the last second. So calls of others end well that need nothing else of
 * this rank, unless those bytes take longer. Without it a process may end in any way: its peers hear that it is gone, where after it
 * they hear that it has left. A process whose own threads have all ended, main's by pthread_exit(), ends as by exit(0).
 *
 * @param group  NULL: the process's world; TUTTI_NON_MEMBER and TUTTI_NO_GROUP do nothing
 * @errors   TUTTI_E_STATE  NULL and there is no world, or a function attached to a work of a world would
 *                          end that world
 * @threads  one, when no other thread is inside a call on the group
 * @source   torch.distributed.destroy_process_group */
TUTTI_API tutti_status tutti_destroy_process_group(tutti_group *group);

/** Whether NULL means a world in this thread.
 * @threads  any
 * @source   torch.distributed.is_initialized */
TUTTI_API bool tutti_is_initialized(void);

/** This process's number among those of its host, without a world: LOCAL_RANK; where neither that nor RANK
 * is set, what Slurm, Open MPI or PMI say; else fallback.
 *
 * @param fallback  0 or more; negative: there is none
 * @errors   -1: nobody tells and there is no fallback, or LOCAL_RANK is no number; tutti_last_error() has it
 * @threads  any
 * @source   torch.distributed.get_node_local_rank */
TUTTI_API int tutti_get_node_local_rank(int fallback);

/** Whether a launcher of torch's kind, `tutti run` among them, has started this process: whether
 * TORCHELASTIC_RUN_ID is set.
 * @threads  any
 * @source   torch.distributed.is_torchelastic_launched */
TUTTI_API bool tutti_is_torchelastic_launched(void);

#ifdef __cplusplus
}
#endif
#endif
