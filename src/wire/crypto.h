/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/crypto.h - OpenSSL, in a process whose threads may outlive main(). */
#ifndef TTI_WIRE_CRYPTO_H
#define TTI_WIRE_CRYPTO_H

/** Before the first call of OpenSSL in each place that may be the first of a process: what OpenSSL has stays when
 * the process ends. By default it frees it in exit(), while a thread of ours may be in the midst of a proof. Cheap when
 * repeated. A program that has used OpenSSL by itself before us has chosen, and keeps what it chose. */
void tti_crypto_begin(void);

#endif
