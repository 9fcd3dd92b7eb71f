/* SPDX-License-Identifier: BSD-3-Clause
 *
 * look.c - facts that the library itself goes by. */
#include <string.h>
#include <tutti/host.h>
#include <tutti/private.h>
#include "base/port.h"
#include "base/thread.h"
#include "host/host.h"
#include "kernel/level.h"
#include "rendezvous/listen.h"
#include "rendezvous/who.h"
#include "wire/addr.h"
#include "wire/link_rate.h"

_Static_assert((int)TTI_LINK_TEXT_MAX == (int)sizeof(((tutti_link *)0)->words), "what links carry fits");
_Static_assert((int)TUTTI_ADDRESS_MAX == (int)TTI_HOST_MAX, "an address fits");

tutti_status tutti_listen_address(const char *master, char address_out[TUTTI_ADDRESS_MAX])
{
    char host[TTI_HOST_MAX];

    return tti_listen_host(tti_port_system(), master != NULL ? tti_host_bare(master, host) : NULL, NULL, address_out);
}

tutti_status tutti_link_look(const char *address, tutti_link *link_out)
{
    tti_port     *port = tti_port_system();
    tti_rails     rails = { .n = 0 };
    tti_link_rate rate;
    tti_addr      at;
    tutti_status  st;

    if (address == NULL || link_out == NULL || link_out->size < sizeof *link_out)
        return tti_fail(TUTTI_E_ARG, "tutti_link_look: address or link_out is NULL, or link_out was not initialised with TUTTI_LINK");
    st = tti_addr_parse(address, 0, &at);
    if (st == TUTTI_OK)
        st = tti_rails_wanted(port, at.family, &rails);
    if (st != TUTTI_OK)
        return st;
    tti_link_rate_of(port, &at, &rails, &rate);
    link_out->mbit = (int)rate.mbit;
    memcpy(link_out->words, rate.text, sizeof rate.text);
    return TUTTI_OK;
}

tutti_status tti_host_check_who(void)
{
    const tti_rendezvous_config config = { .port = tti_port_system(), .rank = -1 };
    tti_who                     who;

    return tti_who_find(&config, &who);
}

static int cores_allowed(void)
{
    uint64_t words[TTI_CPU_WORDS];
    int      n = 0, i;

    tti_usable_cpus(words);
    for (i = 0; i < TTI_CPU_WORDS; i++)
        n += __builtin_popcountll(words[i]);
    return n;
}

tutti_status tutti_host_look(tutti_host *host_out)
{
    if (host_out == NULL || host_out->size < sizeof *host_out)
        return tti_fail(TUTTI_E_ARG, "tutti_host_look: host_out is NULL, or was not initialised with TUTTI_HOST");
    host_out->cores_allowed = cores_allowed();
    host_out->cores_running = tti_running_cores();
    host_out->isa = tti_level_name(tti_level_now());
    return TUTTI_OK;
}
