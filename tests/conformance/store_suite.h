/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_suite.h - the stores that the conformance suite runs on, and its tests. */
#ifndef STORE_SUITE_H
#define STORE_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <tutti/store.h>

typedef struct fixture {
    const char  *name;
    tutti_store *a, *b;
    tutti_store *below; /* of a prefix store; else NULL */
    char         dir[40];
    char         path[64];
} fixture;

/** Two handles of the store that the present test runs on. */
extern fixture current;

/** Their names; *state of store_setup() is an index of it. */
extern const char *const store_kinds[];
extern const size_t      n_store_kinds;
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
