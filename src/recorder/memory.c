/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory.c - the recorder's memory: made, taken over, given up.
 *
 * Why     It has to be there when the process is not, and must leave nothing behind. A file would need somebody to
 *         remove it; memory without a name goes with the last who holds it.
 * How     A memfd called NAME, whose size is sealed so that readers may map it. Its descriptor stays open: that is where
 *         others find it (find.c). A launcher makes it before it starts the process, and keeps a descriptor, so it has
 *         what a killed one has written; the process finds the number in TUTTI_RECORDER_FD. Whatever of that does not
 *         hold, as under a shell that closes descriptors, it makes its own.
 * True    The memory of a launcher is taken once: use goes from free to in use by compare and swap, so two
 *         processes of one rank do not write to one ring. It is never unmapped: threads may record until the
 *         process ends. A child of fork() shares the pages, so it forgets the ring before fork() returns in it, and
 *         gets one of its own if it makes a world.
 * Memory  All of it is taken at once, as a shortage later would kill the process where it records: 128 bytes for each
 *         record, 256 KiB for 2048 of them, and 190 KiB of tables (groups 83, names 48, members 64). One for each
 *         process: 54 MiB on a host with 120 ranks. A reader has a copy of it, and as much again while it reads.
 * Fails   Without memory there is no recorder, and one line in the log. */
#include "recorder/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/env.h"
#include "base/fork.h"
#include "base/machine.h"
#include "base/port.h"
#include "recorder/dump.h"
#include "recorder/find.h"
#include "recorder/recorder.h"
#include <tutti/private.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { PAGE = 4096 };

_Atomic(tti_ring *) tti_ring_of_process;

_Thread_local tti_thread_facts tti_facts_of_thread;

/* Filled by whoever starts first, under the lock; read by all through tti_ring_of_process. */
static struct {
    pthread_mutex_t lock;
    _Atomic bool    was_tried; /* by this process; and the ring is there, if there is to be one */
    tti_ring        ring;
} process = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool tti_counter_is_steady(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

/* ---- sizes ---- */

/* The places of the tables in a memory with n records. */
static tutti_recorder_head layout_of(uint32_t n)
{
    tutti_recorder_head head = { .version = TUTTI_RECORDER_VERSION, .rank = -1 };

    memcpy(head.magic, TUTTI_RECORDER_MAGIC, sizeof head.magic);
    head.head_bytes = sizeof head;
    head.record_bytes = sizeof(tutti_recorder_slot);
    head.record_count = n;
    head.group_bytes = sizeof(tutti_recorder_group_slot);
    head.group_count = TTI_RECORDED_GROUPS;
    head.name_bytes = sizeof(tutti_recorder_name_slot);
    head.name_count = TTI_RECORDED_NAMES;
    head.rank_count = TTI_RECORDED_RANKS;
    head.records_at = PAGE;
    head.groups_at = head.records_at + (uint64_t)n * sizeof(tutti_recorder_slot);
    head.names_at = head.groups_at + TTI_RECORDED_GROUPS * sizeof(tutti_recorder_group_slot);
    head.ranks_at = head.names_at + TTI_RECORDED_NAMES * sizeof(tutti_recorder_name_slot);
    head.total_bytes = (head.ranks_at + TTI_RECORDED_RANKS * sizeof(int32_t) + PAGE - 1) / PAGE * PAGE;
    return head;
}

/* Records that the ring is to have; 0: no recorder is wanted. */
static tutti_status read_wish(uint32_t *n_out)
{
    const char  *name = "TUTTI_TRACE_BUFFER_SIZE";
    bool         on = false;
    int64_t      n = TTI_RECORDS_DEFAULT;
    tutti_status st = tti_env_flag("TUTTI_RECORDER", &on);

    if (tti_env(name) == NULL)
        name = tti_env("TORCH_FR_BUFFER_SIZE") != NULL ? "TORCH_FR_BUFFER_SIZE" : "TORCH_NCCL_TRACE_BUFFER_SIZE";
    if (st == TUTTI_OK && tti_env(name) != NULL)
        st = tti_env_int(name, 0, TTI_RECORDS_MAX, &n);
    if (st != TUTTI_OK)
        return st;
    *n_out = 0;
    if (on && n > 0)
        for (*n_out = TTI_RECORDS_MIN; *n_out < n;)
            *n_out *= 2;
    return TUTTI_OK;
}

/* ---- making ---- */

static tutti_status make(uint32_t n, int *fd_out)
{
    const tutti_recorder_head head = layout_of(n);
    const int                 fd = memfd_create(TTI_RECORDER_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int                       sys = 0;

    if (fd < 0)
        return tti_fail_errno(errno, "cannot make the memory of the recorder");
    sys = posix_fallocate(fd, 0, (off_t)head.total_bytes); /* pages now: a shortage later would kill the process */
    if (sys == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        sys = errno;
    if (sys == 0 && pwrite(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        sys = EIO;
    if (sys != 0) {
        close(fd);
        return tti_fail_errno(sys, "cannot reserve %llu bytes for the recorder", (unsigned long long)head.total_bytes);
    }
    *fd_out = fd;
    return TUTTI_OK;
}

tutti_status tti_recorder_prepare(int *fd_out)
{
    uint32_t     n = 0;
    tutti_status st = read_wish(&n);

    if (st == TUTTI_OK && n == 0)
        *fd_out = -1;
    return st == TUTTI_OK && n > 0 ? make(n, fd_out) : st;
}

/* What the launcher says it has made; -1: nothing, or it is not there. */
static int find_prepared(void)
{
    const char *text = tti_env("TUTTI_RECORDER_FD");
    char       *end = NULL;
    struct stat about;
    long        fd;

    if (text == NULL)
        return -1;
    fd = strtol(text, &end, 10);
    if (end == text || *end != '\0' || fd <= STDERR_FILENO || fd > 1 << 20)
        return -1;
    if (fstat((int)fd, &about) != 0 || !tti_recorder_is_memory((int)fd))
        return -1;
    return (int)fd;
}

/* ---- taking ---- */

static void map_tables(tti_ring *ring, void *at)
{
    char *base = at;

    ring->head = at;
    ring->records = (tutti_recorder_slot *)(void *)(base + ring->head->records_at);
    ring->groups = (tutti_recorder_group_slot *)(void *)(base + ring->head->groups_at);
    ring->names = (tutti_recorder_name_slot *)(void *)(base + ring->head->names_at);
    ring->ranks = (int32_t *)(void *)(base + ring->head->ranks_at);
    ring->mask = ring->head->record_count - 1;
}

/* Map fd if it is just what this build makes. */
static tutti_status map(int fd, tti_ring *ring)
{
    tutti_recorder_head head, mine;
    struct stat         about;
    void               *at;

    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || fstat(fd, &about) != 0)
        return tti_fail(TUTTI_E_IO, "the memory of the recorder cannot be read");
    mine = layout_of(head.record_count);
    if (memcmp(&head, &mine, offsetof(tutti_recorder_head, clock)) != 0 || about.st_size != (off_t)mine.total_bytes ||
        head.record_count < TTI_RECORDS_MIN || head.record_count > TTI_RECORDS_MAX)
        return tti_fail(TUTTI_E_IO, "the memory of the recorder is not as this version makes it");
    at = mmap(NULL, mine.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (at == MAP_FAILED)
        return tti_fail_errno(errno, "cannot map the recorder");
    map_tables(ring, at);
    ring->fd = fd;
    return TUTTI_OK;
}

static void put_text(char to[TUTTI_RECORDER_TEXT_MAX], const char *text)
{
    snprintf(to, TUTTI_RECORDER_TEXT_MAX, "%s", text != NULL ? text : "");
}

/* Who this process is: its number last, without which readers do not take it for one. */
static void sign(tti_ring *ring)
{
    tutti_recorder_head *head = ring->head;

    ring->counter = tti_counter_is_steady();
    head->clock = ring->counter ? TUTTI_CLOCK_COUNTER : TUTTI_CLOCK_MONOTONIC;
    head->pid_began = tti_process_began(0);
    put_text(head->job, tti_env("TORCHELASTIC_RUN_ID"));
    put_text(head->program, program_invocation_short_name);
    if (gethostname(head->host, sizeof head->host - 1) != 0)
        put_text(head->host, "?");
    tti_boot_id(head->boot);
    head->ticks_first = tti_ticks(ring->counter);
    head->mono_first_ns = tti_clock_read(CLOCK_MONOTONIC);
    head->real_first_ns = tti_clock_read(CLOCK_REALTIME);
    head->ticks_last = head->ticks_first;
    head->mono_last_ns = head->mono_first_ns;
    __atomic_store_n(&head->pid, getpid(), __ATOMIC_RELEASE);
}

/* Take the memory of fd: false if another process has it. */
static bool take(tti_ring *ring)
{
    uint64_t use = TUTTI_RECORDER_FREE;

    return __atomic_compare_exchange_n(&ring->head->use, &use, TUTTI_RECORDER_IN_USE, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

static tutti_status take_prepared(tti_ring *ring)
{
    const int    fd = find_prepared();
    tutti_status st;

    if (fd < 0)
        return TUTTI_E_STATE;
    st = map(fd, ring);
    if (st != TUTTI_OK)
        return st;
    if (!take(ring)) {
        munmap(ring->head, ring->head->total_bytes);
        return TUTTI_E_STATE;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    ring->is_held = true;
    return TUTTI_OK;
}

static tutti_status take_own(tti_ring *ring, uint32_t n)
{
    int          fd = -1;
    tutti_status st = make(n, &fd);

    if (st != TUTTI_OK)
        return st;
    st = map(fd, ring);
    if (st != TUTTI_OK)
        close(fd);
    else
        take(ring);
    return st;
}

/* ---- the process's ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&process.lock);
}

/* In a child, which has one thread: the ring is its parent's. Its descriptor is closed by then (tti_fork_own()). */
static void after_fork(bool in_child)
{
    if (in_child) {
        atomic_store(&tti_ring_of_process, NULL);
        atomic_store(&process.was_tried, false);
        tti_facts_of_thread = (tti_thread_facts){ .late = -1 };
        tti_dump_begin_anew();
    }
    pthread_mutex_unlock(&process.lock);
}

static tti_fork_part fork_part = { .before = before_fork, .after = after_fork };

static void leave(void)
{
    tti_ring *ring = tti_ring_now();

    if (ring != NULL)
        tti_word_set(&ring->head->use, TUTTI_RECORDER_LEFT);
}

static tutti_status start(void)
{
    uint32_t     n = 0;
    tutti_status st = read_wish(&n);

    if (st != TUTTI_OK || n == 0)
        return st;
    process.ring.is_held = false; /* they may be those of a parent */
    atomic_store(&process.ring.failed, 0);
    if (take_prepared(&process.ring) != TUTTI_OK && take_own(&process.ring, n) != TUTTI_OK) {
        tti_log(TTI_LOG_WARN, "there is no flight recorder: %s", tutti_last_error());
        return TUTTI_OK;
    }
    sign(&process.ring);
    tti_fork_own(process.ring.fd);
    atexit(leave);
    atomic_store_explicit(&tti_ring_of_process, &process.ring, memory_order_release);
    return TUTTI_OK;
}

tutti_status tti_recorder_start(int rank, int world_size)
{
    tutti_status st = TUTTI_OK;
    tti_ring    *ring;

    if (tti_port_stand_in() != NULL)
        return TUTTI_OK; /* a rehearsal: its ranks are no processes, and its time is none of ours */
    if (rank < 0 && process.was_tried)
        return TUTTI_OK; /* each range asks */
    tti_fork_guard(&fork_part);
    pthread_mutex_lock(&process.lock);
    if (!process.was_tried) {
        st = start();
        process.was_tried = st == TUTTI_OK;
    }
    ring = tti_ring_now();
    if (ring != NULL && rank >= 0 && ring->head->rank < 0) {
        st = tti_recorder_listen(rank);
        ring->head->world_size = world_size;
        __atomic_store_n(&ring->head->rank, rank, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&process.lock);
    return st;
}

void tti_recorder_note_clock(tti_ring *ring)
{
    tutti_recorder_head *head = ring->head;
    const uint64_t       turn = tti_word_peek(&head->last_turn);

    if ((turn & 1) != 0 || !__atomic_compare_exchange_n(&head->last_turn, &(uint64_t){ turn }, turn + 1, false,
                                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return; /* somebody else does */
    tti_word_set(&head->ticks_last, tti_ticks(ring->counter));
    tti_word_set((uint64_t *)&head->mono_last_ns, (uint64_t)tti_clock_read(CLOCK_MONOTONIC));
    tti_word_set(&head->last_turn, turn + 2);
}
