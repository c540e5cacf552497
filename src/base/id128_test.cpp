// SPDX-License-Identifier: Apache-2.0
#include "base/id128.h"

#include <gtest/gtest.h>

namespace gpusonde {
namespace {

TEST(Id128, HexRoundTripsAndAcceptsDashes) {
  const Id128 id{0x0123456789abcdef, 0xfedcba9876543210};
  EXPECT_EQ(id.ToHex(), "0123456789abcdeffedcba9876543210");
  EXPECT_EQ(Id128::FromHex(id.ToHex()), id);
  EXPECT_EQ(Id128::FromHex("01234567-89ab-cdef-fedc-ba9876543210"), id);
}

TEST(Id128, RejectsMalformedHex) {
  EXPECT_FALSE(Id128::FromHex("").has_value());
  EXPECT_FALSE(Id128::FromHex("0123456789abcdeffedcba987654321").has_value());
  EXPECT_FALSE(Id128::FromHex("0123456789abcdeffedcba98765432100").has_value());
  EXPECT_FALSE(Id128::FromHex("0123456789abcdefXedcba9876543210").has_value());
}

TEST(IdHasher, DependsOnWhereAPartEnds) {
  const auto hash = [](std::string_view a, std::string_view b) {
    return IdHasher("x").Add(a).Add(b).Finish();
  };
  EXPECT_NE(hash("ab", "c"), hash("a", "bc"));
  EXPECT_EQ(hash("ab", "c"), hash("ab", "c"));
  EXPECT_NE(IdHasher("x").Add("a").Finish(), IdHasher("y").Add("a").Finish());
}

TEST(IdHasher, IdsNeverChangeBetweenVersions) {
  // These ids join recordings of different days and machines.
  EXPECT_EQ(IdHasher("location").Add("ab12").Add(uint64_t{4096}).Finish().ToHex(),
            "db5001357a73d832ba0ab1d7e0239c23");
}

}  // namespace
}  // namespace gpusonde
