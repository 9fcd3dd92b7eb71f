/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loss_options.c - what losses over classes ask of their operands. */
#include "nn/nn.h"

enum { IGNORED = -100 };

bool tti_loss_options_get(const char *op, const tutti_loss_options *opts,
                          tutti_loss_options *full_out)
{
    tutti_loss_options o = TUTTI_LOSS_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (o.size != sizeof o || o.reduction < TUTTI_REDUCTION_MEAN ||
        o.reduction > TUTTI_REDUCTION_NONE) {
        (void)tti_refuse(
            TUTTI_E_ARG, op,
            "options of %zu bytes, reduction %d\n  next: begin with TUTTI_LOSS_OPTIONS", o.size,
            (int)o.reduction);
        return false;
    }
    if (!(o.label_smoothing >= 0.0 && o.label_smoothing <= 1.0)) {
        (void)tti_refuse(TUTTI_E_ARG, op, "label smoothing of %g is not within 0..1",
                         o.label_smoothing);
        return false;
    }
    if (!o.has_ignore_index)
        o.ignore_index = IGNORED;
    *full_out = o;
    return true;
}

tutti_status tti_loss_check(const char *op, const tutti_tensor *x, const tutti_tensor *t,
                            const tutti_tensor *w)
{
    const int c = tti_class_dim(x);
    bool fits = x->nd >= 1 && t->nd == x->nd - 1;

    if (!tti_is_real(x->dtype) || t->dtype != TUTTI_I64 || (w != NULL && w->dtype != x->dtype))
        return tti_refuse(
            TUTTI_E_UNSUPPORTED, op,
            "log-probabilities of %s, targets of %s: f32 or f64, and i64, are offered",
            tutti_dtype_name(x->dtype), tutti_dtype_name(t->dtype));
    for (int d = 0; d < t->nd && fits; d++)
        fits = t->shape[d] == x->shape[d < c ? d : d + 1];
    if (!fits)
        return tti_refuse(TUTTI_E_ARG, op, "targets %s do not fit to log-probabilities %s",
                          tti_shape_str(t->nd, t->shape).s, tti_shape_str(x->nd, x->shape).s);
    if (w != NULL && (w->nd != 1 || w->shape[0] != x->shape[c]))
        return tti_refuse(TUTTI_E_ARG, op, "weights %s do not fit to log-probabilities %s",
                          tti_shape_str(w->nd, w->shape).s, tti_shape_str(x->nd, x->shape).s);
    if (tutti_tensor_requires_grad(w))
        return tti_refuse(TUTTI_E_ARG, op, "class weights that require gradients");
    return TUTTI_OK;
}

tutti_status tti_targets_check(const char *op, const tutti_tensor *t, int64_t classes,
                               int64_t ignored)
{
    const int64_t *target = tti_at(t);

    for (int64_t i = 0; i < t->numel; i++)
        if (target[i] != ignored && (target[i] < 0 || target[i] >= classes))
            return tti_refuse(TUTTI_E_ARG, op, "target %lld at %lld is none of %lld classes",
                              (long long)target[i], (long long)i, (long long)classes);
    return TUTTI_OK;
}
