/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/fork.h - what is left of the library in a child of fork(): objects that refuse, and locks that work. */
#ifndef TTI_BASE_FORK_H
#define TTI_BASE_FORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tutti/status.h>

/** How many forks lie between the first process and this one. Written in children alone, before they go on; read
 * through tti_fork_age(). */
extern _Atomic uint32_t tti_fork_generation;

/** The age of this process. What is made keeps it, and is this process's own as long as the two are equal. */
static inline uint32_t tti_fork_age(void)
{
    return atomic_load_explicit(&tti_fork_generation, memory_order_relaxed);
}

static inline bool tti_is_inherited(uint32_t age)
{
    return __builtin_expect(age != tti_fork_age(), 0);
}

/** The words for a call on what a parent made. noun: "group", "store".
 * @errors TUTTI_E_STATE  always */
tutti_status tti_fail_inherited(const char *what, const char *noun, const char *name);

/** Have forks noticed from now on. Whoever makes an object that children must refuse calls it first. */
void tti_fork_watch(void);

/** What state of the process does around a fork, so that a child finds it whole: before takes its lock, after lets it
 * go, in the parent and in the child. Static; short; no lock of one part is taken under another's. */
typedef struct tti_fork_part {
    void (*before)(void);
    void (*after)(bool in_child);
    struct tti_fork_part *next;
    _Atomic bool          known;
} tti_fork_part;

/** Make part known, once, and tti_fork_watch(). */
void tti_fork_guard(tti_fork_part *part);

/** fd belongs to the library: children close it. After it was opened. */
void tti_fork_own(int fd);
/** It does not any more. Before it is closed or given away. */
void tti_fork_disown(int fd);

#endif
