/* SPDX-License-Identifier: BSD-3-Clause
 *
 * optim_golden_test.c
 * Goal    20 steps of every optimizer, with every option, are PyTorch's: parameters and what is kept.
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(steps_are_pytorchs) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
