/* SPDX-License-Identifier: BSD-3-Clause
 *
 * number.c - a word is a number only as a whole: no sign, no blanks, nothing behind it. */
#include "examples/common/number.h"

#include <errno.h>
#include <stdlib.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool number_whole(const char *word, uint64_t min, uint64_t max, uint64_t *value_out)
{
    unsigned long long value;
    char *end;

    errno = 0;
    value = strtoull(word, &end, 10);
    if (!is_digit(word[0]) || *end != '\0' || errno != 0 || value < min || value > max)
        return false;
    *value_out = value;
    return true;
}

bool number_count(const char *word, int64_t *value_out)
{
    uint64_t value;

    if (!number_whole(word, 1, 1000000, &value))
        return false;
    *value_out = (int64_t)value;
    return true;
}

bool number_real(const char *word, double limit, double *value_out)
{
    char *end;
    const double value = strtod(word, &end);

    if ((!is_digit(word[0]) && word[0] != '.') || *end != '\0' || !(value < limit))
        return false;
    *value_out = value;
    return true;
}
