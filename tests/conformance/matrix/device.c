/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is used of the CUDA runtime, with types that need none of its headers: 0 is success, stream NULL the default one. */
static struct {
    int (*malloc_managed)(void **memory, size_t bytes, unsigned flags);
    int (*free)(void *memory);
    int (*stream_synchronize)(void *stream);
} cuda;

static tutti_device device = { TUTTI_CPU, 0 };

static bool find(void *object, const char *name, void *slot)
{
    void *address = dlsym(object, name);

    if (address == NULL)
        fprintf(stderr, "conformance_matrix: the CUDA runtime has no '%s'\n", name);
    else
        memcpy(slot, &address, sizeof address);
    return address != NULL;
}

bool tt_device_open(const char *name)
{
    const char *given = getenv("TUTTI_CUDART_LIBRARY");
    void       *object;

    if (strcmp(name, "cpu") == 0)
        return true;
    if (strcmp(name, "cuda") != 0)
        return false;
    object = dlopen(given != NULL ? given : "libcudart.so", RTLD_NOW);
    if (object == NULL) {
        fprintf(stderr, "conformance_matrix: %s\n", dlerror());
        return false;
    }
    device.type = TUTTI_CUDA;
    return find(object, "cudaMallocManaged", &cuda.malloc_managed) && find(object, "cudaFree", &cuda.free) &&
           find(object, "cudaStreamSynchronize", &cuda.stream_synchronize);
}

tutti_device tt_device(void)
{
    return device;
}

void *tt_device_alloc(size_t bytes, bool host)
{
    enum { EVERYWHERE = 1 };
    void *memory = NULL;

    if (host || device.type == TUTTI_CPU)
        return malloc(bytes);
    return cuda.malloc_managed(&memory, bytes, EVERYWHERE) == 0 ? memory : NULL;
}

void tt_device_free(void *memory, bool host)
{
    if (host || device.type == TUTTI_CPU)
        free(memory);
    else
        cuda.free(memory);
}

void tt_device_wait(void)
{
    if (device.type != TUTTI_CPU && cuda.stream_synchronize(NULL) != 0)
        fprintf(stderr, "conformance_matrix: the default stream has failed\n");
}
