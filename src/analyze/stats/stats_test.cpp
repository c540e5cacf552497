// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "analyze/stats/batch_means.h"
#include "analyze/stats/bounded_table.h"
#include "analyze/stats/fine_counts.h"
#include "analyze/stats/inference.h"
#include "analyze/stats/log_moments.h"
#include "analyze/stats/squares.h"

namespace gpusonde::analyze {
namespace {

TEST(FixedLog2, IsWithinAUnitOfTheLogarithmAndNeverFalls) {
  EXPECT_EQ(FixedLog2(-5), 0);
  EXPECT_EQ(FixedLog2(1), 0);
  EXPECT_EQ(FixedLog2(1024), 10 * kLogUnits);
  std::mt19937_64 random(1);
  int32_t last = 0;
  for (int64_t value = 1; value < (int64_t{1} << 60);
       value += 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(value))) {
    const int32_t log = FixedLog2(value);
    EXPECT_NEAR(log, std::log2(static_cast<double>(value)) * kLogUnits, 1.3) << value;
    EXPECT_GE(log, last);
    last = log;
  }
}

TEST(LogMoments, VarianceIsExactAndNeverZero) {
  LogMoments moments;
  for (const int32_t log : {100, 104, 96, 100}) moments.Add(log);
  EXPECT_DOUBLE_EQ(moments.Mean(), 100);
  EXPECT_NEAR(moments.Variance(), 32.0 / 3, 1e-9);
  LogMoments equal;
  for (int i = 0; i < 10; ++i) equal.Add(7);
  EXPECT_GT(equal.Variance(), 0);
}

TEST(PooledRatio, FindsAFactorWithinItsInterval) {
  std::mt19937_64 random(2);
  std::lognormal_distribution<double> noise(0, 0.1);
  PooledRatio pooled;
  for (const double scale : {5'000.0, 80'000.0, 1'000'000.0}) {
    LogMoments slow, fast;
    for (int i = 0; i < 400; ++i) {
      slow.Add(FixedLog2(std::llround(scale * 1.2 * noise(random))));
      fast.Add(FixedLog2(std::llround(scale * noise(random))));
    }
    pooled.Add(slow, fast);
  }
  const Ratio ratio = pooled.Finish();
  EXPECT_EQ(ratio.count, 1200);
  EXPECT_LT(ratio.low, 1.2);
  EXPECT_GT(ratio.high, 1.2);
  EXPECT_NEAR(ratio.ratio, 1.2, 0.02);
  EXPECT_LT(ratio.p, 1e-9);
}

TEST(PooledRatio, IsThatOfTheTimesWhereGroupsDiffer) {
  std::mt19937_64 random(3);
  // A kernel of 10 µs that takes four times as long and hardly varies, beside 190 µs of another that doesn't:
  // 230 µs instead of 200 µs.
  constexpr double kTrue = 1.15;
  int contained = 0;
  for (int pair = 0; pair < 200; ++pair) {
    PooledRatio pooled;
    for (const auto& [usual_ns, slower, varies] : {std::tuple{10'000., 4., 0.01}, {190'000., 1., 0.1}}) {
      std::lognormal_distribution<double> noise(0, varies);
      LogMoments slow, fast;
      for (int i = 0; i < 400; ++i) {
        slow.Add(FixedLog2(std::llround(usual_ns * slower * noise(random))));
        fast.Add(FixedLog2(std::llround(usual_ns * noise(random))));
      }
      pooled.Add(slow, fast);
    }
    const Ratio ratio = pooled.Finish();
    EXPECT_NEAR(ratio.ratio, kTrue, 0.03);
    contained += ratio.low < kTrue && kTrue < ratio.high;
  }
  EXPECT_GE(contained, 180);
}

TEST(PooledRatio, SkipsGroupsThatAreTooSmall) {
  PooledRatio pooled;
  LogMoments few, many;
  for (int i = 0; i < 29; ++i) few.Add(9000 + i);
  for (int i = 0; i < 300; ++i) many.Add(1000 + i);
  pooled.Add(few, many);
  EXPECT_TRUE(pooled.empty());
  EXPECT_EQ(pooled.Finish().p, 1);
}

TEST(Significant, IsBenjaminiAndHochberg) {
  // The example of their paper (1995, section 3.2): at 5 %, the four smallest of 15.
  const std::vector<double> p = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                                 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000};
  const std::vector<bool> significant = Significant(p);
  EXPECT_EQ(std::ranges::count(significant, true), 4);
  EXPECT_TRUE(significant[3]);
  EXPECT_FALSE(significant[4]);
  EXPECT_TRUE(Significant({}).empty());
}

TEST(SquaresBetween, IsTheTextbookSum) {
  // Groups {1, 3}, {5, 7, 9}, {}: means 2 and 7, mean of all 5: 2·9 + 3·4 = 30.
  const std::vector<Sum> groups = {{2, 4}, {3, 21}, {}};
  EXPECT_DOUBLE_EQ(SquaresBetween(groups), 30);
  // All squares: 16 + 4 + 0 + 4 + 16 = 40; within 10 of 3 degrees of freedom: 1 − (10/3)/(40/4).
  EXPECT_DOUBLE_EQ(VarianceExplained(30, 40, 5, 2), 1 - (10.0 / 3) / 10);
  EXPECT_EQ(VarianceExplained(40, 40, 2, 2), 0);
}

struct Counter {
  int64_t count = 0;
  void Merge(const Counter& other) { count += other.count; }
};

double ExactRobustVariation(std::vector<int64_t> values) {
  const auto median = [](std::vector<int64_t>& of) {
    std::ranges::sort(of);
    return of[(of.size() - 1) / 2];
  };
  const int64_t center = median(values);
  for (int64_t& value : values) value = std::abs(value - center);
  return 1.4826 * static_cast<double>(median(values)) / static_cast<double>(center);
}

TEST(FineCounts, VariationOfStableKernelsIsWithinOnePercent) {
  std::mt19937_64 random(1);
  for (const double median_ns : {2e3, 40e3, 300e3, 7e6, 9e9})
    for (const double variation : {0.002, 0.008, 0.023, 0.045}) {
      std::normal_distribution<double> draw(median_ns, median_ns * variation);
      std::vector<int64_t> values;
      model::Sketch sketch;
      for (int i = 0; i < 20'000; ++i) {
        const double outlier = i % 50 == 0 ? 3 : 1;
        values.push_back(std::llround(draw(random) * outlier));
        sketch.Add(values.back());
      }
      ASSERT_TRUE(IsStable(sketch));
      // Two ranks.
      FineCounts first(sketch), second(sketch);
      for (size_t i = 0; i < values.size(); ++i) (i % 3 == 0 ? first : second).Add(values[i]);
      std::vector<ValueCount> all = first.Finish();
      EXPECT_LE(all.size(), 4'096u + 200u);
      MergeCounts(all, second.Finish());
      uint64_t count = 0;
      for (const ValueCount& one : all) count += one.count;
      EXPECT_EQ(count, values.size());
      const double exact = ExactRobustVariation(values);
      EXPECT_NEAR(RobustVariation(all), exact, 0.01 * exact) << median_ns << " " << variation;
    }
}

TEST(FineCounts, AreNotForKernelsThatVaryMoreOrNotAtAllOften) {
  model::Sketch sketch;
  EXPECT_FALSE(IsStable(sketch));
  sketch.Add(1'000);
  EXPECT_FALSE(IsStable(sketch));
  for (int64_t value = 500; value < 1'500; ++value) sketch.Add(value);
  EXPECT_FALSE(IsStable(sketch));
}

TEST(BoundedTable, KeepsTheSameCompleteSumsInAnyOrder) {
  std::mt19937_64 random(3);
  std::vector<uint64_t> events;
  std::map<uint64_t, int64_t> expected;
  for (int i = 0; i < 50'000; ++i) {
    const uint64_t hash = MixBits(random() % 1'000);
    events.push_back(hash);
    ++expected[hash];
  }
  for (int order = 0; order < 4; ++order) {
    std::ranges::shuffle(events, random);
    BoundedTable<Counter> table(100);
    for (const uint64_t hash : events) {
      bool is_new = false;
      ++table.At(hash, is_new).count;
    }
    table.Finish();
    ASSERT_EQ(table.entries().size(), 100u);
    auto smallest = expected.begin();
    int64_t kept = 0;
    for (const auto& [hash, counter] : table.entries()) {
      EXPECT_EQ(hash, smallest->first);
      EXPECT_EQ(counter.count, smallest->second);
      kept += counter.count;
      ++smallest;
    }
    EXPECT_EQ(kept + table.other().count, 50'000);
  }
}

// The variance of the mean of made series, and the mean of its estimates.
struct TrueAndEstimated {
  double variance = 0;
  double estimate = 0;
};
// Each value is `memory` times the one before, plus noise.
TrueAndEstimated MeasureErrorOfMean(double memory) {
  constexpr int kRepeats = 400, kBatches = 128, kInBatch = 20;
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 100);
  double sum = 0, squares = 0;
  TrueAndEstimated result;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    std::vector<Batch> batches(kBatches);
    double value = 0, total = 0;
    for (Batch& batch : batches) {
      batch.count = kInBatch;
      for (int i = 0; i < kInBatch; ++i) {
        value = memory * value + noise(random);
        batch.sum += std::lround(value);
      }
      total += static_cast<double>(batch.sum);
    }
    const double mean = total / (kBatches * kInBatch);
    sum += mean;
    squares += mean * mean;
    result.estimate += ErrorOfMean(batches).variance / kRepeats;
  }
  result.variance = squares / kRepeats - sum / kRepeats * sum / kRepeats;
  return result;
}

TEST(ErrorOfMean, IsThatOfIndependentValues) {
  const TrueAndEstimated measured = MeasureErrorOfMean(0);
  EXPECT_NEAR(measured.variance, 100.0 * 100 / (128 * 20), 0.6);
  EXPECT_GT(measured.estimate, 0.9 * measured.variance);
  EXPECT_LT(measured.estimate, 1.6 * measured.variance);  // the larger of two estimates
}

TEST(ErrorOfMean, IsThatOfValuesThatDriftSlowly) {
  const TrueAndEstimated measured = MeasureErrorOfMean(0.95);
  EXPECT_GT(measured.variance, 1'000);  // 4 if they were independent
  EXPECT_GT(measured.estimate, 0.8 * measured.variance);
  EXPECT_LT(measured.estimate, 1.6 * measured.variance);
}

TEST(ErrorOfMean, IsUnknownOfOneBatch) {
  EXPECT_EQ(ErrorOfMean(std::vector<Batch>{{}, {.count = 9, .sum = 12}, {}}).freedom, 0);
  EXPECT_EQ(ErrorOfMean({}).freedom, 0);
}

}  // namespace
}  // namespace gpusonde::analyze
