/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz/fuzz.h - what the targets share.
 *
 * How     A target is a file in targets/ with LLVMFuzzerTestOneInput(): bytes in, and something must hold. It is linked with
 *         libFuzzer (make fuzz), with AFL++, or with driver.c, which runs what is in the tree and mutations of it.
 * True    A target leaves nothing behind: the next input finds the process as the first one did. What it gives a parser is a
 *         copy of just its size, so that a byte too far is seen. */
#ifndef TT_FUZZ_H
#define TT_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/port.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** What must hold, whatever the input. Not assert(): it is there in every build. */
#define TT_MUST(x)                                                                                                     \
    do {                                                                                                               \
        if (!(x)) {                                                                                                    \
            fprintf(stderr, "%s:%d: this must hold: %s\n", __FILE__, __LINE__, #x);                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/** Of a function that plays the world, and is not what is tested: ways through it are not traced, which takes longer than it does. */
#ifdef __clang__
#define TT_UNTRACED __attribute__((no_sanitize("coverage")))
#else
#define TT_UNTRACED
#endif

/** An input that is taken apart from its front. Behind its end everything is 0, or empty. */
typedef struct tt_input {
    const uint8_t *at;
    size_t         left;
} tt_input;

static inline tt_input tt_input_of(const uint8_t *data, size_t size)
{
    return (tt_input){ .at = data, .left = size };
}

/** A little-endian number of so many bytes. */
uint64_t tt_take(tt_input *in, size_t bytes);
/** The next bytes, at most so many. */
tt_input tt_take_part(tt_input *in, size_t most);
/** A part whose size, at most 65535, stands before it. */
tt_input tt_take_sized(tt_input *in);

/** A copy of just that size, to free. */
uint8_t *tt_copy(const void *data, size_t size);
/** The same with a NUL behind it. */
char *tt_text(const void *data, size_t size);

/** A file in memory with these contents and no others, whatever was written to the last one: its path, until the next call. */
const char *tt_file(const void *data, size_t size);

/** A port whose time stands still and whose randomness is all zeros; it has nothing else. */
tti_port *tt_still_port(void);

/** Set or unset an environment variable. */
void tt_set_env(const char *name, const char *value);

#endif
