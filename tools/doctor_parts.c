/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor_parts.c - `tutti doctor host`: optional parts, by the files that they would be loaded from. Nothing is loaded: an
 * MPI or a driver does things when it is. */
#include "doctor.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOUND_MAX = 512 };

typedef struct part {
    const char *what;
    const char *file; /* a library, as the linker looks for it, or a command */
    const char *use;
} part;

static const part libraries[] = {
    { "CUDA", "libcuda.so.1", "buffers on GPUs need it" },
    { "NCCL", "libnccl.so.2", "what backend \"nccl\" loads" },
    { "UCX", "libucp.so.0", "what transport \"ucx\" loads" },
    { "Open MPI", "libmpi.so.40", "what backend \"mpi\" loads; its mpirun starts tutti programs" },
    { "MPICH", "libmpich.so.12", "what backend \"mpi\" loads; its mpiexec starts tutti programs" },
};
static const part commands[] = {
    { "gdb", "gdb", "what tutti_breakpoint() starts" },
    { "gnuplot", "gnuplot", "draws what tutti bench and tutti sim measure" },
    { "numactl", "numactl", "tells the distances of memory" },
};

/* The first file called name in directories that are separated by colons. */
static bool find_in(const char *dirs, const char *name, char found[FOUND_MAX])
{
    const char *at = dirs;

    while (at != NULL && *at != '\0') {
        const int len = (int)strcspn(at, ":");

        if (len > 0 && snprintf(found, FOUND_MAX, "%.*s/%s", len, at, name) < FOUND_MAX && access(found, R_OK) == 0)
            return true;
        at += len;
        at += *at == ':';
    }
    return false;
}

static bool find_library(const char *name, char found[FOUND_MAX])
{
    static const char *const patterns[] = { "/usr/local/lib/%s", "/usr/lib/*-linux-gnu/%s", "/usr/lib64/%s", "/usr/lib/%s",
                                            "/usr/local/cuda/lib64/%s", "/usr/lib/*-linux-gnu/openmpi/lib/%s" };
    char pattern[FOUND_MAX];
    glob_t hits = { .gl_pathc = 0 };
    bool got = find_in(getenv("LD_LIBRARY_PATH"), name, found);
    size_t i;

    for (i = 0; i < sizeof patterns / sizeof patterns[0] && !got; i++) {
        const char *mark = strstr(patterns[i], "%s");

        snprintf(pattern, sizeof pattern, "%.*s%s", (int)(mark - patterns[i]), patterns[i], name);
        got = glob(pattern, 0, NULL, &hits) == 0 && hits.gl_pathc > 0;
        if (got)
            snprintf(found, FOUND_MAX, "%s", hits.gl_pathv[0]);
        globfree(&hits);
    }
    return got;
}

static void tell(report *r, const part *p, bool there, const char *found)
{
    if (there)
        report_add(r, NOTE, p->what, NULL, "%s: %s", found, p->use);
    else
        report_add(r, NOTE, p->what, NULL, "not installed (%s)", p->use);
}

void doctor_parts(report *r)
{
    char found[FOUND_MAX];
    size_t i;

    report_add(r, NOTE, "GPU", NULL, "%s; buffers on GPUs: docs/cuda.md, docs/nccl.md",
               access("/proc/driver/nvidia/version", R_OK) == 0 ? "there is an NVIDIA driver" : "no driver seen");
    for (i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        tell(r, &libraries[i], find_library(libraries[i].file, found), found);
    for (i = 0; i < sizeof commands / sizeof commands[0]; i++)
        tell(r, &commands[i], find_in(getenv("PATH"), commands[i].file, found), found);
}
