/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor_names.h - addresses, and names looked up as ranks look them up. */
#ifndef TUTTI_DOCTOR_NAMES_H
#define TUTTI_DOCTOR_NAMES_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <sys/socket.h>

/** What a name means. */
typedef struct name_found {
    const char *error;           /* NULL: it resolves */
    char first[INET6_ADDRSTRLEN]; /* the first of its addresses */
    bool own;                    /* one of them is this host's */
    bool loopback;               /* all of them are */
    double took_s;
} name_found;

name_found name_look(const char *name);

/** An address without its port; false: of another family. */
bool name_of_address(const struct sockaddr *addr, char out[INET6_ADDRSTRLEN]);

#endif
