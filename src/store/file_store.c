/* SPDX-License-Identifier: BSD-3-Clause
 *
 * file_store.c - a store in a log file that several processes, or handles of one process, append
 * to.
 *
 * How     Every operation locks the file, reads what was appended, acts on the copy in memory,
 *         appends, unlocks.
 * Waiting  looks at the file's size after 1 ms, then less often, at least every 10 ms. Each handle
 *          counts itself in "refcount/", and in "cleanup/" when it closes: the last one of
 *          world_size removes the file.
 * True    `lock` guards the log; it is held across one locked operation on the file, never across a
 *         wait: a file that others have locked is tried again after a pause without it. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "store/file_log.h"
#include "store/store_value.h"

#define FIRST_PAUSE_NS   (1 * TTI_MS)
#define LONGEST_PAUSE_NS (10 * TTI_MS)
#define CLOSE_NS         (70 * TTI_MS) /* how long a close waits for others' locks: the end of a world waits for nobody */

typedef struct file_store {
    tutti_store  base; /* first: the two pointers convert both ways */
    tti_port    *port;
    int          world_size;
    tti_mutex    lock; /* guards log */
    tti_file_log log;
} file_store;

/* A user key as it stands in the file. */
typedef struct file_key {
    char text[TUTTI_STORE_KEY_MAX + 2];
} file_key;

static const char *in_file(const char *key, file_key *room)
{
    room->text[0] = '/';
    memcpy(room->text + 1, key, strlen(key) + 1);
    return room->text;
}

static void pause_for(file_store *fs, int64_t *pause_ns, int64_t deadline_ns)
{
    const int64_t until = tti_port_now(fs->port) + *pause_ns;

    fs->port->ops->sleep_until(fs->port, until < deadline_ns ? until : deadline_ns);
    *pause_ns = *pause_ns * 2 < LONGEST_PAUSE_NS ? *pause_ns * 2 : LONGEST_PAUSE_NS;
}

/* Both locks; ended by leave(). At least one try, whatever the deadline. */
static tutti_status enter(file_store *fs, bool exclusive, int64_t deadline_ns)
{
    int64_t      pause_ns = FIRST_PAUSE_NS / 4; /* others hold the lock for microseconds */
    bool         locked = false;
    bool         late = false;
    tutti_status st;

    for (;;) {
        tti_lock(&fs->lock);
        st = tti_file_log_try_lock(&fs->log, exclusive, &locked);
        if (st == TUTTI_OK && locked && !tti_file_log_removed(&fs->log))
            return TUTTI_OK;
        if (st == TUTTI_OK && locked) {
            tti_file_log_unlock(&fs->log);
            st = tti_fail(TUTTI_E_IO, "store file '%s' was removed while it was in use",
                          fs->log.path);
        }
        tti_unlock(&fs->lock);
        if (st != TUTTI_OK)
            return st;
        if (late)
            return tti_fail(TUTTI_E_TIMEOUT, "store file '%s' stayed locked by others",
                            fs->log.path);
        pause_for(fs, &pause_ns, deadline_ns);
        late = tti_port_now(fs->port) >= deadline_ns;
    }
}

static void leave(file_store *fs)
{
    tti_file_log_unlock(&fs->log);
    tti_unlock(&fs->lock);
}

static tutti_status file_set(tutti_store *store, const char *key, const void *val, size_t len,
                             int64_t deadline_ns)
{
    file_store  *fs = (file_store *)store;
    file_key     room;
    tutti_status st = enter(fs, true, deadline_ns);

    if (st != TUTTI_OK)
        return st;
    st = tti_file_log_put(&fs->log, in_file(key, &room), val, len);
    leave(fs);
    return st;
}

/* The first key that the copy lacks; n_keys: none. */
static size_t missing_in_copy(const file_store *fs, const char *const *keys, size_t n_keys)
{
    file_key room;
    size_t   i;

    for (i = 0; i < n_keys; i++) {
        const char *key = in_file(keys[i], &room);

        if (!tti_map_get(&fs->log.map, key, strlen(key), NULL, NULL))
            break;
    }
    return i;
}

/* Wait until all keys are there; on TUTTI_OK both locks are held, so that the caller can read. */
static tutti_status enter_when_there(file_store *fs, const char *const *keys, size_t n_keys,
                                     int64_t deadline_ns)
{
    const int64_t start = tti_port_now(fs->port);
    int64_t       pause_ns = FIRST_PAUSE_NS;
    tutti_status  st;

    for (;;) {
        bool   late = tti_port_now(fs->port) >= deadline_ns || tti_store_stops();
        size_t missing;

        st = enter(fs, false, late ? tti_port_now(fs->port) + LONGEST_PAUSE_NS : deadline_ns);
        if (st != TUTTI_OK)
            return st;
        missing = missing_in_copy(fs, keys, n_keys);
        if (missing == n_keys)
            return TUTTI_OK;
        leave(fs);
        if (late)
            return tti_store_timed_out(fs->port, keys[missing], start);
        do {
            pause_for(fs, &pause_ns, deadline_ns);
            tti_lock(&fs->lock);
            late = tti_port_now(fs->port) >= deadline_ns || tti_store_stops() || tti_file_log_grew(&fs->log) ||
                   missing_in_copy(fs, keys, n_keys) != missing;
            tti_unlock(&fs->lock);
        } while (!late);
    }
}

static tutti_status file_get(tutti_store *store, const char *key, int64_t deadline_ns,
                             tutti_bytes *val_out)
{
    file_store  *fs = (file_store *)store;
    file_key     room;
    const void  *val = NULL;
    size_t       size = 0;
    tutti_status st = enter_when_there(fs, &key, 1, deadline_ns);

    if (st != TUTTI_OK)
        return st;
    in_file(key, &room);
    tti_map_get(&fs->log.map, room.text, strlen(room.text), &val, &size);
    st = tti_bytes_copy(val, size, val_out);
    leave(fs);
    return st;
}

static tutti_status file_wait_all(tutti_store *store, const char *const *keys, size_t n_keys,
                                  int64_t deadline_ns)
{
    file_store  *fs = (file_store *)store;
    tutti_status st = enter_when_there(fs, keys, n_keys, deadline_ns);

    if (st == TUTTI_OK)
        leave(fs);
    return st;
}

static tutti_status file_check(tutti_store *store, const char *const *keys, size_t n_keys,
                               int64_t deadline_ns, bool *all_out)
{
    file_store  *fs = (file_store *)store;
    tutti_status st = enter(fs, false, deadline_ns);

    if (st != TUTTI_OK)
        return st;
    *all_out = missing_in_copy(fs, keys, n_keys) == n_keys;
    leave(fs);
    return TUTTI_OK;
}

/* Add to a number and write it down. The caller holds the exclusive lock. */
static tutti_status add_locked(file_store *fs, const char *key, int64_t delta, const char *shown,
                               int64_t *sum_out)
{
    const void  *val = NULL;
    size_t       size = 0;
    tti_map      sums; /* of one key: the copy changes only together with the file */
    tutti_status st = TUTTI_OK;

    tti_map_init(&sums, fs->port);
    if (tti_map_get(&fs->log.map, key, strlen(key), &val, &size))
        st = tti_map_put(&sums, "n", 1, val, size);
    if (st == TUTTI_OK)
        st = tti_store_map_add(&sums, "n", 1, delta, shown, sum_out);
    if (st == TUTTI_OK && tti_map_get(&sums, "n", 1, &val, &size))
        st = tti_file_log_put(&fs->log, key, val, size);
    tti_map_release(&sums);
    return st;
}

static tutti_status file_add(tutti_store *store, const char *key, int64_t delta,
                             int64_t deadline_ns, int64_t *sum_out)
{
    file_store  *fs = (file_store *)store;
    file_key     room;
    int64_t      sum = 0;
    tutti_status st = enter(fs, true, deadline_ns);

    if (st != TUTTI_OK)
        return st;
    st = add_locked(fs, in_file(key, &room), delta, key, &sum);
    leave(fs);
    if (st == TUTTI_OK)
        *sum_out = sum;
    return st;
}

static tutti_status file_compare_set(tutti_store *store, const char *key, const void *expected,
                                     size_t expected_len, const void *desired, size_t desired_len,
                                     int64_t deadline_ns, tutti_bytes *val_out)
{
    file_store  *fs = (file_store *)store;
    file_key     room;
    const void  *val = NULL;
    size_t       size = 0;
    bool         found;
    tutti_bytes  copy = { .data = NULL };
    tutti_status st = enter(fs, true, deadline_ns);

    if (st != TUTTI_OK)
        return st;
    in_file(key, &room);
    found = tti_map_get(&fs->log.map, room.text, strlen(room.text), &val, &size);
    if (size == expected_len && (size == 0 || memcmp(val, expected, size) == 0)) {
        st = tti_bytes_copy(desired, desired_len, &copy);
        if (st == TUTTI_OK)
            st = tti_file_log_put(&fs->log, room.text, desired, desired_len);
    } else {
        st = tti_bytes_copy(found ? val : expected, found ? size : expected_len, &copy);
    }
    leave(fs);
    if (st == TUTTI_OK)
        *val_out = copy;
    else
        tutti_bytes_free(&copy);
    return st;
}

static tutti_status file_delete_key(tutti_store *store, const char *key, int64_t deadline_ns,
                                    bool *deleted_out)
{
    file_store  *fs = (file_store *)store;
    file_key     room;
    bool         found;
    tutti_status st = enter(fs, true, deadline_ns);

    if (st != TUTTI_OK)
        return st;
    in_file(key, &room);
    found = tti_map_get(&fs->log.map, room.text, strlen(room.text), NULL, NULL);
    if (found)
        st = tti_file_log_delete(&fs->log, room.text);
    leave(fs);
    if (st == TUTTI_OK)
        *deleted_out = found;
    return st;
}

static tutti_status file_num_keys(tutti_store *store, int64_t deadline_ns, int64_t *n_out)
{
    file_store  *fs = (file_store *)store;
    tutti_status st = enter(fs, false, deadline_ns);

    if (st != TUTTI_OK)
        return st;
    *n_out = (int64_t)fs->log.map.count;
    leave(fs);
    return TUTTI_OK;
}

/* As one record, so that a crash leaves the old value or the new one. */
static tutti_status file_append(tutti_store *store, const char *key, const void *val, size_t len,
                                int64_t deadline_ns)
{
    file_store  *fs = (file_store *)store;
    file_key     room;
    const void  *both = NULL;
    size_t       size = 0;
    tti_map      values; /* of one key: the copy changes only together with the file */
    tutti_status st = enter(fs, true, deadline_ns);

    if (st != TUTTI_OK)
        return st;
    in_file(key, &room);
    tti_map_init(&values, fs->port);
    if (tti_map_get(&fs->log.map, room.text, strlen(room.text), &both, &size))
        st = tti_map_put(&values, "v", 1, both, size);
    if (st == TUTTI_OK)
        st = tti_store_map_append(&values, "v", 1, val, len, key);
    if (st == TUTTI_OK && tti_map_get(&values, "v", 1, &both, &size))
        st = tti_file_log_put(&fs->log, room.text, both, size);
    leave(fs);
    tti_map_release(&values);
    return st;
}

static tutti_status file_list_keys(tutti_store *store, const char *prefix, int64_t deadline_ns,
                                   tutti_store_keys *keys_out)
{
    file_store  *fs = (file_store *)store;
    file_key     room;
    tutti_status st = enter(fs, false, deadline_ns);

    if (st != TUTTI_OK)
        return st;
    st = tti_store_map_list(&fs->log.map, in_file(prefix, &room), 1, keys_out);
    leave(fs);
    return st;
}

/* A handle like any other: counted, with an opening of the file and a lock of its own. */
static tutti_status file_clone(tutti_store *store, int64_t deadline_ns, tutti_store **store_out)
{
    file_store  *fs = (file_store *)store;
    tutti_store *twin = NULL;
    tutti_status st;

    (void)deadline_ns; /* opening has a limit of its own */
    st = tti_file_store_open_on(fs->port, fs->log.path, fs->world_size, &twin);
    if (st != TUTTI_OK)
        return st;
    tutti_store_set_timeout(twin, tutti_store_timeout(store));
    *store_out = twin;
    return TUTTI_OK;
}

static int64_t count_of(const file_store *fs, const char *key)
{
    const void *val = NULL;
    size_t      size = 0;
    int64_t     n = 0;

    if (!tti_map_get(&fs->log.map, key, strlen(key), &val, &size) ||
        !tti_store_number(val, size, &n))
        return 0;
    return n;
}

/* The last one of world_size removes the file and writes nothing before: killed in between, it leaves
 * a file that is known to be left over, not one that looks like the beginning of another job. Best
 * effort: a file that stays locked, or fails, stays. */
static void count_out(file_store *fs)
{
    int64_t n;

    if (enter(fs, true, tti_port_now(fs->port) + CLOSE_NS) != TUTTI_OK)
        return;
    if (fs->world_size > 0 && count_of(fs, "refcount/") == 1 &&
        count_of(fs, "cleanup/") + 1 >= fs->world_size)
        tti_file_log_unlink(&fs->log);
    else if (add_locked(fs, "cleanup/", 1, "cleanup/", &n) == TUTTI_OK)
        add_locked(fs, "refcount/", -1, "refcount/", &n);
    leave(fs);
}

static void file_close(tutti_store *store)
{
    file_store *fs = (file_store *)store;

    count_out(fs);
    tti_file_log_close(&fs->log);
    tti_mutex_release(&fs->lock);
    free(fs);
}

static const tutti_store_ops file_ops = {
    .api = TUTTI_STORE_API,
    .size = sizeof(tutti_store_ops),
    .scheme = "file",
    .set = file_set,
    .get = file_get,
    .close = file_close,
    .wait_all = file_wait_all,
    .check = file_check,
    .compare_set = file_compare_set,
    .add = file_add,
    .delete_key = file_delete_key,
    .num_keys = file_num_keys,
    .append = file_append,
    .list_keys = file_list_keys,
    .clone = file_clone,
};

/* Whether the file was left behind: handles that were never closed, and nobody who has it open. With
 * a world_size that is an error; without, the caller may want what is in it. */
static tutti_status check_left_over(const file_store *fs)
{
    const tti_file_log *log = &fs->log;
    const int64_t       users = count_of(fs, "refcount/");

    if (!log->alone || users <= 0)
        return TUTTI_OK;
    if (fs->world_size > 0)
        return tti_fail(TUTTI_E_STATE,
                        "store file '%s' is left over: %lld of its handles were never closed\n"
                        "  next: remove it, or choose another name",
                        log->path, (long long)users);
    tti_log(TTI_LOG_WARN, "store file '%s' is left over: %lld of its handles were never closed",
            log->path, (long long)users);
    return TUTTI_OK;
}

/* Open the file and count this handle in. Afterwards the log is open, or the store has nothing. */
static tutti_status open_log(file_store *fs, const char *path)
{
    int64_t      users;
    tutti_status st;

    st = tti_file_log_open(&fs->log, fs->port, path,
                           tti_deadline(fs->port, TUTTI_STORE_TIMEOUT_MS, 0));
    if (st != TUTTI_OK)
        return st;
    st = check_left_over(fs);
    if (st == TUTTI_OK)
        st = add_locked(fs, "refcount/", 1, "refcount/", &users);
    if (st == TUTTI_OK)
        tti_file_log_unlock(&fs->log);
    else
        tti_file_log_close(&fs->log);
    return st;
}

tutti_status tti_file_store_open_on(tti_port *port, const char *path, int world_size,
                                    tutti_store **store_out)
{
    file_store  *fs;
    tutti_status st;

    if (path == NULL || path[0] == '\0' || store_out == NULL)
        return tti_fail(TUTTI_E_ARG, "a file store needs a path and store_out\n"
                                     "  next: pass the path of a file that all processes reach, and where to put the store");
    if (world_size == 0)
        return tti_fail(TUTTI_E_ARG, "a file store's world_size is 0\n"
                                     "  next: pass how many processes use the file, or -1 where that is not known");
    fs = calloc(1, sizeof *fs);
    if (fs == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a file store");
    fs->base.ops = &file_ops;
    fs->port = port;
    fs->world_size = world_size;
    tti_mutex_init(&fs->lock);
    st = tti_store_init(&fs->base, port, 0, NULL);
    if (st == TUTTI_OK)
        st = open_log(fs, path);
    if (st != TUTTI_OK) {
        tti_store_uninit(&fs->base);
        tti_mutex_release(&fs->lock);
        free(fs);
        return st;
    }
    *store_out = &fs->base;
    return TUTTI_OK;
}

tutti_status tutti_file_store_open(const char *path, int world_size, tutti_store **store_out)
{
    return tti_file_store_open_on(tti_port_system(), path, world_size, store_out);
}

const char *tutti_file_store_path(const tutti_store *store)
{
    return store != NULL && store->ops == &file_ops ? ((const file_store *)store)->log.path : NULL;
}

bool tti_store_is_private_file(tutti_store *store)
{
    tutti_store *below = tutti_store_underlying_non_prefix(store);
    struct stat  st;

    return below->ops == &file_ops && fstat(((const file_store *)below)->log.fd, &st) == 0 && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0;
}
