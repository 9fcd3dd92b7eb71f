/* SPDX-License-Identifier: BSD-3-Clause
 *
 * builtin.c - hooks of the library by number and by name: the average, none at all, and those of other files with usual
 * options. */
#include "parallel/hooks.h"

#include <string.h>
#include <tutti/comm_hooks.h>
#include <tutti/private.h>

static tutti_status run_allreduce(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    (void)state;
    return tti_hook_average(bucket->buffer, bucket->group, future_out);
}

static tutti_status run_noop(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    tutti_future *future = NULL;
    tutti_status  st = tutti_future_create(&future);

    (void)state;
    (void)bucket;
    if (st == TUTTI_OK)
        st = tutti_future_set_result(future, NULL, NULL);
    if (st == TUTTI_OK)
        *future_out = future;
    return st;
}

static tutti_status make_quantized(const tutti_reducer *r, bool per_channel, const tutti_comm_hook **hook_out,
                                   void **state_out)
{
    tutti_status st = tti_hook_check_dtypes(r, "quantization_hook", TUTTI_F32); /* of real numbers, as compressing is */

    return st == TUTTI_OK ? tti_quantize_hook_create(r, per_channel, hook_out, state_out) : st;
}

static tutti_status make_powersgd(const tutti_reducer *r, int rank, bool batched, const tutti_comm_hook **hook_out,
                                  void **state_out)
{
    tutti_powersgd_options opts = TUTTI_POWERSGD_OPTIONS;
    tutti_powersgd        *s = NULL;
    tutti_status           st;

    opts.matrix_approximation_rank = rank;
    opts.batched = batched;
    st = tutti_powersgd_create(r, &opts, &s);
    if (st != TUTTI_OK)
        return st;
    *hook_out = tutti_powersgd_hook(s);
    *state_out = s;
    return TUTTI_OK;
}

static tutti_status find(const tutti_reducer *r, tutti_builtin_comm_hook kind, const tutti_comm_hook **hook_out,
                         void **state_out)
{
    static const tutti_comm_hook allreduce = { TUTTI_COMM_HOOK_API, sizeof allreduce, "allreduce_hook", run_allreduce,
                                               NULL, NULL };
    static const tutti_comm_hook noop = { TUTTI_COMM_HOOK_API, sizeof noop, "noop_hook", run_noop, NULL,
                                          NULL };

    switch (kind) {
    case TUTTI_HOOK_ALLREDUCE: *hook_out = &allreduce; return TUTTI_OK;
    case TUTTI_HOOK_FP16_COMPRESS: return tti_compress_hook_create(r, TUTTI_F16, hook_out, state_out);
    case TUTTI_HOOK_BF16_COMPRESS: return tti_compress_hook_create(r, TUTTI_BF16, hook_out, state_out);
    case TUTTI_HOOK_NOOP: *hook_out = &noop; return TUTTI_OK;
    case TUTTI_HOOK_QUANTIZE_PER_TENSOR: return make_quantized(r, false, hook_out, state_out);
    case TUTTI_HOOK_QUANTIZE_PER_CHANNEL: return make_quantized(r, true, hook_out, state_out);
    case TUTTI_HOOK_POWER_SGD: return make_powersgd(r, 1, false, hook_out, state_out);
    case TUTTI_HOOK_POWER_SGD_RANK2: return make_powersgd(r, 2, false, hook_out, state_out);
    case TUTTI_HOOK_BATCHED_POWER_SGD: return make_powersgd(r, 1, true, hook_out, state_out);
    case TUTTI_HOOK_BATCHED_POWER_SGD_RANK2: return make_powersgd(r, 2, true, hook_out, state_out);
    }
    return tti_fail(TUTTI_E_ARG, "reducer_register_builtin_comm_hook: there is no hook %d", (int)kind);
}

tutti_status tutti_reducer_register_builtin_comm_hook(tutti_reducer *reducer, tutti_builtin_comm_hook kind)
{
    const tutti_comm_hook *hook = NULL;
    void                  *state = NULL;
    tutti_status           st;

    if (reducer == NULL)
        return tti_fail(TUTTI_E_ARG, "reducer_register_builtin_comm_hook: the reducer is NULL");
    st = tti_comm_hook_check_place(reducer);
    if (st == TUTTI_OK)
        st = find(reducer, kind, &hook, &state);
    if (st != TUTTI_OK)
        return st;
    st = tutti_reducer_register_comm_hook(reducer, hook, state);
    if (st != TUTTI_OK && hook->free_state != NULL)
        hook->free_state(state);
    return st;
}

tutti_status tutti_builtin_comm_hook_from_name(const char *name, tutti_builtin_comm_hook *kind_out)
{
    static const char *const names[] = {
        [TUTTI_HOOK_ALLREDUCE] = "ALLREDUCE", [TUTTI_HOOK_FP16_COMPRESS] = "FP16_COMPRESS",
        [TUTTI_HOOK_BF16_COMPRESS] = "BF16_COMPRESS", [TUTTI_HOOK_NOOP] = "NOOP",
        [TUTTI_HOOK_QUANTIZE_PER_TENSOR] = "QUANTIZE_PER_TENSOR",
        [TUTTI_HOOK_QUANTIZE_PER_CHANNEL] = "QUANTIZE_PER_CHANNEL", [TUTTI_HOOK_POWER_SGD] = "POWER_SGD",
        [TUTTI_HOOK_POWER_SGD_RANK2] = "POWER_SGD_RANK2", [TUTTI_HOOK_BATCHED_POWER_SGD] = "BATCHED_POWER_SGD",
        [TUTTI_HOOK_BATCHED_POWER_SGD_RANK2] = "BATCHED_POWER_SGD_RANK2",
    };
    size_t i;

    if (name == NULL || kind_out == NULL)
        return tti_fail(TUTTI_E_ARG, "builtin_comm_hook_from_name: the %s is NULL", name == NULL ? "name" : "output");
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) {
            *kind_out = (tutti_builtin_comm_hook)i;
            return TUTTI_OK;
        }
    return tti_fail(TUTTI_E_ARG, "builtin_comm_hook_from_name: there is no hook '%s'\n"
                                 "  next: one like 'POWER_SGD', as tutti/parallel.h lists them", name);
}
