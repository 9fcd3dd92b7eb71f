/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contender_ddp.c - one rank that trains: the steps that ddp_step.py asks for, under `tutti run`.
 *
 * How     contender.c does the talking. Lines, to all ranks the same, and what rank 0 answers:
 *           check NET BATCH STEPS   a new network; its first losses, means over the ranks, without dropout
 *           step  NET BATCH STEPS   ns of a step: the longest of all ranks, from a barrier on, divided by STEPS
 *           local NET BATCH STEPS   the same without communication; ranks meet after each step, as averages have them do,
 *                                   so that waiting for the slower one is not taken for communication
 *           comm  NET BATCH STEPS   ns of the reductions of a step, with nothing beside them
 *           tail  NET BATCH STEPS   ns from the end of a backward to that of its reductions, by the reducer's clock, on the
 *                                   rank that waits least, for the others wait for its backward; steps begin together
 *         check comes first; a network stays until the next check.
 * True    A step is what a training loop does: forward, the loss as a number, gradients dropped, backward, optimizer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/ddp.h>
#include <tutti/tutti.h>

#include "contender.h"
#include "ddp_nets.h"

enum { BUCKETS_MAX = 16, CHECKED_MAX = 64 };

typedef struct trainer {
    const bench_net *kind;
    int64_t batch;
    tutti_module *net;
    tutti_ddp *ddp;
    tutti_optim *optim;
    tutti_tensor *x[BENCH_BATCHES], *target[BENCH_BATCHES]; /* owned */
    void *bucket[BUCKETS_MAX];                              /* registered memory, for comm */
    int64_t count[BUCKETS_MAX];                             /* of f32 */
    int n_buckets;
    int next; /* batch */
} trainer;

static trainer it; /* one at a time, and the process is this rank */

static bool ok(tutti_status st)
{
    return st == TUTTI_OK || bench_fail("%s", tutti_last_error());
}

/* ---- a trainer -------------------------------------------------------------------------------- */

static void drop(trainer *t)
{
    tutti_optim_free(t->optim);
    tutti_ddp_free(t->ddp);
    tutti_module_free(t->net);
    for (int i = 0; i < BENCH_BATCHES; i++) {
        tutti_tensor_release(t->x[i]);
        tutti_tensor_release(t->target[i]);
    }
    for (int i = 0; i < t->n_buckets; i++)
        tutti_free(t->bucket[i]);
    *t = (trainer){ .kind = NULL };
}

static bool take_batches(trainer *t, int rank)
{
    tutti_scope_begin();
    for (int i = 0; i < BENCH_BATCHES; i++) {
        t->kind->batch(BENCH_BATCHES * rank + i, t->batch, &t->x[i], &t->target[i]);
        tutti_tensor_retain(t->x[i]);
        tutti_tensor_retain(t->target[i]);
    }
    tutti_scope_end();
    return ok(tutti_tensor_check());
}

static bool take(trainer *t, const char *name, int64_t batch, int rank)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_tensor *const *params;
    int n;

    drop(t);
    t->kind = bench_net_of(name);
    t->batch = batch;
    if (t->kind == NULL)
        return bench_fail("there is no network '%s'", name);
    tutti_manual_seed(1234 + (uint64_t)rank);
    t->net = t->kind->make();
    opts.gradient_as_bucket_view = true;
    if (!ok(tutti_tensor_check()) || !ok(tutti_ddp_create(t->net, &opts, &t->ddp)))
        return false;
    params = tutti_module_parameters(t->net, &n);
    t->optim = t->kind->optim(params, n);
    return take_batches(t, rank);
}

/* ---- steps ------------------------------------------------------------------------------------ */

static bool learn(trainer *t, double *loss_out)
{
    tutti_tensor *loss;
    bool went;

    tutti_scope_begin();
    loss = t->kind->loss(tutti_ddp_forward(t->ddp, t->x[t->next]), t->target[t->next]);
    t->next = (t->next + 1) % BENCH_BATCHES;
    went = loss != NULL && tutti_tensor_item(loss, loss_out) == TUTTI_OK;
    tutti_optim_zero_grad(t->optim);
    went = went && tutti_tensor_backward(loss) == TUTTI_OK && tutti_optim_step(t->optim) == TUTTI_OK;
    tutti_scope_end();
    if (went)
        return true;
    (void)tutti_tensor_check(); /* of an expression: its words become the last error */
    return bench_fail("%s", tutti_last_error());
}

static bool check(trainer *t, int steps, FILE *control, int rank)
{
    double losses[CHECKED_MAX] = { 0.0 };

    tutti_module_train(t->net, false);
    for (int i = 0; i < steps; i++)
        if (!learn(t, &losses[i]))
            return false;
    tutti_module_train(t->net, true);
    if (!ok(tutti_all_reduce(TUTTI_SPAN(losses, steps), TUTTI_AVG, NULL)))
        return false;
    fprintf(control, "ok");
    for (int i = 0; i < steps && rank == 0; i++)
        fprintf(control, " %.9g", losses[i]);
    fprintf(control, "\n");
    return true;
}

/* ---- the reductions of a step alone ----------------------------------------------------------- */

static void note_buckets(const char *key, const char *value, void *ctx)
{
    trainer *t = ctx;
    char *end;

    if (strcmp(key, "rebuilt_bucket_sizes") != 0)
        return;
    for (t->n_buckets = 0; t->n_buckets < BUCKETS_MAX; t->n_buckets++) {
        const int64_t bytes = strtoll(value, &end, 10);

        if (end == value)
            return;
        t->count[t->n_buckets] = bytes / (int64_t)sizeof(float);
        value = end + strspn(end, ", ");
    }
}

static bool take_buckets(trainer *t)
{
    if (t->n_buckets > 0)
        return true;
    tutti_reducer_logging_data(tutti_ddp_reducer(t->ddp), note_buckets, t);
    if (t->n_buckets == 0)
        return bench_fail("the reducer tells no sizes of buckets");
    for (int i = 0; i < t->n_buckets; i++)
        if (!ok(tutti_alloc((size_t)t->count[i] * sizeof(float), &t->bucket[i])))
            return false;
    return true;
}

static bool reduce_all(const trainer *t)
{
    tutti_work *works[BUCKETS_MAX];
    int n = 0;
    bool went = true;

    for (; n < t->n_buckets && went; n++)
        went = tutti_all_reduce_async(tutti_span_of(t->bucket[n], t->count[n], TUTTI_F32), TUTTI_AVG, NULL,
                                      &works[n]) == TUTTI_OK;
    for (int i = 0; i < n && went; i++) {
        went = tutti_work_wait(works[i]) == TUTTI_OK;
        tutti_work_free(works[i]);
    }
    return went || bench_fail("%s", tutti_last_error());
}

/* ---- lines ------------------------------------------------------------------------------------ */

/* One of the things whose time is taken. */
static bool once(trainer *t, const char *verb, bench_board *board)
{
    double loss;

    if (strcmp(verb, "comm") == 0)
        return reduce_all(t);
    if (!learn(t, &loss))
        return false;
    return strcmp(verb, "local") != 0 || bench_board_barrier(board) ||
           bench_fail("another rank did not come to the barrier within two minutes");
}

static bool time_of(trainer *t, const char *verb, int steps, bench_board *board, FILE *control)
{
    uint64_t start, longest;
    bool went = strcmp(verb, "comm") != 0 || take_buckets(t);

    if (!went || !bench_board_barrier(board))
        return went && bench_fail("another rank did not come to the barrier within two minutes");
    (void)tutti_ddp_set_sync(t->ddp, strcmp(verb, "local") != 0);
    start = bench_now_ns();
    for (int i = 0; i < steps && went; i++)
        went = once(t, verb, board);
    if (!went)
        return false;
    if (!bench_board_largest(board, bench_now_ns() - start, &longest))
        return bench_fail("another rank did not come to the barrier within two minutes");
    (void)tutti_ddp_set_sync(t->ddp, true);
    fprintf(control, "ok %.1f\n", (double)longest / steps);
    return true;
}

/* What a step's logging data say of its reductions. */
typedef struct reductions {
    int64_t whole, inside; /* ns: all of it, and while the backward ran */
} reductions;

static void note_reductions(const char *key, const char *value, void *ctx)
{
    reductions *r = ctx;

    if (strcmp(key, "backward_comm_time") == 0)
        r->whole = strtoll(value, NULL, 10);
    if (strcmp(key, "backward_compute_comm_overlap_time") == 0)
        r->inside = strtoll(value, NULL, 10);
}

static bool tail_of(trainer *t, int steps, bench_board *board, FILE *control)
{
    double sum = 0.0, loss;

    for (int i = 0; i < steps; i++) {
        reductions r = { 0, 0 };
        uint64_t rest; /* of all ones: its largest is the least tail's */

        if (!learn(t, &loss))
            return false;
        tutti_ddp_logging_data(t->ddp, note_reductions, &r);
        if (!bench_board_largest(board, UINT64_MAX - (uint64_t)(r.whole - r.inside), &rest))
            return bench_fail("another rank did not come to the barrier within two minutes");
        sum += (double)(UINT64_MAX - rest);
    }
    fprintf(control, "ok %.1f\n", sum / steps);
    return true;
}

static bool answer(bench_board *board, const char *line, FILE *control)
{
    char verb[16], name[16];
    int64_t batch;
    int steps;

    if (sscanf(line, "%15s %15s %" SCNd64 " %d", verb, name, &batch, &steps) != 4 || batch < 1 || steps < 1 ||
        steps > (strcmp(verb, "check") == 0 ? CHECKED_MAX : INT32_MAX))
        return bench_fail("no such line");
    if (strcmp(verb, "check") == 0)
        return take(&it, name, batch, board->rank) && check(&it, steps, control, board->rank);
    if (it.kind == NULL || strcmp(it.kind->name, name) != 0 || it.batch != batch)
        return bench_fail("'%s' of %" PRId64 " was not checked", name, batch);
    return strcmp(verb, "tail") == 0 ? tail_of(&it, steps, board, control) : time_of(&it, verb, steps, board, control);
}

static bool join(int *rank_out, int *ranks_out)
{
    if (!ok(tutti_init_process_group(NULL)))
        return false;
    *rank_out = tutti_get_rank(NULL);
    *ranks_out = tutti_get_world_size(NULL);
    return true;
}

static void version(char *text, size_t size)
{
    snprintf(text, size, "tutti %s", TUTTI_VERSION);
}

static void leave(void)
{
    drop(&it);
    tutti_destroy_process_group(NULL);
}

int main(int argc, char **argv)
{
    const bench_side side = { .name = "ddp", .join = join, .version = version, .answer = answer, .leave = leave };

    return bench_contender(&side, argc, argv);
}
