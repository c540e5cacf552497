// SPDX-License-Identifier: Apache-2.0
#include "flight_recorder/dump.h"

#include <gmock/gmock.h>

#include <string>

#include "flight_recorder/value.h"

namespace gpusonde::flight_recorder {
namespace {

using testing::HasSubstr;
using namespace std::string_literals;  // bytes of 0 within

// Little endian, four bytes.
std::string Number(size_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

std::string PickledText(const std::string& text) { return "X" + Number(text.size()) + text; }

// A dump whose frame 9 and entry 8 can be referred to: the entry is a scheduled call, whose frames are
// `frames`.
std::string PickledDump(const std::string& file, const std::string& frames, const std::string& entries) {
  const std::string frame = "}(" + PickledText("filename") + PickledText(file) + "uq\x09";
  const std::string entry = "}(" + PickledText("process_group") + "](" + PickledText("0") + "e" +
                            PickledText("state") + PickledText("scheduled") + PickledText("record_id") +
                            "K\x01" + PickledText("collective_seq_id") + "K\x05" +
                            PickledText("profiling_name") + PickledText("nccl:all_reduce") +
                            PickledText("frames") + "](" + frames + "euq\x08";
  return "\x80\x02}(" + PickledText("version") + PickledText("2.10") + PickledText("frame") + frame +
         PickledText("entry") + entry + PickledText("entries") + "](" + entries + "eu.";
}

std::string Repeated(const std::string& text, int times) {
  std::string repeated;
  for (int i = 0; i < times; ++i) repeated += text;
  return repeated;
}

// PyTorch's own pickler writes the name of a file once; a dump of 1.1 MB took 2 GB of memory.
TEST(DumpTest, ATextThatManyFramesReferToIsHeldOnce) {
  const auto dump = ParseDump(
      PickledDump(std::string(1'000'000, 'f'), Repeated("h\x09", 200), Repeated("h\x08", 100)), "rank_0", 0);
  ASSERT_TRUE(dump.has_value()) << dump.error().message;
  ASSERT_EQ(dump->entries.size(), 100u);
  const std::string_view first = dump->entries.front().frames.front().file;
  EXPECT_EQ(first, std::string(kMaxText, 'f'));
  for (const Entry& entry : dump->entries) {
    EXPECT_EQ(std::string_view(entry.operation), "all_reduce");
    ASSERT_EQ(entry.frames.size(), 200u);
    for (const Frame& frame : entry.frames) ASSERT_EQ(std::string_view(frame.file).data(), first.data());
  }
}

TEST(DumpTest, LongTextsAreCutBetweenCharacters) {
  const auto dump = ParseDump(PickledDump("f" + Repeated("é", kMaxText), "h\x09", "h\x08"), "rank_0", 0);
  ASSERT_TRUE(dump.has_value()) << dump.error().message;
  EXPECT_EQ(std::string_view(dump->entries.at(0).frames.at(0).file), "f" + Repeated("é", kMaxText / 2 - 1));
}

// 8 million frames, out of a file of 70 KB.
TEST(DumpTest, WhatIsReferredToCountsEachTime) {
  const auto dump =
      ParseDump(PickledDump("train.py", Repeated("h\x09", 256), Repeated("h\x08", 32'000)), "rank_0", 0);
  ASSERT_FALSE(dump.has_value());
  EXPECT_EQ(dump.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(dump.error().message, HasSubstr("rank_0: more than 8000000 values"));
}

}  // namespace
}  // namespace gpusonde::flight_recorder
