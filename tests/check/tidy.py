#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy-19 (.clang-tidy) over every source of the tree that is compiled.

    tests/check/tidy.py [FILE …]

Uses the commands of the preset `tidy` (build/tidy), whose generated headers must exist. Most of clang-tidy's time
goes into headers: a plugin (own_declarations.cpp) keeps its checks out of system headers, those that most sources include are
precompiled, and sources with the same command are checked in batches, as a unity build would compile them: those of src and of some folders of small
targets (with the include folders and macros of all, and a batch of its own for what seems to use a name of others), and
elsewhere those of a target. Sources that don't compile together with those before them (two use one name) form another batch. A
clean batch is not checked again until a file that it reads, its command or .clang-tidy changes. Files named on the command line
are checked one by one.
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
BATCH = 36  # sources, at most
# Folders whose targets are checked together.
FOLDERS = ("src/", "simgpu/", "tests/fuzz/", "tests/programs/", "bench/", "tools/")
HEADERS = """algorithm array atomic bit charconv chrono cmath condition_variable cstddef cstdint cstdio cstdlib cstring deque expected
filesystem fstream functional iterator limits map memory mutex numeric optional random set span sstream stop_token string string_view
system_error thread tuple type_traits unordered_map unordered_set utility variant vector fmt/format.h nlohmann/json.hpp""".split()
TEST_HEADERS = ["gtest/gtest.h", "gmock/gmock.h"]
# What they define outside functions, as clang-format writes it.
DEFINED = re.compile(r"^(?:using (\w+) =|(?:struct|class|enum class) (\w+)[^;\n]*{|constexpr [^;={(\[\n]*?(\w+) ?[={(\[]|"
                     r"[A-Za-z][\w:<>,&* ]* [&*]?([A-Z]\w*)\()", re.MULTILINE)
NAMESPACE = re.compile(r"^namespace ([\w:]+) {", re.MULTILINE)
# What a program has once: its name, that in a batch, and what defines it.
ONCE = (("LLVMFuzzerTestOneInput", "LLVMFuzzerTestOneInput", re.compile(r"\bint LLVMFuzzerTestOneInput\(")),
        ("main", "Main", re.compile(r"^int main\(|^BENCHMARK_MAIN\(", re.MULTILINE)))
# What changes the machine code only.
CODE_GENERATION = re.compile(r"-O\d|-fPI[CE]|-fvisibility=hidden|-fno-semantic-interposition|-fasynchronous-unwind-tables|-D\w+_EXPORTS|-U_FORTIFY_SOURCE|"
                             r"-[fm](no-)?(omit-frame-pointer|omit-leaf-frame-pointer|optimize-sibling-calls|"
                             r"stack-protector|sanitize=all)")


def options(command):
    """A compiler's command without its source, output, dependency file, include folders and what changes the machine code only;
    the include folders; the output."""
    kept, folders, output, arguments = [], [], "", iter(shlex.split(command))
    for argument in arguments:
        if argument in ("-o", "-MF", "-MT", "-MQ", "-c"):
            value = next(arguments)
            output = value if argument == "-o" else output
        elif argument == "-isystem":
            folders.append((argument, next(arguments)))
        elif argument.startswith("-I"):
            folders.append((argument,))
        elif argument not in ("-MD", "-MMD") and not CODE_GENERATION.fullmatch(argument):
            kept.append(argument)
    return tuple(kept), folders, output


def settings_of(path):
    """The .clang-tidy that applies to a source."""
    return next(folder / ".clang-tidy" for folder in path.parents if (folder / ".clang-tidy").exists())


def names_defined(source):
    text = source.read_text()
    namespace = NAMESPACE.search(text)
    prefix = namespace.group(1) + "::" if namespace else ""
    return {prefix + "".join(names) for names in DEFINED.findall(text)}


def without_clashes(sources):
    """The sources in lists of which each defines no name twice, as far as can be seen without a parser."""
    lists = []
    for source in sources:
        names = names_defined(source)
        for used, fitting in lists:
            if not used & names:
                break
        else:
            used, fitting = set(), []
            lists.append((used, fitting))
        used |= names
        fitting.append(source)
    return [fitting for _, fitting in lists]


def together():
    """Our sources, each once, as (.clang-tidy, options, list of those that may be in one batch)."""
    seen, found = set(), {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.suffix != ".cpp" or path.is_relative_to(BUILD) or path in seen:
            continue
        seen.add(path)
        kept, folders, output = options(entry["command"])
        folder = next((folder for folder in FOLDERS if output.startswith(folder)), None)
        matched = re.match(r"(.*/)?CMakeFiles/[^/]+\.dir/", output)
        target = folder or (matched.group(0) if matched else output)
        more = [*((option,) for option in kept if option.startswith("-D")), *folders]
        kept = tuple(option for option in dict.fromkeys(kept) if not option.startswith("-D"))
        is_test = ("-DGTEST_HAS_PTHREAD=1",) in more
        key = (target, settings_of(path), kept, is_test, () if folder else tuple(more))
        of_all, sources = found.setdefault(key, ({}, []))
        of_all.update(dict.fromkeys(more))
        sources.append(path)
    return [(settings, (*kept, *itertools.chain(*of_all)), those)
            for (target, settings, kept, *_), (of_all, sources) in found.items()
            for those in (without_clashes(sources) if target in FOLDERS else [sources])]


LANGUAGE = re.compile(r"-std=.*|-f.*|-DFMT_SHARED|-DGTEST_HAS_PTHREAD=1")


class Precompiled:
    """Headers that most sources include, compiled once per run for each kind of command."""

    lock, files = threading.Lock(), {}

    @classmethod
    def of(cls, command):
        """The arguments that load those for a command; none for what uses hardly any of them."""
        if "-fno-rtti" in command:
            return []
        key = tuple(argument for argument in command if LANGUAGE.fullmatch(argument))
        with cls.lock:
            if key not in cls.files:
                header = CLEAN.parent / f"precompiled{len(cls.files)}.h"
                names = HEADERS + (TEST_HEADERS if "-DGTEST_HAS_PTHREAD=1" in key else [])
                header.write_text("".join(f"#include <{name}>\n" for name in names))
                file = header.with_suffix(".pch")
                subprocess.run([COMPILER, *key, "-g", "-x", "c++-header", header, "-o", file], check=True)
                cls.files[key] = ["-include-pch", str(file)]
            return cls.files[key]


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
        self.name = hashlib.sha256("\n".join([*command, *map(str, sources)]).encode()).hexdigest()[:24]
        self.folder = BUILD / "batches" / self.name
        self.record = CLEAN / self.name

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

    def included(self, number):
        """What includes a source; beside others, what it may define once is renamed."""
        source = self.sources[number]
        names = [(name, other) for name, other, definition in ONCE if len(self.sources) > 1 and definition.search(source.read_text())]
        return "".join([*(f"#define {name} {other}{number}\n" for name, other in names), f'#include "{source}"\n',
                        *(f"#undef {name}\n" for name, _ in names)])

    def write(self):
        """Writes the batch as one source, with the command that compiles it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.settings.parent != ROOT:  # otherwise clang-tidy finds it above
            shutil.copy(self.settings, self.folder)
        batch = self.folder / "batch.cpp"
        batch.write_text("".join(self.included(number) for number in range(len(self.sources))))
        (self.folder / "compile_commands.json").write_text(
            json.dumps([{"directory": str(BUILD), "file": str(batch),
                         "arguments": [*self.command, *Precompiled.of(self.command), "-c", str(batch)]}]))

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
    """Checks batches with a thread per core, the largest first, and prints findings as they come."""

    def __init__(self, rules, batches):
        self.rules, self.work, self.lock = rules, queue.PriorityQueue(), threading.Lock()
        self.looked_at = self.with_findings = 0
        for batch in batches:
            self.put(batch)

    def put(self, batch):
        self.work.put((-sum(source.stat().st_size for source in batch.sources), batch.name, batch))

    def look_at(self, batch):
        if batch.is_clean(self.rules):
            return
        batch.write()
        findings = batch.check(self.rules)
        errors = set(COMPILE_ERROR.findall(findings))
        if errors and len(batch.sources) > 1:
            for part in batch.parts(errors):
                self.put(part)
            return
        with self.lock:
            self.looked_at += len(batch.sources)
            if findings:
                self.with_findings += 1
                print(findings.replace(f"{ROOT}/", ""), flush=True)

    def drain(self):
        while True:
            *_, batch = self.work.get()
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
