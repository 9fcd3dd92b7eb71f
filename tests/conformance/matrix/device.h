/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device.h - whose memory the matrix's buffers are: the host's, or managed memory of CUDA, which the program reads and writes
 * as well. The CUDA runtime is looked for at run time: TUTTI_CUDART_LIBRARY, else libcudart.so. */
#ifndef TT_DEVICE_H
#define TT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <tutti/dtype.h>

/** Take "cpu" or "cuda"; before ranks are forked. false: there is no such device, or no runtime; that was said. */
bool tt_device_open(const char *name);
tutti_device tt_device(void);
/** Memory of it; of the host if `host`. NULL: none left. */
void *tt_device_alloc(size_t bytes, bool host);
void  tt_device_free(void *memory, bool host);
/** Wait until what the default stream has been given is done. */
void tt_device_wait(void);

#endif
