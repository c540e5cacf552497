// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "analyze/report.h"
#include "model/short_names.h"

namespace gpusonde::analyze {

// The durations of all GPU work, summed.
int64_t GpuTime(const Report& report);

// The kernels that took most, at most so many, by their share of the operator's time: "gemm 80.0 %, softmax
// 12.0 %".
std::string KernelsText(const OperatorLine& line, const model::ShortNames& shown, size_t max);

}  // namespace gpusonde::analyze
