#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""craft_recording.py FILE SEED OUTPUT: changes bytes of a recording and corrects DuckDB's checksums, so that the
changes reach the code behind them."""

import pathlib
import random
import struct
import sys

# DuckDB's src/include/duckdb/storage/storage_info.hpp and src/common/checksum.cpp. The file begins with three headers;
# headers and blocks begin with the checksum of the rest.
HEADER_BYTES = 4096
HEADERS = 3
CHECKSUM_BYTES = 8
BLOCK_SIZE_OFFSET = 40
ALL_BITS = (1 << 64) - 1


def checksum(data):
    result = 5381
    for (word,) in struct.iter_unpack("<Q", data):
        result ^= word * 0xBF58476D1CE4E5B9 & ALL_BITS
    return result


def mend(data, start, size):
    struct.pack_into("<Q", data, start, checksum(data[start + CHECKSUM_BYTES:start + size]))


def is_whole(data, start, size):
    return struct.unpack_from("<Q", data, start)[0] == checksum(data[start + CHECKSUM_BYTES:start + size])


def craft(original, seed):
    """The file with 1 to 24 bytes changed in the used part of one block."""
    rng = random.Random(seed)
    data = bytearray(original)
    block_bytes = struct.unpack_from("<Q", data, HEADER_BYTES + BLOCK_SIZE_OFFSET)[0]
    blocks = range(HEADERS * HEADER_BYTES, len(data) - block_bytes + 1, block_bytes)
    start = rng.choice([block for block in blocks if is_whole(data, block, block_bytes)])
    used = len(bytes(data[start:start + block_bytes]).rstrip(b"\0"))
    for _ in range(rng.choice((1, 4, 24))):
        at = start + rng.randrange(CHECKSUM_BYTES, max(used, CHECKSUM_BYTES + 1))
        data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    mend(data, start, block_bytes)
    return bytes(data)


if __name__ == "__main__":
    pathlib.Path(sys.argv[3]).write_bytes(craft(pathlib.Path(sys.argv[1]).read_bytes(), int(sys.argv[2])))
