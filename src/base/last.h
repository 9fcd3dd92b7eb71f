/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/last.h - whose threads a process has, so that it ends when only the library's are left. */
#ifndef TTI_BASE_LAST_H
#define TTI_BASE_LAST_H

/** The calling thread is the program's, and uses the library. */
void tti_note_thread(void);

/** The calling thread is the library's: the first and the last thing that it does. */
void tti_own_thread_begins(void);
void tti_own_thread_ends(void);

/** In a child of fork(), where none of them is. */
void tti_own_threads_gone(void);

#endif
