/* SPDX-License-Identifier: BSD-3-Clause
 *
 * say.c - one message, one line begun by the program's name. */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>

bool say(const char *fmt, ...)
{
    va_list args;

    fputs("mnist: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    return false;
}
