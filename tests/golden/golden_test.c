/* SPDX-License-Identifier: BSD-3-Clause
 *
 * golden_test.c
 * Goal    the network that mnist trains goes PyTorch's way: the same samples in the same order, the
 *         same losses, the same parameters after 20 steps; and the same gradients, norm-wise to 1e-4 for each tensor.
 * Method  tutorial_losses.tsv against a run of make_golden.py's settings here: one rank, the digits of
 *         seed 1, dropout off. Every line of the file is compared; a kind of line that is missing
 *         fails, as a number that is off does. Gradients are those of the first 128 digits of the file, from the
 *         parameters of the start: tutorial_grads.safetensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/data.h>
#include <tutti/nn.h>
#include <tutti/optim.h>

#include "gradients.h"
#include "harness/scratch.h"
#include "net.h"

enum { TRAIN = 15000, TEST = 2000, BATCH = 128, STEPS = 20, SEED = 1234, PARAMS = 8, FIRST = 8 };

#define TOLERANCE 1e-5 /* relative */

/* What a run here came to, and what the file says. */
typedef struct numbers {
    char sha256[65];
    double loss[STEPS];
    int64_t samples[FIRST]; /* the first of step 0 */
    double sum[PARAMS], norm[PARAMS];
    int64_t count[PARAMS];
    char name[PARAMS][32];
    int n_losses, n_samples, n_params;
} numbers;

/* ---- the file --------------------------------------------------------------------------------- */

static void read_line(char *line, numbers *n)
{
    char *rest = line;
    const char *kind = strsep(&rest, "\t\n");
    int step = 0;

    if (strncmp(line, "# data:", 7) == 0) {
        assert_int_equal(sscanf(strrchr(line, ':'), ": %64[0-9a-f]", n->sha256), 1);
    } else if (strcmp(kind, "loss") == 0) {
        assert_in_range(n->n_losses, 0, STEPS - 1);
        assert_int_equal(sscanf(rest, "%d %lf", &step, &n->loss[n->n_losses]), 2);
        assert_int_equal(step, n->n_losses++);
    } else if (strcmp(kind, "samples") == 0) {
        assert_string_equal(strsep(&rest, "\t"), "0");
        for (char *word; (word = strsep(&rest, "\t\n")) != NULL && *word != '\0';) {
            assert_in_range(n->n_samples, 0, FIRST - 1);
            n->samples[n->n_samples++] = strtoll(word, NULL, 10);
        }
    } else if (strcmp(kind, "param") == 0) {
        const int i = n->n_params++;

        assert_in_range(i, 0, PARAMS - 1);
        assert_int_equal(sscanf(rest, "%31s %" SCNd64 " %lf %lf", n->name[i], &n->count[i],
                                &n->sum[i], &n->norm[i]),
                         4);
    } else {
        assert_int_equal(line[0], '#');
    }
}

static void read_golden(numbers *n)
{
    FILE *f = fopen(GOLDEN, "r");
    char line[1024];

    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        read_line(line, n);
    fclose(f);
    assert_int_equal(strlen(n->sha256), 64);
    assert_int_equal(n->n_losses, STEPS);
    assert_int_equal(n->n_samples, FIRST);
    assert_int_equal(n->n_params, PARAMS);
}

/* ---- the run ---------------------------------------------------------------------------------- */

static void hash_file(EVP_MD_CTX *sha, const char *dir, const char *name)
{
    char path[512], chunk[65536];
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "rb");
    assert_non_null(f);
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        assert_int_equal(EVP_DigestUpdate(sha, chunk, n), 1);
    fclose(f);
}

static void hash_data(const char *dir, char hex_out[65])
{
    EVP_MD_CTX *sha = EVP_MD_CTX_new();
    unsigned char digest[32];

    assert_non_null(sha);
    assert_int_equal(EVP_DigestInit_ex(sha, EVP_sha256(), NULL), 1);
    hash_file(sha, dir, "train-images-idx3-ubyte");
    hash_file(sha, dir, "train-labels-idx1-ubyte");
    assert_int_equal(EVP_DigestFinal_ex(sha, digest, NULL), 1);
    EVP_MD_CTX_free(sha);
    for (int i = 0; i < 32; i++)
        snprintf(hex_out + 2 * i, 3, "%02x", digest[i]);
}

static tutti_tensor *loss_of(tutti_module *net, const tutti_dataset *ds, const int64_t *samples)
{
    tutti_tensor *x, *y;

    x = tutti_tensor_empty(TUTTI_F32, 4, (int64_t[]){ BATCH, 1, NET_SIDE, NET_SIDE });
    y = tutti_tensor_empty(TUTTI_I64, 1, (int64_t[]){ BATCH });
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
    assert_int_equal(
        tutti_dataset_fetch(ds, samples, BATCH, tutti_tensor_data(x), tutti_tensor_data(y)),
        TUTTI_OK);
    return tutti_tensor_nll_loss(tutti_forward(net, x), y, NULL);
}

static double step(tutti_module *net, tutti_optim *sgd, const tutti_dataset *ds,
                   const int64_t *samples)
{
    tutti_tensor *loss;
    double value = NAN;

    tutti_scope_begin();
    tutti_optim_zero_grad(sgd);
    loss = loss_of(net, ds, samples);
    assert_int_equal(tutti_tensor_item(loss, &value), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(loss), TUTTI_OK);
    assert_int_equal(tutti_optim_step(sgd), TUTTI_OK);
    tutti_scope_end();
    return value;
}

static uint64_t draw(void *ctx)
{
    (void)ctx;
    return tutti_generator_random64(NULL);
}

static void train(tutti_module *net, tutti_optim *sgd, const tutti_dataset *ds, numbers *n)
{
    int64_t *index = malloc(2 * TRAIN * sizeof *index);
    const int64_t *samples;
    tutti_loader loader;

    assert_non_null(index);
    assert_int_equal(tutti_partition(SEED, TRAIN, 0, 1, index), TUTTI_OK);
    assert_int_equal(tutti_loader_init(&loader, index, TRAIN, BATCH, index + TRAIN), TUTTI_OK);
    assert_int_equal(tutti_loader_shuffle(&loader, draw, NULL), TUTTI_OK);
    for (n->n_losses = 0; n->n_losses < STEPS; n->n_losses++) {
        assert_int_equal(tutti_loader_next(&loader, &samples), BATCH);
        if (n->n_losses == 0)
            memcpy(n->samples, samples, sizeof n->samples);
        n->loss[n->n_losses] = step(net, sgd, ds, samples);
    }
    free(index);
}

static void measure(const tutti_tensor *t, double *sum_out, double *norm_out)
{
    const float *x = tutti_tensor_data(t);
    double sum = 0.0, squares = 0.0;

    for (int64_t i = 0; i < tutti_tensor_numel(t); i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    *sum_out = sum;
    *norm_out = sqrt(squares);
}

static void describe(tutti_module *net, numbers *n)
{
    tutti_tensor *const *params = tutti_module_parameters(net, &n->n_params);
    const char *const *names = tutti_module_parameter_names(net, &n->n_params);

    assert_int_equal(n->n_params, PARAMS);
    for (int i = 0; i < PARAMS; i++) {
        snprintf(n->name[i], sizeof n->name[i], "%s", names[i]);
        n->count[i] = tutti_tensor_numel(params[i]);
        measure(params[i], &n->sum[i], &n->norm[i]);
    }
}

/* ---- the comparison --------------------------------------------------------------------------- */

static void check_near(const char *what, int at, double got, double want, double scale)
{
    if (!(fabs(got - want) <= TOLERANCE * scale))
        fail_msg("%s %d: %.9g instead of %.9g", what, at, got, want);
}

/* Sums cancel: a sum may be off by the tolerance of the norm. */
static void check_params(const numbers *got, const numbers *want)
{
    for (int i = 0; i < PARAMS; i++) {
        assert_string_equal(got->name[i], want->name[i]);
        assert_int_equal(got->count[i], want->count[i]);
        check_near(got->name[i], i, got->sum[i], want->sum[i], want->norm[i]);
        check_near(got->name[i], i, got->norm[i], want->norm[i], want->norm[i]);
    }
}

/* The sums of the weights that PyTorch begins with for this seed, to six digits. */
static void check_start(const numbers *start)
{
    static const double weights[PARAMS / 2] = { -0.312308, -1.293711, 3.765503, -0.967663 };

    for (int i = 0; i < PARAMS / 2; i++)
        if (!(fabs(start->sum[2 * i] - weights[i]) <= 1e-6))
            fail_msg("sum of %s is %.9g instead of %.6f", start->name[2 * i], start->sum[2 * i],
                     weights[i]);
}

/* The gradients of the first digits of the file; they stay in the parameters. */
static void check_gradients(tutti_module *net, const tutti_dataset *ds)
{
    int64_t samples[BATCH];

    for (int i = 0; i < BATCH; i++)
        samples[i] = i;
    tutti_scope_begin();
    assert_int_equal(tutti_tensor_backward(loss_of(net, ds, samples)), TUTTI_OK);
    gradients_check_module(net, GOLDEN_GRADS, "one process", true);
    tutti_scope_end();
}

static void goes_pytorchs_way(void **state)
{
    const char *dir = *state;
    tutti_sgd_options opts = TUTTI_SGD_OPTIONS;
    numbers want = { 0 }, got = { 0 }, start = { 0 };
    tutti_dataset *ds = NULL;
    tutti_module *net;
    tutti_optim *sgd;

    read_golden(&want);
    assert_int_equal(tutti_digits_write(dir, 1, TRAIN, TEST), TUTTI_OK);
    hash_data(dir, got.sha256);
    assert_string_equal(got.sha256, want.sha256);
    assert_int_equal(tutti_dataset_open(dir, TUTTI_DATASET_TRAIN, &ds), TUTTI_OK);

    tutti_manual_seed(SEED);
    net = net_create(false, false);
    describe(net, &start);
    check_start(&start);
    check_gradients(net, ds);
    opts.lr = 0.01;
    opts.momentum = 0.5;
    sgd = tutti_sgd(tutti_module_parameters(net, &got.n_params), PARAMS, &opts);
    train(net, sgd, ds, &got);
    describe(net, &got);

    for (int i = 0; i < FIRST; i++)
        assert_int_equal(got.samples[i], want.samples[i]);
    for (int i = 0; i < STEPS; i++)
        check_near("loss of step", i, got.loss[i], want.loss[i], want.loss[i]);
    check_params(&got, &want);

    tutti_optim_free(sgd);
    tutti_module_free(net);
    tutti_dataset_free(ds);
}

static int make_dir(void **state)
{
    static char dir[256];

    *state = dir;
    return tt_dir_make(dir, sizeof dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    tt_dir_remove(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(goes_pytorchs_way, make_dir, remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
