// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per allocation or release of device memory, as PyTorch's allocator reports them.
struct Allocation {
  Id128 process;
  int32_t tid = 0;
  Id128 device;
  int64_t time_ns = 0;
  int64_t address = 0;
  int64_t bytes = 0;
  bool released = false;
  std::optional<Id128> stack;
};

inline constexpr Table kAllocations(
    "allocations", kFacts, "One row per allocation or release of device memory, of an imported trace",
    Field("process", &Allocation::process, "", "whose"),
    Field("tid", &Allocation::tid, "", "thread id, as in `threads`"),
    Field("device", &Allocation::device, "", "where"), Field("time_ns", &Allocation::time_ns, "ns", "when"),
    Field("address", &Allocation::address, "", "device address"),
    Field("bytes", &Allocation::bytes, "bytes", "size"),
    Field("released", &Allocation::released, "", "true for a release"),
    Field("stack", &Allocation::stack, "", "what was open on the thread; null where nothing was"));

}  // namespace gpusonde::model
