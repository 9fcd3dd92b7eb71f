/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/fake/fake.h - a backend that moves nothing: one process plays one rank of a world of any size. */
#ifndef TTI_BACKEND_FAKE_H
#define TTI_BACKEND_FAKE_H

#include <tutti/plugin/backend.h>

extern const tutti_backend_ops tti_fake_backend_ops;

#endif
