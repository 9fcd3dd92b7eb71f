/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rprop.c - resilient backpropagation: steps that grow while a gradient keeps its sign and shrink when it
 * changes; the size of the gradient does not count. For gradients of whole data sets.
 *
 * Source  Riedmiller & Braun 1993; after a change of sign the element rests for one step. */
#include "optim/optim.h"

enum { LR, DOWN, UP, STEP_MIN, STEP_MAX, MAXIMIZE };
enum { PREV, STEP_SIZE };

static const tti_option options[] = {
    { "lr", 1, TTI_NOT_NEGATIVE },
    { "etas", 2, TTI_NOT_NEGATIVE },
    { "step_sizes", 2, TTI_NOT_NEGATIVE },
    { "maximize", 1, TTI_FLAG },
};

static double initial(int state, const double *v)
{
    return state == STEP_SIZE ? v[LR] : 0.0;
}

static tutti_status check(const char *op, const double *v)
{
    if (!(v[DOWN] > 0.0 && v[DOWN] < 1.0 && v[UP] > 1.0))
        return tti_refuse(TUTTI_E_ARG, op, "etas are %g and %g: 0 < first < 1 < second must hold",
                          v[DOWN], v[UP]);
    if (v[STEP_MIN] > v[STEP_MAX])
        return tti_refuse(TUTTI_E_ARG, op, "step_sizes are %g and %g: the smallest comes first",
                          v[STEP_MIN], v[STEP_MAX]);
    return TUTTI_OK;
}

static void prepare(const double *v, double t, unsigned fresh, tti_step *step_out)
{
    (void)t, (void)fresh;
    *step_out = (tti_step){ .loop = TTI_LOOP_RPROP,
                            .sign = v[MAXIMIZE] != 0.0 ? -1.0 : 1.0,
                            .c = { v[DOWN], v[UP], v[STEP_MIN], v[STEP_MAX] } };
}

const tti_optim_class tti_rprop_class = {
    .name = "rprop",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .defaults = { [LR] = 1e-2, [DOWN] = 0.5, [UP] = 1.2, [STEP_MIN] = 1e-6, [STEP_MAX] = 50.0 },
    .state = { [PREV] = "prev", [STEP_SIZE] = "step_size" },
    .n_states = 2,
    .counts = true,
    .initial = initial,
    .check = check,
    .prepare = prepare,
};

tutti_optim *tutti_rprop(tutti_tensor *const *params, int n, const tutti_rprop_options *opts)
{
    tutti_rprop_options o = TUTTI_RPROP_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (o.size != sizeof o) {
        (void)tti_optim_size_refused("rprop", o.size, "TUTTI_RPROP_OPTIONS");
        return NULL;
    }
    return tti_optim_new(&tti_rprop_class, params, n,
                         (const double[TTI_OPTIM_VALUES]){ o.lr, o.etas[0], o.etas[1],
                                                           o.step_sizes[0], o.step_sizes[1],
                                                           o.maximize });
}
