// SPDX-License-Identifier: Apache-2.0
#include "diagnose/step_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/units.h"

namespace gpusonde::diagnose {
namespace {

class StepKindsTest : public testing::Test {
 protected:
  void Add(uint64_t type, int steps, int64_t length_ms, int64_t work) {
    for (; steps > 0; --steps) {
      kinds_.Add({.type = {1, type}, .start_ns = now_ns_, .end_ns = now_ns_ + length_ms * kMs, .work = work});
      now_ns_ += length_ms * kMs;
    }
  }

  StepKinds kinds_;
  int64_t now_ns_ = 0;
};

TEST_F(StepKindsTest, AreThoseWithATenthOfTheSteps) {
  Add(2, 60, 20, 19);
  Add(3, 5, 200, 7);
  Add(1, 40, 50, 51);
  const std::vector<model::StepKind> kinds = kinds_.Common();
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].steps, 60);
  EXPECT_EQ(kinds[0].mean_work(), 19);
  EXPECT_EQ(kinds[0].last_ns, 1'200 * kMs);
  EXPECT_EQ(kinds[1].mean_ns(), 50e6);
  EXPECT_EQ(kinds[1].first_ns, 2'200 * kMs);
}

TEST_F(StepKindsTest, OfOneLengthOrOneTypeAreNotWorthAWord) {
  EXPECT_THAT(kinds_.Common(), testing::IsEmpty());
  Add(1, 50, 100, 10);
  EXPECT_THAT(kinds_.Common(), testing::IsEmpty());
  Add(2, 50, 105, 11);
  EXPECT_THAT(kinds_.Common(), testing::IsEmpty());
}

TEST_F(StepKindsTest, AreBoundedAndTheRarestGo) {
  Add(1, 500, 10, 1);
  for (uint64_t type = 2; type < 300; ++type) Add(type, 1, 10, 1);
  Add(300, 500, 20, 2);
  EXPECT_EQ(kinds_.Common().size(), 2u);
}

}  // namespace
}  // namespace gpusonde::diagnose
