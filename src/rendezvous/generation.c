/* SPDX-License-Identifier: BSD-3-Clause
 *
 * generation.c - worlds of a store are numbered; a rank has one place in each.
 *
 * Why     A store outlives the worlds that are made on it. What a world has left there, above all one
 *         whose making failed, must not be met by the next; and two processes that were given the same
 *         rank must not be taken for one.
 * How     "tutti/worlds"        the number of the latest world
 *         "tutti/world/N"       its size and rank 0's backends, "3 cpu:native": it is open to join; "over": its making has failed
 *         "tutti/world/N/R"     who took the place of rank R in it, written once by compare_set
 *         Rank 0 takes its place in a new number, then opens it. The others wait for a number that is
 *         open and in which they have not been. A rank whose place is taken looks by whom: by itself,
 *         in an earlier call, or by a process of this machine that is dead: that number is used up, and
 *         it goes on to the next; by anybody else: it is one rank too many. So is another thread of this
 *         process that is joining at the same time: which world the other ranks would come to is chance.
 * True    Only rank 0 opens numbers, in rising order, and each once: so a retry gets a number that all
 *         others have yet to join, whichever of them failed before. Before rank 0 comes nobody leaves
 *         anything in the store, so a rank that gave up waiting may simply try again.
 *         A number that rank 0 has given up is marked. A rank that is in it already runs out of time
 *         there, but it came before rank 0 opened the next one, so with equal time-outs it is back
 *         before rank 0 gives that up, too.
 * Fails   A place is never given back, because the process may end at any time. Of a process on another
 *         machine nobody here can tell whether it lives; the text says what to do then. A rank that is
 *         killed right between taking a place and opening the number costs the others a time-out.
 * Served  Where rank 0 serves the store it stays until all others have said that they need it no more. One that has ended in between
 *         says nothing, but has met all others: its world is made, and knows of it. Rank 0 asks there, waits for nobody who is
 *         gone, and fails of nobody's end: the others have the world, too, and the first call in it tells all of them alike.
 *         If the world cannot be made, for a reason that is in the store, it stays for those that have still to hear of it: each of the
 *         others says when it has failed, too. One that does not come at all is not waited for long.
 * Stores  One that cannot compare_set counts instead: places are taken once, but not known by whom. */
#include "rendezvous/generation.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/machine.h"
#include "base/thread.h"
#include "store/store.h"
#include "store/store_moved.h"
#include <tutti/private.h>
#include "base/fork.h"
#include "watch/bulletin.h"

#define LATEST_KEY      "tutti/worlds"
#define CLAIM_MAGIC     UINT32_C(0x6d696c63) /* "clim" */
#define ARRIVE_LIMIT_NS (30 * TTI_SECOND)
#define ARRIVE_LOOK_NS  (200 * TTI_MS) /* how often it is looked who is gone; twice as long each time, to */
#define ARRIVE_MOST_NS  TTI_SECOND
#define PART_LIMIT_NS   (10 * TTI_SECOND)
#define LAST_LOOK_NS    (200 * TTI_MS) /* for what was written before an end that is known: it is there */

enum { KEY_MAX = 64, CLAIM_VERSION = 1, MISSING_MAX = 200 };

/* Who has taken a place. Crosses processes and hosts. */
typedef struct claim {
    uint32_t magic;
    uint16_t version;
    uint16_t size;
    int64_t  pid;
    uint64_t pid_space; /* the namespace in which pid means something; 0: unknown */
    char     boot_id[40];
    char     host[64];
    uint8_t  nonce[16]; /* tells the calls of one process apart */
} claim;

_Static_assert(sizeof(claim) == 144, "the claim crosses processes and hosts");

typedef enum place { PLACE_OURS, PLACE_USED_UP, PLACE_TAKEN } place;

/* ---- who took a place ---- */

static void make_claim(tti_port *port, claim *mine)
{
    struct stat space;

    memset(mine, 0, sizeof *mine);
    mine->magic = CLAIM_MAGIC;
    mine->version = CLAIM_VERSION;
    mine->size = sizeof *mine;
    mine->pid = getpid();
    if (tti_boot_id(mine->boot_id) && stat("/proc/self/ns/pid", &space) == 0)
        mine->pid_space = (uint64_t)space.st_ino;
    if (gethostname(mine->host, sizeof mine->host - 1) != 0)
        snprintf(mine->host, sizeof mine->host, "?");
    port->ops->random(port, mine->nonce, sizeof mine->nonce);
}

/* ---- who is joining in this process ---- */

/* From tti_generation_join() to tti_generation_end(). The list is the process's, because threads that
 * join know nothing of each other; it is short, and looked at only when a place is taken. */
typedef struct joining {
    struct joining *next;
    const tti_join *join;
    uint8_t         nonce[sizeof((claim *)NULL)->nonce];
} joining;

static struct {
    tti_mutex lock;
    joining  *first; /* guarded by lock */
} process = { .lock = { .m = PTHREAD_MUTEX_INITIALIZER } };

static void before_fork(void)
{
    tti_lock(&process.lock);
}

/* Threads that are joining are not in the child. */
static void after_fork(bool in_child)
{
    if (in_child)
        process.first = NULL;
    tti_unlock(&process.lock);
}

static tti_fork_part fork_part = { .before = before_fork, .after = after_fork };

static tutti_status begin_joining(const tti_join *join, const claim *mine)
{
    joining *entry = calloc(1, sizeof *entry);

    if (entry == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to join a world");
    tti_fork_guard(&fork_part);
    entry->join = join;
    memcpy(entry->nonce, mine->nonce, sizeof entry->nonce);
    tti_lock(&process.lock);
    entry->next = process.first;
    process.first = entry;
    tti_unlock(&process.lock);
    return TUTTI_OK;
}

void tti_generation_end(const tti_join *join)
{
    joining **at = &process.first;
    joining  *entry;

    tti_lock(&process.lock);
    while (*at != NULL && (*at)->join != join)
        at = &(*at)->next;
    entry = *at;
    if (entry != NULL)
        *at = entry->next;
    tti_unlock(&process.lock);
    free(entry);
}

static bool is_joining(const claim *other)
{
    joining *entry;

    tti_lock(&process.lock);
    for (entry = process.first; entry != NULL;)
        if (memcmp(entry->nonce, other->nonce, sizeof entry->nonce) == 0)
            break;
        else
            entry = entry->next;
    tti_unlock(&process.lock);
    return entry != NULL;
}

/* ---- what a claim means ---- */

/* Whether the process behind other is this one, or is known to be dead. */
static bool is_over(const claim *mine, const claim *other)
{
    if (mine->pid_space == 0 || mine->pid_space != other->pid_space ||
        memcmp(mine->boot_id, other->boot_id, sizeof mine->boot_id) != 0)
        return false;
    return other->pid == mine->pid || (kill((pid_t)other->pid, 0) != 0 && errno == ESRCH);
}

/* What stands in the store now, in place of what we wanted to write. */
static tutti_status judge(const tti_join *join, const claim *mine, const tutti_bytes *kept,
                          place *place_out)
{
    claim other;

    if (kept->size != sizeof other)
        return tti_fail(TUTTI_E_MISMATCH,
                        "rank %d: its place in the world is taken by another version of tutti",
                        join->rank);
    memcpy(&other, kept->data, sizeof other);
    if (other.magic != CLAIM_MAGIC || other.pid <= 0 || other.pid > INT32_MAX ||
        memchr(other.host, '\0', sizeof other.host) == NULL)
        return tti_fail(TUTTI_E_STORE, "the claim to the place of rank %d is damaged", join->rank);
    if (memcmp(&other, mine, sizeof other) == 0) {
        *place_out = PLACE_OURS;
    } else if (is_joining(&other)) {
        return tti_fail(TUTTI_E_STATE,
                        "rank %d is joining a world of this store in another thread at this moment\n"
                        "  next: give worlds that are made at the same time a group_name, or a store prefix, each",
                        join->rank);
    } else if (is_over(mine, &other)) {
        *place_out = PLACE_USED_UP;
    } else {
        *place_out = PLACE_TAKEN;
        return tti_fail(TUTTI_E_ARG,
                        "rank %d has joined this world already: pid %" PRId64 " on host '%s'\n"
                        "  next: give every process a rank of its own; if that process is gone, use "
                        "a fresh store (with file://, remove the file)",
                        join->rank, other.pid, other.host);
    }
    return TUTTI_OK;
}

/* For a store that cannot compare. */
static tutti_status count_in(const tti_join *join, const char *key, place *place_out)
{
    int64_t      n = 0;
    tutti_status st = tti_store_add_until(join->store, key, 1, join->deadline_ns, &n);

    if (st == TUTTI_OK)
        *place_out = n == 1 ? PLACE_OURS : PLACE_USED_UP;
    return st;
}

/* Take this rank's place in world number n; on success it is ours or used up. */
static tutti_status take_place(const tti_join *join, const claim *mine, int64_t n, place *place_out)
{
    tutti_bytes  kept = { 0 };
    char         key[KEY_MAX];
    tutti_status st;

    snprintf(key, sizeof key, "tutti/world/%" PRId64 "/%d", n, join->rank);
    st = tti_store_compare_set_until(join->store, key, "", 0, mine, sizeof *mine, join->deadline_ns,
                                     &kept);
    if (st == TUTTI_E_UNSUPPORTED)
        return count_in(join, key, place_out);
    if (st == TUTTI_OK)
        st = judge(join, mine, &kept, place_out);
    tutti_bytes_free(&kept);
    return st;
}

/* ---- numbers ---- */

/* The number of the latest world, or n if that is higher. */
static tutti_status look_ahead(const tti_join *join, int64_t n, int64_t *n_out)
{
    int64_t      latest = 0;
    tutti_status st = tti_store_add_until(join->store, LATEST_KEY, 0, join->deadline_ns, &latest);

    if (st == TUTTI_OK && (latest >= INT64_MAX - 1 || n >= INT64_MAX - 1)) /* there is none behind it */
        return tti_fail(TUTTI_E_STORE, "the number of the latest world is damaged in the store: %" PRId64, latest);
    if (st == TUTTI_OK)
        *n_out = latest > n ? latest : n;
    return st;
}

static tutti_status open_number(const tti_join *join, int64_t n)
{
    char         key[KEY_MAX];
    char         text[24 + TTI_JOIN_BACKENDS_MAX];
    tutti_status st;

    if (n > 1)
        tti_store_forget_moved(join->store, join->deadline_ns);
    snprintf(key, sizeof key, "tutti/world/%" PRId64, n);
    snprintf(text, sizeof text, "%d%s%.*s", join->world_size, join->backends[0] != '\0' ? " " : "", TTI_JOIN_BACKENDS_MAX,
             join->backends);
    st = tti_store_set_until(join->store, key, text, strlen(text), join->deadline_ns);
    if (st != TUTTI_OK)
        return st;
    snprintf(text, sizeof text, "%" PRId64, n);
    return tti_store_set_until(join->store, LATEST_KEY, text, strlen(text), join->deadline_ns);
}

/* Rank 0 has not opened its number: whether it ended, as its launcher says. It may have opened it before it did: that is
 * for the caller to look at once more. */
static bool has_rank0_ended(tti_ending *ending_out)
{
    const tti_bulletin *bulletin = tti_bulletin_heeded();

    (void)tti_store_catch_up(); /* before looking: what is put up from here on ends the next wait */
    return bulletin != NULL && tti_bulletin_find(bulletin, 0, ending_out);
}

/* Wait for key until the deadline, or until it is known that it will not come. */
static tutti_status await_rank0_heeding(tti_port *port, const tti_join *join, const char *key, tutti_bytes *text_out)
{
    tti_ending   ending;
    tutti_status st;

    for (;;) {
        st = tti_store_get_until(join->store, key, join->deadline_ns, text_out);
        if (st != TUTTI_E_TIMEOUT)
            return st;
        if (has_rank0_ended(&ending))
            break;
        if (tti_port_now(port) >= join->deadline_ns || (join->stop != NULL && atomic_load(join->stop)))
            return st;
    }
    st = tti_store_get_until(join->store, key, tti_port_now(port) + LAST_LOOK_NS, text_out);
    return st == TUTTI_E_TIMEOUT ? tti_bulletin_fail(tti_bulletin_heeded(), &ending, join->rank, join->world_size) : st;
}

static tutti_status await_rank0(tti_port *port, const tti_join *join, const char *key, tutti_bytes *text_out)
{
    const tti_bulletin *bulletin = tti_bulletin_heeded();
    tutti_status        st;

    tti_store_heed_news(bulletin != NULL ? tti_bulletin_news(bulletin) : NULL);
    tti_store_heed(join->stop);
    st = await_rank0_heeding(port, join, key, text_out);
    tti_store_heed(NULL);
    tti_store_heed_news(NULL);
    return st;
}

/* What rank 0 has opened a number with. */
typedef struct opened {
    int  size;                            /* 0: it is over */
    char backends[TTI_JOIN_BACKENDS_MAX]; /* "": it did not say */
} opened;

/* text is NUL-terminated; anybody may have written it. */
static opened read_opened(const tutti_bytes *text)
{
    const char *space = strchr(text->data, ' ');
    opened      found = { .size = atoi(text->data) }; /* 0: "over" */

    if (space != NULL)
        snprintf(found.backends, sizeof found.backends, "%s", space + 1);
    return found;
}

/* Wait until world number n is open, or over. */
static tutti_status await_number(tti_port *port, const tti_join *join, int64_t n, int64_t began_ns,
                                 opened *opened_out)
{
    tutti_bytes  text = { 0 };
    char         key[KEY_MAX];
    tutti_status st;

    snprintf(key, sizeof key, "tutti/world/%" PRId64, n);
    st = await_rank0(port, join, key, &text);
    if (st == TUTTI_E_TIMEOUT)
        return tti_fail(TUTTI_E_TIMEOUT,
                        "rank %d waited %" PRId64 " ms for the world of %d: rank 0 did not come\n"
                        "  next: check that rank 0 was started, with the same store",
                        join->rank, (tti_port_now(port) - began_ns) / TTI_MS, join->world_size);
    if (st == TUTTI_OK)
        *opened_out = read_opened(&text);
    tutti_bytes_free(&text);
    return st;
}

/* Members of different backends would look for each other in different places, until time is up. */
static tutti_status check_opened(const tti_join *join, const opened *by_rank0)
{
    if (by_rank0->size != join->world_size)
        return tti_fail(TUTTI_E_MISMATCH,
                        "rank %d was started with world size %d, rank 0 with %d\n"
                        "  next: give all ranks the same WORLD_SIZE",
                        join->rank, join->world_size, by_rank0->size);
    if (by_rank0->backends[0] != '\0' && join->backends[0] != '\0' && strcmp(by_rank0->backends, join->backends) != 0)
        return tti_fail(TUTTI_E_MISMATCH,
                        "rank %d was started with backend '%s', rank 0 with '%s'\n"
                        "  next: give all ranks the same TUTTI_BACKEND, or options.backend",
                        join->rank, join->backends, by_rank0->backends);
    return TUTTI_OK;
}

tutti_status tti_generation_join(tti_port *port, const tti_join *join, int64_t *generation_out)
{
    const int64_t began_ns = tti_port_now(port);
    place         found = PLACE_USED_UP;
    opened        by_rank0 = { .size = join->world_size };
    tutti_status  st = TUTTI_OK;
    int64_t       n;
    claim         mine;

    if (join->alone) { /* a store of its own: the first world in it */
        *generation_out = 1;
        return TUTTI_OK;
    }
    make_claim(port, &mine);
    st = begin_joining(join, &mine);
    for (n = 1; st == TUTTI_OK; n++) {
        st = look_ahead(join, n, &n);
        if (st == TUTTI_OK && join->rank != 0)
            st = await_number(port, join, n, began_ns, &by_rank0);
        if (st == TUTTI_OK && by_rank0.size != 0)
            st = take_place(join, &mine, n, &found);
        if (st == TUTTI_OK && join->another_serves)
            st = tti_fail(TUTTI_E_NETWORK, "rank 0 cannot serve its world: its port is taken by a store whose rank 0 has ended\n"
                                           "  next: end that store, or give all ranks another port");
        if (st != TUTTI_OK && found == PLACE_TAKEN && join->refused_out != NULL)
            *join->refused_out = n;
        if (st == TUTTI_OK && found == PLACE_OURS)
            break;
    }
    if (st == TUTTI_OK && join->number_out != NULL)
        *join->number_out = n;
    if (st == TUTTI_OK)
        st = join->rank == 0 ? open_number(join, n) : check_opened(join, &by_rank0);
    if (st == TUTTI_E_MISMATCH && found == PLACE_OURS && join->refused_out != NULL)
        *join->refused_out = n;
    if (st == TUTTI_OK)
        *generation_out = n;
    return st;
}

/* Whether a claim is of a process that is known to be dead, or of this one. */
static bool is_of_the_past(tti_port *port, const tutti_bytes *claimed)
{
    claim mine, other;

    if (claimed->size != sizeof other)
        return false;
    make_claim(port, &mine);
    memcpy(&other, claimed->data, sizeof other);
    return is_over(&mine, &other);
}

bool tti_generation_has_rank0(tti_port *port, tutti_store *store, int64_t until_ns)
{
    tutti_bytes  claimed = { 0 };
    int64_t      latest = 0;
    char         key[KEY_MAX];
    bool         is_there;
    tutti_status st = tti_store_add_until(store, LATEST_KEY, 0, until_ns, &latest);

    snprintf(key, sizeof key, "tutti/world/%" PRId64 "/0", latest > 0 ? latest : 1);
    if (st == TUTTI_OK) /* it may be about to */
        st = tti_store_get_until(store, key, until_ns, &claimed);
    is_there = st == TUTTI_OK && !is_of_the_past(port, &claimed);
    tutti_bytes_free(&claimed);
    return is_there;
}

void tti_generation_fail(tti_port *port, const tti_join *join, int64_t generation)
{
    char key[KEY_MAX];

    (void)port; /* the store has it */
    if (join->rank != 0 || generation == 0)
        return;
    snprintf(key, sizeof key, "tutti/world/%" PRId64, generation);
    (void)tti_store_set_until(join->store, key, "over", 4, tti_store_grace(join->store));
}

void tti_generation_absent(tti_port *port, const tti_join *join, int64_t generation, bool *absent_out)
{
    const int64_t until = tti_store_grace(join->store);
    char          key[KEY_MAX];
    int           rank;

    (void)port; /* the store has it */
    for (rank = 0; rank < join->world_size; rank++) {
        const char *one = key;
        bool        there = true;

        snprintf(key, sizeof key, "tutti/world/%" PRId64 "/%d", generation, rank);
        absent_out[rank] = generation == 0 ? rank == 0
                                           : tti_store_check_until(join->store, &one, 1, until, &there) == TUTTI_OK &&
                                                 !there;
    }
}

bool tti_generation_is_free(tti_port *port, const tti_join *join, int64_t generation, int rank)
{
    char        key[KEY_MAX];
    const char *one = key;
    bool        there = true;

    snprintf(key, sizeof key, "tutti/world/%" PRId64 "/%d", generation, rank);
    return tti_store_check_until(join->store, &one, 1, tti_port_now(port) + TTI_SECOND, &there) == TUTTI_OK && !there;
}

/* ---- the end of joining ---- */

enum { ASKED_MOST = 256 }; /* keys in one question */

typedef char key_text[KEY_MAX];

static void arrival_key(char key[KEY_MAX], int64_t n, int rank)
{
    snprintf(key, KEY_MAX, "tutti/world/%" PRId64 "/%d/in", n, rank);
}

/* This rank has failed, and needs the store no more. */
static void parting_key(char key[KEY_MAX], int64_t n, int rank)
{
    snprintf(key, KEY_MAX, "tutti/world/%" PRId64 "/%d/out", n, rank);
}

/* Whether rank is known not to be through: for the words, in which nobody is named for want of an answer. */
static bool is_missing(const tti_join *join, int64_t n, int rank, int64_t until)
{
    char        key[KEY_MAX];
    const char *one = key;
    bool        there = true;

    arrival_key(key, n, rank);
    return tti_store_check_until(join->store, &one, 1, until, &there) == TUTTI_OK && !there;
}

static tutti_status name_who_is_not_through(const tti_join *join, int64_t n)
{
    const int64_t until = tti_store_grace(join->store);
    char          text[MISSING_MAX] = "";
    size_t        used = 0;
    int           rank;

    for (rank = 1; rank < join->world_size && used < sizeof text - 16; rank++) {
        if (is_missing(join, n, rank, until))
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", used > 0 ? ", " : "",
                                     rank);
    }
    return tti_fail(TUTTI_E_TIMEOUT,
                    "rank 0 met all %d ranks, but these did not finish joining: %s\n"
                    "  next: see what they report",
                    join->world_size, text);
}

static tutti_status await_keys(const tti_join *join, int64_t n, void (*key_of)(char key[KEY_MAX], int64_t n, int rank), int64_t until)
{
    const size_t n_keys = (size_t)join->world_size - 1;
    char (*room)[KEY_MAX] = calloc(n_keys, sizeof *room);
    const char **keys = calloc(n_keys, sizeof *keys);
    tutti_status st = TUTTI_OK;
    size_t       i;

    if (room == NULL || keys == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory to await %zu ranks", n_keys);
    for (i = 0; i < n_keys && st == TUTTI_OK; i++) {
        key_of(room[i], n, (int)i + 1);
        keys[i] = room[i];
    }
    if (st == TUTTI_OK)
        st = tti_store_wait_until(join->store, keys, n_keys, until);
    free(keys);
    free(room);
    return st;
}

/* Ranks that live, from *next on, whose keys are asked for in one question; *next is the first that is not among them. */
static size_t list_the_living(const tti_join *join, int64_t n, const tti_members *members, int *next, key_text room[ASKED_MOST],
                              const char *keys[ASKED_MOST])
{
    size_t n_keys = 0;

    for (; *next < join->world_size && n_keys < ASKED_MOST; ++*next) {
        if (members->is_gone(members->context, *next))
            continue;
        arrival_key(room[n_keys], n, *next);
        keys[n_keys] = room[n_keys];
        n_keys++;
    }
    return n_keys;
}

/* Whether all who live have said that they are through. No answer is none: who went on without it would end the store under those
 * that still need it. */
static bool are_the_living_through(tti_port *port, const tti_join *join, int64_t n, const tti_members *members)
{
    key_text    room[ASKED_MOST];
    const char *keys[ASKED_MOST];
    int         next = 1;
    bool        through = true;

    while (through && next < join->world_size) {
        const size_t n_keys = list_the_living(join, n, members, &next, room, keys);
        bool         all = false;

        through = n_keys == 0 || (tti_store_check_until(join->store, keys, n_keys, tti_port_now(port) + TTI_SECOND, &all) ==
                                      TUTTI_OK && all);
    }
    return through;
}

/* Whether somebody is gone, and nobody else is missing. The store is asked only if somebody is. */
static bool are_others_through(tti_port *port, const tti_join *join, int64_t n, const tti_members *members)
{
    int n_gone = 0, rank;

    for (rank = 1; rank < join->world_size && members != NULL; rank++)
        n_gone += members->is_gone(members->context, rank);
    return n_gone > 0 && are_the_living_through(port, join, n, members);
}

/* All at once: the last one to come decides. */
static tutti_status await_others(tti_port *port, const tti_join *join, int64_t n, const tti_members *members)
{
    const int64_t limit = tti_port_now(port) + ARRIVE_LIMIT_NS;
    const int64_t until = join->deadline_ns < limit ? join->deadline_ns : limit;
    int64_t       look = ARRIVE_LOOK_NS;
    tutti_status  st = TUTTI_OK;

    while (join->world_size > 1) {
        const int64_t slice = tti_port_now(port) + look;

        st = await_keys(join, n, arrival_key, slice < until ? slice : until);
        if (st != TUTTI_E_TIMEOUT || are_others_through(port, join, n, members))
            break;
        if (tti_port_now(port) >= until)
            return name_who_is_not_through(join, n);
        look = 2 * look < ARRIVE_MOST_NS ? 2 * look : ARRIVE_MOST_NS;
    }
    return st == TUTTI_E_TIMEOUT ? TUTTI_OK : st;
}

tutti_status tti_generation_arrive(tti_port *port, const tti_join *join, int64_t generation, const tti_members *members)
{
    char key[KEY_MAX];

    if (!join->rank0_serves)
        return TUTTI_OK;
    if (join->rank == 0)
        return await_others(port, join, generation, members);
    arrival_key(key, generation, join->rank);
    /* Rank 0 may have gone on, and ended its store, before the answer is here; and this rank is
     * through. Should the key not have arrived, it is rank 0 that reports it. */
    if (tti_store_set_until(join->store, key, "", 0, join->deadline_ns) != TUTTI_OK)
        tti_log(TTI_LOG_INFO, "rank 0 ended the store while rank %d said that it has joined",
                join->rank);
    return TUTTI_OK;
}

void tti_generation_part(tti_port *port, const tti_join *join, int64_t generation, bool stays)
{
    const int64_t limit = tti_port_now(port) + (join->rank == 0 ? PART_LIMIT_NS : TTI_SECOND);
    const int64_t until = join->deadline_ns < limit ? join->deadline_ns : limit;
    char          key[KEY_MAX];

    if (!join->rank0_serves || generation == 0 || join->world_size < 2)
        return;
    parting_key(key, generation, join->rank);
    if (join->rank != 0)
        (void)tti_store_set_until(join->store, key, "", 0, until);
    else if (stays)
        (void)await_keys(join, generation, parting_key, until);
}
