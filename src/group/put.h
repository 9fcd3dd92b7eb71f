/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/put.h - texts that every operation has which is not waited for: snprintf() would cost more than the rest. */
#ifndef TTI_GROUP_PUT_H
#define TTI_GROUP_PUT_H

#include <stdint.h>

/** Put text at `at`, as much as there is room for before end, where a terminating zero still fits: where it ends. */
static inline char *tti_put(char *at, const char *end, const char *text)
{
    while (*text != '\0' && at < end)
        *at++ = *text++;
    return at;
}

static inline char *tti_put_number(char *at, const char *end, uint64_t number)
{
    char  digits[24];
    char *first = digits + sizeof digits - 1;

    *first = '\0';
    do
        *--first = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return tti_put(at, end, first);
}

#endif
