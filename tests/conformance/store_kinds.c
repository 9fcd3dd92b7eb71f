/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_kinds.c - one of each store, opened and closed around a test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/plugin/store.h>
#include "store/store.h"
#include "store_suite.h"

/* A store with the required entries only: it hands on to a hash store. */
typedef struct bare_store {
    tutti_store  base;
    tutti_store *hash;
} bare_store;

static tutti_status bare_set(tutti_store *store, const char *key, const void *val, size_t len,
                             int64_t deadline_ns)
{
    return tti_store_set_until(((bare_store *)store)->hash, key, val, len, deadline_ns);
}

static tutti_status bare_get(tutti_store *store, const char *key, int64_t deadline_ns,
                             tutti_bytes *val_out)
{
    return tti_store_get_until(((bare_store *)store)->hash, key, deadline_ns, val_out);
}

static tutti_status bare_add(tutti_store *store, const char *key, int64_t delta,
                             int64_t deadline_ns, int64_t *sum_out)
{
    return tti_store_add_until(((bare_store *)store)->hash, key, delta, deadline_ns, sum_out);
}

static void bare_close(tutti_store *store)
{
    tutti_store_close(((bare_store *)store)->hash);
    free(store);
}

static const tutti_store_ops bare_ops = { .api = TUTTI_STORE_API,
                                          .size = sizeof(tutti_store_ops),
                                          .scheme = "bare",
                                          .set = bare_set,
                                          .get = bare_get,
                                          .close = bare_close,
                                          .add = bare_add };

static int open_bare(fixture *f)
{
    bare_store *bare = calloc(1, sizeof *bare);

    if (bare == NULL || tutti_hash_store_open(&bare->hash) != TUTTI_OK)
        return -1;
    bare->base.ops = &bare_ops;
    if (tutti_store_adopt(&bare->base) != TUTTI_OK)
        return -1;
    f->a = &bare->base;
    f->b = tutti_store_retain(f->a);
    return 0;
}

static int open_hash(fixture *f)
{
    if (tutti_hash_store_open(&f->a) != TUTTI_OK)
        return -1;
    f->b = tutti_store_retain(f->a);
    return 0;
}

static int open_file(fixture *f)
{
    snprintf(f->dir, sizeof f->dir, "/tmp/tutti-store-XXXXXX");
    if (mkdtemp(f->dir) == NULL)
        return -1;
    snprintf(f->path, sizeof f->path, "%s/log", f->dir);
    return tutti_file_store_open(f->path, 2, &f->a) == TUTTI_OK &&
                   tutti_file_store_open(f->path, 2, &f->b) == TUTTI_OK
               ? 0
               : -1;
}

static int open_tcp(fixture *f)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;

    options.host = "127.0.0.1";
    options.is_master = true;
    if (tutti_tcp_store_open(&options, &f->a) != TUTTI_OK)
        return -1;
    options.is_master = false;
    options.port = tutti_tcp_store_port(f->a);
    return tutti_tcp_store_open(&options, &f->b) == TUTTI_OK ? 0 : -1;
}

/* The same where what goes over the wire is encrypted. */
static int open_tls(fixture *f)
{
    static const char digits[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    FILE             *file;
    int               err;

    snprintf(f->dir, sizeof f->dir, "/tmp/tutti-store-XXXXXX");
    if (mkdtemp(f->dir) == NULL)
        return -1;
    snprintf(f->path, sizeof f->path, "%s/secret", f->dir);
    file = fopen(f->path, "wx");
    if (file == NULL || fchmod(fileno(file), 0600) != 0 || fputs(digits, file) < 0 || fclose(file) != 0)
        return -1;
    setenv("TUTTI_SECRET_FILE", f->path, 1);
    setenv("TUTTI_TLS", "1", 1);
    err = open_tcp(f);
    if (err != 0)
        print_error("%s\n", tutti_last_error());
    unsetenv("TUTTI_TLS"); /* handles keep what they began with */
    unsetenv("TUTTI_SECRET_FILE");
    unlink(f->path);
    return err;
}

static int open_prefix(fixture *f)
{
    fixture tcp = { .name = "tcp" };
    int     err = open_tcp(&tcp);

    if (err != 0)
        return err;
    if (tutti_prefix_store_open("p", tcp.a, &f->a) != TUTTI_OK ||
        tutti_prefix_store_open("p", tcp.b, &f->b) != TUTTI_OK)
        return -1;
    f->below = tcp.a;
    tutti_store_close(tcp.b);
    return 0;
}

static int open_torch_at(fixture *f, int port)
{
    tutti_torch_store_options options = TUTTI_TORCH_STORE_OPTIONS;

    options.host = "127.0.0.1";
    options.port = port;
    if (tutti_torch_store_open(&options, &f->a) == TUTTI_OK &&
        tutti_torch_store_open(&options, &f->b) == TUTTI_OK)
        return 0;
    print_error("port %d: %s\n", port, tutti_last_error());
    return -1;
}

static int open_torch(fixture *f)
{
    f->torch = tt_torch_server_start(NULL);
    return f->torch != NULL ? open_torch_at(f, tt_torch_server_port(f->torch)) : -1;
}

static int open_old_torch(fixture *f)
{
    const tt_torch_behaviour how = { .old = true };

    f->torch = tt_torch_server_start(&how);
    return f->torch != NULL ? open_torch_at(f, tt_torch_server_port(f->torch)) : -1;
}

/* The two ends of whoever starts a real TCPStore for each test. */
static struct {
    int ask, answer;
} keeper;

static int open_real_torch(fixture *f)
{
    int  port = 0;
    char c;

    if (write(keeper.ask, "\n", 1) != 1)
        return -1;
    while (read(keeper.answer, &c, 1) == 1 && c != '\n')
        port = port * 10 + (c - '0');
    return open_torch_at(f, port);
}

const char *store_kinds[] = { "hash", "file", "tcp", "prefix", "bare", "torch", "old torch", "tcp with TLS" };
size_t      n_store_kinds = sizeof store_kinds / sizeof store_kinds[0];

static int (*openers[])(fixture *f) = { open_hash, open_file,  open_tcp,      open_prefix,
                                        open_bare, open_torch, open_old_torch, open_tls };

fixture current;

void use_torch(int ask, int answer, bool old)
{
    keeper.ask = ask;
    keeper.answer = answer;
    store_kinds[0] = old ? "torch without libuv" : "torch";
    openers[0] = open_real_torch;
    n_store_kinds = 1;
}

static bool is_torch(void)
{
    return strstr(current.name, "torch") != NULL;
}

bool has_queues(void)
{
    return strcmp(current.name, "file") != 0 && strcmp(current.name, "bare") != 0 &&
           strcmp(current.name, "old torch") != 0 &&
           strcmp(current.name, "torch without libuv") != 0;
}

bool has_names(void)
{
    return strcmp(current.name, "bare") != 0 && strcmp(current.name, "old torch") != 0;
}

size_t value_max(void)
{
    return is_torch() ? TUTTI_STORE_VALUE_MAX / 2 : TUTTI_STORE_VALUE_MAX;
}

int store_setup(void **state)
{
    const size_t kind = (size_t)(uintptr_t)*state;

    current = (fixture){ .name = store_kinds[kind] };
    return openers[kind](&current);
}

int store_teardown(void **state)
{
    int err = 0;

    (void)state;
    tutti_store_close(current.b);
    tutti_store_close(current.a);
    tutti_store_close(current.below);
    tt_torch_server_stop(current.torch);
    if (current.dir[0] != '\0') {
        /* Both handles are closed: the last one has removed the file. */
        err = access(current.path, F_OK) == 0 ? -1 : 0;
        unlink(current.path);
        err |= rmdir(current.dir);
    }
    return err;
}

void set_text(tutti_store *store, const char *key, const char *text)
{
    assert_int_equal(tutti_store_set(store, key, text, strlen(text)), TUTTI_OK);
}

void has_text(tutti_store *store, const char *key, const char *text)
{
    tutti_bytes value = { .data = NULL };

    assert_int_equal(tutti_store_get(store, key, 5000, &value), TUTTI_OK);
    assert_int_equal(value.size, strlen(text));
    assert_string_equal(value.data, text); /* a NUL stands behind it */
    tutti_bytes_free(&value);
    assert_null(value.data);
}

bool there(tutti_store *store, const char *key)
{
    bool all = false;

    assert_int_equal(tutti_store_check(store, &key, 1, &all), TUTTI_OK);
    return all;
}
