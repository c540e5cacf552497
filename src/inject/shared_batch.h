// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "inject/libc.h"
#include "inject/sink.h"

namespace gpusonde::inject {

// Collects the records that the host's threads produce (ranges, cloned graph nodes) into batches, so that a
// record does not cost a probe hit each. Thread-safe.
class SharedBatch {
 public:
  // Calls `fill` with a zeroed record of this size.
  template <class Fill>
  void Add(uint32_t session, uint16_t type, size_t bytes, Fill fill) {
    const Locked locked(mutex_);
    fill(batch_.Add(session, type, bytes));
  }
  void Flush() {
    const Locked locked(mutex_);
    batch_.Flush();
  }

 private:
  Mutex mutex_;
  Batch batch_{GPUSONDE_GPU_RECORDS, false};
};

SharedBatch& HostBatch();

}  // namespace gpusonde::inject
