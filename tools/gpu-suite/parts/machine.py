# SPDX-License-Identifier: Apache-2.0
"""The machine on which the other parts were measured."""

import os
import pathlib
import platform
import re
import shutil
import subprocess

from suite import Result, device_name

TITLE = "The machine"
NEEDS = "nothing"

QUERY = ("name", "driver_version", "vbios_version", "memory.total", "power.limit", "clocks.max.sm", "clocks.max.mem",
         "pcie.link.gen.max", "pcie.link.width.max", "ecc.mode.current", "persistence_mode", "compute_mode")
FILES = ("/proc/driver/nvidia/version", "/proc/driver/nvidia/params", "/proc/sys/kernel/perf_event_paranoid",
         "/proc/sys/kernel/unprivileged_bpf_disabled", "/etc/os-release")
WANTED = re.compile(r"NVRM version|RmProfilingAdminOnly|PRETTY_NAME|^\d+$")
VERSIONS = ("torch", "torchvision", "timm", "transformers", "triton", "numpy")


def output_of(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stdout if done.returncode == 0 else done.stderr).strip()


def python_versions():
    from importlib import metadata
    for name in VERSIONS:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"no {name}"


def run(_suite):
    result = Result()
    result.notes.append(f"device: {device_name() or 'none'}")
    result.notes.append(f"{platform.platform()}, {'.'.join(platform.libc_ver())}, {os.cpu_count()} cores, user {os.geteuid()}")
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            result.notes.append("CPU: " + line.split(":", 1)[1].strip())
            break
    for name in FILES:
        try:
            lines = pathlib.Path(name).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        result.notes += [f"{name}: {line.strip()}" for line in lines if WANTED.search(line)]
    if shutil.which("nvidia-smi"):
        values = output_of(["nvidia-smi", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader"]).split(", ")
        result.notes += [f"{name}: {value}" for name, value in zip(QUERY, values)]
    else:
        result.notes.append("no nvidia-smi")
    result.notes.append("Python packages: " + ", ".join(python_versions()))
    for name in ("nvcc", "ncu", "nsys", "compute-sanitizer"):
        result.notes.append(f"{name}: {shutil.which(name) or 'not on the PATH'}")
    return result
