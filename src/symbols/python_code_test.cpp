// SPDX-License-Identifier: Apache-2.0
#include "symbols/python_code.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <string_view>

namespace gpusonde::symbols {
namespace {

std::vector<std::byte> BytesOf(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

// The line tables that each CPython made of one function, with a loop, a branch, a statement over two lines
// and a `with`; and what its own dis.findlinestarts() and co_lines() said about them: from this offset on,
// this line.
struct Example {
  PythonLineTable form;
  std::string_view table;
  std::map<uint32_t, int32_t> lines;
};

const std::array kExamples = {
    Example{PythonLineTable::kLnotab,
            "000104010c010801040102ff08020a012603",
            {{0, 3}, {4, 4}, {16, 5}, {24, 6}, {28, 7}, {30, 6}, {38, 8}, {48, 9}, {86, 12}}},
    Example{PythonLineTable::kRanges,
            "04010c0108010401020106ff02800a020a010aff040410fc0404",
            {{0, 3},
             {4, 4},
             {16, 5},
             {24, 6},
             {28, 7},
             {30, 6},
             {36, 0},
             {38, 8},
             {48, 9},
             {58, 8},
             {68, 12},
             {72, 8},
             {88, 12},
             {92, 0}}},
    Example{PythonLineTable::kLocations,
            "8000d80c0d8045dc0d1290318b58f2000305198801d80b0c88718b35d80c119061d81617f103011718f100010d198945"
            "f005030519"
            "f408000a0e886bd3091af0000105139861d8080d9011890a8805f703010513f008000c11804cf709010513f008000c11"
            "804cfa",
            {{0, 2},
             {2, 3},
             {6, 4},
             {34, 5},
             {46, 6},
             {50, 7},
             {52, 6},
             {64, 4},
             {66, 8},
             {90, 9},
             {100, 8},
             {116, 12},
             {120, 8},
             {136, 12},
             {140, 0},
             {146, 0}}},
};

TEST(PythonCode, EveryInstructionHasTheLineThatPythonSays) {
  for (const Example& example : kExamples) {
    const PythonCode code{.first_line = 2, .line_format = example.form, .line_table = BytesOf(example.table)};
    for (uint32_t offset = 0; offset < 180; offset += 2)
      EXPECT_EQ(code.LineOf(offset), std::prev(example.lines.upper_bound(offset))->second)
          << "form " << static_cast<int>(example.form) << ", offset " << offset;
  }
}

TEST(PythonCode, TablesOfNoiseGiveLinesAndNothingWorse) {
  std::mt19937 generator(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> table(generator() % 64);
    for (std::byte& byte : table) byte = static_cast<std::byte>(generator());
    for (const auto form :
         {PythonLineTable::kLnotab, PythonLineTable::kRanges, PythonLineTable::kLocations}) {
      const PythonCode code{
          .first_line = static_cast<int32_t>(generator()), .line_format = form, .line_table = table};
      EXPECT_GE(code.LineOf(static_cast<uint32_t>(generator() % 300)), 0);
      EXPECT_GE(code.LineOf(GPUSONDE_PYTHON_INSTRUCTION), 0);
    }
  }
}

// A process's memory made by hand.
class FakeMemory : public Memory {
 public:
  bool Read(uint64_t address, std::span<std::byte> out) const override {
    if (address >= bytes.size() || out.size() > bytes.size() - address) return false;
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(address), out.size(), out.begin());
    return true;
  }
  template <class T>
  void Put(uint64_t address, const T& value) {
    std::memcpy(&bytes.at(address), &value, sizeof value);
  }
  void PutText(uint64_t address, std::string_view text) {
    std::memcpy(&bytes.at(address), text.data(), text.size());
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(8192);
};

// One code object of 3.12 at 512, its strings and line table behind it.
class ReadPythonCodeTest : public testing::Test {
 protected:
  static constexpr uint64_t kCode = 512, kType = 64, kName = 1024, kQualifiedName = 1280, kFile = 1536,
                            kLines = 2048;
  static constexpr uint32_t kAscii = 1 << 2 | 1 << 5 | 1 << 6, kTwoBytes = 2 << 2 | 1 << 5;

  void SetUp() override {
    memory_.Put(kCode, uint64_t{1});
    memory_.Put(kCode + 8, kType);
    memory_.Put(kCode + layout_.walk.code_first_line, 41);
    memory_.Put(kCode + layout_.walk.code_name, kName);
    memory_.Put(kCode + layout_.code_qualified_name, kQualifiedName);
    memory_.Put(kCode + layout_.walk.code_file, kFile);
    memory_.Put(kCode + layout_.code_lines, kLines);
    memory_.Put(kQualifiedName + 16, uint64_t{10});
    memory_.Put(kQualifiedName + 32, kAscii);
    memory_.PutText(kQualifiedName + layout_.ascii_text, "Loader.run");
    memory_.Put(kFile + 16, uint64_t{4});
    memory_.Put(kFile + 32, kTwoBytes);
    memory_.PutText(kFile + layout_.compact_text, std::string_view("\xFC\0.\0p\0y\0", 8));
    memory_.Put(kLines + 16, uint64_t{2});
    memory_.PutText(kLines + 32, std::string_view("\xD8\0", 2));
  }
  Result<PythonCode> Read() const { return ReadPythonCode(memory_, layout_, kType, kCode, check_); }

  const PythonLayout& layout_ = *FindPythonLayout(0x030c);
  uint32_t check_ = gpusonde_python_check(kName, kFile, 41);
  FakeMemory memory_;
};

TEST_F(ReadPythonCodeTest, NamesFileAndLinesAreRead) {
  const Result<PythonCode> code = Read();
  ASSERT_TRUE(code.has_value()) << code.error().message;
  EXPECT_EQ(code->name, "Loader.run");
  EXPECT_EQ(code->file, "\u00FC.py");
  EXPECT_EQ(code->first_line, 41);
  EXPECT_EQ(code->LineOf(0), 42) << "the form of the first entry says: one line on";
}

TEST_F(ReadPythonCodeTest, MemoryUsedAgainForSomethingElseHasNoName) {
  memory_.Put(kCode + layout_.walk.code_first_line, 42);
  EXPECT_EQ(Read().error().code, ErrorCode::kNotFound) << "another function's code";
  check_ = gpusonde_python_check(kName, kFile, 42);
  EXPECT_TRUE(Read().has_value());
  memory_.Put(kCode + 8, kType + 8);
  EXPECT_EQ(Read().error().code, ErrorCode::kNotFound) << "an object of another type";
}

TEST_F(ReadPythonCodeTest, AModulesCodeIsNotTakenForAnotherModules) {
  memory_.Put(kCode + layout_.walk.code_file, kFile + 64);
  EXPECT_EQ(Read().error().code, ErrorCode::kNotFound) << "of the same name and line, in another file";
}

TEST_F(ReadPythonCodeTest, AFreedObjectHasNoName) {
  memory_.Put(kCode, uint64_t{0});
  EXPECT_EQ(Read().error().code, ErrorCode::kNotFound);
  memory_.Put(kCode, uint64_t{0x7f4f5b2f4b70});
  EXPECT_EQ(Read().error().code, ErrorCode::kNotFound) << "in a list of free blocks";
}

TEST_F(ReadPythonCodeTest, WhatIsNoStringIsNoName) {
  memory_.Put(kQualifiedName + 16, uint64_t{1} << 60);
  EXPECT_EQ(Read().error().code, ErrorCode::kCorrupt);
  memory_.Put(kQualifiedName + 16, uint64_t{10});
  memory_.Put(kQualifiedName + 32, 3u << 2 | 1u << 5);
  EXPECT_EQ(Read().error().code, ErrorCode::kCorrupt) << "characters of three bytes";
}

TEST_F(ReadPythonCodeTest, NoiseIsNeverMoreThanAnError) {
  std::mt19937 generator(2);
  for (int round = 0; round < 5000; ++round) {
    SetUp();
    for (int i = 0; i < 8; ++i)
      memory_.bytes[kCode + generator() % 2048] = static_cast<std::byte>(generator());
    const Result<PythonCode> code = Read();
    if (!code.has_value()) continue;
    EXPECT_LE(code->name.size(), 4096u * 4);
  }
}

}  // namespace
}  // namespace gpusonde::symbols
