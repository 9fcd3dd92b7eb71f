/* SPDX-License-Identifier: BSD-3-Clause
 *
 * optim.h - what the files of this room share: an optimizer is a class, groups with values, slots.
 *
 * A class says which options a group has, which tensors a parameter gets, and how the numbers of one step
 * come from the options (prepare). The step itself is a loop over plain memory, chosen by prepare and run
 * block by block (blocks.c), so that every form of stepping shares the arithmetic. */
#ifndef TTI_TRAIN_OPTIM_OPTIM_H
#define TTI_TRAIN_OPTIM_OPTIM_H

#include <tutti/optim.h>
#include "autograd/autograd.h"

enum { TTI_OPTIM_VALUES = 12, TTI_OPTIM_STATES = 3, TTI_OPTIM_CONSTS = 10 };

/* ---- loops.h: one step of n elements side by side, compiled for f32 and f64 */
typedef enum tti_loop_kind {
    TTI_LOOP_SGD,
    TTI_LOOP_SGD_FIRST, /* the buffer becomes the gradient */
    TTI_LOOP_SGD_MOMENTUM,
    TTI_LOOP_SGD_FIRST_NESTEROV,
    TTI_LOOP_SGD_NESTEROV,
    TTI_LOOP_ADAM,
    TTI_LOOP_AMSGRAD,
    TTI_LOOP_ADAMAX,
    TTI_LOOP_ADAGRAD,
    TTI_LOOP_RMSPROP,
    TTI_LOOP_RMSPROP_CENTERED,
    TTI_LOOP_RMSPROP_MOMENTUM,
    TTI_LOOP_RMSPROP_CENTERED_MOMENTUM,
    TTI_LOOP_ADADELTA,
    TTI_LOOP_RPROP,
    TTI_LOOP_SIGN,     /* p becomes c[0] g */
    TTI_LOOP_GRADIENT, /* p becomes c[0] g + c[1] state[0]: a gradient with its sign and decay */
    TTI_LOOP_COUNT
} tti_loop_kind;

/* p and state are read and written, g is read; c are numbers that prepare() computed in f64. */
typedef void (*tti_step_loop)(int64_t n, void *p, const void *g, void *const *state,
                              const double *c);
typedef tti_step_loop tti_loop_table[TTI_LOOP_COUNT][2]; /* f32, f64 */
extern const tti_loop_table tti_optim_loops_plain;
#if defined(__x86_64__)
extern const tti_loop_table tti_optim_loops_avx2;
#endif

/* ---- classes */
typedef enum tti_range {
    TTI_ANY,          /* a number */
    TTI_NOT_NEGATIVE, /* 0 or more */
    TTI_BELOW_ONE,    /* 0 or more, below 1 */
    TTI_UNIT,         /* 0 to 1 */
    TTI_FLAG          /* 0 or 1 */
} tti_range;

typedef struct tti_option {
    const char *name; /* as in torch's param_groups */
    int count;        /* of values: 1, or 2 of a pair */
    tti_range range;
} tti_option;

/* One step of one parameter. */
typedef struct tti_step {
    tti_loop_kind loop;
    double sign;  /* of the gradient: -1 to climb */
    double decay; /* times the parameter, added to the gradient before anything else */
    double c[TTI_OPTIM_CONSTS];
} tti_step;

typedef struct tti_optim_class {
    const char *name;
    const tti_option *options; /* the first is "lr" */
    int n_options;
    double defaults[TTI_OPTIM_VALUES];   /* the values of all options, one after another */
    const char *state[TTI_OPTIM_STATES]; /* tensors of the parameter's shape, f32 or f64 */
    int n_states;
    bool counts; /* keeps "step", an f32 scalar */
    /* Which states groups with these values keep, as bits. NULL: all. */
    unsigned (*wants)(const double *value);
    /* What the elements of a new state are. NULL: 0. */
    double (*initial)(int state, const double *value);
    /* What the ranges do not say. May be NULL. */
    tutti_status (*check)(const char *op, const double *value);
    /* The loop and its numbers for step number t; fresh: bits of states that were made for this step. */
    void (*prepare)(const double *value, double t, unsigned fresh, tti_step *step_out);
} tti_optim_class;

extern const tti_optim_class tti_sgd_class, tti_adam_class, tti_adamw_class, tti_adamax_class,
    tti_adagrad_class, tti_rmsprop_class, tti_adadelta_class, tti_rprop_class;
/* Of that name; NULL if there is none. */
const tti_optim_class *tti_optim_class_find(const char *name);
/* Where the option of that name begins among the values, and the option; -1 if there is none. */
int tti_option_find(const tti_optim_class *cls, const char *name, const tti_option **option_out);
int tti_option_values(const tti_optim_class *cls);
tutti_status tti_options_check(const tti_optim_class *cls, const double *value);

/* ---- the optimizer */
typedef struct tti_slot {
    tutti_tensor *step;                    /* counted; NULL before the first */
    tutti_tensor *state[TTI_OPTIM_STATES]; /* counted; NULL until they are wanted */
    unsigned fresh;                        /* bits of states that no step has seen yet */
} tti_slot;

typedef struct tti_optim_group {
    double value[TTI_OPTIM_VALUES];
    int first, n; /* of the parameters */
} tti_optim_group;

/* Of an optimizer that is divided among ranks (train/zero): which part is stepped here, and who is asked in its place.
 * The arrays stand beside params. */
typedef struct tti_optim_part {
    const bool *mine;  /* [n] kept and stepped here */
    const bool *rests; /* [n] not stepped by anybody */
    /* A step of all ranks; st: what came before it here. */
    tutti_status (*step)(void *ctx, tutti_tensor *const *grads, tutti_status st);
    tutti_status (*add_group)(void *ctx, tutti_tensor *const *params, int n, int *group_out);
    void (*end)(void *ctx); /* the optimizer is freed */
    void *ctx;
} tti_optim_part;

struct tutti_optim {
    const tti_optim_class *cls;
    const tti_optim_part *part; /* NULL: all of it is here */
    double defaults[TTI_OPTIM_VALUES]; /* what a new group begins with */
    bool adopts; /* made without parameters: step_param() takes in those it does not know */
    tti_optim_group *groups;
    int n_groups;
    tutti_tensor **params; /* counted, in the order of groups */
    tti_slot *slots;       /* beside params */
    int n;
    int *table; /* [table_size] lookup.c */
    size_t table_size;
};

/* What is remembered of a parameter is as wide as the arithmetic: 16 bits would lose what a step adds. */
static inline tutti_dtype tti_state_dtype(const tutti_tensor *param)
{
    return tti_is_half(param->dtype) ? TUTTI_F32 : param->dtype;
}

/* An optimizer with one group of these values, of no parameters, too. NULL and kept. */
tutti_optim *tti_optim_make(const tti_optim_class *cls, tutti_tensor *const *params, int n,
                            const double *value);
/* The same for n >= 1 parameters. */
tutti_optim *tti_optim_new(const tti_optim_class *cls, tutti_tensor *const *params, int n,
                           const double *value);
/* One more group, and the last one gone again, of which nothing has been stepped. */
tutti_status tti_optim_append_group(tutti_optim *o, tutti_tensor *const *params, int n);
void tti_optim_pop_group(tutti_optim *o);
/* Step what is stepped here, with gradients of the list, or NULL: their own. */
tutti_status tti_optim_step_own(tutti_optim *o, tutti_tensor *const *grads);
/* Step parameter i, which is here. */
tutti_status tti_optim_step_at(tutti_optim *o, int i, const tutti_tensor *grad);
/* Whether parameter i is kept here. */
static inline bool tti_is_mine(const tutti_optim *o, int i)
{
    return o->part == NULL || o->part->mine[i];
}
/* The options were not begun with their initialiser. */
tutti_status tti_optim_size_refused(const char *op, size_t size, const char *initialiser);
/* The failure of a call that returns a status: not kept, unless something was kept before. */
tutti_status tti_unkeep(tutti_status before, tutti_status st);
/* lookup.c: where param stands among the parameters; -1 if it does not. Before parameter i, which has come last, is
 * noted there is room for all of them: false without memory. */
int tti_optim_find(const tutti_optim *o, const tutti_tensor *param);
bool tti_optim_reserve(tutti_optim *o, size_t all);
void tti_optim_note(tutti_optim *o, int i);
/* The last ones have gone. */
void tti_optim_note_all(tutti_optim *o);
/* Have all tensors of parameter i that its group wants, and "step". */
tutti_status tti_slot_fill(tutti_optim *o, int i);
const tti_optim_group *tti_group_of(const tutti_optim *o, int i);

/* ---- optim_state.c: what loading by numbers and by names share */
/* The n-th tensor that is kept for a parameter, and its name: "step" first, if the class counts. */
int tti_kept_count(const tti_optim_class *cls);
const char *tti_kept_name(const tti_optim_class *cls, int k);
tutti_tensor **tti_kept_at(const tti_optim_class *cls, tti_slot *slot, int k);
/* Whether anything of parameter i would be saved: it is there, and says itself how many steps have seen it, or
 * one has. */
bool tti_slot_is_saved(const tutti_optim *o, int i);
/* Put group g: its options, and which parameters it has. */
tutti_status tti_group_put(const tutti_optim *o, int g, tutti_state_dict *sd);
/* Put the values of a group under "param_groups.<word>.<option>". */
tutti_status tti_options_put(const tti_optim_class *cls, const double *value, const char *word,
                             tutti_state_dict *sd);
/* Read those that are there over value; how many there were. */
tutti_status tti_options_get(const tti_optim_class *cls, const char *word,
                             const tutti_state_dict *sd, double *value, int *found_out);
/* The tensor "state.<word>.<name>"; NULL: not there. word may be any length. */
tutti_status tti_state_named(const tutti_state_dict *sd, const char *word, const char *name,
                             tutti_tensor **t_out);
tutti_status tti_state_put(tutti_state_dict *sd, const char *word, const char *name,
                           const tutti_tensor *t);
/* One number of a tensor of any type. */
double tti_number_at(const tutti_tensor *t, int64_t i);

/* ---- blocks.c */
/* Take one step; everything is there, and of one shape and type. Cannot fail. */
void tti_step_run(const tti_step *step, tutti_tensor *param, const tutti_tensor *grad,
                  tutti_tensor *const *state, int n_states);

/* Hand t to fn in blocks of elements that lie side by side, in row-major order, those of f16 and bf16 as f32; change:
 * what fn leaves in them goes back to t. */
typedef void (*tti_block_fn)(void *ctx, int64_t n, void *elements, tutti_dtype dtype);
void tti_blocks_visit(tutti_tensor *t, bool change, tti_block_fn fn, void *ctx);

#endif
