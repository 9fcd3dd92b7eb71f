/* SPDX-License-Identifier: BSD-3-Clause
 *
 * say.h - how the parts of a program fail: whoever sees it says it, once, and everybody returns false. */
#ifndef SAY_H
#define SAY_H

#include <stdbool.h>
#include <tutti/status.h>

/* One message on stderr, after the name of the program. Returns false. */
bool say(const char *fmt, ...) TUTTI_PRINTF(1, 2);

/* Whether this is rank 0, or no rank at all: the one to say what all ranks see alike. */
bool say_is_mine(void);

/* The same where it is; false also where it is not. */
bool say_once(const char *fmt, ...) TUTTI_PRINTF(1, 2);

/* Inside a function that returns bool. */
#define TRY(call)                                 \
    do {                                          \
        if ((call) != TUTTI_OK)                   \
            return say("%s", tutti_last_error()); \
    } while (0)

#endif
