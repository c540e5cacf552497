// SPDX-License-Identifier: Apache-2.0
#include "agent/gpu_programs.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace gpusonde::agent {
namespace {

// No process has a pid this large: the kernel's limit is 2^22.
constexpr int32_t kNoProcess = 1 << 30;

class GpuProgramsTest : public testing::Test {
 protected:
  void Apply(auto what) {
    const perf::SidebandEvent event{.time_ns = now_ns_ += kNanosPerSecond, .what = what};
    processes_.Apply(event);
    programs_.Apply(event);
  }
  static perf::ForkEvent Fork(int32_t pid, int32_t tid) {
    return {.pid = pid, .tid = tid, .parent_pid = ::getpid(), .parent_tid = ::getpid()};
  }
  static cupti::Event Begin(int32_t pid) {
    return {.pid = pid, .session = 1, .stack = {}, .what = cupti::SessionBegin{.begin_ns = 1}};
  }

  symbols::BinaryTable binaries_;
  Rows rows_;
  model::DropCounts drops_;
  int64_t now_ns_ = MonotonicNow() + kNanosPerSecond;  // later than anything that /proc shows
  ProcessTable processes_{{.host = {.boot_id = "boot"}, .every_process = true}, binaries_, rows_};
  GpuRows gpu_rows_{{}, rows_, drops_};
  // Any small file: no process here maps the library, and this program is too large with a sanitizer.
  GpuPrograms programs_{cupti::GpuEvents::Create({.library_path = "/proc/self/comm"}, nullptr).value(), false,
                        processes_, gpu_rows_, drops_};
};

TEST_F(GpuProgramsTest, AProcessThatReportedNothingIsFinishedToo) {
  Apply(Fork(kNoProcess, kNoProcess));
  Apply(Fork(kNoProcess, kNoProcess + 1));
  Apply(perf::ExitEvent{.pid = kNoProcess, .tid = kNoProcess + 1});
  EXPECT_EQ(programs_.ended(), 0u) << "one thread of two";
  Apply(perf::ExitEvent{.pid = kNoProcess, .tid = kNoProcess});
  EXPECT_EQ(programs_.ended(), 1u) << "the source may know it";
  programs_.Finish(1);
  EXPECT_EQ(programs_.ended(), 0u);
}

TEST_F(GpuProgramsTest, AnUnknownProcessWhoseThreadEndsMayStillRun) {
  Apply(perf::ExitEvent{.pid = kNoProcess, .tid = kNoProcess + 1});
  EXPECT_EQ(programs_.ended(), 0u);
}

TEST_F(GpuProgramsTest, AForkEndsTheFormerOwnerOfThePid) {
  Apply(Fork(kNoProcess, kNoProcess));
  programs_.BeginRound();
  ASSERT_TRUE(programs_.Ingest(Begin(kNoProcess)));
  Apply(Fork(kNoProcess, kNoProcess + 1));
  EXPECT_EQ(programs_.ended(), 0u) << "a thread";
  Apply(Fork(kNoProcess, kNoProcess));
  EXPECT_EQ(programs_.ended(), 1u) << "its exit was lost";
}

// It would wait for its place in time for as long as the program says.
TEST_F(GpuProgramsTest, ACallOfTheFutureIsDropped) {
  const auto call = [](int64_t end_ns) {
    return cupti::Event{.pid = ::getpid(),
                        .session = 1,
                        .stack = {},
                        .stack_taken = true,
                        .what = cupti::Call{.start_ns = 1, .end_ns = end_ns}};
  };
  programs_.BeginRound();
  EXPECT_FALSE(programs_.Ingest(call(MonotonicNow()))) << "its stack has to be resolved";
  EXPECT_EQ(drops_.Of(model::DropReason::kGpuMalformed), 0);
  EXPECT_TRUE(programs_.Ingest(call(MonotonicNow() + 3600 * kNanosPerSecond)));
  EXPECT_EQ(drops_.Of(model::DropReason::kGpuMalformed), 1);
}

}  // namespace
}  // namespace gpusonde::agent
