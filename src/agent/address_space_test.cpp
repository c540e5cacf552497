// SPDX-License-Identifier: Apache-2.0
#include "agent/address_space.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace gpusonde::agent {
namespace {

using Binary = symbols::BinaryTable::Binary;

TEST(AddressSpace, AMappingInTheMiddleLeavesBothEndsWithTheirOffsets) {
  const Binary old, young;
  AddressSpace space;
  space.Map({.start = 0x1000, .end = 0x5000, .file_offset = 0x10000, .binary = &old});
  space.Map({.start = 0x2000, .end = 0x3000, .file_offset = 0, .binary = &young});
  EXPECT_EQ(space.Find(0x1fff)->binary, &old);
  EXPECT_EQ(space.Find(0x2000)->binary, &young);
  const auto* tail = space.Find(0x3000);
  EXPECT_EQ(tail->binary, &old);
  EXPECT_EQ(0x3000 - tail->start + tail->file_offset, 0x12000u);
  EXPECT_EQ(space.Find(0x5000), nullptr);
  EXPECT_EQ(space.Find(0xfff), nullptr);
}

TEST(AddressSpace, AgreesWithAnArrayOfPagesUnderRandomMappings) {
  constexpr uint64_t kPages = 64;
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    AddressSpace space;
    std::array<Binary, 20> binaries;
    std::array<const Binary*, kPages> owner{};
    std::array<uint64_t, kPages> offset{};
    for (Binary& binary : binaries) {
      const uint64_t start = random() % kPages;
      const uint64_t end = start + 1 + random() % (kPages - start);
      space.Map({.start = start, .end = end, .file_offset = start * 100, .binary = &binary});
      for (uint64_t page = start; page < end; ++page) {
        owner[page] = &binary;
        offset[page] = start * 100 + (page - start);
      }
    }
    for (uint64_t page = 0; page < kPages; ++page) {
      const auto* mapping = space.Find(page);
      ASSERT_EQ(mapping == nullptr ? nullptr : mapping->binary, owner[page]);
      if (mapping != nullptr) {
        ASSERT_EQ(page - mapping->start + mapping->file_offset, offset[page]);
      }
    }
  }
}

TEST(AddressSpace, EveryChangeAdvancesTheGeneration) {
  AddressSpace space;
  const uint64_t before = space.generation();
  space.Map({.start = 1, .end = 2});
  EXPECT_NE(space.generation(), before);
  const uint64_t mapped = space.generation();
  space.Clear();
  EXPECT_NE(space.generation(), mapped);
  EXPECT_EQ(space.Find(1), nullptr);
}

// A JIT makes its code writable and executable in turns, a part of it at a time.
TEST(AddressSpace, AMappingThatIsKnownChangesNothing) {
  const Binary file, other;
  AddressSpace space;
  EXPECT_TRUE(space.Map({.start = 0x1000, .end = 0x5000, .file_offset = 0x1000}));
  EXPECT_TRUE(space.Map({.start = 0x6000, .end = 0x9000, .file_offset = 0x2000, .binary = &file}));
  const uint64_t before = space.generation();
  EXPECT_FALSE(space.Map({.start = 0x1000, .end = 0x5000, .file_offset = 0x1000}));
  EXPECT_FALSE(space.Map({.start = 0x2000, .end = 0x3000, .file_offset = 0}));
  EXPECT_FALSE(space.Map({.start = 0x6000, .end = 0x9000, .file_offset = 0x2000, .binary = &file}));
  EXPECT_FALSE(space.Map({.start = 0x8000, .end = 0x9000, .file_offset = 0x4000, .binary = &file}));
  EXPECT_EQ(space.generation(), before);
  EXPECT_EQ(space.size(), 2u);
  EXPECT_TRUE(space.Map({.start = 0x8000, .end = 0x9000, .file_offset = 0x3000, .binary = &file}));
  EXPECT_TRUE(space.Map({.start = 0x6000, .end = 0x7000, .file_offset = 0x2000, .binary = &other}));
  EXPECT_TRUE(space.Map({.start = 0x4000, .end = 0x5001}));
}

}  // namespace
}  // namespace gpusonde::agent
