/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/host.h - what tutti sees of the host and of the environment that a process runs in, before it joins anything:
 * what `tutti doctor` tells. tutti.h includes it. */
#ifndef TUTTI_HOST_H
#define TUTTI_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A variable of the environment that tutti reads; docs/env.md has them all. */
typedef struct tutti_env_variable {
    const char *name;
    const char *unset; /* what holds where it is unset or empty; NULL: nothing */
    const char *what;
} tutti_env_variable;

/** The i-th variable that tutti reads.
 * @param variable_out  constants, good for ever
 * @errors   none: false behind the last, and nothing is written
 * @threads  any
 * @source   ours */
TUTTI_API bool tutti_env_variable_at(size_t i, tutti_env_variable *variable_out);

/** Whether a variable has a value that can be meant, by the code that reads it. Nobody is waited for and nothing is
 * changed, but that files which variables name are read, plug-ins loaded, and names of hosts resolved. A backend that the program
 * registers is known from then on.
 *
 * @param name  NULL: whether RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or what a scheduler has set in their place,
 *              tell together who this process is and where the store stands, as env:// needs it
 *
 * @errors   TUTTI_E_ARG   the value is wrong, or there is no variable called so; the text says what may be
 *           others        as whoever makes a world would fail with it: a file that cannot be read, a host that does not
 *                         resolve
 *           A variable that is unset, or takes any text, is fine.
 * @threads  any, if nobody calls setenv meanwhile
 * @cost     a name of a host may take as long as the resolver does
 * @source   ours */
TUTTI_API tutti_status tutti_env_check(const char *name);

/** The variable that was probably meant by a name TUTTI_... that nobody reads.
 * @errors   none: NULL where the name is known, is free (TUTTI_TEST_...), does not begin with TUTTI_, or is near to no other
 * @threads  any
 * @source   ours */
TUTTI_API const char *tutti_env_nearest(const char *name);

/** Longest text of an address, NUL included. */
enum { TUTTI_ADDRESS_MAX = 256 };

/** The address at which this process would listen for other ranks: what TUTTI_SOCKET_IFNAME asks for, else the one that
 * routes to the master, loopback where that is local.
 *
 * @param master  host of the store; NULL: the job is inside this process
 * @errors   TUTTI_E_ARG      TUTTI_SOCKET_IFNAME is wrong, or nothing matches it
 *           TUTTI_E_NETWORK  master does not resolve, or there is no route to it
 * @threads  any
 * @cost     that of the resolver
 * @source   ours */
TUTTI_API tutti_status tutti_listen_address(const char *master, char address_out[TUTTI_ADDRESS_MAX]);

/** What the library goes by when it chooses how to work here. */
typedef struct tutti_host {
    size_t      size;
    int         cores_allowed; /* that this process may run on */
    int         cores_running; /* that the machine has, or as many as a quota of the control group leaves */
    const char *isa;           /* instructions of the arithmetic: "avx2"; a constant */
} tutti_host;

#define TUTTI_HOST                                                                                     \
    {                                                                                                  \
        sizeof(tutti_host), 0, 0, 0                                                                    \
    }

/** Fill in what tutti sees of this host.
 * @param host_out  initialised with TUTTI_HOST
 * @errors   TUTTI_E_ARG  it is NULL, or was not initialised
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_host_look(tutti_host *host_out);

#ifdef __cplusplus
}
#endif
#endif
