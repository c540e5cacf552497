// SPDX-License-Identifier: Apache-2.0
#include "agent/off_cpu_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "agent/rows_testing.h"
#include "base/testing/units.h"

namespace gpusonde::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kOffset = 1'000;
const Id128 kProcess{1, 1}, kStack{2, 2};

gpusonde_off_cpu_head Head(int64_t time_ns, int32_t syscall) {
  return {.kind = GPUSONDE_OFF_CPU_BEGIN,
          .pid = 5,
          .tid = 6,
          .cpu = 1,
          .time_ns = static_cast<uint64_t>(time_ns),
          .limit_ns = 2'000'000,
          .chance = 0xFFFFFFFF,
          .syscall = syscall,
          .futex_op = FUTEX_WAIT_PRIVATE,
          .futex_value = 2,
          .runnable = 0,
          .in_io = 0,
          .uninterruptible = 0,
          .sampled = 1};
}

gpusonde_off_cpu_head Futex(uint32_t operation, uint32_t value) {
  gpusonde_off_cpu_head head = Head(0, SYS_futex);
  head.futex_op = operation;
  head.futex_value = value;
  return head;
}

ebpf::OffCpuEnd EndOf(int64_t begin_ns, int64_t woken_ns, int64_t end_ns) {
  return {.kind = GPUSONDE_OFF_CPU_END,
          .tid = 6,
          .begin_ns = static_cast<uint64_t>(begin_ns),
          .woken_ns = static_cast<uint64_t>(woken_ns),
          .end_ns = static_cast<uint64_t>(end_ns)};
}

class OffCpuRowsTest : public testing::Test {
 protected:
  std::vector<std::string> States() { return TextColumn(rows_.Take(), "samples", "state"); }

  Rows rows_;
  OffCpuRows off_cpu_{kOffset, rows_};
};

TEST_F(OffCpuRowsTest, AWaitThatOutlivesItsStacksRowHasTheUnknownStack) {
  constexpr Id128 kUnknown{3, 3};
  off_cpu_.Begin(Head(1'000'000, SYS_futex), kProcess, kStack, false);
  std::vector<std::pair<int32_t, Id128>> waiting;
  off_cpu_.Rewrite(kUnknown, [&](int32_t pid, const Id128& process) { waiting.emplace_back(pid, process); });
  EXPECT_THAT(waiting, ElementsAre(std::pair<int32_t, Id128>(5, kProcess)));
  off_cpu_.End(EndOf(1 * kMs, 31 * kMs, 31 * kMs));
  EXPECT_THAT(FixedColumn<Id128>(rows_.Take(), "samples", "stack"), ElementsAre(kUnknown));
}

TEST_F(OffCpuRowsTest, WaitingAndThenWaitingForACpuAreTwoSamples) {
  off_cpu_.Begin(Head(1'000'000, SYS_futex), kProcess, kStack, false);
  off_cpu_.End(EndOf(1 * kMs, 31 * kMs, 43 * kMs));
  const std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(TextColumn(batches, "samples", "state"), ElementsAre("lock", "run_queue"));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "samples", "weight_ns"), ElementsAre(30 * kMs, 12 * kMs));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "samples", "duration_ns"), ElementsAre(30 * kMs, 12 * kMs));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "samples", "time_ns"),
              ElementsAre(31 * kMs + kOffset, 43 * kMs + kOffset));
}

TEST_F(OffCpuRowsTest, TimesBelowTheirThresholdAreLeftOut) {
  off_cpu_.Begin(Head(0, SYS_futex), kProcess, kStack, false);
  off_cpu_.End(EndOf(0, 5 * kMs, 6 * kMs));
  EXPECT_THAT(States(), ElementsAre("lock"));
  off_cpu_.Begin(Head(0, SYS_futex), kProcess, kStack, false);
  off_cpu_.End(EndOf(0, 1 * kMs, 6 * kMs));
  EXPECT_THAT(States(), ElementsAre("run_queue"));
}

TEST_F(OffCpuRowsTest, APreemptedThreadWaitsForNothingButACpu) {
  gpusonde_off_cpu_head head = Head(0, SYS_read);
  head.runnable = 1;
  off_cpu_.Begin(head, kProcess, kStack, true);
  off_cpu_.End(EndOf(0, 0, 20 * kMs));
  EXPECT_THAT(States(), ElementsAre("run_queue"));
}

TEST_F(OffCpuRowsTest, AnEndWithoutItsBeginIsDropped) {
  off_cpu_.End(EndOf(0, 5 * kMs, 6 * kMs));
  off_cpu_.Begin(Head(10 * kMs, SYS_read), kProcess, kStack, false);
  off_cpu_.End(EndOf(0, 5 * kMs, 6 * kMs));
  EXPECT_THAT(States(), IsEmpty());
  off_cpu_.Begin(Head(20 * kMs, SYS_read), kProcess, kStack, false);
  off_cpu_.End(EndOf(20 * kMs, 30 * kMs, 30 * kMs));
  EXPECT_THAT(States(), ElementsAre("io"));
  off_cpu_.End(EndOf(10 * kMs, 30 * kMs, 30 * kMs));
  EXPECT_THAT(States(), IsEmpty()) << "an older off-CPU time than the last one that ended";
}

TEST_F(OffCpuRowsTest, ALongWaitIsItsLengthThoughTheCoinLeftItOut) {
  gpusonde_off_cpu_head head = Head(5 * kMs, SYS_clock_nanosleep);
  head.sampled = 0;
  off_cpu_.Begin(head, kProcess, kStack, false);
  off_cpu_.End(EndOf(5 * kMs, 2005 * kMs, 2006 * kMs));  // and 1 ms of run-queue delay, which stays left out
  EXPECT_EQ(States(), std::vector<std::string>{"sleep"});
}

TEST_F(OffCpuRowsTest, WaitsCountWithinTheLimits) {
  off_cpu_.set_limits(1000 * kMs, 2000 * kMs);
  off_cpu_.Begin(Head(5 * kMs, SYS_clock_nanosleep), kProcess, kStack, false);
  off_cpu_.End(EndOf(5 * kMs, 900 * kMs, 900 * kMs));
  EXPECT_TRUE(rows_.Take().empty());
  off_cpu_.Begin(Head(1500 * kMs, SYS_clock_nanosleep), kProcess, kStack, false);
  off_cpu_.End(EndOf(1500 * kMs, 2700 * kMs, 2700 * kMs));
  EXPECT_EQ(FixedColumn<int64_t>(rows_.Take(), "samples", "weight_ns"), std::vector<int64_t>{500 * kMs});
}

TEST_F(OffCpuRowsTest, AThreadThatHasEndedIsForgotten) {
  off_cpu_.Begin(Head(0, SYS_read), kProcess, kStack, false);
  off_cpu_.Forget(6);
  off_cpu_.End(EndOf(0, 30 * kMs, 30 * kMs));
  EXPECT_THAT(States(), IsEmpty());
}

TEST_F(OffCpuRowsTest, ThreadsWhoseEndsWereLostAreForgotten) {
  off_cpu_.Begin(Head(0, SYS_read), kProcess, kStack, false);
  off_cpu_.ForgetEnded([](int32_t pid, int32_t tid) { return pid == 5 && tid == 6; });
  EXPECT_EQ(off_cpu_.threads(), 1U) << "it goes on";
  off_cpu_.ForgetEnded([](int32_t, int32_t) { return false; });
  EXPECT_EQ(off_cpu_.threads(), 0U);
}

TEST(WaitOf, FollowsFromTheSystemCallAndTheTaskState) {
  EXPECT_EQ(WaitOf(Futex(FUTEX_WAIT_PRIVATE, 2)), model::ThreadState::kLock);
  EXPECT_EQ(WaitOf(Futex(FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 2)), model::ThreadState::kLock);
  EXPECT_EQ(WaitOf(Futex(FUTEX_WAIT_PRIVATE, 0x80001234)), model::ThreadState::kLock);  // musl's
  EXPECT_EQ(WaitOf(Futex(FUTEX_LOCK_PI_PRIVATE, 0)), model::ThreadState::kLock);
  EXPECT_EQ(WaitOf(Futex(FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0)),
            model::ThreadState::kCondition);
  EXPECT_EQ(WaitOf(Futex(FUTEX_WAIT_BITSET, 4711)), model::ThreadState::kCondition);  // a join
  EXPECT_EQ(WaitOf(Futex(FUTEX_WAIT_REQUEUE_PI_PRIVATE, 2)), model::ThreadState::kCondition);
  EXPECT_EQ(WaitOf(Head(0, SYS_clock_nanosleep)), model::ThreadState::kSleep);
  EXPECT_EQ(WaitOf(Head(0, SYS_epoll_wait)), model::ThreadState::kIo);
  EXPECT_EQ(WaitOf(Head(0, -1)), model::ThreadState::kSleep);
  gpusonde_off_cpu_head fault = Head(0, -1);
  fault.uninterruptible = 1;
  EXPECT_EQ(WaitOf(fault), model::ThreadState::kLock);
  fault.in_io = 1;
  EXPECT_EQ(WaitOf(fault), model::ThreadState::kIo);
}

TEST(IsInCudaCall, IsTrueOfTheProgramsOwnThreadsOnly) {
  const symbols::BinaryTable::Binary program{.id = {}, .build_id = {}, .path = {}, .name = "train"};
  const symbols::BinaryTable::Binary driver{
      .id = {}, .build_id = {}, .path = {}, .name = "libcuda.so.535.54"};
  const symbols::BinaryTable::Binary libc{.id = {}, .build_id = {}, .path = {}, .name = "libc.so.6"};
  Process process;
  process.mappings.Map({.start = 0x1000, .end = 0x2000, .file_offset = 0, .binary = &program});
  process.mappings.Map({.start = 0x3000, .end = 0x4000, .file_offset = 0, .binary = &driver});
  process.mappings.Map({.start = 0x5000, .end = 0x6000, .file_offset = 0, .binary = &libc});
  const auto in_call = [&](std::vector<uint64_t> frames) { return IsInCudaCall(process, frames); };
  EXPECT_TRUE(in_call({0x5010, 0x3010, 0x1010, 0x5020}));
  EXPECT_FALSE(in_call({0x5010, 0x3010, 0x5020})) << "a thread of the driver's own";
  EXPECT_FALSE(in_call({0x5010, 0x1010, 0x5020}));
  EXPECT_FALSE(in_call({}));
}

}  // namespace
}  // namespace gpusonde::agent
