/* SPDX-License-Identifier: BSD-3-Clause
 *
 * given_test.c
 * Goal    what a backend of somebody else's gives is looked at: where it breaks its contract the program is told which backend,
 *         which entry, and what it gave; nothing of an older failure is taken for its words, and nothing that is not there is used.
 * Method  one table that this program registers, whose entries do what `now` says. It waits for nobody, so one process has a
 *         world of it. A second one has peers, for the meeting below "debug": there two threads are the ranks. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/backends.h>
#include <tutti/plugin/backend.h>
#include <tutti/tutti.h>

enum { RANKS = 3 };

#define NO_SUCH_STATUS ((tutti_status)77)

struct tutti_request {
    int n;
};

struct tutti_ticket {
    int n;
};

struct tutti_backend_window {
    size_t bytes;
};

static struct tutti_request        a_request; /* each of them: there is nothing in it */
static struct tutti_ticket         a_ticket;
static struct tutti_backend_window a_window;
static atomic_int                  n_asked; /* alive; on any thread */

/* What the entries do. All zero: nothing is wrong. */
static struct {
    bool         gives_nothing, gives_no_table; /* create */
    tutti_status create, run, post, wait, post_all, alive, usable, sit_out, advance;
    tutti_status open, attach, put, get, signal, wait_signal, flush;
    tutti_status mark, follow, wait_ticket;
    int          progress;
    bool         under_way; /* messages do not end */
    bool         gives_no_window, gives_no_ticket;
    bool         has_words;
    int          source;
    int          begun; /* of post_all; 0: all */
    int          n_destroyed;
} now;

static tutti_status come_to(tutti_status st)
{
    float x = 0.0f;

    if (st == TUTTI_OK || !now.has_words)
        return st;
    /* Any failure of the library on this thread has words, as host->fail() has. */
    (void)tutti_send(TUTTI_SPAN(&x, 1), 0, 0, TUTTI_NO_GROUP);
    return st;
}

static tutti_status odd_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    static tutti_backend without_a_table;
    static char          not_a_backend;
    tutti_backend       *made;

    if (now.create != TUTTI_OK) {
        *backend_out = (tutti_backend *)(void *)&not_a_backend; /* whoever uses it is found by destroy */
        return come_to(now.create);
    }
    if (now.gives_nothing)
        return TUTTI_OK;
    if (now.gives_no_table) {
        *backend_out = &without_a_table; /* nobody gives it back */
        return TUTTI_OK;
    }
    made = calloc(1, sizeof *made);
    assert_non_null(made);
    made->ops = config->ops;
    *backend_out = made;
    return TUTTI_OK;
}

/* What each gathers is what this rank gave: as if all had given the same. */
static void gather_own(const tutti_call *call)
{
    const size_t bytes = (size_t)call->count * tutti_dtype_size(call->dtype);
    int          r;

    for (r = 0; r < RANKS; r++)
        memcpy(call->list[r], call->in, bytes);
}

static tutti_status odd_run(tutti_backend *backend, const tutti_call *call)
{
    (void)backend;
    if (now.run == TUTTI_OK && call->kind == TUTTI_CALL_ALL_GATHER)
        gather_own(call);
    return come_to(now.run);
}

static tutti_status odd_advance(tutti_backend *backend, const tutti_call *call, tutti_progress *progress_out)
{
    (void)backend;
    (void)call;
    *progress_out = (tutti_progress)now.progress;
    return come_to(now.advance);
}

static tutti_status odd_alive(tutti_backend *backend, int rank)
{
    (void)backend;
    (void)rank;
    atomic_fetch_add(&n_asked, 1);
    return come_to(now.alive);
}

static tutti_status odd_usable(void)
{
    return come_to(now.usable);
}

static tutti_status odd_sit_out(tutti_backend *backend, uint64_t step, int64_t timeout_ms, bool has_failed)
{
    (void)backend;
    (void)step;
    (void)timeout_ms;
    (void)has_failed;
    return come_to(now.sit_out);
}

static tutti_status odd_post(tutti_backend *backend, const tutti_message *message, tutti_request **request_out)
{
    (void)backend;
    (void)message;
    if (now.post != TUTTI_OK)
        return come_to(now.post);
    *request_out = &a_request;
    return TUTTI_OK;
}

static tutti_status odd_post_all(tutti_backend *backend, const tutti_message *messages, int n, tutti_request **requests_out, int *n_out)
{
    const int begun = now.begun == 0 ? n : now.begun < n ? now.begun : n;
    int       i;

    for (i = 0; i < begun; i++)
        assert_int_equal(odd_post(backend, &messages[i], &requests_out[i]), TUTTI_OK);
    *n_out = now.begun == 0 ? n : now.begun;
    return come_to(now.post_all);
}

static tutti_status odd_wait(tutti_request *request, int64_t deadline_ns)
{
    (void)request;
    (void)deadline_ns;
    return come_to(now.wait);
}

static bool odd_test(tutti_request *request)
{
    (void)request;
    return !now.under_way;
}

static int odd_source(const tutti_request *request)
{
    (void)request;
    return now.source;
}

static void odd_release(tutti_request *request)
{
    assert_ptr_equal(request, &a_request);
}

static void odd_abort(tutti_backend *backend)
{
    (void)backend;
}

static void odd_destroy(tutti_backend *backend)
{
    now.n_destroyed++;
    free(backend);
}

/* ---- windows ---- */

static tutti_status odd_open(tutti_backend *backend, uint32_t id, void *data, size_t bytes, uint8_t card_out[TUTTI_WINDOW_CARD_BYTES],
                             tutti_backend_window **window_out)
{
    (void)backend;
    (void)id;
    (void)data;
    memset(card_out, 0, TUTTI_WINDOW_CARD_BYTES);
    a_window.bytes = bytes;
    if (!now.gives_no_window)
        *window_out = &a_window;
    return come_to(now.open);
}

static tutti_status odd_attach(tutti_backend_window *window, const uint8_t (*cards)[TUTTI_WINDOW_CARD_BYTES])
{
    (void)window;
    (void)cards;
    return come_to(now.attach);
}

static tutti_status odd_put(tutti_backend_window *window, int peer, uint64_t offset, const void *data, size_t bytes,
                            tutti_request **request_out)
{
    (void)window;
    (void)peer;
    (void)offset;
    (void)data;
    (void)bytes;
    *request_out = &a_request;
    return come_to(now.put);
}

static tutti_status odd_get(tutti_backend_window *window, int peer, uint64_t offset, void *data, size_t bytes, tutti_request **request_out)
{
    (void)window;
    (void)peer;
    (void)offset;
    (void)data;
    (void)bytes;
    *request_out = NULL;
    return come_to(now.get);
}

static tutti_status odd_signal(tutti_backend_window *window, int peer)
{
    (void)window;
    (void)peer;
    return come_to(now.signal);
}

static tutti_status odd_wait_signal(tutti_backend_window *window, int peer, tutti_request **request_out)
{
    (void)window;
    (void)peer;
    *request_out = NULL;
    return come_to(now.wait_signal);
}

static bool odd_cancel(tutti_backend_window *window, tutti_request *request)
{
    (void)window;
    (void)request;
    return true;
}

static tutti_status odd_flush(tutti_backend_window *window, int peer, tutti_request **request_out)
{
    (void)window;
    (void)peer;
    *request_out = NULL;
    return come_to(now.flush);
}

static bool odd_is_direct(tutti_backend_window *window, int peer)
{
    (void)window;
    (void)peer;
    return false;
}

static void *odd_memory(tutti_backend_window *window, int peer)
{
    (void)window;
    (void)peer;
    return NULL;
}

static void odd_close(tutti_backend_window *window, bool agreed)
{
    (void)agreed;
    assert_ptr_equal(window, &a_window);
}

static size_t odd_bytes(tutti_backend_window *window, int peer)
{
    (void)peer;
    return window->bytes;
}

static const tutti_window_ops odd_windows = {
    .size = sizeof(tutti_window_ops), .open = odd_open, .attach = odd_attach, .put = odd_put, .get = odd_get, .signal = odd_signal,
    .wait_signal = odd_wait_signal, .cancel = odd_cancel, .flush = odd_flush, .is_direct = odd_is_direct, .memory = odd_memory,
    .close = odd_close, .bytes = odd_bytes,
};

/* ---- streams ---- */

static tutti_status odd_mark(tutti_backend *backend, int device_index, void *stream, tutti_ticket **ticket_out)
{
    (void)backend;
    (void)device_index;
    (void)stream;
    if (!now.gives_no_ticket)
        *ticket_out = &a_ticket;
    return come_to(now.mark);
}

static tutti_status odd_follow(tutti_ticket *ticket, void *stream)
{
    (void)ticket;
    (void)stream;
    return come_to(now.follow);
}

static bool odd_test_ticket(tutti_ticket *ticket)
{
    (void)ticket;
    return true;
}

static tutti_status odd_wait_ticket(tutti_ticket *ticket, int64_t deadline_ns)
{
    (void)ticket;
    (void)deadline_ns;
    return come_to(now.wait_ticket);
}

static void odd_release_ticket(tutti_ticket *ticket)
{
    assert_ptr_equal(ticket, &a_ticket);
}

static const tutti_stream_ops odd_streams = {
    .size = sizeof(tutti_stream_ops), .mark = odd_mark, .follow = odd_follow, .test = odd_test_ticket, .wait = odd_wait_ticket,
    .release = odd_release_ticket,
};

static const tutti_backend_ops odd_ops = {
    .api = TUTTI_BACKEND_API, .size = sizeof(tutti_backend_ops), .name = "odd", .create = odd_create, .run = odd_run, .post = odd_post,
    .wait = odd_wait, .test = odd_test, .source = odd_source, .release = odd_release, .abort = odd_abort, .destroy = odd_destroy,
    .post_all = odd_post_all, .needs_no_peers = true, .windows = &odd_windows, .alive = odd_alive, .advance = odd_advance,
    .takes_segments = true, .streams = &odd_streams, .sit_out = odd_sit_out, .usable = odd_usable,
};

/* As far as it goes, with peers. */
static const tutti_backend_ops met_ops = {
    .api = TUTTI_BACKEND_API, .size = sizeof(tutti_backend_ops), .name = "odd-met", .create = odd_create, .run = odd_run, .abort = odd_abort,
    .destroy = odd_destroy, .alive = odd_alive,
};

/* ---- what is looked at ---- */

static void assert_said(const char *word)
{
    if (strstr(tutti_last_error(), word) == NULL)
        fail_msg("'%s' is not in: %s", word, tutti_last_error());
}

/* Something that this thread has failed with before: nobody may find it in what follows. */
static void fail_before(void)
{
    float x = 0.0f;

    assert_int_equal(tutti_broadcast(TUTTI_SPAN(&x, 1), 0, TUTTI_NO_GROUP), TUTTI_E_STATE);
    assert_said("broadcast");
}

static void assert_accused(const char *entry, const char *what)
{
    assert_said("backend 'odd' is broken: its entry '");
    assert_said(entry);
    assert_said(what);
    assert_said("\n  next: ask those who have made it");
    assert_null(strstr(tutti_last_error(), "broadcast"));
}

static tutti_status make_as(int rank, tutti_group **world_out)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.backend = "odd";
    opts.rank = rank;
    opts.world_size = RANKS;
    fail_before();
    return tutti_create_process_group(&opts, world_out);
}

static tutti_status make(tutti_group **world_out)
{
    return make_as(1, world_out);
}

static tutti_group *made_as(int rank)
{
    tutti_group *world = NULL;

    memset(&now, 0, sizeof now);
    if (make_as(rank, &world) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    fail_before();
    return world;
}

static tutti_group *made(void)
{
    return made_as(1);
}

static void end(tutti_group *world)
{
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    assert_int_equal(now.n_destroyed, 1);
}

static void test_create(void **state)
{
    tutti_group *world = NULL;

    (void)state;
    memset(&now, 0, sizeof now);
    now.gives_nothing = true;
    assert_int_equal(make(&world), TUTTI_E_BACKEND);
    assert_accused("create", "has succeeded, and gives no backend");
    now.gives_nothing = false;
    now.gives_no_table = true;
    assert_int_equal(make(&world), TUTTI_E_BACKEND);
    assert_accused("create", "gives a backend without a table");
    now.gives_no_table = false;
    now.create = TUTTI_E_NETWORK;
    assert_int_equal(make(&world), TUTTI_E_NETWORK);
    assert_accused("create", "has failed with TUTTI_E_NETWORK, and has no words for it");
    now.create = NO_SUCH_STATUS;
    assert_int_equal(make(&world), TUTTI_E_BACKEND);
    assert_accused("create", "has failed with status 77, which there is not");
    now.create = TUTTI_E_NETWORK;
    now.has_words = true;
    assert_int_equal(make(&world), TUTTI_E_NETWORK);
    assert_said("send");
    assert_int_equal(now.n_destroyed, 0); /* what it left behind when it failed is nobody's */
}

/* Before any member looks for another one. */
static void test_usable(void **state)
{
    tutti_group *world = NULL;

    (void)state;
    memset(&now, 0, sizeof now);
    now.usable = TUTTI_E_STATE;
    assert_int_equal(make(&world), TUTTI_E_STATE);
    assert_accused("usable", "has failed with TUTTI_E_STATE, and has no words for it");
    now.usable = NO_SUCH_STATUS;
    assert_int_equal(make(&world), TUTTI_E_BACKEND);
    assert_accused("usable", "has failed with status 77, which there is not");
    now.usable = TUTTI_E_STATE;
    now.has_words = true;
    assert_int_equal(make(&world), TUTTI_E_STATE);
    assert_said("send");
}

/* The same inside of the wrapper. */
static void test_create_compared(void **state)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *world = NULL;

    (void)state;
    memset(&now, 0, sizeof now);
    now.gives_nothing = true;
    opts.backend = "debug-odd";
    opts.rank = 1;
    opts.world_size = RANKS;
    assert_int_equal(tutti_create_process_group(&opts, &world), TUTTI_E_BACKEND);
    assert_accused("create", "gives no backend");
}

static void run_comes_to(tutti_status st, tutti_status seen, const char *what)
{
    tutti_group *world = made();

    now.run = st;
    assert_int_equal(tutti_barrier(world), seen);
    assert_accused("run", what);
    assert_int_not_equal(tutti_barrier(world), TUTTI_OK); /* it is finished, with the same words */
    assert_said("run");
    end(world);
}

static void test_run(void **state)
{
    tutti_group *world;

    (void)state;
    run_comes_to(TUTTI_E_NETWORK, TUTTI_E_NETWORK, "has failed with TUTTI_E_NETWORK, and has no words for it");
    run_comes_to(NO_SUCH_STATUS, TUTTI_E_BACKEND, "has failed with status 77, which there is not, and has no words");
    run_comes_to((tutti_status)-1, TUTTI_E_BACKEND, "has failed with status -1, which there is not");
    world = made();
    now.run = TUTTI_E_UNSUPPORTED;
    assert_int_equal(tutti_barrier(world), TUTTI_E_UNSUPPORTED);
    assert_accused("run", "has failed with TUTTI_E_UNSUPPORTED, and has no words");
    now.run = TUTTI_OK;
    assert_int_equal(tutti_barrier(world), TUTTI_OK); /* and the group goes on */
    end(world);
}

static void test_messages(void **state)
{
    tutti_group *world = made();
    tutti_work  *work = NULL;
    float        x = 1.0f;
    int          source = 5;

    (void)state;
    now.source = 99; /* there is no such member */
    assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 0, world, &source), TUTTI_OK);
    assert_int_equal(source, -1);
    assert_int_equal(tutti_irecv(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 0, world, &work), TUTTI_OK);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    assert_int_equal(tutti_work_source_rank(work), -1);
    tutti_work_free(work);
    now.post = NO_SUCH_STATUS;
    assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), 0, 0, world), TUTTI_E_BACKEND);
    assert_accused("post", "has failed with status 77");
    end(world);
    world = made();
    now.wait = TUTTI_E_PEER;
    assert_int_equal(tutti_isend(TUTTI_SPAN(&x, 1), 0, 0, world, &work), TUTTI_OK);
    fail_before();
    assert_int_equal(tutti_work_wait(work), TUTTI_E_PEER);
    assert_accused("wait", "has failed with TUTTI_E_PEER, and has no words");
    tutti_work_free(work);
    end(world);
}

/* Who runs out of time tells why by what the backend says of the message: it need not say anything. */
static void test_late_messages(void **state)
{
    tutti_group *world = made();
    float        x = 1.0f;

    (void)state;
    now.wait = TUTTI_E_TIMEOUT;
    assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), 0, 0, world, NULL), TUTTI_E_TIMEOUT);
    assert_said("backend 'odd' had not ended it by then");
    assert_null(strstr(tutti_last_error(), "broadcast"));
    end(world);
    world = made_as(0);
    now.wait = TUTTI_E_TIMEOUT;
    now.under_way = true;
    assert_int_equal(tutti_monitored_barrier(world, 20, false), TUTTI_E_TIMEOUT);
    assert_said("rank 1: backend 'odd' had not ended it by then");
    assert_null(strstr(tutti_last_error(), "broadcast"));
    end(world);
}

/* Whoever is taken for dead is named in words about him. */
static void test_alive(void **state)
{
    tutti_group *world = made_as(0);

    (void)state;
    now.wait = TUTTI_E_TIMEOUT;
    now.under_way = true;
    now.alive = TUTTI_E_PEER;
    assert_int_equal(tutti_monitored_barrier(world, 60000, false), TUTTI_E_PEER);
    assert_said("gone: ranks 1, 2");
    assert_said("rank 1: backend 'odd' is broken: its entry 'alive' has failed with TUTTI_E_PEER, and has no words for it");
    assert_null(strstr(tutti_last_error(), "broadcast"));
    end(world);
}

/* A call that runs ahead of who waits for it. */
static void advance_comes_to(int progress, tutti_status st, tutti_status seen, const char *what)
{
    tutti_group *world = made();
    tutti_work  *work = NULL;
    float        x = 1.0f;

    now.progress = progress;
    now.advance = st;
    assert_int_equal(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, world, &work), TUTTI_OK);
    assert_int_equal(tutti_work_wait(work), seen);
    assert_accused("advance", what);
    tutti_work_free(work);
    end(world);
}

static void test_advance(void **state)
{
    (void)state;
    advance_comes_to(77, TUTTI_OK, TUTTI_E_BACKEND, "has succeeded, and tells of a progress that cannot be");
    advance_comes_to(-1, TUTTI_OK, TUTTI_E_BACKEND, "tells of a progress that cannot be");
    advance_comes_to(TUTTI_PROGRESS_BEGUN, TUTTI_E_NETWORK, TUTTI_E_NETWORK, "has failed with TUTTI_E_NETWORK, and has no words");
}

static void test_sit_out(void **state)
{
    tutti_group *world = made(), *part = NULL;
    const int    others[] = { 0, 2 }, n = 2;
    const int   *lists[] = { others };

    (void)state;
    now.sit_out = TUTTI_E_NETWORK;
    assert_int_equal(tutti_split_group(world, lists, &n, 1, NULL, &part), TUTTI_E_NETWORK);
    assert_accused("sit_out", "has failed with TUTTI_E_NETWORK, and has no words for it");
    end(world);
}

/* How many it says that it has begun is what is gone by: it may be nothing, with no reason, or more than there are. */
static void batch_of_two(int begun, tutti_status st)
{
    tutti_group *world = made();
    float        x[2] = { 0.0f, 0.0f };
    tutti_p2p_op ops[] = { { .is_send = true, .span = TUTTI_SPAN(&x[0], 1), .peer = 0 },
                           { .is_send = true, .span = TUTTI_SPAN(&x[1], 1), .peer = 2 } };
    tutti_work  *works[2] = { NULL, NULL };

    now.begun = begun;
    now.post_all = st;
    assert_int_equal(tutti_batch_isend_irecv(ops, 2, world, works), TUTTI_OK);
    fail_before();
    assert_int_equal(tutti_work_wait(works[1]), TUTTI_E_BACKEND); /* of those behind the last that was begun */
    assert_accused("post_all", "begins another number of messages than its status says");
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
    end(world);
}

static void test_batches(void **state)
{
    (void)state;
    batch_of_two(1, TUTTI_OK);
    batch_of_two(3, TUTTI_OK);
    batch_of_two(-1, TUTTI_OK);
    batch_of_two(0, TUTTI_E_NETWORK);
}

/* ---- windows ---- */

static tutti_window *registered(tutti_group *world, float *part)
{
    const tutti_span buf = TUTTI_SPAN(part, 1);
    tutti_window    *window = NULL;

    if (tutti_window_create(&buf, world, &window) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    fail_before();
    return window;
}

/* All members are told in the same words, here by the first of them. */
static void registering_fails(tutti_group *world, tutti_status seen, const char *entry, const char *what)
{
    const tutti_span buf = { .dtype = TUTTI_F32 };
    tutti_window    *window = NULL;

    fail_before();
    assert_int_equal(tutti_window_create(&buf, world, &window), seen);
    assert_said("rank 0: backend 'odd' is broken: its entry '");
    assert_said(entry);
    assert_said(what);
    assert_null(strstr(tutti_last_error(), "broadcast"));
}

static void test_registering(void **state)
{
    tutti_group *world = made();

    (void)state;
    now.gives_no_window = true;
    registering_fails(world, TUTTI_E_BACKEND, "'open'", "has succeeded, and gives no window");
    now.gives_no_window = false;
    now.open = TUTTI_E_NETWORK;
    registering_fails(world, TUTTI_E_NETWORK, "'open'", "has failed with TUTTI_E_NETWORK, and has no words");
    now.open = NO_SUCH_STATUS;
    registering_fails(world, TUTTI_E_BACKEND, "'open'", "has failed with status 77, which there is not");
    now.open = TUTTI_OK;
    now.attach = TUTTI_E_NETWORK;
    registering_fails(world, TUTTI_E_NETWORK, "'attach'", "has failed with TUTTI_E_NETWORK, and has no words");
    end(world);
}

static tutti_status put_one(tutti_window *window)
{
    float x = 1.0f;

    return tutti_window_put(window, TUTTI_SPAN(&x, 1), 0, 0);
}

static tutti_status get_one(tutti_window *window)
{
    float x = 1.0f;

    return tutti_window_get(window, TUTTI_SPAN(&x, 1), 0, 0);
}

static tutti_status signal_one(tutti_window *window)
{
    return tutti_window_signal(window, 0);
}

static tutti_status wait_for_signal(tutti_window *window)
{
    return tutti_window_wait_signal(window, 0, 0);
}

static tutti_status flush_one(tutti_window *window)
{
    return tutti_window_flush(window, 0);
}

static void access_comes_to(tutti_status *outcome, tutti_status (*use)(tutti_window *), const char *entry)
{
    tutti_group  *world = made();
    float         part = 0.0f;
    tutti_window *window = registered(world, &part);

    *outcome = TUTTI_E_NETWORK;
    assert_int_equal(use(window), TUTTI_E_NETWORK);
    assert_accused(entry, "has failed with TUTTI_E_NETWORK, and has no words for it");
    assert_int_equal(tutti_window_free(window), TUTTI_OK);
    end(world);
    world = made();
    window = registered(world, &part);
    *outcome = NO_SUCH_STATUS;
    assert_int_equal(use(window), TUTTI_E_BACKEND);
    assert_accused(entry, "has failed with status 77, which there is not");
    assert_int_equal(tutti_window_free(window), TUTTI_OK);
    end(world);
}

static void test_accesses(void **state)
{
    (void)state;
    access_comes_to(&now.put, put_one, "'put'");
    access_comes_to(&now.get, get_one, "'get'");
    access_comes_to(&now.signal, signal_one, "'signal'");
    access_comes_to(&now.wait_signal, wait_for_signal, "'wait_signal'");
    access_comes_to(&now.flush, flush_one, "'flush'");
}

static void test_late_access(void **state)
{
    tutti_group  *world = made();
    float         part = 0.0f;
    tutti_window *window = registered(world, &part);

    (void)state;
    now.wait = TUTTI_E_TIMEOUT;
    assert_int_equal(put_one(window), TUTTI_E_TIMEOUT);
    assert_said("backend 'odd' had not ended it by then");
    assert_int_equal(tutti_window_free(window), TUTTI_OK);
    end(world);
}

/* ---- streams ---- */

static tutti_status sum_on_device(tutti_group *world)
{
    static float x;
    tutti_span   span = TUTTI_SPAN(&x, 1);

    span.device = (tutti_device){ TUTTI_CUDA, 0 };
    return tutti_all_reduce(span, TUTTI_SUM, world);
}

static tutti_status sum_on_device_later(tutti_group *world)
{
    static float x;
    tutti_span   span = TUTTI_SPAN(&x, 1);
    tutti_work  *work = NULL;
    tutti_status st;

    span.device = (tutti_device){ TUTTI_CUDA, 0 };
    st = tutti_all_reduce_async(span, TUTTI_SUM, world, &work);
    if (st != TUTTI_OK)
        return st;
    st = tutti_work_wait_for(work, 60000);
    tutti_work_free(work);
    return st;
}

static void sum_comes_to(tutti_status *outcome, tutti_status (*sum)(tutti_group *), const char *entry)
{
    tutti_group *world = made();

    *outcome = TUTTI_E_NETWORK;
    assert_int_equal(sum(world), TUTTI_E_NETWORK);
    assert_accused(entry, "has failed with TUTTI_E_NETWORK, and has no words for it");
    end(world);
    world = made();
    *outcome = NO_SUCH_STATUS;
    assert_int_equal(sum(world), TUTTI_E_BACKEND);
    assert_accused(entry, "has failed with status 77, which there is not");
    end(world);
}

static void test_streams(void **state)
{
    tutti_group *world = made();

    (void)state;
    assert_int_equal(sum_on_device(world), TUTTI_OK);
    fail_before();
    now.gives_no_ticket = true;
    assert_int_equal(sum_on_device(world), TUTTI_E_BACKEND);
    assert_accused("mark", "has succeeded, and gives no ticket");
    end(world);
    sum_comes_to(&now.mark, sum_on_device, "'mark'");
    sum_comes_to(&now.follow, sum_on_device, "'follow'");
    sum_comes_to(&now.wait_ticket, sum_on_device_later, "'wait'");
}

/* ---- below the wrapper ---- */

/* The other member of a world of two. */
typedef struct partner {
    tutti_store *store;
    tutti_group *world;
    bool         comes; /* to the sum, once somebody has waited for it */
} partner;

static tutti_status make_met(tutti_store *store, int rank, tutti_group **world_out)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.backend = "debug-odd-met";
    opts.store = store;
    opts.rank = rank;
    opts.world_size = 2;
    return tutti_create_process_group(&opts, world_out);
}

static void *partner_main(void *arg)
{
    partner *p = arg;
    float    x = 1.0f;

    if (make_met(p->store, 1, &p->world) != TUTTI_OK)
        return NULL;
    while (p->comes && atomic_load(&n_asked) == 0)
        sched_yield();
    if (p->comes)
        (void)tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, p->world);
    return NULL;
}

/* Rank 0 comes to a sum, and looks for rank 1 in vain at least once: in the store, which words that, too. */
static void meeting_fails(bool comes, tutti_status alive, tutti_status run, tutti_status seen, const char *entry)
{
    tutti_group *world = NULL;
    partner      other = { .comes = comes };
    pthread_t    thread;
    float        x = 1.0f;

    memset(&now, 0, sizeof now);
    atomic_store(&n_asked, 0);
    assert_int_equal(tutti_hash_store_open(&other.store), TUTTI_OK);
    now.alive = alive;
    now.run = run;
    assert_int_equal(pthread_create(&thread, NULL, partner_main, &other), 0);
    if (make_met(other.store, 0, &world) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    fail_before();
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, world), seen);
    assert_true(atomic_load(&n_asked) > 0);
    assert_said("backend 'odd-met' is broken: its entry '");
    assert_said(entry);
    assert_said(", and has no words for it");
    assert_null(strstr(tutti_last_error(), "broadcast"));
    pthread_join(thread, NULL);
    assert_non_null(other.world);
    assert_int_equal(tutti_destroy_process_group(other.world), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    tutti_store_close(other.store);
}

static void test_below_the_wrapper(void **state)
{
    (void)state;
    meeting_fails(false, TUTTI_E_PEER, TUTTI_OK, TUTTI_E_PEER, "'alive'");
    meeting_fails(false, NO_SUCH_STATUS, TUTTI_OK, TUTTI_E_BACKEND, "'alive'");
    meeting_fails(true, TUTTI_OK, TUTTI_E_NETWORK, TUTTI_E_NETWORK, "'run'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create),   cmocka_unit_test(test_create_compared), cmocka_unit_test(test_run),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_batches), cmocka_unit_test(test_usable),
        cmocka_unit_test(test_late_messages), cmocka_unit_test(test_alive), cmocka_unit_test(test_advance),
        cmocka_unit_test(test_sit_out), cmocka_unit_test(test_registering), cmocka_unit_test(test_accesses),
        cmocka_unit_test(test_late_access), cmocka_unit_test(test_streams), cmocka_unit_test(test_below_the_wrapper),
    };

    if (tutti_register_backend("odd", &odd_ops, 1u << TUTTI_CPU | 1u << TUTTI_CUDA) != TUTTI_OK)
        return 1;
    if (tutti_register_backend("odd-met", &met_ops, 1u << TUTTI_CPU) != TUTTI_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
