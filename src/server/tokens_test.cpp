// SPDX-License-Identifier: Apache-2.0
#include "server/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gpusonde::server {
namespace {

using testing::HasSubstr;

const std::string kZeros(64, '0');

std::string ErrorOf(std::string_view text) {
  const auto tokens = Tokens::Parse(text);
  return tokens.has_value() ? "" : tokens.error().message;
}

TEST(Tokens, TheHashIsSha256) {
  // `printf abc | sha256sum`
  const Token token{.name = "a", .scope = Scope::kIngest, .hash = HashOf("abc")};
  EXPECT_EQ(token.ToLine(),
            "a ingest sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Tokens, LinesAreReadAsTheyAreWritten) {
  const std::string secret = MakeToken().value();
  const Token token{.name = "node-1.rack_2", .scope = Scope::kMetrics, .hash = HashOf(secret)};
  const auto tokens =
      Tokens::Parse("# comment\n\n \t\r\n" + token.ToLine() + "\r\n  b  read\tsha256:" + kZeros);
  ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
  ASSERT_EQ(tokens->all().size(), 2u);
  const Token* const found = tokens->Find(HashOf(secret));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, "node-1.rack_2");
  EXPECT_EQ(found->scope, Scope::kMetrics);
  EXPECT_EQ(tokens->Find(HashOf(secret + "x")), nullptr);
}

TEST(Tokens, NewTokensDiffer) {
  const std::string token = MakeToken().value();
  EXPECT_EQ(token.size(), 68u);
  EXPECT_TRUE(token.starts_with("gps_"));
  EXPECT_NE(token, MakeToken().value());
}

TEST(Tokens, AnythingElseIsRefusedWithItsLineAndWithoutTheSecretInIt) {
  const std::string good = "a read sha256:" + kZeros + "\n";
  EXPECT_EQ(ErrorOf(good), "");
  const std::string secret = "4f6a0123456789abcdef0123456789abcdef";
  EXPECT_THAT(ErrorOf(good + secret + "\n"),
              testing::AllOf(HasSubstr("line 2 is not 'NAME SCOPE"), testing::Not(HasSubstr("4f6a"))));
  EXPECT_THAT(ErrorOf("a write sha256:" + kZeros), HasSubstr("line 1 has an unknown scope"));
  EXPECT_THAT(ErrorOf("a/b read sha256:" + kZeros), HasSubstr("line 1 has an invalid name"));
  EXPECT_THAT(ErrorOf(std::string(65, 'a') + " read sha256:" + kZeros), HasSubstr("an invalid name"));
  for (const std::string& hash : {"sha256:" + kZeros + "0", "sha256:" + kZeros.substr(1), kZeros,
                                  "sha256:" + kZeros.substr(1) + "G", "md5:" + kZeros})
    EXPECT_THAT(ErrorOf("a read " + hash), HasSubstr("no hash of the form")) << hash;
  EXPECT_THAT(ErrorOf(good + "a read sha256:1" + kZeros.substr(1)), HasSubstr("the name of another line"));
  EXPECT_THAT(ErrorOf(good + "b read sha256:" + kZeros), HasSubstr("the token of another line"));
  EXPECT_THAT(ErrorOf("#" + std::string(Tokens::kMaxBytes, ' ')), HasSubstr("more than 1600000 bytes"));
}

TEST(Tokens, AScopeAllowsWhatItSays) {
  using enum Scope;
  EXPECT_TRUE(Allows(kRead, kMetrics));
  for (const Scope needed : {kIngest, kMetrics, kRead, kAdmin}) {
    EXPECT_TRUE(Allows(kAdmin, needed));
    EXPECT_EQ(Allows(kIngest, needed), needed == kIngest);
    EXPECT_EQ(Allows(kMetrics, needed), needed == kMetrics);
    EXPECT_EQ(ParseScope(Name(needed)), needed);
  }
  EXPECT_FALSE(Allows(kRead, kIngest));
  EXPECT_FALSE(Allows(kRead, kAdmin));
  EXPECT_EQ(ParseScope("Read"), std::nullopt);
}

}  // namespace
}  // namespace gpusonde::server
