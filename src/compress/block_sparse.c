/* SPDX-License-Identifier: BSD-3-Clause
 *
 * block_sparse.c - a sum that leaves out blocks of zeros.
 *
 * How     A bit says of each block whether a rank has something in it; an all_reduce of the bits says whether any has. The
 *         same bits and the same rule everywhere: so all know which blocks are sent, and whether it is worth while.
 *         They are copied to one place, one behind the other, summed by the all_reduce of the group (which knows the fast
 *         ways, inside a host and between hosts), and copied back.
 *         Before the bits stand two words: a fingerprint of the call, and its complement. Where ranks have different
 *         fingerprints, some bit is set in both words after the all_reduce: then all tell each other what they want, and
 *         whose is different is said. Where they have not, that costs nothing.
 *         Ranks that differ may have different numbers of blocks. So those two words and the first bits go together, and are
 *         as many whatever the call is; bits that have no room there follow when nothing differs.
 * True    -0.0 counts as zero; where no rank has anything else in a block, it is made of plain zeros on all ranks. In blocks
 *         that are sent every rank's numbers are as they were.
 * Fails   Memory for bits is taken before anything is sent. Who has none for the blocks finishes the group: the others wait
 *         for its part. */
#include "compress/compress.h"

#include <stdlib.h>
#include <string.h>
#include "base/options.h"
#include "kernel/zeros.h"
#include <tutti/compressed.h>
#include <tutti/private.h>

/* The first bits; what ranks want if they want different things, or the other bits; and the blocks. */
enum { N_TURNS = 3, BLOCK = 256, BLOCK_LEAST = 32, BLOCK_MOST = 65536, PRINT = 0, COMPLEMENT = 1, HEAD = 2, FIRST = 64, WORD = 64 };

static const char   WHAT[] = "all_reduce_block_sparse";
static const double DENSE_ABOVE = 0.75;

typedef struct sparse {
    tti_compound base; /* first: the two pointers convert both ways */
    tutti_group *group;
    tutti_span   buf;
    tutti_op     op;
    tutti_block_sparse_options opts;
    int64_t      n_blocks;
    int64_t      n_words; /* of bits, without the head */
    uint64_t    *bits;    /* [words_of_bits()], which are reduced; then */
    uint64_t    *minus;   /* [n_words] blocks of zeros here, some of them negative */
    tti_wish     wishes[]; /* [members] */
} sparse;

static void release(tti_compound *compound)
{
    free(((sparse *)compound)->bits);
    free(compound);
}

/* ---- bits ---- */

static bool has(const uint64_t *bits, int64_t block)
{
    return (bits[block / WORD] >> (block % WORD) & 1) != 0;
}

static void set(uint64_t *bits, int64_t block)
{
    bits[block / WORD] |= UINT64_C(1) << (block % WORD);
}

/* With the head, and never fewer than go at first. */
static int64_t words_of_bits(int64_t n_words)
{
    return HEAD + n_words > FIRST ? HEAD + n_words : FIRST;
}

static int64_t count_bits(const uint64_t *bits, int64_t n_words)
{
    int64_t n = 0, w;

    for (w = 0; w < n_words; w++)
        n += __builtin_popcountll(bits[w]);
    return n;
}

/* Blocks from .. *to_out - 1 have the bit that block from has. */
static bool run_of_blocks(const uint64_t *bits, int64_t n_blocks, int64_t from, int64_t *to_out)
{
    const bool value = has(bits, from);
    int64_t    to = from + 1;

    while (to < n_blocks && has(bits, to) == value)
        to++;
    *to_out = to;
    return value;
}

/* ---- blocks ---- */

static int64_t numbers_up_to(const sparse *s, int64_t block)
{
    const int64_t n = block * s->opts.block;

    return n < s->buf.count ? n : s->buf.count;
}

static char *at(const sparse *s, int64_t block)
{
    return (char *)s->buf.data + (size_t)numbers_up_to(s, block) * tutti_dtype_size(s->buf.dtype);
}

static size_t bytes_of(const sparse *s, int64_t from, int64_t to)
{
    return (size_t)(numbers_up_to(s, to) - numbers_up_to(s, from)) * tutti_dtype_size(s->buf.dtype);
}

/* What this rank has. */
static void look(sparse *s)
{
    int64_t b;

    for (b = 0; b < s->n_blocks; b++) {
        const tti_zeros zeros = tti_zeros_of(at(s, b), s->buf.dtype, numbers_up_to(s, b + 1) - numbers_up_to(s, b));

        if (zeros == TTI_ZEROS_NONE)
            set(s->bits + HEAD, b);
        else if (zeros == TTI_ZEROS_SIGNED)
            set(s->minus, b);
    }
}

/* Copy the blocks that are sent to one place, or back; give how many bytes they are. NULL: only that. */
static size_t pack(const sparse *s, char *packed, bool back)
{
    const uint64_t *bits = s->bits + HEAD;
    size_t          used = 0;
    int64_t         from, to;

    for (from = 0; from < s->n_blocks; from = to) {
        const bool   sent = run_of_blocks(bits, s->n_blocks, from, &to);
        const size_t bytes = bytes_of(s, from, to);

        if (!sent)
            continue;
        if (packed != NULL && back)
            memcpy(at(s, from), packed + used, bytes);
        else if (packed != NULL)
            memcpy(packed + used, at(s, from), bytes);
        used += bytes;
    }
    return used;
}

/* Zeros that are not sent lose their signs. */
static void clear_signs(const sparse *s)
{
    int64_t b;

    for (b = 0; b < s->n_blocks; b++)
        if (has(s->minus, b) && !has(s->bits + HEAD, b))
            memset(at(s, b), 0, bytes_of(s, b, b + 1));
}

/* ---- the operation ---- */

static tti_wish wish_of(const sparse *s)
{
    tti_wish wish = { .what = TTI_BLOCK_SPARSE, .count = s->buf.count, .dtype = (int64_t)s->buf.dtype,
                      .op = (int64_t)s->op.kind, .block = s->opts.block, .status = TUTTI_OK };

    memcpy(&wish.share, &s->opts.dense_above, sizeof wish.share);
    return wish;
}

static tutti_status share_words(const sparse *s, int64_t from, int64_t to, tti_turns *turns)
{
    return from == to ? TUTTI_OK : tti_all_reduce_span(WHAT, s->group, tutti_span_of(s->bits + from, to - from, TUTTI_U64),
                                                       TUTTI_BOR, tti_in_turns(turns));
}

static tutti_status share_bits(sparse *s, tti_turns *turns)
{
    const tti_wish mine = wish_of(s);
    tutti_status   st;

    s->bits[PRINT] = tti_wish_print(&mine);
    s->bits[COMPLEMENT] = ~s->bits[PRINT];
    st = share_words(s, 0, FIRST, turns);
    if (st != TUTTI_OK)
        return st;
    if ((s->bits[PRINT] & s->bits[COMPLEMENT]) == 0)
        return share_words(s, FIRST, words_of_bits(s->n_words), turns);
    st = tti_wishes_meet(WHAT, s->group, &mine, s->wishes, turns);
    return st != TUTTI_OK ? st : tti_fail(TUTTI_E_MISMATCH, "%s on group '%s': ranks want different things", WHAT,
                                          s->group->name);
}

static tutti_status send_blocks(sparse *s, tti_turns *turns)
{
    const size_t bytes = pack(s, NULL, false);
    char        *packed;
    tutti_status st;

    if (bytes == 0)
        return TUTTI_OK;
    packed = tti_compound_room(s->group, bytes);
    if (packed == NULL) {
        s->base.ends = TUTTI_E_BACKEND;
        return tti_fail(TUTTI_E_NOMEM, "%s on group '%s': no memory for %zu bytes of blocks", WHAT, s->group->name,
                        bytes);
    }
    pack(s, packed, false);
    st = tti_all_reduce_span(WHAT, s->group,
                             tutti_span_of(packed, (int64_t)(bytes / tutti_dtype_size(s->buf.dtype)), s->buf.dtype),
                             s->op, tti_in_turns(turns));
    if (st == TUTTI_OK)
        pack(s, packed, true);
    return st;
}

static tutti_status run(tti_compound *compound, tti_turns *turns)
{
    sparse      *s = (sparse *)compound;
    tutti_status st;
    int64_t      sent;

    look(s);
    st = share_bits(s, turns);
    if (st != TUTTI_OK)
        return st;
    sent = count_bits(s->bits + HEAD, s->n_words);
    if ((double)sent > s->opts.dense_above * (double)s->n_blocks) {
        sent = s->n_blocks;
        st = tti_all_reduce_span(WHAT, s->group, s->buf, s->op, tti_in_turns(turns));
    } else {
        st = send_blocks(s, turns);
        clear_signs(s);
    }
    if (st == TUTTI_OK && s->opts.sent != NULL)
        *s->opts.sent = sent;
    return st;
}

/* ---- public ---- */

static bool takes(tutti_dtype dtype)
{
    return dtype == TUTTI_F32 || dtype == TUTTI_F64 || dtype == TUTTI_F16 || dtype == TUTTI_BF16;
}

static tutti_status check(const tutti_group *group, tutti_span buf, tutti_op op, const tutti_block_sparse_options *opts)
{
    tutti_status st = tti_check_span(group, WHAT, "buf", buf);

    if (st != TUTTI_OK)
        return st;
    if (!takes(buf.dtype))
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': buf is %s, which is none of f32, f64, f16, bf16", WHAT,
                        group->name, tutti_dtype_name(buf.dtype));
    if (op.kind != TUTTI_OP_SUM && op.kind != TUTTI_OP_AVG)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': op is '%s'\n  next: TUTTI_SUM or TUTTI_AVG", WHAT, group->name,
                        tutti_op_name(op.kind));
    if (opts->block < BLOCK_LEAST || opts->block > BLOCK_MOST)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': block is %d\n  next: %d to %d", WHAT, group->name, opts->block,
                        BLOCK_LEAST, BLOCK_MOST);
    if (!(opts->dense_above > 0 && opts->dense_above <= 1))
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': dense_above is %g\n  next: above 0, at most 1", WHAT, group->name,
                        opts->dense_above);
    if (buf.device.type != TUTTI_CPU)
        return tti_fail(TUTTI_E_UNSUPPORTED, "%s on group '%s': buf is memory of a device", WHAT, group->name);
    return TUTTI_OK;
}

static tutti_status create(tutti_group *group, tutti_span buf, tutti_op op, const tutti_block_sparse_options *opts,
                           sparse **sparse_out)
{
    sparse *s = calloc(1, sizeof *s + (size_t)group->size * sizeof s->wishes[0]);

    if (s != NULL) {
        s->n_blocks = buf.count / opts->block + (buf.count % opts->block != 0);
        s->n_words = s->n_blocks / WORD + (s->n_blocks % WORD != 0);
        s->bits = calloc((size_t)(words_of_bits(s->n_words) + s->n_words), sizeof *s->bits);
    }
    if (s == NULL || s->bits == NULL) {
        free(s);
        return tti_fail(TUTTI_E_NOMEM, "%s on group '%s': no memory for the bits of %lld numbers", WHAT, group->name,
                        (long long)buf.count);
    }
    s->minus = s->bits + words_of_bits(s->n_words);
    s->base = (tti_compound){ .what = WHAT, .whole = TUTTI_WHOLE_BLOCK_SPARSE, .n_turns = N_TURNS, .run = run, .release = release };
    s->group = group;
    s->buf = buf;
    s->op = op;
    s->opts = *opts;
    *sparse_out = s;
    return TUTTI_OK;
}

static tutti_status issue(tutti_span buf, tutti_op op, const tutti_block_sparse_options *opts, tutti_group *group,
                          tti_how how)
{
    tutti_block_sparse_options known = TUTTI_BLOCK_SPARSE_OPTIONS;
    tutti_group               *g = NULL;
    tutti_status               st = tti_collective_begin(WHAT, group, how, &g);
    sparse                    *s = NULL;

    if (st == TUTTI_OK && g != NULL && opts != NULL)
        st = tti_options_read(&known, sizeof known, opts, "TUTTI_BLOCK_SPARSE_OPTIONS");
    if (known.block == 0)
        known.block = BLOCK;
    if (known.dense_above == 0)
        known.dense_above = DENSE_ABOVE;
    if (st == TUTTI_OK && g != NULL)
        st = check(g, buf, op, &known);
    if (st == TUTTI_OK && g != NULL)
        st = create(g, buf, op, &known, &s);
    if (st != TUTTI_OK || g == NULL)
        return st;
    return tti_compound_issue(g, &s->base, op, buf, how);
}

tutti_status tutti_all_reduce_block_sparse(tutti_span buf, tutti_op op, const tutti_block_sparse_options *opts,
                                           tutti_group *group)
{
    return issue(buf, op, opts, group, tti_blocking());
}

tutti_status tutti_all_reduce_block_sparse_async(tutti_span buf, tutti_op op, const tutti_block_sparse_options *opts,
                                                 tutti_group *group, tutti_work **work_out)
{
    return issue(buf, op, opts, group, tti_async(work_out));
}
