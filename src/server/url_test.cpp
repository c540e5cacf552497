// SPDX-License-Identifier: Apache-2.0
#include "server/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusonde::server {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(ParseTarget, DecodesPathAndQuery) {
  const Target target = ParseTarget("/a%20b+c?filter=x%26y%3D+z&empty=&bare&&from_us=1").value();
  EXPECT_EQ(target.path, "/a b+c");
  EXPECT_THAT(target.query, ElementsAre(Pair("filter", "x&y= z"), Pair("empty", ""), Pair("bare", ""),
                                        Pair("from_us", "1")));
}

TEST(ParseTarget, RefusesOtherFormsAndWhatDoesNotDecode) {
  for (const char* target : {"", "*", "http://localhost/", "a", "/#x", "/%", "/%4", "/%zz", "/?a=%g1",
                             "/?%=1", "/%FF", "/?a=%C0%AF", "/%00"})
    EXPECT_EQ(ParseTarget(target).error().code, ErrorCode::kInvalidArgument) << target;
}

TEST(ParseTarget, DecodesOnce) { EXPECT_EQ(ParseTarget("/%2541").value().path, "/%41"); }

TEST(EncodeQueryValue, IsDecodedToTheSame) {
  std::string all = "SELECT 'é' || \"a\" + 1 % 2 & 3 -- ?#=\n;";
  EXPECT_EQ(ParseTarget("/q?sql=" + EncodeQueryValue(all)).value().query.at(0).second, all);
}

TEST(HostWithoutPort, IsEmptyUnlessWellFormed) {
  EXPECT_EQ(HostWithoutPort("localhost"), "localhost");
  EXPECT_EQ(HostWithoutPort("localhost:7171"), "localhost");
  EXPECT_EQ(HostWithoutPort("[::1]:80"), "[::1]");
  EXPECT_EQ(HostWithoutPort("[::1]"), "[::1]");
  for (const char* host : {"", "localhost:x", "localhost:1:2", "[::1", "[::1]evil", "localhost:123456"})
    EXPECT_EQ(HostWithoutPort(host), "") << host;
}

}  // namespace
}  // namespace gpusonde::server
