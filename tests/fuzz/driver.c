/* SPDX-License-Identifier: BSD-3-Clause
 *
 * driver.c - runs a target without a fuzzer: on files, and on mutations of them.
 *
 * How     A mutation is made of its number and the seed alone: one that fails is named by them, and --first N --mutations 1
 *         runs it again; --write FILE keeps it. Files and folders are read in the order of their names.
 * Fails   With the target: a signal, a TT_MUST() that does not hold, or an input that takes longer than LIMIT_S. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 1 << 15, FILE_MAX = 1 << 20, GROWS_MAX = 4096, LIMIT_S = 20, PATH_LIMIT = 4096 };

typedef struct sample {
    uint8_t *data;
    size_t   size;
} sample;

static struct {
    sample      files[FILES_MAX];
    size_t      n_files;
    uint64_t    seed, first, mutations;
    const char *write;
} program = { .seed = 1 };

/* What runs now, for the words of a failure. */
static struct {
    char     path[PATH_LIMIT];
    uint64_t mutation;
    bool     is_mutation;
} now;

/* ---- failing ---- */

static void say_what_ran(int number)
{
    char text[PATH_LIMIT + 200];
    int  n;

    if (now.is_mutation)
        n = snprintf(text, sizeof text, "signal %d in mutation %llu\n  next: again with --seed %llu --first %llu --mutations 1\n",
                     number, (unsigned long long)now.mutation, (unsigned long long)program.seed,
                     (unsigned long long)now.mutation);
    else
        n = snprintf(text, sizeof text, "signal %d in '%s'\n", number, now.path);
    if (write(STDERR_FILENO, text, (size_t)n) < 0)
        _exit(2);
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_signals(void)
{
    static const int numbers[] = { SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
    size_t           i;

    for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        signal(numbers[i], say_what_ran);
}

static void die(const char *what, const char *whose)
{
    fprintf(stderr, "%s '%s': %s\n", what, whose, strerror(errno));
    exit(2);
}

static void run_one(const uint8_t *data, size_t size)
{
    uint8_t *copy = tt_copy(data, size);

    alarm(LIMIT_S);
    LLVMFuzzerTestOneInput(copy, size);
    alarm(0);
    free(copy);
}

/* ---- files ---- */

static void run_file(const char *path)
{
    sample *s = &program.files[program.n_files];
    FILE   *file = fopen(path, "rb");

    if (file == NULL)
        die("cannot open", path);
    if (program.n_files == FILES_MAX) {
        errno = E2BIG;
        die("too many files with", path);
    }
    s->data = malloc(FILE_MAX);
    if (s->data == NULL)
        die("no memory for", path);
    s->size = fread(s->data, 1, FILE_MAX, file);
    fclose(file);
    program.n_files++;
    snprintf(now.path, sizeof now.path, "%s", path);
    now.is_mutation = false;
    run_one(s->data, s->size);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void run_path(const char *path)
{
    struct dirent **list = NULL;
    struct stat     about;
    char            inner[PATH_LIMIT];
    int             n, i;

    if (stat(path, &about) != 0)
        die("cannot look at", path);
    if (!S_ISDIR(about.st_mode)) {
        run_file(path);
        return;
    }
    n = scandir(path, &list, is_shown, alphasort);
    for (i = 0; i < n; i++) {
        if (snprintf(inner, sizeof inner, "%s/%s", path, list[i]->d_name) < (int)sizeof inner)
            run_path(inner);
        free(list[i]);
    }
    free(list);
}

/* ---- mutations ---- */

typedef struct dice {
    uint64_t state;
} dice;

static uint64_t roll(dice *d)
{
    uint64_t x = d->state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static size_t below(dice *d, size_t n)
{
    return n == 0 ? 0 : (size_t)(roll(d) % n);
}

static void insert(sample *s, size_t at, const uint8_t *data, size_t size)
{
    memmove(s->data + at + size, s->data + at, s->size - at);
    memmove(s->data + at, data, size);
    s->size += size;
}

/* A number that is at the edge of something, of 1, 2, 4 or 8 bytes. */
static void put_edge(dice *d, sample *s)
{
    static const uint64_t edges[] = { 0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000,
                                      0xffffffff, UINT64_C(0x100000000), UINT64_C(1) << 46, INT64_MAX, UINT64_C(1) << 63,
                                      UINT64_MAX };
    const size_t   bytes = (size_t)1 << below(d, 4);
    const uint64_t edge = edges[below(d, sizeof edges / sizeof edges[0])] + below(d, 3) - 1;
    size_t         at, i;

    if (s->size < bytes)
        return;
    at = below(d, s->size - bytes + 1);
    for (i = 0; i < bytes; i++)
        s->data[at + i] = (uint8_t)(edge >> 8 * (d->state & 64 ? i : bytes - 1 - i));
}

static void put_word(dice *d, sample *s)
{
    static const char *const words[] = { "://", "[", "]", "{", "}", "\"", "\\u0000", ",", ":", "-", "=", "%", "null", "1e999", "-1",
                                         "0x", "99999999999999999999", "18446744073709551615", "\n", "\xff", "&", "?", "/", "@" };
    const char *word = words[below(d, sizeof words / sizeof words[0])];

    insert(s, below(d, s->size + 1), (const uint8_t *)word, strlen(word));
}

/* A piece of some file over, or into, this one. */
static void splice(dice *d, sample *s)
{
    const sample *other = &program.files[below(d, program.n_files)];
    const size_t  from = below(d, other->size), n = below(d, other->size - from < GROWS_MAX / 8 ? other->size - from : GROWS_MAX / 8);
    uint8_t      *piece = tt_copy(other->data + from, n);

    insert(s, below(d, s->size + 1), piece, n);
    free(piece);
}

static void mutate(dice *d, sample *s)
{
    size_t  at = below(d, s->size), n;
    uint8_t byte = (uint8_t)roll(d);

    switch (below(d, 9)) {
    case 0: insert(s, at, &byte, 1); break;
    case 1: put_edge(d, s); break;
    case 2: put_word(d, s); break;
    case 3: splice(d, s); break;
    case 4: s->size = at; break;
    case 5: /* a piece away */
        n = below(d, s->size - at < 64 ? s->size - at : 64);
        memmove(s->data + at, s->data + at + n, s->size - at - n);
        s->size -= n;
        break;
    case 6: /* a piece twice */
        n = below(d, s->size - at < 64 ? s->size - at : 64);
        insert(s, at, s->data + at, n);
        break;
    case 7:
        if (s->size > 0)
            s->data[at] ^= (uint8_t)(1u << (byte & 7));
        break;
    default:
        if (s->size > 0)
            s->data[at] = byte;
    }
}

static void keep(const sample *s)
{
    FILE *file = fopen(program.write, "wb");

    if (file == NULL || fwrite(s->data, 1, s->size, file) != s->size || fclose(file) != 0)
        die("cannot write", program.write);
}

static void run_mutation(uint64_t number)
{
    dice          d = { .state = program.seed * UINT64_C(0xd1342543de82ef95) + number * UINT64_C(0x2545f4914f6cdd1d) };
    const sample *base = &program.files[below(&d, program.n_files)];
    sample        s = { .size = base->size };
    size_t        times = 1 + below(&d, 8);

    s.data = malloc(base->size + 8 * GROWS_MAX);
    TT_MUST(s.data != NULL);
    memcpy(s.data, base->data, base->size);
    while (times-- > 0)
        mutate(&d, &s);
    now.is_mutation = true;
    now.mutation = number;
    if (program.write != NULL)
        keep(&s);
    run_one(s.data, s.size);
    free(s.data);
}

/* ---- the line ---- */

static uint64_t number_of(const char *text)
{
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static bool take_option(const char *name, const char *value)
{
    if (strcmp(name, "--seed") == 0)
        program.seed = number_of(value);
    else if (strcmp(name, "--first") == 0)
        program.first = number_of(value);
    else if (strcmp(name, "--mutations") == 0)
        program.mutations = number_of(value);
    else if (strcmp(name, "--write") == 0)
        program.write = value;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    uint64_t k;
    size_t   i;
    int      a;

    watch_signals();
    for (a = 1; a < argc; a++)
        if (take_option(argv[a], argv[a + 1]))
            a++;
        else
            run_path(argv[a]);
    if (program.n_files == 0) {
        fprintf(stderr, "usage: %s [--mutations N] [--seed S] [--first N] [--write FILE] FILE|FOLDER...\n", argv[0]);
        return 2;
    }
    for (k = program.first; k < program.first + program.mutations; k++)
        run_mutation(k);
    printf("%zu files, %llu mutations\n", program.n_files, (unsigned long long)program.mutations);
    for (i = 0; i < program.n_files; i++)
        free(program.files[i].data);
    return 0;
}
