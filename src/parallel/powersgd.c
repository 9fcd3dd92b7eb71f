/* SPDX-License-Identifier: BSD-3-Clause
 *
 * powersgd.c - PowerSGD as an object: which parameters are matrices, its options, its end.
 *
 * Source  Vogels, Karimireddy & Jaggi 2019; what is where and when as torch has it. */
#include "parallel/powersgd.h"

#include <math.h>
#include <stdlib.h>
#include "base/options.h"
#include <tutti/private.h>

enum { RANK = 1, START_ITER = 1000, LOGGING_FREQUENCY = 10000, RANK_MAX = 1 << 16 };
static const double MIN_COMPRESSION_RATE = 2.0;

/* ---- options ---- */

static tutti_status check_options(const tutti_powersgd_options *o)
{
    if (o->matrix_approximation_rank < 0 || o->matrix_approximation_rank > RANK_MAX)
        return tti_fail(TUTTI_E_ARG, "powersgd_create: a matrix_approximation_rank of %d", o->matrix_approximation_rank);
    if (o->start_iter < TUTTI_POWERSGD_AT_ONCE)
        return tti_fail(TUTTI_E_ARG, "powersgd_create: a start_iter of %lld", (long long)o->start_iter);
    if (!(o->min_compression_rate >= 0.0) || !(o->orthogonalization_epsilon >= 0.0))
        return tti_fail(TUTTI_E_ARG, "powersgd_create: a min_compression_rate of %g, and an orthogonalization_epsilon of %g",
                        o->min_compression_rate, o->orthogonalization_epsilon);
    if ((!o->no_error_feedback || !o->no_warm_start) && o->start_iter != 0 && o->start_iter <= 1)
        return tti_fail(TUTTI_E_ARG,
                        "powersgd_create: a start_iter of %lld, and with error feedback or warm start it must be larger "
                        "than 1, as buckets are rebuilt after the first step\n"
                        "  next: no_error_feedback and no_warm_start, or a larger start_iter",
                        (long long)o->start_iter);
    return TUTTI_OK;
}

static void fill_in(tutti_powersgd_options *o)
{
    if (o->matrix_approximation_rank == 0)
        o->matrix_approximation_rank = RANK;
    if (o->start_iter == 0)
        o->start_iter = START_ITER;
    if (o->min_compression_rate == 0.0)
        o->min_compression_rate = MIN_COMPRESSION_RATE;
    if (o->compression_stats_logging_frequency == 0)
        o->compression_stats_logging_frequency = LOGGING_FREQUENCY;
    if (o->compression_stats_logging_frequency < 1)
        o->compression_stats_logging_frequency = 1;
}

/* ---- parameters ---- */

/* A matrix of [first dimension][all others], if so many columns of each kind are less than it. */
static void take_param(tti_powersgd_param *p, const tti_reducer_slot *slot, const tutti_powersgd_options *o)
{
    int64_t k = o->matrix_approximation_rank;

    p->numel = slot->numel;
    p->rows = slot->sizes[0];
    p->cols = p->rows > 0 ? slot->numel / p->rows : 0;
    k = k < p->rows ? k : p->rows;
    k = k < p->cols ? k : p->cols;
    if ((double)(p->rows + p->cols) * (double)k * o->min_compression_rate < (double)p->rows * (double)p->cols)
        p->k = (int)k;
}

static tutti_status make_room(tutti_powersgd *s, size_t n)
{
    s->params = calloc(n, sizeof *s->params);
    s->buckets = calloc(n, sizeof *s->buckets);
    s->order = calloc(n, sizeof *s->order);
    if (s->params == NULL || s->buckets == NULL || s->order == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for PowerSGD of %zu parameters", n);
    s->n = (int)n;
    return TUTTI_OK;
}

static tutti_status take_params(tutti_powersgd *s, const tutti_reducer *r)
{
    tutti_status st = make_room(s, (size_t)r->n);
    char         text[256];
    int          i;

    for (i = 0; i < s->n && st == TUTTI_OK; i++) {
        if (!tti_can_convert(TUTTI_F32, r->slots[i].dtype))
            st = tti_fail(TUTTI_E_UNSUPPORTED, "powersgd_create: %s is %s", tti_param_text(r, i, text, sizeof text),
                          tutti_dtype_name(r->slots[i].dtype));
        take_param(&s->params[i], &r->slots[i], &s->opts);
        s->buckets[i].of = s;
        s->buckets[i].index = i;
    }
    return st;
}

/* ---- the object ---- */

static void free_state(void *state)
{
    tutti_powersgd_free(state);
}

static tutti_status fill(tutti_powersgd *s, const tutti_reducer *r)
{
    const char  *name = s->opts.batched ? "batched_powerSGD_hook" : "powerSGD_hook";
    tutti_status st = take_params(s, r);

    s->hook = (tutti_comm_hook){ .api = TUTTI_COMM_HOOK_API, .size = sizeof s->hook, .name = name,
                                 .run = tti_powersgd_run, .free_state = free_state,
                                 .group_changed = tti_powersgd_move };
    s->steps.last = TTI_STEP_OVER;
    return st;
}

tutti_status tutti_powersgd_create(const tutti_reducer *reducer, const tutti_powersgd_options *opts,
                                   tutti_powersgd **state_out)
{
    tutti_powersgd_options known = TUTTI_POWERSGD_OPTIONS;
    tutti_powersgd        *s;
    tutti_status           st = TUTTI_OK;

    if (reducer == NULL || state_out == NULL)
        return tti_fail(TUTTI_E_ARG, "powersgd_create: the %s is NULL", reducer == NULL ? "reducer" : "output");
    if (opts != NULL)
        st = tti_options_read(&known, sizeof known, opts, "TUTTI_POWERSGD_OPTIONS");
    if (st == TUTTI_OK)
        st = check_options(&known);
    if (st != TUTTI_OK)
        return st;
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for PowerSGD");
    tti_mutex_init(&s->lock);
    fill_in(&known);
    s->opts = known;
    st = fill(s, reducer);
    if (st == TUTTI_OK)
        *state_out = s;
    else
        tutti_powersgd_free(s);
    return st;
}

void tutti_powersgd_free(tutti_powersgd *state)
{
    tutti_powersgd *s = state;
    int             i;

    if (s == NULL)
        return;
    if (s->owns_follow)
        tutti_destroy_process_group(s->follow);
    for (i = 0; i < s->n && s->params != NULL; i++)
        tti_powersgd_param_forget(&s->params[i]);
    for (i = 0; i < s->n && s->buckets != NULL; i++)
        tti_powersgd_bucket_release(&s->buckets[i]);
    tti_mutex_release(&s->lock);
    free(s->params);
    free(s->buckets);
    free(s->order);
    free(s);
}

const tutti_comm_hook *tutti_powersgd_hook(const tutti_powersgd *state)
{
    return state != NULL ? &state->hook : NULL;
}

tutti_status tutti_powersgd_get_stats(const tutti_powersgd *state, tutti_powersgd_stats *stats_out)
{
    if (state == NULL || stats_out == NULL)
        return tti_fail(TUTTI_E_ARG, "powersgd_get_stats: the %s is NULL", state == NULL ? "state" : "output");
    *stats_out = (tutti_powersgd_stats){
        .size = sizeof *stats_out, .iter = state->steps.n, .n_before = state->n_before, .n_after = state->n_after,
        .rate = state->n_after > 0 ? (double)state->n_before / (double)state->n_after : 0.0,
    };
    return TUTTI_OK;
}
