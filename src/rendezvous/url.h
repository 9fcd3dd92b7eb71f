/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous/url.h - an init URL taken apart.
 *
 *   env://[?query]   tcp://host:port[?query]   tcp://[address]:port[?query]   file:///path[?query]
 *   torch-tcp://host:port[?query]: as tcp, and PyTorch serves the store
 *   query: rank=R and world_size=W, each at most once; use_libuv is accepted and says nothing here
 *
 * The text comes from a user or a scheduler and is treated as hostile: its length is bounded, every
 * number is checked, and what is not understood is refused by name. */
#ifndef TTI_RENDEZVOUS_URL_H
#define TTI_RENDEZVOUS_URL_H

#include "wire/addr.h"

enum {
    TTI_URL_MAX = 4608,      /* longest URL, NUL included: a path and a query */
    TTI_URL_PATH_MAX = 4096, /* longest path, NUL included */
    TTI_WORLD_MAX = 1 << 20  /* most ranks of a world */
};

typedef enum tti_url_scheme { TTI_URL_ENV, TTI_URL_TCP, TTI_URL_FILE, TTI_URL_TORCH } tti_url_scheme;

typedef struct tti_url {
    tti_url_scheme scheme;
    char           host[TTI_HOST_MAX];     /* tcp, torch-tcp */
    uint16_t       port;                   /* the same; 0: any free one, tcp only */
    char           path[TTI_URL_PATH_MAX]; /* file */
    int            rank;                   /* -1: not in the query */
    int            world_size;             /* 0: not in the query */
} tti_url;

/** @errors TUTTI_E_ARG          a piece is missing or wrong; the text names it
 *          TUTTI_E_UNSUPPORTED  another scheme */
tutti_status tti_url_parse(const char *text, tti_url *url_out);

#endif
