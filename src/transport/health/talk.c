/* SPDX-License-Identifier: BSD-3-Clause
 *
 * talk.c - digests over a stream, twice in a heartbeat, and at once when a life has changed.
 *
 * True    Never waits. A digest that was begun goes out as a whole before the next is made, which has all that is known
 *         then: where a stream is slow some are left out, and nothing piles up. */
#include "transport/health/talk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool tti_talk_begin(tti_talk *talk, const tti_book *book, int rank, tti_handle stream)
{
    const size_t most = tti_digest_bytes_max(book->n_ranks);

    *talk = (tti_talk){ .rank = rank, .stream = stream, .heard_ns = book->awake_ns, .urgent = true };
    talk->in = malloc(2 * most);
    talk->out = talk->in != NULL ? talk->in + most : NULL;
    return talk->in != NULL;
}

void tti_talk_release(tti_talk *talk, tti_port *port)
{
    port->ops->close(port, talk->stream);
    free(talk->in);
    *talk = (tti_talk){ .stream = TTI_NO_HANDLE };
}

bool tti_talk_is_stuck(const tti_talk *talk)
{
    return talk->sent < talk->size;
}

/* A peer that has ended resets what is sent to it. Anything else is the net's. */
static tti_talk_end end_of(int64_t err)
{
    if (err == 0)
        return TTI_TALK_CUT;
    return err == -ECONNRESET || err == -EPIPE ? TTI_TALK_RESET : TTI_TALK_FAILED;
}

static tti_talk_end send_rest(tti_talk *talk, tti_port *port)
{
    while (tti_talk_is_stuck(talk)) {
        const tti_part part = { talk->out + talk->sent, talk->size - talk->sent };
        const int64_t  n = port->ops->send(port, talk->stream, &part, 1);

        if (n == -EAGAIN)
            return TTI_TALK_GOES_ON;
        if (n <= 0)
            return end_of(n);
        talk->sent += (size_t)n;
    }
    return TTI_TALK_GOES_ON;
}

static void write_next(tti_talk *talk, const tti_book *book, tti_digest_kind kind)
{
    talk->size = tti_digest_write(book, kind, talk->out);
    talk->sent = 0;
}

tti_talk_end tti_talk_send(tti_talk *talk, tti_port *port, const tti_book *book)
{
    const tti_talk_end end = send_rest(talk, port);

    if (end != TTI_TALK_GOES_ON || tti_talk_is_stuck(talk) || (book->now_ns < talk->due_ns && !talk->urgent))
        return end;
    write_next(talk, book, TTI_DIGEST_BEAT);
    talk->urgent = false;
    talk->due_ns = book->now_ns + book->heartbeat_ns / 2;
    return send_rest(talk, port);
}

bool tti_talk_say_last(tti_talk *talk, tti_port *port, const tti_book *book, tti_digest_kind kind)
{
    if (send_rest(talk, port) != TTI_TALK_GOES_ON || tti_talk_is_stuck(talk))
        return false;
    write_next(talk, book, kind);
    return send_rest(talk, port) == TTI_TALK_GOES_ON && !tti_talk_is_stuck(talk);
}

/* Take whole digests out of what has come. */
static tti_talk_end take_digests(tti_talk *talk, tti_book *book)
{
    tti_digest_kind kind = TTI_DIGEST_BEAT;
    int64_t         size;

    while ((size = tti_digest_size(book, talk->in, talk->have)) > 0 && talk->have >= (size_t)size) {
        if (!tti_digest_read(book, talk->in, (size_t)size, &kind))
            return TTI_TALK_FAILED;
        talk->heard_ns = book->awake_ns;
        talk->have -= (size_t)size;
        memmove(talk->in, talk->in + size, talk->have);
        if (kind != TTI_DIGEST_BEAT)
            return kind == TTI_DIGEST_GOODBYE ? TTI_TALK_GOODBYE : TTI_TALK_HUNG_UP;
    }
    return size < 0 ? TTI_TALK_FAILED : TTI_TALK_GOES_ON;
}

tti_talk_end tti_talk_receive(tti_talk *talk, tti_port *port, tti_book *book)
{
    const size_t room = tti_digest_bytes_max(book->n_ranks);
    tti_talk_end end;
    int64_t      n;

    for (;;) {
        n = port->ops->recv(port, talk->stream, talk->in + talk->have, room - talk->have);
        if (n == -EAGAIN)
            return TTI_TALK_GOES_ON;
        if (n <= 0)
            return end_of(n);
        talk->have += (size_t)n;
        end = take_digests(talk, book);
        if (end != TTI_TALK_GOES_ON)
            return end;
    }
}
