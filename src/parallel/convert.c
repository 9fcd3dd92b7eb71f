/* SPDX-License-Identifier: BSD-3-Clause
 *
 * convert.c - numbers of one floating dtype to another: by way of f32 in pieces, and f64 on either end as it is.
 *
 * True    One rounding, to the nearest: what goes to f32 first is exact there, but f64, which is rounded to f32 and then
 *         once more when it goes to something narrower. */
#include "parallel/parallel.h"

#include <string.h>
#include "base/half.h"

enum { PIECE = 512 };

static bool is_real(tutti_dtype dtype)
{
    return dtype == TUTTI_F32 || dtype == TUTTI_F64 || tti_widen_for(dtype) != NULL;
}

bool tti_can_convert(tutti_dtype to, tutti_dtype from)
{
    return to == from || (is_real(to) && is_real(from));
}

static void to_f32(float *out, const void *in, tutti_dtype from, int64_t count)
{
    int64_t i;

    if (from == TUTTI_F32)
        memcpy(out, in, (size_t)count * sizeof *out);
    else if (from == TUTTI_F64)
        for (i = 0; i < count; i++)
            out[i] = (float)((const double *)in)[i];
    else
        tti_widen_for(from)(out, in, count);
}

static void from_f32(void *out, tutti_dtype to, const float *in, int64_t count)
{
    int64_t i;

    if (to == TUTTI_F32)
        memcpy(out, in, (size_t)count * sizeof *in);
    else if (to == TUTTI_F64)
        for (i = 0; i < count; i++)
            ((double *)out)[i] = (double)in[i];
    else
        tti_narrow_for(to)(out, in, count);
}

void tti_convert(void *out, tutti_dtype to, const void *in, tutti_dtype from, int64_t count)
{
    const size_t each_out = tutti_dtype_size(to), each_in = tutti_dtype_size(from);
    float        piece[PIECE];
    int64_t      done, n;

    if (to == from) {
        if (out != in && count > 0)
            memcpy(out, in, (size_t)count * each_in);
    } else if (from == TUTTI_F32) {
        from_f32(out, to, in, count);
    } else if (to == TUTTI_F32) {
        to_f32(out, in, from, count);
    } else {
        for (done = 0; done < count; done += n) {
            n = count - done < PIECE ? count - done : PIECE;
            to_f32(piece, (const char *)in + (size_t)done * each_in, from, n);
            from_f32((char *)out + (size_t)done * each_out, to, piece, n);
        }
    }
}
