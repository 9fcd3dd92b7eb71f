/* SPDX-License-Identifier: BSD-3-Clause
 *
 * msgpack.c - msgpack values of another rank.
 *
 * Holds   What the check lets through unpacks, in memory that is bounded by its size; what comes out, packed and unpacked again,
 *         is packed as the same bytes. */
#include "fuzz/fuzz.h"

#include <tutti/msgpack.h>
#include "wire/msgpack_check.h"

/* A list of one object, as another rank's would come. */
static bool unpack(const void *data, size_t size, tutti_msgpack *values_out)
{
    tutti_bytes  *at = malloc(sizeof *at + size); /* one block, as theirs is */
    tutti_objects list = { .at = at, .n = 1 };

    TT_MUST(at != NULL);
    *at = (tutti_bytes){ .data = (char *)(at + 1), .size = size };
    memcpy(at + 1, data, size);
    if (tutti_msgpack_unpack(&list, values_out) == TUTTI_OK)
        return true;
    tutti_objects_free(&list);
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tti_msgpack_limits tight = { .depth = 3, .values = 8 }, wide = { .depth = TTI_MSGPACK_DEPTH_MAX, .values = 1 << 20 };
    tutti_msgpack            values, again;
    tutti_bytes              packed = { .data = NULL }, twice = { .data = NULL };
    const bool               narrow = tti_msgpack_check(data, size, &tight, "rank 1") == TUTTI_OK;

    TT_MUST(!narrow || tti_msgpack_check(data, size, &wide, "rank 1") == TUTTI_OK);
    if (!unpack(data, size, &values)) {
        TT_MUST(!narrow);
        return 0;
    }
    TT_MUST(values.n == 1 && tutti_msgpack_pack(&values.at[0], &packed) == TUTTI_OK);
    TT_MUST(packed.size <= 9 * size);
    TT_MUST(unpack(packed.data, packed.size, &again));
    TT_MUST(tutti_msgpack_pack(&again.at[0], &twice) == TUTTI_OK);
    TT_MUST(packed.size == twice.size && memcmp(packed.data, twice.data, packed.size) == 0);
    tutti_bytes_free(&packed);
    tutti_bytes_free(&twice);
    tutti_msgpack_free(&values);
    tutti_msgpack_free(&again);
    return 0;
}
