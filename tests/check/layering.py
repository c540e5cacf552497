#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which layer may include which: docs/architecture.md explains the rule, this check enforces it.

A layer is a folder of src/, or a folder inside one that has its own line here. It may include itself, the layers listed
for it, and what those may include; its tests may also include the layers of TESTS. The program, tests, benchmarks, tools
and examples may include anything. Headers of heavy libraries (6-11 s of compile time each, measured with g++ 12) stay in
.cpp files, so that including one of our headers doesn't cost that time. A header that only .cpp files of its own folder,
or tests, include may need them: it is those files' own.
"""

import collections
import re
import sys

import tree

ALLOWED = {
    "admission": {"server"},
    "agent": {"diagnose", "net", "sources", "spool"},
    "analyze": {"importers"},
    "base": set(),
    "compare": {"analyze"},
    "convert": {"analyze", "replay"},  # traces are read and sorted as for their analysis, and diagnosed as recordings are
    "diagnose": {"model"},  # pure functions over rows: no I/O, no clock
    "doctor": {"server", "sources", "store/duckdb"},
    "exporters": {"model"},
    "fleet": {"fleet/privacy"},
    "fleet/observe": {"fleet", "store/queries"},  # no clock
    "fleet/privacy": {"base"},  # pure functions: no I/O, no clock
    "fleet/service": {"fleet", "net", "server", "spool"},
    "flight_recorder": {"base"},
    "importers": {"store/recordings", "store/sql"},
    "inject": {"wire"},
    "mcp": {"analyze", "server"},
    "model": {"base"},
    "net": {"base"},
    "otlp": {"exporters", "net", "store/queries"},
    "replay": {"diagnose", "store/sql"},  # no I/O but queries, no clock
    "serve": {"server", "spool", "store/live"},
    "server": {"compare", "exporters", "fleet/observe", "store/tracks", "usage"},
    "sources": {"model", "unwind", "wire"},
    "spool": {"model"},
    "store": {"model"},
    "store/duckdb": {"store"},
    "store/live": {"store/recordings", "store/rollups"},
    "store/queries": {"store/rollups"},
    "store/recordings": {"spool", "store/duckdb"},  # a recording is made from a spool
    "store/rollups": {"store/sql"},
    "store/sql": {"store/duckdb"},
    "store/tracks": {"store/queries"},
    "symbols": {"base", "wire"},
    "top": {"model"},  # no I/O, no clock
    "unwind": {"symbols", "wire"},  # sections of ELF files, Go's table
    "usage": {"store/queries"},
    "wire": set(),
}

# What the tests of a layer (*_test.cpp and testing/) may include besides.
TESTS = {
    "fleet/observe": {"store/recordings"},
    "otlp": {"store/recordings"},
    "replay": {"store/recordings"},
    "server": {"store/recordings"},
    "store/live": {"store/queries"},  # answers from roll-ups are those of the rows
    "store/queries": {"store/recordings"},
    "store/sql": {"store/recordings"},
    "store/tracks": {"store/recordings"},
    "usage": {"store/recordings"},
}

# The stand-ins for NVIDIA's libraries use nothing of ours but the ABI.
APART = {"simgpu": ("simgpu/", "wire/")}

HEAVY = ("CLI/", "boost/", "google/protobuf/", "nlohmann/", "simdjson", "spdlog/")

PAGE = "docs/architecture.md"
PICTURE = re.compile(r"<!-- layers -->\n```\n.*?```\n", re.DOTALL)
TEST = re.compile(r"_test\.cpp$|/testing/")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
GENERATED = (".pb.h", ".skel.h")
CODE = (".h", ".cpp", ".c")


def closure(layer):
    """Everything that a layer may include, itself included."""
    reached, todo = set(), [layer]
    while todo:
        here = todo.pop()
        if here not in reached:
            reached.add(here)
            todo += ALLOWED.get(here, ())
    return reached


def layer_of(path):
    """The layer of a file of src/: of the folders above it the innermost that has a rule, else the outermost."""
    folders = path.split("/")[:-1]
    known = ("/".join(folders[:depth]) for depth in range(len(folders), 0, -1))
    return next((folder for folder in known if folder in ALLOWED), folders[0])


def picture():
    """The rule as docs/architecture.md shows it: lower layers first."""
    depth = {layer: len(closure(layer)) for layer in ALLOWED}
    width = max(map(len, ALLOWED))
    lines = []
    for layer in sorted(ALLOWED, key=lambda layer: (depth[layer], layer)):
        tests = f" (tests: {', '.join(sorted(TESTS[layer]))})" if layer in TESTS else ""
        lines.append(f"{layer:{width}} ─▶ {', '.join(sorted(ALLOWED[layer]))}{tests}" if ALLOWED[layer] else layer)
    return "\n".join([*lines, f"{'simgpu':{width}} ─▶ wire", "apps, tests, bench, tools ─▶ all", ""])


def drawn(page):
    """The page with its picture drawn anew."""
    return PICTURE.sub(lambda _: f"<!-- layers -->\n```\n{picture()}```\n", page)


def includers(files):
    """The files that include each header of the tree."""
    found = collections.defaultdict(set)
    for path, text in files.items():
        if path.endswith(CODE):
            for _, line in tree.numbered(text):
                include = INCLUDE.match(line)
                if include:
                    found[f"src/{include[2]}"].add(path)
    return found


def is_own(header, included_by):
    """Whether only .cpp files of the header's folder and tests include it, directly or through headers like it."""
    folder = header.rsplit("/", 1)[0]
    return bool(included_by[header]) and all(
        TEST.search(path) if path.rsplit("/", 1)[0] != folder else path.endswith(".cpp") or is_own(path, included_by)
        for path in included_by[header])


def check(files):
    findings = []
    included_by = includers(files)
    if PAGE in files and files[PAGE] != drawn(files[PAGE]):
        findings.append(f"{PAGE}:1: its picture is not that of tests/check/layering.py; run `make docs`")
    unused = {(table, layer, other) for table, rule in (("ALLOWED", ALLOWED), ("TESTS", TESTS))
              for layer, others in rule.items() for other in others}
    layers = {layer_of(path.removeprefix("src/")) for path in files if path.startswith("src/") and path.count("/") > 1}
    for layer in sorted(layers - ALLOWED.keys()):
        findings.append(f"src/{layer}: a new layer; say in tests/check/layering.py what it may include")
    for layer in sorted(ALLOWED.keys() - layers):
        findings.append(f"tests/check/layering.py: there is no src/{layer} any more")
    for path, text in sorted(files.items()):
        if not path.endswith(CODE):
            continue
        layer = layer_of(path.removeprefix("src/")) if path.startswith("src/") and path.count("/") > 1 else None
        tests = TESTS.get(layer, set()) if TEST.search(path) else set()
        for number, line in tree.numbered(text):
            include = INCLUDE.match(line)
            if not include:
                continue
            quote, target = include.groups()
            if path.endswith(".h") and target.startswith(HEAVY) and not is_own(path, included_by):
                findings.append(f"{path}:{number}: <{target}> is heavy; include it in a .cpp behind a plain header, or "
                                "include this header only in .cpp files beside it")
            if quote != '"' or target.endswith(GENERATED):
                continue
            apart = APART.get(path.split("/")[0])
            if apart and not target.startswith(apart):
                findings.append(f'{path}:{number}: {path.split("/")[0]} may include {" and ".join(apart)} only')
            beside = path.rsplit("/", 1)[0] + "/" + target
            if layer is None:
                continue
            if f"src/{target}" not in files:
                where = ", written from src/" if beside in files else ""
                if path.endswith(".c") and beside in files:
                    continue  # kernel programs have their own headers beside them
                findings.append(f'{path}:{number}: there is no "src/{target}"; name headers from src/{where}')
                continue
            other = layer_of(target)
            unused.discard(("TESTS" if TEST.search(path) else "ALLOWED", layer, other))
            allowed = closure(layer).union(*map(closure, tests))
            if other not in allowed:
                findings.append(f"{path}:{number}: {layer} may not include {other} (only {', '.join(sorted(allowed))})")
    for table, layer, other in sorted(unused):
        findings.append(f"tests/check/layering.py: nothing in src/{layer} includes src/{other}; take that out of {table}")
    return findings


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        page = tree.ROOT / PAGE
        page.write_text(drawn(page.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        tree.main(check)
