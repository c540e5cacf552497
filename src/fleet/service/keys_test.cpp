// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "fleet/service/testing/fleet.h"

namespace gpusonde::fleet {
namespace {

class KeysTest : public ::testing::Test {
 protected:
  std::string Path(const char* name) const { return folder_.path() + "/" + name; }

  TempFolder folder_;
};

TEST_F(KeysTest, ReadsTheKeyThatItMade) {
  const auto made = MakeKeyFile(Path("key"));
  ASSERT_TRUE(made.has_value()) << made.error().message;
  struct stat status{};
  ASSERT_EQ(::stat(Path("key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto read = ReadKeyFile(Path("key"));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->open(), *made);
}

TEST_F(KeysTest, NeverReplacesAKey) {
  ASSERT_TRUE(MakeKeyFile(Path("key")).has_value());
  EXPECT_EQ(MakeKeyFile(Path("key")).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(KeysTest, NothingRemainsOfAKeyThatTheDiskHasNoRoomFor) {
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);  // write(2) fails instead, as on a full disk
  const struct rlimit small{.rlim_cur = 40, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto made = MakeKeyFile(Path("key"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().message, ::testing::HasSubstr(Path("key")));
  EXPECT_FALSE(std::filesystem::exists(Path("key")));
  EXPECT_TRUE(MakeKeyFile(Path("key")).has_value());
}

TEST_F(KeysTest, RefusesAnotherFile) {
  for (const char* const text : {"", "gpusonde fleet key 1", "gpusonde fleet key 1 \n",
                                 "gpusonde fleet key 1 12\n", "gpusonde fleet ticket 1 12 12 12 12\n"}) {
    ASSERT_TRUE(WriteFileAtomically(Path("other"), text).has_value());
    EXPECT_EQ(ReadKeyFile(Path("other")).error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_EQ(ReadTicket(Path("other")).error().code, ErrorCode::kInvalidArgument) << text;
  }
}

TEST_F(KeysTest, ATicketAdmitsOneDeviceToOneFleet) {
  const FleetId fleet = testing::SmallFleet().Id();
  ASSERT_TRUE(WriteTicket(Path("ticket"), MakeTicket(fleet, testing::AuthorityKey())).has_value());
  const auto ticket = ReadTicket(Path("ticket"));
  ASSERT_TRUE(ticket.has_value()) << ticket.error().message;
  EXPECT_EQ(ticket->fleet, fleet);
  const SigningKey key(privacy::KeyBytes(ticket->seed.values()));
  const VerifyKey authority = testing::AuthorityKey().open();
  EXPECT_TRUE(IsAdmitted(fleet, ticket->device, key.open(), ticket->signature, authority));
  EXPECT_FALSE(IsAdmitted(fleet, ticket->device + 1, key.open(), ticket->signature, authority));
  EXPECT_FALSE(IsAdmitted(FleetId{}, ticket->device, key.open(), ticket->signature, authority));
  EXPECT_FALSE(IsAdmitted(fleet, ticket->device, authority, ticket->signature, authority));
  EXPECT_FALSE(IsAdmitted(fleet, ticket->device, key.open(), ticket->signature, key.open()));
}

}  // namespace
}  // namespace gpusonde::fleet
