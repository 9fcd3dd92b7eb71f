/* SPDX-License-Identifier: BSD-3-Clause
 *
 * library.c - which MPI library this object was built for, and which one its calls go to.
 *
 * Why     A program's own libraries are looked at before those of a plug-in: in one that is linked with MPICH the calls of a plug-in that
 *         was built for Open MPI go to MPICH, with handles that mean nothing to it, and MPI ends the process.
 * How     MPI_Get_library_version may be called at any time, before MPI begins, too, and has the same arguments in all libraries: what it
 *         says is of the library that all our calls would go to. Of Open MPI's handles, which are addresses, and of MPICH's, which
 *         are numbers and are those of every library that keeps its ABI, one kind fits. */
#include "mpi_backend.h"

#include <dlfcn.h>
#include <string.h>

enum { VERSION_BYTES = 16384 }; /* more than any of them writes: each has a bound of its own, up to 8192, and another one than our headers */

#define TEXT(macro)  TEXT_(macro)
#define TEXT_(macro) #macro

#ifdef OPEN_MPI
#    define IS_OPEN_MPI true
#    define BUILT_FOR   "Open MPI " TEXT(OMPI_MAJOR_VERSION) "." TEXT(OMPI_MINOR_VERSION) "." TEXT(OMPI_RELEASE_VERSION)
#else
#    define IS_OPEN_MPI false
#    ifdef MPICH_VERSION
#        define BUILT_FOR "MPICH " MPICH_VERSION
#    else
#        define BUILT_FOR "an MPI library that is not Open MPI"
#    endif
#endif

/* "Open MPI v4.1.4", "MPICH Version: 4.0.2" of what may have several lines, and tabs. */
void tmpi_library_name(char *out, size_t bytes)
{
    char        all[VERSION_BYTES] = "";
    const char *at;
    size_t      used = 0;
    int         length = 0;

    MPI_Get_library_version(all, &length);
    for (at = all; *at != '\0' && *at != ',' && *at != '\n' && used + 1 < bytes; at++)
        if (*at != ' ' && *at != '\t')
            out[used++] = *at;
        else if (used > 0 && out[used - 1] != ' ')
            out[used++] = ' ';
    out[used] = '\0';
}

const char *tmpi_library_file(void)
{
    Dl_info where;
    void   *address;
    int   (*begin)(int *, char ***, int, int *) = MPI_Init_thread;

    memcpy(&address, &begin, sizeof address);
    return dladdr(address, &where) != 0 ? where.dli_fname : NULL;
}

tutti_status tmpi_library_check(void)
{
    const char *file = tmpi_library_file();
    char        name[TMPI_LIBRARY];

    tmpi_library_name(name, sizeof name);
    if ((strncmp(name, "Open MPI", strlen("Open MPI")) == 0) == IS_OPEN_MPI)
        return TUTTI_OK;
    return tmpi_host->fail(TUTTI_E_UNSUPPORTED, "it was built for " BUILT_FOR ", and this program runs with %s ('%.256s')\n"
                                                "  next: set TUTTI_PLUGIN_PATH to the directory of the plug-in that was built for "
                                                "that one, and take its mpirun", name, file != NULL ? file : "?");
}
