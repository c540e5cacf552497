// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// Names of ranges, operators and calls in traces without what differs from one run of the same code to the
// next. The results are views of the argument.
namespace gpusonde::model {

// Without what PyTorch's emit_nvtx appends: "aten::mm, seq = 12, op_id = 34".
std::string_view WithoutArguments(std::string_view name);

// Of a range or operator, also without the number of a step: "ProfilerStep#12".
std::string_view RepeatedName(std::string_view name);

// Of a call, without the version that nsys appends: "cudaLaunchKernel_v7000", but "cuMemcpyHtoD_v2" stays.
std::string_view WithoutVersion(std::string_view call);

}  // namespace gpusonde::model
