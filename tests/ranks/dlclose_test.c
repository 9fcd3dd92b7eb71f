/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dlclose_test.c
 * Goal    a program that loads the library, makes a world, and lets the library go goes on, and ends, as if it had not:
 *         threads, handlers of forks and destructors of threads are in its code, so it stays.
 * Method  dlopen(argv[1]); a store that is served by a thread of its own; dlclose() with the thread running, and
 *         after the world was destroyed; a fork and the end of a thread afterwards, which call into the library. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tutti/tutti.h>

#define CHECK(what)                                                                                    \
    do {                                                                                               \
        if (!(what)) {                                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                 \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (0)

static void *lib;

/* ISO C has no way from an object's address to a function's; POSIX has this one. */
#define FIND(name) (*(__typeof__(&tutti_##name) *)&(void *){ dlsym(lib, "tutti_" #name) })

static tutti_store_server *running; /* to the end of the process, without a library that could stop it */

static void *use(void *path)
{
    tutti_store_server_options serve = TUTTI_STORE_SERVER_OPTIONS;
    tutti_init_options         opts = TUTTI_INIT_OPTIONS;
    tutti_group               *world = NULL;

    lib = dlopen(path, RTLD_NOW);
    if (lib == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(lib != NULL);
    CHECK(FIND(store_server_start)(&serve, &running) == TUTTI_OK);
    CHECK(FIND(hash_store_open)(&opts.store) == TUTTI_OK);
    opts.world_size = 1;
    CHECK(FIND(create_process_group)(&opts, &world) == TUTTI_OK);
    CHECK(FIND(destroy_process_group)(world) == TUTTI_OK);
    FIND(store_close)(opts.store);
    CHECK(dlclose(lib) == 0);
    return NULL;
}

static void *nothing(void *arg)
{
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    pid_t     child;
    int       status = -1;

    CHECK(argc == 2);
    CHECK(pthread_create(&thread, NULL, use, argv[1]) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL); /* it is still there */
    child = fork();
    if (child == 0)
        exit(0);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}
