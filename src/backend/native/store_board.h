/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/native/store_board.h - a store, as the board on which members find each other. */
#ifndef TTI_BACKEND_NATIVE_STORE_BOARD_H
#define TTI_BACKEND_NATIVE_STORE_BOARD_H

#include <tutti/store.h>
#include "transport/mesh.h"

/** The store is borrowed. */
tti_board tti_store_board(tutti_store *store);

#endif
