// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analyze/records.h"
#include "base/saturated.h"

namespace gpusonde::analyze {

// Sets of pinned or managed memory whose calls returned only once they had ended: cudaMemset waits for such
// memory, but not for that of a device (CUDA's reference, "API synchronization behavior").
struct BlockingSets {
  int64_t count = 0;
  int64_t call_ns = 0;  // in these calls
  int64_t set_ns = 0;

  // A set.
  void Add(const LaunchedRecord& record) {
    const importers::MemoryKind memory = TargetOf(record.gpu.name);
    if (memory != importers::MemoryKind::kPinned && memory != importers::MemoryKind::kManaged) return;
    if (record.has_call == 0 || record.call_end_ns < record.gpu.end_ns) return;
    ++count;
    call_ns = AddSaturated(call_ns, record.call_end_ns - record.call_start_ns);
    set_ns = AddSaturated(set_ns, record.gpu.end_ns - record.gpu.start_ns);
  }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(count);
    archive(call_ns);
    archive(set_ns);
    archive.Require(count >= 0 && call_ns >= 0 && set_ns >= 0);
  }
};

}  // namespace gpusonde::analyze
