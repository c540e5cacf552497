// SPDX-License-Identifier: Apache-2.0
#include "server/revision_pacer.h"

#include <gtest/gtest.h>

namespace gpusonde::server {
namespace {

class RevisionPacerTest : public testing::Test {
 protected:
  uint64_t Revision() {
    return pacer_.Revision([this] { return ++newest_; });
  }
  void Answer(int64_t cpu_ms) {
    const RevisionPacer::Answering answering(pacer_);
    cpu_ns_ += cpu_ms * kNanosPerMilli;
  }
  void Pass(int64_t ms) { now_ns_ += ms * kNanosPerMilli; }

  int64_t now_ns_ = 5 * kNanosPerSecond;
  int64_t cpu_ns_ = 0;
  uint64_t newest_ = 0;
  RevisionPacer pacer_{[this] { return now_ns_; }, [this] { return cpu_ns_; }};
};

TEST_F(RevisionPacerTest, WithoutCostItIsRenewedOnceASecond) {
  EXPECT_EQ(Revision(), 1u);
  Pass(999);
  EXPECT_EQ(Revision(), 1u);
  Pass(1);
  EXPECT_EQ(Revision(), 2u);
}

// Data is no older than polls have been coming for.
TEST_F(RevisionPacerTest, AtFirstCostlyAnswersDelayRenewalForAsLongAsTheyHaveBeenAskedFor) {
  EXPECT_EQ(Revision(), 1u);
  int64_t since_ms = 0;
  for (const int64_t delay_ms : {1'000, 1'000, 2'000, 4'000, 8'000}) {
    Answer(100'000);
    const uint64_t before = newest_;
    Pass(delay_ms - 1);
    EXPECT_EQ(Revision(), before) << since_ms;
    Pass(1);
    EXPECT_EQ(Revision(), before + 1) << since_ms;
    since_ms += delay_ms;
  }
  Answer(100'000);
  Pass(10'001);
  EXPECT_EQ(Revision(), 7u) << "after a pause it begins again";
}

// Polls have been coming for long.
class SettledRevisionPacerTest : public RevisionPacerTest {
 protected:
  SettledRevisionPacerTest() {
    for (int i = 0; i < 400; ++i) {
      Pass(1'000);
      settled_ = Revision();
    }
  }
  // Polls meanwhile, and expects no renewal.
  void PassWithout(int64_t ms) {
    for (; ms > 5'000; ms -= 5'000) {
      Pass(5'000);
      ASSERT_EQ(Revision(), settled_);
    }
    Pass(ms);
    ASSERT_EQ(Revision(), settled_);
  }

  uint64_t settled_ = 0;
};

TEST_F(SettledRevisionPacerTest, AnswersTakeOneAndAHalfPercentOfACore) {
  Answer(60);
  Answer(40);
  cpu_ns_ += kNanosPerSecond;  // outside of polls
  PassWithout(6'599);
  Pass(1);
  EXPECT_EQ(Revision(), settled_ + 1);
  Pass(1'000);
  EXPECT_EQ(Revision(), settled_ + 2) << "what was paid for is over";
}

TEST_F(SettledRevisionPacerTest, ConcurrentAnswersCountOnce) {
  {
    const RevisionPacer::Answering first(pacer_);
    Answer(100);
    PassWithout(6'599);  // while the first is being answered
  }
  Pass(1);
  EXPECT_EQ(Revision(), settled_ + 1);
}

TEST_F(SettledRevisionPacerTest, TheCostOfTheRenewalCounts) {
  Pass(1'000);
  settled_ = pacer_.Revision([this] {
    cpu_ns_ += 100 * kNanosPerMilli;
    return ++newest_;
  });
  PassWithout(6'599);
  Pass(1);
  EXPECT_EQ(Revision(), settled_ + 1);
}

TEST_F(SettledRevisionPacerTest, ACostlyAnswerDelaysRenewalForFiveMinutesAtMost) {
  Answer(100'000);
  PassWithout(299'999);
  Pass(1);
  EXPECT_EQ(Revision(), settled_ + 1);
}

}  // namespace
}  // namespace gpusonde::server
