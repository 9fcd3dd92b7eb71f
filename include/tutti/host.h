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

/** What the link of this host carries, as far as its kernel tells: the lower of what the interface is shaped to (TBF, or the default
 * class of an HTB, at its root) and the speed of the card, or of several that are bonded. */
typedef struct tutti_link {
    size_t size;
    int    mbit;       /* Mb/s, of all interfaces that are used together; 0: not known */
    char   words[640]; /* by interface, and who says so: "eth0 1000 Mb/s (speed), eth1 unknown" */
} tutti_link;

#define TUTTI_LINK                                                                                     \
    {                                                                                                  \
        sizeof(tutti_link), 0, ""                                                                      \
    }

/** Fill in what is known of the link by which others would reach this process: what rank 0 goes by in the choice of algorithms between
 * hosts where TUTTI_LINK_MBIT says nothing.
 *
 * @param address   as tutti_listen_address() writes it; where TUTTI_SOCKET_IFNAME names several interfaces they are what counts: as
 *                  fast as the slowest, times their number
 * @param link_out  initialised with TUTTI_LINK
 * @errors   TUTTI_E_ARG      address is no numeric address, TUTTI_SOCKET_IFNAME is wrong, or link_out is NULL or not initialised
 *           TUTTI_E_NETWORK  the interfaces of this host cannot be listed
 *           An address that this host has not is no error: nothing is known of it.
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_link_look(const char *address, tutti_link *link_out);

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
