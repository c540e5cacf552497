// SPDX-License-Identifier: Apache-2.0
#include "analyze/sync_calls.h"

#include <algorithm>
#include <array>

namespace gpusonde::analyze {
namespace {

constexpr std::array<std::string_view, 14> kBlockingCopies = {
    "cudaMemcpy",          "cudaMemcpy2D",  "cudaMemcpy3D",  "cudaMemcpyFromSymbol",
    "cudaMemcpyToSymbol",  "cuMemcpy",      "cuMemcpyHtoD",  "cuMemcpyDtoH",
    "hipMemcpy",           "hipMemcpyHtoD", "hipMemcpyDtoH", "hipMemcpy2D",
    "hipMemcpyWithStream", "hipMemcpy3D"};

// Without what a version or a per-thread default stream adds: cuMemcpyHtoD_v2_ptds, cudaMemcpy_v3020.
std::string_view WithoutVersion(std::string_view name) { return name.substr(0, name.find('_')); }

}  // namespace

bool IsBlockingCopy(std::string_view name) {
  return std::ranges::find(kBlockingCopies, WithoutVersion(name)) != kBlockingCopies.end();
}

bool IsWaitCall(std::string_view name) { return WithoutVersion(name).ends_with("Synchronize"); }

bool IsSyncCall(std::string_view name) { return IsWaitCall(name) || IsBlockingCopy(name); }

}  // namespace gpusonde::analyze
