/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cuda_device.h - what the two files of this plug-in share. */
#ifndef TUTTI_PLUGINS_CUDA_DEVICE_H
#define TUTTI_PLUGINS_CUDA_DEVICE_H

#include <cuda_runtime_api.h>
#include <tutti/plugin/device.h>

/** Given by init; constant from then on. */
extern const tutti_plugin_host *tcuda_host;

#define TCUDA_FUNCTIONS(X)                                                                                              \
    X(cudaGetDeviceCount) X(cudaGetDevice) X(cudaSetDevice) X(cudaStreamCreateWithFlags) X(cudaStreamDestroy)                    \
    X(cudaStreamWaitEvent) X(cudaEventCreateWithFlags) X(cudaEventRecord) X(cudaEventQuery) X(cudaEventDestroy)                  \
    X(cudaHostAlloc) X(cudaFreeHost) X(cudaMemcpyAsync) X(cudaGetErrorString)                  \
    X(cudaGetLastError)

/** The functions that are used, as the runtime has them. */
typedef struct tcuda_functions {
#define TCUDA_MEMBER(name) __typeof__(name) *name;
    TCUDA_FUNCTIONS(TCUDA_MEMBER)
#undef TCUDA_MEMBER
} tcuda_functions;

/** Constant once tcuda_load() has succeeded. */
extern tcuda_functions tcuda;

/** Find the runtime, all functions in it, and a GPU.
 * @errors TUTTI_E_UNSUPPORTED  it is not there, lacks a function, or sees no GPU; the text names the variable to set */
tutti_status tcuda_load(void);

#endif
