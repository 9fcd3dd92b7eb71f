/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options.c - reading the structs that callers fill: of this version, an older or a newer one. */
#include "base/options.h"

#include <string.h>
#include <tutti/private.h>

tutti_status tti_options_read(void *known, size_t known_size, const void *opts, const char *macro)
{
    enum { LARGEST = 4096 };
    const unsigned char *bytes = opts;
    size_t               size;
    size_t               i;

    memcpy(&size, opts, sizeof size); /* every option struct begins with it */
    if (size <= sizeof size || size > LARGEST)
        return tti_fail(TUTTI_E_ARG,
                        "the options say that they have %zu bytes\n"
                        "  next: initialise them with %s",
                        size, macro);
    for (i = known_size; i < size; i++)
        if (bytes[i] != 0)
            return tti_fail(TUTTI_E_UNSUPPORTED,
                            "the options of a newer version (%zu bytes, here %zu) set a field "
                            "that this library does not know",
                            size, known_size);
    memcpy(known, opts, size < known_size ? size : known_size);
    return TUTTI_OK;
}
