/* SPDX-License-Identifier: BSD-3-Clause
 *
 * safetensors_test.c
 * Goal    files are those of the safetensors package, byte for byte; what is read back is what was saved, also tied,
 *         strided and empty tensors; a file appears whole or not at all; every malformed header is an error that
 *         says the file and the place, and no mutated one does harm.
 * Method  files of the package lie in tests/golden. Malformed files are written by hand; mutated ones are files in
 *         memory, opened by their name in /proc, thousands of them: run it under the address sanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <tutti/autograd.h>
#include <tutti/state.h>
#include <unistd.h>

#include "harness/scratch.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static char dir[256], path[300];

static int begin(void **state)
{
    (void)state;
    tutti_scope_begin();
    if (!tt_dir_make(dir, sizeof dir))
        return -1;
    snprintf(path, sizeof path, "%s/file", dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tt_dir_remove(dir);
    tutti_scope_end();
    return tutti_tensor_check() == TUTTI_OK ? 0 : -1;
}

static void put(const char *name, const void *bytes, size_t n)
{
    FILE *file = fopen(name, "wbe");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* The whole file; *n_out bytes. */
static char *get(const char *name, size_t *n_out)
{
    FILE *file = fopen(name, "rbe");
    char *bytes = malloc(1 << 16);

    assert_non_null(file);
    assert_non_null(bytes);
    *n_out = fread(bytes, 1, 1 << 16, file);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

static int files_in(const char *folder)
{
    DIR *d = opendir(folder);
    int n = -2; /* . and .. */

    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static void set(tutti_state_dict *sd, const char *name, const tutti_tensor *t)
{
    assert_non_null(t);
    assert_int_equal(tutti_state_dict_set(sd, name, t), TUTTI_OK);
}

/* ---- the package's files ---------------------------------------------------------------------- */

/* What make_safetensors.py saves as plain.safetensors. */
static tutti_state_dict *plain(void)
{
    tutti_tensor *quarters = tutti_tensor_arange(TUTTI_F32, 0, 6, 1);
    tutti_state_dict *sd = NULL;

    assert_int_equal(tutti_state_dict_create(&sd), TUTTI_OK);
    set(sd, "z", tutti_tensor_scalar(TUTTI_I64, 7));
    set(sd, "b", tutti_tensor_from_data((const float[]){ 1, -2 }, TUTTI_F32, 1, SHAPE(2)));
    set(sd, "B.weight", tutti_tensor_view(tutti_tensor_mul_scalar(quarters, 0.25), 2, SHAPE(2, 3)));
    set(sd, "c", tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(0, 3)));
    set(sd, "d", tutti_tensor_from_data((const double[]){ 0.1, 1e300 }, TUTTI_F64, 2, SHAPE(2, 1)));
    set(sd, "i",
        tutti_tensor_from_data((const int32_t[]){ -1, INT32_MAX }, TUTTI_I32, 1, SHAPE(2)));
    set(sd, "mask", tutti_tensor_from_data((const uint8_t[]){ 1, 0, 1 }, TUTTI_BOOL, 1, SHAPE(3)));
    set(sd, "u", tutti_tensor_from_data((const uint8_t[]){ 0, 255, 7 }, TUTTI_U8, 1, SHAPE(3)));
    set(sd, "\xc3\xa4 \"quoted\" \\ name",
        tutti_tensor_from_data((const float[]){ 0.5 }, TUTTI_F32, 1, SHAPE(1)));
    assert_int_equal(tutti_state_dict_set_metadata(sd, "format", "pt"), TUTTI_OK);
    return sd;
}

static void check_equal(const tutti_state_dict *a, const tutti_state_dict *b)
{
    assert_int_equal(tutti_state_dict_length(a), tutti_state_dict_length(b));
    for (int64_t i = 0; i < tutti_state_dict_length(a); i++) {
        const char *name = tutti_state_dict_name(a, i);

        if (!tutti_tensor_equal(tutti_state_dict_tensor(a, i), tutti_state_dict_get(b, name)))
            fail_msg("'%s' differs", name);
    }
}

static void files_are_the_packages(void **state)
{
    tutti_state_dict *sd = plain(), *read = NULL;
    size_t n, n_want;
    char *got, *want;

    (void)state;
    assert_int_equal(tutti_safetensors_save(sd, path), TUTTI_OK);
    got = get(path, &n);
    want = get(GOLDEN "/plain.safetensors", &n_want);
    assert_int_equal(n, n_want);
    assert_memory_equal(got, want, n);
    assert_int_equal(tutti_safetensors_load(GOLDEN "/plain.safetensors", &read), TUTTI_OK);
    check_equal(sd, read);
    assert_string_equal(tutti_state_dict_metadata(read, "format"), "pt");
    tutti_state_dict_free(sd);
    tutti_state_dict_free(read);
    free(got);
    free(want);
}

static void types_without_tensors_are_seen_and_refused(void **state)
{
    static const uint8_t scale[2] = { 127, 128 };
    const tutti_safetensors_entry *e;
    tutti_safetensors *file = NULL;
    tutti_tensor *t = NULL;
    tutti_state_dict *sd = NULL;

    (void)state;
    assert_int_equal(tutti_safetensors_open(GOLDEN "/more.safetensors", &file), TUTTI_OK);
    assert_int_equal(tutti_safetensors_length(file), 3);
    e = tutti_safetensors_find(file, "half");
    assert_int_equal(e->dtype, TUTTI_BF16);
    assert_true(e->nd == 2 && e->shape[0] == 1 && e->shape[1] == 2 && e->bytes == 4);
    assert_memory_equal(e->data, "\x80\x3f\x00\xc0", 4);
    e = tutti_safetensors_at(file, 2);
    assert_string_equal(e->name, "scale");
    assert_string_equal(e->dtype_name, "F8_E8M0");
    assert_int_equal(e->dtype, TUTTI_DTYPE_COUNT);
    assert_memory_equal(e->data, scale, 2);
    assert_int_equal(tutti_safetensors_tensor(file, "scale", &t), TUTTI_E_UNSUPPORTED);
    assert_non_null(strstr(tutti_last_error(), "tensor 'scale' has 1 dimensions of F8_E8M0"));
    assert_int_equal(tutti_safetensors_tensor(file, "scales", &t), TUTTI_E_ARG);
    assert_null(t);
    assert_int_equal(tutti_safetensors_tensor(file, "after", &t), TUTTI_OK);
    assert_ptr_equal(tutti_tensor_data(t), tutti_safetensors_find(file, "after")->data);
    tutti_safetensors_close(file);
    assert_true(*(float *)tutti_tensor_data(t) == 3.0f); /* keeps the mapping */
    tutti_tensor_release(t);
    assert_int_equal(tutti_safetensors_load(GOLDEN "/more.safetensors", &sd), TUTTI_E_UNSUPPORTED);
    assert_null(sd);
    assert_null(tutti_safetensors_at(NULL, 0));
    assert_null(tutti_safetensors_find(NULL, "x"));
    tutti_safetensors_close(NULL);
}

static void tied_tensors_are_one(void **state)
{
    tutti_state_dict *sd = NULL;
    const tutti_tensor *a, *b;
    size_t n, n_want;
    char *got, *want;

    (void)state;
    assert_int_equal(tutti_safetensors_load(GOLDEN "/tied.safetensors", &sd), TUTTI_OK);
    assert_int_equal(tutti_state_dict_length(sd), 2);
    a = tutti_state_dict_get(sd, "0.weight");
    b = tutti_state_dict_get(sd, "1.weight");
    assert_ptr_equal(tutti_tensor_data(a), tutti_tensor_data(b));
    assert_true(((const float *)tutti_tensor_data(b))[3] == 4.0f);
    assert_int_equal(tutti_safetensors_save(sd, path), TUTTI_OK);
    got = get(path, &n);
    want = get(GOLDEN "/tied.safetensors", &n_want);
    assert_int_equal(n, n_want);
    assert_memory_equal(got, want, n);
    assert_int_equal(tutti_state_dict_set_metadata(sd, "1.weight", "my own word"), TUTTI_OK);
    assert_int_equal(tutti_safetensors_save(sd, path), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "metadata has the key '1.weight'"));
    tutti_state_dict_free(sd);
    free(got);
    free(want);
}

/* ---- round trips ------------------------------------------------------------------------------ */

static void strides_and_shared_memory(void **state)
{
    tutti_tensor *x = tutti_tensor_randn(TUTTI_F32, 2, SHAPE(50, 70), NULL);
    tutti_state_dict *sd = NULL, *read = NULL;

    (void)state;
    assert_int_equal(tutti_state_dict_create(&sd), TUTTI_OK);
    set(sd, "x", x);
    set(sd, "turned", tutti_tensor_transpose(x, 0, 1));
    set(sd, "part", tutti_tensor_narrow(x, 0, 3, 9));
    set(sd, "row", tutti_tensor_select(x, 1, 5));
    set(sd, "wide", tutti_tensor_expand(tutti_tensor_select(x, 0, 1), 2, SHAPE(4, 70)));
    set(sd, "again", x);
    assert_int_equal(tutti_safetensors_save(sd, path), TUTTI_OK);
    assert_int_equal(tutti_safetensors_load(path, &read), TUTTI_OK);
    check_equal(sd, read);
    assert_ptr_equal(tutti_tensor_data(tutti_state_dict_get(read, "x")),
                     tutti_tensor_data(tutti_state_dict_get(read, "again")));
    assert_ptr_not_equal(tutti_tensor_data(tutti_state_dict_get(read, "x")),
                         tutti_tensor_data(tutti_state_dict_get(read, "part")));
    tutti_state_dict_free(sd);
    tutti_state_dict_free(read);
}

static void writing_to_what_was_loaded_leaves_the_file(void **state)
{
    tutti_state_dict *sd = plain(), *first = NULL, *second = NULL;

    (void)state;
    assert_int_equal(tutti_safetensors_save(sd, path), TUTTI_OK);
    assert_int_equal(tutti_safetensors_load(path, &first), TUTTI_OK);
    assert_int_equal(tutti_tensor_fill_(tutti_state_dict_get(first, "b"), 9.0), TUTTI_OK);
    assert_int_equal(tutti_safetensors_load(path, &second), TUTTI_OK);
    check_equal(sd, second);
    /* Saving over the file that is mapped: the mapping keeps the old one. */
    assert_int_equal(tutti_safetensors_save(first, path), TUTTI_OK);
    check_equal(sd, second);
    tutti_state_dict_free(second);
    assert_int_equal(tutti_safetensors_load(path, &second), TUTTI_OK);
    check_equal(first, second);
    tutti_state_dict_free(sd);
    tutti_state_dict_free(first);
    tutti_state_dict_free(second);
}

static void an_empty_state_is_sixteen_bytes(void **state)
{
    tutti_state_dict *sd = NULL, *read = NULL;
    size_t n;
    char *got;

    (void)state;
    assert_int_equal(tutti_state_dict_create(&sd), TUTTI_OK);
    assert_int_equal(tutti_safetensors_save(sd, path), TUTTI_OK);
    got = get(path, &n);
    assert_int_equal(n, 16);
    assert_memory_equal(got, "\10\0\0\0\0\0\0\0{}      ", 16);
    assert_int_equal(tutti_safetensors_load(path, &read), TUTTI_OK);
    assert_int_equal(tutti_state_dict_length(read), 0);
    tutti_state_dict_free(sd);
    tutti_state_dict_free(read);
    free(got);
}

/* ---- appearing -------------------------------------------------------------------------------- */

static void a_file_appears_whole_or_not_at_all(void **state)
{
    tutti_state_dict *sd = plain(), *read = NULL;
    char nowhere[320];
    struct stat info;
    size_t n;
    char *got;

    (void)state;
    put(path, "old", 3);
    assert_int_equal(tutti_state_dict_set_metadata(sd, "broken", "\xff"), TUTTI_OK);
    assert_int_equal(tutti_safetensors_save(sd, path), TUTTI_E_ARG);
    got = get(path, &n);
    assert_int_equal(n, 3); /* the old one is untouched */
    assert_int_equal(files_in(dir), 1);
    free(got);
    assert_int_equal(tutti_state_dict_set_metadata(sd, "broken", NULL), TUTTI_OK);
    assert_int_equal(tutti_safetensors_save(sd, path), TUTTI_OK);
    assert_int_equal(tutti_safetensors_load(path, &read), TUTTI_OK);
    check_equal(sd, read);
    assert_int_equal(files_in(dir), 1);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0600, 0600);
    snprintf(nowhere, sizeof nowhere, "%s/no/file", dir);
    assert_int_equal(tutti_safetensors_save(sd, nowhere), TUTTI_E_IO);
    snprintf(nowhere, sizeof nowhere, "%s/", dir);
    assert_int_equal(tutti_safetensors_save(sd, nowhere), TUTTI_E_IO);
    assert_int_equal(mkdir(strcat(nowhere, "taken"), 0700), 0);
    assert_int_equal(tutti_safetensors_save(sd, nowhere),
                     TUTTI_E_IO); /* a folder is not replaced */
    assert_int_equal(files_in(dir), 2);
    assert_int_equal(tutti_safetensors_save(NULL, path), TUTTI_E_ARG);
    assert_int_equal(tutti_safetensors_save(sd, NULL), TUTTI_E_ARG);
    tutti_state_dict_free(sd);
    tutti_state_dict_free(read);
}

/* A limit on the size of files stands for a disk that is full. */
static void a_file_that_does_not_fit_leaves_the_old_one(void **state)
{
    struct rlimit old, small = { .rlim_cur = 1000 };
    tutti_state_dict *sd = plain();
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    size_t n;
    char *got;

    (void)state;
    put(path, "old", 3);
    set(sd, "large", tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(1000)));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(tutti_safetensors_save(sd, path), TUTTI_E_IO);
    assert_non_null(strstr(tutti_last_error(), "cannot write to '"));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    (void)signal(SIGXFSZ, handler);
    got = get(path, &n);
    assert_int_equal(n, 3);
    assert_int_equal(files_in(dir), 1);
    free(got);
    tutti_state_dict_free(sd);
}

/* ---- malformed files -------------------------------------------------------------------------- */

/* Write header text with its length, then data. */
static void put_header(const char *name, const char *header, const void *data, size_t bytes)
{
    const uint64_t n = strlen(header);
    char all[2048];

    assert_true(8 + n + bytes <= sizeof all);
    memcpy(all, &n, 8);
    memcpy(all + 8, header, n);
    memcpy(all + 8 + n, data, bytes);
    put(name, all, 8 + n + bytes);
}

typedef struct malformed {
    const char *header;
    size_t data; /* bytes of it */
    const char *words;
} malformed;

#define T(name, dtype, shape, from, to)                                                            \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]" \
                                                                                               "}"

static const malformed headers[] = {
    { "[]", 0, "does not begin with '{'" },
    { " {}", 0, "does not begin with '{'" },
    { "{", 0, "byte 1 of the header" },
    { "{}x", 0, "byte 3 of the header" },
    { "{\"a\xff\":1}", 0, "byte 3 of the header" },
    { "{\"a\":1}", 0, "tensor 'a': its description is no object" },
    { "{" T("a", "F32", "[1]", "0", "4") "," T("a", "F32", "[1]", "0", "4") "}", 4,
      "duplicate object key" },
    { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
      "duplicate object key" },
    { "{" T("a", "F33", "[1]", "0", "4") "}", 4, "tensor 'a': there is no dtype 'F33'" },
    { "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tensor 'a': no 'dtype'" },
    { "{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tensor 'a': no 'dtype'" },
    { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "tensor 'a': no 'shape'" },
    { "{" T("a", "F32", "[-1]", "0", "4") "}", 4, "tensor 'a': a size in 'shape'" },
    { "{" T("a", "F32", "[1.0]", "0", "4") "}", 4, "tensor 'a': a size in 'shape'" },
    { "{" T("a", "F32", "[\"1\"]", "0", "4") "}", 4, "tensor 'a': a size in 'shape'" },
    { "{" T("a", "F32", "[4294967296,4294967296]", "0", "4") "}", 4, "more elements than" },
    { "{" T("a", "F64", "[1152921504606846976]", "0", "0") "}", 0, "are not the 0 bytes" },
    { "{" T("a", "F32", "[1e400]", "0", "4") "}", 4, "of the header" },
    { "{" T("a", "F32", "[99999999999999999999]", "0", "4") "}", 4, "of the header" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "tensor 'a': no 'data_offsets'" },
    { "{" T("a", "F32", "[1]", "0", "4,8") "}", 4, "tensor 'a': no 'data_offsets'" },
    { "{" T("a", "F32", "[1]", "-4", "0") "}", 4, "tensor 'a': no 'data_offsets'" },
    { "{" T("a", "F32", "[1]", "4", "0") "}", 4, "tensor 'a': data_offsets 4 to 0" },
    { "{" T("a", "F32", "[1]", "0", "8") "}", 4, "data_offsets 0 to 8, of 4 bytes of data: the file is cut off\n  next: " },
    { "{" T("a", "F32", "[1]", "0", "9223372036854775807") "}", 4, "of 4 bytes of data" },
    { "{" T("a", "F32", "[2]", "0", "4") "}", 4, "tensor 'a': 2 elements of F32 are not the 4" },
    { "{" T("a", "F4", "[1]", "0", "0") "}", 0, "1 elements of F4 are not" },
    { "{" T("a", "F32", "[1]", "4", "8") "}", 8,
      "tensor 'a' begins at byte 4 of the data, with a gap" },
    { "{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "0", "4") "}", 4,
      "tensor 'b' begins at byte 0 of the data, inside of another, which ends at byte 4" },
    { "{" T("a", "F32", "[2]", "0", "8") "," T("b", "F32", "[1]", "4", "8") "}", 8, "inside of" },
    { "{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "8", "12") "}", 12,
      "with a gap" },
    { "{" T("a", "F32", "[1]", "0", "4") "}", 6, "tensors end at byte 4 of 6 bytes" },
    { "{}", 1, "tensors end at byte 0 of 1 bytes" },
    { "{\"__metadata__\":{\"a\":1}}", 0, "metadata 'a' is no word" },
    { "{\"__metadata__\":[]}", 0, "'__metadata__' is no object" },
    { "{\"a\\u0000b\":{}}", 0, "of the header" },
    { "{\"a\\u0007\":1}", 0, "tensor 'a?'" },
};

static void malformed_headers_are_named(void **state)
{
    static const char zeros[16];

    (void)state;
    for (size_t k = 0; k < sizeof headers / sizeof headers[0]; k++) {
        const malformed *m = &headers[k];
        tutti_safetensors *file = NULL;

        put_header(path, m->header, zeros, m->data);
        if (tutti_safetensors_open(path, &file) != TUTTI_E_IO || file != NULL)
            fail_msg("%s was taken", m->header);
        if (strstr(tutti_last_error(), path) == NULL ||
            strstr(tutti_last_error(), m->words) == NULL)
            fail_msg("%s: '%s' does not say '%s'", m->header, tutti_last_error(), m->words);
    }
}

static void check_bytes(const void *bytes, size_t n, const char *words)
{
    tutti_safetensors *file = NULL;

    put(path, bytes, n);
    assert_int_equal(tutti_safetensors_open(path, &file), TUTTI_E_IO);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' does not say '%s'", tutti_last_error(), words);
}

static void malformed_files_are_named(void **state)
{
    tutti_safetensors *file = NULL;

    (void)state;
    check_bytes("1234567", 7, "7 bytes are too few");
    check_bytes("", 0, "0 bytes are too few");
    check_bytes("\0\0\0\0\0\0\0\0", 8, "does not begin with '{'");
    check_bytes("\3\0\0\0\0\0\0\0{}", 10, "a header of 3 bytes in a file of 10: the file is cut off\n  next: ");
    check_bytes("Title\n\0\0some words", 18, "this is no safetensors file");
    check_bytes("<!DOCTYPE html>", 15, "of at most 100000000: this is no safetensors file\n  next: ");
    check_bytes("\2\0\0\0\0\0\0\0[]", 10, "does not begin with '{': this is no safetensors file\n  next: ");
    check_bytes("\1\341\365\5\0\0\0\0{}", 10, "a header of 100000001 bytes, of at most 100000000");
    check_bytes("\377\377\377\377\377\377\377\377{}", 10, "of at most 100000000");
    assert_int_equal(tutti_safetensors_open("/nowhere/file", &file), TUTTI_E_IO);
    assert_int_equal(tutti_safetensors_open(dir, &file), TUTTI_E_IO);
    assert_non_null(strstr(tutti_last_error(), "no regular file"));
    assert_int_equal(tutti_safetensors_open("/dev/null", &file), TUTTI_E_IO);
    assert_int_equal(tutti_safetensors_open(NULL, &file), TUTTI_E_ARG);
    assert_null(file);
}

static void what_the_format_allows_is_taken(void **state)
{
    static const float data[3] = { 1.0f, 2.0f, 3.0f };
    tutti_state_dict *sd = NULL;
    tutti_tensor *t;

    (void)state;
    put(path, "\6\0\0\0\0\0\0\0{}\r \t\n", 14); /* white space behind the header */
    assert_int_equal(tutti_safetensors_load(path, &sd), TUTTI_OK);
    tutti_state_dict_free(sd);
    /* Any order, fields that nobody knows, escapes, empty tensors at one place; and not aligned. */
    put_header(
        path,
        "{" T("\\u00e4\\ud83d\\ude00", "F32", "[2]", "4",
              "12") ",\"x\":{\"more\":[1,{}],"
                    "\"data_offsets\":[0,4],\"shape\":[],\"dtype\":\"F32\"}," T(
                        "e", "F64", "[3,0]", "4", "4") "," T("f", "I64", "[0]", "4", "4") "}  ",
        data, sizeof data);
    assert_int_equal(tutti_safetensors_load(path, &sd), TUTTI_OK);
    t = tutti_state_dict_get(sd, "\xc3\xa4\xf0\x9f\x98\x80");
    assert_non_null(t);
    assert_memory_equal(tutti_tensor_data(t), data + 1, 8);
    assert_true((uintptr_t)tutti_tensor_data(t) % sizeof(float) == 0);
    assert_int_equal(tutti_tensor_dim(tutti_state_dict_get(sd, "x")), 0);
    assert_int_equal(tutti_tensor_size(tutti_state_dict_get(sd, "e"), 0), 3);
    tutti_state_dict_free(sd);
}

/* ---- mutated files ---------------------------------------------------------------------------- */

static uint32_t draw(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

static const char *const pieces[] = { "9",
                                      "-",
                                      "[",
                                      "]",
                                      "{",
                                      "}",
                                      ",",
                                      ":",
                                      "\"",
                                      "0",
                                      "18446744073709551616",
                                      "null",
                                      "1e9",
                                      "\\u0000",
                                      "\"a\"",
                                      " ",
                                      "\xff",
                                      "[[[[",
                                      "F64",
                                      "\"dtype\"" };

/* Change some bytes of the first n, or put a word over them. */
static void mutate(char *bytes, size_t n, uint32_t *seed)
{
    for (uint32_t k = 1 + draw(seed) % 4; k > 0; k--) {
        const size_t at = draw(seed) % n;
        const char *piece = pieces[draw(seed) % (sizeof pieces / sizeof pieces[0])];
        const size_t length = strlen(piece) < n - at ? strlen(piece) : n - at;

        if (draw(seed) % 2 == 0)
            bytes[at] = (char)draw(seed);
        else
            memcpy(bytes + at, piece, length);
    }
}

/* Look at every byte that the file gives out: under the sanitizer, or behind the mapping, a wrong one is fatal. */
static unsigned look_at_all(const tutti_safetensors *file)
{
    const tutti_safetensors_entry *e;
    unsigned sum = 0;

    for (int64_t i = 0; (e = tutti_safetensors_at(file, i)) != NULL; i++) {
        tutti_tensor *t = NULL;

        for (size_t k = 0; k < e->bytes; k++)
            sum += ((const unsigned char *)e->data)[k];
        assert_ptr_equal(tutti_safetensors_find(file, e->name), e);
        if (tutti_safetensors_tensor(file, e->name, &t) == TUTTI_OK) {
            const unsigned char *x = tutti_tensor_data(t);

            for (size_t k = 0; k < e->bytes; k++)
                sum -= x[k];
        }
        tutti_tensor_release(t);
    }
    return sum;
}

static void mutated_files_do_no_harm(void **state)
{
    const int fd = memfd_create("mutated", MFD_CLOEXEC), rounds = 20000;
    tutti_state_dict *sd = plain(), *read = NULL;
    char name[40], copy[4096], *bytes;
    uint32_t seed = 20240229;
    int taken = 0;
    size_t n;

    (void)state;
    assert_true(fd >= 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    assert_int_equal(tutti_safetensors_save(sd, path), TUTTI_OK);
    bytes = get(path, &n);
    assert_true(n <= sizeof copy);
    for (int i = 0; i < rounds; i++) {
        const size_t length = draw(&seed) % 8 == 0 ? draw(&seed) % n : n;
        tutti_safetensors *file = NULL;

        memcpy(copy, bytes, n);
        mutate(copy, n - 74, &seed); /* all but the data */
        assert_int_equal(ftruncate(fd, (off_t)length), 0);
        assert_int_equal(pwrite(fd, copy, length, 0), length);
        if (tutti_safetensors_open(name, &file) == TUTTI_OK) {
            taken++;
            (void)look_at_all(file);
        } else {
            assert_null(file);
            assert_non_null(strstr(tutti_last_error(), name));
        }
        tutti_safetensors_close(file);
        if (tutti_safetensors_load(name, &read) == TUTTI_OK)
            tutti_state_dict_free(read);
    }
    if (taken < rounds / 200 || taken > rounds / 2) /* a changed name is none of the reader's business */
        fail_msg("%d of %d mutated files were taken", taken, rounds);
    tutti_state_dict_free(sd);
    free(bytes);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_the_packages, begin, end),
        cmocka_unit_test_setup_teardown(types_without_tensors_are_seen_and_refused, begin, end),
        cmocka_unit_test_setup_teardown(tied_tensors_are_one, begin, end),
        cmocka_unit_test_setup_teardown(strides_and_shared_memory, begin, end),
        cmocka_unit_test_setup_teardown(writing_to_what_was_loaded_leaves_the_file, begin, end),
        cmocka_unit_test_setup_teardown(an_empty_state_is_sixteen_bytes, begin, end),
        cmocka_unit_test_setup_teardown(a_file_appears_whole_or_not_at_all, begin, end),
        cmocka_unit_test_setup_teardown(a_file_that_does_not_fit_leaves_the_old_one, begin, end),
        cmocka_unit_test_setup_teardown(malformed_headers_are_named, begin, end),
        cmocka_unit_test_setup_teardown(malformed_files_are_named, begin, end),
        cmocka_unit_test_setup_teardown(what_the_format_allows_is_taken, begin, end),
        cmocka_unit_test_setup_teardown(mutated_files_do_no_harm, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
