/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options.c - reading and checking the options of a group. */
#include "group/group.h"

#include <tutti/private.h>

tutti_status tti_group_options_read(const char *what, const tutti_group_options *opts,
                                    tutti_group_options *known)
{
    tutti_status st = TUTTI_OK;

    if (opts != NULL)
        st = tti_options_read(known, sizeof *known, opts, "TUTTI_GROUP_OPTIONS");
    if (st == TUTTI_OK && known->timeout_ms < TUTTI_INFINITE)
        st = tti_fail(TUTTI_E_ARG,
                      "%s: timeout_ms is %lld\n"
                      "  next: 0 for the world's, -1 for none",
                      what, (long long)known->timeout_ms);
    return st;
}
