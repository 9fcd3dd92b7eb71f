#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table of injected faults, as the rows of injections.tsv tell it.

    report.py [injections.tsv] [--commit WORD[,WORD...]] [--since WORD]

Per fault, phase and transport: how many, how many hung or went wrong otherwise, how long until the last survivor knew
(median, 99th of 100, most), and how long until the survivors had a right sum again. Commits come in the order in which they
stand in the file: with --since everything from one of them on, so that what was mended is told from what is open."""
import argparse
import collections
import csv
import os
import sys

FAULTS = ['SIGKILL', 'SIGSTOP', '_exit', 'segfault', 'abort', 'RST', 'black-hole', 'half-close']
SILENT = {'SIGSTOP', 'black-hole'}
FINE = {'ok', 'kept', 'left-out'}
# At these a rank was named if its number was in the words. Since then words are to accuse it, and nobody else.
BY_NUMBER = {'2f3c202', '4ebe9f2', '83277c8', '24795a7', 'e13cf32', '2fd0a37', '08079b9', 'bed76b5', '2c14e0d', '9a0bf0f', '5307bff',
           '0440514', 'c2e3f51'}


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else None


def figures(values):
    if not values:
        return '-'
    return '%d / %d / %d' % (quantile(values, 0.5), quantile(values, 0.99), max(values))


def line(what, rows):
    results = collections.Counter(row['result'] for row in rows)
    found = [int(row['found_ms']) for row in rows if int(row['found_ms']) >= 0]
    on = [int(row['on_ms']) for row in rows if int(row['on_ms']) >= 0]
    bad = ', '.join('%d %s' % (n, result) for result, n in sorted(results.items()) if result not in FINE)
    return '| %s | %d | %s | %s | %s |' % (what, len(rows), figures(found), figures(on), bad or '-')


def table(title, key, rows):
    parts = collections.defaultdict(list)
    for row in rows:
        parts[key(row)].append(row)
    yield '| %s | faults | found ms: p50 / p99 / most | on again ms: the same | not ok |' % title
    yield '|---|---|---|---|---|'
    for part in sorted(parts, key=lambda p: FAULTS.index(p)) if set(parts) <= set(FAULTS) else parts:
        yield line(part, parts[part])
    yield ''


def cut_off(rows):
    """What became of ranks whose connections were taken while all shrank."""
    cut = [row for row in rows if row['phase'] == 'shrink' and row['fault'] in ('RST', 'half-close') and row['commit'] not in BY_NUMBER]
    results = collections.Counter(row['result'] for row in cut)
    yield ('%d ranks lost their connections while all shrank: %d went on with the others, %d did not and the others did, of %d the new '
           'world failed and accused the right rank, %d were wrong'
           % (len(cut), results['kept'], results['left-out'], results['ok'], sum(result not in FINE for result in results.elements())))


def report(rows):
    dead = [row for row in rows if row['fault'] not in SILENT]
    strict = [row for row in rows if row['commit'] not in BY_NUMBER]
    yield '%d faults, %d hangs, %d named the right rank' % (
        len(rows), sum(row['hang'] == '1' for row in rows), sum(row['named'] == 'yes' for row in rows))
    yield ''
    if strict:
        yield 'By the strict rule (faults/words.c): %d faults, %d hangs, %d accused the right rank and no other' % (
            len(strict), sum(row['hang'] == '1' for row in strict), sum(row['named'] == 'yes' for row in strict))
        yield ''
        yield from cut_off(rows)
        yield ''
    yield '| all | faults | found ms: p50 / p99 / most | on again ms: the same | not ok |'
    yield '|---|---|---|---|---|'
    yield line('dead', dead)
    yield line('silent', [row for row in rows if row['fault'] in SILENT])
    yield ''
    yield from table('commit', lambda row: row['commit'], rows)
    yield from table('fault', lambda row: row['fault'], rows)
    yield from table('phase', lambda row: row['phase'], rows)
    yield from table('transport', lambda row: row['transport'], rows)
    yield from table('call', lambda row: row['call'], rows)
    yield from table('ranks', lambda row: row['ranks'], sorted(rows, key=lambda row: int(row['ranks'])))
    counts = collections.Counter((row['fault'], row['phase'], row['transport']) for row in rows)
    where = sorted({key[1:] for key in counts})
    yield '| faults | %s |' % ' | '.join('%s, %s' % w for w in where)
    yield '|---' * (len(where) + 1) + '|'
    for fault in FAULTS:
        yield '| %s | %s |' % (fault, ' | '.join(str(counts[(fault,) + w] or '-') for w in where))


def chosen(rows, args):
    if args.since:
        commits = list(dict.fromkeys(row['commit'] for row in rows))
        if args.since not in commits:
            sys.exit('there is no row of %s' % args.since)
        wanted = commits[commits.index(args.since):]
    elif args.commit:
        wanted = args.commit.split(',')
    else:
        return rows
    return [row for row in rows if row['commit'] in wanted]


def main():
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'injections.tsv')
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rows', nargs='?', default=default)
    parser.add_argument('--commit', help='only rows of these, with commas between them')
    parser.add_argument('--since', help='only rows of this one and those behind it')
    args = parser.parse_args()
    with open(args.rows, newline='') as f:
        rows = chosen(list(csv.DictReader(f, delimiter='\t')), args)
    if not rows:
        sys.exit('there are no such rows in %s' % args.rows)
    print('\n'.join(report(rows)))


if __name__ == '__main__':
    main()
