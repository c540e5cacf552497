// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpusonde {

// Remembers the current problem of a task that is tried again and again, so that its log has a line when a
// problem begins and one when it ends, however often the task fails in between. Not thread-safe.
class ProblemLog {
 public:
  enum class Change : uint8_t {
    kNone,
    kBegan,  // `problem` is new: the first, or another than before
    kEnded,  // the task works again
  };

  // The task has been tried: `problem` is the reason why it failed, empty if it succeeded.
  Change Set(std::string_view problem) {
    if (problem == problem_) return Change::kNone;
    problem_ = problem;
    return problem.empty() ? Change::kEnded : Change::kBegan;
  }

  // Why the last try failed; empty if it succeeded.
  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
};

}  // namespace gpusonde
