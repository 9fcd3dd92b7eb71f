/* SPDX-License-Identifier: BSD-3-Clause
 *
 * optim_golden_test.c
 * Goal    20 steps of every optimizer, with every option, are PyTorch's: parameters and what is kept; so are
 *         learning rates of schedules and clipped gradients.
 * Method  optim.tsv has the values after the first and the last step, in f32 and f64. Parameters and
 *         gradients follow a formula that is exact, the same here as in make_optim.py. In f64 the formulas
 *         themselves are compared; in f32 rounding may differ by the fused operations of PyTorch's build. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/autograd.h>
#include <tutti/optim.h>

enum { PARAMS = 3, STEPS = 20, OPTIONS = 8, LINE = 4096, CASES = 46 };

static const int dims[PARAMS] = { 1, 2, 0 };
static const int64_t shapes[PARAMS][2] = { { 7 }, { 3, 5 }, { 0 } };

typedef struct run {
    int number, step; /* of the steps taken */
    tutti_dtype dtype;
    tutti_tensor *param[PARAMS];
    tutti_optim *optim;
} run;

static void set(tutti_tensor *t, int64_t k, double value)
{
    if (tutti_tensor_dtype(t) == TUTTI_F32)
        ((float *)tutti_tensor_data(t))[k] = (float)value;
    else
        ((double *)tutti_tensor_data(t))[k] = value;
}

static double get(const tutti_tensor *t, int64_t k)
{
    return tutti_tensor_dtype(t) == TUTTI_F32 ? (double)((const float *)tutti_tensor_data(t))[k]
                                              : ((const double *)tutti_tensor_data(t))[k];
}

static tutti_tensor *parameter(int i, tutti_dtype dtype)
{
    tutti_tensor *p = tutti_tensor_empty(dtype, dims[i], shapes[i]);

    for (int64_t k = 0; k < tutti_tensor_numel(p); k++)
        set(p, k, (double)((k * 29 + 17 * i) % 61 - 30) / 16.0);
    return tutti_tensor_requires_grad_(p, true);
}

static tutti_tensor *gradient(int i, int t, const tutti_tensor *like)
{
    tutti_tensor *g;

    if (i == 2 && t % 4 == 3)
        return NULL;
    g = tutti_tensor_empty(tutti_tensor_dtype(like), dims[i], shapes[i]);
    for (int64_t k = 0; k < tutti_tensor_numel(g); k++)
        set(g, k, (double)((k * 37 + t * (23 + i) + 11 * i) % 67 - 33) / 32.0);
    return g;
}

/* "lr=0.1;betas=0.8,0.95" */
static int read_options(char *text, tutti_optim_option *out)
{
    char *rest = text;
    int n = 0;

    for (char *word; (word = strsep(&rest, ";")) != NULL && *word != '\0'; n++) {
        char *value = strchr(word, '=');

        assert_non_null(value);
        assert_true(n < OPTIONS);
        *value++ = '\0';
        out[n] = (tutti_optim_option){ .name = word };
        out[n].value[0] = strtod(value, &value);
        if (*value == ',')
            out[n].value[1] = strtod(value + 1, NULL);
    }
    return n;
}

/* The fields after the word "case": number, optimizer, dtype, options. */
static void begin_case(run *r, char *fields)
{
    tutti_optim_option options[OPTIONS];
    char *word[4] = { NULL };

    for (int k = 0; k < 4; k++)
        assert_non_null(word[k] = strsep(&fields, "\t"));
    r->number = atoi(word[0]);
    r->dtype = strcmp(word[2], "f32") == 0 ? TUTTI_F32 : TUTTI_F64;
    r->step = 0;
    for (int i = 0; i < PARAMS; i++)
        r->param[i] = parameter(i, r->dtype);
    tutti_optim_free(r->optim);
    r->optim =
        tutti_optim_create(word[1], r->param, PARAMS, options, read_options(word[3], options));
    assert_non_null(r->optim);
    assert_string_equal(tutti_optim_name(r->optim), word[1]);
}

static void take_step(run *r)
{
    r->step++;
    for (int i = 0; i < PARAMS; i++)
        assert_int_equal(tutti_tensor_set_grad(r->param[i], gradient(i, r->step, r->param[i])),
                         TUTTI_OK);
    assert_int_equal(tutti_optim_step(r->optim), TUTTI_OK);
}

/* The fields after the word "value": case, step, parameter, what, elements. */
static void check_value(run *r, char *fields)
{
    const double bound = r->dtype == TUTTI_F32 ? 4e-6 : 1e-13;
    char *word[4] = { NULL };
    const tutti_tensor *t;
    int64_t k = 0;

    for (int i = 0; i < 4; i++)
        assert_non_null(word[i] = strsep(&fields, "\t"));
    assert_int_equal(atoi(word[0]), r->number);
    while (r->step < atoi(word[1]))
        take_step(r);
    t = r->param[atoi(word[2])];
    if (strcmp(word[3], "param") != 0)
        t = tutti_optim_state(r->optim, t, word[3]);
    assert_non_null(t);
    for (char *x; (x = strsep(&fields, "\t")) != NULL; k++) {
        const double want = strtod(x, NULL), got = get(t, k);

        if (!(fabs(got - want) <= bound * fmax(1.0, fabs(want))))
            fail_msg("case %d (%s), step %d, parameter %s, %s[%d]: %.10g instead of %.10g",
                     r->number, tutti_optim_name(r->optim), r->step, word[2], word[3], (int)k, got,
                     want);
    }
    assert_int_equal(k, tutti_tensor_numel(t));
}

/* ---- schedules and clipping ------------------------------------------------------------------- */

enum { EPOCHS = 16, NUMBERS = 8, SCHEDULES = 6, CLIPS = 6 };

static tutti_lr_scheduler *schedule_of(const char *name, tutti_optim *o, const double *x, int n)
{
    int64_t milestone[NUMBERS];

    for (int k = 0; k < n; k++)
        milestone[k] = (int64_t)x[k];
    if (strcmp(name, "step") == 0)
        return tutti_step_lr(o, milestone[0], x[1]);
    if (strcmp(name, "multi_step") == 0)
        return tutti_multi_step_lr(o, milestone, n - 1, x[n - 1]);
    if (strcmp(name, "exponential") == 0)
        return tutti_exponential_lr(o, x[0]);
    if (strcmp(name, "linear") == 0)
        return tutti_linear_lr(o, x[0], x[1], milestone[2]);
    if (strcmp(name, "cosine") == 0)
        return tutti_cosine_annealing_lr(o, milestone[0], x[1]);
    assert_string_equal(name, "warmup_cosine");
    return tutti_warmup_cosine_lr(o, milestone[0], milestone[1], x[2]);
}

static int read_numbers(char *text, const char *between, double *out, int room)
{
    int n = 0;

    for (char *word; (word = strsep(&text, between)) != NULL; n++) {
        assert_true(n < room);
        out[n] = strtod(word, NULL);
    }
    return n;
}

/* Schedule, its numbers, rates. */
static void check_rates(char *fields)
{
    const double lr[2] = { 0.5, 0.125 };
    const char *name = strsep(&fields, "\t");
    double number[NUMBERS], want[2 * EPOCHS], got;
    const int n = read_numbers(strsep(&fields, "\t"), ",", number, NUMBERS);
    tutti_tensor *p[2] = { parameter(0, TUTTI_F64), parameter(1, TUTTI_F64) };
    tutti_optim *o = tutti_sgd(p, 1, NULL);
    tutti_lr_scheduler *s;

    assert_int_equal(read_numbers(fields, "\t", want, 2 * EPOCHS), 2 * EPOCHS);
    assert_int_equal(tutti_optim_add_param_group(o, p + 1, 1, NULL), TUTTI_OK);
    for (int g = 0; g < 2; g++)
        assert_int_equal(tutti_optim_set_option(o, g, "lr", &lr[g], 1), TUTTI_OK);
    s = schedule_of(name, o, number, n);
    assert_non_null(s);
    for (int k = 0; k < 2 * EPOCHS; k++) {
        assert_int_equal(tutti_optim_get_option(o, k % 2, "lr", 0, &got), TUTTI_OK);
        if (!(fabs(got - want[k]) <= 1e-14))
            fail_msg("%s, epoch %d: %.17g instead of %.17g", name, k / 2, got, want[k]);
        if (k % 2 == 1)
            assert_int_equal(tutti_lr_scheduler_step(s), TUTTI_OK);
    }
    tutti_lr_scheduler_free(s);
    tutti_optim_free(o);
}

/* Order, bound, norm, gradients. */
static void check_clipping(char *fields)
{
    const char *order = strsep(&fields, "\t");
    const double bound = strtod(strsep(&fields, "\t"), NULL);
    double want[64], norm = 0.0;
    const int n = read_numbers(fields, "\t", want, 64);
    tutti_tensor *p[PARAMS];
    int at = 1;

    for (int i = 0; i < PARAMS; i++) {
        p[i] = parameter(i, TUTTI_F32);
        assert_int_equal(tutti_tensor_set_grad(p[i], gradient(i, 1, p[i])), TUTTI_OK);
    }
    if (strcmp(order, "value") == 0)
        assert_int_equal(tutti_clip_grad_value_(p, PARAMS, bound), TUTTI_OK);
    else
        assert_int_equal(tutti_clip_grad_norm_(p, PARAMS, bound, strtod(order, NULL), true, &norm),
                         TUTTI_OK);
    assert_true(fabs(norm - want[0]) <= 1e-6 * want[0]);
    for (int i = 0; i < PARAMS; i++)
        for (int64_t k = 0; k < tutti_tensor_numel(p[i]); k++, at++)
            if (!(fabs(get(tutti_tensor_grad(p[i]), k) - want[at]) <= 1e-6 * fabs(want[at])))
                fail_msg("order %s, bound %g: gradient %d[%d] is %.9g instead of %.9g", order,
                         bound, i, (int)k, get(tutti_tensor_grad(p[i]), k), want[at]);
    assert_int_equal(at, n);
}

static void schedules_and_clipping_are_pytorchs(void **state)
{
    FILE *file = fopen(GOLDEN, "re");
    char *line = malloc(LINE);
    int schedules = 0, clips = 0;

    (void)state;
    assert_non_null(file);
    assert_non_null(line);
    tutti_scope_begin();
    while (fgets(line, LINE, file) != NULL) {
        char *rest = line;
        const char *word;

        rest[strcspn(rest, "\n")] = '\0';
        word = strsep(&rest, "\t");
        if (strcmp(word, "lr") == 0) {
            check_rates(rest);
            schedules++;
        } else if (strcmp(word, "clip") == 0) {
            check_clipping(rest);
            clips++;
        }
    }
    assert_int_equal(schedules, SCHEDULES);
    assert_int_equal(clips, CLIPS);
    tutti_scope_end();
    free(line);
    fclose(file);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
}

static void steps_are_pytorchs(void **state)
{
    FILE *file = fopen(GOLDEN, "re");
    char *line = malloc(LINE);
    run r = { 0 };
    int cases = 0, last = 0;

    (void)state;
    assert_non_null(file);
    assert_non_null(line);
    tutti_scope_begin();
    while (fgets(line, LINE, file) != NULL) {
        char *rest = line;
        const char *word;

        rest[strcspn(rest, "\n")] = '\0';
        word = strsep(&rest, "\t");
        if (strcmp(word, "case") == 0) {
            begin_case(&r, rest);
            cases++;
        } else if (strcmp(word, "value") == 0) {
            check_value(&r, rest);
            last += r.step == STEPS;
        }
    }
    assert_int_equal(cases, CASES);
    assert_true(last >= 3 * CASES);
    tutti_optim_free(r.optim);
    tutti_scope_end();
    free(line);
    fclose(file);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_pytorchs),
        cmocka_unit_test(schedules_and_clipping_are_pytorchs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
