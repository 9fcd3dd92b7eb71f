/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lr_scheduler.c - learning rates over time.
 *
 * How     A schedule is a function of (rate at the start, epoch); rates at the start are kept for each group. A
 *         group that was added later begins, for the schedule, with the rate that it has when it is first seen.
 * True    Rates depend on the epoch alone, so that going to an epoch is all it takes to resume. */
#include "optim/optim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

struct tutti_lr_scheduler {
    double (*rate)(const tutti_lr_scheduler *s, double base, int64_t epoch);
    tutti_optim *optim; /* borrowed */
    int64_t epoch;
    double *base; /* of n_bases groups */
    int n_bases;
    double real[2]; /* gamma; first and last factor; lr_min */
    int64_t count[2];
    int64_t *milestones;
    tutti_lr_lambda factor;
    void *ctx;
};

static const double PI = 3.14159265358979323846;

static double step_rate(const tutti_lr_scheduler *s, double base, int64_t epoch)
{
    return base * pow(s->real[0], (double)(epoch / s->count[0]));
}

static double multi_step_rate(const tutti_lr_scheduler *s, double base, int64_t epoch)
{
    int reached = 0;

    for (int64_t i = 0; i < s->count[0]; i++)
        reached += s->milestones[i] <= epoch;
    return base * pow(s->real[0], reached);
}

static double linear_rate(const tutti_lr_scheduler *s, double base, int64_t epoch)
{
    const int64_t at = epoch < s->count[0] ? epoch : s->count[0];

    return base * (s->real[0] + (s->real[1] - s->real[0]) * (double)at / (double)s->count[0]);
}

static double cosine(double high, double low, double share)
{
    return low + 0.5 * (high - low) * (1.0 + cos(PI * share));
}

static double cosine_rate(const tutti_lr_scheduler *s, double base, int64_t epoch)
{
    return cosine(base, s->real[0], (double)epoch / (double)s->count[0]);
}

static double warmup_cosine_rate(const tutti_lr_scheduler *s, double base, int64_t epoch)
{
    const int64_t warmup = s->count[0], n = s->count[1];

    if (epoch < warmup)
        return base * (double)(epoch + 1) / (double)warmup;
    if (epoch >= n)
        return s->real[0];
    return cosine(base, s->real[0], (double)(epoch - warmup) / (double)(n - warmup));
}

static double lambda_rate(const tutti_lr_scheduler *s, double base, int64_t epoch)
{
    return base * s->factor(epoch, s->ctx);
}

/* ---- epochs ----------------------------------------------------------------------------------- */

/* Have a rate at the start for each group. */
static tutti_status see_groups(tutti_lr_scheduler *s)
{
    const int n = s->optim->n_groups;
    double *base;

    if (n == s->n_bases)
        return TUTTI_OK;
    base = realloc(s->base, (size_t)n * sizeof *base);
    if (base == NULL)
        return tti_fail(TUTTI_E_NOMEM, "lr_scheduler: no memory for %d groups", n);
    s->base = base;
    for (; s->n_bases < n; s->n_bases++)
        base[s->n_bases] = s->optim->groups[s->n_bases].value[0];
    return TUTTI_OK;
}

static tutti_status go_to(tutti_lr_scheduler *s, int64_t epoch)
{
    tutti_status st = see_groups(s);

    if (st != TUTTI_OK)
        return st;
    for (int g = 0; g < s->n_bases; g++)
        if (!(s->rate(s, s->base[g], epoch) >= 0.0))
            return tti_fail(TUTTI_E_ARG,
                            "lr_scheduler: a learning rate of %g for group %d at epoch %lld",
                            s->rate(s, s->base[g], epoch), g, (long long)epoch);
    for (int g = 0; g < s->n_bases; g++)
        s->optim->groups[g].value[0] = s->rate(s, s->base[g], epoch);
    s->epoch = epoch;
    return TUTTI_OK;
}

tutti_status tutti_lr_scheduler_step(tutti_lr_scheduler *s)
{
    if (s == NULL)
        return tti_fail(TUTTI_E_ARG, "lr_scheduler_step: the schedule is NULL");
    return go_to(s, s->epoch + 1);
}

tutti_status tutti_lr_scheduler_set_epoch(tutti_lr_scheduler *s, int64_t epoch)
{
    if (s == NULL || epoch < 0)
        return tti_fail(TUTTI_E_ARG,
                        s == NULL ? "lr_scheduler_set_epoch: the schedule is NULL"
                                  : "lr_scheduler_set_epoch: epoch %lld",
                        (long long)epoch);
    return go_to(s, epoch);
}

int64_t tutti_lr_scheduler_epoch(const tutti_lr_scheduler *s)
{
    return s != NULL ? s->epoch : -1;
}

tutti_status tutti_lr_scheduler_state_dict(const tutti_lr_scheduler *s, tutti_state_dict **sd_out)
{
    const tutti_status before = tti_kept();
    tutti_tensor *epoch = NULL, *base = NULL;
    tutti_state_dict *sd = NULL;
    const int64_t one = 1;
    tutti_status st;

    if (s == NULL)
        return tti_fail(TUTTI_E_ARG, "lr_scheduler_state_dict: the schedule is NULL");
    st = tutti_state_dict_create(&sd);
    if (st == TUTTI_OK) {
        epoch = tti_raw_empty(TUTTI_I64, 0, &one);
        base = tti_raw_empty(TUTTI_F64, 1, &(int64_t){ s->n_bases });
        st = epoch != NULL && base != NULL ? TUTTI_OK : tti_refused();
    }
    if (st == TUTTI_OK) {
        *(int64_t *)tti_at(epoch) = s->epoch;
        memcpy(tti_at(base), s->base, (size_t)s->n_bases * sizeof *s->base);
        st = tutti_state_dict_set(sd, "last_epoch", epoch);
    }
    if (st == TUTTI_OK)
        st = tutti_state_dict_set(sd, "base_lrs", base);
    tutti_tensor_release(epoch);
    tutti_tensor_release(base);
    if (st == TUTTI_OK)
        *sd_out = sd;
    else
        tutti_state_dict_free(sd);
    return tti_unkeep(before, st);
}

tutti_status tutti_lr_scheduler_load_state_dict(tutti_lr_scheduler *s, const tutti_state_dict *sd)
{
    const tutti_tensor *epoch = tutti_state_dict_get(sd, "last_epoch");
    const tutti_tensor *base = tutti_state_dict_get(sd, "base_lrs");
    tutti_status st;

    if (s == NULL || sd == NULL)
        return tti_fail(TUTTI_E_ARG, "lr_scheduler_load_state_dict: the %s is NULL",
                        s == NULL ? "schedule" : "state");
    st = see_groups(s);
    if (st != TUTTI_OK)
        return st;
    if (epoch == NULL || base == NULL || epoch->numel != 1 || base->numel != s->n_bases)
        return tti_fail(
            TUTTI_E_MISMATCH,
            "lr_scheduler_load_state_dict: the state needs 'last_epoch', and 'base_lrs' of "
            "%d groups",
            s->n_bases);
    for (int g = 0; g < s->n_bases; g++)
        if (!(tti_number_at(base, g) >= 0.0) || !(tti_number_at(epoch, 0) >= 0.0))
            return tti_fail(TUTTI_E_ARG,
                            "lr_scheduler_load_state_dict: epoch %g, and a rate of %g for group %d",
                            tti_number_at(epoch, 0), tti_number_at(base, g), g);
    for (int g = 0; g < s->n_bases; g++)
        s->base[g] = tti_number_at(base, g);
    return go_to(s, (int64_t)tti_number_at(epoch, 0));
}

void tutti_lr_scheduler_free(tutti_lr_scheduler *s)
{
    if (s == NULL)
        return;
    free(s->milestones);
    free(s->base);
    free(s);
}

/* ---- schedules -------------------------------------------------------------------------------- */

/* Not a number is not in range either. */
static bool real_is_sound(const char *op, const char *name, double value)
{
    return value >= 0.0 || tti_refuse(TUTTI_E_ARG, op, "%s is %g, but must be 0 or more", name, value) == TUTTI_OK;
}

static bool count_is_sound(const char *op, const char *name, int64_t value, int64_t least)
{
    return value >= least || tti_refuse(TUTTI_E_ARG, op, "%s is %lld, but must be %lld or more", name, (long long)value,
                                        (long long)least) == TUTTI_OK;
}

static bool warmup_is_sound(const char *op, int64_t warmup, int64_t n)
{
    return warmup < n || tti_refuse(TUTTI_E_ARG, op, "warmup is %lld, but must be less than n, which is %lld",
                                    (long long)warmup, (long long)n) == TUTTI_OK;
}

/* A copy of like on the heap, at epoch 0. sound: its numbers are; if not, it has been said. */
static tutti_lr_scheduler *make(const char *op, tutti_optim *o, bool sound, tutti_lr_scheduler like)
{
    tutti_lr_scheduler *s;
    tutti_status st;

    if (o == NULL)
        (void)tti_refuse_null(op);
    if (o == NULL || !sound)
        return NULL;
    s = malloc(sizeof *s);
    if (s == NULL) {
        (void)tti_refuse(TUTTI_E_NOMEM, op, "no memory for a schedule");
        return NULL;
    }
    *s = like;
    s->optim = o;
    st = go_to(s, 0);
    if (st == TUTTI_OK)
        return s;
    (void)tti_refuse(st, op, "epoch 0 has no learning rate");
    free(s->base); /* the milestones stay the caller's */
    free(s);
    return NULL;
}

tutti_lr_scheduler *tutti_step_lr(tutti_optim *o, int64_t step_size, double gamma)
{
    return make(
        "step_lr", o, count_is_sound("step_lr", "step_size", step_size, 1) && real_is_sound("step_lr", "gamma", gamma),
        (tutti_lr_scheduler){ .rate = step_rate, .real = { gamma }, .count = { step_size } });
}

tutti_lr_scheduler *tutti_multi_step_lr(tutti_optim *o, const int64_t *milestones, int n,
                                        double gamma)
{
    static const char op[] = "multi_step_lr";
    const bool sound = count_is_sound(op, "n", n, 0) && (n == 0 || milestones != NULL || tti_refuse_null(op) == TUTTI_OK) &&
                       real_is_sound(op, "gamma", gamma);
    int64_t *copy = NULL;
    tutti_lr_scheduler *s;

    if (sound && n > 0) {
        copy = malloc((size_t)n * sizeof *copy);
        if (copy == NULL) {
            (void)tti_refuse(TUTTI_E_NOMEM, op, "no memory for %d milestones", n);
            return NULL;
        }
        memcpy(copy, milestones, (size_t)n * sizeof *copy);
    }
    s = make(op, o, sound,
             (tutti_lr_scheduler){
                 .rate = multi_step_rate, .real = { gamma }, .count = { n }, .milestones = copy });
    if (s == NULL)
        free(copy);
    return s;
}

tutti_lr_scheduler *tutti_exponential_lr(tutti_optim *o, double gamma)
{
    return make("exponential_lr", o, real_is_sound("exponential_lr", "gamma", gamma),
                (tutti_lr_scheduler){ .rate = step_rate, .real = { gamma }, .count = { 1 } });
}

tutti_lr_scheduler *tutti_linear_lr(tutti_optim *o, double first, double last, int64_t n)
{
    return make(
        "linear_lr", o,
        count_is_sound("linear_lr", "n", n, 1) && real_is_sound("linear_lr", "first", first) &&
            real_is_sound("linear_lr", "last", last),
        (tutti_lr_scheduler){ .rate = linear_rate, .real = { first, last }, .count = { n } });
}

tutti_lr_scheduler *tutti_cosine_annealing_lr(tutti_optim *o, int64_t n, double lr_min)
{
    return make("cosine_annealing_lr", o,
                count_is_sound("cosine_annealing_lr", "n", n, 1) && real_is_sound("cosine_annealing_lr", "lr_min", lr_min),
                (tutti_lr_scheduler){ .rate = cosine_rate, .real = { lr_min }, .count = { n } });
}

tutti_lr_scheduler *tutti_warmup_cosine_lr(tutti_optim *o, int64_t warmup, int64_t n, double lr_min)
{
    static const char op[] = "warmup_cosine_lr";

    return make(op, o,
                count_is_sound(op, "warmup", warmup, 0) && warmup_is_sound(op, warmup, n) &&
                    real_is_sound(op, "lr_min", lr_min),
                (tutti_lr_scheduler){
                    .rate = warmup_cosine_rate, .real = { lr_min }, .count = { warmup, n } });
}

tutti_lr_scheduler *tutti_lambda_lr(tutti_optim *o, tutti_lr_lambda factor, void *ctx)
{
    if (factor == NULL) {
        (void)tti_refuse_null("lambda_lr");
        return NULL;
    }
    return make("lambda_lr", o, true,
                (tutti_lr_scheduler){ .rate = lambda_rate, .factor = factor, .ctx = ctx });
}
