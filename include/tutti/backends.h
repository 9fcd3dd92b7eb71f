/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/backends.h - what moves a group's data: which backends there are, and which one a group has.
 *
 * A backend string (tutti_init_options.backend, tutti_group_options.backend) is one name, "native", which
 * stands for all devices that this backend takes, or pairs, "cpu:native,cuda:nccl". A call goes to the
 * backend of the device that its spans lie on. A device whose backend is a plug-in that is not there is an
 * error when a span of it is used, except that the backend of the control traffic, that of "cpu" if there
 * is one, must be there when the group is made.
 *
 * | name | takes | what |
 * |---|---|---|
 * | native | cpu, cuda | shared memory inside a host, TCP between hosts. Collectives on memory of GPUs go by way of the host, with a plug-in for
 *   what is CUDA's; docs/cuda.md |
 * | fake | cpu, cuda | moves nothing, waits for nobody: one process plays a rank of a world of any size. It needs
 *   only rank and world_size, no store and no other process. all_gather and its forms copy the caller's part
 *   into every entry, in memory of the host; everything else leaves buffers as they are. TUTTI_FAKE_ERROR=1: collectives fail |
 * | nccl | cuda | a plug-in: NCCL, in the order of streams (tutti/stream.h); docs/nccl.md |
 * | ucc, mpi, xccl | as the plug-in says | names that are reserved for plug-ins |
 * | debug-NAME | as NAME | the backend NAME, with a meeting through the store before each collective: who has not come is named when time is
 *   up, with its last call, and who is about to run something else is TUTTI_E_MISMATCH on all ranks. Words
 *   say where calls were made, as "train+0x1a2f (step+0x4f)": object, place in it (for addr2line -e), function; not in a program
 *   that has the static library inside. For backends that do not see
 *   to that themselves, as "native" does; a meeting takes some milliseconds. At the debug level "detail", which is to be
 *   the same on all ranks then, registered backends and plug-ins are wrapped so without being asked |
 * | any other | as it says | what the program has registered, else the plug-in tutti-backend-NAME.so, which is looked for as
 *   tutti/plugin/plugin.h tells; not found, it is an error that names all places | */
#ifndef TUTTI_BACKENDS_H
#define TUTTI_BACKENDS_H

#include <stdbool.h>
#include <tutti/group.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tutti_backend_ops; /* tutti/plugin/backend.h */

/** The backend string that group was made with, in lower case; "native" where there was none.
 * @errors   none; NULL for a non-member or without a world
 * @threads  any; the string is the group's and lives as long
 * @source   torch.distributed.get_backend */
TUTTI_API const char *tutti_get_backend(const tutti_group *group);

/** The backend of each device: "cpu:native,cuda:nccl".
 * @errors   none; NULL for a non-member or without a world
 * @threads  any; the string is the group's and lives as long
 * @source   torch.distributed.get_backend_config */
TUTTI_API const char *tutti_get_backend_config(const tutti_group *group);

/** The backend that is taken for a kind of device when none is named: "native" for "cpu", "nccl" for "cuda".
 *
 * @param device  "cpu", "cuda", also with an index: "cuda:1"
 * @errors   TUTTI_E_ARG  there is no such device
 * @threads  any; the string is constant
 * @source   torch.distributed.get_default_backend_for_device */
TUTTI_API tutti_status tutti_get_default_backend_for_device(const char *device, const char **name_out);

/** Whether a group can be made with this backend string: all backends it names are there.
 * @errors   none; a string that is none gives false
 * @threads  any
 * @source   torch.distributed.is_backend_available */
TUTTI_API bool tutti_is_backend_available(const char *backend);

/** Make a backend of the program's own known by a name, to this process; every process of a job does so. It can be
 * named in backend strings from then on.
 *
 * @param name     1 to 31 of a-z, 0-9, '_' and '-'; copied
 * @param table    see tutti/plugin/backend.h; copied, so what its pointers point to has to stay
 * @param devices  whose memory it takes: 1u << TUTTI_CPU, 1u << TUTTI_CUDA, or both
 *
 * @errors   TUTTI_E_ARG          a bad name, no device, or an entry that must be there is not; the text names it
 *           TUTTI_E_STATE        there is a backend of that name, or it is reserved for a plug-in
 *           TUTTI_E_UNSUPPORTED  the table is of a version that this library does not drive
 *           TUTTI_E_NOMEM
 * @threads  any
 * @source   torch.distributed.Backend.register_backend */
TUTTI_API tutti_status tutti_register_backend(const char *name, const struct tutti_backend_ops *table, unsigned devices);

/** Whether distributed communication is there at all: true.
 * @threads  any
 * @source   torch.distributed.is_available */
TUTTI_API bool tutti_is_available(void);
/** Whether the plug-in for MPI is there.
 * @threads  any
 * @source   torch.distributed.is_mpi_available */
TUTTI_API bool tutti_is_mpi_available(void);
/** Whether the plug-in for NCCL is there.
 * @threads  any
 * @source   torch.distributed.is_nccl_available */
TUTTI_API bool tutti_is_nccl_available(void);
/** Always false: "native" is what takes gloo's place.
 * @threads  any
 * @source   torch.distributed.is_gloo_available */
TUTTI_API bool tutti_is_gloo_available(void);
/** Whether a plug-in for UCC is there.
 * @threads  any
 * @source   torch.distributed.is_ucc_available */
TUTTI_API bool tutti_is_ucc_available(void);
/** Whether a plug-in called "xccl" is there.
 * @threads  any
 * @source   torch.distributed.is_xccl_available */
TUTTI_API bool tutti_is_xccl_available(void);

/** Whether op is one that complex numbers can be reduced with: not MAX, MIN, PRODUCT, BAND, BOR, BXOR. Which
 * dtypes an operation takes in fact stands in tutti/dtype.h, and tutti_op_check() knows.
 * @threads  any
 * @source   torch.distributed.distributed_c10d.supports_complex */
TUTTI_API bool tutti_supports_complex(tutti_op op);

#ifdef __cplusplus
}
#endif
#endif
