// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfi.h"

#include <gtest/gtest.h>

#include <vector>

#include "unwind/byte_reader.h"
#include "unwind/testing/frame_builder.h"

namespace gpusonde::unwind {
namespace {

struct Found {
  uint64_t start, end;
};
std::vector<Found> Read(const FrameBuilder& builder, CfiFormat format, int64_t& malformed) {
  std::vector<Found> found;
  malformed = ForEachFde({builder.bytes, 0x5000, format}, [&](const Fde& fde) {
    found.push_back({fde.start, fde.end});
    return true;
  });
  return found;
}

TEST(Cfi, AnEntryOfEhFrameIsRelativeToItself) {
  FrameBuilder builder;
  const size_t cie = builder.Entry([&] {
    builder.Put(uint32_t{0});
    builder.Put8(1);
    for (const char c : {'z', 'R', '\0'}) builder.Put8(c);
    for (const int value : {1, 0x78, 16, 1, 0x1B})
      builder.Put8(value);  // 0x1B: relative to itself, 4 bytes, signed
  });
  const size_t fde = builder.Entry([&] {
    builder.Put(static_cast<uint32_t>(builder.bytes.size() - cie));
    builder.Put(int32_t{-0x1000});
    builder.Put(int32_t{0x80});
    builder.Put8(0);
  });
  builder.Put(uint32_t{0});  // the terminator
  builder.Put(~uint64_t{0});
  int64_t malformed = 0;
  const std::vector<Found> found = Read(builder, CfiFormat::kEhFrame, malformed);
  EXPECT_EQ(malformed, 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].start, 0x5000 + fde + 8 - 0x1000);
  EXPECT_EQ(found[0].end - found[0].start, 0x80u);
}

TEST(Cfi, AnEntryOfDebugFrameIsAbsolute) {
  FrameBuilder builder;
  builder.Entry([&] {
    builder.Put(~uint32_t{0});
    for (const int value : {4, 0, 8, 0, 1, 0x78, 16})
      builder.Put8(value);  // version 4, 8-byte addresses, no segments
  });
  builder.Entry([&] {
    builder.Put(uint32_t{0});
    builder.Put(uint64_t{0x401000});
    builder.Put(uint64_t{0x40});
  });
  int64_t malformed = 0;
  const std::vector<Found> found = Read(builder, CfiFormat::kDebugFrame, malformed);
  EXPECT_EQ(malformed, 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].start, 0x401000u);
  EXPECT_EQ(found[0].end, 0x401040u);
}

TEST(Cfi, CountsEntriesWithInvalidPointers) {
  FrameBuilder builder;
  builder.Entry([&] {
    builder.Put(uint32_t{0x12345678});  // back to before the section
    builder.Put(uint64_t{0});
  });
  builder.Entry([&] { builder.Put(uint32_t{4}); });  // to itself, which is not a CIE
  builder.Put(uint32_t{1000});                       // longer than the section
  int64_t malformed = 0;
  EXPECT_TRUE(Read(builder, CfiFormat::kEhFrame, malformed).empty());
  EXPECT_EQ(malformed, 3);
}

TEST(ByteReader, ReadsNumbersOfVariableLength) {
  const std::byte bytes[] = {std::byte{0xE5}, std::byte{0x8E}, std::byte{0x26}, std::byte{0x78},
                             std::byte{0x80}};
  ByteReader reader(bytes);
  EXPECT_EQ(reader.ReadUleb(), 624'485u);
  EXPECT_EQ(reader.ReadSleb(), -8);
  EXPECT_FALSE(reader.failed());
  EXPECT_EQ(reader.ReadUleb(), 0u);
  EXPECT_TRUE(reader.failed()) << "it goes on beyond the end";
  const std::vector<std::byte> endless(1000, std::byte{0x80});
  ByteReader bounded(endless);
  EXPECT_EQ(bounded.ReadUleb(), 0u);
  EXPECT_TRUE(bounded.failed());
  EXPECT_EQ(bounded.position(), size_t{ByteReader::kMaxLebBytes});
}

}  // namespace
}  // namespace gpusonde::unwind
