// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/cupti/cupti.h"

namespace simgpu::cupti {

// One activity record in the layout of this CUPTI's version.
struct Record {
  alignas(8) uint8_t bytes[sizeof(gpusonde_cupti_kernel)];
  size_t size = 0;
};

// The kind under which an operation is recorded; 0 when its kind is not enabled.
uint32_t KindOf(const Operation& operation);

// Without timestamps if `timed` is false, like CUPTI when it could not collect them.
Record MakeRecord(const Operation& operation, uint32_t kind, bool timed);
Record MakeApiRecord(const ApiEvent& event, int32_t result, int64_t exit_ns);
Record MakeOverheadRecord(uint32_t overhead_kind, int64_t start_ns, int64_t end_ns);

// Size of a record of this kind; 0 for kinds that are never written.
size_t RecordBytes(uint32_t kind);

}  // namespace simgpu::cupti
