// SPDX-License-Identifier: Apache-2.0
// Threads whose ids choose the same slot (bpf/thread_entries.h).
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "base/testing/refused.h"
#include "base/time.h"
#include "sources/ebpf/bpf_program.h"
#include "sources/ebpf/cpu_sampler.h"
#include "sources/ebpf/host_signals.h"
#include "sources/ebpf/off_cpu.h"
#include "sources/ebpf/stack_tables.h"
#include "sources/ebpf/testing/find_map.h"
#include "sources/proc/process.h"

namespace gpusonde::ebpf {
namespace {

constexpr pid_t kSlots = 16384;  // as in bpf/thread_entries.h

// Forks a child whose id chooses the slot of this thread's. Returns 0 if there is none: the ids are taken, or
// there are fewer, or not allowed to be chosen. Returns -1 in the child.
pid_t ForkIntoOwnSlot() {
  if (PidNamespace() != 0) return 0;  // the slot is that of another id
  for (pid_t pid = ::gettid() % kSlots; pid < 8 * kSlots; pid += kSlots) {
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = reinterpret_cast<uint64_t>(&pid);
    arguments.set_tid_size = 1;
    const long child = pid == 0 ? -1 : ::syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child >= 0) return child == 0 ? -1 : pid;
  }
  return 0;
}

void SpinFor(int64_t duration_ns) {
  const int64_t until_ns = MonotonicNow() + duration_ns;
  while (MonotonicNow() < until_ns) {
  }
}

uint32_t OwnTid() { return static_cast<uint32_t>(::gettid()); }

TEST(ThreadEntries, TwoThreadsOfOneSlotAreBothKnownUntilTheyEnd) {
  Result<HostSignals> signals = HostSignals::Create();
  SKIP_WHERE_REFUSED(signals);
  ASSERT_TRUE(signals->Follow(::getpid()).has_value());
  ::usleep(1000);  // this thread is switched out, and so known
  ASSERT_TRUE(HasThread(OwnTid()));
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ForkIntoOwnSlot();
  if (child == 0) GTEST_SKIP() << "no other thread may have an id of the same slot";
  char byte = 0;
  if (child < 0) {
    SpinFor(20 * kNanosPerMilli);
    ::usleep(1000);
    (void)!::write(ready[1], &byte, 1);
    ::close(done[1]);
    (void)!::read(done[0], &byte, 1);
    ::_exit(0);
  }
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(HasThread(static_cast<uint32_t>(child)));
  EXPECT_TRUE(HasThread(OwnTid()));
  ::close(done[1]);
  ::waitpid(child, nullptr, 0);
  for (int i = 0; i < 100 && HasThread(static_cast<uint32_t>(child)); ++i) ::usleep(100'000);
  EXPECT_FALSE(HasThread(static_cast<uint32_t>(child)));
  EXPECT_TRUE(HasThread(OwnTid()));
  std::map<int32_t, int64_t> waiting_ns, running_ns;  // by thread
  ASSERT_TRUE(signals
                  ->Drain(sources::VisitOnly([&](const SignalSum& sum) {
                    if (sum.signal == GPUSONDE_SIGNAL_WAITING) waiting_ns[sum.tid] += sum.amount;
                    if (sum.signal == GPUSONDE_SIGNAL_RUNNING) running_ns[sum.tid] += sum.amount;
                  }))
                  .has_value());
  EXPECT_GT(running_ns[child], 0) << "a busy machine gives it little of the 20 ms";
  EXPECT_GT(waiting_ns[::gettid()], 0);
  for (const int end : {ready[0], ready[1], done[0]}) ::close(end);
}

TEST(ThreadEntries, AnAbsenceOfTheSecondThreadOfASlotIsReportedAtTheEnd) {
  Result<StackTables> tables = StackTables::Create();
  SKIP_WHERE_REFUSED(tables);
  Result<CpuSampler> sampler = CpuSampler::Create({}, *tables);
  SKIP_WHERE_REFUSED(sampler);
  Result<OffCpu> off_cpu = OffCpu::Create({}, *tables, *sampler);
  SKIP_WHERE_REFUSED(off_cpu);
  ASSERT_TRUE(sampler->Follow(::getpid()).has_value());
  ::usleep(1000);
  ASSERT_TRUE(HasThread(OwnTid()));
  const pid_t child = ForkIntoOwnSlot();
  if (child == 0) GTEST_SKIP() << "no other thread may have an id of the same slot";
  if (child < 0) {
    ::pause();
    ::_exit(0);
  }
  while (proc::ReadProcessStat(child).value().state != 'S') ::usleep(1000);  // a busy machine starts it late
  ::usleep(GPUSONDE_OFF_CPU_LONG_NS / 1000 + 200'000);
  off_cpu->Stop();
  int64_t longest_ns = 0;
  ASSERT_TRUE(off_cpu
                  ->Drain(sources::VisitOnly([&](const OffCpuEnd& end) {
                    if (end.tid == static_cast<uint32_t>(child))
                      longest_ns = std::max(longest_ns, static_cast<int64_t>(end.end_ns - end.begin_ns));
                  }))
                  .has_value());
  EXPECT_GE(longest_ns, GPUSONDE_OFF_CPU_LONG_NS);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace gpusonde::ebpf
