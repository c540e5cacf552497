// SPDX-License-Identifier: Apache-2.0
#include "symbols/perf_map.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/testing/temp_folder.h"

namespace gpusonde::symbols {
namespace {

constexpr size_t kPlentyOfMaps = size_t{64} << 20;

class PerfMapTest : public testing::Test {
 protected:
  void Write(std::string_view text, int flags = O_APPEND) {
    const Fd file = *Open(path_, O_WRONLY | O_CREAT | flags);
    ASSERT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  bool Follow(size_t max_bytes = kPlentyOfMaps) { return map_.Follow(*Open(path_, O_RDONLY), max_bytes); }
  std::string NameAt(uint64_t address) {
    const auto symbol = map_.Find(address);
    return symbol.has_value() ? std::string(symbol->name) : "-";
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "perf-411.map";
  PerfMap map_;
};

TEST_F(PerfMapTest, NamesMayHoldSpacesAndAddressesAPrefix) {
  Write("7f0000001000 40 py::step:/app/train.py\n0x7f0000002000 0x10 LazyCompile:~f g\n");
  EXPECT_TRUE(Follow());
  EXPECT_EQ(NameAt(0x7f000000103f), "py::step:/app/train.py");
  EXPECT_EQ(NameAt(0x7f0000002000), "LazyCompile:~f g");
  EXPECT_EQ(NameAt(0x7f0000001040), "-");
  EXPECT_EQ(NameAt(0), "-");
}

TEST_F(PerfMapTest, TheLaterOfOverlappingEntriesWins) {
  Write("1000 100 old\n1080 10 newer\n0ff0 100 newest\n");
  Follow();
  EXPECT_EQ(NameAt(0x1088), "newest");
  EXPECT_EQ(NameAt(0x10f8), "old");
  Write("1000 100 appended\n");
  Follow();
  EXPECT_EQ(NameAt(0x1088), "appended");
}

TEST_F(PerfMapTest, MalformedLinesAreSkipped) {
  Write("zz 10 a\n1000 qq b\n1000 10\n\n2000 10 good\n");
  Follow();
  EXPECT_EQ(map_.size(), 1u);
  EXPECT_EQ(NameAt(0x2000), "good");
}

TEST_F(PerfMapTest, ReadsOnlyWhatWasAppended) {
  Write("1000 10 a\n");
  EXPECT_TRUE(Follow());
  EXPECT_FALSE(Follow()) << "nothing new";
  // What was read once is not read again: or else `a` would be called X now.
  const Fd file = *Open(path_, O_WRONLY);
  ASSERT_EQ(::pwrite(file.get(), "X", 1, 8), 1);
  Write("2000 10 b\n");
  EXPECT_TRUE(Follow());
  EXPECT_EQ(NameAt(0x1000) + NameAt(0x2000), "ab");
}

TEST_F(PerfMapTest, ALineWithoutItsEndIsReadWhenItIsWhole) {
  Write("1000 10 a\n2000 10 hal");
  Follow();
  EXPECT_EQ(NameAt(0x1000) + NameAt(0x2000), "a-");
  Write("f\n3000 10 c\n");
  Follow();
  EXPECT_EQ(NameAt(0x2000) + NameAt(0x3000), "halfc");
}

TEST_F(PerfMapTest, AFileThatShrankOrIsAnotherIsReadFromItsBegin) {
  Write("1000 10 a\n2000 10 b\n");
  Follow();
  Write("1000 10 c\n", O_TRUNC);
  EXPECT_TRUE(Follow());
  EXPECT_EQ(NameAt(0x1000) + NameAt(0x2000), "c-");
  ASSERT_EQ(::rename(path_.c_str(), (folder_ / "old").c_str()), 0);
  Write("1000 10 d\n2000 10 e\n");
  EXPECT_TRUE(Follow());
  EXPECT_EQ(NameAt(0x1000) + NameAt(0x2000), "de");
}

TEST_F(PerfMapTest, AFileThatWasRewrittenInTheSameSizeIsReadFromItsBegin) {
  Write("1000 10 a\n");
  // Two writes within a tick of the kernel's clock have the same time.
  const timespec long_ago[] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), long_ago, 0), 0);
  EXPECT_TRUE(Follow());
  EXPECT_FALSE(Follow());
  Write("2000 10 b\n", O_TRUNC);
  EXPECT_TRUE(Follow());
  EXPECT_EQ(NameAt(0x1000) + NameAt(0x2000), "-b");
}

TEST_F(PerfMapTest, ALargeFileIsReadInSeveralLooks) {
  std::string text;
  for (uint64_t i = 0; text.size() <= PerfMap::kMaxBytesPerLook; ++i)
    text += std::to_string(100000 + i) + " 1 a name of common length\n";
  Write(text + "fffff0 10 last\n");
  EXPECT_TRUE(Follow());
  EXPECT_EQ(NameAt(0xfffff0), "-");
  EXPECT_FALSE(map_.full());
  EXPECT_TRUE(Follow());
  EXPECT_EQ(NameAt(0xfffff0), "last");
}

TEST_F(PerfMapTest, ALineWithoutEndIsSkipped) {
  Write("1000 10 " + std::string(3 << 20, 'x') + "\n2000 10 b\n");
  Follow();
  EXPECT_EQ(NameAt(0x1000) + NameAt(0x2000), "-b");
}

TEST_F(PerfMapTest, KeepsWithinItsRoomAndReadsOnWhenThereIsMore) {
  constexpr size_t kRoom = size_t{1} << 20;
  std::string text;
  for (size_t i = 0; i < 200'000; ++i) text += "1 1 a\n";
  Write(text + "2000 10 last\n");
  EXPECT_TRUE(Follow(kRoom));
  EXPECT_TRUE(map_.full());
  EXPECT_LE(map_.bytes(), kRoom);
  EXPECT_GT(map_.bytes(), kRoom / 2);
  EXPECT_FALSE(Follow(kRoom));
  EXPECT_TRUE(Follow());
  EXPECT_FALSE(map_.full());
  EXPECT_EQ(map_.size(), 200'001u);
  EXPECT_EQ(NameAt(0x2000), "last");
}

}  // namespace
}  // namespace gpusonde::symbols
