/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inplace_ops.c - changes in place, which are never recorded.
 *
 * Why     Recording them would need histories that are rewritten and views that are replayed. Whoever
 *         changes values in place (optimizers, communication, initialisers) does it with recording
 *         off; with recording on, a change that a gradient should know about is refused.
 * True    Every change raises the version counter of the memory, so that a graph which had saved the
 *         old values notices. */
#include "autograd/autograd.h"

static tutti_status check_target(const char *op, const tutti_tensor *t)
{
    if (t == NULL)
        return tti_refuse_null(op);
    if (tti_repeats_elements(t))
        return tti_refuse(TUTTI_E_ARG, op,
                          "the tensor repeats elements"
                          "\n  next: change a tutti_tensor_clone() of it");
    if (!tutti_is_grad_enabled() || !tutti_tensor_requires_grad(t))
        return TUTTI_OK;
    return tti_refuse(TUTTI_E_STATE, op,
                      tutti_tensor_is_leaf(t)
                          ? "the tensor is a leaf that requires gradients"
                            "\n  next: do it between tutti_set_grad_enabled(false) and (true)"
                          : "the tensor was computed from others that require gradients"
                            "\n  next: compute a new tensor, or tutti_tensor_detach() it");
}

static tutti_status check(const char *op, const tutti_tensor *t, const tutti_tensor *src)
{
    const tutti_status st = check_target(op, t);

    if (st != TUTTI_OK)
        return st;
    if (src == NULL)
        return tti_refuse_null(op);
    if (tutti_is_grad_enabled() && tutti_tensor_requires_grad(src))
        return tti_refuse(TUTTI_E_STATE, op,
                          "the source requires gradients, which would be lost"
                          "\n  next: tutti_tensor_detach() it");
    return TUTTI_OK;
}

tutti_status tutti_tensor_fill_(tutti_tensor *t, double value)
{
    const tutti_status st = check_target("fill_", t);

    return st != TUTTI_OK ? st : tti_raw_fill_(t, value);
}

tutti_status tutti_tensor_zero_(tutti_tensor *t)
{
    const tutti_status st = check_target("zero_", t);

    return st != TUTTI_OK ? st : tti_raw_fill_(t, 0.0);
}

tutti_status tutti_tensor_copy_(tutti_tensor *t, tutti_tensor *src)
{
    const tutti_status st = check("copy_", t, src);

    return st != TUTTI_OK ? st : tti_raw_copy_(t, src);
}

tutti_status tutti_tensor_add_(tutti_tensor *t, tutti_tensor *b, double alpha)
{
    const tutti_status st = check("add_", t, b);

    return st != TUTTI_OK ? st : tti_raw_op2_(TTI_ADD, t, b, alpha);
}

tutti_status tutti_tensor_mul_(tutti_tensor *t, tutti_tensor *b)
{
    const tutti_status st = check("mul_", t, b);

    return st != TUTTI_OK ? st : tti_raw_op2_(TTI_MUL, t, b, 0.0);
}

tutti_status tutti_tensor_div_(tutti_tensor *t, tutti_tensor *b)
{
    const tutti_status st = check("div_", t, b);

    return st != TUTTI_OK ? st : tti_raw_op2_(TTI_DIV, t, b, 0.0);
}

tutti_status tutti_tensor_mul_scalar_(tutti_tensor *t, double c)
{
    const tutti_status st = check_target("mul_scalar_", t);

    return st != TUTTI_OK ? st : tti_raw_op1_(TTI_MUL_C, t, c);
}

tutti_status tutti_tensor_div_scalar_(tutti_tensor *t, double c)
{
    const tutti_status st = check_target("div_scalar_", t);

    return st != TUTTI_OK ? st : tti_raw_op1_(TTI_DIV_C, t, c);
}

tutti_status tutti_tensor_uniform_(tutti_tensor *t, double low, double high, tutti_generator *gen)
{
    const tutti_status st = check_target("uniform_", t);

    return st != TUTTI_OK ? st : tti_raw_uniform_(t, low, high, gen);
}

tutti_status tutti_tensor_normal_(tutti_tensor *t, double mean, double std, tutti_generator *gen)
{
    const tutti_status st = check_target("normal_", t);

    return st != TUTTI_OK ? st : tti_raw_normal_(t, mean, std, gen);
}

tutti_status tutti_tensor_bernoulli_(tutti_tensor *t, double p, tutti_generator *gen)
{
    const tutti_status st = check_target("bernoulli_", t);

    return st != TUTTI_OK ? st : tti_raw_bernoulli_(t, p, gen);
}
