/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/check.h - checks of arguments that collectives and messages share. what is the call's name
 * and name the argument's, for words. */
#ifndef TTI_GROUP_CHECK_H
#define TTI_GROUP_CHECK_H

#include "group/group.h"

/** @errors TUTTI_E_ARG          count below 0 or beyond memory, no data, or no dtype
 *          TUTTI_E_UNSUPPORTED  memory of a device */
tutti_status tti_check_span(const tutti_group *group, const char *what, const char *name,
                            tutti_span span);

/** list has one checked span for each member, all like part in count and dtype. Each is apart from
 * part, or is part exactly and this rank's entry.
 * @errors TUTTI_E_ARG, TUTTI_E_UNSUPPORTED */
tutti_status tti_check_list(const tutti_group *group, const char *what, const char *name,
                            const tutti_span *list, int n, tutti_span part);

#endif
