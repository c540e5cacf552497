// SPDX-License-Identifier: Apache-2.0
#include "store/queries/incident_strips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/testing/units.h"
#include "base/time.h"
#include "model/metric_catalogue.h"
#include "model/tables/devices.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/incidents.h"
#include "model/tables/metrics.h"
#include "model/tables/processes.h"
#include "model/tables/signals.h"
#include "model/tables/steps.h"
#include "store/queries/incident_query.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::store {
namespace {

using model::Metric;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

constexpr Id128 kSlow{7, 1}, kBystander{7, 2}, kItsGpu{6, 0}, kOtherGpu{6, 1};

// Ten seconds, the incident in those from 4 to 6.
class IncidentStrips : public MemoryStoreTest {
 protected:
  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    Add(model::kDevices, {{.device = kItsGpu, .ordinal = 0, .uuid = "GPU-0", .name = "X"},
                          {.device = kOtherGpu, .ordinal = 1, .uuid = "GPU-1", .name = "X"}});
  }
  // A second of `values` from each of its tenths.
  void AddSignal(Metric metric, int64_t second, double share, Id128 process = kSlow) {
    Add(model::kSignals, {{.start_ns = second * kSecond,
                           .bucket_ns = kSecond / 10,
                           .source = {9, 9},
                           .metric = std::string(model::InfoOf(metric).name),
                           .process = process,
                           .values = std::vector<int64_t>(
                               10, static_cast<int64_t>(share * static_cast<double>(kSecond) / 10))}});
  }
  void AddReading(Metric metric, int64_t second, double value, Id128 device,
                  std::optional<Id128> process = std::nullopt) {
    Add(model::kMetrics, {{.time_ns = second * kSecond + kSecond / 2,
                           .source = {9, 9},
                           .device = device,
                           .process = process,
                           .metric = std::string(model::InfoOf(metric).name),
                           .value = value}});
  }
  std::vector<IncidentStrip> Read() {
    const auto devices = ReadDevices(*store_);
    EXPECT_TRUE(devices.has_value()) << devices.error().message;
    auto strips =
        ReadIncidentStrips(*store_, kSlow, 0, *devices, {0, 10 * kSecond}, {4 * kSecond, 6 * kSecond}, 10);
    EXPECT_TRUE(strips.has_value()) << strips.error().message;
    return std::move(strips).value_or(std::vector<IncidentStrip>());
  }
  std::vector<std::string> ReadNames() {
    std::vector<std::string> names;
    for (const IncidentStrip& strip : Read())
      names.push_back(strip.metric + (strip.gpu.has_value() ? " of " + std::to_string(*strip.gpu) : ""));
    return names;
  }
};

TEST_F(IncidentStrips, StepsComeFirstThenTheSignalsThatChangedMost) {
  for (int64_t second = 0; second < 10; ++second) {
    const bool slow = second == 4 || second == 5;
    AddSignal(Metric::kThreadRunning, second, 0.5);  // as before
    AddSignal(Metric::kThreadRunQueue, second, slow ? 0.3 : 0.1);
    AddSignal(Metric::kThreadSleeping, second, slow ? 0.0 : 0.4);
    if (slow) AddSignal(Metric::kCgroupThrottled, second, 0.25);
    AddSignal(Metric::kThreadNetwork, second, slow ? 0.9 : 0, kBystander);
  }
  Add(model::kSteps, {{.process = kSlow, .start_ns = 3 * kSecond, .end_ns = 3 * kSecond + 100},
                      {.process = kSlow, .start_ns = 4 * kSecond, .end_ns = 4 * kSecond + 200},
                      {.process = kBystander, .start_ns = 4 * kSecond, .end_ns = 4 * kSecond + 900}});
  const auto strips = Read();
  ASSERT_EQ(strips.size(), 4);
  EXPECT_EQ(strips[0].metric, "step");
  EXPECT_EQ(strips[0].strip.values[2], std::nullopt);
  EXPECT_THAT(strips[0].strip.values[3], Optional(100));
  EXPECT_THAT(strips[0].strip.values[4], Optional(200));
  EXPECT_THAT(ReadNames(), ElementsAre("step", "thread.sleeping", "cgroup.throttled", "thread.run_queue"));
  EXPECT_THAT(strips[3].strip.values[4], Optional(testing::DoubleNear(0.3, 1e-9)));
}

// A loader reads what the program waits for; a rank of its job has strips of its own.
TEST_F(IncidentStrips, DelaysOfProcessesThatItStartedAreAmongThem) {
  constexpr Id128 kLoader{7, 3}, kRank{7, 4}, kEarlier{7, 5};
  Add(model::kProcesses, {{.process = kSlow, .pid = 70, .started_ns = kSecond},
                          {.process = kLoader, .pid = 73, .parent_pid = 70, .started_ns = 2 * kSecond},
                          {.process = kRank, .pid = 74, .parent_pid = 70, .started_ns = 2 * kSecond},
                          {.process = kEarlier, .pid = 75, .parent_pid = 70, .started_ns = 1}});
  Add(model::kGpuSessions, {{.process = kRank, .session = 1, .start_ns = 2 * kSecond}});
  for (int64_t second = 0; second < 10; ++second) {
    const bool slow = second == 4 || second == 5;
    AddSignal(Metric::kThreadWaiting, second, slow ? 0.7 : 0.1);
    AddSignal(Metric::kThreadWaiting, second, slow ? 0.1 : 0.9, kLoader);  // for orders: no delay
    AddSignal(Metric::kThreadBlockedIo, second, slow ? 0.6 : 0.1, kLoader);
    for (const Id128& other : {kRank, kEarlier, kBystander})
      AddSignal(Metric::kThreadBlockedIo, second, slow ? 0 : 5, other);
  }
  const auto strips = Read();
  ASSERT_THAT(ReadNames(), ElementsAre("step", "thread.waiting", "thread.blocked_io"));
  EXPECT_THAT(strips[1].strip.values[4], Optional(testing::DoubleNear(0.7, 1e-9)));
  EXPECT_THAT(strips[2].strip.values[4], Optional(testing::DoubleNear(0.6, 1e-9)));
}

TEST_F(IncidentStrips, StepsThatBeganBefore1970OrAfterTheirEndAreLeftOut) {
  Add(model::kSteps,
      {{.process = kSlow, .start_ns = std::numeric_limits<int64_t>::min(), .end_ns = 4 * kSecond},
       {.process = kSlow, .start_ns = 9 * kSecond, .end_ns = 5 * kSecond},
       {.process = kSlow, .start_ns = 4 * kSecond, .end_ns = 4 * kSecond + 200}});
  const auto strips = Read();
  ASSERT_EQ(strips.size(), 1);
  EXPECT_THAT(strips[0].strip.values[4], Optional(200));
  EXPECT_EQ(strips[0].strip.values[5], std::nullopt);
}

TEST_F(IncidentStrips, AWaitThatIsLongerThanItsBucketBeganBeforeIt) {
  Add(model::kSignals, {{.start_ns = 7 * kSecond,
                         .bucket_ns = kSecond / 2,
                         .metric = "thread.sleeping",
                         .process = kSlow,
                         .tid = 11,
                         .values = {3 * kSecond}}});
  const auto strips = Read();
  ASSERT_EQ(strips.size(), 2);
  const auto& sleeping = strips[1].strip.values;
  EXPECT_EQ(sleeping[3], std::nullopt);
  EXPECT_THAT(sleeping[4], Optional(0.5));
  EXPECT_THAT(sleeping[5], Optional(1));
  EXPECT_THAT(sleeping[6], Optional(1));
  EXPECT_THAT(sleeping[7], Optional(0.5));
}

TEST_F(IncidentStrips, AreReadWithIncidentsOnlyIfBucketsAreAskedFor) {
  Add(model::kIncidents, {{.process = kSlow, .start_ns = 4 * kSecond, .end_ns = 6 * kSecond}});
  Add(model::kSteps, {{.process = kSlow, .start_ns = 4 * kSecond, .end_ns = 5 * kSecond}});
  const auto strips_of = [this](int buckets) {
    const auto read = ReadIncidents(*store_, {.from_ns = 0, .to_ns = 10 * kSecond}, buckets);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->incidents.size(), 1U);
    return read->incidents.front().strips;
  };
  EXPECT_THAT(strips_of(0), IsEmpty());
  EXPECT_EQ(strips_of(10).front().metric, "step");
}

TEST_F(IncidentStrips, AtMostFourSignals) {
  for (const Metric metric : {Metric::kThreadBlocked, Metric::kThreadBlockedIo, Metric::kThreadReclaim,
                              Metric::kThreadNetwork, Metric::kThreadWaiting})
    AddSignal(metric, 4, 0.5);
  EXPECT_EQ(Read().size(), 1 + 4);
}

TEST_F(IncidentStrips, AClockThatCannotRiseAsBefore) {
  for (int64_t second = 0; second < 10; ++second) {
    const bool slow = second == 4 || second == 5;
    AddReading(Metric::kGpuProcessMemoryUsed, second, 1, kItsGpu, kSlow);
    AddReading(Metric::kGpuClockSm, second, slow ? 900 : 1980, kItsGpu);
    AddReading(Metric::kGpuClockSm, second, slow ? 900 : 1980, kOtherGpu);  // which the process doesn't use
    AddReading(Metric::kGpuPcieWidth, second, 16, kItsGpu);
  }
  EXPECT_THAT(ReadNames(), ElementsAre("step", "gpu.clock.sm of 0"));
  EXPECT_THAT(Read()[1].strip.values[5], Optional(900));
}

TEST_F(IncidentStrips, AClockThatOnlyRestsMoreIsNoCause) {
  for (int64_t second = 0; second < 10; ++second) {
    AddReading(Metric::kGpuProcessMemoryUsed, second, 1, kItsGpu, kSlow);
    AddReading(Metric::kGpuClockSm, second, second == 4 ? 345 : 1980, kItsGpu);
  }
  EXPECT_THAT(ReadNames(), ElementsAre("step"));
}

TEST_F(IncidentStrips, AReadingStandsForTwoAndAHalfSeconds) {
  AddReading(Metric::kGpuProcessMemoryUsed, 0, 1, kItsGpu, kSlow);
  AddReading(Metric::kGpuPcieWidth, 0, 16, kItsGpu);
  AddReading(Metric::kGpuPcieWidth, 5, 8, kItsGpu);
  const auto strips = Read();
  ASSERT_EQ(strips.size(), 2);
  EXPECT_EQ(strips[1].metric, "gpu.pcie.width");
  const auto none = testing::Eq(std::nullopt);
  EXPECT_THAT(strips[1].strip.values, ElementsAre(Optional(16), Optional(16), Optional(16), none, none,
                                                  Optional(8), Optional(8), Optional(8), none, none));
}

}  // namespace
}  // namespace gpusonde::store
