// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include "analyze/findings/collective_match.h"
#include "analyze/findings/job.h"

namespace gpusonde::analyze {
namespace {

// Ranks that each run kernels of one name.
struct Made {
  NameTable names;
  std::map<uint32_t, std::vector<ValueCount>> fine;
  std::vector<JobRank> ranks;

  explicit Made(size_t count) : ranks(count) {
    names.Add("ncclDevKernel_AllReduce_Sum_bf16_RING_LL");
    for (size_t i = 0; i < count; ++i) ranks[i].number = static_cast<int64_t>(i);
  }
  void Add(size_t rank, int64_t start_ns, int64_t end_ns) {
    ranks[rank].result.collectives.push_back({.name = 0, .start_ns = start_ns, .end_ns = end_ns});
  }
  Job job() const {
    return {.names = names, .kernels = {}, .libraries = {}, .fine = fine, .ranks = ranks, .metrics = {}};
  }
};

std::vector<Visit> RegularVisits(int64_t count, int64_t period_ns, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Visit> visits;
  int64_t end_ns = 0;
  for (int64_t i = 0; i < count; ++i) {
    end_ns += period_ns + static_cast<int64_t>(random() % 100'000);
    visits.push_back({end_ns - 50'000, end_ns});
  }
  return visits;
}

TEST(BestFit, FindsTheShiftAndTheOffsetOfATraceThatBeginsLater) {
  const std::vector<Visit> all = RegularVisits(400, 3'000'000, 1);
  for (const int64_t later : {0, 1, 5, 30}) {
    std::vector<Visit> other(all.begin() + later, all.end());
    for (Visit& visit : other) visit.end_ns += 7'000'000;
    const Fit fit = BestFit(all, other);
    EXPECT_EQ(fit.shift, -later);
    EXPECT_EQ(fit.offset_ns, 7'000'000);
    EXPECT_EQ(fit.residual_ns, 0);
  }
}

TEST(BestFit, OfShiftsThatFitEquallyWellTakesTheOneWithTheSmallestOffset) {
  std::vector<Visit> regular;
  for (int64_t i = 0; i < 100; ++i) regular.push_back({i * 1'000'000, i * 1'000'000 + 50'000});
  const std::vector<Visit> later(regular.begin() + 3, regular.end());
  EXPECT_EQ(BestFit(regular, later).shift, -3);
  EXPECT_EQ(BestFit(regular, later).offset_ns, 0);
}

TEST(CompareCollectives, RanksWithoutAGroupAreMatchedWithThoseTheyLeaveTogetherWith) {
  Made made(4);
  for (const size_t first : {0, 2})
    for (const Visit& visit : RegularVisits(200, 3'000'000, static_cast<uint32_t>(first) + 1)) {
      made.Add(first, visit.start_ns, visit.end_ns);
      made.Add(first + 1, visit.start_ns - 500, visit.end_ns + 700);
    }
  const std::vector<MatchedCollectives> matched = MatchCollectives(made.job());
  ASSERT_EQ(matched.size(), 2u);
  EXPECT_EQ(matched[0].ranks, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(matched[1].ranks, (std::vector<size_t>{2, 3}));
  EXPECT_EQ(matched[0].visits[0].size(), 200u);
}

TEST(CompareCollectives, AnOffsetNeverMovesEndsFurtherApart) {
  std::mt19937 random(1);
  int aligned = 0;
  for (int round = 0; round < 300; ++round) {
    Made made(2);
    const auto noise_ns = static_cast<int64_t>(1 + random() % 8'000);
    const auto offset_ns = static_cast<int64_t>(random() % 8'000);
    std::vector<int64_t> apart;
    for (int64_t i = 0; i < 5; ++i) {
      apart.push_back(offset_ns + static_cast<int64_t>(random()) % noise_ns - noise_ns / 2);
      made.Add(0, i * 1'000'000, i * 1'000'000 + 90'000);
      made.Add(1, i * 1'000'000, i * 1'000'000 + 90'000 + apart.back());
    }
    const CollectiveComparison compared = CompareCollectives(made.job());
    ASSERT_EQ(compared.lines.size(), 2u);
    const int64_t shift_ns = compared.clock_offsets[1].value();
    const auto residual = [&apart](int64_t by_ns) {
      std::vector<int64_t> distances;
      for (const int64_t one : apart) distances.push_back(std::abs(one - by_ns));
      return LowerMedianOf(distances);
    };
    EXPECT_EQ(compared.lines[1].clock_residual_ns, residual(shift_ns));
    if (shift_ns == 0) continue;
    ++aligned;
    EXPECT_LT(residual(shift_ns), residual(0));
    EXPECT_LT(residual(shift_ns), std::abs(shift_ns));
  }
  EXPECT_GT(aligned, 50);
  EXPECT_LT(aligned, 290);
}

}  // namespace
}  // namespace gpusonde::analyze
