// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/nvidia/nvtx.h"

namespace gpusonde::inject {

// Installs our functions in an NVTX instance's tables (every shared object that contains NVTX has its own).
// Ranges are sent when they end, with texts of at most GPUSONDE_GPU_TEXT_BYTES; a wide-character text is sent
// as empty. False when the instance lacks a table that we need.
//
// Push-pop depth is counted per thread over all domains and instances together. NVTX allows ranges of
// different domains to be popped in another order than they were pushed; two such ranges are swapped.
bool AttachRanges(gpusonde_nvtx_get_export_table* get_export_table);

}  // namespace gpusonde::inject
