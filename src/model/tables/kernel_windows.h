// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "model/enums.h"
#include "model/table.h"

namespace gpusonde::model {

// Kernels, copies and sets summed over a window.
struct KernelWindow {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  WorkPart part = WorkPart::kLost;
  Id128 process;
  Id128 device;
  std::string name;
  bool graph = false;
  std::optional<int64_t> stream;
  std::optional<Id128> stack;
  std::optional<int32_t> tid;
  int64_t count = 0;
  int64_t duration_ns = 0;
  double weight = 0;
  double time_ns = 0;
  double variance_ns2 = 0;
  std::vector<int64_t> sketch;
};

inline constexpr Table kKernelWindows(
    "kernel_windows", kFacts, "Kernels, copies and sets summed over a window",
    Field("start_ns", &KernelWindow::start_ns, "ns", "begin"),
    Field("end_ns", &KernelWindow::end_ns, "ns", "end"),
    Field("part", &KernelWindow::part, "",
          "lost (records that never arrived), all (except captured), sampled (of all, by stack) or captured "
          "(of "
          "graphs, by stack)"),
    Field("process", &KernelWindow::process, "", "whose"),
    Field("device", &KernelWindow::device, "", "where"),
    Field("name", &KernelWindow::name, "", "mangled kernel name, [memcpy KIND] or [memset]"),
    Field("graph", &KernelWindow::graph, "", "whether a CUDA graph ran it"),
    Field("stream", &KernelWindow::stream, "", "CUDA stream id; null when not known"),
    Field("stack", &KernelWindow::stack, "", "stack that launched or captured it; null for lost and all"),
    Field("tid", &KernelWindow::tid, "", "thread that launched it; null when not known"),
    Field("count", &KernelWindow::count, "", "how many; 0 for sampled"),
    Field("duration_ns", &KernelWindow::duration_ns, "ns", "sum of durations; 0 for sampled"),
    Field("weight", &KernelWindow::weight, "1", "of sampled launches, sum of 1 / probability"),
    Field("time_ns", &KernelWindow::time_ns, "ns", "of sampled launches, sum of duration / probability"),
    Field("variance_ns2", &KernelWindow::variance_ns2, "ns²",
          "of sampled launches, sum of (1 - probability) / probability² × duration²"),
    Field("sketch", &KernelWindow::sketch, "", "duration sketch: pairs of bucket and count"));

}  // namespace gpusonde::model
