/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/status.h - what every call returns, and where its words are kept.
 *
 * A call that can fail returns a tutti_status. The words (what failed, on whom, the measured facts, one
 * next step) are kept per thread; tutti_last_error() reads them. Outputs are written only on TUTTI_OK. */
#ifndef TUTTI_STATUS_H
#define TUTTI_STATUS_H

#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#define TUTTI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TUTTI_API
#define TUTTI_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What a call came to. The families of torch.distributed's DistError map onto these
 * (docs/from-torch.md); values are part of the ABI and never change. */
typedef enum tutti_status {
    TUTTI_OK = 0,
    TUTTI_E_ARG = 1,         /* a bad argument; nothing was done */
    TUTTI_E_STATE = 2,       /* the call does not fit the object's state (initialised twice, ...) */
    TUTTI_E_UNSUPPORTED = 3, /* this build, backend or dtype does not offer it */
    TUTTI_E_NOMEM = 4,       /* memory, descriptors or another local resource ran out */
    TUTTI_E_TIMEOUT = 5,     /* the deadline passed; the text says who is missing */
    TUTTI_E_PEER = 6,        /* another rank is gone; the text names it */
    TUTTI_E_ABORTED = 7,     /* the group was aborted, here or elsewhere */
    TUTTI_E_BACKEND = 8,     /* a backend or the library under it failed */
    TUTTI_E_NETWORK = 9,     /* sockets: refused, reset, unreachable, closed */
    TUTTI_E_STORE = 10,      /* the key-value store failed or answered nonsense */
    TUTTI_E_MISMATCH = 11,   /* ranks called different things; the text quotes both */
    TUTTI_E_AUTH = 12,       /* the other side could not prove that it belongs to the job */
    TUTTI_E_IO = 13,         /* files: cannot open, read, write, or contents are corrupt */
    TUTTI_E_REMOTE = 14,     /* the call reached another process and failed there */
    TUTTI_E_EMPTY = 15       /* there is nothing to take now, and nobody was asked to wait */
} tutti_status;

/** The name of a status, as written in code: "TUTTI_E_TIMEOUT".
 *
 * @param status  any value; one that is no status gives "TUTTI_E_?"
 * @errors   none; never NULL; the string is constant
 * @threads  any
 * @source   ours */
TUTTI_API const char *tutti_status_name(tutti_status status);

/** The words of this thread's last failure; "" when nothing has failed yet.
 *
 * The string belongs to the thread and stays until its next failing call. A call that succeeds
 * leaves it alone, so test the status first.
 *
 * @errors   none; never NULL
 * @threads  each thread has its own
 * @source   ours: torch raises an exception with the text inside */
TUTTI_API const char *tutti_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
