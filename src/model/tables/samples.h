// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/id128.h"
#include "model/enums.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per sampled stack of a thread.
struct Sample {
  int64_t time_ns = 0;
  Id128 process;
  int32_t tid = 0;
  int32_t cpu = 0;
  Id128 stack;
  ThreadState state{};
  int64_t weight_ns = 0;
  std::optional<int64_t> duration_ns;
};

inline constexpr Table kSamples("samples", kFacts, "One row per sampled stack of a thread",
                                Field("time_ns", &Sample::time_ns, "ns",
                                      "time of the sample; for a wait, its end"),
                                Field("process", &Sample::process, "", "whose"),
                                Field("tid", &Sample::tid, "", "thread id in the host namespace"),
                                Field("cpu", &Sample::cpu, "", "CPU it ran on, or ran on before the wait"),
                                Field("stack", &Sample::stack, "", "the sampled stack"),
                                Field("state", &Sample::state, "", "on_cpu, or what it waited for"),
                                Field("weight_ns", &Sample::weight_ns, "ns",
                                      "time that this sample stands for"),
                                Field("duration_ns", &Sample::duration_ns, "ns",
                                      "how long the thread waited; null on a CPU. Where weight_ns is longer, "
                                      "the wait was sampled with probability duration_ns / weight_ns"));

}  // namespace gpusonde::model
