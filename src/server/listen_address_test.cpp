// SPDX-License-Identifier: Apache-2.0
#include "server/listen_address.h"

#include <gtest/gtest.h>

#include <string_view>

namespace gpusonde::server {
namespace {

TEST(ListenAddress, ReadsWhatItWrites) {
  for (const char* text : {"127.0.0.1:7171", "0.0.0.0:80", "[::1]:0", "[fe80::1]:65535"})
    EXPECT_EQ(ParseListenAddress(text).value().ToText(), text);
  EXPECT_EQ(ParseListenAddress("localhost:1").value().ToText(), "127.0.0.1:1");
}

TEST(ListenAddress, RefusesAnInvalidAddressWithAnExample) {
  for (const char* text : {"", "7171", ":7171", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                           "127.0.0.1:7171x", "::1:7171", "[::1]", "[127.0.0.1]:1", "example.org:80"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_FALSE(address.has_value()) << text;
    EXPECT_EQ(address.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(address.error().message.find("127.0.0.1:7171"), std::string::npos);
  }
}

TEST(ListenAddress, EndsAtNoNul) {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {"127.0.0.1\0:80"sv, "127.0.0.1\0:x:80"sv, "[::1\0]:80"sv, "localhost\0:80"sv})
    EXPECT_FALSE(ParseListenAddress(text).has_value());
}

TEST(ListenAddress, KnowsWhatOnlyThisMachineReaches) {
  EXPECT_TRUE(ParseListenAddress("127.8.0.1:1").value().IsLoopback());
  EXPECT_TRUE(ParseListenAddress("[::1]:1").value().IsLoopback());
  EXPECT_TRUE(ParseListenAddress("[::ffff:127.0.0.1]:1").value().IsLoopback());
  EXPECT_TRUE(ParseListenAddress("[0:0::0001]:1").value().IsLoopback());
  EXPECT_FALSE(ParseListenAddress("0.0.0.0:1").value().IsLoopback());
  EXPECT_FALSE(ParseListenAddress("128.0.0.1:1").value().IsLoopback());
  EXPECT_FALSE(ParseListenAddress("[::ffff:10.0.0.1]:1").value().IsLoopback());
  EXPECT_FALSE((ListenAddress{"127.0.0.1.example", 1}).IsLoopback());
  EXPECT_FALSE((ListenAddress{"127.", 1}).IsLoopback());
  EXPECT_FALSE(ParseListenAddress("[::]:1").value().IsLoopback());
}

TEST(ListenAddress, KnowsWhatStandsForAllAddresses) {
  for (const char* text : {"0.0.0.0:1", "[::]:1", "[0:0::0]:1"})
    EXPECT_TRUE(ParseListenAddress(text).value().IsEvery()) << text;
  for (const char* text : {"127.0.0.1:1", "[::1]:1", "10.0.0.0:1"})
    EXPECT_FALSE(ParseListenAddress(text).value().IsEvery()) << text;
}

}  // namespace
}  // namespace gpusonde::server
