// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/id128.h"
#include "diagnose/step_finder.h"
#include "model/step_kind.h"

namespace gpusonde::diagnose {

// The kinds of steps that a program makes: longer steps of another kind are not slow ones, but may be why it
// takes longer. Not thread-safe.
class StepKinds {
 public:
  void Add(const StepSpan& step);

  // See model::CommonKinds.
  std::vector<model::StepKind> Common() const;

 private:
  std::map<Id128, model::StepKind> by_type_;
  int64_t steps_ = 0;
};

}  // namespace gpusonde::diagnose
