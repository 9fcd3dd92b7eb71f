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

/** What TCP connections go through after their hello; the same at both ends. Their numbers are on the wire. */
typedef enum tti_seal {
    TTI_SEAL_NONE = 0, /* they go on in plain */
    TTI_SEAL_KEY = 1,  /* TLS with a key made from the secret */
    TTI_SEAL_CERT = 2  /* TLS with a certificate at each end */
} tti_seal;

/** A 256-bit key, or none, and what connections go through. Zeroed memory is "none", and plain. The key does not lie in it as it
 * is, but combined with a random pad of this process: copies may lie anywhere, and no core, no swap and no child of fork() has
 * the key (pad.c). */
typedef struct tti_secret {
    bool     present;
    tti_seal seal;
    uint8_t  padded[TTI_SECRET_BYTES];
} tti_secret;

/** Make a secret of a key, which is the caller's to wipe.
 * @errors TUTTI_E_NOMEM  *out is "none" */
tutti_status tti_secret_make(const uint8_t key[TTI_SECRET_BYTES], tti_secret *out);
/** The key, for a moment: the caller wipes it. */
void tti_secret_reveal(const tti_secret *secret, uint8_t key_out[TTI_SECRET_BYTES]);

/** Read the secret from path, or, when path is NULL, from the file that TUTTI_SECRET_FILE names; if
 * that is not set either, *out is "none". The file (wire/own_file.h) must be regular, owned by the effective user,
 * closed to group and others (0600), and hold 64 hex digits and at most one newline. What connections go through is
 * read from TUTTI_TLS and its companions; nothing where another port stands in for the machine.
 *
 * @errors TUTTI_E_IO    cannot be opened or read
 *         TUTTI_E_AUTH  the wrong kind, owner, mode or contents; the text says which
 *         TUTTI_E_ARG   TUTTI_AUTH or TUTTI_TLS has no such value, or the latter's files are not named as a whole */
tutti_status tti_secret_load(const char *path, tti_secret *out);

/** The secret in that file, whatever the variables say of it: its seal is none.
 * @errors TUTTI_E_IO, TUTTI_E_AUTH  as above */
tutti_status tti_secret_read(const char *path, tti_secret *out);

/** What the environment wants connections to go through, as tti_secret_load() has it. */
tutti_status tti_seal_wanted(tti_seal *seal_out);

/** Whether connections at addr may be made and taken with secret. Without one only on loopback, unless
 * TUTTI_AUTH is "none": then it is warned about, once; or both ends show certificates. TLS without certificates needs one
 * anywhere. what is for the words: "speak to store n1:29500".
 *
 * @errors TUTTI_E_AUTH  none, and addr is not loopback, or keys are to be made of it; the text names the variables to set
 *         TUTTI_E_ARG   TUTTI_AUTH is neither "secret" nor "none" */
tutti_status tti_secret_suffices(const tti_secret *secret, const tti_addr *addr, const char *what);
/** The same, of what is done there: "serve a store". */
tutti_status tti_secret_suffices_at(const tti_secret *secret, const tti_addr *addr, const char *what);

/** Whether TUTTI_AUTH does not say "none".
 * @errors TUTTI_E_ARG  it says neither */
tutti_status tti_auth_wanted(bool *wanted_out);

/** Whether who is at the other end of a connected stream may belong to a job that has no secret: on loopback only
 * processes of this user, and root's, which need no leave. With a secret, with TUTTI_AUTH=none, beyond loopback, and on ports
 * that have no users, this says nothing. secret NULL: none. who is for the
 * words: "the store at 127.0.0.1:29500".
 *
 * @errors TUTTI_E_AUTH     another user; or the kernel does not tell
 *         TUTTI_E_NETWORK  it has closed the connection meanwhile */
tutti_status tti_secret_check_user(const tti_secret *secret, tti_port *port, tti_handle stream, const char *who);

/** Wipe the key; "none" afterwards. NULL is fine. */
void tti_secret_release(tti_secret *secret);

#endif
