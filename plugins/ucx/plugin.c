/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plugin.c - what this object shows. */
#include "ucx_transport.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <ucs/config/global_opts.h>

const tutti_plugin_host *tucx_host;
pid_t                    tucx_pid;

tutti_status tucx_fail(ucs_status_t status, const char *what, const char *said)
{
    return tucx_host->fail(status == UCS_ERR_NO_MEMORY ? TUTTI_E_NOMEM : TUTTI_E_BACKEND,
                           "the transport 'ucx' cannot %s: %s%s%s" TUCX_NEXT, what, ucs_status_string(status),
                           said[0] != '\0' ? ": " : "", said);
}

int tucx_errno(ucs_status_t status)
{
    switch (status) {
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED: return ECONNRESET;
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_TIMED_OUT: return ETIMEDOUT;
    case UCS_ERR_UNREACHABLE: return EHOSTUNREACH;
    case UCS_ERR_NO_MEMORY: return ENOMEM;
    default: return EIO;
    }
}

/* What was built with is asked of what is there. UCX writes its log to standard output, which is the program's: unless
 * somebody asks for it by UCX_LOG_LEVEL, it is quiet, and what it says of a failure stands in our words (words.c). */
static tutti_status init(const tutti_plugin_host *host)
{
    unsigned major = 0, minor = 0, release = 0;

    tucx_host = host;
    tucx_pid = getpid();
    ucp_get_version(&major, &minor, &release);
    if (major != UCP_API_MAJOR || minor < UCP_API_MINOR)
        return host->fail(TUTTI_E_UNSUPPORTED, "it was built with UCX %d.%d, and the library here is %u.%u.%u", UCP_API_MAJOR,
                          UCP_API_MINOR, major, minor, release);
    if (getenv("UCX_LOG_LEVEL") == NULL)
        (void)ucs_global_opts_set_value("LOG_LEVEL", "fatal");
    host->log(TUTTI_LOG_DEBUG, "UCX %u.%u.%u", major, minor, release);
    return TUTTI_OK;
}

static const tutti_transport_ops ops = {
    .api = TUTTI_TRANSPORT_API,
    .size = sizeof(tutti_transport_ops),
    .name = "ucx",
    .open = tucx_open,
    .address = tucx_address,
    .connect = tucx_connect,
    .send = tucx_send,
    .progress = tucx_progress,
    .handle = tucx_handle,
    .arm = tucx_arm,
    .give_back = tucx_give_back,
    .disconnect = tucx_disconnect,
    .close = tucx_close,
};

const tutti_transport_plugin tutti_transport_entry = {
    .api = TUTTI_TRANSPORT_API,
    .size = sizeof(tutti_transport_plugin),
    .name = "ucx",
    .transport = &ops,
    .init = init,
};
