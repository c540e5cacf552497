// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/off_cpu.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/refused.h"
#include "base/time.h"
#include "sources/ebpf/cpu_sampler.h"
#include "sources/ebpf/stack_tables.h"
#include "sources/ebpf/testing/find_map.h"

namespace gpusonde::ebpf {
namespace {

constexpr uint32_t kThreadSlots = 16384;  // as in bpf/thread_entries.h
constexpr uint32_t kAlways = 0xFFFFFFFF;

gpusonde_off_cpu_head Chosen(uint32_t chance, uint32_t limit_ns) {
  return {.limit_ns = limit_ns, .chance = chance, .sampled = 1};
}

TEST(OffCpuWeight, OfShortIntervalsIsUnbiased) {
  std::mt19937 random(1);
  for (const int64_t duration_ns :
       std::initializer_list<int64_t>{50'000, 1'000'000, 9'000'000, 10'000'000, 400'000'000}) {
    for (const uint32_t chance : {kAlways, 0x3FFFFFFFu}) {
      constexpr int kIntervals = 200'000;
      double sum = 0;
      for (int i = 0; i < kIntervals; ++i) {
        if (random() > chance) continue;
        const auto limit_ns = static_cast<uint32_t>((uint64_t{random()} * GPUSONDE_OFF_CPU_WHOLE_NS) >> 32);
        sum += static_cast<double>(OffCpuWeight(duration_ns, Chosen(chance, limit_ns)));
      }
      const double mean = sum / kIntervals;
      // The standard deviation of the mean is at most √(whole × duration × 4 / intervals); allow six.
      const auto exact = static_cast<double>(duration_ns);
      const double deviation = std::sqrt(std::max(exact, 1e7) * exact * 4 / kIntervals);
      EXPECT_NEAR(mean, exact, 6 * deviation) << chance;
    }
  }
}

TEST(OffCpuWeight, OfLongIntervalsWithProbabilityOneIsTheirLength) {
  EXPECT_EQ(OffCpuWeight(123'456'789, Chosen(kAlways, 9'999'999)), 123'456'789);
  EXPECT_EQ(OffCpuWeight(5'000'000, Chosen(kAlways, 4'999'999)), 10'000'000);
  EXPECT_EQ(OffCpuWeight(5'000'000, Chosen(kAlways, 5'000'001)), 0);
}

TEST(OffCpuWeight, OfLongIntervalsIsTheirLengthWhetherSampledOrNot) {
  constexpr int64_t kLongNs = GPUSONDE_OFF_CPU_LONG_NS;
  EXPECT_EQ(OffCpuWeight(2 * kNanosPerSecond, Chosen(0x7FFFFFFF, 9'999'999)), 2 * kNanosPerSecond);
  EXPECT_EQ(OffCpuWeight(kLongNs, {.sampled = 0}), kLongNs);
  EXPECT_EQ(OffCpuWeight(kLongNs - 1, {.sampled = 0}), 0) << "a short one that was not sampled";
}

// Observes this process; skipped where BPF isn't permitted.
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
    // This thread ran just before, so it is cached as a non-target.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(sampler_->Follow(::getpid()).has_value());
  }

  std::optional<StackTables> tables_;
  std::optional<CpuSampler> sampler_;
  std::optional<OffCpu> off_cpu_;
};

TEST_F(OffCpuTest, ReportsASleepWithItsStackLengthAndSystemCall) {
  constexpr int64_t kSleepNs = 30 * kNanosPerMilli;
  const int64_t before = MonotonicNow();
  std::this_thread::sleep_for(std::chrono::nanoseconds(kSleepNs));
  const int64_t after = MonotonicNow();
  std::optional<gpusonde_off_cpu_head> sleep;
  size_t frames = 0;
  std::optional<OffCpuEnd> end;
  ASSERT_TRUE(off_cpu_
                  ->Drain(sources::VisitOnly(
                      [&](const OffCpuBegin& begin) {
                        constexpr int kClockNanosleep = 230;
                        if (begin.head.syscall != kClockNanosleep || sleep.has_value()) return;
                        sleep = begin.head;
                        frames = begin.stack.user().size() + begin.stack.kernel().size();
                      },
                      [&](const OffCpuEnd& reported) {
                        if (sleep.has_value() && reported.begin_ns == sleep->time_ns) end = reported;
                      }))
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

// Of the calling thread.
int64_t ContextSwitches() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

// Some kernels hide switches. Here a thread that nothing preempts is said to be off the CPU while it runs,
// and yields to nobody: it is scheduled without a switch.
TEST_F(OffCpuTest, AnIntervalWhoseEndWasNotTracedEndsWhenTheThreadIsScheduled) {
  if (libbpf_find_vmlinux_btf_id("sched_exit_tp", BPF_TRACE_RAW_TP) <= 0)
    GTEST_SKIP() << "this kernel has no tracepoint for that (Linux 6.16)";
  const std::optional<int> slots = FindMap("thread_slots");
  ASSERT_TRUE(slots.has_value());
  constexpr uint64_t kAwayNs = 2 * kNanosPerSecond;
  uint64_t left_ns = 0, until_ns = 0;
  bool alone = false;
  std::thread([&] {
    const sched_param priority{.sched_priority = 1};
    alone = ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &priority) == 0;
    const auto tid = static_cast<uint32_t>(::gettid());
    const uint32_t slot = tid % kThreadSlots;
    // The kernel's own threads (migration) may preempt it all the same, and such a switch is traced.
    for (int attempt = 0; attempt < 100; ++attempt) {
      const int64_t switches = ContextSwitches();
      left_ns = static_cast<uint64_t>(MonotonicNow()) - kAwayNs;
      gpusonde_off_cpu_slot away{
          .tid = tid, .crowded = 0, .entry = {.head = {.kind = GPUSONDE_OFF_CPU_BEGIN, .tid = tid}}};
      away.entry.head.pid = static_cast<uint32_t>(::getpid());
      away.entry.head.time_ns = left_ns;
      if (bpf_map_update_elem(*slots, &slot, &away, BPF_ANY) != 0) left_ns = 0;
      for (int i = 0; i < 1000; ++i) ::sched_yield();
      until_ns = static_cast<uint64_t>(MonotonicNow());
      if (ContextSwitches() == switches) break;
    }
  }).join();
  if (!alone) GTEST_SKIP() << "no permission for a real-time priority";
  off_cpu_->Stop();
  std::optional<OffCpuEnd> found;
  size_t frames = 0;
  ASSERT_TRUE(off_cpu_
                  ->Drain(sources::VisitOnly(
                      [&](const OffCpuBegin& begin) {
                        if (begin.head.time_ns == left_ns) frames = begin.stack.user().size();
                      },
                      [&](const OffCpuEnd& end) {
                        if (end.begin_ns == left_ns) found = end;
                      }))
                  .has_value());
  ASSERT_TRUE(found.has_value());
  EXPECT_GE(found->end_ns, left_ns + kAwayNs);
  EXPECT_LT(found->end_ns, until_ns);
  EXPECT_GT(frames, 1u);
}

// While another thread switches so often that hardly anything is sampled.
TEST_F(OffCpuTest, EveryLongSleepIsReportedOnceWithItsStack) {
  std::atomic<bool> done = false;
  std::thread busy([&] {
    while (!done) std::this_thread::sleep_for(std::chrono::microseconds(20));
  });
  constexpr int kSleepers = 8;
  static constexpr int64_t kSleepNs = 600 * kNanosPerMilli;
  std::vector<std::thread> sleepers;
  for (int i = 0; i < kSleepers; ++i)
    sleepers.emplace_back([] {
      for (int hop = 0; hop < 200; ++hop) std::this_thread::sleep_for(std::chrono::microseconds(100));
      std::this_thread::sleep_for(std::chrono::nanoseconds(kSleepNs));
    });
  for (std::thread& sleeper : sleepers) sleeper.join();
  done = true;
  busy.join();
  off_cpu_->Stop();

  std::map<std::pair<uint32_t, uint64_t>, size_t> frames;  // by thread and begin
  int asleep = 0;
  ASSERT_TRUE(off_cpu_
                  ->Drain(sources::VisitOnly(
                      [&](const OffCpuBegin& begin) {
                        frames[{begin.head.tid, begin.head.time_ns}] = begin.stack.user().size();
                      },
                      [&](const OffCpuEnd& end) {
                        if (static_cast<int64_t>(end.woken_ns - end.begin_ns) < kSleepNs) return;
                        const auto begin = frames.find({end.tid, end.begin_ns});
                        ASSERT_NE(begin, frames.end());
                        EXPECT_GT(begin->second, 0u);
                        asleep += end.tid != static_cast<uint32_t>(::gettid());
                      }))
                  .has_value());
  EXPECT_EQ(asleep, kSleepers);
}

TEST_F(OffCpuTest, ReportsNothingAfterStop) {
  off_cpu_->Stop();
  ASSERT_TRUE(off_cpu_->Drain(sources::VisitOnly()).has_value());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  int reported = 0;
  ASSERT_TRUE(off_cpu_->Drain(sources::VisitOnly([&](const OffCpuBegin&) { ++reported; })).has_value());
  EXPECT_EQ(reported, 0);
}

}  // namespace
}  // namespace gpusonde::ebpf
