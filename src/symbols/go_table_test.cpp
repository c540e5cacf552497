// SPDX-License-Identifier: Apache-2.0
#include "symbols/go_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace gpusonde::symbols {
namespace {

// A table as Go 1.19 writes it: two functions from 0x401000 and 0x401040 on, up to 0x401060.
class Section {
 public:
  Section() {
    Put(0, 0xFFFFFFF0, 4);
    Put(6, 1, 1);
    Put(7, 8, 1);
    Put(8, 2, 8);
    Put(24, 0x401000, 8);
    Put(32, kNames, 8);
    Put(56, kDepths, 8);
    Put(64, kFunctions, 8);
    const std::string names = std::string("main.main") + '\0' + "runtime.goexit" + '\0';
    std::memcpy(&bytes[kNames], names.data(), names.size());
    // 0 for 4 bytes, 24 for 32, 0 again for 8; then it is at its end. Zigzag of +1, +24, -24.
    const uint8_t depths[] = {0, 2, 4, 48, 32, 47, 8, 0};
    std::memcpy(&bytes[kDepths], depths, sizeof depths);
    const uint32_t functions[] = {0, 20, 0x40, 40, 0x60};
    std::memcpy(&bytes[kFunctions], functions, sizeof functions);
    Put(kFunctions + 20 + 4, 0, 4);
    Put(kFunctions + 20 + 16, 1, 4);
    Put(kFunctions + 40 + 4, 10, 4);
  }
  void Put(size_t place, uint64_t value, size_t count) { std::memcpy(&bytes[place], &value, count); }
  std::optional<GoTable> Parse() const { return GoTable::Parse(bytes, 0x500000); }

  static constexpr size_t kNames = 80, kDepths = 112, kFunctions = 128;
  std::vector<std::byte> bytes{256};
};

using Rows = std::vector<std::pair<uint64_t, int32_t>>;

TEST(GoTable, SaysNamesPlacesAndDepthsOfFunctions) {
  const Section section;
  const GoTable table = section.Parse().value();
  ASSERT_EQ(table.size(), 2u);
  const GoTable::Function first = table.At(0), second = table.At(1);
  EXPECT_EQ(first.start, 0x401000u);
  EXPECT_EQ(first.end, 0x401040u);
  EXPECT_EQ(second.end, 0x401060u);
  EXPECT_EQ(table.NameOf(first), "main.main");
  EXPECT_EQ(table.NameOf(second), "runtime.goexit");
  Rows rows;
  const auto put = [&rows](uint64_t address, int32_t depth) {
    rows.emplace_back(address, depth);
    return true;
  };
  EXPECT_TRUE(table.ForEachDepth(first, put));
  EXPECT_EQ(rows, (Rows{{0x401000, 0}, {0x401004, 24}, {0x401024, 0}}));
  EXPECT_TRUE(table.ForEachDepth(second, put)) << "it has none, which is no fault";
  EXPECT_EQ(rows.size(), 3u);
}

TEST(GoTable, BeginsWhereTheLoaderSaysIfItDoesNotSayItself) {
  Section section;
  section.Put(24, 0, 8);
  EXPECT_EQ(section.Parse()->At(1).start, 0x500040u);
}

TEST(GoTable, IsNoneOfAnotherMachineOrVersion) {
  for (const auto& [place, value] :
       {std::pair<size_t, uint64_t>{0, 0xFB}, {7, 4}, {6, 4}, {8, 1'000'000'000}}) {
    Section section;
    section.Put(place, value, place == 8 ? 8 : 1);
    EXPECT_FALSE(section.Parse().has_value()) << place;
  }
}

TEST(GoTable, WithNonsenseInItHasNoFunctionOrNoName) {
  Section section;
  section.Put(Section::kFunctions + 8, 0xFFFFFFFF, 4);  // the first one's end
  section.Put(Section::kFunctions + 40 + 4, 0x7FFFFFFF, 4);
  const GoTable table = section.Parse().value();
  EXPECT_EQ(table.At(0).start, table.At(0).end);
  EXPECT_EQ(table.NameOf(table.At(1)), "");
}

TEST(GoTable, DepthsEndWithTheFunctionAlsoAtTheEndOfTheAddressSpace) {
  Section section;
  section.Put(24, 0xFFFF'FFFF'FFFF'FF00, 8);
  const uint8_t depths[] = {0, 2, 0x80, 0x80, 0x80, 0x80, 0x0F, 48, 4, 0};  // 0 for 0xF0000000 bytes, then 24
  std::memcpy(&section.bytes[Section::kDepths], depths, sizeof depths);
  const GoTable table = section.Parse().value();
  Rows rows;
  EXPECT_TRUE(table.ForEachDepth(table.At(0), [&rows](uint64_t address, int32_t depth) {
    rows.emplace_back(address, depth);
    return true;
  }));
  EXPECT_EQ(rows, (Rows{{0xFFFF'FFFF'FFFF'FF00, 0}}));
}

TEST(GoTable, CutAnywhereIsRefusedOrRead) {
  const Section whole;
  for (size_t size = 0; size < whole.bytes.size(); ++size) {
    const auto table = GoTable::Parse(std::span(whole.bytes).first(size), 0);
    if (!table.has_value()) continue;
    for (size_t i = 0; i < table->size(); ++i) {
      (void)table->NameOf(table->At(i));
      (void)table->ForEachDepth(table->At(i), [](uint64_t, int32_t) { return true; });
    }
  }
}

}  // namespace
}  // namespace gpusonde::symbols
