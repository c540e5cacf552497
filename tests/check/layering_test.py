# SPDX-License-Identifier: Apache-2.0
import unittest
from unittest import mock

import layering


def tree_with(extra):
    """A tree with every layer and these files."""
    files = {f"src/{layer}/plain.h": "" for layer in layering.ALLOWED}
    files |= {f"src/{layer}/uses.h": "".join(f'#include "{other}/plain.h"\n' for other in sorted(others))
              for layer, others in layering.ALLOWED.items()}
    files |= {f"src/{layer}/uses_test.cpp": "".join(f'#include "{other}/plain.h"\n' for other in sorted(others))
              for layer, others in layering.TESTS.items()}
    files |= {"src/model/tables/table.h": ""}
    return files | extra


class Layering(unittest.TestCase):
    def found(self, extra):
        return layering.check(tree_with(extra))

    def test_a_tree_that_keeps_the_rule_has_no_findings(self):
        self.assertEqual(self.found({"src/server/a.cpp": '#include "model/tables/table.h"\n#include <vector>\n'}), [])

    def test_a_lower_layer_may_not_include_a_higher_one(self):
        findings = self.found({"src/base/a.h": '#pragma once\n#include "model/plain.h"\n'})
        self.assertEqual(len(findings), 1)
        self.assertIn("src/base/a.h:2: base may not include model", findings[0])

    def test_what_a_layer_may_include_brings_its_own_along(self):
        self.assertIn("base", layering.closure("server"))
        self.assertNotIn("server", layering.closure("store"))

    def test_the_rule_has_no_cycles(self):
        for layer, allowed in layering.ALLOWED.items():
            for other in allowed:
                self.assertNotIn(layer, layering.closure(other), f"{layer} and {other} include each other")

    def test_an_allowed_layer_that_is_not_included_is_found(self):
        findings = self.found({"src/spool/uses.h": ""})
        self.assertEqual(findings, [
            "tests/check/layering.py: nothing in src/spool includes src/model; take that out of ALLOWED"])

    def test_what_only_tests_include_is_no_use_of_a_layer(self):
        findings = self.found({"src/spool/uses.h": "", "src/spool/a_test.cpp": '#include "model/plain.h"\n'})
        self.assertIn("nothing in src/spool includes src/model; take that out of ALLOWED", findings[0])

    @mock.patch.dict(layering.ALLOWED, {"spool/disk": {"spool"}})
    def test_a_folder_with_its_own_rule_is_a_layer(self):
        self.assertEqual(layering.layer_of("spool/disk/testing/a.h"), "spool/disk")
        self.assertEqual(layering.layer_of("spool/a.h"), "spool")
        self.assertEqual(layering.layer_of("model/tables/a.h"), "model")
        self.assertEqual(self.found({"src/spool/disk/a.h": '#include "spool/plain.h"\n'}), [])
        self.assertIn("src/spool/a.h:1: spool may not include spool/disk",
                      self.found({"src/spool/a.h": '#include "spool/disk/plain.h"\n'})[0])

    @mock.patch.dict(layering.TESTS, {"model": {"wire"}})
    def test_only_tests_may_include_what_is_theirs(self):
        line = '#include "wire/plain.h"\n'
        self.assertEqual(self.found({"src/model/a_test.cpp": line, "src/model/testing/a.h": line}), [])
        self.assertIn("src/model/a.cpp:1: model may not include wire", self.found({"src/model/a.cpp": line})[0])
        self.assertEqual(self.found({"src/model/uses_test.cpp": ""}), [
            "tests/check/layering.py: nothing in src/model includes src/wire; take that out of TESTS"])

    @mock.patch.dict(layering.TESTS, {"unwind": {"model"}})
    def test_the_picture_is_that_of_the_rule(self):
        page = layering.drawn("<!-- layers -->\n```\nold\n```\n")
        self.assertRegex(page, r"unwind +─▶ symbols, wire \(tests: model\)\n")
        self.assertEqual(self.found({layering.PAGE: page}), [])
        self.assertIn("make docs", self.found({layering.PAGE: page.replace("wire (", "base (")})[0])

    def test_headers_are_named_from_src(self):
        findings = self.found({"src/store/a.cpp": '#include "plain.h"\n'})
        self.assertIn('src/store/a.cpp:1: there is no "src/plain.h"', findings[0])

    def test_heavy_headers_stay_out_of_headers(self):
        line = "#include <nlohmann/json.hpp>\n"
        self.assertEqual(self.found({"src/store/a.cpp": line}), [])
        self.assertIn("src/store/a.h:1: <nlohmann/json.hpp> is heavy", self.found({"src/store/a.h": line})[0])
        self.assertIn("is heavy", self.found({"apps/gpusonde/a.h": "#include <CLI/CLI.hpp>\n"})[0])

    def test_headers_of_the_files_beside_them_may_be_heavy(self):
        heavy = {"src/store/a.h": "#include <nlohmann/json.hpp>\n", "src/store/a.cpp": '#include "store/a.h"\n',
                 "src/net/testing/b.h": "#include <nlohmann/json.hpp>\n",
                 "src/otlp/a_test.cpp": '#include "net/testing/b.h"\n'}
        self.assertEqual(self.found(heavy), [])
        own = {"src/store/c.h": '#include "store/a.h"\n', "src/store/c.cpp": '#include "store/c.h"\n'}
        self.assertEqual(self.found(heavy | own), [])
        for path, header in (("src/serve/d.cpp", "store/c.h"), ("apps/gpusonde/d.cpp", "store/a.h"),
                             ("src/otlp/d.cpp", "net/testing/b.h")):
            self.assertIn("is heavy", self.found(heavy | own | {path: f'#include "{header}"\n'})[0], path)

    def test_a_layer_without_a_rule_and_a_rule_without_a_layer_are_found(self):
        self.assertIn("src/attic: a new layer", self.found({"src/attic/a.h": ""})[0])
        files = {path: text for path, text in tree_with({}).items() if not path.startswith("src/wire/")}
        self.assertIn("there is no src/wire any more", layering.check(files)[0])

    def test_the_simulated_gpu_knows_nothing_of_ours_but_the_wire(self):
        self.assertEqual(self.found({"simgpu/cuda/a.cpp": '#include "simgpu/b.h"\n#include "wire/plain.h"\n'}), [])
        self.assertIn("simgpu/cuda/a.cpp:1: simgpu may include",
                      self.found({"simgpu/cuda/a.cpp": '#include "base/plain.h"\n'})[0])

    def test_apps_and_tests_may_include_anything(self):
        self.assertEqual(self.found({"apps/gpusonde/a.cpp": '#include "server/plain.h"\n',
                                     "tests/a.cpp": '#include "agent/plain.h"\n'}), [])


if __name__ == "__main__":
    unittest.main()
