#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# probes_test.sh READELF LIBRARY PAGE
# Goal    the library has the notes of its static probes, with the arguments that the page lists; none is missing there.
# Method  binutils reads the notes, as perf and bpftrace do.
set -eu
readelf=$1 library=$2 page=$3
notes=$("$readelf" -n "$library" 2>/dev/null)
case $notes in
*stapsdt*) ;;
*) echo "no note of a probe in $library"; exit 1 ;;
esac
found=$(printf '%s\n' "$notes" | awk '/Provider:/ { mine = $2 == "tutti" } /Name:/ && mine { print $2 }' | sort -u)
told=$(sed -n 's/^| `\([a-z_]*\)` |.*/\1/p' "$page" | sort -u)
if [ "$found" != "$told" ]; then
    echo "probes of the library:" $found
    echo "probes of the page:   " $told
    exit 1
fi
bad=$(printf '%s\n' "$notes" | awk '
    /Provider:/ { mine = $2 == "tutti" }
    /Name:/ { name = $2 }
    /Location:/ && mine && $2 == "0x0000000000000000," { print name, "has no place" }
    /Arguments:/ && mine {
        want = name ~ /^range/ ? 2 : 4
        for (i = 2; i <= NF; i++)
            if ($i !~ /^-?8@/) print name, "has argument", $i
        if (NF - 1 != want) print name, "has", NF - 1, "arguments, not", want
    }')
if [ -n "$bad" ]; then
    echo "$bad"
    exit 1
fi
echo "probes:" $found
