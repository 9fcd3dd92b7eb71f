/* SPDX-License-Identifier: BSD-3-Clause
 *
 * given_test.c
 * Goal    what a backend of somebody else's gives is looked at: where it breaks its contract the program is told which backend,
 *         which entry, and what it gave; nothing of an older failure is taken for its words, and nothing that is not there is used.
 * Method  one table that this program registers, whose entries do what `now` says. It waits for nobody, so one process has a
 *         world of it. */
#include <setjmp.h>
#include <stdarg.h>
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

static struct tutti_request a_request; /* each of them: it has ended, and there is nothing in it */

/* What the entries do. All zero: nothing is wrong. */
static struct {
    bool         gives_nothing, gives_no_table; /* create */
    tutti_status create, run, post, wait, post_all;
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
    static char    not_a_backend;
    tutti_backend *made;

    if (now.create != TUTTI_OK) {
        *backend_out = (tutti_backend *)(void *)&not_a_backend; /* whoever uses it is found by destroy */
        return come_to(now.create);
    }
    if (now.gives_nothing)
        return TUTTI_OK;
    made = calloc(1, sizeof *made);
    assert_non_null(made);
    made->ops = now.gives_no_table ? NULL : config->ops;
    *backend_out = made;
    return TUTTI_OK;
}

static tutti_status odd_run(tutti_backend *backend, const tutti_call *call)
{
    (void)backend;
    (void)call;
    return come_to(now.run);
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
    return true;
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

static const tutti_backend_ops odd_ops = {
    .api = TUTTI_BACKEND_API, .size = sizeof(tutti_backend_ops), .name = "odd", .create = odd_create, .run = odd_run, .post = odd_post,
    .wait = odd_wait, .test = odd_test, .source = odd_source, .release = odd_release, .abort = odd_abort, .destroy = odd_destroy,
    .post_all = odd_post_all, .needs_no_peers = true,
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

static tutti_status make(tutti_group **world_out)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.backend = "odd";
    opts.rank = 1;
    opts.world_size = RANKS;
    fail_before();
    return tutti_create_process_group(&opts, world_out);
}

static tutti_group *made(void)
{
    tutti_group *world = NULL;

    memset(&now, 0, sizeof now);
    if (make(&world) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    fail_before();
    return world;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create),   cmocka_unit_test(test_create_compared), cmocka_unit_test(test_run),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_batches),
    };

    if (tutti_register_backend("odd", &odd_ops, 1u << TUTTI_CPU) != TUTTI_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
