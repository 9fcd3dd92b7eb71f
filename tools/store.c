/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store.c - `tutti store`: serve a tcp store, or make one call on a store and print the answer.
 *
 * Values are written as they are, with a newline only on a terminal; names and numbers a line each.
 * Each failure is one message on standard error. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/store.h>
#include "store_place.h"
#include "tool.h"

/* Exit codes beyond 0, 1 (failed) and TOOL_USAGE. */
enum { LATE = 3, NO = 4 };

enum { DEFAULT_MS = 30000 };

typedef struct call {
    tutti_store *store;
    char **args; /* of the word; NULL behind the last */
    size_t n;
    const char *url;
    int64_t timeout_ms;
    bool no_wait;
    int64_t listen_fd; /* serve; 0: none */
} call;

typedef struct word {
    const char *name;
    const char *args;
    size_t min, max;
    const char *what;
    int (*run)(call *c);
} word;

/* ---- words of a failure ------------------------------------------------------------------------ */

static int wrong(const char *what, const char *subject, const char *next)
{
    fprintf(stderr, "tutti store: %s '%.200s'\n  next: %s\n", what, subject, next);
    return TOOL_USAGE;
}

static int failed(tutti_status st)
{
    if (st == TUTTI_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "tutti store: %s\n", tutti_last_error());
    return st == TUTTI_E_TIMEOUT ? LATE
           : st == TUTTI_E_EMPTY ? NO
           : st == TUTTI_E_ARG   ? TOOL_USAGE
                                 : EXIT_FAILURE;
}

/* ---- values ------------------------------------------------------------------------------------ */

/* Everything that standard input has. */
static int read_stdin(tutti_bytes *out)
{
    char *data = malloc((size_t)TUTTI_STORE_VALUE_MAX + 1);
    size_t n;

    if (data == NULL) {
        fprintf(stderr, "tutti store: no memory for standard input\n");
        return EXIT_FAILURE;
    }
    n = fread(data, 1, (size_t)TUTTI_STORE_VALUE_MAX + 1, stdin);
    if (ferror(stdin) || n > TUTTI_STORE_VALUE_MAX) {
        fprintf(stderr, "tutti store: standard input %s\n",
                n > TUTTI_STORE_VALUE_MAX ? "has more than 16 MiB" : "cannot be read");
        free(data);
        return EXIT_FAILURE;
    }
    *out = (tutti_bytes){ .data = data, .size = n };
    return EXIT_SUCCESS;
}

/* The value that an argument gives: itself, or for "-" standard input. */
static int read_value(const char *text, tutti_bytes *out)
{
    if (strcmp(text, "-") == 0)
        return read_stdin(out);
    *out = (tutti_bytes){ .data = strdup(text), .size = strlen(text) };
    if (out->data != NULL)
        return EXIT_SUCCESS;
    fprintf(stderr, "tutti store: no memory for a value\n");
    return EXIT_FAILURE;
}

/* Print a value, and free it. */
static int print_value(tutti_bytes *value)
{
    bool ok = fwrite(value->data, 1, value->size, stdout) == value->size;

    if (ok && isatty(STDOUT_FILENO))
        putchar('\n');
    ok = fflush(stdout) == 0 && ok;
    tutti_bytes_free(value);
    if (!ok)
        fprintf(stderr, "tutti store: cannot write the value: %s\n", strerror(errno));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- the words --------------------------------------------------------------------------------- */

static int run_get(call *c)
{
    tutti_bytes value;
    tutti_status st = tutti_store_get(c->store, c->args[0], c->timeout_ms, &value);

    return st == TUTTI_OK ? print_value(&value) : failed(st);
}

typedef tutti_status (*giver)(tutti_store *store, const char *key, const void *data, size_t size);

static int give(call *c, giver how)
{
    tutti_bytes value;
    int code = read_value(c->args[1], &value);

    if (code != EXIT_SUCCESS)
        return code;
    code = failed(how(c->store, c->args[0], value.data, value.size));
    tutti_bytes_free(&value);
    return code;
}

static int run_set(call *c)
{
    return give(c, tutti_store_set);
}

static int run_append(call *c)
{
    return give(c, tutti_store_append);
}

static int run_push(call *c)
{
    return give(c, tutti_store_queue_push);
}

static int print_number(tutti_status st, int64_t number)
{
    if (st == TUTTI_OK)
        printf("%lld\n", (long long)number);
    return failed(st);
}

static int run_add(call *c)
{
    int64_t delta = 1, sum = 0;
    tutti_status st;

    if (c->n > 1 && !store_read_number(c->args[1], INT64_MIN, INT64_MAX, &delta))
        return wrong("not a number:", c->args[1], "tutti store add KEY NUMBER");
    st = tutti_store_add(c->store, c->args[0], delta, &sum);
    return print_number(st, sum);
}

static int run_compare_set(call *c)
{
    tutti_bytes value;
    tutti_status st = tutti_store_compare_set(c->store, c->args[0], c->args[1], strlen(c->args[1]),
                                              c->args[2], strlen(c->args[2]), &value);

    return st == TUTTI_OK ? print_value(&value) : failed(st);
}

static int run_wait(call *c)
{
    return failed(tutti_store_wait(c->store, (const char *const *)c->args, c->n, c->timeout_ms));
}

static int run_check(call *c)
{
    bool all = false;
    tutti_status st = tutti_store_check(c->store, (const char *const *)c->args, c->n, &all);

    return st != TUTTI_OK ? failed(st) : all ? EXIT_SUCCESS : NO;
}

static int run_delete(call *c)
{
    bool deleted = false;
    tutti_status st = tutti_store_delete_key(c->store, c->args[0], &deleted);

    return st != TUTTI_OK ? failed(st) : deleted ? EXIT_SUCCESS : NO;
}

/* Each value with a newline behind it. */
static int run_multi_get(call *c)
{
    tutti_bytes *values = calloc(c->n, sizeof *values);
    tutti_status st;
    int code = EXIT_SUCCESS;
    size_t i;

    if (values == NULL) {
        fprintf(stderr, "tutti store: no memory for %zu values\n", c->n);
        return EXIT_FAILURE;
    }
    st = tutti_store_multi_get(c->store, (const char *const *)c->args, c->n, c->timeout_ms, values);
    for (i = 0; i < c->n && st == TUTTI_OK; i++) {
        if (fwrite(values[i].data, 1, values[i].size, stdout) != values[i].size ||
            putchar('\n') == EOF)
            code = EXIT_FAILURE;
        tutti_bytes_free(&values[i]);
    }
    free(values);
    if (fflush(stdout) != 0 || code != EXIT_SUCCESS) {
        fprintf(stderr, "tutti store: cannot write the values: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    return failed(st);
}

/* KEY VALUE KEY VALUE...: all in one call. */
static int run_multi_set(call *c)
{
    const size_t n = c->n / 2;
    const char **keys = calloc(n, sizeof *keys);
    tutti_bytes *values = calloc(n, sizeof *values);
    int code = keys != NULL && values != NULL ? EXIT_SUCCESS : EXIT_FAILURE;
    size_t i;

    if (c->n % 2 != 0)
        code = wrong("a key without a value:", c->args[c->n - 1],
                     "tutti store multi-set KEY VALUE [KEY VALUE]...");
    else if (code != EXIT_SUCCESS)
        fprintf(stderr, "tutti store: no memory for %zu values\n", n);
    for (i = 0; i < n && code == EXIT_SUCCESS; i++) {
        keys[i] = c->args[2 * i];
        code = read_value(c->args[2 * i + 1], &values[i]);
    }
    if (code == EXIT_SUCCESS)
        code = failed(tutti_store_multi_set(c->store, keys, values, n));
    for (i = 0; i < n && values != NULL; i++)
        tutti_bytes_free(&values[i]);
    free(values);
    free(keys);
    return code;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int run_keys(call *c)
{
    const char *prefix = c->n > 0 ? c->args[0] : "";
    tutti_store_keys keys;
    tutti_status st = tutti_store_list_keys(c->store, &keys);
    size_t i;

    if (st != TUTTI_OK)
        return failed(st);
    if (keys.n > 0)
        qsort(keys.names, keys.n, sizeof *keys.names, compare_names);
    for (i = 0; i < keys.n; i++)
        if (strncmp(keys.names[i], prefix, strlen(prefix)) == 0)
            puts(keys.names[i]);
    tutti_store_keys_free(&keys);
    return EXIT_SUCCESS;
}

static int run_pop(call *c)
{
    tutti_bytes value;
    tutti_status st =
        tutti_store_queue_pop(c->store, c->args[0], !c->no_wait, c->timeout_ms, &value);

    return st == TUTTI_OK ? print_value(&value) : failed(st);
}

static int run_len(call *c)
{
    int64_t n = 0;
    tutti_status st = tutti_store_queue_len(c->store, c->args[0], &n);

    return print_number(st, n);
}

static int run_num_keys(call *c)
{
    int64_t n = 0;
    tutti_status st = tutti_store_num_keys(c->store, &n);

    return print_number(st, n);
}

static int run_barrier(call *c)
{
    int64_t n = 0;

    if (!store_read_number(c->args[1], 1, INT32_MAX, &n))
        return wrong("not a number of callers:", c->args[1], "tutti store barrier KEY NUMBER");
    return failed(tutti_store_barrier(c->store, c->args[0], (int)n, c->timeout_ms));
}

static int run_serve(call *c);

static const word words[] = {
    { "serve", "", 0, 0, "serve a store until SIGINT or SIGTERM; prints its URL", run_serve },
    { "get", "KEY", 1, 1, "wait for KEY and print its value", run_get },
    { "set", "KEY VALUE", 2, 2, "create or replace", run_set },
    { "multi-get", "KEY...", 1, SIZE_MAX, "wait for all, and print each value and a newline",
      run_multi_get },
    { "multi-set", "KEY VALUE...", 2, SIZE_MAX, "several at once", run_multi_set },
    { "append", "KEY VALUE", 2, 2, "put VALUE behind the old one", run_append },
    { "add", "KEY [NUMBER]", 1, 2, "add NUMBER (1), print the sum", run_add },
    { "compare-set", "KEY OLD NEW", 3, 3, "NEW if it is OLD; print what it is then",
      run_compare_set },
    { "wait", "KEY...", 1, SIZE_MAX, "until all are there", run_wait },
    { "check", "KEY...", 1, SIZE_MAX, "exit code 0: all are there now, 4: not all", run_check },
    { "delete", "KEY", 1, 1, "exit code 4: there was none", run_delete },
    { "keys", "[PREFIX]", 0, 1, "print the names of all keys", run_keys },
    { "num-keys", "", 0, 0, "print how many there are, the store's own included", run_num_keys },
    { "push", "QUEUE VALUE", 2, 2, "put VALUE at the end of a queue", run_push },
    { "pop", "QUEUE", 1, 1, "wait for a value and take it; --no-wait: exit code 4 if none",
      run_pop },
    { "len", "QUEUE", 1, 1, "print how many values it holds", run_len },
    { "barrier", "KEY NUMBER", 2, 2, "until NUMBER callers have come", run_barrier },
};
enum { N_WORDS = sizeof words / sizeof words[0] };

static int print_help(FILE *out, int code)
{
    int i;

    fprintf(out, "usage: tutti store [options] WORD [arguments]\n\n");
    for (i = 0; i < N_WORDS; i++)
        fprintf(out, "  %-11s %-12s %s\n", words[i].name, words[i].args, words[i].what);
    fprintf(out,
            "\n"
            "  --store URL   tcp://HOST:PORT, torch-tcp://HOST:PORT (PyTorch serves it) or\n"
            "                file:///PATH (tcp://$MASTER_ADDR:$MASTER_PORT;\n"
            "                serve: tcp://127.0.0.1:0, port 0 is any free one)\n"
            "  --timeout S   seconds to connect, and to wait; 'inf': no limit (30)\n"
            "  --no-wait     pop: do not wait\n"
            "  --listen-fd N serve: on descriptor N, a socket that is bound or listening, at the\n"
            "                host of --store\n"
            "\n"
            "A VALUE of - is read from standard input. TUTTI_SECRET_FILE names the file with "
            "the secret of a tcp\nstore. Exit codes: 0 done, 1 failed, 2 wrong command line, "
            "3 time-out, 4 no.\n");
    return code;
}

/* ---- where the store is ------------------------------------------------------------------------ */

/* Serve until a signal asks for the end. */
static int run_serve(call *c)
{
    tutti_store_server_options options = TUTTI_STORE_SERVER_OPTIONS;
    tutti_store_server *server = NULL;
    const char *secret = getenv("TUTTI_SECRET_FILE");
    const char *url = c->url != NULL ? c->url : "tcp://127.0.0.1:0";
    sigset_t ends;
    store_place p;
    tutti_status st;
    int got;

    if (!store_read_place(url, &p) || p.path != NULL || p.torch)
        return wrong("not an address to serve at:", url, "write tcp://HOST:PORT");
    if (!store_place_is_local(&p) && (secret == NULL || secret[0] == '\0'))
        return wrong("other hosts need a secret to use a store at", p.host,
                     "set TUTTI_SECRET_FILE to a file of mode 0600 with 64 hex digits");
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before the server's thread exists */
    options.host = p.host;
    options.port = p.port;
    options.listen_fd = (int)c->listen_fd;
    st = tutti_store_server_start(&options, &server);
    if (st != TUTTI_OK)
        return failed(st);
    printf(strchr(p.host, ':') != NULL ? "tcp://[%s]:%d\n" : "tcp://%s:%d\n", p.host,
           tutti_store_server_port(server));
    fflush(stdout);
    sigwait(&ends, &got);
    tutti_store_server_stop(server);
    return EXIT_SUCCESS;
}

static int open_tcp(call *c, const store_place *p)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;

    options.host = p->host;
    options.port = p->port;
    options.timeout_ms = c->timeout_ms;
    return failed(tutti_tcp_store_open(&options, &c->store));
}

static int open_torch(call *c, const store_place *p)
{
    tutti_torch_store_options options = TUTTI_TORCH_STORE_OPTIONS;

    options.host = p->host;
    options.port = p->port;
    options.timeout_ms = c->timeout_ms;
    return failed(tutti_torch_store_open(&options, &c->store));
}

static int open_store(call *c)
{
    const char *host = getenv("MASTER_ADDR");
    const char *port = getenv("MASTER_PORT");
    const char *url = c->url;
    char from_env[STORE_HOST_MAX + 32];
    store_place p;
    int code;

    if (url == NULL && (host == NULL || port == NULL)) {
        fprintf(stderr, "tutti store: no store given\n"
                        "  next: --store tcp://HOST:PORT or file:///PATH\n");
        return TOOL_USAGE;
    }
    if (url == NULL) {
        snprintf(from_env, sizeof from_env,
                 strchr(host, ':') != NULL ? "tcp://[%s]:%s" : "tcp://%s:%s", host, port);
        url = from_env;
    }
    if (!store_read_place(url, &p) || (p.path == NULL && p.port == 0))
        return wrong("not the URL of a store:", url,
                     "write tcp://HOST:PORT, tcp://[IPV6]:PORT, torch-tcp://HOST:PORT or file:///PATH");
    if (p.path == NULL)
        return p.torch ? open_torch(c, &p) : open_tcp(c, &p);
    code = failed(tutti_file_store_open(p.path, -1, &c->store));
    if (code == EXIT_SUCCESS)
        tutti_store_set_timeout(c->store, c->timeout_ms);
    return code;
}

/* ---- the command line -------------------------------------------------------------------------- */

/* The value of option name at argv[*at], as "name value" or "name=value"; NULL: another option. An
 * option without its value gives "". */
static const char *option_value(const char *name, char **argv, int argc, int *at)
{
    const size_t len = strlen(name);

    if (strncmp(argv[*at], name, len) != 0)
        return NULL;
    if (argv[*at][len] == '=')
        return argv[*at] + len + 1;
    if (argv[*at][len] != '\0')
        return NULL;
    return *at + 1 < argc ? argv[++*at] : "";
}

static int read_option(call *c, char **argv, int argc, int *at)
{
    const char *value = option_value("--store", argv, argc, at);

    if (value != NULL) {
        c->url = value;
        return EXIT_SUCCESS;
    }
    value = option_value("--timeout", argv, argc, at);
    if (value != NULL)
        return store_read_timeout(value, &c->timeout_ms)
                   ? EXIT_SUCCESS
                   : wrong("not a time-out:", value, "--timeout SECONDS, more than 0, or 'inf'");
    value = option_value("--listen-fd", argv, argc, at);
    if (value != NULL)
        return store_read_number(value, 1, INT32_MAX, &c->listen_fd)
                   ? EXIT_SUCCESS
                   : wrong("not a descriptor above 0:", value, "--listen-fd NUMBER");
    if (strcmp(argv[*at], "--no-wait") != 0)
        return wrong("unknown option", argv[*at], "tutti store --help");
    c->no_wait = true;
    return EXIT_SUCCESS;
}

/* Options go into c, everything else, the word first, to the front of argv. */
static int read_line(call *c, int argc, char **argv)
{
    bool options = true;
    int code = EXIT_SUCCESS;
    int i;

    c->args = argv;
    for (i = 1; i < argc && code == EXIT_SUCCESS; i++) {
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && strncmp(argv[i], "--", 2) == 0)
            code = read_option(c, argv, argc, &i);
        else
            argv[c->n++] = argv[i];
    }
    argv[c->n] = NULL;
    return code;
}

static bool wants_help(int argc, char **argv)
{
    int i;

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static int run_word(const word *w, call *c)
{
    int code;

    if (c->n < w->min || c->n > w->max) {
        fprintf(stderr, "tutti store: '%s' got %zu arguments\n  next: tutti store %s %s\n", w->name,
                c->n, w->name, w->args);
        return TOOL_USAGE;
    }
    if (w->run == run_serve)
        return run_serve(c);
    code = open_store(c);
    if (code == EXIT_SUCCESS)
        code = w->run(c);
    tutti_store_close(c->store);
    return code;
}

int tool_store(int argc, char **argv)
{
    call c = { .timeout_ms = DEFAULT_MS };
    int code, i;

    if (argc < 2)
        return print_help(stderr, TOOL_USAGE);
    if (wants_help(argc, argv))
        return print_help(stdout, EXIT_SUCCESS);
    code = read_line(&c, argc, argv);
    if (code != EXIT_SUCCESS)
        return code;
    if (c.n == 0)
        return print_help(stderr, TOOL_USAGE);
    for (i = 0; i < N_WORDS; i++)
        if (strcmp(argv[0], words[i].name) == 0) {
            c.args = argv + 1;
            c.n--;
            return run_word(&words[i], &c);
        }
    return wrong("unknown word", argv[0], "tutti store --help");
}
