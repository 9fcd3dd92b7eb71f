/* SPDX-License-Identifier: BSD-3-Clause
 *
 * format.c - the element types of safetensors, in the order in which its writers sort them. */
#include "state/state.h"

#include <string.h>

#define NONE TUTTI_DTYPE_COUNT

static const tti_format_type types[] = {
    { "BOOL", 8, TUTTI_BOOL },      { "F4", 4, NONE },
    { "F6_E2M3", 6, NONE },         { "F6_E3M2", 6, NONE },
    { "U8", 8, TUTTI_U8 },          { "I8", 8, TUTTI_I8 },
    { "F8_E5M2", 8, TUTTI_F8E5M2 }, { "F8_E4M3", 8, TUTTI_F8E4M3FN },
    { "F8_E8M0", 8, NONE },         { "F8_E4M3FNUZ", 8, NONE },
    { "F8_E5M2FNUZ", 8, NONE },     { "I16", 16, TUTTI_I16 },
    { "U16", 16, TUTTI_U16 },       { "F16", 16, TUTTI_F16 },
    { "BF16", 16, TUTTI_BF16 },     { "I32", 32, TUTTI_I32 },
    { "U32", 32, TUTTI_U32 },       { "F32", 32, TUTTI_F32 },
    { "C64", 64, TUTTI_C64 },       { "F64", 64, TUTTI_F64 },
    { "I64", 64, TUTTI_I64 },       { "U64", 64, TUTTI_U64 },
};

enum { TYPES = sizeof types / sizeof types[0] };

int tti_format_find(const char *name)
{
    for (int k = 0; k < TYPES; k++)
        if (strcmp(types[k].name, name) == 0)
            return k;
    return -1;
}

int tti_format_of(tutti_dtype dtype)
{
    for (int k = 0; k < TYPES; k++)
        if (types[k].dtype == dtype)
            return k;
    return -1;
}

const tti_format_type *tti_format_at(int position)
{
    return &types[position];
}
