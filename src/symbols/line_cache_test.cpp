// SPDX-License-Identifier: Apache-2.0
#include "symbols/line_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/testing/temp_folder.h"

namespace gpusonde::symbols {
namespace {

constexpr Id128 kBinary{1, 1}, kOther{2, 2};
const std::vector<SourceFrame> kInner = {{"inlined(int)", "/src/a b.cpp", 12, 3},
                                         {"outer", "/src/a.cpp", 40, 0}};
const std::vector<SourceFrame> kPlain = {{"f", "", 0, 0}};

class LineCacheTest : public testing::Test {
 protected:
  std::string File() const { return folder_ / ("lines/" + kBinary.ToHex()); }
  std::string Content() const {
    std::ifstream file(File());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(const std::string& text) const { std::ofstream(File()) << text; }

  TempFolder folder_;
  LineCache cache_{folder_ / "lines"};
};

TEST_F(LineCacheTest, WhatWasFoundIsThereTheNextTime) {
  EXPECT_TRUE(cache_.Load(kBinary).empty());
  cache_.Add(kBinary, {{100, kInner}});
  cache_.Add(kBinary, {{100, kPlain}, {~uint64_t{0}, kPlain}, {300, {}}});
  const LineCache later(folder_ / "lines");
  EXPECT_EQ(later.Load(kBinary), (LineCache::Lines{{100, kInner}, {~uint64_t{0}, kPlain}}))
      << "the first answer stays, and none isn't kept: debug information may come later";
  EXPECT_TRUE(later.Load(kOther).empty());
}

TEST_F(LineCacheTest, ATornOrForeignFileIsReadAsFarAsItParsesAndMended) {
  cache_.Add(kBinary, {{100, kInner}, {200, kPlain}});
  const std::string whole = Content();
  for (size_t size = 0; size < whole.size(); ++size) {
    Write(whole.substr(0, size));
    for (const auto& [offset, frames] : cache_.Load(kBinary)) {
      ASSERT_TRUE(offset == 100 || offset == 200) << size;
      ASSERT_EQ(frames, offset == 100 ? kInner : kPlain) << size;
    }
    cache_.Add(kBinary, {{100, kInner}, {200, kPlain}});
    ASSERT_EQ(Content(), whole) << size;
  }
  for (const std::string text :
       {"nonsense", "gpusonde lines 1\n5\t2000000000\n", "gpusonde lines 1\n5\t-1\n",
        "gpusonde lines 1\n5\t1\nx\t0\t\t\n", "gpusonde lines 2\n5\t1\n0\t0\t\tf\n"}) {
    Write(text);
    EXPECT_TRUE(cache_.Load(kBinary).empty()) << text;
  }
}

TEST_F(LineCacheTest, AFileGrowsToItsLimitOnly) {
  LineCache::Found many;
  for (uint64_t i = 0; i < 3000; ++i) many.push_back({i, {{std::string(1000, 'x'), "f.cpp", 1, 1}}});
  cache_.Add(kBinary, many);
  EXPECT_LE(std::filesystem::file_size(File()), size_t{2} << 20);
  EXPECT_GT(cache_.Load(kBinary).size(), 1500u);
}

TEST_F(LineCacheTest, TheOldestFilesGo) {
  const auto now = std::filesystem::file_time_type::clock::now();
  for (int i = 0; i < 40; ++i) {
    const std::string file = folder_ / ("lines/" + std::to_string(i));
    std::ofstream(file) << std::string(size_t{2} << 20, 'x');
    std::filesystem::last_write_time(file, now - std::chrono::hours(40 - i));
  }
  const LineCache later(folder_ / "lines");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "lines/0"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "lines/39"));
}

TEST_F(LineCacheTest, AFolderThatCannotBeHadKeepsNothing) {
  std::ofstream(folder_ / "file") << "x";
  for (const std::string& folder : {std::string(), folder_ / "file/lines"}) {
    const LineCache none(folder);
    none.Add(kBinary, {{100, kInner}});
    EXPECT_TRUE(none.Load(kBinary).empty());
  }
}

}  // namespace
}  // namespace gpusonde::symbols
