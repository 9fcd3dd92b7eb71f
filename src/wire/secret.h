/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/secret.h - the job's secret: what proves that a process belongs. */
#ifndef TTI_WIRE_SECRET_H
#define TTI_WIRE_SECRET_H

#include <stdbool.h>
#include <stdint.h>
#include <tutti/status.h>
#include "wire/addr.h"

enum { TTI_SECRET_BYTES = 32 };

/** A 256-bit key, or none. Zeroed memory is "none". */
typedef struct tti_secret {
    bool    present;
    uint8_t key[TTI_SECRET_BYTES];
} tti_secret;

/** Read the secret from path, or, when path is NULL, from the file that TUTTI_SECRET_FILE names; if
 * that is not set either, *out is "none". The file must be regular, owned by the effective user,
 * closed to group and others (0600), and hold 64 hex digits and at most one newline.
 *
 * @errors TUTTI_E_IO    cannot be opened or read
 *         TUTTI_E_AUTH  the wrong kind, owner, mode or contents; the text says which */
tutti_status tti_secret_load(const char *path, tti_secret *out);

/** Whether connections at addr may be made and taken with secret. Without one only on loopback, unless
 * TUTTI_AUTH is "none": then it is warned about, once. what is for the words: "serve a store".
 *
 * @errors TUTTI_E_AUTH  none, and addr is not loopback; the text names the variables to set
 *         TUTTI_E_ARG   TUTTI_AUTH is neither "secret" nor "none" */
tutti_status tti_secret_suffices(const tti_secret *secret, const tti_addr *addr, const char *what);

/** Wipe the key; "none" afterwards. NULL is fine. */
void tti_secret_release(tti_secret *secret);

#endif
