// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/fingerprint.h"

namespace gpusonde::fleet {

// A real program's GPU work in launch order: a file of data/kernel-streams, whose README describes the
// format.
struct KernelStream {
  enum class Kind : uint8_t { kKernel, kToDevice, kFromDevice, kWithinDevice, kSet };

  struct Operation {
    Kind kind = Kind::kKernel;
    uint32_t stream = 0;
    uint32_t name = 0;  // of a kernel: an index into `names`
    std::array<uint32_t, 3> grid{};
    std::array<uint32_t, 3> block{};
    uint32_t shared_bytes = 0;  // per block
    int64_t bytes = 0;          // of a copy or set
    int64_t gap_ns = 0;         // idle time of its stream before
    int64_t duration_ns = 0;
  };

  std::string source;
  std::string device;
  std::vector<std::string> names;
  std::vector<Operation> operations;
};

// kCorrupt with the line number for another version, an unknown line, or numbers out of range.
Result<KernelStream> ParseKernelStream(std::string_view text);

// All `*.stream` files of a folder by file name, which becomes `source`. kNotFound if there are none; reading
// and parsing errors include the file's name.
Result<std::vector<KernelStream>> ReadKernelStreams(const std::string& folder);

// The fingerprint of all its kernels.
Fingerprint FingerprintOf(const KernelStream& stream);

// The folder of this program's own streams: as installed, else in its source tree.
std::string KernelStreamFolder();

}  // namespace gpusonde::fleet
