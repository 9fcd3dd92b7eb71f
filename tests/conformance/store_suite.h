/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_suite.h - the stores that the conformance suite runs on, and its tests. */
#ifndef STORE_SUITE_H
#define STORE_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <tutti/store.h>
#include "harness/torch_server.h"

typedef struct fixture {
    const char  *name;
    tutti_store *a, *b;
    tutti_store *below; /* of a prefix store; else NULL */
    char         dir[40];
    char         path[64];
    tt_torch_server *torch; /* of torch-tcp; NULL: PyTorch's own */
} fixture;

/** How long something is waited for that does not come: enough for a store to answer what there is, on a busy machine. */
enum { SHORT_MS = 300 };

/** Two handles of the store that the present test runs on. */
extern fixture current;

/** A real TCPStore: whoever writes a line to `ask` reads the port of a fresh one from `answer`.
 * Then the tests run on that alone. old: it runs without libuv and knows no queues. */
void use_torch(int ask, int answer, bool old);

/** Whether the present store has queues, and lists of keys; the most bytes of a value. */
bool   has_queues(void);
bool   has_names(void);
size_t value_max(void);

/** Their names; *state of store_setup() is an index of it. */
extern const char       *store_kinds[];
extern size_t            n_store_kinds;
int                      store_setup(void **state);
int                      store_teardown(void **state);

/** Set and get text. */
void set_text(tutti_store *store, const char *key, const char *text);
void has_text(tutti_store *store, const char *key, const char *text);
bool there(tutti_store *store, const char *key);

typedef struct one_test {
    const char *name;
    void (*run)(void **state);
} one_test;

#define ONE(test)   \
    {               \
#test, test \
    }

/** Tests of append, several keys, queues, names, barriers, clones. */
extern const one_test extended_tests[];
extern const size_t   n_extended_tests;

#endif
