// SPDX-License-Identifier: Apache-2.0
#include "diagnose/watermark.h"

#include <gtest/gtest.h>

#include "base/testing/units.h"
#include "base/time.h"
#include "diagnose/testing/times.h"

namespace gpusonde::diagnose {
namespace {

constexpr int64_t kLateness = 1500 * kMs;
constexpr int64_t kRound = 250 * kMs;

// Rounds of 250 ms. Each delivers work up to its end, the oldest of it `behind_ns` before the round's start.
struct WatermarkTest : testing::Test {
  void Round(int64_t behind_ns) {
    watermark.Ingest(now_ns - behind_ns);
    now_ns += kRound;
    watermark.Ingest(now_ns);
    at_ns = watermark.Advance(now_ns, kLateness);
  }
  void Rounds(int count, int64_t behind_ns) {
    for (int i = 0; i < count; ++i) Round(behind_ns);
  }

  Watermark watermark;
  int64_t now_ns = kBegin;
  int64_t at_ns = 0;  // the watermark after the last round
};

TEST_F(WatermarkTest, WithoutWorkItIsTheAllowedLateness) {
  EXPECT_EQ(watermark.Advance(now_ns, kLateness), now_ns - kLateness);
}

TEST_F(WatermarkTest, WorkInOrderIsTrustedAfterSomeRounds) {
  Rounds(8, 0);
  EXPECT_EQ(at_ns, now_ns - kLateness) << "too few rounds";
  Round(0);
  EXPECT_EQ(at_ns, now_ns - 20 * kMs);
}

TEST_F(WatermarkTest, TheNextRoundMayBeAsOutOfOrderAsTheLastOnes) {
  for (const int64_t behind_ns : {10 * kMs, 100 * kMs, 400 * kMs}) {
    watermark = {};
    Rounds(20, behind_ns);
    EXPECT_LT(at_ns, now_ns - behind_ns) << behind_ns;
    EXPECT_GT(at_ns, now_ns - behind_ns - behind_ns / 2 - 30 * kMs) << behind_ns;
  }
}

TEST_F(WatermarkTest, OneLateRoundCountsUntilItIsForgotten) {
  Rounds(20, 0);
  Round(800 * kMs);
  Rounds(39, 0);
  EXPECT_LE(at_ns, now_ns - 800 * kMs);
  Round(0);
  EXPECT_EQ(at_ns, now_ns - 20 * kMs);
}

TEST_F(WatermarkTest, NeverGoesBack) {
  Rounds(20, 0);
  const int64_t before_ns = at_ns;
  Round(1000 * kMs);
  EXPECT_EQ(at_ns, before_ns);
}

// The agent polled late: its rows are older than the allowed lateness.
TEST_F(WatermarkTest, OldWorkWidensTheAllowedLateness) {
  watermark.Ingest(now_ns - 4 * kNanosPerSecond);
  EXPECT_EQ(watermark.Advance(now_ns, kLateness), now_ns - 5 * kNanosPerSecond);
}

TEST_F(WatermarkTest, OldWorkOfALyingProgramHoldsItUpForALimitedTime) {
  watermark.Ingest(1);
  EXPECT_GE(watermark.Advance(now_ns, kLateness), now_ns - 40 * kNanosPerSecond);
}

TEST_F(WatermarkTest, AProgramThatClaimsToBeInTheFutureDoesNotMoveItBeyondNow) {
  Rounds(20, 0);
  watermark.Ingest(now_ns + 3600 * kNanosPerSecond);
  now_ns += kRound;
  EXPECT_LE(watermark.Advance(now_ns, kLateness), now_ns);
}

TEST_F(WatermarkTest, AnotherAgentsOutOfOrdernessIsLearntAnew) {
  Rounds(20, 0);
  const int64_t before_ns = at_ns;
  watermark.ForgetOutOfOrderness();
  Rounds(4, 0);
  EXPECT_EQ(at_ns, before_ns) << "too few rounds";
  Rounds(10, 0);
  EXPECT_EQ(at_ns, now_ns - 20 * kMs);
}

}  // namespace
}  // namespace gpusonde::diagnose
