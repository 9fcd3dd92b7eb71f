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
 * | native | cpu | shared memory inside a host, TCP between hosts |
 * | fake | cpu, cuda | moves nothing, waits for nobody: one process plays a rank of a world of any size. It needs
 *   only rank and world_size, no store and no other process. all_gather and its forms copy the caller's part
 *   into every entry; everything else leaves buffers as they are. TUTTI_FAKE_ERROR=1: collectives fail |
 * | nccl, ucc, mpi | | names of plug-ins, which do not exist yet | */
#ifndef TUTTI_BACKENDS_H
#define TUTTI_BACKENDS_H

#include <stdbool.h>
#include <tutti/group.h>

#ifdef __cplusplus
extern "C" {
#endif

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
/** Whether a plug-in for XCCL is there; the name is reserved.
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
