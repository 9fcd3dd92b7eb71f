/* SPDX-License-Identifier: BSD-3-Clause
 *
 * figures.c - what things take, as a file that people can read.
 *
 * True    A file is somebody's: its size has a limit, its members must be known, numbers positive and in proportion. On any
 *         failure the figures are as they were. */
#include "simulate/figures.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/text_file.h"

enum { FILE_MAX = 64 * 1024, VERSION = 1, SHOWN_MAX = 40 };

/* Messages between virtual machines, or namespaces, of one site. */
const tti_figures tti_figures_default = {
    .machine = { .line = 100, .give = 900, .copy = 0.04, .copy_far = 0.12, .fetch = 0.06, .combine = 0.03,
                 .pull = 0.10, .pull_call = 900, .message = 30000, .post = 3000, .wire = 1.0,
                 .cache_bytes = 1024 * 1024, .near_bytes = 2 * 1024 * 1024, .last_bytes = 4 * 1024 * 1024 },
    .local = { .latency = 300, .post = 200, .send_byte = 0.06, .recv_byte = 0.06 },
    .far = { .latency = 24000, .post = 3000, .send_byte = 0.2, .recv_byte = 0.2 },
    .port_byte = 8 / (10 * TTI_SHARE_OF_LINE),
    .copy_all = 0.15,
    .combine_all = 0.08,
    .read_main = 0.08,
    .write_main = 0.10,
    .store = 0.12,
    .store_out = 0.04,
    .load = 0.04,
    .pass = 1800,
};

tti_tier tti_tier_of(double message_us, double post_us, double send_byte, double recv_byte)
{
    const double post = 2 * post_us < message_us ? post_us : message_us / 2; /* it is part of a message */

    return (tti_tier){ .latency = 1000 * (message_us - 2 * post), .post = 1000 * post, .send_byte = send_byte,
                       .recv_byte = recv_byte };
}

/* ---- the members ------------------------------------------------------------------------------- */

/* What a file can say, in ns unless scale says otherwise. */
typedef struct member {
    const char *group;
    const char *name;
    size_t      at; /* in figures */
    double      least, most;
} member;

#define HOST(name, field, most) { "host", name, offsetof(tti_figures, machine.field), 0, most }
#define MEMORY(name, field) { "host", name, offsetof(tti_figures, field), 0, 1e3 }

static const member members[] = {
    HOST("line_ns", line, 1e6),
    HOST("give_ns", give, 1e9),
    HOST("copy_ns_per_byte", copy, 1e3),
    HOST("copy_far_ns_per_byte", copy_far, 1e3),
    HOST("fetch_ns_per_byte", fetch, 1e3),
    HOST("combine_ns_per_byte", combine, 1e3),
    MEMORY("copy_all_ns_per_byte", copy_all),
    MEMORY("combine_all_ns_per_byte", combine_all),
    MEMORY("read_main_ns_per_byte", read_main),
    MEMORY("write_main_ns_per_byte", write_main),
    MEMORY("store_ns_per_byte", store),
    MEMORY("store_out_ns_per_byte", store_out),
    MEMORY("load_ns_per_byte", load),
    { "host", "pass_ns", offsetof(tti_figures, pass), 0, 1e9 },
    { "host", "pass_many_ns", offsetof(tti_figures, pass_many), 0, 1e9 },
    HOST("pull_ns_per_byte", pull, 1e3),
    HOST("pull_call_ns", pull_call, 1e9),
    HOST("cache_bytes", cache_bytes, 1e12),
    HOST("near_bytes", near_bytes, 1e12),
    HOST("last_bytes", last_bytes, 1e12),
};

/* Those of messages hang together. */
typedef struct messages_text {
    double message_us, post_us, uneven_us, send_byte, recv_byte, bulk_byte, gbit_per_s;
} messages_text;

static const member of_messages[] = {
    { NULL, "message_us", offsetof(messages_text, message_us), 0, 1e8 },
    { NULL, "post_us", offsetof(messages_text, post_us), 0, 1e7 },
    { NULL, "uneven_us", offsetof(messages_text, uneven_us), 0, 1e7 },
    { NULL, "send_ns_per_byte", offsetof(messages_text, send_byte), 0, 1e5 },
    { NULL, "recv_ns_per_byte", offsetof(messages_text, recv_byte), 0, 1e5 },
    { NULL, "bulk_ns_per_byte", offsetof(messages_text, bulk_byte), 0, 1e5 },
    { NULL, "gbit_per_s", offsetof(messages_text, gbit_per_s), 1e-6, 1e6 }, /* of "far" alone: the last one */
};
enum { N_MEMBERS = sizeof members / sizeof members[0], N_OF_MESSAGES = sizeof of_messages / sizeof of_messages[0] };

static double *place_of(void *base, const member *m)
{
    return (double *)(void *)((char *)base + m->at);
}

static messages_text text_of(const tti_tier *tier, double port_byte)
{
    return (messages_text){ .message_us = (tier->latency + 2 * tier->post) / 1000, .post_us = tier->post / 1000,
                            .uneven_us = tier->uneven / 1000, .send_byte = tier->send_byte, .recv_byte = tier->recv_byte, .bulk_byte = tier->bulk_byte,
                            .gbit_per_s = 8 / (port_byte * TTI_SHARE_OF_LINE) };
}

/* ---- reading ----------------------------------------------------------------------------------- */

static tutti_status fail_file(const char *path, const char *what)
{
    return tti_fail(TUTTI_E_ARG,
                    "file of figures '%s': %s\n"
                    "  next: write one with `tutti sim --fit`, or as tutti/simulate.h tells",
                    path, what);
}

static tutti_status read_number(const char *path, const json_t *value, const char *group, const member *m, double *to)
{
    const double number = json_number_value(value);

    if (!json_is_number(value) || !(number >= m->least && number <= m->most))
        return tti_fail(TUTTI_E_ARG, "file of figures '%s': \"%s\" of \"%s\" is no number from %g to %g", path, m->name,
                        group, m->least, m->most);
    *to = number;
    return TUTTI_OK;
}

/* The members of an object, which are among n of those known. */
static tutti_status read_group(const char *path, const json_t *json, const char *group, const member *known, int n,
                               void *base)
{
    tutti_status st = TUTTI_OK;
    const char  *key;
    json_t      *value;
    int          i;

    if (!json_is_object(json))
        return tti_fail(TUTTI_E_ARG, "file of figures '%s': \"%s\" is not { ... }", path, group);
    json_object_foreach ((json_t *)(uintptr_t)json, key, value) {
        for (i = 0; i < n && strcmp(key, known[i].name) != 0; i++)
            ;
        if (i == n)
            return tti_fail(TUTTI_E_ARG, "file of figures '%s': \"%s\" has no '%.*s'", path, group, SHOWN_MAX, key);
        st = read_number(path, value, group, &known[i], place_of(base, &known[i]));
        if (st != TUTTI_OK)
            return st;
    }
    return TUTTI_OK;
}

/* Where the file says both. Both are rounded when they are written: two thousandths, or a nanosecond, are no contradiction. */
static tutti_status check_post(const char *path, const json_t *json, const char *group, const messages_text *text)
{
    const double half = text->message_us / 2;

    if (json_object_get(json, "post_us") == NULL || text->post_us <= 1.002 * half + 0.001)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG,
                    "file of figures '%s': \"post_us\" of \"%s\" is %g, more than half of \"message_us\", which is %g: a "
                    "message is sent and received\n"
                    "  next: give it at most %g",
                    path, group, text->post_us, text->message_us, half);
}

static tutti_status read_messages(const char *path, const json_t *json, const char *group, int n, tti_tier *tier,
                                  double *port_byte)
{
    messages_text text = text_of(tier, *port_byte);
    tutti_status  st = read_group(path, json, group, of_messages, n, &text);

    if (st == TUTTI_OK)
        st = check_post(path, json, group, &text);
    if (st != TUTTI_OK)
        return st;
    *tier = tti_tier_of(text.message_us, text.post_us, text.send_byte, text.recv_byte);
    if (1000 * text.uneven_us > tier->post)
        return tti_fail(TUTTI_E_ARG,
                        "file of figures '%s': \"uneven_us\" of \"%s\" is more than a message takes at one end\n"
                        "  next: give it at most %g, the smaller one of \"post_us\" and half of \"message_us\"",
                        path, group, tier->post / 1000);
    tier->uneven = 1000 * text.uneven_us;
    tier->bulk_byte = text.bulk_byte;
    *port_byte = tti_port_byte(text.gbit_per_s);
    return TUTTI_OK;
}

static tutti_status read_member(const char *path, const char *key, const json_t *value, tti_figures *f)
{
    if (strcmp(key, "tutti_figures") == 0)
        return json_is_integer(value) && json_integer_value(value) == VERSION
                   ? TUTTI_OK
                   : fail_file(path, "it is of another version of tutti");
    if (strcmp(key, "host") == 0)
        return read_group(path, value, key, members, N_MEMBERS, f);
    if (strcmp(key, "local") == 0)
        return read_messages(path, value, key, N_OF_MESSAGES - 1, &f->local, &f->port_byte);
    if (strcmp(key, "far") == 0)
        return read_messages(path, value, key, N_OF_MESSAGES, &f->far, &f->port_byte);
    return tti_fail(TUTTI_E_ARG, "file of figures '%s': there is no '%.*s'\n  next: take host, local and far", path,
                    SHOWN_MAX, key);
}

tutti_status tti_figures_parse(const char *path, const char *text, size_t bytes, tti_figures *figures)
{
    tti_figures  f = *figures;
    json_error_t error;
    json_t      *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error), *value;
    const char  *key;
    tutti_status st = TUTTI_OK;

    if (json == NULL)
        return tti_fail(TUTTI_E_ARG, "file of figures '%s', line %d: %s", path, error.line, error.text);
    if (!json_is_object(json) || json_object_get(json, "tutti_figures") == NULL)
        st = fail_file(path, "it is not { \"tutti_figures\": 1, ... }");
    else
        json_object_foreach (json, key, value) {
            if (st == TUTTI_OK)
                st = read_member(path, key, value, &f);
        }
    json_decref(json);
    if (st == TUTTI_OK)
        *figures = f;
    return st;
}

tutti_status tti_figures_read(const char *path, tti_figures *figures)
{
    char        *text = NULL;
    size_t       bytes = 0;
    tutti_status st = tti_text_file_read("file of figures", path, FILE_MAX, &text, &bytes);

    if (st == TUTTI_OK)
        st = tti_figures_parse(path, text, bytes, figures);
    free(text);
    return st;
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* Four digits: more is noise. */
static json_t *rounded(double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.4g", value);
    return json_real(strtod(text, NULL));
}

static int add_members(json_t *json, const char *group, const member *known, int n, const void *base)
{
    json_t *object = json_object();
    int     i, wrong = object == NULL;

    for (i = 0; i < n && !wrong; i++)
        wrong = json_object_set_new(object, known[i].name, rounded(*place_of((void *)(uintptr_t)base, &known[i])));
    if (wrong) {
        json_decref(object);
        return wrong;
    }
    return json_object_set_new(json, group, object);
}

static json_t *to_json(const tti_figures *f)
{
    const messages_text local = text_of(&f->local, f->port_byte), far = text_of(&f->far, f->port_byte);
    json_t             *json = json_pack("{s:i}", "tutti_figures", (int)VERSION);

    if (json != NULL && add_members(json, "host", members, N_MEMBERS, f) == 0 &&
        add_members(json, "far", of_messages, N_OF_MESSAGES, &far) == 0 &&
        add_members(json, "local", of_messages, N_OF_MESSAGES - 1, &local) == 0)
        return json;
    json_decref(json);
    return NULL;
}

tutti_status tti_figures_write(const char *path, const tti_figures *figures)
{
    json_t *json = to_json(figures);
    FILE   *out = NULL;
    int     err = 0;

    if (json == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to write figures");
    out = fopen(path, "we");
    if (out == NULL) {
        err = errno;
    } else {
        if (json_dumpf(json, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(4)) != 0 ||
            fputc('\n', out) == EOF)
            err = errno != 0 ? errno : EIO;
        if (fclose(out) != 0)
            err = errno;
    }
    json_decref(json);
    return err == 0 ? TUTTI_OK : tti_fail_errno(err, "cannot write the file of figures '%s'", path);
}
