/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz/descriptors.h - descriptors that the kernel knows nothing of, for targets that need many in each input.
 *
 * Why     To make files in memory, to hand descriptors over and to close them took two thirds of the time of inputs that do it dozens
 *         of times; all of that was the kernel's.
 * How     Numbers from TT_FD_FIRST on are ours. The linker puts __wrap_NAME in the place of the calls that the library makes with
 *         descriptors (CMakeLists.txt): such a number is answered here, as the kernel would, any other goes to the kernel.
 * True    A call that is not known here fails with EBADF, as the kernel has no such descriptor. To close one that is not open ends
 *         the process, which the kernel would not do. */
#ifndef TT_FUZZ_DESCRIPTORS_H
#define TT_FUZZ_DESCRIPTORS_H

#include <stddef.h>

enum { TT_FD_FIRST = 1 << 20, TT_FDS_MAX = 2048, TT_FD_PATH_BYTES = 32 };

/** A descriptor of a file in memory that has a copy of just these bytes, and these seals. */
int tt_fd_memory(const void *data, size_t bytes, int seals);
/** One more of what real, a descriptor of the kernel's, is open on. What the kernel says of that is asked for once, so it stays open. */
int tt_fd_like(int real);
/** What opens the same file again. */
void tt_fd_path(int fd, char path_out[TT_FD_PATH_BYTES]);
/** How many are open. */
int tt_fds_open(void);

#endif
