// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "model/selection.h"
#include "model/step_kind.h"
#include "store/store.h"

namespace gpusonde::store {

// The steps of a loop of a process, and what they usually do.
struct UsualSteps {
  struct Part {
    std::string state;  // metric of the catalogue: step.cpu
    double time_ns = 0;
    std::string sentence;  // if it disturbs the process all the time; else empty
  };
  Id128 process = {};
  int32_t tid = 0;  // as in steps
  std::string name = {};
  int32_t pid = 0;
  int64_t steps = 0;             // in the selected time
  double time_ns = 0;            // of one, usually
  double between_ns = 0;         // of the waits before one that aren't part of it, usually
  std::vector<Part> parts = {};  // that take any time, the longest first
  // Of the steps in the selected time, the common ones (model::CommonKinds); their work isn't known.
  std::vector<model::StepKind> kinds = {};
};

struct SelectedSteps {
  int64_t count = 0;                      // of all processes
  std::vector<UsualSteps> programs = {};  // loops of which it is known what is usual
};

// Of the selected processes' loops with steps in the selected time, the one whose steps took the most first.
// What is usual is that of the newest steps, whatever time is selected. Errors: those of Store::Query.
Result<SelectedSteps> ReadUsualSteps(Store& store, const model::Selection& selection);

}  // namespace gpusonde::store
