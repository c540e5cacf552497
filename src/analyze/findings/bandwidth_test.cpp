// SPDX-License-Identifier: Apache-2.0
#include "analyze/findings/bandwidth.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "importers/collectives.h"

namespace gpusonde::analyze {
namespace {

using importers::Operation;
using importers::ReportedCollective;
using importers::ReportedCollectives;

std::vector<BandwidthLine> Measure(const ReportedCollectives& reported) {
  const NameTable names;
  const std::map<uint32_t, std::vector<ValueCount>> fine;
  return MeasureBandwidth({.names = names,
                           .kernels = {},
                           .libraries = {},
                           .fine = fine,
                           .ranks = {},
                           .metrics = {},
                           .reported = &reported},
                          {});
}

ReportedCollectives OfGroup(int64_t ranks, std::vector<ReportedCollective> ended) {
  return {.groups = {{1, {.ranks = ranks, .label = "group"}}}, .ended = std::move(ended)};
}

TEST(MeasureBandwidth, OfAllRanksThatReportedTheWaitForTheLastIsTakenOut) {
  const auto lines = Measure(OfGroup(2, {{1, Operation::kAllReduce, 0, 0, 400'000, 1'000'000},
                                         {1, Operation::kAllReduce, 1, 0, 100'000, 1'000'000},
                                         {1, Operation::kAllReduce, 1, 1, 150'000, 1'000'000},
                                         {1, Operation::kAllReduce, 0, 1, 100'000, 1'000'000}}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].group, "group");
  EXPECT_EQ(lines[0].ranks, 2);
  EXPECT_EQ(lines[0].count, 2);
  EXPECT_TRUE(lines[0].skew_removed);
  EXPECT_EQ(lines[0].total_ns, 200'000);
  EXPECT_EQ(lines[0].skew_ns, 350'000);
  EXPECT_DOUBLE_EQ(*lines[0].algorithm_bytes_per_s, 1e10);
  EXPECT_DOUBLE_EQ(*lines[0].bus_bytes_per_s, 1e10);
}

TEST(MeasureBandwidth, OfSomeRanksThatReportedWaitsAreInIt) {
  const auto lines = Measure(OfGroup(3, {{1, Operation::kAllReduce, 0, 0, 400'000, 1'000'000},
                                         {1, Operation::kAllReduce, 0, 1, 100'000, 1'000'000}}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].count, 2);
  EXPECT_FALSE(lines[0].skew_removed);
  EXPECT_EQ(lines[0].total_ns, 500'000);
}

TEST(MeasureBandwidth, ARankThatTwoRecordingsHaveCountsOnce) {
  const ReportedCollective one{1, Operation::kBroadcast, 0, 0, 400'000, 1'000'000};
  const auto lines = Measure(OfGroup(2, {one, one}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].count, 1);
  EXPECT_FALSE(lines[0].skew_removed);
}

}  // namespace
}  // namespace gpusonde::analyze
