// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per part of the time that the steps of a process usually take.
struct UsualStep {
  Id128 process;
  int32_t tid = 0;
  std::string state;
  double time_ns = 0;
  int64_t steps = 0;
  std::string sentence;
};

// A state of its own: the waits before a step that aren't part of it.
inline constexpr std::string_view kBetweenSteps = "step.between";

inline constexpr Table kUsualSteps(
    "usual_steps", Key{3}, "One row per part of the time that the steps of a process usually take",
    Field("process", &UsualStep::process, "", "whose"), Field("tid", &UsualStep::tid, "", "as in steps"),
    Field(
        "state", &UsualStep::state, "",
        "metric of the catalogue: step.cpu, step.gpu_run, …; or step.between, which is no part of the step"),
    Field("time_ns", &UsualStep::time_ns, "ns", "mean per step"),
    Field("steps", &UsualStep::steps, "", "the newest ones outside of incidents, which it is the mean of"),
    Field("sentence", &UsualStep::sentence, "",
          "explanation for the user if this part disturbs the process all the time; else empty"));

}  // namespace gpusonde::model
