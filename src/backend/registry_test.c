/* SPDX-License-Identifier: BSD-3-Clause
 *
 * registry_test.c
 * Goal    unknown names are answered with those there are; tables that cannot be driven are refused. */
#include "backend/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static tutti_status create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    (void)config;
    (void)backend_out;
    return TUTTI_E_UNSUPPORTED;
}

static tutti_status run(tutti_backend *backend, const tutti_call *call)
{
    (void)backend;
    (void)call;
    return TUTTI_E_UNSUPPORTED;
}

static tutti_status post(tutti_backend *backend, const tutti_message *message,
                         tutti_request **request_out)
{
    (void)backend;
    (void)message;
    (void)request_out;
    return TUTTI_E_UNSUPPORTED;
}

static tutti_status wait_for(tutti_request *request, int64_t deadline_ns)
{
    (void)request;
    (void)deadline_ns;
    return TUTTI_E_UNSUPPORTED;
}

static bool test(tutti_request *request)
{
    (void)request;
    return true;
}

static int source(const tutti_request *request)
{
    (void)request;
    return -1;
}

static void release(tutti_request *request)
{
    (void)request;
}

static void drop(tutti_backend *backend)
{
    (void)backend;
}

static const tutti_backend_ops whole = {
    .api = TUTTI_BACKEND_API,
    .size = sizeof(tutti_backend_ops),
    .name = "whole",
    .create = create,
    .run = run,
    .post = post,
    .wait = wait_for,
    .test = test,
    .source = source,
    .release = release,
    .abort = drop,
    .destroy = drop,
};

static void assert_refused(const tutti_backend_ops *ops, tutti_status status, const char *word)
{
    assert_int_equal(tti_backend_check(ops), status);
    assert_non_null(strstr(tutti_last_error(), word));
}

static void test_check(void **state)
{
    tutti_backend_ops ops = whole;

    (void)state;
    assert_int_equal(tti_backend_check(&whole), TUTTI_OK);
    ops.api = TUTTI_BACKEND_API + 1;
    assert_refused(&ops, TUTTI_E_UNSUPPORTED, "version 2");
    ops = whole;
    ops.size -= 8;
    assert_refused(&ops, TUTTI_E_UNSUPPORTED, "bytes");
    ops = whole;
    ops.name = "";
    assert_refused(&ops, TUTTI_E_ARG, "no name");
    ops = whole;
    ops.post = NULL;
    assert_refused(&ops, TUTTI_E_ARG, "'post'");
    ops = whole;
    ops.destroy = NULL;
    assert_refused(&ops, TUTTI_E_ARG, "'destroy'");
}

static void test_unknown_name(void **state)
{
    const tutti_backend_ops *ops = &whole;

    (void)state;
    assert_int_equal(tti_backend_find("gloop", &ops), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "'gloop'"));
    assert_non_null(strstr(tutti_last_error(), "one of this build"));
    assert_ptr_equal(ops, &whole); /* untouched */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_unknown_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
