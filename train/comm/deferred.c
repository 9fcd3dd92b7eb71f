/* SPDX-License-Identifier: BSD-3-Clause
 *
 * deferred.c - results that are still under way.
 *
 * Why     A collective takes longer than the arithmetic around it. Its result can be passed on, viewed
 *         and hung into a graph before it is there; only who looks at the elements has to wait.
 * How     The memory of a result carries the work (tti_pending of the tensor room), and tti_at(), the
 *         one way to elements, settles it. Inputs were copied, or live in keep until the work is done,
 *         so that the caller may change his at once. Several results can share one work.
 * True    A deferred lands once: work complete, blocks in place, keep let go; under its lock, so that
 *         threads that come together all see the whole result. The work stays for its words: each
 *         look at a result that failed tells the failure again.
 *         Memory is freed after its work has ended, whatever it came to. A work that cannot be waited
 *         for yet (recorded in a coalescing scope that is still open) costs the memory instead.
 * Fails   What fails is a kept failure of the thread that looks; letting a result go looks, too. */
#include "comm/comm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/private.h>

/* Of the process, because its exit is: how many have not landed. They are told of then and otherwise
 * left alone, for what they write to is in use. */
static atomic_int under_way;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pid_t process; /* that they are under way in, and not in its children; written by once */

static void tell_of_them(void)
{
    const int n = atomic_load(&under_way);

    if (n > 0 && getpid() == process)
        tti_log(TTI_LOG_WARN,
                "%d collective%s on tensors had not been waited for when the program ended"
                "\n  next: tutti_wait_tensor(), or release the results",
                n, n == 1 ? "" : "s");
}

static void at_exit(void)
{
    process = getpid();
    (void)atexit(tell_of_them);
}

/* ---- landing ---------------------------------------------------------------------------------- */

static void place(const tti_blocks *b)
{
    for (int64_t o = 0; o < b->outer && b->to != NULL; o++)
        for (int64_t p = 0; p < b->parts; p++)
            memcpy((char *)b->to + (size_t)(o * b->parts + p) * b->bytes,
                   (const char *)b->from + (size_t)(p * b->outer + o) * b->bytes, b->bytes);
}

static void let_go(tti_deferred *d)
{
    for (int i = 0; i < d->n_keep; i++) {
        tutti_tensor_release(d->keep[i]);
        d->keep[i] = NULL;
    }
}

/* Under d's lock. The operation's own time-out ends the wait: one for ever here never leaves it behind. */
static tutti_status land(tti_deferred *d)
{
    const tutti_status status = tutti_work_wait_for(d->work, TUTTI_INFINITE);

    if (!tutti_work_is_completed(d->work))
        return status;
    if (status == TUTTI_OK && d->blocks.bytes > 0)
        place(&d->blocks);
    let_go(d);
    atomic_fetch_sub(&under_way, 1);
    d->landed = true;
    return status;
}

tutti_status tti_refuse_collective(tutti_status status, const char *what)
{
    size_t n = strlen(what);
    const char *words = tutti_last_error();

    if (n > 0 && what[n - 1] == '_')
        n--;
    if (strncmp(words, what, n) == 0 && (words[n] == ':' || words[n] == ' '))
        words += n + strspn(words + n, ": "); /* "broadcast on group '0': ..." */
    return tti_refuse(status, what, "%s", words);
}

static tutti_status settle(tti_pending *pending)
{
    tti_deferred *d = (tti_deferred *)pending;
    tutti_status status;

    pthread_mutex_lock(&d->lock);
    status = d->landed ? tutti_work_status(d->work) : land(d);
    pthread_mutex_unlock(&d->lock);
    return status == TUTTI_OK ? TUTTI_OK : tti_refuse_collective(status, d->what);
}

static void unref(tti_deferred *d)
{
    if (atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1)
        return;
    let_go(d);
    tutti_work_free(d->work);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static bool has_landed(tti_deferred *d)
{
    bool landed;

    pthread_mutex_lock(&d->lock);
    landed = d->landed;
    pthread_mutex_unlock(&d->lock);
    return landed;
}

static bool drop(tti_pending *pending)
{
    tti_deferred *d = (tti_deferred *)pending;
    bool landed = has_landed(d);

    if (!landed) {
        (void)settle(pending);
        landed = has_landed(d);
    }
    if (landed)
        unref(d);
    else
        tti_log(TTI_LOG_WARN, "%s: its result was released before it could be waited for", d->what);
    return landed;
}

/* ---- making ----------------------------------------------------------------------------------- */

tti_deferred *tti_deferred_make(const char *what, int n_keep)
{
    tti_deferred *d = calloc(1, sizeof *d + (size_t)n_keep * sizeof d->keep[0]);

    if (d == NULL) {
        (void)tti_refuse(TUTTI_E_NOMEM, what, "no memory to note what is under way");
        return NULL;
    }
    d->pending = (tti_pending){ .settle = settle, .drop = drop };
    atomic_init(&d->refs, 1);
    d->what = what;
    pthread_mutex_init(&d->lock, NULL);
    d->n_keep = n_keep;
    return d;
}

tutti_status tti_deferred_end_list(tti_deferred *d, tutti_status status, tutti_tensor **ys, int n)
{
    if (status != TUTTI_OK) {
        (void)tti_refuse_collective(status, d->what);
    } else {
        (void)pthread_once(&once, at_exit);
        atomic_fetch_add(&under_way, 1);
    }
    for (int i = 0; i < n; i++) {
        if (status == TUTTI_OK) {
            atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
            tti_await(ys[i], &d->pending);
        } else {
            tutti_tensor_release(ys[i]);
            ys[i] = NULL;
        }
    }
    unref(d);
    return status;
}

tutti_tensor *tti_deferred_end(tti_deferred *d, tutti_status status, tutti_tensor *y)
{
    (void)tti_deferred_end_list(d, status, &y, 1);
    return y;
}

tutti_tensor *tti_deferred_give_up(tti_deferred *d, tutti_tensor *y)
{
    tutti_tensor_release(y);
    if (d != NULL)
        unref(d);
    return NULL;
}

tutti_status tutti_wait_tensor(tutti_tensor *t)
{
    return t == NULL ? tti_refuse_null("wait_tensor") : tti_ready(t);
}
