/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shaper_test.c
 * Goal    what an interface is shaped to is read out of the kernel's answers; answers that are cut off, or that no kernel gives, leave
 *         it unknown, and nothing behind them is read.
 * Method  answers made of bytes, in memory that ends where they do; each prefix of them, and each with bytes that were changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include "base/shaper.h"

enum { OWN = 7, OTHER = 8, ROOT = 0x80010000, MANY_CHANGES = 20000 };
#define GBIT (UINT64_C(1000000000) / 8)

/* An answer that is being made; asks for nothing, as the reader looks at the number of the question only. */
typedef struct answer {
    uint8_t  bytes[64 << 10];
    size_t   used, message, options;
    uint32_t sequence;
} answer;

static void begin(answer *a, uint16_t type, int interface, uint32_t handle, uint32_t parent)
{
    struct nlmsghdr head = { .nlmsg_type = type, .nlmsg_flags = NLM_F_MULTI, .nlmsg_seq = a->sequence };
    struct tcmsg    of = { .tcm_ifindex = interface, .tcm_handle = handle, .tcm_parent = parent };

    a->message = a->used;
    memcpy(a->bytes + a->used, &head, sizeof head);
    a->used += NLMSG_HDRLEN;
    if (type == RTM_NEWQDISC || type == RTM_NEWTCLASS) {
        memcpy(a->bytes + a->used, &of, sizeof of);
        a->used += sizeof of;
    }
}

static void add(answer *a, uint16_t type, const void *value, size_t bytes)
{
    struct rtattr head = { .rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(bytes) };

    memcpy(a->bytes + a->used, &head, sizeof head);
    if (bytes > 0)
        memcpy(a->bytes + a->used + RTA_LENGTH(0), value, bytes);
    a->used += RTA_ALIGN(head.rta_len);
}

static void kind(answer *a, const char *name)
{
    add(a, TCA_KIND, name, strlen(name) + 1);
}

static void begin_options(answer *a)
{
    a->options = a->used;
    a->used += RTA_LENGTH(0);
}

static void end_options(answer *a)
{
    struct rtattr head = { .rta_type = TCA_OPTIONS | NLA_F_NESTED, .rta_len = (uint16_t)(a->used - a->options) };

    memcpy(a->bytes + a->options, &head, sizeof head);
}

static void end(answer *a)
{
    uint32_t bytes = (uint32_t)(a->used - a->message);

    memcpy(a->bytes + a->message, &bytes, sizeof bytes);
}

static void done(answer *a)
{
    static const uint8_t none[4];

    begin(a, NLMSG_DONE, 0, 0, 0);
    memcpy(a->bytes + a->used, none, sizeof none);
    a->used += sizeof none;
    end(a);
}

static uint32_t low(uint64_t rate)
{
    return rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
}

enum { TICKS = 10240, TICK_NS = 64 }; /* in which a bucket fills: 80 KiB at 1 Gb/s */

static void add_tbf(answer *a, int interface, uint32_t parent, uint64_t rate)
{
    struct tc_tbf_qopt opt;

    memset(&opt, 0, sizeof opt);
    opt.rate.rate = low(rate);
    opt.buffer = TICKS;
    begin(a, RTM_NEWQDISC, interface, ROOT, parent);
    kind(a, "tbf");
    begin_options(a);
    add(a, TCA_TBF_PARMS, &opt, sizeof opt);
    if (rate > UINT32_MAX)
        add(a, TCA_TBF_RATE64, &rate, sizeof rate);
    end_options(a);
    end(a);
}

static void add_plain(answer *a, int interface, const char *name)
{
    begin(a, RTM_NEWQDISC, interface, 0, TC_H_ROOT);
    kind(a, name);
    end(a);
}

static void add_htb(answer *a, uint32_t fallback)
{
    struct tc_htb_glob glob;

    memset(&glob, 0, sizeof glob);
    glob.defcls = fallback;
    begin(a, RTM_NEWQDISC, OWN, ROOT, TC_H_ROOT);
    kind(a, "htb");
    begin_options(a);
    add(a, TCA_HTB_INIT, &glob, sizeof glob);
    end_options(a);
    end(a);
}

static void add_class(answer *a, uint32_t minor, uint32_t parent, uint32_t level, uint64_t rate, uint64_t ceiling)
{
    struct tc_htb_opt opt;

    memset(&opt, 0, sizeof opt);
    opt.rate.rate = low(rate);
    opt.ceil.rate = low(ceiling);
    opt.level = level;
    begin(a, RTM_NEWTCLASS, OWN, ROOT | minor, parent);
    kind(a, "htb");
    begin_options(a);
    add(a, TCA_HTB_PARMS, &opt, sizeof opt);
    if (rate > UINT32_MAX)
        add(a, TCA_HTB_RATE64, &rate, sizeof rate);
    if (ceiling > UINT32_MAX)
        add(a, TCA_HTB_CEIL64, &ceiling, sizeof ceiling);
    end_options(a);
    end(a);
}

/* Out of memory that is as long as the packet. */
static bool read_bytes(tti_shaper *shaper, const uint8_t *bytes, size_t n)
{
    uint8_t *own = malloc(n > 0 ? n : 1);
    bool     good;

    assert_non_null(own);
    if (n > 0)
        memcpy(own, bytes, n);
    good = tti_shaper_read(shaper, own, n);
    free(own);
    return good;
}

static tti_shaper asked(answer *disciplines, answer *classes)
{
    uint8_t    question[TTI_SHAPER_QUESTION_BYTES];
    tti_shaper shaper = { .interface = OWN };

    tti_shaper_ask_disciplines(&shaper, question);
    memset(disciplines, 0, sizeof *disciplines);
    disciplines->sequence = shaper.sequence;
    if (classes != NULL) {
        memset(classes, 0, sizeof *classes);
        classes->sequence = shaper.sequence + 1;
    }
    return shaper;
}

/* ---- tests ------------------------------------------------------------------------------------------------------------- */

static answer a, c; /* large; made anew by every test */

static void the_rate_of_a_bucket_is_read(void **state)
{
    static const uint64_t rates[] = { 1, GBIT / 10, GBIT, 10 * GBIT, 100 * GBIT };
    size_t                i;

    (void)state;
    for (i = 0; i < sizeof rates / sizeof *rates; i++) {
        tti_shaper shaper = asked(&a, NULL);

        add_plain(&a, OTHER, "noqueue");
        add_tbf(&a, OTHER, TC_H_ROOT, 5);
        add_tbf(&a, OWN, ROOT | 1, 6); /* of a class of the root's */
        add_tbf(&a, OWN, TC_H_ROOT, rates[i]);
        add_tbf(&a, OTHER, TC_H_ROOT, 9);
        assert_true(read_bytes(&shaper, a.bytes, a.used));
        assert_int_equal(tti_shaper_rate(&shaper), 0); /* there may be more to come */
        assert_int_equal(tti_shaper_burst(&shaper), 0);
        a.used = 0;
        done(&a);
        assert_true(read_bytes(&shaper, a.bytes, a.used));
        assert_true(shaper.ended && !tti_shaper_has_classes(&shaper));
        assert_int_equal(tti_shaper_rate(&shaper), rates[i]);
        assert_int_equal(tti_shaper_burst(&shaper), (TICKS * TICK_NS * rates[i] + GBIT * 4) / (GBIT * 8));
        assert_string_equal(shaper.discipline, "tbf");
    }
}

static void what_is_not_shaped_has_no_rate(void **state)
{
    tti_shaper shaper = asked(&a, NULL);

    (void)state;
    add_plain(&a, OWN, "fq_codel");
    done(&a);
    assert_true(read_bytes(&shaper, a.bytes, a.used));
    assert_true(shaper.ended && tti_shaper_rate(&shaper) == 0);

    shaper = asked(&a, NULL); /* that interface has no discipline at all */
    add_tbf(&a, OTHER, TC_H_ROOT, GBIT);
    done(&a);
    assert_true(read_bytes(&shaper, a.bytes, a.used));
    assert_true(shaper.ended && tti_shaper_rate(&shaper) == 0);
}

/* Of an HTB whose default class is 20, below 2, below 1. */
static uint64_t leaf_rate = 1000;

static uint64_t rate_below(uint64_t ceiling, uint64_t above, uint64_t top, uint32_t fallback, uint32_t parent_of_2)
{
    tti_shaper shaper = asked(&a, &c);
    uint8_t    question[TTI_SHAPER_QUESTION_BYTES];

    add_htb(&a, fallback);
    done(&a);
    assert_true(read_bytes(&shaper, a.bytes, a.used));
    if (!tti_shaper_has_classes(&shaper))
        return tti_shaper_rate(&shaper);
    assert_true(shaper.ended);
    tti_shaper_ask_classes(&shaper, question);
    assert_int_equal(tti_shaper_rate(&shaper), 0);
    add_class(&c, 10, ROOT | 2, 0, 3, 3);
    add_class(&c, 20, ROOT | 2, 0, leaf_rate, ceiling);
    add_class(&c, 2, parent_of_2, 1, 2000, above);
    add_class(&c, 1, TC_H_ROOT, 2, top, 100 * GBIT);
    begin(&c, RTM_NEWTCLASS, OWN, 0x90010001, TC_H_ROOT); /* of another discipline */
    kind(&c, "drr");
    end(&c);
    done(&c);
    assert_true(read_bytes(&shaper, c.bytes, c.used));
    assert_true(shaper.ended);
    return tti_shaper_rate(&shaper);
}

static void the_default_class_borrows_from_those_above(void **state)
{
    (void)state;
    assert_int_equal(rate_below(GBIT, 2 * GBIT, 3 * GBIT, 20, ROOT | 1), GBIT);
    assert_int_equal(rate_below(40 * GBIT, 2 * GBIT, 3 * GBIT, 20, ROOT | 1), 2 * GBIT);
    assert_int_equal(rate_below(40 * GBIT, 50 * GBIT, 40 * GBIT, 20, ROOT | 1), 40 * GBIT);
    assert_int_equal(rate_below(40 * GBIT, 50 * GBIT, 3 * GBIT, 20, ROOT | 1), 3 * GBIT);
    leaf_rate = GBIT; /* its own, whatever there is above */
    assert_int_equal(rate_below(GBIT, 2 * GBIT, GBIT / 10, 20, ROOT | 1), GBIT);
    leaf_rate = 1000;
    assert_int_equal(rate_below(GBIT, 2 * GBIT, 3 * GBIT, 20, TC_H_ROOT), 2000); /* what is at the top borrows nothing */
}

/* What nobody sorts is sent as it comes where there is no default class, or it is no leaf. */
static void without_a_default_class_nothing_is_known(void **state)
{
    (void)state;
    assert_int_equal(rate_below(GBIT, GBIT, GBIT, 0, ROOT | 1), 0);
    assert_int_equal(rate_below(GBIT, GBIT, GBIT, 30, ROOT | 1), 0);
    assert_int_equal(rate_below(GBIT, GBIT, GBIT, 2, ROOT | 1), 0);
    assert_int_equal(rate_below(GBIT, GBIT, GBIT, 20, ROOT | 77), 0); /* above it there is nothing */
    assert_int_equal(rate_below(GBIT, GBIT, GBIT, 20, ROOT | 2), 0);  /* or itself */
}

static void too_many_classes_are_refused(void **state)
{
    tti_shaper shaper = asked(&a, &c);
    uint8_t    question[TTI_SHAPER_QUESTION_BYTES];
    int        i;

    (void)state;
    add_htb(&a, 20);
    done(&a);
    assert_true(read_bytes(&shaper, a.bytes, a.used));
    tti_shaper_ask_classes(&shaper, question);
    for (i = 0; i < TTI_CLASSES_MAX; i++)
        add_class(&c, (uint32_t)i + 1, TC_H_ROOT, 0, GBIT, GBIT);
    assert_true(read_bytes(&shaper, c.bytes, c.used));
    c.used = 0;
    add_class(&c, 300, TC_H_ROOT, 0, GBIT, GBIT);
    assert_false(read_bytes(&shaper, c.bytes, c.used));
    assert_int_equal(tti_shaper_rate(&shaper), 0);
}

static void refusals_are_no_answers(void **state)
{
    tti_shaper shaper = asked(&a, NULL);
    int        none = 0;

    (void)state;
    begin(&a, NLMSG_ERROR, 0, 0, 0);
    memcpy(a.bytes + a.used, &none, sizeof none);
    a.used += sizeof none + NLMSG_HDRLEN;
    end(&a);
    assert_false(read_bytes(&shaper, a.bytes, a.used));

    shaper = asked(&a, NULL); /* the dump was disturbed */
    add_tbf(&a, OWN, TC_H_ROOT, GBIT);
    a.bytes[offsetof(struct nlmsghdr, nlmsg_flags)] |= NLM_F_DUMP_INTR;
    assert_false(read_bytes(&shaper, a.bytes, a.used));

    shaper = asked(&a, NULL); /* an answer to somebody else's question is none */
    a.sequence++;
    add_tbf(&a, OWN, TC_H_ROOT, GBIT);
    done(&a);
    assert_true(read_bytes(&shaper, a.bytes, a.used));
    assert_true(!shaper.ended && tti_shaper_rate(&shaper) == 0);
}

static void odd_attributes_are_refused(void **state)
{
    static const struct {
        size_t  at;
        uint8_t byte;
    } odd[] = {
        { NLMSG_HDRLEN + sizeof(struct tcmsg), 3 },    /* shorter than its head */
        { NLMSG_HDRLEN + sizeof(struct tcmsg), 200 },  /* longer than the message */
        { NLMSG_HDRLEN + sizeof(struct tcmsg) + 7, 'x' }, /* a name without an end */
        { NLMSG_HDRLEN + sizeof(struct tcmsg) + 12, 8 }, /* numbers that are too few */
        { 0, 15 },                                     /* a message shorter than its head */
        { 0, 30 },                                     /* than what it is about */
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof odd / sizeof *odd; i++) {
        tti_shaper shaper = asked(&a, NULL);

        add_tbf(&a, OWN, TC_H_ROOT, GBIT);
        a.bytes[odd[i].at] = odd[i].byte;
        if (read_bytes(&shaper, a.bytes, a.used))
            fail_msg("case %zu was taken", i);
    }
}

/* Each prefix of a packet: taken only where a message ends. */
static void what_is_cut_off_is_refused(void **state)
{
    size_t ends[3] = { 0 }, n, taken = 0;

    (void)state;
    (void)asked(&a, NULL);
    add_plain(&a, OTHER, "noqueue");
    ends[1] = a.used;
    add_tbf(&a, OWN, TC_H_ROOT, 50 * GBIT);
    ends[2] = a.used;
    done(&a);
    for (n = 0; n < a.used; n++) {
        tti_shaper shaper = { .interface = OWN, .sequence = a.sequence };
        const bool good = read_bytes(&shaper, a.bytes, n);

        assert_int_equal(good, n == ends[0] || n == ends[1] || n == ends[2]);
        assert_true(!shaper.ended && tti_shaper_rate(&shaper) == 0);
        taken += good;
    }
    assert_int_equal(taken, 3);
}

/* Whatever it is, it is read to its end or refused; the sanitizers look on. */
static void changed_bytes_do_no_harm(void **state)
{
    uint64_t random = 1;
    size_t   k;
    int      i, j;

    (void)state;
    for (i = 0; i < MANY_CHANGES; i++) {
        tti_shaper shaper = asked(&a, &c);

        add_htb(&a, 20);
        add_tbf(&a, OWN, TC_H_ROOT, 50 * GBIT);
        for (k = 1; k <= 4; k++)
            add_class(&a, 10 * (uint32_t)k, k == 1 ? (uint32_t)TC_H_ROOT : ROOT | (10 * (uint32_t)(k - 1)), 4 - (uint32_t)k, 50 * GBIT, GBIT);
        done(&a);
        for (j = 0; j < 1 + i % 3; j++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            a.bytes[(random >> 33) % a.used] = (uint8_t)(random >> 24);
        }
        (void)read_bytes(&shaper, a.bytes, a.used);
        (void)tti_shaper_rate(&shaper);
        assert_true(shaper.n_classes <= TTI_CLASSES_MAX && shaper.discipline[TTI_DISCIPLINE_MAX - 1] == '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_of_a_bucket_is_read),
        cmocka_unit_test(what_is_not_shaped_has_no_rate),
        cmocka_unit_test(the_default_class_borrows_from_those_above),
        cmocka_unit_test(without_a_default_class_nothing_is_known),
        cmocka_unit_test(too_many_classes_are_refused),
        cmocka_unit_test(refusals_are_no_answers),
        cmocka_unit_test(odd_attributes_are_refused),
        cmocka_unit_test(what_is_cut_off_is_refused),
        cmocka_unit_test(changed_bytes_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
