// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/cost_estimate.h"

namespace gpusonde::inject {

// Finds, among the kernels that are reported in an awake window, marks that a step apart follow each other
// (CostEstimate::Mark). The marks are the runs of one kernel in one context, the rarest that still ran
// kMinRuns times in a window: a frequent one runs many times in each step, at distances that differ. It stays
// the same until a window lacks it, as marks before and after a sleep must be of the same kernel.
//
// Kernels are numbered by CUPTI's gridId. That it counts the kernels of a context one by one, with and
// without a consumer, is checked as far as records can tell: a window that has more kernels than numbers, or
// fewer than half as many, has no marks. Not thread-safe; neither order nor completeness of the records
// matters.
class StepMarks {
 public:
  using Mark = CostEstimate::Mark;
  static constexpr uint32_t kMinRuns = 8;

  struct Window {
    Mark first, middle, last;  // `middle`: the first in the window's second half
    uint32_t runs = 0;  // of the kernel whose runs are marks in the windows to come; 0: there is none yet
  };

  void BeginWindow(uint64_t now_ns, uint64_t length_ns) {
    window_ = {};
    middle_ns_ = now_ns + length_ns / 2;
    records_ = 0;
    lowest_ = UINT64_MAX;
    highest_ = 0;
    for (Kernel& kernel : kernels_) kernel = {};
  }

  void Add(uint32_t context, uint32_t name, int64_t number, uint64_t start_ns) {
    // Below 0: a kernel that another one launched.
    if (number <= 0 || start_ns == 0) return;
    const uint64_t key = uint64_t{context} << 32 | name;
    Kernel& kernel = kernels_[(key * 0x9e3779b97f4a7c15 >> 40) % kKernels];
    if (kernel.runs == 0) kernel.key = key;
    if (kernel.key == key) ++kernel.runs;
    if (!chosen_ || context != static_cast<uint32_t>(key_ >> 32)) return;
    const auto count = static_cast<uint64_t>(number);
    ++records_;
    if (count < lowest_) lowest_ = count;
    if (count > highest_) highest_ = count;
    if (key != key_) return;
    ++window_.runs;
    if (window_.first.time_ns == 0 || start_ns < window_.first.time_ns) window_.first = {count, start_ns};
    if (start_ns > window_.last.time_ns) window_.last = {count, start_ns};
    if (start_ns >= middle_ns_ && (window_.middle.time_ns == 0 || start_ns < window_.middle.time_ns))
      window_.middle = {count, start_ns};
  }

  // The marks of the window that ends; empty if it has none. Chooses the kernel for the windows to come if
  // there is none yet, or this window lacked it.
  Window EndWindow() {
    const uint64_t numbers = highest_ < lowest_ ? 0 : highest_ - lowest_ + 1;
    const bool counted = records_ <= numbers && records_ >= numbers / 2;
    Window window = chosen_ && counted ? window_ : Window{};
    window.runs = !chosen_ || window_.first.time_ns == window_.last.time_ns ? Choose() : window_.runs;
    return window;
  }

 private:
  // Enough for the kernels of a step; those that share a place with an earlier one can't be chosen.
  static constexpr size_t kKernels = 512;
  struct Kernel {
    uint64_t key;
    uint32_t runs;
  };

  // Returns how often it ran; 0 if none is chosen.
  uint32_t Choose() {
    chosen_ = false;
    uint32_t fewest = UINT32_MAX;
    for (const Kernel& kernel : kernels_) {
      if (kernel.runs < kMinRuns || kernel.runs >= fewest) continue;
      fewest = kernel.runs;
      key_ = kernel.key;
      chosen_ = true;
    }
    return chosen_ ? fewest : 0;
  }

  Kernel kernels_[kKernels] = {};
  bool chosen_ = false;
  uint64_t key_ = 0;  // context and name
  Window window_;
  uint64_t middle_ns_ = 0;
  // Of the chosen kernel's context.
  uint64_t records_ = 0;
  uint64_t lowest_ = UINT64_MAX;
  uint64_t highest_ = 0;
};

}  // namespace gpusonde::inject
