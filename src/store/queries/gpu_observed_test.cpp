// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "base/testing/units.h"
#include "base/time.h"
#include "model/tables/batches.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernels.h"
#include "model/tables/processes.h"
#include "model/tables/sources.h"
#include "store/queries/gpu_query.h"
#include "store/recordings/testing/memory_store.h"

// What of a device's time was observed, and that the strip and the sums say the same of it.
namespace gpusonde::store {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Optional;
using testing::SizeIs;

constexpr Id128 kGpu{6, 0};
constexpr Id128 kProcess{5, 1};

model::Kernel Kernel(int32_t session, int64_t start_ns, int64_t end_ns, Id128 process = kProcess,
                     Id128 device = kGpu, int64_t stream = 7) {
  return {.process = process,
          .device = device,
          .session = session,
          .stream = stream,
          .start_ns = start_ns,
          .end_ns = end_ns,
          .name = "gemm"};
}

class GpuObserved : public MemoryStoreTest {
 protected:
  void Run(int64_t from_ns, int64_t to_ns) {
    Add(model::kSources,
        {{.source = {9, ++runs_}, .host = "here", .cpus = 2, .started_ns = from_ns, .ended_ns = to_ns}});
  }

  uint64_t runs_ = 0;
};

TEST_F(GpuObserved, ASessionWithoutAStartIsObservedWhereItWorked) {
  Run(0, 10 * kSecond);
  Add(model::kGpuSessions,
      {{.process = kProcess, .session = 1, .start_ns = 0, .end_ns = 9 * kSecond},
       {.process = kProcess, .session = 2, .start_ns = 9 * kSecond, .end_ns = 10 * kSecond}});
  Add(model::kKernels,
      {Kernel(1, 2 * kSecond, 2 * kSecond + 30 * kMs), Kernel(1, 3 * kSecond - 30 * kMs, 3 * kSecond),
       Kernel(2, 9 * kSecond, 9 * kSecond + kSecond / 2)});
  const auto strips = ReadGpuStrips(*store_, {}, 5);
  ASSERT_THAT(*strips, SizeIs(1));
  EXPECT_THAT((*strips)[0].strip.values, ElementsAre(std::nullopt, Optional(testing::DoubleNear(0.06, 1e-9)),
                                                     std::nullopt, std::nullopt, Optional(0.5)));
  EXPECT_THAT((*strips)[0].observed, ElementsAre(0, 0.5, 0, 0, 0.5));
}

TEST_F(GpuObserved, TimeAfterTheLastRunIsNotIdle) {
  Run(0, 2 * kSecond);
  Add(model::kGpuSessions, {{.process = kProcess, .session = 1, .start_ns = 1, .end_ns = std::nullopt}});
  Add(model::kKernels, {Kernel(1, 0, kSecond)});
  const auto observed_s = [&] {
    const auto use = ReadDeviceUse(*store_, {.from_ns = 0, .to_ns = 100 * kSecond, .filter = {}});
    return use.has_value() && !use->empty() ? (use->front().observed_ns + kSecond / 2) / kSecond : -1;
  };
  EXPECT_EQ(observed_s(), 2);
  // One without an end, of an agent that was killed.
  Add(model::kSources, {{.source = {9, ++runs_}, .host = "here", .cpus = 2, .started_ns = 8 * kSecond}});
  Add(model::kBatches, {{.spool = {1, 1}, .sequence = 1, .rows = 1, .committed_ns = 10 * kSecond}});
  EXPECT_EQ(observed_s(), 2 + 2);
  Add(model::kKernels, {Kernel(1, 10 * kSecond, 11 * kSecond)});
  EXPECT_EQ(observed_s(), 2 + 3) << "by a clock that was ahead of the store's";
}

// The data ends before such a time begins, or begins after it ends.
TEST_F(GpuObserved, OfATimeWithoutDataNothingIsKnown) {
  Run(7'200 * kSecond, 7'210 * kSecond);
  Add(model::kKernels, {Kernel(1, 7'201 * kSecond, 7'202 * kSecond)});
  const model::Selection open;
  for (const TimeRange& time : {TimeRange{14'400 * kSecond, open.to_ns}, {open.from_ns, 3'600 * kSecond}}) {
    const auto uses = ReadDeviceUse(*store_, {.from_ns = time.from_ns, .to_ns = time.to_ns, .filter = {}});
    ASSERT_TRUE(uses.has_value()) << uses.error().message;
    for (const DeviceUse& use : *uses) EXPECT_EQ(use.observed_ns, 0);
  }
  EXPECT_THAT(*ReadDeviceUse(*store_, {}), SizeIs(1));
}

TEST_F(GpuObserved, TimeBetweenTwoRunsIsNotIdle) {
  Run(0, 2 * kSecond);
  Run(8 * kSecond, 10 * kSecond);
  // The program's session went on while nothing was recorded.
  Add(model::kGpuSessions, {{.process = kProcess, .session = 1, .start_ns = 1, .end_ns = std::nullopt}});
  Add(model::kKernels, {Kernel(1, 0, kSecond), Kernel(1, 8 * kSecond, 9 * kSecond)});
  const auto strips = ReadGpuStrips(*store_, {}, 5);
  ASSERT_THAT(*strips, SizeIs(1));
  EXPECT_THAT((*strips)[0].strip.values,
              ElementsAre(Optional(DoubleNear(0.5, 1e-9)), std::nullopt, std::nullopt, std::nullopt,
                          Optional(DoubleNear(0.5, 1e-9))))
      << "the session began a nanosecond after the run";
  EXPECT_NEAR(static_cast<double>((*ReadDeviceUse(*store_, {}))[0].observed_ns), 4.0 * kSecond, 2);
}

TEST_F(GpuObserved, ASessionThatWasJoinedAgainIsObservedBothTimes) {
  Run(0, 4 * kSecond);
  Run(8 * kSecond, 10 * kSecond);
  // Another listener kept it going.
  Add(model::kGpuSessions, {{.process = kProcess, .session = 1, .start_ns = kSecond}});
  Add(model::kGpuSessions, {{.process = kProcess, .session = 1, .start_ns = 8 * kSecond}});
  Add(model::kKernels, {Kernel(1, kSecond, 2 * kSecond), Kernel(1, 9 * kSecond, 10 * kSecond)});
  EXPECT_NEAR(static_cast<double>((*ReadDeviceUse(*store_, {}))[0].observed_ns), 5.0 * kSecond, 2);
}

// Two programs on one GPU, of which the governor pauses the second: at first, twice more, and where neither
// is profiled, nothing is known at all. The second ends at 16 s, and a third begins at 18 s.
TEST_F(GpuObserved, TimeWithoutTheWorkOfAPausedProcessIsALowerBound) {
  Run(0, 20 * kSecond);
  constexpr Id128 kOther{5, 2};
  constexpr Id128 kThird{5, 3};
  Add(model::kProcesses, {{.process = kOther, .pid = 2, .exited_ns = 16 * kSecond}});
  Add(model::kGpuSessions,
      {{.process = kProcess, .session = 1, .start_ns = 1, .end_ns = 12 * kSecond},
       {.process = kProcess, .session = 2, .start_ns = 14 * kSecond, .end_ns = std::nullopt},
       {.process = kOther, .session = 1, .start_ns = 4 * kSecond, .end_ns = 6 * kSecond},
       {.process = kOther, .session = 2, .start_ns = 8 * kSecond, .end_ns = 9 * kSecond},
       {.process = kThird, .session = 1, .start_ns = 18 * kSecond, .end_ns = std::nullopt}});
  Add(model::kKernels, {Kernel(1, 0, kSecond), Kernel(1, 4 * kSecond, 5 * kSecond, kOther),
                        Kernel(1, 19 * kSecond, 20 * kSecond, kThird)});
  const auto strips = ReadGpuStrips(*store_, {.from_ns = 0, .to_ns = 20 * kSecond, .filter = {}}, 10);
  ASSERT_THAT(*strips, SizeIs(1));
  const auto near = [](double share) { return DoubleNear(share, 1e-6); };
  EXPECT_THAT((*strips)[0].observed, ElementsAre(near(1), near(1), near(1), near(1), near(1), near(1),
                                                 near(0), near(1), near(1), near(1)));
  EXPECT_THAT((*strips)[0].partial, ElementsAre(near(0), near(0), near(0), near(1), near(0.5), near(1),
                                                near(0), near(1), near(0), near(0)));
  const auto use = ReadDeviceUse(*store_, {.from_ns = 0, .to_ns = 20 * kSecond, .filter = {}});
  EXPECT_NEAR(static_cast<double>((*use)[0].partial_ns), 7.0 * kSecond, 2);
  EXPECT_EQ((*use)[0].paused_ns, 2 * kSecond);
  // A range that lies within a pause.
  const auto paused = ReadDeviceUse(*store_, {.from_ns = 10 * kSecond, .to_ns = 11 * kSecond, .filter = {}});
  EXPECT_EQ((*paused)[0].partial_ns, kSecond);
  EXPECT_EQ((*paused)[0].paused_ns, 0);
  // Of the one process alone everything that was observed is known.
  const auto alone =
      ReadDeviceUse(*store_, {.from_ns = 0, .to_ns = 20 * kSecond, .processes = {kProcess}, .filter = {}});
  EXPECT_EQ((*alone)[0].partial_ns, 0);
}

// Nobody saw the end of a program that was paused when gpusonde stopped.
TEST_F(GpuObserved, AProcessIsNotMissedAfterTheRunThatSawItLast) {
  Run(0, 4 * kSecond);
  Run(6 * kSecond, 10 * kSecond);
  constexpr Id128 kGone{5, 2};
  Add(model::kGpuSessions, {{.process = kProcess, .session = 1, .start_ns = 1, .end_ns = std::nullopt},
                            {.process = kGone, .session = 1, .start_ns = 1, .end_ns = 2 * kSecond}});
  Add(model::kKernels, {Kernel(1, 0, kSecond), Kernel(1, 0, kSecond, kGone)});
  EXPECT_NEAR(static_cast<double>((*ReadDeviceUse(*store_, {}))[0].partial_ns), 2.0 * kSecond, 2);
}

constexpr int kLengthMs = 20'000;
constexpr int kDevices = 2;
using Moments = std::vector<bool>;  // of each millisecond

void Mark(Moments& moments, int64_t from_ms, int64_t to_ms) {
  for (int64_t at = from_ms; at < to_ms; ++at) moments.at(static_cast<size_t>(at)) = true;
}
double CountIn(const Moments& moments, int64_t from_ms, int64_t to_ms) {
  return static_cast<double>(std::count(moments.begin() + from_ms, moments.begin() + to_ms, true));
}

// Runs with gaps, processes with sessions side by side, some without a start, some without a row, with
// kernels that overlap; and, millisecond by millisecond, what was observed and busy.
struct World {
  std::vector<std::pair<int64_t, int64_t>> runs;
  std::vector<model::GpuSession> sessions;
  std::vector<model::Kernel> kernels;
  std::array<Moments, kDevices> observed, busy;
};

World MakeWorld(std::mt19937& random) {
  const auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  World world;
  for (int device = 0; device < kDevices; ++device)
    world.observed[device] = world.busy[device] = Moments(kLengthMs);
  Moments watched(kLengthMs);
  int64_t at = 0;
  for (const int64_t runs = pick(1, 3); std::ssize(world.runs) < runs;) {
    const bool is_last = std::ssize(world.runs) + 1 == runs;
    const int64_t end = is_last ? kLengthMs : at + pick(1000, 5000);
    world.runs.emplace_back(at, end);
    Mark(watched, at, end);
    at = end + pick(100, 3000);
  }
  for (uint64_t process = 1; process <= 3; ++process) {
    std::array<bool, kDevices> used{};
    std::vector<std::pair<int64_t, int64_t>> known;
    int64_t begin = pick(1, 3000);
    for (int32_t session = 1; begin < kLengthMs - 100; ++session) {
      const int64_t end = std::min<int64_t>(begin + pick(100, 8000), kLengthMs);
      int64_t first = kLengthMs;
      int64_t last = 0;
      for (int64_t kernels = pick(0, 20); kernels > 0; --kernels) {
        const int64_t from = pick(begin, end - 1);
        const int64_t to = std::min(end, from + pick(1, 300));
        // Records arrive only while a recorder runs.
        if (CountIn(watched, from, to) < static_cast<double>(to - from)) continue;
        const auto device = static_cast<size_t>(pick(0, kDevices - 1));
        used[device] = true;
        world.kernels.push_back(Kernel(session, from * kMs, to * kMs, {5, process}, {6, device}, pick(1, 3)));
        Mark(world.busy[device], from, to);
        first = std::min(first, from);
        last = std::max(last, to);
      }
      switch (pick(0, 3)) {
        case 0:  // no start
          world.sessions.push_back({.process = {5, process}, .session = session, .end_ns = end * kMs});
          if (first < last) known.emplace_back(first, last);
          break;
        case 1:  // no row
          if (first < last) known.emplace_back(first, last);
          break;
        default:
          world.sessions.push_back(
              {.process = {5, process}, .session = session, .start_ns = begin * kMs, .end_ns = end * kMs});
          known.emplace_back(begin, end);
      }
      begin = end + pick(0, 2000);
    }
    for (size_t device = 0; device < kDevices; ++device)
      if (used[device])
        for (const auto& [from, to] : known) Mark(world.observed[device], from, to);
  }
  for (Moments& observed : world.observed)
    for (size_t i = 0; i < observed.size(); ++i) observed[i] = observed[i] && watched[i];
  return world;
}

class GpuObservedOfWorlds : public GpuObserved, public testing::WithParamInterface<uint32_t> {};

TEST_P(GpuObservedOfWorlds, StripAndSumsAndSqlAgreeWithEveryMillisecond) {
  std::mt19937 random(GetParam());
  const World world = MakeWorld(random);
  for (const auto& [from, to] : world.runs) Run(from * kMs, to * kMs);
  Add(model::kGpuSessions, world.sessions);
  Add(model::kKernels, world.kernels);
  const auto uses = ReadDeviceUse(*store_, {});
  ASSERT_TRUE(uses.has_value()) << uses.error().message;
  for (const DeviceUse& use : *uses) {
    const auto device = static_cast<size_t>(use.device.device.low);
    EXPECT_EQ(use.busy_ns, static_cast<int64_t>(CountIn(world.busy[device], 0, kLengthMs)) * kMs);
    EXPECT_EQ(use.observed_ns, static_cast<int64_t>(CountIn(world.observed[device], 0, kLengthMs)) * kMs);
    // The query of docs/api.md: the time with any work, each moment counted once.
    const std::vector<Parameter> parameters = {use.device.device};
    const auto rows = store_->Query(
        "SELECT sum(greatest(end_ns - greatest(start_ns, coalesce(until_ns, 0)), 0))::BIGINT FROM (SELECT "
        "start_ns, end_ns, max(end_ns) OVER (ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND "
        "1 "
        "PRECEDING) AS until_ns FROM kernels WHERE device = ?)",
        parameters);
    ASSERT_TRUE(rows.has_value()) << rows.error().message;
    ASSERT_TRUE((*rows)->Next().value_or(false));
    EXPECT_EQ((*rows)->Int64(0), use.busy_ns);
  }
  for (const int buckets : {1, 20, 200}) {
    const auto strips = ReadGpuStrips(*store_, {}, buckets);
    ASSERT_TRUE(strips.has_value()) << strips.error().message;
    ASSERT_EQ(strips->size(), uses->size());
    const int64_t bucket_ms = kLengthMs / buckets;
    for (size_t s = 0; s < strips->size(); ++s) {
      const DeviceStrip& strip = (*strips)[s];
      const auto device = static_cast<size_t>(strip.device.device.low);
      double busy = 0;
      double observed = 0;
      for (size_t i = 0; i < strip.observed.size(); ++i) {
        const int64_t from = static_cast<int64_t>(i) * bucket_ms;
        const double known = CountIn(world.observed[device], from, from + bucket_ms);
        EXPECT_NEAR(strip.observed[i] * static_cast<double>(bucket_ms), known, 1e-6);
        ASSERT_EQ(strip.strip.values[i].has_value(), known > 0) << "unobserved is not 0";
        if (known == 0) continue;
        EXPECT_NEAR(*strip.strip.values[i] * known, CountIn(world.busy[device], from, from + bucket_ms),
                    1e-6);
        busy += *strip.strip.values[i] * strip.observed[i];
        observed += strip.observed[i];
      }
      EXPECT_NEAR(busy / observed,
                  static_cast<double>((*uses)[s].busy_ns) / static_cast<double>((*uses)[s].observed_ns),
                  1e-9);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, GpuObservedOfWorlds, testing::Range<uint32_t>(1, 13));

}  // namespace
}  // namespace gpusonde::store
