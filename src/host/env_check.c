/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env_check.c - whether the environment says things that can be meant, told before anybody joins.
 *
 * How     A table of variables and of the code that reads them: each check is a call of that code, so that its verdict and
 *         its words are those that a rank would fail with. A rank stops at the first mistake; here each variable is read
 *         apart, so that the second one is told as well, and under its own name. Variables that take any text have no row.
 * True    Nothing is kept: what a check opens it closes. But a plug-in that is named stays loaded. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <tutti/host.h>
#include <tutti/private.h>
#include "backend/registry.h"
#include "base/env.h"
#include "base/log.h"
#include "base/port.h"
#include "coll/choice.h"
#include "coll/tune.h"
#include "host/host.h"
#include "kernel/level.h"
#include "rendezvous/url.h"
#include "wire/addr.h"
#include "wire/interfaces.h"
#include "wire/ports.h"
#include "wire/secret.h"

enum { ADDRS_MAX = 16 };

typedef tutti_status (*check_fn)(const char *name);

typedef struct row {
    const char *name;
    check_fn    check; /* NULL: a whole number within the bounds */
    int64_t     least, most;
} row;

/* ---- by those who read them -------------------------------------------------------------------- */

static tutti_status check_flag(const char *name)
{
    bool on;

    return tti_env_flag(name, &on);
}

static tutti_status check_timeout(const char *name)
{
    int64_t ms;

    (void)name;
    return tti_env_timeout(&ms);
}

/* Whether the last error, of a reader of several variables, is of this one. */
static bool is_of(const char *name)
{
    const size_t n = strlen(name);
    const char  *at = strstr(tutti_last_error(), name);

    while (at != NULL && at[n] == '_') /* TUTTI_TLS is the beginning of others */
        at = strstr(at + n, name);
    return at != NULL;
}

static tutti_status check_debug(const char *name)
{
    tutti_debug_level level;
    tutti_status      st = tti_debug_level_read(&level);

    return st == TUTTI_OK || is_of(name) ? st : TUTTI_OK;
}

static tutti_status check_signal(const char *name)
{
    int number;

    return tti_env_signal(name, &number);
}

static tutti_status check_seal(const char *name)
{
    tti_seal     seal;
    tutti_status st = tti_seal_wanted(&seal);

    return st == TUTTI_OK || is_of(name) ? st : TUTTI_OK;
}

static tutti_status check_auth(const char *name)
{
    bool wanted;

    (void)name;
    return tti_auth_wanted(&wanted);
}

static tutti_status check_secret(const char *name)
{
    tti_secret   secret = { .present = false };
    tutti_status st = tti_secret_read(tti_env(name), &secret);

    tti_secret_release(&secret);
    return st;
}

static tutti_status check_ports(const char *name)
{
    tti_ports ports;

    (void)name;
    return tti_ports_wanted(&ports);
}

static tutti_status check_listen(const char *name)
{
    bool any;

    (void)name;
    return tti_listens_any(&any);
}

static tutti_status check_native(const char *name)
{
    const tutti_backend_ops *ops = NULL;
    tutti_status             st = tti_backend_find(NULL, &ops);

    if (st == TUTTI_OK)
        st = tti_backend_check_env(ops, NULL);
    return st == TUTTI_OK || is_of(name) ? st : TUTTI_OK;
}

static tutti_status check_backend(const char *name)
{
    return tti_backend_check_text(tti_env(name));
}

static tutti_status check_places(const char *name)
{
    (void)name;
    return tti_backend_check_places();
}

static tutti_status check_interface(const char *name)
{
    tti_port    *port = tti_port_system();
    tti_addr     addr, bound;
    tti_handle   probe = TTI_NO_HANDLE;
    bool         set = false;
    tutti_status st = tti_interface_wanted(port, NULL, &set, &addr);
    int          err;

    (void)name;
    if (st != TUTTI_OK || !set)
        return st;
    err = port->ops->listen(port, &addr, 1, &bound, &probe); /* an address is taken as it is: only this tells */
    if (err == 0)
        port->ops->close(port, probe);
    return err == -EADDRNOTAVAIL ? tti_interface_absent(port, &addr) : TUTTI_OK;
}

static tutti_status check_host(const char *name)
{
    tti_port *port = tti_port_system();
    tti_addr  addrs[ADDRS_MAX];
    char      host[TTI_HOST_MAX];
    int       n = 0;

    return port->ops->resolve(port, tti_host_bare(tti_env(name), host), 0, addrs, ADDRS_MAX, &n);
}

static tutti_status check_congestion(const char *name)
{
    tti_port    *port = tti_port_system();
    tti_addr     at = { .family = TTI_ADDR_IP4, .ip = { 127, 0, 0, 1 } }, bound;
    tti_handle   probe = TTI_NO_HANDLE;
    tutti_status st;
    int          err = port->ops->listen(port, &at, 1, &bound, &probe);

    if (err != 0)
        return tti_fail_errno_as(TUTTI_E_NETWORK, -err, "cannot listen on loopback to try %s", name);
    st = port->ops->set_congestion(port, probe, tti_env(name));
    port->ops->close(port, probe);
    return st;
}

static tutti_status check_wishes(const char *name)
{
    tti_wishes wishes;

    return tti_wishes_parse(tti_env(name), &wishes);
}

static tutti_status check_table(const char *name)
{
    tti_tune     tune;
    tutti_status st = tti_tune_read(tti_env(name), &tune);

    if (st == TUTTI_OK)
        tti_tune_release(&tune);
    return st;
}

/* "portable" is what every machine of its kind has; the kernels log what they cannot do, and take another. */
static tutti_status check_isa(const char *name)
{
    const char *word = tti_env(name);
    int         level = 0;

    if (strcmp(word, "auto") == 0 || strcmp(word, "portable") == 0)
        return TUTTI_OK;
    while (level < TTI_LEVEL_COUNT && strcmp(tti_level_name((tti_level)level), word) != 0)
        level++;
    if (level < TTI_LEVEL_COUNT && tti_level_works((tti_level)level))
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG, "%s is '%.40s', which %s: it changes nothing\n  next: unset it", name, word,
                    level < TTI_LEVEL_COUNT ? "this machine cannot do"
                                            : "is none of auto, portable, sse2, avx2, avx512, neon");
}

/* ---- the table --------------------------------------------------------------------------------- */

static const row rows[] = {
    { "RANK", NULL, 0, TTI_WORLD_MAX - 1 },
    { "WORLD_SIZE", NULL, 1, TTI_WORLD_MAX },
    { "LOCAL_RANK", NULL, 0, INT32_MAX },
    { "LOCAL_WORLD_SIZE", NULL, 1, TTI_WORLD_MAX },
    { "MASTER_ADDR", check_host, 0, 0 },
    { "MASTER_PORT", NULL, 0, UINT16_MAX },
    { "TORCHELASTIC_RESTART_COUNT", NULL, 0, INT32_MAX },
    { "OMPI_COMM_WORLD_RANK", NULL, 0, TTI_WORLD_MAX - 1 },
    { "OMPI_COMM_WORLD_SIZE", NULL, 1, TTI_WORLD_MAX },
    { "SLURM_PROCID", NULL, 0, TTI_WORLD_MAX - 1 },
    { "SLURM_NTASKS", NULL, 1, TTI_WORLD_MAX },
    { "PMI_RANK", NULL, 0, TTI_WORLD_MAX - 1 },
    { "PMI_SIZE", NULL, 1, TTI_WORLD_MAX },
    { "TUTTI_AGENT_STORE", check_flag, 0, 0 },
    { "TUTTI_SECRET_FILE", check_secret, 0, 0 },
    { "TUTTI_AUTH", check_auth, 0, 0 },
    { "TUTTI_TLS", check_seal, 0, 0 },
    { "TUTTI_TLS_CERT", check_seal, 0, 0 },
    { "TUTTI_TLS_KEY", check_seal, 0, 0 },
    { "TUTTI_TLS_CA", check_seal, 0, 0 },
    { "TUTTI_LOG", tti_log_check, 0, 0 },
    { "TORCH_CPP_LOG_LEVEL", tti_log_check, 0, 0 },
    { "TUTTI_DEBUG", check_debug, 0, 0 },
    { "TORCH_DISTRIBUTED_DEBUG", check_debug, 0, 0 },
    { "TUTTI_TIMEOUT_MS", check_timeout, 0, 0 },
    { "TUTTI_HEARTBEAT_MS", NULL, 10, 3600000 },
    { "TUTTI_SILENT_MS", NULL, 1, INT64_MAX / 1000000 },
    { "TUTTI_OBJECT_MAX", NULL, 1, INT64_C(1) << 40 },
    { "TUTTI_OBJECTS_MAX", NULL, 1, INT64_C(1) << 40 },
    { "TUTTI_HELD_MAX", NULL, 1, INT64_MAX },
    { "TUTTI_PINNED_MAX", NULL, 0, INT64_MAX },
    { "TUTTI_BACKEND", check_backend, 0, 0 },
    { "TUTTI_PLUGIN_PATH", check_places, 0, 0 },
    { "TUTTI_TRANSPORT", check_native, 0, 0 },
    { "TUTTI_SOCKET_IFNAME", check_interface, 0, 0 },
    { "GLOO_SOCKET_IFNAME", check_interface, 0, 0 },
    { "TUTTI_PORT_RANGE", check_ports, 0, 0 },
    { "TUTTI_LISTEN", check_listen, 0, 0 },
    { "TUTTI_ADVERTISE", check_host, 0, 0 },
    { "TUTTI_TCP_CONGESTION", check_congestion, 0, 0 },
    { "TUTTI_TCP_STRIPES", NULL, 1, 8 },
    { "TUTTI_ALGO", check_wishes, 0, 0 },
    { "TUTTI_TUNE", check_table, 0, 0 },
    { "TUTTI_LINK_MBIT", NULL, 0, TTI_LINK_MBIT_MAX },
    { "TUTTI_REPRODUCIBLE", check_flag, 0, 0 },
    { "TUTTI_ISA", check_isa, 0, 0 },
    { "TUTTI_RECORDER", check_flag, 0, 0 },
    { "TUTTI_TRACE_SIGNAL", check_signal, 0, 0 },
    { "TUTTI_TRACE_BUFFER_SIZE", NULL, 0, 1 << 20 },
    { "TORCH_FR_BUFFER_SIZE", NULL, 0, 1 << 20 },
    { "TORCH_NCCL_TRACE_BUFFER_SIZE", NULL, 0, 1 << 20 },
};

static bool is_read(const char *name)
{
    size_t               n, i;
    const tti_env_entry *table = tti_env_table(&n);

    for (i = 0; i < n; i++)
        if (strcmp(table[i].name, name) == 0)
            return true;
    return false;
}

tutti_status tutti_env_check(const char *name)
{
    int64_t number;
    size_t  i;

    if (name == NULL)
        return tti_host_check_who();
    if (!is_read(name))
        return tti_fail(TUTTI_E_ARG, "environment variable '%.100s' is none that tutti reads", name);
    if (tti_env(name) == NULL)
        return TUTTI_OK;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].check != NULL ? rows[i].check(name)
                                         : tti_env_int(name, rows[i].least, rows[i].most, &number);
    return TUTTI_OK;
}

bool tutti_env_variable_at(size_t i, tutti_env_variable *variable_out)
{
    size_t               n;
    const tti_env_entry *table = tti_env_table(&n);

    if (i >= n)
        return false;
    *variable_out = (tutti_env_variable){ .name = table[i].name, .unset = table[i].value, .what = table[i].what };
    return true;
}

const char *tutti_env_nearest(const char *name)
{
    const char *near = NULL;

    return name != NULL && tti_env_is_unknown(name, &near) ? near : NULL;
}
