// SPDX-License-Identifier: Apache-2.0
#include "store/sql/gpu_sql.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/testing/units.h"
#include "base/time.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernels.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::store {
namespace {

constexpr Id128 kSqlProcess{5, 1}, kDevice{6, 1};

class GpuSql : public MemoryStoreTest {
 protected:
  void AddKernels(const std::vector<TimeRange>& times) {
    std::vector<model::Kernel> rows;
    for (const TimeRange& time : times) {
      model::Kernel& row = rows.emplace_back();
      row.process = kSqlProcess;
      row.device = kDevice;
      row.session = 1;
      row.start_ns = time.from_ns;
      row.end_ns = time.to_ns;
    }
    Add(model::kKernels, rows);
  }

  // Kernels of 1 µs that start within a full second, as the always-on agent stores them.
  void AddPack(int64_t second_ns, int64_t count) {
    model::KernelPack pack;
    pack.process = kSqlProcess;
    pack.device = kDevice;
    pack.session = 1;
    pack.start_ns = second_ns;
    pack.end_ns = second_ns + kSecond;
    pack.count = count;
    for (int64_t i = 0; i < count; ++i) {
      pack.offsets_ns.push_back(i * (kSecond / count));
      pack.durations_ns.push_back(1'000);
      pack.correlations.push_back(0);
    }
    Add(model::kKernelPacks, {pack});
  }

  int64_t Count(const SqlPart& rows) {
    SqlPart sql{"SELECT count(*) FROM ", {}};
    sql += rows;
    auto counted = store_->Query(sql.text, sql.parameters);
    EXPECT_TRUE(counted.has_value()) << counted.error().message;
    if (!counted.has_value() || !(*counted)->Next().value_or(false)) return -1;
    return (*counted)->Int64(0);
  }

  std::vector<TimeRange> Slices(const TimeRange& range, int64_t rows) {
    auto slices = ReadSlices(Asking(*store_), {}, range, rows);
    EXPECT_TRUE(slices.has_value()) << slices.error().message;
    return slices.value_or(std::vector<TimeRange>());
  }
};

TEST_F(GpuSql, SlicesAreAdjacentAndHoldNoMoreRowsThanTheyMay) {
  // An hour of one kernel a second with a burst of 20,000 in ten seconds, and one from a broken clock.
  std::vector<TimeRange> times;
  for (int64_t second = 0; second < 3'600; ++second)
    times.push_back({second * kSecond, second * kSecond + 1'000});
  times.push_back({int64_t{1} << 61, (int64_t{1} << 61) + 1});
  AddKernels(times);
  for (int64_t second = 1'800; second < 1'810; ++second) AddPack(second * kSecond, 2'000);
  constexpr TimeRange kRange{0, int64_t{1} << 62};
  constexpr int64_t kRows = 3'000;
  const std::vector<TimeRange> slices = Slices(kRange, kRows);
  ASSERT_FALSE(slices.empty());
  EXPECT_EQ(slices.back().to_ns, kRange.to_ns);
  int64_t all = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    EXPECT_EQ(slices[i].from_ns, i == 0 ? kRange.from_ns : slices[i - 1].to_ns);
    const int64_t rows = Count(GpuWork({}, slices[i], WorkIn::kStartsIn));
    EXPECT_LE(rows, kRows) << slices[i].from_ns << " to " << slices[i].to_ns;
    all += rows;
  }
  EXPECT_EQ(all, 3'601 + 20'000);
}

TEST_F(GpuSql, WhatFitsIsOneSlice) {
  AddKernels({{1, 2}, {3, 4}});
  EXPECT_THAT(Slices({0, 100}, 2), testing::SizeIs(1));
}

TEST_F(GpuSql, IdlenessDoesNotDependOnTheSlices) {
  Add(model::kProcesses, {{.process = kSqlProcess, .pid = 7, .name = "train"}});
  model::GpuSession session;
  session.process = kSqlProcess;
  session.session = 1;
  session.start_ns = kSecond;
  session.end_ns = 60 * kSecond;
  Add(model::kGpuSessions, {session});
  std::mt19937 random(7);
  std::vector<TimeRange> times;
  for (int i = 0; i < 300; ++i) {
    const int64_t start_ns = kSecond + static_cast<int64_t>(random() % 59'000) * 1'000'000;
    const int64_t length_ns =
        random() % 20 == 0 ? 1 * kSecond : static_cast<int64_t>(random() % 40) * 1'000'000;
    times.push_back({start_ns, start_ns + length_ns});
  }
  AddKernels(times);
  AddPack(20 * kSecond, 50);
  std::vector<model::Sample> samples;
  int64_t expected = 0;
  for (int i = 0; i < 2'000; ++i) {
    model::Sample& sample = samples.emplace_back();
    sample.time_ns =
        static_cast<int64_t>(random() % 62'000) * 1'000'000 + static_cast<int64_t>(random() % 2'000);
    sample.process = kSqlProcess;
    sample.weight_ns = 1;
    const auto runs = [&](const TimeRange& time) {
      return time.from_ns <= sample.time_ns && sample.time_ns < time.to_ns;
    };
    const bool observed = sample.time_ns >= kSecond && sample.time_ns < 60 * kSecond;
    const bool packed = sample.time_ns >= 20 * kSecond && sample.time_ns < 21 * kSecond &&
                        sample.time_ns % (kSecond / 50) < 1'000;
    expected += observed && !packed && std::ranges::none_of(times, runs);
  }
  Add(model::kSamples, samples);
  ASSERT_GT(expected, 100);
  const auto samples_in = [](const TimeRange& range) {
    return SqlPart{"(SELECT * FROM samples WHERE time_ns >= ? AND time_ns < ?)",
                   {range.from_ns, range.to_ns}};
  };
  for (const int64_t slice_rows : {10, 70, 1'000'000}) {
    auto parts =
        WhileGpuIdle(Asking(*store_), samples_in, {.from_ns = 0, .to_ns = 100 * kSecond}, slice_rows);
    ASSERT_TRUE(parts.has_value()) << parts.error().message;
    EXPECT_EQ(parts->size() > 1, slice_rows < 1'000);
    int64_t idle = 0;
    for (const SqlPart& part : *parts) idle += Count(part);
    EXPECT_EQ(idle, expected) << slice_rows << " rows a slice in " << parts->size() << " parts";
  }
}

}  // namespace
}  // namespace gpusonde::store
