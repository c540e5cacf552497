# SPDX-License-Identifier: Apache-2.0
"""Which sources clang-tidy looks at together, and how."""

import pathlib
import tempfile
import unittest

import tidy


class Batches(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def source(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_sources_that_define_the_same_name_are_apart(self):
        first = self.source("a.cpp", "constexpr std::array<int, 2> kSpin = {};\nint main() {}\n")
        second = self.source("b.cpp", "struct Spin {\n  int kSpin = 0;\n};\nint main() {}\n")
        third = self.source("c.cpp", "constexpr int kSpin{3};\n")
        fourth = self.source("d.cpp", "void Spin(int kSpin) {}\n")
        self.assertEqual(tidy.without_clashes([first, second, third, fourth]), [[first, second], [third, fourth]])

    def test_what_each_program_has_once_is_renamed_beside_others_only(self):
        first, second = self.source("a.cpp", "int main() {}\n"), self.source("b.cpp", "struct World {\n  int main;\n};\n")
        batch, alone = (tidy.Batch(tidy.ROOT / ".clang-tidy", (), paths) for paths in ([second, first], [first]))
        self.assertEqual(batch.included(0), f'#include "{second}"\n')
        self.assertEqual(batch.included(1), f'#define main Main1\n#include "{first}"\n#undef main\n')
        self.assertEqual(alone.included(0), f'#include "{first}"\n')

    def test_the_largest_batch_is_looked_at_first(self):
        small, large = (self.source(f"{bytes}.cpp", "/" * bytes) for bytes in (10, 1000))
        looked_at = []

        class Recorded(tidy.Batch):
            def is_clean(self, _rules):
                looked_at.append(self.sources)
                return True
        run = tidy.Run("", [Recorded(tidy.ROOT / ".clang-tidy", (), sources) for sources in ([small], [small, large])])
        for _ in range(2):
            run.look_at(run.work.get()[-1])
        self.assertEqual(looked_at, [[small, large], [small]])

    def test_options_that_change_the_meaning_of_sources_are_kept(self):
        kept, folders, output = tidy.options("c++ -DA=1 -Dx_EXPORTS -O2 -fPIC -fno-exceptions -Isrc -isystem lib -MD -MF x.d -o x.o -c x.cpp")
        self.assertEqual((kept[:3], folders, output), (("c++", "-DA=1", "-fno-exceptions"), [("-Isrc",), ("-isystem", "lib")], "x.o"))


if __name__ == "__main__":
    unittest.main()
