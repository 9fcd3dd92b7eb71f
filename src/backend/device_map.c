/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_map.c - reading and writing backend strings. */
#include "backend/device_map.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <tutti/private.h>
#include "backend/registry.h"

#define FORMAT "\n  next: \"backend\" or \"device:backend,device:backend\", as \"cpu:native,cuda:nccl\""

static const char *const device_names[TTI_DEVICES] = { "cpu", "cuda" };

const char *tti_device_name(tutti_device_type type)
{
    return (unsigned)type < TTI_DEVICES ? device_names[type] : "?";
}

bool tti_device_find(const char *name, size_t length, tutti_device_type *type_out)
{
    int i;

    for (i = 0; i < TTI_DEVICES; i++) {
        if (strlen(device_names[i]) == length && strncasecmp(device_names[i], name, length) == 0) {
            *type_out = (tutti_device_type)i;
            return true;
        }
    }
    return false;
}

/* A copy in lower case of text[length]; false if it is too long, or empty. */
static bool lower(const char *text, size_t length, char out[TTI_BACKEND_NAME_MAX])
{
    size_t i;

    if (length == 0 || length >= TTI_BACKEND_NAME_MAX)
        return false;
    for (i = 0; i < length; i++)
        out[i] = (char)tolower((unsigned char)text[i]);
    out[length] = '\0';
    return true;
}

/* One backend for every device that it takes. */
static tutti_status parse_name(const char *text, tti_device_map *map)
{
    char         name[TTI_BACKEND_NAME_MAX];
    unsigned     devices = 0;
    tutti_status st;
    int          i;

    if (!lower(text, strlen(text), name))
        return tti_fail(TUTTI_E_ARG, "'%.64s' is no backend" FORMAT, text);
    if (strcmp(name, "undefined") == 0)
        snprintf(name, sizeof name, "%s", TTI_BACKEND_DEFAULT);
    st = tti_backend_devices(name, &devices);
    if (st != TUTTI_OK)
        return st;
    for (i = 0; i < TTI_DEVICES; i++)
        if ((devices & 1u << i) != 0)
            memcpy(map->names[i], name, sizeof name);
    return TUTTI_OK;
}

/* pair[length] is "cuda:nccl". */
static tutti_status parse_pair(const char *pair, size_t length, tti_device_map *map)
{
    const char       *colon = memchr(pair, ':', length);
    const int         shown = (int)(length < 64 ? length : 64);
    char              name[TTI_BACKEND_NAME_MAX];
    tutti_device_type device;
    unsigned          devices = 0;
    size_t            left;
    tutti_status      st;

    left = colon != NULL ? length - (size_t)(colon + 1 - pair) : 0;
    if (colon == NULL || memchr(colon + 1, ':', left) != NULL || !lower(colon + 1, left, name))
        return tti_fail(TUTTI_E_ARG, "'%.*s' is no pair of a device and a backend" FORMAT, shown, pair);
    if (!tti_device_find(pair, (size_t)(colon - pair), &device))
        return tti_fail(TUTTI_E_ARG, "there is no device '%.*s' in a backend string, only 'cpu' and 'cuda'" FORMAT,
                        (int)(colon - pair < 64 ? colon - pair : 64), pair);
    if (map->names[device][0] != '\0')
        return tti_fail(TUTTI_E_ARG, "device '%s' has two backends, '%s' and '%s'" FORMAT,
                        device_names[device], map->names[device], name);
    st = tti_backend_devices(name, &devices);
    if (st != TUTTI_OK)
        return st;
    if ((devices & 1u << device) == 0)
        return tti_fail(TUTTI_E_ARG, "backend '%s' does not take memory of '%s'" FORMAT, name,
                        device_names[device]);
    memcpy(map->names[device], name, sizeof name);
    return TUTTI_OK;
}

static tutti_status parse_pairs(const char *text, tti_device_map *map)
{
    const char  *comma;
    tutti_status st = TUTTI_OK;

    for (; st == TUTTI_OK; text = comma + 1) {
        comma = strchr(text, ',');
        st = parse_pair(text, comma != NULL ? (size_t)(comma - text) : strlen(text), map);
        if (comma == NULL)
            break;
    }
    return st;
}

tutti_status tti_device_map_parse(const char *text, tti_device_map *map_out)
{
    tti_device_map map = { .names = { "" } };
    tutti_status   st;

    if (text == NULL)
        text = TTI_BACKEND_DEFAULT;
    st = strpbrk(text, ":,") != NULL ? parse_pairs(text, &map) : parse_name(text, &map);
    if (st == TUTTI_OK)
        *map_out = map;
    return st;
}

void tti_device_map_write(const tti_device_map *map, char out[TTI_DEVICE_MAP_TEXT])
{
    size_t used = 0;
    int    i;

    out[0] = '\0';
    for (i = 0; i < TTI_DEVICES; i++)
        if (map->names[i][0] != '\0')
            used += (size_t)snprintf(out + used, TTI_DEVICE_MAP_TEXT - used, "%s%s:%s", used > 0 ? "," : "",
                                     device_names[i], map->names[i]);
}
