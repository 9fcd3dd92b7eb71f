/* SPDX-License-Identifier: BSD-3-Clause
 *
 * support.c - what the targets share. */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t tt_take(tt_input *in, size_t bytes)
{
    uint64_t number = 0;
    size_t   i;

    for (i = 0; i < bytes && in->left > 0; i++, in->at++, in->left--)
        number |= (uint64_t)*in->at << (8 * i);
    return number;
}

tt_input tt_take_part(tt_input *in, size_t most)
{
    const tt_input part = { .at = in->at, .left = most < in->left ? most : in->left };

    in->at += part.left;
    in->left -= part.left;
    return part;
}

tt_input tt_take_sized(tt_input *in)
{
    return tt_take_part(in, (size_t)tt_take(in, 2));
}

uint8_t *tt_copy(const void *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);

    TT_MUST(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

char *tt_text(const void *data, size_t size)
{
    char *text = malloc(size + 1);

    TT_MUST(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

const char *tt_file(const void *data, size_t size)
{
    static char path[64];
    static int  fd = -1;

    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        TT_MUST(fd >= 0 && fchmod(fd, 0600) == 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    TT_MUST(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    return path;
}

void tt_set_env(const char *name, const char *value)
{
    TT_MUST((value != NULL ? setenv(name, value, 1) : unsetenv(name)) == 0);
}

static int64_t still_now(tti_port *port)
{
    (void)port;
    return TTI_SECOND;
}

static void still_random(tti_port *port, void *out, size_t bytes)
{
    (void)port;
    memset(out, 0, bytes);
}

tti_port *tt_still_port(void)
{
    static const tti_port_ops ops = { .name = "still", .now_ns = still_now, .random = still_random };
    static tti_port           port = { &ops };

    return &port;
}
