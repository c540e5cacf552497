// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "analyze/findings/job.h"

namespace gpusonde::analyze {
namespace {

// Two collectives on the path: of the first all but its begin, which is before the path's; the second in
// part.
TEST(RankWaits, WhatThePathHasOfACollectiveBeforeItsLastRankCameIsThatRanks) {
  NameTable names;
  const uint32_t name = names.Add("ncclDevKernel_AllReduce");
  JobRank rank;
  rank.result.collectives = {{name, 900, 2'000}, {name, 5'000, 8'000}};
  const std::vector<JobRank> ranks = {rank};
  const std::map<uint32_t, std::vector<ValueCount>> fine;
  const Job job{.names = names, .kernels = {}, .libraries = {}, .fine = fine, .ranks = ranks, .metrics = {}};
  CriticalPath path{.begin_ns = 1'000,
                    .end_ns = 6'000,
                    .parts = {{PathKind::kHost, "", 1, 3'000},
                              {PathKind::kCommunication, "ncclDevKernel_AllReduce", 2, 2'000}},
                    .communication = {{5'000, 1'000}, {900, 1'000}}};
  const std::vector<CollectiveWait> waits = {{900, 300, 3}, {5'000, 2'500, 3}};
  AddRankWaits(job, 0, waits, path);
  ASSERT_EQ(path.parts.size(), 3u);
  EXPECT_EQ(path.parts[1].kind, PathKind::kRankWait);
  EXPECT_EQ(path.parts[1].name, "rank 3");
  EXPECT_EQ(path.parts[1].count, 2);
  EXPECT_EQ(path.parts[1].total_ns, 200 + 1'000);
  EXPECT_EQ(path.parts[2].total_ns, 800) << "of the communication that remains";
}

}  // namespace
}  // namespace gpusonde::analyze
