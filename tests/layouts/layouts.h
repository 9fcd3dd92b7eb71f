/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layouts.h - ways in which hosts are joined, as a table. */
#ifndef TT_LAYOUTS_H
#define TT_LAYOUTS_H

#include "harness/hosts.h"

enum { TT_ENV_MAX = 6 };

/** Two hosts, each with two ranks of a world of four; rank 0 is on host 0. Strings may be NULL. */
typedef struct tt_layout {
    const char *name;
    const char *what;          /* for the table */
    const char *ip[3];         /* `ip -batch` for each namespace, in order; the third is a router */
    const char *nft[3];        /* `nft -f` after that */
    bool        no_ip6;        /* the kernel's IPv6 is off on all */
    const char *late;          /* `ip -batch` for host 0, LATE_MS after the ranks were started */
    const char *hosts_file[2]; /* /etc/hosts of each */
    const char *master;        /* MASTER_ADDR */
    const char *env[TT_ENV_MAX];  /* "NAME=value" of all ranks */
    const char *env0[TT_ENV_MAX]; /* of those on host 0 */
    const char *says; /* NULL: it works; else a rank fails, within 5 s, and a line of its words has this */
    const char *next; /* then: what its "next:" names */
} tt_layout;

extern const tt_layout tt_layouts[];
extern const int       tt_n_layouts;

#endif
