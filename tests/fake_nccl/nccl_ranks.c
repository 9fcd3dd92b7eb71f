/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nccl_ranks.c
 * Goal    what backend "nccl" adds to the table: the order of streams, what NCCL has and has not, how it fails.
 * Method  one rank of several that `tutti run` starts, over the stand-in or, where there are GPUs, over NCCL; one case by name. What
 *         can be had of operations, types and sizes is the conformance matrix's. Says "rank R of P: fine" at the end; the case
 *         "order" says before that how many numbers were wrong, and leaves it to the caller what that means. */
#include "cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include "../early_store.h"

enum { ROUNDS = 30, COUNT = 1000, PIECES = 4, LONG_MS = 120000, SHORT_MS = 2000, LOOKS = 3 };

static int          rank, size;
static cudaStream_t stream;
static tutti_store *aside; /* where ranks meet that the group does not keep together any more */

/* store NULL: the launcher's. */
static void join(int64_t timeout_ms, tutti_store *store)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.timeout_ms = timeout_ms;
    opts.store = store;
    if (store != NULL) {
        opts.rank = atoi(getenv("RANK"));
        opts.world_size = atoi(getenv("WORLD_SIZE"));
    }
    opts.backend = "cpu:native,cuda:nccl";
    OK(tutti_init_process_group(&opts));
    rank = tutti_get_rank(NULL);
    size = tutti_get_world_size(NULL);
}

static void synchronize(void)
{
    CHECK(cuda.cudaStreamSynchronize(stream) == cudaSuccess);
}

/* ---- order ---- */

/* A stream writes, the group adds, the stream looks and writes again: blocking, and as works. Each step takes a time that nobody
 * knows, and the program waits for none of them. */
static void order(void)
{
    const float sum_of_ranks = (float)(size * (size - 1) / 2);
    float      *x[PIECES];
    int64_t    *wrong = cuda_memory(sizeof *wrong);
    tutti_work *work = NULL;
    int         round, k;

    for (k = 0; k < PIECES; k++)
        x[k] = cuda_memory(COUNT * sizeof(float));
    for (round = 0; round < ROUNDS; round++) {
        const float base = (float)round, sum = base * (float)size + sum_of_ranks;

        k = round % PIECES;
        cuda_fill(stream, x[k], COUNT, base + (float)rank);
        if (round % 2 == 0) {
            OK(tutti_all_reduce(cuda_span(x[k], COUNT, TUTTI_F32), TUTTI_SUM, NULL));
        } else {
            OK(tutti_all_reduce_async(cuda_span(x[k], COUNT, TUTTI_F32), TUTTI_SUM, NULL, &work));
            OK(tutti_work_wait(work));
            tutti_work_free(work);
        }
        cuda_compare(stream, x[k], COUNT, sum, wrong);
    }
    synchronize();
    OK(tutti_barrier(NULL));
    printf("rank %d: %lld of %d numbers are wrong\n", rank, (long long)*wrong, ROUNDS * COUNT);
    /* x stays: where waits are left out something may still work on it. */
}

/* ---- what it has ---- */

static float sum_now(tutti_group *group, float mine)
{
    float *x = cuda_memory(sizeof *x), sum;

    *x = mine;
    OK(tutti_all_reduce(cuda_span(x, 1, TUTTI_F32), TUTTI_SUM, group));
    synchronize();
    sum = *x;
    cuda.cudaFree(x);
    return sum;
}

static void operations(void)
{
    unsigned char *b = cuda_memory(2);
    float         *f = cuda_memory(2 * sizeof *f);
    uint16_t      *h = cuda_memory(sizeof *h), *u = cuda_memory(sizeof *u);

    b[0] = rank == 0;
    b[1] = 1;
    OK(tutti_all_reduce(cuda_span(&b[0], 1, TUTTI_BOOL), TUTTI_SUM, NULL));
    OK(tutti_all_reduce(cuda_span(&b[1], 1, TUTTI_BOOL), TUTTI_BAND, NULL));
    f[0] = 1.0f;
    f[1] = (float)rank;
    OK(tutti_all_reduce(cuda_span(&f[0], 1, TUTTI_F32), tutti_premul_sum(rank == 0 ? 0.5 : 2.0), NULL));
    OK(tutti_all_reduce(cuda_span(&f[1], 1, TUTTI_F32), TUTTI_AVG, NULL));
    *h = 0x3c00; /* 1, and 0.1 in f16 is 0x2e66 */
    OK(tutti_all_reduce(cuda_span(h, 1, TUTTI_F16), tutti_premul_sum(rank == 0 ? 0.1 : 0.0), NULL));
    synchronize();
    CHECK(b[0] == 1 && b[1] == 1);
    CHECK(f[0] == 0.5f + 2.0f * (float)(size - 1) && f[1] == (float)(size - 1) / 2.0f);
    CHECK(*h == 0x2e66);
    FAILS(tutti_all_reduce(cuda_span(u, 1, TUTTI_U16), TUTTI_SUM, NULL), TUTTI_E_UNSUPPORTED, "does not combine u16");
    FAILS(tutti_all_reduce(cuda_span(b, 1, TUTTI_U8), TUTTI_BXOR, NULL), TUTTI_E_UNSUPPORTED, "no bxor of u8");
    CHECK(sum_now(NULL, 1.0f) == (float)size); /* and the group goes on */
}

/* The host waits where it is asked to, and sees the end. */
static void host_waits(void)
{
    float      *x = cuda_memory(2 * COUNT * sizeof *x);
    tutti_work *works[2] = { NULL, NULL };
    int         which = -1, i;

    for (i = 0; i < 2 * COUNT; i++)
        x[i] = 1.0f;
    for (i = 0; i < 2; i++)
        OK(tutti_all_reduce_async(cuda_span(x + i * COUNT, COUNT, TUTTI_F32), TUTTI_SUM, NULL, &works[i]));
    OK(tutti_wait_any(works, 2, TUTTI_INFINITE, &which));
    CHECK(which >= 0 && x[which * COUNT] == (float)size && tutti_work_is_completed(works[which]));
    OK(tutti_work_status(works[which]));
    for (i = 0; i < 2; i++) {
        OK(tutti_work_wait_for(works[i], TUTTI_INFINITE));
        CHECK(x[i * COUNT] == (float)size && x[i * COUNT + COUNT - 1] == (float)size);
        tutti_work_free(works[i]);
    }
    cuda.cudaFree(x);
}

/* A scope has one ticket, and all works in it follow that. */
static void scopes(void)
{
    float      *x = cuda_memory(3 * sizeof *x);
    int64_t    *wrong = cuda_memory(sizeof *wrong);
    tutti_work *works[3], *whole = NULL;
    int         i;

    cuda_fill(stream, x, 3, (float)(rank + 1));
    OK(tutti_coalescing_begin(NULL));
    for (i = 0; i < 3; i++)
        OK(tutti_all_reduce_async(cuda_span(&x[i], 1, TUTTI_F32), TUTTI_SUM, NULL, &works[i]));
    OK(tutti_coalescing_end(NULL, &whole));
    OK(tutti_work_wait(works[2]));
    cuda_compare(stream, x, 3, (float)(size * (size + 1) / 2), wrong);
    synchronize();
    CHECK(*wrong == 0);
    for (i = 0; i < 3; i++)
        tutti_work_free(works[i]);
    tutti_work_free(whole);
}

/* Everybody sends first, to all, and then receives, in another order: lanes do not wait for each other. Each send is behind what
 * its stream was given; in the first round that has time, as lanes are made. */
static void exchange(float *out, float *in, float base)
{
    const int   n = size - 1;
    tutti_work *sent[8], *got[8];
    int         i;

    for (i = 0; i < n; i++) {
        const int to = (rank + 1 + i) % size;

        cuda_fill(stream, out + to * COUNT, COUNT, base + (float)(10 * rank + to));
        OK(tutti_isend(cuda_span(out + to * COUNT, COUNT, TUTTI_F32), to, 0, NULL, &sent[i]));
    }
    for (i = 0; i < n; i++) {
        const int from = (rank + size - 1 - i) % size;

        OK(tutti_irecv(cuda_span(in + from * COUNT, COUNT, TUTTI_F32), from, 0, NULL, &got[i]));
    }
    for (i = 0; i < n; i++) {
        const int from = (rank + size - 1 - i) % size;

        OK(tutti_work_wait(got[i]));
        CHECK(in[from * COUNT] == base + (float)(10 * from + rank) && in[from * COUNT + COUNT - 1] == in[from * COUNT]);
        CHECK(tutti_work_source_rank(got[i]) == from);
        tutti_work_free(got[i]);
    }
    for (i = 0; i < n; i++) {
        OK(tutti_work_wait(sent[i]));
        tutti_work_free(sent[i]);
    }
}

static void messages(void)
{
    float      *out = cuda_memory((size_t)size * COUNT * sizeof *out), *in = cuda_memory((size_t)size * COUNT * sizeof *in);
    tutti_work *work = NULL;
    int         round;

    CHECK(size <= 9);
    for (round = 0; round < ROUNDS; round++)
        exchange(out, in, (float)(100 * round));
    if (size > 1) { /* nobody sends to itself */
        FAILS(tutti_isend(cuda_span(out, 1, TUTTI_F32), (rank + 1) % size, 3, NULL, &work), TUTTI_E_UNSUPPORTED, "no tags");
        FAILS(tutti_irecv(cuda_span(in, 1, TUTTI_F32), TUTTI_ANY_SOURCE, 0, NULL, &work), TUTTI_E_UNSUPPORTED, "not from any");
    }
    cuda.cudaFree(out);
    cuda.cudaFree(in);
}

/* Host and device in one group, and a group of its own beside it. */
static void groups(void)
{
    const int    some[2] = { 0, size - 1 }, n = size > 1 ? 2 : 1;
    tutti_group *pair = NULL;
    int64_t      on_host = rank;
    tutti_span   elsewhere = cuda_span(&on_host, 1, TUTTI_I64);

    OK(tutti_new_group(some, n, NULL, &pair));
    OK(tutti_all_reduce(TUTTI_SPAN(&on_host, 1), TUTTI_SUM, NULL));
    CHECK(on_host == size * (size - 1) / 2);
    CHECK(sum_now(NULL, 2.0f) == 2.0f * (float)size);
    if (pair != TUTTI_NON_MEMBER) {
        CHECK(sum_now(pair, (float)(rank + 1)) == (n > 1 ? (float)(1 + size) : 1.0f));
        OK(tutti_destroy_process_group(pair));
    }
    elsewhere.device.index = 7;
    FAILS(tutti_all_reduce(elsewhere, TUTTI_SUM, NULL), TUTTI_E_ARG, "a buffer is of GPU 7");
    OK(tutti_barrier(NULL));
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

/* A receive of no elements ends with its send, not before. */
static void empty_message(void)
{
    tutti_work *work = NULL;

    if (rank == 0 && size > 1) {
        hear_aside("empty");
        OK(tutti_send(cuda_span(NULL, 0, TUTTI_F32), 1, 0, NULL));
    } else if (rank == 1) {
        OK(tutti_irecv(cuda_span(NULL, 0, TUTTI_F32), 0, 0, NULL, &work));
        CHECK(tutti_work_wait_for(work, 50) == TUTTI_E_TIMEOUT);
        say_aside("empty");
        OK(tutti_work_wait(work));
        tutti_work_free(work);
    }
}

static void ranks(void)
{
    operations();
    host_waits();
    scopes();
    messages();
    empty_message();
    groups();
}

/* Who has only told its stream to wait may destroy the group: what is under way ends first. */
static void destroyed_at_once(void)
{
    float      *x = cuda_memory(COUNT * sizeof *x);
    int64_t    *wrong = cuda_memory(sizeof *wrong);
    tutti_work *work = NULL;

    cuda_fill(stream, x, COUNT, (float)rank);
    OK(tutti_all_reduce_async(cuda_span(x, COUNT, TUTTI_F32), TUTTI_MAX, NULL, &work));
    OK(tutti_work_wait(work));
    OK(tutti_destroy_process_group(NULL));
    OK(tutti_work_wait_for(work, TUTTI_INFINITE)); /* it has ended, and was not given up */
    tutti_work_free(work);
    cuda_compare(stream, x, COUNT, (float)(size - 1), wrong);
    synchronize();
    CHECK(*wrong == 0);
}

/* The status of one more all_reduce, once the device is through, or not. */
static tutti_status one_more(void)
{
    float       *x = cuda_memory(sizeof *x);
    tutti_work  *work = NULL;
    tutti_status st = tutti_all_reduce_async(cuda_span(x, 1, TUTTI_F32), TUTTI_SUM, NULL, &work);

    if (st != TUTTI_OK)
        return st;
    st = tutti_work_wait_for(work, TUTTI_INFINITE);
    if (st != TUTTI_OK)
        CHECK(tutti_work_is_completed(work) && tutti_work_status(work) == st);
    tutti_work_free(work);
    return st;
}

/* ---- dividing a group ---- */

/* What this rank has asked NCCL for. */
typedef struct counts {
    int ids, inits, splits;
} counts;

static void *of_stand_in(const char *name)
{
    void *nccl = dlopen(getenv("TUTTI_NCCL_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
    void *address = nccl != NULL ? dlsym(nccl, name) : NULL;

    CHECK(address != NULL);
    return address;
}

static int communicators_now(void)
{
    void *address = of_stand_in("fake_nccl_alive");
    int (*tell)(void);

    memcpy(&tell, &address, sizeof address);
    return tell();
}

static counts counts_now(void)
{
    void  *address = of_stand_in("fake_nccl_counts");
    void (*tell)(int *, int *, int *);
    counts c = { 0, 0, 0 };

    memcpy(&tell, &address, sizeof address);
    tell(&c.ids, &c.inits, &c.splits);
    return c;
}

/* Since before: a split, also by those in no part, and no id; or no split, and an id for each part, from its first member. */
static void check_made(counts before, const tutti_group *part, bool splits)
{
    const counts now = counts_now();
    const bool   is_in = part != TUTTI_NON_MEMBER;

    CHECK(now.splits - before.splits == (splits ? 1 : 0));
    CHECK(now.inits - before.inits == (!splits && is_in ? 1 : 0));
    CHECK(now.ids - before.ids == (!splits && is_in && tutti_get_rank(part) == 0 ? 1 : 0));
}

/* The part works, and so does the whole, in either order. */
static void check_sums(tutti_group *part, tutti_group *whole, int n)
{
    if (part != TUTTI_NON_MEMBER) {
        CHECK(tutti_get_world_size(part) == n);
        CHECK(sum_now(part, 2.0f) == 2.0f * (float)n);
    }
    CHECK(sum_now(whole, 1.0f) == (float)tutti_get_world_size(whole));
    if (part != TUTTI_NON_MEMBER)
        CHECK(sum_now(part, 3.0f) == 3.0f * (float)n);
}

/* Some are left out. Calls that were issued before are behind nothing of it, and are through first. */
static tutti_group *divide_by_lists(bool splits)
{
    const int        some[2] = { size > 2 ? size - 1 : 0, 0 }; /* in any order */
    const int *const lists[1] = { some };
    const int        n = size > 2 ? 2 : 1;
    float           *x = cuda_memory(COUNT * sizeof *x);
    int64_t         *wrong = cuda_memory(sizeof *wrong);
    tutti_group     *part = NULL;
    tutti_work      *work = NULL;
    counts           before;

    cuda_fill(stream, x, COUNT, 1.0f);
    OK(tutti_all_reduce_async(cuda_span(x, COUNT, TUTTI_F32), TUTTI_SUM, NULL, &work));
    before = counts_now();
    OK(tutti_split_group(NULL, lists, &n, 1, NULL, &part));
    check_made(before, part, splits);
    OK(tutti_work_wait(work));
    tutti_work_free(work);
    cuda_compare(stream, x, COUNT, (float)size, wrong);
    check_sums(part, NULL, n);
    synchronize();
    CHECK(*wrong == 0);
    return part;
}

static tutti_group *divide_by_color(tutti_group *whole, int color, int n, bool splits)
{
    const counts before = counts_now();
    tutti_group *part = NULL;

    OK(tutti_split_group_by_color(whole, color, NULL, &part));
    check_made(before, part, splits);
    check_sums(part, whole, n);
    return part;
}

/* Groups out of groups, a part of a part among them; one with other backends is none of NCCL's business. */
static void divide(bool splits)
{
    tutti_group_options on_host = TUTTI_GROUP_OPTIONS;
    const int           all[1] = { 0 }, one = 1;
    const int *const    lists[1] = { all };
    tutti_group        *some = divide_by_lists(splits), *whole, *part = NULL;
    counts              before;

    whole = divide_by_color(NULL, 0, size, splits);
    divide_by_color(NULL, rank % 2, (size + 1 - rank % 2) / 2, splits);
    part = divide_by_color(whole, rank == 0 ? -1 : 3, size - 1, splits);
    CHECK((part == TUTTI_NON_MEMBER) == (rank == 0));
    if (some != TUTTI_NON_MEMBER)
        divide_by_color(some, 0, tutti_get_world_size(some), splits);
    before = counts_now();
    on_host.backend = "native";
    OK(tutti_split_group(NULL, lists, &one, 1, &on_host, &part));
    check_made(before, TUTTI_NON_MEMBER, false);
    OK(tutti_destroy_process_group(whole));
    CHECK(sum_now(NULL, 1.0f) == (float)size);
    OK(tutti_barrier(NULL));
}

static void split(void)
{
    divide(true);
}

static void split_by_ids(void)
{
    divide(false);
}

/* A member that does not come, and is in no part, costs the others half of their time. */
static void split_absent(void)
{
    const int        first[8] = { 0, 1, 2, 3, 4, 5, 6, 7 }, n = size - 1;
    const int *const lists[1] = { first };
    tutti_group     *part = NULL;
    counts           before;

    CHECK(size <= 9);
    CHECK(sum_now(NULL, 1.0f) == (float)size);
    if (rank == size - 1) {
        hear_aside("split");
        return;
    }
    OK(tutti_set_timeout(NULL, 5 * SHORT_MS));
    before = counts_now();
    OK(tutti_split_group(NULL, lists, &n, 1, NULL, &part));
    check_made(before, part, false);
    CHECK(sum_now(part, 1.0f) == (float)n);
    OK(tutti_barrier(part));
    if (rank == 0)
        say_aside("split");
}

static int64_t now_ms(void)
{
    struct timespec t;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A member that fails before it has a group tells the others, who do not wait half of their time for it; and their next calls have the
 * number of its own. */
static void split_refused(void)
{
    tutti_group_options own = TUTTI_GROUP_OPTIONS;
    const counts        before = counts_now();
    const int64_t       begin = now_ms();
    tutti_group        *part = NULL;

    own.backend = rank == 1 ? "cuda:nowhere" : NULL;
    if (rank == 1) {
        CHECK(tutti_split_group_by_color(NULL, -1, &own, &part) == TUTTI_E_ARG && part == TUTTI_NO_GROUP);
    } else {
        OK(tutti_split_group_by_color(NULL, 0, &own, &part));
        CHECK(now_ms() - begin < LONG_MS / 2);
        check_made(before, part, false);
        CHECK(sum_now(part, 1.0f) == (float)(size - 1));
    }
    CHECK(sum_now(NULL, 1.0f) == (float)size);
    OK(tutti_barrier(NULL));
}

/* One rank's NCCL fails to split: all hear of that, and what was divided is broken, on the device. */
static void split_error(void)
{
    tutti_group *part = NULL;
    int64_t      on_host = 1;

    CHECK(sum_now(NULL, 1.0f) == (float)size);
    all_are_out();
    CHECK(tutti_split_group_by_color(NULL, rank == 1 ? -1 : 0, NULL, &part) == TUTTI_E_BACKEND && part == TUTTI_NO_GROUP);
    CHECK(strstr(tutti_last_error(), "split on group") != NULL && strstr(tutti_last_error(), "NCCL says 'internal error'") != NULL);
    OK(tutti_all_reduce(TUTTI_SPAN(&on_host, 1), TUTTI_SUM, NULL));
    CHECK(on_host == size && one_more() == TUTTI_E_BACKEND);
}

/* The old communicator has failed when the new one is there: both are given back. */
static void split_lost(void)
{
    CHECK(sum_now(NULL, 1.0f) == (float)size && communicators_now() == 1);
    split_error();
    CHECK(communicators_now() == 0);
}

/* ---- failures ---- */

/* The one that does not come has all the time it needs to hear why. */
static void shorten(void)
{
    OK(tutti_set_timeout(NULL, rank == 1 ? LONG_MS : SHORT_MS));
}

/* Rank 1 does not come to the second call: the others end in time, with words that have it, and it ends with theirs. */
static void late(void)
{
    OK(one_more());
    all_are_out();
    shorten();
    if (rank == 1)
        hear_aside("late");
    CHECK(one_more() == TUTTI_E_TIMEOUT);
    if (rank == 0) {
        CHECK(strstr(tutti_last_error(), "all_reduce #2 (sum, 1 f32) on group") != NULL);
        CHECK(strstr(tutti_last_error(), "rank 1 (last in all_reduce #1 (sum, 1 f32))") != NULL);
        say_aside("late");
    } else if (rank == 1) {
        CHECK(strstr(tutti_last_error(), "another rank has ended group") != NULL);
    }
    CHECK(one_more() == TUTTI_E_TIMEOUT);
}

/* An error that NCCL tells by itself is seen while nobody calls it; the others, of whom NCCL tells nothing, hear of it. */
static void error(void)
{
    OK(one_more());
    OK(one_more());
    all_are_out();
    CHECK(one_more() == TUTTI_E_BACKEND);
    CHECK(strstr(tutti_last_error(), "all_reduce #3") != NULL && strstr(tutti_last_error(), "NCCL says 'internal error'") != NULL);
    CHECK(rank == 0 || strstr(tutti_last_error(), "another rank has ended group") != NULL);
    CHECK(one_more() == TUTTI_E_BACKEND);
}

/* The same where it never comes: NCCL does not even take the call then. */
static void absent(void)
{
    shorten();
    if (rank == 1)
        hear_aside("absent");
    CHECK(one_more() == TUTTI_E_TIMEOUT);
    if (rank == 0) {
        CHECK(strstr(tutti_last_error(), "all_reduce #1 (sum, 1 f32) on group") != NULL);
        CHECK(strstr(tutti_last_error(), "rank 1 (not heard of)") != NULL);
        say_aside("absent");
    } else if (rank == 1) {
        CHECK(strstr(tutti_last_error(), "another rank has ended group") != NULL);
    }
}

/* A rank gives up before its first call: who is in it hears of that, long before time is up. */
static void left_early(void)
{
    if (rank == 1)
        OK(tutti_abort_process_group(NULL));
    CHECK(one_more() == TUTTI_E_ABORTED);
}

static void *wait_for_work(void *arg)
{
    const tutti_status st = tutti_work_wait_for(arg, TUTTI_INFINITE);

    CHECK(st == TUTTI_E_ABORTED);
    return NULL;
}

/* A thread waits for a device that waits for a rank: an abort ends both. */
static void aborted(void)
{
    float      *x = cuda_memory(sizeof *x);
    tutti_work *work = NULL;
    pthread_t   thread;

    OK(one_more());
    all_are_out();
    if (rank == 0) {
        OK(tutti_all_reduce_async(cuda_span(x, 1, TUTTI_F32), TUTTI_SUM, NULL, &work));
        CHECK(tutti_work_wait_for(work, 50) == TUTTI_E_TIMEOUT); /* the device was told, and is not through */
        CHECK(strstr(tutti_last_error(), "it goes on") != NULL);
        CHECK(pthread_create(&thread, NULL, wait_for_work, work) == 0);
        OK(tutti_abort_process_group(NULL));
        CHECK(pthread_join(thread, NULL) == 0);
        tutti_work_free(work);
        say_aside("aborted");
    } else {
        hear_aside("aborted");
    }
    CHECK(one_more() == TUTTI_E_ABORTED);
}

/* A group that one member refuses for its arguments, before it comes to the backend, in which the others wait. They are told why, long
 * before their time is up. */
static void one_refuses(int who)
{
    const int           twice[2] = { who, who };
    const int64_t       began_ms = now_ms();
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    opts.backend = "cuda:nccl";
    if (rank == who)
        FAILS(tutti_new_group(twice, 2, &opts, &group), TUTTI_E_ARG, "is there twice");
    else
        FAILS(tutti_new_group(NULL, 0, &opts, &group), TUTTI_E_MISMATCH, "cannot make it: new_group: rank");
    CHECK(now_ms() - began_ms < LONG_MS / 2);
    OK(tutti_barrier(NULL));
}

/* Without member 0 the others wait for NCCL's id, without another one for NCCL. */
static void refusal(void)
{
    one_refuses(0);
    one_refuses(1);
    CHECK(sum_now(NULL, 1.0f) == (float)size);
}

/* Over a store whose waits end early, each of them: member 0, which makes NCCL's id, comes when the others have looked for it a few
 * times, and is no other's refusal. */
static void early(void)
{
    const char         *looked = "looked";
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    early_told.at = aside;
    early_told.key = looked;
    opts.backend = "cuda:nccl";
    OK(tutti_barrier(NULL));
    if (rank == 0)
        OK(tutti_store_wait(aside, &looked, 1, LONG_MS / 2));
    else
        atomic_store(&early_told.left, LOOKS);
    OK(tutti_new_group(NULL, 0, &opts, &group));
    CHECK(sum_now(group, 1.0f) == (float)size);
    OK(tutti_destroy_process_group(group));
}

/* ---- what is not there ---- */

/* Whatever is missing: a group is made of the backends that are there, and memory of the host goes through; memory of GPUs is
 * refused when it comes, groups of this backend alone when they are made; and who asks is told that there is none. */
static int refused(void)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    int64_t            on_host = 1;

    opts.timeout_ms = LONG_MS;
    opts.backend = "nccl";
    CHECK(tutti_init_process_group(&opts) == TUTTI_E_UNSUPPORTED);
    opts.backend = "cpu:native,cuda:nccl";
    CHECK(!tutti_is_nccl_available() && !tutti_is_backend_available(opts.backend));
    OK(tutti_init_process_group(&opts));
    OK(tutti_all_reduce(TUTTI_SPAN(&on_host, 1), TUTTI_SUM, NULL));
    OK(tutti_barrier(NULL));
    CHECK(on_host == tutti_get_world_size(NULL));
    CHECK(tutti_all_reduce(cuda_span(NULL, 0, TUTTI_F32), TUTTI_SUM, NULL) == TUTTI_E_UNSUPPORTED);
    printf("refused: %s\n", tutti_last_error());
    OK(tutti_destroy_process_group(NULL));
    return 0;
}

/* ---- the program ---- */

static void at_rank_0(const char *variable, const char *value)
{
    const char *own = getenv("RANK");

    if (own != NULL && strcmp(own, "0") == 0)
        setenv(variable, value, 1);
}

/* The world's, in a file beside the one that scratch names; it stays. */
static tutti_store *open_early(const char *scratch)
{
    tutti_store *file = NULL, *store;
    char         path[512];

    snprintf(path, sizeof path, "%s-early", scratch);
    OK(tutti_file_store_open(path, atoi(getenv("WORLD_SIZE")), &file));
    store = early_store_around(file);
    CHECK(store != NULL);
    return store;
}

static void prepare(const char *what, const char *scratch)
{
    if (strcmp(what, "error") == 0)
        at_rank_0("FAKE_NCCL_ERROR_AT", "3");
    if (strcmp(what, "split_mixed") == 0)
        at_rank_0("FAKE_NCCL_VERSION", "21700");
    if (strcmp(what, "split_error") == 0)
        at_rank_0("FAKE_NCCL_SPLIT_ERROR", "1");
    join(LONG_MS, strcmp(what, "early") == 0 ? open_early(scratch) : NULL);
    OK(tutti_file_store_open(scratch, size, &aside));
    cuda_open();
    CHECK(cuda.cudaStreamCreate(&stream) == cudaSuccess);
    OK(tutti_set_stream(TUTTI_CUDA, stream));
    CHECK(tutti_get_stream(TUTTI_CUDA) == stream);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = { { "order", order }, { "ranks", ranks }, { "late", late }, { "absent", absent },
                  { "left_early", left_early }, { "error", error }, { "abort", aborted }, { "split", split },
                  { "split_by_ids", split_by_ids }, { "split_mixed", split_by_ids }, { "split_absent", split_absent },
                  { "split_refused", split_refused }, { "split_error", split_error }, { "split_lost", split_lost }, { "refusal", refusal }, { "early", early } };
    size_t i;

    if (argc != 3) {
        fprintf(stderr, "usage: nccl_ranks CASE NEW_FILE\n");
        return 2;
    }
    if (strcmp(argv[1], "asked") == 0)
        return printf("nccl is %s\n", tutti_is_nccl_available() ? "available" : "not available") < 0;
    if (strcmp(argv[1], "refused") == 0)
        return refused();
    prepare(argv[1], argv[2]);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
    if (strcmp(argv[1], "ranks") == 0)
        destroyed_at_once();
    else
        OK(tutti_destroy_process_group(NULL));
    tutti_store_close(aside);
    CHECK(cuda.cudaGetLastError() == cudaSuccess); /* "not ready", of our looks at events, is not left for the program */
    printf("rank %d of %d: fine\n", rank, size);
    return 0;
}
