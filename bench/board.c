/* SPDX-License-Identifier: BSD-3-Clause
 *
 * board.c - lines in a shared file. */
#include "board.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>

enum { LINE_BYTES = 128, POLLS_BEFORE_YIELD = 20000, POLLS_PER_LOOK = 1024 };
#define GIVE_UP_NS UINT64_C(120000000000)

typedef struct line {
    _Atomic uint64_t turn;
    uint64_t word[2];
    char pad[LINE_BYTES - 3 * sizeof(uint64_t)];
} line;
_Static_assert(sizeof(line) == LINE_BYTES, "one writer for each pair of cache lines");

struct bench_shared {
    line lines[BENCH_RANKS_MAX];
    uint64_t samples[][BENCH_SAMPLES_MAX];
};

/* The mask as it was before bench_pin(): found out once, in the one thread that a contender begins with. */
static cpu_set_t allowed;
static int n_allowed;

static size_t bytes_of(int ranks)
{
    return sizeof(bench_shared) + (size_t)ranks * BENCH_SAMPLES_MAX * sizeof(uint64_t);
}

uint64_t bench_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

int bench_cores(void)
{
    if (n_allowed == 0) {
        if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
            return 1;
        n_allowed = CPU_COUNT(&allowed);
    }
    return n_allowed;
}

bool bench_pin(int rank)
{
    int left = rank % bench_cores(), cpu;
    cpu_set_t one;

    for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && left-- == 0)
            break;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

bool bench_board_open(bench_board *board, const char *path, int rank, int ranks)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    void *at = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes_of(ranks)) == 0)
        at = mmap(NULL, bytes_of(ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return false;
    *board = (bench_board){ .shared = at, .rank = rank, .ranks = ranks, .crowded = ranks > bench_cores() };
    return true;
}

void bench_board_close(bench_board *board)
{
    if (board->shared != NULL)
        munmap(board->shared, bytes_of(board->ranks));
    board->shared = NULL;
}

static void relax(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

static bool await_line(const bench_board *board, const line *l)
{
    const uint64_t turn = board->turn;
    uint64_t start = 0, polls;

    for (polls = 1; atomic_load_explicit(&l->turn, memory_order_acquire) < turn; polls++) {
        if (board->crowded || polls > POLLS_BEFORE_YIELD)
            sched_yield();
        else
            relax();
        if (polls % POLLS_PER_LOOK != 0)
            continue;
        if (start == 0)
            start = bench_now_ns();
        else if (bench_now_ns() - start > GIVE_UP_NS)
            return false;
    }
    return true;
}

bool bench_board_barrier(bench_board *board)
{
    line *lines = board->shared->lines;
    int r;

    board->turn++;
    atomic_store_explicit(&lines[board->rank].turn, board->turn, memory_order_release);
    for (r = 0; r < board->ranks; r++)
        if (!await_line(board, &lines[r]))
            return false;
    return true;
}

static void write_word(bench_board *board, uint64_t word)
{
    board->shared->lines[board->rank].word[(board->turn + 1) % 2] = word;
}

bool bench_board_tell(bench_board *board, uint64_t word, uint64_t *word_out)
{
    write_word(board, word);
    if (!bench_board_barrier(board))
        return false;
    *word_out = board->shared->lines[0].word[board->turn % 2];
    return true;
}

bool bench_board_largest(bench_board *board, uint64_t word, uint64_t *word_out)
{
    uint64_t most = 0;
    int r;

    write_word(board, word);
    if (!bench_board_barrier(board))
        return false;
    for (r = 0; r < board->ranks; r++) {
        const uint64_t other = board->shared->lines[r].word[board->turn % 2];

        most = other > most ? other : most;
    }
    *word_out = most;
    return true;
}

uint64_t *bench_board_samples(const bench_board *board, int rank)
{
    return board->shared->samples[rank];
}
