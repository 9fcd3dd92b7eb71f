/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_place.c - URLs of stores, numbers and time-outs, as they stand on a command line. */
#include "store_place.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/store.h>

bool store_read_number(const char *text, long long min, long long max, int64_t *out)
{
    char *end = NULL;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < min || value > max)
        return false;
    *out = value;
    return true;
}

static bool read_host_port(const char *text, store_place *p)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    int64_t port = 0;

    if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    } else if (len == 0 || memchr(text, ':', len) != NULL) {
        return false;
    }
    if (len >= sizeof p->host || !store_read_number(colon + 1, 0, 65535, &port))
        return false;
    memcpy(p->host, text, len);
    p->host[len] = '\0';
    p->port = (int)port;
    return true;
}

bool store_read_place(const char *url, store_place *p)
{
    *p = (store_place){ .port = 0 };
    if (strncmp(url, "file:///", 8) == 0 && url[8] != '\0') {
        p->path = url + 7;
        return true;
    }
    p->torch = strncmp(url, "torch-", 6) == 0;
    url += p->torch ? 6 : 0;
    return strncmp(url, "tcp://", 6) == 0 && read_host_port(url + 6, p);
}

bool store_place_is_local(const store_place *p)
{
    return strcmp(p->host, "localhost") == 0 || strncmp(p->host, "127.", 4) == 0 ||
           strcmp(p->host, "::1") == 0;
}

bool store_read_timeout(const char *text, int64_t *ms_out)
{
    char *end = NULL;
    double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !(seconds > 0))
        return false;
    *ms_out = isinf(seconds)       ? TUTTI_INFINITE
              : seconds > 1e12     ? INT64_C(1000000000000000)
              : seconds * 1000 < 1 ? 1
                                   : (int64_t)(seconds * 1000);
    return true;
}
