/* SPDX-License-Identifier: BSD-3-Clause
 *
 * figures.c - files of figures for the simulator.
 *
 * Holds   What is accepted, written and read again is written as the same file; what is refused changes nothing. Numbers are
 *         written with four digits, so that a part may come out a bit larger than half of the whole, which is cut when it is
 *         read: so it is the same from the second time on. */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <unistd.h>
#include "simulate/figures.h"

/* Write figures, and take the text back. */
static size_t written(const tti_figures *figures, char *out, size_t most)
{
    const char *path = tt_file("", 0);
    int         fd;
    ssize_t     got;

    TT_MUST(tti_figures_write(path, figures) == TUTTI_OK);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    TT_MUST(fd >= 0);
    got = read(fd, out, most);
    close(fd);
    TT_MUST(got > 0 && (size_t)got < most);
    return (size_t)got;
}

/* Write figures, and read them. */
static size_t again(tti_figures *figures, char *out, size_t most)
{
    const size_t n = written(figures, out, most);

    TT_MUST(tti_figures_parse("some figures", out, n, figures) == TUTTI_OK);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char first[8192], second[8192];
    tti_figures  figures, before;
    uint8_t     *copy = tt_copy(data, size);
    tutti_status st;
    size_t       n, m;

    memset(&figures, 0, sizeof figures);
    figures.port_byte = tti_port_byte(10);
    figures.far = figures.local = tti_tier_of(30, 1, 0.1, 0.1);
    before = figures;
    if (size % 16 == 7)
        st = tti_figures_read(tt_file(data, size), &figures);
    else
        st = tti_figures_parse("some figures", (const char *)copy, size, &figures);
    if (st == TUTTI_OK) {
        n = again(&figures, first, sizeof first);
        n = again(&figures, first, sizeof first);
        m = again(&figures, second, sizeof second);
        TT_MUST(n == m && memcmp(first, second, n) == 0);
    } else {
        TT_MUST(memcmp(&figures, &before, sizeof figures) == 0);
    }
    free(copy);
    return 0;
}
