/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/recorder.h - the flight recorder: what a process did last, also after it was killed.
 *
 * Every process that makes a world has one, from then on until it ends, unless TUTTI_RECORDER=0. It is a piece of
 * shared memory without a name: a table of groups, a table of names, and a ring with one record for each of the
 * latest operations on any group (2048, or TUTTI_TRACE_BUFFER_SIZE), 450 KiB in all. Writing a record costs some 20 ns
 * and no system call. Reading needs nothing of the process that is read: it may be stuck, stopped or dead. A child of
 * fork() writes nothing there, and gets its own with its first world, or range.
 *
 * A reader copies what it finds into a tutti_recorder and checks every bound; what it copied stays as it is until
 * tutti_recorder_update(). Whoever may read a process's memory may read its recorder: the same user, or root.
 * The memory lives as long as somebody holds it: the process itself, the launcher (`tutti run`, tutti_spawn()), and
 * for a process without one a neighbour of its world on the same host. Nothing is left when all of them are gone. */
#ifndef TUTTI_RECORDER_H
#define TUTTI_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the layout ------------------------------------------------------------------------------------------------
 *
 * For readers of their own: debuggers, probes, other languages. All numbers are of the machine's own byte order. A
 * tutti_recorder_head stands at offset 0; sizes and places of the four tables are in it. A reader takes sizes from
 * there, not from this header: a newer writer's entries may be longer, never in another order. Nothing else is
 * changed within a version.
 *
 * A record is written while others may read it. Its id is 0 while it is made; who reads it loads id (acquire), then
 * the fields (acquire), then id again, and takes it only if the id was the same twice, the upper half of state is the
 * lower half of id, and the upper 16 bits of seq are the fold of the other fields: with
 * x = id ^ call ^ (seq without those bits) ^ place ^ count ^ began, the lowest 16 bits of x ^ x>>16 ^ x>>32 ^ x>>48. */

#define TUTTI_RECORDER_MAGIC "tuttirec" /* 8 bytes, no NUL */

enum {
    TUTTI_RECORDER_VERSION = 1,
    TUTTI_RECORDER_TEXT_MAX = 64,
    TUTTI_RECORDER_WORDS_MAX = 1024
};

/** What ticks are. */
typedef enum tutti_recorder_clock {
    TUTTI_CLOCK_MONOTONIC = 1, /* ns of CLOCK_MONOTONIC */
    TUTTI_CLOCK_COUNTER = 2    /* the processor's counter, invariant: rdtsc, or cntvct_el0 */
} tutti_recorder_clock;

/** Whose the memory is. */
typedef enum tutti_recorder_use {
    TUTTI_RECORDER_FREE = 0,   /* a launcher has made it, nobody has taken it yet */
    TUTTI_RECORDER_IN_USE = 1,
    TUTTI_RECORDER_LEFT = 2    /* the process has come to its end by itself: return from main() or exit() */
} tutti_recorder_use;

/** At offset 0. Written when the memory is taken, but for what is said to change. */
typedef struct tutti_recorder_head {
    char     magic[8];
    uint32_t version;
    uint32_t head_bytes;   /* sizeof(tutti_recorder_head) of the writer */
    uint64_t total_bytes;
    uint64_t records_at;   /* offsets from the beginning */
    uint64_t groups_at;
    uint64_t names_at;
    uint64_t ranks_at;
    uint32_t record_bytes; /* one entry */
    uint32_t record_count; /* a power of two: record id stands at (id - 1) % record_count */
    uint32_t group_bytes;
    uint32_t group_count;
    uint32_t name_bytes;
    uint32_t name_count;
    uint32_t rank_count;   /* int32_t each: lists of members, that groups point into */
    uint32_t clock;        /* tutti_recorder_clock */
    int64_t  pid;          /* as the process sees it */
    uint64_t pid_began;    /* its start, field 22 of /proc/PID/stat: tells it from a later process of that number */
    int32_t  rank;         /* in the first world of the process; -1 before */
    int32_t  world_size;
    char     job[TUTTI_RECORDER_TEXT_MAX];     /* what TORCHELASTIC_RUN_ID said; "" */
    char     host[TUTTI_RECORDER_TEXT_MAX];
    char     program[TUTTI_RECORDER_TEXT_MAX];
    char     boot[40];                         /* of the machine: counters of one boot compare */
    uint64_t ticks_first;  /* three clocks at one moment */
    int64_t  mono_first_ns;
    int64_t  real_first_ns;

    /* Changes. */
    uint64_t last_turn;    /* odd: the two below are being written */
    uint64_t ticks_last;   /* two of the clocks at a later moment, now and then */
    int64_t  mono_last_ns;
    uint64_t use;          /* tutti_recorder_use */
    uint64_t issued;       /* ids that were given out: no record has a larger one. Threads take some at a time */
    uint64_t failures;     /* operations that failed so far */
    uint64_t dumps;        /* that the process has written, after a failure */
    uint64_t failed_id;    /* the record of the first of them; 0: none, or its words are being written */
    char     failed_words[TUTTI_RECORDER_WORDS_MAX]; /* of that one; written once */

    /* Of a file, 0 in memory. Writers before these were known have shorter heads. */
    int64_t  saved_ns;     /* CLOCK_MONOTONIC when it was copied: to it what had not ended was under way */
    uint64_t saved_ticks;  /* at the same moment */
    uint64_t saved_state;  /* of the process then, as /proc/PID/stat has it: 'R', 'S', 'T', ...; 'X': gone; 0: unknown */
    uint64_t saved_for;    /* the record whose failure had it written, at once: until then it was under way; 0: none */
} tutti_recorder_head;

/** A group, from when it is made until its place is needed for another one. */
typedef struct tutti_recorder_group_slot {
    uint64_t turn;     /* odd: being written; 0: nobody's yet */
    uint32_t number;   /* of the group in its world: 0 for the world itself */
    uint32_t flags;    /* 1: it is there, 2: it has failed, or was aborted */
    int32_t  rank;     /* of this process in it */
    int32_t  size;
    int32_t  world_rank;  /* of this process in the group's world */
    int32_t  ranks_at;    /* where its members stand in the table of ranks, by group rank; -1: 0 .. size-1; -2: not kept */
    uint64_t made;        /* groups made before it, itself included */
    uint64_t made_ticks;  /* when it was made: earlier records are of the place's former group */
    uint64_t issued;      /* numbers of the latest collective that was issued to run later, that began, that ended */
    uint64_t began;
    uint64_t ended;
    uint64_t messages;    /* issued so far */
    char     name[TUTTI_RECORDER_TEXT_MAX];
    char     desc[TUTTI_RECORDER_TEXT_MAX];
    char     backend[32];
    char     world[TUTTI_RECORDER_TEXT_MAX]; /* of the world's handle: tells worlds of one process apart */

    /* Of the group's world, to put recorders of several processes side by side. */
    uint64_t world_id;    /* a random number that all its members have, and no other world; 0: not known */
    uint32_t generation;  /* 1; one more in the place of a world that was shrunk, grown, reconfigured, or destroyed and
                             made anew */
    uint32_t world_size;
    uint64_t follows;     /* of a world: made of the one whose place it took; 0: of none */
} tutti_recorder_group_slot;

/** A name that operations were given, or of ranges; never changed once used is not 0. */
typedef struct tutti_recorder_name_slot {
    uint64_t used;        /* 1: there */
    uint64_t ranges;      /* that have ended */
    uint64_t ticks_total; /* of these */
    uint64_t ticks_most;
    char     text[TUTTI_RECORDER_TEXT_MAX];
} tutti_recorder_name_slot;

/** One operation, or one range. Behind ended a word is only written if a flag says so. */
typedef struct tutti_recorder_slot {
    uint64_t id;
    uint64_t state;  /* low half of id << 32 | flags << 16 | tutti_status << 8 | tutti_record_state */
    uint64_t call;   /* kind | dtype << 8 | op << 16 | device << 24 | group's place << 32 | name's place + 1 << 48 */
    uint64_t seq;    /* check << 48 | number */
    uint64_t place;  /* root or peer, a group rank + 1 | tag << 32 */
    uint64_t count;  /* elements */
    uint64_t began;  /* ticks: when it was issued */
    uint64_t ended;  /* ticks; 0: not ended, or at once */
    uint64_t ran;    /* ticks: when it began to run */
    uint64_t in_bytes;
    uint64_t out_bytes;
    uint64_t thread; /* of a range, whatever the flags: as the kernel calls it */
    uint64_t late;   /* group rank + 1 of the last member it slept for; 0: unknown */
    uint64_t waited_ns;
    uint64_t left_out[2]; /* of a shrink: a bit for each group rank below 128 that its list leaves out */
} tutti_recorder_slot;

/** Flags of a record. */
enum {
    TUTTI_RECORD_ASYNC = 1,    /* not waited for by the call that issued it */
    TUTTI_RECORD_RAN = 2,      /* ran is written; else it began to run when it was issued, if at all */
    TUTTI_RECORD_BYTES = 4,    /* in_bytes and out_bytes are; else they follow from kind and count */
    TUTTI_RECORD_WAITED = 8,   /* late and waited_ns are: it slept for somebody */
    TUTTI_RECORD_QUICK = 16,   /* it was small, and has ended without sleeping: when is not written */
    TUTTI_RECORD_LISTED = 32   /* left_out is: the group has no more members than that has bits */
};

/* ---- what was read --------------------------------------------------------------------------------------------- */

/** What a record is of. Those below 32 are collectives, with numbers that all members share. */
typedef enum tutti_record_kind {
    TUTTI_RECORD_BARRIER = 1,
    TUTTI_RECORD_ALL_REDUCE = 2,
    TUTTI_RECORD_BROADCAST = 3,
    TUTTI_RECORD_REDUCE = 4,
    TUTTI_RECORD_ALL_GATHER = 5,
    TUTTI_RECORD_GATHER = 6,
    TUTTI_RECORD_SCATTER = 7,
    TUTTI_RECORD_REDUCE_SCATTER = 8,
    TUTTI_RECORD_ALL_TO_ALL = 9,
    TUTTI_RECORD_GATHER_V = 10,
    TUTTI_RECORD_SCATTER_V = 11,
    TUTTI_RECORD_SEND = 32,
    TUTTI_RECORD_RECV = 33,
    TUTTI_RECORD_MONITORED_BARRIER = 34,
    TUTTI_RECORD_NEW_GROUP = 35, /* tutti_new_group() waits for the group's members */
    TUTTI_RECORD_SPLIT_GROUP = 36,  /* tutti_split_group() waits for those of its part; of the part. Before,
                                       tutti_split_group_by_color() waits for the colours of all: of the parent */
    TUTTI_RECORD_SHRINK_GROUP = 37, /* count: ranks that are left out by a list, peer: the one, where it is one; left_out: all */
    TUTTI_RECORD_GROW_GROUP = 38,   /* count: newcomers that are to come in; 0: those that have asked */
    TUTTI_RECORD_MERGE_GROUP = 39,  /* tutti_merge_remote_group(); count: the size of what is made */
    TUTTI_RECORD_PUT = 40, /* on a window */
    TUTTI_RECORD_GET = 41,
    TUTTI_RECORD_SIGNAL = 42,
    TUTTI_RECORD_WAIT_SIGNAL = 43,
    TUTTI_RECORD_FLUSH = 44,
    TUTTI_RECORD_RECONFIGURE = 45, /* tutti_reconfigure(); count: the members that it names */
    TUTTI_RECORD_RANGE = 64 /* tutti_profile_push() .. tutti_profile_pop() */
} tutti_record_kind;

typedef enum tutti_record_state {
    TUTTI_RECORD_ISSUED = 1,  /* it waits for its turn */
    TUTTI_RECORD_STARTED = 2, /* it runs, or a message was posted */
    TUTTI_RECORD_DONE = 3,
    TUTTI_RECORD_FAILED = 4   /* status says with what */
} tutti_record_state;

/* What the structs below begin as. */
#ifdef __cplusplus
#define TUTTI_RECORDER_SIZED(type)                                                                     \
    [] {                                                                                               \
        type sized = type();                                                                           \
        sized.size = sizeof(type);                                                                     \
        return sized;                                                                                  \
    }()
#else
#define TUTTI_RECORDER_SIZED(type)                                                                     \
    {                                                                                                  \
        .size = sizeof(type)                                                                           \
    }
#endif

/** A recorder that was read: a copy. */
typedef struct tutti_recorder tutti_recorder;

/** Whose recorder it is, and when it was read. */
typedef struct tutti_recorder_info {
    size_t                size;
    int64_t               pid;         /* as it is numbered here; of the dead, and of files, as it saw itself */
    bool                  is_alive;    /* there was such a process when it was read. Of a file: when that was saved, as far
                                          as the file says */
    bool                  has_left;    /* it came to its end by itself */
    int                   rank;        /* -1: it has made no world yet */
    int                   world_size;
    const char           *job;         /* strings are the recorder's, until it is read again or closed */
    const char           *host;
    const char           *program;
    uint64_t              issued;      /* records so far, or some more; the ring has the latest */
    uint64_t              failures;    /* operations that failed */
    uint64_t              failed_id;   /* the record of the first; 0: none */
    const char           *failed_words; /* its words; "" */
    int64_t               read_ns;     /* when this copy was made, CLOCK_MONOTONIC of the machine that wrote it; of a
                                          file when that was saved, or the last moment that the writer noted */
    int64_t               real_ns;     /* CLOCK_REALTIME - CLOCK_MONOTONIC there: add it to any time below */
    bool                  is_file;
    char                  state;       /* of the process then, as /proc/PID/stat has it: 'T' is stopped; 'X': it is gone; '\0':
                                          not known */
    uint64_t              saved_for;   /* of a file: the record whose failure had it written, and that was under way until
                                          then; 0: none */
    uint64_t              pid_began;   /* when the process began, as its kernel counts: with boot and pid it tells a process from a
                                          later one of that number */
    const char           *boot;        /* of the machine */
} tutti_recorder_info;
#define TUTTI_RECORDER_INFO TUTTI_RECORDER_SIZED(tutti_recorder_info)

/** A group of the process that was read. */
typedef struct tutti_recorder_group {
    size_t      size;
    const char *name;       /* strings and ranks are the recorder's */
    const char *desc;       /* "" */
    const char *backend;
    const char *world;      /* handle of its world: groups of one name in two worlds are two groups */
    uint32_t    number;     /* 0: a world */
    bool        is_there;   /* else it was destroyed */
    bool        has_failed; /* later calls are refused */
    int         rank;       /* of the process in it */
    int         world_rank;
    int         n_ranks;
    const int  *ranks;      /* [n_ranks] global ranks by group rank; NULL: there was no room to keep them */
    uint64_t    issued;     /* number of the latest collective issued, */
    uint64_t    began;      /* begun, */
    uint64_t    ended;      /* and ended; 0: none */
    uint64_t    messages;   /* issued so far */
    uint64_t    world_id;   /* of its world: all members have this number, and no other world; 0: not known */
    int         generation; /* of its world: 1, or one more than that of the world whose place it took; 0: not known */
    int         world_size;
    int         follows;    /* of a world: which of the recorder's groups it took the place of; -1: none that is known */
} tutti_recorder_group;
#define TUTTI_RECORDER_GROUP TUTTI_RECORDER_SIZED(tutti_recorder_group)

/** An operation, or a range. Times are ns of CLOCK_MONOTONIC, 0 where unknown. */
typedef struct tutti_record {
    size_t             size;
    uint64_t           id;    /* from 1, in the order in which each thread issued them */
    tutti_record_kind  kind;
    tutti_record_state state;
    tutti_status       status; /* of a failed one */
    const char        *op;    /* "all_reduce", "send", "range" */
    const char        *name;  /* what it was called: "native:all_reduce", or what the program said */
    int                group; /* which of the recorder's groups; -1: it is not known any more, or a range */
    uint64_t           seq;   /* a collective's number in its group, from 1; a message's among this process's; 0: it has none */
    tutti_dtype        dtype;
    tutti_op_kind      reduce; /* of all_reduce, reduce, reduce_scatter */
    int                peer;  /* global rank: root, or other end of a message; -1: none, or any, or not known */
    int                tag;   /* of a message */
    int64_t            count; /* elements: what members must agree on, or of a message */
    uint64_t           in_bytes;  /* that this process reads, and writes */
    uint64_t           out_bytes;
    bool               is_async;
    bool               is_quick; /* it has ended, soon after began_ns: when was not measured */
    int64_t            issued_ns;
    int64_t            began_ns; /* when it began to run; 0: not yet */
    int64_t            ended_ns; /* 0: not ended, or is_quick */
    int                late;     /* global rank of the last one it slept for; -1 */
    int64_t            waited_ns; /* how long */
    int64_t            thread;   /* of a range */
    bool               is_listed; /* left_out has all that count tells of */
    uint64_t           left_out[2]; /* of a shrink: a bit for each group rank that its list leaves out */
} tutti_record;
#define TUTTI_RECORD TUTTI_RECORDER_SIZED(tutti_record)

/** All ranges of one name in one process. */
typedef struct tutti_range_total {
    size_t      size;
    const char *name;
    uint64_t    calls;   /* that have ended */
    int64_t     total_ns;
    int64_t     most_ns;
} tutti_range_total;
#define TUTTI_RANGE_TOTAL TUTTI_RECORDER_SIZED(tutti_range_total)

/** Read the recorder of a process of this machine, living or dead. Of a dead one somebody else must hold it: its
 * launcher while that runs, or a neighbour.
 *
 * @param pid  0: this process
 * @errors   TUTTI_E_ARG    pid is negative, recorder_out is NULL
 *           TUTTI_E_STATE  no recorder of that process can be found: it has none, it is gone and nobody holds it, or this
 *                          user may not look
 *           TUTTI_E_IO     it is damaged, or of a version that is not known
 *           TUTTI_E_NOMEM  no memory for the copy
 * @threads  any
 * @cost     a copy of some 400 KiB; of a dead process also a look at all descriptors of this user's processes
 * @source   torch.distributed's flight recorder (torch._C._distributed_c10d._dump_fr_trace, of the own process only) */
TUTTI_API tutti_status tutti_recorder_open_pid(int64_t pid, tutti_recorder **recorder_out);

/** Read a recorder from a file: one that tutti_recorder_save() or a signal has written, or /proc/PID/fd/N.
 * @errors   TUTTI_E_ARG  path or recorder_out is NULL, or it is no regular file
 *           TUTTI_E_IO   it cannot be read, is damaged, or of a version that is not known
 *           TUTTI_E_NOMEM
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_recorder_open_file(const char *path, tutti_recorder **recorder_out);

/** Read the recorders of all processes of this machine that this user may read, living or held, once each.
 * @param job       only those of this job (tutti_recorder_info); NULL: all
 * @param list_out  [*n_out], by rank, then by pid; free it with tutti_recorder_list_free(). NULL if there is none
 * @errors   TUTTI_E_ARG, TUTTI_E_IO (no /proc), TUTTI_E_NOMEM. Recorders that cannot be read are left out
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_recorder_find(const char *job, tutti_recorder ***list_out, int *n_out);

/** Close each, and free the list. NULL is fine.
 * @threads  any
 * @source   ours */
TUTTI_API void tutti_recorder_list_free(tutti_recorder **list, int n);

/** Read it again from where it was read. Strings and lists that it gave are gone.
 * @errors   as tutti_recorder_open_file(); the old copy stays then
 * @threads  one at a time for each recorder
 * @source   ours */
TUTTI_API tutti_status tutti_recorder_update(tutti_recorder *recorder);

/** Free it. NULL is fine.
 * @threads  one
 * @source   ours */
TUTTI_API void tutti_recorder_close(tutti_recorder *recorder);

/** Whose it is. Set info with TUTTI_RECORDER_INFO first.
 * @errors   TUTTI_E_ARG  an argument is NULL, or info was not set
 * @threads  any, but during tutti_recorder_update()
 * @source   ours */
TUTTI_API tutti_status tutti_recorder_get_info(const tutti_recorder *recorder, tutti_recorder_info *info);

/** How many groups it knows, worlds included: those that are there, and destroyed ones.
 * @threads  any
 * @source   ours */
TUTTI_API int tutti_recorder_count_groups(const tutti_recorder *recorder);

/** Group i, in the order they were made in. Set group with TUTTI_RECORDER_GROUP first.
 * @errors   TUTTI_E_ARG  there is none, an argument is NULL, or group was not set
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_recorder_get_group(const tutti_recorder *recorder, int i, tutti_recorder_group *group);

/** How many records were copied.
 * @threads  any
 * @source   ours */
TUTTI_API int tutti_recorder_count_records(const tutti_recorder *recorder);

/** Record i, in the order they were issued in; one that was overwritten while it was read is left out. Set record with TUTTI_RECORD
 * first.
 * @errors   TUTTI_E_ARG  there is none, an argument is NULL, or record was not set
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_recorder_get_record(const tutti_recorder *recorder, int i, tutti_record *record);

/** How many names of ranges there are.
 * @threads  any
 * @source   ours */
TUTTI_API int tutti_recorder_count_ranges(const tutti_recorder *recorder);

/** The totals of name i, in the order they were first used in. Set total with TUTTI_RANGE_TOTAL first.
 * @errors   TUTTI_E_ARG  there is none, an argument is NULL, or total was not set
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_recorder_get_range(const tutti_recorder *recorder, int i, tutti_range_total *total);

/** What a dump has. */
typedef struct tutti_dump_options {
    size_t size;
    bool   only_active;    /* leave out operations that have ended */
    bool   no_collectives; /* leave out all records: groups and how far they are remain */
} tutti_dump_options;
#define TUTTI_DUMP_OPTIONS                                                                             \
    {                                                                                                  \
        sizeof(tutti_dump_options), false, false                                                       \
    }

/** A recorder as JSON, in the form of PyTorch's flight recorder: version, pg_config, pg_status, entries; what only we
 * have (pid, host, job, failures, tags, bytes) stands beside it. Ranges are not in it.
 *
 * @param opts      NULL: the defaults
 * @param json_out  text that the caller frees
 * @errors   TUTTI_E_ARG, TUTTI_E_NOMEM
 * @threads  any
 * @source   torch._C._distributed_c10d._dump_fr_trace_json */
TUTTI_API tutti_status tutti_recorder_json(const tutti_recorder *recorder, const tutti_dump_options *opts, char **json_out);

/** Keep what was read in a file, mode 0600, as it was in memory: tutti_recorder_open_file() reads it, on any machine of
 * this byte order.
 * @errors   TUTTI_E_ARG, TUTTI_E_IO
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_recorder_save(const tutti_recorder *recorder, const char *path);

/* ---- the own process ------------------------------------------------------------------------------------------- */

/** Write the recorder of this process as JSON, mode 0600; with path NULL also as it is, with ".rec" behind the name: if
 * that one cannot be written, a line of the log says so, and the JSON counts.
 *
 * The latter happens when an operation runs out of time or loses a peer, if TUTTI_TRACE_FILE is set: the error says
 * where. With TUTTI_TRACE_SIGNAL a signal makes the process save it as it is, to TUTTI_TRACE_FILE, rank, ".rec", whatever
 * its threads are at.
 *
 * @param path  NULL: TUTTI_TRACE_FILE with the rank behind it
 * @errors   TUTTI_E_ARG    path is NULL, and the variable not set
 *           TUTTI_E_STATE  there is no recorder
 *           TUTTI_E_IO, TUTTI_E_NOMEM
 * @threads  any
 * @source   torch.distributed's flight recorder (explicit dump) */
TUTTI_API tutti_status tutti_recorder_dump(const char *path);

enum { TUTTI_PROFILE_DEPTH_MAX = 32 };

/** Begin a range of this thread's time, inside of those that it has begun: it stands in the ring beside the
 * operations, and its time in the totals of its name.
 *
 * Names are kept for the process's life, 512 of them, those of tutti_record_comm_begin() included: a further one is
 * recorded as "?".
 *
 * @param name  1 .. 63 bytes, copied
 * @errors   TUTTI_E_ARG    name is NULL, empty or too long
 *           TUTTI_E_STATE  TUTTI_PROFILE_DEPTH_MAX ranges are open on this thread
 *           None because there is no recorder: then nothing is recorded
 * @threads  of the calling thread
 * @cost     some 50 ns
 * @source   torch.profiler.record_function (enter) */
TUTTI_API tutti_status tutti_profile_push(const char *name);

/** End the range that this thread began last.
 * @errors   TUTTI_E_STATE  it has none
 * @threads  of the calling thread
 * @source   torch.profiler.record_function (exit) */
TUTTI_API tutti_status tutti_profile_pop(void);

/** A table to print: for each name of ranges how often, total, mean and longest; below it the same of the operations that
 * the ring still has, by name.
 * @param recorder   what was read
 * @param table_out  text that the caller frees
 * @errors   TUTTI_E_ARG, TUTTI_E_NOMEM
 * @threads  any
 * @source   torch.profiler's key_averages().table() */
TUTTI_API tutti_status tutti_recorder_table(const tutti_recorder *recorder, char **table_out);

#ifdef __cplusplus
}
#endif
#endif
