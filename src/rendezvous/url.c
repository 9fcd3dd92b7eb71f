/* SPDX-License-Identifier: BSD-3-Clause
 *
 * url.c - init URLs. */
#include "rendezvous/url.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

/* A whole decimal number within [min, max]. */
static bool read_number(const char *text, long min, long max, int *out)
{
    char *end = NULL;
    long  value;

    if (text[0] < '0' || text[0] > '9')
        return false;
    value = strtol(text, &end, 10); /* saturates, so that too many digits are out of range */
    if (*end != '\0' || value < min || value > max)
        return false;
    *out = (int)value;
    return true;
}

static tutti_status take_number(const char *key, const char *value, long min, long max, bool given,
                                int *out)
{
    if (given)
        return tti_fail(TUTTI_E_ARG, "the init URL gives '%s' twice\n  next: keep one of the two", key);
    if (!read_number(value, min, max, out))
        return tti_fail(TUTTI_E_ARG,
                        "the init URL has %s '%.64s', not a number between %ld and %ld\n"
                        "  next: write it as ?rank=0&world_size=2, for example",
                        key, value, min, max);
    return TUTTI_OK;
}

static tutti_status take_parameter(const char *key, const char *value, tti_url *url)
{
    if (strcmp(key, "rank") == 0)
        return take_number(key, value, 0, TTI_WORLD_MAX - 1, url->rank >= 0, &url->rank);
    if (strcmp(key, "world_size") == 0)
        return take_number(key, value, 1, TTI_WORLD_MAX, url->world_size > 0, &url->world_size);
    if (strcmp(key, "use_libuv") == 0)
        return TUTTI_OK; /* torch's choice among its servers; there is one here */
    return tti_fail(TUTTI_E_ARG,
                    "the init URL has the parameter '%.64s'\n  next: use rank and world_size", key);
}

/* Read "a=b&c=d", writing NULs into it. */
static tutti_status take_query(char *query, tti_url *url)
{
    char        *rest = NULL;
    char        *at;
    char        *equals;
    tutti_status st = TUTTI_OK;

    for (at = strtok_r(query, "&", &rest); at != NULL && st == TUTTI_OK;
         at = strtok_r(NULL, "&", &rest)) {
        equals = strchr(at, '=');
        if (equals == NULL)
            return tti_fail(TUTTI_E_ARG, "the init URL's parameter '%.64s' has no value\n"
                                         "  next: write it as ?rank=0&world_size=2, for example",
                            at);
        *equals = '\0';
        st = take_parameter(at, equals + 1, url);
    }
    return st;
}

static tutti_status take_env(const char *body)
{
    if (body[0] != '\0')
        return tti_fail(TUTTI_E_ARG,
                        "init URL 'env://%.64s': nothing may stand behind env:// but ?rank= and "
                        "world_size=",
                        body);
    return TUTTI_OK;
}

static tutti_status take_tcp(char *body, bool zero_ok, tti_url *url)
{
    const size_t length = strlen(body);

    if (length > 0 && body[length - 1] == '/')
        body[length - 1] = '\0';
    return tti_addr_split(body, zero_ok, url->host, &url->port);
}

static tutti_status take_file(const char *body, tti_url *url)
{
    if (body[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "init URL 'file://' has no path\n  next: write file:///path");
    if (body[0] != '/')
        return tti_fail(TUTTI_E_ARG,
                        "init URL 'file://%.64s' has no absolute path\n  next: write file:///path",
                        body);
    if (strlen(body) >= sizeof url->path)
        return tti_fail(TUTTI_E_ARG, "the init URL's path has %zu bytes, %d is the most",
                        strlen(body), TTI_URL_PATH_MAX - 1);
    memcpy(url->path, body, strlen(body) + 1);
    return TUTTI_OK;
}

static tutti_status take_body(const char *scheme, char *body, tti_url *url)
{
    if (strcmp(scheme, "env") == 0) {
        url->scheme = TTI_URL_ENV;
        return take_env(body);
    }
    if (strcmp(scheme, "tcp") == 0) {
        url->scheme = TTI_URL_TCP;
        return take_tcp(body, true, url);
    }
    if (strcmp(scheme, "torch-tcp") == 0) {
        url->scheme = TTI_URL_TORCH;
        return take_tcp(body, false, url);
    }
    if (strcmp(scheme, "file") == 0) {
        url->scheme = TTI_URL_FILE;
        return take_file(body, url);
    }
    return tti_fail(TUTTI_E_UNSUPPORTED,
                    "there is no rendezvous for scheme '%.32s://'\n"
                    "  next: use env://, tcp://host:port, torch-tcp://host:port or file:///path",
                    scheme);
}

tutti_status tti_url_parse(const char *text, tti_url *url_out)
{
    const size_t length = strnlen(text, TTI_URL_MAX);
    char         copy[TTI_URL_MAX];
    tti_url      url = { .rank = -1 };
    char        *body;
    char        *query;
    tutti_status st;

    if (length >= TTI_URL_MAX)
        return tti_fail(TUTTI_E_ARG, "the init URL is longer than %d bytes", TTI_URL_MAX - 1);
    memcpy(copy, text, length + 1);
    body = strstr(copy, "://");
    if (body == NULL)
        return tti_fail(TUTTI_E_ARG,
                        "'%.64s' is no init URL: it has no scheme\n"
                        "  next: use env://, tcp://host:port, torch-tcp://host:port or file:///path",
                        text);
    *body = '\0';
    body += 3;
    query = strchr(body, '?');
    if (query != NULL)
        *query++ = '\0';
    st = take_body(copy, body, &url);
    if (st == TUTTI_OK && query != NULL)
        st = take_query(query, &url);
    if (st == TUTTI_OK)
        *url_out = url;
    return st;
}
