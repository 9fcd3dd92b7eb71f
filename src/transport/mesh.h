/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/mesh.h - the members of a world, and the way to each.
 *
 * Made once, when the world is; groups made later use it. Members whose memory and local socket can be
 * reached are on the same host (proved, never guessed): they share heaps and exchange messages through
 * rings in them. To everyone else one TCP connection is made when the first message needs it; where there is a transport it
 * carries what is below (carried/). */
#ifndef TTI_TRANSPORT_MESH_H
#define TTI_TRANSPORT_MESH_H

#include <tutti/plugin/transport.h>
#include "base/port.h"
#include "transport/board.h"
#include "transport/health/health.h"
#include "transport/heap.h"
#include "transport/registered.h"
#include "wire/secret.h"

typedef struct tti_mesh tti_mesh;

typedef struct tti_mesh_config {
    tti_port         *port;
    const tti_board  *board;
    int               rank;
    int               n_ranks;
    const char       *listen_host; /* numeric */
    bool              tcp_only;    /* every member counts as a host of its own */
    const tutti_transport_ops *transport; /* what carries the bytes to other hosts; NULL: TCP. The same on all members */
    uint32_t          as_host;     /* as if on a host with this number, for tests of several on one; 0: where it is */
    int               together_from; /* worlds of so many ranks, and their groups, read what all have left host by host; 0: as
                                        scribe.h has it */
    bool              fresh_secret; /* rank 0 leaves one on the board, unless TUTTI_SECRET_FILE is set */
    bool              fresh_in_plain; /* that would be sent on the network as it is, for all that is known */
    int64_t           deadline_ns;
} tti_mesh_config;

/** Whether what tti_mesh_open() will read with such a transport can be meant at all: for before anybody is waited for, as all hosts have the
 * same mistake, and the first one to meet it would leave the others to look for it.
 * @errors TUTTI_E_ARG  TUTTI_PORT_RANGE, TUTTI_LISTEN, TUTTI_HEARTBEAT_MS or TUTTI_SILENT_MS; with TCP also TUTTI_TCP_STRIPES, or
 *                      several interfaces that are named one by one (wire/rails.h) */
tutti_status tti_mesh_check_env(const tutti_transport_ops *transport);
/** Whether a transport can be meant: it proves nothing and hides nothing, and so would undo what TUTTI_TLS asks for. NULL is fine.
 * @errors TUTTI_E_UNSUPPORTED  that is asked for; TUTTI_E_ARG  TUTTI_TLS or its companions */
tutti_status tti_mesh_check_transport(const tutti_transport_ops *transport);

/** The same of what is on the board of more than one rank, and may be sent in plain (fresh_in_plain): it may have no secret of
 * which TLS makes its keys.
 * @errors TUTTI_E_UNSUPPORTED  it would; or as tti_secret_load() */
tutti_status tti_mesh_check_plain_board(void);

/** Find all members, open the way to those of this host and learn that to the others; the job's secret
 * is read from TUTTI_SECRET_FILE, or from the board.
 * TUTTI_E_TIMEOUT names the ranks that did not come, TUTTI_E_PEER one that has ended. What it fails with is left on the board:
 * so must be what fails after it, before the mesh is closed, as long as others may be joining (trouble.h). */
tutti_status tti_mesh_open(const tti_mesh_config *config, tti_mesh **mesh_out);
/** Leave: marks this rank as gone for those who still wait for it. NULL is fine. */
void tti_mesh_close(tti_mesh *mesh);

/** A random number that all members have, and no other world. No secret. */
uint64_t tti_mesh_world_id(const tti_mesh *mesh);

int       tti_mesh_rank(const tti_mesh *mesh);
int       tti_mesh_size(const tti_mesh *mesh);
tti_port *tti_mesh_port(const tti_mesh *mesh);

/** The lowest rank on rank's host: equal numbers are one host. */
int tti_mesh_host(const tti_mesh *mesh, int rank);

/** Whether the members of a host read together what the n members of a group have left. The same on all. */
bool tti_mesh_reads_together(const tti_mesh *mesh, int n);

/** How many members run on the cores of this machine: those of this host, and those of others that are containers
 * or namespaces beside it. */
int tti_mesh_ranks_on_machine(const tti_mesh *mesh);

/** The heap of a member of this host (the own one included), NULL for others. */
tti_heap *tti_mesh_heap(const tti_mesh *mesh, int rank);

/** The registered memory of a member of this host (the own one included), mapped when it is first asked for;
 * it stays until the mesh is closed. */
tutti_status tti_mesh_registered(tti_mesh *mesh, int rank, const tti_foreign **foreign_out);

/** What the links of this host carry to others, in Mb/s, as its kernel told when it was first asked (base/port_link.c); 0: not known,
 * as where a transport carries the bytes. Of a shaper also how many bytes it lets through at once before that counts, else 0. Any
 * thread. */
int64_t tti_mesh_link(tti_mesh *mesh, int64_t *burst_out);

/** How the members are; NULL, which is fine: nobody watches, as all are threads of this process. */
tti_health *tti_mesh_health(const tti_mesh *mesh);
/** The world is made: every member has opened its mesh. */
void tti_mesh_complete(tti_mesh *mesh);

/** Whether a member is known to be gone: its process has ended, or it has left, or it was silent for longer than
 * TUTTI_SILENT_MS allows. Says so with TUTTI_E_PEER, naming rank, host, pid and the cause. TUTTI_OK: nothing is known
 * against it. Members of other hosts that have left may have something on its way, and count as there. */
tutti_status tti_mesh_alive(tti_mesh *mesh, int rank);

/** The same without touching the last error: false, and the words, when it is gone. */
bool tti_mesh_is_alive(tti_mesh *mesh, int rank, char *words_out, size_t bytes);
/** Whether it is known to have left, and not to have died. */
bool tti_mesh_has_left(const tti_mesh *mesh, int rank);

/** Where the members of a world can reach each other when there is no store any more: a door of their own, which stays
 * open as long as the mesh. Nobody sits behind it until somebody does (regroup/assembly.c): whoever comes before waits in
 * the kernel's queue, and is told by it when the process ends. */
typedef struct tti_assembly_door {
    tti_handle        local; /* listens for members of this host */
    tti_handle        tcp;   /* for the others; TTI_NO_HANDLE: there are none, or no port was free */
    const tti_secret *secret;
    const uint8_t    *scope; /* [TTI_HELLO_SCOPE_BYTES] the world's random number */
} tti_assembly_door;

tti_assembly_door tti_mesh_assembly_door(const tti_mesh *mesh);
/** Whether every member has one that the others can reach; the same on all. */
bool tti_mesh_can_assemble(const tti_mesh *mesh);
/** Where a member's is, if all have one. */
const tti_addr *tti_mesh_assembly_addr(const tti_mesh *mesh, int rank);

/** Host name and pid of a member for a text: "host 'n2', pid 40112". */
const char *tti_mesh_whereabouts(const tti_mesh *mesh, int rank);

#endif
