// SPDX-License-Identifier: Apache-2.0
#include "sources/pods/message_reader.h"

#include <gtest/gtest.h>

#include "sources/pods/testing/message_writer.h"

namespace gpusonde::pods {
namespace {

TEST(MessageReader, FieldsOfEachType) {
  const std::string message = Bytes(1, "text") + Number(2, 1u << 20) + Varint(3 << 3 | 5) + "four" +
                              Varint(4 << 3 | 1) + "eight---" + Bytes(300, "");
  MessageReader reader(message);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 1u);
  EXPECT_EQ(reader.bytes(), "text");
  EXPECT_EQ(reader.number(), 0u);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.number(), 1u << 20);
  EXPECT_EQ(reader.bytes(), "");
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 3u);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 4u);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 300u);
  EXPECT_FALSE(reader.Next());
  EXPECT_FALSE(reader.malformed());
}

TEST(MessageReader, WhatIsCutOffIsMalformed) {
  const std::string message = Bytes(1, "text") + Number(2, 300) + Varint(3 << 3 | 1) + "eight---";
  for (size_t size = 1; size < message.size(); ++size) {
    MessageReader reader(std::string_view(message).substr(0, size));
    while (reader.Next()) {
    }
    EXPECT_EQ(reader.malformed(), size != 6 && size != 9) << size << " bytes";
    EXPECT_FALSE(reader.Next());
  }
}

TEST(MessageReader, NoFieldNumberGroupsAndLongNumbersAreMalformed) {
  for (const std::string& message :
       {std::string("\x00", 1), Varint(1 << 3 | 3), Varint(1 << 3 | 7), Varint(uint64_t{1} << 32),
        Varint(1 << 3) + std::string(11, '\xff'), Varint(1 << 3 | 2) + Varint(UINT64_MAX)}) {
    MessageReader reader(message);
    EXPECT_FALSE(reader.Next());
    EXPECT_TRUE(reader.malformed());
  }
}

}  // namespace
}  // namespace gpusonde::pods
