// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/profile.h"

namespace gpusonde::compare {

// A frame, with the time of all stacks through it.
struct StackNode {
  double a_ns = 0, b_ns = 0;
  std::map<std::string, StackNode> children;  // the frames that it calls; of GPU time the leaves are kernels

  double more_ns() const { return b_ns - a_ns; }
};

// Time of an operator, or in one stack without what it calls.
struct StackLine {
  std::vector<std::string> frames;  // the outermost first; of operators one
  double a_ns = 0, b_ns = 0;

  double more_ns() const { return b_ns - a_ns; }
};

// The difference of two sides by stack: GPU time by what launched it, or CPU time by what ran. Not
// thread-safe.
class StackDiff {
 public:
  explicit StackDiff(model::ProfileType type) : type_(type) {}

  // Adds a run's profile; times are divided by `divisor`. Calls that launch GPU work are left out, as GPU
  // makers name them differently.
  void Add(const model::Profile& profile, bool is_b, double divisor);

  model::ProfileType type() const { return type_; }
  const StackNode& root() const { return root_; }
  // GPU time by the innermost operator ("aten::mm") above it, the largest difference first.
  std::vector<StackLine> Operators() const;
  // The stacks that grew and shrank most: at most `most` of each, the largest difference first. They end
  // above kernels that have other names on both sides.
  std::vector<StackLine> Changes(size_t most) const;

 private:
  model::ProfileType type_;
  StackNode root_;
  std::map<std::string, StackLine> operators_;
};

}  // namespace gpusonde::compare
