/* SPDX-License-Identifier: BSD-3-Clause
 *
 * differing.c - rank 0's parameters go round, one by one. */
#include "examples/common/differing.h"

#include <string.h>
#include <tutti/group.h>

#include "examples/common/say.h"

/* Whether p has other bytes here than on rank 0; made in the open scope. */
static bool differs(tutti_tensor *p, bool *differs_out)
{
    tutti_tensor *first = tutti_tensor_clone(p);
    const tutti_span theirs = tutti_tensor_span(first), ours = tutti_tensor_span(p);

    TRY(tutti_tensor_check());
    TRY(tutti_broadcast(theirs, 0, NULL));
    *differs_out = memcmp(theirs.data, ours.data, (size_t)ours.count * tutti_dtype_size(ours.dtype)) != 0;
    return true;
}

bool differing_ranks(tutti_module *net, int *ranks_out)
{
    int n;
    tutti_tensor *const *params = tutti_module_parameters(net, &n);
    int32_t ranks = 0;
    bool ok = true, other = false;

    tutti_scope_begin();
    for (int i = 0; i < n && ok; i++) {
        ok = differs(params[i], &other);
        ranks |= other;
    }
    tutti_scope_end();
    if (!ok)
        return false;
    TRY(tutti_all_reduce(TUTTI_SPAN(&ranks, 1), TUTTI_SUM, NULL));
    *ranks_out = ranks;
    return true;
}
