// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

// The names in our tables for the numbers of CUPTI and wire/gpu_event.h.
namespace gpusonde::cupti {

// htod, dtoh, dtod, ptop, htoh or unknown; CUDA arrays are on the device.
std::string_view CopyKindName(uint32_t kind);

// pageable, pinned, device, managed or unknown.
std::string_view MemoryKindName(uint32_t kind);

// event, stream_wait, stream, context or unknown.
std::string_view SyncKindName(uint32_t kind);

// nvtx_push_pop or nvtx_start_end; empty for anything else.
std::string_view RangeKindName(uint32_t kind);

// The name, such as "cudaLaunchKernel", of a CUPTI callback id in the runtime or driver domain, without
// CUPTI's suffixes for versions and per-thread streams; empty for an unknown id.
std::string_view CallName(bool runtime, uint32_t callback_id);

}  // namespace gpusonde::cupti
