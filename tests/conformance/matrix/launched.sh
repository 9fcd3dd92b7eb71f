#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# launched.sh - the conformance matrix in ranks of `tutti run`, which share a board in a file that is gone afterwards.
# usage: launched.sh TUTTI RANKS CONFORMANCE_MATRIX [ITS OPTION]...
tutti=$1 ranks=$2 matrix=$3
shift 3
directory=$(mktemp -d) || exit 1
"$tutti" run --standalone --nproc-per-node="$ranks" "$matrix" --launched "$directory/board" "$@"
code=$?
rm -rf "$directory"
exit $code
