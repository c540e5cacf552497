// SPDX-License-Identifier: Apache-2.0
#include "symbols/perf_map.h"

#include <gtest/gtest.h>

namespace gpusonde::symbols {
namespace {

TEST(PerfMap, NamesMayHoldSpacesAndAddressesAPrefix) {
  const PerfMap map =
      PerfMap::Parse("7f0000001000 40 py::step:/app/train.py\n0x7f0000002000 0x10 LazyCompile:~f g\n");
  EXPECT_EQ(map.Find(0x7f000000103f)->name, "py::step:/app/train.py");
  EXPECT_EQ(map.Find(0x7f0000002000)->name, "LazyCompile:~f g");
  EXPECT_FALSE(map.Find(0x7f0000001040).has_value());
  EXPECT_FALSE(map.Find(0).has_value());
}

TEST(PerfMap, TheLaterOfOverlappingEntriesWins) {
  const PerfMap map = PerfMap::Parse("1000 100 old\n1080 10 newer\n0ff0 100 newest\n");
  EXPECT_EQ(map.Find(0x1088)->name, "newest");
  EXPECT_EQ(map.Find(0x10f8)->name, "old");
}

TEST(PerfMap, MalformedLinesAreCountedAndSkipped) {
  const PerfMap map = PerfMap::Parse("zz 10 a\n1000 qq b\n1000 10\n\n2000 10 good");
  EXPECT_EQ(map.size(), 1u);
  EXPECT_EQ(map.malformed_lines(), 3u);
  EXPECT_EQ(map.Find(0x2000)->name, "good");
}

TEST(PerfMap, OfManyShortLinesTakesBoundedMemory) {
  std::string text;
  for (size_t i = 0; i < PerfMap::kMaxEntries + 1000; ++i) text += "1 1 a\n";
  const PerfMap map = PerfMap::Parse(std::move(text));
  EXPECT_EQ(map.size(), PerfMap::kMaxEntries);
  EXPECT_EQ(map.malformed_lines(), 1000u);
  EXPECT_LT(map.bytes(), size_t{64} << 20);
}

}  // namespace
}  // namespace gpusonde::symbols
