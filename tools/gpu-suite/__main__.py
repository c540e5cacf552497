#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All checks of gpusonde that need a real GPU, in parts that run in separate processes. README.md lists the parts,
METHOD.md explains how to run them with little time on a GPU.

    python3 tools/gpu-suite list
    python3 tools/gpu-suite run --out DIR [--budget SECONDS] [--done RESULTS]… [PART…]
    python3 tools/gpu-suite report RESULTS… [--data FOLDER] [--docs FOLDER]
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True  # the package may be on a read-only file system
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import parts  # noqa: E402
import report  # noqa: E402
import suite  # noqa: E402

GRACE_S = 20  # what a part may overrun its budget before it is killed
MIN_S = 10  # a part isn't started with less


def run_part(name, out, budget_s, done, quick):
    """Runs a part in this process; returns its entry of the results."""
    started = time.monotonic()
    entry = {"part": name, "title": parts.ALL[name].TITLE, "status": "done"}
    try:
        entry |= vars(parts.ALL[name].run(suite.Suite(out, budget_s, done, quick)))
    except suite.Skip as reason:
        entry |= {"status": "skipped", "why": str(reason)}
    except suite.Failed as reason:
        entry |= {"status": "failed", "why": str(reason)}
    except Exception:  # whatever it is, the other parts continue
        entry |= {"status": "failed", "why": traceback.format_exc(limit=-6)}
    return entry | {"seconds": round(time.monotonic() - started, 1)}


def run_apart(name, out, budget_s, done, quick):
    """Runs a part in a separate process; if it crashes or hangs, that is its entry."""
    entry_path = out / "work" / f"{name}.json"
    entry_path.parent.mkdir(parents=True, exist_ok=True)
    entry_path.unlink(missing_ok=True)
    command = [sys.executable, str(pathlib.Path(__file__).resolve().parent), "part", name, "--out", str(out),
               "--budget", str(budget_s), "--entry", str(entry_path), *(["--quick"] if quick else []), "--items-done", *done]
    with (out / "log.txt").open("ab") as log:
        log.write(f"== {name}\n".encode())
        log.flush()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                 start_new_session=True)
        try:
            status = child.wait(budget_s + GRACE_S)
            why = f"its process ended with status {status} before it had a result; see log.txt"
        except subprocess.TimeoutExpired:
            why = f"it did not end within {budget_s + GRACE_S:.0f} s and was killed"
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)  # its remaining children
            except ProcessLookupError:
                pass
            child.wait()
    if entry_path.exists():
        return json.loads(entry_path.read_text())
    return {"part": name, "title": parts.ALL[name].TITLE, "status": "failed", "why": why, "seconds": budget_s}


def machine():
    return {"device": suite.device_name() or "none", "host kernel": platform.release(), "cores": os.cpu_count(),
            "python": platform.python_version(), "date": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds")}


def finished_before(files):
    """(finished parts, {part: finished items}) of earlier results."""
    whole, items = set(), {}
    for file in files:
        for entry in json.loads(pathlib.Path(file).read_text())["parts"]:
            items.setdefault(entry["part"], set()).update(entry.get("done", ()))
            if entry["status"] == "done" and not entry.get("left"):
                whole.add(entry["part"])
    return whole, items


def run(arguments):
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + arguments.budget
    if path := suite.library_path():
        os.environ["LD_LIBRARY_PATH"] = path
    whole, items = finished_before(arguments.done)
    results = {"suite": 1, "quick": arguments.quick, "machine": machine(), "parts": []}
    print(f"on {results['machine']['device']}", flush=True)
    wanted = arguments.parts or [name for name in parts.ALL if name not in whole]
    for name in wanted:
        left_s = ends - time.monotonic() - GRACE_S
        if left_s < MIN_S:
            entry = {"part": name, "title": parts.ALL[name].TITLE, "status": "not run", "why": "no time was left"}
        else:
            entry = run_apart(name, out, left_s, sorted(items.get(name, ())), arguments.quick)
        results["parts"].append(entry)
        # After each part, so that its results survive a failure.
        (out / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        print(report.summary_of(entry), flush=True)
    shutil.rmtree(out / "work", ignore_errors=True)
    (out / "results.md").write_text(report.markdown(results))
    failed = [entry["part"] for entry in results["parts"] if entry["status"] == "failed"]
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="the parts, and what each needs")
    running = verbs.add_parser("run", help="run parts; without names, all")
    running.add_argument("--out", type=pathlib.Path, required=True, help="folder for the results")
    running.add_argument("--budget", type=float, default=450, help="seconds for everything (default: 450)")
    running.add_argument("--done", action="append", default=[], metavar="RESULTS",
                         help="results.json of an earlier run, may be repeated: finished items are not run again")
    running.add_argument("--quick", action="store_true", help="a smoke test of the suite; its numbers mean nothing")
    running.add_argument("parts", nargs="*", metavar="PART")
    one = verbs.add_parser("part")  # what `run` starts for each part
    one.add_argument("name", choices=list(parts.ALL))
    one.add_argument("--out", type=pathlib.Path, required=True)
    one.add_argument("--budget", type=float, required=True)
    one.add_argument("--entry", type=pathlib.Path, required=True)
    one.add_argument("--quick", action="store_true")
    one.add_argument("--items-done", nargs="*", default=[])
    reporting = verbs.add_parser("report", help="results of several runs as one dated file, and as a page")
    reporting.add_argument("results", nargs="+", type=pathlib.Path)
    reporting.add_argument("--data", type=pathlib.Path, default=suite.ROOT / "data/gpu-results")
    reporting.add_argument("--docs", type=pathlib.Path, default=suite.ROOT / "docs/gpu-results")
    arguments = parser.parse_args()

    if arguments.verb == "list":
        for name, part in parts.ALL.items():
            print(f"{name:10} {part.TITLE}\n{'':10} needs {part.NEEDS}")
        return 0
    if arguments.verb == "report":
        return report.write(arguments.results, arguments.data, arguments.docs)
    if arguments.verb == "part":
        entry = run_part(arguments.name, arguments.out, arguments.budget, arguments.items_done, arguments.quick)
        arguments.entry.write_text(json.dumps(entry, ensure_ascii=False))
        return 0
    unknown = set(arguments.parts) - set(parts.ALL)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(parts.ALL)}")
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
