#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bombs.py FOLDER SECONDS fifo|large|none [COPIES]: runs code from files in FOLDER that are too expensive to read completely:
in `symbols` 2000 tables share the same bytes; the functions of `unwind` share half a billion instructions. It also runs
generated code whose perf map is a FIFO without a writer, has ten million lines, or is missing. COPIES is the number of
`symbols` files. Prints a line when it begins."""

import contextlib
import ctypes
import mmap
import os
import pathlib
import struct
import sys
import time

CODE_OFFSET = 0x1000
# Counts down from 50 million: mov ecx, N; dec ecx; jnz -4; ret.
CODE = b"\xb9" + struct.pack("<I", 50_000_000) + b"\xff\xc9\x75\xfc\xc3"
PROGBITS, SYMTAB, STRTAB = 1, 2, 3
PERF_MAP_BYTES = 60_000_000


def section(kind, offset=0, size=0, name=0, link=0, entry_size=0, address=0):
    return struct.pack("<IIQQQQIIQQ", name, kind, 0, address, offset, size, link, 0, 0, entry_size)


def elf(content, sections, names_index):
    """A library with CODE at CODE_OFFSET, followed by `content` and these section headers."""
    headers_at = CODE_OFFSET + 0x1000 + len(content)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, 0, 64, headers_at, 0, 64, 56, 1, 64,
                         len(sections), names_index)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, headers_at, headers_at, 0x1000)
    return ((header + segment).ljust(CODE_OFFSET, b"\0") + CODE.ljust(0x1000, b"\0") + content + b"".join(sections))


def symbols_bomb():
    content_at = CODE_OFFSET + 0x1000
    symbol = struct.pack("<IBBHQQ", 0, 0x12, 0, 1, CODE_OFFSET, 16)
    table = symbol * 8192
    content = bytes(16) + table
    sections = [section(0), section(STRTAB, content_at, 16)]
    sections += [section(SYMTAB, content_at + 16, len(table), link=1, entry_size=len(symbol))] * 2000
    return elf(content, sections, 0)


def entry(body):
    body += bytes(-(len(body) + 4) % 8)
    return struct.pack("<I", len(body)) + body


def unwind_bomb():
    content_at = CODE_OFFSET + 0x1000
    # Version 1, augmentation zR, aligned by 1 and -8, return address in 16, addresses absolute in 4 bytes; then nops.
    frames = bytearray(entry(struct.pack("<IB3s5B", 0, 1, b"zR\0", 1, 0x78, 16, 1, 0x03) + bytes(100_000)))
    for function in range(5000):
        frames += entry(struct.pack("<IIIB", len(frames) + 4, CODE_OFFSET + 16 * function, 16, 0))
    names = b"\0.eh_frame\0"
    sections = [section(0), section(PROGBITS, content_at, len(frames), name=1, address=content_at),
                section(STRTAB, content_at + len(frames), len(names))]
    return elf(bytes(frames) + names, sections, 2)


def function_at(address):
    return ctypes.CFUNCTYPE(None)(address)


def map_code(path):
    """The function in CODE, from the file mapped like a loader does."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    with path.open("rb") as file:
        address = libc.mmap(None, path.stat().st_size, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, file.fileno(), 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), f"mmap {path}")
    return function_at(address + CODE_OFFSET)


@contextlib.contextmanager
def perf_map(kind):
    path = pathlib.Path(f"/tmp/perf-{os.getpid()}.map")
    try:
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "large":
            line = b"1 1 a\n"
            path.write_bytes(line * (PERF_MAP_BYTES // len(line)))
        yield
    finally:
        path.unlink(missing_ok=True)


def main():
    folder, seconds, kind = pathlib.Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    copies = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    functions = []
    symbols = symbols_bomb()
    for name, content in [(f"symbols{i or ''}", symbols) for i in range(copies)] + [("unwind", unwind_bomb())]:
        (folder / name).write_bytes(content)
        functions.append(map_code(folder / name))
    made = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                     prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    made.write(CODE)
    functions.append(function_at(ctypes.addressof(ctypes.c_char.from_buffer(made))))
    with perf_map(kind):
        print("running", flush=True)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for function in functions:
                function()


if __name__ == "__main__":
    main()
