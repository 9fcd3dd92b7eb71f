/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/tls_stream.h - TLS on a handle: its users send, receive and poll as before. */
#ifndef TTI_WIRE_TLS_STREAM_H
#define TTI_WIRE_TLS_STREAM_H

#include "wire/tls.h"

/** Its hello is done, and seals: from here on the handle's bytes go through TLS, until it is closed.
 * @errors as tti_tls_create(); TUTTI_E_UNSUPPORTED where the port has no filters */
tutti_status tti_tls_attach(tti_port *port, tti_handle handle, const tti_hello *hello);
/** Go on with the handshake of such a handle, once after that and whenever poll says that it is ready, whatever it was
 * polled for. It may be sent to and received from when it is done.
 * @errors as tti_tls_shake() */
tutti_status tti_tls_shake_on(tti_handle handle, bool *done_out);
/** Both, waiting.
 * @errors as above, TUTTI_E_TIMEOUT */
tutti_status tti_tls_run(tti_port *port, tti_handle handle, const tti_hello *hello, int64_t deadline_ns);

#endif
