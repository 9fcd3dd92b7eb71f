/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pact.c - what the two ends of a carried link say to each other over their connection.
 *
 *   both    card: magic, version, size, length of the address, window, token, name of the transport; 64 bytes
 *           address
 *   then    END n      the sender has closed the link, and sent n parcels in all
 *           TAKEN n    they are here: it may end what carries them
 *
 * Why     The transport proves nothing. The connection has: both ends know the job's secret (tcp/handshake.h). So what
 *         leads to an end, and the token without which it takes no parcel, go this way; and so does the word that nothing
 *         more will come, which must not be believed of somebody else.
 * True    Numbers are little endian. Never more is read than belongs to what is being read. What the peer says of lengths and
 *         numbers is bounded before it is used.
 * Fails   A card that does not fit breaks the link; the words say how. The end of the connection is left to those who
 *         read the link: parcels may be on their way. */
#include "transport/carried/carried.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/foreign.h"
#include "wire/bytes.h"

enum { CARD_VERSION = 2, END = 1, TAKEN = 2 }; /* of the card, and of what counts for the window it names */

static const uint8_t magic[4] = { 'T', 'U', 'T', 'C' };

static void write_card(tti_carried *link, size_t address_bytes, uint8_t out[TTI_PACT_CARD])
{
    uint8_t *at = out;

    memset(out, 0, TTI_PACT_CARD);
    memcpy(at, magic, sizeof magic);
    at = tti_put_u16(at + sizeof magic, CARD_VERSION);
    at = tti_put_u16(at, TTI_PACT_CARD);
    at = tti_put_u32(at, (uint32_t)address_bytes);
    at = tti_put_u32(at, TTI_CARRIED_WINDOW);
    memcpy(at, link->token_in, TTI_CARRIED_TOKEN);
    memcpy(at + TTI_CARRIED_TOKEN, link->carrier->ops->name, strlen(link->carrier->ops->name));
}

tutti_status tti_pact_begin(tti_carried *link)
{
    tti_carrier *c = link->carrier;
    size_t       bytes = 0;
    const void  *address = c->ops->address(c->transport, &bytes);

    if (address == NULL)
        return tti_foreign_broken("transport", c->ops->name, "address", "gives no address");
    if (bytes == 0 || bytes > TUTTI_TRANSPORT_ADDRESS_MAX)
        return tti_fail(TUTTI_E_BACKEND, "the transport '%s' gives an address of %zu bytes, not 1 to %d", c->ops->name, bytes,
                        (int)TUTTI_TRANSPORT_ADDRESS_MAX);
    link->card = malloc(TTI_PACT_CARD + bytes);
    if (link->card == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the card to rank %d", link->peer);
    c->port->ops->random(c->port, link->token_in, sizeof link->token_in);
    write_card(link, bytes, link->card);
    memcpy(link->card + TTI_PACT_CARD, address, bytes);
    link->card_bytes = TTI_PACT_CARD + bytes;
    return TUTTI_OK;
}

uint8_t tti_pact_wants(const tti_carried *link)
{
    if (link->is_cut)
        return 0;
    return link->card != NULL ? TTI_READ | TTI_WRITE : TTI_READ;
}

static void cut(tti_carried *link)
{
    if (link->is_cut)
        return;
    link->is_cut = true;
    link->cut_ns = tti_port_now(link->carrier->port);
    tti_carried_tell(link);
}

static void send_card(tti_carried *link)
{
    tti_port      *port = link->carrier->port;
    const tti_part part = { link->card + link->card_gone, link->card_bytes - link->card_gone };
    const int64_t  n = port->ops->send(port, link->stream, &part, 1);

    if (n == -EAGAIN)
        return;
    if (n <= 0) {
        cut(link);
        return;
    }
    link->card_gone += (size_t)n;
    if (link->card_gone < link->card_bytes)
        return;
    free(link->card);
    link->card = NULL;
}

/* A word is smaller than what a stream that has been quiet takes as a whole. */
static void say(tti_carried *link, uint32_t what, uint64_t number)
{
    tti_port      *port = link->carrier->port;
    uint8_t        word[TTI_PACT_WORD];
    const tti_part part = { word, sizeof word };

    if (link->is_cut)
        return;
    tti_put_u64(tti_put_u32(tti_put_u32(word, what), 0), number);
    if (port->ops->send(port, link->stream, &part, 1) != (int64_t)sizeof word)
        cut(link);
}

void tti_pact_say_end(tti_carried *link)
{
    say(link, END, link->n_sent);
}

void tti_pact_say_taken(tti_carried *link)
{
    if (!link->has_end || link->has_said || link->n_arrived < link->end)
        return;
    link->has_said = true;
    say(link, TAKEN, link->n_arrived);
}

/* Both cards are there: parcels may go. */
static void open_way(tti_carried *link)
{
    tti_carrier *c = link->carrier;
    const int    err = c->ops->connect(c->transport, link->address, link->address_bytes, link, &link->way);

    free(link->address);
    link->address = NULL;
    if (err != 0 || link->way == NULL) {
        link->way = NULL;
        link->may_be_dead = false; /* the transport may have said why, but it is of no peer's death */
        tti_carried_break(link, err < 0 ? -err : EIO, err == 0 ? "the transport is broken: its 'connect' has succeeded, and gives no way"
                                                     : err > 0 ? "the transport is broken: its 'connect' gives neither 0 nor -errno"
                                                               : "the transport did not take the peer's address");
        return;
    }
    if (link->state == TTI_CARRIED_MEETS)
        link->state = TTI_CARRIED_OPEN;
    tti_carried_tell(link);
}

static void read_card(tti_carried *link)
{
    char     name[TUTTI_TRANSPORT_NAME_MAX] = "";
    uint32_t bytes = tti_get_u32(link->in + 8), window = tti_get_u32(link->in + 12);

    strncpy(name, link->carrier->ops->name, sizeof name - 1);
    if (memcmp(link->in, magic, sizeof magic) != 0 || tti_get_u16(link->in + 4) != CARD_VERSION ||
        tti_get_u16(link->in + 6) != TTI_PACT_CARD || window != TTI_CARRIED_WINDOW)
        tti_carried_break(link, EPROTO, "the peer's card is not one of this version");
    else if (memcmp(link->in + 16 + TTI_CARRIED_TOKEN, name, sizeof name) != 0)
        tti_carried_break(link, EPROTO, "the peer has another transport");
    else if (bytes == 0 || bytes > TUTTI_TRANSPORT_ADDRESS_MAX)
        tti_carried_break(link, EPROTO, "the peer's address has no length that can be");
    else if ((link->address = malloc(bytes)) == NULL)
        tti_carried_break(link, ENOMEM, "no memory for the peer's address");
    else
        memcpy(link->token_out, link->in + 16, TTI_CARRIED_TOKEN);
    link->address_bytes = bytes;
}

static void read_word(tti_carried *link)
{
    const uint32_t what = tti_get_u32(link->in);
    const uint64_t number = tti_get_u64(link->in + 8);

    if (what == END && !link->has_end && number >= link->n_arrived) {
        link->has_end = true;
        link->end = number;
        tti_pact_say_taken(link);
        tti_carried_tell(link);
    } else if (what == TAKEN && link->state == TTI_CARRIED_PARTS && number == link->n_sent) {
        link->is_taken = true;
    } else {
        tti_carried_break(link, EPROTO, "the peer says what it cannot mean");
    }
}

/* Where the next bytes belong, and what is done when they are there. */
static bool read_some(tti_carried *link)
{
    tti_port    *port = link->carrier->port;
    const bool   meets = link->way == NULL;
    const bool   of_address = link->address != NULL;
    const size_t whole = of_address ? link->address_bytes : meets ? TTI_PACT_CARD : TTI_PACT_WORD;
    size_t      *have = of_address ? &link->address_have : &link->in_have;
    uint8_t     *place = (of_address ? link->address : link->in) + *have;
    const int64_t n = port->ops->recv(port, link->stream, place, whole - *have);

    if (n == -EAGAIN)
        return false;
    if (n <= 0) {
        cut(link);
        return false;
    }
    *have += (size_t)n;
    if (*have < whole)
        return true;
    link->in_have = 0;
    if (of_address)
        open_way(link);
    else if (meets)
        read_card(link);
    else
        read_word(link);
    return true;
}

void tti_pact_turn(tti_carried *link)
{
    if (link->card != NULL && !link->is_cut)
        send_card(link);
    while (!link->is_cut && (link->err == 0 || link->may_be_dead) && read_some(link))
        continue;
    if (link->err != 0 && !link->may_be_dead) /* nothing that it says counts any more */
        cut(link);
}
