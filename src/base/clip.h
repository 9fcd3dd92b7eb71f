/* SPDX-License-Identifier: BSD-3-Clause
 *
 * clip.h - words of a failure where there may be no room for all of them. */
#ifndef TTI_BASE_CLIP_H
#define TTI_BASE_CLIP_H

#include <stdarg.h>
#include <stddef.h>
#include <tutti/status.h>

/** Bytes of a last error, with NUL: who keeps one, to say it again, needs as many. */
enum { TTI_LAST_ERROR_MAX = 2048 };

/** As snprintf(), for words of a failure. What is too long loses its end, but for the next step, and "..." stands in its
 * place; before a line that quotes a rank it is the end of what is before that line. No argument may be in out, which has at least 8 bytes. */
void tti_clip(char *out, size_t size, const char *fmt, ...) TUTTI_PRINTF(3, 4);
void tti_clip_args(char *out, size_t size, const char *fmt, va_list args);

#endif
