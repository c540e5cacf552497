// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace simgpu::cuda {

// A kernel's duration at full clock: from its PTX, else SIMGPU_KERNEL_NS.
struct KernelTiming {
  std::optional<int64_t> constant_ns;
  // The kernel's own parameter (64 bits, 0 for the first) holds the duration in ns.
  std::optional<uint32_t> from_parameter;
};

// The kernels that a module's PTX text defines, by (mangled) name: its `.entry` directives. A comment before
// an entry says how long it runs,
//
//   // simgpu: duration_ns=5000
//   // simgpu: duration_ns=param0
//
// and is ignored by NVIDIA's compiler, so that one text works for both.
std::map<std::string, KernelTiming, std::less<>> KernelsOfPtx(std::string_view text);

}  // namespace simgpu::cuda
