// SPDX-License-Identifier: Apache-2.0
#include "diagnose/detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "base/testing/units.h"
#include "base/time.h"
#include "diagnose/detector_table.h"

namespace gpusonde::diagnose {
namespace {

const Id128 kType{1, 1};

// Feeds the detector consecutive steps of log-normal length.
class DetectorTest : public testing::Test {
 protected:
  Detector::Verdict Step(double mean_ms, double spread, const Id128& type = kType) {
    const double length_ns = mean_ms * 1e6 * std::exp(spread * normal_(random_));
    const int64_t start_ns = now_ns_;
    now_ns_ += std::llround(length_ns);
    return detector_.Ingest({type, start_ns, now_ns_});
  }
  // Whether a step has this verdict within a second; it is the last one then.
  bool StepUntil(Detector::Verdict verdict, double mean_ms) {
    for (const int64_t until_ns = now_ns_ + kNanosPerSecond; now_ns_ < until_ns;)
      if (Step(mean_ms, 0.05) == verdict) return true;
    return false;
  }
  // Returns how many of the steps were within an incident.
  int Slow(int steps, double mean_ms, double spread = 0.05) {
    int slow = 0;
    for (int i = 0; i < steps; ++i) {
      Step(mean_ms, spread);
      if (detector_.open()) ++slow;
    }
    return slow;
  }

  Detector detector_;
  int64_t now_ns_ = kNanosPerSecond;
  int64_t detected_ns_ = 0;
  std::mt19937 random_{7};
  std::normal_distribution<double> normal_;
};

TEST_F(DetectorTest, RandomVariationIsNotSlow) {
  for (const double spread : {0.01, 0.05, 0.2}) {
    detector_ = {};
    EXPECT_EQ(Slow(3000, 50, spread), 0) << spread;
  }
}

TEST_F(DetectorTest, ASlowStartDoesNotHideALaterSlowdownOfItsSize) {
  EXPECT_EQ(Slow(75, 40, 0.6), 0);
  EXPECT_EQ(Slow(600, 20, 0.6), 0);
  EXPECT_GT(Slow(100, 40, 0.6), 50);
}

// Sentences sorted into batches of like length: in each cycle steps grow from a third to three times.
TEST_F(DetectorTest, StepsThatComeInCyclesAreNotSlowButTwiceAsLongOnesAre) {
  const auto slow = [this](int cycles, double mean_ms, int first = 0) {
    int count = 0;
    for (int i = 0; i < cycles; ++i) {
      std::vector<double> lengths(120);
      for (double& length : lengths) length = std::exp(0.4 * normal_(random_));
      std::ranges::sort(lengths);
      lengths.erase(lengths.begin(), lengths.begin() + std::exchange(first, 0));
      for (const double length : lengths) count += Slow(1, mean_ms * length, 0.02);
    }
    return count;
  };
  EXPECT_EQ(slow(200, 12, 70), 0);
  EXPECT_GT(slow(10, 24), 300);
}

// A host's clocks drift: for a while all steps are a little shorter, or longer. Their small variation within
// such a stretch says nothing about drift.
TEST_F(DetectorTest, StepsThatDriftAreNotSlowButTwiceAsLongOnesAre) {
  const auto slow = [this](int stretches, double factor) {
    int count = 0;
    for (int i = 0; i < stretches; ++i)
      count += Slow(40, 15 * factor * std::exp(0.1 * normal_(random_)), 0.02);
    return count;
  };
  int alarms = 0, seen = 0;
  for (int program = 0; program < 50; ++program) {
    detector_ = {};
    alarms += slow(30, 1) > 0;
    seen += slow(5, 2) > 100;
  }
  EXPECT_LE(alarms, 15) << "thresholds from blocks of eight steps alone give 41";
  EXPECT_EQ(seen, 50);
}

// Requests of any size: what each takes grows with its work, and large ones come in bunches.
TEST_F(DetectorTest, MoreWorkIsNotSlowButSlowWorkIs) {
  const auto request = [this](double factor, bool busy) {
    const double size =
        std::min(200.0, 4 * std::pow(1 - std::generate_canonical<double, 32>(random_), -1 / 1.2));
    const auto work = static_cast<int64_t>(busy ? 3 * size : size);
    const int64_t start_ns = now_ns_;
    now_ns_ += std::llround(factor * (kMs + 0.25 * kMs * static_cast<double>(work)) *
                            std::exp(0.05 * normal_(random_)));
    detector_.Ingest({kType, start_ns, now_ns_, work});
    return detector_.open();
  };
  int alarms = 0, seen = 0;
  for (int program = 0; program < 20; ++program) {
    detector_ = {};
    int slow = 0;
    for (int i = 0; i < 2'000; ++i) slow += request(1, i % 500 > 400) ? 1 : 0;
    alarms += slow > 0;
    slow = 0;
    for (int i = 0; i < 200; ++i) slow += request(1.5, false) ? 1 : 0;
    seen += slow > 150;
  }
  EXPECT_EQ(alarms, 0);
  EXPECT_EQ(seen, 20);
}

TEST_F(DetectorTest, AShiftByHalfIsDetectedWithinThreeStepsAndASmallOneWithinDozens) {
  Slow(200, 50);
  EXPECT_GE(Slow(3, 75), 1);
  detector_ = {};
  Slow(200, 50);
  EXPECT_EQ(Slow(3, 57), 0);
  EXPECT_GE(Slow(60, 57), 20);
}

TEST_F(DetectorTest, OneMuchLongerStepInFiveIsSlowAlthoughTheMedianStays) {
  Slow(200, 20);
  int slow = 0;
  for (int i = 0; i < 150; ++i)
    if (Step(i % 5 == 0 ? 100 : 20, 0.05) == Detector::Verdict::kSlow) ++slow;
  EXPECT_GT(slow, 50);
  EXPECT_NEAR(detector_.slowdown(), 1.8, 0.2);
}

// Two loaders deliver two batches at once: every other step has nothing to wait for.
TEST_F(DetectorTest, StepsOfTwoLengthsAreSlowOnceManyAreLongerThanAnyBefore) {
  const auto pairs = [this](int count, double long_ms) {
    int slow = 0;
    for (int i = 0; i < count; ++i) slow += Slow(1, long_ms, 0.1) + Slow(1, 1, 0.5);
    return slow;
  };
  ASSERT_EQ(pairs(300, 35), 0);
  const int64_t onset_ns = now_ns_;
  EXPECT_GE(pairs(12, 56), 1) << "within 700 ms";
  EXPECT_NEAR(static_cast<double>(detector_.onset_ns() - onset_ns) / kMs, 0, 80);
}

TEST_F(DetectorTest, AnUnfinishedStepIsSlowOnceItIsMuchLongerThanTheLongestOfMixedLengths) {
  for (int i = 0; i < 300; ++i) {
    Step(35, 0.1);
    Step(1, 0.5);
    Step(1, 0.5);
  }
  EXPECT_EQ(detector_.Overrun(now_ns_, now_ns_ + 100 * kMs), Detector::Verdict::kClean);
  EXPECT_EQ(detector_.Overrun(now_ns_, now_ns_ + 300 * kMs), Detector::Verdict::kSlow);
}

TEST_F(DetectorTest, OneLongStepIsNoIncident) {
  Slow(200, 20);
  EXPECT_EQ(Slow(1, 200), 0);
  EXPECT_EQ(Slow(100, 20), 0);
}

TEST_F(DetectorTest, OneLongStepIsAnIncidentIfTheGpuReportsAnErrorMeanwhile) {
  const auto step = [this](double ms) {
    const int64_t start_ns = std::exchange(now_ns_, now_ns_ + std::llround(ms * kMs));
    return detector_.Ingest({.type = kType, .start_ns = start_ns, .end_ns = now_ns_, .gpu_error = true});
  };
  Slow(300, 20);
  EXPECT_EQ(step(20), Detector::Verdict::kClean);
  EXPECT_NE(step(40), Detector::Verdict::kSlow) << "an error that costs little";
  const int64_t onset_ns = now_ns_;
  EXPECT_EQ(step(200), Detector::Verdict::kSlow);
  EXPECT_EQ(detector_.onset_ns(), onset_ns);
  EXPECT_GT(Slow(200, 20), 100);
  EXPECT_FALSE(detector_.open());
}

TEST_F(DetectorTest, AFewShortStepsThatLoseLittleAreNoIncident) {
  Slow(200, 7);
  EXPECT_EQ(Slow(4, 14), 0);
  EXPECT_EQ(Slow(300, 7), 0);
  EXPECT_GT(Slow(40, 14), 25) << "half a second of them is an incident";
}

// The hypervisor takes the CPU for 40 ms, and for shorter times before and after.
TEST_F(DetectorTest, OneLongStepAmongSlightlyLongerShortOnesIsNoIncident) {
  Slow(400, 7);
  int slow = 0;
  for (int i = 0; i < 10; ++i) {
    slow += Slow(20, 7.6);
    slow += Slow(1, 40);
    slow += Slow(20, 7.6);
    slow += Slow(300, 7);
  }
  EXPECT_EQ(slow, 0);
}

TEST_F(DetectorTest, AnIncidentEndsWhenStepsRecoverAndAnotherCanBegin) {
  Slow(200, 20);
  EXPECT_GT(Slow(200, 40), 190);
  const int64_t over_ns = now_ns_;
  bool closed = false;
  for (int i = 0; i < 400 && !closed; ++i) closed = Step(20, 0.05) == Detector::Verdict::kClosed;
  EXPECT_TRUE(closed);
  EXPECT_NEAR(static_cast<double>(detector_.recovered_ns() - over_ns) / kMs, 0, 500);
  EXPECT_EQ(Slow(200, 20), 0);
  EXPECT_GT(Slow(100, 40), 90);
}

// Thousands of short steps include single slow ones.
TEST_F(DetectorTest, ASingleSlowStepAfterwardsIsNotPartOfTheIncident) {
  Slow(3000, 3);
  EXPECT_GT(Slow(1000, 9), 900);
  const int64_t over_ns = now_ns_;
  for (int second = 0; second < 4; ++second) {
    Slow(330, 3);
    Slow(1, 9);
  }
  EXPECT_EQ(Step(3, 0.05), Detector::Verdict::kClean);
  EXPECT_NEAR(static_cast<double>(detector_.recovered_ns() - over_ns) / kMs, 0, 50);
}

TEST_F(DetectorTest, AnIncidentOfStronglyVaryingStepsEndsToo) {
  Slow(300, 20, 0.2);
  EXPECT_GT(Slow(200, 26, 0.2), 150);
  const int64_t over_ns = now_ns_;
  bool closed = false;
  for (int i = 0; i < 400 && !closed; ++i) closed = Step(20, 0.2) == Detector::Verdict::kClosed;
  EXPECT_TRUE(closed);
  EXPECT_NEAR(static_cast<double>(detector_.recovered_ns() - over_ns) / kMs, 0, 2000);
}

// One step in ten is longer anyway, so a short slow-down soon looks like the calm after it.
TEST_F(DetectorTest, AnIncidentLastsAtLeastAsLongAsItTookToDetect) {
  const auto irregular = [this](int steps, int every) {
    auto verdict = Detector::Verdict::kClean;
    for (int i = 1; i <= steps && verdict != Detector::Verdict::kClosed; ++i)
      if (verdict = Step(i % every == 0 ? 18 : 12, 0.01);
          verdict == Detector::Verdict::kSlow && detected_ns_ == 0)
        detected_ns_ = now_ns_;
    return verdict;
  };
  irregular(1000, 10);
  ASSERT_EQ(detected_ns_, 0);
  irregular(40, 2);
  ASSERT_GT(detected_ns_, 0);
  ASSERT_EQ(irregular(1000, 10), Detector::Verdict::kClosed);
  EXPECT_GE(detector_.recovered_ns(), detected_ns_);
}

TEST_F(DetectorTest, SlowStepsDoNotChangeTheBaseline) {
  Slow(200, 20);
  Slow(2000, 40);
  EXPECT_TRUE(detector_.open());
  EXPECT_NEAR(detector_.slowdown(), 2, 0.1);
}

TEST_F(DetectorTest, AnUnfinishedStepIsSlowOnceItIsMuchLongerThanAllOthers) {
  Slow(200, 100);
  EXPECT_EQ(detector_.Overrun(now_ns_, now_ns_ + 150 * kMs), Detector::Verdict::kClean);
  EXPECT_EQ(detector_.Overrun(now_ns_, now_ns_ + 600 * kMs), Detector::Verdict::kSlow);
  EXPECT_EQ(detector_.onset_ns(), now_ns_);
}

// It compiled, say, and its kernels make it a type of its own. What follows varies, and is 4 % slower.
TEST_F(DetectorTest, AStepThatOverranEndsTheIncidentEvenIfItIsOfATypeOfItsOwn) {
  const Id128 other{1, 2};
  Slow(400, 8);
  ASSERT_EQ(detector_.Overrun(now_ns_, now_ns_ + 300 * kMs), Detector::Verdict::kSlow);
  const int64_t end_ns = now_ns_ + 9000 * kMs;
  detector_.Ingest({other, now_ns_, end_ns});
  now_ns_ = end_ns;
  Slow(450, 8.3);
  EXPECT_FALSE(detector_.open());
  EXPECT_EQ(detector_.recovered_ns(), end_ns);
  EXPECT_NEAR(detector_.slowdown(), 12 / 2.9, 0.2) << "9 s for 8 ms, then three seconds of calm";
}

TEST_F(DetectorTest, ALargeSlowdownAfterASmallOneIsAnotherIncident) {
  Slow(200, 20);
  Slow(120, 24);
  ASSERT_TRUE(detector_.open());
  const int64_t large_ns = now_ns_;
  EXPECT_TRUE(StepUntil(Detector::Verdict::kLarge, 60));
  EXPECT_LE(now_ns_, large_ns + 300 * kMs) << "as soon as any";
  EXPECT_EQ(detector_.worse_since_ns(), large_ns);
}

TEST_F(DetectorTest, ALargeSlowdownJustAfterASmallOneMayBeItsOnset) {
  Slow(200, 20);
  Slow(40, 24);
  ASSERT_TRUE(detector_.open());
  const int64_t large_ns = now_ns_;
  ASSERT_TRUE(StepUntil(Detector::Verdict::kLateOnset, 60));
  EXPECT_LE(now_ns_, large_ns + 300 * kMs);
  EXPECT_EQ(detector_.worse_since_ns(), large_ns);
  detector_.MoveOnset(large_ns);
  EXPECT_EQ(detector_.onset_ns(), large_ns);
  EXPECT_NEAR(detector_.slowdown(), 3, 0.2);
  EXPECT_EQ(Step(60, 0.05), Detector::Verdict::kSlow);
}

// A window of which little is slow has a mean close to theirs.
TEST_F(DetectorTest, StepsThatWereALittleSlowByChanceAreNotPartOfALargeSlowdown) {
  Slow(200, 20, 0.01);
  Slow(20, 21.6, 0.01);
  const int64_t large_ns = now_ns_;
  while (!detector_.open() && now_ns_ < large_ns + kNanosPerSecond) Step(70, 0.01);
  ASSERT_TRUE(detector_.open());
  EXPECT_EQ(detector_.onset_ns(), large_ns);
}

TEST_F(DetectorTest, PulsesOfOneSizeAreOneIncident) {
  Slow(200, 20);
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 17 - i; ++j) EXPECT_NE(Step(60, 0.05), Detector::Verdict::kLarge) << i;
    Slow(100 + i, 20);
  }
  EXPECT_TRUE(detector_.open());
  EXPECT_LT(detector_.slowdown(), kDetector.large.ratio) << "small in the mean";
}

TEST_F(DetectorTest, AMuchLargerSlowdownWithinALargeOneMayBeAnotherIncident) {
  Slow(200, 20);
  Slow(300, 32);
  ASSERT_TRUE(detector_.open());
  const int64_t second_ns = now_ns_;
  bool worse = false;
  for (int i = 0; i < 60 && !worse; ++i) worse = Step(80, 0.05) == Detector::Verdict::kWorse;
  EXPECT_TRUE(worse);
  EXPECT_LT(detector_.onset_ns(), second_ns - kNanosPerSecond)
      << "it is the first incident's until it is split";
  EXPECT_NEAR(static_cast<double>(detector_.worse_since_ns() - second_ns) / kMs, 0, 700);
  detector_.Split(detector_.worse_since_ns(), detector_.worse_since_ns());
  EXPECT_TRUE(detector_.open());
  EXPECT_NEAR(static_cast<double>(detector_.onset_ns() - second_ns) / kMs, 0, 700);
}

TEST_F(DetectorTest, APauseIsTheLastTimeWithinAnIncidentWithoutSlowSteps) {
  Slow(300, 20);
  Slow(60, 40);
  EXPECT_EQ(detector_.LastPause(), std::nullopt) << "it began just now";
  const int64_t from_ns = now_ns_;
  Slow(50, 20);
  EXPECT_EQ(detector_.LastPause(), std::nullopt) << "nothing slow has followed: it may be the recovery";
  const int64_t to_ns = now_ns_;
  Slow(5, 40);
  const int64_t short_ns = now_ns_;
  Slow(10, 20);
  Slow(5, 40);
  const std::optional<TimeRange> pause = detector_.LastPause();
  ASSERT_TRUE(pause.has_value());
  EXPECT_EQ(pause->from_ns, from_ns);
  EXPECT_EQ(pause->to_ns, to_ns) << "half of a pause is none";
  ASSERT_TRUE(detector_.open());
  detector_.Split(from_ns, to_ns);
  EXPECT_EQ(detector_.onset_ns(), to_ns);
  EXPECT_EQ(detector_.recovered_ns(), from_ns);
  EXPECT_EQ(detector_.LastPause(), std::nullopt) << "it was the other incident's";
  EXPECT_NEAR(detector_.slowdown(), 1.5, 0.1) << "10 of 20 steps are slow since then";
  Slow(30, 20);
  Slow(1, 40);
  ASSERT_TRUE(detector_.LastPause().has_value());
  EXPECT_GT(detector_.LastPause()->from_ns, short_ns);
}

TEST_F(DetectorTest, DriftDuringWarmUpIsNotSlowButALargeSlowdownIs) {
  Slow(100, 8, 0.01);
  EXPECT_EQ(Slow(2000, 9.5, 0.01), 0);
  detector_ = {};
  Slow(100, 8, 0.01);
  EXPECT_GT(Slow(100, 16, 0.01), 50);
}

// A GPU that stalls for a moment: once doesn't matter, repeatedly does.
TEST_F(DetectorTest, RareMuchLongerStepsAreSlowButASingleOneIsNot) {
  Slow(500, 6);
  EXPECT_NE(Step(800, 0.05), Detector::Verdict::kSlow);
  EXPECT_EQ(Slow(1500, 6), 0);
  const int64_t onset_ns = now_ns_;
  EXPECT_NE(Step(800, 0.05), Detector::Verdict::kSlow);
  EXPECT_EQ(Slow(80, 6), 0);
  EXPECT_EQ(Step(800, 0.05), Detector::Verdict::kSlow);
  EXPECT_EQ(detector_.onset_ns(), onset_ns);
}

// A GPU that stalls more than once a second, in pulses of a second.
TEST_F(DetectorTest, AFewMuchLongerStepsInASecondAreSlowUnlessCleanOnesWereAsManyBefore) {
  const auto stalls = [this](int count) {
    int slow = 0;
    for (int i = 0; i < count; ++i) slow += Slow(1, 150, 0) + Slow(45, 14, 0.02);
    return slow;
  };
  Slow(2000, 14, 0.02);
  EXPECT_EQ(stalls(1), 0);
  Slow(300, 14, 0.02);
  EXPECT_GT(stalls(2), 20);
  EXPECT_NEAR(detector_.slowdown(), 1.2, 0.03);

  detector_ = {};
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(Slow(1, 150, 0) + Slow(90 + i % 3 * 20, 14, 0.02), 0) << i;
  }
  EXPECT_EQ(stalls(2), 0);
}

TEST_F(DetectorTest, ForgottenStepsHideNoSlowdownOfTheirSize) {
  EXPECT_EQ(Slow(400, 50), 0);
  const int64_t faster_ns = now_ns_;
  EXPECT_EQ(Slow(120, 25), 0);
  Detector remembers = detector_;
  detector_.ForgetBefore(faster_ns);
  EXPECT_GT(Slow(100, 45), 80);
  std::swap(detector_, remembers);
  EXPECT_EQ(Slow(100, 45), 0);
}

TEST_F(DetectorTest, LearnsAnewIfTooFewStepsAreLeft) {
  Slow(400, 50);
  const int64_t faster_ns = now_ns_;
  Slow(20, 25);  // twelve of them are held back
  detector_.ForgetBefore(faster_ns);
  EXPECT_EQ(Step(25, 0.05), Detector::Verdict::kLearning);
  EXPECT_EQ(Slow(200, 25), 0);
  EXPECT_GT(Slow(100, 50), 80);
}

// Training turns into validation during an incident.
TEST_F(DetectorTest, AnIncidentEndsWhenTheProgramDoesSomethingElse) {
  const Id128 other{1, 2};
  Slow(200, 50);
  Slow(20, 150);
  ASSERT_TRUE(detector_.open());
  const int64_t changed_ns = now_ns_;
  for (int i = 0; i < 60; ++i)
    EXPECT_EQ(Step(80, 0.05, other), Detector::Verdict::kSlow) << "too few steps of the new type";
  Step(150, 0.05);
  EXPECT_TRUE(detector_.open()) << "the interlude was too short";
  const int64_t over_ns = now_ns_;
  while (detector_.open() && now_ns_ < changed_ns + 60 * kNanosPerSecond) Step(80, 0.05, other);
  EXPECT_FALSE(detector_.open());
  EXPECT_EQ(detector_.recovered_ns(), over_ns);
  for (int i = 0; i < 100; ++i) Step(80, 0.05, other);
  EXPECT_TRUE(detector_.Knows(other)) << "it joins the baseline";
  EXPECT_FALSE(detector_.open());
  int slow = 0;
  for (int i = 0; i < 20; ++i) slow += Step(240, 0.05, other) == Detector::Verdict::kSlow ? 1 : 0;
  EXPECT_GT(slow, 10);
}

}  // namespace
}  // namespace gpusonde::diagnose
