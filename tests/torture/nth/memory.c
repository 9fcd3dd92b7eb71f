/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory.c - what the library's code calls for memory, mappings and threads: it may fail, and is counted.
 *
 * Blocks are in a table by their address, open addressing, under one lock: a block that another library gave us to
 * free is simply not there. What tests allocate themselves, on nobody's side, is not in it either. */
#include "fails.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SLOTS = 1 << 18, MAPS = 4096, PRINTED = 12 };

typedef struct block {
    void    *at; /* NULL: free; GONE: was taken once */
    void    *caller;
    size_t   bytes;
    uint64_t number;
} block;

#define GONE ((void *)1)

static struct {
    pthread_mutex_t lock;
    block           slots[SLOTS];
    uint64_t        number;
    int64_t         n;
    void           *maps[MAPS]; /* where mappings begin; NULL: free */
    int64_t         n_maps;
} held = { .lock = PTHREAD_MUTEX_INITIALIZER };

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *at, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
char *__real_realpath(const char *path, char *out);
void  __real_free(void *at);
FILE *__real_fopen(const char *path, const char *mode);
DIR  *__real_opendir(const char *path);
void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int   __real_munmap(void *at, size_t bytes);
long  __real_syscall(long number, ...);
int   __real_memfd_create(const char *name, unsigned flags);
int   __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*body)(void *), void *arg);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);
char *__wrap_realpath(const char *path, char *out);
int   __wrap_asprintf(char **text_out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int   __wrap___asprintf_chk(char **text_out, int flag, const char *format, ...) __attribute__((format(printf, 3, 4)));
void  __wrap_free(void *at);
FILE *__wrap_fopen(const char *path, const char *mode);
DIR  *__wrap_opendir(const char *path);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int   __wrap_munmap(void *at, size_t bytes);
long  __wrap_syscall(long number, ...);
int   __wrap_memfd_create(const char *name, unsigned flags);
int   __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*body)(void *), void *arg);

int tt_side_of_thread(void);

/* ---- the table ---- */

static size_t slot_of(const void *at)
{
    return (size_t)(((uintptr_t)at >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 46) % SLOTS;
}

static void *keep(void *at, size_t bytes, void *caller)
{
    size_t i;

    if (at == NULL || tt_side_of_thread() == TT_NOBODY)
        return at;
    pthread_mutex_lock(&held.lock);
    for (i = slot_of(at); held.slots[i].at != NULL && held.slots[i].at != GONE; i = (i + 1) % SLOTS)
        continue;
    held.slots[i] = (block){ at, caller, bytes, ++held.number };
    held.n++;
    pthread_mutex_unlock(&held.lock);
    return at;
}

static void forget(const void *at)
{
    size_t i;

    if (at == NULL)
        return;
    pthread_mutex_lock(&held.lock);
    for (i = slot_of(at); held.slots[i].at != NULL && held.slots[i].at != at; i = (i + 1) % SLOTS)
        continue;
    if (held.slots[i].at == at) {
        held.slots[i].at = held.slots[(i + 1) % SLOTS].at == NULL ? NULL : GONE;
        held.n--;
    }
    pthread_mutex_unlock(&held.lock);
}

uint64_t tt_block_mark(void)
{
    return held.number;
}

void tt_print_blocks_since(uint64_t mark)
{
    int    printed = 0;
    size_t i;

    pthread_mutex_lock(&held.lock);
    for (i = 0; i < SLOTS && printed < PRINTED; i++)
        if (held.slots[i].at != NULL && held.slots[i].at != GONE && held.slots[i].number > mark) {
            fprintf(stderr, "    %zu bytes, taken at ", held.slots[i].bytes);
            backtrace_symbols_fd(&held.slots[i].caller, 1, STDERR_FILENO); /* an offset for addr2line */
            printed++;
        }
    pthread_mutex_unlock(&held.lock);
}

/* Put at, if that is not NULL, in the place of was, if that is there or NULL. */
static void replace_map(const void *was, void *at)
{
    int i;

    pthread_mutex_lock(&held.lock);
    for (i = 0; i < MAPS && held.maps[i] != was; i++)
        continue;
    if (i < MAPS) {
        held.maps[i] = at;
        held.n_maps += (at != NULL) - (was != NULL);
    }
    pthread_mutex_unlock(&held.lock);
}

static int64_t entries_of(const char *folder)
{
    DIR    *dir = opendir(folder);
    int64_t n = 0;

    while (dir != NULL && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        closedir(dir);
    return n;
}

tt_held tt_holds(void)
{
    return (tt_held){ .blocks = held.n, .maps = held.n_maps, .descriptors = entries_of("/proc/self/fd"),
                      .threads = entries_of("/proc/self/task") };
}

/* ---- what is called instead ---- */

static bool refused(tt_resource what)
{
    int64_t which;

    if (!tt_is_to_fail(what, &which))
        return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t n)
{
    return refused(TT_MEMORY) ? NULL : keep(__real_malloc(n), n, __builtin_return_address(0));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refused(TT_MEMORY) ? NULL : keep(__real_calloc(n, size), n * size, __builtin_return_address(0));
}

void *__wrap_realloc(void *at, size_t n)
{
    if (refused(TT_MEMORY))
        return NULL;
    forget(at);
    return keep(__real_realloc(at, n), n, __builtin_return_address(0));
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    return refused(TT_MEMORY) ? NULL : keep(__real_aligned_alloc(align, n), n, __builtin_return_address(0));
}

char *__wrap_strdup(const char *text)
{
    return refused(TT_MEMORY) ? NULL : keep(__real_strdup(text), strlen(text) + 1, __builtin_return_address(0));
}

char *__wrap_strndup(const char *text, size_t n)
{
    return refused(TT_MEMORY) ? NULL : keep(__real_strndup(text, n), strnlen(text, n) + 1, __builtin_return_address(0));
}

/* Memory of its own only where the caller gives none. */
char *__wrap_realpath(const char *path, char *out)
{
    char *real;

    if (out == NULL && refused(TT_MEMORY))
        return NULL;
    real = __real_realpath(path, out);
    return out != NULL || real == NULL ? real : keep(real, strlen(real) + 1, __builtin_return_address(0));
}

static int print(char **text_out, const char *format, va_list list, void *caller)
{
    int n;

    if (refused(TT_MEMORY))
        return -1;
    n = vasprintf(text_out, format, list);
    if (n >= 0)
        keep(*text_out, (size_t)n + 1, caller);
    return n;
}

int __wrap_asprintf(char **text_out, const char *format, ...)
{
    va_list list;
    int     n;

    va_start(list, format);
    n = print(text_out, format, list, __builtin_return_address(0));
    va_end(list);
    return n;
}

/* asprintf() of what is compiled with checks. */
int __wrap___asprintf_chk(char **text_out, int flag, const char *format, ...)
{
    va_list list;
    int     n;

    (void)flag;
    va_start(list, format);
    n = print(text_out, format, list, __builtin_return_address(0));
    va_end(list);
    return n;
}

/* Their memory is the C library's; a descriptor that stays is seen. */
FILE *__wrap_fopen(const char *path, const char *mode)
{
    return refused(TT_SYSTEM) ? NULL : __real_fopen(path, mode);
}

DIR *__wrap_opendir(const char *path)
{
    return refused(TT_SYSTEM) ? NULL : __real_opendir(path);
}

void __wrap_free(void *at)
{
    forget(at);
    __real_free(at);
}

void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    void *map = refused(TT_SYSTEM) ? MAP_FAILED : __real_mmap(at, bytes, prot, flags, fd, offset);

    if (map != MAP_FAILED && (flags & MAP_FIXED) == 0)
        replace_map(NULL, map);
    return map;
}

int __wrap_munmap(void *at, size_t bytes)
{
    const int rc = __real_munmap(at, bytes);

    if (rc == 0 && at != NULL)
        replace_map(at, NULL);
    return rc;
}

/* mremap(), which lent.c asks the kernel for itself. Over another mapping: then that is as it was, and the first is gone. */
static long remap(const long *args)
{
    const bool over = (args[3] & MREMAP_FIXED) != 0;
    long       map = -1;

    if (!refused(TT_SYSTEM))
        map = __real_syscall(SYS_mremap, args[0], args[1], args[2], args[3], args[4]);
    if (map != -1)
        replace_map((void *)args[0], over ? NULL : (void *)map);
    return map;
}

/* As many arguments as any system call has; those that were not given are not looked at. */
long __wrap_syscall(long number, ...)
{
    va_list list;
    long    args[6];
    int     i;

    va_start(list, number);
    for (i = 0; i < 6; i++)
        args[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_mremap)
        return remap(args);
    return __real_syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
    return refused(TT_SYSTEM) ? -1 : __real_memfd_create(name, flags);
}

typedef struct start {
    void *(*body)(void *);
    void *arg;
    int   side;
} start;

static void *thread_main(void *raw)
{
    const start s = *(start *)raw;

    __real_free(raw);
    tt_be_side(s.side);
    return s.body(s.arg);
}

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*body)(void *), void *arg)
{
    start *s;
    int    err;

    if (refused(TT_SYSTEM))
        return EAGAIN;
    s = __real_malloc(sizeof *s);
    if (s == NULL)
        return EAGAIN;
    *s = (start){ body, arg, tt_side_of_thread() };
    err = __real_pthread_create(id, attr, thread_main, s);
    if (err != 0)
        __real_free(s);
    return err;
}
