/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_place.h - what `tutti store` reads from its command line. Each reader says false, and
 * nothing else, when the text is wrong. */
#ifndef TUTTI_STORE_PLACE_H
#define TUTTI_STORE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

enum { STORE_HOST_MAX = 256 };

/* A store's URL, taken apart. */
typedef struct store_place {
    char host[STORE_HOST_MAX]; /* tcp, torch-tcp */
    int port;
    bool torch; /* torch-tcp */
    const char *path; /* file, in the URL; NULL: tcp */
} store_place;

/* tcp://HOST:PORT, tcp://[IPV6]:PORT, torch-tcp:// likewise, file:///PATH. */
bool store_read_place(const char *url, store_place *p);
/* Whether only this host can reach a server there. */
bool store_place_is_local(const store_place *p);

bool store_read_number(const char *text, long long min, long long max, int64_t *out);
/* Seconds, more than 0, or "inf". */
bool store_read_timeout(const char *text, int64_t *ms_out);

#endif
