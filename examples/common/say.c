/* SPDX-License-Identifier: BSD-3-Clause
 *
 * say.c - one message, one line begun by the program's name. */
#include "examples/common/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(const char *fmt, va_list args) TUTTI_PRINTF(1, 0);

static void put(const char *fmt, va_list args)
{
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}

bool say(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    put(fmt, args);
    va_end(args);
    return false;
}

bool say_is_mine(void)
{
    const char *rank = getenv("RANK");

    return rank == NULL || strcmp(rank, "0") == 0;
}

bool say_once(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (say_is_mine())
        put(fmt, args);
    va_end(args);
    return false;
}
