#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy-19 (.clang-tidy) over every source of the tree that is compiled.

    tests/check/tidy.py [FILE …]

Uses the commands of the preset `tidy` (build/tidy), whose generated headers must exist. Most of clang-tidy's time
goes into headers: a plugin (own_declarations.cpp) keeps its checks out of system headers, and sources with the same command
are checked in batches, as a unity build would compile them: those of all folders of src that have namespaces of their own, all
fuzzers (with the include folders of all), and elsewhere those of a target. Sources that don't compile together with those
before them (two use one name) form another batch. A clean batch is not checked again until a file that it reads, its command
or .clang-tidy changes. Files named on the command line are checked one by one.
"""

import argparse
import functools
import hashlib
import itertools
import json
import os
import pathlib
import queue
import re
import shlex
import shutil
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/tidy"
CLEAN = BUILD / "clean"  # per clean batch: the files it read, and their hash
PLUGIN = BUILD / "own_declarations.so"
PLUGIN_SOURCE = ROOT / "tests/check/own_declarations.cpp"
TIDY = "clang-tidy-19"
COMPILER = "clang++-19"
LLVM_HEADERS = "/usr/lib/llvm-19/include"
COMPILE_ERROR = re.compile(r"^([^:\n]+):\d+:\d+: error: .*\[clang-diagnostic-error\]", re.MULTILINE)
BATCH = 24  # sources, at most
FUZZER = "LLVMFuzzerTestOneInput"  # each has one


def options(command):
    """A compiler's command without its source, its output, its dependency file and its include folders; these; the output."""
    kept, folders, output, arguments = [], [], "", iter(shlex.split(command))
    for argument in arguments:
        if argument in ("-o", "-MF", "-MT", "-MQ", "-c"):
            value = next(arguments)
            output = value if argument == "-o" else output
        elif argument == "-isystem":
            folders.append((argument, next(arguments)))
        elif argument.startswith("-I"):
            folders.append((argument,))
        elif argument not in ("-MD", "-MMD"):
            kept.append(argument)
    return tuple(kept), folders, output


def settings_of(path):
    """The .clang-tidy that applies to a source."""
    return next(folder / ".clang-tidy" for folder in path.parents if (folder / ".clang-tidy").exists())


def together():
    """Our sources, each once, as (.clang-tidy, options, list of those that may be in one batch)."""
    seen, found = set(), {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.suffix != ".cpp" or path.is_relative_to(BUILD) or path in seen:
            continue
        seen.add(path)
        kept, folders, output = options(entry["command"])
        matched = re.match(r"src/(?!store/)|tests/fuzz/|(.*/)?CMakeFiles/[^/]+\.dir/", output)
        target = matched.group(0) if matched else output
        key = (target, settings_of(path), kept, () if target == "tests/fuzz/" else tuple(folders))
        of_all, sources = found.setdefault(key, ({}, []))
        of_all.update(dict.fromkeys(folders))
        sources.append(path)
    return [(key[1], (*key[2], *itertools.chain(*of_all)), sources) for key, (of_all, sources) in found.items()]


@functools.cache
def hash_of(path):
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError:
        return "missing"


class Batch:
    """Some sources with one command and one .clang-tidy."""

    def __init__(self, settings, command, sources):
        self.settings, self.command, self.sources = settings, command, sources
        name = hashlib.sha256("\n".join([*command, *map(str, sources)]).encode()).hexdigest()[:24]
        self.folder = BUILD / "batches" / name
        self.record = CLEAN / name

    def parts(self, errors):
        """Splits a batch that doesn't compile into the sources without and with errors."""
        bad = [source for source in self.sources if str(source) in errors]
        good = [source for source in self.sources if source not in bad]
        if not good or not bad:  # an error in a header, or not attributable
            middle = len(self.sources) // 2
            good, bad = self.sources[:middle], self.sources[middle:]
        return [Batch(self.settings, self.command, part) for part in (good, bad)]

    def digest(self, rules, files):
        read = [rules, hash_of(self.settings), *files, *map(hash_of, files)]
        return hashlib.sha256("\n".join(read).encode()).hexdigest()

    def is_clean(self, rules):
        if not self.record.exists():
            return False
        digest, *files = self.record.read_text().splitlines()
        return digest == self.digest(rules, files)

    def write(self):
        """Writes the batch as one source, with the command that compiles it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.settings.parent != ROOT:  # otherwise clang-tidy finds it above
            shutil.copy(self.settings, self.folder)
        batch = self.folder / "batch.cpp"
        batch.write_text("".join(f'#define {FUZZER} {FUZZER}{number}\n#include "{path}"\n#undef {FUZZER}\n'
                                 for number, path in enumerate(self.sources)))
        (self.folder / "compile_commands.json").write_text(
            json.dumps([{"directory": str(BUILD), "file": str(batch), "arguments": [*self.command, "-c", str(batch)]}]))

    def check(self, rules):
        """clang-tidy's output; empty if the batch is clean."""
        done = subprocess.run([TIDY, f"--load={PLUGIN}", "-p", self.folder, "--quiet", self.folder / "batch.cpp"],
                              capture_output=True, text=True, check=False)
        if done.returncode == 0 and not done.stdout.strip():
            self.remember(rules)
            return ""
        return done.stdout.strip() or done.stderr.strip()

    def remember(self, rules):
        """Records that the batch is clean, with every file that it read."""
        rule = subprocess.run([*self.command, "-M", self.folder / "batch.cpp"], cwd=BUILD, capture_output=True, text=True,
                              check=True).stdout
        read = shlex.split(rule.replace("\\\n", " "))[1:]
        self.record.write_text("\n".join([self.digest(rules, read), *read]))


class Run:
    """Checks batches with a thread per core, and prints findings as they come."""

    def __init__(self, rules, batches):
        self.rules, self.work, self.lock = rules, queue.Queue(), threading.Lock()
        self.looked_at = self.with_findings = 0
        for batch in batches:
            self.work.put(batch)

    def look_at(self, batch):
        if batch.is_clean(self.rules):
            return
        batch.write()
        findings = batch.check(self.rules)
        errors = set(COMPILE_ERROR.findall(findings))
        if errors and len(batch.sources) > 1:
            for part in batch.parts(errors):
                self.work.put(part)
            return
        with self.lock:
            self.looked_at += len(batch.sources)
            if findings:
                self.with_findings += 1
                print(findings.replace(f"{ROOT}/", ""), flush=True)

    def drain(self):
        while True:
            batch = self.work.get()
            try:
                self.look_at(batch)
            except (OSError, subprocess.SubprocessError) as error:  # a full disk, no compiler
                self.with_findings += 1
                print(f"{batch.sources[0]} …: not looked at: {error}", flush=True)
            finally:
                self.work.task_done()

    def finish(self):
        for _ in range(os.cpu_count() or 2):
            threading.Thread(target=self.drain, daemon=True).start()
        self.work.join()


def build_plugin():
    if PLUGIN.exists() and PLUGIN.stat().st_mtime > PLUGIN_SOURCE.stat().st_mtime:
        return
    subprocess.run([COMPILER, "-std=c++17", "-O1", "-fno-rtti", "-fPIC", "-shared", "-isystem", LLVM_HEADERS,
                    PLUGIN_SOURCE, "-o", PLUGIN], check=True)


def main():
    parser = argparse.ArgumentParser(description="Run clang-tidy over the tree.")
    parser.add_argument("files", nargs="*", help="only these, each alone; default: all")
    chosen = {pathlib.Path(name).resolve() for name in parser.parse_args().files}
    CLEAN.mkdir(parents=True, exist_ok=True)
    build_plugin()
    rules = (ROOT / ".clang-tidy").read_text()
    rules += hash_of(PLUGIN_SOURCE) + subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout

    batches = []
    for settings, command, sources in together():
        if chosen:
            batches += [Batch(settings, command, [path]) for path in sources if path in chosen]
        else:
            count = -(-len(sources) // BATCH)
            edges = [len(sources) * i // count for i in range(count + 1)]
            batches += [Batch(settings, command, sources[start:end]) for start, end in zip(edges, edges[1:])]
    run = Run(rules, batches)
    run.finish()
    total = sum(len(batch.sources) for batch in batches)
    print(f"  {total} sources, {run.looked_at} looked at, {run.with_findings} batches with findings")
    return 1 if run.with_findings else 0


if __name__ == "__main__":
    sys.exit(main())
