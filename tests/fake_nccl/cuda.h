/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cuda.h - for programs of ranks: the CUDA runtime that the backend uses, be it the stand-in or a real one, and work for its
 * streams that looks at memory. */
#ifndef TUTTI_TESTS_CUDA_H
#define TUTTI_TESTS_CUDA_H

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: rank %d: not so: %s\n  last error: %s\n", __FILE__, __LINE__,                      \
                    tutti_get_rank(NULL), #condition, tutti_last_error());                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define OK(call) CHECK((call) == TUTTI_OK)

/* The call fails like this, and its words have that in them. */
#define FAILS(call, status, text)                                                                                      \
    do {                                                                                                               \
        CHECK((call) == (status));                                                                                     \
        CHECK(strstr(tutti_last_error(), text) != NULL);                                                               \
    } while (0)

typedef struct cuda_functions {
    __typeof__(cudaStreamCreate)      *cudaStreamCreate;
    __typeof__(cudaStreamDestroy)     *cudaStreamDestroy;
    __typeof__(cudaStreamSynchronize) *cudaStreamSynchronize;
    cudaError_t (*cudaMallocManaged)(void **memory, size_t bytes, unsigned flags);
    __typeof__(cudaFree)              *cudaFree;
    __typeof__(cudaLaunchHostFunc)    *cudaLaunchHostFunc;
    __typeof__(cudaGetLastError)      *cudaGetLastError;
    void (*fake_cuda_unload)(void); /* the stand-in's alone; else NULL */
} cuda_functions;

extern cuda_functions cuda;

/** Find the library that TUTTI_CUDART_LIBRARY names, or the one that is installed. */
void cuda_open(void);

/** Memory that streams and the program see; zeros. */
void *cuda_memory(size_t bytes);
/** A span of it. */
tutti_span cuda_span(void *data, int64_t count, tutti_dtype dtype);

/** Let stream set all elements to value, when it comes to that. */
void cuda_fill(cudaStream_t stream, float *data, int64_t count, float value);
/** Let stream count, when it comes to that, elements that are not value; into *wrong, which only streams touch until they are done. */
void cuda_compare(cudaStream_t stream, const float *data, int64_t count, float value, int64_t *wrong);

/** The same with numbers that rise by step from element to element, and begin anew after a while. */
void cuda_fill_rising(cudaStream_t stream, float *data, int64_t count, float value, float step);
void cuda_compare_rising(cudaStream_t stream, const float *data, int64_t count, float value, float step, int64_t *wrong);

#endif
