/* SPDX-License-Identifier: BSD-3-Clause
 *
 * library.c - NCCL and the CUDA runtime, found when the plug-in is loaded.
 *
 * How     A name given in a variable is the only one that is tried. Else one that is in the process already is taken, as
 *         streams of the program's runtime are what comes here; then the loader looks, newest first.
 * True    A program with another user's rights (set-user-ID) does not read the variables. */
#include "nccl_backend.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 21400, NAMES_MOST = 6 }; /* NCCL 2.14 is the first with communicators that do not block */

tnccl_functions tnccl;

typedef struct library {
    const char *called;
    const char *variable;
    const char *names[NAMES_MOST]; /* ends with NULL */
} library;

static const library nccl_library = { "NCCL", "TUTTI_NCCL_LIBRARY", { "libnccl.so.2", "libnccl.so", NULL } };
static const library cuda_library = { "the CUDA runtime",
                                      "TUTTI_CUDART_LIBRARY",
                                      { "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so", NULL } };

static void *open_one(const library *lib)
{
    const char *given = secure_getenv(lib->variable);
    void       *object = NULL;
    int         i;

    if (given != NULL && given[0] != '\0')
        return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    for (i = 0; object == NULL && lib->names[i] != NULL; i++)
        object = dlopen(lib->names[i], RTLD_NOW | RTLD_NOLOAD);
    for (i = 0; object == NULL && lib->names[i] != NULL; i++)
        object = dlopen(lib->names[i], RTLD_NOW | RTLD_LOCAL);
    return object;
}

static tutti_status find_library(const library *lib, void **object_out)
{
    const char *why;

    *object_out = open_one(lib);
    if (*object_out != NULL)
        return TUTTI_OK;
    why = dlerror();
    return tnccl_host->fail(TUTTI_E_UNSUPPORTED, "%s is not there: %s\n  next: install it, or name the file in %s", lib->called,
                            why != NULL ? why : "no reason given", lib->variable);
}

typedef struct wanted {
    const char *name;
    void       *slot; /* a pointer to a function, of any type */
} wanted;

static tutti_status find_functions(const library *lib, void *object, const wanted *all, size_t n)
{
    void  *address;
    size_t i;

    for (i = 0; i < n; i++) {
        address = dlsym(object, all[i].name);
        if (address == NULL)
            return tnccl_host->fail(TUTTI_E_UNSUPPORTED, "%s that was found has no function '%s'\n  next: name another one in %s",
                                    lib->called, all[i].name, lib->variable);
        memcpy(all[i].slot, &address, sizeof address);
    }
    return TUTTI_OK;
}

/* As the device "cuda": where there is no GPU there is no such backend, and a program that asks is told so. */
static tutti_status find_gpu(void)
{
    int               n = 0;
    const cudaError_t code = tnccl.cudaGetDeviceCount(&n);

    if (code == cudaSuccess && n > 0)
        return TUTTI_OK;
    tnccl.cudaGetLastError(); /* the program, which asks for it next, is not to have ours */
    return tnccl_host->fail(TUTTI_E_UNSUPPORTED, "there is no GPU that this process can use: CUDA says '%s'\n"
                                                 "  next: see nvidia-smi and CUDA_VISIBLE_DEVICES, or use another backend",
                            tnccl.cudaGetErrorString(code));
}

static void find_split(void *object)
{
    void *address = dlsym(object, "ncclCommSplit");

    memcpy(&tnccl.ncclCommSplit, &address, sizeof address);
}

tutti_status tnccl_load(void)
{
#define WANTED(name) { #name, &tnccl.name },
    const wanted of_nccl[] = { TNCCL_OF_NCCL(WANTED) };
    const wanted of_cuda[] = { TNCCL_OF_CUDA(WANTED) };
#undef WANTED
    void        *nccl = NULL, *cuda = NULL;
    tutti_status st = find_library(&cuda_library, &cuda); /* the one that NCCL uses, too */

    if (st == TUTTI_OK)
        st = find_library(&nccl_library, &nccl);
    if (st == TUTTI_OK)
        st = find_functions(&cuda_library, cuda, of_cuda, sizeof of_cuda / sizeof of_cuda[0]);
    if (st == TUTTI_OK)
        st = find_functions(&nccl_library, nccl, of_nccl, sizeof of_nccl / sizeof of_nccl[0]);
    if (st != TUTTI_OK)
        return st;
    find_split(nccl);
    if (tnccl.ncclGetVersion(&tnccl.version) != ncclSuccess || tnccl.version < OLDEST)
        return tnccl_host->fail(TUTTI_E_UNSUPPORTED, "NCCL is of version %d, and the first that this backend takes is %d\n"
                                                     "  next: install a newer one, or name it in TUTTI_NCCL_LIBRARY",
                                tnccl.version, (int)OLDEST);
    return find_gpu();
}
