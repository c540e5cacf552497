// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// Kernels summed over a window under the stack that launched them.
struct KernelWindow {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  Id128 process;
  Id128 device;
  std::string name;
  std::optional<Id128> stack;
  int64_t count = 0;
  int64_t duration_ns = 0;
  std::vector<int64_t> sketch;
};

inline constexpr Table kKernelWindows(
    "kernel_windows", kFacts, "Kernels summed over a window under the stack that launched them",
    Field("start_ns", &KernelWindow::start_ns, "ns", "begin"),
    Field("end_ns", &KernelWindow::end_ns, "ns", "end"),
    Field("process", &KernelWindow::process, "", "whose"),
    Field("device", &KernelWindow::device, "", "where"),
    Field("name", &KernelWindow::name, "", "mangled kernel name"),
    Field("stack", &KernelWindow::stack, "",
          "who launched it; null for the part whose stack was not sampled"),
    Field("count", &KernelWindow::count, "", "kernels"),
    Field("duration_ns", &KernelWindow::duration_ns, "ns", "sum of durations"),
    Field("sketch", &KernelWindow::sketch, "", "duration sketch: pairs of bucket and count"));

}  // namespace gpusonde::model
