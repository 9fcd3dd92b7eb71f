/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/sparse.h - sparse tensors in coordinate form, and their sum over a group. */
#ifndef TUTTI_SPARSE_H
#define TUTTI_SPARSE_H

#include <tutti/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Sparse, and dense, dimensions that a tensor can have. */
#define TUTTI_SPARSE_DIMS_MAX 4

/** nnz blocks of a tensor whose other elements are zero, each with its place. Blocks with the same place add
 * up. A struct that the program fills borrows its memory; one that a call here gives out owns it, and goes
 * through tutti_sparse_free(). */
typedef struct tutti_sparse_coo {
    int            sparse_dim;                          /* 1 .. TUTTI_SPARSE_DIMS_MAX */
    int            dense_dim;                           /* 0 .. TUTTI_SPARSE_DIMS_MAX */
    int64_t        sizes[2 * TUTTI_SPARSE_DIMS_MAX];    /* sparse dimensions, then dense ones */
    int64_t        nnz;
    const int64_t *indices; /* [sparse_dim][nnz], row by row as in torch: indices[d * nnz + k] */
    tutti_span     values;  /* [nnz][dense sizes]: nnz times their product elements */
    void          *owned;   /* the library's; NULL where memory is borrowed */
} tutti_sparse_coo;

/** The same tensor with one block for each place, in the order of places, the last sparse dimension the
 * fastest. Blocks with one place are added in the order in which they stand.
 *
 * @param in   only read
 * @param out  new memory, also if nothing was to be done; to be freed
 *
 * @errors   TUTTI_E_ARG          dimensions, sizes or counts that do not fit together, an index that is outside of its
 *                                dimension, or SUM is not defined for the dtype
 *           TUTTI_E_UNSUPPORTED  the values are memory of a device
 *           TUTTI_E_NOMEM
 * @threads  any
 * @numbers  f16, bf16 and f8 are added in f32 and rounded once per place
 * @source   torch.Tensor.coalesce */
TUTTI_API tutti_status tutti_sparse_coalesce(const tutti_sparse_coo *in, tutti_sparse_coo *out);

/** Free what a call here gave out, and zero it. A borrowed or zeroed one is fine, and NULL.
 * @threads  any
 * @source   ours */
TUTTI_API void tutti_sparse_free(tutti_sparse_coo *tensor);

/** Add up the sparse tensors of all ranks: each gets the sum, coalesced, with a place for each that any rank
 * has.
 *
 * @param in   only read, and not out, whose memory would be lost; number of blocks as each rank has them, 0 included. Sizes and dtype equal on all ranks
 * @param op   TUTTI_SUM
 * @param out  new memory, to be freed; zeroed by a non-member
 *
 * @errors   TUTTI_E_ARG, TUTTI_E_UNSUPPORTED  what tutti_sparse_coalesce() refuses, found before anything is sent; an op
 *                             other than SUM
 *           TUTTI_E_MISMATCH  ranks have other dimensions, sizes or dtypes: all ranks get it, with the names of
 *                             those that differ from rank 0; the group goes on
 *           TUTTI_E_NOMEM     for out: other ranks may have theirs. For what other ranks have: the group fails,
 *                             TUTTI_E_BACKEND for them
 * @threads  any; a second caller on the same group waits for the first. It is one operation in the group's
 *           order, whose collectives take three numbers (tutti_get_sequence_number) with nothing between them;
 *           to hooks it is one, "sparse_all_reduce", that reads the values of this rank, coalesced
 * @numbers  each rank's blocks of a place are added first, then those sums in rank order: the same bits on all
 *           ranks
 * @cost     three collectives; each rank receives all ranks' blocks, without padding, and merges them
 * @source   torch.distributed.all_reduce of a sparse tensor (which replaces the tensor's content) */
TUTTI_API tutti_status tutti_sparse_all_reduce(const tutti_sparse_coo *in, tutti_op op, tutti_group *group,
                                               tutti_sparse_coo *out);

#ifdef __cplusplus
}
#endif
#endif
