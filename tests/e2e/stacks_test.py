# SPDX-License-Identifier: Apache-2.0
"""Stacks of real programs are complete, with names, lines and inlined functions."""

import http.server
import os
import pathlib
import random
import subprocess
import threading
import unittest

import program
from program import PROGRAMS

SHOP = """
#include <cstdlib>
static inline __attribute__((always_inline)) unsigned price(unsigned fruit) {
  for (int i = 0; i < 1000; ++i)
    fruit = fruit * 1664525 + 1013904223;
  return fruit;
}
__attribute__((noinline)) unsigned buy(unsigned count) {
  unsigned sum = price(count);
  return sum + 1;
}
int main(int count, char** arguments) {
  unsigned sum = 0;
  for (long i = std::atol(arguments[1]) * 1000; i > 0; --i)
    sum += buy(static_cast<unsigned>(i));
  return count == 99 ? static_cast<int>(sum) : 0;
}
"""


class Lines(program.TestCase):
    """A program with known lines and inlined functions."""

    def setUp(self):
        super().setUp()
        self.source = self.folder / "shop.cpp"
        self.source.write_text(SHOP)
        self.shop = self.folder / "shop"

    def build(self, *commands):
        for command in (["g++", "-O2", "-g", "-o", "shop", "shop.cpp"], *commands):
            subprocess.run(command, check=True, cwd=self.folder)

    def check_lines(self, expected, **options):
        done = self.record(self.shop, "600", **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.query("""
            WITH hot AS (SELECT locations.* FROM samples JOIN stacks USING (stack)
                         JOIN locations ON location = stacks.locations[1]
                         WHERE kind = 'native' AND state = 'on_cpu'),
                 frames AS (SELECT unnest(functions) AS function, unnest(lines) AS line, len(functions) AS n FROM hot)
            SELECT name, file, functions.line AS first_line, n FROM frames JOIN functions USING (function)
            WHERE name IN ('buy(unsigned int)', 'price') GROUP BY ALL""")
        found = {row["name"]: row for row in rows}
        if not expected:
            self.assertNotIn("price", found)
            return
        self.assertEqual(found["price"]["file"], str(self.source))
        self.assertEqual(found["price"]["first_line"], 3)
        self.assertEqual(found["buy(unsigned int)"]["first_line"], 8)
        hottest = self.value("""
            SELECT locations.lines[1] FROM samples JOIN stacks USING (stack)
            JOIN locations ON location = stacks.locations[1] WHERE state = 'on_cpu' GROUP BY 1 ORDER BY count(*) DESC LIMIT 1""")
        self.assertIn(hottest, (4, 5), "the loop")

    def test_are_in_the_recording_with_what_was_inlined(self):
        self.build()
        self.check_lines(True)

    def test_come_from_a_debug_file_beside_the_program(self):
        self.build(["objcopy", "--only-keep-debug", "shop", "shop.debug"], ["strip", "shop"],
                   ["objcopy", "--add-gnu-debuglink=shop.debug", "shop"])
        self.check_lines(True)

    def test_come_from_a_server_when_one_is_configured(self):
        self.build(["objcopy", "--only-keep-debug", "shop", "served"], ["strip", "shop"])
        asked = []

        class Server(http.server.BaseHTTPRequestHandler):
            served = (self.folder / "served").read_bytes()

            def do_GET(self):
                asked.append(self.path)
                found = self.path.endswith("/debuginfo")
                self.send_response(200 if found else 404)
                self.send_header("Content-Length", str(len(self.served) if found else 0))
                self.end_headers()
                if found:
                    self.wfile.write(self.served)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        environment = dict(os.environ, DEBUGINFOD_CACHE_PATH=str(self.folder / "cache"))
        environment.pop("DEBUGINFOD_URLS", None)
        self.check_lines(False, env=environment)
        self.assertEqual(asked, [], "no server is queried unless configured")
        self.recording.unlink()
        self.check_lines(True, env=environment | {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}"})
        build_id = subprocess.run(["file", "-b", self.shop], capture_output=True, text=True, check=False).stdout
        self.assertTrue(asked)
        if "BuildID[sha1]=" in build_id:
            wanted = build_id.split("BuildID[sha1]=")[1].split(",")[0]
            self.assertIn(f"/buildid/{wanted}/debuginfo", asked)

    def test_damaged_debug_information_costs_no_sample(self):
        self.build()
        whole = self.shop.read_bytes()
        sections = subprocess.run(["readelf", "-SW", self.shop], capture_output=True, text=True, check=True).stdout
        places = []
        for line in sections.splitlines():
            fields = line.partition("]")[2].split()
            if fields and fields[0].startswith(".debug_"):
                places.append((int(fields[3], 16), int(fields[4], 16)))
        chance = random.Random(5)
        for _ in range(8):
            damaged = bytearray(whole)
            for start, size in places:
                for _ in range(size // 20 + 1):
                    damaged[start + chance.randrange(size)] = chance.randrange(256)
            self.shop.write_bytes(damaged)
            done = self.record(self.shop, "150")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(sum(n for frames, n in self.folded() if any("buy" in frame for frame in frames)), 5)
            self.recording.unlink()


class Whole(program.TestCase):
    def test_stacks_reach_the_threads_start_through_five_libraries(self):
        done = self.record(PROGRAMS / "five_libraries", "3", options=("--hz", "499"))
        self.assertEqual(done.returncode, 0, done.stderr)
        stacks = [(frames, n) for frames, n in self.folded() if any("five::" in frame for frame in frames)]
        total = sum(n for _, n in stacks)
        self.assertGreater(total, 200)
        whole = sum(n for frames, n in stacks
                    if "five::FirstLibrary(long)" in frames and any("FifthLibrary" in frame for frame in frames)
                    and "[unknown]" not in frames)
        # Before the first library has called the fifth, and where the C++ library throws.
        in_between = sum(n for frames, n in stacks if not any("FifthLibrary" in frame for frame in frames))
        self.assertGreater((whole + in_between) / total, 0.99)


@unittest.skipUnless(pathlib.Path("/usr/lib/debug/.build-id").is_dir(), "libc6-dbg is not installed")
class DebugPackages(program.TestCase):
    def test_functions_of_the_c_library_have_names(self):
        self.assertEqual(self.record(PROGRAMS / "five_libraries", "5").returncode, 0)
        frames = {frame for frames, _ in self.folded() for frame in frames}
        self.assertIn("__libc_start_call_main", frames)


if __name__ == "__main__":
    unittest.main()
