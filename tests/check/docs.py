#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the pages' statements about the tree are true.

In every Markdown file, except in sections whose heading ends in "(planned)":
  - links to other pages, to files and to headings resolve;
  - paths in `backticks` that begin with a folder of the tree, of src/ or of the page's own folder exist (`*` and
    `{a,b}` as in a shell);
  - `make TARGET` names a target of the Makefile, `gpusonde COMMAND` a command of the program.
"""

import fnmatch
import itertools
import re

import tree

HEADING = re.compile(r"^(#+)\s+(.*?)\s*#*$")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^\s*```")
MAKE = re.compile(r"\bmake ([a-z][a-z-]*)")
COMMAND = re.compile(r"(?:^|[\s`(/$])gpusonde ([a-z][a-z-]*)(?=[\s`.,;:)]|$)")
PATH = re.compile(r"^\.{0,2}/?[\w.*{},-]+(/[\w.*{},-]*)+$")
# Not part of the tree: built, installed, or beside it.
ELSEWHERE = ("build/", "../", "/", "web/dist", "web/node_modules", "bench/results", "shared/")


def anchor(heading):
    """The anchor of a heading, as GitHub makes it."""
    text = re.sub(r"[`*_]|\[([^\]]*)\]\([^)]*\)", lambda match: match.group(1) or "", heading)
    if "_" in heading:
        text = re.sub(r"[`*]", "", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors(text):
    return {anchor(match.group(2)) for _, line in prose(text) if (match := HEADING.match(line))}


def prose(text):
    """(number, line) outside fences."""
    fenced = False
    for number, line in tree.numbered(text):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def checked_lines(text):
    """(number, line, in a fence) of sections about existing things."""
    fenced, planned_depth = False, 0
    for number, line in tree.numbered(text):
        if FENCE.match(line):
            fenced = not fenced
            continue
        heading = None if fenced else HEADING.match(line)
        if heading:
            depth = len(heading.group(1))
            if planned_depth and depth <= planned_depth:
                planned_depth = 0
            if heading.group(2).endswith("(planned)"):
                planned_depth = planned_depth or depth
        if not planned_depth:
            yield number, line, fenced


def expand(pattern):
    """The patterns that a{b,c}d expands to."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if not match:
        return [pattern]
    return list(itertools.chain.from_iterable(
        expand(pattern[:match.start()] + choice + pattern[match.end():]) for choice in match.group(1).split(",")))


def folders_of(paths):
    return {"/".join(path.split("/")[:depth]) for path in paths for depth in range(1, path.count("/") + 1)}


def exists(path, paths, folders):
    for pattern in expand(path.rstrip("/")):
        pattern = pattern.removeprefix("./")
        found = pattern in paths or pattern in folders
        if "*" in pattern:
            found = any(fnmatch.fnmatchcase(name, pattern) for name in paths)
        if not found:
            return False
    return True


def resolve(page, target):
    """The path in the tree that a page's link resolves to, or None if it leaves the tree."""
    parts = page.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def make_targets(files):
    return set(re.findall(r"^([a-z-]+):", files.get("Makefile", ""), re.MULTILINE))


def commands(files):
    return set(re.findall(r'Command\{"([a-z]+)"', files.get("apps/gpusonde/commands.cpp", "")))


def check_links(page, number, line, files, known, folders):
    for target in LINK.findall(line):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        path = resolve(page, path) if path else page
        if path is None or not exists(path, known, folders):
            yield f"{page}:{number}: the link to {target} leads nowhere"
        elif fragment and path.endswith(".md") and fragment not in anchors(files[path]):
            yield f"{page}:{number}: {path} has no heading #{fragment}"


def check_paths(page, number, code, known, folders):
    tops = {folder for folder in folders if "/" not in folder} | {"src"}
    layers = {folder.split("/")[1] for folder in folders if folder.startswith("src/")}
    path = re.sub(r":\d+$", "", code)
    beside = page.rpartition("/")[0]
    if beside and exists(f"{beside}/{path}", known, folders):
        return  # a page inside a folder may name files relative to it
    if not PATH.match(path) or path.startswith(ELSEWHERE):
        return
    top = path.removeprefix("./").split("/")[0]
    if top in tops and not exists(path, known, folders):
        yield f"{page}:{number}: there is no {path}"
    elif top not in tops and top in layers and not exists("src/" + path, known, folders):
        yield f"{page}:{number}: there is no src/{path}"


def check(files):
    known = set(files)
    folders = folders_of(known)
    targets, names = make_targets(files), commands(files)
    findings = []
    for page, text in sorted(files.items()):
        if not page.endswith(".md"):
            continue
        for number, line, fenced in checked_lines(text):
            spans = [line] if fenced else CODE.findall(line)
            if not fenced:
                findings += check_links(page, number, CODE.sub("", line), files, known, folders)
                for code in spans:
                    findings += check_paths(page, number, code, known, folders)
            for span in spans:
                findings += [f"{page}:{number}: the Makefile has no target {target}"
                             for target in MAKE.findall(span) if target not in targets]
                findings += [f"{page}:{number}: there is no command gpusonde {name}"
                             for name in COMMAND.findall(span) if name not in names]
    return findings


if __name__ == "__main__":
    tree.main(check)
