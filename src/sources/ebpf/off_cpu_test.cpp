// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/off_cpu.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <random>
#include <thread>

#include "base/testing/refused.h"
#include "base/time.h"
#include "sources/ebpf/cpu_sampler.h"
#include "sources/ebpf/stack_tables.h"

namespace gpusonde::ebpf {
namespace {

constexpr uint32_t kAlways = 0xFFFFFFFF;

TEST(OffCpuWeight, OfIntervalsShorterThanWholeOnesIsRightOnAverage) {
  std::mt19937 random(1);
  for (const int64_t duration_ns :
       std::initializer_list<int64_t>{50'000, 1'000'000, 9'000'000, 10'000'000, 3'000'000'000}) {
    for (const uint32_t chance : {kAlways, 0x3FFFFFFFu}) {
      constexpr int kIntervals = 200'000;
      double sum = 0;
      for (int i = 0; i < kIntervals; ++i) {
        if (random() > chance) continue;
        const auto limit_ns = static_cast<uint32_t>((uint64_t{random()} * GPUSONDE_OFF_CPU_WHOLE_NS) >> 32);
        sum += static_cast<double>(OffCpuWeight(duration_ns, chance, limit_ns));
      }
      const double mean = sum / kIntervals;
      // Standard deviation of the mean: at most √(whole × duration × 4 / intervals), six of which are never
      // seen.
      const auto exact = static_cast<double>(duration_ns);
      const double deviation = std::sqrt(std::max(exact, 1e7) * exact * 4 / kIntervals);
      EXPECT_NEAR(mean, exact, 6 * deviation) << chance;
    }
  }
}

TEST(OffCpuWeight, OfLongIntervalsThatAreAlwaysToldOfIsTheirLength) {
  EXPECT_EQ(OffCpuWeight(123'456'789, kAlways, 9'999'999), 123'456'789);
  EXPECT_EQ(OffCpuWeight(5'000'000, kAlways, 4'999'999), 10'000'000);
  EXPECT_EQ(OffCpuWeight(5'000'000, kAlways, 5'000'001), 0);
}

// This very process waits, with the kernel's help only where it is allowed.
class OffCpuTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<StackTables> tables = StackTables::Create();
    SKIP_WHERE_REFUSED(tables);
    tables_ = std::move(*tables);
    Result<CpuSampler> sampler = CpuSampler::Create({}, *tables_);
    SKIP_WHERE_REFUSED(sampler);
    sampler_ = std::move(*sampler);
    Result<OffCpu> off_cpu = OffCpu::Create({}, *tables_, *sampler_);
    SKIP_WHERE_REFUSED(off_cpu);
    off_cpu_ = std::move(*off_cpu);
    // Seen just before, it is remembered as nobody to tell of.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(sampler_->Follow(::getpid()).has_value());
  }

  std::optional<StackTables> tables_;
  std::optional<CpuSampler> sampler_;
  std::optional<OffCpu> off_cpu_;
};

TEST_F(OffCpuTest, ASleepIsToldOfWithItsStackLengthAndSystemCall) {
  constexpr int64_t kSleepNs = 30 * kNanosPerMilli;
  const int64_t before = MonotonicNow();
  std::this_thread::sleep_for(std::chrono::nanoseconds(kSleepNs));
  const int64_t after = MonotonicNow();
  std::optional<gpusonde_off_cpu_head> sleep;
  size_t frames = 0;
  std::optional<OffCpu::End> end;
  ASSERT_TRUE(off_cpu_
                  ->Drain(
                      [&](const OffCpu::Begin& begin) {
                        constexpr int kClockNanosleep = 230;
                        if (begin.head.syscall != kClockNanosleep || sleep.has_value()) return;
                        sleep = begin.head;
                        frames = begin.stack.user().size() + begin.stack.kernel().size();
                      },
                      [&](const OffCpu::End& told) {
                        if (sleep.has_value() && told.begin_ns == sleep->time_ns) end = told;
                      })
                  .has_value());
  ASSERT_TRUE(sleep.has_value());
  EXPECT_EQ(sleep->tid, static_cast<uint32_t>(::gettid()));
  EXPECT_FALSE(sleep->runnable);
  EXPECT_GT(frames, 2u);
  ASSERT_TRUE(end.has_value());
  EXPECT_GE(static_cast<int64_t>(end->begin_ns), before);
  EXPECT_LE(static_cast<int64_t>(end->end_ns), after);
  EXPECT_GE(static_cast<int64_t>(end->woken_ns - end->begin_ns), kSleepNs - kNanosPerMilli);
}

TEST_F(OffCpuTest, NothingIsToldOnceItHasStopped) {
  off_cpu_->Stop();
  const auto ignore = [](const auto&) {};
  ASSERT_TRUE(off_cpu_->Drain(ignore, ignore).has_value());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  int told = 0;
  ASSERT_TRUE(off_cpu_->Drain([&](const auto&) { ++told; }, ignore).has_value());
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace gpusonde::ebpf
