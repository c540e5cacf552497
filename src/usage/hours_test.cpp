// SPDX-License-Identifier: Apache-2.0
#include "usage/hours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/testing/units.h"
#include "base/time.h"
#include "model/tables/containers.h"
#include "model/tables/devices.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernels.h"
#include "model/tables/metrics.h"
#include "model/tables/pod_devices.h"
#include "model/tables/pod_labels.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::usage {
namespace {

using store::kUsageHourNs;

constexpr size_t kEnough = size_t{1} << 20;
constexpr int64_t kMinuteNs = 60 * kSecond;
const SumBy kByOwner{.by = By::kOwner};

// A run of some hours on two GPUs, in the store as it grows.
class UsageHoursTest : public store::MemoryStoreTest {
 protected:
  static constexpr int64_t kBegin = 100 * kUsageHourNs + 7 * kMinuteNs;

  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    Run(1, kBegin);
    for (const uint64_t gpu : {0, 1})
      Come(model::kDevices, {{.device = {6, gpu}, .ordinal = static_cast<int32_t>(gpu), .name = "X"}});
  }
  // Rows that arrive now.
  template <class Table>
  void Come(const Table& table, const std::vector<typename Table::Row>& rows) {
    model::BatchBuilder builder(table);
    for (const auto& row : rows) builder.Append(row);
    const std::vector<model::Batch> batches{builder.Take()};
    changed_from_ns_ = std::min(changed_from_ns_, ChangedFrom(batches));
    ASSERT_TRUE(store_->Append(batches).has_value());
  }
  void Run(uint64_t number, int64_t from_ns) {
    Come(model::kSources, {{.source = {9, number}, .host = "node-1", .cpus = 2, .started_ns = from_ns}});
  }
  // A sample, the last sign of life.
  void LiveUntil(int64_t time_ns) {
    Come(model::kSamples, {{.time_ns = time_ns, .process = {5, 99}, .tid = 1}});
  }
  void Process(uint64_t number, int64_t from_ns, std::optional<int64_t> exited_ns = {}) {
    Come(model::kProcesses, {{.process = {5, number},
                              .source = {9, 1},
                              .pid = static_cast<int32_t>(number),
                              .name = "p",
                              .command = "python3 train.py",
                              .cgroup = "/slurm/job_" + std::to_string(number),
                              .user_id = 1000,
                              .started_ns = from_ns,
                              .exited_ns = exited_ns}});
  }
  void Observe(uint64_t number, int64_t from_ns, std::optional<int64_t> to_ns = {}, int32_t session = 1) {
    Come(model::kGpuSessions,
         {{.process = {5, number}, .session = session, .start_ns = from_ns, .end_ns = to_ns}});
  }
  void Work(uint64_t number, int64_t from_ns, int64_t to_ns, uint64_t gpu = 0) {
    Come(model::kKernels, {{.process = {5, number},
                            .device = {6, gpu},
                            .session = 1,
                            .start_ns = from_ns,
                            .end_ns = to_ns,
                            .name = "k"}});
  }
  void Update() {
    const Status updated = hours_.Update(*store_, std::exchange(changed_from_ns_, kNoneOfIt));
    ASSERT_TRUE(updated.has_value()) << updated.error().message;
  }
  // What is summed up is what the store says when it is read directly.
  void ExpectAsRead(const TimeRange& range, const SumBy& by = kByOwner) {
    const Usage sums = hours_.Sum(range, by);
    const auto direct =
        ReadUsage(*store_, {.from_ns = sums.range.from_ns, .to_ns = sums.range.to_ns, .filter = {}}, by);
    ASSERT_TRUE(direct.has_value()) << direct.error().message;
    ASSERT_EQ(sums.groups.size(), direct->groups.size()) << NameOf(by);
    EXPECT_EQ(sums.devices, direct->devices);
    EXPECT_EQ(sums.labels, direct->labels);
    for (const Group& expected : direct->groups) {
      const auto found = std::ranges::find(sums.groups, expected.name, &Group::name);
      ASSERT_NE(found, sums.groups.end()) << expected.name;
      EXPECT_EQ(found->processes, expected.processes) << expected.name;
      EXPECT_EQ(found->devices, expected.devices) << expected.name;
      EXPECT_EQ(found->use.held_ns, expected.use.held_ns) << expected.name;
      EXPECT_NEAR(found->use.busy_ns, expected.use.busy_ns, 100) << expected.name;
      EXPECT_NEAR(found->use.idle_ns, expected.use.idle_ns, 100) << expected.name;
      EXPECT_NEAR(found->use.unobserved_ns, expected.use.unobserved_ns, 100) << expected.name;
      EXPECT_NEAR(found->without_process_ns, expected.without_process_ns, 100) << expected.name;
      EXPECT_NEAR(found->SampledUtilization().value_or(-1), expected.SampledUtilization().value_or(-1), 1e-9)
          << expected.name;
    }
  }
  // Of all hours, and of every `step`th by itself.
  void ExpectAllAsRead(int64_t step = 1) {
    const TimeRange covered = hours_.covered();
    ExpectAsRead(covered);
    for (int64_t from_ns = covered.from_ns; from_ns < covered.to_ns; from_ns += step * kUsageHourNs)
      ExpectAsRead({from_ns, from_ns + kUsageHourNs});
  }

  int64_t changed_from_ns_ = kNoneOfIt;
  UsageHours hours_{kEnough};
};

TEST_F(UsageHoursTest, WithoutDataThereIsNothing) {
  store_ = store::CreateInMemory().value();
  Update();
  EXPECT_GE(hours_.covered().from_ns, hours_.covered().to_ns);
  EXPECT_TRUE(hours_.Sum({0, kUsageHourNs}, kByOwner).groups.empty());
}

TEST_F(UsageHoursTest, HoursSumUpToWhatTheStoreSays) {
  Process(1, kBegin + kSecond);
  Observe(1, kBegin + kSecond);
  Work(1, kBegin + 50 * kMinuteNs, kBegin + 130 * kMinuteNs);
  Process(2, kBegin + kSecond, kBegin + 200 * kMinuteNs);
  Observe(2, kBegin + kSecond, kBegin + 100 * kMinuteNs);
  Work(2, kBegin + 60 * kMinuteNs, kBegin + 90 * kMinuteNs);
  Work(2, kBegin + 60 * kMinuteNs, kBegin + 70 * kMinuteNs, 1);
  for (const int64_t minutes : {65, 66, 140})
    Come(model::kMetrics, {{.time_ns = kBegin + minutes * kMinuteNs,
                            .source = {9, 1},
                            .device = Id128{6, 0},
                            .process = Id128{5, 1},
                            .metric = "gpu.process.utilization",
                            .value = static_cast<double>(minutes) / 2}});
  LiveUntil(kBegin + 300 * kMinuteNs);
  Update();
  EXPECT_EQ(hours_.covered().from_ns, 100 * kUsageHourNs);
  EXPECT_EQ(hours_.covered().to_ns, kBegin + 300 * kMinuteNs);
  ExpectAllAsRead();
  for (const std::string_view by : kByNames) ExpectAsRead(hours_.covered(), FindBy(by).value());
}

TEST_F(UsageHoursTest, PodsAndTheirLabelsToo) {
  const std::string container(64, 'a');
  Come(model::kProcesses,
       {{.process = {5, 1},
         .source = {9, 1},
         .pid = 1,
         .cgroup = "/kubepods/besteffort/pod0f8ac1f2-5d3b-4c1e-9f5a-1b2c3d4e5f60/" + container,
         .started_ns = kBegin,
         .exited_ns = kBegin + 100 * kMinuteNs}});
  Observe(1, kBegin + kSecond);
  Work(1, kBegin + 50 * kMinuteNs, kBegin + 60 * kMinuteNs);
  Come(model::kPodDevices, {{.allocation = {7, 1},
                             .source = {9, 1},
                             .device = Id128{6, 0},
                             .device_name = "GPU-0",
                             .resource = "nvidia.com/gpu",
                             .pod = "train-7",
                             .pod_namespace = "ml",
                             .container = "worker",
                             .start_ns = kBegin}});
  LiveUntil(kBegin + 190 * kMinuteNs);
  Update();
  ExpectAllAsRead();
  // The names of what is summed already come late.
  Come(model::kContainers,
       {{.container = container, .name = "worker", .pod = "train-7", .pod_namespace = "ml"}});
  Come(model::kPodLabels, {{.container = container, .name = "team", .value = "vision"}});
  LiveUntil(kBegin + 250 * kMinuteNs);
  Update();
  ExpectAllAsRead();
  ExpectAsRead(hours_.covered(), {.by = By::kLabel, .label = "team"});
  EXPECT_EQ(hours_.Sum(hours_.covered(), {.by = By::kLabel, .label = "team"}).groups.at(0).name, "vision");
}

TEST_F(UsageHoursTest, RowsThatComeLateChangeTheirHours) {
  Process(1, kBegin + kSecond);
  Observe(1, kBegin + kSecond);
  Work(1, kBegin + 10 * kMinuteNs, kBegin + 20 * kMinuteNs);
  LiveUntil(kBegin + 400 * kMinuteNs);
  Update();
  const double before_ns = hours_.Sum(hours_.covered(), kByOwner).groups.at(0).use.busy_ns;
  Work(1, kBegin + 100 * kMinuteNs, kBegin + 110 * kMinuteNs);
  Process(2, kBegin + 30 * kMinuteNs, kBegin + 380 * kMinuteNs);
  Work(2, kBegin + 130 * kMinuteNs, kBegin + 131 * kMinuteNs);
  Update();
  EXPECT_GT(hours_.Sum(hours_.covered(), kByOwner).groups.at(0).use.held_ns, 0);
  EXPECT_NEAR(before_ns, 10 * kMinuteNs, 1);
  ExpectAllAsRead();
}

TEST_F(UsageHoursTest, ARestartOfTheAgentEndsWhatTheRunBeforeSaw) {
  Process(1, kBegin + kSecond);
  Observe(1, kBegin + kSecond);
  Work(1, kBegin + 10 * kMinuteNs, kBegin + 20 * kMinuteNs);
  LiveUntil(kBegin + 100 * kMinuteNs);
  Update();
  Run(2, kBegin + 290 * kMinuteNs);
  LiveUntil(kBegin + 470 * kMinuteNs);
  Update();
  EXPECT_EQ(hours_.Sum(hours_.covered(), kByOwner).groups.at(0).use.held_ns, 90 * kMinuteNs);
  ExpectAllAsRead();
  // The second run sees the process only hours after its begin: it held the GPU all that time.
  Work(1, kBegin + 465 * kMinuteNs, kBegin + 466 * kMinuteNs);
  Update();
  EXPECT_EQ(hours_.Sum(hours_.covered(), kByOwner).groups.at(0).use.held_ns, 270 * kMinuteNs);
  ExpectAllAsRead();
}

// Any rows in any order, with updates between them.
TEST_F(UsageHoursTest, UpdatesEndWhereReadingAnewDoes) {
  std::mt19937 random(20261126);
  const auto below = [&](int64_t bound) {
    return std::uniform_int_distribution<int64_t>(0, bound - 1)(random);
  };
  int64_t now_ns = kBegin + 30 * kMinuteNs;
  uint64_t processes = 0;
  for (int round = 0; round < 15; ++round) {
    now_ns += below(90) * kMinuteNs;
    for (int64_t i = below(4); i >= 0; --i) {
      const int64_t at_ns = std::max(kBegin, now_ns - (below(5) == 0 ? below(600) : below(30)) * kMinuteNs);
      if (below(3) == 0 || processes == 0) {
        Process(++processes, at_ns);
        Observe(processes, at_ns);
        Work(processes, at_ns + kSecond, at_ns + below(50) * kMinuteNs + 2 * kSecond, below(2) == 0 ? 0 : 1);
        continue;
      }
      const auto number = static_cast<uint64_t>(1 + below(static_cast<int64_t>(processes)));
      if (below(3) == 0)
        Process(number, kBegin + kSecond, at_ns);
      else if (below(3) == 0)
        Observe(number, at_ns - 10 * kMinuteNs, at_ns, static_cast<int32_t>(2 + round));
      else
        Work(number, at_ns, at_ns + below(20) * kMinuteNs, below(2) == 0 ? 0 : 1);
    }
    LiveUntil(now_ns);
    Update();
    ASSERT_EQ(hours_.covered().to_ns, now_ns);
    ExpectAllAsRead(5 + round % 7);
    if (HasFailure()) FAIL() << "in round " << round;
  }
}

TEST_F(UsageHoursTest, OldHoursAreForgottenBeyondTheBound) {
  UsageHours small(20'000);
  for (uint64_t number = 1; number <= 40; ++number) {
    const int64_t at_ns = kBegin + static_cast<int64_t>(number) * 30 * kMinuteNs;
    Process(number, at_ns, at_ns + 50 * kMinuteNs);
    Observe(number, at_ns);
    Work(number, at_ns, at_ns + kMinuteNs);
  }
  LiveUntil(kBegin + 1300 * kMinuteNs);
  ASSERT_TRUE(small.Update(*store_, kAllOfIt).has_value());
  EXPECT_LE(small.bytes(), 20'000u);
  EXPECT_TRUE(small.is_cut());
  EXPECT_GT(small.covered().from_ns, kBegin);
  EXPECT_LT(small.covered().from_ns, kBegin + 1200 * kMinuteNs) << "the newest are kept";
  const int64_t first_ns = small.covered().from_ns;
  small.SetMaxBytes(10'000);
  ASSERT_TRUE(small.Update(*store_, kNoneOfIt).has_value());
  EXPECT_LE(small.bytes(), 10'000u);
  EXPECT_GT(small.covered().from_ns, first_ns);
  std::swap(hours_, small);
  ExpectAllAsRead(3);
}

TEST(ChangedFrom, IsTheEarliestTimeThatARowSaysSomethingOf) {
  const auto batch = [](const auto& table, const auto& row) {
    model::BatchBuilder builder(table);
    builder.Append(row);
    return builder.Take();
  };
  EXPECT_EQ(ChangedFrom({}), kNoneOfIt);
  EXPECT_EQ(ChangedFrom({{batch(model::kSamples, model::Sample{.time_ns = 5})}}), kNoneOfIt);
  EXPECT_EQ(ChangedFrom({{batch(model::kKernels, model::Kernel{.start_ns = 9, .end_ns = 20, .name = {}}),
                          batch(model::kProcesses, model::Process{.started_ns = 7, .exited_ns = 30})}}),
            7);
  EXPECT_EQ(ChangedFrom({{batch(model::kKernels, model::Kernel{.start_ns = -9, .name = {}})}}), 0);
  EXPECT_EQ(ChangedFrom({{batch(model::kSources, model::Source{.started_ns = 9})}}), kAllOfIt);
}

}  // namespace
}  // namespace gpusonde::usage
