/* SPDX-License-Identifier: BSD-3-Clause
 *
 * registered_test.c
 * Goal    registered memory is zeroed, aligned, found again, reused, and cut off from late writers.
 * Method  one process, which maps its own heap a second time, as a peer would, over its descriptor: what it
 *         writes there after the memory was taken back is the late writer. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "transport/registered.h"
#include "base/thread.h"

enum { MIB = 1 << 20, MADV_COLLAPSE_OF_LINUX_6_1 = 25 };

static void pieces_are_aligned_zeroed_and_reused(void **state)
{
    unsigned char *small = NULL, *large = NULL, *again = NULL;

    (void)state;
    assert_int_equal(tutti_alloc(100, (void **)&small), TUTTI_OK);
    assert_int_equal(tutti_alloc(3 * MIB, (void **)&large), TUTTI_OK);
    assert_int_equal((uintptr_t)small % 4096, 0);
    assert_int_equal((uintptr_t)large % (2 * MIB), 0);
    memset(small, 0xff, 100);
    memset(large, 0xff, 3 * MIB);
    assert_true(tutti_is_registered(large + MIB, 2 * MIB));
    assert_false(tutti_is_registered(large + MIB, 2 * MIB + 1));
    assert_false(tutti_is_registered(&small, 1));
    assert_int_equal(tutti_free(large), TUTTI_OK);
    assert_false(tutti_is_registered(large, 1));
    assert_int_equal(tutti_alloc(3 * MIB, (void **)&again), TUTTI_OK);
    assert_ptr_equal(again, large);
    assert_int_equal(again[0] + again[3 * MIB - 1], 0);
    assert_int_equal(tutti_free(again), TUTTI_OK);
    assert_int_equal(tutti_free(small), TUTTI_OK);
    assert_int_equal(tutti_free(NULL), TUTTI_OK);
}

static void what_is_not_registered_is_refused(void **state)
{
    unsigned char *p = NULL;
    uint64_t       offset;

    (void)state;
    assert_int_equal(tutti_alloc(0, (void **)&p), TUTTI_E_ARG);
    assert_int_equal(tutti_alloc(1, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_alloc(SIZE_MAX, (void **)&p), TUTTI_E_NOMEM);
    assert_int_equal(tutti_alloc(SIZE_MAX / 2, (void **)&p), TUTTI_E_NOMEM);
    assert_int_equal(tutti_free(&p), TUTTI_E_ARG);
    assert_int_equal(tutti_alloc(8192, (void **)&p), TUTTI_OK);
    assert_int_equal(tutti_free(p + 1), TUTTI_E_ARG);
    assert_int_equal(tti_registered_lend(p, 8193, &offset), TUTTI_E_ARG);
    assert_int_equal(tti_registered_lend(&offset, 1, &offset), TUTTI_E_ARG);
    assert_int_equal(tti_registered_lend(p + 64, 100, &offset), TUTTI_OK);
    assert_int_equal(tti_registered_lend(p, 1, &offset), TUTTI_E_STATE);
    assert_int_equal(tutti_free(p), TUTTI_E_STATE);
    tti_registered_take_back(p + 64, true);
    assert_true(tutti_is_registered(p, 8192));
    assert_int_equal(tutti_free(p), TUTTI_OK);
    assert_int_equal(tutti_free(p), TUTTI_E_ARG);
}

/* Stands for a peer: a mapping of its own. */
static unsigned char *map_as_a_peer(int fd, uint64_t offset, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

    assert_true(at != MAP_FAILED);
    return at;
}

static void late_writers_hit_pages_that_nobody_reads(void **state)
{
    unsigned char *p = NULL, *next = NULL, *peer;
    uint64_t       offset = 0;
    int            fd = -1;

    (void)state;
    assert_int_equal(tti_registered_hold(&fd), TUTTI_OK);
    assert_int_equal(tutti_alloc(8192, (void **)&p), TUTTI_OK);
    assert_int_equal(tti_registered_lend(p, 8192, &offset), TUTTI_OK);
    peer = map_as_a_peer(fd, offset, 8192);
    peer[5000] = 1;
    assert_int_equal(p[5000], 1);
    tti_registered_take_back(p, false);
    peer[5000] = 2; /* goes on after the error */
    assert_int_equal(p[5000], 1);
    assert_false(tutti_is_registered(p, 1));
    assert_int_equal(tti_registered_lend(p, 1, &offset), TUTTI_E_ARG);
    p[1] = 7; /* ordinary memory from now on */
    assert_int_equal(tutti_free(p), TUTTI_OK);
    assert_int_equal(tutti_alloc(8192, (void **)&next), TUTTI_OK);
    assert_ptr_not_equal(next, p); /* a late writer can still reach those pages */
    peer[1] = 3;
    assert_int_equal(next[1], 0);
    assert_int_equal(tutti_free(next), TUTTI_OK);
    munmap(peer, 8192);
    tti_registered_drop();
}

static void what_is_used_stays_until_the_last_use_ends(void **state)
{
    unsigned char *p = NULL, *peer;
    uint64_t       offset = 0;
    tti_use        uses[2], other[1];
    int            fd = -1;

    (void)state;
    assert_int_equal(tti_registered_hold(&fd), TUTTI_OK);
    assert_int_equal(tutti_alloc(3 * 4096, (void **)&p), TUTTI_OK);
    uses[0] = (tti_use){ .data = p + 10, .bytes = 100 };
    uses[1] = (tti_use){ .data = &fd, .bytes = sizeof fd };
    assert_false(tti_registered_use(uses, 2)); /* all or none */
    uses[1] = (tti_use){ .data = p + 100, .bytes = 3 * 4096 - 99 };
    assert_false(tti_registered_use(uses, 2)); /* one byte beyond */
    assert_int_equal(tti_registered_lend(p, 1, &offset), TUTTI_OK);
    uses[1] = (tti_use){ .data = NULL, .bytes = 0 };
    assert_false(tti_registered_use(uses, 2)); /* stands in a window */
    tti_registered_take_back(p, true);
    other[0] = (tti_use){ .data = p + 8192, .bytes = 4096 };
    assert_true(tti_registered_use(uses, 2));
    assert_true(tti_registered_use(other, 1));
    assert_int_equal(tutti_free(p), TUTTI_E_STATE);
    assert_int_equal(tti_registered_lend(p, 1, &offset), TUTTI_E_STATE);

    peer = map_as_a_peer(fd, uses[0].offset - 10, 3 * 4096);
    peer[20] = 1;
    peer[8200] = 1;
    assert_true(tti_registered_used(uses, 2, true));
    peer[20] = 2;   /* late: nobody sees it */
    peer[8200] = 2; /* the other use goes on */
    assert_int_equal(p[20], 1);
    assert_int_equal(p[8200], 2);
    assert_int_equal(tutti_free(p), TUTTI_E_STATE);
    assert_true(tti_registered_used(other, 1, false)); /* other pages */
    assert_false(tutti_is_registered(p, 1));
    assert_false(tti_registered_use(uses, 2));
    assert_int_equal(tutti_free(p), TUTTI_OK);
    munmap(peer, 3 * 4096);
    tti_registered_drop();
}

static void a_use_learns_that_its_pages_were_cut_off(void **state)
{
    unsigned char *p = NULL;
    tti_use        one, two;

    (void)state;
    assert_int_equal(tutti_alloc(8192, (void **)&p), TUTTI_OK);
    one = (tti_use){ .data = p, .bytes = 64 };
    two = (tti_use){ .data = p + 64, .bytes = 64 };
    assert_true(tti_registered_use(&one, 1));
    assert_true(tti_registered_use(&two, 1));
    assert_true(tti_registered_used(&one, 1, true));
    assert_false(tti_registered_used(&two, 1, false));
    assert_int_equal(tutti_free(p), TUTTI_OK);
}

static void only_heaps_are_mapped(void **state)
{
    tti_foreign *foreign = NULL;
    const int    fd = memfd_create("test", MFD_CLOEXEC);
    void        *p = NULL;
    int          own = -1;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)4 << 30), 0);
    assert_int_equal(tti_foreign_map(fd, &foreign), TUTTI_E_AUTH); /* not sealed: it could shrink */
    close(fd);
    assert_int_equal(tti_registered_hold(&own), TUTTI_OK);
    assert_int_equal(tutti_alloc(64, &p), TUTTI_OK);
    assert_int_equal(tti_foreign_map(own, &foreign), TUTTI_OK);
    assert_true(tti_foreign_is_ours(foreign));
    assert_ptr_equal(tti_foreign_at(foreign, 0, 64), p);
    assert_null(tti_foreign_at(foreign, UINT64_MAX, 1));
    assert_null(tti_foreign_at(foreign, 1, SIZE_MAX));
    tti_foreign_free(foreign);
    assert_int_equal(tutti_free(p), TUTTI_OK);
    tti_registered_drop();
}

static void a_forked_child_has_a_heap_of_its_own(void **state)
{
    unsigned char *p = NULL, *q = NULL;
    int            status = 0;
    pid_t          child;

    (void)state;
    assert_int_equal(tutti_alloc(64, (void **)&p), TUTTI_OK);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(tutti_free(p) == TUTTI_E_ARG && tutti_alloc(64, (void **)&q) == TUTTI_OK && q != p &&
                      tutti_free(q) == TUTTI_OK
                  ? 0
                  : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(tutti_free(p), TUTTI_OK);
}

enum { THREADS = 4, ROUNDS = 300, HELD = 8 };

static void take_and_free(void *arg)
{
    unsigned char *held[HELD] = { NULL };
    const unsigned seed = *(const unsigned *)arg;
    unsigned       i;

    for (i = 0; i < ROUNDS; i++) {
        const unsigned at = (i * 7 + seed) % HELD;
        const size_t   bytes = 1 + (i * 977 + seed * 131) % 20000;

        assert_int_equal(tutti_free(held[at]), TUTTI_OK);
        assert_int_equal(tutti_alloc(bytes, (void **)&held[at]), TUTTI_OK);
        assert_int_equal(held[at][0] + held[at][bytes - 1], 0);
        memset(held[at], (int)seed + 1, bytes);
    }
    for (i = 0; i < HELD; i++)
        assert_int_equal(tutti_free(held[i]), TUTTI_OK);
}

/* The C library's, but for signals that come first: some kernels let any signal end a reservation. */
static int n_signals; /* to come before the next success */

int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    if (n_signals > 0) {
        n_signals--;
        return EINTR;
    }
    return fallocate(fd, 0, offset, bytes) == 0 ? 0 : errno;
}

static void signals_do_not_look_like_a_shortage(void **state)
{
    void *p = NULL;

    (void)state;
    n_signals = 3;
    assert_int_equal(tutti_alloc(5 << 20, &p), TUTTI_OK);
    assert_int_equal(n_signals, 0);
    memset(p, 7, 5 << 20);
    assert_int_equal(tutti_free(p), TUTTI_OK);
    n_signals = 1 << 20; /* more than any patience */
    p = NULL;
    assert_int_equal(tutti_alloc(1, &p), TUTTI_E_NOMEM);
    assert_null(p);
    n_signals = 0;
}

static void threads_share_the_heap(void **state)
{
    tti_thread threads[THREADS] = { { .running = false } };
    unsigned   seeds[THREADS];
    unsigned   i;

    (void)state;
    for (i = 0; i < THREADS; i++) {
        seeds[i] = i;
        assert_int_equal(tti_thread_start(&threads[i], "take-free", take_and_free, &seeds[i]), TUTTI_OK);
    }
    for (i = 0; i < THREADS; i++)
        tti_thread_join(&threads[i]);
}

/* Whether the system gives large pages to whoever asks: of a file of this test's own. */
static bool gives_large_pages(void)
{
    const int fd = memfd_create("tutti-large-pages", MFD_CLOEXEC);
    char     *room = mmap(NULL, 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char     *at;
    bool      gives;

    assert_true(fd >= 0 && room != MAP_FAILED);
    at = room + (2 * MIB - (uintptr_t)room % (2 * MIB));
    assert_int_equal(ftruncate(fd, 2 * MIB), 0);
    assert_true(mmap(at, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    at[0] = 1;
    gives = madvise(at, 2 * MIB, MADV_COLLAPSE_OF_LINUX_6_1) == 0;
    munmap(room, 4 * MIB);
    close(fd);
    return gives;
}

static long count_faults(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

/* The system may be short of large pages for a while, and have some again when it is asked: then there is another piece. */
static void large_pieces_lie_on_large_pages(void **state)
{
    enum { BYTES = 15 * MIB /* the last one on small pages */, PIECES = 5 };
    const int      zeroes = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    unsigned char *p[PIECES] = { NULL };
    long           before, faults = BYTES;
    int            i;

    (void)state;
    assert_true(zeroes >= 0);
    for (i = 0; i < PIECES && faults >= BYTES / 4096 / 2; i++) {
        assert_int_equal(tutti_alloc(BYTES, (void **)&p[i]), TUTTI_OK);
        before = count_faults();
        /* The kernel writes: a sanitizer would fault in pages of its own beside. */
        assert_int_equal(syscall(SYS_read, zeroes, p[i], (size_t)BYTES), BYTES);
        faults = count_faults() - before;
    }
    close(zeroes);
    if (gives_large_pages())
        assert_true(faults < BYTES / 4096 / 2);
    else
        print_message("the system gives no large pages\n");
    while (i-- > 0)
        assert_int_equal(tutti_free(p[i]), TUTTI_OK);
}

/* How many bytes of memory without a name a core of this process would have. */
static uint64_t bytes_of_a_core(void)
{
    FILE         *maps = fopen("/proc/self/smaps", "re");
    char          line[512];
    unsigned long begin, end, bytes = 0;
    uint64_t      total = 0;

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        if (strstr(line, "memfd:tutti") != NULL && sscanf(line, "%lx-%lx", &begin, &end) == 2)
            bytes = end - begin;
        if (strncmp(line, "VmFlags:", 8) != 0)
            continue;
        total += strstr(line, " dd") == NULL ? bytes : 0;
        bytes = 0;
    }
    fclose(maps);
    return total;
}

/* The heap is as large as the machine's memory, and the kernel makes every page of it that a core is to have. */
static void a_core_has_what_was_handed_out(void **state)
{
    const uint64_t before = bytes_of_a_core();
    void          *mine = NULL;

    (void)state;
    assert_true(before < 64 * MIB);
    assert_int_equal(tutti_alloc(3 * MIB, &mine), TUTTI_OK);
    assert_int_equal(bytes_of_a_core(), before + 3 * MIB);
    assert_int_equal(tutti_free(mine), TUTTI_OK);
    assert_int_equal(bytes_of_a_core(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_has_what_was_handed_out),
        cmocka_unit_test(pieces_are_aligned_zeroed_and_reused),
        cmocka_unit_test(what_is_not_registered_is_refused),
        cmocka_unit_test(late_writers_hit_pages_that_nobody_reads),
        cmocka_unit_test(what_is_used_stays_until_the_last_use_ends),
        cmocka_unit_test(a_use_learns_that_its_pages_were_cut_off),
        cmocka_unit_test(only_heaps_are_mapped),
        cmocka_unit_test(a_forked_child_has_a_heap_of_its_own),
        cmocka_unit_test(signals_do_not_look_like_a_shortage),
        cmocka_unit_test(threads_share_the_heap),
        cmocka_unit_test(large_pieces_lie_on_large_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
