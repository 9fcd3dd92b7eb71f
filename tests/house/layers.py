#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""layers: do the arrows between rooms point where src/README.md says?

Why     Layers hold only as long as something notices the first arrow that points up.
How     The table of src/README.md is the one source. Two kinds of arrows are compared with it:
          includes   every quoted #include of a file that goes into a library, a tool or an example
          symbols    every symbol that an object of one room needs and an object of another defines,
                     which also catches a declaration copied by hand
Fails   with one line for each arrow: file:line or object, what it uses, and why that may not be.

usage: layers.py --root DIR --build DIR | layers.py --self-test --cc COMPILER
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

PUBLIC, PLUGIN = "public headers", "plug-in headers"
Room = collections.namedtuple("Room", "name level may")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
OUTER = ("tools", "examples", "bench", "plugins")
NM_MOST = 200  # objects that one nm looks at: starting one for each takes longer than looking


def read_table(text):
    """The rooms of the map, by name; ValueError where the map contradicts itself."""
    rooms = {}
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) != 4 or not cells[1].isdigit():
            continue
        may = [] if cells[2] == "nothing" else [m.strip() for m in cells[2].split(",")]
        rooms[cells[0]] = Room(cells[0], int(cells[1]), may)
    if not rooms:
        raise ValueError("the map has no table of rooms")
    for room in rooms.values():
        for other in room.may:
            if other in (PUBLIC, PLUGIN):
                continue
            if other not in rooms:
                raise ValueError(f"the map lets {room.name} include {other}, which has no row")
            inner = other.startswith(room.name + "/")
            if rooms[other].level >= room.level and not inner:
                raise ValueError(f"the map lets {room.name} (level {room.level}) include {other} "
                                 f"(level {rooms[other].level}): arrows point down")
    return rooms


def room_of(rooms, path):
    """The room a file belongs to: path is relative to src/ or begins with train/, tools/, ..."""
    parts = path.split("/")[:-1]
    for n in range(len(parts), 0, -1):
        if "/".join(parts[:n]) in rooms:
            return "/".join(parts[:n])
    return None


def short(path):
    """How the map calls a path of the tree: src/ is left out."""
    return path[len("src/"):] if path.startswith("src/") else path


def may_use(rooms, user, used):
    if user == used or used in rooms[user].may:
        return True
    return used == "base" and not user.startswith("train/") and user not in OUTER


def check_system_include(user, name):
    if name == "tutti/private.h" and user in OUTER:
        return "tutti/private.h is for libtutti and libtutti_train"
    if user == "plugins" and name.startswith("tutti/") and not name.startswith("tutti/plugin/"):
        return "plug-ins see tutti/plugin/ only"
    return None


def check_quoted_include(root, rooms, user, path, name):
    if ".." in name.split("/"):
        return "includes are written from the root of the rooms, not with .."
    if (root / path).parent.joinpath(name).is_file():
        return None if "/" not in name else "files of the own room are named from the root of the rooms"
    if user in OUTER and room_of(rooms, name) not in [user] + rooms[user].may:
        return f"{user} may include {' and '.join(rooms[user].may)} only"
    tree = "train/" if path.startswith("train/") else ""
    used = room_of(rooms, tree + name)
    if used is None:
        return "no such room in this tree"
    if not may_use(rooms, user, used):
        return f"{user} may not include {used}"
    return None


def sources(root):
    for tree in ("src", "train") + OUTER:
        for path in sorted((root / tree).rglob("*")) if (root / tree).is_dir() else []:
            if path.suffix in (".c", ".h", ".cc", ".cpp") and not path.stem.endswith("_test"):
                yield path.relative_to(root).as_posix()


def check_includes(root, rooms):
    """(complaints, number of includes seen)"""
    bad, seen = [], 0
    for path in sources(root):
        user = room_of(rooms, short(path))
        if user is None:
            bad.append(f"{path}: its room has no row in src/README.md")
            continue
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            seen += 1
            kind, name = match.groups()
            why = (check_system_include(user, name) if kind == "<" else
                   check_quoted_include(root, rooms, user, path, name))
            if why:
                bad.append(f'{path}:{number}: includes "{name}": {why}')
    return bad, seen


def nm(objs):
    """(defined, undefined) global symbols of each object."""
    found = {str(obj): (set(), set()) for obj in objs}
    paths = list(found)
    for i in range(0, len(paths), NM_MOST):
        out = subprocess.run(["nm", "-g", "-P", "-A", *paths[i:i + NM_MOST]], check=True, capture_output=True, text=True).stdout
        for line in out.splitlines():
            path, symbol = line.split(": ", 1)
            name, kind = symbol.split()[:2]
            found[path][kind in "Uvw"].add(name)
    return found


def objects(build):
    """(path below the root of the sources, object) of everything that is linked into something."""
    for obj in sorted(obj for obj in build.rglob("*.o") if ".dir/" in obj.as_posix()):
        parts = obj.relative_to(build).as_posix().split("/")
        at = parts.index("CMakeFiles")
        source = "/".join(parts[:at] + parts[at + 2:])[:-len(".o")]
        if source.startswith(("src/", "train/") + tuple(t + "/" for t in OUTER)):
            if not pathlib.PurePath(source).stem.endswith("_test"):
                yield source, obj


def private_symbols(map_text):
    match = re.search(r"TUTTI_PRIVATE_1\s*{([^}]*)}", map_text)
    return set(re.findall(r"\b(tti_\w+)\s*;", match.group(1))) if match else set()


def check_symbol(rooms, user, used, symbol, private):
    """Why a room may not use a symbol that another one defines, or None."""
    outside = user.startswith("train/") or user in OUTER
    if outside and not used.startswith("train/"):
        if symbol.startswith("tutti_") or (symbol in private and user.startswith("train/")):
            return None
        return f"{user} may use public symbols of libtutti only"
    if user in OUTER:
        return None if symbol.startswith("tutti_") else f"{user} may use public symbols only"
    if PUBLIC in rooms[user].may and symbol.startswith("tutti_") and rooms[used].level < rooms[user].level:
        return None
    return None if may_use(rooms, user, used) else f"{user} may not use {used}"


def check_symbols(build, rooms, private):
    """(complaints, number of objects seen)"""
    table, home = [], collections.defaultdict(set)
    linked = [(source, room_of(rooms, short(source)), obj) for source, obj in objects(build)]
    symbols = nm([obj for _, room, obj in linked if room is not None])
    for source, room, obj in linked:
        if room is None:
            continue
        defined, undefined = symbols[str(obj)]
        table.append((source, room, undefined))
        if room not in OUTER:
            for symbol in defined:
                home[symbol].add(room)
    bad = []
    for source, user, undefined in table:
        for symbol in sorted(undefined):
            whys = [check_symbol(rooms, user, used, symbol, private) for used in sorted(home.get(symbol, ()))]
            if whys and all(whys):
                bad.append(f"{source}: needs {symbol}: {whys[0]}")
    return bad, len(table)


def check(root, build):
    rooms = read_table((root / "src/README.md").read_text())
    bad, n_includes = check_includes(root, rooms)
    more, n_objects = check_symbols(build, rooms, private_symbols((root / "src/libtutti.map").read_text()))
    if n_includes == 0 or n_objects == 0:
        more.append(f"nothing was checked: {n_includes} includes, {n_objects} objects; build first")
    return bad + more, f"{len(rooms)} rooms, {n_includes} includes, {n_objects} objects"


# ---- self test: a tree with one of every mistake, and nothing else to complain about --------------

TABLE = """
| room | level | may include | what it is |
|---|---|---|---|
| base | 0 | nothing | x |
| low | 1 | nothing | x |
| high | 2 | low | x |
| apart | 3 | public headers | x |
| train/tensor | 7 | nothing | x |
| bench | 11 | public headers | x |
| tools | 12 | public headers, bench | x |
"""
TREE = {
    "src/README.md": TABLE,
    "src/libtutti.map": "TUTTI_PRIVATE_1 { global: tti_shared; };",
    "src/base/base.h": "",
    "src/base/base.c": '#include "base/base.h"\nint tti_shared(void); int tti_shared(void) { return 1; }\n'
                       "int tti_inner(void); int tti_inner(void) { return 2; }\n",
    "src/low/low.h": "",
    "src/low/low.c": '#include <stdio.h>\n#include "base/base.h"\n#include "high/high.h"\n'
                     "int tti_low(void); int tti_high(void); int tti_low(void) { return tti_high(); }\n",
    "src/low/low_test.c": '#include "high/high.h"\n',
    "src/high/high.h": "",
    "src/high/high.c": '#include "low/low.h"\n#include "../low/low.h"\n'
                       "int tti_low(void); int tti_high(void); int tti_high(void) { return tti_low(); }\n"
                       "int tutti_high(void); int tutti_high(void) { return 3; }\n",
    "src/apart/apart.c": "int tutti_high(void); int tti_high(void); int tti_apart(void);\n"
                         "int tti_apart(void) { return tutti_high() + tti_high(); }\n",
    "src/lost/lost.c": "",
    "train/tensor/tensor.c": '#include "base/base.h"\nint tti_shared(void); int tti_inner(void);\n'
                             "int tutti_t(void); int tutti_t(void) { return tti_shared() + tti_inner(); }\n",
    "bench/loop.h": "",
    "bench/loop.c": '#include "loop.h"\n#include "tools/run.h"\n',
    "bench/inner/lap.c": '#include "bench/loop.h"\n',
    "tools/run.h": "",
    "tools/run.c": '#include <tutti/private.h>\n#include "low/low.h"\n#include "bench/loop.h"\n'
                   "int tti_low(void); int main(void) { return tti_low(); }\n",
}
EXPECTED = [
    'src/low/low.c:3: includes "high/high.h": low may not include high',
    'src/high/high.c:2: includes "../low/low.h": includes are written from the root of the rooms, not with ..',
    "src/lost/lost.c: its room has no row in src/README.md",
    'train/tensor/tensor.c:1: includes "base/base.h": no such room in this tree',
    'tools/run.c:1: includes "tutti/private.h": tutti/private.h is for libtutti and libtutti_train',
    'tools/run.c:2: includes "low/low.h": tools may include public headers and bench only',
    'bench/loop.c:2: includes "tools/run.h": bench may include public headers only',
    "src/low/low.c: needs tti_high: low may not use high",
    "src/apart/apart.c: needs tti_high: apart may not use high",
    "train/tensor/tensor.c: needs tti_inner: train/tensor may use public symbols of libtutti only",
    "tools/run.c: needs tti_low: tools may use public symbols of libtutti only",
]


def self_test(cc):
    with tempfile.TemporaryDirectory() as scratch:
        root, build = pathlib.Path(scratch) / "root", pathlib.Path(scratch) / "build"
        for name, text in TREE.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
            if not name.endswith(".c"):
                continue
            folder, file = name.rsplit("/", 1)
            obj = build / folder / "CMakeFiles/room.dir" / (file + ".o")
            obj.parent.mkdir(parents=True, exist_ok=True)
            code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
            subprocess.run([cc, "-x", "c", "-c", "-", "-o", obj], input=code, text=True, check=True)
        bad, _ = check(root, build)
    if sorted(bad) != sorted(EXPECTED):
        return [f"self test: not found: {x}" for x in EXPECTED if x not in bad] + \
               [f"self test: found though right: {x}" for x in bad if x not in EXPECTED]
    try:
        read_table(TABLE.replace("| low | 1 | nothing", "| low | 1 | high"))
    except ValueError:
        return []
    return ["self test: a map with an arrow up was accepted"]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--root", type=pathlib.Path)
    args.add_argument("--build", type=pathlib.Path)
    args.add_argument("--self-test", action="store_true")
    args.add_argument("--cc", default="cc")
    args = args.parse_args()
    if args.self_test:
        bad, seen = self_test(args.cc), f"{len(EXPECTED)} mistakes found"
    else:
        bad, seen = check(args.root, args.build)
    for line in bad:
        print(line)
    print(f"layers: {seen}, {len(bad)} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
