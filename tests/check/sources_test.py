# SPDX-License-Identifier: Apache-2.0
import unittest

import sources

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"


class Sources(unittest.TestCase):
    def test_a_source_without_its_licence_is_found(self):
        for path in ("src/a.h", "web/src/a.tsx", "cmake/a.cmake", "src/CMakeLists.txt"):
            self.assertIn(f"{path}:1: no `SPDX", sources.check({path: "int a;\n"})[0])
            self.assertEqual(sources.check({path: LICENCE + "int a;\n"}), [])

    def test_a_script_without_a_suffix_is_a_source(self):
        self.assertIn("tools/x:1:", sources.check({"tools/x": "#!/bin/sh\necho\n"})[0])

    def test_a_script_that_cannot_be_run_is_found(self):
        script = "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"
        self.assertIn("tools/x:1: begins with `#!`", sources.check({"tools/x": script}, lambda path: False)[0])
        self.assertEqual(sources.check({"tools/x": script}, lambda path: True), [])

    def test_what_is_no_source_needs_none(self):
        self.assertEqual(sources.check({"README.md": "# x\n", "a.json": "{}\n", "src/empty.h": ""}), [])

    def test_a_long_file_is_found_unless_it_has_a_reason(self):
        files = {"src/a.cpp": LICENCE + "\n" * sources.MAX_LINES}
        self.assertIn("src/a.cpp:600: 601 lines", sources.check(files)[0])
        try:
            sources.LONG["src/a.cpp"] = "a table"
            self.assertEqual(sources.check(files), [])
            self.assertIn("needs no exception", sources.check({"src/a.cpp": LICENCE})[0])
        finally:
            sources.LONG.clear()


if __name__ == "__main__":
    unittest.main()
