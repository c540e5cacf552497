// SPDX-License-Identifier: Apache-2.0
// Waits for a CPU on which others run more often than a CPU remembers.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "base/testing/refused.h"
#include "base/time.h"
#include "sources/ebpf/host_signals.h"

namespace gpusonde::ebpf {
namespace {

// Two processes on one CPU that wake each other all the time.
class PingPong {
 public:
  explicit PingPong(int cpu) {
    for (std::array<int, 2>& pipe : pipes_) EXPECT_EQ(::pipe(pipe.data()), 0);
    for (size_t i = 0; i < players_.size(); ++i) {
      players_.at(i) = ::fork();
      if (players_.at(i) == 0) Play(cpu, i);
    }
  }
  ~PingPong() {
    for (const pid_t player : players_) {
      ::kill(player, SIGKILL);
      ::waitpid(player, nullptr, 0);
    }
    for (const std::array<int, 2>& pipe : pipes_)
      for (const int end : pipe) ::close(end);
  }
  PingPong(const PingPong&) = delete;
  PingPong& operator=(const PingPong&) = delete;

 private:
  [[noreturn]] void Play(int cpu, size_t self) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    char byte = 0;
    if (self == 0) (void)!::write(pipes_[1][1], &byte, 1);
    while (::read(pipes_.at(self)[0], &byte, 1) == 1) (void)!::write(pipes_.at(1 - self)[1], &byte, 1);
    ::_exit(0);
  }

  std::array<std::array<int, 2>, 2> pipes_{};
  std::array<pid_t, 2> players_{};
};

// They run thousands of times while this thread waits for its CPU once.
TEST(ShortRuns, WhoTakesTheCpuInThemIsNamed) {
  Result<HostSignals> signals = HostSignals::Create();
  SKIP_WHERE_REFUSED(signals);
  ASSERT_TRUE(signals->Follow(::getpid()).has_value());
  cpu_set_t all, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  const int cpu = ::sched_getcpu();
  const PingPong players(cpu);
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  int64_t waited_ns = 0, unnamed_ns = 0;
  const auto add = [&](const SignalSum& sum) {
    if (sum.tid != ::gettid() || sum.signal != GPUSONDE_SIGNAL_RUN_QUEUE) return;
    waited_ns += sum.amount;
    unnamed_ns += sum.other == 0 ? sum.amount : 0;
  };
  const int64_t deadline_ns = MonotonicNow() + 60 * kNanosPerSecond;
  while (waited_ns < kNanosPerSecond / 4 && MonotonicNow() < deadline_ns) {
    const int64_t busy_until_ns = MonotonicNow() + 50 * kNanosPerMilli;
    while (MonotonicNow() < busy_until_ns) {
    }
    ASSERT_TRUE(signals->Drain(sources::VisitOnly(add)).has_value());
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_GE(waited_ns, kNanosPerSecond / 4);
  EXPECT_LT(unnamed_ns, waited_ns / 10);
}

}  // namespace
}  // namespace gpusonde::ebpf
