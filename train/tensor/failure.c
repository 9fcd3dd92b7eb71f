/* SPDX-License-Identifier: BSD-3-Clause
 *
 * failure.c - the first failure of a thread's expressions, kept until somebody asks.
 *
 * Why     loss = f(g(x)) has no place for a status. The operation that fails first words it; the
 *         NULL it returns passes through the others, which stay silent.
 * True    At most one failure is kept per thread, the oldest. Only tti_take_kept() forgets it. */
#include "tensor/tensor.h"

#include <stdarg.h>
#include <stdio.h>
#include <tutti/private.h>

enum { TEXT = 1024 };

/* Per thread, because threads can be ranks: one rank's failure is not another's. */
static _Thread_local struct {
    tutti_status status;
    tutti_status latest; /* of all refusals, only the first of which is kept */
    char text[TEXT];
} kept;

tutti_status tti_refuse(tutti_status status, const char *op, const char *fmt, ...)
{
    char words[TEXT];
    va_list args;

    va_start(args, fmt);
    vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    (void)tti_fail(status, "%s: %s", op, words);
    kept.latest = status;
    if (kept.status == TUTTI_OK) {
        kept.status = status;
        snprintf(kept.text, sizeof kept.text, "%.100s: %.900s", op, words);
    }
    return status;
}

tutti_status tti_refuse_null(const char *op)
{
    if (kept.status != TUTTI_OK)
        return kept.latest = kept.status;
    return tti_refuse(TUTTI_E_ARG, op, "an operand is NULL");
}

tutti_status tti_refused(void)
{
    return kept.latest;
}

tutti_status tti_kept(void)
{
    return kept.status;
}

tutti_status tti_take_kept(void)
{
    const tutti_status status = kept.status;

    kept.status = TUTTI_OK;
    return status == TUTTI_OK ? TUTTI_OK : tti_fail(status, "%s", kept.text);
}

tutti_status tutti_tensor_check(void)
{
    return tti_take_kept();
}
