/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda.h"

#include <dlfcn.h>

cuda_functions cuda;

static void *find(void *object, const char *name)
{
    void *address = dlsym(object, name);

    if (address == NULL) {
        fprintf(stderr, "no function '%s' in the CUDA runtime\n", name);
        exit(1);
    }
    return address;
}

void cuda_open(void)
{
    const char *name = getenv("TUTTI_CUDART_LIBRARY");
    void       *object = dlopen(name != NULL ? name : "libcudart.so", RTLD_NOW);
    void       *address;

    if (object == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define FIND(function)                              \
    address = find(object, #function);              \
    memcpy(&cuda.function, &address, sizeof address)
    FIND(cudaStreamCreate);
    FIND(cudaStreamDestroy);
    FIND(cudaStreamSynchronize);
    FIND(cudaMallocManaged);
    FIND(cudaFree);
    FIND(cudaLaunchHostFunc);
    FIND(cudaGetLastError);
#undef FIND
    address = dlsym(object, "fake_cuda_unload");
    memcpy(&cuda.fake_cuda_unload, &address, sizeof address);
}

void *cuda_memory(size_t bytes)
{
    void *memory = NULL;

    CHECK(cuda.cudaMallocManaged(&memory, bytes > 0 ? bytes : 1, cudaMemAttachGlobal) == cudaSuccess);
    memset(memory, 0, bytes);
    return memory;
}

tutti_span cuda_span(void *data, int64_t count, tutti_dtype dtype)
{
    tutti_span span = tutti_span_of(data, count, dtype);

    span.device = (tutti_device){ TUTTI_CUDA, 0 };
    return span;
}

typedef struct job {
    float   *data;
    int64_t  count;
    float    value, step;
    int64_t *wrong; /* NULL: fill */
} job;

enum { RISES = 1021 }; /* no piece of anything has so many elements, or a multiple */

static void do_job(void *arg)
{
    job    *j = arg;
    int64_t i;

    for (i = 0; i < j->count; i++) {
        const float value = j->value + j->step * (float)(i % RISES);

        if (j->wrong == NULL)
            j->data[i] = value;
        else
            *j->wrong += j->data[i] != value;
    }
    free(j);
}

static void launch(cudaStream_t stream, job what)
{
    job *j = malloc(sizeof *j);

    CHECK(j != NULL);
    *j = what;
    CHECK(cuda.cudaLaunchHostFunc(stream, do_job, j) == cudaSuccess);
}

void cuda_fill_rising(cudaStream_t stream, float *data, int64_t count, float value, float step)
{
    launch(stream, (job){ .data = data, .count = count, .value = value, .step = step });
}

void cuda_compare_rising(cudaStream_t stream, const float *data, int64_t count, float value, float step, int64_t *wrong)
{
    launch(stream, (job){ .data = (float *)(uintptr_t)data, .count = count, .value = value, .step = step, .wrong = wrong });
}

void cuda_fill(cudaStream_t stream, float *data, int64_t count, float value)
{
    cuda_fill_rising(stream, data, count, value, 0.0f);
}

void cuda_compare(cudaStream_t stream, const float *data, int64_t count, float value, int64_t *wrong)
{
    cuda_compare_rising(stream, data, count, value, 0.0f, wrong);
}
