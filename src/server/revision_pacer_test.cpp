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

TEST_F(RevisionPacerTest, AnswersTakeOneAndAHalfPercentOfACore) {
  Revision();
  Answer(60);
  Answer(40);
  cpu_ns_ += kNanosPerSecond;  // outside of polls
  Pass(6'599);
  EXPECT_EQ(Revision(), 1u);
  Pass(1);
  EXPECT_EQ(Revision(), 2u);
  Pass(1'000);
  EXPECT_EQ(Revision(), 3u) << "what was paid for is over";
}

TEST_F(RevisionPacerTest, ConcurrentAnswersCountOnce) {
  Revision();
  {
    const RevisionPacer::Answering first(pacer_);
    Answer(100);
    Pass(6'599);
    EXPECT_EQ(Revision(), 1u) << "while the first is being answered";
  }
  Pass(1);
  EXPECT_EQ(Revision(), 2u);
}

TEST_F(RevisionPacerTest, TheCostOfTheRenewalCounts) {
  pacer_.Revision([this] {
    cpu_ns_ += 100 * kNanosPerMilli;
    return ++newest_;
  });
  Pass(6'599);
  EXPECT_EQ(Revision(), 1u);
  Pass(1);
  EXPECT_EQ(Revision(), 2u);
}

TEST_F(RevisionPacerTest, ACostlyAnswerDelaysRenewalForFiveMinutesAtMost) {
  Revision();
  Answer(100'000);
  Pass(299'999);
  EXPECT_EQ(Revision(), 1u);
  Pass(1);
  EXPECT_EQ(Revision(), 2u);
}

}  // namespace
}  // namespace gpusonde::server
