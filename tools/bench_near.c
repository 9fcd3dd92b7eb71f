/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_near.c - `tutti bench near`: how far two cores are from each other, right now.
 *
 * Two processes on two cores exchange a line for a moment: each writes its own and waits for the other's to be
 * as far. On a virtual machine two cores may share a cache at one time and not at another, which moves every
 * small operation by much; figures compare only where this one was alike. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "bench.h"
#include "bench_line.h"
#include "bench/board.h"
#include "tool.h"

enum {
    LINE = 128,
    WARM = 20000,
    BLOCKS = 15,
    BLOCK = 20000,
    FAR_NS = 200,
    POLLS_BEFORE_LOOK = 1 << 20
};
#define GIVE_UP_NS UINT64_C(5000000000)

typedef struct pair {
    _Atomic uint64_t turn;
    char pad[LINE - sizeof(uint64_t)];
} pair;

/* False: the other one does not come. Each line has one writer; nothing but the number itself is handed over. */
static bool exchange(pair *lines, int who, uint64_t turn)
{
    uint64_t start = 0, polls;

    atomic_store_explicit(&lines[who].turn, turn, memory_order_release);
    for (polls = 1; atomic_load_explicit(&lines[1 - who].turn, memory_order_acquire) < turn;
         polls++) {
        if (polls % POLLS_BEFORE_LOOK != 0)
            continue;
        if (start == 0)
            start = bench_now_ns();
        else if (bench_now_ns() - start > GIVE_UP_NS)
            return false;
    }
    return true;
}

/* The least of several blocks: what was between was somebody else's. */
static bool measure(pair *lines, int who, double *ns_out)
{
    uint64_t turn = 0, start;
    double each, least = 0;
    int block, i;

    if (!bench_pin(who))
        return false;
    for (i = 0; i < WARM; i++)
        if (!exchange(lines, who, ++turn))
            return false;
    for (block = 0; block < BLOCKS; block++) {
        start = bench_now_ns();
        for (i = 0; i < BLOCK; i++)
            if (!exchange(lines, who, ++turn))
                return false;
        each = (double)(bench_now_ns() - start) / BLOCK;
        least = block == 0 || each < least ? each : least;
    }
    *ns_out = least;
    return true;
}

static int with_other(pair *lines)
{
    const pid_t parent = getpid(), child = fork();
    double ns = 0;
    bool ok;

    if (child < 0) {
        perror("tutti bench: cannot start a process");
        return EXIT_FAILURE;
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(getppid() == parent && measure(lines, 1, &ns) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    ok = measure(lines, 0, &ns);
    if (!ok)
        kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (!ok) {
        fprintf(stderr, "tutti bench: two processes did not come to run at the same time\n");
        return EXIT_FAILURE;
    }
    printf("%s: two cores exchange a line in %.0f ns\n", ns < FAR_NS ? "near" : "far", ns);
    return EXIT_SUCCESS;
}

int bench_near(int argc, char **argv)
{
    pair *lines;
    int code;

    if (argc > 1) {
        const bool help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;

        if (help) {
            printf("usage: tutti bench near\n\nHow far two cores are from each other now.\n");
            return EXIT_SUCCESS;
        }
        fprintf(stderr, "tutti bench near: takes no '%.200s'\n", argv[1]);
        return bench_see_help(argv[0]);
    }
    if (bench_cores() < 2) {
        printf("alone: this process may use one core\n");
        return EXIT_SUCCESS;
    }
    lines =
        mmap(NULL, 2 * sizeof *lines, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lines == MAP_FAILED) {
        perror("tutti bench: cannot map two lines");
        return EXIT_FAILURE;
    }
    code = with_other(lines);
    munmap(lines, 2 * sizeof *lines);
    return code;
}
