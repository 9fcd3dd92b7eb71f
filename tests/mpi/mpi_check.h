/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi_check.h - for programs of ranks that mpirun starts: a rank that finds something wrong says so and ends, and
 * mpirun ends the others. */
#ifndef TUTTI_PLUGINS_MPI_CHECK_H
#define TUTTI_PLUGINS_MPI_CHECK_H

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

#endif
