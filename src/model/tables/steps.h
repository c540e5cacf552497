// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per step of a program: a training iteration, a request.
struct Step {
  Id128 process;
  int32_t tid = 0;
  Id128 type;
  int64_t ordinal = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

inline constexpr Table kSteps("steps", kFacts,
                              "One row per step of a program: a training iteration, a request",
                              Field("process", &Step::process, "", "whose"),
                              Field("tid", &Step::tid, "",
                                    "thread of the loop whose step it is; 0: the process's only loop, or "
                                    "the first of several"),
                              Field("type", &Step::type, "", "launch signature"),
                              Field("ordinal", &Step::ordinal, "", "count within the loop"),
                              Field("start_ns", &Step::start_ns, "ns", "begin"),
                              Field("end_ns", &Step::end_ns, "ns", "end"));

}  // namespace gpusonde::model
