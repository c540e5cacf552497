// SPDX-License-Identifier: Apache-2.0
#include "diagnose/parties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"
#include "diagnose/cause.h"

namespace gpusonde::diagnose {
namespace {

using testing::UnorderedElementsAre;

struct PartiesTest : testing::Test {
  static constexpr int64_t kSecond = kNanosPerSecond;
  const Id128 shell{1, 1}, train{1, 2}, loader{1, 3}, later{1, 4};
  Parties parties;

  void Tell(const Id128& id, int32_t pid, int32_t parent, int64_t started_s,
            std::optional<int64_t> exited_s = std::nullopt) {
    parties.Take({.process = id,
                  .pid = pid,
                  .parent_pid = parent,
                  .started_ns = started_s * kSecond,
                  .exited_ns = exited_s.transform([](int64_t seconds) { return seconds * kSecond; })});
  }
};

TEST_F(PartiesTest, AFamilyIsAProcessAndItsDescendantsAndNotThoseOfALaterOneWithItsPid) {
  Tell(shell, 10, 1, 1, 5);
  Tell(train, 11, 10, 2);
  Tell(loader, 12, 11, 3);
  Tell(later, 13, 10, 7);
  EXPECT_THAT(parties.FamilyOf(shell), UnorderedElementsAre(shell, train, loader));
}

TEST_F(PartiesTest, ItsParentIsWhoMadeIt) {
  Tell(train, 11, 1, 2);
  Tell(loader, 12, 11, 3);
  Tell(loader, 12, 1, 3);  // adopted
  EXPECT_THAT(parties.FamilyOf(train), UnorderedElementsAre(train, loader));
}

TEST_F(PartiesTest, ThoseThatEndedAreForgottenButForParentsOfTheLiving) {
  Tell(shell, 10, 1, 1, 5);
  Tell(train, 11, 10, 2);
  Tell(loader, 12, 11, 3, 6);
  parties.ForgetEndedBefore(100 * kSecond);
  EXPECT_EQ(parties.Find(loader), nullptr);
  EXPECT_NE(parties.Find(shell), nullptr);
  EXPECT_THAT(parties.FamilyOf(shell), UnorderedElementsAre(shell, train));
  Tell(train, 11, 10, 2, 150);
  parties.ForgetEndedBefore(400 * kSecond);
  EXPECT_EQ(parties.Find(train), nullptr);
  parties.ForgetEndedBefore(600 * kSecond);
  EXPECT_EQ(parties.Find(shell), nullptr);
}

TEST(Shares, NameAProcessWhereThereIsOne) {
  Shares shares;
  const Party make{.name = "cc1plus", .cgroup = "/batch", .pid = 7, .command = "cc1plus a.cpp"};
  AddShare(shares, make, 1);
  AddShare(shares, make, 2);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(NameParty(shares.begin()->first), "cc1plus (process 7: cc1plus a.cpp) in /batch");
  Party other = make;
  other.pid = 8;
  AddShare(shares, other, 4);
  AddShare(shares, make, 8);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(NameParty(shares.begin()->first), "cc1plus in /batch");
  EXPECT_EQ(shares.begin()->second, 15);
}

}  // namespace
}  // namespace gpusonde::diagnose
