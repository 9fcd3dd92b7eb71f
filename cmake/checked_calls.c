/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checked_calls.c - what a call through a pointer may meet, in a build with TUTTI_CFI. Every library and program of ours has its own copy.
 *
 * Why     clang's check of calls through pointers knows the functions of one link. What is called here is often another's: callbacks of
 *         programs, tables of plug-ins. clang's answer, a runtime that keeps a map of all that is loaded, has to be in the
 *         program; ours cannot ask that of programs which merely load a library.
 * How     Where the target is none of the functions of this link that have the type of the call, the compiled code asks
 *         __cfi_slowpath(). If the target lies in this library's or program's own file, then it has another type, or is no function
 *         at all: __cfi_check(), which the linker made, looks once more, and ends the process. Otherwise it is another's, of which
 *         nothing is known: it is called.
 * True    Within what one link made, a call through a pointer reaches a function of its own type or ends the process. It may still
 *         leave for anywhere in code of others. */
#include <stdint.h>

/* The linker's: where our own code ends. It begins behind the headers of the file. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

void __cfi_check(uint64_t type, void *target, void *diagnosis);

__attribute__((visibility("hidden"))) void __cfi_slowpath(uint64_t type, void *target);

void __cfi_slowpath(uint64_t type, void *target)
{
    const uintptr_t at = (uintptr_t)target;

    if (at >= (uintptr_t)__ehdr_start && at < (uintptr_t)etext)
        __cfi_check(type, target, (void *)0);
}
