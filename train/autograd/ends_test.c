/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ends_test.c
 * Goal    whoever asks for it is told of the end of the outermost backward, once, whatever it came to; who awaits one,
 *         also that it cannot begin.
 * Method  hooks and those who are told write letters, an exclamation mark for a failure; the order is compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <tutti/private.h>

#include "autograd/autograd.h"

#define OK(call) assert_int_equal((call), TUTTI_OK)

static char trace[64];
static char letters[] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o";

/* What a hook is given to write. */
static void *letter(char c)
{
    return letters + 2 * (c - 'a');
}

static int begin(void **state)
{
    (void)state;
    trace[0] = '\0';
    tutti_scope_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    tutti_scope_end();
    return tutti_tensor_check() == TUTTI_OK && tutti_is_grad_enabled() ? 0 : -1;
}

static tutti_tensor *leaf(void)
{
    return tutti_tensor_requires_grad_(tutti_tensor_scalar(TUTTI_F64, 1.0), true);
}

static tutti_status note(tutti_status so_far, void *ctx)
{
    strcat(trace, so_far == TUTTI_OK ? ctx : "!");
    return TUTTI_OK;
}

static tutti_status ask(tutti_tensor *t, void *ctx)
{
    (void)t;
    return tti_backward_at_end(note, ctx);
}

static tutti_status write_letter(tutti_tensor *t, void *ctx)
{
    (void)t;
    strcat(trace, ctx);
    return TUTTI_OK;
}

static tutti_status refuse(tutti_tensor *t, void *ctx)
{
    (void)t, (void)ctx;
    return tti_fail(TUTTI_E_PEER, "the first failure");
}

static void hook(tutti_tensor *t, tutti_grad_hook fn, void *ctx)
{
    OK(tutti_tensor_register_post_accumulate_grad_hook(t, fn, ctx, NULL));
}

/* ----------------------------------------------------------------------------------------------- */

static void the_end_comes_after_everything(void **state)
{
    tutti_tensor *x = leaf(), *y = leaf();

    (void)state;
    hook(x, ask, letter('a'));
    hook(y, ask, letter('b'));
    hook(x, write_letter, letter('c'));
    hook(y, write_letter, letter('d'));
    OK(tutti_tensor_backward(tutti_tensor_mul(tutti_tensor_exp(y), x))); /* x is reached first */
    assert_string_equal(trace, "cdab");
    OK(tutti_tensor_backward(tutti_tensor_exp(y)));
    assert_string_equal(trace, "cdabdb");
}

static tutti_status note_again(tutti_status so_far, void *ctx)
{
    int *left = ctx;

    strcat(trace, "r");
    assert_false(tutti_is_grad_enabled());
    if (--*left > 0)
        OK(tti_backward_at_end(note_again, left));
    return so_far;
}

static tutti_status ask_again(tutti_tensor *t, void *ctx)
{
    (void)t;
    OK(tti_backward_at_end(note_again, ctx));
    return tti_backward_at_end(note, letter('e'));
}

static void more_may_be_asked_for_at_the_end(void **state)
{
    tutti_tensor *x = leaf();
    int left = 12;

    (void)state;
    hook(x, ask_again, &left);
    OK(tutti_tensor_backward(tutti_tensor_exp(x)));
    assert_string_equal(trace, "rerrrrrrrrrrr");
}

static void outside_of_a_backward_there_is_no_end(void **state)
{
    tutti_tensor *x = leaf();

    (void)state;
    assert_int_equal(tti_backward_at_end(note, letter('a')), TUTTI_E_STATE);
    OK(tutti_tensor_backward(tutti_tensor_exp(x)));
    assert_int_equal(tti_backward_at_end(note, letter('a')), TUTTI_E_STATE);
    assert_string_equal(trace, "");
}

static void a_failure_is_told_and_stays(void **state)
{
    tutti_tensor *x = leaf(), *y = leaf();

    (void)state;
    hook(x, ask, letter('a'));
    hook(x, refuse, NULL);
    hook(y, write_letter, letter('b'));
    assert_int_equal(tutti_tensor_backward(tutti_tensor_mul(tutti_tensor_exp(y), x)), TUTTI_E_PEER);
    assert_string_equal(tutti_last_error(), "the first failure");
    assert_string_equal(trace, "!");
    OK(tutti_tensor_backward(tutti_tensor_exp(y))); /* nobody is told twice */
    assert_string_equal(trace, "!b");
}

static tutti_status fail_at_the_end(tutti_status so_far, void *ctx)
{
    (void)ctx;
    OK(so_far);
    return tti_fail(TUTTI_E_REMOTE, "at the end");
}

static tutti_status fail_too(tutti_status so_far, void *ctx)
{
    (void)ctx;
    assert_int_equal(so_far, TUTTI_E_REMOTE);
    return tti_fail(TUTTI_E_ABORTED, "later");
}

static tutti_status ask_for_failures(tutti_tensor *t, void *ctx)
{
    (void)t, (void)ctx;
    OK(tti_backward_at_end(fail_at_the_end, NULL));
    OK(tti_backward_at_end(fail_too, NULL));
    return tti_backward_at_end(note, letter('e'));
}

static void the_end_may_fail_the_backward(void **state)
{
    tutti_tensor *x = leaf();

    (void)state;
    hook(x, ask_for_failures, NULL);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_exp(x)), TUTTI_E_REMOTE);
    assert_string_equal(tutti_last_error(), "at the end");
    assert_string_equal(trace, "!");
}

/* A backward of its own inside of a hook. */
static tutti_status backward_inside(tutti_tensor *t, void *ctx)
{
    tutti_status st;

    (void)t;
    strcat(trace, "(");
    (void)tutti_set_grad_enabled(true);
    st = tutti_tensor_backward(tutti_tensor_exp(ctx));
    (void)tutti_set_grad_enabled(false);
    strcat(trace, ")");
    return st;
}

static void a_backward_inside_of_another_waits_for_its_end(void **state)
{
    tutti_tensor *x = leaf(), *inner = leaf(), *z = leaf();

    (void)state;
    hook(inner, ask, letter('i'));
    hook(inner, write_letter, letter('n'));
    hook(x, ask, letter('o'));
    hook(x, backward_inside, inner);
    hook(z, write_letter, letter('c'));
    OK(tutti_tensor_backward(tutti_tensor_mul(x, tutti_tensor_exp(z))));
    assert_string_equal(trace, "(n)coi");
}

/* ---- backwards that cannot begin ------------------------------------------------------------------ */

static tutti_status note_missed(tutti_status so_far, void *ctx)
{
    assert_int_equal(so_far, TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "root 0"));
    strcat(trace, ctx);
    return so_far;
}

static void then(void *ctx)
{
    (void)ctx;
    strcat(trace, ".");
}

static tutti_status note_and_spoil(tutti_status so_far, void *ctx)
{
    strcat(trace, ctx);
    return tti_fail(so_far, "other words");
}

static void who_awaits_a_backward_hears_that_there_is_none(void **state)
{
    tti_awaiting a = { 0 }, b = { 0 }, c = { 0 };
    tutti_tensor *x = leaf();

    (void)state;
    tti_backward_unawait(&a); /* nothing, as it is in no list */
    tti_backward_await(&a, note_and_spoil, then, letter('a'));
    tti_backward_await(&b, note_missed, then, letter('b'));
    tti_backward_await(&c, note_missed, then, letter('c'));
    OK(tutti_tensor_backward(tutti_tensor_exp(x))); /* one that begins is nobody's business */
    tti_backward_unawait(&b);
    assert_string_equal(trace, "");
    assert_int_equal(tutti_tensor_backward(NULL), TUTTI_E_ARG);
    assert_string_equal(trace, "ca.."); /* the latest first, and then everybody */
    assert_non_null(strstr(tutti_last_error(), "root 0 is NULL"));
    assert_int_equal(tutti_tensor_backward(NULL), TUTTI_E_ARG);
    assert_string_equal(trace, "ca.."); /* once */
    tti_backward_await(&a, note_missed, then, letter('a'));
    tti_backward_await(&b, note_missed, then, letter('b'));
    tti_backward_await(&a, note_missed, then, letter('a')); /* again: it is the latest now */
    assert_int_equal(tutti_tensor_backward(tutti_tensor_detach(x)), TUTTI_E_ARG);
    assert_string_equal(trace, "ca..ab..");
}

static tutti_status fail_inside(tutti_tensor *t, void *ctx)
{
    (void)t, (void)ctx;
    return tutti_tensor_backward(NULL);
}

/* Inside of another backward the end of that one tells. */
static void a_backward_inside_of_another_tells_nobody(void **state)
{
    tti_awaiting a = { 0 };
    tutti_tensor *x = leaf();

    (void)state;
    tti_backward_await(&a, note_missed, then, letter('a'));
    hook(x, ask, letter('e'));
    hook(x, fail_inside, NULL);
    assert_int_equal(tutti_tensor_backward(tutti_tensor_exp(x)), TUTTI_E_ARG);
    assert_string_equal(trace, "!");
    tti_backward_unawait(&a);
}

static void *wait_elsewhere(void *arg)
{
    tti_backward_await(arg, note_missed, then, letter('o'));
    return NULL;
}

static void each_thread_awaits_its_own(void **state)
{
    tti_awaiting a = { 0 };
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, wait_elsewhere, &a), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(tutti_tensor_backward(NULL), TUTTI_E_ARG);
    assert_string_equal(trace, "");
    tti_backward_unawait(&a); /* any thread may */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_end_comes_after_everything, begin, end),
        cmocka_unit_test_setup_teardown(more_may_be_asked_for_at_the_end, begin, end),
        cmocka_unit_test_setup_teardown(outside_of_a_backward_there_is_no_end, begin, end),
        cmocka_unit_test_setup_teardown(a_failure_is_told_and_stays, begin, end),
        cmocka_unit_test_setup_teardown(the_end_may_fail_the_backward, begin, end),
        cmocka_unit_test_setup_teardown(a_backward_inside_of_another_waits_for_its_end, begin, end),
        cmocka_unit_test_setup_teardown(who_awaits_a_backward_hears_that_there_is_none, begin, end),
        cmocka_unit_test_setup_teardown(a_backward_inside_of_another_tells_nobody, begin, end),
        cmocka_unit_test_setup_teardown(each_thread_awaits_its_own, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
