# SPDX-License-Identifier: Apache-2.0
"""Kernel streams (data/kernel-streams/README.md): replays a real program's GPU work on this GPU."""

import re

VERSION = "kernel-stream 1"

# A kernel that only takes time: the first thread of the grid waits, all others exit at once. A simulated GPU reads the
# comment and uses the parameter as its duration.
KERNEL = """\
// simgpu: duration_ns=param0
.visible .entry {name}(.param .u64 duration_ns)
{{
  .reg .pred %p;
  .reg .u32 %r<5>;
  .reg .u64 %t<4>;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ctaid.y;
  mov.u32 %r2, %ctaid.z;
  mov.u32 %r3, %tid.x;
  or.b32 %r4, %r0, %r1;
  or.b32 %r4, %r4, %r2;
  or.b32 %r4, %r4, %r3;
  setp.ne.u32 %p, %r4, 0;
  @%p ret;
  ld.param.u64 %t0, [duration_ns];
  mov.u64 %t1, %globaltimer;
  add.u64 %t1, %t1, %t0;
WAIT:
  mov.u64 %t2, %globaltimer;
  setp.lt.u64 %p, %t2, %t1;
  @%p bra WAIT;
  ret;
}}
"""


class StreamError(Exception):
    pass


def identifier(name, taken):
    """A name that PTX allows: keeps mangled ones, and removes all but letters and digits from others."""
    plain = name
    if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII):
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:200] or "kernel"
        plain = plain if re.match(r"[A-Za-z_]", plain) else "k_" + plain
    unique, number = plain, 1
    while unique in taken:
        number += 1
        unique = f"{plain}_{number}"
    return unique


class Stream:
    """One kernel stream. `steps` is a list of steps, a step a list of (phase, operations); without marks all is one
    step of the phase "work". An operation is one of
      ("k", stream, name, (grid…, block…), shared bytes, duration in ns)
      ("c", stream, "htod" | "dtoh" | "dtod", bytes)
      ("m", stream, bytes)
    """

    def __init__(self, path):
        self.names = []  # as PTX allows them
        self.steps = []
        self.streams = 0
        self.largest_copy = 0
        with open(path, encoding="utf-8") as file:
            if file.readline().rstrip("\n") != VERSION:
                raise StreamError(f"{path}: not a '{VERSION}'")
            for number, line in enumerate(file, 2):
                try:
                    self.read_line(line.rstrip("\n"))
                except (ValueError, IndexError) as error:
                    raise StreamError(f"{path}:{number}: can't read '{line.strip()[:80]}': {error}") from error
        if not self.steps:
            raise StreamError(f"{path}: no operations")

    def read_line(self, line):
        kind, _, rest = line.partition(" ")
        fields = rest.split()
        if kind == "name":
            self.names.append(identifier(rest.partition(" ")[2], set(self.names)))
        elif kind == "mark":
            if rest == "step" or not self.steps:
                self.steps.append([])
            if rest != "step":
                self.steps[-1].append((rest, []))
        elif kind == "k":
            shape = tuple(int(field) for field in fields[2:8])
            self.add(int(fields[0]), ("k", int(fields[0]), self.names[int(fields[1])], shape, int(fields[8]),
                                      int(fields[10])))
        elif kind == "c":
            size = int(fields[2])
            self.largest_copy = max(self.largest_copy, size)
            self.add(int(fields[0]), ("c", int(fields[0]), fields[1], size))
        elif kind == "m":
            self.add(int(fields[0]), ("m", int(fields[0]), int(fields[1])))
        elif kind not in ("source", "licence", "device"):
            raise ValueError("unknown line")

    def add(self, stream, operation):
        if not self.steps:
            self.steps.append([])
        if not self.steps[-1]:
            self.steps[-1].append(("work", []))
        self.steps[-1][-1][1].append(operation)
        self.streams = max(self.streams, stream + 1)

    def ptx(self):
        """A module with all of its kernels, for any GPU since Volta."""
        head = ".version 7.0\n.target sm_70\n.address_size 64\n\n"
        return head + "\n".join(KERNEL.format(name=name) for name in self.names)
