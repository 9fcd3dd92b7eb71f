/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/port_system.h - the socket half of the system port; the contracts stand in port.h. */
#ifndef TTI_BASE_PORT_SYSTEM_H
#define TTI_BASE_PORT_SYSTEM_H

#include "base/port.h"

tutti_status tti_socket_resolve(tti_port *port, const char *host, uint16_t tcp_port, tti_addr *out, int max,
                                int *n_out);
int tti_socket_connect_from(tti_port *port, const tti_addr *from, const char *congestion, const tti_addr *to, tti_handle *handle_out);
int tti_socket_connect(tti_port *port, const tti_addr *to, tti_handle *handle_out);
int tti_socket_connect_result(tti_port *port, tti_handle handle);
int tti_socket_listen(tti_port *port, const tti_addr *at, int backlog, tti_addr *bound_out,
                      tti_handle *handle_out);
int tti_socket_accept(tti_port *port, tti_handle listener, tti_addr *from_out);
int tti_socket_local_addr(tti_port *port, tti_handle handle, tti_addr *addr_out);
int tti_socket_route(tti_port *port, const tti_addr *to, tti_addr *local_out);
int tti_socket_interfaces(tti_port *port, tti_interface *out, int max);
int tti_socket_link_facts(tti_port *port, const tti_addr *at, tti_link_facts *facts_out);
int64_t tti_socket_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts);
int64_t tti_socket_recv(tti_port *port, tti_handle handle, void *out, size_t bytes);
int tti_socket_send_fds(tti_port *port, tti_handle handle, const void *data, size_t bytes, const int *fds,
                        int n_fds);
int64_t tti_socket_recv_fds(tti_port *port, tti_handle handle, void *out, size_t bytes, int *fds_out,
                            int n_fds_max, int *n_fds_out);
tutti_status tti_socket_set_congestion(tti_port *port, tti_handle handle, const char *name);
int tti_socket_stream_facts(tti_port *port, tti_handle handle, tti_stream_facts *facts_out);
void tti_socket_let_wait(tti_port *port, tti_handle handle);
void tti_socket_make_room(tti_port *port, tti_handle handle, int bytes);
void tti_socket_bound_room(tti_port *port, tti_handle handle, int bytes);
void tti_socket_resend_after(tti_port *port, tti_handle handle, int ms);
int tti_socket_peer_cred(tti_port *port, tti_handle handle, tti_peer_cred *cred_out);
/** The user at the other end of a TCP connection whose other end is on this host, too. 0 or -errno. */
int tti_socket_peer_user(int fd, int64_t *uid_out);

#endif
