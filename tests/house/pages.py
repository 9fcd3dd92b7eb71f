#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""pages: what the prose says about the code is still so.

- docs/from-torch.md names every public function that has a counterpart in torch (its @source does not begin
  with "ours"; X_async goes with X), and no function that does not exist.
- Every name of docs/torch-names.txt has one place there: a row with its C name, or one of what is not there, with
  the reason. Variables that it calls "read" stand in docs/env.md.
- The C programs of README.md compile against include/.
- Relative links of the pages lead to files.
- Every row of docs/behaviours.md names tests that its file has, and runs.

usage: pages.py --root DIR --cc COMPILER | pages.py --self-test
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\s*\n(?:TUTTI_API|static inline)\s[^;{(]*?\b(\w+)\s*\(", re.S)


def functions(include):
    """name -> @source of every function of the public headers, "" where there is none."""
    found = {}
    for header in sorted(include.glob("*.h")):
        if header.name == "private.h":
            continue
        for comment, name in BLOCK.findall(header.read_text()):
            source = re.search(r"@source\s+(\S.*)", comment)
            found[name] = source.group(1) if source else ""
    return found


def check_from_torch(root):
    names = functions(root / "include/tutti")
    text = (root / "docs/from-torch.md").read_text()
    told = set(re.findall(r"`(tutti_\w+)`", text))
    types = set(re.findall(r"\b(tutti_\w+)\b", "".join(h.read_text() for h in (root / "include").rglob("*.h"))))
    wanted = {n for n, source in names.items()
              if source and not source.startswith("ours") and not n.endswith("_async")}
    return [f"docs/from-torch.md does not name {n}" for n in sorted(wanted - told)] + \
           [f"docs/from-torch.md names {n}, which no header has" for n in sorted(told - types)]


SHORT = {"cu.": "collective_utils.", "fc.": "_functional_collectives.", "dnn.": "nn.functional.", "dist.": "", "torch.distributed.": ""}


def python_names(cell):
    """What a cell names, in full, without the module that all share and without arguments."""
    names = set()
    for name in re.findall(r"`([^`]+)`", cell):
        name = name.split("(")[0]
        short = next((s for s in SHORT if name.startswith(s)), "")
        names.add(SHORT.get(short, "") + name[len(short):])
    return names


def read_torch_rows(text):
    """(names with a counterpart, names with a reason, complaints) of the tables of docs/from-torch.md."""
    there, absent, bad, columns = set(), set(), [], 0
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = 0
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if columns == 0 or line.startswith("|---"):
            columns = len(cells)
            continue
        if len(cells) != columns or cells[0] == "" or cells[1] == "":
            bad.append(f"a row of docs/from-torch.md has an empty cell, or not {columns}: {line[:60]}")
        elif columns == 2:
            absent |= python_names(cells[0])
        else:
            there |= python_names(cells[0])
    return there, absent, bad


def check_torch_names(root):
    there, absent, bad = read_torch_rows((root / "docs/from-torch.md").read_text())
    wanted = {line.strip() for line in (root / "docs/torch-names.txt").read_text().splitlines()
              if line.strip() and not line.startswith("#")}
    read = re.findall(r"^\|(.*)\| read \|", (root / "docs/from-torch.md").read_text(), re.M)
    known = set(re.findall(r"^\| `(\w+)`", (root / "docs/env.md").read_text(), re.M))
    bad += [f"docs/from-torch.md has no row for {name}" for name in sorted(wanted - there - absent)]
    bad += [f"docs/from-torch.md says of {name} both what it is here and that it is not here"
            for name in sorted(there & absent)]
    bad += [f"docs/from-torch.md says that {name} is read, docs/env.md does not"
            for cell in read for name in sorted(python_names(cell) - known)]
    return bad if wanted else bad + ["docs/torch-names.txt is empty"]


def check_programs(root, cc):
    programs = re.findall(r"^```c\n(.*?)^```", (root / "README.md").read_text(), re.S | re.M)
    bad = [] if programs else ["README.md has no program"]
    for program in programs:
        run = subprocess.run([cc, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
                              "-x", "c", f"-I{root / 'include'}", "-"],
                             input=program, text=True, capture_output=True)
        if run.returncode != 0:
            bad.append("a program of README.md does not compile:\n" + run.stderr.rstrip())
    return bad


def check_links(root):
    bad = []
    pages = sorted(root.glob("*.md")) + [p for d in ("docs", "src", "train", "tests", "include")
                                         for p in sorted((root / d).rglob("*.md"))]
    for page in pages:
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            if "://" not in link and not (page.parent / link).exists():
                bad.append(f"{page.relative_to(root)} links to {link}, which is not there")
    return bad


def check_behaviours(root):
    """A row is | behaviour | [where](file) | `test`, `test` |: each is a function, and somewhere listed."""
    page = root / "docs/behaviours.md"
    rows = [line for line in page.read_text().splitlines()
            if line.startswith("|") and not re.match(r"\|\s*(behaviour\b|-)", line)]
    bad = [] if rows else [f"{page.name} has no rows"]
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        link = re.search(r"\]\(([^)#\s]+)", cells[1]) if len(cells) == 3 else None
        tests = re.findall(r"`(\w+)`", cells[-1])
        if link is None or not tests:
            bad.append(f"a row of {page.name} is not | behaviour | [where](file) | `test` |: {row[:60]}")
            continue
        file = page.parent / link.group(1)
        text = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.S) if file.exists() else ""
        bad += [f"{page.name}: {link.group(1)} has and runs no test {test}" for test in tests
                if not re.search(rf"\b{test}\s*\(", text) or len(re.findall(rf"\b{test}\b", text)) < 2]
    return bad


# ---- self test: tables of names with one of every mistake ------------------------------------------

TABLES = {
    "torch-names.txt": "# a list\n\nsend\nWork.wait\n_functional_collectives.wait_tensor\nrpc\nlost\nRANK\nODD\n",
    "env.md": "| variable | meaning |\n|---|---|\n| `RANK` | x |\n",
    "from-torch.md": """
| Python | C | what differs |
|---|---|---|
| `dist.send`, `dist.Work.wait(timeout)` | `tutti_send` |  |
| `fc.wait_tensor` | `tutti_wait_tensor` | x |
| `dist.short` | `tutti_short` |

| variable | here | what differs |
|---|---|---|
| `RANK`, `ODD` | read |  |

| Python | why not |
|---|---|
| `dist.rpc` | a reason |
| `dist.send` | also here |
| `dist.empty` | |
""",
}
EXPECTED = [
    "a row of docs/from-torch.md has an empty cell, or not 3: | `dist.short` | `tutti_short` |",
    "a row of docs/from-torch.md has an empty cell, or not 2: | `dist.empty` | |",
    "docs/from-torch.md has no row for lost",
    "docs/from-torch.md says of send both what it is here and that it is not here",
    "docs/from-torch.md says that ODD is read, docs/env.md does not",
]


def self_test():
    with tempfile.TemporaryDirectory() as scratch:
        docs = pathlib.Path(scratch) / "docs"
        docs.mkdir()
        for name, text in TABLES.items():
            (docs / name).write_text(text)
        bad = check_torch_names(pathlib.Path(scratch))
    return [f"self test: not found: {x}" for x in EXPECTED if x not in bad] + \
           [f"self test: found though right: {x}" for x in bad if x not in EXPECTED]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--root", type=pathlib.Path)
    args.add_argument("--cc", default="cc")
    args.add_argument("--self-test", action="store_true")
    args = args.parse_args()
    if args.self_test:
        bad = self_test()
    else:
        bad = check_from_torch(args.root) + check_torch_names(args.root) + check_behaviours(args.root) + \
              check_programs(args.root, args.cc) + check_links(args.root)
    for line in bad:
        print(line)
    print(f"pages: {len(bad)} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
