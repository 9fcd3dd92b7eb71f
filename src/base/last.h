/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/last.h - whose threads a process has, so that it ends when only the library's are left, and so that of one which only waits it
 * is known that nothing else of the program goes on. */
#ifndef TTI_BASE_LAST_H
#define TTI_BASE_LAST_H

#include <stdbool.h>

/** The calling thread is the program's, and uses the library. */
void tti_note_thread(void);

/** The calling thread is the library's: the first and the last thing that it does. */
void tti_own_thread_begins(void);
void tti_own_thread_ends(void);

/** Whether the calling thread is the library's. */
bool tti_is_own_thread(void);

/** From here on functions of the program may be called on threads of the library; as often ends: not any more. Before the first can be
 * called, and after the last. */
void tti_lending_begins(void);
void tti_lending_ends(void);

/** Whether the calling thread, which is the program's, is all of the program that runs: nobody else of it can do anything before it
 * goes on. False where that is not known. A few system calls. */
bool tti_is_only_thread(void);

/** In a child of fork(), where none of them is. */
void tti_own_threads_gone(void);

#endif
