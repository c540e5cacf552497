// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per thread.
struct Thread {
  Id128 process;
  int32_t tid = 0;
  std::string name;
  std::optional<int64_t> started_ns;
  std::optional<int64_t> exited_ns;
};

inline constexpr Table kThreads("threads", Key{2}, "One row per thread",
                                Field("process", &Thread::process, "", "its process"),
                                Field("tid", &Thread::tid, "", "thread id in the host namespace"),
                                Field("name", &Thread::name, "", "short name (comm), the latest"),
                                Field("started_ns", &Thread::started_ns, "ns",
                                      "creation; null when it existed before profiling"),
                                Field("exited_ns", &Thread::exited_ns, "ns", "end; null while it runs"));

}  // namespace gpusonde::model
