/* SPDX-License-Identifier: BSD-3-Clause
 *
 * relay_line.c - packets on their way to one host, and when they arrive.
 *
 * How     A heap by due time, and by arrival among equals: with order kept due times never fall, so that it is then a queue
 *         that costs next to nothing. Packets lie in blocks of fixed size that are handed back to a list of free ones. */
#include "harness/relay.h"

#include <stdlib.h>
#include <string.h>

enum { QUEUE_BYTES_DEFAULT = 1 << 20, FIRST_ROOM = 256 };

typedef struct parcel {
    int64_t        due;
    uint64_t       number; /* of arrival */
    size_t         bytes;
    struct parcel *next;   /* among free ones */
    unsigned char  data[TT_RELAY_PACKET_MAX];
} parcel;

struct tt_line {
    tt_relay_link   link;
    uint64_t        state; /* of the generator */
    int64_t         free_at; /* when the host's link has sent all that was put before */
    int64_t         last_due;
    parcel        **heap;
    size_t          n, room;
    parcel         *spare;
    parcel         *taken; /* the last one that was given out */
    tt_relay_counts counts;
};

tt_line *tt_line_open(const tt_relay_link *link, uint64_t which)
{
    tt_line *line = calloc(1, sizeof *line);

    if (line == NULL)
        return NULL;
    line->link = *link;
    if (line->link.queue_bytes == 0)
        line->link.queue_bytes = QUEUE_BYTES_DEFAULT;
    line->state = link->seed * UINT64_C(0x9e3779b97f4a7c15) + which;
    line->last_due = INT64_MIN;
    return line;
}

static void free_list(parcel *p)
{
    while (p != NULL) {
        parcel *next = p->next;

        free(p);
        p = next;
    }
}

void tt_line_close(tt_line *line)
{
    size_t i;

    if (line == NULL)
        return;
    for (i = 0; i < line->n; i++)
        free(line->heap[i]);
    free_list(line->spare);
    free(line->taken);
    free(line->heap);
    free(line);
}

/* Evenly in [0, 1): SplitMix64, by Steele, Lea and Flood. */
static double draw(tt_line *line)
{
    uint64_t z = line->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static bool before(const parcel *a, const parcel *b)
{
    return a->due < b->due || (a->due == b->due && a->number < b->number);
}

static void swap(parcel **a, parcel **b)
{
    parcel *t = *a;

    *a = *b;
    *b = t;
}

static bool push(tt_line *line, parcel *p)
{
    size_t i, up;

    if (line->n == line->room) {
        const size_t room = line->room == 0 ? FIRST_ROOM : 2 * line->room;
        parcel     **heap = realloc(line->heap, room * sizeof *heap);

        if (heap == NULL)
            return false;
        line->heap = heap;
        line->room = room;
    }
    line->heap[line->n] = p;
    for (i = line->n++; i > 0; i = up) {
        up = (i - 1) / 2;
        if (before(line->heap[up], line->heap[i]))
            break;
        swap(&line->heap[up], &line->heap[i]);
    }
    return true;
}

static parcel *pop(tt_line *line)
{
    parcel *top = line->heap[0];
    size_t  i = 0, least;

    line->heap[0] = line->heap[--line->n];
    for (;;) {
        least = i;
        if (2 * i + 1 < line->n && before(line->heap[2 * i + 1], line->heap[least]))
            least = 2 * i + 1;
        if (2 * i + 2 < line->n && before(line->heap[2 * i + 2], line->heap[least]))
            least = 2 * i + 2;
        if (least == i)
            return top;
        swap(&line->heap[i], &line->heap[least]);
        i = least;
    }
}

static parcel *get_parcel(tt_line *line)
{
    parcel *p = line->spare;

    if (p == NULL)
        return malloc(sizeof *p);
    line->spare = p->next;
    return p;
}

static void put_back(tt_line *line, parcel *p)
{
    p->next = line->spare;
    line->spare = p;
}

/* When a packet has been sent at the line's rate; -1: too much waits for that already. */
static int64_t sent_at(tt_line *line, int64_t now, size_t bytes)
{
    const int64_t begin = line->free_at > now ? line->free_at : now;
    const double  ns_per_byte = line->link.rate_bps > 0 ? 8e9 / (double)line->link.rate_bps : 0;

    if ((double)(begin - now) > (double)line->link.queue_bytes * ns_per_byte)
        return -1;
    line->free_at = begin + (int64_t)((double)bytes * ns_per_byte);
    return line->free_at;
}

bool tt_line_put(tt_line *line, int64_t now_ns, const void *packet, size_t bytes)
{
    const double fate = draw(line), luck = draw(line); /* always both: what one does must not move the other */
    parcel      *p;
    int64_t      sent;

    line->counts.packets++;
    line->counts.bytes += bytes;
    if (fate < line->link.loss) {
        line->counts.lost++;
        return false;
    }
    sent = bytes <= TT_RELAY_PACKET_MAX ? sent_at(line, now_ns, bytes) : -1;
    p = sent < 0 ? NULL : get_parcel(line);
    if (p == NULL) {
        line->counts.dropped++;
        return false;
    }
    p->due = sent + line->link.delay_ns + (int64_t)((2 * luck - 1) * (double)line->link.jitter_ns);
    if (p->due < sent)
        p->due = sent;
    if (!line->link.reorder && p->due < line->last_due)
        p->due = line->last_due;
    p->number = line->counts.packets;
    p->bytes = bytes;
    memcpy(p->data, packet, bytes);
    if (!push(line, p)) {
        put_back(line, p);
        line->counts.dropped++;
        return false;
    }
    line->last_due = p->due;
    return true;
}

int64_t tt_line_due(const tt_line *line)
{
    return line->n > 0 ? line->heap[0]->due : INT64_MAX;
}

size_t tt_line_take(tt_line *line, const void **packet_out)
{
    if (line->taken != NULL)
        put_back(line, line->taken);
    line->taken = NULL;
    if (line->n == 0)
        return 0;
    line->taken = pop(line);
    line->counts.delivered++;
    *packet_out = line->taken->data;
    return line->taken->bytes;
}

void tt_line_count(const tt_line *line, tt_relay_counts *add_to)
{
    add_to->packets += line->counts.packets;
    add_to->bytes += line->counts.bytes;
    add_to->lost += line->counts.lost;
    add_to->dropped += line->counts.dropped;
    add_to->delivered += line->counts.delivered;
}
