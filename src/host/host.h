/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - what the files of this room share. */
#ifndef TTI_HOST_HOST_H
#define TTI_HOST_HOST_H

#include <tutti/status.h>

/** Whether the environment tells who this process is and where the store stands.
 * @errors TUTTI_E_ARG  not, or not without contradiction */
tutti_status tti_host_check_who(void);

#endif
