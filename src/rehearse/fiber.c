/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fiber.c - stacks to switch between, and thread-local variables that follow.
 *
 * Why     Code that is written for threads keeps things per thread: the words of the last failure, the group that NULL
 *         means. As fibers share a thread, those variables are exchanged with the stack.
 * How     The library's thread-local variables are one block of memory of the thread, as the loader tells: the block in
 *         which the last error's words are. Each fiber has a copy. It is copied to its place before the fiber goes
 *         on, and back when it pauses. errno, which is libc's, is kept by the switch.
 * True    The address of a variable is the same in all fibers, so code may hold on to it across a switch.
 * Fails   Thread-local variables of other objects are shared by all fibers. Stacks end at a page that nobody may touch. */
#include "rehearse/fiber.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <tutti/private.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

enum { STACK_BYTES = 512 * 1024, GUARD_BYTES = 4096 };

struct tti_fiber {
    ucontext_t here;   /* where it goes on */
    ucontext_t runner; /* where whoever runs it does */
    void (*body)(void *arg);
    void *arg;
    void *stack; /* with its guard */
    void *locals; /* what is thread-local, while it pauses */
    void *runners_locals;
    int   saved_errno;
    void *fake_stack; /* the sanitizers' */
    void *runner_fake_stack;
    const void *runner_stack;
    size_t runner_stack_bytes;
    void *race_fiber;
    void *runner_race_fiber;
};

/* ---- thread-local variables -------------------------------------------------------------------------- */

typedef struct locals {
    void  *at;
    size_t bytes;
} locals;

static int find_block(struct dl_phdr_info *info, size_t size, void *ctx)
{
    const uintptr_t wanted = (uintptr_t)tutti_last_error();
    const uintptr_t at = (uintptr_t)info->dlpi_tls_data;
    locals         *found = ctx;
    int             i;

    (void)size;
    for (i = 0; at != 0 && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS && wanted >= at && wanted < at + info->dlpi_phdr[i].p_memsz) {
            *found = (locals){ info->dlpi_tls_data, info->dlpi_phdr[i].p_memsz };
            return 1;
        }
    return 0;
}

/* Of this thread; where it is does not change as long as the thread lives. */
static const locals *own_locals(void)
{
    static _Thread_local locals own;

    if (own.at == NULL)
        dl_iterate_phdr(find_block, &own);
    return &own;
}

/* ---- switching, as sanitizers have to be told of it ---------------------------------------------------- */

static void begin_switch(void **fake_stack, const void *stack, size_t bytes, void *race_fiber)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(fake_stack, stack, bytes);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(race_fiber, 0);
#endif
    (void)fake_stack, (void)stack, (void)bytes, (void)race_fiber;
}

static void end_switch(void *fake_stack, const void **stack_out, size_t *bytes_out)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, stack_out, bytes_out);
#endif
    (void)fake_stack, (void)stack_out, (void)bytes_out;
}

static void fiber_main(unsigned high, unsigned low)
{
    tti_fiber *fiber = (tti_fiber *)(uintptr_t)((uint64_t)high << 32 | low);

    end_switch(NULL, &fiber->runner_stack, &fiber->runner_stack_bytes);
    fiber->body(fiber->arg);
    /* NULL: the fiber's own fake stack may go */
    begin_switch(NULL, fiber->runner_stack, fiber->runner_stack_bytes, fiber->runner_race_fiber);
    setcontext(&fiber->runner);
    abort();
}

void tti_fiber_run(tti_fiber *fiber)
{
    const locals *own = own_locals();
    void *const   at = own->at;
    const size_t  bytes = own->bytes;
    const int     before = errno;

    memcpy(fiber->runners_locals, at, bytes);
    memcpy(at, fiber->locals, bytes);
    errno = fiber->saved_errno;
#if defined(__SANITIZE_THREAD__)
    fiber->runner_race_fiber = __tsan_get_current_fiber();
#endif
    begin_switch(&fiber->runner_fake_stack, (char *)fiber->stack + GUARD_BYTES, STACK_BYTES, fiber->race_fiber);
    swapcontext(&fiber->runner, &fiber->here);
    end_switch(fiber->runner_fake_stack, NULL, NULL);
    fiber->saved_errno = errno;
    memcpy(fiber->locals, at, bytes);
    memcpy(at, fiber->runners_locals, bytes);
    errno = before;
}

void tti_fiber_pause(tti_fiber *fiber)
{
    begin_switch(&fiber->fake_stack, fiber->runner_stack, fiber->runner_stack_bytes, fiber->runner_race_fiber);
    swapcontext(&fiber->here, &fiber->runner);
    end_switch(fiber->fake_stack, &fiber->runner_stack, &fiber->runner_stack_bytes);
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static tutti_status make_stack(void **stack_out)
{
    void *stack = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (stack == MAP_FAILED)
        return tti_fail_errno(errno, "cannot map a stack of %d bytes", STACK_BYTES);
    mprotect(stack, GUARD_BYTES, PROT_NONE);
    *stack_out = stack;
    return TUTTI_OK;
}

static void set_out(tti_fiber *fiber)
{
    const uint64_t arg = (uint64_t)(uintptr_t)fiber;

    getcontext(&fiber->here);
    fiber->here.uc_stack.ss_sp = (char *)fiber->stack + GUARD_BYTES;
    fiber->here.uc_stack.ss_size = STACK_BYTES;
    fiber->here.uc_link = NULL;
    makecontext(&fiber->here, (void (*)(void))(uintptr_t)fiber_main, 2, (unsigned)(arg >> 32), (unsigned)arg);
#if defined(__SANITIZE_THREAD__)
    fiber->race_fiber = __tsan_create_fiber(0);
#endif
}

tutti_status tti_fiber_create(void (*body)(void *arg), void *arg, tti_fiber **fiber_out)
{
    const locals *own = own_locals();
    tti_fiber    *fiber = calloc(1, sizeof *fiber);
    tutti_status  st = TUTTI_OK;

    if (fiber == NULL || (fiber->locals = malloc(2 * own->bytes + 1)) == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory for a fiber");
    if (st == TUTTI_OK)
        st = make_stack(&fiber->stack);
    if (st != TUTTI_OK) {
        tti_fiber_destroy(fiber);
        return st;
    }
    memcpy(fiber->locals, own->at, own->bytes);
    fiber->runners_locals = (char *)fiber->locals + own->bytes;
    fiber->body = body;
    fiber->arg = arg;
    set_out(fiber);
    *fiber_out = fiber;
    return TUTTI_OK;
}

void tti_fiber_destroy(tti_fiber *fiber)
{
    if (fiber == NULL)
        return;
#if defined(__SANITIZE_THREAD__)
    if (fiber->race_fiber != NULL)
        __tsan_destroy_fiber(fiber->race_fiber);
#endif
    if (fiber->stack != NULL)
        munmap(fiber->stack, GUARD_BYTES + STACK_BYTES);
    free(fiber->locals);
    free(fiber);
}
