/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heap_test.c - regions, bounds, sharing inside a process, and descriptors that are no heaps. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>
#include "transport/heap.h"

static const uint8_t token[TTI_TOKEN_BYTES] = "0123456789abcde";

static void regions_are_zeroed_and_reused(void **state)
{
    tti_heap *heap = NULL;
    uint64_t  a, b, c, again;

    (void)state;
    assert_int_equal(tti_heap_create(token, 8, &heap), TUTTI_OK);
    assert_int_equal(tti_heap_alloc(heap, 10000, &a), TUTTI_OK);
    assert_int_equal(tti_heap_alloc(heap, 1, &b), TUTTI_OK);
    assert_int_equal(tti_heap_alloc(heap, 5000, &c), TUTTI_OK);
    assert_true(b >= a + 10000 && c > b);
    memset(tti_heap_at(heap, a, 10000), 0xff, 10000);
    tti_heap_release(heap, a);
    assert_int_equal(tti_heap_alloc(heap, 12000, &again), TUTTI_OK);
    assert_true(again == a);
    assert_int_equal(*(uint8_t *)tti_heap_at(heap, again, 1), 0);
    assert_int_equal(tti_heap_alloc(heap, (size_t)1 << 40, &c), TUTTI_E_NOMEM);
    assert_int_equal(tti_heap_alloc(heap, (size_t)255 << 20, &c), TUTTI_OK);
    assert_int_equal(tti_heap_alloc(heap, (size_t)800 << 20, &c), TUTTI_E_NOMEM);
    tti_heap_free(heap);
}

static _Atomic int ticks;

static void tick(int signal)
{
    (void)signal;
    ticks++;
}

/* A program with a timer, as profilers have: it ticks many times while pages are reserved, which are there all the
 * same. */
static void signals_do_not_end_a_reservation(void **state)
{
    const struct itimerval fast = { { 0, 500 }, { 0, 500 } }, off = { { 0, 0 }, { 0, 0 } };
    const struct sigaction counts = { .sa_handler = tick, .sa_flags = SA_RESTART };
    struct sigaction       before;
    tti_heap              *heap = NULL;
    uint64_t               at;
    tutti_status           st;
    int                    i;

    (void)state;
    assert_int_equal(tti_heap_create(token, 8, &heap), TUTTI_OK);
    assert_int_equal(sigaction(SIGALRM, &counts, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &fast, NULL), 0);
    for (i = 0, st = TUTTI_OK; i < 4 && st == TUTTI_OK; i++)
        st = tti_heap_alloc(heap, (size_t)64 << 20, &at);
    assert_int_equal(setitimer(ITIMER_REAL, &off, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(st, TUTTI_OK);
    assert_true(ticks > 0);
    tti_heap_free(heap);
}

static bool is_zero(void *region, uint64_t arg)
{
    assert_int_equal(arg, 42);
    return *(uint8_t *)region == 0;
}

static void retired_regions_wait_for_their_readers(void **state)
{
    tti_heap *heap = NULL;
    uint64_t  a, b, c;

    (void)state;
    assert_int_equal(tti_heap_create(token, 8, &heap), TUTTI_OK);
    assert_int_equal(tti_heap_alloc(heap, 1, &a), TUTTI_OK);
    assert_int_equal(tti_heap_alloc(heap, 1, &b), TUTTI_OK);
    *(uint8_t *)tti_heap_at(heap, a, 1) = 1;
    tti_heap_retire(heap, b, is_zero, 42); /* at once */
    assert_int_equal(tti_heap_regions(heap), 1);
    tti_heap_retire(heap, a, is_zero, 42);
    assert_int_equal(tti_heap_regions(heap), 1);
    assert_int_equal(tti_heap_alloc(heap, 1, &c), TUTTI_OK);
    assert_true(c != a);
    *(uint8_t *)tti_heap_at(heap, a, 1) = 0;
    assert_int_equal(tti_heap_alloc(heap, 1, &c), TUTTI_OK);
    assert_true(c == a);
    assert_int_equal(tti_heap_regions(heap), 2);
    *(uint8_t *)tti_heap_at(heap, a, 1) = 1;
    tti_heap_retire(heap, a, is_zero, 42);
    tti_heap_free(heap); /* nobody is asked any more */
}

static void offsets_are_only_indices(void **state)
{
    tti_heap *heap = NULL;
    uint64_t  a;

    (void)state;
    assert_int_equal(tti_heap_create(token, 8, &heap), TUTTI_OK);
    assert_int_equal(tti_heap_alloc(heap, 4096, &a), TUTTI_OK);
    assert_non_null(tti_heap_at(heap, a, 4096));
    assert_null(tti_heap_at(heap, 0, 1));              /* the head is no region */
    assert_null(tti_heap_at(heap, a + 1, 1));          /* not on a line */
    assert_null(tti_heap_at(heap, a, SIZE_MAX));       /* wraps */
    assert_null(tti_heap_at(heap, UINT64_MAX - 127, 1));
    assert_null(tti_heap_at(heap, (uint64_t)1 << 30, 1));
    tti_heap_free(heap);
}

static void one_process_has_one_mapping(void **state)
{
    tti_heap *own = NULL, *peer = NULL;

    (void)state;
    assert_int_equal(tti_heap_create(token, 8, &own), TUTTI_OK);
    assert_int_equal(tti_heap_map(dup(tti_heap_fd(own)), token, 8, &peer), TUTTI_OK);
    assert_ptr_equal(tti_heap_head_of(own), tti_heap_head_of(peer));
    tti_heap_free(own);
    atomic_store(&tti_heap_directory(peer)[7], 5); /* still mapped */
    tti_heap_free(peer);
}

static void strangers_are_refused(void **state)
{
    static const uint8_t other[TTI_TOKEN_BYTES] = "another token..";
    tti_heap            *own = NULL, *peer = NULL;
    int                  small = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int                  unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    (void)state;
    assert_int_equal(tti_heap_create(token, 8, &own), TUTTI_OK);
    assert_int_equal(tti_heap_map(tti_heap_fd(own), other, 8, &peer), TUTTI_E_AUTH);
    assert_int_equal(ftruncate(small, 4096), 0);
    assert_int_equal(tti_heap_map(small, token, 8, &peer), TUTTI_E_AUTH);
    assert_int_equal(ftruncate(unsealed, (off_t)1 << 30), 0); /* could shrink under us: SIGBUS */
    assert_int_equal(tti_heap_map(unsealed, token, 8, &peer), TUTTI_E_AUTH);
    assert_null(peer);
    assert_int_not_equal(ftruncate(tti_heap_fd(own), 0), 0);
    close(small);
    close(unsealed);
    tti_heap_free(own);
}

/* Memory in huge pages has the right size and seals, but is only there where the system has such pages left: whoever looks
 * at it elsewhere is killed. */
static void huge_pages_are_refused(void **state)
{
    const int huge = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    tti_heap *peer = NULL;

    (void)state;
    if (huge < 0 || ftruncate(huge, (off_t)1 << 30) != 0 ||
        fcntl(huge, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        skip(); /* this kernel has none */
    assert_int_equal(tti_heap_map(huge, token, 8, &peer), TUTTI_E_AUTH);
    close(huge);
}

/* A core would have each of its pages, touched or not. */
static void no_core_has_it(void **state)
{
    FILE     *maps = fopen("/proc/self/smaps", "re");
    tti_heap *heap = NULL;
    char      line[512];
    bool      is_ours = false;
    int       n = 0;

    (void)state;
    assert_int_equal(tti_heap_create(token, 8, &heap), TUTTI_OK);
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        is_ours = is_ours || strstr(line, "memfd:tutti") != NULL;
        if (strncmp(line, "VmFlags:", 8) != 0)
            continue;
        if (is_ours)
            assert_non_null(strstr(line, " dd"));
        n += is_ours;
        is_ours = false;
    }
    fclose(maps);
    assert_true(n > 0);
    tti_heap_free(heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_are_zeroed_and_reused),
        cmocka_unit_test(signals_do_not_end_a_reservation),
        cmocka_unit_test(retired_regions_wait_for_their_readers),
        cmocka_unit_test(offsets_are_only_indices),
        cmocka_unit_test(one_process_has_one_mapping),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(huge_pages_are_refused),
        cmocka_unit_test(no_core_has_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
