// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpusonde::fleet {

// What a real program put on its GPU, in the order of its launches: a file of data/kernel-streams, whose
// README has the format.
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
    int64_t gap_ns = 0;         // for which its stream was idle before
    int64_t duration_ns = 0;
  };

  std::string source;
  std::string device;
  std::vector<std::string> names;
  std::vector<Operation> operations;
};

// kCorrupt with the line's number for another version, a line that isn't known, or numbers out of range.
Result<KernelStream> ParseKernelStream(std::string_view text);

// All `*.stream` files of a folder, by file name, which becomes `source`. kNotFound where there are none;
// errors of reading and parsing with the file's name.
Result<std::vector<KernelStream>> ReadKernelStreams(const std::string& folder);

// Where this program finds those that came with it: as installed, else in the tree that it was built from.
std::string KernelStreamFolder();

}  // namespace gpusonde::fleet
