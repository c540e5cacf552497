// SPDX-License-Identifier: Apache-2.0
#include "server/access.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "server/testing/tokens_file.h"

namespace gpusonde::server {
namespace {

TEST(Access, TokensComeAndGoWithTheirLines) {
  const TokensFile file({{"ada", Scope::kRead}});
  const std::shared_ptr<Access> access = file.Open();
  EXPECT_EQ(access->OfToken(TokensFile::Of("ada")).value()->name, "ada");
  EXPECT_FALSE(access->OfToken(TokensFile::Of("bob")).value().has_value());
  EXPECT_FALSE(access->OfToken("").value().has_value());
  // At once, though the file's time and size may be those from before.
  file.Write({{"bob", Scope::kIngest}});
  EXPECT_FALSE(access->OfToken(TokensFile::Of("ada")).value().has_value());
  EXPECT_EQ(access->OfToken(TokensFile::Of("bob")).value()->scope, Scope::kIngest);
}

TEST(Access, NobodyHasAccessWhileTheFileIsMissingOrMalformed) {
  const TokensFile file({{"ada", Scope::kRead}});
  const std::shared_ptr<Access> access = file.Open();
  file.WriteText("nonsense\n");
  EXPECT_EQ(access->OfToken(TokensFile::Of("ada")).error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(Access::Open(file.path()).has_value());
  std::filesystem::remove(file.path());
  EXPECT_FALSE(access->OfToken(TokensFile::Of("ada")).has_value());
  EXPECT_FALSE(access->SignIn(TokensFile::Of("ada"), Scope::kRead).has_value());
  file.Write({{"ada", Scope::kRead}});
  EXPECT_TRUE(access->OfToken(TokensFile::Of("ada")).value().has_value());
}

TEST(Access, ASessionLastsUntilItsEndItsSignOutOrItsTokens) {
  const TokensFile file({{"ada", Scope::kRead}, {"bob", Scope::kRead}});
  int64_t now_ns = 1;
  const auto access = Access::Open(file.path(), [&now_ns] { return now_ns; }).value();
  EXPECT_FALSE(access->SignIn("of nobody", Scope::kRead).value().caller.has_value());
  const std::string first = access->SignIn(TokensFile::Of("ada"), Scope::kRead).value().secret;
  const std::string second = access->SignIn(TokensFile::Of("ada"), Scope::kRead).value().secret;
  const std::string other = access->SignIn(TokensFile::Of("bob"), Scope::kRead).value().secret;
  EXPECT_NE(first, second);
  EXPECT_EQ(access->OfSession(first).value()->name, "ada");
  EXPECT_FALSE(access->OfToken(first).value().has_value()) << "a session's secret is no token";
  EXPECT_FALSE(access->OfSession(TokensFile::Of("ada")).value().has_value()) << "nor is a token a session's";
  access->SignOut(first);
  EXPECT_FALSE(access->OfSession(first).value().has_value());
  EXPECT_TRUE(access->OfSession(second).value().has_value());
  file.Write({{"bob", Scope::kRead}});
  EXPECT_FALSE(access->OfSession(second).value().has_value());
  file.Write({{"ada", Scope::kRead}, {"bob", Scope::kMetrics}});
  EXPECT_FALSE(access->OfSession(second).value().has_value()) << "it doesn't come back with the token";
  EXPECT_EQ(access->OfSession(other).value()->scope, Scope::kMetrics) << "the token's scope counts";
  const Access::SignedIn refused = access->SignIn(TokensFile::Of("bob"), Scope::kRead).value();
  EXPECT_EQ(refused.caller.value().name, "bob");
  EXPECT_EQ(refused.secret, "") << "its scope isn't enough";
  EXPECT_EQ(access->sessions(), 1u);
  now_ns += Access::kSessionNs;
  EXPECT_EQ(access->sessions(), 0u) << "nobody has asked since";
  EXPECT_FALSE(access->OfSession(other).value().has_value());
}

TEST(Access, SessionsOfATokenAreBoundedAndTheOldestEnds) {
  const TokensFile file({{"ada", Scope::kRead}, {"bob", Scope::kRead}});
  int64_t now_ns = 1;
  const auto access = Access::Open(file.path(), [&now_ns] { return ++now_ns; }).value();
  const std::string other = access->SignIn(TokensFile::Of("bob"), Scope::kRead).value().secret;
  std::string oldest, next;
  for (size_t i = 0; i < Access::kMaxSessionsPerToken + 1; ++i) {
    const std::string secret = access->SignIn(TokensFile::Of("ada"), Scope::kRead).value().secret;
    if (i == 0) oldest = secret;
    if (i == 1) next = secret;
  }
  EXPECT_EQ(access->sessions(), Access::kMaxSessionsPerToken + 1);
  EXPECT_FALSE(access->OfSession(oldest).value().has_value());
  EXPECT_TRUE(access->OfSession(next).value().has_value());
  EXPECT_TRUE(access->OfSession(other).value().has_value());
}

}  // namespace
}  // namespace gpusonde::server
