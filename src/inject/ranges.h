// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/nvidia/nvtx.h"

namespace gpusonde::inject {

// Puts our functions into an NVTX instance's tables (every shared object with NVTX in it has its own). Ranges
// are told when they end, with texts of at most GPUSONDE_GPU_TEXT_BYTES; wide-character texts are told as
// empty. False when the instance doesn't offer what is needed.
//
// Push-pop depth is counted per thread over all domains and instances together: popping in another order than
// pushing, which NVTX allows across domains, would swap two ranges.
bool AttachRanges(gpusonde_nvtx_get_export_table* get_export_table);

}  // namespace gpusonde::inject
