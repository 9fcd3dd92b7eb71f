/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/own_file.h - opening files that nobody else may have put in our way. */
#ifndef TTI_WIRE_OWN_FILE_H
#define TTI_WIRE_OWN_FILE_H

#include <tutti/status.h>

/** Whose files are refused. */
typedef enum tti_own_rule {
    TTI_OWN_PRIVATE, /* others': and of our own those that others may read or write */
    TTI_OWN_WRITTEN, /* others', and those that others may write */
    TTI_OWN_GIVEN,   /* the same, but root's are fine: what a host's keeper gives out */
    TTI_OWN_ANYBODY  /* none: the user asked for no proofs */
} tti_own_rule;

/** Open a regular file with flags and, if it is made, mode; what it is, "secret file", is for words. A symbolic link is
 * followed if it is ours or root's, as those of mounted secrets are: in a folder that others write to, theirs would have
 * us read, or write to, a file of their choice.
 *
 * @errors TUTTI_E_IO    cannot be opened
 *         TUTTI_E_AUTH  no regular file, or refused by rule; the text says why */
tutti_status tti_own_file_open(const char *path, int flags, unsigned mode, tti_own_rule rule, const char *what,
                               int *fd_out);

#endif
