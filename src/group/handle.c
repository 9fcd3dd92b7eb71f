/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handle.c - what names a world object in a process for its life: "tutti:native:host:pid:nonce". */
#include "group/make.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <tutti/regroup.h>

enum { NONCE_BYTES = TTI_NONCE_TEXT / 2, HOST_SHOWN_MAX = 64 };

void tti_nonce_text(tti_port *port, char hex_out[TTI_NONCE_TEXT + 1])
{
    uint8_t nonce[NONCE_BYTES];
    int     i;

    port->ops->random(port, nonce, sizeof nonce);
    for (i = 0; i < NONCE_BYTES; i++)
        snprintf(hex_out + 2 * i, 3, "%02x", nonce[i]);
}

void tti_handle_make(tti_port *port, tutti_group *world)
{
    char host[HOST_SHOWN_MAX] = "";
    char hex[TTI_NONCE_TEXT + 1];

    if (gethostname(host, sizeof host - 1) != 0 || strchr(host, ':') != NULL)
        snprintf(host, sizeof host, "?");
    tti_nonce_text(port, hex);
    snprintf(world->handle, sizeof world->handle, "tutti:%.32s:%s:%lld:%s", world->ops->name, host,
             (long long)getpid(), hex);
}

/* Four colons, and behind the last one nothing but the nonce. */
bool tti_handle_fits(const char *text, const char *backend)
{
    const char *at = text;
    const char *last = text;
    int         colons = 0;
    char        begin[48];

    if (strnlen(text, TTI_HANDLE_MAX) >= TTI_HANDLE_MAX)
        return false;
    snprintf(begin, sizeof begin, "tutti:%.32s:", backend);
    if (strncmp(text, begin, strlen(begin)) != 0)
        return false;
    for (; *at != '\0'; at++)
        if (*at == ':') {
            colons++;
            last = at + 1;
        }
    return colons == 4 && strlen(last) == TTI_NONCE_TEXT &&
           strspn(last, "0123456789abcdef") == TTI_NONCE_TEXT;
}

const char *tutti_get_reconfigure_handle(const tutti_group *group)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL && g->world == g ? g->handle : NULL;
}
