// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/id128.h"
#include "model/enums.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per stack taken of a thread.
struct Sample {
  int64_t time_ns = 0;
  Id128 process;
  int32_t tid = 0;
  int32_t cpu = 0;
  Id128 stack;
  ThreadState state{};
  int64_t weight_ns = 0;
};

inline constexpr Table kSamples("samples", kFacts, "One row per stack taken of a thread",
                                Field("time_ns", &Sample::time_ns, "ns", "when; of a wait, when it ended"),
                                Field("process", &Sample::process, "", "whose"),
                                Field("tid", &Sample::tid, "", "thread id in the host namespace"),
                                Field("cpu", &Sample::cpu, "", "CPU it ran on, or had left"),
                                Field("stack", &Sample::stack, "", "what it was doing"),
                                Field("state", &Sample::state, "", "on_cpu, or why it was not"),
                                Field("weight_ns", &Sample::weight_ns, "ns",
                                      "time that this sample stands for"));

}  // namespace gpusonde::model
