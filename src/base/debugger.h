/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/debugger.h - letting a person look at this process. */
#ifndef TTI_BASE_DEBUGGER_H
#define TTI_BASE_DEBUGGER_H

#include "base/port.h"

/** Start the debugger that TUTTI_DEBUGGER names, with "-p" and this process's number, on the terminal if
 * there is one; return once it is attached, or has ended well. Where it cannot be started: say so, and wait
 * until a debugger attaches, or SIGCONT comes.
 * @errors TUTTI_E_TIMEOUT  neither until the deadline
 *         TUTTI_E_NOMEM, TUTTI_E_IO  there is no pipe, no process */
tutti_status tti_debugger_attend(tti_port *port, int64_t deadline_ns);

#endif
