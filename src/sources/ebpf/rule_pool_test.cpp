// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/rule_pool.h"

#include <gtest/gtest.h>

namespace gpusonde::ebpf {
namespace {

constexpr int32_t kPoolUser = 1000, kOtherPoolUser = 1001;

class RulePoolTest : public testing::Test {
 protected:
  // Rules with these offsets, from `first` on.
  static std::vector<unwind::Rule> Rules(int32_t first, size_t count) {
    std::vector<unwind::Rule> rules(count, unwind::RuleOfKind(GPUSONDE_CFA_REGISTER));
    for (unwind::Rule& rule : rules) rule.cfa_offset = first++;
    return rules;
  }
  Shortage Acquire(const std::vector<unwind::Rule>& rules, int32_t user_id) {
    return pool_.Acquire(rules, user_id, numbers_, added_);
  }

  RulePool pool_;
  std::vector<uint16_t> numbers_, added_;
};

TEST_F(RulePoolTest, FilesShareTheirRules) {
  ASSERT_EQ(Acquire(Rules(0, 3), kPoolUser), Shortage::kNone);
  const std::vector<uint16_t> first = numbers_;
  EXPECT_EQ(added_, first);
  ASSERT_EQ(Acquire(Rules(1, 3), kOtherPoolUser), Shortage::kNone);
  EXPECT_EQ(added_.size(), 1u);
  EXPECT_EQ(numbers_[0], first[1]);
  EXPECT_EQ(pool_.At(numbers_[2]).cfa_offset, 3);
}

TEST_F(RulePoolTest, ARuleIsThereWhileAFileUsesIt) {
  ASSERT_EQ(Acquire(Rules(0, 3), kPoolUser), Shortage::kNone);
  const std::vector<uint16_t> first = numbers_;
  ASSERT_EQ(Acquire(Rules(1, 3), kPoolUser), Shortage::kNone);
  pool_.Release(first);
  EXPECT_EQ(pool_.At(first[1]).cfa_offset, 1);
  ASSERT_EQ(Acquire(Rules(0, 3), kPoolUser), Shortage::kNone);
  EXPECT_EQ(added_.size(), 1u) << "only the one that nobody used";
}

TEST_F(RulePoolTest, AUserHasAShareAndTheUsersTogetherHaveOne) {
  EXPECT_EQ(Acquire(Rules(0, RulePool::kMaxPerUser + 1), kPoolUser), Shortage::kOfUser);
  ASSERT_EQ(Acquire(Rules(0, RulePool::kMaxPerUser), kPoolUser), Shortage::kNone);
  const std::vector<uint16_t> users = numbers_;
  EXPECT_EQ(Acquire(Rules(-1, 2), kPoolUser), Shortage::kOfUser);
  int32_t user = kPoolUser + 1;
  int32_t next = 1'000'000;
  Shortage shortage = Shortage::kNone;
  for (; shortage == Shortage::kNone; ++user, next += 10'000)
    shortage = Acquire(Rules(next, RulePool::kMaxPerUser), user);
  EXPECT_EQ(shortage, Shortage::kOfAll);
  EXPECT_EQ(user - kPoolUser, static_cast<int32_t>(RulePool::kMaxOfUsers / RulePool::kMaxPerUser) + 1);
  EXPECT_EQ(Acquire(Rules(-20'000, RulePool::kMaxOfUsers - 10), 0), Shortage::kNone) << "root's";
  pool_.Release(users);
  EXPECT_EQ(Acquire(Rules(50'000'000, RulePool::kMaxPerUser), kPoolUser), Shortage::kNone);
}

TEST_F(RulePoolTest, AllNumbersInUseIsAShortageOfAllAndChangesNothing) {
  ASSERT_EQ(Acquire(Rules(0, GPUSONDE_UNWIND_RULES - 1), 0), Shortage::kNone);
  EXPECT_EQ(Acquire(Rules(-2, 2), 0), Shortage::kOfAll);
  EXPECT_EQ(Acquire(Rules(-2, 2), kPoolUser), Shortage::kOfAll);
  EXPECT_EQ(Acquire(Rules(-1, 1), kPoolUser), Shortage::kNone);
}

}  // namespace
}  // namespace gpusonde::ebpf
