// SPDX-License-Identifier: Apache-2.0
#include "agent/recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "base/testing/temp_folder.h"

namespace gpusonde::agent {
namespace {

class RecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "needs root: samples by eBPF";
  }

  // Records the command while the wall clock steps by `step_ns`.
  Recorder::Outcome Record(int64_t step_ns) {
    int64_t measured = 0;
    Result<Recorder> recorder =
        Recorder::Create({.spool_folder = folder_ / "run.spool",
                          .command = command_,
                          .measure_epoch_offset = [&measured, step_ns] {
                            return MeasureEpochOffset() + (measured++ == 0 ? 0 : step_ns);
                          }});
    EXPECT_TRUE(recorder.has_value()) << recorder.error().message;
    if (!recorder.has_value()) return {};
    RecorderSignals signals;
    const Result<Recorder::Outcome> outcome = recorder->Run(signals);
    EXPECT_TRUE(outcome.has_value()) << outcome.error().message;
    return outcome.value_or(Recorder::Outcome{});
  }

  TempFolder folder_;
  std::vector<std::string> command_ = {"sleep", "0.1"};
};

TEST_F(RecorderTest, ReportsThatTheClockWasSet) {
  const Recorder::Outcome outcome = Record(-7 * kNanosPerSecond);
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_NEAR(static_cast<double>(outcome.clock_step_ns), -7e9, 1e8);
}

TEST_F(RecorderTest, NamesAProcessThatOutlivesTheProgram) {
  command_ = {"sh", "-c", "sleep 30 >/dev/null 2>&1 & sleep 0.3"};
  const Recorder::Outcome outcome = Record(0);
  ASSERT_EQ(outcome.left_running.size(), 1u);
  EXPECT_EQ(::kill(outcome.left_running[0], SIGKILL), 0);
}

TEST_F(RecorderTest, IgnoresAClockThatIsSlewed) { EXPECT_EQ(Record(kNanosPerMilli).clock_step_ns, 0); }

}  // namespace
}  // namespace gpusonde::agent
