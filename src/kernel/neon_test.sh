#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# neon_test.sh SOURCE DIGEST - the kernels for aarch64 give the bits of this machine's kernels.
#
# Method  kernel_digest and what it needs are built by a cross compiler and run by qemu; what it prints is
#         compared with what the native program DIGEST prints, once for each set of instructions here.
#         qemu on x86 keeps the order of x86: this looks at arithmetic, not at memory.
# Skips   with 77 and a reason, where the cross compiler or qemu is missing.
set -u
source=$1
digest=$2
cc=aarch64-linux-gnu-gcc
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64)

command -v $cc >/dev/null || { echo "SKIP: no $cc (make neon-test)"; exit 77; }
test -n "$qemu" || { echo "SKIP: no qemu-aarch64-static (make neon-test)"; exit 77; }

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$source/src" || exit 1
$cc -std=c11 -D_GNU_SOURCE -O3 -ffp-contract=off -Wall -Wextra -Werror -I. -I../include -static -pthread \
    kernel/kernel_digest.c kernel/neon.c kernel/level.c kernel/reduce.c kernel/quantize.c kernel/copy.c \
    base/cache.c base/dtype.c base/env.c base/status.c base/log.c base/log_sink.c base/debug_level.c base/thread.c base/fork.c base/last.c \
    base/port.c base/port_system.c base/half.c base/port_socket.c base/port_filter.c base/port_peer.c base/port_tcp.c base/quota.c \
    -o "$work/digest" || exit 1
"$qemu" "$work/digest" >"$work/neon" || exit 1
test -s "$work/neon" || { echo "nothing printed"; exit 1; }
for isa in portable avx2 auto; do
    TUTTI_ISA=$isa "$digest" >"$work/native" || exit 1
    diff "$work/neon" "$work/native" || { echo "neon differs from $isa"; exit 1; }
done
echo "$(wc -l <"$work/neon") kernels agree"
