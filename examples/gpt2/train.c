/* SPDX-License-Identifier: BSD-3-Clause
 *
 * train.c - the steps of a run.
 *
 * How     measure, if due -> forward, backward (gradients are averages when it returns), clip, AdamW, the next rate
 *         -> checkpoint, if due. At the end of each step all ranks share four numbers: the loss, whether anybody
 *         was told to stop by SIGTERM, or by SIGINT, whether rank 0's time is over; so all stop behind the same step.
 *         With --minutes, rank 0 times the first PLAN_STEP steps, which are in the warm-up and do not depend on how
 *         many there will be, and counts out how many fit; that number is part of checkpoints.
 * True    Nothing that a step computes comes from the clock once the number of steps is known. A run that goes on from
 *         a checkpoint has the losses, bit by bit, of one that was never interrupted. */
#include "train.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <tutti/group.h>
#include <unistd.h>

#include "examples/common/say.h"
#include "examples/common/world.h"
#include "held_out.h"

enum { PLAN_STEP = 20, STEPS_MAX = 1000000000, PARAMS_MAX = 4096 };
enum { LOSS, TERMINATED, INTERRUPTED, TIME, SHARED };

static volatile sig_atomic_t told_to_stop; /* the signal's number; set by the handler, read by the loop: a signal has no other place */

static void on_signal(int number)
{
    told_to_stop = number;
}

void train_catch_signals(void)
{
    const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

/* ---- beginning --------------------------------------------------------------------------------- */

/* Where a checkpoint goes on is in this text. */
static bool check_place(const trainer *t)
{
    return t->at.window < t->windows.steps ||
           say_once("'%s' goes on from step %" PRId64 " of an epoch, which has %" PRId64, t->checkpoint, t->at.window,
                    t->windows.steps);
}

/* Matrices lose weight, vectors do not. */
static bool make_optim(trainer *t)
{
    tutti_adam_options opts = TUTTI_ADAMW_OPTIONS;
    tutti_tensor *matrices[PARAMS_MAX], *vectors[PARAMS_MAX];
    const double none = 0.0;
    int n, n_matrices = 0, n_vectors = 0, group;
    tutti_tensor *const *params = tutti_module_parameters(t->net, &n);

    if (n > PARAMS_MAX)
        return say_once("--layers: %d parameters are too many", n);
    for (int i = 0; i < n; i++)
        if (tutti_tensor_dim(params[i]) == 2)
            matrices[n_matrices++] = params[i];
        else
            vectors[n_vectors++] = params[i];
    opts.lr = t->opts->lr;
    opts.betas[1] = 0.95;
    opts.weight_decay = t->opts->weight_decay;
    t->adamw = tutti_adamw(matrices, n_matrices, &opts);
    TRY(tutti_tensor_check());
    TRY(tutti_optim_add_param_group(t->adamw, vectors, n_vectors, &group));
    TRY(tutti_optim_set_option(t->adamw, group, "weight_decay", &none, 1));
    return true;
}

/* Rates for n steps, from the step that is next. */
static bool make_schedule(trainer *t, int64_t n)
{
    const int64_t warmup = t->opts->warmup;

    tutti_lr_scheduler_free(t->schedule);
    TRY(tutti_optim_set_lr(t->adamw, t->opts->lr));
    t->schedule = tutti_warmup_cosine_lr(t->adamw, warmup, n > warmup ? n : warmup + 1, 0.1 * t->opts->lr);
    TRY(tutti_tensor_check());
    TRY(tutti_lr_scheduler_set_epoch(t->schedule, t->at.step));
    return true;
}

static bool make_model(trainer *t)
{
    const options *o = t->opts;

    tutti_manual_seed(o->seed);
    t->net = model_create(&o->shape);
    TRY(tutti_tensor_check());
    tutti_manual_seed(o->seed + 1 + (uint64_t)t->rank); /* of dropout, another one on each rank */
    if (!make_optim(t))
        return false;
    t->saved = (saved){ .path = t->checkpoint, .opts = o, .text = &t->text, .net = t->net, .optim = t->adamw,
                        .rank = t->rank, .size = t->size };
    t->at.planned = o->steps;
    if (t->resume && !saved_read(&t->saved, &t->at))
        return false;
    TRY(tutti_ddp_create(t->net, NULL, &t->ddp)); /* all ranks have rank 0's parameters now */
    return make_schedule(t, t->at.planned > 0 ? t->at.planned : STEPS_MAX);
}

static bool open_curve(trainer *t)
{
    return world_agrees(t->rank != 0 || curve_open(&t->curve, t->opts->out, t->at.step));
}

/* Whether to go on or to begin. A run that begins does not take the place of one that somebody may want to go on with,
 * and one that is to go on does not begin in silence. */
static bool settle_resume(trainer *t)
{
    const options *o = t->opts;
    int32_t there = t->rank == 0 && access(t->checkpoint, F_OK) == 0;

    TRY(tutti_broadcast(TUTTI_SPAN(&there, 1), 0, NULL)); /* rank 0 reads it, so it is asked alone */
    t->resume = o->resume || (o->resume_if_there && there);
    if (there && !t->resume)
        return say_once("'%s' is there already\n  next: --resume goes on from it; else another --out, or remove it",
                        t->checkpoint);
    return there || !t->resume ||
           say_once("'%s' is not there: nothing to go on from\n  next: begin without --resume, or with --resume-if-there",
                    t->checkpoint);
}

static bool name_checkpoint(trainer *t)
{
    const options *o = t->opts;
    const int n = o->checkpoint != NULL
                      ? snprintf(t->checkpoint, sizeof t->checkpoint, "%s", o->checkpoint)
                      : snprintf(t->checkpoint, sizeof t->checkpoint, "%s/checkpoint.safetensors", o->out);

    return n < (int)sizeof t->checkpoint || say_once("--checkpoint: a name of %d bytes is too long", n);
}

bool train_open(trainer *t, const options *opts)
{
    t->opts = opts;
    t->rank = tutti_get_rank(NULL);
    t->size = tutti_get_world_size(NULL);
    t->bits = NAN;
    progress_open(&t->progress, t->rank);
    if (!name_checkpoint(t) || !settle_resume(t) || !text_open(&t->text, opts->texts, opts->n_texts, t->rank) ||
        !windows_open(&t->windows, &t->text, opts->shape.context, opts->batch, opts->seed, t->rank, t->size) ||
        !make_model(t) || !check_place(t) || !open_curve(t))
        return false;
    t->windows.epoch = t->at.epoch;
    t->windows.step = t->at.window;
    t->first = t->at.step;
    t->before = t->at.seconds;
    t->began = progress_now();
    return true;
}

/* ---- a step ------------------------------------------------------------------------------------ */

static double seconds_so_far(const trainer *t)
{
    return t->before + progress_now() - t->began;
}

/* The loss of all ranks, and whether to go on. */
static bool share(trainer *t, double *loss)
{
    const bool late = t->opts->minutes > 0.0 && t->rank == 0 &&
                      seconds_so_far(t) + t->eval_seconds >= 60.0 * t->opts->minutes;
    double all[SHARED] = { [LOSS] = *loss, [TERMINATED] = told_to_stop == SIGTERM,
                           [INTERRUPTED] = told_to_stop == SIGINT, [TIME] = late };

    TRY(tutti_all_reduce(TUTTI_SPAN(all, SHARED), TUTTI_SUM, NULL));
    *loss = all[LOSS] / t->size;
    t->stopped = all[TERMINATED] > 0.0 ? SIGTERM : all[INTERRUPTED] > 0.0 ? SIGINT : 0;
    t->timed_out = all[TIME] > 0.0;
    return true;
}

static bool learn(trainer *t, double *loss_out, double *norm_out)
{
    int n;
    tutti_tensor *const *params = tutti_module_parameters(t->net, &n);
    tutti_tensor *x, *y, *loss;

    if (!windows_next(&t->windows, &x, &y))
        return false;
    loss = tutti_tensor_cross_entropy(tutti_ddp_forward(t->ddp, x), y, NULL);
    TRY(tutti_tensor_item(loss, loss_out));
    tutti_optim_zero_grad(t->adamw);
    TRY(tutti_tensor_backward(loss)); /* gradients are averages when it returns */
    TRY(tutti_clip_grad_norm_(params, n, t->opts->clip > 0.0 ? t->opts->clip : HUGE_VAL, 2.0, false, norm_out));
    TRY(tutti_optim_step(t->adamw));
    return true;
}

static bool step(trainer *t)
{
    const double lr = tutti_optim_lr(t->adamw), began = progress_now();
    double loss = 0.0, norm = 0.0;
    bool ok;

    tutti_scope_begin();
    ok = learn(t, &loss, &norm);
    tutti_scope_end();
    if (!ok || !share(t, &loss))
        return false;
    t->at.step++;
    t->at.epoch = t->windows.epoch;
    t->at.window = t->windows.step;
    if (!isfinite(loss) || !isfinite(norm))
        return say_once("step %" PRId64 ": the loss is %g and the gradient's norm %g\n  next: a smaller --lr",
                        t->at.step, loss, norm);
    TRY(tutti_lr_scheduler_step(t->schedule));
    t->step_seconds += progress_now() - began;
    t->loss = loss;
    return curve_loss(&t->curve, t->at.step, loss, lr, norm);
}

/* ---- around the steps -------------------------------------------------------------------------- */

static bool measure(trainer *t)
{
    const double began = progress_now();
    const int64_t bytes = t->at.step * t->opts->batch * t->opts->shape.context;

    if (!held_out_bits(t->net, &t->text, t->opts->shape.context, &t->bits))
        return false;
    t->eval_seconds = progress_now() - began;
    return curve_held_out(&t->curve, t->at.step, seconds_so_far(t), bytes, t->bits);
}

static bool save(trainer *t)
{
    t->at.seconds = seconds_so_far(t);
    if (!world_agrees(curve_flush(&t->curve)) || !saved_write(&t->saved, &t->at))
        return false;
    if (!t->progress.live)
        progress_show(&t->progress, "step %" PRId64 " is in '%s'", t->at.step, t->checkpoint);
    return true;
}

/* Once the first steps are timed: how many there will be. */
static bool plan(trainer *t)
{
    const double left = 60.0 * t->opts->minutes - seconds_so_far(t) - t->eval_seconds;
    const double each = t->step_seconds / (double)(t->at.step - t->first) +
                        t->eval_seconds / (double)t->opts->eval_every;
    int64_t n = t->at.step + (left > 0.0 ? (int64_t)(0.98 * left / each) : 0);

    TRY(tutti_broadcast(TUTTI_SPAN(&n, 1), 0, NULL));
    t->at.planned = n;
    return make_schedule(t, n);
}

/* Steps and measurements that are left, as long as they have taken so far. */
static double seconds_left(const trainer *t)
{
    const double steps = (double)(t->at.planned - t->at.step);

    if (t->at.planned == 0)
        return fmax(60.0 * t->opts->minutes - seconds_so_far(t), 0.0);
    return steps * t->step_seconds / (double)(t->at.step - t->first) +
           (steps / (double)t->opts->eval_every + 1.0) * t->eval_seconds;
}

static void show(trainer *t)
{
    enum { BAR = 20 };
    const double tokens = (double)((t->at.step - t->first) * t->opts->batch * t->opts->shape.context);
    const int full = t->at.planned > 0 ? (int)(BAR * t->at.step / t->at.planned) : 0;
    char planned[24] = "?", bits[40] = "not measured yet";

    if (t->at.planned > 0)
        snprintf(planned, sizeof planned, "%" PRId64, t->at.planned);
    if (!isnan(t->bits))
        snprintf(bits, sizeof bits, "%.3f bits/byte", t->bits);
    progress_show(&t->progress,
                  "step %" PRId64 "/%s  [%.*s%*s]  loss %.3f  held out %s  %.0f tokens/s  ETA %.0f s",
                  t->at.step, planned, full, "####################", BAR - full, "", t->loss, bits,
                  tokens / t->step_seconds, seconds_left(t));
}

static bool is_over(const trainer *t)
{
    return t->stopped != 0 || t->timed_out || (t->at.planned > 0 && t->at.step >= t->at.planned);
}

static bool one_more(trainer *t)
{
    if (t->at.step % t->opts->eval_every == 0 && !measure(t))
        return false;
    if (!step(t))
        return false;
    if (progress_due(&t->progress))
        show(t);
    if (t->at.planned == 0 && t->at.step >= t->first + PLAN_STEP && !plan(t))
        return false;
    return t->at.step % t->opts->save_every != 0 || is_over(t) || save(t);
}

bool train_run(trainer *t)
{
    bool ok = true;

    if (!t->resume) /* who cannot write one learns it now */
        ok = save(t);
    while (ok && !is_over(t))
        ok = one_more(t);
    ok = ok && save(t) && (t->stopped != 0 || measure(t));
    if (ok && t->at.step > t->first)
        show(t);
    progress_clear(&t->progress);
    return ok;
}

bool train_close(trainer *t)
{
    tutti_lr_scheduler_free(t->schedule);
    tutti_optim_free(t->adamw);
    tutti_ddp_free(t->ddp);
    tutti_module_free(t->net);
    windows_close(&t->windows);
    text_close(&t->text);
    return curve_close(&t->curve);
}
