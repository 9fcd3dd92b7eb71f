/* SPDX-License-Identifier: BSD-3-Clause
 *
 * encrypted_test.c
 * Goal    with TUTTI_TLS=1 nothing that ranks say to each other, or to the store, can be read on the network: no key, no
 *         value, no byte of a tensor; without, all of that can, and still not the secret. Values are what they are
 *         without. Processes that do not agree on it hear so at once.
 * Method  two hosts, on one of which rank 0 reads every packet of all its interfaces (AF_PACKET) while the job works; the
 *         same run without TLS shows that what is looked for would be found. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <sys/socket.h>
#include "harness/harness.h"
#include <tutti/plugin/store.h>
#include <tutti/tutti.h>

enum { READY, LISTENING, DONE, JOINED, TENSOR_BYTES = 256 << 10, PACKET_MAX = 1 << 17, SECRET_DIGITS = 64 };

static const char key_text[] = "a-key-that-is-looked-for-on-the-wire";
static const char value_text[] = "a value that is looked for on the wire";
static const char tensor_text[32] = "tensor bytes that are looked for"; /* without a NUL */

static void must(tutti_status st)
{
    if (st != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
}

/* ---- who listens ---- */

typedef struct listener {
    int         fd;
    atomic_bool end;
    uint8_t     secret[SECRET_DIGITS / 2];
    char        digits[SECRET_DIGITS + 1];
    size_t      bytes, keys, values, tensors, secrets; /* what was seen, and how often */
    uint8_t     packet[PACKET_MAX];
} listener;

static bool has(const listener *l, size_t n, const void *what, size_t bytes)
{
    return memmem(l->packet, n, what, bytes) != NULL;
}

static void *listen_main(void *arg)
{
    listener *l = arg;
    ssize_t   n;

    for (;;) {
        struct pollfd set = { .fd = l->fd, .events = POLLIN };

        if (poll(&set, 1, 20) == 0 && atomic_load(&l->end))
            return NULL;
        while ((n = recv(l->fd, l->packet, sizeof l->packet, MSG_DONTWAIT)) > 0) {
            l->bytes += (size_t)n;
            l->keys += has(l, (size_t)n, key_text, sizeof key_text - 1);
            l->values += has(l, (size_t)n, value_text, sizeof value_text - 1);
            l->tensors += has(l, (size_t)n, tensor_text, sizeof tensor_text);
            l->secrets += has(l, (size_t)n, l->secret, sizeof l->secret) || has(l, (size_t)n, l->digits, SECRET_DIGITS);
        }
    }
}

static void read_secret(listener *l)
{
    FILE  *file = fopen(getenv("TUTTI_SECRET_FILE"), "re");
    size_t i;

    assert_non_null(file);
    assert_int_equal(fread(l->digits, 1, SECRET_DIGITS, file), SECRET_DIGITS);
    fclose(file);
    for (i = 0; i < sizeof l->secret; i++) {
        char two[3] = { l->digits[2 * i], l->digits[2 * i + 1], '\0' };

        l->secret[i] = (uint8_t)strtoul(two, NULL, 16);
    }
}

static void open_listener(listener *l)
{
    const int room = 64 << 20;

    l->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    if (l->fd < 0) {
        print_message("the machine lets nobody read packets: %s\n", strerror(errno));
        exit(TT_SKIPPED);
    }
    (void)setsockopt(l->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
}

/* ---- the job ---- */

static tutti_store *open_store(tt_ctx *t)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;

    options.host = t->addr;
    options.port = t->port;
    options.is_master = t->rank == 0;
    options.timeout_ms = t->limit_ms / 2;
    must(tutti_tcp_store_open(&options, &store));
    return store;
}

static void use_store(tt_ctx *t, tutti_store *store)
{
    tutti_bytes value = { 0 };

    if (t->rank == t->size - 1) /* on the other host */
        must(tutti_store_set(store, key_text, value_text, sizeof value_text));
    must(tutti_store_get(store, key_text, 0, &value));
    assert_int_equal(value.size, sizeof value_text);
    assert_string_equal(value.data, value_text);
    tutti_bytes_free(&value);
}

static void fill(uint8_t *out)
{
    size_t i;

    for (i = 0; i < TENSOR_BYTES; i++)
        out[i] = (uint8_t)tensor_text[i % sizeof tensor_text];
}

static void use_world(tt_ctx *t)
{
    uint8_t *mine = tt_alloc(t, TENSOR_BYTES), *wanted = tt_alloc(t, TENSOR_BYTES);
    int      turn;

    fill(wanted);
    for (turn = 0; turn < t->size; turn++) {
        memset(mine, 0, TENSOR_BYTES);
        if (turn == t->rank)
            fill(mine);
        must(tutti_broadcast(TUTTI_SPAN(mine, TENSOR_BYTES), turn, NULL));
        assert_memory_equal(mine, wanted, TENSOR_BYTES);
    }
    must(tutti_all_reduce(TUTTI_SPAN(mine, TENSOR_BYTES), TUTTI_MAX, NULL));
    assert_memory_equal(mine, wanted, TENSOR_BYTES);
    memset(mine, 0, TENSOR_BYTES);
    if (t->rank == 0)
        must(tutti_send(TUTTI_SPAN(wanted, TENSOR_BYTES), t->size - 1, 7, NULL));
    if (t->rank == t->size - 1) {
        must(tutti_recv(TUTTI_SPAN(mine, TENSOR_BYTES), 0, 7, NULL, NULL));
        assert_memory_equal(mine, wanted, TENSOR_BYTES);
    }
}

static void work(tt_ctx *t)
{
    tutti_init_options options = TUTTI_INIT_OPTIONS;
    tutti_store       *store = open_store(t);

    use_store(t, store);
    options.store = store;
    options.rank = t->rank;
    options.world_size = t->size;
    options.timeout_ms = t->limit_ms / 2;
    must(tutti_init_process_group(&options));
    use_world(t);
    must(tutti_barrier(NULL));
    must(tutti_destroy_process_group(NULL));
    tt_post(t, DONE);
    tt_await(t, DONE, (uint32_t)t->size); /* rank 0 has the store */
    tutti_store_close(store);
}

/* Rank 0 tells what it saw, the others NULL. */
static listener *work_and_listen(tt_ctx *t)
{
    listener *l = NULL;
    pthread_t thread;

    if (t->rank == 0) {
        l = tt_alloc(t, sizeof *l);
        read_secret(l);
        open_listener(l);
        assert_int_equal(pthread_create(&thread, NULL, listen_main, l), 0);
        tt_post(t, LISTENING);
    }
    tt_await(t, LISTENING, 1);
    work(t);
    if (l == NULL)
        return NULL;
    atomic_store(&l->end, true);
    pthread_join(thread, NULL);
    close(l->fd);
    print_message("%zu bytes on the wire: key %zu, value %zu, tensor %zu, secret %zu times\n", l->bytes, l->keys, l->values,
                  l->tensors, l->secrets);
    return l;
}

static void nothing_can_be_read(tt_ctx *t)
{
    const listener *l = work_and_listen(t);

    if (l == NULL)
        return;
    assert_true(l->bytes > 2 * TENSOR_BYTES);
    assert_int_equal(l->keys, 0);
    assert_int_equal(l->values, 0);
    assert_int_equal(l->tensors, 0);
    assert_int_equal(l->secrets, 0);
}

static void without_it_all_can_be_read(tt_ctx *t)
{
    const listener *l = work_and_listen(t);

    if (l == NULL)
        return;
    assert_true(l->keys > 0);
    assert_true(l->values > 0);
    assert_true(l->tensors > 0);
    assert_int_equal(l->secrets, 0);
}

/* ---- certificates ---- */

/* An authority, and a certificate of it that all ranks show. */
static void issue(const tt_ctx *t)
{
    char command[2048];

    snprintf(command, sizeof command,
             "cd '%s' && exec 2>/dev/null && "
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca -subj /CN=job -days 2 && "
             "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out request -subj /CN=member && "
             "openssl x509 -req -in request -CA ca -CAkey ca.key -CAcreateserial -out cert -days 2 && chmod 600 key && chmod 644 ca cert",
             t->dir);
    if (system(command) == 0)
        return;
    print_message("there is no openssl to make certificates with\n");
    exit(TT_SKIPPED);
}

static void show_certificates(tt_ctx *t)
{
    static const char *const names[][2] = { { "TUTTI_TLS_CERT", "cert" }, { "TUTTI_TLS_KEY", "key" }, { "TUTTI_TLS_CA", "ca" } };
    char                     path[512];
    size_t                   i;

    if (t->rank == 0)
        issue(t);
    tt_post(t, READY);
    tt_await(t, READY, (uint32_t)t->size);
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", t->dir, names[i][1]);
        setenv(names[i][0], path, 1);
    }
}

static void certificates_will_do(tt_ctx *t)
{
    show_certificates(t);
    work(t);
}

static void certificates_need_no_secret(tt_ctx *t)
{
    show_certificates(t);
    unsetenv("TUTTI_SECRET_FILE");
    work(t);
}

/* ---- both or none ---- */

/* Whoever comes without it to a store that has it, or the reverse, is told, and so is the store's log. */
static void the_store_takes_no_others(tt_ctx *t)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;
    bool                    odd = t->rank == 1;

    if (odd)
        unsetenv("TUTTI_TLS");
    if (t->rank == 0)
        store = open_store(t);
    tt_post(t, READY);
    tt_await(t, READY, (uint32_t)t->size);
    options.host = t->addr;
    options.port = t->port;
    options.timeout_ms = t->limit_ms / 2;
    if (odd) {
        assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_E_MISMATCH);
        assert_non_null(strstr(tutti_last_error(), "goes on with TLS with the job's secret, this process with plain TCP"));
        assert_non_null(strstr(tutti_last_error(), "TUTTI_TLS"));
    }
    tt_post(t, DONE);
    tt_await(t, DONE, (uint32_t)t->size);
    if (!odd)
        tutti_store_close(store);
}

/* Where the store is a file nobody has met before the members do: all of them fail, with the same words. */
static void members_that_differ_all_fail(tt_ctx *t)
{
    tutti_init_options options = TUTTI_INIT_OPTIONS;
    char               url[512];

    if (t->rank == 1)
        unsetenv("TUTTI_TLS");
    snprintf(url, sizeof url, "file://%s/members", t->dir);
    options.init_method = url;
    options.rank = t->rank;
    options.world_size = t->size;
    options.timeout_ms = t->limit_ms / 2;
    assert_int_equal(tutti_init_process_group(&options), TUTTI_E_MISMATCH);
    assert_non_null(strstr(tutti_last_error(), "connections are encrypted by both ends or by none"));
    tt_post(t, DONE);
    tt_await(t, DONE, (uint32_t)t->size);
}

static void keys_need_a_secret(tt_ctx *t)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;

    unsetenv("TUTTI_SECRET_FILE");
    options.host = t->addr;
    options.port = t->port;
    options.is_master = true;
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_E_AUTH);
    assert_non_null(strstr(tutti_last_error(), "TUTTI_TLS is 1, and there is no secret to make its keys of"));
    setenv("TUTTI_TLS", "yes", 1);
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "TUTTI_TLS is 'yes'"));
}

/* PyTorch's store would have keys, values and the members' secret in plain. */
static void a_store_without_it_is_refused(tt_ctx *t)
{
    tutti_torch_store_options options = TUTTI_TORCH_STORE_OPTIONS;
    tutti_store              *store = NULL;

    options.host = t->addr;
    options.port = t->port;
    assert_int_equal(tutti_torch_store_open(&options, &store), TUTTI_E_UNSUPPORTED);
    assert_non_null(strstr(tutti_last_error(), "speaks plain TCP only"));
}

/* ---- a program's own store ---- */

typedef struct own_store {
    tutti_store  base;
    tutti_store *inner;
} own_store;

static tutti_status own_set(tutti_store *store, const char *key, const void *val, size_t len, int64_t deadline_ns)
{
    (void)deadline_ns;
    return tutti_store_set(((own_store *)store)->inner, key, val, len);
}

static tutti_status own_get(tutti_store *store, const char *key, int64_t deadline_ns, tutti_bytes *val_out)
{
    struct timespec now;
    int64_t         left_ns;

    clock_gettime(CLOCK_MONOTONIC, &now);
    left_ns = deadline_ns - (int64_t)now.tv_sec * 1000000000 - now.tv_nsec;
    return tutti_store_get(((own_store *)store)->inner, key, left_ns > 1000000 ? left_ns / 1000000 : 1, val_out);
}

static tutti_status own_add(tutti_store *store, const char *key, int64_t delta, int64_t deadline_ns, int64_t *sum_out)
{
    (void)deadline_ns;
    return tutti_store_add(((own_store *)store)->inner, key, delta, sum_out);
}

static tutti_status own_compare_set(tutti_store *store, const char *key, const void *expected, size_t expected_len,
                                    const void *desired, size_t desired_len, int64_t deadline_ns, tutti_bytes *val_out)
{
    (void)deadline_ns;
    return tutti_store_compare_set(((own_store *)store)->inner, key, expected, expected_len, desired, desired_len, val_out);
}

static void own_close(tutti_store *store)
{
    tutti_store_close(((own_store *)store)->inner);
    free(store);
}

static const tutti_store_ops own_ops = {
    .api = TUTTI_STORE_API,
    .size = sizeof(tutti_store_ops),
    .scheme = "own",
    .set = own_set,
    .get = own_get,
    .add = own_add,
    .compare_set = own_compare_set,
    .close = own_close,
};

static tutti_store *open_own(const tt_ctx *t)
{
    own_store *store = calloc(1, sizeof *store);
    char       path[512];

    assert_non_null(store);
    snprintf(path, sizeof path, "%s/own", t->dir);
    store->base.ops = &own_ops;
    must(tutti_file_store_open(path, t->size, &store->inner));
    must(tutti_store_adopt(&store->base));
    return &store->base;
}

/* Nobody knows whether it asks for a secret, or whether it encrypts: the ranks' own may not be in it. */
static void a_programs_store_may_not_have_the_secret(tt_ctx *t)
{
    tutti_store       *store = open_own(t);
    tutti_init_options options = TUTTI_INIT_OPTIONS;
    char               file[512];
    float              x = 1.0f;

    options.store = store;
    options.rank = t->rank;
    options.world_size = t->size;
    options.timeout_ms = t->limit_ms / 2;
    snprintf(file, sizeof file, "%s", getenv("TUTTI_SECRET_FILE"));
    unsetenv("TUTTI_SECRET_FILE");
    assert_int_equal(tutti_init_process_group(&options), TUTTI_E_UNSUPPORTED);
    assert_non_null(strstr(tutti_last_error(), "may send it in plain"));
    tt_post(t, DONE);
    tt_await(t, DONE, (uint32_t)t->size);
    setenv("TUTTI_SECRET_FILE", file, 1);
    must(tutti_init_process_group(&options));
    must(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL));
    assert_true(x == (float)t->size);
    must(tutti_destroy_process_group(NULL));
    tutti_store_close(store);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(nothing_can_be_read, .ranks = 4, .hosts = 2, .init = TT_INIT_NONE, .tls = true, .limit_ms = 40000),
        TT_TEST(nothing_can_be_read, .ranks = 2, .hosts = 2, .transports = "tcp", .init = TT_INIT_NONE, .tls = true,
                .limit_ms = 40000),
        TT_TEST(without_it_all_can_be_read, .ranks = 4, .hosts = 2, .init = TT_INIT_NONE, .limit_ms = 40000),
        TT_TEST(certificates_will_do, .ranks = 3, .hosts = 2, .init = TT_INIT_NONE, .tls = true, .limit_ms = 60000),
        TT_TEST(certificates_need_no_secret, .ranks = 2, .hosts = 2, .init = TT_INIT_NONE, .tls = true, .limit_ms = 60000),
        TT_TEST(the_store_takes_no_others, .init = TT_INIT_NONE, .tls = true),
        TT_TEST(members_that_differ_all_fail, .transports = "tcp", .init = TT_INIT_NONE, .tls = true),
        TT_TEST(keys_need_a_secret, .ranks = 1, .init = TT_INIT_NONE, .tls = true),
        TT_TEST(a_programs_store_may_not_have_the_secret, .ranks = 2, .transports = "shm,tcp", .init = TT_INIT_NONE, .tls = true),
        TT_TEST(a_store_without_it_is_refused, .ranks = 1, .init = TT_INIT_NONE, .tls = true),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
