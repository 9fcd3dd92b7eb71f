/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/level/layout.h"

#include <stdlib.h>
#include <tutti/private.h>

/* Number the hosts by their first ranks, and the members of each; in begins[host + 1] how many those are. seen[n_marks]
 * is zeroed, and has the numbers plus one. */
static int number(const int *marks, int *seen, tti_hosts *layout)
{
    int n_hosts = 0, r;

    for (r = 0; r < layout->n_ranks; r++) {
        int host = seen[marks[r]] - 1;

        if (host < 0) {
            host = n_hosts++;
            seen[marks[r]] = n_hosts;
            layout->begins[n_hosts] = 0;
        }
        layout->host[r] = host;
        layout->place[r] = layout->begins[host + 1]++;
    }
    return n_hosts;
}

static void sort_by_host(tti_hosts *layout)
{
    int host, r;

    layout->begins[0] = 0;
    for (host = 0; host < layout->n_hosts; host++)
        layout->begins[host + 1] += layout->begins[host];
    for (r = 0; r < layout->n_ranks; r++)
        layout->members[layout->begins[layout->host[r]] + layout->place[r]] = r;
}

tutti_status tti_hosts_make(const int *marks, int n_marks, int n_ranks, tti_hosts *layout_out)
{
    const size_t n = (size_t)n_ranks;
    tti_hosts   layout = { .n_ranks = n_ranks };
    int         *room = malloc((4 * n + 1) * sizeof *room);
    int         *seen = calloc((size_t)n_marks, sizeof *seen);
    int          host;

    if (room == NULL || seen == NULL) {
        free(room);
        free(seen);
        return tti_fail(TUTTI_E_NOMEM, "no memory for the hosts of a group of %d ranks", n_ranks);
    }
    layout.host = room;
    layout.place = room + n;
    layout.members = room + 2 * n;
    layout.begins = room + 3 * n;
    layout.n_hosts = number(marks, seen, &layout);
    free(seen);
    sort_by_host(&layout);
    layout.least = n_ranks;
    for (host = 0; host < layout.n_hosts; host++) {
        const int local = tti_hosts_local(&layout, host);

        layout.least = local < layout.least ? local : layout.least;
        layout.most = local > layout.most ? local : layout.most;
    }
    *layout_out = layout;
    return TUTTI_OK;
}

void tti_hosts_release(tti_hosts *layout)
{
    free(layout->host);
    *layout = (tti_hosts){ .host = NULL };
}
