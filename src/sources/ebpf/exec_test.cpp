// SPDX-License-Identifier: Apache-2.0
// Programs that are executed by another thread than the first of their process, which takes its id then.
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <optional>
#include <thread>

#include "base/testing/refused.h"
#include "base/time.h"
#include "sources/ebpf/cpu_sampler.h"
#include "sources/ebpf/host_signals.h"
#include "sources/ebpf/off_cpu.h"
#include "sources/ebpf/stack_tables.h"
#include "sources/ebpf/testing/find_map.h"

namespace gpusonde::ebpf {
namespace {

void RunFor(int64_t duration_ns) {
  const int64_t until_ns = MonotonicNow() + duration_ns;
  while (MonotonicNow() < until_ns) {
  }
}

// Forks a child that executes a program in its second thread. Returns that thread's id.
int32_t ExecuteInSecondThread() {
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([&] {
      const int32_t tid = ::gettid();
      (void)!::write(ends[1], &tid, sizeof tid);
      RunFor(20 * kNanosPerMilli);
      ::usleep(1000);  // it is switched out, and so known
      ::execl("/bin/true", "true", nullptr);
    }).join();
    ::_exit(1);
  }
  int32_t tid = 0;
  (void)!::read(ends[0], &tid, sizeof tid);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  return tid;
}

// Forks a child with this id; 0 if it is taken.
pid_t ForkAs(pid_t pid) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<uint64_t>(&pid);
  arguments.set_tid_size = 1;
  const long child = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  return child < 0 ? 0 : static_cast<pid_t>(child == 0 ? -1 : child);
}

TEST(HostSignals, TheIdOfAThreadThatExecutedAProgramIsAnothersLater) {
  Result<HostSignals> signals = HostSignals::Create();
  SKIP_WHERE_REFUSED(signals);
  ASSERT_TRUE(signals->Follow(::getpid()).has_value());
  const int32_t tid = ExecuteInSecondThread();
  ASSERT_GT(tid, 0);
  ASSERT_TRUE(signals->Drain(sources::VisitOnly([](const SignalSum&) {})).has_value());
  ::usleep(200'000);  // for so long a CPU's cache may hold whose thread it was

  const pid_t child = ForkAs(tid);
  if (child < 0) {
    RunFor(100 * kNanosPerMilli);
    ::usleep(1000);
    ::_exit(0);
  }
  if (child == 0) GTEST_SKIP() << "the id was given to another process meanwhile";
  ::waitpid(child, nullptr, 0);
  std::map<int32_t, int64_t> running_ns;  // by pid
  ASSERT_TRUE(signals
                  ->Drain(sources::VisitOnly([&](const SignalSum& sum) {
                    if (sum.tid == tid && sum.signal == GPUSONDE_SIGNAL_RUNNING)
                      running_ns[sum.pid] += sum.amount;
                  }))
                  .has_value());
  EXPECT_EQ(running_ns.size(), 1u);
  EXPECT_GT(running_ns[tid], 0) << "a busy machine gives it little of the 100 ms";
}

TEST(OffCpu, TheIdOfAThreadThatExecutedAProgramTakesNoRoomForEver) {
  const Result<StackTables> tables = StackTables::Create();
  SKIP_WHERE_REFUSED(tables);
  Result<CpuSampler> sampler = CpuSampler::Create({}, *tables);
  SKIP_WHERE_REFUSED(sampler);
  const Result<OffCpu> off_cpu = OffCpu::Create({}, *tables, *sampler);
  SKIP_WHERE_REFUSED(off_cpu);
  ASSERT_TRUE(sampler->Follow(::getpid()).has_value());
  ::usleep(1000);  // this thread is switched out
  ASSERT_TRUE(HasThread(static_cast<uint32_t>(::gettid())));
  const int32_t tid = ExecuteInSecondThread();
  ASSERT_GT(tid, 0);
  EXPECT_FALSE(HasThread(static_cast<uint32_t>(tid)));
}

}  // namespace
}  // namespace gpusonde::ebpf
