/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_ranks.c
 * Goal    backend "native" on memory of GPUs: the order of streams, what it takes and refuses, calls in many pieces, how it fails.
 * Method  one rank of several that `tutti run` starts, over the stand-in of the CUDA runtime or, where there are GPUs, a real one; one case
 *         by name. What can be had of operations, types and sizes is the conformance matrix's. Says "rank R of P: fine" at the end; the
 *         case "order" says before that how many numbers were wrong, and leaves it to the caller what that means. */
#include "cuda.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

/* MANY elements are a few pieces, of f32, and no whole number of them. */
enum { ROUNDS = 30, COUNT = 1000, SETS = 4, MANY = 5 * 1000 * 1000 + 7, LONG_MS = 120000, SHORT_MS = 2000 };

static int          rank, size;
static cudaStream_t stream;
static tutti_store *aside; /* where ranks meet that the group does not keep together any more */

/* Wherever it looks whether the stream has come to something, "not ready" is not left for the program, which looks for errors of its own. */
static void expect_no_error(void)
{
    if (cuda.cudaGetLastError != NULL) /* the runtime is there */
        CHECK(cuda.cudaGetLastError() == cudaSuccess);
}

static void join(const char *backend)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.timeout_ms = LONG_MS;
    opts.backend = backend;
    OK(tutti_init_process_group(&opts));
    rank = tutti_get_rank(NULL);
    size = tutti_get_world_size(NULL);
}

static void synchronize(void)
{
    CHECK(cuda.cudaStreamSynchronize(stream) == cudaSuccess);
}

static tutti_span floats(float *data, int64_t count)
{
    return cuda_span(data, count, TUTTI_F32);
}

static void say_aside(const char *key)
{
    OK(tutti_store_set(aside, key, "1", 1));
}

static void hear_aside(const char *key)
{
    OK(tutti_store_wait(aside, &key, 1, LONG_MS));
}

/* Nobody is inside the call any more that was before: what comes next ends the group, and it with that. Once in a program. */
static void all_are_out(void)
{
    OK(tutti_store_barrier(aside, "out", size, LONG_MS));
}

/* ---- order ---- */

static void take_long(void *ms)
{
    const struct timespec time = { .tv_nsec = (long)(intptr_t)ms * 1000000 };

    nanosleep(&time, NULL);
}

/* A stream writes, the group adds, the stream looks; then it writes again, rank 0 gives its numbers to all, the stream looks. Each
 * step takes a time that nobody knows; what stands before the broadcast takes long where its numbers come from elsewhere, or
 * they would mostly come later anyway; before that of many pieces so long that the host has all of them before one can go back. */
static void one_round(float *x, int64_t count, int round, int64_t *wrong)
{
    const float base = (float)round, sum = base * (float)size + (float)(size * (size - 1) / 2);
    tutti_work *work = NULL;

    cuda_fill_rising(stream, x, count, base + (float)rank, 1.0f);
    if (round % 2 == 0) {
        OK(tutti_all_reduce(floats(x, count), TUTTI_SUM, NULL));
    } else {
        OK(tutti_all_reduce_async(floats(x, count), TUTTI_SUM, NULL, &work));
        OK(tutti_work_wait(work));
        tutti_work_free(work);
    }
    cuda_compare_rising(stream, x, count, sum, (float)size, wrong);
    if (rank != 0)
        CHECK(cuda.cudaLaunchHostFunc(stream, take_long, (void *)(intptr_t)(count == MANY ? 300 : 5)) == cudaSuccess);
    cuda_fill_rising(stream, x, count, 0.0f, (float)(rank + 1));
    OK(tutti_broadcast(floats(x, count), 0, NULL));
    cuda_compare_rising(stream, x, count, 0.0f, 1.0f, wrong);
}

static void order(void)
{
    float   *x[SETS], *many = cuda_memory(MANY * sizeof(float));
    int64_t *wrong = cuda_memory(sizeof *wrong);
    int      round, k;

    for (k = 0; k < SETS; k++)
        x[k] = cuda_memory(COUNT * sizeof(float));
    for (round = 0; round < ROUNDS; round++)
        one_round(x[round % SETS], COUNT, round, wrong);
    for (round = 0; round < 2; round++)
        one_round(many, MANY, round, wrong);
    synchronize();
    OK(tutti_barrier(NULL));
    printf("rank %d: %lld of %d numbers are wrong\n", rank, (long long)*wrong, 2 * ROUNDS * COUNT + 4 * MANY);
    /* The memory stays: where waits are left out something may still work on it. */
}

/* ---- what it has ---- */

static float sum_now(tutti_group *group, float mine)
{
    float *x = cuda_memory(sizeof *x), sum;

    *x = mine;
    OK(tutti_all_reduce(floats(x, 1), TUTTI_SUM, group));
    synchronize();
    sum = *x;
    cuda.cudaFree(x);
    return sum;
}

/* Element i of what `from` has for `to`. */
static float value_of(int from, int to, int64_t i)
{
    return (float)((from * 31 + to * 7 + i) % 1009);
}

static void fill(float *part, int from, int to, int64_t count)
{
    int64_t i;

    for (i = 0; i < count; i++)
        part[i] = value_of(from, to, i);
}

static void expect(const float *part, int from, int to, int64_t count)
{
    int64_t i;

    for (i = 0; i < count; i++)
        CHECK(part[i] == value_of(from, to, i));
}

static void expect_sum(const float *part, int to, int64_t count)
{
    int64_t i;
    float   sum;
    int     r;

    for (i = 0; i < count; i++) {
        for (r = 0, sum = 0; r < size; r++)
            sum += value_of(r, to, i);
        CHECK(part[i] == sum);
    }
}

enum { PARTS_MOST = 8 };

typedef struct buffers {
    int64_t    count; /* of a part */
    float     *own, *list;
    tutti_span parts[PARTS_MOST]; /* of list */
} buffers;

static float *part_of(const buffers *b, int r)
{
    return b->list + (int64_t)r * b->count;
}

static buffers make_buffers(int64_t count)
{
    buffers b = { .count = count, .own = cuda_memory((size_t)count * sizeof(float)),
                  .list = cuda_memory((size_t)count * (size_t)size * sizeof(float)) };
    int     r;

    CHECK(size <= PARTS_MOST);
    for (r = 0; r < size; r++)
        b.parts[r] = floats(part_of(&b, r), count);
    return b;
}

static void gathers(const buffers *b)
{
    const int root = size - 1;
    int       r;

    fill(b->own, rank, 0, b->count);
    OK(tutti_all_gather(b->parts, size, floats(b->own, b->count), NULL));
    synchronize();
    for (r = 0; r < size; r++)
        expect(part_of(b, r), r, 0, b->count);
    memset(b->list, 0, (size_t)size * (size_t)b->count * sizeof(float));
    OK(tutti_gather(rank == root ? b->parts : NULL, rank == root ? size : 0, floats(b->own, b->count), root, NULL));
    synchronize();
    for (r = 0; r < size && rank == root; r++)
        expect(part_of(b, r), r, 0, b->count);
}

static void scatters(const buffers *b)
{
    const int root = size - 1;
    int       r;

    for (r = 0; r < size; r++)
        fill(part_of(b, r), rank, r, b->count);
    OK(tutti_reduce_scatter(floats(b->own, b->count), b->parts, size, TUTTI_SUM, NULL));
    synchronize();
    expect_sum(b->own, rank, b->count);
    OK(tutti_scatter(floats(b->own, b->count), rank == root ? b->parts : NULL, rank == root ? size : 0, root, NULL));
    synchronize();
    expect(b->own, root, rank, b->count);
}

static void exchanges(const buffers *b)
{
    const buffers got = make_buffers(b->count);
    int           r;

    for (r = 0; r < size; r++)
        fill(part_of(b, r), rank, r, b->count);
    OK(tutti_all_to_all(got.parts, size, b->parts, size, NULL));
    synchronize();
    for (r = 0; r < size; r++)
        expect(part_of(&got, r), r, rank, b->count);
    cuda.cudaFree(got.own);
    cuda.cudaFree(got.list);
}

static void sums(const buffers *b)
{
    fill(b->own, rank, 3, b->count);
    OK(tutti_reduce(floats(b->own, b->count), 0, TUTTI_SUM, NULL));
    synchronize();
    if (rank == 0)
        expect_sum(b->own, 3, b->count);
    fill(b->own, rank, 4, b->count);
    OK(tutti_all_reduce(floats(b->own, b->count), TUTTI_SUM, NULL));
    synchronize();
    expect_sum(b->own, 4, b->count);
}

/* In one piece, and in several, of which the first is the odd one. */
static void operations(void)
{
    static const int64_t counts[] = { 1, COUNT, MANY / 3 };
    size_t               i;
    buffers              b;

    for (i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        b = make_buffers(counts[i]);
        sums(&b);
        gathers(&b);
        scatters(&b);
        exchanges(&b);
        cuda.cudaFree(b.own);
        cuda.cudaFree(b.list);
    }
}

/* Refused on this rank alone, before it has a number; the group goes on. */
static void refusals(void)
{
    float      *x = cuda_memory(2 * sizeof *x);
    tutti_work *work = NULL;

    if (size == 1)
        return; /* nobody to send to */
    FAILS(tutti_send(floats(x, 1), (rank + 1) % size, 0, NULL), TUTTI_E_UNSUPPORTED, "no messages of memory of a GPU");
    FAILS(tutti_irecv(floats(x, 1), (rank + 1) % size, 0, NULL, &work), TUTTI_E_UNSUPPORTED, "can be received there");
    CHECK(sum_now(NULL, 1.0f) == (float)size);
    cuda.cudaFree(x);
}

static void works(void)
{
    float      *x = cuda_memory(2 * COUNT * sizeof *x);
    tutti_work *two[2] = { NULL, NULL };
    int         which = -1, i;

    for (i = 0; i < 2 * COUNT; i++)
        x[i] = 1.0f;
    for (i = 0; i < 2; i++)
        OK(tutti_all_reduce_async(floats(x + i * COUNT, COUNT), TUTTI_SUM, NULL, &two[i]));
    OK(tutti_wait_any(two, 2, TUTTI_INFINITE, &which));
    CHECK(which >= 0 && x[which * COUNT] == (float)size && tutti_work_is_completed(two[which]));
    for (i = 0; i < 2; i++) {
        while (!tutti_work_is_completed(two[i]))
            sched_yield();
        OK(tutti_work_wait_for(two[i], TUTTI_INFINITE));
        CHECK(x[i * COUNT] == (float)size && x[i * COUNT + COUNT - 1] == (float)size);
        tutti_work_free(two[i]);
    }
    cuda.cudaFree(x);
}

/* A scope has one ticket, several buffers, and all works in it follow that. */
static void scopes(void)
{
    float      *x = cuda_memory((MANY + 2) * sizeof *x);
    int64_t    *wrong = cuda_memory(sizeof *wrong);
    tutti_work *each[3], *whole = NULL;
    int         i;

    cuda_fill(stream, x, MANY + 2, (float)(rank + 1));
    OK(tutti_coalescing_begin(NULL));
    OK(tutti_all_reduce_async(floats(x, 1), TUTTI_SUM, NULL, &each[0]));
    OK(tutti_all_reduce_async(floats(x + 1, MANY), TUTTI_SUM, NULL, &each[1]));
    OK(tutti_all_reduce_async(floats(x + 1 + MANY, 1), TUTTI_SUM, NULL, &each[2]));
    OK(tutti_coalescing_end(NULL, &whole));
    OK(tutti_work_wait(each[2]));
    cuda_compare(stream, x, MANY + 2, (float)(size * (size + 1) / 2), wrong);
    synchronize();
    CHECK(*wrong == 0);
    for (i = 0; i < 3; i++)
        tutti_work_free(each[i]);
    tutti_work_free(whole);
    cuda.cudaFree(x);
}

/* Host and device in one group, and a group beside it. */
static void groups(void)
{
    const int    some[2] = { 0, size - 1 };
    tutti_group *pair = NULL;
    int64_t      on_host = rank;

    OK(tutti_new_group(some, 2, NULL, &pair));
    OK(tutti_all_reduce(TUTTI_SPAN(&on_host, 1), TUTTI_SUM, NULL));
    CHECK(on_host == size * (size - 1) / 2);
    if (pair != TUTTI_NON_MEMBER) {
        CHECK(sum_now(pair, (float)(rank + 1)) == (float)(1 + size));
        OK(tutti_destroy_process_group(pair));
    }
    CHECK(sum_now(NULL, 2.0f) == 2.0f * (float)size);
    OK(tutti_barrier(NULL));
}

/* The last rank leaves; those that are left go on with devices, in a world that takes the place of theirs. */
static void shrink(void)
{
    const int    last = size - 1;
    tutti_group *rest = NULL;

    CHECK(sum_now(NULL, 2.0f) == 2.0f * (float)size);
    all_are_out();
    if (rank == last)
        return;
    OK(tutti_shrink_group(&last, 1, NULL, TUTTI_SHRINK_DEFAULT, NULL, &rest));
    CHECK(sum_now(rest, 1.0f) == (float)(size - 1));
}

static void ranks(void)
{
    CHECK(strcmp(tutti_get_backend_config(NULL), "cpu:native,cuda:native") == 0);
    operations();
    refusals();
    works();
    scopes();
}

/* Who has only told its stream to wait may destroy the group: what is under way ends first. */
static void destroyed_at_once(void)
{
    float      *x = cuda_memory(COUNT * sizeof *x);
    int64_t    *wrong = cuda_memory(sizeof *wrong);
    tutti_work *work = NULL;

    cuda_fill(stream, x, COUNT, (float)rank);
    OK(tutti_all_reduce_async(floats(x, COUNT), TUTTI_MAX, NULL, &work));
    OK(tutti_work_wait(work));
    OK(tutti_destroy_process_group(NULL));
    OK(tutti_work_wait_for(work, TUTTI_INFINITE)); /* it has ended, and was not given up */
    tutti_work_free(work);
    cuda_compare(stream, x, COUNT, (float)(size - 1), wrong);
    synchronize();
    CHECK(*wrong == 0);
}

/* ---- failures ---- */

static tutti_status sum_of(int64_t count)
{
    float             *x = cuda_memory((size_t)count * sizeof *x);
    const tutti_status st = tutti_all_reduce(floats(x, count), TUTTI_SUM, NULL);

    synchronize();
    return st;
}

/* The one that does not come has all the time it needs to hear why. */
static void shorten(void)
{
    OK(tutti_set_timeout(NULL, rank == 1 ? LONG_MS : SHORT_MS));
}

static void has_ended(tutti_status status)
{
    CHECK(sum_of(1) == status);
    CHECK(tutti_all_reduce(TUTTI_SPAN(&(int){ 1 }, 1), TUTTI_SUM, NULL) == status);
}

/* What a large call comes to that rank 1 comes to when rank 0's is over. */
static tutti_status without_rank_1(void)
{
    tutti_status st;

    shorten();
    if (rank == 1)
        hear_aside("late");
    st = sum_of(MANY);
    if (rank == 0 && st == TUTTI_E_TIMEOUT) {
        CHECK(strstr(tutti_last_error(), "(5000007 f32 of GPU 0) on group") != NULL);
        CHECK(strstr(tutti_last_error(), "rank 1") != NULL);
    }
    if (rank == 0)
        say_aside("late");
    return st;
}

/* Rank 1 does not come to the second call: the others end in time, with words that have it, and it ends with theirs. */
static void late(void)
{
    OK(sum_of(1));
    all_are_out();
    CHECK(without_rank_1() == TUTTI_E_TIMEOUT);
    has_ended(TUTTI_E_TIMEOUT);
}

/* The same in the first call of all, in which members meet: who comes later, or is not the first whose time is up, finds that
 * another one has given up. */
static void absent(void)
{
    const tutti_status st = without_rank_1();

    CHECK(st == TUTTI_E_TIMEOUT || (st == TUTTI_E_PEER && strstr(tutti_last_error(), "gave up") != NULL));
    CHECK(st == TUTTI_E_TIMEOUT || rank != 0 || size > 2);
    has_ended(st);
}

static atomic_bool goes_on;

static void hold_stream(void *arg)
{
    (void)arg;
    while (!atomic_load(&goes_on))
        sched_yield();
}

/* A stream that is held up is not waited for for ever: the others hear of it, in the call or in a message of host memory. */
static void stuck(void)
{
    int got = 0;

    OK(sum_of(1));
    all_are_out();
    OK(tutti_set_timeout(NULL, rank == 0 ? SHORT_MS : LONG_MS));
    if (rank == 0) {
        CHECK(cuda.cudaLaunchHostFunc(stream, hold_stream, NULL) == cudaSuccess);
        CHECK(tutti_all_reduce(floats(cuda_memory(MANY * sizeof(float)), MANY), TUTTI_SUM, NULL) == TUTTI_E_TIMEOUT);
        CHECK(strstr(tutti_last_error(), "GPU 0 is not through with what the stream of the call was given") != NULL);
        expect_no_error();
        atomic_store(&goes_on, true);
        synchronize();
    } else if (rank == 2) {
        CHECK(tutti_recv(TUTTI_SPAN(&got, 1), 0, 0, NULL, NULL) == TUTTI_E_TIMEOUT);
        /* from rank 0, or by way of rank 1 where it heard first: the cause is rank 0's either way */
        CHECK(strstr(tutti_last_error(), "on rank 0") != NULL);
        CHECK(strstr(tutti_last_error(), "GPU 0 is not through with what the stream of the call was given") != NULL);
    } else {
        CHECK(sum_of(MANY) == TUTTI_E_TIMEOUT);
    }
    has_ended(TUTTI_E_TIMEOUT);
}

/* It is held up for good: who is told so can end the group, and the process, though the GPU is through with nothing. */
static void stuck_for_good(void)
{
    OK(sum_of(1));
    all_are_out();
    OK(tutti_set_timeout(NULL, rank == 0 ? SHORT_MS : LONG_MS));
    if (rank == 0) {
        CHECK(cuda.cudaLaunchHostFunc(stream, hold_stream, NULL) == cudaSuccess);
        CHECK(tutti_all_reduce(floats(cuda_memory(MANY * sizeof(float)), MANY), TUTTI_SUM, NULL) == TUTTI_E_TIMEOUT);
    } else {
        CHECK(sum_of(MANY) == TUTTI_E_TIMEOUT);
    }
}

static int64_t now_ms(void)
{
    struct timespec t;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The stream takes most of the call's time, and then rank 1 is not there to make the detour with: it has what is left, not as much
 * again. */
static void one_time(void)
{
    enum { HELD = 10, HELD_MS = 900, TIME_MS = 10000, MOST_MS = 15000 };
    const int64_t begun_ms = now_ms();
    tutti_status  st;
    int           i;

    if (rank == 1) {
        hear_aside("over");
        return;
    }
    OK(tutti_set_timeout(NULL, TIME_MS));
    for (i = 0; i < HELD; i++)
        CHECK(cuda.cudaLaunchHostFunc(stream, take_long, (void *)(intptr_t)HELD_MS) == cudaSuccess);
    st = sum_of(1);
    CHECK(st == TUTTI_E_TIMEOUT || (st == TUTTI_E_PEER && strstr(tutti_last_error(), "gave up") != NULL));
    CHECK(now_ms() - begun_ms < MOST_MS);
    say_aside("over");
}

/* The runtime has gone, as it does when a process ends, with copies under way of which nobody knows any more: nobody waits for them. */
static void unloaded(void)
{
    const int64_t begun_ms = now_ms();

    OK(sum_of(1));
    CHECK(cuda.fake_cuda_unload != NULL);
    OK(tutti_barrier(NULL));
    cuda.fake_cuda_unload();
    OK(tutti_destroy_process_group(NULL));
    CHECK(now_ms() - begun_ms < LONG_MS / 2);
}

/* Rank 1 cannot read a variable of its own: it says so, and the others hear why there is no world. */
static void unreadable(void)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    const char        *own = getenv("RANK");
    const bool         is_it = own != NULL && strcmp(own, "1") == 0;

    opts.timeout_ms = LONG_MS;
    if (is_it)
        setenv("TUTTI_PINNED_MAX", "much", 1);
    CHECK(tutti_init_process_group(&opts) != TUTTI_OK);
    CHECK(strstr(tutti_last_error(), "TUTTI_PINNED_MAX") != NULL);
    CHECK(own != NULL);
    printf("rank %s of 2: fine\n", own);
}

/* Counts that differ are seen in the first piece, though both are larger than one. */
static void differ(void)
{
    OK(sum_of(1));
    all_are_out();
    CHECK(sum_of(rank == 0 ? 2 << 20 : 3 << 20) == TUTTI_E_MISMATCH);
}

/* One rank is in a call on memory of the host, another one in one of a device, by another way: both are told. */
static void apart(void)
{
    int          x = 1;
    tutti_status st;

    OK(sum_of(1));
    all_are_out();
    st = rank == 0 ? tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL) : sum_of(1);
    CHECK(st == TUTTI_E_MISMATCH && strstr(tutti_last_error(), "ranks wait for each other") != NULL);
}

static void *wait_for_work(void *arg)
{
    CHECK(tutti_work_wait_for(arg, TUTTI_INFINITE) == TUTTI_E_ABORTED);
    return NULL;
}

/* A thread waits for a call that waits for a rank: an abort ends both. */
static void abort_a_call(void)
{
    tutti_work *work = NULL;
    pthread_t   thread;

    if (rank == 0) {
        OK(tutti_all_reduce_async(floats(cuda_memory(MANY * sizeof(float)), MANY), TUTTI_SUM, NULL, &work));
        CHECK(tutti_work_wait_for(work, 50) == TUTTI_E_TIMEOUT);
        CHECK(pthread_create(&thread, NULL, wait_for_work, work) == 0);
        OK(tutti_abort_process_group(NULL));
        CHECK(pthread_join(thread, NULL) == 0);
        tutti_work_free(work);
        say_aside("aborted");
    } else {
        hear_aside("aborted");
    }
}

static void aborted(void)
{
    OK(sum_of(1));
    all_are_out();
    abort_a_call();
}

/* The same while members meet. */
static void aborted_early(void)
{
    abort_a_call();
}

/* ---- what is not there ---- */

/* Device memory is refused where the plug-in is not there, or the device; memory of the host is not. */
static void refused(void)
{
    float x = 1;

    CHECK(tutti_all_reduce(floats(&x, 1), TUTTI_SUM, NULL) == TUTTI_E_UNSUPPORTED);
    printf("refused: %s\n", tutti_last_error());
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL));
    OK(tutti_barrier(NULL));
}

/* ---- the program ---- */

static void prepare(const char *what, const char *scratch)
{
    join(strcmp(what, "alone") == 0 ? "cuda:native" : "native");
    OK(tutti_file_store_open(scratch, size, &aside));
    if (strcmp(what, "refused") == 0)
        return; /* there may be nothing to open */
    cuda_open();
    CHECK(cuda.cudaStreamCreate(&stream) == cudaSuccess);
    OK(tutti_set_stream(TUTTI_CUDA, stream));
}

/* A group for devices alone. */
static void alone(void)
{
    CHECK(strcmp(tutti_get_backend_config(NULL), "cuda:native") == 0);
    OK(tutti_barrier(NULL));
    CHECK(sum_now(NULL, 1.0f) == (float)size);
    OK(tutti_barrier(NULL));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = { { "order", order }, { "ranks", ranks }, { "groups", groups }, { "shrink", shrink }, { "alone", alone }, { "late", late },
                  { "absent", absent }, { "stuck", stuck }, { "stuck_for_good", stuck_for_good }, { "one_time", one_time },
                  { "unloaded", unloaded }, { "differ", differ }, { "apart", apart },
                  { "abort", aborted }, { "abort_early", aborted_early }, { "refused", refused } };
    size_t i;

    if (argc != 3) {
        fprintf(stderr, "usage: device_ranks CASE NEW_FILE\n");
        return 2;
    }
    if (strcmp(argv[1], "unreadable") == 0) {
        unreadable();
        return 0;
    }
    prepare(argv[1], argv[2]);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
    if (strcmp(argv[1], "ranks") == 0)
        destroyed_at_once();
    else if (strcmp(argv[1], "unloaded") != 0)
        OK(tutti_destroy_process_group(NULL));
    tutti_store_close(aside);
    if (strcmp(argv[1], "unloaded") != 0)
        expect_no_error();
    printf("rank %d of %d: fine\n", rank, size);
    return 0;
}
