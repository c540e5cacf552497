// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/id128.h"
#include "model/enums.h"
#include "model/table.h"

namespace gpusonde::model {

// CPU samples summed over a window.
struct ProfileWindow {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  Id128 process;
  int32_t tid = 0;
  std::optional<Id128> stack;
  ThreadState state{};
  std::optional<bool> device_idle;
  int64_t count = 0;
  int64_t weight_ns = 0;
  double variance_ns2 = 0;
};

inline constexpr Table kProfileWindows(
    "profile_windows", kFacts, "CPU samples summed over a window",
    Field("start_ns", &ProfileWindow::start_ns, "ns", "begin"),
    Field("end_ns", &ProfileWindow::end_ns, "ns", "end"),
    Field("process", &ProfileWindow::process, "", "whose"),
    Field("tid", &ProfileWindow::tid, "", "thread id in the host namespace"),
    Field("stack", &ProfileWindow::stack, "", "the stack; null: all stacks together"),
    Field("state", &ProfileWindow::state, "", "on_cpu, or what it waited for"),
    Field("device_idle", &ProfileWindow::device_idle, "",
          "whether the process's device had no work; null when not known"),
    Field("count", &ProfileWindow::count, "", "samples"),
    Field("weight_ns", &ProfileWindow::weight_ns, "ns", "time they stand for"),
    Field("variance_ns2", &ProfileWindow::variance_ns2, "ns²", "of that, where waits were sampled"));

}  // namespace gpusonde::model
