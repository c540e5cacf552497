// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

// What the numbers of CUPTI and of wire/gpu_event.h are called in our tables.
namespace gpusonde::cupti {

// htod, dtoh, dtod, ptop, htoh or unknown; CUDA arrays are on the device.
std::string_view CopyKindName(uint32_t kind);

// pageable, pinned, device, managed or unknown.
std::string_view MemoryKindName(uint32_t kind);

// event, stream_wait, stream, context or unknown.
std::string_view SyncKindName(uint32_t kind);

// nvtx_push_pop or nvtx_start_end; empty for anything else.
std::string_view RangeKindName(uint32_t kind);

// "cudaLaunchKernel" of CUPTI's callback id in the runtime's or the driver's domain, without the suffixes
// that CUPTI gives versions and per-thread streams; empty for one that we don't know.
std::string_view CallName(bool runtime, uint32_t callback_id);

}  // namespace gpusonde::cupti
