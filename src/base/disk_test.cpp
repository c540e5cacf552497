// SPDX-License-Identifier: Apache-2.0
#include "base/disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusonde {
namespace {

TEST(DiskRoom, IsNamedInTheMegabytesOfTheOption) {
  const Status room = CheckDiskRoom("/", 900'000'000'000'000'000);
  ASSERT_FALSE(room.has_value());
  EXPECT_THAT(room.error().message, testing::HasSubstr(", and 900000000000 MB are kept in reserve"));
}

}  // namespace
}  // namespace gpusonde
