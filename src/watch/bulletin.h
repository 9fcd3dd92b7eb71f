/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch/bulletin.h - what a launcher knows of the ends of a job's processes, where its ranks look.
 *
 * Who waits for a rank that has not come yet has no connection to it, and nothing of it to look at: only its launcher
 * knows that it has ended. So each launcher keeps a page of memory that its ranks inherit, and puts there who has ended,
 * and how: on its own host, and on others, whose launchers tell it (elastic/herald.c).
 *
 * A page is written by its launcher alone; ranks can map it for reading only. An ending is written once, and is there
 * when the number of endings says so. */
#ifndef TTI_WATCH_BULLETIN_H
#define TTI_WATCH_BULLETIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tutti/status.h>

enum {
    TTI_ENDING_VERSION = 1,
    TTI_ENDING_HOST_MAX = 64,
    TTI_ENDING_TEXT_MAX = 192
};

enum {
    TTI_ENDING_ASKED = 1,    /* its launcher ended it: the consequence of something, and no cause */
    TTI_ENDING_FIRST = 2,    /* because of this one the launcher ends the others of its host */
    TTI_ENDING_LAUNCHER = 4, /* no rank has ended: the launcher itself, which is pid, got signal, and ends its ranks; 0: it is
                                gone, and the kernel ends them */
    TTI_ENDING_UNKNOWN = 8,  /* nobody knows how: its connection to the store has ended */
    TTI_ENDING_HERE = 16     /* nobody has ended: a launcher says who it is. Among launchers only */
};

/** How a process of the job ended. Crosses processes and hosts. */
typedef struct tti_ending {
    uint32_t version;
    uint32_t flags;
    int32_t  rank;  /* as the launcher counts; -1: it has none, a replacement or a launcher */
    int32_t  node;  /* number of its host */
    int32_t  local; /* its number there, LOCAL_RANK; -1: a launcher */
    int32_t  exit_code;
    int32_t  signal; /* that ended it; 0: none */
    int32_t  coming; /* replacements of its host that ran then, or were about to be started, and 1; 0: it is not known */
    int64_t  pid;
    char     host[TTI_ENDING_HOST_MAX];
} tti_ending;

_Static_assert(sizeof(tti_ending) == 104, "endings cross processes and hosts");

/** Whether it is a launcher that is gone without a word, and its ranks with it. */
bool tti_ending_is_gone(const tti_ending *ending);

/** "rank 3 (host 'n1', pid 4714) ended with exit code 0". */
const char *tti_ending_words(const tti_ending *ending, char out[TTI_ENDING_TEXT_MAX]);

typedef struct tti_bulletin tti_bulletin;

/** NULL is fine. */
void tti_bulletin_close(tti_bulletin *bulletin);

/* ---- of a rank ---- */

/** The page that TUTTI_LAUNCHER_FD names; NULL: there is none, or none that this version can read. */
tti_bulletin *tti_bulletin_open(void);

/** Grows with each ending. */
const _Atomic uint32_t *tti_bulletin_news(const tti_bulletin *bulletin);

/** Ending number i, from 0. False: there is none yet. */
bool tti_bulletin_read(const tti_bulletin *bulletin, uint32_t i, tti_ending *out);

/** Of a rank; -1, as replacements and launchers have it, is none. False: nothing is known. */
bool tti_bulletin_find(const tti_bulletin *bulletin, int rank, tti_ending *out);

/** Of a process by its place, replacements included. */
bool tti_bulletin_find_at(const tti_bulletin *bulletin, int node, int local, tti_ending *out);

/** Why launchers end ranks: the first reason in the whole job. False: they do not. */
bool tti_bulletin_first(const tti_bulletin *bulletin, tti_ending *out);

/** Fail, on rank, whose world of n_ranks cannot be made, as that process has not joined it.
 * @errors TUTTI_E_PEER  always */
tutti_status tti_bulletin_fail(const tti_bulletin *bulletin, const tti_ending *ending, int rank, int n_ranks);

/** The same after this thread's last failure, which stands beside the ending: the wait is over for both, and which of them
 * came first is not known here.
 * @errors TUTTI_E_PEER  always */
tutti_status tti_bulletin_fail_besides(const tti_bulletin *bulletin, const tti_ending *ending, int rank, int n_ranks);

/** How many of the ranks that the job was started with have not ended. */
int tti_bulletin_left(const tti_bulletin *bulletin);

/** How many replacements of all hosts run, or are about to be started, as their launchers have said last. */
int tti_bulletin_coming(const tti_bulletin *bulletin);

/** Of a process, the one that ended last, as far as it is told. False: none has. */
bool tti_bulletin_last(const tti_bulletin *bulletin, tti_ending *out);

/** Waits for others that the calling thread begins look there; NULL: nowhere. Borrowed. */
void                tti_bulletin_heed(const tti_bulletin *bulletin);
const tti_bulletin *tti_bulletin_heeded(void);

/* ---- of a launcher ---- */

/** A page for a job of n_ranks, and of that many processes with replacements and launchers.
 * @param fd_out  what its ranks inherit; close it
 * @errors TUTTI_E_NOMEM */
tutti_status tti_bulletin_make(int n_ranks, int n_processes, tti_bulletin **bulletin_out, int *fd_out);

/** Put up an ending, unless one of that place is there, or, with TTI_ENDING_FIRST, say that it is the first reason, unless
 * there is one. One thread at a time. */
void tti_bulletin_post(tti_bulletin *bulletin, const tti_ending *ending);

#endif
