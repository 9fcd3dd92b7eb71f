/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runtime.c - the CUDA runtime, found when the plug-in is loaded.
 *
 * How     A file that TUTTI_CUDART_LIBRARY names is the only one that is tried. Else one that is in the process already, as the
 *         streams and the memory that come here are of the program's runtime; then what the loader finds, newest first.
 * True    A program with another user's rights (set-user-ID) does not read the variable. */
#include "cuda_device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "TUTTI_CUDART_LIBRARY"

tcuda_functions tcuda;

static const char *const names[] = { "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so" };

enum { N_NAMES = sizeof names / sizeof names[0] };

static void *open_any(int flags)
{
    void *object = NULL;
    int   i;

    for (i = 0; object == NULL && i < N_NAMES; i++)
        object = dlopen(names[i], RTLD_NOW | flags);
    return object;
}

static void *open_runtime(void)
{
    const char *given = secure_getenv(VARIABLE);
    void       *object;

    if (given != NULL && given[0] != '\0')
        return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    object = open_any(RTLD_NOLOAD);
    return object != NULL ? object : open_any(RTLD_LOCAL);
}

static tutti_status find_functions(void *object)
{
#define WANTED(name) { #name, &tcuda.name },
    const struct {
        const char *name;
        void       *slot; /* a pointer to a function, of any type */
    } all[] = { TCUDA_FUNCTIONS(WANTED) };
#undef WANTED
    void  *address;
    size_t i;

    for (i = 0; i < sizeof all / sizeof all[0]; i++) {
        address = dlsym(object, all[i].name);
        if (address == NULL)
            return tcuda_host->fail(TUTTI_E_UNSUPPORTED, "the CUDA runtime that was found has no function '%s'\n  next: name another "
                                                         "one in " VARIABLE, all[i].name);
        memcpy(all[i].slot, &address, sizeof address);
    }
    return TUTTI_OK;
}

static tutti_status find_device(void)
{
    int               n = 0;
    const cudaError_t code = tcuda.cudaGetDeviceCount(&n);

    if (code == cudaSuccess && n > 0)
        return TUTTI_OK;
    tcuda.cudaGetLastError(); /* the program, which asks for it next, is not to have ours */
    return tcuda_host->fail(TUTTI_E_UNSUPPORTED, "there is no GPU: CUDA says '%s'\n  next: see nvidia-smi and CUDA_VISIBLE_DEVICES",
                            tcuda.cudaGetErrorString(code));
}

tutti_status tcuda_load(void)
{
    void        *object = open_runtime();
    const char  *why;
    tutti_status st;

    if (object == NULL) {
        why = dlerror();
        return tcuda_host->fail(TUTTI_E_UNSUPPORTED, "the CUDA runtime is not there: %s\n  next: install it, or name the file in "
                                VARIABLE, why != NULL ? why : "no reason given");
    }
    st = find_functions(object);
    return st == TUTTI_OK ? find_device() : st;
}
