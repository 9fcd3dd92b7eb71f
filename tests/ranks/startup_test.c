/* SPDX-License-Identifier: BSD-3-Clause
 *
 * startup_test.c
 * Goal    256 processes of one host start, add up and leave, with no more descriptors than a shell gives them, and
 *         without a right that a user does not have; what each of them holds is bounded; the store is asked a few
 *         things by each rank, not something about every other.
 * Method  real processes, with rank 0 serving the store, which needs the most descriptors of all; limits are set and
 *         capabilities dropped before joining. What is asked is counted by a store in front of another one. */
#include <dirent.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backend/native/native.h"
#include "group/group.h"
#include "harness/harness.h"
#include "store/store.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SOME = 20, MANY = 70, THREADS = 24 }; /* a process has some 100 MiB there */
#else
enum { SOME = 100, MANY = 256, THREADS = 64 };
#endif
enum { FILES = 1024, COUNT = 3000 };
enum { STORED, JOINED, COUNTED, GROUPED, LEFT }; /* counters of the harness */

/* What a process may open, and whom it may not outdo: the kernel lets a user without privileges have no more descriptors
 * on their way between processes than this. */
static void be_like_a_user(void)
{
    const struct rlimit             files = { .rlim_cur = FILES, .rlim_max = FILES };
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct   none[2] = { { 0 } };

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(syscall(SYS_capset, &head, none), 0);
}

static void join_by_tcp(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    char               url[128];

    snprintf(url, sizeof url, "tcp://127.0.0.1:%d?rank=%d&world_size=%d", t->port, t->rank, t->size);
    opts.init_method = url;
    opts.timeout_ms = t->limit_ms / 2;
    OK(tutti_init_process_group(&opts));
}

/* Descriptors, and how many are connected TCP sockets. */
static int count_open(int *connected_out)
{
    DIR           *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    int            n = 0;

    assert_non_null(dir);
    *connected_out = 0;
    while ((entry = readdir(dir)) != NULL) {
        struct sockaddr_storage peer;
        socklen_t               size = sizeof peer;

        n += entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(dir);
        if (entry->d_name[0] != '.' && getpeername(atoi(entry->d_name), (struct sockaddr *)&peer, &size) == 0)
            *connected_out += peer.ss_family != AF_UNIX;
    }
    closedir(dir);
    return n;
}

static void add_up(const tt_ctx *t, int count)
{
    float *x = malloc((size_t)count * sizeof *x);
    int    i;

    assert_non_null(x);
    for (i = 0; i < count; i++)
        x[i] = (float)((t->rank + i) % 7);
    OK(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, NULL));
    for (i = 0; i < count; i++) {
        float sum = 0;
        int   r;

        for (r = 0; r < t->size; r++)
            sum += (float)((r + i) % 7);
        assert_true(x[i] == sum);
    }
    free(x);
}

static void a_host_full(tt_ctx *t)
{
    int n_open, connected;

    be_like_a_user();
    join_by_tcp(t);
    n_open = count_open(&connected);
    /* All hold what they keep: nobody leaves before the last has counted. */
    tt_post(t, JOINED);
    tt_await(t, JOINED, (uint32_t)t->size);
    if (t->rank != 0) {
        assert_in_range(n_open, 0, (t->size > 128 ? 2 : 3) * t->size + 40);
        assert_int_equal(connected, 1); /* to the store */
    } else {
        assert_in_range(n_open, 0, 4 * t->size + 40); /* with the store's connections */
    }
    add_up(t, 1);
    add_up(t, COUNT);
    OK(tutti_barrier(NULL));
    OK(tutti_destroy_process_group(NULL));
}

/* ---- what the store is asked ------------------------------------------------------------------------ */

/* A store that counts the requests to another one. */
typedef struct counting {
    tutti_store  base; /* first */
    tutti_store *inner;
    _Atomic int  n;
} counting;

static tutti_store *asked(tutti_store *store)
{
    counting *c = (counting *)store;

    atomic_fetch_add(&c->n, 1);
    return c->inner;
}

static tutti_status count_set(tutti_store *store, const char *key, const void *val, size_t len, int64_t deadline_ns)
{
    return tti_store_set_until(asked(store), key, val, len, deadline_ns);
}

static tutti_status count_get(tutti_store *store, const char *key, int64_t deadline_ns, tutti_bytes *val_out)
{
    return tti_store_get_until(asked(store), key, deadline_ns, val_out);
}

static tutti_status count_add(tutti_store *store, const char *key, int64_t delta, int64_t deadline_ns, int64_t *sum_out)
{
    return tti_store_add_until(asked(store), key, delta, deadline_ns, sum_out);
}

static tutti_status count_wait_all(tutti_store *store, const char *const *keys, size_t n, int64_t deadline_ns)
{
    return tti_store_wait_until(asked(store), keys, n, deadline_ns);
}

static tutti_status count_check(tutti_store *store, const char *const *keys, size_t n, int64_t deadline_ns, bool *all_out)
{
    return tti_store_check_until(asked(store), keys, n, deadline_ns, all_out);
}

static tutti_status count_compare_set(tutti_store *store, const char *key, const void *expected, size_t expected_len,
                                      const void *desired, size_t desired_len, int64_t deadline_ns, tutti_bytes *val_out)
{
    return tti_store_compare_set_until(asked(store), key, expected, expected_len, desired, desired_len, deadline_ns,
                                       val_out);
}

static tutti_status count_multi_get(tutti_store *store, const char *const *keys, size_t n, int64_t deadline_ns,
                                    tutti_bytes *vals_out)
{
    return tti_store_multi_get_until(asked(store), keys, n, deadline_ns, vals_out);
}

static void count_close(tutti_store *store)
{
    tutti_store_close(((counting *)store)->inner);
}

static const tutti_store_ops counting_ops = {
    .api = TUTTI_STORE_API,
    .size = sizeof(tutti_store_ops),
    .scheme = "counting",
    .set = count_set,
    .get = count_get,
    .add = count_add,
    .close = count_close,
    .wait_all = count_wait_all,
    .check = count_check,
    .compare_set = count_compare_set,
    .multi_get = count_multi_get,
};

/* Requests of a rank, however many others there are: 7 and 2, and some for each time that others come late, which they do
 * on a busy machine. */
enum { OF_A_WORLD = 30, OF_A_GROUP = 12 };

/* Ranks are threads of a process: one store for all of them. */
static counting counted;

static void make_worlds_and_a_group(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *world = NULL, *group = NULL;
    int               *all = tt_alloc(t, (size_t)t->size * sizeof *all);
    float              x = 1.0f;
    int                i;

    for (i = 0; i < t->size; i++)
        all[i] = i;
    if (t->rank == 0) {
        counted = (counting){ .base = { .ops = &counting_ops } };
        OK(tutti_hash_store_open(&counted.inner));
        OK(tutti_store_adopt(&counted.base));
    }
    tt_post(t, STORED);
    tt_await(t, STORED, (uint32_t)t->size);
    opts.store = &counted.base;
    opts.rank = t->rank;
    opts.world_size = t->size;
    opts.timeout_ms = t->limit_ms / 2;
    OK(tutti_create_process_group(&opts, &world));
    tutti_use_group(world);
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, world));
    assert_true(x == (float)t->size);
    tt_post(t, JOINED);
    tt_await(t, JOINED, (uint32_t)t->size);
    if (t->rank == 0)
        assert_in_range(atomic_load(&counted.n), 1, OF_A_WORLD * t->size);
    tt_post(t, COUNTED);
    tt_await(t, COUNTED, (uint32_t)t->size);
    OK(tutti_new_group(all, t->size, NULL, &group));
    tt_post(t, GROUPED);
    tt_await(t, GROUPED, (uint32_t)t->size);
    if (t->rank == 0)
        assert_in_range(atomic_load(&counted.n), 1, (OF_A_WORLD + OF_A_GROUP) * t->size);
    OK(tutti_destroy_process_group(world));
    tutti_use_group(NULL);
    tt_post(t, LEFT);
    tt_await(t, LEFT, (uint32_t)t->size);
    if (t->rank == 0)
        tutti_store_close(&counted.base);
}

/* ---- connections between hosts ---------------------------------------------------------------------- */

static int log2_of(int n)
{
    int log2 = 0;

    while (1 << log2 < n)
        log2++;
    return log2;
}

static int connections(tt_ctx *t)
{
    tutti_group *group = NULL;

    OK(tti_group_resolve(t->group, "connections", &group));
    return tti_native_connections(group->backend);
}

/* Every rank counts as a host of its own. Others are reached in steps, also from several roots. */
static void steps_need_few_connections(tt_ctx *t)
{
    float x;
    int   root;

    for (root = 0; root < t->size; root += t->size / 3) {
        OK(tutti_barrier(t->group));
        x = (float)(t->rank == root ? root : -1);
        OK(tutti_broadcast(TUTTI_SPAN(&x, 1), root, t->group));
        assert_true(x == (float)root);
    }
    tt_post(t, COUNTED);
    tt_await(t, COUNTED, (uint32_t)t->size);
    assert_in_range(connections(t), 1, 5 * log2_of(t->size));
    tt_post(t, LEFT);
    tt_await(t, LEFT, (uint32_t)t->size);
}

/* ---- who does not come ------------------------------------------------------------------------------ */

static tutti_store *common;

static void who_stays_away_is_named_by_all(tt_ctx *t)
{
    const int          away = t->size / 2 + 1;
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *world = NULL;
    char               words[128];

    if (t->rank == 0)
        OK(tutti_hash_store_open(&common));
    tt_post(t, STORED);
    tt_await(t, STORED, (uint32_t)t->size);
    opts.store = common;
    opts.rank = t->rank;
    opts.world_size = t->size;
    opts.timeout_ms = 4000;
    if (t->rank != away) {
        assert_int_equal(tutti_create_process_group(&opts, &world), TUTTI_E_TIMEOUT);
        snprintf(words, sizeof words, "rank %d did not come (%d of %d here)", away, t->size - 1, t->size);
        if (strstr(tutti_last_error(), words) == NULL)
            fail_msg("'%s' is not in: %s", words, tutti_last_error());
    }
    tt_post(t, LEFT);
    tt_await(t, LEFT, (uint32_t)t->size);
    if (t->rank == 0)
        tutti_store_close(common);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(make_worlds_and_a_group, .ranks = THREADS, .init = TT_INIT_NONE, .transports = "threads,threads-tcp",
                .limit_ms = 60000),
        TT_TEST(who_stays_away_is_named_by_all, .ranks = THREADS, .init = TT_INIT_NONE, .transports = "threads",
                .limit_ms = 60000),
        TT_TEST(steps_need_few_connections, .ranks = THREADS, .transports = "threads-tcp", .limit_ms = 60000),
        TT_TEST(a_host_full, .ranks = SOME, .init = TT_INIT_NONE, .limit_ms = 60000),
        TT_TEST(a_host_full, .ranks = MANY, .init = TT_INIT_NONE, .limit_ms = 120000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
