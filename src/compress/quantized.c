/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quantized.c - the public sum of 8 bits: arguments in, ranks agreed, then direct.c.
 *
 * True    A rank that has no memory says so where ranks compare what they want, before anything else is sent: all get an
 *         error, and the group goes on. */
#include "compress/compress.h"

#include <stdlib.h>
#include "base/options.h"
#include "kernel/quantize.h"
#include <tutti/compressed.h>
#include <tutti/private.h>

/* One to agree, and one that is held while messages are under way. */
enum { N_TURNS = 2, BLOCK = 256, BLOCK_LEAST = 64 };

static const char WHAT[] = "all_reduce_quantized";

typedef struct quantized {
    tti_compound base; /* first: the two pointers convert both ways */
    tutti_group *group;
    tutti_span   buf;
    tutti_op     op;
    tutti_quantize_options opts;
    tti_wish     wishes[]; /* [members] */
} quantized;

static void release(tti_compound *compound)
{
    free(compound);
}

static tutti_status run(tti_compound *compound, tti_turns *turns)
{
    quantized   *q = (quantized *)compound;
    tutti_group *group = q->group;
    tti_direct   d = { .compound = compound, .group = group, .buf = q->buf, .average = q->op.kind == TUTTI_OP_AVG,
                       .error = q->opts.error,
                       .slices = tti_slices_of(q->buf.count, q->opts.block, group->size) };
    tti_wish     mine = { .what = TTI_QUANTIZED, .count = q->buf.count, .dtype = (int64_t)q->buf.dtype,
                          .op = (int64_t)q->op.kind, .block = q->opts.block, .status = TUTTI_OK };
    const size_t bytes = tti_direct_bytes(&d.slices);
    tutti_status st;

    d.memory = tti_compound_room(group, bytes);
    if (d.memory == NULL)
        mine.status = TUTTI_E_NOMEM;
    st = tti_wishes_meet(WHAT, group, &mine, q->wishes, turns);
    if (st == TUTTI_E_NOMEM)
        return tti_fail(st, "%s on group '%s': no memory for the %zu bytes that it works in", WHAT, group->name, bytes);
    if (st != TUTTI_OK || group->size == 1 || q->buf.count == 0)
        return st;
    return tti_direct_run(&d);
}

static bool is_block(int block)
{
    return block >= BLOCK_LEAST && block <= TTI_QUANTIZE_BLOCK_MAX && (block & (block - 1)) == 0;
}

static tutti_status check(const tutti_group *group, tutti_span buf, tutti_op op, const tutti_quantize_options *opts)
{
    tutti_status st = tti_check_span(group, WHAT, "buf", buf);

    if (st != TUTTI_OK)
        return st;
    if (!tti_quantize_takes(buf.dtype))
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': buf is %s, which is none of f32, f16, bf16", WHAT, group->name,
                        tutti_dtype_name(buf.dtype));
    if (op.kind != TUTTI_OP_SUM && op.kind != TUTTI_OP_AVG)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': op is '%s'\n  next: TUTTI_SUM or TUTTI_AVG", WHAT, group->name,
                        tutti_op_name(op.kind));
    if (!is_block(opts->block))
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': block is %d\n  next: 64, 128, 256, 512 or 1024", WHAT,
                        group->name, opts->block);
    if (buf.device.type != TUTTI_CPU)
        return tti_fail(TUTTI_E_UNSUPPORTED, "%s on group '%s': buf is memory of a device", WHAT, group->name);
    return tti_messages_check(group, WHAT, buf.device.type);
}

static tutti_status issue(tutti_span buf, tutti_op op, const tutti_quantize_options *opts, tutti_group *group, tti_how how)
{
    tutti_quantize_options known = TUTTI_QUANTIZE_OPTIONS;
    tutti_group           *g = NULL;
    tutti_status           st = tti_collective_begin(WHAT, group, how, &g);
    quantized             *q;

    if (st == TUTTI_OK && g != NULL && opts != NULL)
        st = tti_options_read(&known, sizeof known, opts, "TUTTI_QUANTIZE_OPTIONS");
    if (known.block == 0)
        known.block = BLOCK;
    if (st == TUTTI_OK && g != NULL)
        st = check(g, buf, op, &known);
    if (st != TUTTI_OK || g == NULL)
        return st;
    q = calloc(1, sizeof *q + (size_t)g->size * sizeof q->wishes[0]);
    if (q == NULL)
        return tti_fail(TUTTI_E_NOMEM, "%s on group '%s': no memory for the call", WHAT, g->name);
    q->base = (tti_compound){ .what = WHAT, .whole = TUTTI_WHOLE_QUANTIZED, .n_turns = N_TURNS, .run = run, .release = release };
    q->group = g;
    q->buf = buf;
    q->op = op;
    q->opts = known;
    return tti_compound_issue(g, &q->base, op, buf, how);
}

tutti_status tutti_all_reduce_quantized(tutti_span buf, tutti_op op, const tutti_quantize_options *opts,
                                        tutti_group *group)
{
    return issue(buf, op, opts, group, tti_blocking());
}

tutti_status tutti_all_reduce_quantized_async(tutti_span buf, tutti_op op, const tutti_quantize_options *opts,
                                              tutti_group *group, tutti_work **work_out)
{
    return issue(buf, op, opts, group, tti_async(work_out));
}
