/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stores.c - a point before each store to memory that processes share.
 *
 * How     Rooms that write to shared memory are compiled once more with -fsanitize=thread and linked without that
 *         sanitizer: the compiler puts a call before every load and store, and in place of every atomic operation.
 *         Here are the functions it calls. Loads pass by; a store passes a point if its address is in a shared
 *         mapping, of which the linker's --wrap=mmap keeps a list. Atomic operations are made as asked for, but
 *         always in the strongest order.
 *         A copy into shared memory (--wrap=memcpy) passes a point before and one in its middle, so that what lies
 *         there may be torn.
 * True    A mapping is in the list before its address is known to anybody. Slots are never reused for another range
 *         while a store may look: a range that is unmapped becomes empty, and that is all. */
#include "torture/points.h"

#include <string.h>
#include <sys/mman.h>

enum { RANGES_MAX = 4096 };

typedef struct range {
    _Atomic uintptr_t first, end;
} range;

static range       ranges[RANGES_MAX];
static _Atomic int n_ranges;

void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int   __real_munmap(void *at, size_t bytes);
int   __wrap_munmap(void *at, size_t bytes);
void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes);

void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    void *map = __real_mmap(at, bytes, prot, flags, fd, offset);
    int   slot;

    if (map == MAP_FAILED || (flags & MAP_SHARED) == 0)
        return map;
    slot = atomic_fetch_add(&n_ranges, 1);
    if (slot < RANGES_MAX) {
        atomic_store(&ranges[slot].first, (uintptr_t)map);
        atomic_store(&ranges[slot].end, (uintptr_t)map + bytes);
    }
    return map;
}

int __wrap_munmap(void *at, size_t bytes)
{
    const int n = atomic_load(&n_ranges);
    int       i;

    for (i = 0; i < n && i < RANGES_MAX; i++)
        if (atomic_load(&ranges[i].first) == (uintptr_t)at)
            atomic_store(&ranges[i].end, 0);
    return __real_munmap(at, bytes);
}

static bool is_shared(const void *at)
{
    const uintptr_t a = (uintptr_t)at;
    int             i = atomic_load_explicit(&n_ranges, memory_order_acquire);

    i = i < RANGES_MAX ? i : RANGES_MAX;
    while (--i >= 0)
        if (a >= atomic_load_explicit(&ranges[i].first, memory_order_relaxed) &&
            a < atomic_load_explicit(&ranges[i].end, memory_order_relaxed))
            return true;
    return false;
}

static void storing(const void *at)
{
    if (atomic_load_explicit(&tt_at_point, memory_order_relaxed) != NULL && is_shared(at))
        tt_pass(TT_AT_STORE, TTI_NO_HANDLE);
}

void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    const size_t half = bytes / 2;

    if (atomic_load_explicit(&tt_at_point, memory_order_relaxed) == NULL || !is_shared(to))
        return __real_memcpy(to, from, bytes);
    tt_pass(TT_AT_STORE, TTI_NO_HANDLE);
    __real_memcpy(to, from, half);
    tt_pass(TT_AT_STORE, TTI_NO_HANDLE);
    __real_memcpy((char *)to + half, (const char *)from + half, bytes - half);
    return to;
}

/* ---- what the compiler calls ---- */

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* it declares them to itself */

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
    (void)pc;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *at, unsigned long bytes)
{
    (void)at;
    (void)bytes;
}

void __tsan_write_range(void *at, unsigned long bytes)
{
    (void)bytes;
    storing(at);
}

#define LOADS_AND_STORES(name)            \
    void __tsan_read##name(void *at)      \
    {                                     \
        (void)at;                         \
    }                                     \
    void __tsan_write##name(void *at)     \
    {                                     \
        storing(at);                      \
    }                                     \
    void __tsan_volatile_read##name(void *at)  \
    {                                     \
        (void)at;                         \
    }                                     \
    void __tsan_volatile_write##name(void *at) \
    {                                     \
        storing(at);                      \
    }

#define UNALIGNED(bytes)                              \
    void __tsan_unaligned_read##bytes(void *at)       \
    {                                                 \
        (void)at;                                     \
    }                                                 \
    void __tsan_unaligned_write##bytes(void *at)      \
    {                                                 \
        storing(at);                                  \
    }

LOADS_AND_STORES(1)
LOADS_AND_STORES(2)
LOADS_AND_STORES(4)
LOADS_AND_STORES(8)
LOADS_AND_STORES(16)
UNALIGNED(2)
UNALIGNED(4)
UNALIGNED(8)
UNALIGNED(16)

#define ATOMICS(bits, type)                                                                          \
    type __tsan_atomic##bits##_load(const volatile type *at, int order)                              \
    {                                                                                                \
        (void)order;                                                                                 \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                \
    }                                                                                                \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                       \
    {                                                                                                \
        (void)order;                                                                                 \
        storing((const void *)(uintptr_t)at);                                                        \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                               \
    }                                                                                                \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *seen, type value, int order, int other) \
    {                                                                                                \
        (void)order;                                                                                 \
        (void)other;                                                                                 \
        storing((const void *)(uintptr_t)at);                                                        \
        return __atomic_compare_exchange_n(at, seen, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
    }                                                                                                \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *at, type *seen, type value, int order, int other) \
    {                                                                                                \
        return __tsan_atomic##bits##_compare_exchange_strong(at, seen, value, order, other);          \
    }                                                                                                \
    /* clang's: what was there. */                                                                   \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type seen, type value, int order, int other) \
    {                                                                                                \
        (void)__tsan_atomic##bits##_compare_exchange_strong(at, &seen, value, order, other);          \
        return seen;                                                                                 \
    }

#define CHANGES(bits, type, name, builtin)                                                           \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order)                      \
    {                                                                                                \
        (void)order;                                                                                 \
        storing((const void *)(uintptr_t)at);                                                        \
        return builtin(at, value, __ATOMIC_SEQ_CST);                                                 \
    }

#define ALL_OF(bits, type)                                      \
    ATOMICS(bits, type)                                         \
    CHANGES(bits, type, exchange, __atomic_exchange_n)          \
    CHANGES(bits, type, fetch_add, __atomic_fetch_add)          \
    CHANGES(bits, type, fetch_sub, __atomic_fetch_sub)          \
    CHANGES(bits, type, fetch_and, __atomic_fetch_and)          \
    CHANGES(bits, type, fetch_or, __atomic_fetch_or)            \
    CHANGES(bits, type, fetch_xor, __atomic_fetch_xor)

ALL_OF(8, uint8_t)
ALL_OF(16, uint16_t)
ALL_OF(32, uint32_t)
ALL_OF(64, uint64_t)

void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
