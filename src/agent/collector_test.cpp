// SPDX-License-Identifier: Apache-2.0
#include "agent/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "agent/child.h"
#include "agent/rows_testing.h"
#include "base/event_fd.h"
#include "base/testing/refused.h"

namespace gpusonde::agent {
namespace {

// Uses the real kernel; skipped where the machine doesn't allow it.
class CollectorTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<Collector> created =
        Collector::Create({.frequency_hz = 499, .every_process = false, .command = "test"});
    SKIP_WHERE_REFUSED(created);
    collector_.emplace(std::move(*created));
  }

  std::vector<model::Batch> Run(const std::vector<std::string>& command) {
    Child child = Child::Prepare(command).value();
    EXPECT_TRUE(collector_->Follow(child.pid()).has_value());
    EXPECT_TRUE(child.Start().has_value());
    std::vector<model::Batch> all;
    const auto add = [&](std::vector<model::Batch> batches) {
      std::ranges::move(batches, std::back_inserter(all));
    };
    while (!child.TryWait().has_value()) {
      collector_->Wait(50, 50);
      add(collector_->Poll().value());
    }
    add(collector_->Finish().value());
    return all;
  }

  static int64_t CountRows(const std::vector<model::Batch>& batches, std::string_view table) {
    int64_t rows = 0;
    for (const model::Batch& batch : batches)
      rows += batch.table == table ? static_cast<int64_t>(batch.rows) : 0;
    return rows;
  }

  std::optional<Collector> collector_;
};

TEST_F(CollectorTest, ABusyProgramIsSampledAsOftenAsAsked) {
  // Ends by its limit of one second of CPU time, however long that takes on a busy machine.
  const auto batches = Run({"sh", "-c", "ulimit -t 1; while :; do :; done"});
  int64_t samples = 0;
  for (const model::Batch& batch : batches)
    if (batch.table == "samples")
      samples += std::ranges::count(TextColumn({batch}, "samples", "state"), "on_cpu");
  // Sampling by the CPU clock is random when the CPU is shared: allow five standard deviations of such a
  // count.
  EXPECT_NEAR(static_cast<double>(samples), 500, 5 * std::sqrt(500));
  EXPECT_GT(CountRows(batches, "stacks"), 0);
}

TEST_F(CollectorTest, ChildrenOfTheProgramAreProcessesToo) {
  const auto batches =
      Run({"sh", "-c", "for i in 1 2 3; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; done"});
  std::vector<int32_t> pids;
  for (const model::Batch& batch : batches)
    if (batch.table == "processes")
      std::ranges::copy(FixedColumn<int32_t>({batch}, "processes", "pid"), std::back_inserter(pids));
  std::ranges::sort(pids);
  const auto repeated = std::ranges::unique(pids);
  pids.erase(repeated.begin(), repeated.end());
  EXPECT_EQ(pids.size(), 4u);
}

TEST_F(CollectorTest, AProgramThatEndsAtOnceStillHasItsProcess) {
  const auto batches = Run({"true"});
  EXPECT_GE(CountRows(batches, "processes"), 1);
  EXPECT_GE(CountRows(batches, "mappings"), 1);
}

// Waits an hour if the event doesn't end the wait; also tests an event from before the wait.
TEST_F(CollectorTest, AnEventEndsTheWaitForARound) {
  EventFd event;
  event.Signal();
  collector_->Wait(0, 3'600'000, event.get());
  event.Clear();
  const std::jthread later([&event] { event.Signal(); });
  collector_->Wait(0, 3'600'000, event.get());
}

}  // namespace
}  // namespace gpusonde::agent
