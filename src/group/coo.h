/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/coo.h - sparse tensors without a group: checks, sorting, merging. */
#ifndef TTI_GROUP_COO_H
#define TTI_GROUP_COO_H

#include <tutti/sparse.h>

/** Elements of one block: the product of the dense sizes. tensor is checked. */
int64_t tti_coo_block(const tutti_sparse_coo *tensor);

/** Whether all that tensor says fits together. what is the call's name, for words.
 * @errors TUTTI_E_ARG, TUTTI_E_UNSUPPORTED */
tutti_status tti_coo_check(const char *what, const tutti_sparse_coo *tensor);

/** Whether all indices of tensor are inside of their dimensions: *bad_out is the first block that is not,
 * -1 if there is none. */
int64_t tti_coo_find_bad(const tutti_sparse_coo *tensor);

/** The sum of n checked tensors of the same sizes and dtype: places in order, blocks of one place added in the
 * order of tensors, and of blocks in each. out has new memory.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_coo_merge(const tutti_sparse_coo *tensors, int n, tutti_sparse_coo *out);

#endif
