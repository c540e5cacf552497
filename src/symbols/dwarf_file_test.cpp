// SPDX-License-Identifier: Apache-2.0
#include "symbols/dwarf_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/demangle.h"
#include "symbols/elf_file.h"

namespace gpusonde::symbols {
namespace {

const DebugPlaces kHere{.roots = {""}};

using testing::ElementsAre;
using testing::EndsWith;
using testing::Field;
using testing::IsEmpty;

constexpr const char* kSource = R"(#include <cstdlib>
namespace shop {
inline __attribute__((always_inline)) int Price(int fruit) {
  return std::abs(fruit) * 7;
}
inline __attribute__((always_inline)) int Sum(int count) {
  int sum = 1;
  sum += Price(count);
  return sum;
}
__attribute__((noinline)) int Buy(int count) {
  const int sum = Sum(count);
  return sum + 1;
}
}
int main(int count, char**) {
  return shop::Buy(count);
}
)";

// A program of its own, built with the compiler that builds us.
class DwarfFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / "gpusonde-dwarf-XXXXXX";
    std::string name = folder_.string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::ofstream(folder_ / "shop.cpp") << kSource;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Run(const std::string& command) const {
    ASSERT_EQ(std::system(("cd " + folder_.string() + " && " + command).c_str()), 0) << command;
  }
  std::string program() const { return (folder_ / "shop").string(); }

  // The offsets of the function's bytes.
  std::vector<uint64_t> OffsetsOf(std::string_view demangled) const {
    const ElfFile file = ElfFile::Load(Open(program(), O_RDONLY).value(), "shop").value();
    std::vector<uint64_t> offsets;
    for (uint64_t offset = 0; offset < 0x4000; ++offset)
      if (const auto symbol = file.Find(offset); symbol.has_value() && Demangle(symbol->name) == demangled)
        offsets.push_back(offset);
    return offsets;
  }

  // Some byte of Buy is of Price, inlined into Sum, inlined into Buy.
  static void ExpectInlined(DwarfFile& file, const std::vector<uint64_t>& offsets) {
    ASSERT_FALSE(offsets.empty());
    std::vector<SourceFrame> deepest;
    for (const uint64_t offset : offsets) {
      std::vector<SourceFrame> frames = file.Find(offset);
      ASSERT_FALSE(frames.empty());
      EXPECT_EQ(Demangle(frames.back().function), "shop::Buy(int)");
      if (frames.size() > deepest.size()) deepest = std::move(frames);
    }
    ASSERT_GE(deepest.size(), 3u);
    const std::vector<SourceFrame> outer(deepest.end() - 3, deepest.end());
    EXPECT_THAT(outer, ElementsAre(Field(&SourceFrame::first_line, 3), Field(&SourceFrame::first_line, 6),
                                   Field(&SourceFrame::first_line, 11)));
    EXPECT_EQ(Demangle(outer[0].function), "shop::Price(int)");
    EXPECT_EQ(outer[0].line, 4);
    EXPECT_EQ(outer[1].line, 8);
    EXPECT_EQ(outer[2].line, 12);
    EXPECT_THAT(outer[0].file, EndsWith("/shop.cpp"));
  }

  std::filesystem::path folder_;
};

TEST_F(DwarfFileTest, TellsLinesAndWhatWasInlinedThere) {
  for (const std::string version : {"-gdwarf-4", "-gdwarf-5"}) {
    Run("g++ -O2 -g " + version + " -o shop shop.cpp");
    DwarfFile file = DwarfFile::Open(Open(program(), O_RDONLY).value(), program(), kHere).value();
    ExpectInlined(file, OffsetsOf("shop::Buy(int)"));
  }
}

TEST_F(DwarfFileTest, FindsWhatWasStripped) {
  Run("g++ -O2 -g -o shop shop.cpp");
  const std::vector<uint64_t> offsets = OffsetsOf("shop::Buy(int)");
  Run("objcopy --only-keep-debug shop shop.dbg && strip --strip-all shop && objcopy "
      "--add-gnu-debuglink=shop.dbg shop");
  EXPECT_THAT(OffsetsOf("shop::Buy(int)"), IsEmpty());
  DwarfFile file = DwarfFile::Open(Open(program(), O_RDONLY).value(), program(), kHere).value();
  ExpectInlined(file, offsets);
}

TEST_F(DwarfFileTest, ADebugFileOfAnotherBuildIsNotBelieved) {
  Run("g++ -O2 -g -o other shop.cpp -DOTHER && objcopy --only-keep-debug other shop.dbg");
  Run("g++ -O1 -g -o shop shop.cpp && strip --strip-all shop && objcopy --add-gnu-debuglink=shop.dbg shop");
  EXPECT_EQ(DwarfFile::Open(Open(program(), O_RDONLY).value(), program(), kHere).error().code,
            ErrorCode::kNotFound);
}

TEST_F(DwarfFileTest, SaysWhenThereIsNothing) {
  Run("g++ -O2 -s -o shop shop.cpp");
  EXPECT_EQ(DwarfFile::Open(Open(program(), O_RDONLY).value(), program(), kHere).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(DwarfFile::Open(Open(folder_ / "shop.cpp", O_RDONLY).value(), program(), kHere).error().code,
            ErrorCode::kCorrupt);
}

TEST_F(DwarfFileTest, ABytesBeyondAllCodeIsOfNoFunction) {
  Run("g++ -O2 -g -o shop shop.cpp");
  DwarfFile file = DwarfFile::Open(Open(program(), O_RDONLY).value(), program(), kHere).value();
  EXPECT_THAT(file.Find(0), IsEmpty());
  EXPECT_THAT(file.Find(~uint64_t{0}), IsEmpty());
}

}  // namespace
}  // namespace gpusonde::symbols
