/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fiber.c - stacks to switch between, and thread-local variables that follow.
 *
 * Why     Code that is written for threads keeps things per thread: the words of the last failure, the group that NULL
 *         means. As fibers share a thread, those variables are exchanged with the stack.
 * How     The library's thread-local variables are one block of memory of the thread, as the loader tells: the block in
 *         which the last error's words are. Each fiber has a copy. It is copied to its place before the fiber goes
 *         on, and back before another does. errno, which is libc's, is kept by the switch.
 *         On x86-64 a switch stores what a function must keep for its caller on the stack, and goes on by another: some
 *         nanoseconds. Elsewhere, and where the processor keeps a second stack of return addresses, it is
 *         swapcontext(), which also asks the kernel about signals each time.
 * True    The address of a variable is the same in all fibers, so code may hold on to it across a switch.
 * Fails   Thread-local variables of other objects are shared by all fibers. Stacks end at a page that nobody may touch. */
#include "rehearse/fiber.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tutti/private.h>

#if defined(__x86_64__) && !(defined(__CET__) && (__CET__ & 2) != 0)
#define OWN_SWITCH 1
#else
#define OWN_SWITCH 0
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

enum { STACK_BYTES = 512 * 1024, GUARD_BYTES = 4096 };

/* Where something goes on. */
#if OWN_SWITCH
typedef void *context; /* a stack pointer, above what is kept */
#else
typedef ucontext_t context;
#endif

struct tti_fiber {
    tti_crew *crew;
    context here;   /* where it goes on */
    context runner; /* where whoever runs it does */
    void (*body)(void *arg);
    void *arg;
    void *stack; /* with its guard */
    void *locals; /* what is thread-local, while another's is there */
    int   saved_errno;
    void *fake_stack; /* the sanitizers' */
    void *runner_fake_stack;
    const void *runner_stack;
    size_t runner_stack_bytes;
    void *race_fiber;
    void *runner_race_fiber;
};

/* ---- thread-local variables -------------------------------------------------------------------------- */

static int find_block(struct dl_phdr_info *info, size_t size, void *ctx)
{
    const uintptr_t wanted = (uintptr_t)tutti_last_error();
    const uintptr_t at = (uintptr_t)info->dlpi_tls_data;
    tti_crew       *crew = ctx;
    int             i;

    (void)size;
    for (i = 0; at != 0 && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS && wanted >= at && wanted < at + info->dlpi_phdr[i].p_memsz) {
            crew->at = info->dlpi_tls_data;
            crew->bytes = info->dlpi_phdr[i].p_memsz;
            return 1;
        }
    return 0;
}

tutti_status tti_crew_begin(tti_crew *crew)
{
    *crew = (tti_crew){ .here = NULL };
    dl_iterate_phdr(find_block, crew);
    crew->own = malloc(crew->bytes + 1);
    return crew->own != NULL ? TUTTI_OK : tti_fail(TUTTI_E_NOMEM, "no memory for fibers");
}

void tti_crew_end(tti_crew *crew)
{
    free(crew->own);
    crew->own = NULL;
}

/* The variables of a fiber, or of the thread (NULL), come to their place. */
static void hand_over(tti_crew *crew, tti_fiber *to)
{
    if (crew->here == to)
        return;
    memcpy(crew->here != NULL ? crew->here->locals : crew->own, crew->at, crew->bytes);
    memcpy(crew->at, to != NULL ? to->locals : crew->own, crew->bytes);
    crew->here = to;
}

void tti_crew_home(tti_crew *crew)
{
    hand_over(crew, NULL);
}

/* ---- switching ------------------------------------------------------------------------------------------ */

static void fiber_main(tti_fiber *fiber);

#if OWN_SWITCH

/* Keeps what a callee must on the stack, and the stack in *from; goes on with the one that is `to`. */
void tti_fiber_switch(void **from, void *to) __attribute__((visibility("hidden")));
/* Where a new one begins: fiber_main is in r12, its argument in rbx. */
void tti_fiber_begin(void) __attribute__((visibility("hidden")));

__asm__(".text\n"
        ".p2align 4\n"
        ".hidden tti_fiber_switch\n"
        ".globl tti_fiber_switch\n"
        ".type tti_fiber_switch, @function\n"
        "tti_fiber_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size tti_fiber_switch, . - tti_fiber_switch\n"
        ".p2align 4\n"
        ".hidden tti_fiber_begin\n"
        ".globl tti_fiber_begin\n"
        ".type tti_fiber_begin, @function\n"
        "tti_fiber_begin:\n"
        "    movq %rbx, %rdi\n"
        "    call *%r12\n"
        "    ud2\n"
        ".size tti_fiber_begin, . - tti_fiber_begin\n");

/* What tti_fiber_switch() takes from a stack, lowest address first. */
typedef struct kept {
    uint32_t mxcsr;
    uint32_t x87;
    uint64_t r15, r14, r13, r12, rbx, rbp;
    uint64_t goes_on_at;
} kept;

static void set_out(tti_fiber *fiber, void *stack, size_t bytes)
{
    kept *first = (kept *)(void *)((char *)stack + bytes - sizeof *first); /* its end, where the call is, is aligned to 16 */

    *first = (kept){ .r12 = (uint64_t)(uintptr_t)fiber_main, .rbx = (uint64_t)(uintptr_t)fiber,
                     .goes_on_at = (uint64_t)(uintptr_t)tti_fiber_begin };
    __asm__ volatile("stmxcsr %0\n fnstcw %1" : "=m"(first->mxcsr), "=m"(first->x87));
    fiber->here = first;
}

static void switch_to(context *from, context *to)
{
    tti_fiber_switch(from, *to);
}

#else

static void context_main(unsigned high, unsigned low)
{
    fiber_main((tti_fiber *)(uintptr_t)((uint64_t)high << 32 | low));
}

static void set_out(tti_fiber *fiber, void *stack, size_t bytes)
{
    const uint64_t arg = (uint64_t)(uintptr_t)fiber;

    getcontext(&fiber->here);
    fiber->here.uc_stack.ss_sp = stack;
    fiber->here.uc_stack.ss_size = bytes;
    fiber->here.uc_link = NULL;
    makecontext(&fiber->here, (void (*)(void))(uintptr_t)context_main, 2, (unsigned)(arg >> 32), (unsigned)arg);
}

static void switch_to(context *from, context *to)
{
    swapcontext(from, to);
}

#endif

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

static void fiber_main(tti_fiber *fiber)
{
    end_switch(NULL, &fiber->runner_stack, &fiber->runner_stack_bytes);
    fiber->body(fiber->arg);
    /* NULL: the fiber's own fake stack may go */
    begin_switch(NULL, fiber->runner_stack, fiber->runner_stack_bytes, fiber->runner_race_fiber);
    switch_to(&fiber->here, &fiber->runner);
    abort();
}

void tti_fiber_run(tti_fiber *fiber)
{
    const int before = errno;

    hand_over(fiber->crew, fiber);
    errno = fiber->saved_errno;
#if defined(__SANITIZE_THREAD__)
    fiber->runner_race_fiber = __tsan_get_current_fiber();
#endif
    begin_switch(&fiber->runner_fake_stack, (char *)fiber->stack + GUARD_BYTES, STACK_BYTES, fiber->race_fiber);
    switch_to(&fiber->runner, &fiber->here);
    end_switch(fiber->runner_fake_stack, NULL, NULL);
    fiber->saved_errno = errno;
    errno = before;
}

void tti_fiber_pause(tti_fiber *fiber)
{
    begin_switch(&fiber->fake_stack, fiber->runner_stack, fiber->runner_stack_bytes, fiber->runner_race_fiber);
    switch_to(&fiber->here, &fiber->runner);
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

tutti_status tti_fiber_create(tti_crew *crew, void (*body)(void *arg), void *arg, tti_fiber **fiber_out)
{
    tti_fiber   *fiber = calloc(1, sizeof *fiber);
    tutti_status st = TUTTI_OK;

    if (fiber == NULL || (fiber->locals = malloc(crew->bytes + 1)) == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory for a fiber");
    if (st == TUTTI_OK)
        st = make_stack(&fiber->stack);
    if (st != TUTTI_OK) {
        tti_fiber_destroy(fiber);
        return st;
    }
    memcpy(fiber->locals, crew->at, crew->bytes);
    fiber->crew = crew;
    fiber->body = body;
    fiber->arg = arg;
    set_out(fiber, (char *)fiber->stack + GUARD_BYTES, STACK_BYTES);
#if defined(__SANITIZE_THREAD__)
    fiber->race_fiber = __tsan_create_fiber(0);
#endif
    *fiber_out = fiber;
    return TUTTI_OK;
}

void tti_fiber_destroy(tti_fiber *fiber)
{
    if (fiber == NULL)
        return;
    if (fiber->crew != NULL && fiber->crew->here == fiber)
        tti_crew_home(fiber->crew);
#if defined(__SANITIZE_THREAD__)
    if (fiber->race_fiber != NULL)
        __tsan_destroy_fiber(fiber->race_fiber);
#endif
    if (fiber->stack != NULL)
        munmap(fiber->stack, GUARD_BYTES + STACK_BYTES);
    free(fiber->locals);
    free(fiber);
}
