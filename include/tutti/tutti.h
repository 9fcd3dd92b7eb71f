/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/tutti.h - torch.distributed in C. Start reading at init.h, then group.h. */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

#include <tutti/status.h>
#include <tutti/dtype.h>
#include <tutti/stream.h>
#include <tutti/memory.h>
#include <tutti/store.h>
#include <tutti/store_collectives.h>
#include <tutti/init.h>
#include <tutti/group.h>
#include <tutti/coalesce.h>
#include <tutti/sparse.h>
#include <tutti/compressed.h>
#include <tutti/window.h>
#include <tutti/future.h>
#include <tutti/parallel.h>
#include <tutti/comm_hooks.h>
#include <tutti/join.h>
#include <tutti/object.h>
#include <tutti/collective_utils.h>
#include <tutti/regroup.h>
#include <tutti/device_mesh.h>
#include <tutti/backends.h>
#include <tutti/hooks.h>
#include <tutti/launch.h>
#include <tutti/tune.h>
#include <tutti/simulate.h>
#include <tutti/rehearse.h>
#include <tutti/debug.h>
#include <tutti/host.h>
#include <tutti/recorder.h>

#endif
