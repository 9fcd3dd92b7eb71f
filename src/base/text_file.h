/* SPDX-License-Identifier: BSD-3-Clause
 *
 * text_file.h - a file of text that somebody names, as a whole. */
#ifndef TTI_BASE_TEXT_FILE_H
#define TTI_BASE_TEXT_FILE_H

#include <stddef.h>
#include <tutti/status.h>

/** Read a regular file of at most `most` bytes. what: what it should be, for words, as "file of figures". The caller
 * frees *text_out, which has no NUL at its end.
 * @errors TUTTI_E_ARG (no regular file, or larger), TUTTI_E_IO, TUTTI_E_NOMEM */
tutti_status tti_text_file_read(const char *what, const char *path, size_t most, char **text_out, size_t *bytes_out);

#endif
