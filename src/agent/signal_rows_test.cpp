// SPDX-License-Identifier: Apache-2.0
#include "agent/signal_rows.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "model/batch_rows.h"

namespace gpusonde::agent {
namespace {

constexpr int64_t kBucketNs = GPUSONDE_SIGNAL_BUCKET_NS;
constexpr int64_t kEpochNs = 1'000'000'007;

Id128 ProcessOf(int32_t pid) { return {.high = 1, .low = static_cast<uint64_t>(pid)}; }

// A sum of pid 7's thread 8 in a bucket.
ebpf::SignalSum Sum(int64_t bucket, int64_t amount, gpusonde_signal signal = GPUSONDE_SIGNAL_RUNNING) {
  return {.start_ns = bucket * kBucketNs, .pid = 7, .tid = 8, .signal = signal, .amount = amount};
}

// Process 9 is not known.
std::vector<model::Signal> RowsOf(const std::vector<ebpf::SignalSum>& sums) {
  SignalRows joined;
  for (const ebpf::SignalSum& sum : sums) joined.Ingest(sum);
  model::BatchBuilder<decltype(model::kSignals)> rows{model::kSignals};
  const auto identify = [](int32_t pid) { return pid == 9 ? std::nullopt : std::optional(ProcessOf(pid)); };
  joined.Write({}, kEpochNs, identify, rows);
  joined.Write({}, kEpochNs, identify, rows);  // nothing a second time
  return model::RowsOf(model::kSignals, rows.Take());
}

TEST(SignalRows, JoinsBucketsInTheOrderOfTimeAndSumsThoseOfTheSameTime) {
  const std::vector<model::Signal> rows = RowsOf({Sum(5, 50), Sum(2, 20), Sum(3, 30), Sum(2, 1)});
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].start_ns, 2 * kBucketNs + kEpochNs);
  EXPECT_EQ(rows[0].process, ProcessOf(7));
  EXPECT_EQ(rows[0].tid, 8);
  EXPECT_EQ(rows[0].other, std::nullopt);
  EXPECT_EQ(rows[0].values, (std::vector<int64_t>{21, 30, 0, 50}));
}

TEST(SignalRows, BeginsAnotherRowAfterALongGap) {
  const std::vector<model::Signal> rows = RowsOf({Sum(1, 10), Sum(100, 20), Sum(101, 30)});
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].values, std::vector<int64_t>{10});
  EXPECT_EQ(rows[1].start_ns, 100 * kBucketNs + kEpochNs);
  EXPECT_EQ(rows[1].values, (std::vector<int64_t>{20, 30}));
}

TEST(SignalRows, KeepsSignalsAndCausesApartAndDropsUnknownProcesses) {
  ebpf::SignalSum behind = Sum(1, 10, GPUSONDE_SIGNAL_RUN_QUEUE);
  behind.other = 6;
  ebpf::SignalSum unknown = Sum(1, 10);
  unknown.pid = 9;
  const std::vector<model::Signal> rows =
      RowsOf({Sum(1, 20, GPUSONDE_SIGNAL_RUN_QUEUE), behind, Sum(1, 30), unknown});
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(rows[0].values, std::vector<int64_t>{30});
  EXPECT_EQ(rows[1].values, std::vector<int64_t>{20});
  EXPECT_EQ(rows[2].other, ProcessOf(6));
  EXPECT_EQ(rows[2].values, std::vector<int64_t>{10});
}

}  // namespace
}  // namespace gpusonde::agent
