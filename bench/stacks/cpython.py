# SPDX-License-Identifier: Apache-2.0
"""A Python program with everyday code for bench/stacks_bench.py: recursion, generators, C extensions that call back,
threads. Runs for the given seconds."""

import functools
import json
import re
import sys
import threading
import time
import zlib

TEXT = "the quick brown fox jumps over the lazy dog " * 200


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def squares(n):
    for i in range(n):
        yield i * i


def sort_by_key():
    return sorted(range(2000), key=lambda value: -value % 17)


def replace_words():
    return re.sub(r"\b(\w+)\b", lambda match: match.group(1).upper(), TEXT)


def round_trip():
    document = {f"key{i}": list(range(20)) for i in range(50)}
    return json.loads(json.dumps(document))


class Node:
    def __init__(self, depth):
        self.children = [Node(depth - 1), Node(depth - 1)] if depth else []

    def __len__(self):
        return 1 + sum(map(len, self.children))


@functools.lru_cache(maxsize=16)
def compress(seed):
    return len(zlib.compress(TEXT.encode() + bytes([seed]), 9))


def work(end):
    turn = 0
    while time.monotonic() < end:
        fibonacci(14)
        sum(squares(3000))
        sort_by_key()
        replace_words()
        round_trip()
        len(Node(7))
        compress(turn % 32)
        turn += 1


def main():
    end = time.monotonic() + float(sys.argv[1])
    other = threading.Thread(target=work, args=(end,), name="worker")
    other.start()
    work(end)
    other.join()


if __name__ == "__main__":
    main()
